/* ops_wake.c - how a worker waits for work and says that it is alive. */
#include "queue/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "queue/keys.h"
#include "queue/send.h"
#include "queue_scripts.h"

enum {
    WAIT_MARGIN_MS = 1000,       /* for the answer to a wait that ended */
    FORGET_WORKER_MS = 86400000, /* since it was last alive */
    CHECK_ARGS = 3,
    LIMITS_ARGS = 5
};

/* ---- waiting ---- */

hf_err hf_op_wait(hf_client *client, const hf_queue *const *queues, size_t n,
                  uint32_t wait_ms, hf_answer_cb cb, void *arg)
{
    hf_args a;
    char keys[HF_QUEUES_MAX][HF_KEY_SIZE];
    char seconds[24];
    HF_ASSERT(n >= 1 && n <= HF_QUEUES_MAX);
    if (!hf_args_init(&a, n + 2, 0))
        return HF_NOMEM;
    if (wait_ms == 0) /* Redis takes 0 for "for ever" */
        wait_ms = 1;
    (void)snprintf(seconds, sizeof seconds, "%u.%03u", wait_ms / 1000u, wait_ms % 1000u);
    hf_args_text(&a, "BZPOPMIN");
    for (size_t i = 0; i < n; i++) {
        hf_key_wake(keys[i], queues[i]);
        hf_args_text(&a, keys[i]);
    }
    hf_args_text(&a, seconds);
    return hf_command_send(client, &a, wait_ms + WAIT_MARGIN_MS, cb, arg);
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

hf_err hf_op_unblock(hf_client *client, const hf_client *blocked, hf_answer_cb cb,
                     void *arg)
{
    hf_args a;
    int64_t id = hf_client_server(blocked)->client_id;
    if (id <= 0)
        return HF_CONN;
    if (!hf_args_init(&a, 3, 1))
        return HF_NOMEM;
    hf_args_text(&a, "CLIENT");
    hf_args_text(&a, "UNBLOCK");
    hf_args_int(&a, id);
    return hf_command_send(client, &a, 0, cb, arg);
}

/* ---- the check, and a file's limits ---- */

hf_err hf_op_check(hf_client *client, const hf_queue *const *queues, size_t n,
                   const char *worker, uint32_t alive_ms, bool give_back, hf_answer_cb cb,
                   void *arg)
{
    hf_args a;
    hf_bytes keys[HF_QUEUES_MAX];
    HF_ASSERT(n >= 1 && n <= HF_QUEUES_MAX);
    for (size_t i = 0; i < n; i++)
        keys[i] = (hf_bytes){queues[i]->prefix, queues[i]->prefix_len};
    if (!hf_args_init(&a, CHECK_ARGS, CHECK_ARGS))
        return HF_NOMEM;
    hf_args_text(&a, worker);
    hf_args_int(&a, alive_ms);
    hf_args_flag(&a, give_back);
    hf_err err = hf_redis_call(client, &(hf_call){.script = &hf_lua_queue_check,
                                                  .keys = keys,
                                                  .n_keys = n,
                                                  .args = a.at,
                                                  .n_args = a.n,
                                                  .cb = cb,
                                                  .arg = arg});
    hf_args_done(&a);
    return err;
}

hf_err hf_checked_read(const hf_answer *answer, hf_checked *out)
{
    *out = (hf_checked){.now_ms = 0};
    hf_err err = hf_script_status(answer, 3, &out->now_ms);
    if (err == HF_OK)
        out->empty = hf_reply_int(hf_reply_at(answer->reply, 2)) != 0;
    return err;
}

hf_err hf_op_file_limits(hf_client *client, const hf_queue *queue, uint32_t max_running,
                         uint32_t rate_limit, uint32_t rate_per_ms, hf_answer_cb cb,
                         void *arg)
{
    hf_args a;
    char words[3 * HF_DECIMAL_MAX];
    if (!hf_args_init(&a, LIMITS_ARGS, LIMITS_ARGS))
        return HF_NOMEM;
    int len =
        snprintf(words, sizeof words, "%u %u %u", max_running, rate_limit, rate_per_ms);
    hf_args_int(&a, 0); /* writing the same limits late does no harm */
    hf_args_int(&a, max_running);
    hf_args_int(&a, rate_limit);
    hf_args_int(&a, rate_per_ms);
    hf_args_bytes(&a, (hf_bytes){words, (size_t)len});
    return hf_queue_send(client, queue, &hf_lua_queue_limits, &a, 0, cb, arg);
}

/* ---- the heartbeat ---- */

/* Several commands that are answered as one: by the last, with the first fault of any. */
typedef struct joint {
    hf_answer_cb cb;
    void *arg;
    unsigned waiting;
    hf_err err;
    char detail[HF_DETAIL_SIZE];
} joint;

static void joint_fault(joint *j, hf_err err, const char *detail)
{
    if (j->err != HF_OK)
        return;
    j->err = err;
    (void)snprintf(j->detail, sizeof j->detail, "%s", detail);
}

static void on_joint(const hf_answer *answer, void *arg)
{
    joint *j = arg;
    if (answer->err != HF_OK)
        joint_fault(j, answer->err, answer->detail);
    if (--j->waiting != 0)
        return;
    hf_answer all = *answer;
    if (j->err != HF_OK)
        all = (hf_answer){.err = j->err, .detail = j->detail, .sent_ns = answer->sent_ns};
    j->cb(&all, j->arg);
    free(j);
}

static void joint_send(joint *j, hf_client *client, const char *const *words, size_t n)
{
    hf_args a;
    hf_err err = HF_NOMEM;
    if (hf_args_init(&a, n, 0)) {
        for (size_t i = 0; i < n; i++)
            hf_args_text(&a, words[i]);
        err = hf_command_send(client, &a, 0, on_joint, j);
    }
    if (err == HF_OK)
        j->waiting++;
    else
        joint_fault(j, err, hf_err_text(err));
}

static void say_alive(joint *j, hf_client *client, const char *ns, const char *worker,
                      const char *json, int64_t now_ms, uint32_t alive_ms)
{
    char key[HF_KEY_SIZE], registry[HF_KEY_SIZE], ttl[HF_DECIMAL_MAX + 1];
    char until[HF_DECIMAL_MAX + 1], old[HF_DECIMAL_MAX + 1];
    hf_key_worker(key, ns, worker);
    hf_key_workers(registry, ns);
    ttl[hf_decimal(ttl, alive_ms)] = '\0';
    until[hf_decimal(until, now_ms + alive_ms)] = '\0';
    old[hf_decimal(old, now_ms - FORGET_WORKER_MS)] = '\0';
    const char *const set[] = {"SET", key, json, "PX", ttl};
    const char *const add[] = {"ZADD", registry, until, worker};
    const char *const trim[] = {"ZREMRANGEBYSCORE", registry, "-inf", old};
    joint_send(j, client, set, HF_COUNT(set));
    joint_send(j, client, add, HF_COUNT(add));
    joint_send(j, client, trim, HF_COUNT(trim));
}

static void say_gone(joint *j, hf_client *client, const char *ns, const char *worker)
{
    char key[HF_KEY_SIZE], registry[HF_KEY_SIZE];
    hf_key_worker(key, ns, worker);
    hf_key_workers(registry, ns);
    const char *const del[] = {"DEL", key};
    const char *const rem[] = {"ZREM", registry, worker};
    joint_send(j, client, del, HF_COUNT(del));
    joint_send(j, client, rem, HF_COUNT(rem));
}

hf_err hf_op_heartbeat(hf_client *client, const char *ns, const char *worker,
                       const char *json, int64_t now_ms, uint32_t alive_ms,
                       hf_answer_cb cb, void *arg)
{
    joint *j = calloc(1, sizeof *j);
    if (j == NULL)
        return HF_NOMEM;
    j->cb = cb;
    j->arg = arg;
    if (json != NULL)
        say_alive(j, client, ns, worker, json, now_ms, alive_ms);
    else
        say_gone(j, client, ns, worker);
    if (j->waiting != 0)
        return HF_OK;
    hf_err err = j->err;
    free(j);
    return err;
}
