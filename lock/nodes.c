/* nodes.c - see nodes.h. */
#include "lock/nodes.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "lock/client.h"
#include "lock/tasks.h"
#include "lock/watchdog/watchdog.h"
#include "redis/plain.h"

static hf_lock_client *client_of(const hf_lock_node *node)
{
    return node->base.nodes->opts.owner;
}

static hf_lock_node *node_of(hf_node *base)
{
    return HF_CONTAINER(base, hf_lock_node, base);
}

hf_lock_node *hf_lock_node_of(hf_lock_client *locks, unsigned slot)
{
    return node_of(hf_nodes_find(&locks->nodes, slot));
}

hf_lock_node *hf_lock_node_at(hf_lock_client *locks, hf_server *redis)
{
    return node_of(hf_nodes_at(&locks->nodes, redis));
}

bool hf_lock_node_ready(const hf_lock_node *node)
{
    return node->base.client != NULL && hf_client_ready(node->base.client) &&
           hf_lock_node_now(node) != 0;
}

/* An evicted lock would be granted to another client while it is held, and an evicted
 * fence would admit a client that lost its lock. */
bool hf_lock_node_fit(hf_lock_node *node, char detail[HF_DETAIL_SIZE])
{
    const char *policy = hf_client_server(node->base.client)->policy;
    if (policy[0] == '\0' || strcmp(policy, "noeviction") == 0)
        return true;
    node->unfit = true;
    (void)snprintf(detail, HF_DETAIL_SIZE,
                   "expected maxmemory-policy noeviction, found %s: locks would be "
                   "evicted first",
                   policy);
    return false;
}

/* ---- its clock ---- */

int64_t hf_lock_node_now(const hf_lock_node *node)
{
    return atomic_load(&node->clock_known) ? hf_server_now(node->base.redis) : 0;
}

int64_t hf_lock_node_not_after(const hf_lock_node *node)
{
    int64_t now = hf_lock_node_now(node);
    return now == 0 ? 0 : now + node->base.redis->request_timeout_ms;
}

uint64_t hf_lock_node_boot_ns(const hf_lock_node *node, int64_t redis_ms)
{
    int64_t now = hf_lock_node_now(node);
    return hf_boot_ns() + (redis_ms > now ? (uint64_t)(redis_ms - now) * HF_MS_NS : 0);
}

void hf_lock_node_clock(hf_lock_node *node, int64_t now_ms, uint64_t sent_ns)
{
    (void)hf_server_sample(node->base.redis, now_ms, sent_ns);
    atomic_store(&node->clock_known, true);
}

/* ---- it comes and goes ---- */

void hf_lock_node_begins_epoch(hf_lock_node *node)
{
    unsigned epoch = atomic_fetch_add(&client_of(node)->epochs, 1) + 1;
    atomic_store(&node->epoch, epoch);
}

static void on_redis_time(const hf_answer *answer, void *arg)
{
    hf_lock_node *node = arg;
    hf_lock_client *locks = client_of(node);
    int64_t now_ms;
    if (hf_plain_time_read(answer, &now_ms) == HF_OK) {
        hf_lock_node_clock(node, now_ms, answer->sent_ns);
        locks->hooks->on_ready(locks);
    }
    hf_tasks_turned(&locks->tasks);
}

/* The next connection may lead to another server: its time is asked for first. */
void hf_lock_node_on_event(hf_node *base, hf_err err, const char *detail)
{
    hf_lock_node *node = node_of(base);
    hf_lock_client *locks = client_of(node);
    (void)detail;
    atomic_store(&node->clock_known, false);
    hf_lock_node_begins_epoch(node);
    if (err != HF_OK)
        hf_run_loop_wake(&locks->tasks.run); /* to leave it, if none needs it */
    if (err == HF_OK && hf_plain_time(base->client, on_redis_time, node) != HF_OK)
        hf_client_reset(base->client);
    if (hf_client_is_refused(base->client))
        locks->hooks->on_refused(locks, node);
    hf_tasks_turned(&locks->tasks);
}

/* ---- the watchdog's connection, on its thread ---- */

/* What happened to its leases in the gap is not known. */
void hf_lock_node_on_second(hf_node *base, hf_err err, const char *detail)
{
    hf_lock_node *node = node_of(base);
    (void)detail;
    hf_lock_node_begins_epoch(node); /* another server's lines count otherwise */
    if (err == HF_OK)
        hf_watchdog_verify(client_of(node)->watchdog);
}
