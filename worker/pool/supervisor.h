/* supervisor.h - one pool: keeps its processes, gives them jobs, and ends these.
 *
 * It starts `processes` processes. One that ends is replaced: at once if it lived for a
 * second, else after a back-off. A process that has had its number of jobs, its age or
 * its memory is replaced by another one, which is ready before the first is told to stop;
 * one at a time. So is each process after a reload, which may bring a new version of the
 * program: while its first new process does not become ready, the old ones stay.
 *
 * Programs that were started by hand may join it (worker/pool/door.h). Each takes the
 * place of one of its processes.
 *
 *   claimed job -> waiting -> a process has a free slot -> started -> verdict, or the
 *   process has ended without one -> outbox
 *
 * A job that waits longer than 100 ms goes back, and its queue is paused until a slot is
 * free (worker/queues/queues.h).
 *
 * The types of a pool are handlers of the worker (worker/handler.h) once a process has
 * named them. Belongs to the loop. */
#ifndef HF_WORKER_POOL_SUPERVISOR_H
#define HF_WORKER_POOL_SUPERVISOR_H

#include "worker/group/groups.h"
#include "worker/pool/child.h"
#include "worker/pool/ready.h"
#include "worker/pool_spec.h"
#include "worker/run/run.h"
#include "worker/worker.h"

typedef struct hf_supervisor hf_supervisor;

typedef enum hf_pool_health {
    HF_POOL_STARTING, /* no process has been ready or has failed yet */
    HF_POOL_UP,       /* a process takes jobs, or will soon, or when one joins */
    HF_POOL_DOWN      /* none does, and the last start has failed */
} hf_pool_health;

/* What a heartbeat tells about a pool. */
typedef struct hf_pool_facts {
    const char *name; /* borrowed until the next turn */
    hf_pool_health health;
    size_t processes, slots, running; /* that take jobs, of these, jobs in them */
    uint64_t resident;                /* bytes of memory of all its processes */
} hf_pool_facts;

/* Starts nothing yet. NULL: out of memory. `gone` is called when the last process has
 * ended and none will be started. */
hf_supervisor *hf_supervisor_new(hf_worker *w, hf_groups *groups, hf_pool_spec *spec,
                                 void (*gone)(hf_worker *w));

/* Starts and stops processes, as is due now. */
void hf_supervisor_turn(hf_supervisor *s, uint64_t now_ns);
/* From time to time: deadlines, ages, memory. */
void hf_supervisor_tick(hf_supervisor *s, uint64_t now_ns);
/* A reload: another spec of the same program, and new processes. */
void hf_supervisor_renew(hf_supervisor *s, hf_pool_spec *spec);
/* No more jobs: the processes stop when their runs have ended. `gone` is called when the
 * last one has ended. */
void hf_supervisor_stop(hf_supervisor *s);
/* The same, when a reload has taken it out: other handlers may have its types at once. */
void hf_supervisor_retire(hf_supervisor *s);
void hf_supervisor_cancel_all(hf_supervisor *s, uint32_t grace_ms);
void hf_supervisor_kill(hf_supervisor *s);

/* Jobs: one that was claimed; those that wait too long; all that wait. */
void hf_supervisor_accept(hf_supervisor *s, hf_run *run);
void hf_supervisor_dispatch(hf_supervisor *s);
void hf_supervisor_withdraw(hf_supervisor *s, hf_run *run);
void hf_supervisor_release_stale(hf_supervisor *s, uint64_t now_ns, uint64_t keep_ms);
void hf_supervisor_decide(hf_supervisor *s, uint64_t now_ns); /* about crashes */
hf_run_list *hf_supervisor_waiting(hf_supervisor *s);
const hf_run_list *hf_supervisor_started(const hf_supervisor *s);

hf_pool_facts hf_supervisor_facts(const hf_supervisor *s);
void hf_supervisor_free(hf_supervisor *s); /* hf_supervisor_is_empty() */
hf_pool_spec *hf_supervisor_spec(const hf_supervisor *s);
hf_pool_health hf_supervisor_health(const hf_supervisor *s);
bool hf_supervisor_is_empty(const hf_supervisor *s); /* no process is left */
bool hf_supervisor_is_done(const hf_supervisor *s);  /* and no job */
bool hf_supervisor_has_offer(
    const hf_supervisor *s); /* it has named its types, or never will */
/* What its processes offer; borrowed until the next turn. NULL: nothing yet. */
const hf_ready *hf_supervisor_offer(const hf_supervisor *s);
size_t hf_supervisor_slots(const hf_supervisor *s);  /* of processes that take jobs */
size_t hf_supervisor_usable(const hf_supervisor *s); /* not beside a job alone */
size_t
hf_supervisor_free_slots(const hf_supervisor *s);   /* that no claimed job will get */
size_t hf_supervisor_ahead(const hf_supervisor *s); /* jobs worth claiming beyond them */
int64_t hf_supervisor_backoff_ms(const hf_supervisor *s); /* until the next start */

#endif
