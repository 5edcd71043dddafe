/* worker_fixture.h - a worker in a thread of the test's, with C handlers that do what the
 * payload says, and its log counted.
 *
 * Payloads: "ok"; "short" (1 ms); "fail"; "dead"; "gate" (waits until the fixture's gate
 * is opened, or until it is asked to stop); "heed" (the same, and then fails); "doze"
 * (the same, and then gives it back); "deaf" (waits for the gate alone). */
#ifndef HF_TESTS_WORKER_FIXTURE_H
#define HF_TESTS_WORKER_FIXTURE_H

#include <pthread.h>
#include <stdatomic.h>

#include "holdfast/worker.h"
#include "tests/support/redis_fixture.h"

enum { HF_FIXTURE_LINES = 4096, HF_FIXTURE_LINE = 256 };

typedef struct hf_worker_fixture {
    hf_worker *worker;
    pthread_t thread;
    hf_err result;
    char why[HF_DETAIL_SIZE]; /* what hf_worker_run() said */
    atomic_int started, returned, most_at_once, inside;
    atomic_int told; /* handlers whose callback was called: to stop */
    atomic_bool gate, ended, asked_to_stop;
    bool stopped;
    atomic_bool hold_loop, loop_held; /* its loop waits where it reports a job's end */
    atomic_ulong woken;               /* the thread that heard of a job last */
    atomic_llong remaining_ms;        /* of the lease, at the last start */
    _Atomic uint64_t started_ns;      /* the last start, boot time */
    pthread_mutex_t lock;
    char lines[HF_FIXTURE_LINES][HF_FIXTURE_LINE]; /* "message key=value ..." */
    size_t n_lines;
    hf_server_opts server; /* of the options that were filled last */
} hf_worker_fixture;

/* A lease of 1 s: for tests about its renewals and its end, and about checks that come as
 * often. Elsewhere a machine that is busy for a second would end it. */
extern const hf_worker_opts hf_brief_lease;

/* Zero options are the defaults, but a lease of 30 s, backoff of 50 ms,
 * concurrency 4, the queue "q" and url. Jobs of type "t" are taken, with timeout_ms. */
void hf_worker_fixture_start(hf_worker_fixture *fixture, const char *url,
                             const hf_worker_opts *opts, uint32_t timeout_ms);
/* The same with programs, or with pools (`alone`: and no handler for "t"): opts name
 * their minder. */
void hf_worker_fixture_start_programs(hf_worker_fixture *fixture, const char *url,
                                      const hf_worker_opts *opts, uint32_t timeout_ms,
                                      const hf_program *programs, size_t n);
void hf_worker_fixture_start_pools(hf_worker_fixture *fixture, const char *url,
                                   const hf_worker_opts *opts, const hf_pool *pools,
                                   size_t n, bool alone);
/* The same with a handler of the test's own; the options are those of the fixture. */
void hf_worker_fixture_start_handler(hf_worker_fixture *fixture, const char *url,
                                     uint32_t timeout_ms, hf_handler_fn fn, void *arg);
/* Both: options and a handler of the test's own. */
void hf_worker_fixture_start_own(hf_worker_fixture *fixture, const char *url,
                                 const hf_worker_opts *opts, uint32_t timeout_ms,
                                 hf_handler_fn fn, void *arg);
/* What the fixture makes of options, for a reload. */
void hf_worker_fixture_fill(hf_worker_fixture *fixture, const char *url,
                            hf_worker_opts *opts);

/* Stops it and waits; answers what hf_worker_run() said. */
hf_err hf_worker_fixture_stop(hf_worker_fixture *fixture);

/* For a teardown: lets everything go, and stops it if the test has not come to that. */
void hf_worker_fixture_end(hf_worker_fixture *fixture);

/* How many lines of its log ("info job job=... outcome=done ...") contain the text. */
size_t hf_worker_fixture_said(hf_worker_fixture *fixture, const char *text);

#endif
