/* waking.h - the waking part of a worker, for its other parts: which queue to claim, and
 * when (claim.c, wake.c; queues.c behind worker/queues.h). Belongs to the loop. */
#ifndef HF_WORKER_WAKING_H
#define HF_WORKER_WAKING_H

#include "worker/shared.h"

/* -- claim.c -- */
void hf_claim_pump(hf_worker *w);
bool hf_claim_can_wait(const hf_worker *w); /* for a turn, after verdicts have left */
void hf_claim_lost(hf_worker *w);           /* asks what lost claims took */
void hf_claim_introduce(hf_worker *w); /* the next claim says that this worker lives */

/* -- wake.c -- */
HF_MUSTCHECK hf_err hf_wake_open(hf_worker *w);    /* its timers */
HF_MUSTCHECK hf_err hf_wake_connect(hf_worker *w); /* to a plain Redis */
void hf_wake_start(hf_worker *w);
void hf_wake_close(hf_worker *w);
void hf_wake_pump(hf_worker *w);
void hf_wake_timers(hf_worker *w);
void hf_wake_queues_changed(hf_worker *w, bool some_left); /* a reload did it */
bool hf_wake_blocks(const hf_worker *w);
/* Nothing of its own is under way where Redis answers, so no baton goes down with a
 * connection. */
bool hf_wake_idle(const hf_worker *w);

/* -- check.c -- */
void hf_check_send(hf_site *site);
void hf_check_give_back(hf_worker *w);           /* batons that it cannot use */
void hf_check_at(hf_site *site, uint64_t at_ns); /* one more at this time */
/* The next connection may show other data, of which nothing was read yet. */
void hf_check_other_data(hf_site *site);

#endif
