/* victim.h - a worker in a process of its own that takes one job and keeps it until it is
 * killed. */
#ifndef HF_BENCH_VICTIM_H
#define HF_BENCH_VICTIM_H

#include <stdint.h>
#include <sys/types.h>

#include "holdfast/error.h"

typedef struct hf_victim_opts {
    const char *url, *password_file; /* the latter may be NULL */
    const char *ns, *queue;
    uint32_t lease_ms;
} hf_victim_opts;

/* Starts this program again, as `holdfast bench-victim`. It dies with the thread that
 * started it. HF_SYSTEM: then *pid is 0. */
HF_MUSTCHECK hf_err hf_victim_start(pid_t *pid, const hf_victim_opts *opts,
                                    char detail[HF_DETAIL_SIZE]);

#endif
