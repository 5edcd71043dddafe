/* death.h - how a process of a pool has ended, and whose doing that is. */
#ifndef HF_WORKER_POOL_DEATH_H
#define HF_WORKER_POOL_DEATH_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/group/groups.h"
#include "worker/program/said.h"

enum { HF_DEATH_SIZE = HF_PROGRAM_ERROR_MAX + 1 };

typedef struct hf_death {
    const hf_group *group;
    const hf_pool *pool;
    const char *why;        /* why the worker has ended it; "" : it has not */
    bool in_run;            /* it had a run without a verdict */
    const char *stderr_end; /* may be "" */
} hf_death;

/* "killed by signal 11 (SEGV)", and after a newline the end of its standard error. */
void hf_death_describe(const hf_death *death, char out[HF_DEATH_SIZE]);

/* Whether a signal of the worker's, sent at this time (0: never), has ended it: after its
 * grace a process that goes on has borne it. */
bool hf_death_is_by(const hf_group *group, int signal, uint64_t sent_ns,
                    uint32_t grace_ms);

/* The minder sends TERM and KILL: another signal is the process's own doing. */
bool hf_death_may_be_the_minders(const hf_group *group);

#endif
