/* rates.c - how many jobs a second are enqueued and processed, by the library and by the
 * bare loop, in turns; and how much memory a job takes in Redis.
 *
 * The time of the library's processing starts before its paused queue is resumed, and
 * ends when Redis says that no job is left. So it includes waking up, the first small
 * claims and the answer to the last verdict. */
#include <stdlib.h>

#include "base/base.h"
#include "base/clock.h"
#include "bench/parts.h"

enum {
    ROUNDS = 3,
    BARE_BATCH = 100,
    BULK_BATCH = HF_BATCH_JOBS,
    BULK_CLAIM = 1000, /* a claim gives no more */
    CALL_JOBS = HF_BATCH_JOBS,
    CALL_BYTES = 32 << 20, /* of payloads in one call or batch */
    JOB_BYTES = 256        /* of a job beside its payload, at most */
};

static const char our_queue[] = "ours", bare_queue[] = "bare";

typedef struct rates {
    hf_bench *b;
    hf_producer *producer;
    hf_bare *bare;
    hf_job *jobs; /* of one call */
    size_t per_call;
    hf_bench_worker runner;
    atomic_size_t left;                      /* jobs that were not started yet */
    sem_t started;                           /* all of them were */
    double enqueue[ROUNDS], process[ROUNDS]; /* jobs a second */
    double bare_enqueue[ROUNDS], bare_process[ROUNDS];
    double bulk_enqueue[ROUNDS], bulk_process[ROUNDS];
    double bytes[ROUNDS]; /* in Redis, of a job */
} rates;

static size_t at_once(const hf_bench *b, size_t most)
{
    size_t fit = CALL_BYTES / ((size_t)b->opts->payload_bytes + JOB_BYTES);
    size_t n = fit < most ? fit : most;
    return n < 1 ? 1 : n;
}

static double per_second(size_t n, uint64_t since_ns)
{
    return (double)n * 1e9 / (double)(hf_boot_ns() - since_ns);
}

/* ---- ours ---- */

static hf_verdict on_job(hf_run *run, void *arg)
{
    rates *r = arg;
    (void)run;
    if (atomic_fetch_sub_explicit(&r->left, 1, memory_order_relaxed) == 1)
        (void)sem_post(&r->started);
    return HF_VERDICT_DONE;
}

static bool is_empty(const hf_queue_stats *stats)
{
    return stats->ready == 0 && stats->running == 0;
}

static hf_err enqueue(rates *r, double *rate)
{
    hf_bench *b = r->b;
    hf_err err = HF_OK;
    uint64_t start_ns = hf_boot_ns();
    for (size_t left = b->opts->jobs; left > 0 && err == HF_OK;) {
        size_t n = left < r->per_call ? left : r->per_call;
        err = hf_enqueue_wait(r->producer, r->jobs, n, NULL, 0, b->detail);
        left -= n;
    }
    *rate = per_second(b->opts->jobs, start_ns);
    return err;
}

static hf_err pause_queue(hf_bench *b, bool paused)
{
    return hf_admin_pause(b->admin, our_queue, paused, b->detail);
}

static hf_err process(rates *r, double *rate)
{
    hf_bench *b = r->b;
    atomic_store(&r->left, b->opts->jobs);
    uint64_t start_ns = hf_boot_ns();
    hf_err err = pause_queue(b, false);
    if (err == HF_OK)
        err = hf_bench_await_post(b, &r->started, 10 * HF_BENCH_WAIT_MS);
    if (err == HF_OK)
        err = hf_bench_await(b, our_queue, is_empty);
    *rate = per_second(b->opts->jobs, start_ns);
    return err;
}

/* The producer is closed when the memory is read again: the memory of a connection does
 * not count as memory of jobs. */
static hf_err enqueue_and_weigh(rates *r, size_t round)
{
    hf_bench *b = r->b;
    int64_t before = 0, after = 0;
    hf_err weighed = hf_probe_memory(&b->probe, &before);
    hf_err err = hf_bench_producer(b, &r->producer);
    if (err == HF_OK) {
        err = enqueue(r, &r->enqueue[round]);
        hf_producer_close(r->producer, NULL, NULL);
    }
    if (weighed == HF_OK)
        weighed = hf_probe_memory(&b->probe, &after);
    r->bytes[round] = (double)(after - before) / b->opts->jobs;
    if (err == HF_OK && weighed != HF_OK)
        err = hf_bench_fail(b, weighed, b->probe.detail);
    return err;
}

static hf_err our_round(rates *r, size_t round)
{
    const char *const queue = our_queue;
    hf_bench *b = r->b;
    const hf_bench_worker_opts opts = {.queues = &queue,
                                       .n_queues = 1,
                                       .concurrency = b->opts->concurrency,
                                       .lease_ms = HF_BENCH_LEASE_MS,
                                       .fn = on_job,
                                       .arg = r};
    hf_err err = pause_queue(b, true);
    if (err == HF_OK)
        err = hf_bench_worker_start(b, &r->runner, &opts);
    if (err == HF_OK)
        err = enqueue_and_weigh(r, round);
    if (err == HF_OK)
        err = process(r, &r->process[round]);
    return hf_bench_worker_stop(b, &r->runner, err);
}

/* ---- the bare loop's ---- */

static hf_err bare_run(rates *r, size_t batch, size_t claim, double *enqueued,
                       double *processed)
{
    hf_bench *b = r->b;
    size_t n = b->opts->jobs;
    uint64_t start_ns = hf_boot_ns();
    hf_err err = hf_bare_enqueue(r->bare, n, at_once(b, batch));
    *enqueued = per_second(n, start_ns);
    start_ns = hf_boot_ns();
    if (err == HF_OK)
        err = hf_bare_process(r->bare, n, at_once(b, claim));
    *processed = per_second(n, start_ns);
    return err == HF_OK ? HF_OK : hf_bench_fail(b, err, hf_bare_detail(r->bare));
}

static hf_err bare_round(rates *r, size_t round)
{
    hf_err err = bare_run(r, BARE_BATCH, BARE_BATCH, &r->bare_enqueue[round],
                          &r->bare_process[round]);
    if (err == HF_OK)
        err = bare_run(r, BULK_BATCH, BULK_CLAIM, &r->bulk_enqueue[round],
                       &r->bulk_process[round]);
    return err;
}

/* ---- all of it ---- */

static void conclude(rates *r)
{
    hf_bench_result *result = r->b->result;
    result->enqueue_per_s = hf_bench_median(r->enqueue, ROUNDS);
    result->process_per_s = hf_bench_median(r->process, ROUNDS);
    result->bare_enqueue_per_s = hf_bench_median(r->bare_enqueue, ROUNDS);
    result->bare_process_per_s = hf_bench_median(r->bare_process, ROUNDS);
    result->bulk_enqueue_per_s = hf_bench_median(r->bulk_enqueue, ROUNDS);
    result->bulk_process_per_s = hf_bench_median(r->bulk_process, ROUNDS);
    result->bytes_per_job = hf_bench_median(r->bytes, ROUNDS);
    result->enqueue_ratio = result->enqueue_per_s / result->bare_enqueue_per_s;
    result->process_ratio = result->process_per_s / result->bare_process_per_s;
}

static hf_err alternate(rates *r)
{
    hf_err err = HF_OK;
    for (size_t round = 0; round < ROUNDS && err == HF_OK; round++) {
        err = our_round(r, round);
        if (err == HF_OK && hf_bench_stopped(r->b))
            err = HF_CANCEL;
        if (err == HF_OK)
            err = bare_round(r, round);
        if (err == HF_OK && hf_bench_stopped(r->b))
            err = HF_CANCEL;
    }
    return err;
}

hf_err hf_bench_rates(hf_bench *b)
{
    rates r = {.b = b, .per_call = at_once(b, CALL_JOBS)};
    hf_err err = HF_NOMEM;
    r.jobs = calloc(r.per_call, sizeof *r.jobs);
    if (r.jobs == NULL)
        return hf_bench_fail(b, err, hf_err_text(err));
    for (size_t i = 0; i < r.per_call; i++)
        r.jobs[i] =
            (hf_job){HF_JOB_INIT, .queue = our_queue, .type = "bench",
                     .payload = b->payload, .payload_len = b->opts->payload_bytes};
    (void)sem_init(&r.started, 0, 0);
    err = hf_bare_open(&r.bare, b->bare_url, b->password_file, b->ns, bare_queue,
                       b->payload, b->opts->payload_bytes, b->detail);
    if (err == HF_OK)
        err = alternate(&r);
    if (err == HF_OK)
        conclude(&r);
    hf_bare_close(r.bare);
    (void)sem_destroy(&r.started);
    free(r.jobs);
    return err;
}
