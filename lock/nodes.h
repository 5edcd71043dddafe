/* nodes.h - what a client of locks knows of one Redis (redis/nodes.h), beside its
 * connections.
 *
 * A lock is at the node that had the slot of its tag when it was last looked up, and at
 * `away` until one was found. hf_lock_route() (lock.h) looks: before each request of the
 * lock, and for all locks when the table of slots has changed (client.c). While no node
 * is known a lock stays where it was. The second thread is the watchdog's: it renews at
 * the node that the loop has set. */
#ifndef HF_LOCK_NODES_H
#define HF_LOCK_NODES_H

#include <stdatomic.h>

#include "redis/nodes.h"

typedef struct hf_lock hf_lock;
typedef struct hf_lock_client hf_lock_client;

typedef struct hf_lock_node {
    hf_node base;
    bool unfit; /* it may evict keys: the next connection is asked again */

    /* any thread */
    atomic_bool clock_known; /* since a connection came or went last */
    atomic_uint epoch;       /* another one at each connection that came or went */
} hf_lock_node;

/* What a client's nodes tell it, on its loop. */
typedef struct hf_lock_node_hooks {
    /* A node is ready: what waits for it can be sent. */
    void (*on_ready)(hf_lock_client *locks);
    /* The node refuses this client (login, certificate, version; not MOVED): waiting
     * would not help. */
    void (*on_refused)(hf_lock_client *locks, const hf_lock_node *node);
} hf_lock_node_hooks;

/* A connection to it came or went. Any thread. */
void hf_lock_node_begins_epoch(hf_lock_node *node);

/* Parts of hf_nodes_hooks. */
void hf_lock_node_on_event(hf_node *base, hf_err err, const char *detail);
void hf_lock_node_on_second(hf_node *base, hf_err err, const char *detail);

/* The node of the slot, or of the server: hf_nodes_find(), hf_nodes_at(). */
hf_lock_node *hf_lock_node_of(hf_lock_client *locks, unsigned slot);
hf_lock_node *hf_lock_node_at(hf_lock_client *locks, hf_server *redis);
/* Connected, and its time is known. */
bool hf_lock_node_ready(const hf_lock_node *node);
/* False, and `detail` says why: it gives out nothing; the next connection is asked again.
 * There is a connection. */
bool hf_lock_node_fit(hf_lock_node *node, char detail[HF_DETAIL_SIZE]);

/* Its time in ms; 0: not known. From any thread, like the next three. */
int64_t hf_lock_node_now(const hf_lock_node *node);
int64_t hf_lock_node_not_after(const hf_lock_node *node);
/* The moment on our clock. */
uint64_t hf_lock_node_boot_ns(const hf_lock_node *node, int64_t redis_ms);
/* An answer to a request of sent_ns says now_ms. */
void hf_lock_node_clock(hf_lock_node *node, int64_t now_ms, uint64_t sent_ns);

#endif
