/* detail.c - see detail.h. */
#include "base/detail.h"

#include <stdio.h>
#include <string.h>

#include "base/mask.h"

hf_err hf_say_args(char detail[HF_DETAIL_SIZE], hf_err err, const char *format,
                   va_list args)
{
    if (detail == NULL)
        return err;
    (void)vsnprintf(detail, HF_DETAIL_SIZE, format, args);
    hf_mask(detail);
    return err;
}

hf_err hf_say(char detail[HF_DETAIL_SIZE], hf_err err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    err = hf_say_args(detail, err, format, args);
    va_end(args);
    return err;
}

hf_err hf_say_err(char detail[HF_DETAIL_SIZE], hf_err err)
{
    return hf_say(detail, err, "%s", hf_err_text(err));
}

hf_err hf_say_expected(char detail[HF_DETAIL_SIZE], const char *what, const char *found)
{
    return hf_say(detail, HF_INVALID, "expected %s, found %s", what,
                  found == NULL ? "none" : HF_FOUND(found));
}

const char *hf_say_whole(hf_err err, const char *detail, char *out, size_t size)
{
    const char *text = hf_err_text(err);
    if (detail == NULL || *detail == '\0' || strcmp(detail, text) == 0)
        (void)snprintf(out, size, "%s", text);
    else if (err == HF_CONFIG || err == HF_INVALID || err == HF_TOOBIG ||
             err == HF_TIMEOUT)
        (void)snprintf(out, size, "%s", detail);
    else
        (void)snprintf(out, size, "%s: %s", text, detail);
    return out;
}
