/* tls_opts.c - base/tls_opts.h. */
#include "base/tls_opts.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

hf_tls_opts *hf_tls_opts_copy(const hf_tls_opts *from)
{
    hf_tls_opts known = {HF_TLS_OPTS_INIT};
    memcpy(&known, from, from->size < sizeof known ? from->size : sizeof known);
    known.size = sizeof known;
    const char **texts[] = {&known.ca, &known.cert, &known.key, &known.server_name};
    size_t room = sizeof known;
    for (size_t i = 0; i < HF_COUNT(texts); i++)
        room += *texts[i] == NULL ? 0 : strlen(*texts[i]) + 1;
    hf_tls_opts *copy = malloc(room);
    if (copy == NULL)
        return NULL;
    char *at = (char *)(copy + 1);
    for (size_t i = 0; i < HF_COUNT(texts); i++) {
        if (*texts[i] == NULL)
            continue;
        size_t len = strlen(*texts[i]) + 1;
        *texts[i] = memcpy(at, *texts[i], len);
        at += len;
    }
    *copy = known;
    return copy;
}
