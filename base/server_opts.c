/* server_opts.c - see server_opts.h. */
#include "base/server_opts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/id.h"
#include "base/structs.h"
#include "base/tls_opts.h"

enum { CONNECT_MS = 5000, REQUEST_MS = 1000, TIMEOUT_MAX_MS = 600000 };

hf_err hf_server_opts_fill(hf_server_opts *opts, char detail[HF_DETAIL_SIZE])
{
    char unused[HF_DETAIL_SIZE];
    char *why = detail != NULL ? detail : unused;
    if (opts->ns == NULL)
        opts->ns = "hf";
    if (opts->connect_timeout_ms == 0)
        opts->connect_timeout_ms = CONNECT_MS;
    if (opts->request_timeout_ms == 0)
        opts->request_timeout_ms = REQUEST_MS;
    hf_tls_opts tls;
    hf_err err = opts->tls == NULL
                     ? HF_OK
                     : hf_struct_in(&tls, sizeof tls, opts->tls, "hf_tls_opts", detail);
    if (err != HF_OK)
        return err;
    if (!hf_name_ok(opts->ns)) {
        (void)snprintf(why, HF_DETAIL_SIZE,
                       "expected a namespace of 1 to 128 characters of A-Z a-z 0-9 . _ : "
                       "-, found '%.64s'",
                       opts->ns);
        return HF_INVALID;
    }
    if (opts->connect_timeout_ms > TIMEOUT_MAX_MS ||
        opts->request_timeout_ms > TIMEOUT_MAX_MS) {
        (void)snprintf(why, HF_DETAIL_SIZE, "expected time-outs of at most %d ms",
                       TIMEOUT_MAX_MS);
        return HF_INVALID;
    }
    return HF_OK;
}

hf_err hf_server_opts_in(hf_server_opts *ours, const hf_server_opts *theirs,
                         char detail[HF_DETAIL_SIZE])
{
    hf_err err = hf_struct_in(ours, sizeof *ours, theirs, "hf_server_opts", detail);
    return err == HF_OK ? hf_server_opts_fill(ours, detail) : err;
}

static bool own(const char **text)
{
    const char *theirs = *text;
    *text = theirs == NULL ? NULL : strdup(theirs);
    return theirs == NULL || *text != NULL;
}

hf_err hf_server_opts_own(hf_server_opts *opts)
{
    const char **const texts[] = {&opts->url, &opts->password_file, &opts->ns};
    bool owned = true;
    for (size_t i = 0; i < HF_COUNT(texts); i++)
        owned = own(texts[i]) && owned;
    if (opts->tls != NULL) {
        opts->tls = hf_tls_opts_copy(opts->tls);
        owned = opts->tls != NULL && owned;
    }
    if (owned)
        return HF_OK;
    hf_server_opts_free(opts);
    return HF_NOMEM;
}

void hf_server_opts_free(hf_server_opts *opts)
{
    free((void *)opts->url);
    free((void *)opts->password_file);
    free((void *)opts->ns);
    free((void *)opts->tls);
    opts->url = opts->password_file = opts->ns = NULL;
    opts->tls = NULL;
}
