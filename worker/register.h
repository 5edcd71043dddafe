/* register.h - what a worker tells Redis of the queues that it serves: their names, their
 * shards, their limits, the types that it handles, the schedules that its file names, and
 * which jobs report deaths. Belongs to the loop. */
#ifndef HF_WORKER_REGISTER_H
#define HF_WORKER_REGISTER_H

#include "worker/node/site.h"

/* Tells this Redis of its queues that are not registered. */
void hf_register_site(hf_site *site);
void hf_register_turn(hf_worker *w); /* where it is due */

/* Tells the queues that a reload has taken out that the worker handles and names nothing
 * there. */
void hf_register_left(hf_worker *w);

/* Sends goodbyes to all queues whose Redis is there; `cb` is called with `arg` for each.
 * Returns how many were sent. */
size_t hf_register_goodbye(hf_worker *w, hf_answer_cb cb, void *arg);

/* Whether the handlers of the plan say the same of deaths as those of the worker. */
bool hf_register_same_deaths(const hf_worker *w, const hf_plan *plan);

#endif
