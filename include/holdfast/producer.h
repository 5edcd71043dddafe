/* producer.h - put jobs into queues.
 *
 * Two ways, one engine. Opened with a loop, a producer lives on that loop: hf_enqueue()
 * only, from the loop's thread. Opened without one it has a thread of its own and is
 * thread-safe: hf_enqueue() and hf_enqueue_wait() from any thread; jobs of many callers
 * travel in shared batches. A call that waits sends and reads in its own thread, also
 * for other callers, and wakes no other thread. It needs 64 KiB of stack.
 *
 * An accepted job (HF_OK) is in Redis. After a reconnect the producer first repeats the
 * unanswered requests, in order and under their old numbers. Redis executes no number
 * twice. While Redis is away, jobs wait in a bounded buffer; when it is full, the answer
 * is HF_FULL. No job is dropped silently.
 *
 * After fork() the child must not use the parent's producer: calls there answer
 * HF_FORKED, and closing it only does nothing. */
#ifndef HOLDFAST_PRODUCER_H
#define HOLDFAST_PRODUCER_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/error.h"
#include "holdfast/server.h"
#include "holdfast/struct.h"

struct uv_loop_s;

typedef struct hf_producer hf_producer;

enum {
    HF_NAME_MAX = 128,            /* bytes of a queue's name, a type or an id, each of
                                     [A-Za-z0-9._:-]; at least one */
    HF_ID_SIZE = HF_NAME_MAX + 1, /* room for an id and its NUL */
    HF_BATCH_JOBS = 10000,        /* jobs in one call */
    HF_BATCH_BYTES = 64 << 20,    /* bytes of records in one call: 64 MiB */
    HF_PAYLOAD_DEFAULT = 1 << 20, /* bytes of a payload unless set otherwise: 1 MiB */
    HF_PAYLOAD_CEILING = 63 << 20 /* no limit can be set above this */
};

/* No delay and no other duration is longer than 100 years (36,525 days), and no time is
 * later than the end of the year 9999. What is given to a call is refused beyond that;
 * what a handler or a program asks for is cut. Their sum is far below 2^53 ms, up to
 * which a score of Redis is exact. */
#define HF_DELAY_MAX_MS INT64_C(3155760000000)
#define HF_TIME_MAX_MS INT64_C(253402300799999)

/* Zero means the default. All text and bytes are copied before the call returns. */
typedef struct hf_job {
    size_t size;           /* HF_JOB_INIT */
    const char *queue;     /* NULL: "default" */
    const char *type;      /* required */
    const void *payload;   /* any bytes */
    size_t payload_len;    /* bytes */
    const char *id;        /* NULL: made here, 14 characters, rising in time */
    int64_t delay_ms;      /* from when Redis gets it; 0: at once; ..HF_DELAY_MAX_MS */
    int64_t at_ms;         /* Unix time in ms on Redis's clock, ..HF_TIME_MAX_MS; not with
                              delay_ms */
    uint32_t max_attempts; /* 0: as the worker is configured */
    uint32_t timeout_ms;   /* 0: as the worker is configured */
} hf_job;
#define HF_JOB_INIT HF_STRUCT_INIT(hf_job)

/* The answer for one job: HF_OK (accepted), HF_EXISTS (an id that is queued, running or
 * dead already: nothing was changed; never for an id that was made here, unless the
 * producer continues an earlier `run`), or why not. */
typedef struct hf_enqueue_result {
    size_t size; /* HF_ENQUEUE_RESULT_INIT */
    hf_err err;
    char id[HF_ID_SIZE];
} hf_enqueue_result;
#define HF_ENQUEUE_RESULT_INIT HF_STRUCT_INIT(hf_enqueue_result)

/* Called once for each job that hf_enqueue() took, on the loop's thread, or on the
 * producer's own. `detail` is borrowed, "" if there is nothing to add. */
typedef void (*hf_enqueue_cb)(const hf_enqueue_result *result, const char *detail,
                              void *arg);

/* Zero means the default. All text is copied. */
typedef struct hf_producer_opts {
    size_t size;                  /* HF_PRODUCER_OPTS_INIT */
    struct uv_loop_s *loop;       /* borrowed; NULL: a thread of its own, thread-safe */
    const hf_server_opts *server; /* which Redis; NULL: the defaults */
    uint32_t deadline_ms;         /* of a call from start to answer: 5000, 1..600000; then
                                     HF_TIMEOUT (nothing was sent) or HF_UNSURE */
    uint32_t payload_max;         /* bytes: HF_PAYLOAD_DEFAULT */
    uint32_t buffer_jobs;         /* jobs not yet answered: 10000 */
    size_t buffer_bytes;          /* bytes of them: 64 MiB */
    const char *run; /* the id of an earlier producer to continue (a name), for numbered
                        calls only; NULL: a new one */
    int64_t remember_ms; /* how long Redis remembers what this producer has sent;
                            0: twice deadline_ms, and forgotten at a clean close */
} hf_producer_opts;
#define HF_PRODUCER_OPTS_INIT HF_STRUCT_INIT(hf_producer_opts)

#ifdef __cplusplus
extern "C" {
#endif

/* The caller owns *out. Does not wait for Redis. HF_INVALID, HF_CONFIG, HF_NOMEM,
 * HF_SYSTEM; then *out is untouched and `detail` (may be NULL) says why. */
HF_API HF_MUSTCHECK hf_err hf_producer_open(hf_producer **out,
                                            const hf_producer_opts *opts,
                                            char detail[HF_DETAIL_SIZE]);

/* Takes one job. HF_OK: cb (may be NULL) will be called exactly once, never from inside
 * this call. HF_INVALID, HF_TOOBIG, HF_FULL, HF_CLOSED, HF_FORKED, HF_NOMEM: it never
 * will be, and nothing was taken. */
HF_API HF_MUSTCHECK hf_err hf_enqueue(hf_producer *producer, const hf_job *job,
                                      hf_enqueue_cb cb, void *arg);

/* Takes n jobs (1..HF_BATCH_JOBS), which may be of several queues; those of one queue are
 * accepted all or none. Waits for the answers at most deadline_ms (0: the producer's) and
 * fills results[0..n) when it is not NULL. Only for a producer with its own thread, and
 * not from inside a callback. Calls whose deadlines lie close together share requests,
 * and then the first deadline: a call may be given up a sixteenth of its time early.
 *
 * HF_OK: each job was accepted or existed. HF_INVALID, HF_TOOBIG, HF_FULL, HF_CLOSED,
 * HF_FORKED, HF_NOMEM: nothing was taken. Else the worst answer of any job: a fault (that
 * of a server that refused until the deadline, or one that waiting would not put right),
 * HF_TIMEOUT, or HF_UNSURE. `detail` (may be NULL) says more. */
HF_API HF_MUSTCHECK hf_err hf_enqueue_wait(hf_producer *producer, const hf_job *jobs,
                                           size_t n, hf_enqueue_result *results,
                                           uint32_t deadline_ms,
                                           char detail[HF_DETAIL_SIZE]);

/* Sends n jobs of one queue (1..HF_BATCH_JOBS) as request `number` of this producer, all
 * or none, and waits as hf_enqueue_wait() does. A number that Redis remembers as executed
 * changes nothing and answers HF_OK for each job: so a file can be sent again. Ids left
 * NULL are made from the producer's id and `first` + the job's place, the same each time:
 * 14 characters, or 26 when `run` was not made by a producer.
 *
 * Numbers begin at 1 and rise within a queue; one that has failed must succeed before a
 * higher one is taken, and a producer that has sent with numbers does not send without
 * them, nor the other way: else HF_INVALID. One call at a time: else HF_BUSY. */
HF_API HF_MUSTCHECK hf_err hf_enqueue_numbered(hf_producer *producer, const hf_job *jobs,
                                               size_t n, uint64_t number, uint64_t first,
                                               hf_enqueue_result *results,
                                               char detail[HF_DETAIL_SIZE]);

/* The producer's id, 26 characters unless `run` named it. Borrowed from the producer. */
HF_API const char *hf_producer_id(const hf_producer *producer);

/* Takes nothing more, lets what was taken be answered until its deadline, then frees the
 * producer. With a loop: returns at once and calls cb (may be NULL) on the loop's thread
 * at the end. Without: returns at the end, cb was called before; threads that wait have
 * their answers by then, and no call may begin any more. NULL is fine, cb is called. */
HF_API void hf_producer_close(hf_producer *producer, void (*cb)(void *arg), void *arg);

#ifdef __cplusplus
}
#endif

#endif
