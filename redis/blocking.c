/* blocking.c - redis/blocking.h. */
#include "redis/blocking.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/detail.h"
#include "redis/plain.h"

enum { PAUSE_FIRST_MS = 2, PAUSE_LAST_MS = 512 };

static void free_if_done(hf_blocking *b)
{
    if (b->client == NULL && b->asked == 0)
        free(b);
}

static void on_closed(void *arg)
{
    hf_blocking *b = arg;
    b->client = NULL;
    if (b->on_closed != NULL)
        b->on_closed(b->arg);
    free_if_done(b);
}

void hf_blocking_close(hf_blocking *b, void (*cb)(void *arg))
{
    if (b == NULL)
        return;
    b->closes = true;
    b->on_closed = cb;
    hf_client_close(b->client, on_closed, b);
}

hf_err hf_blocking_open(hf_blocking **out, uv_loop_t *loop, hf_server *redis,
                        hf_client_event_cb on_event, void (*on_pause)(void *arg),
                        void *arg, char detail[HF_DETAIL_SIZE])
{
    const hf_client_opts opts = {
        .loop = loop, .redis = redis, .blocks = true, .on_event = on_event, .arg = arg};
    hf_blocking *b = calloc(1, sizeof *b);
    if (b == NULL)
        return hf_say_err(detail, HF_NOMEM);
    *b = (hf_blocking){.redis = redis, .on_pause = on_pause, .arg = arg};
    hf_err err = hf_client_open(&b->client, &opts, detail);
    if (err == HF_OK)
        *out = b;
    else
        free(b);
    return err;
}

uint32_t hf_blocking_ms(const hf_blocking *b, const hf_client *other, uint32_t ms)
{
    return other == NULL ? ms : hf_plain_wait_ms(other, b->client, ms);
}

void hf_blocking_answered(hf_blocking *b)
{
    b->ending = false;
    b->pause_ms = 0;
    b->pause_until_ns = 0;
}

static void pause_a_while(hf_blocking *b)
{
    uint32_t ms = b->pause_ms == 0 ? PAUSE_FIRST_MS : 2 * b->pause_ms;
    b->pause_ms = ms < PAUSE_LAST_MS ? ms : PAUSE_LAST_MS;
    b->pause_until_ns = hf_boot_ns() + b->pause_ms * HF_MS_NS;
    b->ending = false;
}

/* The wait itself answers when it was ended. Or it has not come yet, on its own
 * connection. An answer that is late, after the next wait has begun, costs at most one
 * more request. */
static void on_ended(const hf_answer *answer, void *arg)
{
    hf_blocking *b = arg;
    b->asked--;
    if (b->closes) {
        free_if_done(b);
        return;
    }
    if (!b->ending || (answer->err == HF_OK && hf_reply_int(answer->reply) != 0))
        return;
    if (answer->err == HF_AUTH) { /* never again: the next waits are short */
        atomic_fetch_or(&b->redis->lacks, HF_LACKS_UNBLOCK);
        hf_client_reset(b->client); /* this one is not */
    }
    pause_a_while(b);
    b->on_pause(b->arg);
}

bool hf_blocking_end(hf_blocking *b, hf_client *other)
{
    if (b->ending || hf_boot_ns() < b->pause_until_ns)
        return true;
    b->ending = other != NULL && hf_plain_unblock(other, b->client, on_ended, b) == HF_OK;
    if (b->ending)
        b->asked++;
    else
        pause_a_while(b);
    return b->ending;
}
