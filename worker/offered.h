/* offered.h - what the programs of pools name beyond their types: schedules, and the
 * queues of their types and schedules. Belongs to the loop. */
#ifndef HF_WORKER_OFFERED_H
#define HF_WORKER_OFFERED_H

#include "worker/plan.h"
#include "worker/worker.h"

/* Takes what they name by now, if that may have changed: the worker's schedules are those
 * of its file and of its programs. With hf_worker_opts.offered_queues its queues are
 * those of the options and of its programs. */
void hf_offered_turn(hf_worker *w);

/* Adds to a new plan the queues that are served because programs name them. */
void hf_offered_keep(const hf_worker *w, hf_plan *plan);

#endif
