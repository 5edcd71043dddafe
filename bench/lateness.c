/* lateness.c - how long after its time a delayed job starts, while many others are
 * delayed for longer: due times at random within some seconds, on Redis's clock. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "bench/parts.h"

enum {
    DELAYED = 100000, /* for an hour */
    DUE = 2000,       /* within SPAN_MS */
    SPAN_MS = 10000,
    LEAD_MS = 300, /* from enqueueing them to when the first is due */
    CALL_JOBS = 5000,
    PAYLOAD_MAX = 100, /* they are many, whatever is asked for elsewhere */
    CONCURRENCY = 16,
    HOUR_MS = 3600 * 1000
};

static const char queue_name[] = "delayed";

typedef struct lateness {
    hf_bench *b;
    int64_t offset_ns; /* of Redis's clock from this machine's */
    atomic_size_t n;
    sem_t all_started;
    double ms[DUE];
} lateness;

/* Its payload is the time at which it is due. */
static hf_verdict on_job(hf_run *run, void *arg)
{
    int64_t now_ns = hf_probe_wall_ns(), due_ms;
    lateness *l = arg;
    size_t len;
    const void *payload = hf_run_payload(run, &len);
    size_t i = atomic_fetch_add(&l->n, 1);
    if (len != sizeof due_ms || i >= DUE)
        return HF_VERDICT_DEAD;
    memcpy(&due_ms, payload, sizeof due_ms);
    l->ms[i] = (double)(now_ns + l->offset_ns - due_ms * 1000000) / 1e6;
    if (i == DUE - 1)
        (void)sem_post(&l->all_started);
    return HF_VERDICT_DONE;
}

static hf_err enqueue_delayed(lateness *l, hf_producer *producer, hf_job *jobs)
{
    hf_err err = HF_OK;
    size_t len = l->b->opts->payload_bytes;
    for (size_t i = 0; i < CALL_JOBS; i++)
        jobs[i] = (hf_job){.queue = queue_name,
                           .type = "bench",
                           .payload = l->b->payload,
                           .payload_len = len < PAYLOAD_MAX ? len : PAYLOAD_MAX,
                           .delay_ms = HOUR_MS};
    for (size_t sent = 0; sent < DELAYED && err == HF_OK; sent += CALL_JOBS)
        err = hf_enqueue_wait(producer, jobs, CALL_JOBS, NULL, 0, l->b->detail);
    return err;
}

static hf_err enqueue_due(lateness *l, hf_producer *producer, hf_job *jobs)
{
    int64_t due_ms[DUE];
    int64_t first_ms = (hf_probe_wall_ns() + l->offset_ns) / 1000000 + LEAD_MS;
    for (size_t i = 0; i < DUE; i++) {
        due_ms[i] = first_ms + (int64_t)hf_bench_random(l->b, SPAN_MS);
        jobs[i] = (hf_job){.queue = queue_name,
                           .type = "bench",
                           .payload = &due_ms[i],
                           .payload_len = sizeof due_ms[i],
                           .at_ms = due_ms[i]};
    }
    return hf_enqueue_wait(producer, jobs, DUE, NULL, 0, l->b->detail);
}

static hf_err enqueue_both(lateness *l, hf_job *jobs)
{
    hf_producer *producer;
    hf_err err = hf_bench_producer(l->b, &producer);
    if (err != HF_OK)
        return err;
    err = enqueue_delayed(l, producer, jobs);
    if (err == HF_OK)
        err = enqueue_due(l, producer, jobs);
    hf_producer_close(producer, NULL, NULL);
    return err;
}

hf_err hf_bench_lateness(hf_bench *b)
{
    static const char *const queue = queue_name;
    lateness l = {.b = b};
    hf_crew crew = {.worker = NULL};
    const hf_crew_opts opts = {.queues = &queue,
                               .n_queues = 1,
                               .concurrency = CONCURRENCY,
                               .lease_ms = HF_BENCH_LEASE_MS,
                               .fn = on_job,
                               .arg = &l};
    hf_job *jobs = calloc(CALL_JOBS, sizeof *jobs);
    if (jobs == NULL)
        return hf_bench_fail(b, HF_NOMEM, hf_err_text(HF_NOMEM));
    (void)sem_init(&l.all_started, 0, 0);
    hf_err err = hf_probe_clock(&b->probe, &l.offset_ns);
    if (err != HF_OK)
        (void)hf_bench_fail(b, err, b->probe.detail);
    else
        err = hf_crew_start(b, &crew, &opts);
    if (err == HF_OK)
        err = enqueue_both(&l, jobs);
    if (err == HF_OK)
        err = hf_bench_await_post(b, &l.all_started, SPAN_MS + HF_BENCH_WAIT_MS);
    err = hf_crew_stop(b, &crew, err);
    if (err == HF_OK)
        b->result->lateness_ms = hf_bench_spread(l.ms, DUE);
    (void)sem_destroy(&l.all_started);
    free(jobs);
    return err;
}
