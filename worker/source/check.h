/* check.h - the periodic check of a worker: it reports that this worker lives, gives back
 * batons that it cannot use, and replaces a next_wake that no worker keeps. Belongs to
 * the loop. */
#ifndef HF_WORKER_SOURCE_CHECK_H
#define HF_WORKER_SOURCE_CHECK_H

#include "worker/node/site.h"

void hf_check_open(hf_worker *w);   /* before the bundles are opened */
uint32_t hf_check_ms(hf_worker *w); /* from one check to the next; chosen at random */
void hf_check_send(hf_site *site);
void hf_check_bundle(hf_bundle *b, bool give_back);
void hf_check_give_back(hf_worker *w);           /* batons that it cannot use */
void hf_check_at(hf_site *site, uint64_t at_ns); /* one more at this time */
/* The next connection may show other data. So what was read until now is forgotten. */
void hf_check_other_data(hf_site *site);

#endif
