/* starts.h - the starts of a pool's processes that have failed, and when the next one is
 * due. Belongs to the loop. */
#ifndef HF_WORKER_POOL_STARTS_H
#define HF_WORKER_POOL_STARTS_H

#include "worker/worker.h"

typedef struct hf_starts {
    uint32_t failures; /* in a row */
    uint32_t tries;    /* that failed before any process was ready */
    uint64_t due_ns;   /* the next one */
    bool failed;       /* the last one */
    bool refused;      /* and no other is tried before a reload */
} hf_starts;

/* Another one has failed; `first`: no process lives, and none was ready before. */
void hf_starts_fail(hf_starts *starts, hf_worker *w, const hf_pool_spec *spec, bool first,
                    const char *why);
void hf_starts_renew(hf_starts *starts);            /* the program is another one */
int64_t hf_starts_wait_ms(const hf_starts *starts); /* until the next one; 0: now */

#endif
