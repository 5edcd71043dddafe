/* admin.h - inspect queues and repair them.
 *
 * An hf_admin has a connection and an event loop of its own. Each call blocks until it is
 * answered or until its deadline has passed (5 s by default). A call that works in slices
 * has this deadline for each slice. An hf_admin is not thread-safe, and a callback must
 * not call it. All text that a call returns is copied into the caller's struct, unless
 * its comment says otherwise. */
#ifndef HOLDFAST_ADMIN_H
#define HOLDFAST_ADMIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/error.h"
#include "holdfast/producer.h"
#include "holdfast/schedule.h"
#include "holdfast/server.h"
#include "holdfast/struct.h"

typedef struct hf_admin hf_admin;

/* Zero means the default. All text is copied. */
typedef struct hf_admin_opts {
    size_t size;                  /* HF_ADMIN_OPTS_INIT */
    const hf_server_opts *server; /* which Redis; NULL: the defaults. hf_admin_open()
                                     waits for it at most connect_timeout_ms */
    uint32_t deadline_ms;         /* of each call; default 5000 */
} hf_admin_opts;
#define HF_ADMIN_OPTS_INIT HF_STRUCT_INIT(hf_admin_opts)

/* Bytes of a job's error text at most; bytes of a worker's id, and of a run's note, with
 * the NUL. */
enum { HF_ERROR_MAX = 4096, HF_HOLDER_SIZE = 96, HF_NOTE_SIZE = 257 };

#ifdef __cplusplus
extern "C" {
#endif

/* Connects, and waits for this at most connect_timeout_ms. The caller owns *out and ends
 * it with hf_admin_close(). HF_INVALID (URL, namespace), HF_CONFIG (password file),
 * HF_NOMEM, HF_SYSTEM; HF_CONN, HF_AUTH, HF_UNSUPPORTED, HF_LOADING, HF_PROTO: Redis was
 * not usable in that time. After an error *out is untouched. */
HF_API HF_MUSTCHECK hf_err hf_admin_open(hf_admin **out, const hf_admin_opts *opts,
                                         char detail[HF_DETAIL_SIZE]);
HF_API void hf_admin_close(hf_admin *admin); /* NULL is fine */

/* What Redis reported at the last connection, or to hf_admin_servers() since; of a
 * cluster one of its nodes. Borrowed from the admin object. */
HF_API const hf_server_info *hf_admin_server(const hf_admin *admin);

/* Calls cb for each server: the nodes of a cluster that serve queues, or the one Redis of
 * any other URL, and asks it what it reports now. `place` is the address of a node, NULL
 * without a cluster. `err` and `detail` say why one cannot be reached. Inside of cb
 * hf_admin_server() and hf_admin_round_trip() are about this server; no other call is
 * possible. */
typedef void (*hf_server_cb)(const char *place, hf_err err, const char *detail,
                             void *arg);
HF_API HF_MUSTCHECK hf_err hf_admin_servers(hf_admin *admin, hf_server_cb cb, void *arg,
                                            char detail[HF_DETAIL_SIZE]);

/* Each call below returns HF_OK, an answer that its comment names, or one of these
 * faults, after which its output is undefined. HF_INVALID: a name, an id or a number is
 * not valid. HF_TIMEOUT: the deadline passed before the request was executed. HF_CONN,
 * HF_AUTH, HF_UNSUPPORTED, HF_LOADING, HF_BUSY_SCRIPT, HF_UNSERVED (of a cluster): Redis
 * could not be asked before the deadline. HF_READONLY, HF_MISCONF, HF_OOM, HF_REDIS:
 * Redis refused the request (a key may have another type). HF_PROTO, HF_TOOBIG, HF_NOMEM,
 * HF_SYSTEM. HF_UNSURE: the request was sent and not answered in time, so the change may
 * have been made. */

/* ---- queues ---- */

/* Times are Unix ms on Redis's clock; 0: none. */
typedef struct hf_queue_stats {
    size_t size; /* HF_QUEUE_STATS_INIT */
    char queue[HF_ID_SIZE];
    bool paused;
    int64_t ready, delayed, running, dead; /* jobs now */
    int64_t enqueued, done, failed, lost, unsure, crashed, cancelled,
        deleted;             /* counted since the queue began */
    int64_t oldest_ready_ms; /* when the oldest ready job became due */
    int64_t next_due_ms;     /* when the next delayed job becomes due */
    int64_t max_running;     /* 0: no limit */
    int64_t rate_limit;      /* jobs started in rate_per_ms; 0: no limit */
    int64_t rate_per_ms;
    int64_t workers;          /* live workers that serve this queue */
    int64_t now_ms;           /* the time of these figures */
    int64_t kept, kept_bytes; /* done jobs that are kept; they are counted in `done` */
    int64_t expired;          /* since the queue began: jobs that did not start in time */
    int64_t parked;           /* jobs that follow the holder of their unique key */
    int64_t replaced; /* ever: jobs that went back to wait, where the parked job took
                         their place */
    int64_t healed; /* ever: unique keys that were freed because their holder was lost */
    int64_t paused_ms; /* since when it is paused; 0 also where an older version did it */
    int64_t claimed_ms; /* when a worker last took jobs of it */
    int64_t died_hour;  /* dead jobs that died within the last hour */
    int64_t refused;    /* jobs that wait because a worker had no handler for them */
    int64_t schedules;  /* that make jobs of it */
} hf_queue_stats;
#define HF_QUEUE_STATS_INIT HF_STRUCT_INIT(hf_queue_stats)

/* The names of all queues, sorted. *names is one allocation, which the caller frees with
 * free(). */
HF_API HF_MUSTCHECK hf_err hf_admin_queues(hf_admin *admin, char ***names, size_t *n,
                                           char detail[HF_DETAIL_SIZE]);

/* The figures of a queue. A queue that was never used is empty: HF_OK. */
HF_API HF_MUSTCHECK hf_err hf_admin_stats(hf_admin *admin, const char *queue,
                                          hf_queue_stats *out,
                                          char detail[HF_DETAIL_SIZE]);

/* The same of each of n queues, in their order, as long as cb() returns true: err is that
 * of hf_admin_stats(), with its detail, and without HF_OK only stats->queue is known.
 * Requests are sent together, so it is faster. */
typedef bool (*hf_stats_cb)(hf_err err, const hf_queue_stats *stats, void *arg);
HF_API void hf_admin_stats_each(hf_admin *admin, const char *const *queues, size_t n,
                                hf_stats_cb cb, void *arg, char detail[HF_DETAIL_SIZE]);

/* Pauses or resumes a queue. While it is paused, none of its jobs starts. Pausing and
 * limiting a queue register it, even before its first job. A queue that never had a job
 * is not listed any more when its last setting ends, unless it has schedules, a live
 * worker or shards. */
HF_API HF_MUSTCHECK hf_err hf_admin_pause(hf_admin *admin, const char *queue, bool paused,
                                          char detail[HF_DETAIL_SIZE]);

/* For hf_admin_limit(). */
#define HF_LIMIT_KEEP INT64_C(-1) /* leave this limit as it is */
#define HF_LIMIT_NONE INT64_C(0)  /* lift it */

/* Limits a queue, across all workers, to max_running jobs at a time and to rate_limit
 * jobs started in rate_per_ms. Each value is HF_LIMIT_KEEP, HF_LIMIT_NONE
 * or 1..UINT32_MAX; a rate needs both of its values. The limits are divided among the
 * shards of a queue: each starts its part of the jobs. HF_INVALID: a shard would have no
 * place. */
HF_API HF_MUSTCHECK hf_err hf_admin_limit(hf_admin *admin, const char *queue,
                                          int64_t max_running, int64_t rate_limit,
                                          int64_t rate_per_ms,
                                          char detail[HF_DETAIL_SIZE]);

/* Removes a queue that holds nothing: its settings, its counters and its name. Nothing
 * lists it then. It comes back when a worker starts on it, or when a producer that
 * connected later uses its name; jobs of an earlier one run, but it is not listed.
 * HF_BUSY: it has jobs (waiting, running, dead or kept), schedules, live workers, or
 * unique keys whose window goes on; nothing was removed, `detail` says what it has. Or it
 * was used during the call: it is listed. HF_GONE: there is no queue of that name. A
 * queue that is divided keeps its shards: used again, it has as many. A failure may leave
 * a part of the settings removed, and the queue listed; the call can be repeated. */
HF_API HF_MUSTCHECK hf_err hf_admin_remove(hf_admin *admin, const char *queue,
                                           char detail[HF_DETAIL_SIZE]);

/* About how many bytes of Redis's memory the jobs of a queue take: 20 members of each of
 * its sets and hashes are looked at (MEMORY USAGE). HF_AUTH: this user may not ask. */
HF_API HF_MUSTCHECK hf_err hf_admin_memory(hf_admin *admin, const char *queue,
                                           int64_t *bytes, char detail[HF_DETAIL_SIZE]);

/* ---- shards ----
 *
 * A queue can be divided into shards before its first job. In a cluster they are on
 * several nodes, and so are its jobs. Every call takes the name of the queue and is about
 * all of its shards. A change of several shards may be made in some of them when it fails
 * (`detail` names the first shard that failed); it can be repeated. */

enum { HF_SHARDS_LEAST = 2, HF_SHARDS_MOST = 64 };

/* Divides a queue into n shards, for ever. HF_OK: it has n shards, perhaps since before.
 * HF_INVALID: it has another number of shards, it has jobs, it is paused or limited, or
 * its name is longer than 120 characters. */
HF_API HF_MUSTCHECK hf_err hf_admin_divide(hf_admin *admin, const char *queue, unsigned n,
                                           char detail[HF_DETAIL_SIZE]);

typedef struct hf_shard_info {
    size_t size;      /* the library sets it */
    unsigned number;  /* from 0 on */
    const char *tag;  /* of its keys */
    unsigned slot;    /* of the tag, in a cluster */
    const char *node; /* with the slot; NULL: there is no cluster, or no node has it */
    const hf_queue_stats *stats; /* of this shard; NULL: it could not be asked */
} hf_shard_info;
typedef void (*hf_shard_cb)(const hf_shard_info *shard, void *arg);

/* Calls cb for each shard of a queue, in order; not at all if it is not divided. *shard
 * is borrowed until the callback returns. A shard that cannot be asked is shown without
 * figures, and the call returns the first such fault after it has asked the others. */
HF_API HF_MUSTCHECK hf_err hf_admin_shards(hf_admin *admin, const char *queue,
                                           hf_shard_cb cb, void *arg,
                                           char detail[HF_DETAIL_SIZE]);

/* ---- jobs ---- */

typedef enum hf_job_state {
    HF_STATE_READY,
    HF_STATE_DELAYED,
    HF_STATE_RETRY, /* delayed after a failed attempt */
    HF_STATE_RUNNING,
    HF_STATE_DEAD,
    HF_STATE_DONE,  /* and it is kept */
    HF_STATE_PARKED /* it follows the job that holds its unique key */
} hf_job_state;

/* What kind of result a handler gave. */
typedef enum hf_result_kind {
    HF_RESULT_NONE,
    HF_RESULT_BYTES,
    HF_RESULT_JSON /* without a newline, and without white space outside of strings */
} hf_result_kind;

/* A failed attempt that counts. */
enum { HF_ATTEMPTS_KEPT = 10, HF_ATTEMPT_ERROR_MAX = 256 };
typedef struct hf_job_attempt {
    int64_t ended_ms, ran_ms;
    char worker[HF_HOLDER_SIZE];
    char error[HF_ATTEMPT_ERROR_MAX + 1]; /* its end, with the last line */
} hf_job_attempt;

typedef struct hf_job_info {
    size_t size; /* HF_JOB_INFO_INIT */
    char id[HF_ID_SIZE], queue[HF_ID_SIZE], type[HF_ID_SIZE];
    hf_job_state state;
    uint32_t attempts;            /* failed attempts that count */
    uint32_t crashes;             /* how often its worker or its process died with it */
    uint32_t max_attempts;        /* 0: the worker's */
    uint32_t timeout_ms;          /* 0: the handler's */
    int64_t created_ms;           /* 0: not known */
    int64_t due_ms;               /* running: the end of its lease, 0: it was found to be
                                     over; dead: when it died; done: when it ended */
    char holder[HF_HOLDER_SIZE];  /* of a running job: the id of its worker; else "" */
    uint64_t fence;               /* of a running job; else 0 */
    int64_t lease_remaining_ms;   /* of a running job; else 0 */
    size_t payload_len;           /* bytes; of a done job those of its result */
    char error[HF_ERROR_MAX + 1]; /* of its last failed attempt, or "" */
    hf_priority priority;
    /* Of a done job that is kept; else 0 and "". */
    hf_result_kind result_kind;
    int64_t kept_until_ms;
    int64_t ran_ms;                           /* its last attempt */
    char done_by[HF_HOLDER_SIZE];             /* the worker */
    hf_job_attempt history[HF_ATTEMPTS_KEPT]; /* its last failed attempts, the oldest
                                                 first: n_history of them */
    size_t n_history;
    int64_t start_by_ms; /* of a waiting job: it expires if it has not started until then;
                            0: it does not expire */
    char unique[HF_UNIQUE_MAX + 1]; /* its unique key, or "" */
    char follows[HF_ID_SIZE];       /* of a parked job: the holder of its key; else "" */
    int64_t scheduled_ms;           /* the tick of the schedule that made it; 0: none */
    bool has_progress;              /* a running job has reported how far it is: */
    uint32_t progress;              /* percent */
    char note[HF_NOTE_SIZE];        /* for people, or "" */
    size_t checkpoint_len;          /* bytes; 0: it has none */
    size_t logs;                    /* runs whose log is kept */
    hf_unique_until unique_until;   /* when it frees its unique key */
    int64_t keep_ms;                /* how long it is kept when it is done; 0: as its
                                       handler or its queue says */
    char on_dead[HF_ID_SIZE]; /* the type of the job that is enqueued when it dies; "": as
                                 its handler or its queue says */
    int64_t accepted_ms; /* from hf_admin_cancel(), of a running job: for hf_admin_wait();
                            else 0 */
    char headers[HF_HEADERS_MAX + 1]; /* a flat JSON object of texts, or "" */
    char reason[16];    /* of a dead job: "attempts" (they were used up), "handler" (its
                           verdict), "poison", "type" (it had no handler for an hour),
                           "record", "expired" or "orphan"; else "" */
    int64_t refused_ms; /* when a worker first had no handler for it; 0: none said so */
} hf_job_info;
#define HF_JOB_INFO_INIT HF_STRUCT_INIT(hf_job_info)

/* Called for each job of a list. *info is borrowed until the callback returns. */
typedef void (*hf_job_cb)(const hf_job_info *info, void *arg);

/* One job; HF_GONE if there is none. queue NULL: searches all queues. *payload (payload
 * may be NULL) becomes an allocation of payload_len bytes, which the caller frees with
 * free(). */
HF_API HF_MUSTCHECK hf_err hf_admin_job(hf_admin *admin, const char *queue,
                                        const char *id, hf_job_info *out, void **payload,
                                        char detail[HF_DETAIL_SIZE]);

/* The result of a job that is done and kept. HF_OK: *bytes is an allocation of *len bytes
 * and a NUL, which the caller frees with free(), and *kind says what it is; without a
 * result *len is 0. HF_GONE: there is no such job, or it is not kept any more. HF_EXISTS,
 * HF_RUNNING, HF_DEAD: it is not done. queue NULL: searches all queues. */
HF_API HF_MUSTCHECK hf_err hf_admin_result(hf_admin *admin, const char *queue,
                                           const char *id, void **bytes, size_t *len,
                                           hf_result_kind *kind,
                                           char detail[HF_DETAIL_SIZE]);

/* ---- the logs of a job's runs ---- */

/* A part of the log of one run. Borrowed until the callback returns. */
typedef struct hf_log_part {
    size_t size;      /* the library sets it */
    uint64_t fence;   /* of the run */
    uint32_t attempt; /* of the job, from 1 on */
    uint32_t unused;
    uint64_t from; /* bytes of the log before this part; no longer kept if cb did not get
                      them */
    const char *text; /* len bytes, and a NUL behind them */
    size_t len;
} hf_log_part;
typedef void (*hf_log_cb)(const hf_log_part *part, void *arg);

/* Where a call has stopped, so the next one can continue. */
typedef struct hf_log_place {
    size_t size;    /* HF_LOG_PLACE_INIT */
    uint64_t fence; /* the last run that cb got */
    uint64_t bytes; /* of its log, so far */
    bool ended;     /* nothing follows: the job is dead (until it is retried), or it was
                       done or cancelled less than 5 s ago */
} hf_log_place;
#define HF_LOG_PLACE_INIT HF_STRUCT_INIT(hf_log_place)

/* Calls cb for each of the job's last 10 runs that has a log, in order. *place (may be
 * NULL) is where to continue, and becomes where it has stopped. HF_GONE: there is no such
 * job (any more): its logs are removed 5 s after it was done or cancelled. */
HF_API HF_MUSTCHECK hf_err hf_admin_logs(hf_admin *admin, const char *queue,
                                         const char *id, hf_log_place *place,
                                         hf_log_cb cb, void *arg,
                                         char detail[HF_DETAIL_SIZE]);

/* Lists at most `limit` (1..1000) jobs in a state, in their order, from behind `after`
 * (NULL: from the first one). The shards of a queue are listed one after the other.
 *
 * `next` (may be NULL) becomes the cursor with which to continue, or "" at the end of the
 * list. A cursor stays good when its job moves or goes. `after` may be `next` itself, or
 * the id of a job; HF_GONE: the list has no job of this id. One call looks at 50,000 jobs
 * at most, and few of these may wait for a retry: only `next` says whether it was the
 * last page. */
enum { HF_CURSOR_SIZE = HF_ID_SIZE + 32 };
HF_API HF_MUSTCHECK hf_err hf_admin_list(hf_admin *admin, const char *queue,
                                         hf_job_state state, const char *after,
                                         size_t limit, hf_job_cb cb, void *arg,
                                         char next[HF_CURSOR_SIZE],
                                         char detail[HF_DETAIL_SIZE]);

/* Lists at most `limit` (1..1000) jobs that died at since_ms or later, the longest dead
 * first; of a queue with shards, those of one shard after the other. */
HF_API HF_MUSTCHECK hf_err hf_admin_deaths(hf_admin *admin, const char *queue,
                                           int64_t since_ms, size_t limit, hf_job_cb cb,
                                           void *arg, char detail[HF_DETAIL_SIZE]);

/* Whether the Redis of a queue (NULL: of any) takes writes. HF_OK, or the error with
 * which it refuses them: HF_MISCONF (too few replicas, a failed save), HF_READONLY,
 * HF_OOM, HF_LOADING, HF_UNSERVED. HF_AUTH: this user may not try. Changes nothing. */
HF_API HF_MUSTCHECK hf_err hf_admin_check_writes(hf_admin *admin, const char *queue,
                                                 char detail[HF_DETAIL_SIZE]);

/* ---- single jobs; `queue` is the job's queue, NULL: search all queues ---- */

/* HF_OK: the job was waiting, and is removed. HF_RUNNING: it runs, and is asked to end;
 * *info (may be NULL) gets its id, queue, state, holder, fence and lease. Its worker
 * learns of this with its next renewal, at most a third of the lease later. The job then
 * ends as cancelled, even if the worker dies before that; if the queue is paused, it does
 * so when the queue goes on. HF_DEAD: the job is dead, and nothing changes. HF_GONE:
 * there is no such job. */
HF_API HF_MUSTCHECK hf_err hf_admin_cancel(hf_admin *admin, const char *queue,
                                           const char *id, hf_job_info *info,
                                           char detail[HF_DETAIL_SIZE]);

/* Removes a job that waits or is dead, or is done and kept. HF_RUNNING: it runs, and
 * nothing changes; hf_admin_cancel() would end it. *info (may be NULL) as there. HF_GONE:
 * there is no such job. */
HF_API HF_MUSTCHECK hf_err hf_admin_delete(hf_admin *admin, const char *queue,
                                           const char *id, hf_job_info *info,
                                           char detail[HF_DETAIL_SIZE]);

/* Makes a job due now. A dead job begins anew: its attempts and crashes count from 0. A
 * delayed job, or one in its backoff, waits no longer. HF_RUNNING: it runs
 * already. HF_PARKED: it follows the holder of its unique key, and stays parked.
 * HF_EXISTS: it is dead, and stays so, because another job holds its unique key. HF_GONE:
 * there is no such job. */
HF_API HF_MUSTCHECK hf_err hf_admin_retry(hf_admin *admin, const char *queue,
                                          const char *id, char detail[HF_DETAIL_SIZE]);

/* How to change a waiting job; all zero: nothing changes. */
typedef struct hf_job_edit {
    size_t size;         /* HF_JOB_EDIT_INIT */
    const void *payload; /* NULL: it stays */
    size_t payload_len;  /* bytes */
    bool set_due;        /* it is due after delay_ms, at at_ms, or now if both are 0 */
    bool set_priority;
    hf_priority priority;
    int64_t delay_ms; /* counted from the change; 0..HF_DELAY_MAX_MS */
    int64_t at_ms;    /* Unix ms on Redis's clock; 0..HF_TIME_MAX_MS */
} hf_job_edit;
#define HF_JOB_EDIT_INIT HF_STRUCT_INIT(hf_job_edit)

/* Changes a job that waits, also one that waits for its next attempt. The time in which
 * it must start counts from the new time then. HF_RUNNING, HF_DEAD, HF_PARKED: it does
 * not wait, and nothing changes. HF_GONE: there is no such job. */
HF_API HF_MUSTCHECK hf_err hf_admin_edit(hf_admin *admin, const char *queue,
                                         const char *id, const hf_job_edit *edit,
                                         char detail[HF_DETAIL_SIZE]);

/* Waits until the job neither waits nor runs, at most deadline_ms (0: without end).
 * accepted_ms: from hf_enqueue_result or hf_job_info, which job of this id it is; 0: the
 * one that this call sees first. HF_OK: it is done. HF_DEAD: it died, and `detail` is its
 * error. HF_CANCEL: it was cancelled. HF_DELETED: it was deleted or purged. HF_EXPIRED:
 * it did not start in time. HF_GONE: it is not there, and nothing tells how it ended
 * (hf_job_outcome of holdfast/job_wait.h). HF_TIMEOUT: it still waits or runs.
 *
 * While Redis is away the call goes on until its deadline, and ends at most a second
 * later: with HF_TIMEOUT, or with the fault if this call has never seen the job. Without
 * a deadline it ends with the fault when Redis has not answered for opts.deadline_ms. */
HF_API HF_MUSTCHECK hf_err hf_admin_wait(hf_admin *admin, const char *queue,
                                         const char *id, int64_t accepted_ms,
                                         uint32_t deadline_ms,
                                         char detail[HF_DETAIL_SIZE]);

/* The same. HF_OK: if the job is kept, *bytes, *len and *kind are as of
 * hf_admin_result(), else *bytes is NULL. */
HF_API HF_MUSTCHECK hf_err hf_admin_wait_result(hf_admin *admin, const char *queue,
                                                const char *id, int64_t accepted_ms,
                                                uint32_t deadline_ms, void **bytes,
                                                size_t *len, hf_result_kind *kind,
                                                char detail[HF_DETAIL_SIZE]);

/* ---- many jobs ----
 *
 * These calls work in slices. A slice is done as a whole or not at all, and `progress`
 * (may be NULL) is called after each. Jobs that die or become due during the call are not
 * touched. After a fault *n is the number of jobs done so far, and the call may be
 * repeated. A slice without an answer is sent again, is executed once, and is counted. */

/* Selects dead jobs, in the order in which they died (shard by shard); NULL or all zero:
 * every job that is dead now. */
typedef struct hf_dead_filter {
    size_t size;    /* HF_DEAD_FILTER_INIT */
    const char *id; /* only this job, without other filters; *n is 0 if it is not dead */
    const char *type;  /* NULL: any */
    int64_t since_ms;  /* died at this time or later, in Unix ms; 0: at any time */
    size_t limit;      /* at most this many; 0: no limit */
    const char *error; /* NULL: any; else those with an error of this kind: digits, and
                          ids of 8 or more hex digits, may differ */
    int64_t until_ms;  /* died at this time or earlier; 0: no later than the call began */
    size_t slice; /* jobs in a slice, at most; 0: 200 of a retry, 500 of a purge, which
                     are the most */
} hf_dead_filter;
#define HF_DEAD_FILTER_INIT HF_STRUCT_INIT(hf_dead_filter)

/* Returns false to stop after this slice. `total` is the number of jobs at the start;
 * with a filter, an upper bound. */
typedef bool (*hf_progress_cb)(size_t done, size_t total, void *arg);

/* Makes dead jobs due again, as hf_admin_retry() does: all at once (per_second 0), or
 * per_second of them in each second. A job whose unique key another job holds stays dead;
 * if the filter names only this one, the answer is HF_EXISTS. */
HF_API HF_MUSTCHECK hf_err hf_admin_dead_retry(hf_admin *admin, const char *queue,
                                               const hf_dead_filter *filter,
                                               uint32_t per_second,
                                               hf_progress_cb progress, void *arg,
                                               size_t *n, char detail[HF_DETAIL_SIZE]);
/* Removes dead jobs. */
HF_API HF_MUSTCHECK hf_err hf_admin_dead_purge(hf_admin *admin, const char *queue,
                                               const hf_dead_filter *filter,
                                               hf_progress_cb progress, void *arg,
                                               size_t *n, char detail[HF_DETAIL_SIZE]);
/* Counts the dead jobs that pass. With a limit it stops there. */
HF_API HF_MUSTCHECK hf_err hf_admin_dead_count(hf_admin *admin, const char *queue,
                                               const hf_dead_filter *filter, size_t *n,
                                               char detail[HF_DETAIL_SIZE]);
/* Removes all jobs that wait or are dead, or are done and kept. Running jobs stay. It
 * removes at most as many delayed jobs as there were at the start, so it ends even while
 * producers add more. */
HF_API HF_MUSTCHECK hf_err hf_admin_purge(hf_admin *admin, const char *queue,
                                          hf_progress_cb progress, void *arg, size_t *n,
                                          char detail[HF_DETAIL_SIZE]);

/* ---- why does it not run? ---- */

/* Everything that may keep a job from running, at one moment (the workers: a moment
 * later). Times are Unix ms on Redis's clock. */
typedef struct hf_job_why {
    size_t size;      /* HF_JOB_WHY_INIT */
    hf_job_info *job; /* set by the caller, to get the job as well; NULL: not wanted */
    bool paused;
    int64_t before;      /* jobs ahead of it: due ones, and those of dead workers */
    int64_t max_running; /* 0: no limit */
    int64_t running;     /* running jobs of its queue */
    int64_t rate_limit, rate_per_ms;
    int64_t next_token_ms; /* the rate is used up: when the next job may start; else 0 */
    int64_t locked_until_ms; /* it waits, but its lock is still held: the end of that
                                lock; else 0 */
    bool cancelling;         /* it was asked to end */
    int64_t workers; /* live workers that serve its queue, neither quiet nor stopping */
    int64_t workers_for_type; /* those of them that take its type, or may take it */
    int64_t slots, busy;      /* of these workers in total: slots, and busy slots */
    int64_t pools_down;       /* of the live workers of its queue: pools that are down */
    char holders[8][HF_HOLDER_SIZE]; /* the workers with the most running jobs of its
                                        queue, n_holders of them. Only the 1000 jobs whose
                                        leases end first are counted */
    int64_t held[8];                 /* how many jobs each of them runs */
    size_t n_holders;
    int64_t now_ms; /* the time of these figures */
    hf_err refuses; /* a write; HF_OK: Redis takes writes, or this user may not try */
    char refusal[HF_DETAIL_SIZE]; /* its words */
} hf_job_why;
#define HF_JOB_WHY_INIT HF_STRUCT_INIT(hf_job_why)

/* HF_GONE: there is no such job. */
HF_API HF_MUSTCHECK hf_err hf_admin_why(hf_admin *admin, const char *queue,
                                        const char *id, hf_job_why *out,
                                        char detail[HF_DETAIL_SIZE]);

/* ---- schedules (holdfast/schedule.h) ---- */

/* Bytes of a cron expression and of a zone's name, with NUL. */
enum { HF_CRON_SIZE = 257, HF_ZONE_SIZE = 129 };

typedef struct hf_schedule_info {
    size_t size; /* HF_SCHEDULE_INFO_INIT */
    char id[HF_ID_SIZE], queue[HF_ID_SIZE], type[HF_ID_SIZE];
    char cron[HF_CRON_SIZE], tz[HF_ZONE_SIZE]; /* "" : every_ms; UTC */
    int64_t every_ms;
    hf_missed missed;
    hf_overlap overlap;
    int64_t catch_up_ms, jitter_ms, start_ms, end_ms, limit, rev;
    bool paused;
    bool of_file;         /* a worker's file names it */
    char job[HF_ID_SIZE]; /* of the last tick; "" : none */
    int64_t next_ms;      /* its next tick; 0: none */
    int64_t last_ms;      /* its last tick that made a job; 0: none */
    int64_t accepted;     /* jobs that its ticks made, */
    int64_t skipped;      /* ticks that made no job because of the last one, */
    int64_t dropped;      /* and missed ticks that made no job later */
    size_t payload_len;   /* of hf_admin_schedule() */
    int64_t now_ms;
    hf_priority priority; /* of its jobs, as all below; 0 or "" : the default */
    hf_expired expired;
    uint32_t max_attempts, timeout_ms;
    int64_t keep_ms, start_within_ms;
    char on_dead[HF_ID_SIZE];
    bool held;      /* its ticks make no jobs: no live worker names it any more */
    int64_t passed; /* ticks that made no job, since the last one that did, or since the
                       last change of the schedule. Counted to 1000 */
} hf_schedule_info;
#define HF_SCHEDULE_INFO_INIT HF_STRUCT_INIT(hf_schedule_info)

/* Writes a schedule, new or changed. Its counts stay. A worker whose file names it
 * changes it back only when the file has changed. */
HF_API HF_MUSTCHECK hf_err hf_admin_schedule_put(hf_admin *admin,
                                                 const hf_schedule *schedule,
                                                 char detail[HF_DETAIL_SIZE]);

/* HF_GONE: there is none. *payload, unless NULL, is owned by the caller and ended with
 * free(). */
HF_API HF_MUSTCHECK hf_err hf_admin_schedule(hf_admin *admin, const char *queue,
                                             const char *id, hf_schedule_info *out,
                                             void **payload, char detail[HF_DETAIL_SIZE]);

/* Lists at most `limit` (1..1000) schedules of a queue, sorted by id, from behind the id
 * `after` (which need not be there; NULL: from the first one). Fewer than that: there are
 * no more. *schedule is borrowed until the callback returns. */
typedef void (*hf_schedule_cb)(const hf_schedule_info *schedule, void *arg);
HF_API HF_MUSTCHECK hf_err hf_admin_schedules(hf_admin *admin, const char *queue,
                                              const char *after, size_t limit,
                                              hf_schedule_cb cb, void *arg,
                                              char detail[HF_DETAIL_SIZE]);

/* HF_GONE: there is none. The ticks of a paused schedule are dropped. remove: a schedule
 * of a file comes back when the file has changed. run: enqueues a job now, which does not
 * change the schedule; its id is written to `job`, of HF_ID_SIZE bytes. */
HF_API HF_MUSTCHECK hf_err hf_admin_schedule_pause(hf_admin *admin, const char *queue,
                                                   const char *id, bool paused,
                                                   char detail[HF_DETAIL_SIZE]);
HF_API HF_MUSTCHECK hf_err hf_admin_schedule_remove(hf_admin *admin, const char *queue,
                                                    const char *id,
                                                    char detail[HF_DETAIL_SIZE]);
HF_API HF_MUSTCHECK hf_err hf_admin_schedule_run(hf_admin *admin, const char *queue,
                                                 const char *id, char *job,
                                                 char detail[HF_DETAIL_SIZE]);

/* ---- workers ---- */

/* A pool of a worker, by its last heartbeat. */
typedef struct hf_worker_pool_info {
    size_t size;    /* the library sets it */
    char name[136]; /* its command, cut; without secrets */
    char state[16]; /* "starting", "up" or "down": no process takes jobs, and the last
                       start has failed */
    uint32_t processes, slots, running; /* that take jobs, of these, jobs in them */
    int64_t memory;                     /* bytes, of all its processes */
} hf_worker_pool_info;

typedef struct hf_worker_info {
    size_t size;             /* the library sets it */
    char id[HF_HOLDER_SIZE]; /* host-pid-random */
    char host[HF_HOLDER_SIZE];
    int64_t pid;
    bool silent; /* its heartbeat stopped without a goodbye. The members below are
                    then 0 and "", except those that its id contains */
    int64_t
        heard_ms; /* its last heartbeat; Unix ms on Redis's clock, as the times below */
    int64_t started_ms;
    int64_t now_ms; /* when the list was read: the same for all workers */
    char state[16]; /* "serving", "quiet" or "stopping" */
    char version[24];
    uint32_t concurrency, running; /* jobs at a time, with those of its pools; now */
    const char *const *queues;     /* n_queues names; borrowed */
    const char *const *types; /* n_types types of its handlers, perhaps "*"; borrowed */
    size_t n_queues, n_types;
    bool all_types; /* false: `types` is not complete, because a heartbeat has room for
                       fewer, or because it named none */
    const hf_worker_pool_info *pools; /* n_pools; borrowed */
    size_t n_pools;
} hf_worker_info;

/* Called for each worker: first the live ones, then the silent ones, sorted by id. *info
 * is borrowed until the callback returns. */
typedef void (*hf_worker_cb)(const hf_worker_info *info, void *arg);
HF_API HF_MUSTCHECK hf_err hf_admin_workers(hf_admin *admin, hf_worker_cb cb, void *arg,
                                            char detail[HF_DETAIL_SIZE]);

/* Removes a silent worker from the list. HF_GONE: it is not silent, or not in the list.
 */
HF_API HF_MUSTCHECK hf_err hf_admin_forget(hf_admin *admin, const char *worker,
                                           char detail[HF_DETAIL_SIZE]);

/* ---- history ----
 *
 * Workers note what ended in each minute (`history` in their files; hf_worker_opts).
 * Redis keeps it by the minute for 3 hours, and by ten minutes for 48 hours. */

/* Counts of times: [n] has those of at most 2^(n/2) ms that [n - 1] does not have; the
 * last one all above 2^22 ms, which is 70 minutes. */
enum { HF_HISTORY_BUCKETS = 46 };

/* What ended in a time, of one type of jobs. */
typedef struct hf_history_type {
    size_t size;      /* the library sets it */
    const char *type; /* borrowed; "*": the types beyond 64 in a step, and jobs that died
                         in Redis, where their type is not known */
    int64_t done, failed;    /* attempts, as the counters of hf_queue_stats have them */
    int64_t dead;            /* jobs */
    int64_t run_ms, wait_ms; /* of these attempts in total: runs, and waits from when a
                                job was due until it was claimed */
    int64_t runs[HF_HISTORY_BUCKETS], waits[HF_HISTORY_BUCKETS];
} hf_history_type;
typedef void (*hf_history_type_cb)(const hf_history_type *type, void *arg);

/* A step of time: what ended in it, and how the queue was near its end. The last one is
 * that of now: how the queue is. */
typedef struct hf_history_step {
    size_t size; /* the library sets it */
    int64_t begin_ms, length_ms;
    int64_t done, failed, dead; /* of all types, or of the one that was asked for */
    bool seen;                  /* false: nothing ended, and what follows is 0 */
    bool unused[7];
    int64_t seen_ms; /* when */
    int64_t ready, delayed, running, dead_jobs;
    int64_t oldest_ms; /* for how long the oldest ready job had waited */
    int64_t ever_enqueued, ever_done, ever_failed, ever_crashed; /* counters, as those of
                                                                    hf_queue_stats */
    int64_t crashed, lost; /* of all types, in this step, also where it was not seen: runs
                              that crashed, and verdicts that came too late */
    int64_t runs[HF_HISTORY_BUCKETS], waits[HF_HISTORY_BUCKETS]; /* of the attempts that
                              ended, as those of hf_history_type */
} hf_history_step;
typedef void (*hf_history_step_cb)(const hf_history_step *step, void *arg);

typedef struct hf_history_opts {
    size_t size;      /* HF_HISTORY_OPTS_INIT */
    int64_t since_ms; /* how far back from now: 1..HF_HISTORY_MAX_MS; 0: an hour */
    const char *type; /* only this type; NULL: all */
    hf_history_type_cb on_type; /* each type, sorted by name, "*" last; may be NULL */
    hf_history_step_cb on_step; /* each step, the oldest first; may be NULL */
    void *arg;
    int64_t now_ms; /* Redis's clock, as it was read just now; 0: it is asked, which costs
                       a request */
    bool by_ten;    /* steps of ten minutes, also of a shorter time */
} hf_history_opts;
#define HF_HISTORY_OPTS_INIT HF_STRUCT_INIT(hf_history_opts)

typedef struct hf_history_span {
    size_t size;     /* HF_HISTORY_SPAN_INIT */
    int64_t from_ms; /* the first step began; the last one is that of now */
    int64_t now_ms;
    int64_t length_ms; /* of a step: a minute, or ten, by_ten or if since_ms is above 3
                          hours */
    int64_t ever_done, ever_failed; /* the counters when it began, as far as the history
                                       tells: without one, as they are now */
} hf_history_span;
#define HF_HISTORY_SPAN_INIT HF_STRUCT_INIT(hf_history_span)

/* Reads the history of a queue; its shards are added up. A shard in which nothing ended
 * counts in a step as it was seen last. Types beyond 1024 are added to "*". opts and
 * *span may be NULL. */
HF_API HF_MUSTCHECK hf_err hf_admin_history(hf_admin *admin, const char *queue,
                                            const hf_history_opts *opts,
                                            hf_history_span *span,
                                            char detail[HF_DETAIL_SIZE]);

/* The same for n queues, in this order. The first requests of 16 of them are sent
 * together. opts and *span are as above, of this queue; without now_ms each time of Redis
 * is asked for alone. cb is called when it was read, or
 * with why it could not be, which `detail` explains until cb returns; false ends it. */
typedef struct hf_history_of {
    const char *queue;
    const hf_history_opts *opts;
    hf_history_span *span;
} hf_history_of;
typedef bool (*hf_history_cb)(hf_err err, const hf_history_of *of, void *arg);
HF_API void hf_admin_history_each(hf_admin *admin, const hf_history_of *each, size_t n,
                                  hf_history_cb cb, void *arg,
                                  char detail[HF_DETAIL_SIZE]);

/* The time in ms that a part (0.5, 0.99) of these times did not exceed: the middle of its
 * bucket, which is wrong by 19 % at most. 1: it is at most 1 ms. 0: there is none. */
HF_API double hf_history_percentile(const int64_t counts[HF_HISTORY_BUCKETS],
                                    double part);
/* 2^(n/2) ms; of the last bucket INFINITY. */
HF_API double hf_history_bound_ms(unsigned bucket);

/* ---- the audit ---- */

/* A finding of the audit. All text is borrowed until the callback returns. */
typedef struct hf_finding {
    size_t size;        /* the library sets it */
    const char *check;  /* its kind: a word of docs/diagnose.md */
    int invariant;      /* 1 to 10, see docs/design.md; 0: none of them */
    const char *id;     /* of a job, or a key */
    const char *text;   /* what is wrong: a sentence without its subject */
    const char *repair; /* the repair that was made, would be made, or is left to you */
    bool by_hand;       /* the audit cannot repair it safely */
    bool repaired;
} hf_finding;
typedef void (*hf_audit_cb)(const hf_finding *finding, void *arg);

/* Called for each worker that holds jobs: how many, and the end of the last of their
 * leases (Unix ms on Redis's clock). It may be called several times for one worker: the
 * numbers add up. */
typedef void (*hf_holder_cb)(const char *worker, size_t jobs, int64_t until_ms,
                             void *arg);

typedef struct hf_audit_opts {
    size_t size;    /* HF_AUDIT_OPTS_INIT */
    bool idle;      /* the queue is out of use, so leftover keys are findings, too (I9) */
    bool fix;       /* repair what is safe to repair; else the audit writes nothing */
    hf_audit_cb cb; /* each of the callbacks may be NULL */
    hf_holder_cb holder;
    hf_progress_cb progress; /* counts ids */
    void *arg;
} hf_audit_opts;
#define HF_AUDIT_OPTS_INIT HF_STRUCT_INIT(hf_audit_opts)

/* Checks the invariants of a whole queue in slices, while the queue is used: one script
 * judges and repairs each id at one instant. opts NULL: all zero. *found is the number of
 * findings. One repair may reveal another finding: then call it again. A key of the wrong
 * type is a finding that ends the audit of this queue. */
HF_API HF_MUSTCHECK hf_err hf_admin_audit(hf_admin *admin, const char *queue,
                                          const hf_audit_opts *opts, size_t *found,
                                          char detail[HF_DETAIL_SIZE]);

/* The names of queues that have keys but are not registered, so no other call lists them;
 * sorted. With `fix` they are registered. An invalid name that has keys, or that a
 * program has registered, is listed, too, and stays. *names is one allocation, which the
 * caller frees with free(). The call goes through all keys of this Redis. */
HF_API HF_MUSTCHECK hf_err hf_admin_unregistered(hf_admin *admin, bool fix, char ***names,
                                                 size_t *n, char detail[HF_DETAIL_SIZE]);

/* ---- Redis itself ---- */

/* The shortest of five round trips to Redis, and what it says about Redis's clock. */
typedef struct hf_round_trip {
    size_t size; /* HF_ROUND_TRIP_INIT */
    int64_t took_us;
    int64_t ahead_us; /* Redis's clock minus this host's, within +- unsure_us */
    int64_t unsure_us;
} hf_round_trip;
#define HF_ROUND_TRIP_INIT HF_STRUCT_INIT(hf_round_trip)

/* Five requests, each with its own deadline. */
HF_API HF_MUSTCHECK hf_err hf_admin_round_trip(hf_admin *admin, hf_round_trip *out,
                                               char detail[HF_DETAIL_SIZE]);

/* ---- other languages ---- */

/* The enqueue script as the library sends it, for other languages: *len bytes, and *sha1,
 * 40 hexadecimal digits (each may be NULL). Static. */
HF_API const char *hf_enqueue_script(size_t *len, const char **sha1);
/* The same for jobs with options, such as a priority; and the script that registers a
 * queue, which a client sends once before it enqueues. */
HF_API const char *hf_enqueue_with_script(size_t *len, const char **sha1);
HF_API const char *hf_register_script(size_t *len, const char **sha1);

#ifdef __cplusplus
}
#endif

#endif
