/* recovery.c - measures how long after the SIGKILL of its worker a job starts in another,
 * idle worker.
 *
 * Each victim is a process with a queue of its own: several die at the same time, and no
 * death helps to find another. All workers have run for two leases by then: a job of a
 * worker that dies sooner may take one lease longer. Leases are short here, as the output
 * says: recovery takes about the rest of one lease. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/base.h"
#include "base/clock.h"
#include "bench/parts.h"
#include "bench/victim.h"

enum {
    VICTIMS = 10,
    ROUNDS = 2,
    SAMPLES = VICTIMS * ROUNDS,
    LEASE_MS = 1000,
    KNOWN_MS = 2 * LEASE_MS,        /* by then no worker is new to Redis's clock */
    KILL_AFTER_MS = KNOWN_MS + 200, /* and up to two leases more */
    LOST_MS = 10 * LEASE_MS
};

typedef struct recovery {
    hf_bench *b;
    char names[SAMPLES][16]; /* of the queues */
    pid_t pids[SAMPLES];     /* 0: it is not there any more */
    uint64_t killed_ns[SAMPLES];
    _Atomic uint64_t started_ns[SAMPLES];
    sem_t started;
} recovery;

/* ---- the worker that is left ---- */

static hf_verdict on_job(hf_run *run, void *arg)
{
    uint64_t now_ns = hf_boot_ns();
    recovery *r = arg;
    for (size_t i = 0; i < SAMPLES; i++) {
        if (strcmp(hf_run_queue(run), r->names[i]) == 0)
            atomic_store(&r->started_ns[i], now_ns);
    }
    (void)sem_post(&r->started);
    return HF_VERDICT_DONE;
}

/* ---- the victims ---- */

static bool is_held(const hf_queue_stats *stats)
{
    return stats->running == 1;
}

static hf_err enqueue_for(recovery *r, size_t first)
{
    hf_job jobs[VICTIMS];
    hf_producer *producer;
    hf_err err = hf_bench_producer(r->b, &producer);
    if (err != HF_OK)
        return err;
    for (size_t i = 0; i < VICTIMS; i++)
        jobs[i] = (hf_job){HF_JOB_INIT, .queue = r->names[first + i], .type = "bench"};
    err = hf_enqueue_wait(producer, jobs, VICTIMS, NULL, 0, r->b->detail);
    hf_producer_close(producer, NULL, NULL);
    return err;
}

static hf_err start_victims(recovery *r, size_t first)
{
    hf_bench *b = r->b;
    hf_err err = enqueue_for(r, first);
    for (size_t i = first; i < first + VICTIMS && err == HF_OK; i++)
        err = hf_victim_start(&r->pids[i],
                              &(hf_victim_opts){.url = b->url,
                                                .password_file = b->password_file,
                                                .ns = b->ns,
                                                .queue = r->names[i],
                                                .lease_ms = LEASE_MS},
                              b->detail);
    for (size_t i = first; i < first + VICTIMS && err == HF_OK; i++)
        err = hf_bench_await(b, r->names[i], is_held);
    return err;
}

static void kill_one(recovery *r, size_t i)
{
    if (r->pids[i] == 0)
        return;
    r->killed_ns[i] = hf_boot_ns();
    (void)kill(r->pids[i], SIGKILL);
    (void)waitpid(r->pids[i], NULL, 0);
    r->pids[i] = 0;
}

/* Each at a moment of its own within two leases. */
static hf_err kill_in_turn(recovery *r, size_t first)
{
    uint64_t at_us[VICTIMS];
    uint64_t start_ns = hf_boot_ns();
    for (size_t i = 0; i < VICTIMS; i++)
        at_us[i] = (KILL_AFTER_MS + hf_bench_random(r->b, 2 * LEASE_MS)) * 1000;
    for (size_t killed = 0; killed < VICTIMS; killed++) {
        size_t next = 0;
        for (size_t i = 1; i < VICTIMS; i++) {
            if (at_us[i] < at_us[next])
                next = i;
        }
        uint64_t passed_us = (hf_boot_ns() - start_ns) / 1000;
        if (at_us[next] > passed_us)
            hf_bench_pause_us(at_us[next] - passed_us);
        if (hf_bench_stopped(r->b))
            return HF_CANCEL;
        kill_one(r, first + next);
        at_us[next] = UINT64_MAX;
    }
    return HF_OK;
}

/* ---- all of it ---- */

static hf_err one_round(recovery *r, size_t first)
{
    const char *queues[VICTIMS];
    hf_bench *b = r->b;
    hf_bench_worker runner = {.worker = NULL};
    for (size_t i = 0; i < VICTIMS; i++)
        queues[i] = r->names[first + i];
    const hf_bench_worker_opts opts = {.queues = queues,
                                       .n_queues = VICTIMS,
                                       .concurrency = b->opts->concurrency,
                                       .lease_ms = LEASE_MS,
                                       .fn = on_job,
                                       .arg = r};
    hf_err err = start_victims(r, first);
    if (err == HF_OK)
        err = hf_bench_worker_start(b, &runner, &opts);
    if (err == HF_OK)
        err = kill_in_turn(r, first);
    for (size_t i = 0; i < VICTIMS && err == HF_OK; i++)
        err = hf_bench_await_post(b, &r->started, LOST_MS);
    for (size_t i = first; i < first + VICTIMS; i++)
        kill_one(r, i);
    return hf_bench_worker_stop(b, &runner, err);
}

hf_err hf_bench_recovery(hf_bench *b)
{
    recovery r = {.b = b};
    double ms[SAMPLES];
    hf_err err = HF_OK;
    (void)sem_init(&r.started, 0, 0);
    b->result->lease_ms = LEASE_MS;
    for (size_t i = 0; i < SAMPLES; i++)
        (void)snprintf(r.names[i], sizeof r.names[i], "victim-%zu", i);
    for (size_t first = 0; first < SAMPLES && err == HF_OK; first += VICTIMS)
        err = one_round(&r, first);
    for (size_t i = 0; i < SAMPLES && err == HF_OK; i++)
        ms[i] = (double)(atomic_load(&r.started_ns[i]) - r.killed_ns[i]) / 1e6;
    if (err == HF_OK)
        b->result->recovery_ms = hf_bench_spread(ms, SAMPLES);
    (void)sem_destroy(&r.started);
    return err;
}
