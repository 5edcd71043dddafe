/* family.h - all processes that a program started, wherever they went: found by their
 * mark (mark.h), or by their session where there is none, in a pass over /proc. A pass
 * that kills also kills the program's cgroup (cgroup.h), if it has one.
 *
 * One pass looks for many families. A process may fork while it is made: passes are
 * repeated until two found none. A process that got KILL forks no more. */
#ifndef HF_LOCK_MINDER_FAMILY_H
#define HF_LOCK_MINDER_FAMILY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    HF_FAMILY_NONE_PASSES = 2, /* that find none, until it is gone */
    HF_FAMILY_KILL_MS = 10000  /* for the end of what was killed */
};

typedef struct hf_family {
    uint64_t mark, job; /* a process with one of them belongs to it; 0: none */
    pid_t session;      /* so does one of this session; 0: none */
    pid_t group;        /* is signalled as one, and left out by passes that ask */
    /* Of the last pass: */
    size_t alive;      /* that may be signalled */
    bool denied;       /* there is one that may not */
    uint64_t resident; /* bytes; only of hf_family_measure() */
    /* In a row: */
    unsigned none; /* passes that found none alive */
} hf_family;

/* The family of the leader of a group, which is not reaped. If this process has the same
 * mark, it is not the leader's own. A leader that became another user is known by its
 * cgroup. */
hf_family hf_family_of(pid_t leader);
/* Nothing of it can be found. */
bool hf_family_is_empty(const hf_family *family);

/* One pass: KILL to all of them. */
void hf_family_kill(hf_family *list, size_t n);
/* One pass: TERM to those outside of the group. */
void hf_family_ask(hf_family *list, size_t n);
/* One pass: the memory that they have. */
void hf_family_measure(hf_family *list, size_t n);
/* After hf_family_kill(): nothing is left that could be ended. */
bool hf_family_is_gone(const hf_family *family);

/* Passes until all are gone, at most until `until_ns` (CLOCK_BOOTTIME). False: some are
 * left. Blocks. */
bool hf_family_end(hf_family *list, size_t n, uint64_t until_ns);

#endif
