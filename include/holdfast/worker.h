/* worker.h - run jobs, each under its lock.
 *
 * A worker claims jobs from its queues, runs each by the handler of its type, renews the
 * lock of each while it runs (a watchdog with its own thread and connection), and sends
 * the verdict until Redis has answered it. Handlers are C functions, run in the worker's
 * own threads, or programs, one process for each job, in a process group that does not
 * outlive the lease.
 *
 *   new -> handle ... -> run (blocks) ------------------------> free
 *                          ^ stop, quiet, resume: any thread
 *
 * A C handler is asked to stop, never killed: at its time-out, when its lock is lost and
 * when the job is cancelled, hf_run_stopping() turns true. Until it returns it keeps its
 * thread, and unless the lock is lost, its lease. */
#ifndef HOLDFAST_WORKER_H
#define HOLDFAST_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/error.h"
#include "holdfast/server.h"
#include "holdfast/struct.h"

typedef struct hf_worker hf_worker;
typedef struct hf_run hf_run;

/* What a handler makes of its job. DONE removes it. RETRY counts a failed attempt and
 * runs it again after its backoff, until max_attempts; then it is dead. DEAD ends it at
 * once. */
typedef enum hf_verdict { HF_VERDICT_DONE, HF_VERDICT_RETRY, HF_VERDICT_DEAD } hf_verdict;

/* Runs one job, on one of the worker's threads. `run` is borrowed until it returns. */
typedef hf_verdict (*hf_handler_fn)(hf_run *run, void *arg);

/* Backoff after the n-th failed attempt: base, base*2, base*4 ... (exponential), base*n
 * (linear) or base (constant), at most cap, then up to `jitter` (0..1) of it taken off or
 * put on at random. */
typedef enum hf_backoff_kind {
    HF_BACKOFF_EXPONENTIAL,
    HF_BACKOFF_LINEAR,
    HF_BACKOFF_CONSTANT
} hf_backoff_kind;

/* Special values, where zero is the default already. */
#define HF_SHUTDOWN_AT_ONCE UINT32_MAX /* shutdown_timeout_ms: do not wait */
#define HF_JITTER_NONE (-1.0)          /* backoff_jitter */

/* A queue that is served. `limits`: the values of a configuration file, written to Redis
 * when they differ from those that the file named before. */
typedef struct hf_worker_queue {
    size_t size; /* HF_WORKER_QUEUE_INIT */
    const char *name;
    uint32_t weight; /* 1..1000; 0: 1 */
    bool has_limits;
    uint32_t max_running; /* across all workers; 0: no limit */
    uint32_t rate_limit;  /* jobs started in rate_per_ms; 0: no limit */
    uint32_t rate_per_ms; /* not 0 with a rate_limit */
} hf_worker_queue;
#define HF_WORKER_QUEUE_INIT HF_STRUCT_INIT(hf_worker_queue)

/* A program that takes one type of job. The payload is its stdin; HOLDFAST_JOB_ID, _TYPE,
 * _QUEUE, _ATTEMPT, _FENCE, _DEADLINE_UNIX_MS, _VERDICT_FD and HOLDFAST_CONTRACT=1 are in
 * its environment. Exit 0 is done, 65 is dead, anything else is retry. */
typedef struct hf_program {
    size_t size;             /* HF_PROGRAM_INIT */
    const char *type;        /* "*": every type that no other handler takes */
    const char *const *argv; /* argv[0] is found by PATH; ends with NULL; no shell */
    const char *const *env;  /* names of variables to pass on, ends with NULL; PATH, HOME,
                                LANG, TZ and TMPDIR are always passed; may be NULL */
    const char *cwd;         /* NULL: the worker's */
    uint32_t timeout_ms;     /* 0: none */
    uint32_t grace_ms;       /* from TERM to KILL at the time-out: 5000 */
    uint32_t max_attempts;   /* 0: as in the worker's options */
} hf_program;
#define HF_PROGRAM_INIT HF_STRUCT_INIT(hf_program)

typedef enum hf_log_level {
    HF_LOG_DEBUG,
    HF_LOG_INFO,
    HF_LOG_WARN,
    HF_LOG_ERROR
} hf_log_level;

/* One field of a log line. `number` counts when `text` is NULL. */
typedef struct hf_log_field {
    size_t size; /* the library sets it */
    const char *key;
    const char *text;
    int64_t number;
} hf_log_field;

/* Called from any of the worker's threads, one at a time. All arguments are borrowed. */
typedef void (*hf_log_fn)(hf_log_level level, const char *message,
                          const hf_log_field *fields, size_t n, void *arg);

/* Zero means the default. All text is copied. */
typedef struct hf_worker_opts {
    size_t size;                   /* HF_WORKER_OPTS_INIT */
    const hf_server_opts *server;  /* which Redis; NULL: the defaults */
    const hf_worker_queue *queues; /* at least one, at most 64 */
    size_t n_queues;
    bool strict;                  /* in the order named; else by weight */
    uint32_t concurrency;         /* 16; 1..1024 */
    uint32_t lease_ms;            /* 10000; 1000..3600000 */
    uint32_t kill_grace_ms;       /* from TERM to KILL before the lease of a program ends:
                                     1000, at most a quarter of the lease */
    uint32_t shutdown_timeout_ms; /* 25000; HF_SHUTDOWN_AT_ONCE */
    uint32_t max_attempts;        /* 20 */
    hf_backoff_kind backoff;
    uint32_t backoff_base_ms; /* 2000 */
    uint32_t backoff_cap_ms;  /* 3600000 */
    double backoff_jitter;    /* 0.2; at most 1; HF_JITTER_NONE */
    uint32_t poison;          /* crashes of its holders until a job is dead: 3 */
    uint32_t dead_max;        /* 10000 */
    int64_t dead_age_ms;      /* 180 days */
    bool burst;               /* stop when nothing is left, not even delayed */
    const char *minder;       /* path of the `holdfast` command, needed only when
                                 programs are handled; NULL: found by PATH */
    hf_log_fn log;            /* may be NULL */
    void *log_arg;
} hf_worker_opts;
#define HF_WORKER_OPTS_INIT HF_STRUCT_INIT(hf_worker_opts)

#ifdef __cplusplus
extern "C" {
#endif

/* The caller owns *out and ends it with hf_worker_free(). Does not connect. HF_INVALID,
 * HF_NOMEM, HF_SYSTEM; then *out is untouched and `detail` (may be NULL) says why. */
HF_API HF_MUSTCHECK hf_err hf_worker_new(hf_worker **out, const hf_worker_opts *opts,
                                         char detail[HF_DETAIL_SIZE]);

/* Adds a handler, before hf_worker_run(). HF_INVALID (bad type, or the type has a
 * handler), HF_BUSY (it runs), HF_NOMEM. timeout_ms 0: none; a job's own goes before.
 * `fn` is called from several threads at a time. */
HF_API HF_MUSTCHECK hf_err hf_worker_handle(hf_worker *worker, const char *type,
                                            uint32_t timeout_ms, hf_handler_fn fn,
                                            void *arg);
/* A host whose worker runs programs neither ignores SIGCHLD nor waits for any child: it
 * would take their exit statuses, and a program whose status is lost has failed. */
HF_API HF_MUSTCHECK hf_err hf_worker_handle_program(hf_worker *worker,
                                                    const hf_program *program);

/* Serves its queues until it is stopped. Installs no signal handler. Once for each
 * worker. HF_OK after a stop, even if jobs had to be released. HF_CONN, HF_AUTH,
 * HF_UNSUPPORTED, HF_POLICY (it may evict locks), HF_READONLY, HF_LOADING, HF_PROTO when
 * Redis could not be used within 5 s of the start; later it tries without end.
 * HF_INVALID: no handler, or it ran before. HF_CONFIG: no password file, no minder.
 * HF_SYSTEM, HF_NOMEM. `detail` (may be NULL) says more. */
HF_API HF_MUSTCHECK hf_err hf_worker_run(hf_worker *worker, char detail[HF_DETAIL_SIZE]);

/* From any thread and from signal handlers. stop: claims nothing more, waits for what
 * runs (at most shutdown_timeout_ms; a second call ends the waiting), ends programs,
 * releases the rest without counting an attempt. quiet: claims nothing more, goes on
 * renewing. resume: claims again. */
HF_API void hf_worker_stop(hf_worker *worker);
HF_API void hf_worker_quiet(hf_worker *worker);
HF_API void hf_worker_resume(hf_worker *worker);

/* Takes other options and programs while it runs, from any thread, but not from a signal
 * handler. All of it is checked and copied here: HF_INVALID or HF_NOMEM (`detail`, which
 * may be NULL, says why) changes nothing. Then the loop takes it whole, between two jobs,
 * and tells the log each change. Take effect: the queues with their order, weights and
 * limits; the programs, all of them instead of those before, while C handlers stay;
 * `strict`, `max_attempts`, the backoff, `poison`, the bounds of the dead,
 * `shutdown_timeout_ms`. A job that was started keeps its handler; one that was not has
 * the new one. A queue that is not named any more is not claimed from; what runs of it
 * ends as it would have. The rest keeps its value, and the log names what differs as
 * `needs a restart`; programs are such for a worker that began without any. Ignored while
 * it is being stopped. Of several that come at once the last one counts. */
HF_API HF_MUSTCHECK hf_err hf_worker_reload(hf_worker *worker, const hf_worker_opts *opts,
                                            const hf_program *programs, size_t n,
                                            char detail[HF_DETAIL_SIZE]);

/* How many reloads have come to their end: taken, ignored, refused since the queues that
 * were taken out still have too many jobs, or replaced by a later one. */
HF_API uint64_t hf_worker_reloads(const hf_worker *worker);
HF_API bool hf_worker_reload_taken(const hf_worker *worker); /* the last one was */

/* From any thread, for a supervisor of the process. The pulse is 0 until each queue was
 * asked for jobs and Redis answered (or this worker wants none, being full or quiet);
 * then it rises each time Redis has answered a claim, or the check that a worker sends
 * when it claims nothing, and the loop came round: at least every 10 s. It stands still
 * while the loop hangs, while Redis does not answer or refuses, and while no lease can be
 * renewed. running: how many of its slots are busy. */
HF_API uint64_t hf_worker_pulse(const hf_worker *worker);
HF_API uint32_t hf_worker_running(const hf_worker *worker);

/* Not while it runs. Frees; NULL is fine. When hf_worker_run() came back while C handlers
 * had not returned, waits for them. */
HF_API void hf_worker_free(hf_worker *worker);

/* host-pid-random: what lock tokens begin with. Borrowed from the worker. */
HF_API const char *hf_worker_id(const hf_worker *worker);

/* How many C handlers had not returned when hf_worker_run() came back. */
HF_API size_t hf_worker_unreturned(const hf_worker *worker);

/* The i-th of the fields that hf_log_fn gets. A newer library may have larger fields than
 * the program was compiled with, so an index would go wrong. */
HF_API const hf_log_field *hf_log_field_at(const hf_log_field *fields, size_t i);

/* ---- in a handler, with its own run; all borrowed until it returns ---- */

HF_API const char *hf_run_id(const hf_run *run);
HF_API const char *hf_run_type(const hf_run *run);
HF_API const char *hf_run_queue(const hf_run *run);
HF_API const void *hf_run_payload(const hf_run *run, size_t *len); /* never NULL */
HF_API uint32_t hf_run_attempt(const hf_run *run);                 /* 1 the first time */

/* Rises with every later claim of the same job; the same for all jobs of one claim. Pass
 * it along with every write, and let the store refuse a lower one. (M.
 * Kleppmann, "How to do distributed locking", 2016.) */
HF_API uint64_t hf_run_fence(const hf_run *run);

/* How long the lock is held for certain, unless it is renewed: 0 when it is lost. */
HF_API int64_t hf_run_remaining_ms(const hf_run *run);
HF_API bool hf_run_lost(const hf_run *run);
HF_API bool hf_run_cancelled(const hf_run *run);
HF_API bool hf_run_timed_out(const hf_run *run);
/* Any of the three, or the worker is being stopped: come back soon. */
HF_API bool hf_run_stopping(const hf_run *run);

/* Called once, by the thread that runs the worker's loop, when hf_run_stopping() has
 * turned true for this run (at once if it is already), and never after the handler
 * returned. Must be quick: the worker does nothing else meanwhile, but renew its leases.
 * hf_run_stopping() itself waits for no thread. */
HF_API void hf_run_on_stop(hf_run *run, void (*fn)(void *arg), void *arg);

/* What goes with the verdict: the error text (copied, cut to 4096 bytes), and for RETRY
 * when it runs again instead of after the backoff: a delay from 0 to HF_DELAY_MAX_MS, and
 * what is beyond is cut. */
HF_API void hf_run_set_error(hf_run *run, const char *text);
HF_API void hf_run_set_retry_in(hf_run *run, int64_t delay_ms);

#ifdef __cplusplus
}
#endif

#endif
