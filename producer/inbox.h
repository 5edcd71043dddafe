/* inbox.h - what callers have handed in and what is not answered yet, counted and
 * bounded.
 *
 * The only part of a producer that several threads touch: everything in it is guarded by
 * the lock of the run loop. Callers put jobs in; the engine takes batches out, in the
 * order in which they were begun. Jobs of small calls join the batch of their queue that
 * is still open, until the engine takes it or it is full: so batches grow while Redis is
 * busy with others. */
#ifndef HF_PRODUCER_INBOX_H
#define HF_PRODUCER_INBOX_H

#include "producer/batch.h"

enum {
    HF_LANES_MAX = 65536, /* different queues in the life of one producer */
    HF_LANE_BUCKETS = 512
};

#define HF_DEFAULT_QUEUE "default"

/* One queue that the producer has used. It lives as long as the producer. */
typedef struct hf_lane {
    struct hf_lane *next; /* in its bucket */
    hf_queue queue;
    hf_batch *open;   /* may be joined; it is in the inbox's line */
    uint64_t highest; /* number of a numbered request so far */
    bool owed;        /* and that one has not succeeded yet */
    uint64_t
        registered_in; /* the engine's: the life of the server that knows the queue */
    bool used;         /* the engine's: Redis may remember a number */
} hf_lane;

/* Numbers that are counted here and numbers that the caller gives would answer for each
 * other in Redis's memory, so a producer keeps to one kind. */
typedef enum hf_numbering {
    HF_NUMBERS_UNUSED,
    HF_NUMBERS_OURS,
    HF_NUMBERS_CALLERS
} hf_numbering;

typedef struct hf_inbox {
    hf_run_loop *run; /* borrowed; retired: nothing more is taken */
    hf_batches line;
    size_t jobs, bytes; /* taken and not answered yet */
    size_t jobs_max, bytes_max;
    uint64_t next_deadline_ns; /* no later than the first one in the line */
    hf_numbering numbering;
    bool numbered_busy; /* a numbered call waits */
    size_t enough;      /* jobs of an open batch that were too few at the last look */
    hf_id_maker ids;
    char ns[HF_ID_SIZE];
    hf_lane *buckets[HF_LANE_BUCKETS];
    hf_lane *last_lane; /* most calls are for the queue of the one before */
    size_t n_lanes;
} hf_inbox;

/* The jobs of one call, checked and measured. */
typedef struct hf_intake {
    const hf_job *jobs; /* borrowed */
    size_t n;
    size_t bytes; /* at most */
    uint64_t now_ns, deadline_ns;
    int64_t created_ms; /* the wall clock */
    hf_numbering numbering;
} hf_intake;

/* The opts give the namespace and the bounds, all checked and set. HF_SYSTEM. */
HF_MUSTCHECK hf_err hf_inbox_init(hf_inbox *inbox, hf_run_loop *run,
                                  const hf_producer_opts *opts);
void hf_inbox_done(hf_inbox *inbox); /* also frees what is in the line */

/* Takes a small call whose jobs are of one queue: they join the open batch of the queue,
 * or begin one. *ready: somebody must look whether something can be sent now, because a
 * batch was begun, or has become large enough, or this is the first callback that is
 * owed. HF_OK, HF_CLOSED, HF_FULL, HF_INVALID (the other kind of numbers), HF_NOMEM; then
 * nothing was taken. */
HF_MUSTCHECK hf_err hf_inbox_join(hf_inbox *inbox, const hf_intake *in,
                                  const hf_part *part, bool *ready);

/* For larger calls, whose batches are made without the lock: counts the jobs (answers as
 * above), and puts the finished batches in line, or gives the room back. */
HF_MUSTCHECK hf_err hf_inbox_reserve(hf_inbox *inbox, const hf_intake *in);
void hf_inbox_put(hf_inbox *inbox, hf_batches *batches);
void hf_inbox_unreserve(hf_inbox *inbox, size_t jobs, size_t bytes);

/* The lane of a queue whose name was checked. HF_NOMEM, or HF_FULL: too many queues. */
HF_MUSTCHECK hf_err hf_inbox_lane(hf_inbox *inbox, const char *name, hf_lane **out);

/* n ids of our own, rising. Answers whether they tell this time (Unix ms). */
bool hf_inbox_ids(hf_inbox *inbox, char (*out)[HF_NEW_ID_SIZE], size_t n,
                  int64_t created_ms);

/* ---- the engine's side ---- */

/* Gives a batch's jobs their answers, and takes them off the count. Callbacks are run
 * here; the run loop wakes those that wait. */
void hf_inbox_tell(hf_inbox *inbox, hf_batch *batch, const hf_outcome *outcome);

/* The first batch of the line. One that is open and has fewer jobs than `enough` is left
 * to grow until gather_ns after it was begun: then NULL, and *later_ns is that moment. */
hf_batch *hf_inbox_take(hf_inbox *inbox, size_t enough, uint64_t gather_ns,
                        uint64_t now_ns, uint64_t *later_ns);

/* Back to the front, sealed: it was refused, or could not be sent. By the numbers that
 * they had, batches are in the order again in which they were taken. */
void hf_inbox_put_back(hf_inbox *inbox, hf_batch *batch);

/* Takes out those whose deadline has come (until_ns UINT64_MAX: all). */
void hf_inbox_expire(hf_inbox *inbox, uint64_t until_ns, hf_batches *out);

/* A deadline that is no later than the first one in the line, UINT64_MAX when it is
 * empty; *idle: closed, and all that was taken has been answered. */
uint64_t hf_inbox_look(hf_inbox *inbox, bool *idle);

#endif
