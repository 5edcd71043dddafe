/* nodes.h - the nodes of a client of locks. A node is one Redis, with the client's
 * connections to it, and what is known of it alone.
 *
 * Any URL without a cluster has one node, from the start to the end. In a cluster a lock
 * is at the node that has the slot of its tag, and at `away` while no node was found. A
 * node is opened when a lock or a call needs it. The table of slots changes: then each
 * lock goes to its new node, held or not. A node that has no slots any more is closed
 * when no lock needs it. What is under way at the old node is answered there.
 *
 * The loop opens and closes nodes. The watchdog's thread has connections of its own to
 * each, which it opens and closes when the loop tells it of the node; a node is freed
 * when both are done with it. Belongs to the loop, but for what is said below. */
#ifndef HF_LOCK_NODES_H
#define HF_LOCK_NODES_H

#include <stdatomic.h>

#include "redis/cluster.h"
#include "redis/replicas.h"
#include "redis/request.h"

typedef struct hf_lock hf_lock;
typedef struct hf_lock_client hf_lock_client;
typedef struct hf_lock_node hf_lock_node;

struct hf_lock_node {
    hf_lock_node *next; /* in nodes->first, or nodes->parting */
    hf_lock_client *locks;
    hf_server *redis;      /* shared; NULL: this is `away` */
    hf_client *client;     /* what is asked; NULL: this is `away`, or it is closing */
    hf_replicas *replicas; /* confirm grants; NULL: none were needed so far */
    unsigned open;         /* of the two, those that are not closed yet */
    bool unfit;            /* it may evict keys: the next connection is asked again */

    /* any thread */
    atomic_bool clock_known; /* since a connection came or went last */
    atomic_uint epoch;       /* another one at each connection that came or went */

    /* the watchdog's thread */
    hf_lock_node *watched_next; /* in nodes->watched */
    hf_client *renewer;
    hf_replicas *confirms; /* renewals; NULL: none were needed so far */
    unsigned watched_open; /* of the two */

    /* under the lock of nodes */
    hf_lock_node *told_next; /* in nodes->told */
    bool told;               /* it is there */
    bool part, parted;       /* the watchdog's connections have to be closed; they are */
};

/* What the nodes ask of their client, and tell it, on its loop. */
typedef struct hf_lock_nodes_hooks {
    /* A node is ready: what waits for it can be sent. */
    void (*on_ready)(hf_lock_client *locks);
    /* The node refuses this client: waiting would not help. */
    void (*on_refused)(hf_lock_client *locks, const hf_lock_node *node);
    /* The table of slots has changed, or why the nodes do not tell it. */
    void (*on_change)(void *locks);
    /* Whether a lock or a call needs the node. */
    bool (*needs)(const hf_lock_client *locks, const hf_lock_node *node);
} hf_lock_nodes_hooks;

typedef struct hf_lock_nodes {
    const hf_lock_nodes_hooks *hooks;
    hf_cluster *cluster;
    hf_lock_node away;
    hf_lock_node *home; /* of a new lock: the one node of a plain URL, or `away` */
    hf_lock_node *first, *parting;
    atomic_uint epochs;

    uv_mutex_t lock;
    hf_lock_node
        *told; /* under lock: to be connected by the watchdog's thread, or left */

    /* the watchdog's thread */
    hf_lock_node *watched;           /* it has connections to these */
    unsigned n_watched;              /* and others, which it is closing */
    void (*on_unwatched)(void *arg); /* not NULL: it closes all of them */
    void *unwatched_arg;
} hf_lock_nodes;

/* What hf_cluster_open() gives. Nothing is connected. */
HF_MUSTCHECK hf_err hf_lock_nodes_init(hf_lock_client *locks,
                                       const hf_lock_nodes_hooks *hooks,
                                       const hf_server_opts *opts,
                                       char detail[HF_DETAIL_SIZE]);
/* On the client's loop, once the watchdog runs. After a failure nothing is on the loop.
 */
HF_MUSTCHECK hf_err hf_lock_nodes_open(hf_lock_client *locks,
                                       char detail[HF_DETAIL_SIZE]);
/* How many of their handles are on the loop. When the tasks have ended each is reported
 * by hf_tasks_closed(). */
size_t hf_lock_nodes_handles(const hf_lock_client *locks);
void hf_lock_nodes_close(hf_lock_client *locks);
/* Nothing uses them any more. */
void hf_lock_nodes_free(hf_lock_client *locks);

/* On the watchdog's thread, when it calls its user: connects to the nodes that it was
 * told of, or leaves them. */
void hf_lock_nodes_watch(hf_lock_client *locks, uv_loop_t *loop);
/* The same, at its end: leaves all of them, and calls cb when that is done. */
void hf_lock_nodes_unwatch(hf_lock_client *locks, void (*cb)(void *arg), void *arg);

/* The slot of a lock whose keys begin so; 0 without a cluster. */
unsigned hf_lock_nodes_slot(const hf_lock_client *locks, const char *prefix, size_t len);
/* The node of the slot, which is opened if need be; `away`: none is known. */
hf_lock_node *hf_lock_nodes_find(hf_lock_client *locks, unsigned slot);
/* The same of this server. */
hf_lock_node *hf_lock_nodes_at(hf_lock_client *locks, hf_server *redis);
/* Leaves nodes without slots that none needs, and frees those that both threads have
 * left. */
void hf_lock_nodes_tidy(hf_lock_client *locks);
/* It has answered a request so. HF_MOVED, HF_UNSERVED or HF_READONLY: another one may
 * have the slot. `moved`: whether the last answer to the same sender was HF_MOVED. True:
 * this one is, and the sender looks for the node again at once. After two in a row it
 * rests: two nodes may send it back and forth. Any thread. */
bool hf_lock_node_answered(hf_lock_node *node, const hf_answer *answer, bool *moved);

/* Connected, and its time is known. */
bool hf_lock_node_ready(const hf_lock_node *node);
/* Why it is not; HF_OK: it is connected. */
hf_err hf_lock_node_status(const hf_lock_node *node, char why[HF_DETAIL_SIZE]);
/* False, and `detail` says why: it gives out nothing; the next connection is asked again.
 * There is a connection. */
bool hf_lock_node_fit(hf_lock_node *node, char detail[HF_DETAIL_SIZE]);
/* A connection to it came or went. Any thread. */
void hf_lock_node_begins_epoch(hf_lock_node *node);

/* Its time in ms; 0: not known. From any thread, like the next three. */
int64_t hf_lock_node_now(const hf_lock_node *node);
int64_t hf_lock_node_not_after(const hf_lock_node *node);
/* The moment on our clock. */
uint64_t hf_lock_node_boot_ns(const hf_lock_node *node, int64_t redis_ms);
/* An answer to a request of sent_ns says now_ms. */
void hf_lock_node_clock(hf_lock_node *node, int64_t now_ms, uint64_t sent_ns);

/* One more connection to it, on this loop, which confirms that replicas have a lock. */
HF_MUSTCHECK hf_err hf_lock_node_replicas(hf_lock_node *node, struct uv_loop_s *loop,
                                          hf_replicas **out);
/* Asks whether replicas have what its last answer told, for request_timeout_ms. The
 * caller has set `wanted`, `cb` and `arg`. HF_OK: cb will be called. */
HF_MUSTCHECK hf_err hf_lock_node_confirm(hf_lock_node *node, hf_confirm *confirm);

#endif
