/* ops.h - the operations on a queue. Each is one script (queue/lua), and each decision is
 * taken there; this file only carries it to Redis and reads what comes back.
 *
 * Sending: hf_op_x(client, ...) answers as hf_request_send() does, and its arguments are
 * copied. Reading: in the callback, hf_x_read(answer, ...) fills a struct whose pointers
 * are borrowed from the answer. It gives the answer's own fault, the script's
 * (HF_DEADLINE), or HF_PROTO.
 *
 * All times are Unix ms on Redis's clock. `not_after`: the request does nothing when it
 * is executed later than that (0: no limit). */
#ifndef HF_QUEUE_OPS_H
#define HF_QUEUE_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/reading.h"
#include "holdfast/job.h"
#include "redis/request.h"

enum {
    HF_PREFIX_SIZE = 2 * HF_NAME_MAX + 8,
    HF_WORKER_ID_SIZE = 96,                 /* host-pid-random and NUL */
    HF_TOKEN_SIZE = HF_WORKER_ID_SIZE + 24, /* <worker id>:<fence> and NUL */
    HF_CLAIM_MAX = 1000,                    /* jobs in one claim */
    HF_CLAIM_BYTES = 8 << 20,               /* bytes of records in one claim */
    HF_VERDICTS_MAX = 1000,                 /* jobs in one verdict or renewal */
    HF_REWRITES_MAX = 250, /* in one that rewrites records, or keeps results: all but
                              complete */
    HF_QUEUES_MAX = 64,    /* queues of one worker */
    HF_SLOTS_MAX =
        2 * HF_QUEUES_MAX /* with their shards, and with those that it leaves */
};

typedef struct hf_queue {
    char name[HF_ID_SIZE];
    char ns[HF_ID_SIZE];
    char prefix[HF_PREFIX_SIZE]; /* "hf:{name}:" */
    size_t prefix_len;
} hf_queue;

/* HF_INVALID: ns or name is no name. */
HF_MUSTCHECK hf_err hf_queue_init(hf_queue *queue, const char *ns, const char *name);

/* ---- enqueue ---- */

typedef struct hf_enqueue_item {
    const char *id;
    int64_t due_ms; /* absolute > 0; 0: now; negative: that many ms from now */
    hf_bytes record;
} hf_enqueue_item;

typedef struct hf_enqueue_args {
    const char *producer; /* "" : nothing is remembered */
    uint64_t number;
    int64_t not_after;
    int64_t remember_ms;
    int64_t waited_ms; /* since the call was made: taken off the delays */
    hf_bytes made;     /* a letter for each job, the last one for all that follow:
                          HF_ID_MADE for an id that was made for it, and must be new,
                          or HF_ID_CHOSEN. Empty: all were chosen */
    bool options;      /* of some job: hf_record_has_options() */
} hf_enqueue_args;

/* Capitals: the script need not check what was checked here. */
enum { HF_ID_MADE = 'N', HF_ID_CHOSEN = 'C' };

HF_MUSTCHECK hf_err hf_op_enqueue(hf_client *client, const hf_queue *queue,
                                  const hf_enqueue_args *args,
                                  const hf_enqueue_item *items, size_t n,
                                  uint32_t timeout_ms, hf_answer_cb cb, void *arg);

/* HF_EXISTS: nothing was changed, because an id that was made is not new; codes are set.
 */
typedef struct hf_enqueued {
    int64_t now_ms;
    bool repeated;         /* it had been executed before: nothing was changed */
    const hf_reply *codes; /* NULL when all are new, else one integer for each job:
                              HF_OK, HF_EXISTS (queued), HF_RUNNING, HF_DEAD; past the end
                              reads as 0, HF_OK */
    const hf_reply
        *conflicts;          /* NULL, or of each job that met the holder of its unique
                                key: place from 1 on, how, id, state (enqueue_with.lua) */
    const hf_reply *awaited; /* NULL, or of each job with this option: place, accepted */
} hf_enqueued;
HF_MUSTCHECK hf_err hf_enqueued_read(const hf_answer *answer, hf_enqueued *out);

/* Whether the user of Redis may run all commands of a worker's scripts: HF_OK, or
 * HF_AUTH, whose detail names those that it may not. Always HF_OK on Redis before 7.0. */
HF_MUSTCHECK hf_err hf_op_permitted(hf_client *client, const hf_queue *queue,
                                    hf_answer_cb cb, void *arg);

/* Puts the queue's name into the registry; any answer that is HF_OK will do. */
HF_MUSTCHECK hf_err hf_op_register(hf_client *client, const hf_queue *queue,
                                   hf_answer_cb cb, void *arg);

/* Deletes the key that remembers this producer's requests. */
HF_MUSTCHECK hf_err hf_op_forget(hf_client *client, const hf_queue *queue,
                                 const char *producer, hf_answer_cb cb, void *arg);

/* ---- claim ---- */

typedef struct hf_claim_args {
    const char *worker;
    uint64_t number; /* of this claim, rising for each worker and queue */
    uint32_t max;    /* jobs, 1..HF_CLAIM_MAX */
    uint32_t slots;  /* how many can start at once: where a limit is set, no more are
                        taken; 0: max */
    uint32_t lease_ms;
    int64_t not_after;
    uint32_t alive_ms; /* how long the worker stays in the queue's list of workers; 0: not
                          refreshed */
    uint32_t poison;
    uint32_t dead_max;
    int64_t dead_age_ms;
    bool doubted; /* a baton may have been lost, as after a reconnect */
    bool due;     /* a baton's time has come: a wake-up that has come is cleared */
    bool forgive; /* count no crash for what is taken over */
} hf_claim_args;

HF_MUSTCHECK hf_err hf_op_claim(hf_client *client, const hf_queue *queue,
                                const hf_claim_args *args, hf_answer_cb cb, void *arg);

typedef struct hf_claimed {
    int64_t now_ms;
    hf_bytes fence; /* decimal digits */
    size_t n;       /* jobs */

    int64_t next_ms;       /* when a claim could succeed again; 0: not by time alone */
    bool more;             /* at once, and even if every other worker claims before */
    const hf_reply *ticks; /* that are due: for hf_cron_due_claimed() */
    size_t n_buried;       /* jobs that it put into `dead` instead */
    const hf_reply *reply_, *due_, *crashes_, *buried_;
    const hf_reply *ids_, *records_; /* NULL: they are in the reply itself */
} hf_claimed;
HF_MUSTCHECK hf_err hf_claimed_read(const hf_answer *answer, hf_claimed *out);

typedef struct hf_claimed_job {
    hf_bytes id;
    int64_t due_ms;   /* when it was due before the claim */
    uint32_t crashes; /* holders that died with it */
    bool ran_before;  /* it was taken over, now or earlier, or has a checkpoint */
    hf_bytes record;
    hf_bytes checkpoint; /* of an earlier run; empty: there is none */
} hf_claimed_job;
void hf_claimed_at(const hf_claimed *claimed, size_t i, hf_claimed_job *out);
void hf_claimed_buried(const hf_claimed *claimed, size_t i, hf_bytes *id, hf_bytes *why);

/* Releases what the claim `number` of this worker has locked, if it was executed. Send it
 * only after that claim's not_after. */
HF_MUSTCHECK hf_err hf_op_unclaim(hf_client *client, const hf_queue *queue,
                                  const char *worker, uint64_t number, hf_answer_cb cb,
                                  void *arg);

/* ---- verdicts of a holder ---- */

typedef enum hf_verdict_op {
    HF_OP_COMPLETE,
    HF_OP_RETRY,
    HF_OP_RELEASE,
    HF_OP_BURY,
    HF_OP_KEEP,   /* COMPLETE, of a job that is kept with its result */
    HF_OP_REFUSE, /* this worker has no handler: back for others, or dead by and by */
    HF_OP_CRASH,  /* its process died: one crash more; back to its place, or dead */
    HF_OPS
} hf_verdict_op;

typedef struct hf_verdict_item {
    const char *id;
    const char *fence; /* decimal digits */
    bool resent;       /* it was sent before, unanswered; such items come first */
    bool counts;       /* BURY: counts a failed attempt; RETRY always does, RELEASE never.
                          BURY without: it never started, and costs the rate nothing */
    bool started;      /* RELEASE: it had started, so its start counts for the rate */
    bool cancels;      /* RELEASE: its handler does not want it any more: it is removed */
    bool later;        /* RELEASE: its handler wants it again due_ms from now */
    bool neighbour;    /* RELEASE: its process was ended because of another job in it */
    bool waits;        /* RELEASE: what would run it is down: due_ms from now */
    bool alone;        /* RETRY: its next run has its process to itself */
    int64_t due_ms;    /* RELEASE: when it was due; with an error text: ms from now.
                          CRASH: when it was due. RETRY: ms from now. KEEP: for how
                          long, ms */
    hf_bytes error;    /* RETRY, BURY, REFUSE, CRASH: the error; RELEASE: "" or it. Cut to
                          HF_ERROR_MAX; bytes that are no UTF-8 become question marks */
    const char *reason; /* BURY: "attempts", "handler", "type" or "record" */
    hf_bytes words;     /* KEEP: a line about it, a newline, its result */
    int64_t ran_ms;     /* RETRY, BURY: the attempt */
    hf_bytes leaving;   /* COMPLETE: hf_record_leaving() */
} hf_verdict_item;

typedef struct hf_verdict_args {
    const char *worker;
    int64_t not_after;
    uint32_t dead_max; /* BURY, REFUSE, CRASH */
    int64_t dead_age_ms;
    uint32_t poison;              /* CRASH: this many, and the job is dead */
    int64_t keep_max, keep_bytes; /* KEEP: bounds of what the queue keeps */
    int64_t patience_ms; /* REFUSE: from the first refusal since which no live worker
                            has a handler, until the job is dead */
} hf_verdict_args;

/* At most HF_VERDICTS_MAX at a time, of one operation. More than HF_REWRITES_MAX, or
 * many large records, of one that writes records anew keep Redis for longer than the few
 * milliseconds that any other script takes. */
HF_MUSTCHECK hf_err hf_op_verdict(hf_client *client, const hf_queue *queue,
                                  hf_verdict_op op, const hf_verdict_args *args,
                                  const hf_verdict_item *items, size_t n, hf_answer_cb cb,
                                  void *arg);

typedef struct hf_settled {
    int64_t now_ms;
    size_t n;              /* 0: all are HF_OK */
    const hf_reply *codes; /* one integer each: HF_OK, HF_LOST or HF_GONE; of REFUSE
                              and CRASH also HF_DEAD, of REFUSE also HF_EXISTS: another
                              live worker has a handler; past the end reads as 0, HF_OK */
} hf_settled;
HF_MUSTCHECK hf_err hf_settled_read(const hf_answer *answer, hf_settled *out);

typedef struct hf_renew_item {
    const char *id;
    const char *fence;
} hf_renew_item;

typedef struct hf_renew_args {
    const char *worker;
    uint32_t lease_ms;
    int64_t not_after;
    uint32_t alive_ms;
    const struct hf_renew_note *notes; /* of the runs; n_notes of them */
    size_t n_notes;
} hf_renew_args;

/* What a holder reports of one of its runs with a renewal. It counts only while the lock
 * is held. The same report twice does no harm. */
typedef enum hf_renew_kind {
    HF_RENEW_PROGRESS,   /* `percent note` */
    HF_RENEW_CHECKPOINT, /* `number checkpoint`: later ones have higher numbers */
    HF_RENEW_LOG         /* `attempt from lines`: `from` bytes came before them */
} hf_renew_kind;

typedef struct hf_renew_note {
    size_t place; /* of the run among the items */
    hf_renew_kind kind;
    hf_bytes text;
} hf_renew_note;

HF_MUSTCHECK hf_err hf_op_renew(hf_client *client, const hf_queue *queue,
                                const hf_renew_args *args, const hf_renew_item *items,
                                size_t n, uint32_t timeout_ms, hf_answer_cb cb,
                                void *arg);
/* Read with hf_settled_read(): HF_OK, HF_LOST or HF_CANCEL each; no codes: all are HF_OK,
 * as what is past the end reads. */

/* ---- waking up ---- */

/* Blocks on the batons of n queues for at most wait_ms. */
HF_MUSTCHECK hf_err hf_op_wait(hf_client *client, const hf_queue *const *queues, size_t n,
                               uint32_t wait_ms, hf_answer_cb cb, void *arg);

/* *which: the index of the queue whose baton was popped, or n when the time passed. */
HF_MUSTCHECK hf_err hf_wait_read(const hf_answer *answer, const hf_queue *const *queues,
                                 size_t n, size_t *which, int64_t *at_ms);

typedef struct hf_check_args {
    const char *worker;
    uint32_t alive_ms; /* refreshes the worker's entry; 0: does not */
    uint32_t lease_ms;
    bool give_back; /* a baton that this worker had is put back: the wake-up is
                       cleared first; otherwise only one that was broken is made anew */
    hf_asker asker;
    const char *const *shown; /* of each queue: hf_reading_shown(); NULL: nothing */
} hf_check_args;

/* For n queues, at most HF_SLOTS_MAX: follows the wake rule. */
HF_MUSTCHECK hf_err hf_op_check(hf_client *client, const hf_queue *const *queues,
                                size_t n, const hf_check_args *args, hf_answer_cb cb,
                                void *arg);
typedef struct hf_checked {
    int64_t now_ms;
    bool empty;                 /* nothing is scheduled or running in any of them */
    uint32_t shortest_lease_ms; /* of any worker of any of them */
} hf_checked;
/* What was read of a queue's clock (base/reading.h). */
typedef struct hf_read_queue {
    uint64_t clock_ms; /* 0: no lease runs */
    uint64_t number;
    uint32_t after_ms; /* in this time a lease may be found over; 0: it is not known */
} hf_read_queue;
typedef struct hf_checked_queue {
    bool divided; /* into shards, which have its jobs */
    bool ticks;   /* of schedules are due, and this worker has to reckon them */
    bool
        unknown; /* it has not heard of this worker by hf_op_present(): its data is new */
    hf_read_queue read;
} hf_checked_queue;
/* Writes n queues, in their order. */
HF_MUSTCHECK hf_err hf_checked_read(const hf_answer *answer, hf_checked *out,
                                    hf_checked_queue *queues, size_t n);

/* For n queues, at most HF_SLOTS_MAX: reads the clock of each, shows what was read
 * before, and finds leases that are over, which a claim then takes. */
HF_MUSTCHECK hf_err hf_op_read(hf_client *client, const hf_queue *const *queues, size_t n,
                               const hf_asker *asker, const char *const *shown,
                               hf_answer_cb cb, void *arg);
/* Writes n queues, in their order. */
HF_MUSTCHECK hf_err hf_read_read(const hf_answer *answer, int64_t *now_ms,
                                 hf_read_queue *queues, size_t n);

/* For n queues, at most HF_SLOTS_MAX: which of them could be claimed now? */
HF_MUSTCHECK hf_err hf_op_peek(hf_client *client, const hf_queue *const *queues, size_t n,
                               hf_answer_cb cb, void *arg);
/* Into n flags, in the order of the queues. */
HF_MUSTCHECK hf_err hf_peeked_read(const hf_answer *answer, bool *ready, size_t n);

/* A worker of the queue tells which types it handles (`*`: all types) and which schedules
 * its file names (`@id`): each with a space before it, and one at the end. NULL:
 * goodbye. */
HF_MUSTCHECK hf_err hf_op_present(hf_client *client, const hf_queue *queue,
                                  const char *worker, uint32_t alive_ms, const char *said,
                                  hf_answer_cb cb, void *arg);
/* What no queue of the same name at another Redis has: when a worker first came to it.
 * Decimal digits; empty: it was not answered. Lives as long as the answer. */
hf_bytes hf_present_born(const hf_answer *answer);

/* A worker's heartbeat: `<ns>:worker:<id>` = json for alive_ms, and its place in
 * `<ns>:workers`; json NULL takes both away. */
HF_MUSTCHECK hf_err hf_op_heartbeat(hf_client *client, const char *ns, const char *worker,
                                    const char *json, uint32_t alive_ms, hf_answer_cb cb,
                                    void *arg);
/* Whether a viewer watches runs (queue/ran.h). */
HF_MUSTCHECK hf_err hf_heartbeat_read(const hf_answer *answer, bool *watched);

/* Writes the limits of a file when they differ from those the file named before. */
HF_MUSTCHECK hf_err hf_op_file_limits(hf_client *client, const hf_queue *queue,
                                      uint32_t max_running, uint32_t rate_limit,
                                      int64_t rate_per_ms, hf_answer_cb cb, void *arg);
/* Writes which jobs report deaths, as a file says: an object of JSON, "" : none do. */
HF_MUSTCHECK hf_err hf_op_file_on_dead(hf_client *client, const hf_queue *queue,
                                       const char *types, hf_answer_cb cb, void *arg);

#endif
