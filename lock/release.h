/* release.h - the release of a lock. */
#ifndef HF_LOCK_RELEASE_H
#define HF_LOCK_RELEASE_H

#include "lock/client.h"

/* Leaves, until the lease must be over at most; in the end frees it. */
void hf_release_begin(hf_lock *lock);
/* At once, with what is known: the client is gone. */
void hf_release_drop(hf_lock *lock);
/* A request was answered that was on its way when it was given up. */
void hf_release_answered(hf_lock *lock);
uint64_t hf_release_due_ns(const hf_lock *lock);
void hf_release_send(hf_lock *lock);
void hf_release_time(hf_lock *lock, uint64_t now_ns);
void hf_release_notes(hf_lock_client *locks); /* a callback of an event may have ended */

/* hf_lock_release() that is told only when no callback of an event runs any more, however
 * long that takes. */
void hf_release_patiently(hf_lock *lock, hf_lock_released_cb cb, void *arg);

#endif
