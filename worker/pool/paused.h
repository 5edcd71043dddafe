/* paused.h - the queues that a pool has paused, because it has no free slot for a job of
 * theirs. Belongs to the loop. */
#ifndef HF_WORKER_POOL_PAUSED_H
#define HF_WORKER_POOL_PAUSED_H

#include "worker/queues/queues.h"

/* All zeros at first. */
typedef struct hf_paused {
    bool slots[HF_SLOTS_MAX]; /* of queues */
    size_t n;
} hf_paused;

/* Each queue once. */
void hf_paused_add(hf_paused *paused, hf_served *served);
void hf_paused_end(hf_paused *paused, hf_worker *w); /* of all */

#endif
