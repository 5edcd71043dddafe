/* structs.c - see structs.h. */
#include "base/structs.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/detail.h"

/* No struct of ours comes near it. A larger size is memory that was never set. */
enum { SIZE_MAX_BYTES = 65536 };

static size_t size_of(const void *theirs)
{
    size_t size;
    memcpy(&size, theirs, sizeof size);
    return size;
}

/* Every struct that a caller makes has a macro of this name: hf_job has HF_JOB_INIT. */
static hf_err check_size(size_t theirs, const char *name, char *detail)
{
    char upper[64];
    size_t n = 0;
    if (theirs >= sizeof(size_t) && theirs <= SIZE_MAX_BYTES)
        return HF_OK;
    for (; name[n] != '\0' && n < sizeof upper - 1; n++)
        upper[n] = (char)toupper((unsigned char)name[n]);
    upper[n] = '\0';
    return hf_say(detail, HF_INVALID, "%s: its size is %zu: begin with %s_INIT", name,
                  theirs, upper);
}

/* Of a newer struct all that we do not know must be at its default. */
static hf_err check_tail(const void *theirs, size_t known, size_t size, const char *name,
                         char *detail)
{
    const unsigned char *bytes = theirs;
    for (size_t i = known; i < size; i++)
        if (bytes[i] != 0)
            return hf_say(detail, HF_INVALID,
                          "%s: byte %zu of %zu is set, and this version of the library "
                          "knows %zu",
                          name, i, size, known);
    return HF_OK;
}

hf_err hf_struct_in(void *ours, size_t size, const void *theirs, const char *name,
                    char detail[HF_DETAIL_SIZE])
{
    size_t given = theirs == NULL ? 0 : size_of(theirs);
    hf_err err = theirs == NULL ? HF_OK : check_size(given, name, detail);
    if (err == HF_OK && given > size)
        err = check_tail(theirs, size, given, name, detail);
    if (err != HF_OK)
        return err;
    size_t known = given < size ? given : size;
    if (known > 0)
        memcpy(ours, theirs, known);
    memset((char *)ours + known, 0, size - known);
    memcpy(ours, &size, sizeof size);
    return HF_OK;
}

hf_err hf_structs_in(const void **ours, void **copy, size_t size, const void *theirs,
                     size_t n, const char *name, char detail[HF_DETAIL_SIZE])
{
    *copy = NULL;
    *ours = theirs;
    if (n == 0)
        return HF_OK;
    size_t stride = size_of(theirs);
    hf_err err = check_size(stride, name, detail);
    for (size_t i = 1; err == HF_OK && i < n; i++)
        if (size_of((const char *)theirs + i * stride) != stride)
            err = hf_say(detail, HF_INVALID,
                         "%s %zu: expected the size of the first, %zu, found %zu", name,
                         i, stride, size_of((const char *)theirs + i * stride));
    if (err != HF_OK || stride == size)
        return err;
    *copy = calloc(n, size);
    if (*copy == NULL)
        return HF_NOMEM;
    for (size_t i = 0; err == HF_OK && i < n; i++)
        err = hf_struct_in((char *)*copy + i * size, size,
                           (const char *)theirs + i * stride, name, detail);
    if (err != HF_OK) {
        free(*copy);
        *copy = NULL;
    }
    *ours = *copy;
    return err;
}

hf_err hf_struct_can_fill(const void *theirs, const char *name,
                          char detail[HF_DETAIL_SIZE])
{
    return check_size(size_of(theirs), name, detail);
}

void hf_struct_fill(void *theirs, const void *ours, size_t size)
{
    size_t given = size_of(theirs), head = sizeof(size_t);
    size_t known = given < size ? given : size;
    memcpy((char *)theirs + head, (const char *)ours + head, known - head);
    if (given > known)
        memset((char *)theirs + known, 0, given - known);
}
