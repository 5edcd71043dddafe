/* conn.c - redis/conn.h. */
#include "redis/conn.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

enum { LASTED_MS = 2000 /* a connection that was of use */ };

bool hf_conn_is_ready(const hf_client *client)
{
    return client->phase == CLIENT_READY &&
           client->drops == atomic_load(&client->redis->drops);
}

bool hf_conn_was_ready(const hf_client *client)
{
    return client->phase == CLIENT_READY || client->phase == CLIENT_DRAIN;
}

void hf_conn_soon(hf_client *client)
{
    uv_idle_start(&client->soon, client->on_soon); /* does nothing when it is active */
}

static void set_status(hf_client *client, hf_err err, const char *why)
{
    char text[HF_DETAIL_SIZE]; /* `why` may be the very text that is written over */
    snprintf(text, sizeof text, "%.160s: %s", client->place, why);
    client->err = err;
    snprintf(client->detail, sizeof client->detail, "%s", text);
}

/* The server may not notice that this connection has gone, and may still execute its
 * requests. */
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

void hf_conn_drop_link(hf_client *client)
{
    if (client->link == NULL)
        return;
    if (hf_conn_was_ready(client))
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
    if (hf_conn_was_ready(client) &&
        hf_boot_ns() - client->ready_ns >= LASTED_MS * HF_MS_NS)
        client->failures = 0;
    client->was_idle = false;
    hf_conn_drop_link(client);
    client->phase = CLIENT_WAIT;
    uv_timer_stop(&client->timer);
    client->failures++;
    client->lost = true;
    hf_conn_soon(client);
}

void hf_conn_lose(hf_client *client, hf_err err, const char *why)
{
    set_status(client, err, why);
    lose(client);
}

void hf_conn_drain(hf_client *client, hf_err err, const char *why)
{
    if (client->phase != CLIENT_READY)
        return;
    set_status(client, err, why);
    client->phase = CLIENT_DRAIN;
}

void hf_conn_drained(hf_client *client)
{
    if (client->phase == CLIENT_DRAIN && client->flight.n == 0)
        lose(client);
}

void hf_conn_handle_closed(void *arg)
{
    hf_client *client = arg;
    if (--client->handles > 0)
        return;
    void (*cb)(void *) = client->close_cb;
    void *cb_arg = client->close_arg;
    hf_server_unref(client->redis);
    hf_buf_done(&client->out);
    hf_flight_done(&client->flight);
    client->magic = 0;
    free(client);
    if (cb != NULL)
        cb(cb_arg);
}
