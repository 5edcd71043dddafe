/* claim.h - claiming: the choice of the queue, the request, the answer. Belongs to the
 * loop. */
#ifndef HF_WORKER_SOURCE_CLAIM_H
#define HF_WORKER_SOURCE_CLAIM_H

#include "worker/worker.h"

/* Claims what can be claimed now: from sites that serve and can be asked, if jobs are
 * wanted, and some queue is worth a claim of its own. True: a claim has left. */
bool hf_claim_pump(hf_worker *w);
bool hf_claim_can_wait(const hf_worker *w); /* for a turn, after verdicts have left */
void hf_claim_lost(hf_worker *w);      /* asks what lost claims took, and gives it back */
void hf_claim_say_alive(hf_worker *w); /* the next claim says that this worker lives */

#endif
