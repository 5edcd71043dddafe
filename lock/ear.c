/* ear.c - see ear.h. */
#include "lock/ear.h"

#include <string.h>

#include "base/base.h"
#include "base/clock.h"

enum {
    /* One wait. A connection that has died unseen costs time, until a renewal tells of
     * the news, and the kernel looks after it. */
    LISTEN_MS = 600000,
    REST_MS = 1000, /* after a refusal; meanwhile the renewals tell */
    UNBLOCK_FIRST_MS = 2,
    UNBLOCK_LAST_MS = 512
};

static bool is_heard(const hf_ear *ear, const char *prefix)
{
    for (size_t i = 0; i < ear->n_heard; i++)
        if (strcmp(ear->heard[i], prefix) == 0)
            return true;
    return false;
}

bool hf_ear_hears(const hf_ear *ear, const char *prefix)
{
    return ear->n_heard == HF_HEARD_MAX || is_heard(ear, prefix);
}

void hf_ear_add(hf_ear *ear, const char *prefix, size_t len)
{
    if (!hf_ear_hears(ear, prefix))
        memcpy(ear->heard[ear->n_heard++], prefix, len + 1);
}

/* ---- listening ---- */

static void on_client(hf_client *client, hf_err err, const char *detail, void *arg)
{
    hf_ear *ear = arg;
    (void)err;
    (void)detail;
    hf_client_follow(ear->other, client);
    ear->on_turn(ear);
}

static void on_heard(const hf_answer *answer, void *arg)
{
    hf_ear *ear = arg;
    ear->listening = ear->unblocking = false;
    ear->unblock_ns = ear->unblock_ms = 0;
    if (answer->err != HF_OK)
        ear->doubt = true;
    if (answer->err != HF_OK && answer->err != HF_UNSURE && answer->err != HF_READONLY)
        ear->rest_ns = hf_boot_ns() + REST_MS * HF_MS_NS;
    else if (hf_reply_len(answer->reply) == 2)
        ear->on_message(ear, hf_reply_text(hf_reply_at(answer->reply, 1)));
    ear->on_turn(ear);
}

static void listen_now(hf_ear *ear)
{
    const char *prefixes[HF_HEARD_MAX];
    ear->n_heard = 0;
    ear->choose(ear);
    if (ear->n_heard == 0)
        return;
    for (size_t i = 0; i < ear->n_heard; i++)
        prefixes[i] = ear->heard[i];
    if (ear->doubt)
        ear->on_doubt(ear);
    ear->doubt = false;
    ear->listening = hf_op_listen(ear->client, prefixes, ear->n_heard, ear->inbox,
                                  LISTEN_MS, on_heard, ear) == HF_OK;
}

/* ---- ending a wait ---- */

static void pause_before_unblock(hf_ear *ear)
{
    uint32_t ms = ear->unblock_ms == 0 ? UNBLOCK_FIRST_MS : 2 * ear->unblock_ms;
    ear->unblock_ms = ms < UNBLOCK_LAST_MS ? ms : UNBLOCK_LAST_MS;
    ear->unblock_ns = hf_boot_ns() + ear->unblock_ms * HF_MS_NS;
    ear->unblocking = false;
}

/* The wait itself answers when it was ended. Or it has not come yet, on its own
 * connection. An answer that is late, after the next wait has begun, costs at most one
 * more request. */
static void on_unblocked(const hf_answer *answer, void *arg)
{
    hf_ear *ear = arg;
    if (!ear->listening || !ear->unblocking ||
        (answer->err == HF_OK && hf_reply_int(answer->reply) != 0))
        return;
    pause_before_unblock(ear);
    ear->on_turn(ear);
}

static void unblock(hf_ear *ear, hf_client *other)
{
    if (hf_boot_ns() < ear->unblock_ns)
        return;
    ear->unblocking = true;
    if (hf_redis_unblock(other, ear->client, on_unblocked, ear) != HF_OK)
        pause_before_unblock(ear);
}

/* ---- from outside ---- */

void hf_ear_listen(hf_ear *ear, hf_client *other)
{
    ear->other = other;
    if (hf_boot_ns() >= ear->rest_ns)
        ear->rest_ns = 0;
    if (ear->client == NULL) {
        hf_client_opts opts = ear->opts;
        opts.on_event = on_client;
        opts.arg = ear;
        /* Without it the renewals still tell. */
        if (hf_client_open(&ear->client, &opts, NULL) != HF_OK)
            ear->client = NULL;
        return;
    }
    if (ear->listening) {
        if (!ear->unblocking && ear->is_deaf(ear))
            unblock(ear, other);
    } else if (hf_client_ready(ear->client) && ear->rest_ns == 0) {
        listen_now(ear);
    }
}

void hf_ear_follow(hf_ear *ear, hf_client *other)
{
    if (ear->client != NULL && hf_client_is_behind(ear->client, other))
        hf_client_reset(ear->client); /* it may wait there for minutes */
}

uint64_t hf_ear_due_ns(hf_ear *ear)
{
    if (!ear->listening)
        return ear->rest_ns != 0 ? ear->rest_ns : UINT64_MAX;
    bool again = !ear->unblocking && ear->unblock_ns != 0 && ear->is_deaf(ear);
    return again ? ear->unblock_ns : UINT64_MAX;
}
