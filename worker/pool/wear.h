/* wear.h - when a process of a pool is replaced: it had its number of jobs, its age, or
 * too much memory. */
#ifndef HF_WORKER_POOL_WEAR_H
#define HF_WORKER_POOL_WEAR_H

#include <stdint.h>
#include <sys/types.h>

#include "base/random.h"
#include "holdfast/worker.h"

typedef struct hf_wear {
    uint64_t max_jobs, end_ns, max_rss; /* CLOCK_BOOTTIME, bytes; 0: no limit */
} hf_wear;

/* The limits of a new process. Each is up to a tenth higher or lower, so that the
 * processes of a pool are not replaced together. */
hf_wear hf_wear_begin(const hf_pool *pool, uint64_t now_ns, hf_rng *rng);

/* The key of the limit that it has reached; NULL: none. */
const char *hf_wear_cause(const hf_wear *wear, uint64_t jobs, pid_t pid, uint64_t now_ns);

/* Bytes of memory of a process; 0: not known. */
uint64_t hf_wear_resident(pid_t pid);

#endif
