/* connect.c - from nothing to a connection.
 *
 * A try has one deadline, from the name to READY. Within it each address gets an equal
 * share of the remaining time: an address that swallows packets does not hide the
 * next. */
#include <stdio.h>
#include <string.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "redis/conn.h"
#include "redis/connect.h"
#include "redis/greet.h"

enum { IDLE_MS = 500 }; /* a connection that was ready for so long was of use */

static const hf_backoff waits = {
    .shape = HF_SHAPE_EXPONENTIAL, .base_ms = 50, .cap_ms = 1200, .jitter = 0.25};

static void on_open(void *owner, hf_err err, const char *why);
static void on_room(void *owner);
static void on_lost(void *owner, hf_err err, const char *why);

static const hf_link_hooks link_hooks = {.on_open = on_open,
                                         .on_reply = hf_request_on_reply,
                                         .on_room = on_room,
                                         .on_lost = on_lost,
                                         .on_closed = hf_conn_handle_closed};

void hf_connect_wait(hf_client *client)
{
    int64_t wait_ms = hf_backoff_ms(&waits, client->failures, &client->rng);
    uv_timer_start(&client->timer, hf_connect_on_timer, (uint64_t)wait_ms, 0);
}

/* The share of one of n in the remaining time of the try; at least a millisecond. */
static uint64_t share_ms(const hf_client *client, size_t n)
{
    uint64_t now = hf_boot_ns();
    uint64_t left = client->try_end_ns > now ? client->try_end_ns - now : 0;
    uint64_t share = left / HF_MS_NS / n;
    return share > 0 ? share : 1;
}

/* Goes to the next address that does not refuse at once; after the last one the try has
 * failed, with the reason `why` if there was none at all. */
static void next_address(hf_client *client, const char *why)
{
    char detail[HF_DETAIL_SIZE];
    snprintf(detail, sizeof detail, "%s", why);
    while (client->next_address < client->addresses.n) {
        size_t left = client->addresses.n - client->next_address;
        const hf_address *address = &client->addresses.at[client->next_address++];
        const hf_link_tls tls = {client->redis->tls, client->to.host};
        hf_err err = hf_link_open(&client->link, client->loop, address,
                                  client->redis->url.tls ? &tls : NULL, &link_hooks,
                                  client, detail);
        if (err != HF_OK)
            continue;
        client->handles++;
        client->phase = CLIENT_CONNECT;
        uv_timer_start(&client->timer, hf_connect_on_timer, share_ms(client, left), 0);
        return;
    }
    hf_conn_lose(client, HF_CONN, detail);
}

/* This address does not lead to a Redis that answers. */
static void address_failed(hf_client *client, const char *why)
{
    hf_conn_drop_link(client);
    /* Only the greeting can be in flight, and it does not mind. */
    hf_request_fail_all(client, why);
    next_address(client, why);
}

static void on_open(void *owner, hf_err err, const char *why)
{
    hf_client *client = owner;
    if (err == HF_CONN) {
        address_failed(client, why);
        return;
    }
    if (err != HF_OK) {
        hf_conn_lose(client, err, why);
        return;
    }
    client->phase = CLIENT_GREET;
    hf_greet_begin(client);
}

static void on_room(void *owner)
{
    hf_request_flush(owner);
}

/* A server that ends connections too soon is faulty, and not one that finds them idle. */
static void lost(hf_client *client, hf_err err, const char *why)
{
    bool idle = err == HF_CONN && client->phase == CLIENT_READY &&
                client->flight.n == 0 &&
                hf_boot_ns() - client->ready_ns >= IDLE_MS * HF_MS_NS;
    hf_conn_lose(client, err, why);
    client->was_idle = idle;
}

static void on_lost(void *owner, hf_err err, const char *why)
{
    hf_client *client = owner;
    char hint[HF_DETAIL_SIZE];
    bool plain = !client->redis->url.tls && client->redis->url.path[0] == '\0';
    if (client->phase == CLIENT_GREET && plain &&
        strcmp(why, uv_strerror(UV_ECONNRESET)) == 0) {
        snprintf(hint, sizeof hint,
                 "%s: if this port expects TLS, the URL begins with rediss://", why);
        why = hint;
    }
    if (client->phase == CLIENT_GREET && err == HF_CONN)
        address_failed(client, why);
    else
        lost(client, err, why);
}

static void on_resolved(void *owner, const hf_addresses *found, const char *why)
{
    hf_client *client = owner;
    client->resolve = NULL;
    if (client->phase != CLIENT_RESOLVE)
        return; /* too late for its try; the next one asks again */
    if (why == NULL) {
        client->addresses = *found;
        next_address(client, "the name has no address");
        return;
    }
    char detail[HF_DETAIL_SIZE];
    snprintf(detail, sizeof detail, "the name cannot be resolved: %s", why);
    hf_conn_lose(client, HF_CONN, detail);
}

static const hf_resolve_hooks resolve_hooks = {.on_done = on_resolved,
                                               .on_closed = hf_conn_handle_closed};

/* From the place to its addresses. */
static void resolve(hf_client *client)
{
    if (hf_resolve_at_once(&client->to, &client->addresses)) {
        next_address(client, "no address");
        return;
    }
    client->phase = CLIENT_RESOLVE;
    uv_timer_start(&client->timer, hf_connect_on_timer, share_ms(client, 1), 0);
    /* A look-up that is stuck since an earlier try is waited for again: a silent name
     * server holds one thread of each client, not one of each try. */
    if (client->resolve != NULL)
        return;
    hf_err err = hf_resolve_start(&client->resolve, client->loop, &client->to,
                                  &resolve_hooks, client);
    if (err != HF_OK) {
        hf_conn_lose(client, err, "no thread to resolve the name in");
        return;
    }
    client->handles++;
}

/* ---- Sentinels ---- */

static void on_primary(void *owner, const hf_place *primary)
{
    const hf_client *client = owner;
    hf_server_named(client->redis, primary);
}

static void on_vain(void *owner, hf_err err, const char *why)
{
    const hf_client *client = owner;
    hf_server_not_named(client->redis, err, why);
}

static const hf_sentinel_hooks sentinel_hooks = {.on_primary = on_primary,
                                                 .on_vain = on_vain,
                                                 .on_closed = hf_conn_handle_closed,
                                                 .open_client = hf_client_open,
                                                 .close_client = hf_client_close};

/* One connection of each server asks the Sentinels, on its loop, for all of them. */
static void watch(hf_client *client)
{
    hf_server *redis = client->redis;
    hf_watch what = hf_server_watches(redis, &client->seat);
    if (what == HF_WATCH_NOT)
        return;
    if (client->watch == NULL) {
        hf_err err = hf_sentinel_open(&client->watch, client->loop, redis,
                                      &sentinel_hooks, client);
        if (err != HF_OK) {
            hf_server_not_named(redis, err, hf_err_text(err));
            return;
        }
        client->handles++;
    }
    if (what == HF_WATCH_DOUBT)
        hf_sentinel_doubt(client->watch);
    if (what != HF_WATCH_ON)
        hf_sentinel_again(client->watch);
}

static void find(hf_client *client)
{
    const hf_place *bad = client->in_vain ? &client->to : NULL;
    client->phase = CLIENT_FIND;
    uv_timer_start(&client->timer, hf_connect_on_timer, share_ms(client, 1), 0);
    client->answers = hf_server_find(client->redis, bad);
    watch(client);
}

static void on_found(hf_client *client)
{
    hf_server_word word;
    if (client->phase != CLIENT_FIND ||
        !hf_server_word_after(client->redis, client->answers, &word))
        return;
    if (word.err != HF_OK) {
        hf_conn_lose(client, word.err, word.why);
        return;
    }
    /* A look-up that is stuck looks for the old one. */
    if (client->resolve != NULL && !hf_url_place_is(&client->to, &word.primary)) {
        hf_resolve_drop(client->resolve);
        client->resolve = NULL;
    }
    client->drops = word.drops;
    client->to = word.primary;
    client->in_vain = true;
    hf_url_place_text(&client->to, client->place);
    resolve(client);
}

void hf_connect_on_news(hf_client *client)
{
    if (client->redis->url.sentinel.n_nodes == 0)
        return;
    watch(client);
    on_found(client);
}

/* ---- a try ---- */

void hf_connect_begin(hf_client *client)
{
    const hf_server *redis = client->redis;
    client->drops = atomic_load(&redis->drops);
    client->try_end_ns = hf_boot_ns() + redis->connect_timeout_ms * HF_MS_NS;
    client->next_address = 0;
    if (redis->url.sentinel.n_nodes > 0) {
        find(client);
    } else if (redis->url.path[0] != '\0') {
        hf_resolve_path(redis->url.path, &client->addresses);
        next_address(client, "no address");
    } else {
        client->to.port = redis->url.port;
        memcpy(client->to.host, redis->url.host, sizeof client->to.host);
        resolve(client);
    }
}

void hf_connect_on_timer(uv_timer_t *timer)
{
    hf_client *client = timer->data;
    switch (client->phase) {
    case CLIENT_WAIT:
        hf_connect_begin(client);
        break;
    case CLIENT_FIND:
        hf_conn_lose(client, HF_CONN, "no Sentinel has named it within the time");
        break;
    case CLIENT_RESOLVE:
        hf_conn_lose(client, HF_CONN, "resolving the name takes too long");
        break;
    case CLIENT_CONNECT:
        address_failed(client,
                       hf_link_is_shaking(client->link)
                           ? "connected, but no TLS handshake within the time: does this "
                             "port speak TLS?"
                           : "no connection within the time");
        break;
    case CLIENT_GREET:
        address_failed(client, "connected, but no answer within the time");
        break;
    case CLIENT_READY:
    case CLIENT_DRAIN:
    case CLIENT_CLOSED:
        break;
    }
}
