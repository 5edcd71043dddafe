/* acquire.h - from the call that acquires a lock to HELD, or to its end. */
#ifndef HF_LOCK_ACQUIRE_H
#define HF_LOCK_ACQUIRE_H

#include "lock/client.h"

enum { HF_UNHEARD_MS = 250 }; /* a waiting lock that is not listened for asks so often */

void hf_acquire_send(hf_lock *lock); /* if it can be */
void hf_acquire_not_reached(
    hf_lock *lock);                  /* it fails, for the reason of the connection */
void hf_acquire_lost(hf_lock *lock); /* its place in the line */
/* It ends without the lock. */
void hf_acquire_fail(hf_lock *lock, hf_err err, const char *detail);
void hf_acquire_time(hf_lock *lock, uint64_t now_ns); /* what is due */
uint64_t hf_acquire_due_ns(const hf_lock *lock);      /* UINT64_MAX: nothing */

/* The line's clock was read (hf_reading_note()). */
void hf_acquire_read(hf_lock *lock, uint64_t number, uint64_t clock_ms, int64_t redis_ms);

void hf_acquire_grants_init(hf_lock_client *locks); /* once its options are complete */
void hf_acquire_grants_listen(hf_lock_client *locks);
uint64_t hf_acquire_grants_due_ns(hf_lock_client *locks); /* UINT64_MAX: nothing */
void hf_acquire_grants_notes(hf_lock_client *locks);      /* the watchdog's note */

/* In the last callback of a handle. Left behind: a request to acquire was executed and
 * not undone so far, or may have been. At fault: one met a fault, so a request of this
 * handle may still be executed. */
bool hf_acquire_left_behind(const hf_lock *lock);
bool hf_acquire_was_at_fault(const hf_lock *lock);

/* With wait_replicas a lock that was granted waits until replicas have it. The first one
 * asks, if it can; after the second one no answer of replicas counts any more. */
void hf_acquire_confirm_send(hf_lock *lock);
void hf_acquire_confirm_end(hf_lock *lock);

#endif
