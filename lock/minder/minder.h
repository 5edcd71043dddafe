/* minder.h - the second, tiny process that ends programs when their worker cannot.
 *
 * A worker, or any other holder of locks, that is stopped (SIGSTOP, a frozen cgroup) or
 * killed cannot end the programs that it started before their leases pass to another. So
 * each one that runs programs has a minder: `holdfast minder`, in a session of its own,
 * reading one pipe and holding no connection. It knows every process group and its
 * deadline: TERM at the deadline minus kill_grace, KILL at the deadline, KILL to all at
 * once when the worker is gone.
 *
 *   worker --- records ---> minder --- signals ---> program
 *
 * All records have one size, PIPE_BUF or less, and never mix. The program writes its own
 * first record through the same pipe, between fork and exec.
 *
 * This is the worker's side. While there are groups it asks the minder each 500 ms for a
 * byte. A minder that ends, or does not answer for 2 s (it was stopped, say), is killed
 * and replaced (50 ms .. 2 s between tries), and the new one gets the whole list. */
#ifndef HF_LOCK_MINDER_MINDER_H
#define HF_LOCK_MINDER_MINDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "holdfast/error.h"
#include "lock/minder/family.h"
#include "lock/minder/record.h"

struct uv_loop_s;

typedef struct hf_minder hf_minder;

enum { HF_MINDER_GROUPS_MAX = 2048 };

typedef struct hf_minder_opts {
    struct uv_loop_s *loop;
    const char *path; /* NULL: `holdfast`, found by PATH. Copied */
    uint32_t kill_grace_ms;
    bool any_thread; /* groups come by hf_minder_hold(), from threads not the loop's */
    void (*on_ready)(bool ready, void *arg); /* not for the first start */
    void *arg;
} hf_minder_opts;

/* Starts a minder and waits until it says that it is there, at most 5 s. HF_SYSTEM,
 * HF_NOMEM, HF_CONFIG (it cannot be run, or is no minder). */
HF_MUSTCHECK hf_err hf_minder_start(hf_minder **out, const hf_minder_opts *opts,
                                    char detail[HF_DETAIL_SIZE]);

/* Ends the minder, which must have no groups, reaps it and closes, then calls cb. Only
 * hf_minder_extend() may follow, until hf_minder_free(), which comes in cb or later. */
void hf_minder_close(hf_minder *minder, void (*cb)(void *arg), void *arg);
void hf_minder_free(hf_minder *minder);

bool hf_minder_ready(hf_minder *minder);
pid_t hf_minder_pid(const hf_minder *minder); /* 0: there is none now */

/* The pipe that a program writes its own first record to, before it is executed; -1 when
 * the minder is not ready or has HF_MINDER_GROUPS_MAX groups. Loop's thread. */
int hf_minder_fd(hf_minder *minder);

/* A group on the minder's list. Part of the starter's own struct, zero at first. It must
 * not move until the last call of hf_minder_extend() with it. */
typedef struct hf_minded {
    struct hf_minded *prev, *next;
    pid_t group; /* 0: not on the list */
    uint64_t deadline_ns;
    uint64_t asked_ns; /* when it was seen last that the minder may have asked it to end:
                          before its deadline was moved, or because its lease is lost; 0:
                          never */
    bool ends;         /* the minder knows that it ends: its deadline stays */
    bool own_grace;    /* it has one; else the minder's kill_grace counts */
    uint64_t grace_ns; /* its own grace */
    hf_family family;  /* of a group of hf_minder_hold(): all that it starts */
    _Atomic uint64_t
        wanted_ns; /* by hf_minder_extend(); the minder gets it as soon as it can */
    _Atomic uint64_t lost_ns; /* the same by hf_minder_end(): when; 0: it is not lost */
} hf_minded;

/* Loop's thread, right after the fork of a program that tells the minder itself. */
void hf_minder_add(hf_minder *minder, hf_minded *minded, pid_t group,
                   uint64_t deadline_ns);
/* Any thread: a group that does not report itself, with a grace of its own. HF_INVALID:
 * `minded` has a group already. HF_SYSTEM: the minder cannot be told now. */
HF_MUSTCHECK hf_err hf_minder_hold(hf_minder *minder, hf_minded *minded, pid_t group,
                                   uint64_t deadline_ns, uint64_t grace_ns);
/* Any thread, after the group was killed and before its leader is reaped. Nothing
 * happens when it is not on the list. */
void hf_minder_remove(hf_minder *minder, hf_minded *minded);
/* Any thread, and blocks: kills all that a group of hf_minder_hold() has started, and
 * waits until it has exited. False: some of it is left after timeout_ms. */
bool hf_minder_kill_family(hf_minder *minder, const hf_minded *minded,
                           uint32_t timeout_ms);
/* Any thread: kills all groups, and forgets them. */
void hf_minder_kill(hf_minder *minder);
/* Any thread. Never shortens; nothing happens when it is not on the list. Waits neither
 * for the minder nor for another thread; with a full pipe it is told within 500 ms. */
void hf_minder_extend(hf_minder *minder, hf_minded *minded, uint64_t deadline_ns);
/* Any thread, and waits as little: the lease of the group is lost. It is asked to end now
 * and killed after its grace, or at its deadline if that is earlier. Nothing happens when
 * it is not on the list. */
void hf_minder_end(hf_minder *minder, hf_minded *minded);
/* Any thread: the grace of a group that hf_minder_hold() put on the list; -1: there is
 * none. */
int64_t hf_minder_grace_ms(hf_minder *minder, const hf_minded *minded);
/* Any thread: was the group asked to end, or may it have been? To be called while it is
 * on the list. */
bool hf_minder_asked(hf_minder *minder, hf_minded *minded);

#endif
