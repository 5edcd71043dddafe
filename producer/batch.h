/* batch.h - the jobs of one queue that travel as one request.
 *
 * A batch is filled by whoever calls, is sealed when it is sent for the first time, and
 * keeps what it sends until it is answered, so that sending it again costs nothing. All
 * bytes of all its jobs are in one buffer. Its parts say whose jobs they are; a part is
 * never split.
 *
 *   filled (open: in the inbox, more may join) -> sealed, sent -> told -> freed
 */
#ifndef HF_PRODUCER_BATCH_H
#define HF_PRODUCER_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "base/buf.h"
#include "base/id.h"
#include "producer/waiter.h"
#include "queue/ops.h"

struct hf_engine;
struct hf_lane;

enum {
    HF_SHARED_JOBS = 1000,     /* of several calls in one batch */
    HF_SHARED_BYTES = 4 << 20, /* the same */
    HF_JOB_OVERHEAD = 128 /* bytes of a job beside its id, type and payload, at most */
};

/* The jobs of one call: of one hf_enqueue(), or of one that waits. */
typedef struct hf_part {
    size_t n;
    uint64_t taken_ns;
    hf_waiter *waiter; /* NULL: cb is told */
    hf_enqueue_cb cb;  /* may be NULL */
    void *arg;
} hf_part;

typedef struct hf_slot {
    uint32_t id_at, record_at, record_len; /* in the batch's bytes */
    uint32_t place : 31;                   /* of the job in its call */
    uint32_t made : 1;                     /* its id was made here, and must be new */
    int64_t due_ms;                        /* as in hf_enqueue_item */
} hf_slot;

typedef struct hf_batch {
    struct hf_batch *next, *prev;
    struct hf_engine *engine; /* borrowed; set when it is sent */
    struct hf_lane *lane;     /* borrowed */
    hf_buf bytes;
    hf_slot *slots;
    size_t n, slots_cap, n_made;
    hf_part *parts;
    size_t n_parts, parts_cap;
    size_t callbacks;       /* parts without a waiter */
    hf_enqueue_item *items; /* what is sent; NULL until it is sealed; in the same block */
    hf_bytes made;          /* as in hf_enqueue_args */
    size_t charge;          /* bytes that the inbox counts for it */
    uint64_t taken_ns;      /* of the first part */
    uint64_t deadline_ns;   /* of the first part, and so of all */
    uint64_t sealed_ns;
    uint64_t number;        /* 0: not given yet */
    bool numbered;          /* the number is the caller's */
    bool doubted;           /* it was sent, and no answer came */
    int64_t known_until_ms; /* of its first sending, on Redis's clock; 0: not known */
    bool told;              /* its parts have their answers */
    hf_err refused;         /* how Redis last refused it, HF_OK if it never did */
} hf_batch;

/* How a request ended: one answer for all of its jobs, or with HF_OK one for each. */
typedef struct hf_outcome {
    hf_err err;
    const hf_reply *codes; /* NULL: HF_OK each */
    const char *detail;    /* never NULL */
} hf_outcome;

/* NULL: out of memory. */
hf_batch *hf_batch_new(struct hf_lane *lane);
void hf_batch_free(hf_batch *batch); /* NULL is fine */
/* Room for so many jobs, and so many bytes of them, at once instead of step by step. No
 * memory for it is no fault yet. */
void hf_batch_expect(hf_batch *batch, size_t n, size_t bytes);

/* The id of a job: its own, or one that was made for it. */
typedef struct hf_job_id {
    const char *text;
    bool made;  /* and must be new; not so that of a run that is gone on with */
    bool tells; /* when it was made, so that the record need not say it */
} hf_job_id;

/* Appends a job of the lane's queue; `place` is its place in its call. HF_NOMEM: the
 * batch is as it was. */
HF_MUSTCHECK hf_err hf_batch_add(hf_batch *batch, const hf_job *job, hf_job_id id,
                                 uint32_t place, int64_t created_ms);

/* Makes the last part->n jobs a part. HF_NOMEM: they are none yet. */
HF_MUSTCHECK hf_err hf_batch_end_part(hf_batch *batch, const hf_part *part);

/* Takes back all jobs but the first n, which belong to no part yet. */
void hf_batch_rewind(hf_batch *batch, size_t n);

/* Makes what is sent. From now on the wait counts from now_ns. HF_NOMEM: nothing
 * happened. */
HF_MUSTCHECK hf_err hf_batch_seal(hf_batch *batch, uint64_t now_ns);

/* For a sealed one of which Redis took nothing, because ids that were made here are not
 * new: makes others for those. The lock guards the waiters and the maker. */
void hf_batch_rename(hf_batch *batch, uv_mutex_t *lock, hf_id_maker *ids,
                     const hf_reply *codes);

/* Gives every part its answer: those that wait, with the run loop's lock held (see
 * hf_waiter_told), and without it those that have a callback. */
void hf_batch_tell(hf_batch *batch, const hf_outcome *outcome, hf_run_loop *run);
void hf_batch_call_back(hf_batch *batch, const hf_outcome *outcome);

/* ---- a line of batches ---- */

typedef struct hf_batches {
    hf_batch *first, *last;
} hf_batches;

void hf_batches_append(hf_batches *list, hf_batch *batch);
void hf_batches_by_number(hf_batches *list, hf_batch *batch); /* lowest first */
void hf_batches_insert(hf_batches *list, hf_batch *before,
                       hf_batch *batch); /* NULL: append */
void hf_batches_remove(hf_batches *list, hf_batch *batch);

#endif
