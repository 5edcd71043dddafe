/* present.h - a worker tells each of its queues that it is there and which types it
 * handles, and says goodbye. Belongs to the loop. */
#ifndef HF_WORKER_PRESENT_H
#define HF_WORKER_PRESENT_H

#include "worker/shared.h"

/* A step of a queue's registration: HF_OK when it was sent. */
HF_MUSTCHECK hf_err hf_present_register(hf_served *served);

/* Sends goodbyes to all queues whose Redis is there; `cb` is called with `arg` for each.
 * Returns how many were sent. */
size_t hf_present_goodbye(hf_worker *w, hf_answer_cb cb, void *arg);

#endif
