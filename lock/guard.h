/* guard.h - the minder of a client of locks: the small process that ends groups that may
 * run only while a lock is held (hf_lock_guard()).
 *
 * The minder has a loop of its own, and a thread that runs it, because the client's loop
 * may not be running. Both are there from the first guarded group to the client's end.
 * The watchdog's thread tells it of each renewal. */
#ifndef HF_LOCK_GUARD_H
#define HF_LOCK_GUARD_H

#include <stdatomic.h>
#include <uv.h>

#include "lock/minder/minder.h"

typedef struct hf_guard {
    char *path;                  /* owned; NULL: as minder.h says */
    uv_mutex_t lock;             /* while it is started */
    _Atomic(hf_minder *) minder; /* NULL: none was wanted so far */
    uv_loop_t loop;              /* what follows belongs to the thread */
    uv_async_t wake;
    uv_thread_t thread;
    uv_sem_t started;
    hf_err err; /* of the start, and why it failed */
    char detail[HF_DETAIL_SIZE];
} hf_guard;

/* HF_SYSTEM, HF_NOMEM: nothing is left of it. */
HF_MUSTCHECK hf_err hf_guard_init(hf_guard *guard, const char *path);
/* Ends the minder, which has no groups any more. */
void hf_guard_done(hf_guard *guard);

/* Starts the minder if there is none. `detail` (may be NULL) says why it failed. This and
 * all calls below: any thread. */
HF_MUSTCHECK hf_err hf_guard_start(hf_guard *guard, char detail[HF_DETAIL_SIZE]);
/* After hf_guard_start(): see hf_minder_hold(). */
HF_MUSTCHECK hf_err hf_guard_hold(hf_guard *guard, hf_minded *minded, pid_t group,
                                  uint64_t deadline_ns, uint32_t grace_ms);

/* Nothing happens when `minded` is no guarded group. */
void hf_guard_extend(hf_guard *guard, hf_minded *minded, uint64_t deadline_ns);
void hf_guard_ask(hf_guard *guard, hf_minded *minded); /* its lock is lost */
bool hf_guard_asked(hf_guard *guard, hf_minded *minded);
/* Does a lease that is renewed have room for this grace? */
bool hf_guard_has_room(uint32_t lease_ms, uint32_t grace_ms);
/* Has the guarded group, if there is one, a grace that a renewed lease has room for? */
bool hf_guard_fits(hf_guard *guard, const hf_minded *minded, uint32_t lease_ms);
void hf_guard_end(hf_guard *guard, hf_minded *minded);
/* See hf_minder_kill_family(). */
bool hf_guard_kill_family(hf_guard *guard, const hf_minded *minded, uint32_t timeout_ms);
/* Kills all groups that are guarded. */
void hf_guard_kill(hf_guard *guard);

#endif
