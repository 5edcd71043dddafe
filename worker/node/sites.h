/* sites.h - the sites of a worker come and go. Belongs to the loop.
 *
 * The one Redis of a plain URL is there from the start, and has all queues. In a cluster
 * each queue is in one slot, and has the site of the node that serves it. Before the
 * nodes have told the table a queue is nowhere: that is a site, too, which is never
 * connected. */
#ifndef HF_WORKER_NODE_SITES_H
#define HF_WORKER_NODE_SITES_H

#include "worker/node/site.h"

HF_MUSTCHECK hf_err hf_sites_open(hf_worker *w);
HF_MUSTCHECK hf_err hf_sites_connect(hf_worker *w);
void hf_sites_close(hf_worker *w); /* what is on the loop */
void hf_sites_free(hf_worker *w);

/* Of a queue whose keys are in this slot. NULL: the table does not tell, or there is no
 * memory. */
hf_site *hf_sites_of_slot(hf_worker *w, unsigned key_slot);
/* The same, or the site that is nowhere. */
hf_site *hf_sites_find(hf_worker *w, unsigned key_slot);
/* Closes each site that is not needed, and frees those whose closing has ended. */
void hf_sites_reap(hf_worker *w, bool (*is_needed)(const hf_worker *w, const hf_site *s));
bool hf_sites_ready(const hf_worker *w); /* any of them is connected */

#endif
