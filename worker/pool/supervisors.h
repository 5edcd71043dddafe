/* supervisors.h - the pools of a worker, as its runner sees them. Belongs to the loop. */
#ifndef HF_WORKER_POOL_SUPERVISORS_H
#define HF_WORKER_POOL_SUPERVISORS_H

#include "worker/group/groups.h"
#include "worker/pool/ready.h"
#include "worker/pool/supervisor.h"
#include "worker/run/run.h"
#include "worker/worker.h"

enum { HF_SUPERVISORS_MAX = 2 * HF_POOLS_MAX }; /* with those that end */

/* Starts the processes of w->pools. `groups` is borrowed until all have gone. */
HF_MUSTCHECK hf_err hf_supervisors_start(hf_worker *w, hf_groups *groups);
/* A reload has changed w->pools. */
void hf_supervisors_take(hf_worker *w);
/* No more jobs: processes stop when their runs have ended. */
void hf_supervisors_stop(hf_worker *w);
/* The runs that are left are asked to end, and killed soon. */
void hf_supervisors_end(hf_worker *w);
/* Kills what is left; `groups` is left when that has gone. */
void hf_supervisors_close(hf_worker *w);
/* When nothing is left on the loop. */
void hf_supervisors_free(hf_worker *w);

void hf_supervisors_turn(hf_worker *w);                   /* starts processes, and jobs */
void hf_supervisors_tick(hf_worker *w, uint64_t keep_ms); /* while jobs are held */

/* A run whose handler is a pool. */
void hf_supervisors_accept(hf_run *run);
void hf_supervisors_withdraw(hf_run *run); /* it waits */
void hf_supervisors_lose(hf_run *run);     /* it was started */
void hf_supervisors_cancel(hf_run *run);   /* it was started */
/* Takes all that wait. */
void hf_supervisors_recall(hf_worker *w, hf_run_list *out);

/* Nothing is claimed yet: of the pools that the worker began with one has neither been
 * ready nor failed. */
bool hf_supervisors_starting(const hf_worker *w);
/* A pool has never named its types: a type without a handler may be its. */
bool hf_supervisors_any_unknown(const hf_worker *w, int64_t *backoff_ms);
/* What the programs offer, in the order of the pools; borrowed until the next turn.
 * Returns how many. */
size_t hf_supervisors_offers(const hf_worker *w, const hf_ready *out[HF_SUPERVISORS_MAX]);
/* Of the pools of the options. Returns how many. */
size_t hf_supervisors_facts(const hf_worker *w, hf_pool_facts out[HF_POOLS_MAX]);
size_t hf_supervisors_slots(const hf_worker *w);
size_t hf_supervisors_usable(const hf_worker *w); /* not beside a job alone */
size_t hf_supervisors_free_slots(const hf_worker *w);
size_t hf_supervisors_ahead(const hf_worker *w);
size_t hf_supervisors_running(const hf_worker *w);
size_t hf_supervisors_waiting(const hf_worker *w);
/* Calls fn for each run that was started and has not ended. */
void hf_supervisors_started(hf_worker *w, void (*fn)(hf_run *run, void *arg), void *arg);
bool hf_supervisors_alive(const hf_worker *w); /* a process is left */

#endif
