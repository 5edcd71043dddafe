/* nodes.h - the nodes that a user of Redis is connected to, and which of them has a slot.
 *
 * A node is one Redis (redis/server.h) with the user's connections to it. Any URL without
 * a cluster has one, `home`, from the start to the end. In a cluster a node is opened
 * when something of its slots is needed. It is left when its user does not need it any
 * more, and nothing is in flight there. What no known node has is at `away`, which is
 * never connected. The user's own struct of a node begins with hf_node.
 *
 *     hf_nodes_open(&nodes, server, &opts, detail);
 *     hf_nodes_start(&nodes, loop, detail);    connects, or asks for the table of slots
 *     node = hf_nodes_find(&nodes, slot);      at the start, and on_change
 *     hf_node_answered(node, &backoff, answer);   with each answer, or each refusal
 *     hf_nodes_tidy(&nodes);                   when something has left a node
 *     hf_nodes_close(&nodes, on_closed, arg);
 *     hf_nodes_free(&nodes);
 *
 * The rules:
 *
 *   - on_change: ask again for the node of each queue, lock or call. What is in flight at
 *     the old node is answered there. Without an answer it may have been executed.
 *
 *   - A node has refused a request because the slot is elsewhere, is served by none at
 *     the moment, or because it is no primary any more: nothing happened. MOVED corrects
 *     the table; after anything else the client asks for the table. The sender backs off
 *     (20 ms, doubled up to 500 ms, with jitter), except after one MOVED: two nodes may
 *     send it back and forth. Others at that node go on. It is no error to report before
 *     a deadline.
 *
 *   - A connection is lost, or cannot be made: the table may be wrong.
 *
 *   - A second thread may have connections of its own to each node, for renewals. It is
 *     told about nodes that come and go. A node is freed when both threads have left it.
 *
 * All of it belongs to the loop, but for what is said below. */
#ifndef HF_REDIS_NODES_H
#define HF_REDIS_NODES_H

#include "redis/cluster.h"
#include "redis/replicas.h"
#include "redis/request.h"

typedef struct hf_node hf_node;
typedef struct hf_nodes hf_nodes;

struct hf_node {
    hf_node *next; /* in nodes->first, or nodes->leaving */
    hf_nodes *nodes;
    hf_server *redis;      /* shared; NULL: this is `away` */
    hf_client *client;     /* owned; NULL: this is `away`, or it is being left */
    hf_replicas *replicas; /* owned; NULL: none are asked so far, or it is being left */
    unsigned open;         /* what is not closed yet */

    struct {           /* of the second thread */
        hf_node *next; /* in nodes->second */
        hf_client *client;
        hf_replicas *replicas;
        unsigned open;
    } second;

    /* under the lock of nodes */
    hf_node *told_next; /* in nodes->told */
    bool told;          /* it is there */
    bool leave, left;   /* the second thread has to leave it; has left it */
};

typedef struct hf_nodes_hooks {
    /* A node was opened; NULL: nothing is to do. After an error it is not there. */
    hf_err (*on_open)(hf_node *node);
    /* Its connection is ready (HF_OK), or not any more. */
    void (*on_event)(hf_node *node, hf_err err, const char *detail);
    /* The table of slots has changed, or why the nodes do not tell it. */
    void (*on_change)(void *owner);
    /* Whether something needs the node. What is in flight there needs it anyway. */
    bool (*needs)(void *owner, const hf_node *node);
    /* Its connections are about to be closed; may be NULL. */
    void (*on_leave)(hf_node *node);

    /* Of a second thread. NULL: there is none. */
    void (*call_second)(void *owner, uint64_t when_ns); /* for hf_nodes_second_turn() */
    void (*wake)(void *owner);                          /* for hf_nodes_tidy() */
    /* On that thread: as on_event, also if none could be made. */
    void (*on_second)(hf_node *node, hf_err err, const char *detail);
} hf_nodes_hooks;

typedef struct hf_nodes_opts {
    size_t node_size; /* of the user's struct, which begins with hf_node */
    bool replica_ok;  /* hf_client_opts.replica_ok, with a plain URL */
    const char *ns;   /* borrowed: of the mark of replicas (redis/replicas.h) */
    const hf_nodes_hooks *hooks;
    void *owner;
} hf_nodes_opts;

struct hf_nodes {
    hf_nodes_opts opts;
    hf_cluster *cluster; /* owned; any thread may ask it until hf_nodes_free() */
    uv_loop_t *loop;     /* borrowed; NULL: not started */
    hf_node *away;       /* owned */
    hf_node *home;       /* the one node of a plain URL, else `away` */
    hf_node *first, *leaving;
    size_t closing; /* handles, at the end */
    bool closes;
    void (*on_closed)(void *arg);
    void *closed_arg;

    uv_mutex_t lock;
    hf_node *told; /* under the lock: for the second thread to connect to, or to leave */

    /* the second thread's */
    hf_node *second;
    unsigned n_second;                   /* those, and others that it is closing */
    void (*on_second_closed)(void *arg); /* not NULL: it closes all of them */
    void *second_arg;
};

/* ---- life ---- */

/* Zeroed before. What hf_cluster_open() gives; after an error there is nothing to free.
 * Connects nothing. */
HF_MUSTCHECK hf_err hf_nodes_open(hf_nodes *nodes, const hf_server_opts *server,
                                  const hf_nodes_opts *opts, char detail[HF_DETAIL_SIZE]);
/* If there is a second thread, it runs already. After an error nothing is on the loop,
 * or about to leave it. */
HF_MUSTCHECK hf_err hf_nodes_start(hf_nodes *nodes, uv_loop_t *loop,
                                   char detail[HF_DETAIL_SIZE]);
/* Closes all that is on the loop, then calls cb (may be NULL), from inside this call if
 * nothing is there. From now on hf_nodes_find() finds `home`. */
void hf_nodes_close(hf_nodes *nodes, void (*cb)(void *arg), void *arg);
/* Nothing uses them any more, and all is closed on both threads. Zeroed is fine. */
void hf_nodes_free(hf_nodes *nodes);

/* ---- finding one ---- */

/* Of a key that begins so; 0 with a plain URL. */
unsigned hf_nodes_slot(const hf_nodes *nodes, const char *prefix, size_t len);
/* The node of the slot, which is opened if need be; `away`: none is known. */
hf_node *hf_nodes_find(hf_nodes *nodes, unsigned slot);
/* The same of this server. */
hf_node *hf_nodes_at(hf_nodes *nodes, hf_server *redis);
/* The connection to this server, by the thread that has it; NULL: none. */
hf_client *hf_nodes_client(const hf_nodes *nodes, const hf_server *redis, bool second);
/* Leaves nodes that are not needed, and frees those that both threads have left. */
void hf_nodes_tidy(hf_nodes *nodes);
/* No node was ever known, for a reason that waiting does not change: the status of `away`
 * tells it. Not the refusals of hf_cluster_refused(). */
bool hf_nodes_are_refused(hf_nodes *nodes);

/* ---- one of them ---- */

/* How a sender (a queue, a lock, a call) gets on with the nodes. Zero: well. */
typedef struct hf_node_backoff {
    uint32_t refusals; /* in a row */
    uint64_t began_ns; /* what was sent before met the same cause */
    uint64_t until_ns; /* the sender sends nothing before: it looks itself */
} hf_node_backoff;

/* The node has answered a request of this sender so. True: nothing happened, and another
 * node may have its slot: the sender looks for it at backoff->until_ns, which may be now.
 * backoff NULL, from any thread: the sender has times of its own, as renewals have
 * (lock/watchdog/watchdog.c). The table is corrected all the same. */
bool hf_node_answered(hf_node *node, hf_node_backoff *backoff, const hf_answer *answer);
/* A part of it: sets `backoff` for this refusal. */
void hf_node_back_off(hf_node *node, hf_node_backoff *backoff, hf_err err);

/* For a handle of the user's own, for which on_open has counted `open` up: it is closed.
 */
void hf_node_closed(void *node);

/* Why it is not ready; HF_OK: it is. */
hf_err hf_node_status(const hf_node *node, char why[HF_DETAIL_SIZE]);

/* Connects for wait_replicas; at the first hf_node_confirm() at the latest. */
HF_MUSTCHECK hf_err hf_node_replicas(hf_node *node);
/* Asks whether replicas have what the node's connection was answered last. The caller has
 * set `wanted`, `until_ns`, `cb` and `arg`. HF_OK: cb will be called. */
HF_MUSTCHECK hf_err hf_node_confirm(hf_node *node, hf_confirm *confirm);

/* ---- the second thread, on it ---- */

/* Connects to the nodes that it was told about, or leaves them. */
void hf_nodes_second_turn(hf_nodes *nodes, uv_loop_t *loop);
/* At its end: leaves all, and calls cb when that is done. */
void hf_nodes_second_close(hf_nodes *nodes, void (*cb)(void *arg), void *arg);
/* As those of the loop. */
HF_MUSTCHECK hf_err hf_node_second_replicas(hf_node *node);
void hf_node_second_confirm(hf_node *node, hf_confirm *confirm);

#endif
