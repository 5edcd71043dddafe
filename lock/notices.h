/* notices.h - the messages by which holders learn that a lock is taken away, or asked
 * back. */
#ifndef HF_LOCK_NOTICES_H
#define HF_LOCK_NOTICES_H

#include "lock/lock.h"
#include "redis/listener.h"

typedef struct hf_notices_list {
    hf_lock *first, *last; /* in the order in which they were granted */
} hf_notices_list;

typedef struct hf_notices {
    uv_mutex_t lock;
    hf_notices_list young, old; /* under lock; the old ones are listened for */
    bool called;                /* the same: a call is set, for the first young one */

    /* the watchdog's thread */
    hf_listener listener;
    hf_watchdog *watchdog;
    uint64_t changes;    /* of the cluster's table, as of the last look */
    bool wants;          /* an old one is not heard */
    uint64_t unknown_ns; /* when a message named a hold that is not known; 0: none did */
} hf_notices;

HF_MUSTCHECK hf_err
hf_notices_init(hf_lock_client *locks); /* HF_SYSTEM: nothing is left of it */
void hf_notices_done(hf_lock_client *locks);
/* It is held, and has a lease. Before it is told; any thread, like its end. */
void hf_notices_begin(hf_lock *lock);
void hf_notices_end(hf_lock *lock);

/* On the watchdog's thread, when it calls its user: listens for those that are held for
 * long enough. */
void hf_notices_turn(hf_lock_client *locks, hf_watchdog *watchdog, uv_loop_t *loop);
/* The same, at its end: listens no more, and calls cb when that is done. */
void hf_notices_stop(hf_lock_client *locks, void (*cb)(void *arg), void *arg);

#endif
