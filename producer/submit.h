/* submit.h - the submit queue: jobs that callers have handed in and requests without an
 * answer, counted and bounded.
 *
 * The only part of a producer that several threads touch: everything in it is guarded by
 * the lock of the run loop. Callers put jobs in; the owner takes batches out. Each node
 * has a line of its own, in the order in which batches were begun (producer/nodes.h), so
 * one that is away keeps no other waiting. Jobs of small calls join the open batch of
 * their queue, until the owner takes it or it is full. So batches grow while Redis is
 * busy with others. */
#ifndef HF_PRODUCER_SUBMIT_H
#define HF_PRODUCER_SUBMIT_H

#include <stdatomic.h>

#include "producer/batch.h"
#include "queue/shards.h"
#include "redis/nodes.h"

enum {
    HF_TARGETS_MAX = 65536, /* different queues in the life of one producer */
    HF_TARGET_BUCKETS = 512
};

#define HF_DEFAULT_QUEUE "default"

/* The batches that wait for one node. */
typedef struct hf_line {
    struct hf_line *next; /* of the submit queue */
    hf_batches batches;
    size_t enough; /* jobs of an open batch that were too few at the last look */
    bool down;     /* nothing can be sent to the node now */
    _Atomic uint64_t
        waits_ns; /* since then it has not answered; 0: it has answered all */
} hf_line;

/* The shards of a queue that is divided (queue/shards.h). */
typedef struct hf_shard_states {
    unsigned n, turn; /* turn: the one that a call without ids went to last */
    struct hf_target *at[];
} hf_shard_states;

/* One queue that the producer has used, or one of its shards. It lives as long as the
 * producer. */
typedef struct hf_target {
    struct hf_target *next; /* in its bucket */
    hf_queue queue;
    struct hf_target *whole; /* the queue, if this is one of its shards */
    hf_shard_states *shards; /* owned; NULL: none are known; set once */
    hf_line *line;    /* where its batches wait; the owner changes it, under the lock */
    hf_batch *open;   /* may be joined; it is in the line */
    uint64_t highest; /* number of a numbered request so far */
    bool owed;        /* and that one has not succeeded yet */
    struct hf_target *fresh; /* the next one that the owner has not seen yet */

    /* The owner's. */
    struct hf_producer_nodes *nodes;
    uint64_t registered_in; /* the life of the registry that knows the queue */
    bool used;              /* Redis may remember a number */
    uint64_t number;        /* the last one given */

    /* The owner's, for a cluster: producer/nodes.c. */
    struct hf_target *routed;
    hf_line *goes; /* where `line` is next */
    unsigned slot;
    size_t in_flight;                   /* its requests; */
    struct hf_producer_node *last_node; /* the node of the last one that was sent */
    hf_node_backoff backoff;
} hf_target;

/* Numbers that are counted here and numbers that the caller gives would answer for each
 * other in Redis's memory, so a producer keeps to one kind. */
typedef enum hf_numbering {
    HF_NUMBERS_UNUSED,
    HF_NUMBERS_OURS,
    HF_NUMBERS_CALLERS
} hf_numbering;

typedef struct hf_submit_queue {
    hf_run_loop *run;   /* borrowed; retired: nothing more is taken */
    hf_line *lines;     /* all; borrowed */
    hf_line *home;      /* the one in which a new queue begins */
    hf_target *fresh;   /* new ones that the owner has not seen yet */
    size_t waiting;     /* batches in all lines */
    size_t jobs, bytes; /* taken and not answered yet */
    size_t jobs_max, bytes_max;
    uint64_t next_deadline_ns; /* no later than the first one in any line */
    hf_numbering numbering;
    bool numbered_busy; /* a numbered call waits */
    hf_id_maker ids;
    char ns[HF_ID_SIZE];
    hf_target *buckets[HF_TARGET_BUCKETS];
    hf_target *last_target; /* most calls are for the queue of the one before */
    size_t n_targets;
} hf_submit_queue;

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
HF_MUSTCHECK hf_err hf_submit_init(hf_submit_queue *queue, hf_run_loop *run,
                                   const hf_producer_opts *opts);
void hf_submit_done(hf_submit_queue *queue); /* also frees what is in line */

/* Takes a small call whose jobs are of one queue: they join the open batch of the queue,
 * or begin one. *ready: the loop's owner must look whether something can be sent now,
 * because a batch was begun, or has become large enough, or this is the first callback
 * that is owed. HF_OK, HF_CLOSED, HF_FULL, HF_INVALID (the other kind of numbers),
 * HF_NOMEM; then nothing was taken. */
HF_MUSTCHECK hf_err hf_submit_join(hf_submit_queue *queue, const hf_intake *in,
                                   const hf_batch_call *call, bool *ready);

/* For larger calls, whose batches are made without the lock: counts the jobs (answers as
 * above), and puts the finished batches in line, or gives the room back. */
HF_MUSTCHECK hf_err hf_submit_reserve(hf_submit_queue *queue, const hf_intake *in);
void hf_submit_put(hf_submit_queue *queue, hf_batches *batches);
void hf_submit_unreserve(hf_submit_queue *queue, size_t jobs, size_t bytes);

/* The target of a queue whose name was checked. HF_NOMEM, or HF_FULL: too many queues. */
HF_MUSTCHECK hf_err hf_submit_target(hf_submit_queue *queue, const char *name,
                                     hf_target **out);

/* The shards of a queue, NULL if it is not known to have any. */
const hf_shard_states *hf_submit_shards(hf_submit_queue *queue, const hf_target *target);
/* The one for a larger call without ids. */
hf_target *hf_submit_next_shard(hf_submit_queue *queue, hf_target *target);

/* The one for the jobs without ids of a numbered call. Another process may continue the
 * run, and finds the same one. */
unsigned hf_submit_shard_of_number(const char *producer, uint64_t number, unsigned n);

/* n ids of our own, rising. Answers whether they tell this time (Unix ms). */
bool hf_submit_ids(hf_submit_queue *queue, char (*out)[HF_NEW_ID_SIZE], size_t n,
                   int64_t created_ms);

/* ---- the side of the loop owner ---- */

/* Gives a batch's jobs their answers, and takes them off the count. Callbacks are run
 * here; the run loop wakes those that wait. */
void hf_submit_report(hf_submit_queue *queue, hf_batch *batch, const hf_outcome *outcome);

/* The first batch of a line. One that is open and has fewer jobs than `enough` is left
 * to grow until gather_ns after it was begun: then NULL, and *later_ns is that moment. */
hf_batch *hf_submit_take(hf_submit_queue *queue, hf_line *line, size_t enough,
                         uint64_t gather_ns, uint64_t now_ns, uint64_t *later_ns);

/* Back to the front of its queue's line, sealed: it was refused, or could not be sent. By
 * their turns, batches are in the order again in which they were sent. */
void hf_submit_put_back(hf_submit_queue *queue, hf_batch *batch);

/* Takes out those whose deadline has come, of all lines, and those of one line (NULL: of
 * none) in any case. */
void hf_submit_expire(hf_submit_queue *queue, const hf_line *line, uint64_t now_ns,
                      hf_batches *out);

/* A deadline that is no later than the first one in any line, UINT64_MAX when all are
 * empty; *idle: closed, and all that was taken has been answered. */
uint64_t hf_submit_look(hf_submit_queue *queue, bool *idle);

/* Lines come and go with nodes; one that goes is empty, and no queue's. */
void hf_submit_add_line(hf_submit_queue *queue, hf_line *line);
void hf_submit_drop_line(hf_submit_queue *queue, hf_line *line);
/* Brings these queues (linked by `routed`), and their batches, to the lines to which they
 * go. */
void hf_submit_move(hf_submit_queue *queue, hf_target *targets);
/* Whether something can be sent to its node. What waits there for any shard of a queue
 * goes to a node that is not down: all that was not sent and has no ids of its caller. */
void hf_submit_line_is_down(hf_submit_queue *queue, hf_line *line, bool down);

/* The answer of Redis says, with these words, that the queue is divided. Calls go to its
 * shards from now on. HF_PROTO, HF_NOMEM, HF_FULL: too many queues. */
HF_MUSTCHECK hf_err hf_submit_divide(hf_submit_queue *queue, hf_target *target,
                                     const char *words);
/* The jobs of a refused batch of such a queue, which is in no line, go on as one batch
 * for each shard: nothing of them is counted for this one any more. HF_NOMEM: nothing
 * happened. */
HF_MUSTCHECK hf_err hf_submit_divide_batch(hf_submit_queue *queue, const hf_batch *batch,
                                           const char *producer);

/* A queue that the owner has not seen yet, each once; NULL: there is none. */
hf_target *hf_submit_new_target(hf_submit_queue *queue);

#endif
