/* nodes.c - see nodes.h. */
#include "producer/nodes.h"

#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "queue/keys.h"
#include "redis/err.h"

enum {
    UNKNOWN_MS = 1000, /* a server that could not be made is tried again */
    PATIENCE_MS = 1000 /* until what may go elsewhere waits for no first connection */
};

/* ---- one node ---- */

static hf_err on_open(hf_node *base)
{
    hf_producer_node *node = hf_producer_node_from(base);
    const hf_producer_nodes *nodes = hf_producer_nodes_of(node);
    hf_err err = nodes->wait_replicas > 0 ? hf_node_replicas(base) : HF_OK;
    if (err != HF_OK)
        return err;
    node->line.down = true; /* until it is connected */
    node->patient_until_ns = hf_boot_ns() + PATIENCE_MS * HF_MS_NS;
    hf_submit_add_line(nodes->queue, &node->line);
    return HF_OK;
}

static void on_event(hf_node *base, hf_err err, const char *detail)
{
    hf_producer_node *node = hf_producer_node_from(base);
    hf_producer_nodes *nodes = hf_producer_nodes_of(node);
    (void)detail;
    nodes->stale = true; /* what waits for others may go there, or the reverse */
    hf_submit_line_is_down(nodes->queue, &node->line, err != HF_OK);
    nodes->hooks->on_event(node, err);
}

/* A queue that backs off keeps its last node: it mostly returns there, each time. */
static bool needs(void *owner, const hf_node *base)
{
    const hf_producer_nodes *nodes = owner;
    const hf_producer_node *node = hf_producer_node_from(base);
    const hf_line *away = hf_producer_nodes_away(nodes);
    if (node->flight.first != NULL || node->doubt.first != NULL ||
        nodes->registry.line == &node->line ||
        (nodes->registry.line == away && nodes->registry_met == node))
        return true;
    for (const hf_target *t = nodes->targets; t != NULL; t = t->routed)
        if (t->line == &node->line || (t->line == away && t->last_node == node))
            return true;
    return false;
}

/* A later node may have its address. */
static void on_leave(hf_node *base)
{
    hf_producer_node *node = hf_producer_node_from(base);
    hf_producer_nodes *nodes = hf_producer_nodes_of(node);
    hf_submit_drop_line(nodes->queue, &node->line);
    if (nodes->registry_met == node)
        nodes->registry_met = NULL;
    for (hf_target *t = nodes->targets; t != NULL; t = t->routed)
        if (t->last_node == node)
            t->last_node = NULL;
}

/* ---- where a queue belongs ---- */

static hf_producer_node *place_of(hf_producer_nodes *nodes, hf_target *target,
                                  uint64_t now_ns)
{
    hf_producer_node *away = hf_producer_node_from(nodes->all.away);
    if (target->backoff.until_ns > now_ns)
        return away;
    hf_producer_node *node =
        hf_producer_node_from(hf_nodes_find(&nodes->all, target->slot));
    if (node == away) {
        target->backoff.until_ns = now_ns + UNKNOWN_MS * HF_MS_NS;
        return node;
    }
    if (target->in_flight > 0 && node != target->last_node)
        nodes->hooks->withdraw(nodes->owner, target);
    return target->in_flight > 0 && node != target->last_node ? away : node;
}

static void route(hf_producer_nodes *nodes, hf_target *target, uint64_t now_ns)
{
    hf_producer_node *node = place_of(nodes, target, now_ns);
    if (&node->base == nodes->all.away && target->backoff.until_ns > now_ns &&
        target->backoff.until_ns < nodes->due_ns)
        nodes->due_ns = target->backoff.until_ns;
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
    hf_submit_line_is_down(nodes->queue, hf_producer_nodes_away(nodes), true);
    for (hf_node *at = nodes->all.first; at != NULL; at = at->next) {
        hf_producer_node *node = hf_producer_node_from(at);
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
    if (hf_cluster_is_plain(nodes->all.cluster))
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
    move_doubt(hf_producer_node_from(nodes->all.away));
    for (hf_node *at = nodes->all.first; at != NULL; at = at->next)
        move_doubt(hf_producer_node_from(at));
    hf_nodes_tidy(&nodes->all);
}

void hf_producer_nodes_refused(hf_producer_node *node, hf_target *target,
                               const hf_answer *answer)
{
    (void)hf_node_answered(&node->base, &target->backoff, answer);
    hf_producer_nodes_of(node)->stale = true;
}

/* ---- the registry ---- */

static uint64_t registry_life(hf_producer_nodes *nodes, const hf_producer_node *node)
{
    uint64_t life = hf_client_life(node->base.client);
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
    if (hf_err_is(answer->err, HF_ERR_OF_CLUSTER) && &node->base != nodes->all.away)
        hf_producer_nodes_refused(node, &nodes->registry, answer);
    else if (answer->err == HF_NOSCRIPT)
        hf_producer_nodes_register(nodes, target);
    else if (answer->err == HF_OK)
        hf_producer_nodes_accepted(&nodes->registry);
    if (hf_cluster_is_plain(nodes->all.cluster))
        return;
    nodes->stale = true; /* its node may be left now */
    nodes->hooks->on_change(nodes->owner);
}

void hf_producer_nodes_register(hf_producer_nodes *nodes, hf_target *target)
{
    const hf_producer_node *node = hf_producer_node_of(&nodes->registry);
    if (target->whole != NULL) /* which is used already: it has told the shards */
        target = target->whole;
    if (node->base.client == NULL || !hf_client_ready(node->base.client))
        return;
    uint64_t life = registry_life(nodes, node);
    target->nodes = nodes;
    if (target->registered_in != life && hf_op_register(node->base.client, &target->queue,
                                                        on_registered, target) == HF_OK) {
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
    return all && (nodes->registers == 0 || hf_cluster_is_plain(nodes->all.cluster));
}

/* ---- life ---- */

/* All that back off for want of a node look again. */
static void on_change(void *owner)
{
    hf_producer_nodes *nodes = owner;
    for (hf_target *t = nodes->targets; t != NULL; t = t->routed)
        if (t->backoff.refusals == 0)
            t->backoff.until_ns = 0;
    nodes->registry.backoff.until_ns = 0;
    nodes->stale = true;
    nodes->hooks->on_change(nodes->owner);
}

static const hf_nodes_hooks of_all = {.on_open = on_open,
                                      .on_event = on_event,
                                      .on_change = on_change,
                                      .needs = needs,
                                      .on_leave = on_leave};

static void know_registry(hf_producer_nodes *nodes)
{
    char prefix[HF_KEY_SIZE];
    hf_line *line = &hf_producer_node_from(nodes->all.home)->line;
    hf_key_registry(prefix, nodes->queue->ns);
    nodes->registry.slot = hf_slot(prefix, strlen(prefix));
    nodes->registry.line = line;
    nodes->queue->home = line;
}

hf_err hf_producer_nodes_open(hf_producer_nodes *nodes, uv_loop_t *loop,
                              const hf_producer_opts *opts, char detail[HF_DETAIL_SIZE])
{
    const hf_nodes_opts all = {.node_size = sizeof(hf_producer_node),
                               .ns = nodes->queue->ns,
                               .hooks = &of_all,
                               .owner = nodes};
    nodes->wait_replicas = opts->wait_replicas;
    nodes->due_ns = UINT64_MAX;
    hf_err err = hf_nodes_open(&nodes->all, opts->server, &all, detail);
    if (err != HF_OK)
        return err;
    if (!hf_cluster_is_plain(nodes->all.cluster))
        hf_submit_add_line(nodes->queue, hf_producer_nodes_away(nodes));
    err = hf_nodes_start(&nodes->all, loop, detail);
    if (err == HF_OK)
        know_registry(nodes);
    return err;
}

static void on_closed(void *arg)
{
    hf_producer_nodes *nodes = arg;
    nodes->hooks->on_closed(nodes->owner);
}

void hf_producer_nodes_close(hf_producer_nodes *nodes)
{
    hf_nodes_close(&nodes->all, on_closed, nodes);
}

void hf_producer_nodes_free(hf_producer_nodes *nodes)
{
    hf_nodes_free(&nodes->all);
}
