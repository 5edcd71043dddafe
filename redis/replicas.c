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
#include "base/text.h"
#include "redis/cluster.h"
#include "redis/err.h"
#include "redis/send.h"

enum {
    ROUND_MS = 200,  /* of one WAIT, at most: others may have less time; */
    LEAST_MS = 20,   /* and at least: a replica needs some to answer */
    MARGIN_MS = 500, /* for the answer to a WAIT that took all its time */
    PAUSE_MS = 50,   /* after a round that failed at once */
    MARK_SIZE = 64,
    HERE_MAX = 32
};

#define MARK_MS "60000" /* the key expires after this time */

typedef struct line {
    hf_confirm *first, *last;
} line;

struct hf_replicas {
    hf_client *client;
    char mark[HF_REPLICAS_MARK_SIZE]; /* "": it serves no slot for one */
    hf_server *redis;                 /* borrowed from the client */
    hf_cluster *cluster;              /* borrowed; NULL: the server is used alone */
    char ns[HF_REPLICAS_MARK_SIZE / 2];
    unsigned tag;              /* of the mark, in a cluster */
    uv_timer_t timer;          /* the next round, or the end of a question's time */
    line waiting, asked, told; /* the last: their answer is known and about to be told */
    uint64_t again_ns;         /* no round before that */

    unsigned open; /* requests of the round that are not answered yet */
    hf_err err;    /* its first fault, and */
    char why[HF_DETAIL_SIZE];
    bool meets;       /* the first of a life */
    size_t awaited;   /* replicas, by WAIT; */
    size_t have;      /* that confirmed; */
    size_t noted;     /* that another process has met, by the mark; */
    size_t answering; /* that are connected and have confirmed something, by ROLE */

    uint64_t life;           /* of the server; 0: none was met yet. In it: */
    size_t needed;           /* replicas that must confirm */
    size_t had, known;       /* `have` and `answering` of the last round */
    uint64_t behind_ns;      /* since then fewer confirm than must; 0: none is missing */
    uint64_t here[HERE_MAX]; /* who is connected, each by a hash of its address */
    size_t n_here;
    uint64_t left_ns; /* when one of them was missing last; 0: never */

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

static bool one_has_left(const hf_replicas *r)
{
    return r->left_ns != 0 && hf_boot_ns() - r->left_ns < HF_REPLICAS_LEFT_MS * HF_MS_NS;
}

static void tell_late(hf_replicas *r, hf_confirm *confirm)
{
    char text[HF_DETAIL_SIZE];
    if (!hf_client_ready(r->client))
        (void)snprintf(text, sizeof text, "replicas cannot be asked: %.200s",
                       hf_client_detail(r->client));
    else if (r->err != HF_OK)
        (void)snprintf(text, sizeof text, "replicas cannot be asked: %.200s", r->why);
    else if (r->life == confirm->life && r->had < confirm->wanted)
        (void)snprintf(text, sizeof text, "%zu of %u replicas have it", r->had,
                       confirm->wanted);
    else if (r->life == confirm->life && r->had < r->needed)
        (void)snprintf(text, sizeof text,
                       "%zu of %zu replicas have it, and another may be the next primary",
                       r->had, r->needed);
    else if (one_has_left(r))
        (void)snprintf(text, sizeof text,
                       "a replica has left, and may be the next primary");
    else
        (void)snprintf(text, sizeof text, "replicas did not confirm it in time");
    confirm->cb(confirm->arg, HF_UNCONFIRMED, text);
}

/* Tells those whose time is over, and those whose server has gone. */
static void sift(hf_replicas *r)
{
    const uint64_t now_ns = hf_boot_ns(), life = hf_client_life(r->client);
    const bool ready = hf_client_ready(r->client);
    r->told = r->waiting;
    r->waiting = (line){NULL, NULL};
    for (hf_confirm *confirm; (confirm = take_first(&r->told)) != NULL;) {
        if (ready && confirm->life < life)
            confirm->cb(confirm->arg, HF_UNSURE,
                        "another server has taken over meanwhile");
        else if (confirm->until_ns <= now_ns)
            tell_late(r, confirm);
        else
            append(&r->waiting, confirm);
    }
}

/* ---- the replicas that may be the next primary ---- */

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* What the mark tells about this life of the server. */
static size_t read_mark(const hf_replicas *r, const char *text)
{
    const char *replid = hf_client_server(r->client)->replid;
    const size_t len = strlen(replid);
    const bool same = len > 0 && strncmp(text, replid, len) == 0 && text[len] == ' ';
    return same ? strtoul(text + len + 1, NULL, 10) : 0;
}

/* One that still loads its first data has confirmed nothing. */
static size_t count_answering(const hf_reply *role)
{
    const hf_reply *replicas = hf_reply_at(role, 2);
    size_t n = 0;
    for (size_t i = 0; i < hf_reply_len(replicas); i++)
        n += hf_reply_int(hf_reply_at(hf_reply_at(replicas, i), 2)) > 0;
    return n;
}

/* Its address and port. */
static uint64_t place_of(const hf_reply *replica)
{
    return hf_hash_text(
        hf_hash_text(HF_HASH_START, hf_reply_text(hf_reply_at(replica, 0))),
        hf_reply_text(hf_reply_at(replica, 1)));
}

/* A replica may have left although as many are connected as before: another came. */
static void see_who_is_here(hf_replicas *r, const hf_reply *role)
{
    const hf_reply *replicas = hf_reply_at(role, 2);
    uint64_t here[HERE_MAX];
    size_t n = 0, stayed = 0;
    for (; n < hf_reply_len(replicas) && n < HERE_MAX; n++) {
        here[n] = place_of(hf_reply_at(replicas, n));
        for (size_t i = 0; i < r->n_here; i++)
            stayed += r->here[i] == here[n];
    }
    if (stayed < r->n_here)
        r->left_ns = hf_boot_ns();
    memcpy(r->here, here, n * sizeof here[0]);
    r->n_here = n;
}

static void meet(hf_replicas *r)
{
    r->left_ns = 0;
    r->life = hf_client_life(r->client);
    r->needed = r->had = larger(r->noted, r->answering);
    r->known = r->answering;
    r->behind_ns = 0;
}

/* Those that are missing or behind for so long: Sentinels know it, and take another. */
static void give_up(hf_replicas *r)
{
    if (r->behind_ns == 0 || hf_boot_ns() - r->behind_ns < HF_REPLICAS_LEFT_MS * HF_MS_NS)
        return;
    r->needed = r->had;
    r->behind_ns = 0;
}

/* And the mark tells that this many must. */
static bool have_all(hf_replicas *r)
{
    const size_t told = r->needed;
    if (r->answering > r->known)
        r->needed = larger(r->needed, r->answering);
    r->known = r->answering;
    r->needed = larger(r->needed, r->have);
    if (r->have == r->needed)
        r->behind_ns = 0;
    else if (r->behind_ns == 0 || r->have < r->had)
        r->behind_ns = hf_boot_ns();
    r->had = r->have;
    return r->have == r->needed && r->needed == told && !one_has_left(r);
}

/* ---- a round ---- */

/* They came before those that wait now. */
static void put_back(hf_replicas *r, line old)
{
    if (old.last == NULL)
        return;
    old.last->next = r->waiting.first;
    r->waiting.first = old.first;
    if (r->waiting.last == NULL)
        r->waiting.last = old.last;
}

static void tell_confirmed(hf_replicas *r)
{
    line rest = {NULL, NULL};
    for (hf_confirm *confirm; (confirm = take_first(&r->asked)) != NULL;)
        append(r->have >= confirm->wanted ? &r->told : &rest, confirm);
    put_back(r, rest);
    for (hf_confirm *confirm; (confirm = take_first(&r->told)) != NULL;)
        confirm->cb(confirm->arg, HF_OK, "");
}

static void end_round(hf_replicas *r)
{
    const bool answered = r->err == HF_OK && hf_client_ready(r->client);
    if (answered && r->meets) {
        meet(r);
    } else if (answered && have_all(r)) {
        tell_confirmed(r);
    } else {
        put_back(r, r->asked);
        r->asked = (line){NULL, NULL};
        if (r->err != HF_OK || one_has_left(r) ||
            (r->have >= r->awaited && r->have < r->needed))
            r->again_ns = hf_boot_ns() + PAUSE_MS * HF_MS_NS;
    }
    pump(r);
}

static void note_fault(hf_replicas *r, hf_err err, const char *why)
{
    if (err == HF_OK || r->err != HF_OK)
        return;
    r->err = err;
    (void)snprintf(r->why, sizeof r->why, "%s", why);
}

static void answered(hf_replicas *r, const hf_answer *answer)
{
    note_fault(r, answer->err, answer->detail);
    if (--r->open == 0 && !r->closing)
        end_round(r);
}

/* Its slot is at another node, or on its way there: another key will do, as long as this
 * node has any slot. */
static void lose_mark(hf_replicas *r, const hf_answer *answer)
{
    if (r->cluster == NULL || r->closing || answer->err == HF_OK)
        return;
    (void)hf_cluster_refused(r->cluster, r->redis, answer->err, answer->detail);
    if (hf_err_is(answer->err, HF_ERR_OF_CLUSTER)) {
        r->mark[0] = '\0';
        r->tag++;
    }
}

static bool has_mark(hf_replicas *r)
{
    if (r->mark[0] == '\0')
        hf_cluster_key(r->cluster, r->redis, r->ns, "replicated", &r->tag, r->mark,
                       sizeof r->mark);
    return r->mark[0] != '\0';
}

static void on_mark(const hf_answer *answer, void *arg)
{
    hf_replicas *r = arg;
    lose_mark(r, answer);
    if (answer->err == HF_OK && r->meets)
        r->noted = read_mark(r, hf_reply_text(answer->reply));
    answered(r, answer);
}

static void on_waited(const hf_answer *answer, void *arg)
{
    hf_replicas *r = arg;
    const int64_t have = answer->err == HF_OK ? hf_reply_int(answer->reply) : 0;
    r->have = have > 0 ? (size_t)have : 0;
    answered(r, answer);
}

static void on_role(const hf_answer *answer, void *arg)
{
    hf_replicas *r = arg;
    if (answer->err == HF_OK) {
        r->answering = count_answering(answer->reply);
        see_who_is_here(r, answer->reply);
    }
    answered(r, answer);
}

static void send_words(hf_replicas *r, const char *const *words, uint32_t timeout_ms,
                       hf_answer_cb cb)
{
    hf_args a;
    size_t n = 0;
    while (words[n] != NULL)
        n++;
    hf_args_init(&a, n, 0);
    for (size_t i = 0; i < n; i++)
        hf_args_text(&a, words[i]);
    hf_err err = hf_send_command(r->client, &a, timeout_ms, cb, r);
    if (err == HF_OK)
        r->open++;
    else
        note_fault(r, err, hf_err_text(err));
}

/* For all that wait now: the replicas of their WAIT, and its time. */
static uint32_t take_all(hf_replicas *r)
{
    const uint64_t now_ns = hf_boot_ns();
    uint64_t until_ns = now_ns + ROUND_MS * HF_MS_NS;
    r->awaited = r->known;
    for (const hf_confirm *c = r->waiting.first; c != NULL; c = c->next) {
        r->awaited = larger(r->awaited, c->wanted);
        if (c->until_ns < until_ns)
            until_ns = c->until_ns;
    }
    r->asked = r->waiting;
    r->waiting = (line){NULL, NULL};
    if (until_ns < now_ns + LEAST_MS * HF_MS_NS)
        return LEAST_MS;
    return (uint32_t)((until_ns - now_ns) / HF_MS_NS);
}

static void send_wait(hf_replicas *r)
{
    char mark[MARK_SIZE], awaited[HF_DECIMAL_MAX], wait[HF_DECIMAL_MAX];
    const uint32_t ms = take_all(r), timeout_ms = ms + MARGIN_MS;
    give_up(r);
    /* One more: it must not be taken for one that stays. */
    (void)snprintf(mark, sizeof mark, "%s %zu", hf_client_server(r->client)->replid,
                   r->needed + one_has_left(r));
    (void)snprintf(awaited, sizeof awaited, "%zu", r->awaited);
    (void)snprintf(wait, sizeof wait, "%u", ms);
    send_words(r, (const char *const[]){"SET", r->mark, mark, "PX", MARK_MS, NULL},
               timeout_ms, on_mark);
    send_words(r, (const char *const[]){"WAIT", awaited, wait, NULL}, timeout_ms,
               on_waited);
    send_words(r, (const char *const[]){"ROLE", NULL}, timeout_ms, on_role);
}

/* The first round in a life of the server asks no replica: it only finds them. */
static void begin_round(hf_replicas *r)
{
    r->err = HF_OK;
    r->have = r->noted = 0;
    r->open = 1; /* until all are sent */
    r->meets = r->life != hf_client_life(r->client);
    if (!has_mark(r)) {
        note_fault(r, HF_UNSERVED, hf_err_text(HF_UNSERVED));
    } else if (r->meets) {
        send_words(r, (const char *const[]){"GET", r->mark, NULL}, MARGIN_MS, on_mark);
        send_words(r, (const char *const[]){"ROLE", NULL}, MARGIN_MS, on_role);
    } else {
        send_wait(r);
    }
    if (--r->open == 0)
        end_round(r);
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

static bool take_out(line *from, const hf_confirm *wanted)
{
    line old = *from;
    bool found = false;
    *from = (line){NULL, NULL};
    for (hf_confirm *confirm; (confirm = take_first(&old)) != NULL;) {
        if (confirm == wanted)
            found = true;
        else
            append(from, confirm);
    }
    return found;
}

void hf_replicas_withdraw(hf_replicas *r, hf_confirm *confirm)
{
    bool found = take_out(&r->waiting, confirm) || take_out(&r->asked, confirm) ||
                 take_out(&r->told, confirm);
    HF_ASSERT(found);
}

void hf_replicas_in_cluster(hf_replicas *r, hf_cluster *cluster, const char *ns)
{
    if (hf_cluster_is_plain(cluster))
        return;
    r->cluster = cluster;
    (void)snprintf(r->ns, sizeof r->ns, "%s", ns);
    r->mark[0] = '\0';
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
                        const char *mark)
{
    HF_ASSERT(strlen(mark) < HF_REPLICAS_MARK_SIZE);
    hf_replicas *r = calloc(1, sizeof *r);
    if (r == NULL)
        return HF_NOMEM;
    r->redis = redis;
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
    line all[] = {r->told, r->asked, r->waiting};
    r->told = r->asked = r->waiting = (line){NULL, NULL};
    for (size_t i = 0; i < HF_COUNT(all); i++)
        for (hf_confirm *confirm; (confirm = take_first(&all[i])) != NULL;)
            confirm->cb(confirm->arg, HF_CLOSED, hf_err_text(HF_CLOSED));
    hf_client_close(r->client, on_part_closed, r);
    uv_close((uv_handle_t *)&r->timer, on_timer_closed);
}
