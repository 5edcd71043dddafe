/* queues.c - queues as a whole: their names, figures and limits, and pause. */
#include "holdfast/admin.h"

#include <string.h>

#include "admin/ask.h"
#include "admin/names.h"
#include "admin/order.h"
#include "base/base.h"
#include "base/id.h"
#include "base/structs.h"
#include "queue/keys.h"
#include "queue/send.h"
#include "queue_scripts.h"

/* The answer of a script that returns only its status. */
static hf_err read_status(const hf_answer *answer, void *out)
{
    int64_t now_ms;
    (void)out;
    return hf_script_status(answer, 2, &now_ms);
}

const char *hf_enqueue_script(size_t *len, const char **sha1)
{
    if (len != NULL)
        *len = hf_lua_queue_enqueue.len;
    if (sha1 != NULL)
        *sha1 = hf_lua_queue_enqueue.sha1;
    return (const char *)hf_lua_queue_enqueue.text;
}

/* ---- names ---- */

static hf_err read_names(const hf_answer *answer, void *out)
{
    if (!hf_reply_is_array(answer->reply))
        return HF_PROTO;
    for (size_t i = 0; i < hf_reply_len(answer->reply); i++) {
        const hf_reply *name = hf_reply_at(answer->reply, i);
        hf_bytes bytes = hf_reply_bytes(name);
        if (hf_name_ok_n(bytes.ptr, bytes.len)) /* else no call could use it */
            hf_names_add(out, hf_reply_text(name));
    }
    return HF_OK;
}

hf_err hf_admin_queues(hf_admin *admin, char ***out, size_t *n,
                       char detail[HF_DETAIL_SIZE])
{
    hf_args args;
    char key[HF_KEY_SIZE];
    hf_names names;
    hf_admin_begin(admin, detail);
    hf_key_queues(key, admin->ns);
    if (!hf_args_init(&args, 2, 0))
        return hf_admin_no_memory(admin);
    hf_args_text(&args, "SMEMBERS");
    hf_args_text(&args, key);
    hf_names_init(&names);
    const hf_ask ask = {.args = &args, .read = read_names, .out = &names};
    hf_err err = hf_admin_ask(admin, &ask, hf_admin_until(admin));
    hf_args_done(&args);
    if (err != HF_OK) {
        hf_names_done(&names);
        return err;
    }
    err = hf_names_take(&names, out, n);
    return err == HF_OK ? err : hf_admin_fail(admin, err, "%s", hf_err_text(err));
}

/* ---- figures ---- */

static hf_err read_stats(const hf_answer *answer, void *out)
{
    hf_queue_stats *s = out;
    int64_t paused = 0;
    int64_t *const fields[] = {
        &paused,         &s->ready,       &s->delayed,    &s->running,
        &s->dead,        &s->enqueued,    &s->done,       &s->failed,
        &s->lost,        &s->unsure,      &s->crashed,    &s->oldest_ready_ms,
        &s->next_due_ms, &s->max_running, &s->rate_limit, &s->rate_per_ms,
        &s->workers,     &s->cancelled,   &s->deleted,
    };
    hf_err err = hf_script_status(answer, 2 + HF_COUNT(fields), &s->now_ms);
    if (err != HF_OK)
        return err;
    for (size_t i = 0; i < HF_COUNT(fields); i++)
        *fields[i] = hf_reply_int(hf_reply_at(answer->reply, 2 + i));
    s->paused = paused != 0;
    return HF_OK;
}

hf_err hf_admin_stats(hf_admin *admin, const char *name, hf_queue_stats *theirs,
                      char detail[HF_DETAIL_SIZE])
{
    hf_args args;
    hf_queue queue;
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    hf_admin_begin(admin, detail);
    hf_err err = hf_admin_fits(admin, theirs, "hf_queue_stats");
    if (err == HF_OK)
        err = hf_admin_queue(admin, name, &queue);
    if (err != HF_OK)
        return err;
    if (!hf_args_init(&args, 0, 0))
        return hf_admin_no_memory(admin);
    memcpy(stats.queue, queue.name, sizeof stats.queue);
    const hf_ask ask = {.script = &hf_lua_queue_stats,
                        .queue = &queue,
                        .args = &args,
                        .read = read_stats,
                        .out = &stats};
    err = hf_admin_ask(admin, &ask, hf_admin_until(admin));
    hf_args_done(&args);
    hf_struct_fill(theirs, &stats, sizeof stats);
    return err;
}

/* ---- pause and limits ---- */

static hf_err read_anything(const hf_answer *answer, void *out)
{
    (void)answer;
    (void)out;
    return HF_OK;
}

hf_err hf_admin_register(hf_admin *admin, const hf_queue *queue, uint64_t until_ns)
{
    hf_args args;
    char registry[HF_KEY_SIZE];
    hf_key_registry(registry, queue->ns);
    const hf_bytes key = {registry, strlen(registry)};
    if (!hf_args_init(&args, 1, 0))
        return hf_admin_no_memory(admin);
    hf_args_text(&args, queue->name);
    const hf_ask ask = {.script = &hf_lua_queue_register,
                        .keys = &key,
                        .n_keys = 1,
                        .args = &args,
                        .read = read_anything};
    hf_err err = hf_admin_ask(admin, &ask, until_ns);
    hf_args_done(&args);
    return err;
}

/* A queue with a setting must be listed even if it was never used. A Redis that is full
 * refuses this, even of a name that is there: then `doctor --fix` registers the queue. */
static hf_err make_known(hf_admin *admin, const hf_queue *queue, uint64_t until_ns)
{
    hf_err err = hf_admin_register(admin, queue, until_ns);
    return err == HF_OOM ? HF_OK : err;
}

hf_err hf_admin_pause(hf_admin *admin, const char *name, bool paused,
                      char detail[HF_DETAIL_SIZE])
{
    hf_queue queue;
    hf_order order = {.admin = admin, .queue = &queue, .until_ns = hf_admin_until(admin)};
    hf_admin_begin(admin, detail);
    hf_err err = hf_admin_queue(admin, name, &queue);
    if (err == HF_OK && paused)
        err = make_known(admin, &queue, order.until_ns);
    if (err == HF_OK)
        err = hf_order_begin(&order, 2, 1);
    if (err != HF_OK)
        return err;
    hf_args_int(&order.args, order.time.not_after);
    hf_args_flag(&order.args, paused);
    const hf_ask ask = {
        .script = &hf_lua_queue_pause, .queue = &queue, .read = read_status};
    return hf_order_send(&order, &ask);
}

static bool limit_ok(int64_t value)
{
    return value >= -1 && value <= UINT32_MAX;
}

static void add_limit(hf_args *args, int64_t value)
{
    if (value < 0)
        hf_args_text(args, "");
    else
        hf_args_int(args, value);
}

hf_err hf_admin_limit(hf_admin *admin, const char *name, int64_t max_running,
                      int64_t rate_limit, int64_t rate_per_ms,
                      char detail[HF_DETAIL_SIZE])
{
    hf_queue queue;
    hf_order order = {.admin = admin, .queue = &queue, .until_ns = hf_admin_until(admin)};
    hf_admin_begin(admin, detail);
    hf_err err = hf_admin_queue(admin, name, &queue);
    if (err != HF_OK)
        return err;
    if (!limit_ok(max_running) || !limit_ok(rate_limit) || !limit_ok(rate_per_ms))
        return hf_admin_fail(admin, HF_INVALID, "expected limits from 0 to %u",
                             UINT32_MAX);
    if ((rate_limit > 0) != (rate_per_ms > 0) || (rate_limit < 0) != (rate_per_ms < 0))
        return hf_admin_fail(admin, HF_INVALID,
                             "expected a rate's limit together with its time");
    if (max_running > 0 || rate_limit > 0)
        err = make_known(admin, &queue, order.until_ns);
    if (err == HF_OK)
        err = hf_order_begin(&order, 5, 4);
    if (err != HF_OK)
        return err;
    hf_args_int(&order.args, order.time.not_after);
    add_limit(&order.args, max_running);
    add_limit(&order.args, rate_limit);
    add_limit(&order.args, rate_per_ms);
    hf_args_text(&order.args, ""); /* an order, not what a file says */
    const hf_ask ask = {
        .script = &hf_lua_queue_limits, .queue = &queue, .read = read_status};
    return hf_order_send(&order, &ask);
}
