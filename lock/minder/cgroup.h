/* cgroup.h - a control group (cgroup v2) for each program, below that of its worker.
 *
 * It holds all that the program starts, as the mark does (lock/minder/mark.h). The kernel
 * kills a whole group at once, also processes that became another user, and those that
 * fork and exit faster than a pass over /proc can find them. A worker may make groups
 * only where its own was delegated to it.
 *
 * The directory of a group is `holdfast.<mark>.<job>` in that of the worker, both in
 * hexadecimal: a minder or a later worker in the same place finds it without a record. */
#ifndef HF_LOCK_MINDER_CGROUP_H
#define HF_LOCK_MINDER_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "holdfast/error.h"

typedef struct hf_cgroup {
    uint64_t mark; /* hf_mark_common() of the program's; 0: none */
    uint64_t job;  /* as hf_mark_of_job() gives it */
} hf_cgroup;

/* Makes a group and removes it. HF_SYSTEM, with why in `detail`: the system has no cgroup
 * v2, or no cgroup.kill (before Linux 5.14), or this process may make no group. */
HF_MUSTCHECK hf_err hf_cgroup_check(char detail[HF_DETAIL_SIZE]);

/* Makes a group. Returns a close-on-exec descriptor for hf_cgroup_enter(), which the
 * caller closes; -1 with errno. */
int hf_cgroup_make(const hf_cgroup *group);
/* Moves this process there. False with errno. Async-signal-safe. */
bool hf_cgroup_enter(int fd);
/* False: it stays, because it has processes that are not reaped. */
bool hf_cgroup_remove(const hf_cgroup *group);

/* Groups that could not be removed yet; mark 0: none. All zeros at first. */
typedef struct hf_cgroups {
    hf_cgroup left[64];
    size_t next;
} hf_cgroups;

/* Removes a group (mark 0: none) and the earlier ones that have become empty. If a daemon
 * stays in it, the group is remembered, in place of the oldest one, which then stays
 * until the worker's own group ends. */
void hf_cgroups_leave(hf_cgroups *groups, const hf_cgroup *group);

/* Kills all that is in a group. False: there was nothing, and the group is removed. */
bool hf_cgroup_kill(const hf_cgroup *group);

/* The group of a process; mark 0: of none of ours. */
hf_cgroup hf_cgroup_of(pid_t pid);

/* Calls cb for each group in the directory of this process. Nothing happens where it
 * cannot be read. */
typedef void (*hf_cgroup_cb)(const hf_cgroup *group, void *arg);
void hf_cgroup_each(hf_cgroup_cb cb, void *arg);

#endif
