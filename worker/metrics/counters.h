/* counters.h - what a worker counts for its metrics.
 *
 * The thread that turns the loop counts, and never waits; any thread may write the text
 * at the same time, because entries are only added, and go with the worker. Exceptions
 * are named below. */
#ifndef HF_WORKER_METRICS_COUNTERS_H
#define HF_WORKER_METRICS_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/prometheus.h"
#include "holdfast/error.h"

enum {
    HF_COUNTERS_TYPES = 64,      /* of a queue; the rest are counted as "other" */
    HF_COUNTERS_ALL_TYPES = 512, /* of all queues, likewise */
    HF_COUNTERS_QUEUES = 128,    /* in the life of a worker, likewise */
    HF_COUNTERS_POOLS = 64       /* likewise */
};
#define HF_COUNTERS_OTHER "other"

typedef struct hf_counters hf_counters;
typedef struct hf_queue_counters hf_queue_counters;

HF_MUSTCHECK hf_err hf_counters_new(hf_counters **out);
void hf_counters_free(hf_counters *c); /* NULL is fine */

/* ---- jobs ---- */

/* The same for the same name. NULL: out of memory, and nothing is counted. */
hf_queue_counters *hf_counters_queue(hf_counters *c, const char *name);
/* A line of the log tells how a job of the queue ended; type NULL: it is not known. */
void hf_counters_outcome(hf_queue_counters *q, const char *type, const char *outcome);
/* An attempt that Redis has counted as done or failed. */
void hf_counters_attempt(hf_queue_counters *q, const char *type, uint64_t wait_ns,
                         uint64_t run_ns);

/* ---- the worker ---- */

void hf_counters_claim(hf_counters *c);                      /* it was answered */
void hf_counters_request(hf_counters *c, uint64_t ns);       /* a request took so long */
void hf_counters_dropped(hf_counters *c, uint64_t attempts); /* by the history */
/* On the watchdog's thread: a lease had so much left when it was renewed. */
void hf_counters_margin(hf_counters *c, uint64_t ns, uint64_t now_ns);

/* ---- pools ---- */

typedef struct hf_pool_gauges {
    const char *name;
    bool up;
    size_t processes, slots, running;
    uint64_t memory;
} hf_pool_gauges;

/* All of them, in place of those of the last call. */
void hf_counters_pools(hf_counters *c, const hf_pool_gauges *pools, size_t n);
void hf_counters_process_ended(hf_counters *c, const char *pool, const char *reason);
/* From any thread. How many pools there are, and how many of them are up. */
size_t hf_counters_pools_up(hf_counters *c, size_t *all);

/* From any thread. */
void hf_counters_write(hf_counters *c, hf_prom *out);

#endif
