/* plan.c - worker/plan.h. */
#include "worker/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/detail.h"
#include "base/id.h"
#include "base/mask.h"
#include "base/server_opts.h"
#include "base/structs.h"
#include "queue/schedule.h"
#include "queue/shards.h"
#include "queue/tracing.h"
#include "worker/handler.h"

static uint32_t or_default(uint32_t value, uint32_t otherwise)
{
    return value == 0 ? otherwise : value;
}

enum { WEIGHT_MAX = 1000, KEEP_MAX = 10000, KEEP_BYTES = 64 << 20 };

#define DAY_MS INT64_C(86400000)

static void fill_defaults(hf_worker_opts *o)
{
    o->concurrency = or_default(o->concurrency, 16);
    o->lease_ms = or_default(o->lease_ms, 10000);
    o->kill_grace_ms = or_default(o->kill_grace_ms, HF_KILL_GRACE_MS);
    o->shutdown_timeout_ms = or_default(o->shutdown_timeout_ms, 25000);
    if (o->shutdown_timeout_ms == HF_SHUTDOWN_AT_ONCE)
        o->shutdown_timeout_ms = 0;
    o->max_attempts = or_default(o->max_attempts, 20);
    o->backoff_base_ms = or_default(o->backoff_base_ms, 2000);
    o->backoff_cap_ms = or_default(o->backoff_cap_ms, 3600000);
    if (o->backoff_cap_ms < o->backoff_base_ms)
        o->backoff_cap_ms = o->backoff_base_ms;
    o->backoff_jitter = o->backoff_jitter == 0 ? 0.2 : o->backoff_jitter;
    if (o->backoff_jitter < 0)
        o->backoff_jitter = 0;
    o->poison = or_default(o->poison, 3);
    o->dead_max = or_default(o->dead_max, 10000);
    o->dead_age_ms = o->dead_age_ms <= 0 ? 180 * DAY_MS : o->dead_age_ms;
    if (o->dead_age_ms > HF_DELAY_MAX_MS)
        o->dead_age_ms = HF_DELAY_MAX_MS;
    o->wait_replicas_ms = or_default(o->wait_replicas_ms, 5000);
    o->history_ms = or_default(o->history_ms, HF_HISTORY_MAX_MS);
}

static hf_err check_opts(const hf_worker_opts *o, char detail[HF_DETAIL_SIZE])
{
    char found[24];
    snprintf(found, sizeof found, "%u", o->concurrency);
    if (o->concurrency > 1024)
        return hf_say_expected(detail, "a concurrency of 1 to 1024", found);
    snprintf(found, sizeof found, "%u ms", o->lease_ms);
    if (o->lease_ms < 1000 || o->lease_ms > 3600000)
        return hf_say_expected(detail, "a lease of 1 s to 1 h", found);
    snprintf(found, sizeof found, "%zu", o->n_queues);
    if (o->n_queues < 1 || o->n_queues > HF_QUEUES_MAX)
        return hf_say_expected(detail, "1 to 64 queues", found);
    snprintf(found, sizeof found, "%u", o->backoff);
    if ((unsigned)o->backoff > HF_SHAPE_LAST)
        return hf_say_expected(detail, "a backoff that exists", found);
    snprintf(found, sizeof found, "%.3f", o->backoff_jitter);
    if (!(o->backoff_jitter <= 1)) /* it may be no number */
        return hf_say_expected(detail, "a jitter of at most 1", found);
    snprintf(found, sizeof found, "%u", o->wait_replicas);
    if (o->wait_replicas > HF_REPLICAS_MAX)
        return hf_say_expected(detail, "0 to 100 replicas to wait for", found);
    snprintf(found, sizeof found, "%u ms", o->history_ms);
    if (o->history_ms > HF_HISTORY_MAX_MS && o->history_ms != HF_HISTORY_NONE)
        return hf_say_expected(detail, "a history of at most 48 h", found);
    return HF_OK;
}

static hf_err check_queue(const hf_worker_queue *q, char detail[HF_DETAIL_SIZE])
{
    char found[24];
    snprintf(found, sizeof found, "%u", q->weight);
    if (q->weight > WEIGHT_MAX)
        return hf_say_expected(detail, "a weight of 1 to 1000", found);
    if (q->has_limits && q->rate_limit != 0 && q->rate_per_ms == 0)
        return hf_say_expected(detail, "a rate with its time", "0 ms");
    if (q->keep_ms < 0 || q->keep_ms > HF_DELAY_MAX_MS || q->keep_max < 0 ||
        q->keep_bytes < 0)
        return hf_say_expected(detail, "keep_ms of at most 100 years, and bounds above 0",
                               "others");
    if (q->on_dead != NULL && !hf_name_ok(q->on_dead))
        return hf_say_expected(detail, HF_ON_DEAD_RULE, q->on_dead);
    return HF_OK;
}

hf_err hf_plan_shards_fit(const hf_worker_queue *limits, unsigned n,
                          char detail[HF_DETAIL_SIZE])
{
    if (!limits->has_limits || limits->max_running == 0 || limits->max_running >= n)
        return HF_OK;
    return hf_say(detail, HF_INVALID,
                  "expected a max_running of at least %u, one for each shard, found %u",
                  n, limits->max_running);
}

static hf_err check_shards(const hf_worker_queue *q, char detail[HF_DETAIL_SIZE])
{
    char found[24];
    snprintf(found, sizeof found, "%u", q->shards);
    if (q->shards == 0)
        return HF_OK;
    if (q->shards < HF_SHARDS_MIN || q->shards > HF_SHARDS_MAX)
        return hf_say_expected(detail, "2 to 64 shards", found);
    if (strlen(q->name) > HF_SHARDED_NAME_MAX)
        return hf_say_expected(
            detail, "a name of at most 120 bytes for a queue with shards", q->name);
    return hf_plan_shards_fit(q, q->shards, detail);
}

/* Each of these has a slot. */
static hf_err check_number(const hf_plan *plan, char detail[HF_DETAIL_SIZE])
{
    char found[24];
    size_t n = 0;
    for (size_t i = 0; i < plan->n_queues; i++)
        n += 1 + plan->queues[i].settings.shards;
    snprintf(found, sizeof found, "%zu", n);
    return n <= HF_SLOTS_MAX
               ? HF_OK
               : hf_say_expected(detail, "at most 128 queues and shards in all", found);
}

hf_err hf_plan_queue_of(hf_plan_queue *out, const char *ns, const hf_worker_queue *queue,
                        char detail[HF_DETAIL_SIZE])
{
    *out = (hf_plan_queue){.settings = *queue};
    if (hf_queue_init(&out->queue, ns, queue->name) != HF_OK)
        return hf_say_expected(detail, "a queue's name of 1 to 128 of [A-Za-z0-9._:-]",
                               queue->name);
    hf_err err = check_queue(queue, detail);
    if (err == HF_OK)
        err = check_shards(queue, detail);
    if (err != HF_OK)
        return err;
    out->settings.name = out->settings.on_dead = NULL;
    snprintf(out->on_dead, sizeof out->on_dead, "%s",
             queue->on_dead == NULL ? "" : queue->on_dead);
    out->settings.weight = or_default(queue->weight, 1);
    if (queue->keep_max == 0)
        out->settings.keep_max = KEEP_MAX;
    if (queue->keep_bytes == 0)
        out->settings.keep_bytes = KEEP_BYTES;
    return HF_OK;
}

static hf_err put_queues(hf_plan *plan, const hf_worker_queue *queues, size_t n,
                         char detail[HF_DETAIL_SIZE])
{
    for (size_t i = 0; i < n; i++) {
        hf_plan_queue *queue = &plan->queues[i];
        hf_err err = hf_plan_queue_of(queue, plan->ns, &queues[i], detail);
        if (err != HF_OK)
            return err;
        if (hf_plan_find(plan, queues[i].name) != NULL)
            return hf_say_expected(detail, "each queue once", queues[i].name);
        plan->n_queues = i + 1;
    }
    return check_number(plan, detail);
}

static hf_err add_queues(hf_plan *plan, const hf_worker_opts *o,
                         char detail[HF_DETAIL_SIZE])
{
    const void *queues;
    void *copy;
    hf_err err = hf_structs_in(&queues, &copy, sizeof *o->queues, o->queues, o->n_queues,
                               "hf_worker_queue", detail);
    if (err == HF_OK)
        err = put_queues(plan, queues, o->n_queues, detail);
    free(copy);
    return err;
}

static hf_err put_programs(hf_plan *plan, const hf_program *programs, size_t n,
                           char detail[HF_DETAIL_SIZE])
{
    for (size_t i = 0; i < n; i++) {
        if (programs[i].type != NULL &&
            hf_handlers_find(plan->programs, i, programs[i].type) != NULL)
            return hf_say_expected(detail, "one handler for each type", programs[i].type);
        hf_err err = hf_handler_of_program(&plan->programs[i], &programs[i], detail);
        if (err != HF_OK)
            return err;
        plan->n_programs = i + 1;
    }
    return HF_OK;
}

static hf_err add_programs(hf_plan *plan, const hf_program *programs, size_t n,
                           char detail[HF_DETAIL_SIZE])
{
    char found[24];
    snprintf(found, sizeof found, "%zu", n);
    if (n > HF_TYPES_MAX)
        return hf_say_expected(detail, "at most 1000 programs", found);
    plan->programs = calloc(n + 1, sizeof *plan->programs);
    if (plan->programs == NULL)
        return HF_NOMEM;
    const void *ours;
    void *copy;
    hf_err err =
        hf_structs_in(&ours, &copy, sizeof *programs, programs, n, "hf_program", detail);
    if (err == HF_OK)
        err = put_programs(plan, ours, n, detail);
    free(copy);
    return err;
}

static hf_err put_pools(hf_plan *plan, const hf_pool *pools, size_t n,
                        char detail[HF_DETAIL_SIZE])
{
    for (size_t i = 0; i < n; i++) {
        hf_err err = hf_pool_spec_new(&plan->pools[i], &pools[i], detail);
        if (err != HF_OK)
            return err;
        plan->n_pools = i + 1;
        err = hf_pool_specs_fit(plan->pools, i, plan->pools[i], detail);
        if (err == HF_OK)
            err = hf_pool_spec_beside(plan->pools[i], plan->programs, plan->n_programs,
                                      detail);
        if (err != HF_OK)
            return err;
    }
    return HF_OK;
}

static hf_err add_pools(hf_plan *plan, const hf_pool *pools, size_t n,
                        char detail[HF_DETAIL_SIZE])
{
    char found[24];
    snprintf(found, sizeof found, "%zu", n);
    if (n > HF_POOLS_MAX)
        return hf_say_expected(detail, "at most 64 pools", found);
    plan->pools = calloc(n + 1, sizeof(hf_pool_spec *));
    if (plan->pools == NULL)
        return HF_NOMEM;
    const void *ours;
    void *copy;
    hf_err err = hf_structs_in(&ours, &copy, sizeof *pools, pools, n, "hf_pool", detail);
    if (err == HF_OK)
        err = put_pools(plan, ours, n, detail);
    free(copy);
    return err;
}

/* ---- schedules ---- */

void hf_plan_schedules_free(hf_plan_schedule *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hf_buf_done(&list[i].value);
    free(list);
}

hf_err hf_plan_schedule_of(hf_plan_schedule *out, const hf_schedule *schedule)
{
    hf_buf_init(&out->value, HF_PAYLOAD_CEILING + 4096);
    hf_schedule_write(&out->value, schedule);
    snprintf(out->id, sizeof out->id, "%s", schedule->id);
    snprintf(out->queue, sizeof out->queue, "%s",
             schedule->queue == NULL ? "default" : schedule->queue);
    out->rev = schedule->rev;
    return hf_buf_err(&out->value);
}

static hf_err put_schedule(hf_plan *plan, const hf_schedule *s,
                           char detail[HF_DETAIL_SIZE])
{
    const char *queue = s->queue == NULL ? "default" : s->queue;
    hf_err err = hf_schedule_check(s, detail);
    if (err != HF_OK)
        return err;
    if (hf_plan_find(plan, queue) == NULL)
        return hf_say_expected(detail, "a queue of the worker for each schedule", queue);
    for (size_t i = 0; i < plan->n_schedules; i++)
        if (strcmp(plan->schedules[i].id, s->id) == 0 &&
            strcmp(plan->schedules[i].queue, queue) == 0)
            return hf_say_expected(detail, "each schedule once", s->id);
    return hf_plan_schedule_of(&plan->schedules[plan->n_schedules++], s);
}

static hf_err add_schedules(hf_plan *plan, const hf_worker_opts *o,
                            char detail[HF_DETAIL_SIZE])
{
    const void *ours;
    void *copy;
    char found[24];
    snprintf(found, sizeof found, "%zu", o->n_schedules);
    if (o->n_schedules > HF_SCHEDULES_MAX)
        return hf_say_expected(detail, "at most 1000 schedules", found);
    plan->schedules = calloc(o->n_schedules + 1, sizeof *plan->schedules);
    if (plan->schedules == NULL)
        return HF_NOMEM;
    hf_err err = hf_structs_in(&ours, &copy, sizeof *o->schedules, o->schedules,
                               o->n_schedules, "hf_schedule", detail);
    const hf_schedule *schedules = ours;
    for (size_t i = 0; err == HF_OK && i < o->n_schedules; i++)
        err = put_schedule(plan, &schedules[i], detail);
    free(copy);
    return err;
}

hf_err hf_plan_new(hf_plan **out, const hf_worker_opts *opts, const hf_program *programs,
                   size_t n_programs, const hf_pool *pools, size_t n_pools,
                   char detail[HF_DETAIL_SIZE])
{
    hf_worker_opts filled;
    hf_server_opts server;
    hf_tracer tracer;
    hf_err err = hf_struct_in(&filled, sizeof filled, opts, "hf_worker_opts", detail);
    if (err != HF_OK)
        return err;
    fill_defaults(&filled);
    err = check_opts(&filled, detail);
    if (err == HF_OK)
        err = hf_tracer_in(&tracer, filled.tracer, detail);
    if (err == HF_OK)
        err = hf_server_opts_in(&server, filled.server, detail);
    if (err == HF_OK && server.url != NULL)
        err = hf_url_check(server.url, detail);
    if (err != HF_OK)
        return err;
    hf_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL)
        return hf_say_err(detail, HF_NOMEM);
    plan->server = server;
    plan->tracer = tracer;
    snprintf(plan->ns, sizeof plan->ns, "%s", server.ns);
    err = hf_server_opts_own(&plan->server);
    if (err == HF_OK && filled.minder != NULL) {
        plan->minder = strdup(filled.minder);
        err = plan->minder == NULL ? HF_NOMEM : HF_OK;
    }
    if (err == HF_OK)
        err = add_queues(plan, &filled, detail);
    if (err == HF_OK)
        err = add_programs(plan, programs, n_programs, detail);
    if (err == HF_OK)
        err = add_pools(plan, pools, n_pools, detail);
    if (err == HF_OK)
        err = add_schedules(plan, &filled, detail);
    if (err != HF_OK) {
        if (err == HF_NOMEM)
            (void)hf_say_err(detail, err);
        hf_plan_free(plan);
        return err;
    }
    plan->opts = filled;
    plan->opts.queues = NULL;
    plan->opts.schedules = NULL;
    plan->opts.n_schedules = 0;
    plan->opts.server = NULL;
    plan->opts.tracer = NULL;
    plan->opts.minder = NULL;
    *out = plan;
    return HF_OK;
}

void hf_plan_free(hf_plan *plan)
{
    if (plan == NULL)
        return;
    for (size_t i = 0; i < plan->n_programs; i++)
        hf_handler_unref(plan->programs[i]);
    free(plan->programs);
    for (size_t i = 0; i < plan->n_pools; i++)
        hf_pool_spec_unref(plan->pools[i]);
    free(plan->pools);
    hf_plan_schedules_free(plan->schedules, plan->n_schedules);
    hf_server_opts_free(&plan->server);
    free(plan->minder);
    free(plan);
}

const hf_plan_queue *hf_plan_find(const hf_plan *plan, const char *queue)
{
    for (size_t i = 0; i < plan->n_queues; i++)
        if (strcmp(plan->queues[i].queue.name, queue) == 0)
            return &plan->queues[i];
    return NULL;
}

hf_backoff hf_plan_backoff(const hf_worker_opts *opts)
{
    return (hf_backoff){
        .shape = (hf_backoff_shape)opts->backoff,
        .base_ms = opts->backoff_base_ms,
        .cap_ms = opts->backoff_cap_ms,
        .jitter = opts->backoff_jitter,
    };
}
