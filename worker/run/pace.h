/* pace.h - how long runs take, and so how many jobs are claimed ahead. Pure. */
#ifndef HF_WORKER_RUN_PACE_H
#define HF_WORKER_RUN_PACE_H

#include <stddef.h>
#include <stdint.h>

/* n runs have ended, which took this long together. *mean_ns: 0 before the first. */
void hf_pace_learn(double *mean_ns, uint64_t total_ns, size_t n);
/* So many that no slot waits for a round trip: a few milliseconds of work. */
size_t hf_pace_ahead(double mean_ns, size_t slots);

#endif
