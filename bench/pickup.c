/* pickup.c - how long after an enqueue one idle worker starts the job; and the same for
 * the bare loop: a second thread that blocks on the baton and then claims.
 *
 * Both work alike: one thread of this process enqueues, at random intervals, with a call
 * that waits for its answer; other threads of this process receive. One clock measures
 * from just before the enqueue to the handler's start, or to the claim's answer. The
 * worker is measured twice: with the library's producer, whose requests have a number
 * that Redis remembers, and with the bare connection, as the bare loop is. The time of a
 * round trip depends on the load just before it, so both sides take turns in short
 * blocks. */
#include <stdio.h>

#include "base/base.h"
#include "base/clock.h"
#include "bench/parts.h"

enum {
    BLOCKS = 40,
    BLOCK_JOBS = 25,
    WARM_UP = 3, /* jobs of each block that are not counted */
    SAMPLES = BLOCKS * BLOCK_JOBS,
    SPACE_MIN_US = 1000,
    SPACE_US = 4000, /* and up to this much more */
    MISSED_MS = 5000
};

static const char our_queue[] = "pick-up", bare_queue[] = "bare-pick-up";

typedef struct pickup {
    hf_bench *b;
    hf_producer *producer;
    hf_bare *our_bare_producer, *bare_producer, *bare_worker;
    hf_err bare_err; /* of the bare worker's thread */
    hf_bench_worker runner;
    sem_t started;
    _Atomic uint64_t started_ns;
    double us[SAMPLES], alike_us[SAMPLES], bare_us[SAMPLES];
} pickup;

static void has_started(pickup *p, uint64_t now_ns)
{
    atomic_store(&p->started_ns, now_ns);
    (void)sem_post(&p->started);
}

/* One job after the other; `put` enqueues one. */
static hf_err one_block(pickup *p, hf_err (*put)(pickup *p), double *us)
{
    hf_err err = HF_OK;
    for (int i = -WARM_UP; i < BLOCK_JOBS && err == HF_OK; i++) {
        hf_bench_pause_us(SPACE_MIN_US + hf_bench_random(p->b, SPACE_US));
        uint64_t before_ns = hf_boot_ns();
        err = put(p);
        if (err == HF_OK)
            err = hf_bench_await_post(p->b, &p->started, MISSED_MS);
        if (i >= 0)
            us[i] = (double)(atomic_load(&p->started_ns) - before_ns) / 1000;
    }
    return err;
}

/* ---- ours ---- */

static hf_verdict on_job(hf_run *run, void *arg)
{
    (void)run;
    has_started(arg, hf_boot_ns());
    return HF_VERDICT_DONE;
}

static hf_err put_ours(pickup *p)
{
    const hf_job job = {HF_JOB_INIT, .queue = our_queue, .type = "bench",
                        .payload = p->b->payload,
                        .payload_len = p->b->opts->payload_bytes};
    return hf_enqueue_wait(p->producer, &job, 1, NULL, 0, p->b->detail);
}

static hf_err put_by(pickup *p, hf_bare *producer)
{
    hf_err err = hf_bare_enqueue(producer, 1, 1);
    return err == HF_OK ? HF_OK : hf_bench_fail(p->b, err, hf_bare_detail(producer));
}

static hf_err put_alike(pickup *p)
{
    return put_by(p, p->our_bare_producer);
}

/* ---- the bare loop's ---- */

static void *bare_main(void *arg)
{
    pickup *p = arg;
    p->bare_err = HF_OK;
    for (int i = -WARM_UP; i < BLOCK_JOBS && p->bare_err == HF_OK; i++) {
        uint64_t picked_ns;
        p->bare_err = hf_bare_pick_up(p->bare_worker, &picked_ns);
        if (p->bare_err != HF_OK)
            break;
        has_started(p, picked_ns);
        p->bare_err = hf_bare_put_down(p->bare_worker);
    }
    return NULL;
}

static hf_err put_bare(pickup *p)
{
    return put_by(p, p->bare_producer);
}

static hf_err bare_block(pickup *p, double *us)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, bare_main, p) != 0)
        return hf_bench_fail(p->b, HF_SYSTEM, "no thread can be started");
    hf_err err = one_block(p, put_bare, us);
    (void)pthread_join(thread, NULL); /* it waits for a baton at most for a few seconds */
    if (p->bare_err != HF_OK && err != HF_CANCEL)
        err = hf_bench_fail(p->b, p->bare_err, hf_bare_detail(p->bare_worker));
    return err;
}

/* ---- all of it ---- */

static hf_err open_all(pickup *p)
{
    static const char *const queue = our_queue;
    hf_bench *b = p->b;
    const hf_bench_worker_opts opts = {.queues = &queue,
                                       .n_queues = 1,
                                       .concurrency = b->opts->concurrency,
                                       .lease_ms = HF_BENCH_LEASE_MS,
                                       .fn = on_job,
                                       .arg = p};
    hf_err err = hf_bare_open(&p->bare_producer, b->bare_url, b->password_file, b->ns,
                              bare_queue, b->payload, b->opts->payload_bytes, b->detail);
    if (err == HF_OK)
        err = hf_bare_open(&p->our_bare_producer, b->bare_url, b->password_file, b->ns,
                           our_queue, b->payload, b->opts->payload_bytes, b->detail);
    if (err == HF_OK)
        err = hf_bare_open(&p->bare_worker, b->bare_url, b->password_file, b->ns,
                           bare_queue, NULL, 0, b->detail);
    if (err == HF_OK)
        err = hf_bench_producer(b, &p->producer);
    return err == HF_OK ? hf_bench_worker_start(b, &p->runner, &opts) : err;
}

hf_err hf_bench_pickup(hf_bench *b)
{
    pickup p = {.b = b};
    (void)sem_init(&p.started, 0, 0);
    hf_err err = open_all(&p);
    for (size_t i = 0; i < BLOCKS && err == HF_OK; i++) {
        err = one_block(&p, put_ours, &p.us[i * BLOCK_JOBS]);
        if (err == HF_OK)
            err = one_block(&p, put_alike, &p.alike_us[i * BLOCK_JOBS]);
        if (err == HF_OK)
            err = bare_block(&p, &p.bare_us[i * BLOCK_JOBS]);
    }
    if (err == HF_OK) {
        b->result->pickup_us = hf_bench_spread(p.us, SAMPLES);
        b->result->alike_pickup_us = hf_bench_spread(p.alike_us, SAMPLES);
        b->result->bare_pickup_us = hf_bench_spread(p.bare_us, SAMPLES);
    }
    err = hf_bench_worker_stop(b, &p.runner, err);
    if (p.producer != NULL)
        hf_producer_close(p.producer, NULL, NULL);
    hf_bare_close(p.our_bare_producer);
    hf_bare_close(p.bare_producer);
    hf_bare_close(p.bare_worker);
    (void)sem_destroy(&p.started);
    return err;
}
