/* nodes.c - see nodes.h. */
#include "producer/nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/base.h"
#include "base/clock.h"
#include "base/detail.h"
#include "queue/keys.h"
#include "redis/err.h"

enum {
    UNKNOWN_MS = 1000, /* a server that could not be made is tried again */
    PATIENCE_MS = 1000 /* until what may go elsewhere waits for no first connection */
};

/* Of a queue that no node serves at the moment. */
static const hf_backoff rests = {
    .shape = HF_SHAPE_EXPONENTIAL, .base_ms = 10, .cap_ms = 500, .jitter = 0.25};

/* ---- one node ---- */

static void on_event(hf_client *client, hf_err err, const char *detail, void *arg)
{
    hf_producer_node *node = arg;
    (void)client;
    (void)detail;
    if (err != HF_OK)
        hf_cluster_doubt(node->nodes->cluster);
    node->nodes->stale = true; /* what waits for others may go there, or the reverse */
    hf_submit_line_is_down(node->nodes->queue, &node->line, err != HF_OK);
    node->nodes->hooks->on_event(node, err);
}

static hf_err open_replicas(hf_producer_node *node, char *detail)
{
    const hf_producer_nodes *nodes = node->nodes;
    char mark[HF_KEY_SIZE];
    hf_key_replicated(mark, nodes->queue->ns);
    hf_err err = hf_replicas_open(&node->replicas, nodes->loop, node->redis, mark);
    if (err != HF_OK)
        return hf_say_err(detail, err);
    hf_replicas_in_cluster(node->replicas, nodes->cluster, nodes->queue->ns);
    return HF_OK;
}

/* Takes the server over, also after a failure. */
static hf_err open_node(hf_producer_nodes *nodes, hf_server *redis,
                        hf_producer_node **out, char *detail)
{
    hf_producer_node *node = calloc(1, sizeof *node);
    if (node == NULL) {
        hf_server_close(redis);
        return hf_say_err(detail, HF_NOMEM);
    }
    node->nodes = nodes;
    node->redis = redis;
    const hf_client_opts opts = {
        .loop = nodes->loop, .redis = redis, .on_event = on_event, .arg = node};
    hf_err err = hf_client_open(&node->client, &opts, detail);
    if (err == HF_OK && nodes->wait_replicas > 0 &&
        (err = open_replicas(node, detail)) != HF_OK)
        hf_client_close(node->client, NULL, NULL);
    if (err != HF_OK) {
        hf_server_close(redis);
        free(node);
        return err;
    }
    node->next = nodes->first;
    nodes->first = node;
    nodes->open++;
    node->line.down = true; /* until it is connected */
    node->patient_until_ns = hf_boot_ns() + PATIENCE_MS * HF_MS_NS;
    hf_submit_add_line(nodes->queue, &node->line);
    *out = node;
    return HF_OK;
}

static void on_cluster_closed(void *arg)
{
    hf_producer_nodes *nodes = arg;
    nodes->hooks->on_closed(nodes->owner);
}

static void end_if_closed(hf_producer_nodes *nodes)
{
    hf_cluster *cluster = nodes->cluster;
    if (!nodes->closing || nodes->open > 0 || cluster == NULL)
        return;
    nodes->cluster = NULL;
    hf_cluster_close(cluster, on_cluster_closed, nodes);
}

static void on_client_closed(void *arg)
{
    hf_producer_node *node = arg;
    hf_producer_nodes *nodes = node->nodes;
    hf_server_close(node->redis);
    free(node);
    nodes->open--;
    end_if_closed(nodes);
}

static void on_replicas_closed(void *arg)
{
    hf_producer_node *node = arg;
    hf_client_close(node->client, on_client_closed, node);
}

/* It is out of the list already, and has nothing in line, in flight or in doubt. */
static void close_node(hf_producer_node *node)
{
    hf_replicas *replicas = node->replicas;
    hf_submit_drop_line(node->nodes->queue, &node->line);
    node->replicas = NULL;
    hf_replicas_close(replicas, on_replicas_closed, node);
}

/* ---- where a queue belongs ---- */

/* The node of the slot; `away`: none is known. */
static hf_producer_node *find_node(hf_producer_nodes *nodes, unsigned slot)
{
    hf_producer_node *node;
    char unread[HF_DETAIL_SIZE];
    hf_server *redis = hf_cluster_server(nodes->cluster, slot);
    if (redis == NULL)
        return &nodes->away;
    for (node = nodes->first; node != NULL; node = node->next) {
        if (node->redis == redis) {
            hf_server_close(redis); /* the node has it already */
            return node;
        }
    }
    return open_node(nodes, redis, &node, unread) == HF_OK ? node : &nodes->away;
}

static hf_producer_node *place_of(hf_producer_nodes *nodes, hf_target *target,
                                  uint64_t now_ns)
{
    if (target->rest_until_ns > now_ns)
        return &nodes->away;
    hf_producer_node *node = find_node(nodes, target->slot);
    if (node == &nodes->away) {
        target->rest_until_ns = now_ns + UNKNOWN_MS * HF_MS_NS;
        return node;
    }
    if (target->in_flight > 0 && node != target->flew)
        nodes->hooks->withdraw(nodes->owner, target);
    return target->in_flight > 0 && node != target->flew ? &nodes->away : node;
}

static void route(hf_producer_nodes *nodes, hf_target *target, uint64_t now_ns)
{
    hf_producer_node *node = place_of(nodes, target, now_ns);
    if (node == &nodes->away && target->rest_until_ns > now_ns &&
        target->rest_until_ns < nodes->due_ns)
        nodes->due_ns = target->rest_until_ns;
    target->goes = &node->line;
}

/* What is in doubt goes to where its queue is. */
static void move_doubt(hf_producer_node *from)
{
    hf_batch *next;
    for (hf_batch *batch = from->doubt.first; batch != NULL; batch = next) {
        hf_producer_node *to = hf_producer_node_of(batch->target);
        next = batch->next;
        if (to == from)
            continue;
        hf_batches_remove(&from->doubt, batch);
        from->n_in_doubt--;
        batch->node = to;
        hf_batches_in_turn(&to->doubt, batch);
        to->n_in_doubt++;
    }
}

/* A queue that rests keeps its last node: it mostly returns there, each time. */
static bool is_used(const hf_producer_nodes *nodes, const hf_producer_node *node)
{
    const hf_line *away = &nodes->away.line;
    if (node->flight.first != NULL || node->doubt.first != NULL ||
        nodes->registry.line == &node->line ||
        (nodes->registry.line == away && nodes->registry_met == node))
        return true;
    for (const hf_target *t = nodes->targets; t != NULL; t = t->routed)
        if (t->line == &node->line || (t->line == away && t->flew == node))
            return true;
    return false;
}

/* A later node may have its address. */
static void forget(hf_producer_nodes *nodes, const hf_producer_node *node)
{
    if (nodes->registry_met == node)
        nodes->registry_met = NULL;
    for (hf_target *t = nodes->targets; t != NULL; t = t->routed)
        if (t->flew == node)
            t->flew = NULL;
}

static void close_unused(hf_producer_nodes *nodes)
{
    hf_producer_node **at = &nodes->first;
    while (*at != NULL) {
        hf_producer_node *node = *at;
        if (is_used(nodes, node)) {
            at = &node->next;
        } else {
            *at = node->next;
            forget(nodes, node);
            close_node(node);
        }
    }
}

static void take_new(hf_producer_nodes *nodes)
{
    hf_target *target;
    while ((target = hf_submit_new_target(nodes->queue)) != NULL) {
        target->routed = nodes->targets;
        nodes->targets = target;
        nodes->stale = true;
    }
}

/* What was put in line before it was known that a node is down, or while all were. */
static void leave_nodes_down(hf_producer_nodes *nodes, uint64_t now_ns)
{
    hf_submit_line_is_down(nodes->queue, &nodes->away.line, true);
    for (hf_producer_node *node = nodes->first; node != NULL; node = node->next) {
        if (!node->line.down)
            continue;
        if (node->patient_until_ns <= now_ns)
            hf_submit_line_is_down(nodes->queue, &node->line, true);
        else if (node->patient_until_ns < nodes->due_ns)
            nodes->due_ns = node->patient_until_ns;
    }
}

void hf_producer_nodes_route(hf_producer_nodes *nodes, uint64_t now_ns)
{
    if (hf_cluster_is_plain(nodes->cluster))
        return;
    take_new(nodes);
    if (!nodes->stale && now_ns < nodes->due_ns)
        return;
    nodes->stale = false;
    nodes->due_ns = UINT64_MAX;
    route(nodes, &nodes->registry, now_ns);
    nodes->registry.line = nodes->registry.goes;
    for (hf_target *t = nodes->targets; t != NULL; t = t->routed)
        route(nodes, t, now_ns);
    hf_submit_move(nodes->queue, nodes->targets);
    leave_nodes_down(nodes, now_ns);
    move_doubt(&nodes->away);
    for (hf_producer_node *node = nodes->first; node != NULL; node = node->next)
        move_doubt(node);
    close_unused(nodes);
}

/* The second MOVED in a row may be one of two nodes that send it back and forth. What was
 * sent before a rest began met the same cause, and does not prolong it. */
void hf_producer_nodes_refused(hf_producer_node *node, hf_target *target, hf_err err,
                               const hf_answer *answer)
{
    hf_producer_nodes *nodes = node->nodes;
    const bool at_once = err == HF_MOVED && target->refusals == 0;
    if (err == HF_MOVED)
        hf_cluster_moved(nodes->cluster, node->redis, answer->detail);
    else
        hf_cluster_doubt(nodes->cluster);
    nodes->stale = true;
    if (answer->sent_ns < target->rested_ns)
        return;
    target->refusals++;
    target->rested_ns = hf_boot_ns();
    int64_t ms = at_once ? 0 : hf_backoff_ms(&rests, target->refusals, &node->redis->rng);
    target->rest_until_ns = target->rested_ns + (uint64_t)ms * HF_MS_NS;
}

/* ---- the registry ---- */

static uint64_t registry_life(hf_producer_nodes *nodes, const hf_producer_node *node)
{
    uint64_t life = hf_client_life(node->client);
    if (node != nodes->registry_met || life != nodes->server_met)
        nodes->registry_life++;
    nodes->registry_met = node;
    nodes->server_met = life;
    return nodes->registry_life;
}

/* If Redis did not know the script, it does now. Else again with the next request, or
 * when the registry's connection is ready. */
static void on_registered(const hf_answer *answer, void *arg)
{
    hf_target *target = arg;
    hf_producer_nodes *nodes = target->nodes;
    hf_producer_node *node = hf_producer_node_of(&nodes->registry);
    nodes->registers--;
    if (answer->err != HF_OK)
        target->registered_in = 0;
    if (hf_err_is(answer->err, HF_ERR_OF_CLUSTER) && node != &nodes->away)
        hf_producer_nodes_refused(node, &nodes->registry, answer->err, answer);
    else if (answer->err == HF_NOSCRIPT)
        hf_producer_nodes_register(nodes, target);
    else if (answer->err == HF_OK)
        hf_producer_nodes_accepted(&nodes->registry);
    if (!hf_cluster_is_plain(nodes->cluster))
        nodes->hooks->on_change(nodes->owner);
}

void hf_producer_nodes_register(hf_producer_nodes *nodes, hf_target *target)
{
    const hf_producer_node *node = hf_producer_node_of(&nodes->registry);
    if (target->whole != NULL) /* which is used already: it has told the shards */
        target = target->whole;
    if (node->client == NULL || !hf_client_ready(node->client))
        return;
    uint64_t life = registry_life(nodes, node);
    target->nodes = nodes;
    if (target->registered_in != life &&
        hf_op_register(node->client, &target->queue, on_registered, target) == HF_OK) {
        target->registered_in = life;
        nodes->registers++;
    }
}

bool hf_producer_nodes_register_all(hf_producer_nodes *nodes)
{
    bool all = true;
    for (hf_target *t = nodes->targets; t != NULL; t = t->routed) {
        const bool counts = t->used && t->whole == NULL;
        if (counts)
            hf_producer_nodes_register(nodes, t);
        all = all && (!counts || t->registered_in != 0);
    }
    return all && (nodes->registers == 0 || hf_cluster_is_plain(nodes->cluster));
}

/* ---- what is known ---- */

bool hf_producer_nodes_are_refused(hf_producer_nodes *nodes)
{
    char unread[HF_DETAIL_SIZE];
    if (hf_cluster_is_plain(nodes->cluster) || hf_cluster_changes(nodes->cluster) > 0)
        return false;
    hf_err err = hf_cluster_status(nodes->cluster, unread);
    return hf_err_is(err, HF_ERR_LASTS);
}

hf_err hf_producer_nodes_status(hf_producer_nodes *nodes, char why[HF_DETAIL_SIZE])
{
    hf_err err = hf_cluster_status(nodes->cluster, why);
    if (err == HF_OK)
        (void)snprintf(why, HF_DETAIL_SIZE, "%s", hf_err_text(HF_UNSERVED));
    return err;
}

/* ---- life ---- */

/* All that rest for want of a node look again. */
static void on_change(void *arg)
{
    hf_producer_nodes *nodes = arg;
    if (nodes->closing)
        return;
    for (hf_target *t = nodes->targets; t != NULL; t = t->routed)
        if (t->refusals == 0)
            t->rest_until_ns = 0;
    nodes->registry.rest_until_ns = 0;
    nodes->stale = true;
    nodes->hooks->on_change(nodes->owner);
}

static void know_registry(hf_producer_nodes *nodes, hf_line *line)
{
    char prefix[HF_KEY_SIZE];
    hf_key_registry(prefix, nodes->queue->ns);
    nodes->registry.slot = hf_slot(prefix, strlen(prefix));
    nodes->registry.line = line;
    nodes->queue->home = line;
}

hf_err hf_producer_nodes_open(hf_producer_nodes *nodes, uv_loop_t *loop,
                              const hf_producer_opts *opts, char detail[HF_DETAIL_SIZE])
{
    hf_producer_node *node = &nodes->away;
    nodes->loop = loop;
    nodes->wait_replicas = opts->wait_replicas;
    nodes->away.nodes = nodes;
    nodes->due_ns = UINT64_MAX;
    hf_err err = hf_cluster_open(&nodes->cluster, opts->server, detail);
    if (err != HF_OK)
        return err;
    if (hf_cluster_is_plain(nodes->cluster)) {
        err = open_node(nodes, hf_cluster_server(nodes->cluster, 0), &node, detail);
    } else {
        hf_submit_add_line(nodes->queue, &nodes->away.line);
        err = hf_cluster_watch(nodes->cluster, loop, on_change, nodes);
        if (err != HF_OK)
            (void)hf_say_err(detail, err);
    }
    if (err == HF_OK)
        know_registry(nodes, &node->line);
    else
        hf_cluster_close(nodes->cluster, NULL, NULL);
    return err;
}

void hf_producer_nodes_close(hf_producer_nodes *nodes)
{
    nodes->closing = true;
    while (nodes->first != NULL) {
        hf_producer_node *node = nodes->first;
        nodes->first = node->next;
        close_node(node);
    }
    end_if_closed(nodes);
}
