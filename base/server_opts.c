/* server_opts.c - see server_opts.h. */
#include "base/server_opts.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/detail.h"
#include "base/id.h"
#include "base/mask.h"
#include "base/structs.h"
#include "base/tls_opts.h"

enum { CONNECT_MS = 5000, REQUEST_MS = 1000, TIMEOUT_MAX_MS = 600000 };

hf_err hf_server_opts_fill(hf_server_opts *opts, char detail[HF_DETAIL_SIZE])
{
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
    hf_sentinel_opts sentinel;
    if (err == HF_OK && opts->sentinel != NULL)
        err = hf_struct_in(&sentinel, sizeof sentinel, opts->sentinel, "hf_sentinel_opts",
                           detail);
    if (err != HF_OK)
        return err;
    if (!hf_name_ok(opts->ns))
        return hf_say(detail, HF_INVALID,
                      "expected a namespace of 1 to 128 characters of A-Z a-z 0-9 . _ : "
                      "-, found '%s'",
                      HF_FOUND(opts->ns));
    if (opts->connect_timeout_ms > TIMEOUT_MAX_MS ||
        opts->request_timeout_ms > TIMEOUT_MAX_MS)
        return hf_say(detail, HF_INVALID, "expected time-outs of at most %d ms",
                      TIMEOUT_MAX_MS);
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

static void free_sentinel(const hf_sentinel_opts *sentinel)
{
    if (sentinel == NULL)
        return;
    free((void *)sentinel->user);
    free((void *)sentinel->password_file);
    free((void *)sentinel);
}

/* NULL: out of memory. */
static const hf_sentinel_opts *copy_sentinel(const hf_sentinel_opts *from)
{
    hf_sentinel_opts *copy = calloc(1, sizeof *copy);
    char unread[HF_DETAIL_SIZE];
    if (copy == NULL)
        return NULL;
    /* Its size was checked when it was taken. */
    HF_ASSERT(hf_struct_in(copy, sizeof *copy, from, "", unread) == HF_OK);
    bool owned = own(&copy->user);
    if (own(&copy->password_file) && owned)
        return copy;
    free_sentinel(copy);
    return NULL;
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
    if (opts->sentinel != NULL) {
        opts->sentinel = copy_sentinel(opts->sentinel);
        owned = opts->sentinel != NULL && owned;
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
    free_sentinel(opts->sentinel);
    opts->sentinel = NULL;
    opts->url = opts->password_file = opts->ns = NULL;
    opts->tls = NULL;
}
