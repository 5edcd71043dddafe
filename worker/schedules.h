/* schedules.h - the schedules of a worker: those that its file and the programs
 * of its pools name, and the ticks of its queues. Belongs to the loop. */
#ifndef HF_WORKER_SCHEDULES_H
#define HF_WORKER_SCHEDULES_H

#include "base/buf.h"
#include "worker/plan.h"
#include "worker/pool/ready.h"
#include "worker/worker.h"

HF_MUSTCHECK hf_err hf_schedules_new(hf_worker *w);
void hf_schedules_free(hf_worker *w); /* NULL parts are fine */

/* Takes those of a plan, which then has none. */
void hf_schedules_take(hf_worker *w, hf_plan *plan);
/* Takes those that n programs name, in the place of those that they named before. The
 * file takes precedence, then the first program. True: something has changed, and Redis
 * has to be told. */
bool hf_schedules_offer(hf_worker *w, const hf_ready *const *offers, size_t n);
/* Calls `differs` for each that the plan has `added`, `removed` or `changed`. */
void hf_schedules_compare(const hf_worker *w, const hf_plan *plan,
                          void (*differs)(const char *id, const char *now, void *arg),
                          void *arg);

/* Appends `@id ` for each that is in this queue. */
void hf_schedules_add_names(const hf_served *served, hf_buf *out);

/* Tells Redis of those that are in this queue: a part of its registration. */
HF_MUSTCHECK hf_err hf_schedules_register(hf_served *served);
/* The answer to a claim names the ticks of this queue that are due: `ticks` of
 * hf_claimed. The queue is claimed again at once. */
void hf_schedules_claimed(hf_served *served, const hf_reply *ticks, int64_t now_ms);

/* The answer to a check says whether ticks are due. Now and then Redis is told that the
 * file still names its schedules. */
void hf_schedules_checked(hf_served *served, bool ticks);

#endif
