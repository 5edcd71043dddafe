/* admin.h - look into queues and put them right.
 *
 * Synchronous and small: an hf_admin has a connection and a loop of its own, and each
 * call blocks until it is answered or its deadline has passed (5 s unless said otherwise;
 * what works in slices has it for each slice). Not thread-safe, and no call may be made
 * from inside a callback. Every text it fills is in the caller's struct. */
#ifndef HOLDFAST_ADMIN_H
#define HOLDFAST_ADMIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/error.h"
#include "holdfast/producer.h"
#include "holdfast/server.h"
#include "holdfast/struct.h"

typedef struct hf_admin hf_admin;

/* Zero means the default. All text is copied. */
typedef struct hf_admin_opts {
    size_t size;                  /* HF_ADMIN_OPTS_INIT */
    const hf_server_opts *server; /* which Redis; NULL: the defaults. connect_timeout_ms
                                     is how long open waits for it */
    uint32_t deadline_ms;         /* of each call: 5000 */
} hf_admin_opts;
#define HF_ADMIN_OPTS_INIT HF_STRUCT_INIT(hf_admin_opts)

/* Bytes of a job's error text; room for a worker's id and its NUL. */
enum { HF_ERROR_MAX = 4096, HF_HOLDER_SIZE = 96 };

#ifdef __cplusplus
extern "C" {
#endif

/* Waits for Redis, at most connect_timeout_ms. The caller owns *out. HF_INVALID
 * (URL, namespace), HF_CONFIG (password file), HF_NOMEM, HF_SYSTEM, or why Redis was not
 * usable by then: HF_CONN, HF_AUTH, HF_UNSUPPORTED, HF_LOADING, HF_PROTO; then *out is
 * untouched and `detail` (may be NULL) says why. */
HF_API HF_MUSTCHECK hf_err hf_admin_open(hf_admin **out, const hf_admin_opts *opts,
                                         char detail[HF_DETAIL_SIZE]);
HF_API void hf_admin_close(hf_admin *admin); /* NULL is fine */

/* A sentence about the last call that failed. Borrowed until the next call. */
HF_API const char *hf_admin_detail(const hf_admin *admin);

/* What Redis reported at the last connection. Borrowed from the admin object. */
HF_API const hf_server_info *hf_admin_server(const hf_admin *admin);

/* Each call below answers HF_OK, an answer that its comment names, or a fault. After a
 * fault its output is undefined. HF_INVALID: a name, an id or a number is not valid.
 * HF_TIMEOUT: the deadline passed before it was executed. HF_CONN, HF_AUTH,
 * HF_UNSUPPORTED, HF_LOADING, HF_BUSY_SCRIPT: why Redis could not be asked by then.
 * HF_READONLY, HF_MISCONF, HF_REDIS: Redis refused it (a key may be of another type).
 * HF_PROTO, HF_TOOBIG, HF_NOMEM. HF_UNSURE: it was asked, and not answered by then; what
 * it was to change may be changed. */

/* ---- queues ---- */

/* Times are Unix ms on Redis's clock; 0: there is none. */
typedef struct hf_queue_stats {
    size_t size; /* HF_QUEUE_STATS_INIT */
    char queue[HF_ID_SIZE];
    bool paused;
    int64_t ready, delayed, running, dead; /* jobs now */
    int64_t enqueued, done, failed, lost, unsure, crashed, cancelled,
        deleted;             /* counted since the queue began */
    int64_t oldest_ready_ms; /* when the oldest ready job was due */
    int64_t next_due_ms;     /* when the next delayed job is due */
    int64_t max_running;     /* 0: no limit */
    int64_t rate_limit;      /* jobs started in rate_per_ms; 0: no limit */
    int64_t rate_per_ms;
    int64_t workers; /* alive now */
    int64_t now_ms;  /* when this was so */
} hf_queue_stats;
#define HF_QUEUE_STATS_INIT HF_STRUCT_INIT(hf_queue_stats)

/* The names of all queues, sorted; *names is one allocation, owned: end it with free().
 */
HF_API HF_MUSTCHECK hf_err hf_admin_queues(hf_admin *admin, char ***names, size_t *n);

/* A queue that was never used is empty: HF_OK. */
HF_API HF_MUSTCHECK hf_err hf_admin_stats(hf_admin *admin, const char *queue,
                                          hf_queue_stats *out);

/* Pausing or limiting a queue registers it, even before its first job. */
HF_API HF_MUSTCHECK hf_err hf_admin_pause(hf_admin *admin, const char *queue,
                                          bool paused);

/* For hf_admin_limit(). */
#define HF_LIMIT_KEEP INT64_C(-1) /* leave this limit as it is */
#define HF_LIMIT_NONE INT64_C(0)  /* lift it */

/* So many jobs at a time, and rate_limit jobs started in rate_per_ms (both or neither).
 * Each of them HF_LIMIT_KEEP, HF_LIMIT_NONE, or at most UINT32_MAX. */
HF_API HF_MUSTCHECK hf_err hf_admin_limit(hf_admin *admin, const char *queue,
                                          int64_t max_running, int64_t rate_limit,
                                          int64_t rate_per_ms);

/* ---- jobs ---- */

typedef enum hf_job_state {
    HF_STATE_READY,
    HF_STATE_DELAYED,
    HF_STATE_RETRY, /* delayed after a failed attempt */
    HF_STATE_RUNNING,
    HF_STATE_DEAD
} hf_job_state;

typedef struct hf_job_info {
    size_t size; /* HF_JOB_INFO_INIT */
    char id[HF_ID_SIZE], queue[HF_ID_SIZE], type[HF_ID_SIZE];
    hf_job_state state;
    uint32_t attempts;            /* failed ones that count */
    uint32_t crashes;             /* holders that died with it */
    uint32_t max_attempts;        /* the job's own; 0: the worker's */
    uint32_t timeout_ms;          /* the job's own; 0: the handler's */
    int64_t created_ms;           /* 0: not known */
    int64_t due_ms;               /* running: the end of its lease; dead: when it died */
    char holder[HF_HOLDER_SIZE];  /* of a running job: the worker's id, else "" */
    uint64_t fence;               /* of a running job, else 0 */
    int64_t lease_remaining_ms;   /* of a running job, else 0 */
    size_t payload_len;           /* bytes */
    char error[HF_ERROR_MAX + 1]; /* the last one, or "" */
} hf_job_info;
#define HF_JOB_INFO_INIT HF_STRUCT_INIT(hf_job_info)

/* Called for each job of a list; borrowed until it returns. */
typedef void (*hf_job_cb)(const hf_job_info *info, void *arg);

/* One job, HF_GONE if there is none. queue NULL: looks into every queue. payload (may be
 * NULL) gets an allocation of payload_len bytes, owned: end it with free(). */
HF_API HF_MUSTCHECK hf_err hf_admin_job(hf_admin *admin, const char *queue,
                                        const char *id, hf_job_info *out, void **payload);

/* A page of the jobs in a state, in their order: at most `limit` (1..1000), after the
 * place of `after` (an id; NULL: from the start). HF_GONE: `after` is not there any more.
 *
 * Jobs that wait for a retry may be few among many that wait, and one call looks at
 * 50,000 jobs at most. `next` (may be NULL) is "" when the list has found `limit` jobs or
 * came to the end of the set, else the id after which to go on. */
HF_API HF_MUSTCHECK hf_err hf_admin_list(hf_admin *admin, const char *queue,
                                         hf_job_state state, const char *after,
                                         size_t limit, hf_job_cb cb, void *arg,
                                         char next[HF_ID_SIZE]);

/* ---- single jobs: `queue` is the one it is in, NULL: whichever it is in ---- */

/* A job that waits is removed: HF_OK. One that runs is asked to end: HF_RUNNING, and
 * *info (may be NULL) has its id, queue, state, holder, fence and lease; its holder hears
 * of it with its next renewal, at most a third of the lease later, and it ends as
 * cancelled, also when that holder dies before (of a paused queue: when it goes on).
 * HF_DEAD: it is dead, and stays so. HF_GONE: there is no such job. */
HF_API HF_MUSTCHECK hf_err hf_admin_cancel(hf_admin *admin, const char *queue,
                                           const char *id, hf_job_info *info);

/* Removes a job that waits or is dead. HF_RUNNING: a job that runs is not removed under
 * its holder, hf_admin_cancel() ends it; *info (may be NULL) as there. HF_GONE. */
HF_API HF_MUSTCHECK hf_err hf_admin_delete(hf_admin *admin, const char *queue,
                                           const char *id, hf_job_info *info);

/* Runs a job now: a dead one as if it were new, with no attempt and no crash counted; one
 * that waits for its time or its backoff, without waiting. HF_RUNNING: it runs. HF_GONE.
 */
HF_API HF_MUSTCHECK hf_err hf_admin_retry(hf_admin *admin, const char *queue,
                                          const char *id);

/* Waits until the job is not queued or running any more, at most deadline_ms (0: for
 * ever). HF_OK: it is done (no such job any more); HF_DEAD: it is dead; HF_CANCEL: it was
 * cancelled or deleted (known for a minute after), or went while its queue was purged;
 * HF_TIMEOUT. */
HF_API HF_MUSTCHECK hf_err hf_admin_wait(hf_admin *admin, const char *queue,
                                         const char *id, uint32_t deadline_ms);

/* ---- many jobs: in slices, each all or none; `progress` (may be NULL) is called between
 * them. What dies or becomes due meanwhile is not touched. After a fault *n counts what
 * was done, and the call may be made again. A slice whose answer was lost is sent again;
 * *n may then lack up to 1000 that the first sending did. ---- */

/* Which of the dead, the longest dead first; NULL or zero: all that are dead now. */
typedef struct hf_dead_filter {
    size_t size;      /* HF_DEAD_FILTER_INIT */
    const char *id;   /* that one alone, and no other filter; *n 0: it is not dead */
    const char *type; /* NULL: any */
    int64_t since_ms; /* died at this time or later; 0: whenever */
    size_t limit;     /* at most so many; 0: no limit */
} hf_dead_filter;
#define HF_DEAD_FILTER_INIT HF_STRUCT_INIT(hf_dead_filter)

/* False: stop after this slice. `total`: how many there were at the start, which is an
 * upper bound where there is a filter. */
typedef bool (*hf_progress_cb)(size_t done, size_t total, void *arg);

/* Dead jobs back into the line as by hf_admin_retry(). per_second > 0: they become due
 * one after the other, so many in a second; 0: all at once. */
HF_API HF_MUSTCHECK hf_err hf_admin_dead_retry(hf_admin *admin, const char *queue,
                                               const hf_dead_filter *filter,
                                               uint32_t per_second,
                                               hf_progress_cb progress, void *arg,
                                               size_t *n);
/* Removes dead jobs. */
HF_API HF_MUSTCHECK hf_err hf_admin_dead_purge(hf_admin *admin, const char *queue,
                                               const hf_dead_filter *filter,
                                               hf_progress_cb progress, void *arg,
                                               size_t *n);
/* Removes all jobs that wait or are dead; those that run are not touched. It removes
 * at most as many delayed jobs as there were at the start, so it ends although producers
 * add more. */
HF_API HF_MUSTCHECK hf_err hf_admin_purge(hf_admin *admin, const char *queue,
                                          hf_progress_cb progress, void *arg, size_t *n);

/* ---- why does it not run? ---- */

/* All that may keep a job, as it stood at one moment (workers: a moment later). */
typedef struct hf_job_why {
    size_t size;      /* HF_JOB_WHY_INIT */
    hf_job_info *job; /* the caller sets it, to get the job itself; NULL: not wanted */
    bool paused;
    int64_t before;      /* jobs that are due, or left by dead holders, and come first */
    int64_t max_running; /* 0: no limit */
    int64_t running;     /* jobs of its queue that run */
    int64_t rate_limit, rate_per_ms;
    int64_t next_token_ms;   /* out of rate: when the next may start; else 0 */
    int64_t locked_until_ms; /* it waits, but its lock is still held elsewhere; else 0 */
    int64_t calm_until_ms;   /* until then no worker vouches that a lease is over; or 0 */
    bool cancelling;         /* it was asked to end */
    int64_t workers; /* live ones that serve its queue, and are not quiet or stopping */
    int64_t workers_for_type; /* of those, how many take its type, or may */
    int64_t slots, busy;      /* of those: their concurrency and what they run, in sum */
    char holders[8]
                [HF_HOLDER_SIZE]; /* workers that run jobs of its queue (the 1000 whose
                                     leases end first), most first; n_holders of them */
    int64_t held[8];              /* how many each */
    size_t n_holders;
    int64_t now_ms;
} hf_job_why;
#define HF_JOB_WHY_INIT HF_STRUCT_INIT(hf_job_why)

/* HF_GONE: there is no such job. */
HF_API HF_MUSTCHECK hf_err hf_admin_why(hf_admin *admin, const char *queue,
                                        const char *id, hf_job_why *out);

/* ---- workers ---- */

typedef struct hf_worker_info {
    size_t size;             /* the library sets it */
    char id[HF_HOLDER_SIZE]; /* host-pid-random */
    char host[HF_HOLDER_SIZE];
    int64_t pid;
    bool silent;      /* it has not been heard of in time, and said no goodbye: below
                         are 0 and "" except for what its id tells */
    int64_t heard_ms; /* when it was heard of last */
    int64_t started_ms;
    int64_t now_ms; /* Redis's time when they were asked for: the same for all */
    char state[16]; /* "serving", "quiet" or "stopping" */
    char version[24];
    uint32_t concurrency, running;
    const char *const *queues; /* n_queues names; borrowed */
    const char *const *types;  /* n_types of its handlers, "*" among them; borrowed */
    size_t n_queues, n_types;
    bool all_types; /* false: it takes more types than a heartbeat can name, or does not
                       tell its types */
} hf_worker_info;

/* Called for each worker, those that live first, then by id; borrowed until it returns.
 */
typedef void (*hf_worker_cb)(const hf_worker_info *info, void *arg);
HF_API HF_MUSTCHECK hf_err hf_admin_workers(hf_admin *admin, hf_worker_cb cb, void *arg);

/* Takes a worker that went silent off the list. HF_GONE: it is not silent, or not there.
 */
HF_API HF_MUSTCHECK hf_err hf_admin_forget(hf_admin *admin, const char *worker);

/* ---- the audit ---- */

/* One thing that is not as it should be. All text is borrowed until the callback returns.
 */
typedef struct hf_finding {
    size_t size;        /* the library sets it */
    const char *check;  /* what kind of thing: a word of docs/operating.md */
    int invariant;      /* 1 to 10, see docs/design.md; 0: none of them */
    const char *id;     /* a job's, or a key */
    const char *text;   /* what is wrong with it: a sentence that begins with its verb */
    const char *repair; /* what would be done, was done, or has to be done by hand */
    bool by_hand;       /* nothing is done about it: it is not safe, or cannot be known */
    bool repaired;      /* it was put right */
} hf_finding;
typedef void (*hf_audit_cb)(const hf_finding *finding, void *arg);

/* Who has locks of running jobs, how many, and until when at the latest. May be called
 * several times for one worker: the numbers add up. */
typedef void (*hf_holder_cb)(const char *worker, size_t jobs, int64_t until_ms,
                             void *arg);

typedef struct hf_audit_opts {
    size_t size;    /* HF_AUDIT_OPTS_INIT */
    bool idle;      /* nothing works on it now, so what remains is checked as well (I9) */
    bool fix;       /* put right what is safe; else nothing at all is written */
    hf_audit_cb cb; /* the callbacks may be NULL */
    hf_holder_cb holder;
    hf_progress_cb progress; /* in ids looked at */
    void *arg;
} hf_audit_opts;
#define HF_AUDIT_OPTS_INIT HF_STRUCT_INIT(hf_audit_opts)

/* Checks the invariants over one whole queue, in slices, while it is used: each id is
 * judged, and put right, at one instant, by one script. opts NULL: all zero. *found
 * counts the findings. One repair may bring another thing to light: call it again. Keys
 * of the wrong type are reported, and end the audit of this queue. */
HF_API HF_MUSTCHECK hf_err hf_admin_audit(hf_admin *admin, const char *queue,
                                          const hf_audit_opts *opts, size_t *found);

/* Names of queues that have keys but are not registered, which no tool finds. fix: they
 * are registered now. A key with an invalid queue name is reported too, and left.
 * Sorted; *names is one allocation, owned: end it with free(). Reads the whole Redis. */
HF_API HF_MUSTCHECK hf_err hf_admin_unregistered(hf_admin *admin, bool fix, char ***names,
                                                 size_t *n);

/* ---- Redis itself ---- */

/* Redis's clock against this host's, and how far away it is: the shortest of five round
 * trips. */
typedef struct hf_round_trip {
    size_t size; /* HF_ROUND_TRIP_INIT */
    int64_t took_us;
    int64_t ahead_us; /* Redis's clock is ahead by so much, give or take unsure_us */
    int64_t unsure_us;
} hf_round_trip;
#define HF_ROUND_TRIP_INIT HF_STRUCT_INIT(hf_round_trip)
HF_API HF_MUSTCHECK hf_err hf_admin_round_trip(hf_admin *admin, hf_round_trip *out);

/* ---- other languages ---- */

/* The enqueue script as it is sent, for other languages, and its SHA1. Static. */
HF_API const char *hf_enqueue_script(size_t *len, const char **sha1);

#ifdef __cplusplus
}
#endif

#endif
