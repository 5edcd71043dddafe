/* redis_clock.h - what a worker does when Redis's clock is set. Any thread, unless said
 * otherwise. */
#ifndef HF_WORKER_REDIS_CLOCK_H
#define HF_WORKER_REDIS_CLOCK_H

#include "worker/site.h"

/* An answer says now_ms. True: the clock was set, and the loop's thread is to tell it. */
bool hf_clock_sample(hf_site *site, int64_t now_ms, uint64_t sent_ns);
void hf_clock_tell(hf_site *site); /* the loop's thread */
void hf_clock_read(hf_site *site, int64_t now_ms, uint64_t sent_ns); /* both; the same */
/* The latest time at which a request may be executed; 0: not known yet. */
int64_t hf_clock_not_after(const hf_site *site);

#endif
