/* acquire.h - from the call that acquires a lock to HELD, or to its end. */
#ifndef HF_LOCK_ACQUIRE_H
#define HF_LOCK_ACQUIRE_H

#include "lock/client.h"

void hf_acquire_send(hf_lock *lock); /* if it can be */
void hf_acquire_not_reached(
    hf_lock *lock);                  /* it fails, for the reason of the connection */
void hf_acquire_lost(hf_lock *lock); /* its place in the line */
/* It ends without the lock. */
void hf_acquire_fail(hf_lock *lock, hf_err err, const char *detail);
void hf_acquire_time(hf_lock *lock, uint64_t now_ns); /* what is due */
uint64_t hf_acquire_due_ns(const hf_lock *lock);      /* UINT64_MAX: nothing */

void hf_acquire_grants_init(hf_lock_client *locks); /* once its options are complete */
void hf_acquire_grants_listen(hf_lock_client *locks);
uint64_t hf_acquire_grants_due_ns(hf_lock_client *locks); /* UINT64_MAX: nothing */
void hf_acquire_grants_notes(hf_lock_client *locks);      /* the watchdog's note */

/* For the last callback of a handle: true if one of its requests met a fault, and may
 * still be executed. */
bool hf_acquire_was_at_fault(const hf_lock *lock);

/* With wait_replicas a lock that was granted waits until replicas have it. Asks them, if
 * it can. */
void hf_acquire_confirm_send(hf_lock *lock);

#endif
