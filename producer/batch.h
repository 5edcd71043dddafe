/* batch.h - the jobs of one queue that travel as one request.
 *
 * Callers fill a batch. It is sealed when it is sent for the first time, and keeps its
 * request until it is answered: sending it again costs nothing. The bytes of all its jobs
 * are in one buffer. Its list of calls says which jobs belong to which caller; a call is
 * never split.
 *
 *   filled (open: in the queue, more may join) -> sealed, sent -> reported -> freed
 */
#ifndef HF_PRODUCER_BATCH_H
#define HF_PRODUCER_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "base/buf.h"
#include "base/id.h"
#include "holdfast/producer.h"
#include "queue/ops.h"
#include "redis/replicas.h"
#include "redis/run_loop.h"

struct hf_producer_node;
struct hf_requests;
struct hf_target;

enum {
    HF_SHARED_JOBS = 1000,     /* of several calls in one batch */
    HF_SHARED_BYTES = 4 << 20, /* the same */
    HF_JOB_OVERHEAD = 128, /* of a job without options, beside its id, type and payload:
                              bytes, at most */
    HF_ON_DEAD_OVERHEAD = 16,  /* of its option on_dead, beside the type */
    HF_HEADERS_OVERHEAD = 16,  /* of its headers, beside their text */
    HF_OPTIONS_OVERHEAD = 256, /* bytes of its options, at most, without its unique key */
    HF_UNIQUE_ESCAPED = 7      /* for each byte of that: escaped, and as it is */
};

/* A call that waits lives until both sides have left it: its thread, and the last of its
 * batches. The thread leaves early only when no answer comes in time, which happens while
 * a callback holds the service thread up. Guarded by the run loop's lock. */
typedef struct hf_waiter {
    hf_run_waiter run;
    hf_enqueue_result *results; /* the caller's; NULL: it wants none */
    size_t pending;             /* batches without an answer */
    hf_err worst;
    char detail[HF_DETAIL_SIZE];
} hf_waiter;

/* The jobs of one call: of one hf_enqueue(), or of one that waits. */
typedef struct hf_batch_call {
    size_t n;
    uint64_t taken_ns;
    hf_waiter *waiter; /* NULL: cb is called */
    hf_enqueue_cb cb;  /* may be NULL */
    void *arg;
} hf_batch_call;

typedef struct hf_batch_job {
    uint32_t id_at, record_at, record_len; /* in the batch's bytes */
    uint32_t place : 30;                   /* of the job in its call */
    uint32_t made : 1;                     /* its id was made here, and must be new */
    uint32_t chosen : 1;                   /* its id is the caller's */
    int64_t due_ms;                        /* as in hf_enqueue_item */
} hf_batch_job;

/* The job at this place of the batch met the holder of its unique key. */
typedef struct hf_batch_conflict {
    size_t place;
    hf_conflict how;
    hf_err state;
    char id[HF_ID_SIZE];
} hf_batch_conflict;

/* Where the request is that carries the batch; see requests.c. */
typedef enum hf_request_state {
    HF_REQUEST_QUEUED,     /* in the submit queue, or just taken from it */
    HF_REQUEST_SENT,       /* in flight; an error as its answer means: not executed */
    HF_REQUEST_IN_DOUBT,   /* no answer came; to be sent again with its number */
    HF_REQUEST_SENT_AGAIN, /* in flight, and an earlier sending may have been executed */
    HF_REQUEST_CONFIRMING, /* executed; replicas do not have it yet */
    HF_REQUEST_ENDED
} hf_request_state;

typedef struct hf_batch {
    struct hf_batch *next, *prev;
    struct hf_requests *requests;  /* borrowed; set when it is sent */
    struct hf_producer_node *node; /* the one that it is in flight at, or in doubt for */
    struct hf_target *target;      /* borrowed */
    hf_buf bytes;
    hf_batch_job *slots;
    size_t n, slots_cap, n_made;
    bool options; /* some job has some: hf_record_has_options() */
    hf_batch_call *calls;
    size_t n_calls, calls_cap;
    size_t callbacks;       /* calls without a waiter */
    hf_enqueue_item *items; /* what is sent; NULL until it is sealed; in the same block */
    hf_bytes made;          /* as in hf_enqueue_args */
    size_t charge;          /* bytes that the submit queue counts for it */
    uint64_t taken_ns;      /* of the first call */
    uint64_t deadline_ns;   /* of the first call, and so of all */
    uint64_t sealed_ns;
    uint64_t sent_ns; /* last */
    hf_request_state state;
    uint64_t number;        /* of its queue; 0: not given yet */
    uint64_t turn;          /* of its sending among all; 0: it was not sent yet */
    bool numbered;          /* the number is the caller's */
    int64_t known_until_ms; /* of its first sending, on Redis's clock; 0: not known */
    bool reported;          /* its calls have their answers */
    hf_err refused;         /* how Redis last refused it, HF_OK if it never did */
    int64_t accepted_ms;    /* when Redis accepted the jobs, by its clock; 0: an earlier
                               sending was accepted, or nothing was */
    hf_confirm confirm;     /* HF_REQUEST_CONFIRMING */
    struct hf_batch_conflict *conflicts; /* owned; in the order of their jobs */
    size_t n_conflicts;
    int64_t *awaited; /* owned; of each job when it was accepted, 0: as the batch; NULL */
    signed char *codes; /* owned; the answer for each job, kept for then; NULL: HF_OK */
} hf_batch;

/* How a request ended: one answer for all of its jobs, or with HF_OK one for each. */
typedef struct hf_outcome {
    hf_err err;
    const hf_reply *codes; /* NULL: HF_OK each, or what the batch has kept */
    const char *detail;    /* never NULL */
} hf_outcome;

/* NULL: out of memory. */
hf_batch *hf_batch_new(struct hf_target *target);
void hf_batch_free(hf_batch *batch); /* NULL is fine */
/* Room for this many jobs, and this many bytes of them, at once instead of step by step.
 * No memory for it is no fault yet. */
void hf_batch_expect(hf_batch *batch, size_t n, size_t bytes);

/* The id of a job: its own, or one that was made for it. */
typedef struct hf_job_id {
    const char *text;
    bool made;  /* and must be new, unless the request continues an earlier run */
    bool tells; /* when it was made; the record can omit this time */
} hf_job_id;

/* Appends a job of the target's queue; `place` is its place in its call. HF_NOMEM: the
 * batch is as it was. */
HF_MUSTCHECK hf_err hf_batch_add(hf_batch *batch, const hf_job *job, hf_job_id id,
                                 uint32_t place, int64_t created_ms);

/* Appends the i-th job of another batch, for the same place of the same call. HF_NOMEM:
 * the batch is as it was. */
HF_MUSTCHECK hf_err hf_batch_copy(hf_batch *batch, const hf_batch *from, size_t i);

/* Makes the last call->n jobs a call. HF_NOMEM: they are none yet. */
HF_MUSTCHECK hf_err hf_batch_end_call(hf_batch *batch, const hf_batch_call *call);

/* Takes back all jobs but the first n, which belong to no call yet. */
void hf_batch_rewind(hf_batch *batch, size_t n);

/* Makes what is sent. From now on the wait counts from now_ns. HF_NOMEM: nothing
 * happened. */
HF_MUSTCHECK hf_err hf_batch_seal(hf_batch *batch, uint64_t now_ns);

/* For a sealed batch that Redis refused because ids that were made here are not new:
 * makes other ids for those. The lock guards the waiters and the maker. */
void hf_batch_rename(hf_batch *batch, uv_mutex_t *lock, hf_id_maker *ids,
                     const hf_reply *codes);

/* The text that tells the shard of the i-th job: its unique key, or an id that was
 * chosen; NULL: none. */
const char *hf_batch_shard_text(const hf_batch *batch, size_t i);

/* Keeps what the answer says of unique keys, and of jobs that are awaited. HF_NOMEM. */
HF_MUSTCHECK hf_err hf_batch_meet(hf_batch *batch, const hf_enqueued *got);

/* Keeps the answers for each job until replicas have confirmed them. HF_NOMEM. */
HF_MUSTCHECK hf_err hf_batch_keep(hf_batch *batch, const hf_reply *codes);

/* Gives every call its answer: those that wait, with the run loop's lock held (see
 * hf_batch_waiter_answered), and without it those that have a callback. */
void hf_batch_report(hf_batch *batch, const hf_outcome *outcome, hf_run_loop *run);
void hf_batch_call_back(hf_batch *batch, const hf_outcome *outcome);

/* ---- a call that waits ---- */

/* NULL: out of memory. */
hf_waiter *hf_batch_waiter_new(hf_enqueue_result *results);
void hf_batch_waiter_free(hf_waiter *waiter); /* NULL is fine */

/* Remembers the id of the job at this place, if a caller wants it. */
void hf_batch_waiter_note_id(hf_waiter *waiter, size_t place, const char *id);

/* One more batch has its answer. After the last one the waiter is done, or is freed if
 * its thread has left. */
void hf_batch_waiter_answered(hf_waiter *waiter, hf_err err, const char *detail,
                              hf_run_loop *run);

/* ---- a line of batches ---- */

typedef struct hf_batches {
    hf_batch *first, *last;
} hf_batches;

void hf_batches_append(hf_batches *list, hf_batch *batch);
void hf_batches_in_turn(hf_batches *list, hf_batch *batch); /* lowest first */
void hf_batches_insert(hf_batches *list, hf_batch *before,
                       hf_batch *batch); /* NULL: append */
void hf_batches_remove(hf_batches *list, hf_batch *batch);

#endif
