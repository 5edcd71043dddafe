/* slot_watch.c - see slot_watch.h.
 *
 * A node is spoken to by an ordinary client, which has the deadlines, the names, the
 * login and TLS. It is closed after its answer or first failure: there is seldom a reason
 * to ask, and a new connection leads to no node that has gone. */
#include "redis/slot_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/base.h"
#include "base/clock.h"
#include "redis/request.h"

enum {
    EACH_MS = 1000,  /* from a round that was answered to the next, at least */
    SPREAD_MS = 250, /* and up to this much more */
    ANSWER_MS = 1000 /* a node that is connected has this long for an answer */
};

static const hf_backoff delays = {
    .shape = HF_SHAPE_EXPONENTIAL, .base_ms = 50, .cap_ms = 1200, .jitter = 0.25};

typedef enum watch_state {
    QUIET,      /* the table is trusted, or the timer ends this */
    CONNECTING, /* to place `at` */
    ASKING,     /* place `at` owes an answer */
    CLOSED
} watch_state;

struct hf_slot_watch {
    uv_loop_t *loop;        /* borrowed */
    const hf_server *given; /* borrowed */
    const hf_slot_hooks *hooks;
    void *owner;

    watch_state state;
    uv_timer_t timer;
    bool wanted;     /* an answer, to a question that has not been asked yet */
    uint64_t due_ns; /* no round begins before that */
    uint32_t failed; /* rounds in a row */
    hf_place nodes[HF_ASKED_MAX];
    size_t n, at;
    hf_client *asker; /* NULL in QUIET and CLOSED; what others say does not count */
    hf_slot_map map;
    hf_err err; /* of this round: the reason that tells most */
    char why[HF_DETAIL_SIZE];
    hf_rng rng;
    unsigned handles; /* on the loop: the timer, and the clients */
};

static void begin_round(hf_slot_watch *w);
static void connect_next(hf_slot_watch *w);

static void on_timer(uv_timer_t *timer)
{
    hf_slot_watch *w = timer->data;
    if (w->state == QUIET)
        begin_round(w);
}

/* Begins the next round in time, if one is wanted. */
static void schedule(hf_slot_watch *w)
{
    if (w->state != QUIET || !w->wanted)
        return;
    uint64_t now_ns = hf_boot_ns();
    uint64_t ms = w->due_ns > now_ns ? (w->due_ns - now_ns) / HF_MS_NS + 1 : 0;
    /* It fails only for a handle that is being closed. */
    HF_ASSERT(uv_timer_start(&w->timer, on_timer, ms, 0) == 0);
}

/* ---- connections ---- */

static void handle_closed(hf_slot_watch *w)
{
    if (--w->handles > 0)
        return;
    const hf_slot_hooks *hooks = w->hooks;
    void *owner = w->owner;
    free(w);
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

static void drop_asker(hf_slot_watch *w)
{
    hf_client *client = w->asker;
    w->asker = NULL;
    hf_client_close(client, on_client_closed, w);
}

/* ---- a round ---- */

static void end_round(hf_slot_watch *w, uint64_t rest_ms)
{
    drop_asker(w);
    w->state = QUIET;
    w->due_ns = hf_boot_ns() + rest_ms * HF_MS_NS;
    schedule(w);
}

/* How well a reason explains the fault. */
static int weight(hf_err err)
{
    return err == HF_CONFIG ? 3 : err == HF_AUTH ? 2 : err == HF_OK ? 0 : 1;
}

/* Node `at` does not tell. */
static void fail(hf_slot_watch *w, hf_err err, const char *why)
{
    if (weight(err) >= weight(w->err)) {
        w->err = err;
        (void)snprintf(w->why, sizeof w->why, "%s", why);
    }
    drop_asker(w);
    if (++w->at < w->n) {
        connect_next(w);
        return;
    }
    w->wanted = true;
    end_round(w, (uint64_t)hf_backoff_ms(&delays, ++w->failed, &w->rng));
    w->hooks->on_vain(w->owner, w->err, w->why);
}

static void learn(hf_slot_watch *w)
{
    w->failed = 0;
    end_round(w, EACH_MS + (uint64_t)(hf_rng_unit(&w->rng) * SPREAD_MS));
    w->hooks->on_map(w->owner, &w->map);
}

static bool is_no_cluster(const hf_answer *answer)
{
    return answer->err == HF_REDIS &&
           strstr(answer->detail, "cluster support disabled") != NULL;
}

/* The connection ended: its detail says where and why. */
static void on_answer(const hf_answer *answer, void *arg)
{
    hf_slot_watch *w = arg;
    char place[HF_URL_PLACE_SIZE], why[HF_DETAIL_SIZE], reason[HF_DETAIL_SIZE];
    if (w->state != ASKING) /* it was dropped meanwhile */
        return;
    if (answer->err == HF_UNSURE) {
        fail(w, HF_CONN, answer->detail);
        return;
    }
    hf_err err = answer->err;
    hf_url_place_text(&w->nodes[w->at], place);
    (void)snprintf(reason, sizeof reason, "%s", answer->detail);
    if (is_no_cluster(answer)) {
        err = HF_CONFIG;
        (void)snprintf(reason, sizeof reason,
                       "it is no node of a cluster: expected a URL with redis://");
    } else if (err == HF_OK) {
        err = hf_slot_map_read(&w->map, answer->reply, &w->nodes[w->at], reason);
    }
    (void)snprintf(why, sizeof why, "%.120s: %.120s", place, reason);
    if (err == HF_OK)
        learn(w);
    else
        fail(w, err, why);
}

static hf_err request(hf_slot_watch *w)
{
    const hf_bytes words[] = {{"CLUSTER", strlen("CLUSTER")}, {"SLOTS", strlen("SLOTS")}};
    const hf_call call = {
        .args = words, .n_args = HF_COUNT(words), .cb = on_answer, .arg = w};
    return hf_request_send(w->asker, &call);
}

static void on_event(hf_client *client, hf_err err, const char *detail, void *arg)
{
    hf_slot_watch *w = arg;
    (void)client;
    if (w->state == ASKING)
        return;
    if (err == HF_OK) {
        w->state = ASKING;
        err = request(w);
        detail = hf_err_text(err);
    }
    if (err != HF_OK)
        fail(w, err, detail);
}

static hf_err open_asker(hf_slot_watch *w, char *why)
{
    hf_server *server = NULL;
    hf_err err = hf_server_open_node(&server, w->given, &w->nodes[w->at],
                                     w->given->connect_timeout_ms / (uint32_t)w->n + 1,
                                     ANSWER_MS, why);
    if (err == HF_OK) {
        const hf_client_opts opts = {.loop = w->loop,
                                     .redis = server,
                                     .replica_ok = true, /* it knows the table as well */
                                     .on_event = on_event,
                                     .arg = w};
        err = hf_client_open(&w->asker, &opts, why);
        hf_server_close(server); /* the connection holds it */
    }
    if (err == HF_OK)
        w->handles++;
    return err;
}

static void connect_next(hf_slot_watch *w)
{
    char why[HF_DETAIL_SIZE];
    w->state = CONNECTING;
    hf_err err = open_asker(w, why);
    if (err != HF_OK)
        fail(w, err, why);
}

static void begin_round(hf_slot_watch *w)
{
    w->err = HF_OK;
    w->at = 0;
    w->wanted = false;
    w->n = w->hooks->nodes(w->owner, w->nodes);
    connect_next(w);
}

/* ---- from outside ---- */

void hf_slot_watch_again(hf_slot_watch *w)
{
    w->wanted = true;
    schedule(w);
}

hf_err hf_slot_watch_open(hf_slot_watch **out, uv_loop_t *loop, const hf_server *given,
                          const hf_slot_hooks *hooks, void *owner)
{
    hf_slot_watch *w = calloc(1, sizeof *w);
    if (w == NULL)
        return HF_NOMEM;
    hf_err err = hf_random_bytes(&w->rng, sizeof w->rng);
    if (err != HF_OK) {
        free(w);
        return err;
    }
    w->loop = loop;
    w->given = given;
    w->hooks = hooks;
    w->owner = owner;
    (void)uv_timer_init(loop, &w->timer); /* it only sets memory */
    w->timer.data = w;
    w->handles = 1;
    *out = w;
    return HF_OK;
}

void hf_slot_watch_close(hf_slot_watch *w)
{
    drop_asker(w);
    w->state = CLOSED;
    uv_close((uv_handle_t *)&w->timer, on_timer_closed);
}
