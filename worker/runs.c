/* runs.c - see runs.h. */
#include "worker/runs.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "queue/ran.h"
#include "worker/node/site.h"
#include "worker/past.h"
#include "worker/queues/claim_state.h"
#include "worker/queues/queues.h"
#include "worker/worker.h"

enum {
    EACH_MS = 1000,
    AGAIN_MS = 10000,   /* a run that goes on is told again */
    WATCHED_MS = 30000, /* after a heartbeat: without another one there is no viewer */
    LANES_STEP = 64
};

typedef struct told_queue {
    hf_served *served; /* while `held` */
    bool held;         /* it has something, so its slot is not given away */
    hf_buf lines;      /* to be sent: of n runs */
    size_t n;
    int64_t ok, failed, cut;
    hf_site *asked; /* of the request under way; NULL: there is none */
    hf_buf sent;    /* and its entry */
} told_queue;

typedef struct hf_runs {
    told_queue queues[HF_SLOTS_MAX]; /* by slot */
    uint64_t *lanes;                 /* owned: since when each is free, or BUSY */
    size_t n_lanes;
    uv_timer_t timer;
    uint64_t until_ns; /* a viewer watches; 0: none */
    bool due;
    hf_answer_cb goodbye; /* while the worker ends; NULL: it does not */
    void *goodbye_arg;
} hf_runs;

static const uint64_t BUSY = UINT64_MAX;

/* ---- lanes ---- */

static bool more_lanes(hf_runs *r)
{
    uint64_t *lanes = realloc(r->lanes, (r->n_lanes + LANES_STEP) * sizeof *lanes);
    if (lanes == NULL)
        return false;
    memset(lanes + r->n_lanes, 0, LANES_STEP * sizeof *lanes);
    r->lanes = lanes;
    r->n_lanes += LANES_STEP;
    return true;
}

/* False: out of memory. */
static bool take_lane(hf_runs *r, hf_run *run)
{
    const uint64_t begun_ns = hf_run_begun_ns(run);
    size_t i = 0;
    if (run->lane != 0)
        return true;
    while (i < r->n_lanes && (r->lanes[i] == BUSY || r->lanes[i] > begun_ns))
        i++;
    if (i == r->n_lanes && !more_lanes(r))
        return false;
    r->lanes[i] = BUSY;
    run->lane = (unsigned)i + 1;
    return true;
}

static void leave_lane(hf_runs *r, hf_run *run)
{
    if (run->lane != 0)
        r->lanes[run->lane - 1] = run->ended_ns;
    run->lane = 0;
}

/* ---- what is told ---- */

static bool has_something(const told_queue *q)
{
    return q->n > 0 || q->ok > 0 || q->failed > 0 || q->cut > 0;
}

static void empty(told_queue *q)
{
    hf_buf_clear(&q->lines);
    q->n = 0;
    q->ok = q->failed = q->cut = 0;
}

static void let_go_if_empty(told_queue *q)
{
    if (!q->held || has_something(q) || q->asked != NULL)
        return;
    q->held = false;
    q->served->requests--;
}

static told_queue *queue_of(const hf_run *run)
{
    told_queue *q = &run->worker->runs->queues[run->served->slot];
    if (!q->held)
        run->served->requests++;
    q->held = true;
    q->served = run->served;
    return q;
}

static hf_run_end end_of(const hf_run *run)
{
    if (run->ended & HF_PAST_DIED)
        return HF_RUN_DEAD;
    if (run->ended & HF_PAST_DONE)
        return HF_RUN_DONE;
    if (run->ended & HF_PAST_FAILED)
        return HF_RUN_FAILED;
    if (run->lost_logged)
        return HF_RUN_LOST;
    if (run->op == HF_OP_CRASH)
        return HF_RUN_CRASHED;
    return atomic_load(&run->cancelled) || run->verdict == HF_VERDICT_CANCEL
               ? HF_RUN_CANCELLED
               : HF_RUN_RELEASED;
}

/* False: there is no room for it. */
static bool add(told_queue *q, hf_run *run, uint64_t now_ns, hf_run_end end)
{
    const int64_t now_ms = hf_server_now(run->served->site->base.redis);
    const uint64_t ago_ns = now_ns - hf_run_begun_ns(run);
    hf_reported_run told = {.run = run->record.attempts + run->crashes + 1,
                            .start_ms = now_ms - (int64_t)(ago_ns / HF_MS_NS),
                            .ran_ms = hf_run_ran_ms(run),
                            .end = end};
    if (q->n == HF_RAN_MAX || now_ms == 0 || !take_lane(run->worker->runs, run))
        return false;
    memcpy(told.id, run->id, strlen(run->id) + 1);
    memcpy(told.type, run->record.type, strlen(run->record.type) + 1);
    told.slot = run->lane - 1;
    hf_ran_write(&q->lines, &told);
    q->n++;
    if (hf_buf_err(&q->lines) == HF_OK)
        return true;
    q->cut += (int64_t)q->n - 1; /* out of memory */
    q->n = 0;
    hf_buf_clear(&q->lines);
    return false;
}

static bool is_bad(hf_run_end end)
{
    return end == HF_RUN_FAILED || end == HF_RUN_DEAD || end == HF_RUN_CRASHED ||
           end == HF_RUN_LOST;
}

void hf_runs_ended(hf_run *run)
{
    hf_runs *r = run->worker->runs;
    if (r->until_ns != 0 && hf_run_begun_ns(run) != 0) {
        told_queue *q = queue_of(run);
        const hf_run_end end = end_of(run);
        if (hf_run_ran_ms(run) >= HF_RAN_LONG_MS)
            q->cut += add(q, run, hf_boot_ns(), end) ? 0 : 1;
        else if (is_bad(end))
            q->failed++;
        else
            q->ok++;
    }
    leave_lane(r, run);
}

/* One that finds no room comes with the next second. */
void hf_runs_goes_on(hf_run *run, void *unused)
{
    const uint64_t now = hf_boot_ns(), begun = hf_run_begun_ns(run);
    (void)unused;
    if (begun == 0 || now - begun < HF_RAN_LONG_MS * HF_MS_NS ||
        (run->told_ns != 0 && now - run->told_ns < AGAIN_MS * HF_MS_NS))
        return;
    told_queue *q = queue_of(run);
    if (add(q, run, now, HF_RUN_GOES_ON))
        run->told_ns = now;
    let_go_if_empty(q);
}

/* ---- whether a viewer watches ---- */

static void on_timer(uv_timer_t *timer)
{
    hf_worker *w = timer->data;
    w->runs->due = w->turn_due = true;
}

static void stop(hf_worker *w)
{
    hf_runs *r = w->runs;
    r->until_ns = 0;
    r->due = false;
    uv_timer_stop(&r->timer);
    for (size_t i = 0; i < HF_SLOTS_MAX; i++) {
        told_queue *q = &r->queues[i];
        empty(q);
        let_go_if_empty(q);
        hf_buf_done(&q->lines);
        hf_buf_done(&q->sent);
        hf_buf_init(&q->lines, HF_RAN_TEXT_MAX);
        hf_buf_init(&q->sent, HF_RAN_TEXT_MAX);
    }
}

void hf_runs_watched(hf_worker *w, bool watched)
{
    hf_runs *r = w->runs;
    const bool before = r->until_ns != 0;
    if (!watched) {
        if (before)
            stop(w);
        return;
    }
    r->until_ns = hf_boot_ns() + WATCHED_MS * HF_MS_NS;
    if (before)
        return;
    uv_update_time(&w->loop);
    uv_timer_start(&r->timer, on_timer, EACH_MS, EACH_MS);
    r->due = w->turn_due = true; /* what runs is told at once */
}

/* ---- to Redis ---- */

static void on_answer(const hf_answer *answer, void *arg);

static bool ask(told_queue *q)
{
    hf_site *site = q->served->site;
    const hf_bytes entry = {q->sent.data, q->sent.len};
    if (q->sent.len == 0 || !hf_site_can_ask(site) ||
        hf_op_runs(site->base.client, &q->served->queue, entry, on_answer, q) != HF_OK)
        return false;
    q->asked = site;
    return true;
}

/* False: nothing has left. */
static bool send_queue(const hf_worker *w, told_queue *q)
{
    hf_ran_head head = {.ok = q->ok, .failed = q->failed, .cut = q->cut};
    if (!has_something(q) || q->asked != NULL || !hf_site_can_ask(q->served->site))
        return false;
    memcpy(head.worker, w->id, sizeof w->id);
    head.at_ms = hf_server_now(q->served->site->base.redis);
    hf_buf_clear(&q->sent);
    hf_ran_write_head(&q->sent, &head);
    if (q->n > 0)
        hf_buf_add(&q->sent, q->lines.data, q->lines.len);
    empty(q);
    return hf_buf_err(&q->sent) == HF_OK && ask(q);
}

/* Only a server that did not know the script has certainly not taken it. */
static void on_answer(const hf_answer *answer, void *arg)
{
    told_queue *q = arg;
    hf_worker *w = q->served->worker;
    hf_runs *r = w->runs;
    hf_site *site = q->asked;
    int64_t now_ms;
    const hf_err err = hf_ran_answered(answer, &now_ms);
    q->asked = NULL;
    if (w->phase != HF_ENDED && now_ms != 0)
        hf_site_clock_read(site, now_ms, answer->sent_ns);
    if (w->phase != HF_ENDED)
        (void)hf_site_unserved(site, err, answer->detail);
    if (err == HF_NOSCRIPT && ask(q))
        return;
    if (r->goodbye != NULL) {
        if (err != HF_OK || !send_queue(w, q))
            r->goodbye(answer, r->goodbye_arg);
    }
    let_go_if_empty(q);
}

bool hf_runs_due(const hf_worker *w)
{
    return w->runs->due;
}

void hf_runs_send(hf_worker *w)
{
    hf_runs *r = w->runs;
    r->due = false;
    if (hf_boot_ns() > r->until_ns) {
        stop(w);
        return;
    }
    for (size_t i = 0; i < HF_SLOTS_MAX; i++) {
        told_queue *q = &r->queues[i];
        if (q->held && !send_queue(w, q) && hf_queue_is(q->served, HF_Q_GONE))
            empty(q); /* a reload has removed the queue: its slot is wanted */
        let_go_if_empty(q);
    }
}

size_t hf_runs_goodbye(hf_worker *w, hf_answer_cb cb, void *arg)
{
    hf_runs *r = w->runs;
    size_t n = 0;
    r->goodbye = cb;
    r->goodbye_arg = arg;
    for (size_t i = 0; i < HF_SLOTS_MAX; i++)
        n += r->queues[i].asked != NULL || send_queue(w, &r->queues[i]) ? 1 : 0;
    return n;
}

/* ---- for life ---- */

hf_err hf_runs_new(hf_worker *w)
{
    w->runs = calloc(1, sizeof *w->runs);
    for (size_t i = 0; w->runs != NULL && i < HF_SLOTS_MAX; i++) {
        hf_buf_init(&w->runs->queues[i].lines, HF_RAN_TEXT_MAX);
        hf_buf_init(&w->runs->queues[i].sent, HF_RAN_TEXT_MAX);
    }
    return w->runs == NULL ? HF_NOMEM : HF_OK;
}

void hf_runs_free(hf_worker *w)
{
    for (size_t i = 0; w->runs != NULL && i < HF_SLOTS_MAX; i++) {
        hf_buf_done(&w->runs->queues[i].lines);
        hf_buf_done(&w->runs->queues[i].sent);
    }
    if (w->runs != NULL)
        free(w->runs->lanes);
    free(w->runs);
    w->runs = NULL;
}

void hf_runs_open(hf_worker *w)
{
    uv_timer_init(&w->loop, &w->runs->timer);
    w->runs->timer.data = w;
}

void hf_runs_close(hf_worker *w)
{
    if (!uv_is_closing((uv_handle_t *)&w->runs->timer))
        uv_close((uv_handle_t *)&w->runs->timer, NULL);
}
