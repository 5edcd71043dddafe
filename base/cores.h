/* cores.h - how many cores this process may use: those of its affinity, and no more than
 * the CPU time that its control group has (cgroup v2 `cpu.max`, v1 `cpu.cfs_quota_us`),
 * as container runtimes set it. */
#ifndef HF_BASE_CORES_H
#define HF_BASE_CORES_H

#include <stdint.h>

/* At least 1. */
uint32_t hf_cores(void);

/* The cores that the control groups of this process allow, rounded up: the lowest limit
 * of its own and those above it. 0: there is no limit. The files are read below `root`,
 * "" for those of the system. */
uint32_t hf_cores_of_cgroup(const char *root);

#endif
