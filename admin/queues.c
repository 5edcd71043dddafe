/* queues.c - queues as a whole: their figures and limits, and pause. */
#include "holdfast/admin.h"

#include <inttypes.h>
#include <string.h>

#include "admin/parts.h"
#include "admin/registry.h"
#include "admin/remove.h"
#include "base/base.h"
#include "base/id.h"
#include "base/structs.h"
#include "queue/keys.h"
#include "queue/send.h"
#include "queue_scripts.h"

static const char *tell(const hf_script *script, size_t *len, const char **sha1)
{
    if (len != NULL)
        *len = script->len;
    if (sha1 != NULL)
        *sha1 = script->sha1;
    return (const char *)script->text;
}

const char *hf_register_script(size_t *len, const char **sha1)
{
    return tell(&hf_lua_queue_register, len, sha1);
}

const char *hf_enqueue_script(size_t *len, const char **sha1)
{
    return tell(&hf_lua_queue_enqueue, len, sha1);
}

const char *hf_enqueue_with_script(size_t *len, const char **sha1)
{
    return tell(&hf_lua_queue_enqueue_with, len, sha1);
}

/* ---- figures ---- */

/* How the figures of shards make one. */
static int64_t both(int64_t a, int64_t b)
{
    return a + b;
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

static int64_t greater(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t same(int64_t a, int64_t b)
{
    (void)a;
    return b;
}

#define FIGURE(name, join)                                                               \
    {                                                                                    \
        offsetof(hf_queue_stats, name), join                                             \
    }

/* What the script answers behind `paused`, in its order. Each worker of the queue serves
 * all shards. */
static const struct figure {
    size_t at;
    int64_t (*join)(int64_t a, int64_t b);
} figures[] = {
    FIGURE(ready, both),
    FIGURE(delayed, both),
    FIGURE(running, both),
    FIGURE(dead, both),
    FIGURE(enqueued, both),
    FIGURE(done, both),
    FIGURE(failed, both),
    FIGURE(lost, both),
    FIGURE(unsure, both),
    FIGURE(crashed, both),
    FIGURE(oldest_ready_ms, sooner),
    FIGURE(next_due_ms, sooner),
    FIGURE(max_running, both),
    FIGURE(rate_limit, same),
    FIGURE(rate_per_ms, same),
    FIGURE(workers, greater),
    FIGURE(cancelled, both),
    FIGURE(deleted, both),
    FIGURE(kept, both),
    FIGURE(kept_bytes, both),
    FIGURE(expired, both),
    FIGURE(parked, both),
    FIGURE(replaced, both),
    FIGURE(healed, both),
    FIGURE(paused_ms, greater),
    FIGURE(claimed_ms, greater),
    FIGURE(died_hour, both),
    FIGURE(refused, both),
    FIGURE(schedules, both),
};

static int64_t *figure_in(hf_queue_stats *stats, const struct figure *figure)
{
    return (int64_t *)(void *)((char *)stats + figure->at);
}

static hf_err read_stats(const hf_answer *answer, void *out)
{
    hf_queue_stats *s = out;
    hf_err err = hf_send_script_status(answer, 3 + HF_COUNT(figures), &s->now_ms);
    if (err != HF_OK)
        return err;
    s->paused = hf_reply_int(hf_reply_at(answer->reply, 2)) != 0;
    for (size_t i = 0; i < HF_COUNT(figures); i++)
        *figure_in(s, &figures[i]) = hf_reply_int(hf_reply_at(answer->reply, 3 + i));
    return HF_OK;
}

hf_err hf_stats_of(hf_admin *admin, const hf_queue *queue, hf_queue_stats *out)
{
    hf_ask ask = {
        .script = &hf_lua_queue_stats, .queue = queue, .read = read_stats, .out = out};
    *out = (hf_queue_stats){HF_QUEUE_STATS_INIT};
    memcpy(out->queue, queue->name, sizeof out->queue);
    return hf_admin_ask(admin, &ask);
}

/* Those that could not be read so have now_ms 0. */
static void read_ahead(hf_admin *admin, const char *const *names, size_t n,
                       hf_queue_stats *out)
{
    hf_queue queues[HF_ADMIN_AHEAD];
    hf_ask asks[HF_ADMIN_AHEAD];
    size_t n_asks = 0;
    for (size_t i = 0; i < n; i++) {
        hf_queue_stats *s = &out[i];
        *s = (hf_queue_stats){HF_QUEUE_STATS_INIT};
        if (hf_admin_queue(admin, names[i], &queues[n_asks]) != HF_OK)
            continue;
        memcpy(s->queue, queues[n_asks].name, sizeof s->queue);
        asks[n_asks] = (hf_ask){.script = &hf_lua_queue_stats,
                                .queue = &queues[n_asks],
                                .read = read_stats,
                                .out = s};
        n_asks++;
    }
    hf_admin_ask_ahead(admin, asks, n_asks);
    for (size_t i = 0; i < n_asks; i++)
        if (asks[i].err != HF_OK)
            ((hf_queue_stats *)asks[i].out)->now_ms = 0;
}

static void add_shard(hf_queue_stats *sum, hf_queue_stats *s, const hf_part *part)
{
    s->rate_per_ms /= part->n;
    for (size_t i = 0; i < HF_COUNT(figures); i++) {
        int64_t *to = figure_in(sum, &figures[i]);
        *to = figures[i].join(*to, *figure_in(s, &figures[i]));
    }
    sum->paused = s->paused && (part->i == 0 || sum->paused);
    sum->now_ms = greater(sum->now_ms, s->now_ms);
}

static hf_err stats_in(hf_admin *admin, const hf_part *part, void *arg)
{
    hf_queue_stats stats, *sum = arg;
    hf_err err = hf_stats_of(admin, part->queue, part->n == 0 ? sum : &stats);
    if (err == HF_OK && part->n > 0)
        add_shard(sum, &stats, part);
    return err;
}

hf_err hf_admin_stats(hf_admin *admin, const char *name, hf_queue_stats *theirs,
                      char detail[HF_DETAIL_SIZE])
{
    hf_queue queue;
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    hf_admin_begin(admin, detail);
    hf_err err = hf_admin_fits(admin, theirs, "hf_queue_stats");
    if (err == HF_OK)
        err = hf_admin_queue(admin, name, &queue);
    if (err != HF_OK)
        return err;
    err = hf_admin_in_parts(admin, &queue, stats_in, &stats);
    hf_struct_fill(theirs, &stats, sizeof stats);
    return err;
}

void hf_admin_stats_each(hf_admin *admin, const char *const *names, size_t n,
                         hf_stats_cb cb, void *arg, char detail[HF_DETAIL_SIZE])
{
    hf_queue_stats stats[HF_ADMIN_AHEAD];
    bool more = true;
    for (size_t from = 0; from < n && more; from += HF_ADMIN_AHEAD) {
        const size_t some = n - from < HF_ADMIN_AHEAD ? n - from : HF_ADMIN_AHEAD;
        hf_admin_begin(admin, detail);
        read_ahead(admin, &names[from], some, stats);
        for (size_t i = 0; i < some && more; i++) {
            hf_err err = stats[i].now_ms != 0
                             ? HF_OK
                             : hf_admin_stats(admin, names[from + i], &stats[i], detail);
            more = cb(err, &stats[i], arg);
        }
    }
}

/* ---- pause and limits ---- */

/* A queue with a setting must be listed even if it was never used. A Redis that is full
 * refuses this, even of a name that is there: then `doctor --fix` registers the queue. */
static hf_err make_known(hf_admin *admin, const hf_queue *queue)
{
    hf_err err = hf_registry_add(admin, queue);
    return err == HF_OOM ? HF_OK : err;
}

static hf_err pause_in(hf_admin *admin, const hf_part *part, void *arg)
{
    const bool *paused = arg;
    hf_ask ask = {.script = &hf_lua_queue_pause, .queue = part->queue};
    hf_ask_order(&ask, admin);
    hf_ask_word(&ask, admin);
    hf_args_flag(&ask.args, *paused);
    return hf_admin_ask(admin, &ask);
}

hf_err hf_admin_pause(hf_admin *admin, const char *name, bool paused,
                      char detail[HF_DETAIL_SIZE])
{
    hf_queue queue;
    hf_admin_begin(admin, detail);
    hf_err err = hf_admin_queue(admin, name, &queue);
    if (err == HF_OK && paused)
        err = make_known(admin, &queue);
    if (err == HF_OK)
        err = hf_admin_in_all_parts(admin, &queue, pause_in, &paused);
    if (err == HF_OK && !paused)
        hf_forget_unused(admin, &queue);
    return err;
}

typedef struct limits {
    int64_t max_running, rate_limit, rate_per_ms;
} limits;

static bool limit_ok(int64_t value)
{
    return value >= -1 && value <= UINT32_MAX;
}

static void add_limit(hf_args *args, const char *name, int64_t value)
{
    if (value < 0)
        return; /* it stays as it is */
    hf_args_text(args, name);
    hf_args_int(args, value);
}

/* What a part has of them. */
static hf_err divide(hf_admin *admin, const hf_part *part, limits *of)
{
    if (part->n == 0)
        return HF_OK;
    if (of->max_running > 0 && of->max_running < part->n)
        return hf_admin_fail(admin, HF_INVALID,
                             "expected max_running of at least %u, one for each shard, "
                             "found %" PRId64,
                             part->n, of->max_running);
    if (of->max_running > 0)
        of->max_running =
            hf_shard_max_running((uint32_t)of->max_running, part->i, part->n);
    if (of->rate_per_ms > 0)
        of->rate_per_ms *= part->n;
    return HF_OK;
}

static hf_err limit_in(hf_admin *admin, const hf_part *part, void *arg)
{
    limits to = *(const limits *)arg;
    hf_ask ask = {.script = &hf_lua_queue_limits, .queue = part->queue};
    hf_err err = divide(admin, part, &to);
    if (err != HF_OK)
        return err;
    hf_ask_order(&ask, admin);
    hf_ask_word(&ask, admin);
    hf_args_text(&ask.args, ""); /* an order, not what a file says */
    add_limit(&ask.args, "max_running", to.max_running);
    add_limit(&ask.args, "rate_limit", to.rate_limit);
    add_limit(&ask.args, "rate_per", to.rate_per_ms);
    return hf_admin_ask(admin, &ask);
}

hf_err hf_admin_limit(hf_admin *admin, const char *name, int64_t max_running,
                      int64_t rate_limit, int64_t rate_per_ms,
                      char detail[HF_DETAIL_SIZE])
{
    hf_queue queue;
    limits to = {max_running, rate_limit, rate_per_ms};
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
    const bool lifts = max_running <= 0 && rate_limit <= 0;
    if (!lifts)
        err = make_known(admin, &queue);
    if (err == HF_OK)
        err = hf_admin_in_all_parts(admin, &queue, limit_in, &to);
    if (err == HF_OK && lifts)
        hf_forget_unused(admin, &queue);
    return err;
}
