/* routes.h - which site each queue of a cluster has. The table of slots changes: then the
 * queue moves to another site. Requests that are under way at its old site are answered
 * there. Without an answer a verdict or a renewal is sent again to the new one; of a
 * claim the new one is asked which jobs it took. A queue that has been somewhere stays
 * there until another node serves it. Belongs to the loop. */
#ifndef HF_WORKER_ROUTES_H
#define HF_WORKER_ROUTES_H

#include "worker/node/site.h"

/* Moves queues to other sites, and closes sites that none needs. */
void hf_routes_turn(hf_worker *w);
/* Whether a queue, or the registry, has this site. */
bool hf_routes_need(const hf_worker *w, const hf_site *site);

#endif
