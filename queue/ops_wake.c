/* ops_wake.c - how a worker waits for work and says that it is alive. */
#include "queue/ops.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "queue/keys.h"
#include "queue/send.h"
#include "queue_scripts.h"

enum {
    WAIT_MARGIN_MS = 1000, /* for the answer to a wait that ended */
    CHECK_ARGS = 6,
    READ_ARGS = 2,
    BEAT_ARGS = 3,
    PRESENT_ARGS = 3,
    LIMITS_ARGS = 8,
    ON_DEAD_ARGS = 2
};

/* ---- waiting ---- */

hf_err hf_op_wait(hf_client *client, const hf_queue *const *queues, size_t n,
                  uint32_t wait_ms, hf_answer_cb cb, void *arg)
{
    hf_args a;
    char keys[HF_SLOTS_MAX][HF_KEY_SIZE];
    char seconds[24];
    HF_ASSERT(n >= 1 && n <= HF_SLOTS_MAX);
    hf_args_init(&a, n + 2, 0);
    if (wait_ms == 0) /* Redis takes 0 for "for ever" */
        wait_ms = 1;
    (void)snprintf(seconds, sizeof seconds, "%u.%03u", wait_ms / 1000u, wait_ms % 1000u);
    hf_args_text(&a, "BZPOPMIN");
    for (size_t i = 0; i < n; i++) {
        hf_key_wake(keys[i], queues[i]);
        hf_args_text(&a, keys[i]);
    }
    hf_args_text(&a, seconds);
    return hf_send_command(client, &a, wait_ms + WAIT_MARGIN_MS, cb, arg);
}

/* Of the queue whose `wake` is popped, the answer says the whole key. */
static bool is_wake_of(hf_bytes key, const hf_queue *queue)
{
    char expected[HF_KEY_SIZE];
    hf_key_wake(expected, queue);
    return strlen(expected) == key.len && memcmp(expected, key.ptr, key.len) == 0;
}

hf_err hf_wait_read(const hf_answer *answer, const hf_queue *const *queues, size_t n,
                    size_t *which, int64_t *at_ms)
{
    if (answer->err != HF_OK)
        return answer->err;
    *which = n;
    *at_ms = 0;
    if (hf_reply_is_nil(answer->reply))
        return HF_OK;
    if (hf_reply_len(answer->reply) != 3)
        return HF_PROTO;
    hf_bytes key = hf_reply_bytes(hf_reply_at(answer->reply, 0));
    for (size_t i = 0; i < n; i++) {
        if (!is_wake_of(key, queues[i]))
            continue;
        *which = i;
        *at_ms = hf_reply_int(hf_reply_at(answer->reply, 2));
        return HF_OK;
    }
    return HF_PROTO;
}

/* ---- the check, a look, and a file's limits ---- */

hf_err hf_op_check(hf_client *client, const hf_queue *const *queues, size_t n,
                   const hf_check_args *args, hf_answer_cb cb, void *arg)
{
    hf_args a;
    hf_bytes keys[HF_SLOTS_MAX];
    HF_ASSERT(n >= 1 && n <= HF_SLOTS_MAX);
    for (size_t i = 0; i < n; i++)
        keys[i] = (hf_bytes){queues[i]->prefix, queues[i]->prefix_len};
    hf_args_init(&a, CHECK_ARGS + n, CHECK_ARGS);
    hf_args_text(&a, args->worker);
    hf_args_int(&a, args->alive_ms);
    hf_args_flag(&a, args->give_back);
    hf_args_int(&a, args->lease_ms);
    hf_args_text(&a, args->asker.machine == NULL ? "" : args->asker.machine);
    hf_args_int(&a, (int64_t)args->asker.boot_ms);
    for (size_t i = 0; i < n; i++)
        hf_args_text(&a, args->shown == NULL ? "" : args->shown[i]);
    return hf_send_script(client, &hf_lua_queue_check, keys, n, &a, 0, cb, arg);
}

/* {clock, number, after} */
static hf_read_queue read_queue(const hf_reply *reply)
{
    return (hf_read_queue){.clock_ms = (uint64_t)hf_reply_int(hf_reply_at(reply, 0)),
                           .number = (uint64_t)hf_reply_int(hf_reply_at(reply, 1)),
                           .after_ms = (uint32_t)hf_reply_int(hf_reply_at(reply, 2))};
}

hf_err hf_checked_read(const hf_answer *answer, hf_checked *out, hf_checked_queue *queues,
                       size_t n)
{
    *out = (hf_checked){.now_ms = 0};
    hf_err err = hf_send_script_status(answer, 8, &out->now_ms);
    if (err != HF_OK)
        return err;
    const hf_reply *divided = hf_reply_at(answer->reply, 3);
    const hf_reply *ticks = hf_reply_at(answer->reply, 5);
    const hf_reply *unknown = hf_reply_at(answer->reply, 6);
    const hf_reply *readings = hf_reply_at(answer->reply, 7);
    if (hf_reply_len(divided) != n || hf_reply_len(readings) != n)
        return HF_PROTO;
    out->empty = hf_reply_int(hf_reply_at(answer->reply, 2)) != 0;
    out->shortest_lease_ms = (uint32_t)hf_reply_int(hf_reply_at(answer->reply, 4));
    for (size_t i = 0; i < n; i++)
        queues[i] =
            (hf_checked_queue){.divided = hf_reply_int(hf_reply_at(divided, i)) != 0,
                               .ticks = hf_reply_int(hf_reply_at(ticks, i)) != 0,
                               .unknown = hf_reply_int(hf_reply_at(unknown, i)) != 0,
                               .read = read_queue(hf_reply_at(readings, i))};
    return HF_OK;
}

hf_err hf_op_read(hf_client *client, const hf_queue *const *queues, size_t n,
                  const hf_asker *asker, const char *const *shown, hf_answer_cb cb,
                  void *arg)
{
    hf_args a;
    hf_bytes keys[HF_SLOTS_MAX];
    HF_ASSERT(n >= 1 && n <= HF_SLOTS_MAX);
    for (size_t i = 0; i < n; i++)
        keys[i] = (hf_bytes){queues[i]->prefix, queues[i]->prefix_len};
    hf_args_init(&a, READ_ARGS + n, READ_ARGS);
    hf_args_text(&a, asker->machine);
    hf_args_int(&a, (int64_t)asker->boot_ms);
    for (size_t i = 0; i < n; i++)
        hf_args_text(&a, shown[i]);
    return hf_send_script(client, &hf_lua_queue_read, keys, n, &a, 0, cb, arg);
}

hf_err hf_read_read(const hf_answer *answer, int64_t *now_ms, hf_read_queue *queues,
                    size_t n)
{
    hf_err err = hf_send_script_status(answer, 2 + n, now_ms);
    for (size_t i = 0; err == HF_OK && i < n; i++)
        queues[i] = read_queue(hf_reply_at(answer->reply, 2 + i));
    return err;
}

hf_err hf_op_peek(hf_client *client, const hf_queue *const *queues, size_t n,
                  hf_answer_cb cb, void *arg)
{
    hf_bytes keys[HF_SLOTS_MAX];
    HF_ASSERT(n >= 1 && n <= HF_SLOTS_MAX);
    for (size_t i = 0; i < n; i++)
        keys[i] = (hf_bytes){queues[i]->prefix, queues[i]->prefix_len};
    return hf_request_send(client, &(hf_call){.script = &hf_lua_queue_peek,
                                              .keys = keys,
                                              .n_keys = n,
                                              .cb = cb,
                                              .arg = arg});
}

hf_err hf_peeked_read(const hf_answer *answer, bool *ready, size_t n)
{
    int64_t now_ms;
    hf_err err = hf_send_script_status(answer, 3, &now_ms);
    if (err != HF_OK)
        return err;
    const hf_reply *flags = hf_reply_at(answer->reply, 2);
    if (hf_reply_len(flags) != n)
        return HF_PROTO;
    for (size_t i = 0; i < n; i++)
        ready[i] = hf_reply_int(hf_reply_at(flags, i)) == 1;
    return HF_OK;
}

hf_err hf_op_file_limits(hf_client *client, const hf_queue *queue, uint32_t max_running,
                         uint32_t rate_limit, int64_t rate_per_ms, hf_answer_cb cb,
                         void *arg)
{
    hf_args a;
    char words[3 * HF_DECIMAL_MAX];
    hf_args_init(&a, LIMITS_ARGS, LIMITS_ARGS);
    int len = snprintf(words, sizeof words, "%u %u %lld", max_running, rate_limit,
                       (long long)rate_per_ms);
    hf_args_int(&a, 0); /* writing the same limits late does no harm */
    hf_args_bytes(&a, (hf_bytes){words, (size_t)len});
    hf_args_text(&a, "max_running");
    hf_args_int(&a, max_running);
    hf_args_text(&a, "rate_limit");
    hf_args_int(&a, rate_limit);
    hf_args_text(&a, "rate_per");
    hf_args_int(&a, rate_per_ms);
    return hf_queue_send(client, queue, &hf_lua_queue_limits, &a, 0, cb, arg);
}

hf_err hf_op_file_on_dead(hf_client *client, const hf_queue *queue, const char *types,
                          hf_answer_cb cb, void *arg)
{
    hf_args a;
    hf_args_init(&a, ON_DEAD_ARGS, ON_DEAD_ARGS);
    hf_args_int(&a, 0); /* as the limits */
    hf_args_text(&a, types);
    return hf_queue_send(client, queue, &hf_lua_queue_on_dead, &a, 0, cb, arg);
}

/* ---- that a worker is there ---- */

hf_err hf_op_present(hf_client *client, const hf_queue *queue, const char *worker,
                     uint32_t alive_ms, const char *said, hf_answer_cb cb, void *arg)
{
    hf_args a;
    hf_args_init(&a, PRESENT_ARGS, PRESENT_ARGS);
    hf_args_text(&a, worker);
    hf_args_int(&a, said == NULL ? 0 : alive_ms);
    hf_args_text(&a, said == NULL ? "" : said);
    return hf_queue_send(client, queue, &hf_lua_queue_present, &a, 0, cb, arg);
}

hf_bytes hf_present_born(const hf_answer *answer)
{
    return answer->err == HF_OK ? hf_reply_bytes(hf_reply_at(answer->reply, 2))
                                : (hf_bytes){"", 0};
}

hf_err hf_op_heartbeat(hf_client *client, const char *ns, const char *worker,
                       const char *json, uint32_t alive_ms, hf_answer_cb cb, void *arg)
{
    hf_args a;
    hf_args_init(&a, BEAT_ARGS, BEAT_ARGS);
    hf_args_text(&a, worker);
    hf_args_int(&a, json == NULL ? 0 : alive_ms);
    hf_args_text(&a, json == NULL ? "" : json);
    return hf_registry_send(client, ns, &hf_lua_queue_beat, &a, cb, arg);
}

hf_err hf_heartbeat_read(const hf_answer *answer, bool *watched)
{
    int64_t now_ms;
    hf_err err = hf_send_script_status(answer, 3, &now_ms);
    *watched = err == HF_OK && hf_reply_int(hf_reply_at(answer->reply, 2)) == 1;
    return err;
}
