/* wake.c - waiting without polling: the batons and their timers.
 *
 * `wake` of each queue holds at most one baton, whose score says when a worker should
 * claim. A worker that has a free slot and nothing to claim blocks on the batons of all
 * its queues, on a connection of its own. A worker that pops a baton owns its time: it
 * claims if that time has come, else keeps a timer and blocks again. A baton that cannot
 * be used (no free slot, quiet, stopping) is given back. After the blocking connection
 * was lost an answer may have been lost with it, so every queue is claimed once before
 * the worker relies on blocking again. The check of every idle worker finds a wake-up
 * that was lost with a dead worker.
 *
 * The periodic check reports that this worker is alive, gives back batons that it cannot
 * use, and replaces a next_wake that no worker keeps. The worker that holds the timer for
 * the end of a lease may be the one that died with it. Its next_wake counts as broken
 * soon after its time, but half a lease may pass until the next check sees that. So a
 * check answers, for each queue, when this can happen with an expired lease. At that time
 * the worker checks the queue once more, unless the next periodic check comes first and
 * answers anew. A lease that is renewed ends after the next check, so it leads to no
 * extra check. An extra check never leads to another: there is at most one for each queue
 * and periodic check, for any answer of Redis. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/machine.h"
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
    UNBLOCK_MS = 5,
    SPREAD_MS = 40, /* of the second looks of many workers */
    NOT_NOW_MS = 100,
    OPEN_MS = 20 /* from one new connection to the next, at most */
};

static uint32_t shortest_wait_ms(const hf_worker *w)
{
    return w->opts.lease_ms / 2 < HF_WAIT_MS ? w->opts.lease_ms / 2 : HF_WAIT_MS;
}

static uint32_t longest_wait_ms(const hf_worker *w)
{
    return shortest_wait_ms(w) * 11 / 10;
}

/* From one check to the next. */
static uint32_t check_ms(hf_worker *w)
{
    uint32_t ms = shortest_wait_ms(w);
    if (w->opts.burst && ms > BURST_WAIT_MS)
        ms = BURST_WAIT_MS;
    return ms + (uint32_t)(hf_rng_unit(&w->rng) * ms / 10);
}

static uint32_t wait_ms(const hf_bundle *b)
{
    return hf_redis_wait_ms(b->site->client, b->client, check_ms(b->site->worker));
}

static uint64_t earlier(uint64_t a_ns, uint64_t b_ns) /* 0: none */
{
    return a_ns == 0 || (b_ns != 0 && b_ns < a_ns) ? b_ns : a_ns;
}

/* ---- the check: which queues ---- */

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

/* ---- the check: Redis's clock ---- */

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

/* ---- the check: undated leases ---- */

static void choose_over(const hf_bundle *b, size_t n, int64_t over[HF_SLOTS_MAX])
{
    for (size_t i = 0; i < n; i++)
        over[i] = hf_undated_over(&b->checking_at[i]->undated, hf_boot_ns());
}

static void check_at(hf_bundle *b, uint64_t at_ns);

/* All leases that are undated by now are over when the longest lease has passed. */
static void note_undated(hf_bundle *b, const hf_checked_queue *queues,
                         uint32_t longest_ms)
{
    uint64_t over_ns = hf_boot_ns() + longest_ms * HF_MS_NS, next_ns = 0;
    for (size_t i = 0; i < b->n_checking; i++) {
        hf_undated *undated = &b->checking_at[i]->undated;
        hf_undated_told(undated, queues[i].undated, over_ns);
        next_ns = earlier(next_ns, hf_undated_next_ns(undated, b->checked_ns));
    }
    if (next_ns != 0)
        check_at(b, next_ns);
}

void hf_wake_other_data(hf_site *site)
{
    const hf_waking *k = site->worker->wake;
    for (size_t i = 0; i < k->n_slots; i++)
        if (k->slots[i].site == site)
            k->slots[i].undated = (hf_undated){.n = 0};
}

/* ---- the second look ---- */

/* In place of those that the last check has planned, and that have not come yet. */
static void plan_looks(hf_bundle *b, const hf_checked_queue *queues)
{
    int64_t spread_ms = (int64_t)(hf_rng_unit(&b->site->worker->rng) * SPREAD_MS);
    for (size_t i = 0; i < b->n_checking; i++) {
        hf_served *served = b->checking_at[i];
        int64_t doubt_ms = queues[i].doubt_ms;
        bool plan = doubt_ms != 0 && !hf_queue_is(served->state, HF_Q_GONE);
        served->look_ms = plan ? doubt_ms + spread_ms : 0;
        if (queues[i].divided)
            hf_shards_doubt(served);
        hf_schedules_checked(served, queues[i].ticks);
    }
}

/* It has put a baton where one was missing. If it could not, the next check will. */
static void on_looked(const hf_answer *answer, void *arg)
{
    hf_worker *w = arg;
    if (w->phase != HF_ENDED && answer->err != HF_OK)
        hf_report_text(w, HF_LOG_DEBUG, "a second look failed", "error", answer->detail);
}

/* A worker that cannot claim leaves it to those that can: they have planned the same. */
static void look_again(hf_bundle *b)
{
    hf_worker *w = b->site->worker;
    const hf_queue *queues[HF_SLOTS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < w->wake->n_served; i++) {
        hf_served *served = w->wake->served[i];
        if (served->bundle != b || served->look_ms == 0 ||
            served->look_ms > hf_server_now(b->site->redis))
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

/* ---- the check itself ---- */

/* Of a cluster's node: it does not have this queue, or not now. */
static void on_unserved(hf_bundle *b, hf_site *site, hf_err err, const char *detail)
{
    if (hf_queue_refused(b->only, site, err, detail))
        hf_queue_on(b->only, HF_E_HELD);
}

/* It has the own keys of a queue that is divided: there are no jobs. */
static bool has_only_shards(const hf_bundle *b)
{
    return b->only != NULL && hf_queue_is_divided(b->only);
}

/* By checks that were sent when the last job had ended; of this one it is not asked. */
static bool are_empty(const hf_worker *w, const hf_bundle *last)
{
    for (hf_bundle *b = NULL; (b = hf_bundle_next(w->wake, b)) != NULL;)
        if (!has_only_shards(b) &&
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
    if (err == HF_OK) {
        plan_looks(b, queues);
        note_undated(b, queues, checked.longest_lease_ms);
    }
    checked_all(b);
    if (err != HF_OK) {
        b->give_back = b->give_back || b->check_gives;
        if (err == HF_MOVED || err == HF_UNSERVED)
            on_unserved(b, site, err, answer->detail);
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
    hf_site_report_lacks(site); /* what was refused since */
    b->empty_ns = checked.empty ? b->checked_ns : 0;
    if (w->opts.burst && w->held == 0 && hf_queues_quiet(w) && are_empty(w, b))
        hf_worker_stop(w);
}

static void send_check(hf_bundle *b, bool give_back)
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
    b->check_at_ns = hf_boot_ns() + check_ms(w) * HF_MS_NS * 3 / 4;
}

void hf_check_send(hf_site *site)
{
    const hf_waking *k = site->worker->wake;
    for (hf_bundle *b = NULL; (b = hf_bundle_next(k, b)) != NULL;)
        if (b->site == site)
            send_check(b, false);
}

void hf_check_give_back(hf_worker *w)
{
    for (hf_bundle *b = NULL; (b = hf_bundle_next(w->wake, b)) != NULL;)
        send_check(b, true);
}

/* A worker that waits for batons checks when the wait is over; but a wait that a baton
 * ended is followed by a whole one. */
static void on_look(uv_timer_t *timer)
{
    hf_bundle *b = timer->data;
    hf_worker *w = b->site->worker;
    uint64_t now = hf_boot_ns(), every_ns = longest_wait_ms(w) * HF_MS_NS;
    bool again = b->check_again_ns != 0 && now >= b->check_again_ns;
    if (again)
        b->check_again_ns = 0;
    if (again || now >= b->checked_ns + every_ns)
        send_check(b, false);
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

static void look_in(hf_bundle *b, uint32_t ms)
{
    uv_update_time(&b->site->worker->loop);
    uv_timer_start(&b->look, on_look, ms, 0);
}

static void check_at(hf_bundle *b, uint64_t at_ns)
{
    b->check_again_ns = at_ns;
    look_in(b, 0); /* plans it */
}

void hf_check_at(hf_site *site, uint64_t at_ns)
{
    const hf_waking *k = site->worker->wake;
    for (hf_bundle *b = NULL; (b = hf_bundle_next(k, b)) != NULL;)
        if (b->site == site)
            check_at(b, at_ns);
}

/* ---- timers of batons ---- */

static void on_baton(hf_served *served, int64_t at_ms)
{
    if (at_ms <= hf_server_now(served->site->redis)) {
        served->due_ms = at_ms == 0 ? 1 : at_ms;
        hf_queue_on(served, HF_E_BATON);
    } else if (served->timer_ms == 0 || at_ms < served->timer_ms) {
        served->timer_ms = at_ms;
    } else if (at_ms > served->timer_ms) {
        hf_queue_on(served, HF_E_DOUBT); /* one of two times would be forgotten */
    }
}

static int64_t sooner(int64_t a_ms, int64_t b_ms) /* 0: none */
{
    return a_ms == 0 || (b_ms != 0 && b_ms < a_ms) ? b_ms : a_ms;
}

static uint64_t backoff_over_ns(const hf_worker *w) /* 0: there is none */
{
    uint64_t first = hf_running_hold_until_ns(w);
    for (hf_bundle *b = NULL; (b = hf_bundle_next(w->wake, b)) != NULL;)
        first = earlier(first, b->client == NULL && !has_only_shards(b) &&
                                       hf_site_can_ask(b->site)
                                   ? w->wake->open_at_ns
                                   : b->wait_hold_until_ns);
    for (size_t i = 0; i < w->wake->n_slots; i++)
        first = earlier(first, w->wake->slots[i].hold_until_ns);
    return first;
}

static void end_backoffs(hf_worker *w)
{
    uint64_t now = hf_boot_ns();
    for (hf_bundle *b = NULL; (b = hf_bundle_next(w->wake, b)) != NULL;)
        if (b->wait_hold_until_ns <= now)
            b->wait_hold_until_ns = 0;
    hf_running_hold_over(w, now);
    hf_queues_hold_over(w, now);
}

static void on_baton_timer(uv_timer_t *timer);

/* Of the owned times and the planned looks, on the clock of this Redis; 0: none. */
static int64_t first_time(const hf_site *site)
{
    const hf_waking *k = site->worker->wake;
    int64_t first = 0;
    for (size_t i = 0; i < k->n_served; i++)
        if (k->served[i]->site == site)
            first = sooner(first, sooner(k->served[i]->timer_ms, k->served[i]->look_ms));
    return first;
}

/* Sets the one timer to the earliest of the owned times, of the planned looks, and of the
 * ends of backoffs. */
void hf_wake_timers(hf_worker *w)
{
    uint64_t over_ns = backoff_over_ns(w), boot_ns = hf_boot_ns();
    int64_t wait = over_ns == 0 ? -1 : 0; /* ms; -1: none */
    if (over_ns > boot_ns)
        wait = (int64_t)((over_ns - boot_ns) / HF_MS_NS) + 1;
    for (size_t i = 0; i < w->n_sites; i++) {
        int64_t first = first_time(w->sites[i]);
        if (first == 0)
            continue;
        int64_t left = first - hf_server_now(w->sites[i]->redis);
        left = left < 0 ? 0 : left;
        wait = wait < 0 || left < wait ? left : wait;
    }
    if (wait < 0) {
        uv_timer_stop(&w->wake->baton_timer);
        return;
    }
    uv_update_time(&w->loop);
    uv_timer_start(&w->wake->baton_timer, on_baton_timer, (uint64_t)wait, 0);
}

/* With a free slot: claim. Without one, or quiet: it is given back. */
static void on_baton_timer(uv_timer_t *timer)
{
    hf_worker *w = timer->data;
    bool back = false;
    end_backoffs(w);
    for (hf_bundle *b = NULL; (b = hf_bundle_next(w->wake, b)) != NULL;)
        look_again(b);
    for (size_t i = 0; i < w->wake->n_served; i++) {
        hf_served *served = w->wake->served[i];
        if (served->timer_ms == 0 ||
            served->timer_ms > hf_server_now(served->site->redis))
            continue;
        served->due_ms = served->timer_ms;
        served->timer_ms = 0;
        hf_queue_on(served, HF_E_BATON);
        back = back || !hf_site_serves(served->site) || hf_running_slots(w) == 0;
    }
    hf_wake_timers(w);
    if (back)
        hf_check_give_back(w);
    hf_life_turn(w);
}

/* ---- blocking ---- */

/* Each time another one is named first. One that cannot be claimed is not named: a
 * refusal for its sake would be one for all. */
static void choose_waited(hf_bundle *b)
{
    const hf_waking *k = b->site->worker->wake;
    b->n_waiting_on = 0;
    for (size_t i = 0; i < k->n_served; i++) {
        hf_served *served = k->served[(i + b->wait_order) % k->n_served];
        if (served->bundle == b && !hf_queue_is(served->state, HF_Q_UNHEARD))
            b->waiting_on[b->n_waiting_on++] = served;
    }
    b->wait_order = b->wait_order + 1 < k->n_served ? b->wait_order + 1 : 0;
}

static size_t waiting_queues(const hf_bundle *b, const hf_queue *out[HF_SLOTS_MAX])
{
    for (size_t i = 0; i < b->n_waiting_on; i++)
        out[i] = &b->waiting_on[i]->queue;
    return b->n_waiting_on;
}

static void report_woken(const hf_served *served, int64_t at_ms)
{
    int64_t now_ms = hf_server_now(served->site->redis);
    const hf_log_field fields[] = {
        {.key = "queue", .text = served->queue.name},
        {.key = "in_ms", .number = at_ms > now_ms ? at_ms - now_ms : 0}};
    hf_report(served->worker, HF_LOG_DEBUG, "woken", fields, HF_COUNT(fields));
}

/* True: this worker may have a baton that it has no use for. */
static bool owes(hf_served *served)
{
    if (!hf_queue_is(served->state, HF_Q_GONE))
        return false;
    served->debt = hf_debt_next(served->debt, HF_DEBT_MADE);
    return true;
}

/* Until it is let wait again it claims everything now and then. Told once. */
static void on_wait_refused(hf_bundle *b, const char *detail)
{
    if (!b->wait_refused)
        hf_report_text(b->site->worker, HF_LOG_WARN,
                       "Redis does not let this worker wait for jobs", "error", detail);
    b->wait_refused = true;
    b->wait_backoff_ms = hf_backoff_longer(b->wait_backoff_ms);
    b->wait_hold_until_ns = hf_boot_ns() + b->wait_backoff_ms * HF_MS_NS;
}

static void on_woken(const hf_answer *answer, void *arg)
{
    hf_bundle *b = arg;
    hf_worker *w = b->site->worker;
    const hf_queue *queues[HF_SLOTS_MAX];
    size_t which, n = waiting_queues(b, queues);
    int64_t at_ms;
    hf_err err = hf_wait_read(answer, queues, n, &which, &at_ms);
    b->blocked = b->unblocking = b->wait_stale = false;
    b->unblock_ms = 0;
    if (w->phase == HF_ENDED)
        return;
    if (err != HF_OK) {
        /* A baton may have been popped and lost with the answer. */
        b->wake_doubt = true;
        for (size_t i = 0; i < b->n_waiting_on; i++)
            b->give_back = owes(b->waiting_on[i]) || b->give_back;
        if (err == HF_MOVED || err == HF_UNSERVED)
            on_unserved(b, b->site, err, answer->detail);
        else if (err != HF_UNSURE && err != HF_READONLY)
            on_wait_refused(b, answer->detail);
        return;
    }
    b->wait_refused = false;
    b->wait_backoff_ms = 0;
    if (which < n) {
        hf_served *served = b->waiting_on[which];
        report_woken(served, at_ms);
        if (owes(served) || !hf_site_serves(b->site) || hf_running_slots(w) == 0)
            send_check(b, true);
        else
            on_baton(served, at_ms);
        hf_wake_timers(w);
    }
    if (hf_boot_ns() >= b->check_at_ns)
        send_check(b, false);
    hf_life_turn(w);
}

/* The blocked call itself answers, with or without a baton. Or it has not come yet, on
 * its own connection: then this is tried again. */
static void on_unblocked(const hf_answer *answer, void *arg)
{
    hf_bundle *b = arg;
    b->unblocks--;
    if (b->site->worker->phase == HF_ENDED || !b->blocked ||
        (answer->err == HF_OK && hf_reply_int(answer->reply) != 0))
        return;
    b->unblocking = false;
    if (answer->err == HF_AUTH) { /* the next waits are short, but this one is not */
        hf_redis_unblock_refused(b->client);
        hf_client_reset(b->client);
        hf_site_report_lacks(b->site);
        return;
    }
    b->unblock_ms = b->unblock_ms == 0 ? UNBLOCK_MS : 2 * b->unblock_ms;
    b->unblock_at_ns = hf_boot_ns() + b->unblock_ms * HF_MS_NS;
    look_in(b, b->unblock_ms);
}

static bool waits(const hf_bundle *b)
{
    return b->blocked && b->client != NULL && hf_client_ready(b->client);
}

/* A full worker would keep a baton from workers that could use it. */
static void unblock(hf_bundle *b)
{
    if (!b->blocked || b->unblocking || !hf_site_ready(b->site) ||
        hf_boot_ns() < b->unblock_at_ns)
        return;
    if (hf_redis_unblock(b->site->client, b->client, on_unblocked, b) != HF_OK)
        return;
    b->unblocking = true;
    b->unblocks++;
}

static void on_client(hf_client *client, hf_err err, const char *detail, void *arg)
{
    hf_bundle *b = arg;
    hf_worker *w = b->site->worker;
    (void)client;
    if (err == HF_OK) {
        b->wake_doubt = b->waited;
        b->wait_away = false;
        hf_site_report_lacks(b->site);
        hf_life_turn(w);
    } else if (w->phase == HF_SERVING) {
        hf_cluster_doubt(w->cluster);
        if (!b->wait_away)
            hf_report_text(w, HF_LOG_WARN, "the waiting connection is away", "error",
                           detail);
        b->wait_away = true;
        /* It may stay away while the other serves (too many clients): without it nothing
         * is heard of, so each failed try to connect is a time to look. */
        hf_bundle_doubt(b);
        hf_life_turn(w);
    }
}

static hf_err open_client(hf_bundle *b, char detail[HF_DETAIL_SIZE])
{
    const hf_client_opts opts = {.loop = &b->site->worker->loop,
                                 .redis = b->site->redis,
                                 .blocks = true,
                                 .on_event = on_client,
                                 .arg = b};
    return hf_client_open(&b->client, &opts, detail);
}

/* In a cluster, where each queue has one. Without memory: later. */
static void open_next_client(hf_bundle *b)
{
    hf_worker *w = b->site->worker;
    char detail[HF_DETAIL_SIZE];
    uint64_t now = hf_boot_ns();
    if (now < w->wake->open_at_ns || !hf_site_can_ask(b->site))
        return;
    (void)open_client(b, detail);
    w->wake->open_at_ns = now + (uint64_t)(hf_rng_unit(&w->rng) * OPEN_MS * HF_MS_NS);
}

static void close_client(hf_bundle *b)
{
    hf_client *client = b->client;
    b->client = NULL;
    hf_client_close(client, NULL, NULL);
}

/* ---- a turn ---- */

static void pump(hf_bundle *b)
{
    hf_worker *w = b->site->worker;
    const hf_queue *queues[HF_SLOTS_MAX];
    bool can = hf_site_serves(b->site) && hf_running_slots(w) > 0;
    if (b->client == NULL && !has_only_shards(b))
        open_next_client(b);
    if (b->give_back && !b->checking)
        send_check(b, true);
    if (!can) {
        unblock(b);
        return;
    }
    if (b->blocked && b->wait_stale)
        unblock(b);
    if (b->blocked || b->wait_hold_until_ns != 0 || !hf_site_can_ask(b->site) ||
        b->client == NULL || !hf_client_ready(b->client))
        return;
    if (b->wake_doubt) {
        b->wake_doubt = false;
        hf_bundle_doubt(b);
    }
    if (!hf_bundle_is_quiet(b))
        return;
    if (w->opts.burst && w->held == 0)
        send_check(b, false);
    choose_waited(b);
    size_t n = waiting_queues(b, queues);
    if (n == 0)
        return;
    if (hf_op_wait(b->client, queues, n, wait_ms(b), on_woken, b) == HF_OK)
        b->blocked = b->waited = true;
}

void hf_wake_pump(hf_worker *w)
{
    if (w->opts.burst && w->held > 0)
        w->wake->worked_ns = hf_boot_ns();
    for (hf_bundle *b = NULL; (b = hf_bundle_next(w->wake, b)) != NULL;)
        pump(b);
}

/* ---- bundles ---- */

void hf_bundle_open(hf_bundle *b, hf_site *site, hf_served *only)
{
    hf_worker *w = site->worker;
    b->site = site;
    b->only = only;
    if (b->look.data == NULL)
        uv_timer_init(&w->loop, &b->look);
    b->look.data = b;
    if (w->phase == HF_SERVING && !uv_is_active((uv_handle_t *)&b->look))
        look_in(b, longest_wait_ms(w));
}

/* A baton that its connection had is lost, which is a doubt. */
void hf_bundle_move(hf_bundle *b, hf_site *site)
{
    b->site = site;
    close_client(b);
    check_at(b, hf_boot_ns());
}

/* Only the timer stays: the slot's next queue has it. */
void hf_bundle_end(hf_bundle *b)
{
    close_client(b);
    uv_timer_stop(&b->look);
    uv_timer_t look = b->look;
    *b = (hf_bundle){.look = look};
}

/* ---- for the other parts ---- */

void hf_wake_open(hf_worker *w)
{
    hf_machine_id(w->wake->machine);
    uv_timer_init(&w->loop, &w->wake->baton_timer);
    w->wake->baton_timer.data = w;
}

hf_err hf_wake_connect(hf_worker *w)
{
    return open_client(&w->wake->bundles[0], w->detail);
}

void hf_wake_start(hf_worker *w)
{
    for (hf_bundle *b = NULL; (b = hf_bundle_next(w->wake, b)) != NULL;)
        look_in(b, longest_wait_ms(w));
}

void hf_wake_close(hf_worker *w)
{
    uv_handle_t *timer = (uv_handle_t *)&w->wake->baton_timer;
    for (size_t i = 0; i < w->wake->n_bundles; i++) {
        hf_bundle *b = &w->wake->bundles[i];
        close_client(b);
        if (b->look.data != NULL && !uv_is_closing((uv_handle_t *)&b->look))
            uv_close((uv_handle_t *)&b->look, NULL);
    }
    if (!uv_is_closing(timer))
        uv_close(timer, NULL);
}

void hf_wake_queues_changed(hf_worker *w, bool some_left)
{
    for (hf_bundle *b = NULL; (b = hf_bundle_next(w->wake, b)) != NULL;) {
        if (b->only != NULL && !hf_queue_is(b->only->state, HF_Q_GONE))
            continue;
        b->give_back = b->give_back || some_left;
        b->wait_stale = b->blocked;
    }
}

bool hf_wake_blocks(const hf_worker *w)
{
    for (hf_bundle *b = NULL; (b = hf_bundle_next(w->wake, b)) != NULL;)
        if (!b->blocked && !has_only_shards(b) &&
            (b->only == NULL || hf_site_can_ask(b->site)))
            return false;
    return true;
}

/* A site without a connection for the rest answers nothing. */
static bool is_idle(const hf_bundle *b)
{
    return !hf_site_ready(b->site) || (!b->checking && !b->give_back && !waits(b));
}

bool hf_wake_idle(const hf_worker *w)
{
    for (hf_bundle *b = NULL; (b = hf_bundle_next(w->wake, b)) != NULL;)
        if (!is_idle(b))
            return false;
    return true;
}
