/* reload.c - gives a running worker another plan (holdfast/worker.h).
 *
 * Any thread checks and copies the plan and leaves it at `next_plan`; the loop takes it
 * whole, between two events. First the pool returns all claimed jobs that have not
 * started: from here on nothing starts. Then the log gets one line for each difference,
 * including those that need a restart, and the plan is replaced. Finally each waiting job
 * is checked again: it may have another handler now, or none, or its queue is no longer
 * served. A job that was started keeps its handler, its time-out and its slot. */
#include "worker/reload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/detail.h"
#include "base/text.h"
#include "worker/handler.h"
#include "worker/node/sites.h"
#include "worker/offered.h"
#include "worker/past.h"
#include "worker/plan.h"
#include "worker/queues/queues.h"
#include "worker/register.h"
#include "worker/report.h"
#include "worker/runner/runner.h"
#include "worker/schedules.h"
#include "worker/worker.h"

enum { VALUE_SIZE = 64 };

typedef struct changes {
    size_t changed; /* lines about what changes */
    size_t fixed;   /* lines about what keeps its value until a restart */
} changes;

typedef struct comparison {
    hf_worker *w;
    const hf_plan *plan;
    changes *out;
} comparison;

/* ---- lines ---- */

static void report(comparison *c, const char *key, const char *name, const char *was,
                   const char *now)
{
    hf_log_field fields[4];
    size_t n = 0;
    fields[n++] = (hf_log_field){.key = "key", .text = key};
    if (name != NULL)
        fields[n++] = (hf_log_field){.key = "name", .text = name};
    if (was != NULL)
        fields[n++] = (hf_log_field){.key = "was", .text = was};
    fields[n++] = (hf_log_field){.key = "now", .text = now};
    c->out->changed++;
    hf_report(c->w, HF_LOG_INFO, "changed", fields, n);
}

static void report_number(comparison *c, const char *key, const char *name, int64_t was,
                          int64_t now)
{
    char texts[2][VALUE_SIZE];
    if (was == now)
        return;
    snprintf(texts[0], VALUE_SIZE, "%lld", (long long)was);
    snprintf(texts[1], VALUE_SIZE, "%lld", (long long)now);
    report(c, key, name, texts[0], texts[1]);
}

static void report_time(comparison *c, const char *key, int64_t was_ms, int64_t now_ms)
{
    char was[HF_DURATION_SIZE], now[HF_DURATION_SIZE];
    if (was_ms == now_ms)
        return;
    hf_format_duration(was_ms, was);
    hf_format_duration(now_ms, now);
    report(c, key, NULL, was, now);
}

/* The differences that need a restart. Without values where these may be secret. */
static void report_fixed(comparison *c, const char *key, const char *now,
                         const char *file)
{
    const hf_log_field fields[] = {{.key = "key", .text = key},
                                   {.key = "now", .text = now},
                                   {.key = "file", .text = file}};
    c->out->fixed++;
    hf_report(c->w, HF_LOG_WARN, "needs a restart", fields, now == NULL ? 1 : 3);
}

static void compare_fixed_text(comparison *c, const char *key, const char *now,
                               const char *file)
{
    if (now == file || (now != NULL && file != NULL && strcmp(now, file) == 0))
        return;
    report_fixed(c, key, NULL, NULL);
}

static void compare_fixed_time(comparison *c, const char *key, uint32_t now_ms,
                               uint32_t file_ms)
{
    char now[HF_DURATION_SIZE], file[HF_DURATION_SIZE];
    if (now_ms == file_ms)
        return;
    hf_format_duration(now_ms, now);
    hf_format_duration(file_ms, file);
    report_fixed(c, key, now, file);
}

/* ---- options that cannot change ---- */

static void compare_tls(comparison *c, const hf_tls_opts *now, const hf_tls_opts *file)
{
    static const hf_tls_opts none = {HF_TLS_OPTS_INIT};
    const hf_tls_opts *n = now == NULL ? &none : now, *f = file == NULL ? &none : file;
    compare_fixed_text(c, "redis.tls.ca", n->ca, f->ca);
    compare_fixed_text(c, "redis.tls.cert", n->cert, f->cert);
    compare_fixed_text(c, "redis.tls.key", n->key, f->key);
    compare_fixed_text(c, "redis.tls.server_name", n->server_name, f->server_name);
    if (n->skip_verify != f->skip_verify)
        report_fixed(c, "redis.tls.verify", n->skip_verify ? "false" : "true",
                     f->skip_verify ? "false" : "true");
}

static void compare_sentinel(comparison *c, const hf_sentinel_opts *now,
                             const hf_sentinel_opts *file)
{
    static const hf_sentinel_opts none = {HF_SENTINEL_OPTS_INIT};
    const hf_sentinel_opts *n = now == NULL ? &none : now;
    const hf_sentinel_opts *f = file == NULL ? &none : file;
    compare_fixed_text(c, "redis.sentinel.user", n->user, f->user);
    compare_fixed_text(c, "redis.sentinel.password_file", n->password_file,
                       f->password_file);
}

static void compare_fixed(comparison *c)
{
    const hf_worker *w = c->w;
    const hf_worker_opts *now = &w->opts, *file = &c->plan->opts;
    char texts[2][VALUE_SIZE];
    compare_fixed_text(c, "redis.url", w->server.url, c->plan->server.url);
    compare_fixed_text(c, "redis.password_file", w->server.password_file,
                       c->plan->server.password_file);
    compare_sentinel(c, w->server.sentinel, c->plan->server.sentinel);
    compare_tls(c, w->server.tls, c->plan->server.tls);
    compare_fixed_time(c, "redis.connect_timeout", w->server.connect_timeout_ms,
                       c->plan->server.connect_timeout_ms);
    compare_fixed_time(c, "redis.request_timeout", w->server.request_timeout_ms,
                       c->plan->server.request_timeout_ms);
    snprintf(texts[0], VALUE_SIZE, "%u", now->wait_replicas);
    snprintf(texts[1], VALUE_SIZE, "%u", file->wait_replicas);
    if (now->wait_replicas != file->wait_replicas)
        report_fixed(c, "redis.wait_replicas", texts[0], texts[1]);
    compare_fixed_time(c, "redis.replicas_timeout", w->asked_wait_replicas_ms,
                       file->wait_replicas_ms);
    if (strcmp(w->ns, c->plan->ns) != 0)
        report_fixed(c, "namespace", w->ns, c->plan->ns);
    snprintf(texts[0], VALUE_SIZE, "%u", now->concurrency);
    snprintf(texts[1], VALUE_SIZE, "%u", file->concurrency);
    if (now->concurrency != file->concurrency)
        report_fixed(c, "worker.concurrency", texts[0], texts[1]);
    compare_fixed_time(c, "worker.lease", now->lease_ms, file->lease_ms);
    compare_fixed_time(c, "worker.kill_grace", w->asked_kill_grace_ms,
                       file->kill_grace_ms);
    if (now->cgroup != file->cgroup)
        report_fixed(c, "worker.cgroup", now->cgroup ? "true" : "false",
                     file->cgroup ? "true" : "false");
    if (c->plan->n_programs + c->plan->n_pools > 0 && !w->has_programs)
        report_fixed(c, "handlers", "none",
                     c->plan->n_programs > 0 ? "programs" : "pools");
}

/* ---- options that can change ---- */

static int64_t kept_history(const hf_worker_opts *opts)
{
    return opts->history_ms == HF_HISTORY_NONE ? 0 : opts->history_ms;
}

static void compare_opts(comparison *c)
{
    static const char *const shapes[] = {"exponential", "linear", "constant"};
    const hf_worker_opts *was = &c->w->opts, *now = &c->plan->opts;
    char texts[2][VALUE_SIZE];
    report_time(c, "worker.shutdown_timeout", was->shutdown_timeout_ms,
                now->shutdown_timeout_ms);
    if (was->strict != now->strict)
        report(c, "worker.order", NULL, was->strict ? "strict" : "weighted",
               now->strict ? "strict" : "weighted");
    report_number(c, "retry.max_attempts", NULL, was->max_attempts, now->max_attempts);
    if (was->backoff != now->backoff)
        report(c, "retry.backoff", NULL, shapes[was->backoff], shapes[now->backoff]);
    report_time(c, "retry.base", was->backoff_base_ms, now->backoff_base_ms);
    report_time(c, "retry.cap", was->backoff_cap_ms, now->backoff_cap_ms);
    snprintf(texts[0], VALUE_SIZE, "%g", was->backoff_jitter);
    snprintf(texts[1], VALUE_SIZE, "%g", now->backoff_jitter);
    if (strcmp(texts[0], texts[1]) != 0)
        report(c, "retry.jitter", NULL, texts[0], texts[1]);
    report_number(c, "poison", NULL, was->poison, now->poison);
    report_number(c, "dead.max", NULL, was->dead_max, now->dead_max);
    report_time(c, "dead.age", was->dead_age_ms, now->dead_age_ms);
    report_time(c, "history", kept_history(was), kept_history(now));
}

/* A file that says nothing of limits leaves them as they are. */
static void compare_limits(comparison *c, const char *name, const hf_worker_queue *was,
                           const hf_worker_queue *now)
{
    char rates[2][HF_RATE_SIZE];
    if (was->has_limits && !now->has_limits) {
        report(c, "queues[].max_running", name, "named", "as it is in Redis");
        report(c, "queues[].rate", name, "named", "as it is in Redis");
        return;
    }
    if (!now->has_limits)
        return;
    hf_report_rate(was, rates[0]);
    hf_report_rate(now, rates[1]);
    report_number(c, "queues[].max_running", name, was->max_running, now->max_running);
    if (strcmp(rates[0], rates[1]) != 0)
        report(c, "queues[].rate", name, rates[0], rates[1]);
}

static void compare_keep(comparison *c, const char *name, const hf_worker_queue *was,
                         const hf_worker_queue *now)
{
    report_number(c, "queues[].keep.done", name, was->keep_ms, now->keep_ms);
    report_number(c, "queues[].keep.max", name, was->keep_max, now->keep_max);
    report_number(c, "queues[].keep.bytes", name, was->keep_bytes, now->keep_bytes);
}

static void report_on_dead(comparison *c, const char *name, const char *was,
                           const char *now)
{
    if (strcmp(was, now) != 0)
        report(c, "queues[].on_dead", name, was[0] != '\0' ? was : "none",
               now[0] != '\0' ? now : "none");
}

static void compare_queues(comparison *c)
{
    const hf_plan *plan = c->plan;
    bool moved = false;
    size_t place = 0;
    for (size_t i = 0; i < hf_queues_wholes(c->w); i++) {
        const char *name = hf_queue_whole_name(hf_queues_whole(c->w, i));
        if (hf_plan_find(plan, name) == NULL)
            report(c, "queues", name, NULL, "removed");
    }
    for (size_t i = 0; i < plan->n_queues; i++) {
        const hf_plan_queue *queue = &plan->queues[i];
        const char *name = queue->queue.name;
        const hf_whole *was = hf_queues_find(c->w, name);
        if (was == NULL || hf_queue_whole_is_gone(was)) {
            report(c, "queues", name, NULL, "added");
            continue;
        }
        moved = moved || was->index < place;
        place = was->index;
        report_number(c, "queues[].weight", name, was->weight, queue->settings.weight);
        report_number(c, "queues[].shards", name, was->limits.shards,
                      queue->settings.shards);
        compare_limits(c, name, &was->limits, &queue->settings);
        compare_keep(c, name, &was->limits, &queue->settings);
        report_on_dead(c, name, was->on_dead, queue->on_dead);
    }
    if (moved && plan->opts.strict)
        report(c, "queues", NULL, NULL, "in another order");
}

static void compare_handlers(comparison *c)
{
    const hf_worker *w = c->w;
    const hf_plan *plan = c->plan;
    size_t n = w->has_programs ? plan->n_programs : 0;
    for (size_t i = 0; i < w->n_handlers; i++)
        if (w->handlers[i]->fn == NULL && w->handlers[i]->pool == NULL &&
            hf_handlers_find(plan->programs, n, w->handlers[i]->type) == NULL)
            report(c, "handlers", w->handlers[i]->type, NULL, "removed");
    for (size_t i = 0; i < n; i++) {
        const hf_handler *now = plan->programs[i];
        const hf_handler *was = hf_handlers_find(w->handlers, w->n_handlers, now->type);
        if (was == NULL)
            report(c, "handlers", now->type, NULL, "added");
        else if (!hf_handler_same(was, now))
            report(c, "handlers", now->type, NULL, "changed");
    }
}

/* The pool of the list that runs the same program, or NULL. The k-th of several that do
 * is the k-th here. */
static const hf_pool_spec *counterpart(const hf_pool_spec *const *from, size_t i,
                                       const hf_pool_spec *const *list, size_t n)
{
    size_t k = 0;
    for (size_t j = 0; j < i; j++)
        k += hf_pool_spec_same_program(from[j], from[i]) ? 1 : 0;
    for (size_t j = 0; j < n; j++)
        if (hf_pool_spec_same_program(list[j], from[i]) && k-- == 0)
            return list[j];
    return NULL;
}

static void compare_pools(comparison *c)
{
    const hf_pool_spec *const *was = (const hf_pool_spec *const *)c->w->pools;
    const hf_pool_spec *const *now = (const hf_pool_spec *const *)c->plan->pools;
    size_t n_was = c->w->n_pools, n_now = c->w->has_programs ? c->plan->n_pools : 0;
    for (size_t i = 0; i < n_was; i++)
        if (counterpart(was, i, now, n_now) == NULL)
            report(c, "pools", was[i]->name, NULL, "removed");
    for (size_t i = 0; i < n_now; i++) {
        const hf_pool_spec *before = counterpart(now, i, was, n_was);
        if (before == NULL)
            report(c, "pools", now[i]->name, NULL, "added");
        else if (!hf_pool_spec_same(before, now[i]))
            report(c, "pools", now[i]->name, NULL, "changed");
    }
}

static void report_schedule(const char *id, const char *now, void *arg)
{
    report(arg, "schedules", id, NULL, now);
}

/* Compares the plan with what the worker does now, and writes the log. */
static void report_changes(hf_worker *w, const hf_plan *plan, changes *out)
{
    comparison c = {.w = w, .plan = plan, .out = out};
    *out = (changes){0};
    compare_fixed(&c);
    compare_queues(&c);
    compare_opts(&c);
    compare_handlers(&c);
    compare_pools(&c);
    hf_schedules_compare(w, plan, report_schedule, &c);
}

/* ---- from any thread ---- */

/* Under plan_lock. The functions stay, beside any set of programs and pools. */
static hf_err check_types(const hf_worker *w, const hf_plan *plan,
                          char detail[HF_DETAIL_SIZE])
{
    size_t n = plan->n_programs;
    hf_err err = HF_OK;
    for (size_t i = 0; i < w->n_handlers; i++) {
        const hf_handler *handler = w->handlers[i];
        if (handler->fn == NULL)
            continue;
        if (hf_handlers_find(plan->programs, plan->n_programs, handler->type) != NULL)
            return hf_say_expected(detail, "one handler for each type", handler->type);
        for (size_t k = 0; err == HF_OK && k < plan->n_pools; k++)
            err = hf_pool_spec_beside(plan->pools[k], &w->handlers[i], 1, detail);
        if (err != HF_OK)
            return err;
        n++;
    }
    if (n + plan->n_pools == 0)
        return hf_say_expected(detail, "a handler", "none");
    if (n > HF_TYPES_MAX)
        return hf_say_expected(detail, "at most 1000 handlers", "more");
    return HF_OK;
}

hf_err hf_worker_reload(hf_worker *w, const hf_worker_opts *opts,
                        const hf_program *programs, size_t n_programs,
                        const hf_pool *pools, size_t n_pools, char detail[HF_DETAIL_SIZE])
{
    hf_plan *plan;
    hf_err err = hf_plan_new(&plan, opts, programs, n_programs, pools, n_pools, detail);
    if (err != HF_OK)
        return err;
    pthread_mutex_lock(&w->plan_lock);
    err = check_types(w, plan, detail);
    if (err == HF_OK) {
        hf_plan *last = w->next_plan; /* not taken yet: this one takes its place */
        w->next_plan = plan;
        plan = last;
        if (last != NULL)
            atomic_fetch_add(&w->reloads, 1);
    }
    pthread_mutex_unlock(&w->plan_lock);
    hf_plan_free(plan);
    if (err == HF_OK && atomic_load(&w->async_ready))
        uv_async_send(&w->async);
    return err;
}

uint64_t hf_worker_reloads(const hf_worker *w)
{
    return atomic_load(&w->reloads);
}

bool hf_worker_reload_taken(const hf_worker *w)
{
    return atomic_load(&w->reload_taken);
}

/* ---- on the loop ---- */

/* False: this many queues were taken out that still have jobs here, that the new ones
 * find no place. */
static bool have_room(hf_worker *w, const hf_plan *plan)
{
    char text[HF_DETAIL_SIZE];
    size_t room = hf_queues_room(w), needed = 0;
    for (size_t i = 0; i < plan->n_queues; i++)
        if (hf_queues_find(w, plan->queues[i].queue.name) == NULL)
            needed += 1 + plan->queues[i].settings.shards;
    if (needed <= room)
        return true;
    snprintf(text, sizeof text,
             "expected at most %zu more queues while those that were removed still have "
             "jobs here, found %zu",
             room, needed);
    hf_report_text(w, HF_LOG_ERROR, "the reload is refused, nothing was changed", "error",
                   text);
    return false;
}

/* False: those of a queue cannot be divided among its shards. */
static bool limits_fit(hf_worker *w, const hf_plan *plan)
{
    char why[HF_DETAIL_SIZE];
    for (size_t i = 0; i < plan->n_queues; i++) {
        const char *name = plan->queues[i].queue.name;
        const hf_whole *whole = hf_queues_find(w, name);
        if (whole == NULL ||
            hf_plan_shards_fit(&plan->queues[i].settings, whole->n_shards, why) == HF_OK)
            continue;
        const hf_log_field fields[] = {{.key = "queue", .text = name},
                                       {.key = "error", .text = why}};
        hf_report(w, HF_LOG_ERROR, "the reload is refused, nothing was changed", fields,
                  HF_COUNT(fields));
        return false;
    }
    return true;
}

static void take_queues(hf_worker *w, const hf_plan *plan)
{
    hf_whole *list[HF_QUEUES_MAX];
    size_t n = hf_queues_wholes(w), left = 0;
    for (size_t i = 0; i < n; i++)
        if (hf_plan_find(plan, hf_queue_whole_name(hf_queues_whole(w, i))) == NULL) {
            hf_queue_whole_leave(hf_queues_whole(w, i));
            left++;
        }
    for (size_t i = 0; i < plan->n_queues; i++)
        list[i] = hf_queues_put(w, &plan->queues[i]);
    hf_queues_order(w, list, plan->n_queues);
    if (left > 0 || plan->n_queues != n)
        hf_queues_changed(w, left > 0);
}

/* The table is read by other threads, under plan_lock, and changed here alone. */
static void take_programs(hf_worker *w, hf_plan *plan)
{
    size_t n = 0;
    if (!w->has_programs)
        return;
    pthread_mutex_lock(&w->plan_lock);
    for (size_t i = 0; i < w->n_handlers; i++) {
        if (w->handlers[i]->fn != NULL || w->handlers[i]->pool != NULL)
            w->handlers[n++] = w->handlers[i];
        else
            hf_handler_unref(w->handlers[i]);
    }
    for (size_t i = 0; i < plan->n_programs; i++)
        w->handlers[n++] = hf_handler_ref(plan->programs[i]);
    w->n_handlers = n;
    w->n_own = 0;
    for (size_t i = 0; i < n; i++)
        w->n_own += w->handlers[i]->pool == NULL ? 1 : 0;
    w->only_programs = hf_handlers_only_programs(w->handlers, n);
    pthread_mutex_unlock(&w->plan_lock);
}

static void take_pools(hf_worker *w, const hf_plan *plan)
{
    if (!w->has_programs)
        return;
    for (size_t i = 0; i < w->n_pools; i++)
        hf_pool_spec_unref(w->pools[i]);
    for (size_t i = 0; i < plan->n_pools; i++)
        w->pools[i] = hf_pool_spec_ref(plan->pools[i]);
    w->n_pools = plan->n_pools;
}

/* Each queue, and what its handlers say of deaths. */
static void register_again(hf_worker *w)
{
    for (size_t i = 0; i < hf_queues_count(w); i++)
        hf_queues_at(w, i)->registration.done = false;
}

/* One by one: other threads read what does not change. */
static void take_opts(hf_worker *w, const hf_worker_opts *o)
{
    w->opts.strict = o->strict;
    w->opts.shutdown_timeout_ms = o->shutdown_timeout_ms;
    w->opts.max_attempts = o->max_attempts;
    w->opts.backoff = o->backoff;
    w->opts.backoff_base_ms = o->backoff_base_ms;
    w->opts.backoff_cap_ms = o->backoff_cap_ms;
    w->opts.backoff_jitter = o->backoff_jitter;
    w->opts.offered_queues = o->offered_queues;
    w->opts.poison = o->poison;
    w->opts.dead_max = o->dead_max;
    w->opts.dead_age_ms = o->dead_age_ms;
    w->opts.history_ms = o->history_ms;
    w->backoff = hf_plan_backoff(&w->opts);
}

/* False: nothing was changed. */
static bool apply(hf_worker *w, hf_plan *plan)
{
    changes changed;
    if (w->phase != HF_STARTING && w->phase != HF_SERVING) {
        hf_report_text(w, HF_LOG_INFO, "stopping: the reload is ignored", NULL, NULL);
        return false;
    }
    hf_offered_keep(w, plan);
    if (!have_room(w, plan) || !limits_fit(w, plan))
        return false;
    hf_runner_recall(w);
    report_changes(w, plan, &changed);
    take_queues(w, plan);
    if (!hf_register_same_deaths(w, plan))
        register_again(w);
    take_programs(w, plan);
    take_pools(w, plan);
    take_opts(w, &plan->opts);
    hf_schedules_take(w, plan);
    hf_runner_choose_anew(w);
    const hf_log_field fields[] = {
        {.key = "queues", .number = (int64_t)hf_queues_wholes(w)},
        {.key = "handlers", .number = (int64_t)w->n_handlers},
        {.key = "changed", .number = (int64_t)changed.changed},
        {.key = "needs_restart", .number = (int64_t)changed.fixed},
        {.key = "pools", .number = (int64_t)w->n_pools}};
    hf_report(w, HF_LOG_INFO, "reloaded", fields, sizeof fields / sizeof fields[0]);
    for (hf_site *site = NULL; (site = hf_sites_next(w, site)) != NULL;)
        hf_register_site(site);
    hf_register_left(w);
    hf_past_reloaded(w);
    w->heartbeat_due = true;
    return true;
}

void hf_reload_apply(hf_worker *w)
{
    pthread_mutex_lock(&w->plan_lock);
    hf_plan *plan = w->next_plan;
    w->next_plan = NULL;
    pthread_mutex_unlock(&w->plan_lock);
    if (plan == NULL)
        return;
    atomic_store(&w->reload_taken, apply(w, plan));
    hf_plan_free(plan);
    atomic_fetch_add(&w->reloads, 1);
}
