/* hold.h - a lock while it is held: the renewal of its lease, and the callbacks on its
 * loss. */
#ifndef HF_LOCK_HOLD_H
#define HF_LOCK_HOLD_H

#include "lock/client.h"

enum {
    HF_UNHEARD_MS = 250
}; /* how often a waiting lock asks if it is not listened for */

/* Starts the client's watchdog. `opts` has its loop, and what else runs on its thread:
 * on_call and on_stop. */
HF_MUSTCHECK hf_err hf_hold_start(hf_lock_client *locks, const hf_watchdog_opts *opts);
/* The group of its lease in the watchdog. */
size_t hf_hold_group(const hf_lock *lock);
/* The watchdog drops its lease. From any thread; waits for a callback that runs. */
void hf_hold_drop(hf_lock *lock);
/* The same without waiting: then `event_runs`, until the loop is woken. */
void hf_hold_leave(hf_lock *lock);
void hf_hold_signal(hf_lock *lock); /* its descriptor becomes readable */
/* Why it is lost. The lease may be NULL: it was dropped. */
hf_lock_reason hf_hold_reason(const hf_lock *lock, const hf_lease *lease);

/* Renews a held lock at once. It is SUSPECT until the answer comes; then
 * HF_LOCK_EVENT_HELD is reported. */
void hf_hold_renew_now(hf_lock *lock);

#endif
