/* nodes.h - what a producer sends to which node (redis/nodes.h).
 *
 * A plain URL has one node for all queues. In a cluster each queue is at the node that
 * has its slot. It is `away` while no node is known to serve it, while it backs off after
 * a refusal, and while a request of it is in flight at a node that it has left: so all
 * that is unanswered of a queue is at one node, or waits to be sent to one.
 *
 *      new queue --> away --its slot has a node--> at a node
 *                      ^                              |
 *                      '--MOVED, UNSERVED, no node----'
 *
 * What waits for a queue goes along: its batches in line, and its requests in doubt.
 *
 * Belongs to the owner of the run loop. */
#ifndef HF_PRODUCER_NODES_H
#define HF_PRODUCER_NODES_H

#include "base/base.h"
#include "producer/submit.h"
#include "redis/nodes.h"

typedef struct hf_producer_node {
    hf_node base;
    hf_line line;
    uint64_t patient_until_ns; /* while it connects for the first time */

    /* For requests.c. */
    hf_batches flight; /* HF_REQUEST_SENT, _SENT_AGAIN, _CONFIRMING; in the order sent */
    size_t in_flight, jobs_in_flight, bytes_in_flight;
    hf_batches doubt;  /* HF_REQUEST_IN_DOUBT; in the order sent */
    size_t n_in_doubt; /* those, and HF_REQUEST_SENT_AGAIN */
    bool clock_asked;  /* Redis's time was asked for and not answered yet */
    bool clock_known;  /* since this connection was made */
} hf_producer_node;

typedef struct hf_producer_nodes_hooks {
    /* As of hf_client_opts; for any node. */
    void (*on_event)(hf_producer_node *node, hf_err err);
    /* The table has changed, or a queue was registered: look again. */
    void (*on_change)(void *owner);
    /* This queue goes to another node: its requests that Redis has executed, and that
     * only wait for replicas of the old one, are in doubt. */
    void (*withdraw)(void *owner, hf_target *target);
    void (*on_closed)(void *owner);
} hf_producer_nodes_hooks;

typedef struct hf_producer_nodes {
    hf_nodes all;           /* each begins an hf_producer_node */
    hf_submit_queue *queue; /* borrowed */
    uint32_t wait_replicas;
    const hf_producer_nodes_hooks *hooks;
    void *owner;

    hf_target registry; /* no queue: the slot of the registry */
    const hf_producer_node
        *registry_met;      /* its node as of the last look; NULL: closed, or none */
    uint64_t server_met;    /* the life of its server then, */
    uint64_t registry_life; /* and how many of both there were */
    size_t registers;       /* requests in flight */
    hf_target *targets;     /* of a cluster: all but new ones, by `routed` */
    bool stale;             /* hf_producer_nodes_route() has something to do */
    uint64_t due_ns;        /* and when a rest ends; UINT64_MAX: never */
} hf_producer_nodes;

/* The queue, and `owner` and `hooks` are set; all else is zero. A plain URL begins to
 * connect. What hf_cluster_open() and hf_client_open() give. */
HF_MUSTCHECK hf_err hf_producer_nodes_open(hf_producer_nodes *nodes, uv_loop_t *loop,
                                           const hf_producer_opts *opts,
                                           char detail[HF_DETAIL_SIZE]);
/* Closes all connections, then calls on_closed. Nothing is in flight any more. */
void hf_producer_nodes_close(hf_producer_nodes *nodes);
/* After the submit queue, whose lines are here. */
void hf_producer_nodes_free(hf_producer_nodes *nodes);

static inline hf_producer_node *hf_producer_node_from(const hf_node *base)
{
    return HF_CONTAINER(base, hf_producer_node, base);
}

static inline hf_producer_nodes *hf_producer_nodes_of(const hf_producer_node *node)
{
    return node->base.nodes->opts.owner;
}

/* Where a queue is while no node has it. */
static inline hf_line *hf_producer_nodes_away(const hf_producer_nodes *nodes)
{
    return &hf_producer_node_from(nodes->all.away)->line;
}

/* Where a queue is now. */
static inline hf_producer_node *hf_producer_node_of(const hf_target *target)
{
    return HF_CONTAINER(target->line, hf_producer_node, line);
}

/* A request has joined its flight, or left it. */
static inline void hf_producer_node_note_oldest(hf_producer_node *node)
{
    const hf_batch *first = node->flight.first;
    atomic_store_explicit(&node->line.waits_ns, first == NULL ? 0 : first->sent_ns,
                          memory_order_relaxed);
}

/* Brings each queue, and what waits for it, to its node. Cheap when nothing has changed.
 */
void hf_producer_nodes_route(hf_producer_nodes *nodes, uint64_t now_ns);

/* The node has refused a request of the queue with HF_MOVED or HF_UNSERVED. */
void hf_producer_nodes_refused(hf_producer_node *node, hf_target *target,
                               const hf_answer *answer);
/* It has executed one. */
static inline void hf_producer_nodes_accepted(hf_target *target)
{
    target->backoff.refusals = 0;
}
/* The last request of the queue has left the flight of its node. */
static inline void hf_producer_nodes_landed(hf_producer_nodes *nodes,
                                            const hf_target *target)
{
    if (target->line == hf_producer_nodes_away(nodes))
        nodes->stale = true;
}

/* Registers the queue, once in each life of the registry, which may have come back empty.
 * While the registry's node is away jobs are accepted all the same. */
void hf_producer_nodes_register(hf_producer_nodes *nodes, hf_target *target);
/* In a cluster: all that could not be registered when they were used. True: all are
 * known. */
bool hf_producer_nodes_register_all(hf_producer_nodes *nodes);

#endif
