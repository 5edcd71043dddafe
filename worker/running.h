/* running.h - the running part of a worker, for its other parts: which jobs start when,
 * on threads or as programs (dispatch.c; pool.c and leader.c behind it). Belongs to the
 * loop. */
#ifndef HF_WORKER_RUNNING_H
#define HF_WORKER_RUNNING_H

#include "worker/run.h"

HF_MUSTCHECK hf_err hf_running_open(hf_worker *w);
/* The minder before any thread. `returned` comes from any thread: something has to be
 * collected by hf_running_returned(). */
HF_MUSTCHECK hf_err hf_running_start(hf_worker *w, void (*returned)(void *arg));
void hf_running_loop(hf_worker *w);  /* turns the loop until nothing is left on it */
void hf_running_close(hf_worker *w); /* what is on the loop */
void hf_running_join(hf_worker *w);  /* waits for handlers that had not returned */
void hf_running_free(hf_worker *w);

uint32_t hf_running_wanted(const hf_worker *w); /* how many jobs more could be used */
uint32_t hf_running_slots(const hf_worker *w);  /* how many could start at once */
bool hf_running_all_busy(const hf_worker *w);   /* every slot has work, and more waits */
uint32_t hf_running_now(const hf_worker *w);    /* how many run */
size_t hf_running_out(const hf_worker *w);      /* C handlers that have not returned */
uint64_t hf_running_hold_until_ns(const hf_worker *w); /* no program is started; or 0 */

void hf_running_take(
    hf_run *run); /* claimed, or renewed first: it waits, or is settled */
void hf_running_hold_back(hf_run *run); /* claimed: it is renewed before it starts, or
                                           confirmed by replicas */
void hf_running_renewed(hf_run *run);   /* and now was */
/* Those of a claim that are still held back: started, or given back. */
void hf_running_confirmed(const hf_served *served, const char *fence, bool confirmed);
/* Its lease is lost, or it has to be cancelled: false: it has started. */
bool hf_running_withdraw(hf_run *run);

void hf_running_dispatch(hf_worker *w);
bool hf_running_must_return(
    const hf_worker *w);                /* the loop, now: a handler is run here */
void hf_running_expect(hf_worker *w);   /* a job may come soon */
void hf_running_turned(hf_worker *w);   /* the end of a turn */
void hf_running_returned(hf_worker *w); /* C handlers came back */
void hf_running_tick(hf_worker *w);
void hf_running_hold_over(hf_worker *w, uint64_t now_ns);

/* For a reload: after the first call no claimed job starts; the second one chooses again
 * for all of them. */
void hf_running_recall(hf_worker *w);
void hf_running_choose_anew(hf_worker *w);

/* For the end. */
void hf_running_stop(hf_worker *w);    /* releases what waits, asks the others to stop */
void hf_running_kill(hf_worker *w);    /* all programs, at once */
void hf_running_abandon(hf_worker *w); /* releases the jobs of handlers that stay away */
void hf_running_forget(hf_worker *w);  /* what has not started: its leases end */

#endif
