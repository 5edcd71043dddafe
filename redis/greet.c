/* greet.c - from a connection to READY.
 *
 * AUTH, SELECT, CLIENT ID and INFO are sent at once. If Redis does not permit one of the
 * last two, HELLO tells the id, the version and the role: no user can be refused it. Then
 * the connections of ours that this server may still take for alive are killed, before
 * anything is asked of it on this one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "base/base.h"
#include "base/clock.h"
#include "redis/conn.h"
#include "redis/greet.h"
#include "redis/info.h"
#include "redis/reply.h"

static hf_bytes text_bytes(const char *text)
{
    return (hf_bytes){text, strlen(text)};
}

/* A command of ours. If it cannot be buffered, the connection ends. */
static void ask(hf_client *client, hf_answer_cb cb, const hf_bytes *words, size_t n)
{
    const hf_call call = {.args = words, .n_args = n, .cb = cb, .arg = client};
    hf_err err = hf_request_put(client, &call, HF_NO_DEADLINE);
    if (err != HF_OK)
        hf_conn_lose(client, err, hf_err_text(err));
}

/* True if the answer is none, and the reason is known already. */
static bool is_over(const hf_client *client, const hf_answer *answer)
{
    return answer->err == HF_UNSURE || client->phase != CLIENT_GREET;
}

static bool is_noperm(const hf_answer *answer)
{
    return strncmp(answer->detail, "NOPERM", 6) == 0;
}

static void on_auth(const hf_answer *answer, void *arg)
{
    hf_client *client = arg;
    if (is_over(client, answer) || answer->err == HF_OK)
        return;
    hf_err err = answer->err == HF_REDIS ? HF_AUTH : answer->err;
    /* A server that does not know AUTH repeats its arguments, or the beginning of them.
     */
    bool tells = strncmp(answer->detail, "ERR unknown", 11) == 0 ||
                 strstr(answer->detail, client->redis->url.password) != NULL;
    hf_conn_lose(client, err, tells ? "AUTH was refused" : answer->detail);
}

static void on_select(const hf_answer *answer, void *arg)
{
    hf_client *client = arg;
    char why[HF_DETAIL_SIZE];
    if (is_over(client, answer) || answer->err == HF_OK)
        return;
    (void)snprintf(why, sizeof why,
                   "expected a database that this Redis has, found %d (%s)",
                   client->redis->url.db, answer->detail);
    if (answer->err == HF_REDIS)
        hf_conn_lose(client, HF_CONFIG, why);
    else
        hf_conn_lose(client, answer->err, answer->detail);
}

static void on_id(const hf_answer *answer, void *arg)
{
    hf_client *client = arg;
    if (is_over(client, answer))
        return;
    if (is_noperm(answer))
        return; /* HELLO tells it */
    if (answer->err != HF_OK)
        hf_conn_lose(client, answer->err, answer->detail);
    else if (answer->reply->type != REDIS_REPLY_INTEGER)
        hf_conn_lose(client, HF_PROTO, "CLIENT ID was not answered with a number");
    else
        client->greeting.client_id = answer->reply->integer;
}

static void on_kill(const hf_answer *answer, void *arg)
{
    hf_client *client = arg;
    if (answer->err == HF_UNSURE)
        return;
    if (is_noperm(answer))
        atomic_fetch_or(&client->redis->lacks, HF_LACKS_KILL);
    /* The answer does not matter: the connection is dead, was dead, or we lack the
     * permission. */
    for (size_t i = 1; i < client->n_old_ids; i++)
        client->old_ids[i - 1] = client->old_ids[i];
    client->n_old_ids--;
}

/* A server that has lived all the time still has the same connection behind the same id.
 */
static void kill_old_connections(hf_client *client)
{
    if (client->greeting.run_id[0] == '\0' ||
        strcmp(client->greeting.run_id, client->server.run_id) != 0)
        client->n_old_ids = 0;
    for (size_t i = 0; i < client->n_old_ids && client->phase == CLIENT_GREET; i++) {
        char id[24];
        snprintf(id, sizeof id, "%lld", (long long)client->old_ids[i]);
        const hf_bytes words[] = {text_bytes("CLIENT"), text_bytes("KILL"),
                                  text_bytes("ID"), text_bytes(id)};
        ask(client, on_kill, words, HF_COUNT(words));
    }
}

static void become_ready(hf_client *client)
{
    kill_old_connections(client);
    if (client->phase != CLIENT_GREET)
        return;
    client->server = client->greeting;
    client->phase = CLIENT_READY;
    client->in_vain = false;
    if (client->err != HF_READONLY)
        client->failures = 0; /* else when it has lasted */
    client->life = hf_server_greeted(client->redis, &client->server, &client->ready_ns);
    client->err = HF_OK;
    snprintf(client->detail, sizeof client->detail, "%.160s: connected", client->place);
    uv_timer_stop(&client->timer);
    if (client->on_event != NULL)
        client->on_event(client, HF_OK, client->detail, client->arg);
}

/* May this server be used, as far as it is known? */
static void judge(hf_client *client)
{
    const hf_server_info *info = &client->greeting;
    if (info->client_id == 0)
        atomic_fetch_or(&client->redis->lacks, HF_LACKS_ID);
    bool is_replica = strcmp(info->role, "slave") == 0;
    if (is_replica)
        hf_server_is_replica(client->redis, info->run_id);
    if (info->version[0] != '\0' && !hf_info_new_enough(info->version)) {
        char why[HF_DETAIL_SIZE];
        snprintf(why, sizeof why, "expected Redis 6.2 or newer, found %s", info->version);
        hf_conn_lose(client, HF_UNSUPPORTED, why);
    } else if (info->in_cluster && !client->redis->in_cluster) {
        hf_conn_lose(client, HF_CONFIG,
                     "expected redis+cluster:// or rediss+cluster:// before the "
                     "address, because it is a node of a cluster");
    } else if (info->loading) {
        hf_conn_lose(client, HF_LOADING, "LOADING Redis is loading its data");
    } else if (is_replica && client->redis->url.sentinel.n_nodes > 0) {
        hf_conn_lose(client, HF_CONN,
                     "expected a primary, found a replica that a "
                     "Sentinel takes for one");
    } else if (!client->replica_ok && is_replica) {
        hf_conn_lose(client, HF_READONLY, "expected a primary, found a replica");
    } else {
        become_ready(client);
    }
}

static void read_hello(const hf_reply *reply, hf_server_info *info)
{
    for (size_t i = 0; i + 1 < hf_reply_len(reply); i += 2) {
        const char *name = hf_reply_text(hf_reply_at(reply, i));
        const hf_reply *value = hf_reply_at(reply, i + 1);
        if (strcmp(name, "id") == 0)
            info->client_id = hf_reply_int(value);
        else if (strcmp(name, "version") == 0)
            snprintf(info->version, sizeof info->version, "%s", hf_reply_text(value));
        else if (strcmp(name, "mode") == 0)
            info->in_cluster = strcmp(hf_reply_text(value), "cluster") == 0;
        else if (strcmp(name, "role") == 0) /* here INFO's word */
            snprintf(info->role, sizeof info->role, "%s",
                     strcmp(hf_reply_text(value), "replica") == 0 ? "slave" : "master");
    }
}

/* A server without HELLO, or one that hides it, is not known, and served all the same. */
static void on_hello(const hf_answer *answer, void *arg)
{
    hf_client *client = arg;
    if (is_over(client, answer))
        return;
    read_hello(answer->reply, &client->greeting);
    judge(client);
}

static void on_info(const hf_answer *answer, void *arg)
{
    hf_client *client = arg;
    if (is_over(client, answer))
        return;
    if (is_noperm(answer)) {
        atomic_fetch_or(&client->redis->lacks, HF_LACKS_INFO);
    } else if (answer->err != HF_OK) {
        hf_conn_lose(client, answer->err, answer->detail);
        return;
    } else {
        hf_info_parse(hf_reply_text(answer->reply), &client->greeting);
        if (client->greeting.version[0] == '\0') {
            hf_conn_lose(client, HF_PROTO, "INFO was not answered with a redis_version");
            return;
        }
    }
    const hf_bytes words[] = {text_bytes("HELLO"), text_bytes("2")};
    if (client->greeting.client_id == 0 || is_noperm(answer))
        ask(client, on_hello, words, HF_COUNT(words));
    else
        judge(client);
}

/* There is no client 0: the answer is 0, or that this is not permitted. */
static void on_unblock(const hf_answer *answer, void *arg)
{
    hf_client *client = arg;
    if (is_over(client, answer))
        return;
    if (is_noperm(answer))
        atomic_fetch_or(&client->redis->lacks, HF_LACKS_UNBLOCK);
    else
        atomic_fetch_and(&client->redis->lacks, ~(unsigned)HF_LACKS_UNBLOCK);
}

static void send_auth(hf_client *client)
{
    const hf_url *url = &client->redis->url;
    hf_bytes words[3] = {text_bytes("AUTH")};
    size_t n = 1;
    if (url->user[0] != '\0')
        words[n++] = text_bytes(url->user);
    words[n++] = text_bytes(url->password);
    ask(client, on_auth, words, n);
}

static void send_select(hf_client *client)
{
    char db[16];
    snprintf(db, sizeof db, "%d", client->redis->url.db);
    const hf_bytes words[] = {text_bytes("SELECT"), text_bytes(db)};
    ask(client, on_select, words, HF_COUNT(words));
}

void hf_greet_begin(hf_client *client)
{
    client->greeting = (hf_server_info){.size = sizeof client->greeting};
    client->load_err = HF_OK;
    const hf_bytes id[] = {text_bytes("CLIENT"), text_bytes("ID")};
    const hf_bytes unblock[] = {text_bytes("CLIENT"), text_bytes("UNBLOCK"),
                                text_bytes("0")};
    const hf_bytes info[] = {text_bytes("INFO")};
    if (client->redis->url.password[0] != '\0')
        send_auth(client);
    /* After a failure the client is no longer in this phase. */
    if (client->phase == CLIENT_GREET && client->redis->url.db != 0)
        send_select(client);
    if (client->phase == CLIENT_GREET)
        ask(client, on_id, id, HF_COUNT(id));
    if (client->phase == CLIENT_GREET && client->blocks)
        ask(client, on_unblock, unblock, HF_COUNT(unblock));
    if (client->phase == CLIENT_GREET)
        ask(client, on_info, info, HF_COUNT(info));
}
