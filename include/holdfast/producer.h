/* producer.h - put jobs into queues.
 *
 * A producer can be opened in two ways. With a loop of libuv, it lives on that loop: only
 * hf_enqueue() may be called, on the loop's thread. Without one, it has a thread of its
 * own and is thread-safe: any thread may call hf_enqueue() and hf_enqueue_wait(), and
 * jobs of many callers share requests. A waiting call sends and reads in its own thread,
 * for other callers as well. It needs 64 KiB of stack.
 *
 * An accepted job (HF_OK) is in Redis. After a reconnect the producer first repeats the
 * unanswered requests, in order and under their old numbers. Redis executes no number
 * twice. While Redis is away, jobs wait in a bounded buffer; when it is full, the answer
 * is HF_FULL. No job is dropped silently.
 *
 * A producer learns from Redis that a queue is divided into shards (hf_admin_divide()). A
 * job with an id goes to the shard of its id. Jobs without ids go to the shards in turn,
 * and to the other shards while the node of a shard is away.
 *
 * With `wait_replicas` a job counts as accepted when that many replicas have it as well.
 * If another server takes over before that, the producer sends the request to it again,
 * under the old number. HF_UNCONFIRMED says that the job is in Redis and may run, but
 * that a failover may lose it. Enqueue it again under its id (hf_enqueue_result), or make
 * the numbered call again: a job that is still there is not accepted twice.
 *
 * After fork() the child must not use the parent's producer: its calls return HF_FORKED,
 * and hf_producer_close() does nothing. */
#ifndef HOLDFAST_PRODUCER_H
#define HOLDFAST_PRODUCER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/error.h"
#include "holdfast/job.h"
#include "holdfast/server.h"
#include "holdfast/struct.h"
#include "holdfast/trace.h"

struct uv_loop_s;

typedef struct hf_producer hf_producer;

/* What happened to a job whose unique key was already held. */
typedef enum hf_conflict {
    HF_CONFLICT_NONE,
    HF_CONFLICT_SKIPPED,  /* HF_EXISTS, and `id` is the holder */
    HF_CONFLICT_REPLACED, /* HF_EXISTS, and `id` is the job that took its payload */
    HF_CONFLICT_PARKED    /* HF_OK: it follows the holder */
} hf_conflict;

/* The answer for one job: HF_OK (accepted), HF_EXISTS (a job with this id waits, runs or
 * is dead; nothing was changed), or the reason why it was not accepted. Ids that the
 * library makes never exist already, unless the producer continues an earlier `run`. */
typedef struct hf_enqueue_result {
    size_t size; /* HF_ENQUEUE_RESULT_INIT */
    hf_err err;
    char id[HF_ID_SIZE];
    int64_t accepted_ms;  /* for hf_job_wait(): Redis's time when it was accepted, or
                             found; 0: it was not, or an earlier request had done it. Of an
                             awaited job no other job of its id has the same */
    hf_conflict conflict; /* with the holder of its unique key */
    /* With a conflict, the state of the holder; with HF_EXISTS and none, that of the job
     * with this id: HF_EXISTS (it waits), HF_RUNNING, HF_PARKED; HF_DEAD: no job runs for
     * this call; HF_GONE: it has ended, but its unique_for_ms has not. Else HF_OK. */
    hf_err holder_state;
    char holder[HF_ID_SIZE];
} hf_enqueue_result;
#define HF_ENQUEUE_RESULT_INIT HF_STRUCT_INIT(hf_enqueue_result)

/* Called once for each job that hf_enqueue() took, on the loop's thread or on the
 * producer's own. Both texts are borrowed until it returns. */
typedef void (*hf_enqueue_cb)(const hf_enqueue_result *result, const char *detail,
                              void *arg);

/* Zero means the default. All text is copied. */
typedef struct hf_producer_opts {
    size_t size;                  /* HF_PRODUCER_OPTS_INIT */
    struct uv_loop_s *loop;       /* borrowed; NULL: a thread of its own, thread-safe */
    const hf_server_opts *server; /* which Redis; NULL: the defaults */
    uint32_t deadline_ms;         /* of a call until its answer; default 5000, at most
                                     600000. After it HF_TIMEOUT (nothing was sent) or
                                     HF_UNSURE */
    uint32_t payload_max;         /* bytes of a payload; default HF_PAYLOAD_DEFAULT */
    uint32_t buffer_jobs;         /* jobs without an answer yet; default 10000 */
    size_t buffer_bytes;          /* their bytes; default 64 MiB */
    const char *run; /* the id of an earlier producer, to continue its numbered calls; it
                        can make no other calls then. NULL: a new producer */
    int64_t remember_ms;    /* how long Redis remembers the numbers that this producer has
                               sent. 0: twice deadline_ms, and until a clean close */
    uint32_t wait_replicas; /* the minimum of replicas that must have a job before it
                               counts as accepted, at most HF_REPLICAS_MAX; 0: none. Every
                               connected replica must have it. Too few in time:
                               HF_UNCONFIRMED */
    uint32_t wait_replicas_ms; /* how long after the answer of Redis; 0: until the
                                  deadline of the call, which always ends the wait */
    const hf_tracer *tracer;   /* takes the spans `enqueue`; copied; NULL: none */
} hf_producer_opts;
#define HF_PRODUCER_OPTS_INIT HF_STRUCT_INIT(hf_producer_opts)

#ifdef __cplusplus
extern "C" {
#endif

/* Makes a producer and starts to connect it, without waiting. The caller owns *out and
 * ends it with hf_producer_close(). HF_INVALID, HF_CONFIG, HF_NOMEM, HF_SYSTEM: *out is
 * untouched. */
HF_API HF_MUSTCHECK hf_err hf_producer_open(hf_producer **out,
                                            const hf_producer_opts *opts,
                                            char detail[HF_DETAIL_SIZE]);

/* Checks a job as a producer would, except for the limits in the producer's options.
 * HF_INVALID, HF_TOOBIG: `detail` says what was expected and found. Asks no server. */
HF_API HF_MUSTCHECK hf_err hf_job_check(const hf_job *job, char detail[HF_DETAIL_SIZE]);

/* Takes one job. HF_OK: cb (may be NULL) will be called exactly once, never from inside
 * this call. HF_INVALID, HF_TOOBIG, HF_FULL, HF_CLOSED, HF_FORKED, HF_NOMEM: nothing was
 * taken, and cb will not be called. */
HF_API HF_MUSTCHECK hf_err hf_enqueue(hf_producer *producer, const hf_job *job,
                                      hf_enqueue_cb cb, void *arg,
                                      char detail[HF_DETAIL_SIZE]);

/* Takes n jobs (1..HF_BATCH_JOBS) of one or several queues, and waits for the answers at
 * most deadline_ms (0: the producer's). Jobs of one queue are accepted all or none; in a
 * queue that is divided into shards this holds for the jobs without ids, and for those of
 * each shard. `results` may be NULL; else results[0..n) are filled. The producer must
 * have its own thread, and the call must not come from a callback. Calls whose deadlines
 * lie close together share a request and its first deadline, so a call may end a
 * sixteenth of its time early.
 *
 * HF_OK: each job was accepted or existed. HF_INVALID, HF_TOOBIG, HF_FULL, HF_CLOSED,
 * HF_FORKED, HF_NOMEM: nothing was taken. Otherwise the worst answer of any job: a fault
 * (Redis refused until the deadline, or for a reason that does not pass), HF_TIMEOUT,
 * HF_UNCONFIRMED, or HF_UNSURE. */
HF_API HF_MUSTCHECK hf_err hf_enqueue_wait(hf_producer *producer, const hf_job *jobs,
                                           size_t n, hf_enqueue_result *results,
                                           uint32_t deadline_ms,
                                           char detail[HF_DETAIL_SIZE]);

/* Sends n jobs of one queue (1..HF_BATCH_JOBS) as request `number` of this producer, all
 * or none as above, and waits as hf_enqueue_wait() does. So a file can be sent again: if
 * Redis remembers the number as executed, nothing changes, and the answer is HF_OK for
 * each job. An id that is NULL is made from the producer's id and `first` + the job's
 * place, so it is the same each time. It has 14 characters, or 26 if a producer did not
 * make `run`.
 *
 * Numbers begin at 1 and rise within a queue. A failed call must succeed before a higher
 * number is taken. A producer makes either numbered calls or others, never both.
 * HF_INVALID: one of these rules is broken. HF_BUSY: another numbered
 * call is under way. */
HF_API HF_MUSTCHECK hf_err hf_enqueue_numbered(hf_producer *producer, const hf_job *jobs,
                                               size_t n, uint64_t number, uint64_t first,
                                               hf_enqueue_result *results,
                                               char detail[HF_DETAIL_SIZE]);

/* The producer's id: `run`, or 26 characters. Borrowed from the producer. */
HF_API const char *hf_producer_id(const hf_producer *producer);

/* Takes no more jobs, waits for the answers to those it took, until their deadlines, and
 * frees the producer. With a loop: returns at once, and calls cb (may be NULL) on the
 * loop's thread at the end. Without a loop: calls cb and returns at the end; waiting
 * calls have their answers by then, and no call may begin after this one. producer NULL:
 * only calls cb. */
HF_API void hf_producer_close(hf_producer *producer, void (*cb)(void *arg), void *arg);

#ifdef __cplusplus
}
#endif

#endif
