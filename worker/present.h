/* present.h - a worker tells each of its queues that it is there, which types it handles
 * and which schedules its file names, and says goodbye. Belongs to the loop. */
#ifndef HF_WORKER_PRESENT_H
#define HF_WORKER_PRESENT_H

#include "worker/shared.h"

/* A step of a queue's registration: HF_OK when it was sent. */
HF_MUSTCHECK hf_err hf_present_register(hf_served *served);

/* Tells the queues that a reload has taken out that it handles and names nothing there.
 */
void hf_present_left(hf_worker *w);

/* Sends goodbyes to all queues whose Redis is there; `cb` is called with `arg` for each.
 * Returns how many were sent. */
size_t hf_present_goodbye(hf_worker *w, hf_answer_cb cb, void *arg);

#endif
