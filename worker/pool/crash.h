/* crash.h - jobs whose process ended while they ran, and no order of this worker had
 * ended it. Belongs to the loop. */
#ifndef HF_WORKER_POOL_CRASH_H
#define HF_WORKER_POOL_CRASH_H

#include <stdint.h>

#include "worker/pool/child.h"
#include "worker/run/run.h"

/* Ends the job, or puts it into the list until it is known whose signal has ended its
 * process. */
void hf_crash_take(hf_run_list *undecided, hf_run *run, const hf_child_end *how);
/* Ends those of the list that have waited long enough, or all if the worker stops. */
void hf_crash_decide(hf_run_list *undecided, uint64_t now_ns);

#endif
