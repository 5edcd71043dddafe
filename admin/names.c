/* names.c - see names.h. */
#include "admin/names.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES_MAX = 16 << 20 };

void hf_names_init(hf_names *names)
{
    names->n = 0;
    hf_buf_init(&names->text, BYTES_MAX);
}

void hf_names_add(hf_names *names, const char *name)
{
    hf_buf_add(&names->text, name, strlen(name) + 1);
    names->n++;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static hf_err pack(const hf_names *names, char ***out, size_t *n)
{
    size_t len = names->text.len;
    char **at = malloc(names->n * sizeof *at + len + 1);
    if (at == NULL)
        return HF_NOMEM;
    char *text = (char *)(at + names->n);
    if (len > 0)
        memcpy(text, names->text.data, len);
    for (size_t i = 0; i < names->n; i++, text += strlen(text) + 1)
        at[i] = text;
    qsort(at, names->n, sizeof *at, by_name);
    *n = 0;
    for (size_t i = 0; i < names->n; i++) {
        if (*n == 0 || strcmp(at[*n - 1], at[i]) != 0)
            at[(*n)++] = at[i];
    }
    *out = at;
    return HF_OK;
}

hf_err hf_names_take(hf_names *names, char ***out, size_t *n)
{
    hf_err err = hf_buf_err(&names->text);
    if (err == HF_OK)
        err = pack(names, out, n);
    hf_names_done(names);
    return err;
}

void hf_names_done(hf_names *names)
{
    hf_buf_done(&names->text);
}
