/* parts.h - what the parts of the bench share: one run, a worker in a thread of its own,
 * and how figures become percentiles. Each part measures alone, while nothing else works.
 */
#ifndef HF_BENCH_PARTS_H
#define HF_BENCH_PARTS_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/random.h"
#include "bench/bare.h"
#include "bench/bench.h"
#include "bench/probe.h"
#include "holdfast/admin.h"
#include "holdfast/producer.h"
#include "holdfast/worker.h"

enum { HF_BENCH_LEASE_MS = 10000, HF_BENCH_WAIT_MS = 20000 };

typedef struct hf_bench {
    const hf_bench_opts *opts;
    hf_bench_result *result;
    const char *url, *bare_url, *password_file;
    char ns[32];
    hf_admin *admin;
    hf_probe probe;
    hf_rng rng;
    char *payload; /* payload_bytes of them */
    char *detail;  /* the caller's */
} hf_bench;

/* The parts. HF_CANCEL: a signal came. */
HF_MUSTCHECK hf_err
hf_bench_rates(hf_bench *b); /* enqueue, process, bytes for each job */
HF_MUSTCHECK hf_err hf_bench_pickup(hf_bench *b);
HF_MUSTCHECK hf_err hf_bench_lateness(hf_bench *b);
HF_MUSTCHECK hf_err hf_bench_recovery(hf_bench *b);

/* ---- run.c ---- */

/* Like hf_bench_run(), with another measurement: b is connected and has a namespace of
 * its own, which is removed afterwards. */
typedef hf_err (*hf_bench_fn)(hf_bench *b, void *arg);
HF_MUSTCHECK hf_err hf_bench_with(const hf_bench_opts *opts, hf_bench_result *out,
                                  hf_bench_fn measure, void *arg,
                                  char detail[HF_DETAIL_SIZE]);

/* INT or TERM came. They are blocked while the bench runs: it must clean up. */
bool hf_bench_stopped(hf_bench *b);

/* Keeps a sentence about what failed, and gives err back. */
hf_err hf_bench_fail(hf_bench *b, hf_err err, const char *why);

/* Until `test` is true of the queue's figures. HF_TIMEOUT: it never was. */
HF_MUSTCHECK hf_err hf_bench_await(hf_bench *b, const char *queue,
                                   bool (*test)(const hf_queue_stats *stats));

/* Until a handler posts it, at most `ms`. HF_TIMEOUT: a job that should have run did not.
 */
HF_MUSTCHECK hf_err hf_bench_await_post(hf_bench *b, sem_t *posted, uint32_t ms);

HF_MUSTCHECK hf_err hf_bench_producer(hf_bench *b, hf_producer **out);

void hf_bench_pause_us(uint64_t us);
uint64_t hf_bench_random(hf_bench *b, uint64_t below);

/* Sorts the samples. */
hf_spread hf_bench_spread(double *samples, size_t n);
double hf_bench_median(double *samples, size_t n);

/* ---- bench_worker.c: a worker in a thread ---- */

typedef struct hf_bench_worker {
    hf_worker *worker; /* NULL: not started */
    pthread_t thread;
    atomic_bool over; /* hf_worker_run() has come back */
    hf_err err;       /* what it came back with */
    char detail[HF_DETAIL_SIZE];
} hf_bench_worker;

typedef struct hf_bench_worker_opts {
    const char *const *queues;
    size_t n_queues;
    uint32_t concurrency, lease_ms;
    hf_handler_fn fn; /* of the type "bench" */
    void *arg;
} hf_bench_worker_opts;

/* Starts it and waits until it has looked into each of its queues. */
HF_MUSTCHECK hf_err hf_bench_worker_start(hf_bench *b, hf_bench_worker *runner,
                                          const hf_bench_worker_opts *opts);
/* Stops it and waits for its end; fine for one that was not started. Its fault, if it had
 * one and `err` is HF_OK; else err. */
HF_MUSTCHECK hf_err hf_bench_worker_stop(hf_bench *b, hf_bench_worker *runner,
                                         hf_err err);

#endif
