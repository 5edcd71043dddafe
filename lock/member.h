/* member.h - the calls of a lock over several servers to its members, beside the public
 * ones of holdfast/lock.h. On the loop. */
#ifndef HF_LOCK_MEMBER_H
#define HF_LOCK_MEMBER_H

#include "holdfast/lock.h"
#include "lock/watch_loop.h"

/* hf_lock_client_open() of a client whose leases are renewed on a shared loop, which is
 * not started yet. */
HF_MUSTCHECK hf_err hf_lock_client_open_on(hf_lock_client **out,
                                           const hf_lock_client_opts *opts,
                                           hf_watch_loop *watch,
                                           char detail[HF_DETAIL_SIZE]);

/* Whether hf_lock_acquire() would take such options: HF_OK or HF_INVALID. Any thread. */
HF_MUSTCHECK hf_err hf_lock_opts_check(const hf_lock_opts *opts,
                                       char detail[HF_DETAIL_SIZE]);

/* Its first try to connect has not ended. */
bool hf_lock_client_is_coming(const hf_lock_client *locks);

/* Its URL is a cluster's. */
bool hf_lock_client_in_cluster(const hf_lock_client *locks);

/* In the last callback of a handle. Left behind: a request to acquire was executed and
 * not undone so far, or may have been. At fault: one met a fault, so a request of this
 * handle may still be executed. */
bool hf_lock_left_behind(const hf_lock *lock);
bool hf_lock_was_at_fault(const hf_lock *lock);

/* Renews a held lock at once. HF_LOCK_EVENT_HELD is told when that is answered, and until
 * then it is SUSPECT. */
void hf_lock_renew_now(hf_lock *lock);

/* hf_lock_release() that is told only when no callback of an event runs any more, however
 * long that takes. */
void hf_lock_release_patiently(hf_lock *lock, hf_lock_released_cb cb, void *arg);

#endif
