/* redis_clock.h - Redis's clock, as this worker knows it. Any thread, unless said
 * otherwise. */
#ifndef HF_WORKER_REDIS_CLOCK_H
#define HF_WORKER_REDIS_CLOCK_H

#include "base/remote_clock.h"
#include "worker/shared.h"

HF_MUSTCHECK hf_err hf_clock_init(hf_worker *w);
void hf_clock_done(hf_worker *w);
/* An answer says now_ms. True: the clock was set, and the loop's thread is to tell it. */
bool hf_clock_sample(hf_worker *w, int64_t now_ms, uint64_t sent_ns);
void hf_clock_tell(hf_worker *w); /* the loop's thread */
void hf_clock_read(hf_worker *w, int64_t now_ms, uint64_t sent_ns); /* both; the same */
int64_t hf_clock_now(const hf_worker *w);       /* 0: not known yet; never ahead */
int64_t hf_clock_not_after(const hf_worker *w); /* 0: not known yet */
/* What a script is told of it; *judged_ms: the longest lease for which that holds. */
hf_clock_view hf_clock_shown(const hf_worker *w, uint32_t *judged_ms);
/* Fills in what a check carries of it. */
void hf_clock_share(const hf_worker *w, hf_check_args *args,
                    char learned[HF_REMOTE_STATE_SIZE]);
void hf_clock_adopt(hf_worker *w, const hf_checked *checked);

#endif
