/* leases.h - the leases part: the worker's use of the watchdog, and the watchdog's
 * events. */
#ifndef HF_WORKER_LEASES_H
#define HF_WORKER_LEASES_H

#include "worker/run.h"
#include "worker/site.h"

HF_MUSTCHECK hf_err hf_leases_new(hf_worker *w);
void hf_leases_free(hf_worker *w);
HF_MUSTCHECK hf_err hf_leases_site_new(hf_site *site);
void hf_leases_site_free(hf_site *site); /* its connection is closed */
void hf_leases_watch(hf_worker *w);      /* connects to new sites */
/* Closes the connection to it; the second one tells when that is done. */
void hf_leases_part(hf_site *site);
bool hf_leases_parted(hf_site *site);
HF_MUSTCHECK hf_err hf_leases_start(hf_worker *w, char detail[HF_DETAIL_SIZE]);
bool hf_leases_watched(
    const hf_site *site);           /* false: it cannot renew, so it must not claim */
void hf_leases_notes(hf_worker *w); /* events that came from the watchdog */

#endif
