/* reasons.h - what keeps a job, as short fixed words in the order of their weight. */
#ifndef HF_SEEN_REASONS_H
#define HF_SEEN_REASONS_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/admin.h"

/* The word is what --json gives, and stands at the beginning of a line. */
#define HF_REASON_MAP(X)                                                                 \
    X(DEAD, "dead")             /* out of attempts, refused, or poison */                \
    X(PARKED, "parked")         /* it follows the holder of its unique key */            \
    X(DONE, "done")             /* and it is kept */                                     \
    X(CANCELLING, "cancelling") /* it runs, and was asked to end */                      \
    X(RUNNING, "running")       /* also when its lease is over: it is taken over */      \
    X(RETRY, "retry")           /* it failed, and waits for its next attempt */          \
    X(DELAYED, "delayed")       /* it waits for its time */                              \
    X(PAUSED, "paused")                                                                  \
    X(REFUSED, "refused") /* Redis refuses writes */                                     \
    X(NO_WORKER, "no_worker")                                                            \
    X(NO_WORKER_FOR_TYPE, "no_worker_for_type")                                          \
    X(LOCKED, "locked") /* an earlier run of it has its lock still */                    \
    X(MAX_RUNNING, "max_running")                                                        \
    X(RATE, "rate")                                                                      \
    X(BUSY, "busy")       /* no worker that takes it has a free slot */                  \
    X(BEHIND, "behind")   /* others are due and come first */                            \
    X(EXPIRES, "expires") /* unless it starts in time */                                 \
    X(SUSPECT, "suspect") /* it crashed too often: it runs alone */                      \
    X(CRASHED, "crashed") /* not so often yet; it counts for poison */                   \
    X(NONE, "none")       /* it starts at any moment */

#define HF_REASON_ENUM(name, word) HF_REASON_##name,
typedef enum hf_reason { HF_REASON_MAP(HF_REASON_ENUM) HF_REASONS } hf_reason;
#undef HF_REASON_ENUM

const char *hf_reason_word(hf_reason reason);

/* A running job whose lease is over. */
bool hf_why_lease_is_over(const hf_job_why *why);

/* Fills `out`, the weightiest first, and answers how many there are: at least one.
 * `poison`: after this many holders that died with it a job is dead. */
size_t hf_why_reasons(const hf_job_why *why, int64_t poison, hf_reason out[HF_REASONS]);

/* Since when a running job has been held, Unix ms; 0: it does not run, or this is
 * not known. */
int64_t hf_why_held_since(const hf_job_why *why);

#endif
