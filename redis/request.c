/* request.c - requests, answers and deadlines: the sending half of redis/request.h.
 *
 * Invariant: every request that hf_request_put() took is in `flight` until its callback
 * is called, and leaves it before that. Its bytes are behind those of all before it, in
 * `out` or in the link. */
#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "base/base.h"
#include "base/clock.h"
#include "redis/conn.h"
#include "redis/err.h"
#include "redis/reply.h"

enum {
    DIGITS_MAX = 20,
    OUT_KEEP = 4 << 20, /* bytes of memory that `out` may keep while it is empty */
    LAST_LOOK_MS = 1
};

static size_t put_digits(char *out, uint64_t value)
{
    char digits[DIGITS_MAX];
    size_t n = 0;
    do {
        digits[n++] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    for (size_t i = 0; i < n; i++)
        out[i] = digits[n - 1 - i];
    return n;
}

/* "*3\r\n" or "$7\r\n". */
static char *put_header(char *at, char kind, size_t n)
{
    *at++ = kind;
    at += put_digits(at, n);
    *at++ = '\r';
    *at++ = '\n';
    return at;
}

static char *put_bulk(char *at, const void *data, size_t len)
{
    at = put_header(at, '$', len);
    if (len > 0)
        memcpy(at, data, len);
    at += len;
    *at++ = '\r';
    *at++ = '\n';
    return at;
}

static char *put_all(char *at, const hf_bytes *parts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        at = put_bulk(at, parts[i].ptr, parts[i].len);
    return at;
}

enum { BULK_EXTRA = DIGITS_MAX + 5 }; /* "$", the digits, and twice CR LF, at most */

/* At least what the request takes. */
static size_t room_for(const hf_call *call)
{
    size_t n = (call->n_keys + call->n_args + 4) * BULK_EXTRA + DIGITS_MAX;
    if (call->script != NULL)
        n += strlen("EVALSHA") + strlen(call->script->sha1);
    for (size_t i = 0; i < call->n_keys; i++)
        n += call->keys[i].len;
    for (size_t i = 0; i < call->n_args; i++)
        n += call->args[i].len;
    return n;
}

/* Puts the request behind the others. On failure nothing of it is there. */
static hf_err format(hf_buf *out, const hf_call *call)
{
    char *start = hf_buf_room(out, room_for(call));
    if (start == NULL) {
        hf_err err = hf_buf_err(out);
        out->err = HF_OK; /* this request is refused; the next may be smaller */
        return err;
    }
    char *at = start;
    if (call->script != NULL) {
        char n_keys[DIGITS_MAX];
        at = put_header(at, '*', 3 + call->n_keys + call->n_args);
        at = put_bulk(at, "EVALSHA", strlen("EVALSHA"));
        at = put_bulk(at, call->script->sha1, strlen(call->script->sha1));
        at = put_bulk(at, n_keys, put_digits(n_keys, call->n_keys));
        at = put_all(at, call->keys, call->n_keys);
    } else {
        at = put_header(at, '*', call->n_args);
    }
    at = put_all(at, call->args, call->n_args);
    hf_buf_took(out, (size_t)(at - start));
    return HF_OK;
}

/* The timer runs for the earliest deadline, or for one before it: it is not started again
 * when a request is answered, only when an earlier deadline comes. */
static void watch_deadline(hf_client *client, uint64_t deadline_ns, uint64_t now_ns)
{
    if (deadline_ns >= client->deadline_ns)
        return;
    client->deadline_ns = deadline_ns;
    uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    uv_timer_start(&client->deadline, hf_request_on_deadline, left_ns / HF_MS_NS + 1, 0);
}

hf_err hf_request_put(hf_client *client, const hf_call *call, uint32_t timeout_ms)
{
    uint64_t now = hf_boot_ns();
    const hf_flight_item item = {.cb = call->cb,
                                 .arg = call->arg,
                                 .script = call->script,
                                 .sent_ns = now,
                                 .deadline_ns = timeout_ms == HF_NO_DEADLINE
                                                    ? UINT64_MAX
                                                    : now + timeout_ms * HF_MS_NS};
    /* Sent bytes are cut off when that saves more memory than it costs work. */
    if (client->out_given > client->out.len / 2) {
        hf_buf_cut(&client->out, client->out_given);
        client->out_given = 0;
    }
    size_t before = client->out.len;
    hf_err err = format(&client->out, call);
    if (err != HF_OK)
        return err;
    err = hf_flight_push(&client->flight, &item);
    if (err != HF_OK) {
        client->out.len = before;
        return err;
    }
    watch_deadline(client, item.deadline_ns, now);
    hf_conn_soon(client);
    return HF_OK;
}

hf_err hf_request_send(hf_client *client, const hf_call *call)
{
    HF_ASSERT(call->cb != NULL && (call->script != NULL || call->n_args > 0));
    if (!hf_conn_is_ready(client))
        return HF_CONN;
    uint32_t timeout_ms =
        call->timeout_ms == 0 ? client->redis->request_timeout_ms : call->timeout_ms;
    return hf_request_put(client, call, timeout_ms);
}

void hf_request_flush(hf_client *client)
{
    size_t left = client->out.len - client->out_given;
    if (client->link == NULL || left == 0 ||
        client->drops != atomic_load(&client->redis->drops))
        return;
    client->out_given +=
        hf_link_write(client->link, client->out.data + client->out_given, left);
    if (client->out_given < client->out.len)
        return;
    client->out_given = 0;
    if (client->out.cap > OUT_KEEP)
        hf_buf_done(&client->out);
    else
        hf_buf_clear(&client->out);
}

static void on_loaded(const hf_answer *answer, void *arg)
{
    hf_client *client = arg;
    if (answer->err == HF_UNSURE)
        return; /* the connection is gone, with its requests */
    client->repairing = NULL;
    client->load_err = answer->err;
    snprintf(client->load_why, sizeof client->load_why, "%s", answer->detail);
}

/* After NOSCRIPT the client loads the script, and the next request finds it. Many such
 * answers may come one after the other; one load is enough for them. An answer after a
 * load that was refused gives that reason, and loads again: the permission may have
 * come. */
static void load_again(hf_client *client, const hf_script *script)
{
    if (client->phase != CLIENT_READY || client->repairing == script)
        return;
    const hf_bytes words[] = {{"SCRIPT", strlen("SCRIPT")},
                              {"LOAD", strlen("LOAD")},
                              {script->text, script->len}};
    const hf_call call = {
        .args = words, .n_args = HF_COUNT(words), .cb = on_loaded, .arg = client};
    /* If it cannot be sent, asking again gives NOSCRIPT again, and tries this again. */
    if (hf_request_send(client, &call) == HF_OK)
        client->repairing = script;
}

/* A server that is used alone has no other node to go to: these are its errors. */
static hf_err class_of(const hf_client *client, const char *words)
{
    hf_err err = hf_reply_class(words);
    bool of_cluster = hf_err_is(err, HF_ERR_OF_CLUSTER);
    return of_cluster && !client->redis->in_cluster ? HF_REDIS : err;
}

void hf_request_on_reply(void *owner, const redisReply *reply)
{
    hf_client *client = owner;
    hf_flight_item item;
    if (!hf_flight_pop(&client->flight, &item)) {
        if (client->on_push != NULL && client->phase == CLIENT_READY) {
            client->on_push(client, client->arg);
            return;
        }
        bool words = reply->type == REDIS_REPLY_ERROR;
        hf_conn_lose(client, words ? hf_reply_class(reply->str) : HF_PROTO,
                     words ? reply->str : "an answer without a request");
        return;
    }
    hf_answer answer = {
        .err = HF_OK, .reply = reply, .detail = "", .sent_ns = item.sent_ns};
    if (reply->type == REDIS_REPLY_ERROR) {
        answer.err = class_of(client, reply->str);
        answer.reply = NULL;
        answer.detail = reply->str;
        if (answer.err == HF_NOSCRIPT && item.script != NULL) {
            load_again(client, item.script);
            if (client->load_err != HF_OK) {
                answer.err = client->load_err;
                answer.detail = client->load_why;
            }
        }
        if (answer.err == HF_READONLY) { /* first: its callback may want to ask again */
            hf_server_is_replica(client->redis, client->server.run_id);
            hf_conn_drain(client, HF_READONLY, reply->str);
        }
    }
    item.cb(&answer, item.arg);
    hf_conn_drained(client);
}

void hf_request_fail_all(hf_client *client, const char *why)
{
    hf_flight_item item;
    while (hf_flight_pop(&client->flight, &item)) {
        const hf_answer answer = {
            .err = HF_UNSURE, .reply = NULL, .detail = why, .sent_ns = item.sent_ns};
        item.cb(&answer, item.arg);
    }
}

/* A deadline has passed. If this whole process was stopped meanwhile, the answer is there
 * and was not read: libuv calls timers before it looks at sockets. So it gets one more
 * look. */
void hf_request_on_deadline(uv_timer_t *timer)
{
    hf_client *client = timer->data;
    uint64_t now = hf_boot_ns();
    uint64_t earliest = hf_flight_deadline_ns(&client->flight);
    client->deadline_ns = UINT64_MAX;
    if (earliest > now) {
        client->overdue = false;
        watch_deadline(client, earliest, now);
        return;
    }
    if (!client->overdue) {
        client->overdue = true;
        client->deadline_ns = now;
        uv_timer_start(timer, hf_request_on_deadline, LAST_LOOK_MS, 0);
        return;
    }
    client->overdue = false;
    hf_conn_lose(client, HF_CONN, "no answer within the request's time");
}
