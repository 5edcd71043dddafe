/* replicas.c - see replicas.h.
 *
 *   waiting --a round begins--> asked --confirmed, another life--> told
 *      ^ '--- its time is over, another life: told     |
 *      '------------- too few, or no answer -----------' */
#include "redis/replicas.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "base/base.h"
#include "base/clock.h"
#include "redis/send.h"
#include "redis/server.h"

enum {
    ROUND_MS = 200,  /* of one WAIT, at most: others may have less time; */
    LEAST_MS = 20,   /* and at least: a replica needs some to answer */
    MARGIN_MS = 500, /* for the answer to a WAIT that took all its time */
    PAUSE_MS = 50    /* after a round that failed at once */
};

#define MARK_MS "60000" /* the key expires after this time */

typedef struct line {
    hf_confirm *first, *last;
} line;

struct hf_replicas {
    hf_client *client;
    char mark[HF_REPLICAS_MARK_SIZE];
    uint32_t wanted;
    uv_timer_t timer; /* the next round, or the end of a question's time */
    line waiting, asked;
    uint64_t again_ns; /* no round before that */

    unsigned open; /* requests of the round that are not answered yet */
    hf_err err;    /* its first fault */
    int64_t have;  /* replicas, by WAIT */
    char why[HF_DETAIL_SIZE];

    uint64_t life;    /* of the server, when these were counted: */
    size_t connected; /* replicas, in the last round */
    uint64_t left_ns; /* when there were fewer than the round before; 0: never */

    int handles; /* the timer and the client, not closed yet */
    bool closing;
    void (*on_closed)(void *arg);
    void *arg;
};

static void pump(hf_replicas *r);

static void append(line *to, hf_confirm *confirm)
{
    confirm->next = NULL;
    if (to->last == NULL)
        to->first = confirm;
    else
        to->last->next = confirm;
    to->last = confirm;
}

static hf_confirm *take_first(line *from)
{
    hf_confirm *confirm = from->first;
    if (confirm == NULL)
        return NULL;
    from->first = confirm->next;
    if (from->first == NULL)
        from->last = NULL;
    return confirm;
}

/* ---- the end of a question ---- */

static void tell_late(hf_replicas *r, hf_confirm *confirm)
{
    char text[HF_DETAIL_SIZE];
    if (!hf_client_ready(r->client))
        (void)snprintf(text, sizeof text, "replicas cannot be asked: %.200s",
                       hf_client_detail(r->client));
    else if (r->why[0] != '\0')
        (void)snprintf(text, sizeof text, "%s", r->why);
    else
        (void)snprintf(text, sizeof text, "replicas did not confirm it in time");
    confirm->cb(confirm->arg, HF_UNCONFIRMED, text);
}

/* Tells those whose time is over, and those whose server has gone. */
static void sift(hf_replicas *r)
{
    line old = r->waiting;
    const uint64_t now_ns = hf_boot_ns(), life = hf_client_life(r->client);
    const bool ready = hf_client_ready(r->client);
    r->waiting = (line){NULL, NULL};
    for (hf_confirm *confirm; (confirm = take_first(&old)) != NULL;) {
        if (ready && confirm->life < life)
            confirm->cb(confirm->arg, HF_UNSURE,
                        "another server has taken over meanwhile");
        else if (confirm->until_ns <= now_ns)
            tell_late(r, confirm);
        else
            append(&r->waiting, confirm);
    }
}

/* ---- a round ---- */

/* Counts the replicas that are connected. True: none has left for a while. */
static bool all_stay(hf_replicas *r, const hf_reply *role)
{
    const uint64_t life = hf_client_life(r->client), now_ns = hf_boot_ns();
    const size_t n = hf_reply_len(hf_reply_at(role, 2));
    if (life != r->life)
        r->left_ns = 0;
    else if (n < r->connected)
        r->left_ns = now_ns;
    r->life = life;
    r->connected = n;
    return r->left_ns == 0 || now_ns - r->left_ns >= HF_REPLICAS_LEFT_MS * HF_MS_NS;
}

static bool is_confirmed(hf_replicas *r, const hf_reply *role)
{
    if (r->err != HF_OK || !hf_client_ready(r->client))
        return false;
    const bool stay = all_stay(r, role);
    if (r->have < (int64_t)r->wanted)
        (void)snprintf(r->why, sizeof r->why, "%lld of %u replicas have it",
                       (long long)r->have, r->wanted);
    else if (!stay)
        (void)snprintf(r->why, sizeof r->why,
                       "a replica has left, and may be the next primary");
    else
        r->why[0] = '\0';
    return r->have >= (int64_t)r->wanted && stay;
}

static void end_round(hf_replicas *r, const hf_reply *role)
{
    const bool confirmed = is_confirmed(r, role);
    line old = r->asked;
    r->asked = (line){NULL, NULL};
    if (!confirmed && (r->err != HF_OK || r->have >= (int64_t)r->wanted))
        r->again_ns = hf_boot_ns() + PAUSE_MS * HF_MS_NS;
    if (!confirmed) { /* they came before those that wait now */
        if (old.last != NULL) {
            old.last->next = r->waiting.first;
            r->waiting.first = old.first;
            if (r->waiting.last == NULL)
                r->waiting.last = old.last;
        }
    } else {
        for (hf_confirm *confirm; (confirm = take_first(&old)) != NULL;)
            confirm->cb(confirm->arg, HF_OK, "");
    }
    pump(r);
}

static void answered(hf_replicas *r, const hf_answer *answer, bool is_role)
{
    if (answer->err != HF_OK && r->err == HF_OK) {
        r->err = answer->err;
        (void)snprintf(r->why, sizeof r->why, "replicas cannot be asked: %.200s",
                       answer->detail);
    }
    if (--r->open == 0 && !r->closing)
        end_round(r, is_role ? answer->reply : NULL);
}

static void on_marked(const hf_answer *answer, void *arg)
{
    answered(arg, answer, false);
}

static void on_waited(const hf_answer *answer, void *arg)
{
    hf_replicas *r = arg;
    r->have = answer->err == HF_OK ? hf_reply_int(answer->reply) : 0;
    answered(r, answer, false);
}

static void on_role(const hf_answer *answer, void *arg)
{
    answered(arg, answer, true);
}

static void send_words(hf_replicas *r, const char *const *words, uint32_t timeout_ms,
                       hf_answer_cb cb)
{
    hf_args a;
    size_t n = 0;
    hf_err err = HF_NOMEM;
    while (words[n] != NULL)
        n++;
    if (hf_args_init(&a, n, 0)) {
        for (size_t i = 0; i < n; i++)
            hf_args_text(&a, words[i]);
        err = hf_command_send(r->client, &a, timeout_ms, cb, r);
    }
    if (err == HF_OK)
        r->open++;
    else if (r->err == HF_OK)
        r->err = err;
}

static void begin_round(hf_replicas *r)
{
    const uint64_t now_ns = hf_boot_ns();
    uint64_t until_ns = now_ns + ROUND_MS * HF_MS_NS;
    line old = r->waiting;
    r->waiting = (line){NULL, NULL};
    for (hf_confirm *confirm; (confirm = take_first(&old)) != NULL;) {
        if (confirm->until_ns < until_ns)
            until_ns = confirm->until_ns;
        append(&r->asked, confirm);
    }
    if (until_ns < now_ns + LEAST_MS * HF_MS_NS)
        until_ns = now_ns + LEAST_MS * HF_MS_NS;
    const uint32_t ms = (uint32_t)((until_ns - now_ns) / HF_MS_NS);
    const uint32_t timeout_ms = ms + MARGIN_MS;
    r->err = HF_OK;
    r->have = 0;
    r->open = 1; /* until all are sent */
    char wanted[HF_DECIMAL_MAX], wait[HF_DECIMAL_MAX];
    (void)snprintf(wanted, sizeof wanted, "%u", r->wanted);
    (void)snprintf(wait, sizeof wait, "%u", ms);
    send_words(r, (const char *const[]){"SET", r->mark, "1", "PX", MARK_MS, NULL},
               timeout_ms, on_marked);
    send_words(r, (const char *const[]){"WAIT", wanted, wait, NULL}, timeout_ms,
               on_waited);
    send_words(r, (const char *const[]){"ROLE", NULL}, timeout_ms, on_role);
    if (--r->open == 0)
        end_round(r, NULL);
}

static bool is_ahead(const hf_replicas *r)
{
    for (const hf_confirm *c = r->waiting.first; c != NULL; c = c->next)
        if (c->life > hf_client_life(r->client))
            return true;
    return false;
}

static void on_timer(uv_timer_t *timer)
{
    pump(timer->data);
}

static void arm(hf_replicas *r, uint64_t due_ns)
{
    const uint64_t now_ns = hf_boot_ns();
    (void)uv_timer_start(&r->timer, on_timer,
                         due_ns <= now_ns ? 0 : (due_ns - now_ns) / HF_MS_NS + 1, 0);
}

/* Begins a round if one is due, else sets the timer. Callbacks run in here. */
static void pump(hf_replicas *r)
{
    if (r->closing || r->open > 0)
        return;
    sift(r);
    if (r->waiting.first == NULL || r->closing || r->open > 0)
        return;
    /* Of a life that this connection has not met: it is led there, or it is lost. */
    const bool can_ask = hf_client_ready(r->client) && !is_ahead(r);
    if (can_ask && r->again_ns <= hf_boot_ns()) {
        begin_round(r);
        return;
    }
    uint64_t due_ns = can_ask ? r->again_ns : UINT64_MAX;
    for (const hf_confirm *c = r->waiting.first; c != NULL; c = c->next)
        if (c->until_ns < due_ns)
            due_ns = c->until_ns;
    arm(r, due_ns);
}

/* ---- what it is called for ---- */

/* At the end of this turn of the loop, so all answers of the turn share a round. */
void hf_replicas_ask(hf_replicas *r, hf_confirm *confirm)
{
    append(&r->waiting, confirm);
    if (r->open == 0)
        arm(r, 0);
}

static void on_event(hf_client *client, hf_err err, const char *detail, void *arg)
{
    hf_replicas *r = arg;
    (void)client;
    (void)detail;
    if (err == HF_OK) {
        r->again_ns = 0;
        pump(r);
    }
}

hf_err hf_replicas_open(hf_replicas **out, uv_loop_t *loop, hf_server *redis,
                        uint32_t wanted, const char *mark)
{
    HF_ASSERT(wanted > 0 && strlen(mark) < HF_REPLICAS_MARK_SIZE);
    hf_replicas *r = calloc(1, sizeof *r);
    if (r == NULL)
        return HF_NOMEM;
    r->wanted = wanted;
    (void)snprintf(r->mark, sizeof r->mark, "%s", mark);
    const hf_client_opts opts = {
        .loop = loop, .redis = redis, .on_event = on_event, .arg = r};
    hf_err err = hf_client_open(&r->client, &opts, NULL);
    if (err != HF_OK) {
        free(r);
        return err;
    }
    uv_timer_init(loop, &r->timer); /* initialises memory; it cannot fail */
    r->timer.data = r;
    r->handles = 2;
    *out = r;
    return HF_OK;
}

static void on_part_closed(void *arg)
{
    hf_replicas *r = arg;
    if (--r->handles > 0)
        return;
    void (*on_closed)(void *) = r->on_closed;
    void *closed_arg = r->arg;
    free(r);
    if (on_closed != NULL)
        on_closed(closed_arg);
}

static void on_timer_closed(uv_handle_t *handle)
{
    on_part_closed(handle->data);
}

void hf_replicas_close(hf_replicas *r, void (*cb)(void *arg), void *arg)
{
    if (r == NULL) {
        if (cb != NULL)
            cb(arg);
        return;
    }
    r->closing = true;
    r->on_closed = cb;
    r->arg = arg;
    line both[] = {r->asked, r->waiting};
    r->asked = r->waiting = (line){NULL, NULL};
    for (size_t i = 0; i < HF_COUNT(both); i++)
        for (hf_confirm *confirm; (confirm = take_first(&both[i])) != NULL;)
            confirm->cb(confirm->arg, HF_CLOSED, hf_err_text(HF_CLOSED));
    hf_client_close(r->client, on_part_closed, r);
    uv_close((uv_handle_t *)&r->timer, on_timer_closed);
}
