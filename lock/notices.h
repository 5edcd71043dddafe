/* notices.h - the messages by which holders learn that a lock is taken away, or asked
 * back; and the watchdog's connections to the nodes. */
#ifndef HF_LOCK_NOTICES_H
#define HF_LOCK_NOTICES_H

#include "lock/listener.h"
#include "lock/lock.h"

typedef struct hf_notices_list {
    hf_lock *first, *last; /* in the order in which they were granted */
} hf_notices_list;

typedef struct hf_notices {
    uv_mutex_t lock;
    hf_notices_list young, old; /* under lock; the old ones are listened for */
    bool called;                /* the same: a call is set, for the first young one */
    hf_lock_node *told;         /* the same: nodes to be connected, or to be left */

    /* the watchdog's thread */
    hf_listener listener;
    char inbox[HF_LOCK_CLIENT_SIZE + 8];
    hf_watchdog *watchdog;
    hf_lock_node *watched; /* it has connections to these */
    unsigned n_watched;    /* and others, which it is closing */
    uint64_t changes;      /* of the cluster's table, as of the last look */
    bool wants;            /* an old one is not heard */
    unsigned closing;      /* all those, and the listener, when it has stopped; then */
    void (*closed)(void *arg);
    void *closed_arg;
    uint64_t unknown_ns; /* when a message named a hold that is not known; 0: none did */
} hf_notices;

HF_MUSTCHECK hf_err
hf_notices_init(hf_lock_client *locks); /* HF_SYSTEM: nothing is left of it */
void hf_notices_done(hf_lock_client *locks);
/* It is held, and has a lease. Before it is told; any thread, like its end. */
void hf_notices_begin(hf_lock *lock);
void hf_notices_end(hf_lock *lock);
/* The watchdog's thread connects to a node, or leaves it; until then it may use it. */
void hf_notices_connect(hf_lock_node *node);
void hf_notices_leave(hf_lock_node *node);
bool hf_notices_has_left(hf_lock_node *node);
/* As the watchdog calls its user. */
void hf_notices_on_watchdog_call(hf_watchdog *watchdog, hf_client *none, uv_loop_t *loop,
                                 void *arg);
void hf_notices_stop(void (*closed)(void *arg), void *closed_arg, void *arg);

#endif
