/* past.c - see past.h. */
#include "worker/past.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/text.h"
#include "queue/past.h"
#include "worker/node/site.h"
#include "worker/node/sites.h"
#include "worker/queues/claim_state.h"
#include "worker/queues/queues.h"
#include "worker/report.h"
#include "worker/worker.h"

enum {
    MINUTE_MS = 60000,
    SPREAD_MS = 5000,  /* many workers do not send in the same second */
    AGAIN_MS = 5000,   /* after a request that was not answered, or was refused */
    LOOK_MS = 1000,    /* whether a Redis that is away is back */
    QUIET_MS = 600000, /* what ends after such a time is sent at once */
    LEFT_MS = 5000,    /* of a removed queue: it does not keep its slot for long */
    KEPT_MS = 600000,  /* what is older is dropped, */
    KEPT_MINUTES = 20, /* and so is the oldest of more than that: the clock was set */
    TYPES = HF_PAST_TYPES + 1 /* with HF_PAST_OTHERS */
};

/* One type in the minute that is open. */
typedef struct kind {
    char type[HF_ID_SIZE];
    uint64_t run_ns;
    hf_past_sums sums;
} kind;

typedef struct open_minute {
    int64_t minute;
    uint32_t keep_ms;
    uint64_t until_ns; /* its end, */
    uint64_t send_ns;  /* and when it is sent */
    size_t n, last;    /* kinds; the one that was found last */
    uint64_t hashes[TYPES];
    kind *kinds[TYPES]; /* owned */
} open_minute;

typedef struct part {
    char type[HF_ID_SIZE];
    char *sums; /* owned */
} part;

/* A minute that is over. What it holds does not change any more. */
typedef struct minute {
    struct minute *next;
    int64_t minute;
    uint32_t keep_ms;
    uint64_t closed_ns;
    int64_t ends; /* attempts, and jobs that died */
    size_t n, sent;
    part parts[];
} minute;

typedef struct past_queue {
    hf_served *served; /* while `keeps_slot` */
    bool keeps_slot;   /* it has something, so its slot is not given away */
    open_minute *open; /* owned; NULL: nothing has ended yet */
    minute *oldest;    /* owned */
    size_t n_closed;
    uint64_t closed_ns; /* its last minute; 0: it had none */
    uint64_t left_ns;   /* since when it leaves and holds something; 0: it does not */
    uint64_t again_ns;  /* nothing is sent before; 0: it may be */
    hf_site *asked;     /* of the request under way; NULL: there is none */
    uint64_t number;    /* of a request that was not answered yet; 0: there is none */
    size_t n_numbered;  /* parts in that request */
} past_queue;

typedef struct hf_past {
    past_queue queues[HF_SLOTS_MAX]; /* by slot */
    uv_timer_t timer;
    bool due;
    uint64_t numbers; /* given out. They rise for all queues: slots change hands */
    uint64_t dropped; /* attempts that no history has */
    uint64_t dropping_logged_ns;
    hf_answer_cb goodbye; /* while the worker ends; NULL: it does not */
    void *goodbye_arg;
} hf_past;

static void on_timer(uv_timer_t *timer)
{
    hf_worker *w = timer->data;
    w->past->due = true;
}

static past_queue *queue_of(const hf_served *served)
{
    return &served->worker->past->queues[served->slot];
}

/* ---- a minute begins and ends ---- */

static void look_at(hf_worker *w, uint64_t at_ns)
{
    uv_timer_t *timer = &w->past->timer;
    uint64_t now = hf_boot_ns(), ms = at_ns > now ? (at_ns - now) / HF_MS_NS + 1 : 0;
    if (uv_is_closing((uv_handle_t *)timer))
        return;
    uv_update_time(&w->loop);
    if (!uv_is_active((uv_handle_t *)timer) || uv_timer_get_due_in(timer) > ms)
        (void)uv_timer_start(timer, on_timer, ms, 0);
}

static void hold(past_queue *q, hf_served *served)
{
    if (!q->keeps_slot)
        served->requests++;
    q->keeps_slot = true;
    q->served = served;
}

static void let_go_if_empty(past_queue *q)
{
    if (!q->keeps_slot || q->open != NULL || q->oldest != NULL || q->asked != NULL)
        return;
    q->keeps_slot = false;
    q->served->requests--;
}

/* A reload has removed the queue: its slot is wanted. */
static bool leaves(const past_queue *q)
{
    return q->keeps_slot && hf_queue_is(q->served, HF_Q_GONE);
}

/* The first of them are worth knowing soon, and cost one request more. */
static bool was_quiet(const past_queue *q, uint64_t now_ns)
{
    return q->closed_ns == 0 || now_ns > q->closed_ns + QUIET_MS * HF_MS_NS;
}

/* NULL: out of memory. */
static open_minute *begin(hf_served *served)
{
    hf_worker *w = served->worker;
    past_queue *q = queue_of(served);
    open_minute *open = calloc(1, sizeof *open);
    if (open == NULL)
        return NULL;
    const uint64_t now = hf_boot_ns(), longest = now + MINUTE_MS * HF_MS_NS;
    open->keep_ms = w->opts.history_ms;
    open->minute = hf_server_now(served->site->base.redis) / MINUTE_MS;
    const uint64_t ends =
        hf_server_when(served->site->base.redis, (open->minute + 1) * MINUTE_MS);
    open->until_ns = ends <= now || ends > longest ? longest : ends;
    open->send_ns = (was_quiet(q, now) ? now : open->until_ns) +
                    (uint64_t)(hf_rng_unit(&w->rng) * SPREAD_MS) * HF_MS_NS;
    hold(q, served);
    q->open = open;
    look_at(w, leaves(q) ? now : open->send_ns);
    return open;
}

static void free_open(open_minute *open)
{
    for (size_t i = 0; open != NULL && i < open->n; i++)
        free(open->kinds[i]);
    free(open);
}

static void free_minute(minute *m)
{
    for (size_t i = 0; i < m->n; i++)
        free(m->parts[i].sums);
    free(m);
}

static int64_t ends_of(const open_minute *open)
{
    int64_t n = 0;
    for (size_t i = 0; i < open->n; i++) {
        const hf_past_sums *s = &open->kinds[i]->sums;
        n += s->done + s->failed + s->dead;
    }
    return n;
}

/* NULL: out of memory. */
static minute *closed_of(const open_minute *open)
{
    minute *m = malloc(sizeof *m + open->n * sizeof(part));
    if (m == NULL)
        return NULL;
    *m = (minute){.minute = open->minute,
                  .keep_ms = open->keep_ms,
                  .closed_ns = hf_boot_ns(),
                  .ends = ends_of(open)};
    for (size_t i = 0; i < open->n; i++) {
        kind *k = open->kinds[i];
        hf_buf text;
        hf_buf_init(&text, HF_PAST_TEXT_MAX);
        k->sums.run_ms = (int64_t)(k->run_ns / HF_MS_NS);
        hf_past_write(&text, &k->sums);
        if (hf_buf_err(&text) != HF_OK) {
            hf_buf_done(&text);
            free_minute(m);
            return NULL;
        }
        memcpy(m->parts[i].type, k->type, sizeof k->type);
        m->parts[m->n++].sums = text.data;
    }
    return m;
}

/* ---- dropping ---- */

static void drop(hf_worker *w, int64_t ends)
{
    hf_past *p = w->past;
    const uint64_t now = hf_boot_ns();
    if (ends == 0)
        return;
    p->dropped += (uint64_t)ends;
    hf_counters_dropped(w->counters, (uint64_t)ends);
    if (p->dropping_logged_ns != 0 &&
        now - p->dropping_logged_ns < HF_REMIND_MS * HF_MS_NS)
        return;
    p->dropping_logged_ns = now;
    const hf_log_field fields[] = {{.key = "attempts", .number = (int64_t)p->dropped}};
    hf_report(w, HF_LOG_WARN, "the history lacks what Redis did not take", fields,
              HF_COUNT(fields));
}

static void drop_oldest(hf_worker *w, past_queue *q)
{
    minute *m = q->oldest;
    q->oldest = m->next;
    q->n_closed--;
    q->number = 0;
    drop(w, m->ends);
    free_minute(m);
}

static void close_open(hf_worker *w, past_queue *q)
{
    open_minute *open = q->open;
    /* For want of memory it may have no type: what ended was dropped then. */
    minute *m = open->n > 0 ? closed_of(open) : NULL, **at = &q->oldest;
    q->open = NULL;
    q->closed_ns = hf_boot_ns();
    if (m == NULL) {
        drop(w, ends_of(open));
    } else {
        while (*at != NULL)
            at = &(*at)->next;
        *at = m;
        q->n_closed++;
        w->past->due = true;
    }
    free_open(open);
}

static bool is_old(const past_queue *q, const minute *m, uint64_t now_ns)
{
    return now_ns > m->closed_ns + KEPT_MS * HF_MS_NS ||
           (q->left_ns != 0 && now_ns > q->left_ns + LEFT_MS * HF_MS_NS);
}

/* One that is under way stays until it is answered. */
static void drop_old(hf_worker *w, past_queue *q, uint64_t now_ns)
{
    if (!leaves(q))
        q->left_ns = 0;
    else if (q->left_ns == 0)
        q->left_ns = now_ns;
    while (q->oldest != NULL && q->asked == NULL &&
           (q->n_closed > KEPT_MINUTES || is_old(q, q->oldest, now_ns)))
        drop_oldest(w, q);
}

/* ---- what ends ---- */

static bool is_kept(const hf_worker *w)
{
    return w->opts.history_ms != HF_HISTORY_NONE;
}

/* NULL: out of memory. */
static kind *kind_of(open_minute *open, const char *type)
{
    if (open->n > 0 && strcmp(open->kinds[open->last]->type, type) == 0)
        return open->kinds[open->last];
    const uint64_t hash = hf_hash_text(HF_HASH_START, type);
    for (size_t i = 0; i < open->n; i++)
        if (open->hashes[i] == hash && strcmp(open->kinds[i]->type, type) == 0) {
            open->last = i;
            return open->kinds[i];
        }
    if (open->n >= HF_PAST_TYPES && strcmp(type, HF_PAST_OTHERS) != 0)
        return kind_of(open, HF_PAST_OTHERS);
    kind *k = calloc(1, sizeof *k);
    if (k == NULL)
        return NULL;
    memcpy(k->type, type, strlen(type) + 1);
    open->hashes[open->n] = hash;
    open->last = open->n;
    open->kinds[open->n++] = k;
    return k;
}

/* The counts of a type in the minute of this time. */
static kind *at(hf_served *served, uint64_t ended_ns, const char *type)
{
    past_queue *q = queue_of(served);
    if (q->open != NULL && ended_ns >= q->open->until_ns)
        close_open(served->worker, q);
    open_minute *open = q->open != NULL ? q->open : begin(served);
    return open == NULL ? NULL : kind_of(open, type);
}

void hf_past_note(const hf_run *run, unsigned how)
{
    hf_worker *w = run->worker;
    if (how == 0 || !is_kept(w))
        return;
    const bool ran = (how & (HF_PAST_DONE | HF_PAST_FAILED)) != 0;
    const uint64_t ended_ns = run->ended_ns != 0 ? run->ended_ns : hf_boot_ns();
    kind *k = at(run->served, ended_ns, run->record.type);
    if (k == NULL) {
        drop(w, 1);
        return;
    }
    k->sums.done += (how & HF_PAST_DONE) != 0;
    k->sums.failed += (how & HF_PAST_FAILED) != 0;
    k->sums.dead += (how & HF_PAST_DIED) != 0;
    if (!ran)
        return;
    const uint64_t run_ns = hf_run_ran_ns(run);
    const int64_t wait_ms = run->wait_ms > 0 ? run->wait_ms : 0;
    k->run_ns += run_ns;
    k->sums.wait_ms += wait_ms;
    k->sums.runs[hf_past_bucket(run_ns)]++;
    k->sums.waits[hf_past_bucket((uint64_t)wait_ms * HF_MS_NS)]++;
}

void hf_past_buried(hf_served *served, size_t n)
{
    if (n == 0 || !is_kept(served->worker))
        return;
    kind *k = at(served, hf_boot_ns(), HF_PAST_OTHERS);
    if (k == NULL)
        drop(served->worker, (int64_t)n);
    else
        k->sums.dead += (int64_t)n;
}

/* ---- to Redis ---- */

static bool send_rest(hf_worker *w, past_queue *q);

static void on_sent(past_queue *q)
{
    minute *m = q->oldest;
    q->number = 0;
    m->sent += q->n_numbered;
    if (m->sent < m->n)
        return;
    q->oldest = m->next;
    q->n_closed--;
    free_minute(m);
}

/* Without an answer, or refused, the same request goes again under its number. */
static void on_answer(const hf_answer *answer, void *arg)
{
    past_queue *q = arg;
    hf_worker *w = q->served->worker;
    hf_past *p = w->past;
    hf_site *site = q->asked;
    int64_t now_ms;
    hf_err err = hf_past_read(answer, &now_ms);
    q->asked = NULL;
    if (err == HF_OK)
        on_sent(q);
    else if (err != HF_NOSCRIPT)
        q->again_ns = hf_boot_ns() + AGAIN_MS * HF_MS_NS;
    let_go_if_empty(q);
    if (p->goodbye != NULL) {
        bool goes_on = err == HF_OK || err == HF_NOSCRIPT;
        if (!goes_on || !send_rest(w, q))
            p->goodbye(answer, p->goodbye_arg);
        return;
    }
    if (w->phase == HF_ENDED)
        return;
    if (now_ms != 0)
        hf_site_clock_read(site, now_ms, answer->sent_ns);
    (void)hf_site_unserved(site, err, answer->detail);
    p->due = true;
}

static bool send_queue(hf_worker *w, past_queue *q)
{
    const minute *m = q->oldest;
    hf_past_part parts[HF_PAST_PARTS];
    size_t left = m->n - m->sent;
    if (q->number == 0) {
        q->number = ++w->past->numbers;
        q->n_numbered = left < HF_PAST_PARTS ? left : HF_PAST_PARTS;
    }
    for (size_t i = 0; i < q->n_numbered; i++)
        parts[i] = (hf_past_part){m->parts[m->sent + i].type, m->parts[m->sent + i].sums};
    const hf_past_args args = {
        .worker = w->id, .number = q->number, .minute = m->minute, .keep_ms = m->keep_ms};
    hf_site *site = q->served->site;
    if (hf_op_past(site->base.client, &q->served->queue, &args, parts, q->n_numbered,
                   on_answer, q) != HF_OK) {
        q->again_ns = hf_boot_ns() + AGAIN_MS * HF_MS_NS;
        return false;
    }
    q->asked = site;
    return true;
}

static bool is_asked(const hf_worker *w, const hf_site *site)
{
    for (size_t i = 0; i < HF_SLOTS_MAX; i++)
        if (w->past->queues[i].asked == site)
            return true;
    return false;
}

/* One request to this site. */
static bool send_next(hf_worker *w, hf_site *site)
{
    const uint64_t now = hf_boot_ns();
    if (!hf_site_can_ask(site))
        return false;
    for (size_t i = 0; i < HF_SLOTS_MAX; i++) {
        past_queue *q = &w->past->queues[i];
        if (q->oldest == NULL || q->served->site != site || q->again_ns > now ||
            q->served->backoff.until_ns != 0)
            continue;
        if (send_queue(w, q))
            return true;
    }
    return false;
}

/* While the worker ends: a queue that was refused a moment ago is asked as well. */
static bool send_rest(hf_worker *w, past_queue *q)
{
    return q->oldest != NULL && hf_site_can_ask(q->served->site) && send_queue(w, q);
}

/* When to look again at one that has sent nothing now. */
static uint64_t next_look(const past_queue *q, uint64_t now_ns)
{
    if (q->oldest != NULL && q->asked == NULL)
        return q->again_ns > now_ns ? q->again_ns : now_ns + LOOK_MS * HF_MS_NS;
    return q->open != NULL ? q->open->send_ns : UINT64_MAX;
}

void hf_past_turn(hf_worker *w, bool claimed)
{
    hf_past *p = w->past;
    if (!p->due || claimed || w->phase == HF_ENDED)
        return;
    const uint64_t now = hf_boot_ns();
    uint64_t next = UINT64_MAX;
    for (size_t i = 0; i < HF_SLOTS_MAX; i++) {
        past_queue *q = &p->queues[i];
        if (q->open != NULL && (now >= q->open->send_ns || leaves(q)))
            close_open(w, q);
        drop_old(w, q, now);
        let_go_if_empty(q);
    }
    p->due = false;
    for (hf_site *site = NULL; (site = hf_sites_next(w, site)) != NULL;)
        if (!is_asked(w, site) && send_next(w, site))
            hf_client_flush(site->base.client); /* before the claims of the next turn */
    for (size_t i = 0; i < HF_SLOTS_MAX; i++) {
        uint64_t look = next_look(&p->queues[i], now);
        next = look < next ? look : next;
    }
    if (next != UINT64_MAX)
        look_at(w, next);
}

void hf_past_reloaded(hf_worker *w)
{
    w->past->due = true;
}

size_t hf_past_goodbye(hf_worker *w, hf_answer_cb cb, void *arg)
{
    hf_past *p = w->past;
    size_t n = 0;
    p->goodbye = cb;
    p->goodbye_arg = arg;
    for (size_t i = 0; i < HF_SLOTS_MAX; i++) {
        past_queue *q = &p->queues[i];
        if (q->open != NULL)
            close_open(w, q);
        n += q->asked != NULL || send_rest(w, q) ? 1 : 0;
    }
    return n;
}

/* ---- for life ---- */

hf_err hf_past_new(hf_worker *w)
{
    w->past = calloc(1, sizeof *w->past);
    return w->past == NULL ? HF_NOMEM : HF_OK;
}

void hf_past_free(hf_worker *w)
{
    for (size_t i = 0; w->past != NULL && i < HF_SLOTS_MAX; i++) {
        past_queue *q = &w->past->queues[i];
        free_open(q->open);
        while (q->oldest != NULL) {
            minute *m = q->oldest;
            q->oldest = m->next;
            free_minute(m);
        }
    }
    free(w->past);
    w->past = NULL;
}

void hf_past_open(hf_worker *w)
{
    uv_timer_init(&w->loop, &w->past->timer);
    w->past->timer.data = w;
}

static void report_rest(hf_worker *w)
{
    int64_t ends = 0;
    for (size_t i = 0; i < HF_SLOTS_MAX; i++)
        for (const minute *m = w->past->queues[i].oldest; m != NULL; m = m->next)
            ends += m->ends;
    const hf_log_field field = {.key = "attempts", .number = ends};
    if (ends > 0)
        hf_report(w, HF_LOG_WARN, "the history may lack what Redis did not confirm",
                  &field, 1);
}

void hf_past_close(hf_worker *w)
{
    if (uv_is_closing((uv_handle_t *)&w->past->timer))
        return;
    report_rest(w);
    uv_close((uv_handle_t *)&w->past->timer, NULL);
}
