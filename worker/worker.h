/* worker.h - the worker, as all of its parts see it. docs/design.md ("The worker") names
 * the parts and their order. No part calls one that comes before it there: what a lower
 * part has to tell goes into a flag here (turn_due, reroute, heartbeat_due,
 * burst_is_over, offered_due, start_failed), or through a hook (worker/node/site.h).
 *
 * One thread at a time, the one that turns the loop (worker/runner/leader.h), owns all of
 * this. Other threads touch only members whose comments allow it: handlers run on threads
 * of their own, lease events come on the watchdog's thread, stop and quiet from any. */
#ifndef HF_WORKER_WORKER_H
#define HF_WORKER_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/backoff.h"
#include "base/random.h"
#include "holdfast/worker.h"
#include "lock/watchdog/watchdog.h"
#include "queue/ops.h"
#include "redis/nodes.h"
#include "worker/metrics/counters.h"
#include "worker/metrics/health.h"
#include "worker/plan.h"

enum {
    HF_NOT_AFTER_MS = 1000, /* a request is not executed later than that */
    HF_ALIVE_MS = 15000,    /* a worker counts as alive this long after its lease */
    HF_REMIND_MS = 60000,   /* of an error that lasts */
    HF_HOST_SIZE = 41       /* of its name in ids; cut */
};

typedef struct hf_run_list {
    hf_run *head, *tail;
    size_t n;
} hf_run_list;

typedef struct hf_served hf_served;
typedef struct hf_whole hf_whole;
typedef struct hf_queues hf_queues;
typedef struct hf_bundle hf_bundle;
typedef struct hf_site hf_site;
typedef struct hf_site_hooks hf_site_hooks;

typedef enum hf_phase {
    HF_STARTING,
    HF_SERVING,
    HF_STOPPING,
    HF_ENDING,
    HF_ENDED
} hf_phase;

/* A connection that is away, as it was logged. Zero: it is there. */
typedef struct hf_outage {
    hf_err err;
    uint64_t logged_ns;
} hf_outage;

struct hf_worker {
    unsigned magic;
    /* as configured; text owned */
    hf_server_opts server;
    char *minder;
    hf_tracer tracer; /* no on_span: none */
    char ns[HF_ID_SIZE];
    hf_worker_opts opts;
    hf_backoff backoff;
    hf_handler *handlers[HF_TYPES_MAX];
    size_t n_handlers, n_own; /* n_own: without those of pools */
    hf_pool_spec *pools[HF_POOLS_MAX];
    size_t n_pools;
    bool has_programs, only_programs; /* pools count as programs */
    uint32_t asked_kill_grace_ms,
        asked_wait_replicas_ms; /* as configured, before bounds */
    char host[HF_HOST_SIZE];
    char id[HF_WORKER_ID_SIZE];
    hf_rng rng;

    /* its parts, each with a header of its own; owned */
    hf_counters *counters; /* of its metrics */
    struct hf_wake *wake;
    hf_queues *queues;
    struct hf_runner *runner;
    struct hf_supervisors *supervisors; /* of its pools; NULL: it has none */
    struct hf_outbox *outbox;
    struct hf_past *past;
    struct hf_runs *runs;
    struct hf_heartbeat *heartbeat;
    struct hf_schedules *schedules;

    /* while it runs */
    uv_loop_t loop;
    hf_nodes nodes;    /* each begins an hf_site; the second thread is the watchdog's */
    hf_site *registry; /* of heartbeats and the names of queues; one of those */
    const hf_site_hooks *hooks; /* what the sites tell the other parts */
    bool reroute;               /* queues may have other sites by now */
    hf_watchdog *watchdog;
    uv_async_t async;       /* handlers returned, notes, stop and quiet */
    uv_check_t turn;        /* after input: verdicts and claims go out */
    uv_prepare_t late_turn; /* the same before the loop sleeps, if a turn is due */
    bool turn_due; /* a timer, or a call from outside a turn, changed something */
    bool claimed;  /* a claim was sent in this turn */
    uv_timer_t tick, phase_timer;
    uv_timer_t gather; /* how long verdicts wait for others */
    hf_phase phase;
    bool quiet, ran, stand_ins_sent;
    bool serving;       /* neither quiet, nor told to stop */
    bool heartbeat_due; /* its content, or its Redis, has changed */
    bool offered_due;   /* programs may name other queues and schedules by now */
    bool start_failed;  /* a pool failed to start start_tries times; `detail` says why */
    bool burst_is_over; /* every queue was found empty: a burst worker stops */
    hf_err result;      /* of hf_worker_run() */
    char detail[HF_DETAIL_SIZE];

    /* its jobs */
    size_t in_hand;       /* all jobs, including those whose verdicts are on the way */
    size_t arriving;      /* jobs of an answer that is being read */
    size_t decided;       /* their verdicts are on the way */
    size_t in_pools;      /* processes of pools run them */
    bool heard;           /* Redis has answered a claim or a check */
    uint64_t tick_ns;     /* the last tick; 0: none yet */
    uint64_t stopping_ns; /* since then it stops */
    size_t goodbyes;      /* requests that Redis has not answered yet */
    uint64_t unconfirmed; /* jobs whose end replicas have not confirmed in time */

    /* from any thread */
    pthread_mutex_t stop_lock, log_lock; /* a handler's function, and the log, are called
                                            with them: not for the watchdog's thread */
    pthread_mutex_t note_lock;           /* under it no thread waits */
    pthread_mutex_t
        plan_lock;      /* next_plan; and the handlers, for threads that only read */
    hf_plan *next_plan; /* to be taken by the loop; owned */
    _Atomic uint64_t reloads;         /* plans that were taken, ignored or refused */
    atomic_bool reload_taken;         /* the last one was taken */
    hf_run_list events;               /* chained by event_next */
    uint64_t hurry_ns, slow_hurry_ns; /* renewals that runs asked for last (notes.c);
                                         under note_lock */
    atomic_uint stops, orders;        /* calls of stop; of quiet and resume */
    atomic_bool quiet_wanted;         /* by the last of those */
    hf_health health;
    atomic_bool async_ready;
    unsigned stops_seen, orders_seen;
    size_t unreturned;
};

#endif
