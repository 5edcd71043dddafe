/* worker.h - run jobs, each under its lock.
 *
 * A worker claims jobs from its queues and runs each by the handler of its type. A
 * watchdog with its own thread and connection renews the locks of running jobs. The
 * worker sends each verdict until Redis has answered it. A handler is a C function, which
 * runs in one of the worker's threads, or a program: one process for each job, in a
 * process group that does not outlive the lease. A pool is a program whose processes live
 * for many jobs, and which names the types that it handles itself.
 *
 *   new -> handle ... -> run (blocks) ------------------------> free
 *                          ^ stop, quiet, resume: any thread
 *
 * A C handler is asked to stop, and never killed: hf_run_stopping() becomes true at its
 * time-out, when its lock is lost, when the job is cancelled, and when the worker is
 * stopped. Until the handler returns it keeps its thread and, unless the lock is lost,
 * its lease. */
#ifndef HOLDFAST_WORKER_H
#define HOLDFAST_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/error.h"
#include "holdfast/schedule.h"
#include "holdfast/server.h"
#include "holdfast/struct.h"
#include "holdfast/trace.h"

typedef struct hf_worker hf_worker;
typedef struct hf_run hf_run;

/* A handler's answer. DONE removes the job. RETRY counts a failed attempt; the job runs
 * again after its backoff, or is dead after max_attempts. DEAD makes it dead at once.
 * RELEASE counts no attempt: the job runs again after the delay of hf_run_set_retry_in(),
 * without one at once, here or elsewhere. CANCEL removes the job; it counts as cancelled,
 * and a client that waits for it is told so. */
typedef enum hf_verdict {
    HF_VERDICT_DONE,
    HF_VERDICT_RETRY,
    HF_VERDICT_DEAD,
    HF_VERDICT_RELEASE,
    HF_VERDICT_CANCEL
} hf_verdict;

/* Runs one job, in one of the worker's threads. `run` is borrowed until it returns. */
typedef hf_verdict (*hf_handler_fn)(hf_run *run, void *arg);

/* The pause after the n-th failed attempt: base, base*2, base*4 ... (exponential), base*n
 * (linear) or base (constant), at most the cap. Then a random part of it, at most the
 * jitter (0..1), is added or subtracted. */
typedef enum hf_backoff_kind {
    HF_BACKOFF_EXPONENTIAL,
    HF_BACKOFF_LINEAR,
    HF_BACKOFF_CONSTANT
} hf_backoff_kind;

/* Special values, where zero already means the default. */
#define HF_KEEP_NONE INT64_C(-1)       /* keep_ms of a handler: its jobs are not kept */
#define HF_SHUTDOWN_AT_ONCE UINT32_MAX /* shutdown_timeout_ms: do not wait */
#define HF_HISTORY_NONE UINT32_MAX     /* history_ms: keep none */
#define HF_JITTER_NONE (-1.0)          /* backoff_jitter */
#define HF_TIMEOUT_NONE UINT32_MAX     /* timeout_ms of a pool or of its type: none */
#define HF_IDLE_NEVER INT64_C(-1)      /* idle_ms: its processes do not end when idle */

/* A queue of a worker. With has_limits, the worker writes the three limits to Redis if
 * they differ from those that it, or another worker, wrote last. */
typedef struct hf_worker_queue {
    size_t size; /* HF_WORKER_QUEUE_INIT */
    const char *name;
    uint32_t weight; /* 1..1000; default 1 */
    bool has_limits;
    uint32_t max_running; /* across all workers; 0: no limit */
    uint32_t rate_limit;  /* jobs started in rate_per_ms; 0: no limit */
    uint32_t rate_per_ms; /* not 0 with a rate_limit */
    uint32_t shards;    /* 2..64: the worker divides the queue before its first job, if it
                           is not divided yet; max_running must not be lower. 0: the queue
                           stays as it is in Redis */
    int64_t keep_ms;    /* how long a job that is done is kept, with its result; 0: not at
                           all. Its handler and the job itself take precedence */
    int64_t keep_max;   /* the largest number of kept jobs, the latest; default 10000 */
    int64_t keep_bytes; /* the most bytes of their results; default 64 MiB */
    const char *on_dead; /* the type of a job that is enqueued when one of its jobs dies;
                            its handler and the job itself take precedence. NULL: none.
                            Redis has the value of the worker that was started or
                            reloaded last */
} hf_worker_queue;
#define HF_WORKER_QUEUE_INIT HF_STRUCT_INIT(hf_worker_queue)

/* A program that handles one type of job. It reads the payload from its standard input.
 * Its environment has HOLDFAST_JOB_ID, _TYPE, _QUEUE, _ATTEMPT, _FENCE,
 * _DEADLINE_UNIX_MS, _SCHEDULED_UNIX_MS (of a schedule), _HEADERS (if the job has some),
 * _VERDICT_FD and _CHECKPOINT_FD, and TRACEPARENT (if the job has a trace).
 * Exit status 0 means done, 65 dead, any other retry. It may write lines to the
 * descriptor HOLDFAST_VERDICT_FD while it runs, such as its verdict, and reads the
 * checkpoint of an earlier run from HOLDFAST_CHECKPOINT_FD (docs/programs.md). */
typedef struct hf_program {
    size_t size;             /* HF_PROGRAM_INIT */
    const char *type;        /* "*": every type without a handler of its own */
    const char *const *argv; /* ends with NULL; argv[0] is found by PATH; no shell */
    const char *const *env; /* names of variables to pass on, ends with NULL; may be NULL.
                               PATH, HOME, LANG, TZ and TMPDIR are always passed */
    const char *cwd;        /* its working directory; NULL: the worker's */
    uint32_t timeout_ms;    /* 0: none */
    uint32_t grace_ms;      /* from TERM to KILL at the time-out; default 5000 */
    uint32_t max_attempts;  /* 0: as in the worker's options */
    uint32_t unused;
    int64_t keep_ms; /* how long its jobs are kept when they are done; 0: as long as the
                        queue says; HF_KEEP_NONE */
    bool logs;       /* Redis keeps its outputs, as the lines of hf_run_log() */
    bool result_stdout; /* its standard output is the result, and is not logged */
    bool env_all;       /* its whole environment is passed on; `env` is then NULL. Not
                           what the worker sets itself, HOLDFAST_LOCK_*, NOTIFY_SOCKET,
                           WATCHDOG_* and LISTEN_* */
    bool unused_too[5];
    const char *on_dead; /* the type of a job that is enqueued when one of its jobs dies;
                            NULL: as the queue says */
} hf_program;
#define HF_PROGRAM_INIT HF_STRUCT_INIT(hf_program)

enum {
    HF_POOLS_MAX = 64,           /* of one worker */
    HF_POOL_PROCESSES_MAX = 256, /* of one pool */
    HF_POOL_PARALLEL_MAX = 1024  /* runs at a time in one process */
};

/* Options of one type of a pool. They take precedence over those that its program names;
 * a job's own take precedence over both. */
typedef struct hf_pool_type {
    size_t size;           /* HF_POOL_TYPE_INIT */
    const char *type;      /* not "*" */
    uint32_t timeout_ms;   /* 0: as the program says; or HF_TIMEOUT_NONE */
    uint32_t max_attempts; /* 0: as the program says */
    int64_t keep_ms;       /* 0: as the program says; or HF_KEEP_NONE */
    const char *on_dead;   /* NULL: as the program says */
    bool has_backoff;      /* `backoff` counts. It and the next three are the wait after a
                              failed attempt; 0: as the program says */
    bool unused[3];
    hf_backoff_kind backoff;
    uint32_t backoff_base_ms;
    uint32_t backoff_cap_ms;
    double backoff_jitter; /* or HF_JITTER_NONE */
} hf_pool_type;
#define HF_POOL_TYPE_INIT HF_STRUCT_INIT(hf_pool_type)

/* A program whose processes live for many jobs. Each process names the types that it
 * handles when it starts, and then gets jobs over a socket (docs/pools.md). A pool has
 * processes x parallel slots of its own: `concurrency` does not count its jobs. */
typedef struct hf_pool {
    size_t size;               /* HF_POOL_INIT */
    const char *const *argv;   /* as in hf_program */
    const char *const *env;    /* as in hf_program */
    const char *cwd;           /* as in hf_program */
    uint32_t processes;        /* 1..HF_POOL_PROCESSES_MAX; 0: as many as the cores that
                                  this process may use, by its affinity and the cpu.max of
                                  its control group */
    uint32_t parallel;         /* 1..HF_POOL_PARALLEL_MAX; 0: as the program says */
    uint32_t start_timeout_ms; /* a new process must be ready within this time; default
                                  30000 */
    uint32_t grace_ms;         /* from the request to end a run to KILL; default 5000 */
    uint64_t max_jobs;         /* a process is replaced after this many; 0: no limit */
    int64_t max_age_ms;        /* ... when it is this old; 0: no limit */
    int64_t max_rss; /* ... when it has this many bytes in memory; 0: no limit */
    int64_t idle_ms; /* processes beyond the first end when they had no job for
                        so long; default 600000; or HF_IDLE_NEVER */
    const hf_pool_type *types; /* for these types; may be NULL */
    size_t n_types;
    /* for the types about which neither `types` nor the program says anything */
    uint32_t timeout_ms;   /* 0, HF_TIMEOUT_NONE: none */
    uint32_t max_attempts; /* 0: as in the worker's options */
    int64_t keep_ms;       /* 0: as long as the queue says; or HF_KEEP_NONE */
    const char *on_dead;   /* NULL: as the queue says */
    bool env_all;          /* as in hf_program */
    bool logs;             /* Redis keeps the outputs of its runs, as hf_run_log() */
    bool unused[2];
    uint32_t start_tries; /* hf_worker_run() ends after this many starts in a row that
                             failed, if no process was ever ready; 0: it tries on */
    const char *listen;   /* for debuggers: programs of the same user that connect to a
                             socket at this path join the pool, each in place of a process;
                             without an argv the pool has no others. NULL: none can */
} hf_pool;
#define HF_POOL_INIT HF_STRUCT_INIT(hf_pool)

typedef enum hf_log_level {
    HF_LOG_DEBUG,
    HF_LOG_INFO,
    HF_LOG_WARN,
    HF_LOG_ERROR
} hf_log_level;

/* One field of a log line: `text`, or `number` if `text` is NULL. */
typedef struct hf_log_field {
    size_t size; /* the library sets it */
    const char *key;
    const char *text;
    int64_t number;
} hf_log_field;

/* Called from any of the worker's threads, one at a time. All arguments are borrowed. The
 * worker stands still until it returns: it must not wait for a pipe or a disk. */
typedef void (*hf_log_fn)(hf_log_level level, const char *message,
                          const hf_log_field *fields, size_t n, void *arg);

/* Zero means the default. All text is copied. */
typedef struct hf_worker_opts {
    size_t size;                   /* HF_WORKER_OPTS_INIT */
    const hf_server_opts *server;  /* which Redis; NULL: the defaults */
    const hf_worker_queue *queues; /* 1 to 64, with their shards at most 128 */
    size_t n_queues;
    bool strict;                  /* claim in the order of `queues`; else by weight */
    uint32_t concurrency;         /* jobs at a time: default 16; 1..1024 */
    uint32_t lease_ms;            /* default 10000; 1000..3600000 */
    uint32_t kill_grace_ms;       /* from TERM to KILL before the lease of a program ends;
                                     default 1000, at most a quarter of the lease */
    uint32_t shutdown_timeout_ms; /* default 25000; or HF_SHUTDOWN_AT_ONCE */
    uint32_t max_attempts;        /* default 20 */
    hf_backoff_kind backoff;
    uint32_t backoff_base_ms; /* default 2000 */
    uint32_t backoff_cap_ms;  /* default 3600000 */
    double backoff_jitter;    /* default 0.2; at most 1; or HF_JITTER_NONE */
    uint32_t poison;          /* crashes after which a job is dead; default 3 */
    uint32_t dead_max;        /* dead jobs that a queue keeps; default 10000 */
    int64_t dead_age_ms;      /* how long it keeps them; default 180 days */
    bool burst;               /* stop when no job is left, not even a delayed one */
    const char *minder;       /* path of the `holdfast` command, needed only for
                                 programs and pools; NULL: found by PATH */
    hf_log_fn log;            /* may be NULL */
    void *log_arg;
    uint32_t wait_replicas;    /* the minimum of replicas that must have a claim, a
                                  renewal and the end of a job before they count; every
                                  connected one must; 0: none; at most HF_REPLICAS_MAX */
    uint32_t wait_replicas_ms; /* how long; default 5000, at most half of the lease. After
                                  it a claim is given back, a renewal has failed, and the
                                  end of a job is logged */
    const hf_schedule *schedules; /* of its queues. The worker writes each to Redis when
                                     it differs from what it, or another worker, wrote
                                     last. One that no live worker has is removed after 10
                                     minutes */
    size_t n_schedules;
    bool cgroup;      /* each program gets a control group (cgroup v2) below that of this
                         process, which must have been delegated to it; Linux 5.14 */
    bool no_timeouts; /* no run is ended because of its time: for debuggers */
    bool offered_queues; /* the queues that the programs of pools name for their types and
                            schedules are served, too */
    bool unused[5];
    uint32_t history_ms; /* how long Redis keeps what ended in each minute, for
                            hf_admin_history(): default and at most 48 hours; or
                            HF_HISTORY_NONE */
    uint32_t unused_too;
    const hf_tracer *tracer; /* takes the spans `process` and `settle`; copied; NULL: none
                              */
} hf_worker_opts;
#define HF_WORKER_OPTS_INIT HF_STRUCT_INIT(hf_worker_opts)

#ifdef __cplusplus
extern "C" {
#endif

/* Makes a worker, without connecting. The caller owns *out and ends it with
 * hf_worker_free(). HF_INVALID, HF_NOMEM, HF_SYSTEM: *out is untouched. */
HF_API HF_MUSTCHECK hf_err hf_worker_new(hf_worker **out, const hf_worker_opts *opts,
                                         char detail[HF_DETAIL_SIZE]);

/* Adds a handler for a type ("*": every type without a handler of its own). timeout_ms 0:
 * none; a job's own time-out takes precedence. Several threads call `fn` at a time.
 * HF_INVALID: no type or function, or the type has a handler. HF_BUSY: hf_worker_run()
 * was called before. HF_NOMEM. */
HF_API HF_MUSTCHECK hf_err hf_worker_handle(hf_worker *worker, const char *type,
                                            uint32_t timeout_ms, hf_handler_fn fn,
                                            void *arg, char detail[HF_DETAIL_SIZE]);
/* The same for a program. The process must then not ignore SIGCHLD (hf_worker_run()
 * refuses that) and not wait for "any child", since either could take the exit status of
 * a program, and a program without one has failed. */
HF_API HF_MUSTCHECK hf_err hf_worker_handle_program(hf_worker *worker,
                                                    const hf_program *program,
                                                    char detail[HF_DETAIL_SIZE]);
/* Adds a pool, and copies it. It gets the jobs of the types that its program names, and
 * none of "*". The process must treat SIGCHLD and "any child" as for a program.
 * HF_INVALID: a member is out of its range, or a type of `types` has another handler.
 * HF_BUSY: hf_worker_run() was called before. HF_NOMEM. */
HF_API HF_MUSTCHECK hf_err hf_worker_pool(hf_worker *worker, const hf_pool *pool,
                                          char detail[HF_DETAIL_SIZE]);

/* Serves the queues until the worker is stopped. Installs no signal handler. May be
 * called once for each worker. HF_OK: it was stopped, even if it had to release jobs.
 * HF_CONN, HF_AUTH, HF_UNSUPPORTED, HF_POLICY (Redis may evict locks), HF_READONLY,
 * HF_LOADING, HF_PROTO: Redis was not usable within connect_timeout_ms of the start, or
 * within 5 s if that is longer; after the start it tries without end. HF_INVALID: there
 * is no handler, or it was called before. HF_CONFIG: the password file or the minder
 * cannot be used, SIGCHLD is ignored while there are programs or pools, or a pool has had
 * its start_tries. HF_SYSTEM (also where `cgroup` is wanted and cannot be made),
 * HF_NOMEM. */
HF_API HF_MUSTCHECK hf_err hf_worker_run(hf_worker *worker, char detail[HF_DETAIL_SIZE]);

/* From any thread and from signal handlers. stop: claims no more jobs, waits for running
 * ones at most shutdown_timeout_ms (a second call ends this wait), then ends programs and
 * releases their jobs without counting an attempt. quiet: claims no more jobs, but
 * renews those that run. resume: claims again. */
HF_API void hf_worker_stop(hf_worker *worker);
HF_API void hf_worker_quiet(hf_worker *worker);
HF_API void hf_worker_resume(hf_worker *worker);

/* Replaces options, programs and pools while the worker runs, from any thread, but not
 * from a signal handler. The call checks and copies everything; HF_INVALID and HF_NOMEM
 * change nothing. The worker then applies it as a whole, between two jobs, and logs each
 * change.
 *
 * Applied are: the queues with their order, weights, limits, `keep` and `on_dead`; the
 * schedules; the programs and the pools, which replace all earlier ones, while C handlers
 * stay;
 * `strict`, `max_attempts`, the backoff, `poison`, `dead_max`, `dead_age_ms`,
 * `history_ms` and `shutdown_timeout_ms`. A started job keeps its handler. A queue that
 * is no longer named is not claimed from; its running jobs end as usual. All other
 * options keep their values, and the log says `needs a restart` for each that differs,
 * and for programs and pools if the worker began without any of both.
 *
 * A worker that is being stopped ignores the call. If several calls come at once, the
 * last one counts. */
HF_API HF_MUSTCHECK hf_err hf_worker_reload(hf_worker *worker, const hf_worker_opts *opts,
                                            const hf_program *programs, size_t n_programs,
                                            const hf_pool *pools, size_t n_pools,
                                            char detail[HF_DETAIL_SIZE]);

/* How many reloads are over: applied, ignored, replaced by a later one, or refused
 * because queues of earlier reloads still have too many running jobs. */
HF_API uint64_t hf_worker_reloads(const hf_worker *worker);
/* Whether the last of them was applied. */
HF_API bool hf_worker_reload_taken(const hf_worker *worker);

/* From any thread, for a supervisor of the process. The pulse is 0 until Redis has
 * answered a claim for each queue (or until the worker wants no job, because it is full
 * or quiet). Then it rises, at least every 10 s, each time that Redis has answered a
 * claim or a check and the loop has turned. It stands still while the loop hangs, while
 * Redis refuses or does not answer, and while no lease can be renewed. running: the
 * number of busy slots. */
HF_API uint64_t hf_worker_pulse(const hf_worker *worker);
HF_API uint32_t hf_worker_running(const hf_worker *worker);
/* How many jobs it can run at a time now, with those of its pools; from any thread. */
HF_API uint32_t hf_worker_slots(const hf_worker *worker);
/* How many spans its tracer has lost; 0 without one. */
HF_API uint64_t hf_worker_spans_dropped(const hf_worker *worker);

/* From any thread, for a monitor of the process; neither waits for the loop. alive:
 * the loop has turned within 10 s, or sleeps no longer than it meant to. ready: it is
 * alive, Redis has answered a claim or a check within 30 s, it is neither quiet nor being
 * stopped, and if it has pools, at least one of them takes jobs. False: `detail` says
 * why; it may be NULL. */
HF_API bool hf_worker_alive(const hf_worker *worker, char detail[HF_DETAIL_SIZE]);
HF_API bool hf_worker_ready(const hf_worker *worker, char detail[HF_DETAIL_SIZE]);

typedef enum hf_metrics_format {
    HF_METRICS_PROMETHEUS, /* text/plain; version=0.0.4 */
    HF_METRICS_OPENMETRICS /* application/openmetrics-text; version=1.0.0 */
} hf_metrics_format;

/* From any thread: what the worker has counted since it was made (docs/metrics.md), as
 * Prometheus reads it. *text, of *len bytes and a NUL, is freed by the caller with
 * free(). Does not wait for the loop. HF_NOMEM, HF_TOOBIG. */
HF_API HF_MUSTCHECK hf_err hf_worker_metrics(const hf_worker *worker,
                                             hf_metrics_format format, char **text,
                                             size_t *len);

/* Frees the worker; not while it runs. Waits for C handlers that have not returned. NULL
 * is fine. */
HF_API void hf_worker_free(hf_worker *worker);

/* The worker's id, host-pid-random, with which lock tokens begin. Borrowed from the
 * worker. */
HF_API const char *hf_worker_id(const hf_worker *worker);

/* How many C handlers had not returned when hf_worker_run() did. */
HF_API size_t hf_worker_unreturned(const hf_worker *worker);

/* The i-th of the fields that hf_log_fn gets. Use this function, and do not index the
 * array: in a newer library the elements may be larger. */
HF_API const hf_log_field *hf_log_field_at(const hf_log_field *fields, size_t i);

/* ---- in a handler, about its own run; all text is borrowed until it returns ---- */

HF_API const char *hf_run_id(const hf_run *run);
HF_API const char *hf_run_type(const hf_run *run);
HF_API const char *hf_run_queue(const hf_run *run);
HF_API const void *hf_run_payload(const hf_run *run, size_t *len); /* never NULL */
HF_API uint32_t hf_run_attempt(const hf_run *run);                 /* 1 the first time */

/* A number that rises with every later claim of the same job; jobs of one claim share it.
 * Send it with every write, and let the store refuse a lower one than it has seen. (M.
 * Kleppmann, "How to do distributed locking", 2016.) */
HF_API uint64_t hf_run_fence(const hf_run *run);

/* How long the lock is certainly held without another renewal; 0: it is lost. */
HF_API int64_t hf_run_remaining_ms(const hf_run *run);
HF_API bool hf_run_lost(const hf_run *run);
HF_API bool hf_run_cancelled(const hf_run *run);
HF_API bool hf_run_timed_out(const hf_run *run);
/* Any of the three, or the worker is being stopped: the handler should return soon. */
HF_API bool hf_run_stopping(const hf_run *run);

/* Calls `fn` once when hf_run_stopping() becomes true for this run (at once if it is true
 * already), and never after the handler has returned. The thread of the worker's loop
 * calls it, so it must be quick: meanwhile the worker only renews its leases. */
HF_API void hf_run_on_stop(hf_run *run, void (*fn)(void *arg), void *arg);

/* The tick of the schedule that made this job, in Unix ms; 0: no schedule made it. */
HF_API int64_t hf_run_scheduled_ms(const hf_run *run);

/* The headers of the job, a flat JSON object of texts; "" if it has none. */
HF_API const char *hf_run_headers(const hf_run *run);

/* The trace of the run, as a W3C traceparent. With a tracer it names the span `process`,
 * else it is that of the job's header "traceparent"; "" if it has none. */
HF_API const char *hf_run_traceparent(const hf_run *run);

/* For the verdict: the error text (copied, cut to 4096 bytes); and for RETRY (instead of
 * the backoff) and RELEASE a delay, cut to 0..HF_DELAY_MAX_MS. */
HF_API void hf_run_set_error(hf_run *run, const char *text);
HF_API void hf_run_set_retry_in(hf_run *run, int64_t delay_ms);

/* For DONE: the job's result, at most HF_RESULT_MAX bytes, copied; the last call counts.
 * It is kept if the job is kept: the job (hf_job), this handler and the queue decide, in
 * this order. Otherwise it is dropped. The text of the second call is JSON (UTF-8); only
 * white space outside of strings is removed.
 * HF_TOOBIG, HF_NOMEM, HF_INVALID (not JSON): nothing has changed. */
enum { HF_RESULT_MAX = 65536 };
HF_API hf_err hf_run_set_result(hf_run *run, const void *bytes, size_t len);
HF_API hf_err hf_run_set_result_json(hf_run *run, const char *text);
/* How long the job is kept: 0 as long as the queue says; or HF_KEEP_NONE. */
HF_API void hf_run_set_keep(hf_run *run, int64_t keep_ms);

/* ---- what a handler reports while it runs; from any of its threads ---- */

enum {
    HF_NOTE_MAX = 256,        /* bytes of a note */
    HF_CHECKPOINT_MAX = 4096, /* bytes of a checkpoint */
    HF_RUN_LOG_MAX = 65536    /* bytes of the log of a run: the last ones are kept */
};

/* How far the run has come: 0 to 100 percent (larger values count as 100), and a line for
 * people (copied, cut to HF_NOTE_MAX; NULL: as it was). It goes to Redis with the next
 * renewal of the lease, so it is at most a third of a lease old there, and costs no
 * request. It ends with the run. */
HF_API void hf_run_set_progress(hf_run *run, uint32_t percent, const char *note);

/* How far the job has come, for its next run: any bytes. The lease is renewed at once (a
 * worker does this at most every 100 ms) and takes the checkpoint to Redis. It stays with
 * the job until the job ends or a new checkpoint replaces it; len 0 removes it. It
 * outlives a retry, a release and a takeover, and stays with a dead job. A job whose
 * workers die is not poison while each crash finds a new checkpoint. HF_TOOBIG: it
 * is larger than HF_CHECKPOINT_MAX, and nothing changes. HF_NOMEM. */
HF_API HF_MUSTCHECK hf_err hf_run_set_checkpoint(hf_run *run, const void *bytes,
                                                 size_t len);
/* The checkpoint of an earlier run of the job; never NULL. *len 0: there is none. */
HF_API const void *hf_run_checkpoint(const hf_run *run, size_t *len);

/* Adds a line to the log of the run (its newline is added if it is missing). Redis keeps
 * the logs of the last 10 runs of a job until the job is removed. A line is there within
 * a second or two. */
HF_API void hf_run_log(hf_run *run, const char *line);

#ifdef __cplusplus
}
#endif

#endif
