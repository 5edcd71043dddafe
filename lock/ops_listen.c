/* ops_listen.c - how a client hears what became of its locks. */
#include <stdio.h>

#include "base/base.h"
#include "lock/ops.h"
#include "redis/send.h"

enum {
    LISTEN_MARGIN_MS = 1000, /* for the answer to a wait that ended */
    LISTEN_MAX = 256,        /* tags at a time */
    INBOX_SIZE = HF_TAG_PREFIX_SIZE + HF_LOCK_CLIENT_SIZE + 16
};

hf_err hf_op_listen(hf_client *client, const char *const *prefixes, size_t n,
                    const char *inbox, uint32_t wait_ms, hf_answer_cb cb, void *arg)
{
    hf_args a;
    char inboxes[LISTEN_MAX][INBOX_SIZE], seconds[24];
    HF_ASSERT(n >= 1);
    n = n < LISTEN_MAX ? n : LISTEN_MAX; /* the others' renewals will tell them */
    if (!hf_args_init(&a, n + 2, 0))
        return HF_NOMEM;
    (void)snprintf(seconds, sizeof seconds, "%u.%03u", wait_ms / 1000u, wait_ms % 1000u);
    hf_args_text(&a, "BLPOP");
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(inboxes[i], INBOX_SIZE, "%sin:%s", prefixes[i], inbox);
        hf_args_text(&a, inboxes[i]);
    }
    hf_args_text(&a, seconds);
    return hf_command_send(client, &a, wait_ms + LISTEN_MARGIN_MS, cb, arg);
}
