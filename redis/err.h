/* err.h - what an answer means to the sender of the request: one table for all. A user
 * may add a rule of its own, but has no list of its own. */
#ifndef HF_REDIS_ERR_H
#define HF_REDIS_ERR_H

#include <stdbool.h>

#include "holdfast/error.h"

enum {
    /* Redis has executed nothing of the request. Without this trait a fault may have done
     * something. */
    HF_ERR_NOT_DONE = 1,
    /* The answer has removed its own cause: Redis has the script by now, or its time is
     * known. The request may be sent again at once, after the first such answer. */
    HF_ERR_AT_ONCE = 2,
    /* Time heals it. No user has to do anything. */
    HF_ERR_PASSES = 4,
    /* Redis takes no writes, for a reason of its own. Mostly it passes with time (a
     * failover), but a user may have to see to it. Each sender decides: locks and
     * producers try again until their time is over, hf_job_wait() tells it at once. */
    HF_ERR_NO_WRITES = 8,
    /* Another node of the cluster has the key or will have it, or none serves it now.
     * hf_cluster_refused() treats HF_READONLY in the same way. */
    HF_ERR_OF_CLUSTER = 16,
    /* The request itself, its keys or its user are the cause: it is refused again each
     * time, but requests for other queues may succeed. */
    HF_ERR_OF_QUEUE = 32,
    /* No wait changes it: the login, a certificate, the configuration, the version. */
    HF_ERR_LASTS = 64
};

/* Whether it has one of these traits at least. Answers that say what a script has found
 * (holdfast/error.h) have none, but HF_DEADLINE. */
bool hf_err_is(hf_err err, unsigned traits);

/* As callers are told it when no more is tried: to which node a request was sent on does
 * not concern them. */
hf_err hf_err_told(hf_err err);

#endif
