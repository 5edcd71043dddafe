/* mark.h - what a program started, recognised by a mark that every descendant inherits.
 *
 * The mark is the limit RLIMIT_LOCKS, which Linux has not used since 2.4.25. It passes
 * through fork, exec, setsid and a change of the user, and without CAP_SYS_RESOURCE the
 * hard limit can only be lowered. Of three kinds of values each process has two:
 *
 *   hard   01...   the start that it descends from; unlimited: it has no mark
 *   soft   000...  the job of that start, for the next one that runs it
 *          001...  the start by a holder that has a mark itself
 *
 * A holder inside a program keeps the hard limit, or the outer minder could not find what
 * it starts. One inside of that one can set no mark. */
#ifndef HF_LOCK_MINDER_MARK_H
#define HF_LOCK_MINDER_MARK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* 62 random bits. 0: the system has none, and there is no mark. */
uint64_t hf_mark_new(void);

/* The value of the soft limit for a hash. */
uint64_t hf_mark_of_job(uint64_t hash);

typedef struct hf_mark_pair {
    uint64_t soft, hard;
} hf_mark_pair;

/* Sets the marks of a process (0: this one). Nothing happens if its limits may not be
 * changed, or hold two marks already. Async-signal-safe. */
void hf_mark_set(pid_t pid, uint64_t mark, uint64_t job);
/* False with errno: EPERM, ESRCH. */
bool hf_mark_read(pid_t pid, hf_mark_pair *out);
/* The part that all forms of one mark share, whichever limit it became: 0 for 0. */
uint64_t hf_mark_common(uint64_t mark);
/* The mark that was set last; 0: none. */
uint64_t hf_mark_last(const hf_mark_pair *marks);

#endif
