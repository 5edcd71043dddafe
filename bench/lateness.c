/* lateness.c - how long after its time a delayed job starts, while many others are
 * delayed for longer; and how late a thread is that only sleeps until each of these
 * times. All times are on Redis's clock. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "bench/parts.h"

enum {
    LEAD_MS = 500, /* from enqueueing them to when the first is due */
    CALL_JOBS = 5000,
    PAYLOAD_MAX = 100, /* they are many, whatever is asked for elsewhere */
    CONCURRENCY = 16,
    BURST_MAX = 50, /* jobs */
    HOUR_MS = 3600 * 1000
};

static const char queue_name[] = "delayed";

typedef struct lateness {
    hf_bench *b;
    const hf_late_plan *plan;
    int64_t offset_ns; /* of Redis's clock from this machine's */
    int64_t *due_ms;   /* of each job, in order */
    double *ms;        /* how late each was */
    atomic_size_t n;
    sem_t all_started;
} lateness;

static double late_ms(const lateness *l, int64_t due_ms)
{
    return (double)(hf_probe_wall_ns() + l->offset_ns - due_ms * 1000000) / 1e6;
}

/* ---- when ---- */

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The times at which the jobs are due, from `first_ms` on. */
static void plan_times(lateness *l, int64_t first_ms)
{
    const hf_late_plan *plan = l->plan;
    for (size_t i = 0, burst; i < plan->jobs; i += burst) {
        uint64_t at = hf_bench_random(l->b, plan->span_ms);
        burst = plan->how == HF_LATE_BURSTS ? 1 + hf_bench_random(l->b, 2 * BURST_MAX - 1)
                                            : 1;
        burst = burst < plan->jobs - i ? burst : plan->jobs - i;
        if (plan->how == HF_LATE_EVENLY)
            at = i * plan->span_ms / plan->jobs;
        for (size_t k = i; k < i + burst; k++)
            l->due_ms[k] = first_ms + (int64_t)at;
    }
    qsort(l->due_ms, plan->jobs, sizeof *l->due_ms, by_time);
}

static int64_t redis_ms(const lateness *l)
{
    return (hf_probe_wall_ns() + l->offset_ns) / 1000000;
}

/* ---- the jobs ---- */

/* Its payload is the time at which it is due. */
static hf_verdict on_job(hf_run *run, void *arg)
{
    lateness *l = arg;
    int64_t due_ms;
    size_t len;
    const void *payload = hf_run_payload(run, &len);
    if (len != sizeof due_ms)
        return HF_VERDICT_DEAD;
    memcpy(&due_ms, payload, sizeof due_ms);
    double late = late_ms(l, due_ms);
    size_t i = atomic_fetch_add(&l->n, 1);
    if (i >= l->plan->jobs)
        return HF_VERDICT_DEAD;
    l->ms[i] = late;
    if (i == l->plan->jobs - 1)
        (void)sem_post(&l->all_started);
    return HF_VERDICT_DONE;
}

static hf_err enqueue_waiting(lateness *l, hf_producer *producer, hf_job *jobs)
{
    hf_err err = HF_OK;
    size_t len = l->b->opts->payload_bytes;
    for (size_t i = 0; i < CALL_JOBS; i++)
        jobs[i] = (hf_job){.queue = queue_name,
                           .type = "bench",
                           .payload = l->b->payload,
                           .payload_len = len < PAYLOAD_MAX ? len : PAYLOAD_MAX,
                           .delay_ms = HOUR_MS};
    for (size_t left = l->plan->waiting, n; left > 0 && err == HF_OK; left -= n) {
        n = left < CALL_JOBS ? left : CALL_JOBS;
        err = hf_bench_stopped(l->b)
                  ? HF_CANCEL
                  : hf_enqueue_wait(producer, jobs, n, NULL, 0, l->b->detail);
    }
    return err;
}

static hf_err enqueue_due(lateness *l, hf_producer *producer, hf_job *jobs)
{
    hf_err err = HF_OK;
    plan_times(l, redis_ms(l) + LEAD_MS);
    for (size_t sent = 0, n; sent < l->plan->jobs && err == HF_OK; sent += n) {
        n = l->plan->jobs - sent < CALL_JOBS ? l->plan->jobs - sent : CALL_JOBS;
        for (size_t i = 0; i < n; i++)
            jobs[i] = (hf_job){.queue = queue_name,
                               .type = "bench",
                               .payload = &l->due_ms[sent + i],
                               .payload_len = sizeof *l->due_ms,
                               .at_ms = l->due_ms[sent + i]};
        err = hf_enqueue_wait(producer, jobs, n, NULL, 0, l->b->detail);
    }
    if (err == HF_OK && redis_ms(l) >= l->due_ms[0])
        return hf_bench_fail(l->b, HF_TIMEOUT, "the first jobs were due too soon");
    return err;
}

static hf_err enqueue_both(lateness *l)
{
    hf_producer *producer;
    hf_job *jobs = calloc(CALL_JOBS, sizeof *jobs);
    if (jobs == NULL)
        return hf_bench_fail(l->b, HF_NOMEM, hf_err_text(HF_NOMEM));
    hf_err err = hf_bench_producer(l->b, &producer);
    if (err == HF_OK) {
        err = enqueue_waiting(l, producer, jobs);
        if (err == HF_OK)
            err = enqueue_due(l, producer, jobs);
        hf_producer_close(producer, NULL, NULL);
    }
    free(jobs);
    return err;
}

static hf_err measure_jobs(lateness *l)
{
    static const char *const queue = queue_name;
    hf_crew crew = {.worker = NULL};
    const hf_crew_opts opts = {.queues = &queue,
                               .n_queues = 1,
                               .concurrency = CONCURRENCY,
                               .lease_ms = HF_BENCH_LEASE_MS,
                               .fn = on_job,
                               .arg = l};
    hf_err err = hf_crew_start(l->b, &crew, &opts);
    if (err == HF_OK)
        err = enqueue_both(l);
    if (err == HF_OK)
        err = hf_bench_await_post(l->b, &l->all_started,
                                  l->plan->span_ms + HF_BENCH_WAIT_MS);
    return hf_crew_stop(l->b, &crew, err);
}

/* ---- the bare timer ---- */

/* The same times once more, and nothing else is done at them. */
static hf_err measure_bare(lateness *l)
{
    int64_t shift_ms = redis_ms(l) + LEAD_MS - l->due_ms[0];
    for (size_t i = 0; i < l->plan->jobs; i++) {
        int64_t due_ms = l->due_ms[i] + shift_ms;
        int64_t at_ns = due_ms * 1000000 - l->offset_ns;
        const struct timespec at = {.tv_sec = (time_t)(at_ns / 1000000000),
                                    .tv_nsec = (long)(at_ns % 1000000000)};
        while (late_ms(l, due_ms) < 0)
            (void)clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &at, NULL);
        l->ms[i] = late_ms(l, due_ms);
        if (i % 1000 == 0 && hf_bench_stopped(l->b))
            return HF_CANCEL;
    }
    return HF_OK;
}

/* ---- both ---- */

static hf_late_seen see(const lateness *l)
{
    hf_late_seen seen = {.ms = hf_bench_spread(l->ms, l->plan->jobs)};
    seen.least_ms = l->ms[0]; /* they are sorted now */
    seen.most_ms = l->ms[l->plan->jobs - 1];
    while (seen.early < l->plan->jobs && l->ms[seen.early] < 0)
        seen.early++;
    return seen;
}

hf_err hf_bench_late(hf_bench *b, const hf_late_plan *plan, hf_late_seen *ours,
                     hf_late_seen *bare)
{
    lateness l = {.b = b,
                  .plan = plan,
                  .due_ms = calloc(plan->jobs, sizeof *l.due_ms),
                  .ms = calloc(plan->jobs, sizeof *l.ms)};
    (void)sem_init(&l.all_started, 0, 0);
    hf_err err = HF_OK;
    if (l.due_ms == NULL || l.ms == NULL)
        err = hf_bench_fail(b, HF_NOMEM, hf_err_text(HF_NOMEM));
    if (err == HF_OK)
        err = hf_probe_clock(&b->probe, &l.offset_ns);
    if (err != HF_OK)
        (void)hf_bench_fail(b, err, b->probe.detail);
    else
        err = measure_jobs(&l);
    if (err == HF_OK)
        *ours = see(&l);
    if (err == HF_OK && bare != NULL) {
        err = measure_bare(&l);
        *bare = err == HF_OK ? see(&l) : (hf_late_seen){.early = 0};
    }
    (void)sem_destroy(&l.all_started);
    free(l.due_ms);
    free(l.ms);
    return err;
}

hf_err hf_bench_lateness(hf_bench *b)
{
    const hf_late_plan plan = {
        .waiting = 100000, .jobs = 2000, .span_ms = 10000, .how = HF_LATE_AT_RANDOM};
    hf_late_seen seen;
    hf_err err = hf_bench_late(b, &plan, &seen, NULL);
    if (err == HF_OK)
        b->result->lateness_ms = seen.ms;
    return err;
}
