/* runner.h - the runner of a worker, for its other parts: which jobs start when,
 * on threads or as programs (runner.c; threads.c and leader.c behind it). Belongs to the
 * loop. */
#ifndef HF_WORKER_RUNNER_RUNNER_H
#define HF_WORKER_RUNNER_RUNNER_H

#include "worker/run/run.h"

HF_MUSTCHECK hf_err hf_runner_open(hf_worker *w);
/* The minder before any thread. `returned` comes from any thread: something has to be
 * collected by hf_runner_returned(). `returned_here` comes from the thread that has the
 * loop, outside of its callbacks, and may take a turn. */
HF_MUSTCHECK hf_err hf_runner_start(hf_worker *w, void (*returned)(void *arg),
                                    void (*returned_here)(hf_worker *w));
void hf_runner_loop(hf_worker *w);  /* turns the loop until nothing is left on it */
void hf_runner_close(hf_worker *w); /* what is on the loop */
void hf_runner_join(hf_worker *w);  /* waits for handlers that had not returned */
void hf_runner_free(hf_worker *w);

uint32_t hf_runner_wanted(const hf_worker *w); /* how many jobs more could be used */
uint32_t
hf_runner_slots(const hf_worker *w); /* free ones: how many jobs could start now */
uint32_t hf_runner_capacity(const hf_worker *w); /* how many can run at a time */
bool hf_runner_all_busy(const hf_worker *w);     /* every slot has work, and more waits */
uint32_t hf_runner_now(const hf_worker *w);      /* how many run */
size_t hf_runner_out(const hf_worker *w);        /* C handlers that have not returned */
/* Calls fn for each run that was started and has not ended. It must be short: threads may
 * wait for it. */
void hf_runner_started(hf_worker *w, void (*fn)(hf_run *run, void *arg), void *arg);
uint64_t hf_runner_hold_until_ns(const hf_worker *w); /* no program is started; or 0 */

void hf_runner_accept(
    hf_run *run); /* claimed, or renewed first: it waits, or is settled */
/* Claimed: it is renewed, or confirmed by replicas, before it starts. */
void hf_runner_confirm_first(hf_run *run);
/* Those of a claim that are still to be confirmed: started, or given back. */
void hf_runner_confirmed(const hf_served *served, const char *fence, bool confirmed);
/* What the watchdog's thread has noted of leases: lost, to be cancelled, renewed. */
void hf_runner_events(hf_worker *w);

void hf_runner_dispatch(hf_worker *w);          /* starts what can start now */
bool hf_runner_must_return(const hf_worker *w); /* the loop, now: a handler is run here */
void hf_runner_expect(hf_worker *w);            /* a job may come soon */
void hf_runner_turned(hf_worker *w, bool idle); /* the end of a turn (leader.h) */
void hf_runner_returned(hf_worker *w);          /* C handlers came back */
void hf_runner_tick(hf_worker *w);
void hf_runner_hold_over(hf_worker *w, uint64_t now_ns);

/* For a reload: after the first call no claimed job starts; the second one chooses again
 * for all of them. */
void hf_runner_recall(hf_worker *w);
void hf_runner_choose_anew(hf_worker *w);

/* For the end. */
void hf_runner_stop(hf_worker *w); /* releases what waits, asks the others to stop */
bool hf_runner_is_tidy(const hf_worker *w); /* no process of a pool is left */
void hf_runner_kill(hf_worker *w);          /* all programs, at once */
void hf_runner_abandon(hf_worker *w); /* releases the jobs of handlers that stay away */
void hf_runner_forget(hf_worker *w);  /* what has not started: its leases end */

#endif
