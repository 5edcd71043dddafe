/* reload.c - another plan for a worker that runs (holdfast/worker.h).
 *
 * Any thread checks and copies the plan and leaves it at `next_plan`; the loop takes it
 * whole, between two events. First everything that was claimed and has not started comes
 * back from the pool: from here on nothing starts. Then the log is told what will change,
 * then it is changed, and then each job that waits is looked at again: it may have
 * another handler now, or none, or its queue is served no more. A job that was started
 * keeps its handler, its time-out and its slot. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/changes.h"
#include "worker/life.h"
#include "worker/queues.h"
#include "worker/report.h"
#include "worker/running.h"
#include "worker/waking.h"

/* ---- from any thread ---- */

/* Under plan_lock. The functions stay, beside any set of programs. */
static hf_err check_types(const hf_worker *w, const hf_plan *plan,
                          char detail[HF_DETAIL_SIZE])
{
    size_t n = plan->n_programs;
    for (size_t i = 0; i < w->n_handlers; i++) {
        const hf_handler *handler = w->handlers[i];
        if (handler->fn == NULL)
            continue;
        if (hf_handlers_find(plan->programs, plan->n_programs, handler->type) != NULL)
            return hf_plan_refuse(detail, "one handler for each type", handler->type);
        n++;
    }
    if (n == 0)
        return hf_plan_refuse(detail, "a handler", "none");
    if (n > HF_TYPES_MAX)
        return hf_plan_refuse(detail, "at most 1000 handlers", "more");
    return HF_OK;
}

hf_err hf_worker_reload(hf_worker *w, const hf_worker_opts *opts,
                        const hf_program *programs, size_t n, char detail[HF_DETAIL_SIZE])
{
    hf_plan *plan;
    hf_err err = hf_plan_new(&plan, opts, programs, n, detail);
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

/* False: so many queues were taken out that still have jobs here, that the new ones find
 * no place. */
static bool have_room(hf_worker *w, const hf_plan *plan)
{
    char text[HF_DETAIL_SIZE];
    size_t room = hf_queues_room(w), needed = 0;
    for (size_t i = 0; i < plan->n_queues; i++)
        needed += hf_queues_find(w, plan->queues[i].queue.name) == NULL ? 1 : 0;
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

static void take_queues(hf_worker *w, const hf_plan *plan)
{
    hf_served *list[HF_QUEUES_MAX];
    size_t n = hf_queues_count(w), left = 0;
    for (size_t i = 0; i < n; i++)
        if (hf_plan_find(plan, hf_queues_at(w, i)->queue.name) == NULL) {
            hf_queue_on(hf_queues_at(w, i), HF_E_LEAVE);
            left++;
        }
    for (size_t i = 0; i < plan->n_queues; i++)
        list[i] = hf_queues_put(w, &plan->queues[i]);
    hf_queues_order(w, list, plan->n_queues);
    if (left > 0 || plan->n_queues != n)
        hf_wake_queues_changed(w, left > 0);
}

/* The table is read by other threads, under plan_lock, and changed here alone. */
static void take_programs(hf_worker *w, hf_plan *plan)
{
    size_t n = 0;
    if (!w->has_programs)
        return;
    pthread_mutex_lock(&w->plan_lock);
    for (size_t i = 0; i < w->n_handlers; i++) {
        if (w->handlers[i]->fn != NULL)
            w->handlers[n++] = w->handlers[i];
        else
            hf_handler_unref(w->handlers[i]);
    }
    for (size_t i = 0; i < plan->n_programs; i++)
        w->handlers[n++] = hf_handler_ref(plan->programs[i]);
    w->n_handlers = n;
    w->only_programs = hf_handlers_only_programs(w->handlers, n);
    pthread_mutex_unlock(&w->plan_lock);
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
    w->opts.poison = o->poison;
    w->opts.dead_max = o->dead_max;
    w->opts.dead_age_ms = o->dead_age_ms;
    w->backoff = hf_backoff_of(&w->opts);
}

/* False: nothing was changed. */
static bool apply(hf_worker *w, hf_plan *plan)
{
    hf_changes changes;
    if (w->phase != HF_STARTING && w->phase != HF_SERVING) {
        hf_report_text(w, HF_LOG_INFO, "stopping: the reload is ignored", NULL, NULL);
        return false;
    }
    if (!have_room(w, plan))
        return false;
    hf_running_recall(w);
    hf_changes_tell(w, plan, &changes);
    take_queues(w, plan);
    take_programs(w, plan);
    take_opts(w, &plan->opts);
    hf_running_choose_anew(w);
    const hf_log_field fields[] = {
        {.key = "queues", .number = (int64_t)hf_queues_count(w)},
        {.key = "handlers", .number = (int64_t)w->n_handlers},
        {.key = "changed", .number = (int64_t)changes.changed},
        {.key = "needs_restart", .number = (int64_t)changes.fixed}};
    hf_report(w, HF_LOG_INFO, "reloaded", fields, sizeof fields / sizeof fields[0]);
    hf_server_tell(w);
    hf_wake_timers(w);
    hf_beat_send(w);
    return true;
}

void hf_reload_take(hf_worker *w)
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
