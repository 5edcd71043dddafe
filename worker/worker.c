/* worker.c - making a worker: its options, its handlers, its name (holdfast/worker.h). */
#include "worker/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/detail.h"
#include "base/id.h"
#include "base/server_opts.h"
#include "base/structs.h"
#include "worker/handler.h"
#include "worker/heartbeat.h"
#include "worker/life.h"
#include "worker/outbox.h"
#include "worker/past.h"
#include "worker/plan.h"
#include "worker/queues/queues.h"
#include "worker/report.h"
#include "worker/runner/runner.h"
#include "worker/runs.h"
#include "worker/schedules.h"
#include "worker/source/wake.h"

enum { MAGIC = 0x686f6c64 };

/* host-pid-random: unique for each life of a process; a configured name would not be. */
static hf_err make_id(hf_worker *w)
{
    char *host = w->host;
    uint64_t random;
    if (gethostname(host, sizeof w->host) != 0)
        snprintf(host, sizeof w->host, "host");
    host[sizeof w->host - 1] = '\0';
    for (char *p = host; *p != '\0'; p++)
        if (!hf_name_ok_n(p, 1) || *p == ':')
            *p = '_';
    hf_err err = hf_random_bytes(&random, sizeof random);
    if (err != HF_OK)
        return err;
    snprintf(w->id, sizeof w->id, "%s-%ld-%016llx", host, (long)getpid(),
             (unsigned long long)random);
    w->rng.state = random;
    return HF_OK;
}

static void init_locks(hf_worker *w)
{
    pthread_mutex_init(&w->stop_lock, NULL);
    pthread_mutex_init(&w->note_lock, NULL);
    pthread_mutex_init(&w->log_lock, NULL);
    pthread_mutex_init(&w->plan_lock, NULL);
    w->backoff = hf_plan_backoff(&w->opts);
}

/* The minder needs the rest of the lease for its work. */
static void bound_kill_grace(hf_worker *w)
{
    w->asked_kill_grace_ms = w->opts.kill_grace_ms;
    if (w->opts.kill_grace_ms <= w->opts.lease_ms / 4)
        return;
    w->opts.kill_grace_ms = w->opts.lease_ms / 4;
    if (w->asked_kill_grace_ms != HF_KILL_GRACE_MS)
        hf_report_text(w, HF_LOG_WARN, "kill_grace was lowered to a quarter of the lease",
                       NULL, NULL);
}

static void bound_wait_replicas(hf_worker *w)
{
    w->asked_wait_replicas_ms = w->opts.wait_replicas_ms;
    if (w->opts.wait_replicas_ms > w->opts.lease_ms / 2)
        w->opts.wait_replicas_ms = w->opts.lease_ms / 2;
}

static hf_err open_parts(hf_worker *w, const hf_plan *plan)
{
    w->opts = plan->opts;
    hf_err err = hf_counters_new(&w->counters);
    if (err == HF_OK)
        err = hf_wake_new(w);
    if (err == HF_OK)
        err = hf_queues_open(w);
    if (err == HF_OK)
        err = hf_runner_open(w);
    if (err == HF_OK)
        err = hf_outbox_open(w);
    if (err == HF_OK)
        err = hf_past_new(w);
    if (err == HF_OK)
        err = hf_runs_new(w);
    if (err == HF_OK)
        err = hf_heartbeat_new(w);
    if (err == HF_OK)
        err = hf_schedules_new(w);
    return err;
}

static void close_parts(hf_worker *w)
{
    hf_runner_free(w);
    hf_outbox_close(w);
    hf_past_free(w);
    hf_runs_free(w);
    hf_wake_free(w);
    hf_queues_close(w);
    hf_heartbeat_free(w);
    hf_schedules_free(w);
    hf_counters_free(w->counters);
}

static void take_plan(hf_worker *w, hf_plan *plan)
{
    hf_whole *list[HF_QUEUES_MAX];
    snprintf(w->ns, sizeof w->ns, "%s", plan->ns);
    w->server = plan->server;
    if (w->server.tls != NULL && w->server.tls->skip_verify)
        hf_report_text(w, HF_LOG_WARN,
                       "the certificate of Redis is not verified (redis.tls.verify)",
                       NULL, NULL);
    w->minder = plan->minder;
    w->tracer = plan->tracer;
    plan->server = (hf_server_opts){HF_SERVER_OPTS_INIT};
    plan->minder = NULL;
    for (size_t i = 0; i < plan->n_queues; i++)
        list[i] = hf_queues_put(w, &plan->queues[i]);
    hf_queues_order(w, list, plan->n_queues);
    hf_schedules_take(w, plan);
}

hf_err hf_worker_new(hf_worker **out, const hf_worker_opts *opts,
                     char detail[HF_DETAIL_SIZE])
{
    hf_plan *plan;
    hf_err err = hf_plan_new(&plan, opts, NULL, 0, NULL, 0, detail);
    if (err != HF_OK)
        return err;
    hf_worker *w = calloc(1, sizeof *w);
    err = w == NULL ? HF_NOMEM : open_parts(w, plan);
    if (err == HF_OK)
        err = make_id(w);
    if (err != HF_OK) {
        (void)hf_say_err(detail, err);
        if (w != NULL)
            close_parts(w);
        free(w);
        hf_plan_free(plan);
        return err;
    }
    w->magic = MAGIC;
    init_locks(w);
    take_plan(w, plan);
    hf_plan_free(plan);
    bound_kill_grace(w);
    bound_wait_replicas(w);
    *out = w;
    return HF_OK;
}

/* ---- handlers ---- */

static hf_err not_yet_run(const hf_worker *w, char *detail)
{
    HF_ASSERT(w->magic == MAGIC);
    return w->ran ? hf_say(detail, HF_BUSY, "expected a handler before hf_worker_run()")
                  : HF_OK;
}

static hf_err may_add(const hf_worker *w, const char *type, char *detail)
{
    hf_err err = not_yet_run(w, detail);
    if (err != HF_OK)
        return err;
    if (w->n_handlers == HF_COUNT(w->handlers))
        return hf_say(detail, HF_INVALID, "expected at most %zu handlers",
                      HF_COUNT(w->handlers));
    if (type != NULL && hf_handlers_find(w->handlers, w->n_handlers, type) != NULL)
        return hf_say_expected(detail, "one handler for each type", type);
    return HF_OK;
}

/* The new handler stands behind the others. It is freed if a pool has its type. */
static hf_err added(hf_worker *w, char *detail)
{
    hf_handler *handler = w->handlers[w->n_handlers];
    for (size_t i = 0; i < w->n_pools; i++) {
        hf_err err = hf_pool_spec_beside(w->pools[i], &handler, 1, detail);
        if (err == HF_OK)
            continue;
        hf_handler_unref(handler);
        return err;
    }
    w->n_handlers++;
    w->n_own++;
    w->only_programs = hf_handlers_only_programs(w->handlers, w->n_handlers);
    return HF_OK;
}

hf_err hf_worker_handle(hf_worker *w, const char *type, uint32_t timeout_ms,
                        hf_handler_fn fn, void *arg, char detail[HF_DETAIL_SIZE])
{
    hf_err err = may_add(w, type, detail);
    if (err == HF_OK)
        err = hf_handler_of_function(&w->handlers[w->n_handlers], type, timeout_ms, fn,
                                     arg, detail);
    return err == HF_OK ? added(w, detail) : err;
}

hf_err hf_worker_handle_program(hf_worker *w, const hf_program *theirs,
                                char detail[HF_DETAIL_SIZE])
{
    hf_program program;
    hf_err err = hf_struct_in(&program, sizeof program, theirs, "hf_program", detail);
    if (err == HF_OK)
        err = may_add(w, program.type, detail);
    if (err == HF_OK)
        err = hf_handler_of_program(&w->handlers[w->n_handlers], &program, detail);
    if (err == HF_OK)
        err = added(w, detail);
    w->has_programs = w->has_programs || err == HF_OK;
    return err;
}

hf_err hf_worker_pool(hf_worker *w, const hf_pool *theirs, char detail[HF_DETAIL_SIZE])
{
    hf_pool pool;
    hf_pool_spec *spec;
    hf_err err = not_yet_run(w, detail);
    if (err == HF_OK)
        err = hf_struct_in(&pool, sizeof pool, theirs, "hf_pool", detail);
    if (err == HF_OK && w->n_pools == HF_POOLS_MAX)
        err = hf_say(detail, HF_INVALID, "expected at most %d pools", HF_POOLS_MAX);
    if (err == HF_OK)
        err = hf_pool_spec_new(&spec, &pool, detail);
    if (err != HF_OK)
        return err;
    err = hf_pool_specs_fit(w->pools, w->n_pools, spec, detail);
    if (err == HF_OK)
        err = hf_pool_spec_beside(spec, w->handlers, w->n_handlers, detail);
    if (err != HF_OK) {
        hf_pool_spec_unref(spec);
        return err;
    }
    w->pools[w->n_pools++] = spec;
    w->has_programs = true;
    w->only_programs = hf_handlers_only_programs(w->handlers, w->n_handlers);
    return HF_OK;
}

/* ---- from any thread ---- */

static void wake(hf_worker *w)
{
    if (atomic_load(&w->async_ready))
        uv_async_send(&w->async);
}

void hf_worker_stop(hf_worker *w)
{
    atomic_fetch_add(&w->stops, 1);
    wake(w);
}

void hf_worker_quiet(hf_worker *w)
{
    atomic_store(&w->quiet_wanted, true);
    atomic_fetch_add(&w->orders, 1);
    wake(w);
}

void hf_worker_resume(hf_worker *w)
{
    atomic_store(&w->quiet_wanted, false);
    atomic_fetch_add(&w->orders, 1);
    wake(w);
}

/* ---- the rest ---- */

void hf_worker_free(hf_worker *w)
{
    if (w == NULL)
        return;
    HF_ASSERT(w->magic == MAGIC);
    hf_life_free(w);
    for (size_t i = 0; i < w->n_handlers; i++)
        hf_handler_unref(w->handlers[i]);
    for (size_t i = 0; i < w->n_pools; i++)
        hf_pool_spec_unref(w->pools[i]);
    pthread_mutex_destroy(&w->stop_lock);
    pthread_mutex_destroy(&w->note_lock);
    pthread_mutex_destroy(&w->log_lock);
    pthread_mutex_destroy(&w->plan_lock);
    hf_plan_free(w->next_plan);
    close_parts(w);
    hf_server_opts_free(&w->server);
    free(w->minder);
    w->magic = 0;
    free(w);
}

const char *hf_worker_id(const hf_worker *w)
{
    return w->id;
}

size_t hf_worker_unreturned(const hf_worker *w)
{
    return w->unreturned;
}
