/* leases.h - the worker's use of the watchdog. */
#ifndef HF_WORKER_LEASES_H
#define HF_WORKER_LEASES_H

#include "worker/node/site.h"

HF_MUSTCHECK hf_err hf_leases_start(hf_worker *w);

/* A hook of the sites (worker/node/site.h), on the watchdog's thread. */
void hf_leases_on_watch(hf_site *site, hf_err err, const char *detail);

/* Logs what the watchdog's thread has noted about its connection to the site. After a
 * refused renewal it also looks for the queue's node again. A lease survives the move of
 * its queue: each renewal goes to the site that the queue has by then. */
void hf_leases_report(hf_site *site);

#endif
