/* client.c - the life of a client: redis/connection.h. */
#include "redis/client_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/server_opts.h"
#include "base/tls_opts.h"

enum {
    MAGIC = 0x48664331,
    OUT_MAX = 256 << 20, /* bytes of requests that have not left yet */
    LASTED_MS = 2000     /* a connection that was of use */
};

static const char default_url[] = "redis://localhost:6379/0";

static void check(const hf_client *client)
{
    HF_ASSERT(client != NULL && client->magic == MAGIC && client->phase != CLIENT_CLOSED);
}

static void set_status(hf_client *client, hf_err err, const char *why)
{
    char text[HF_DETAIL_SIZE]; /* `why` may be the very text that is written over */
    snprintf(text, sizeof text, "%.160s: %s", client->place, why);
    client->err = err;
    snprintf(client->detail, sizeof client->detail, "%s", text);
}

static bool was_ready(const hf_client *client)
{
    return client->phase == CLIENT_READY || client->phase == CLIENT_DRAIN;
}

static void tell(hf_client *client)
{
    if (client->on_event != NULL)
        client->on_event(client, client->err, client->detail, client->arg);
}

void hf_client_handle_closed(void *arg)
{
    hf_client *client = arg;
    if (--client->handles > 0)
        return;
    void (*cb)(void *) = client->close_cb;
    void *cb_arg = client->close_arg;
    hf_url_wipe(&client->url);
    free(client->tls);
    hf_buf_done(&client->out);
    hf_flight_done(&client->flight);
    client->magic = 0;
    free(client);
    if (cb != NULL)
        cb(cb_arg);
}

static void on_handle_closed(uv_handle_t *handle)
{
    hf_client_handle_closed(handle->data);
}

static void close_handles(hf_client *client)
{
    uv_close((uv_handle_t *)&client->timer, on_handle_closed);
    uv_close((uv_handle_t *)&client->deadline, on_handle_closed);
    uv_close((uv_handle_t *)&client->soon, on_handle_closed);
}

static void on_soon(uv_idle_t *soon)
{
    hf_client *client = soon->data;
    uv_idle_stop(soon);
    if (client->lost) {
        client->lost = false;
        hf_call_fail_all(client, client->detail);
        if (client->phase != CLIENT_CLOSED) {
            hf_connect_wait(client);
            tell(client);
        }
    }
    if (client->phase == CLIENT_CLOSED) {
        hf_call_fail_all(client, "the client was closed");
        close_handles(client);
        return;
    }
    hf_call_flush(client);
}

void hf_client_soon(hf_client *client)
{
    uv_idle_start(&client->soon, on_soon); /* does nothing when it is active */
}

void hf_redis_flush(hf_client *client)
{
    check(client);
    if (client->lost || client->phase != CLIENT_READY)
        return; /* there is more to do soon than that */
    uv_idle_stop(&client->soon);
    hf_call_flush(client);
}

/* The server may not notice that this connection has gone, and goes on with what it sent.
 */
static void remember_old_id(hf_client *client)
{
    if (client->server.client_id == 0)
        return;
    if (client->n_old_ids == HF_OLD_IDS_MAX) {
        for (size_t i = 1; i < HF_OLD_IDS_MAX; i++)
            client->old_ids[i - 1] = client->old_ids[i];
        client->n_old_ids--;
    }
    client->old_ids[client->n_old_ids++] = client->server.client_id;
}

void hf_client_drop_link(hf_client *client)
{
    if (client->link == NULL)
        return;
    if (was_ready(client))
        remember_old_id(client);
    hf_link_drop(client->link);
    client->link = NULL;
    hf_buf_clear(&client->out);
    client->out_given = 0;
    client->repairing = NULL;
    uv_timer_stop(&client->deadline);
    client->deadline_ns = UINT64_MAX;
    client->overdue = false;
}

/* For the reason that its status says. */
static void lose(hf_client *client)
{
    if (was_ready(client) && hf_boot_ns() - client->ready_ns >= LASTED_MS * HF_MS_NS)
        client->failures = 0;
    hf_client_drop_link(client);
    client->phase = CLIENT_WAIT;
    uv_timer_stop(&client->timer);
    client->failures++;
    client->lost = true;
    hf_client_soon(client);
}

void hf_client_lose(hf_client *client, hf_err err, const char *why)
{
    set_status(client, err, why);
    lose(client);
}

void hf_client_drain(hf_client *client, hf_err err, const char *why)
{
    if (client->phase != CLIENT_READY)
        return;
    set_status(client, err, why);
    client->phase = CLIENT_DRAIN;
}

void hf_client_drained(hf_client *client)
{
    if (client->phase == CLIENT_DRAIN && client->flight.n == 0)
        lose(client);
}

static hf_err refuse(char *detail, hf_err err, const char *why)
{
    if (detail != NULL)
        snprintf(detail, HF_DETAIL_SIZE, "%s", why);
    return err;
}

/* 0 becomes the default. */
/* The files are read here as well, so that a bad one is told before anything starts. */
static hf_err take_tls(hf_client *client, const hf_tls_opts *opts, char *detail)
{
    if (opts == NULL && !client->url.tls)
        return HF_OK;
    if (!client->url.tls)
        return refuse(detail, HF_CONFIG, "TLS options need a URL with rediss://");
    if (opts != NULL && (client->tls = hf_tls_opts_copy(opts)) == NULL)
        return refuse(detail, HF_NOMEM, hf_err_text(HF_NOMEM));
    return hf_tls_check(client->tls, detail);
}

/* Everything about the options that can be wrong. */
static hf_err take_options(hf_client *client, const hf_client_opts *opts, char *detail)
{
    if (opts->loop == NULL)
        return refuse(detail, HF_INVALID, "a client needs a loop");
    char why[HF_DETAIL_SIZE];
    hf_server_opts server = opts->server;
    hf_err err = hf_server_opts_fill(&server, why);
    if (err == HF_OK)
        err = hf_url_parse(&client->url, server.url == NULL ? default_url : server.url,
                           why);
    if (err == HF_OK && server.password_file != NULL)
        err = hf_url_read_password(&client->url, server.password_file, why);
    if (err != HF_OK)
        return refuse(detail, err, why);
    if (client->url.user[0] != '\0' && client->url.password[0] == '\0')
        return refuse(detail, HF_INVALID,
                      "the URL names a user, and there is no password");
    err = take_tls(client, server.tls, why);
    if (err != HF_OK)
        return refuse(detail, err, why);
    hf_url_place(&client->url, client->place);
    client->connect_timeout_ms = server.connect_timeout_ms;
    client->request_timeout_ms = server.request_timeout_ms;
    client->loop = opts->loop;
    client->replica_ok = opts->replica_ok;
    client->on_event = opts->on_event;
    client->arg = opts->arg;
    return HF_OK;
}

static void start_handles(hf_client *client)
{
    /* These initialise memory; they cannot fail. */
    uv_idle_init(client->loop, &client->soon);
    uv_timer_init(client->loop, &client->timer);
    uv_timer_init(client->loop, &client->deadline);
    client->soon.data = client->timer.data = client->deadline.data = client;
    client->handles = 3;
    client->deadline_ns = UINT64_MAX;
}

hf_err hf_client_open(hf_client **out, const hf_client_opts *opts,
                      char detail[HF_DETAIL_SIZE])
{
    hf_client *client = calloc(1, sizeof *client);
    if (client == NULL)
        return refuse(detail, HF_NOMEM, hf_err_text(HF_NOMEM));
    hf_err err = take_options(client, opts, detail);
    if (err == HF_OK && hf_random_bytes(&client->rng, sizeof client->rng) != HF_OK)
        err = refuse(detail, HF_SYSTEM, "the system gives no random numbers");
    if (err != HF_OK) {
        hf_url_wipe(&client->url);
        free(client->tls);
        free(client);
        return err;
    }
    client->magic = MAGIC;
    hf_buf_init(&client->out, OUT_MAX);
    client->err = HF_CONN;
    snprintf(client->detail, sizeof client->detail, "not connected yet");
    start_handles(client);
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
    hf_client_drop_link(client);
    if (client->resolve != NULL)
        hf_resolve_drop(client->resolve);
    client->phase = CLIENT_CLOSED;
    client->close_cb = cb;
    client->close_arg = arg;
    hf_client_soon(client);
}

bool hf_client_ready(const hf_client *client)
{
    check(client);
    return client->phase == CLIENT_READY;
}

unsigned hf_client_lacks(const hf_client *client)
{
    check(client);
    return client->lacks;
}

size_t hf_client_in_flight(const hf_client *client)
{
    check(client);
    return client->flight.n;
}

bool hf_client_is_new(const hf_client *client)
{
    check(client);
    return !was_ready(client) && client->failures == 0 && client->server.client_id == 0;
}

hf_err hf_client_status(const hf_client *client)
{
    check(client);
    return client->err;
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

void hf_client_reset(hf_client *client)
{
    check(client);
    if (client->link != NULL)
        hf_client_lose(client, HF_CONN, "the connection was reset on request");
}

/* ---- two clients of one URL ---- */

bool hf_client_is_behind(const hf_client *client, const hf_client *other)
{
    check(client);
    check(other);
    /* Of the greeting: it may have told that it is a replica's. */
    const char *mine = client->server.run_id, *theirs = other->greeting.run_id;
    bool known = mine[0] != '\0' && theirs[0] != '\0';
    if (client->phase != CLIENT_READY || !known)
        return false;
    if (other->err == HF_READONLY)
        return strcmp(mine, theirs) == 0;
    return other->phase == CLIENT_READY && other->ready_ns > client->ready_ns &&
           strcmp(mine, theirs) != 0;
}

void hf_client_follow(hf_client *client, const hf_client *other)
{
    if (!hf_client_is_behind(client, other))
        return;
    if (other->err == HF_READONLY)
        hf_client_drain(client, HF_READONLY, "another connection found a replica here");
    else
        hf_client_drain(client, HF_CONN, "another connection was led to another server");
    hf_client_drained(client);
}
