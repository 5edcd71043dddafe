/* hear.h - how the holder of a lock hears that it is taken away, or asked back. See
 * hear.c. Private to lock/. */
#ifndef HF_LOCK_HEAR_H
#define HF_LOCK_HEAR_H

#include <uv.h>

#include "holdfast/lock.h"
#include "lock/ear.h"
#include "lock/watchdog.h"

typedef struct hf_hear_list {
    hf_lock *first, *last; /* in the order in which they were granted */
} hf_hear_list;

typedef struct hf_hear {
    uv_mutex_t lock;
    hf_hear_list young, old; /* under lock; the old ones are listened for */
    bool called;             /* the same: a call is set, for the first young one */

    /* the watchdog's thread */
    hf_ear ear;
    char inbox[HF_LOCK_CLIENT_SIZE + 8];
    hf_watchdog *watchdog;
    hf_client *client; /* the watchdog's */
    bool wants;        /* an old one is not heard */
    bool stopped;
    uint64_t unknown_ns; /* when a message named a hold that is not known; 0: none did */
} hf_hear;

HF_MUSTCHECK hf_err
hf_hear_init(hf_lock_client *locks); /* HF_SYSTEM: nothing is left of it */
void hf_hear_done(hf_lock_client *locks);
/* It is held, and has a lease. Before it is told; any thread. */
void hf_hear_begin(hf_lock *lock);
void hf_hear_end(hf_lock *lock); /* before its lease is dropped; any thread */
/* By the watchdog, on its thread; arg: the client of locks. */
void hf_hear_called(hf_watchdog *watchdog, hf_client *client, uv_loop_t *loop, void *arg);
void hf_hear_client(hf_client *client, hf_err err, const char *detail, void *arg);
void hf_hear_stop(void *arg);

#endif
