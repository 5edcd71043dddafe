/* pool_job.h - a job in a process of a pool: what the process is told about it, and what
 * the end of its lease means for the process. */
#ifndef HF_WORKER_POOL_POOL_JOB_H
#define HF_WORKER_POOL_POOL_JOB_H

#include <stdint.h>

#include "worker/pool/child.h"
#include "worker/run/run.h"

/* Borrowed from the run. */
hf_child_job hf_pool_job(hf_run *run);

/* When the minder has to end a process (CLOCK_BOOTTIME): at most_ns, or earlier if a
 * lease of its runs, among those that were started, ends before. */
uint64_t hf_pool_job_deadline(const hf_run_list *started, const hf_child *child,
                              uint64_t most_ns);

/* A lease that is about to end is not renewed any more: its run ends before. */
void hf_pool_job_warn(const hf_run_list *started, uint32_t grace_ms, uint64_t now_ns);

#endif
