/* lateness.c - how long after its time a delayed job starts, while many others are
 * delayed for longer. All times are on Redis's clock. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "bench/parts.h"

enum {
    LEAD_MS = 500, /* from enqueueing them to when the first is due */
    CALL_JOBS = 5000,
    PAYLOAD_MAX = 100, /* always many, independent of the options */
    CONCURRENCY = 16,
    HOUR_MS = 3600 * 1000,
    WAITING = 100000, /* jobs that are delayed for an hour, in the same queue */
    JOBS = 2000,      /* that become due within SPAN_MS */
    SPAN_MS = 10000
};

static const char queue_name[] = "delayed";

typedef struct lateness {
    hf_bench *b;
    int64_t offset_ns;    /* of Redis's clock from this machine's */
    int64_t due_ms[JOBS]; /* of each job, in order */
    double ms[JOBS];      /* how late each was */
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
    for (size_t i = 0; i < JOBS; i++)
        l->due_ms[i] = first_ms + (int64_t)hf_bench_random(l->b, SPAN_MS);
    qsort(l->due_ms, JOBS, sizeof *l->due_ms, by_time);
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
    if (i >= JOBS)
        return HF_VERDICT_DEAD;
    l->ms[i] = late;
    if (i == JOBS - 1)
        (void)sem_post(&l->all_started);
    return HF_VERDICT_DONE;
}

static hf_err enqueue_waiting(lateness *l, hf_producer *producer, hf_job *jobs)
{
    hf_err err = HF_OK;
    size_t len = l->b->opts->payload_bytes;
    for (size_t i = 0; i < CALL_JOBS; i++)
        jobs[i] = (hf_job){HF_JOB_INIT,
                           .queue = queue_name,
                           .type = "bench",
                           .payload = l->b->payload,
                           .payload_len = len < PAYLOAD_MAX ? len : PAYLOAD_MAX,
                           .delay_ms = HOUR_MS};
    for (size_t left = WAITING, n; left > 0 && err == HF_OK; left -= n) {
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
    for (size_t sent = 0, n; sent < JOBS && err == HF_OK; sent += n) {
        n = JOBS - sent < CALL_JOBS ? JOBS - sent : CALL_JOBS;
        for (size_t i = 0; i < n; i++)
            jobs[i] = (hf_job){HF_JOB_INIT,
                               .queue = queue_name,
                               .type = "bench",
                               .payload = &l->due_ms[sent + i],
                               .payload_len = sizeof l->due_ms[0],
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
    hf_bench_worker runner = {.worker = NULL};
    const hf_bench_worker_opts opts = {.queues = &queue,
                                       .n_queues = 1,
                                       .concurrency = CONCURRENCY,
                                       .lease_ms = HF_BENCH_LEASE_MS,
                                       .fn = on_job,
                                       .arg = l};
    hf_err err = hf_bench_worker_start(l->b, &runner, &opts);
    if (err == HF_OK)
        err = enqueue_both(l);
    if (err == HF_OK)
        err = hf_bench_await_post(l->b, &l->all_started, SPAN_MS + HF_BENCH_WAIT_MS);
    return hf_bench_worker_stop(l->b, &runner, err);
}

hf_err hf_bench_lateness(hf_bench *b)
{
    lateness *l = calloc(1, sizeof *l);
    if (l == NULL)
        return hf_bench_fail(b, HF_NOMEM, hf_err_text(HF_NOMEM));
    l->b = b;
    (void)sem_init(&l->all_started, 0, 0);
    hf_err err = hf_probe_clock(&b->probe, &l->offset_ns);
    if (err != HF_OK)
        (void)hf_bench_fail(b, err, b->probe.detail);
    else
        err = measure_jobs(l);
    if (err == HF_OK)
        b->result->lateness_ms = hf_bench_spread(l->ms, JOBS);
    (void)sem_destroy(&l->all_started);
    free(l);
    return err;
}
