/* nodes.c - see nodes.h. */
#include "redis/nodes.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/backoff.h"
#include "base/base.h"
#include "base/clock.h"
#include "base/detail.h"
#include "redis/err.h"

enum { SECOND_AGAIN_MS = 1000 };

/* Of a sender whose slot no node serves at the moment. */
static const hf_backoff delays = {
    .shape = HF_SHAPE_EXPONENTIAL, .base_ms = 20, .cap_ms = 500, .jitter = 0.25};

static bool has_second(const hf_nodes *nodes)
{
    return nodes->opts.hooks->call_second != NULL;
}

/* ---- one of them ---- */

void hf_node_back_off(hf_node *node, hf_node_backoff *backoff, hf_err err)
{
    const bool at_once = err == HF_MOVED && backoff->refusals == 0;
    backoff->refusals++;
    int64_t ms =
        at_once ? 0 : hf_backoff_ms(&delays, backoff->refusals, &node->redis->rng);
    backoff->began_ns = hf_boot_ns();
    backoff->until_ns = backoff->began_ns + (uint64_t)ms * HF_MS_NS;
}

bool hf_node_answered(hf_node *node, hf_node_backoff *backoff, const hf_answer *answer)
{
    bool elsewhere = hf_cluster_refused(node->nodes->cluster, node->redis, answer->err,
                                        answer->detail);
    if (backoff == NULL)
        return elsewhere;
    if (!elsewhere) {
        backoff->refusals = answer->err == HF_UNSURE ? backoff->refusals : 0;
        return false;
    }
    if (answer->sent_ns >= backoff->began_ns)
        hf_node_back_off(node, backoff, answer->err);
    return true;
}

hf_err hf_node_status(const hf_node *node, char why[HF_DETAIL_SIZE])
{
    if (node->client != NULL) {
        (void)snprintf(why, HF_DETAIL_SIZE, "%s", hf_client_detail(node->client));
        return hf_client_status(node->client);
    }
    hf_err err = hf_cluster_status(node->nodes->cluster, why);
    return err != HF_OK ? err : hf_say_err(why, HF_UNSERVED);
}

static hf_err open_replicas(const hf_node *node, uv_loop_t *loop, hf_replicas **out)
{
    char mark[HF_REPLICAS_MARK_SIZE];
    const char *ns = node->nodes->opts.ns;
    (void)snprintf(mark, sizeof mark, "%s:{/}:replicated", ns);
    hf_err err = hf_replicas_open(out, loop, node->redis, mark);
    if (err == HF_OK)
        hf_replicas_in_cluster(*out, node->nodes->cluster, ns);
    return err;
}

hf_err hf_node_replicas(hf_node *node)
{
    if (node->replicas != NULL)
        return HF_OK;
    hf_err err = open_replicas(node, node->nodes->loop, &node->replicas);
    node->open += err == HF_OK ? 1 : 0;
    return err;
}

hf_err hf_node_confirm(hf_node *node, hf_confirm *confirm)
{
    hf_err err = hf_node_replicas(node);
    if (err != HF_OK)
        return err;
    confirm->life = hf_client_life(node->client);
    hf_replicas_ask(node->replicas, confirm);
    return HF_OK;
}

/* ---- the second thread, for the loop ---- */

static void tell_second(hf_node *node, bool leave, uint64_t when_ns)
{
    hf_nodes *nodes = node->nodes;
    uv_mutex_lock(&nodes->lock);
    node->leave = node->leave || leave;
    if (!node->told) {
        node->told_next = nodes->told;
        nodes->told = node;
    }
    node->told = true;
    uv_mutex_unlock(&nodes->lock);
    nodes->opts.hooks->call_second(nodes->opts.owner, when_ns);
}

static bool has_been_left(hf_node *node)
{
    hf_nodes *nodes = node->nodes;
    uv_mutex_lock(&nodes->lock);
    bool left = node->left && !node->told;
    uv_mutex_unlock(&nodes->lock);
    return left || !has_second(nodes);
}

/* ---- the second thread, on it ---- */

static void one_less_second(hf_nodes *nodes)
{
    if (--nodes->n_second == 0 && nodes->on_second_closed != NULL)
        nodes->on_second_closed(nodes->second_arg);
}

/* From here on the loop may free it. */
static void finish_second(hf_node *node)
{
    hf_nodes *nodes = node->nodes;
    const bool ends = nodes->on_second_closed != NULL;
    uv_mutex_lock(&nodes->lock);
    node->left = true;
    uv_mutex_unlock(&nodes->lock);
    if (!ends)
        nodes->opts.hooks->wake(nodes->opts.owner);
}

static void on_second_closed(void *arg)
{
    hf_node *node = arg;
    hf_nodes *nodes = node->nodes;
    if (--node->second.open > 0)
        return;
    finish_second(node);
    one_less_second(nodes);
}

/* Requests in flight may have been executed. */
static void leave_second(hf_node *node)
{
    hf_client *client = node->second.client;
    hf_replicas *replicas = node->second.replicas;
    hf_node **at = &node->nodes->second;
    while (*at != NULL && *at != node)
        at = &(*at)->second.next;
    if (*at == NULL) { /* it was never connected */
        finish_second(node);
        return;
    }
    *at = node->second.next;
    node->second.client = NULL;
    node->second.replicas = NULL;
    hf_client_close(client, on_second_closed, node);
    if (replicas != NULL)
        hf_replicas_close(replicas, on_second_closed, node);
}

static void on_second_client(hf_client *client, hf_err err, const char *detail, void *arg)
{
    hf_node *node = arg;
    (void)client;
    if (err != HF_OK)
        hf_cluster_doubt(node->nodes->cluster);
    node->nodes->opts.hooks->on_second(node, err, detail);
}

static void connect_second(hf_node *node, uv_loop_t *loop)
{
    hf_nodes *nodes = node->nodes;
    char detail[HF_DETAIL_SIZE];
    const hf_client_opts opts = {
        .loop = loop, .redis = node->redis, .on_event = on_second_client, .arg = node};
    hf_err err = hf_client_open(&node->second.client, &opts, detail);
    if (err != HF_OK) {
        nodes->opts.hooks->on_second(node, err, detail);
        tell_second(node, false, hf_boot_ns() + SECOND_AGAIN_MS * HF_MS_NS);
        return;
    }
    node->second.open = 1;
    node->second.next = nodes->second;
    nodes->second = node;
    nodes->n_second++;
}

void hf_nodes_second_turn(hf_nodes *nodes, uv_loop_t *loop)
{
    uv_mutex_lock(&nodes->lock);
    hf_node *node = nodes->told, *next;
    nodes->told = NULL;
    for (; node != NULL; node = next) {
        next = node->told_next;
        node->told = false;
        bool leave = node->leave;
        uv_mutex_unlock(&nodes->lock);
        if (leave)
            leave_second(node);
        else if (node->second.client == NULL)
            connect_second(node, loop);
        uv_mutex_lock(&nodes->lock);
    }
    uv_mutex_unlock(&nodes->lock);
}

void hf_nodes_second_close(hf_nodes *nodes, void (*cb)(void *arg), void *arg)
{
    nodes->on_second_closed = cb;
    nodes->second_arg = arg;
    nodes->n_second++; /* until all are being closed */
    while (nodes->second != NULL)
        leave_second(nodes->second);
    one_less_second(nodes);
}

hf_err hf_node_second_replicas(hf_node *node)
{
    if (node->second.replicas != NULL)
        return HF_OK;
    hf_err err =
        open_replicas(node, hf_client_loop(node->second.client), &node->second.replicas);
    node->second.open += err == HF_OK ? 1 : 0;
    return err;
}

void hf_node_second_confirm(hf_node *node, hf_confirm *confirm)
{
    confirm->life = hf_client_life(node->second.client);
    hf_replicas_ask(node->second.replicas, confirm);
}

/* ---- a node comes ---- */

static void on_client(hf_client *client, hf_err err, const char *detail, void *arg)
{
    hf_node *node = arg;
    (void)client;
    if (err != HF_OK)
        hf_cluster_doubt(node->nodes->cluster);
    node->nodes->opts.hooks->on_event(node, err, detail);
}

static void free_node(hf_node *node)
{
    hf_server_close(node->redis);
    free(node);
}

static hf_err connect_node(hf_node *node, char *detail)
{
    hf_nodes *nodes = node->nodes;
    const hf_nodes_hooks *hooks = nodes->opts.hooks;
    const hf_client_opts opts = {.loop = nodes->loop,
                                 .redis = node->redis,
                                 .replica_ok = nodes->opts.replica_ok &&
                                               hf_cluster_is_plain(nodes->cluster),
                                 .on_event = on_client,
                                 .arg = node};
    hf_err err = hf_client_open(&node->client, &opts, detail);
    if (err != HF_OK)
        return err;
    node->open = 1;
    err = hooks->on_open == NULL ? HF_OK : hooks->on_open(node);
    if (err == HF_OK)
        return HF_OK;
    hf_client_close(node->client, NULL, NULL);
    return hf_say_err(detail, err);
}

/* Takes the server over, also after a failure. */
static hf_err open_node(hf_nodes *nodes, hf_server *redis, hf_node **out, char *detail)
{
    hf_node *node = calloc(1, nodes->opts.node_size);
    if (node == NULL) {
        hf_server_close(redis);
        return hf_say_err(detail, HF_NOMEM);
    }
    node->nodes = nodes;
    node->redis = redis;
    hf_err err = connect_node(node, detail);
    if (err != HF_OK) {
        free_node(node);
        return err;
    }
    node->next = nodes->first;
    nodes->first = node;
    if (has_second(nodes))
        tell_second(node, false, hf_boot_ns());
    *out = node;
    return HF_OK;
}

/* ---- and goes ---- */

/* Frees those that both threads are done with. */
static void reap(hf_nodes *nodes)
{
    for (hf_node **at = &nodes->leaving; *at != NULL;) {
        hf_node *node = *at;
        if (node->open > 0 || !has_been_left(node)) {
            at = &node->next;
            continue;
        }
        *at = node->next;
        free_node(node);
    }
}

static void one_less(hf_nodes *nodes)
{
    if (--nodes->closing == 0 && nodes->on_closed != NULL)
        nodes->on_closed(nodes->closed_arg);
}

void hf_node_closed(void *arg)
{
    hf_node *node = arg;
    node->open--;
    if (node->nodes->closes)
        one_less(node->nodes);
    else
        reap(node->nodes);
}

static void disconnect(hf_node *node)
{
    const hf_nodes_hooks *hooks = node->nodes->opts.hooks;
    hf_client *client = node->client;
    hf_replicas *replicas = node->replicas;
    if (hooks->on_leave != NULL)
        hooks->on_leave(node);
    node->client = NULL;
    node->replicas = NULL;
    if (replicas != NULL)
        hf_replicas_close(replicas, hf_node_closed, node);
    hf_client_close(client, hf_node_closed, node);
}

static bool is_needed(const hf_node *node)
{
    const hf_nodes_opts *opts = &node->nodes->opts;
    return hf_client_in_flight(node->client) > 0 || opts->hooks->needs(opts->owner, node);
}

static void sweep(hf_nodes *nodes)
{
    for (hf_node **at = &nodes->first; *at != NULL;) {
        hf_node *node = *at;
        if (is_needed(node)) {
            at = &node->next;
            continue;
        }
        *at = node->next;
        node->next = nodes->leaving;
        nodes->leaving = node;
        if (has_second(nodes))
            tell_second(node, true, hf_boot_ns());
        disconnect(node);
    }
}

void hf_nodes_tidy(hf_nodes *nodes)
{
    if (!hf_cluster_is_plain(nodes->cluster) && !nodes->closes)
        sweep(nodes);
    reap(nodes);
}

/* ---- finding one ---- */

unsigned hf_nodes_slot(const hf_nodes *nodes, const char *prefix, size_t len)
{
    return hf_cluster_is_plain(nodes->cluster) ? 0 : hf_slot(prefix, len);
}

/* Takes the server over. */
static hf_node *node_of(hf_nodes *nodes, hf_server *redis)
{
    char unread[HF_DETAIL_SIZE];
    hf_node *node = nodes->first;
    while (node != NULL && node->redis != redis)
        node = node->next;
    if (node != NULL)
        hf_server_close(redis); /* the node has it already */
    else if (open_node(nodes, redis, &node, unread) != HF_OK)
        node = nodes->away;
    return node;
}

hf_node *hf_nodes_find(hf_nodes *nodes, unsigned slot)
{
    if (hf_cluster_is_plain(nodes->cluster) || nodes->closes)
        return nodes->home;
    hf_server *redis = hf_cluster_server(nodes->cluster, slot);
    return redis == NULL ? nodes->away : node_of(nodes, redis);
}

hf_node *hf_nodes_at(hf_nodes *nodes, hf_server *redis)
{
    return node_of(nodes, hf_server_share(redis));
}

hf_client *hf_nodes_client(const hf_nodes *nodes, const hf_server *redis, bool second)
{
    const hf_node *node = second ? nodes->second : nodes->first;
    while (node != NULL && node->redis != redis)
        node = second ? node->second.next : node->next;
    return node == NULL ? NULL : second ? node->second.client : node->client;
}

bool hf_nodes_are_refused(hf_nodes *nodes)
{
    char unread[HF_DETAIL_SIZE];
    return !hf_cluster_is_plain(nodes->cluster) &&
           hf_cluster_changes(nodes->cluster) == 0 &&
           hf_err_is(hf_cluster_status(nodes->cluster, unread), HF_ERR_LASTS);
}

/* ---- life ---- */

static void on_change(void *arg)
{
    hf_nodes *nodes = arg;
    if (!nodes->closes)
        nodes->opts.hooks->on_change(nodes->opts.owner);
}

hf_err hf_nodes_open(hf_nodes *nodes, const hf_server_opts *server,
                     const hf_nodes_opts *opts, char detail[HF_DETAIL_SIZE])
{
    nodes->opts = *opts;
    nodes->away = nodes->home = calloc(1, opts->node_size);
    if (nodes->away == NULL)
        return hf_say_err(detail, HF_NOMEM);
    nodes->away->nodes = nodes;
    hf_err err = hf_cluster_open(&nodes->cluster, server, detail);
    if (err == HF_OK && uv_mutex_init(&nodes->lock) != 0) {
        hf_cluster_close(nodes->cluster, NULL, NULL);
        nodes->cluster = NULL;
        err = hf_say_err(detail, HF_SYSTEM);
    }
    if (err != HF_OK) {
        free(nodes->away);
        nodes->away = nodes->home = NULL;
    }
    return err;
}

hf_err hf_nodes_start(hf_nodes *nodes, uv_loop_t *loop, char detail[HF_DETAIL_SIZE])
{
    hf_cluster *cluster = hf_cluster_share(nodes->cluster); /* the loop's part of it */
    hf_err err;
    nodes->loop = loop;
    if (hf_cluster_is_plain(cluster)) {
        err = open_node(nodes, hf_cluster_server(cluster, 0), &nodes->home, detail);
    } else {
        err = hf_cluster_watch(cluster, loop, on_change, nodes);
        if (err != HF_OK)
            (void)hf_say_err(detail, err);
    }
    if (err != HF_OK) {
        nodes->loop = NULL;
        hf_cluster_close(cluster, NULL, NULL);
    }
    return err;
}

static void on_cluster_closed(void *arg)
{
    one_less(arg);
}

static size_t open_in(const hf_node *node)
{
    size_t n = 0;
    for (; node != NULL; node = node->next)
        n += node->open;
    return n;
}

void hf_nodes_close(hf_nodes *nodes, void (*cb)(void *arg), void *arg)
{
    if (nodes->loop == NULL) {
        if (cb != NULL)
            cb(arg);
        return;
    }
    nodes->closing = 1 + open_in(nodes->first) + open_in(nodes->leaving);
    nodes->closes = true;
    nodes->on_closed = cb;
    nodes->closed_arg = arg;
    for (hf_node *node = nodes->first; node != NULL; node = node->next)
        disconnect(node);
    hf_cluster_close(nodes->cluster, on_cluster_closed, nodes);
}

static void free_all(hf_node *node)
{
    while (node != NULL) {
        hf_node *next = node->next;
        free_node(node);
        node = next;
    }
}

void hf_nodes_free(hf_nodes *nodes)
{
    if (nodes->cluster == NULL)
        return;
    uv_mutex_destroy(&nodes->lock);
    free_all(nodes->first);
    free_all(nodes->leaving);
    free_node(nodes->away);
    hf_cluster_unshare(nodes->cluster);
    nodes->cluster = NULL;
}
