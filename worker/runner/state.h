/* state.h - what the runner knows; its own files alone include this. */
#ifndef HF_WORKER_RUNNER_STATE_H
#define HF_WORKER_RUNNER_STATE_H

#include "worker/worker.h"

/* The thread that turns the loop (worker/runner/leader.h). */
typedef struct hf_leader {
    void (*after)(hf_worker *w);
    int wakeup;           /* owned: a timer, on which the caller sleeps; -1: none */
    uint64_t wakeup_ns;   /* the loop's: not before; 0: it is not set */
    pthread_mutex_t gate; /* held while the loop is given away, until the timer is set */
    atomic_uint at;       /* who has the loop, and in which term of a leader */
    bool on;              /* the loop's: a leader turns it */
    bool has_job;         /* the loop's: the leader will run a job after its turn */
} hf_leader;

typedef struct hf_runner {
    struct hf_threads *threads;
    hf_leader lead;
    struct hf_groups *groups; /* NULL: only C handlers */
    struct hf_programs *programs;
    size_t c_out;        /* jobs given to the threads and not returned */
    size_t programs_out; /* programs that run */
    size_t isolated_out; /* isolated jobs among those */
    bool exclusive;      /* an isolated C job runs: nothing is started beside it */
    int spawn_error;     /* why no program could be started, as logged last; 0: none */
    uint64_t spawn_logged_ns;
    uint32_t spawn_backoff_ms;    /* the last backoff; 0: a program was started since */
    uint64_t spawn_hold_until_ns; /* no program is started before; 0: they are */
    hf_run_list confirming, waiting, started;
    hf_run_list killed_outside; /* programs that a signal from elsewhere has ended */
    double mean_run_ns;         /* of finished jobs, smoothed */
} hf_runner;

#endif
