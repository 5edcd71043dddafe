/* changes.c - what a reload will change, and what it cannot: one line of the log for
 * each, told just before it is done, while nothing can start. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "worker/changes.h"
#include "worker/queues.h"
#include "worker/report.h"
#include "worker/shared.h"

enum { VALUE_SIZE = 64 };

typedef struct teller {
    hf_worker *w;
    const hf_plan *plan;
    hf_changes *out;
} teller;

/* ---- lines ---- */

static void tell(teller *t, const char *key, const char *name, const char *was,
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
    t->out->changed++;
    hf_report(t->w, HF_LOG_INFO, "changed", fields, n);
}

static void tell_number(teller *t, const char *key, const char *name, int64_t was,
                        int64_t now)
{
    char texts[2][VALUE_SIZE];
    if (was == now)
        return;
    snprintf(texts[0], VALUE_SIZE, "%lld", (long long)was);
    snprintf(texts[1], VALUE_SIZE, "%lld", (long long)now);
    tell(t, key, name, texts[0], texts[1]);
}

static void tell_time(teller *t, const char *key, int64_t was_ms, int64_t now_ms)
{
    char was[HF_DURATION_SIZE], now[HF_DURATION_SIZE];
    if (was_ms == now_ms)
        return;
    hf_format_duration(was_ms, was);
    hf_format_duration(now_ms, now);
    tell(t, key, NULL, was, now);
}

/* What would take a restart. Without values where these may be secret. */
static void tell_fixed(teller *t, const char *key, const char *now, const char *file)
{
    const hf_log_field fields[] = {{.key = "key", .text = key},
                                   {.key = "now", .text = now},
                                   {.key = "file", .text = file}};
    t->out->fixed++;
    hf_report(t->w, HF_LOG_WARN, "needs a restart", fields, now == NULL ? 1 : 3);
}

static void compare_fixed_text(teller *t, const char *key, const char *now,
                               const char *file)
{
    if (now == file || (now != NULL && file != NULL && strcmp(now, file) == 0))
        return;
    tell_fixed(t, key, NULL, NULL);
}

static void compare_fixed_time(teller *t, const char *key, uint32_t now_ms,
                               uint32_t file_ms)
{
    char now[HF_DURATION_SIZE], file[HF_DURATION_SIZE];
    if (now_ms == file_ms)
        return;
    hf_format_duration(now_ms, now);
    hf_format_duration(file_ms, file);
    tell_fixed(t, key, now, file);
}

/* ---- what cannot change ---- */

static void compare_fixed(teller *t)
{
    const hf_worker *w = t->w;
    const hf_worker_opts *now = &w->opts, *file = &t->plan->opts;
    char texts[2][VALUE_SIZE];
    compare_fixed_text(t, "redis.url", w->server.url, t->plan->server.url);
    compare_fixed_text(t, "redis.password_file", w->server.password_file,
                       t->plan->server.password_file);
    compare_fixed_time(t, "redis.connect_timeout", w->server.connect_timeout_ms,
                       t->plan->server.connect_timeout_ms);
    compare_fixed_time(t, "redis.request_timeout", w->server.request_timeout_ms,
                       t->plan->server.request_timeout_ms);
    if (strcmp(w->ns, t->plan->ns) != 0)
        tell_fixed(t, "namespace", w->ns, t->plan->ns);
    snprintf(texts[0], VALUE_SIZE, "%u", now->concurrency);
    snprintf(texts[1], VALUE_SIZE, "%u", file->concurrency);
    if (now->concurrency != file->concurrency)
        tell_fixed(t, "worker.concurrency", texts[0], texts[1]);
    compare_fixed_time(t, "worker.lease", now->lease_ms, file->lease_ms);
    compare_fixed_time(t, "worker.kill_grace", w->asked_kill_grace_ms,
                       file->kill_grace_ms);
    if (t->plan->n_programs > 0 && !w->has_programs)
        tell_fixed(t, "handlers", "none", "programs");
}

/* ---- what can ---- */

static void compare_opts(teller *t)
{
    static const char *const shapes[] = {"exponential", "linear", "constant"};
    const hf_worker_opts *was = &t->w->opts, *now = &t->plan->opts;
    char texts[2][VALUE_SIZE];
    tell_time(t, "worker.shutdown_timeout", was->shutdown_timeout_ms,
              now->shutdown_timeout_ms);
    if (was->strict != now->strict)
        tell(t, "worker.order", NULL, was->strict ? "strict" : "weighted",
             now->strict ? "strict" : "weighted");
    tell_number(t, "retry.max_attempts", NULL, was->max_attempts, now->max_attempts);
    if (was->backoff != now->backoff)
        tell(t, "retry.backoff", NULL, shapes[was->backoff], shapes[now->backoff]);
    tell_time(t, "retry.base", was->backoff_base_ms, now->backoff_base_ms);
    tell_time(t, "retry.cap", was->backoff_cap_ms, now->backoff_cap_ms);
    snprintf(texts[0], VALUE_SIZE, "%g", was->backoff_jitter);
    snprintf(texts[1], VALUE_SIZE, "%g", now->backoff_jitter);
    if (strcmp(texts[0], texts[1]) != 0)
        tell(t, "retry.jitter", NULL, texts[0], texts[1]);
    tell_number(t, "poison", NULL, was->poison, now->poison);
    tell_number(t, "dead.max", NULL, was->dead_max, now->dead_max);
    tell_time(t, "dead.age", was->dead_age_ms, now->dead_age_ms);
}

/* A file that says nothing of limits leaves them as they are. */
static void compare_limits(teller *t, const char *name, const hf_worker_queue *was,
                           const hf_worker_queue *now)
{
    char rates[2][HF_RATE_SIZE];
    if (was->has_limits && !now->has_limits) {
        tell(t, "queues[].max_running", name, "named", "as it is in Redis");
        tell(t, "queues[].rate", name, "named", "as it is in Redis");
        return;
    }
    if (!now->has_limits)
        return;
    hf_report_rate(was, rates[0]);
    hf_report_rate(now, rates[1]);
    tell_number(t, "queues[].max_running", name, was->max_running, now->max_running);
    if (strcmp(rates[0], rates[1]) != 0)
        tell(t, "queues[].rate", name, rates[0], rates[1]);
}

static void compare_queues(teller *t)
{
    const hf_plan *plan = t->plan;
    bool moved = false;
    size_t place = 0;
    for (size_t i = 0; i < hf_queues_count(t->w); i++)
        if (hf_plan_find(plan, hf_queues_at(t->w, i)->queue.name) == NULL)
            tell(t, "queues", hf_queues_at(t->w, i)->queue.name, NULL, "removed");
    for (size_t i = 0; i < plan->n_queues; i++) {
        const hf_plan_queue *queue = &plan->queues[i];
        const char *name = queue->queue.name;
        const hf_served *served = hf_queues_find(t->w, name);
        if (served == NULL || hf_queue_is(served->state, HF_Q_GONE)) {
            tell(t, "queues", name, NULL, "added");
            continue;
        }
        moved = moved || served->index < place;
        place = served->index;
        tell_number(t, "queues[].weight", name, served->weight, queue->settings.weight);
        compare_limits(t, name, &served->limits, &queue->settings);
    }
    if (moved && plan->opts.strict)
        tell(t, "queues", NULL, NULL, "in another order");
}

static void compare_handlers(teller *t)
{
    const hf_worker *w = t->w;
    const hf_plan *plan = t->plan;
    size_t n = w->has_programs ? plan->n_programs : 0;
    for (size_t i = 0; i < w->n_handlers; i++)
        if (w->handlers[i]->fn == NULL &&
            hf_handlers_find(plan->programs, n, w->handlers[i]->type) == NULL)
            tell(t, "handlers", w->handlers[i]->type, NULL, "removed");
    for (size_t i = 0; i < n; i++) {
        const hf_handler *now = plan->programs[i];
        const hf_handler *was = hf_handlers_find(w->handlers, w->n_handlers, now->type);
        if (was == NULL)
            tell(t, "handlers", now->type, NULL, "added");
        else if (!hf_handler_same(was, now))
            tell(t, "handlers", now->type, NULL, "changed");
    }
}

void hf_changes_tell(hf_worker *w, const hf_plan *plan, hf_changes *out)
{
    teller t = {.w = w, .plan = plan, .out = out};
    *out = (hf_changes){0};
    compare_fixed(&t);
    compare_queues(&t);
    compare_opts(&t);
    compare_handlers(&t);
}
