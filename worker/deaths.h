/* deaths.h - which jobs tell of the deaths of jobs that do not say it themselves: on_dead
 * of the handlers and of the queues.
 *
 * Jobs die in scripts that any client sends. So Redis has to know it: a worker tells each
 * of its queues, at its start and when a reload changes it. */
#ifndef HF_WORKER_DEATHS_H
#define HF_WORKER_DEATHS_H

#include "worker/shared.h"

/* Tells Redis: a part of the registration of a queue. */
HF_MUSTCHECK hf_err hf_deaths_register(hf_served *served);

/* Whether the handlers of the plan say the same as those of the worker. */
bool hf_deaths_same(const hf_worker *w, const hf_plan *plan);

#endif
