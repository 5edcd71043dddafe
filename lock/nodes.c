/* nodes.c - see nodes.h. */
#include "lock/nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/detail.h"
#include "lock/client.h"
#include "lock/listener.h"
#include "lock/tasks.h"
#include "lock/watchdog/watchdog.h"
#include "redis/plain.h"

enum { OPEN_AGAIN_MS = 1000 };

/* ---- what is known of one ---- */

bool hf_lock_node_ready(const hf_lock_node *node)
{
    return node->client != NULL && hf_client_ready(node->client) &&
           hf_lock_node_now(node) != 0;
}

hf_err hf_lock_node_status(const hf_lock_node *node, char why[HF_DETAIL_SIZE])
{
    hf_cluster *cluster = node->locks->nodes.cluster;
    if (node->client != NULL) {
        (void)snprintf(why, HF_DETAIL_SIZE, "%s", hf_client_detail(node->client));
        return hf_client_status(node->client);
    }
    hf_err err = hf_cluster_status(cluster, why);
    return err != HF_OK ? err : hf_say_err(why, HF_UNSERVED);
}

/* An evicted lock would be granted to another client while it is held, and an evicted
 * fence would admit a client that lost its lock. */
bool hf_lock_node_fit(hf_lock_node *node, char detail[HF_DETAIL_SIZE])
{
    const char *policy = hf_client_server(node->client)->policy;
    if (policy[0] == '\0' || strcmp(policy, "noeviction") == 0)
        return true;
    node->unfit = true;
    (void)snprintf(detail, HF_DETAIL_SIZE,
                   "expected maxmemory-policy noeviction, found %s: locks would be "
                   "evicted first",
                   policy);
    return false;
}

void hf_lock_node_begins_epoch(hf_lock_node *node)
{
    unsigned epoch = atomic_fetch_add(&node->locks->nodes.epochs, 1) + 1;
    atomic_store(&node->epoch, epoch);
}

bool hf_lock_node_answered(hf_lock_node *node, const hf_answer *answer, bool *moved)
{
    hf_cluster *cluster = node->locks->nodes.cluster;
    const bool moves = answer->err == HF_MOVED && !hf_cluster_is_plain(cluster);
    const bool again = moves && !*moved;
    *moved = moves;
    if (moves)
        hf_cluster_moved(cluster, node->redis, answer->detail);
    else if (answer->err == HF_UNSERVED || answer->err == HF_READONLY)
        hf_cluster_doubt(cluster);
    return again;
}

int64_t hf_lock_node_now(const hf_lock_node *node)
{
    return atomic_load(&node->clock_known) ? hf_server_now(node->redis) : 0;
}

int64_t hf_lock_node_not_after(const hf_lock_node *node)
{
    int64_t now = hf_lock_node_now(node);
    return now == 0 ? 0 : now + node->redis->request_timeout_ms;
}

uint64_t hf_lock_node_boot_ns(const hf_lock_node *node, int64_t redis_ms)
{
    int64_t now = hf_lock_node_now(node);
    return hf_boot_ns() + (redis_ms > now ? (uint64_t)(redis_ms - now) * HF_MS_NS : 0);
}

void hf_lock_node_clock(hf_lock_node *node, int64_t now_ms, uint64_t sent_ns)
{
    (void)hf_server_sample(node->redis, now_ms, sent_ns);
    atomic_store(&node->clock_known, true);
}

hf_err hf_lock_node_replicas(hf_lock_node *node, uv_loop_t *loop, hf_replicas **out)
{
    char mark[HF_REPLICAS_MARK_SIZE], ns[HF_ID_SIZE + sizeof ":lock"];
    (void)snprintf(ns, sizeof ns, "%s:lock", node->locks->ns);
    (void)snprintf(mark, sizeof mark, "%s:{/}:replicated", ns);
    hf_err err = hf_replicas_open(out, loop, node->redis, mark);
    if (err == HF_OK)
        hf_replicas_in_cluster(*out, node->locks->nodes.cluster, ns);
    return err;
}

hf_err hf_lock_node_confirm(hf_lock_node *node, hf_confirm *confirm)
{
    const hf_lock_client *locks = node->locks;
    if (node->replicas == NULL) {
        hf_err err = hf_lock_node_replicas(node, locks->tasks.run.uv, &node->replicas);
        if (err != HF_OK)
            return err;
        node->open++;
    }
    confirm->life = hf_client_life(node->client);
    confirm->until_ns = hf_boot_ns() + locks->request_timeout_ms * HF_MS_NS;
    hf_replicas_ask(node->replicas, confirm);
    return HF_OK;
}

/* ---- the watchdog's connections: for the loop ---- */

static void tell_of(hf_lock_node *node, bool part, uint64_t when_ns)
{
    hf_lock_nodes *nodes = &node->locks->nodes;
    uv_mutex_lock(&nodes->lock);
    node->part = node->part || part;
    if (!node->told) {
        node->told_next = nodes->told;
        nodes->told = node;
    }
    node->told = true;
    uv_mutex_unlock(&nodes->lock);
    hf_watchdog_call(node->locks->watchdog, when_ns);
}

static bool has_been_left(hf_lock_node *node)
{
    hf_lock_nodes *nodes = &node->locks->nodes;
    uv_mutex_lock(&nodes->lock);
    bool parted = node->parted && !node->told;
    uv_mutex_unlock(&nodes->lock);
    return parted;
}

/* ---- the watchdog's connections: its thread ---- */

static void one_less_watched(hf_lock_nodes *nodes)
{
    if (--nodes->n_watched == 0 && nodes->on_unwatched != NULL)
        nodes->on_unwatched(nodes->unwatched_arg);
}

/* From here on the loop may free it. */
static void finish(hf_lock_node *node)
{
    hf_lock_client *locks = node->locks;
    uv_mutex_lock(&locks->nodes.lock);
    node->parted = true;
    uv_mutex_unlock(&locks->nodes.lock);
    if (locks->nodes.on_unwatched == NULL)
        hf_run_loop_wake(&locks->tasks.run);
}

static void on_watched_closed(void *arg)
{
    hf_lock_node *node = arg;
    hf_lock_nodes *nodes = &node->locks->nodes;
    if (--node->watched_open > 0)
        return;
    finish(node);
    one_less_watched(nodes);
}

/* Of renewals that are under way none is known to have been done. */
static void leave(hf_lock_node *node)
{
    hf_lock_client *locks = node->locks;
    hf_client *renewer = node->renewer;
    hf_replicas *confirms = node->confirms;
    hf_lock_node **at = &locks->nodes.watched;
    while (*at != NULL && *at != node)
        at = &(*at)->watched_next;
    if (*at == NULL) { /* it was never connected */
        finish(node);
        return;
    }
    *at = node->watched_next;
    hf_listener_forget(&locks->notices.listener, renewer);
    node->renewer = NULL;
    node->confirms = NULL;
    hf_client_close(renewer, on_watched_closed, node);
    if (confirms != NULL)
        hf_replicas_close(confirms, on_watched_closed, node);
}

/* What happened to its leases in the gap is not known. */
static void on_renewer(hf_client *client, hf_err err, const char *detail, void *arg)
{
    hf_lock_node *node = arg;
    (void)client, (void)detail;
    hf_lock_node_begins_epoch(node); /* another server's lines count otherwise */
    if (err == HF_OK)
        hf_watchdog_verify(node->locks->watchdog);
    else
        hf_cluster_doubt(node->locks->nodes.cluster);
}

static void connect_to(hf_lock_node *node, uv_loop_t *loop)
{
    hf_lock_nodes *nodes = &node->locks->nodes;
    const hf_client_opts opts = {
        .loop = loop, .redis = node->redis, .on_event = on_renewer, .arg = node};
    if (hf_client_open(&node->renewer, &opts, NULL) != HF_OK) {
        tell_of(node, false, hf_boot_ns() + OPEN_AGAIN_MS * HF_MS_NS);
        return;
    }
    node->watched_open = 1;
    node->watched_next = nodes->watched;
    nodes->watched = node;
    nodes->n_watched++;
}

void hf_lock_nodes_watch(hf_lock_client *locks, uv_loop_t *loop)
{
    hf_lock_nodes *nodes = &locks->nodes;
    uv_mutex_lock(&nodes->lock);
    hf_lock_node *node = nodes->told, *next;
    nodes->told = NULL;
    for (; node != NULL; node = next) {
        next = node->told_next;
        node->told = false;
        bool part = node->part;
        uv_mutex_unlock(&nodes->lock);
        if (part)
            leave(node);
        else if (node->renewer == NULL)
            connect_to(node, loop);
        uv_mutex_lock(&nodes->lock);
    }
    uv_mutex_unlock(&nodes->lock);
}

void hf_lock_nodes_unwatch(hf_lock_client *locks, void (*cb)(void *arg), void *arg)
{
    hf_lock_nodes *nodes = &locks->nodes;
    nodes->on_unwatched = cb;
    nodes->unwatched_arg = arg;
    nodes->n_watched++; /* until all are being closed */
    while (nodes->watched != NULL)
        leave(nodes->watched);
    one_less_watched(nodes);
}

/* ---- a node comes ---- */

static void on_redis_time(const hf_answer *answer, void *arg)
{
    hf_lock_node *node = arg;
    int64_t now_ms;
    if (hf_plain_time_read(answer, &now_ms) == HF_OK) {
        hf_lock_node_clock(node, now_ms, answer->sent_ns);
        node->locks->nodes.hooks->on_ready(node->locks);
    }
    hf_tasks_turned(&node->locks->tasks);
}

/* The next connection may lead to another server: its time is asked for first. */
static void on_client(hf_client *client, hf_err err, const char *detail, void *arg)
{
    hf_lock_node *node = arg;
    (void)detail;
    atomic_store(&node->clock_known, false);
    hf_lock_node_begins_epoch(node);
    if (err != HF_OK) {
        hf_cluster_doubt(node->locks->nodes.cluster);
        hf_run_loop_wake(&node->locks->tasks.run); /* to leave it, if none needs it */
    }
    if (err == HF_OK && hf_plain_time(client, on_redis_time, node) != HF_OK)
        hf_client_reset(client);
    if (hf_client_is_refused(client))
        node->locks->nodes.hooks->on_refused(node->locks, node);
    hf_tasks_turned(&node->locks->tasks);
}

/* Takes the server over, also after a failure. */
static hf_err open_node(hf_lock_client *locks, hf_server *redis, hf_lock_node **out,
                        char *detail)
{
    hf_lock_nodes *nodes = &locks->nodes;
    hf_lock_node *node = calloc(1, sizeof *node);
    if (node == NULL) {
        hf_server_close(redis);
        return hf_say_err(detail, HF_NOMEM);
    }
    node->locks = locks;
    node->redis = redis;
    const hf_client_opts opts = {
        .loop = locks->tasks.run.uv,
        .redis = redis,
        .replica_ok = hf_cluster_is_plain(nodes->cluster), /* for readers */
        .on_event = on_client,
        .arg = node};
    hf_err err = hf_client_open(&node->client, &opts, detail);
    if (err != HF_OK) {
        hf_server_close(redis);
        free(node);
        return err;
    }
    node->open = 1;
    node->next = nodes->first;
    nodes->first = node;
    tell_of(node, false, hf_boot_ns());
    *out = node;
    return HF_OK;
}

/* ---- and goes ---- */

static void free_node(hf_lock_node *node)
{
    hf_server_close(node->redis);
    free(node);
}

/* Frees those that both threads are done with. */
static void reap(hf_lock_client *locks)
{
    for (hf_lock_node **at = &locks->nodes.parting; *at != NULL;) {
        hf_lock_node *node = *at;
        if (node->open > 0 || !has_been_left(node)) {
            at = &node->next;
            continue;
        }
        *at = node->next;
        free_node(node);
    }
}

static void on_part_closed(void *arg)
{
    hf_lock_node *node = arg;
    hf_lock_client *locks = node->locks;
    node->open--;
    if (locks->tasks.ended)
        hf_tasks_closed(&locks->tasks);
    else
        reap(locks);
}

static void disconnect(hf_lock_node *node)
{
    hf_client *client = node->client;
    hf_replicas *replicas = node->replicas;
    hf_listener_forget(&node->locks->listener, client);
    node->client = NULL;
    node->replicas = NULL;
    if (replicas != NULL)
        hf_replicas_close(replicas, on_part_closed, node);
    hf_client_close(client, on_part_closed, node);
}

/* Closes those that have no slots any more, once no lock and no call needs them. While
 * the nodes disagree a lock goes back and forth: it must find their connections again. */
static void sweep(hf_lock_client *locks)
{
    hf_lock_nodes *nodes = &locks->nodes;
    for (hf_lock_node **at = &nodes->first; *at != NULL;) {
        hf_lock_node *node = *at;
        if (hf_cluster_has_slots(nodes->cluster, node->redis) ||
            hf_client_in_flight(node->client) > 0 || nodes->hooks->needs(locks, node)) {
            at = &node->next;
            continue;
        }
        *at = node->next;
        node->next = nodes->parting;
        nodes->parting = node;
        disconnect(node);
        tell_of(node, true, hf_boot_ns());
    }
}

void hf_lock_nodes_tidy(hf_lock_client *locks)
{
    if (!hf_cluster_is_plain(locks->nodes.cluster) && !locks->tasks.ended)
        sweep(locks);
    reap(locks);
}

/* ---- routes ---- */

unsigned hf_lock_nodes_slot(const hf_lock_client *locks, const char *prefix, size_t len)
{
    return hf_cluster_is_plain(locks->nodes.cluster) ? 0 : hf_slot(prefix, len);
}

/* Takes the server over. */
static hf_lock_node *node_of(hf_lock_client *locks, hf_server *redis)
{
    char unread[HF_DETAIL_SIZE];
    hf_lock_node *node = locks->nodes.first;
    while (node != NULL && node->redis != redis)
        node = node->next;
    if (node != NULL)
        hf_server_close(redis); /* the node has it already */
    else if (open_node(locks, redis, &node, unread) != HF_OK)
        node = &locks->nodes.away;
    return node;
}

hf_lock_node *hf_lock_nodes_find(hf_lock_client *locks, unsigned slot)
{
    hf_lock_nodes *nodes = &locks->nodes;
    if (hf_cluster_is_plain(nodes->cluster) || locks->tasks.ended)
        return nodes->home;
    hf_server *redis = hf_cluster_server(nodes->cluster, slot);
    return redis == NULL ? &nodes->away : node_of(locks, redis);
}

hf_lock_node *hf_lock_nodes_at(hf_lock_client *locks, hf_server *redis)
{
    return node_of(locks, hf_server_share(redis));
}

/* ---- life ---- */

hf_err hf_lock_nodes_init(hf_lock_client *locks, const hf_lock_nodes_hooks *hooks,
                          const hf_server_opts *opts, char detail[HF_DETAIL_SIZE])
{
    hf_lock_nodes *nodes = &locks->nodes;
    nodes->hooks = hooks;
    nodes->away.locks = locks;
    nodes->home = &nodes->away;
    if (uv_mutex_init(&nodes->lock) != 0)
        return HF_SYSTEM;
    hf_err err = hf_cluster_open(&nodes->cluster, opts, detail);
    if (err != HF_OK)
        uv_mutex_destroy(&nodes->lock);
    return err;
}

/* In a cluster there is always work for which no caller waits: held locks move. */
hf_err hf_lock_nodes_open(hf_lock_client *locks, char detail[HF_DETAIL_SIZE])
{
    hf_lock_nodes *nodes = &locks->nodes;
    hf_cluster *cluster = hf_cluster_share(nodes->cluster); /* the loop's part of it */
    hf_err err;
    if (hf_cluster_is_plain(cluster)) {
        err = open_node(locks, hf_cluster_server(cluster, 0), &nodes->home, detail);
    } else {
        hf_run_loop_background(&locks->tasks.run, 1);
        err = hf_cluster_watch(cluster, locks->tasks.run.uv, nodes->hooks->on_change,
                               locks);
        if (err != HF_OK)
            (void)hf_say_err(detail, err);
    }
    if (err != HF_OK)
        hf_cluster_close(cluster, NULL, NULL);
    return err;
}

size_t hf_lock_nodes_handles(const hf_lock_client *locks)
{
    size_t n = 1; /* the cluster */
    for (const hf_lock_node *node = locks->nodes.first; node != NULL; node = node->next)
        n += node->open;
    for (const hf_lock_node *node = locks->nodes.parting; node != NULL; node = node->next)
        n += node->open;
    return n;
}

void hf_lock_nodes_close(hf_lock_client *locks)
{
    hf_lock_nodes *nodes = &locks->nodes;
    for (hf_lock_node *node = nodes->first; node != NULL; node = node->next)
        disconnect(node);
    hf_cluster_close(nodes->cluster, hf_tasks_closed, &locks->tasks);
}

static void free_all(hf_lock_node *node)
{
    while (node != NULL) {
        hf_lock_node *next = node->next;
        free_node(node);
        node = next;
    }
}

void hf_lock_nodes_free(hf_lock_client *locks)
{
    if (locks->nodes.cluster == NULL)
        return;
    uv_mutex_destroy(&locks->nodes.lock);
    free_all(locks->nodes.first);
    free_all(locks->nodes.parting);
    hf_cluster_unshare(locks->nodes.cluster);
}
