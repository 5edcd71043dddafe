/* sentinel.c - see sentinel.h.
 *
 * A Sentinel is spoken to by an ordinary client, which has the deadlines, the names, the
 * login and TLS. It is closed at its first failure, not tried again: the next Sentinel
 * comes first. */
#include "redis/sentinel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/base.h"
#include "base/random.h"
#include "redis/request.h"

enum {
    EACH_MS = 1000,  /* from an answer to the next request */
    ANSWER_MS = 500, /* a Sentinel that is connected has this long for an answer */
    WHY_SIZE = 200
};

static const hf_backoff delays = {
    .shape = HF_SHAPE_EXPONENTIAL, .base_ms = 50, .cap_ms = 1200, .jitter = 0.25};

typedef enum sentinel_state {
    BACKOFF,    /* no Sentinel has named a primary; until the timer ends */
    CONNECTING, /* to node `at` */
    ASKING,     /* node `at` owes an answer */
    READY,      /* node `at` is connected; it is asked again when the timer ends */
    CLOSED
} sentinel_state;

struct hf_sentinel {
    uv_loop_t *loop;        /* borrowed */
    const hf_server *redis; /* borrowed: with the URL of the Sentinels */
    const hf_sentinel_hooks *hooks;
    void *owner;

    sentinel_state state;
    uv_timer_t timer;
    size_t at;      /* the node that is asked */
    size_t in_vain; /* nodes that were asked since the last answer or backoff */
    /* One that is neither is being closed: nothing that it says counts. */
    hf_client *asker;    /* NULL in BACKOFF and CLOSED */
    hf_client *listener; /* NULL: until the next answer */
    bool again;          /* the answer that comes may be too old: ask once more */
    bool doubted;        /* what node `at` said was of no use */
    hf_err err;          /* of this round: the reason that tells most */
    char why[WHY_SIZE];
    uint32_t failures; /* failed rounds since the last answer */
    hf_rng rng;
    unsigned handles; /* on the loop: the timer, and the clients */
};

static void ask(hf_sentinel *s);

/* ---- connections ---- */

static void handle_closed(hf_sentinel *s)
{
    if (--s->handles > 0)
        return;
    const hf_sentinel_hooks *hooks = s->hooks;
    void *owner = s->owner;
    free(s);
    hooks->on_closed(owner);
}

static void on_timer_closed(uv_handle_t *timer)
{
    handle_closed(timer->data);
}

static void on_client_closed(void *arg)
{
    handle_closed(arg);
}

static void drop(hf_sentinel *s, hf_client **at)
{
    hf_client *client = *at;
    *at = NULL;
    s->hooks->close_client(client, on_client_closed, s);
}

/* Nothing of node `at` counts any more. */
static void leave_node(hf_sentinel *s)
{
    drop(s, &s->asker);
    drop(s, &s->listener);
    s->again = s->doubted = false;
    s->at = (s->at + 1) % s->redis->url.sentinel.n_nodes;
}

/* *out stays as it is after a failure. */
static hf_err connect_to(hf_sentinel *s, hf_client **out, hf_client_event_cb on_event,
                         void (*on_push)(hf_client *, void *), char why[HF_DETAIL_SIZE])
{
    const hf_url_sentinel *all = &s->redis->url.sentinel;
    const hf_place *node = &all->nodes[s->at];
    hf_url url = {.port = node->port, .tls = s->redis->url.tls};
    memcpy(url.host, node->host, sizeof url.host);
    memcpy(url.user, all->user, sizeof url.user);
    memcpy(url.password, all->password, sizeof url.password);
    const uint32_t node_ms = s->redis->connect_timeout_ms / (uint32_t)all->n_nodes + 1;
    hf_server *server;
    hf_err err = hf_server_open_at(&server, &url, s->redis->tls, node_ms, ANSWER_MS, why);
    hf_url_wipe(&url);
    if (err == HF_OK) {
        const hf_client_opts opts = {.loop = s->loop,
                                     .redis = server,
                                     .on_event = on_event,
                                     .on_push = on_push,
                                     .arg = s};
        err = s->hooks->open_client(out, &opts, why);
        hf_server_close(server); /* the connection holds it */
    }
    if (err == HF_OK)
        s->handles++;
    return err;
}

/* ---- the result of the answers ---- */

static void on_timer(uv_timer_t *timer)
{
    ask(timer->data);
}

static void ask_in(hf_sentinel *s, int64_t ms)
{
    /* It fails only for a handle that is being closed. */
    HF_ASSERT(uv_timer_start(&s->timer, on_timer, (uint64_t)ms, 0) == 0);
}

/* How well a reason explains the fault. */
static int weight(hf_err err)
{
    return err == HF_CONFIG ? 3 : err == HF_AUTH ? 2 : err == HF_OK ? 0 : 1;
}

static void back_off(hf_sentinel *s)
{
    hf_err err = s->err;
    s->in_vain = 0;
    s->err = HF_OK;
    ask_in(s, hf_backoff_ms(&delays, ++s->failures, &s->rng));
    s->hooks->on_vain(s->owner, err, s->why);
}

/* Node `at` names no primary. */
static void fail(hf_sentinel *s, hf_err err, const char *why)
{
    if (weight(err) >= weight(s->err)) {
        s->err = err;
        snprintf(s->why, sizeof s->why, "Sentinel %s", why);
    }
    leave_node(s);
    s->state = BACKOFF;
    if (++s->in_vain < s->redis->url.sentinel.n_nodes)
        ask(s);
    else
        back_off(s);
}

/* ---- listening ---- */

/* A Sentinel that does not permit it is asked each second all the same. */
static void on_subscribed(const hf_answer *answer, void *arg)
{
    if (answer->err == HF_OK)
        ask(arg); /* for what was published before */
}

static void subscribe(hf_sentinel *s, const char *channel)
{
    const hf_bytes words[] = {{"SUBSCRIBE", strlen("SUBSCRIBE")},
                              {channel, strlen(channel)}};
    const hf_call call = {
        .args = words, .n_args = HF_COUNT(words), .cb = on_subscribed, .arg = s};
    /* Without memory it is as if the Sentinel did not permit it. */
    (void)!hf_request_send(s->listener, &call);
}

/* The Sentinel that leads a failover names the new primary as soon as that one is
 * promoted; the others, and the message +switch-master, come later. */
static void on_listener(hf_client *client, hf_err err, const char *detail, void *arg)
{
    hf_sentinel *s = arg;
    (void)client;
    (void)detail;
    if (err != HF_OK) {
        drop(s, &s->listener);
        return;
    }
    subscribe(s, "+promoted-slave");
    subscribe(s, "+switch-master");
}

static void on_message(hf_client *client, void *arg)
{
    (void)client;
    ask(arg);
}

/* ---- asking ---- */

static bool read_place(const hf_reply *reply, hf_place *out)
{
    hf_bytes host = hf_reply_bytes(hf_reply_at(reply, 0));
    int64_t port = hf_reply_int(hf_reply_at(reply, 1));
    if (hf_reply_len(reply) != 2 || host.len == 0 || host.len > HF_URL_HOST_MAX ||
        memchr(host.ptr, '\0', host.len) != NULL || port < 1 || port > UINT16_MAX)
        return false;
    *out = (hf_place){.port = (uint16_t)port};
    memcpy(out->host, host.ptr, host.len);
    return true;
}

static void know(hf_sentinel *s, const hf_place *primary)
{
    s->state = READY;
    s->in_vain = s->failures = 0;
    s->err = HF_OK;
    ask_in(s, s->again ? 0 : EACH_MS);
    s->again = false;
    char unread[HF_DETAIL_SIZE];
    if (s->listener == NULL) /* else the next answer tries again */
        (void)!connect_to(s, &s->listener, on_listener, on_message, unread);
    s->hooks->on_primary(s->owner, primary);
}

/* The connection ended: its detail says where and why. */
static void on_answer(const hf_answer *answer, void *arg)
{
    hf_sentinel *s = arg;
    hf_place primary;
    char place[HF_URL_PLACE_SIZE], why[HF_DETAIL_SIZE];
    if (s->state != ASKING) /* it was dropped meanwhile */
        return;
    hf_url_place_text(&s->redis->url.sentinel.nodes[s->at], place);
    if (answer->err == HF_UNSURE) {
        fail(s, HF_CONN, answer->detail);
    } else if (answer->err != HF_OK) {
        snprintf(why, sizeof why, "%.160s: %.80s", place, answer->detail);
        fail(s, answer->err, why);
    } else if (hf_reply_is_nil(answer->reply)) {
        snprintf(why, sizeof why, "%.90s knows no master of the name `%s`", place,
                 s->redis->url.sentinel.master);
        fail(s, HF_CONFIG, why);
    } else if (!read_place(answer->reply, &primary)) {
        snprintf(why, sizeof why, "%.160s: expected a host and a port as answer", place);
        fail(s, HF_PROTO, why);
    } else {
        know(s, &primary);
    }
}

static hf_err request(hf_sentinel *s)
{
    static const char name[] = "GET-MASTER-ADDR-BY-NAME";
    const char *master = s->redis->url.sentinel.master;
    const hf_bytes words[] = {
        {"SENTINEL", strlen("SENTINEL")}, {name, strlen(name)}, {master, strlen(master)}};
    const hf_call call = {
        .args = words, .n_args = HF_COUNT(words), .cb = on_answer, .arg = s};
    return hf_request_send(s->asker, &call);
}

static void on_asker(hf_client *client, hf_err err, const char *detail, void *arg)
{
    hf_sentinel *s = arg;
    (void)client;
    s->state = READY;
    if (err == HF_OK)
        ask(s);
    else
        fail(s, err, detail);
}

static void ask(hf_sentinel *s)
{
    char why[HF_DETAIL_SIZE];
    hf_err err = HF_OK;
    if (s->doubted && s->state == READY) {
        leave_node(s);
        s->state = BACKOFF;
    }
    switch (s->state) {
    case BACKOFF:
        s->state = CONNECTING;
        err = connect_to(s, &s->asker, on_asker, NULL, why);
        break;
    case READY:
        s->state = ASKING;
        err = request(s);
        snprintf(why, sizeof why, "%s", hf_err_text(err));
        break;
    case ASKING:
        s->again = true;
        break;
    case CONNECTING: /* it asks when it is connected */
    case CLOSED:
        break;
    }
    if (err != HF_OK)
        fail(s, err, why);
}

/* ---- from outside ---- */

void hf_sentinel_again(hf_sentinel *s)
{
    ask_in(s, 0);
}

void hf_sentinel_doubt(hf_sentinel *s)
{
    s->doubted = true;
}

void hf_sentinel_close(hf_sentinel *s)
{
    leave_node(s);
    s->state = CLOSED;
    uv_close((uv_handle_t *)&s->timer, on_timer_closed);
}

hf_err hf_sentinel_open(hf_sentinel **out, uv_loop_t *loop, const hf_server *redis,
                        const hf_sentinel_hooks *hooks, void *owner)
{
    hf_sentinel *s = calloc(1, sizeof *s);
    if (s == NULL)
        return HF_NOMEM;
    *s = (hf_sentinel){.loop = loop, .redis = redis, .hooks = hooks, .owner = owner};
    hf_err err = hf_random_bytes(&s->rng, sizeof s->rng);
    if (err != HF_OK) {
        free(s);
        return err;
    }
    (void)uv_timer_init(loop, &s->timer); /* it only sets memory */
    s->timer.data = s;
    s->handles = 1;
    ask_in(s, 0);
    *out = s;
    return HF_OK;
}
