/* leases.h - the worker's use of the watchdog. */
#ifndef HF_WORKER_LEASES_H
#define HF_WORKER_LEASES_H

#include "worker/node/site.h"

HF_MUSTCHECK hf_err hf_leases_new(hf_worker *w);
void hf_leases_free(hf_worker *w);
HF_MUSTCHECK hf_err hf_leases_start(hf_worker *w, char detail[HF_DETAIL_SIZE]);

/* The hooks of the sites (worker/node/site.h). */
HF_MUSTCHECK hf_err hf_leases_new_site(hf_site *site);
void hf_leases_free_site(hf_site *site); /* its connection is closed */
void hf_leases_watch(hf_worker *w);      /* connects to new sites */
/* Closes the connection to it; the second one says whether that is done. */
void hf_leases_leave(hf_site *site);
bool hf_leases_has_left(hf_site *site);

/* Logs what the watchdog's thread has noted about its connection to the site. After a
 * refused renewal it also looks for the queue's node again. A lease survives the move of
 * its queue: each renewal goes to the site that the queue has by then. */
void hf_leases_report(hf_site *site);

#endif
