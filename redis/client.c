/* client.c - the life of a client: redis/client.h. */
#include "redis/conn.h"
#include "redis/connect.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/detail.h"
#include "redis/err.h"

enum {
    MAGIC = 0x48664331,
    OUT_MAX = 256 << 20 /* bytes of requests that have not left yet */
};

static void check(const hf_client *client)
{
    HF_ASSERT(client != NULL && client->magic == MAGIC && client->phase != CLIENT_CLOSED);
}

static void tell(hf_client *client)
{
    if (client->on_event != NULL)
        client->on_event(client, client->err, client->detail, client->arg);
}

static void on_handle_closed(uv_handle_t *handle)
{
    hf_conn_handle_closed(handle->data);
}

static void close_handles(hf_client *client)
{
    uv_close((uv_handle_t *)&client->timer, on_handle_closed);
    uv_close((uv_handle_t *)&client->deadline, on_handle_closed);
    uv_close((uv_handle_t *)&client->soon, on_handle_closed);
    uv_close((uv_handle_t *)&client->seat.news, on_handle_closed);
}

static void on_soon(uv_idle_t *soon)
{
    hf_client *client = soon->data;
    uv_idle_stop(soon);
    if (client->lost) {
        client->lost = false;
        hf_request_fail_all(client, client->detail);
        if (client->phase != CLIENT_CLOSED) {
            hf_connect_wait(client);
            tell(client);
        }
    }
    if (client->phase == CLIENT_CLOSED) {
        hf_request_fail_all(client, "the client was closed");
        close_handles(client);
        return;
    }
    hf_request_flush(client);
}

void hf_client_flush(hf_client *client)
{
    check(client);
    if (client->lost || !hf_client_ready(client))
        return; /* there is more to do soon than that */
    uv_idle_stop(&client->soon);
    hf_request_flush(client);
}

/* ---- its server has news ---- */

/* The address leads elsewhere: a look-up that is under way would find the old one. */
static void on_drop(hf_client *client)
{
    client->failures = 0;
    if (client->resolve != NULL)
        hf_resolve_drop(client->resolve);
    client->resolve = NULL;
    if (client->phase != CLIENT_WAIT)
        hf_conn_lose(client, HF_CONN, "the address leads to another server now");
    else if (!client->lost)
        hf_connect_wait(client);
}

static void on_news(uv_async_t *news)
{
    hf_client *client = news->data;
    if (client->phase == CLIENT_CLOSED)
        return;
    hf_connect_on_news(client);
    if (client->drops != atomic_load(&client->redis->drops)) {
        on_drop(client);
        return;
    }
    hf_err err =
        client->phase != CLIENT_READY
            ? HF_OK
            : hf_server_has_left(client->redis, &client->server, client->ready_ns);
    if (err == HF_OK)
        return;
    const char *why = err == HF_READONLY ? "another connection found a replica here"
                                         : "another connection was led to another server";
    if (client->blocks) {
        hf_conn_lose(client, err, why);
    } else {
        hf_conn_drain(client, err, why);
        hf_conn_drained(client);
    }
}

/* ---- life ---- */

static hf_err start_handles(hf_client *client)
{
    if (hf_random_bytes(&client->rng, sizeof client->rng) != HF_OK ||
        uv_async_init(client->loop, &client->seat.news, on_news) != 0)
        return HF_SYSTEM;
    /* These initialise memory; they cannot fail. */
    uv_idle_init(client->loop, &client->soon);
    uv_timer_init(client->loop, &client->timer);
    uv_timer_init(client->loop, &client->deadline);
    client->soon.data = client->timer.data = client->deadline.data = client;
    client->seat.news.data = client;
    client->handles = 4;
    client->deadline_ns = UINT64_MAX;
    return HF_OK;
}

hf_err hf_client_open(hf_client **out, const hf_client_opts *opts,
                      char detail[HF_DETAIL_SIZE])
{
    hf_client *client = calloc(1, sizeof *client);
    if (client == NULL)
        return hf_say_err(detail, HF_NOMEM);
    client->loop = opts->loop;
    client->redis = opts->redis;
    client->on_push = opts->on_push;
    client->blocks = opts->blocks;
    client->on_event = opts->on_event;
    client->arg = opts->arg;
    client->on_soon = on_soon;
    if (start_handles(client) != HF_OK) {
        free(client);
        return hf_say_err(detail, HF_SYSTEM);
    }
    hf_server_join(client->redis, &client->seat);
    /* The server that Sentinels name must be a primary. */
    client->replica_ok = opts->replica_ok && client->redis->url.sentinel.n_nodes == 0;
    snprintf(client->place, sizeof client->place, "%s", client->redis->place);
    client->magic = MAGIC;
    hf_buf_init(&client->out, OUT_MAX);
    client->err = HF_CONN;
    snprintf(client->detail, sizeof client->detail, "not connected yet");
    /* Not here and now: an event must not come before the caller has *out. */
    uv_timer_start(&client->timer, hf_connect_on_timer, 0, 0);
    *out = client;
    return HF_OK;
}

void hf_client_close(hf_client *client, void (*cb)(void *arg), void *arg)
{
    if (client == NULL)
        return;
    check(client);
    hf_server_leave(client->redis, &client->seat);
    hf_conn_drop_link(client);
    if (client->resolve != NULL)
        hf_resolve_drop(client->resolve);
    if (client->watch != NULL)
        hf_sentinel_close(client->watch);
    client->phase = CLIENT_CLOSED;
    client->close_cb = cb;
    client->close_arg = arg;
    hf_conn_soon(client);
}

bool hf_client_ready(const hf_client *client)
{
    check(client);
    return hf_conn_is_ready(client);
}

bool hf_client_was_idle(const hf_client *client)
{
    check(client);
    return client->was_idle;
}

unsigned hf_client_lacks(const hf_client *client)
{
    check(client);
    return atomic_load(&client->redis->lacks);
}

size_t hf_client_in_flight(const hf_client *client)
{
    check(client);
    return client->flight.n;
}

bool hf_client_is_new(const hf_client *client)
{
    check(client);
    return !hf_conn_was_ready(client) && client->failures == 0 &&
           client->server.client_id == 0;
}

hf_err hf_client_status(const hf_client *client)
{
    check(client);
    return client->err;
}

bool hf_client_is_refused(const hf_client *client)
{
    check(client);
    return hf_err_is(client->err, HF_ERR_LASTS);
}

const char *hf_client_detail(const hf_client *client)
{
    check(client);
    return client->detail;
}

const hf_server_info *hf_client_server(const hf_client *client)
{
    check(client);
    return &client->server;
}

uv_loop_t *hf_client_loop(const hf_client *client)
{
    check(client);
    return client->loop;
}

uint64_t hf_client_life(const hf_client *client)
{
    check(client);
    return client->life;
}

void hf_client_stood_still(hf_client *client)
{
    if (client->redis->url.sentinel.n_nodes > 0)
        hf_client_reset(client);
}

void hf_client_reset(hf_client *client)
{
    check(client);
    if (client->link != NULL)
        hf_conn_lose(client, HF_CONN, "the connection was reset on request");
}
