/* sites.h - the sites of a worker come and go, as the nodes of redis/nodes.h. Belongs to
 * the loop.
 *
 * The one Redis of a plain URL is there from the start, and has all queues. In a cluster
 * each queue is in one slot, and has the site of the node that serves it. Before the
 * nodes have told the table a queue is nowhere: that is a site, too, which is never
 * connected. */
#ifndef HF_WORKER_NODE_SITES_H
#define HF_WORKER_NODE_SITES_H

#include "base/base.h"
#include "worker/node/site.h"

/* Begins to connect, when the loop runs. */
HF_MUSTCHECK hf_err hf_sites_open(hf_worker *w);
void hf_sites_close(hf_worker *w); /* what is on the loop */
void hf_sites_free(hf_worker *w);  /* the watchdog has ended */

/* Of a queue whose keys are in this slot; or the site that is nowhere. */
hf_site *hf_sites_find(hf_worker *w, unsigned key_slot);
/* The first one after NULL, and NULL after the last one. */
static inline hf_site *hf_sites_next(const hf_worker *w, const hf_site *site)
{
    hf_node *next = site == NULL ? w->nodes.first : site->base.next;
    return next == NULL ? NULL : HF_CONTAINER(next, hf_site, base);
}
void hf_sites_register(hf_worker *w);    /* the queues at all of them */
bool hf_sites_ready(const hf_worker *w); /* any of them is connected */

#endif
