/* reasons.h - what keeps a job: which reasons hold, each as a short fixed word and as a
 * sentence for people, and what to do about it. */
#ifndef HF_SEEN_REASONS_H
#define HF_SEEN_REASONS_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/admin.h"
#include "seen/offer.h"

/* In the order of their weight. The word is what --json gives, and stands at the
 * beginning of a line; the function of reasons.c says the sentence. docs/diagnose.md has
 * them all. */
#define HF_REASON_MAP(X)                                                                 \
    X(DEAD, "dead", say_dead)       /* out of attempts, refused, or poison */            \
    X(PARKED, "parked", say_parked) /* it follows the holder of its unique key */        \
    X(DONE, "done", say_done)       /* and it is kept */                                 \
    X(CANCELLING, "cancelling", say_cancelling) /* it runs, and was asked to end */      \
    X(RUNNING, "running", say_running) /* also when its lease is over: taken over */     \
    X(RETRY, "retry", say_waiting)     /* it failed, and waits for its next attempt */   \
    X(DELAYED, "delayed", say_waiting) /* it waits for its time */                       \
    X(PAUSED, "paused", say_paused)                                                      \
    X(REFUSED, "refused", say_refused) /* Redis refuses writes */                        \
    X(NO_WORKER, "no_worker", say_workers)                                               \
    X(NO_WORKER_FOR_TYPE, "no_worker_for_type", say_workers)                             \
    X(LOCKED, "locked", say_locked) /* an earlier run of it has its lock still */        \
    X(MAX_RUNNING, "max_running", say_limit)                                             \
    X(RATE, "rate", say_limit)                                                           \
    X(BUSY, "busy", say_workers)       /* no worker that takes it has a free slot */     \
    X(BEHIND, "behind", say_behind)    /* others are due and come first */               \
    X(EXPIRES, "expires", say_expires) /* unless it starts in time */                    \
    X(SUSPECT, "suspect", say_crashes) /* it crashed too often: it runs alone */         \
    X(CRASHED, "crashed", say_crashes) /* not so often yet; it counts for poison */      \
    X(NONE, "none", say_none)          /* it starts at any moment */

#define HF_REASON_ENUM(name, word, say_it) HF_REASON_##name,
typedef enum hf_reason { HF_REASON_MAP(HF_REASON_ENUM) HF_REASONS } hf_reason;
#undef HF_REASON_ENUM

/* "dead, parked, ... none, ", for the help of a command. */
#define HF_REASON_LISTED(name, word, say_it) word ", "
#define HF_REASON_WORDS HF_REASON_MAP(HF_REASON_LISTED)

const char *hf_reason_word(hf_reason reason);

/* A running job whose lease is over. */
bool hf_why_lease_is_over(const hf_job_why *why);

/* Whether no worker can start it now, due or not. */
bool hf_why_is_stuck(const hf_job_why *why);

/* Fills `out`, the weightiest first, and answers how many there are: at least one.
 * `poison`: after this many holders that died with it a job is dead. */
size_t hf_why_reasons(const hf_job_why *why, int64_t poison, hf_reason out[HF_REASONS]);

/* Since when a running job has been held, Unix ms; 0: it does not run, or this is
 * not known. */
int64_t hf_why_held_since(const hf_job_why *why);

/* A limit of its queue, which shards divide. */
bool hf_reason_is_limit(hf_reason reason);

typedef struct hf_reason_facts {
    const hf_job_why *why; /* all borrowed */
    const char *queue;     /* that the commands name; NULL: they name none */
    const char *types;     /* what the live workers of its queue take: "a, b", or "" */
    unsigned shards;       /* of its queue: a limit is that of one of them; 0: whole */
    bool follows_dead;     /* it is parked, and the holder of its unique key is dead */
    const char *longest;   /* the job of its queue that runs longest, or "" */
    int64_t longest_ms;    /* since when */
} hf_reason_facts;

/* The sentence of a reason, without an end; a second one follows behind a newline.
 * Returns `out`. */
enum { HF_REASON_TEXT_SIZE = 2048 };
const char *hf_reason_text(const hf_reason_facts *facts, hf_reason reason,
                           char out[HF_REASON_TEXT_SIZE]);

/* The command that removes a reason and can be given as it stands: it ends no run, and
 * the same command takes it back. "": there is none. */
enum { HF_REASON_COMMAND_SIZE = HF_OFFER_SIZE };
const char *hf_reason_remedy(const hf_reason_facts *facts, hf_reason reason,
                             char out[HF_REASON_COMMAND_SIZE]);

#endif
