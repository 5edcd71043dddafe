/* listener.c - see listener.h. */
#include "lock/listener.h"

#include <string.h>

#include "base/base.h"
#include "base/clock.h"

enum {
    /* One wait. If the connection has died unseen, the news only arrives with a renewal;
     * the kernel detects the dead connection. */
    LISTEN_MS = 600000,
    REST_MS = 1000, /* after a refusal; meanwhile the renewals tell */
    UNBLOCK_FIRST_MS = 2,
    UNBLOCK_LAST_MS = 512
};

static bool is_heard(const hf_listener *listener, const char *prefix)
{
    for (size_t i = 0; i < listener->n_heard; i++)
        if (strcmp(listener->heard[i], prefix) == 0)
            return true;
    return false;
}

bool hf_listener_hears(const hf_listener *listener, const char *prefix)
{
    return listener->n_heard == HF_HEARD_MAX || is_heard(listener, prefix);
}

void hf_listener_add(hf_listener *listener, const char *prefix, size_t len)
{
    if (!hf_listener_hears(listener, prefix))
        memcpy(listener->heard[listener->n_heard++], prefix, len + 1);
}

/* ---- listening ---- */

static void on_client(hf_client *client, hf_err err, const char *detail, void *arg)
{
    hf_listener *listener = arg;
    (void)client, (void)err, (void)detail;
    listener->on_turn(listener);
}

static void on_heard(const hf_answer *answer, void *arg)
{
    hf_listener *listener = arg;
    listener->listening = listener->unblocking = false;
    listener->unblock_ns = listener->unblock_ms = 0;
    if (answer->err != HF_OK)
        listener->doubt = true;
    if (answer->err != HF_OK && answer->err != HF_UNSURE && answer->err != HF_READONLY)
        listener->rest_ns = hf_boot_ns() + REST_MS * HF_MS_NS;
    else if (hf_reply_len(answer->reply) == 2)
        listener->on_message(listener, hf_reply_text(hf_reply_at(answer->reply, 1)));
    listener->on_turn(listener);
}

static void listen_now(hf_listener *listener)
{
    const char *prefixes[HF_HEARD_MAX];
    listener->n_heard = 0;
    listener->choose(listener);
    if (listener->n_heard == 0)
        return;
    for (size_t i = 0; i < listener->n_heard; i++)
        prefixes[i] = listener->heard[i];
    if (listener->doubt)
        listener->on_doubt(listener);
    listener->doubt = false;
    listener->listening =
        hf_op_listen(listener->client, prefixes, listener->n_heard, listener->inbox,
                     hf_redis_wait_ms(listener->other, listener->client, LISTEN_MS),
                     on_heard, listener) == HF_OK;
}

/* ---- ending a wait ---- */

static void pause_before_unblock(hf_listener *listener)
{
    uint32_t ms = listener->unblock_ms == 0 ? UNBLOCK_FIRST_MS : 2 * listener->unblock_ms;
    listener->unblock_ms = ms < UNBLOCK_LAST_MS ? ms : UNBLOCK_LAST_MS;
    listener->unblock_ns = hf_boot_ns() + listener->unblock_ms * HF_MS_NS;
    listener->unblocking = false;
}

/* The wait itself answers when it was ended. Or it has not come yet, on its own
 * connection. An answer that is late, after the next wait has begun, costs at most one
 * more request. */
static void on_unblocked(const hf_answer *answer, void *arg)
{
    hf_listener *listener = arg;
    if (!listener->listening || !listener->unblocking ||
        (answer->err == HF_OK && hf_reply_int(answer->reply) != 0))
        return;
    if (answer->err == HF_AUTH) { /* never again: the next waits are short */
        hf_redis_unblock_refused(listener->client);
        hf_client_reset(listener->client); /* this one is not */
    }
    pause_before_unblock(listener);
    listener->on_turn(listener);
}

static void unblock(hf_listener *listener, hf_client *other)
{
    if (hf_boot_ns() < listener->unblock_ns)
        return;
    listener->unblocking = true;
    if (hf_redis_unblock(other, listener->client, on_unblocked, listener) != HF_OK)
        pause_before_unblock(listener);
}

/* ---- from outside ---- */

void hf_listener_listen(hf_listener *listener, hf_client *other)
{
    listener->other = other;
    if (hf_boot_ns() >= listener->rest_ns)
        listener->rest_ns = 0;
    if (listener->client == NULL) {
        listener->n_heard = 0;
        listener->choose(listener);
        if (listener->n_heard == 0)
            return; /* not yet */
        const hf_client_opts opts = {.loop = listener->loop,
                                     .redis = listener->redis,
                                     .blocks = true,
                                     .on_event = on_client,
                                     .arg = listener};
        /* Without it the renewals still tell. */
        if (hf_client_open(&listener->client, &opts, NULL) != HF_OK)
            listener->client = NULL;
        return;
    }
    if (listener->listening) {
        if (!listener->unblocking && listener->is_deaf(listener))
            unblock(listener, other);
    } else if (hf_client_ready(listener->client) && listener->rest_ns == 0) {
        listen_now(listener);
    }
}

uint64_t hf_listener_due_ns(hf_listener *listener)
{
    if (!listener->listening)
        return listener->rest_ns != 0 ? listener->rest_ns : UINT64_MAX;
    bool again =
        !listener->unblocking && listener->unblock_ns != 0 && listener->is_deaf(listener);
    return again ? listener->unblock_ns : UINT64_MAX;
}
