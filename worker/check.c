/* check.c - the periodic check of a worker: it reports that this worker lives, gives back
 * batons that it cannot use, and replaces a next_wake that no worker keeps.
 *
 * The worker that holds the timer for the end of a lease may be the one that died with
 * it. Its next_wake counts as broken soon after its time, but half a lease may pass until
 * the next check sees that. So a check answers, for each queue, when this can happen with
 * an expired lease. At that time the worker checks the queue once more, unless the next
 * periodic check comes first and answers anew. A lease that is renewed ends after the
 * next check, so it leads to no extra check. An extra check never leads to another: there
 * is at most one for each queue and periodic check, for any answer of Redis. */
#include "base/base.h"
#include "base/clock.h"
#include "worker/queues.h"
#include "worker/redis_clock.h"
#include "worker/report.h"
#include "worker/running.h"
#include "worker/schedules.h"
#include "worker/shared.h"
#include "worker/site.h"
#include "worker/waking.h"
#include "worker/waking_state.h"

enum {
    BURST_WAIT_MS = 500,
    SPREAD_MS = 40, /* of the second looks of many workers */
    NOT_NOW_MS = 100
};

static uint32_t shortest_wait_ms(const hf_worker *w)
{
    return w->opts.lease_ms / 2 < HF_WAIT_MS ? w->opts.lease_ms / 2 : HF_WAIT_MS;
}

uint32_t hf_check_longest_ms(const hf_worker *w)
{
    return shortest_wait_ms(w) * 11 / 10;
}

uint32_t hf_check_ms(hf_worker *w)
{
    uint32_t ms = shortest_wait_ms(w);
    if (w->opts.burst && ms > BURST_WAIT_MS)
        ms = BURST_WAIT_MS;
    return ms + (uint32_t)(hf_rng_unit(&w->rng) * ms / 10);
}

/* ---- which queues ---- */

/* Those that are served, and those that it may have to give a baton back to. */
static size_t choose_checked(hf_bundle *b, const hf_queue *out[HF_SLOTS_MAX])
{
    const hf_waking *k = b->site->worker->wake;
    size_t n = 0;
    for (size_t i = 0; i < k->n_slots; i++) {
        hf_served *served = &k->slots[i];
        if (served->state == HF_Q_FREE || served->bundle != b ||
            (hf_queue_is(served->state, HF_Q_GONE) && served->debt != HF_DEBT_OWED))
            continue;
        b->checking_at[n] = served;
        out[n++] = &served->queue;
    }
    return n;
}

static void note_checking(hf_bundle *b, size_t n)
{
    b->n_checking = n;
    for (size_t i = 0; i < n; i++)
        b->checking_at[i]->requests++;
}

static void checked_all(hf_bundle *b)
{
    for (size_t i = 0; i < b->n_checking; i++)
        b->checking_at[i]->requests--;
    b->n_checking = 0;
}

/* Batons of queues that are served no more. */
static void on_debts(const hf_bundle *b, hf_debt_event event)
{
    const hf_waking *k = b->site->worker->wake;
    for (size_t i = 0; i < k->n_slots; i++)
        if (k->slots[i].bundle == b)
            k->slots[i].debt = hf_debt_next(k->slots[i].debt, event);
}

/* ---- Redis's clock ---- */

/* The samples of Redis's clock belong to the machine: each check stores them in Redis for
 * the other workers here, and a worker that has just started continues with them. */
static void share_clock(hf_site *site, hf_check_args *args,
                        char learned[HF_REMOTE_STATE_SIZE])
{
    const hf_worker *w = site->worker;
    uint32_t judged_ms;
    args->least_ms = hf_server_view(site->redis, &judged_ms).least_ms;
    args->lease_ms = w->opts.lease_ms;
    args->machine = w->wake->machine;
    args->keep_ms = 2 * hf_remote_gap_ms(judged_ms);
    hf_server_learned(site->redis, learned);
    args->learned = learned;
}

static void adopt_clock(hf_site *site, const hf_checked *checked)
{
    uint32_t longest = checked->longest_lease_ms, own = site->worker->opts.lease_ms;
    hf_server_judge(site->redis, longest > own ? longest : own);
    if (checked->learned.len > 0)
        hf_server_adopt(site->redis, checked->learned.ptr, checked->learned.len);
}

/* ---- undated leases ---- */

static void choose_over(const hf_bundle *b, size_t n, int64_t over[HF_SLOTS_MAX])
{
    for (size_t i = 0; i < n; i++)
        over[i] = hf_undated_over(&b->checking_at[i]->undated, hf_boot_ns());
}

/* All leases that are undated by now are over when the longest lease has passed. */
static void note_undated(hf_bundle *b, const hf_checked_queue *queues,
                         uint32_t longest_ms)
{
    uint64_t over_ns = hf_boot_ns() + longest_ms * HF_MS_NS, next_ns = 0;
    for (size_t i = 0; i < b->n_checking; i++) {
        hf_undated *undated = &b->checking_at[i]->undated;
        hf_undated_told(undated, queues[i].undated, over_ns);
        next_ns = hf_earlier_ns(next_ns, hf_undated_next_ns(undated, b->checked_ns));
    }
    if (next_ns != 0)
        hf_check_bundle_at(b, next_ns);
}

void hf_check_other_data(hf_site *site)
{
    const hf_waking *k = site->worker->wake;
    for (size_t i = 0; i < k->n_slots; i++)
        if (k->slots[i].site == site)
            k->slots[i].undated = (hf_undated){.n = 0};
}

/* ---- the second look ---- */

/* FLUSHALL, for example: what the file says of the queue is written again. */
static void forgotten(hf_served *served)
{
    if (!served->present || hf_queue_is(served->state, HF_Q_GONE))
        return;
    served->present = served->registered = false;
    hf_report_text(served->worker, HF_LOG_WARN,
                   "Redis has lost the data of a queue: it is registered again", "queue",
                   served->queue.name);
}

/* In place of those that the last check has planned, and that have not come yet. 1 ms
 * later: our clock may be a little faster than that of Redis. */
static void plan_looks(hf_bundle *b, const hf_checked_queue *queues)
{
    int64_t spread_ms = (int64_t)(hf_rng_unit(&b->site->worker->rng) * SPREAD_MS);
    for (size_t i = 0; i < b->n_checking; i++) {
        hf_served *served = b->checking_at[i];
        int64_t doubt_ms = queues[i].doubt_ms;
        bool plan = doubt_ms != 0 && !hf_queue_is(served->state, HF_Q_GONE);
        served->look_ms = plan ? doubt_ms + 1 + spread_ms : 0;
        if (queues[i].divided)
            hf_shards_doubt(served);
        if (queues[i].unknown)
            forgotten(served);
    }
}

/* When the queues were registered: before a worker takes ticks Redis knows which
 * schedules its file names. */
static void take_ticks(const hf_bundle *b, const hf_checked_queue *queues, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hf_schedules_checked(b->checking_at[i], queues[i].ticks);
}

/* It has put a baton where one was missing. If it could not, the next check will. */
static void on_looked(const hf_answer *answer, void *arg)
{
    hf_worker *w = arg;
    if (w->phase != HF_ENDED && answer->err != HF_OK)
        hf_report_text(w, HF_LOG_DEBUG, "a second look failed", "error", answer->detail);
}

/* A worker that cannot claim leaves it to those that can: they have planned the same. */
void hf_check_again(hf_bundle *b)
{
    hf_worker *w = b->site->worker;
    const hf_queue *queues[HF_SLOTS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < w->wake->n_served; i++) {
        hf_served *served = w->wake->served[i];
        if (served->bundle != b || served->look_ms == 0 ||
            !hf_has_come(served, served->look_ms))
            continue;
        served->look_ms = 0;
        queues[n++] = &served->queue;
    }
    if (n == 0 || !hf_site_serves(b->site) || hf_running_slots(w) == 0 ||
        !hf_site_can_ask(b->site))
        return;
    hf_check_args args = {.worker = w->id};
    char learned[HF_REMOTE_STATE_SIZE];
    share_clock(b->site, &args, learned);
    if (hf_op_check(b->site->client, queues, n, &args, on_looked, w) == HF_OK)
        hf_report_text(w, HF_LOG_DEBUG,
                       "checks whether a worker comes for an expired lease", NULL, NULL);
}

/* ---- the check ---- */

void hf_bundle_unserved(hf_bundle *b, hf_site *site, hf_err err, const char *detail)
{
    if (hf_queue_refused(b->only, site, err, detail))
        hf_queue_on(b->only, HF_E_HELD);
}

bool hf_bundle_has_only_shards(const hf_bundle *b)
{
    return b->only != NULL && hf_queue_is_divided(b->only);
}

/* By checks that were sent when the last job had ended; of this one it is not asked. */
static bool are_empty(const hf_worker *w, const hf_bundle *last)
{
    for (hf_bundle *b = NULL; (b = hf_bundle_next(w->wake, b)) != NULL;)
        if (!hf_bundle_has_only_shards(b) &&
            (b->empty_ns == 0 || (b != last && b->empty_ns < w->wake->worked_ns)))
            return false;
    return true;
}

static void on_checked(const hf_answer *answer, void *arg)
{
    hf_bundle *b = arg;
    hf_site *site = b->checked_site;
    hf_worker *w = site->worker;
    hf_checked checked;
    hf_checked_queue queues[HF_SLOTS_MAX];
    hf_err err = hf_checked_read(answer, &checked, queues, b->n_checking);
    b->checking = false;
    on_debts(b, err == HF_OK ? HF_DEBT_PAID : HF_DEBT_FAILED);
    if (w->phase == HF_ENDED)
        return;
    size_t n = b->n_checking;
    bool moved = site != b->site; /* then the answer tells of another clock */
    if (err == HF_OK && !moved) {
        plan_looks(b, queues);
        note_undated(b, queues, checked.longest_lease_ms);
    }
    checked_all(b);
    if (err != HF_OK) {
        b->give_back = b->give_back || b->check_gives;
        if (err == HF_MOVED || err == HF_UNSERVED)
            hf_bundle_unserved(b, site, err, answer->detail);
        else if (err != HF_UNSURE && err != HF_NOSCRIPT)
            hf_site_refused(site, err, answer->detail);
        return;
    }
    site->refused = HF_OK;
    hf_server_accepted(site->redis);
    w->heard = true;
    hf_clock_read(site, checked.now_ms, answer->sent_ns);
    adopt_clock(site, &checked);
    hf_site_register(site);
    if (!moved)
        take_ticks(b, queues, n);
    hf_site_report_lacks(site); /* what was refused since */
    b->empty_ns = checked.empty ? b->checked_ns : 0;
    if (w->opts.burst && w->held == 0 && hf_queues_quiet(w) && are_empty(w, b))
        hf_worker_stop(w);
}

void hf_check_bundle(hf_bundle *b, bool give_back)
{
    hf_worker *w = b->site->worker;
    const hf_queue *queues[HF_SLOTS_MAX];
    char learned[HF_REMOTE_STATE_SIZE];
    b->give_back = b->give_back || give_back;
    if (b->checking || !hf_site_can_ask(b->site) ||
        (b->only != NULL && b->only->hold_until_ns != 0))
        return;
    size_t n = choose_checked(b, queues);
    if (n == 0) { /* its only queue leaves, and nothing is owed */
        b->give_back = false;
        return;
    }
    int64_t over[HF_SLOTS_MAX];
    choose_over(b, n, over);
    hf_check_args args = {.worker = w->id,
                          .alive_ms = w->opts.lease_ms + HF_ALIVE_MS,
                          .over = over,
                          .give_back = b->give_back};
    share_clock(b->site, &args, learned);
    if (hf_op_check(b->site->client, queues, n, &args, on_checked, b) != HF_OK)
        return;
    note_checking(b, n);
    b->checking = true;
    b->checked_site = b->site;
    b->checked_ns = hf_boot_ns();
    b->check_gives = b->give_back;
    if (b->give_back)
        on_debts(b, HF_DEBT_SENT);
    b->give_back = false;
    /* A little less than a wait: each wait that ends without a baton leads to a check. */
    b->check_at_ns = hf_boot_ns() + hf_check_ms(w) * HF_MS_NS * 3 / 4;
}

void hf_check_send(hf_site *site)
{
    const hf_waking *k = site->worker->wake;
    for (hf_bundle *b = NULL; (b = hf_bundle_next(k, b)) != NULL;)
        if (b->site == site)
            hf_check_bundle(b, false);
}

void hf_check_give_back(hf_worker *w)
{
    for (hf_bundle *b = NULL; (b = hf_bundle_next(w->wake, b)) != NULL;)
        hf_check_bundle(b, true);
}

/* A worker that waits for batons checks when the wait is over; but a wait that a baton
 * ended is followed by a whole one. */
static void on_look(uv_timer_t *timer)
{
    hf_bundle *b = timer->data;
    hf_worker *w = b->site->worker;
    uint64_t now = hf_boot_ns(), every_ns = hf_check_longest_ms(w) * HF_MS_NS;
    bool again = b->check_again_ns != 0 && now >= b->check_again_ns;
    if (again)
        b->check_again_ns = 0;
    if (again || now >= b->checked_ns + every_ns)
        hf_check_bundle(b, false);
    hf_life_turn(w);
    if (w->phase == HF_ENDED || uv_is_active((uv_handle_t *)timer))
        return;
    uint64_t due = b->checked_ns + every_ns;
    if (b->check_again_ns != 0 && b->check_again_ns < due)
        due = b->check_again_ns;
    uint64_t wait = due > now ? (due - now) / HF_MS_NS + 1 : NOT_NOW_MS;
    uv_update_time(&w->loop);
    uv_timer_start(timer, on_look, wait, 0);
}

void hf_check_look_in(hf_bundle *b, uint32_t ms)
{
    uv_update_time(&b->site->worker->loop);
    uv_timer_start(&b->look, on_look, ms, 0);
}

void hf_check_bundle_at(hf_bundle *b, uint64_t at_ns)
{
    b->check_again_ns = at_ns;
    hf_check_look_in(b, 0); /* plans it */
}

void hf_check_at(hf_site *site, uint64_t at_ns)
{
    const hf_waking *k = site->worker->wake;
    for (hf_bundle *b = NULL; (b = hf_bundle_next(k, b)) != NULL;)
        if (b->site == site)
            hf_check_bundle_at(b, at_ns);
}
