/* callback.c - see callback.h. */
#include "lock/callback.h"

#include <stdio.h>

static _Thread_local hf_callback *innermost;

void hf_callback_begin(hf_callback *callback, const void *of)
{
    *callback = (hf_callback){.of = of, .outer = innermost};
    innermost = callback;
}

void hf_callback_end(const hf_callback *callback)
{
    innermost = callback->outer;
}

bool hf_callback_inside(const void *of)
{
    const hf_callback *c = innermost;
    while (c != NULL && c->of != of)
        c = c->outer;
    return c != NULL;
}

hf_err hf_callback_may_wait(const void *of, bool threaded, char detail[HF_DETAIL_SIZE])
{
    const char *why = "not inside a callback";
    if (!threaded)
        why = "it needs a client with a thread of its own";
    else if (!hf_callback_inside(of))
        return HF_OK;
    if (detail != NULL)
        (void)snprintf(detail, HF_DETAIL_SIZE, "this call waits: %s", why);
    return HF_INVALID;
}
