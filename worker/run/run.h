/* run.h - a job that is held, from its claim to the answer to its verdict; and lists of
 * such jobs.
 *
 * The life of a job that is held:
 *
 *   claimed -> CONFIRMING -> WAITING -> STARTED -> DECIDED -> freed
 *                       \______(released)______/     |
 *                                        its verdict is answered
 *
 * CONFIRMING: it is renewed, or confirmed by replicas, before it may start.
 */
#ifndef HF_WORKER_RUN_RUN_H
#define HF_WORKER_RUN_RUN_H

#include "lock/watchdog/watchdog.h"
#include "queue/record.h"
#include "worker/program/programs.h"
#include "worker/run/trace.h"
#include "worker/worker.h"

typedef enum hf_run_state {
    HF_CONFIRMING,
    HF_WAITING,
    HF_STARTED,
    HF_DECIDED
} hf_run_state;

/* One job that is held. */
struct hf_run {
    hf_worker *worker;
    hf_served *served;
    hf_run *next, *prev; /* in one hf_run_list, or the pool's queue */
    hf_lease *lease;
    hf_handler *handler;   /* a reference; NULL: this worker has none */
    hf_run *stands_in_for; /* whose handler has not returned; NULL: a run of its own */
    hf_record record;
    hf_run_trace trace;
    char fence[24];
    int64_t due_ms;  /* Redis's clock */
    int64_t wait_ms; /* from due to claimed */
    uint64_t claimed_ns, started_ns, ended_ns;
    uint32_t timeout_ms;
    uint32_t crashes; /* before it */
    hf_run_state state;
    bool ran_before; /* an earlier run may have left something */
    bool alone;      /* it has to have its process to itself */
    bool shared; /* its process runs others beside it: one that times out is alone next */
    bool neighbour; /* its process was ended because of another job in it */
    bool elsewhere; /* another worker has a handler for its type */
    bool waits;     /* it goes back because what would run it is down */
    bool isolated, has_retry_in, resent, lost_logged, released;
    bool started;        /* its program; of a C handler begun_ns says it */
    hf_verdict_op op;    /* DECIDED: the verdict to send */
    unsigned ended;      /* how the attempt ended, as Redis has answered (past.h) */
    unsigned lane;       /* of runs.c; 0: none yet */
    uint64_t told_ns;    /* when it was told that it runs; 0: never (runs.c) */
    const char *reason;  /* BURY */
    const char *outcome; /* as it was logged last; NULL: not yet */
    hf_verdict verdict;  /* the handler's */
    int64_t delay_ms;    /* RETRY, RELEASE with an error: from now */
    char *error;         /* owned, NULL: none */
    hf_bytes result;     /* owned; {NULL, 0}: none */
    bool result_is_json;
    int64_t keep_ms;        /* as its handler said; 0: it did not */
    hf_bytes words;         /* KEEP: owned; what is kept (result.c) */
    hf_bytes checkpoint;    /* of an earlier run; behind the record */
    struct hf_notes *notes; /* owned, NULL: none (notes.h); under note_lock */
    uint64_t noted;   /* what the outbox has sent of them, for hf_notes_answered() */
    uint64_t kept_ns; /* when the outbox asked to renew its lock; 0: it did not */
    _Atomic(hf_process *) process; /* of a program */
    struct hf_child *child;        /* of a pool, while it runs there */
    atomic_bool lost, cancelled, timed_out, stopping;
    atomic_bool await_renewal; /* CONFIRMING: the renewal was not answered yet */
    _Atomic uint64_t begun_ns; /* a C handler was called; 0: it waits for a thread */
    /* under worker->stop_lock */
    void (*stop_fn)(void *arg);
    void *stop_arg;
    /* under worker->note_lock: events of the lease for the loop */
    hf_run *event_next, *event_prev;
    unsigned events; /* bits: 1 << hf_lease_event */
    char id[];       /* then NUL, then the record, then the checkpoint */
};

void hf_run_push(hf_run_list *list, hf_run *run);
void hf_run_push_front(hf_run_list *list, hf_run *run);
void hf_run_remove(hf_run_list *list, hf_run *run);
hf_run *hf_run_pop(hf_run_list *list);

/* NULL: out of memory; no worker renews the job's lock, and it ends. */
hf_run *hf_run_new(hf_served *served, const hf_claimed_job *job, hf_bytes fence,
                   int64_t now_ms);
void hf_run_choose(hf_run *run); /* its handler, of those that there are now */
void hf_run_free(hf_run *run);   /* its lease was dropped, its process freed */
void hf_run_forget(hf_run *run); /* drops its lease, which ends, and frees it */
void hf_run_ask_to_stop(hf_run *run);
/* Any thread: the loop is woken, and calls the second, which gives one run at a time with
 * the events that were noted (bits: 1 << event). NULL: there is none. */
void hf_run_add_event(hf_run *run, hf_lease_event event);
hf_run *hf_run_next_event(hf_worker *w, unsigned *notes);
void hf_run_set_text(hf_run *run, const char *text, size_t len);
/* To release a job whose C handler has not returned and still uses the run. NULL: no
 * memory */
hf_run *hf_run_stand_in(hf_run *run);

/* Its worker was told to stop, even if the loop has not come to that yet. */
bool hf_run_worker_stops(const hf_run *run);
uint32_t
hf_run_max_attempts(const hf_run *run);       /* the job's, its handler's, or all jobs' */
int64_t hf_run_created_ms(const hf_run *run); /* Unix; 0: not known */

/* A hash that tells its job from any other, also from one that has its id later, or has
 * it at another Redis. */
uint64_t hf_run_identity(const hf_run *run);
uint64_t hf_run_begun_ns(const hf_run *run); /* 0: it has not started */
int64_t hf_run_ran_ms(const hf_run *run);    /* until now, or its end */
uint64_t hf_run_ran_ns(const hf_run *run);
/* Notes and logs how it ended, a static text. */
void hf_run_report(hf_worker *w, hf_run *run, const char *outcome);

/* A line that its program has written, for the log; and: some processes of the program
 * may not be ended. As the hooks of worker/program/programs.h. */
void hf_run_on_line(void *run, int stream, const char *text, size_t len, void *worker);
void hf_run_on_denied(void *run, void *worker);

#endif
