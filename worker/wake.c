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
#include "worker/life.h"
#include "worker/queues.h"
#include "worker/redis_clock.h"
#include "worker/report.h"
#include "worker/running.h"
#include "worker/shared.h"
#include "worker/waking.h"
#include "worker/waking_state.h"

enum {
    BURST_WAIT_MS = 500,
    UNBLOCK_MS = 5,
    SPREAD_MS = 40, /* of the second looks of many workers */
    NOT_NOW_MS = 100
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

static uint32_t wait_ms(hf_worker *w)
{
    return hf_redis_wait_ms(w->client, w->wake_client, check_ms(w));
}

static uint64_t earlier(uint64_t a_ns, uint64_t b_ns) /* 0: none */
{
    return a_ns == 0 || (b_ns != 0 && b_ns < a_ns) ? b_ns : a_ns;
}

/* ---- the check: which queues ---- */

/* Those that are served, and those that it may have to give a baton back to. */
static size_t choose_checked(hf_worker *w, const hf_queue *out[HF_SLOTS_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < w->wake->n_slots; i++)
        if (w->wake->slots[i].state != HF_Q_FREE &&
            (!hf_queue_is(w->wake->slots[i].state, HF_Q_GONE) ||
             w->wake->slots[i].debt == HF_DEBT_OWED)) {
            w->wake->checking_at[n] = &w->wake->slots[i];
            out[n++] = &w->wake->slots[i].queue;
        }
    return n;
}

static void note_checking(hf_worker *w, size_t n)
{
    w->wake->n_checking = n;
    for (size_t i = 0; i < n; i++)
        w->wake->checking_at[i]->requests++;
}

static void checked_all(hf_worker *w)
{
    for (size_t i = 0; i < w->wake->n_checking; i++)
        w->wake->checking_at[i]->requests--;
    w->wake->n_checking = 0;
}

/* Batons of queues that are served no more. */
static void on_debts(const hf_worker *w, hf_debt_event event)
{
    for (size_t i = 0; i < w->wake->n_slots; i++)
        w->wake->slots[i].debt = hf_debt_next(w->wake->slots[i].debt, event);
}

/* ---- the check: Redis's clock ---- */

/* The samples of Redis's clock belong to the machine: each check stores them in Redis for
 * the other workers here, and a worker that has just started continues with them. */
static void share_clock(hf_worker *w, hf_check_args *args,
                        char learned[HF_REMOTE_STATE_SIZE])
{
    uint32_t judged_ms;
    args->least_ms = hf_server_view(w->redis, &judged_ms).least_ms;
    args->lease_ms = w->opts.lease_ms;
    args->machine = w->wake->machine;
    args->keep_ms = 2 * hf_remote_gap_ms(judged_ms);
    hf_server_learned(w->redis, learned);
    args->learned = learned;
}

static void adopt_clock(hf_worker *w, const hf_checked *checked)
{
    uint32_t longest = checked->longest_lease_ms;
    hf_server_judge(w->redis, longest > w->opts.lease_ms ? longest : w->opts.lease_ms);
    if (checked->learned.len > 0)
        hf_server_adopt(w->redis, checked->learned.ptr, checked->learned.len);
}

/* ---- the check: undated leases ---- */

static void choose_over(const hf_worker *w, size_t n, int64_t over[HF_SLOTS_MAX])
{
    for (size_t i = 0; i < n; i++)
        over[i] = hf_undated_over(&w->wake->checking_at[i]->undated, hf_boot_ns());
}

/* All leases that are undated by now are over when the longest lease has passed. */
static void note_undated(hf_worker *w, const hf_checked_queue *queues,
                         uint32_t longest_ms)
{
    uint64_t over_ns = hf_boot_ns() + longest_ms * HF_MS_NS, next_ns = 0;
    for (size_t i = 0; i < w->wake->n_checking; i++) {
        hf_undated *undated = &w->wake->checking_at[i]->undated;
        hf_undated_told(undated, queues[i].undated, over_ns);
        next_ns = earlier(next_ns, hf_undated_next_ns(undated, w->wake->checked_ns));
    }
    if (next_ns != 0)
        hf_check_at(w, next_ns);
}

void hf_wake_other_data(hf_worker *w)
{
    for (size_t i = 0; i < w->wake->n_slots; i++)
        w->wake->slots[i].undated = (hf_undated){.n = 0};
}

/* ---- the second look ---- */

/* In place of those that the last check has planned, and that have not come yet. */
static void plan_looks(hf_worker *w, const hf_checked_queue *queues)
{
    int64_t spread_ms = (int64_t)(hf_rng_unit(&w->rng) * SPREAD_MS);
    for (size_t i = 0; i < w->wake->n_checking; i++) {
        hf_served *served = w->wake->checking_at[i];
        int64_t doubt_ms = queues[i].doubt_ms;
        bool plan = doubt_ms != 0 && !hf_queue_is(served->state, HF_Q_GONE);
        served->look_ms = plan ? doubt_ms + spread_ms : 0;
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
static void look_again(hf_worker *w)
{
    const hf_queue *queues[HF_QUEUES_MAX];
    size_t n = 0;
    for (size_t i = 0; i < w->wake->n_served; i++) {
        hf_served *served = w->wake->served[i];
        if (served->look_ms == 0 || served->look_ms > hf_server_now(w->redis))
            continue;
        served->look_ms = 0;
        queues[n++] = &served->queue;
    }
    if (n == 0 || !hf_life_serving(w) || hf_running_slots(w) == 0 ||
        !hf_client_ready(w->client) || w->redis->pause_until_ns != 0)
        return;
    hf_check_args args = {.worker = w->id};
    char learned[HF_REMOTE_STATE_SIZE];
    share_clock(w, &args, learned);
    if (hf_op_check(w->client, queues, n, &args, on_looked, w) == HF_OK)
        hf_report_text(w, HF_LOG_DEBUG,
                       "checks whether a worker comes for an expired lease", NULL, NULL);
}

/* ---- the check itself ---- */

static void on_checked(const hf_answer *answer, void *arg)
{
    hf_worker *w = arg;
    hf_checked checked;
    hf_checked_queue queues[HF_SLOTS_MAX];
    hf_err err = hf_checked_read(answer, &checked, queues, w->wake->n_checking);
    w->wake->checking = false;
    on_debts(w, err == HF_OK ? HF_DEBT_PAID : HF_DEBT_FAILED);
    if (w->phase == HF_ENDED)
        return;
    if (err == HF_OK) {
        plan_looks(w, queues);
        note_undated(w, queues, checked.longest_lease_ms);
    }
    checked_all(w);
    if (err != HF_OK) {
        w->wake->give_back = w->wake->give_back || w->wake->check_gives;
        if (err != HF_UNSURE && err != HF_NOSCRIPT)
            hf_life_refused(w, err, answer->detail);
        return;
    }
    w->refused = HF_OK;
    hf_server_accepted(w->redis);
    w->heard = true;
    hf_clock_read(w, checked.now_ms, answer->sent_ns);
    adopt_clock(w, &checked);
    hf_life_register(w);
    hf_life_report_lacks(w); /* what was refused since */
    if (w->opts.burst && checked.empty && w->held == 0 && hf_queues_quiet(w))
        hf_worker_stop(w);
}

static void send_check(hf_worker *w, bool give_back)
{
    const hf_queue *queues[HF_SLOTS_MAX];
    char learned[HF_REMOTE_STATE_SIZE];
    w->wake->give_back = w->wake->give_back || give_back;
    if (!hf_client_ready(w->client) || w->wake->checking || w->redis->pause_until_ns != 0)
        return;
    size_t n = choose_checked(w, queues);
    int64_t over[HF_SLOTS_MAX];
    choose_over(w, n, over);
    hf_check_args args = {.worker = w->id,
                          .alive_ms = w->opts.lease_ms + HF_ALIVE_MS,
                          .over = over,
                          .give_back = w->wake->give_back};
    share_clock(w, &args, learned);
    if (hf_op_check(w->client, queues, n, &args, on_checked, w) != HF_OK)
        return;
    note_checking(w, n);
    w->wake->checking = true;
    w->wake->checked_ns = hf_boot_ns();
    w->wake->check_gives = w->wake->give_back;
    if (w->wake->give_back)
        on_debts(w, HF_DEBT_SENT);
    w->wake->give_back = false;
    /* A little less than a wait: each wait that ends without a baton leads to a check. */
    w->wake->check_at_ns = hf_boot_ns() + check_ms(w) * HF_MS_NS * 3 / 4;
}

void hf_check_send(hf_worker *w)
{
    send_check(w, false);
}

void hf_check_give_back(hf_worker *w)
{
    send_check(w, true);
}

/* A worker that waits for batons checks when the wait is over; but a wait that a baton
 * ended is followed by a whole one. */
static void on_look(uv_timer_t *timer)
{
    hf_worker *w = timer->data;
    hf_waking *k = w->wake;
    uint64_t now = hf_boot_ns(), every_ns = longest_wait_ms(w) * HF_MS_NS;
    bool again = k->check_again_ns != 0 && now >= k->check_again_ns;
    if (again)
        k->check_again_ns = 0;
    if (again || now >= k->checked_ns + every_ns)
        hf_check_send(w);
    hf_life_turn(w);
    if (w->phase == HF_ENDED || uv_is_active((uv_handle_t *)timer))
        return;
    uint64_t due = k->checked_ns + every_ns;
    if (k->check_again_ns != 0 && k->check_again_ns < due)
        due = k->check_again_ns;
    uint64_t wait = due > now ? (due - now) / HF_MS_NS + 1 : NOT_NOW_MS;
    uv_update_time(&w->loop);
    uv_timer_start(timer, on_look, wait, 0);
}

static void look_in(hf_worker *w, uint32_t ms)
{
    uv_update_time(&w->loop);
    uv_timer_start(&w->wake->look, on_look, ms, 0);
}

void hf_check_at(hf_worker *w, uint64_t at_ns)
{
    w->wake->check_again_ns = at_ns;
    look_in(w, 0); /* plans it */
}

/* ---- timers of batons ---- */

static void on_baton(hf_worker *w, hf_served *served, int64_t at_ms)
{
    if (at_ms <= hf_server_now(w->redis)) {
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
    uint64_t first = earlier(w->wake->wait_hold_until_ns, hf_running_hold_until_ns(w));
    for (size_t i = 0; i < w->wake->n_slots; i++)
        first = earlier(first, w->wake->slots[i].hold_until_ns);
    return first;
}

static void end_backoffs(hf_worker *w)
{
    uint64_t now = hf_boot_ns();
    if (w->wake->wait_hold_until_ns <= now)
        w->wake->wait_hold_until_ns = 0;
    hf_running_hold_over(w, now);
    hf_queues_hold_over(w, now);
}

static void on_baton_timer(uv_timer_t *timer);

/* Sets the one timer to the earliest of the owned times, of the planned looks, and of the
 * ends of backoffs. */
void hf_wake_timers(hf_worker *w)
{
    int64_t first = 0, now = hf_server_now(w->redis);
    uint64_t over_ns = backoff_over_ns(w), boot_ns = hf_boot_ns();
    for (size_t i = 0; i < w->wake->n_served; i++)
        first = sooner(first,
                       sooner(w->wake->served[i]->timer_ms, w->wake->served[i]->look_ms));
    if (first == 0 && over_ns == 0) {
        uv_timer_stop(&w->wake->baton_timer);
        return;
    }
    uint64_t wait = first > now ? (uint64_t)(first - now) : 0;
    uint64_t backoff = over_ns > boot_ns ? (over_ns - boot_ns) / HF_MS_NS + 1 : 0;
    if (first == 0 || (over_ns != 0 && backoff < wait))
        wait = backoff;
    uv_update_time(&w->loop);
    uv_timer_start(&w->wake->baton_timer, on_baton_timer, wait, 0);
}

/* With a free slot: claim. Without one, or quiet: it is given back. */
static void on_baton_timer(uv_timer_t *timer)
{
    hf_worker *w = timer->data;
    bool back = false;
    end_backoffs(w);
    look_again(w);
    for (size_t i = 0; i < w->wake->n_served; i++) {
        hf_served *served = w->wake->served[i];
        if (served->timer_ms == 0 || served->timer_ms > hf_server_now(w->redis))
            continue;
        served->due_ms = served->timer_ms;
        served->timer_ms = 0;
        hf_queue_on(served, HF_E_BATON);
        back = back || !hf_life_serving(w) || hf_running_slots(w) == 0;
    }
    hf_wake_timers(w);
    if (back)
        hf_check_give_back(w);
    hf_life_turn(w);
}

/* ---- blocking ---- */

/* Each time another one is named first. One that cannot be claimed is not named: a
 * refusal for its sake would be one for all. */
static void choose_waited(hf_worker *w)
{
    w->wake->n_waiting_on = 0;
    for (size_t i = 0; i < w->wake->n_served; i++) {
        hf_served *served =
            w->wake->served[(i + w->wake->wait_order) % w->wake->n_served];
        if (!hf_queue_is(served->state, HF_Q_UNHEARD))
            w->wake->waiting_on[w->wake->n_waiting_on++] = served;
    }
    w->wake->wait_order =
        w->wake->wait_order + 1 < w->wake->n_served ? w->wake->wait_order + 1 : 0;
}

static size_t waiting_queues(const hf_worker *w, const hf_queue *out[HF_QUEUES_MAX])
{
    for (size_t i = 0; i < w->wake->n_waiting_on; i++)
        out[i] = &w->wake->waiting_on[i]->queue;
    return w->wake->n_waiting_on;
}

static void report_woken(const hf_served *served, int64_t at_ms)
{
    int64_t now_ms = hf_server_now(served->worker->redis);
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
static void on_wait_refused(hf_worker *w, const char *detail)
{
    if (!w->wake->wait_refused)
        hf_report_text(w, HF_LOG_WARN, "Redis does not let this worker wait for jobs",
                       "error", detail);
    w->wake->wait_refused = true;
    w->wake->wait_backoff_ms = hf_backoff_longer(w->wake->wait_backoff_ms);
    w->wake->wait_hold_until_ns = hf_boot_ns() + w->wake->wait_backoff_ms * HF_MS_NS;
}

static void on_woken(const hf_answer *answer, void *arg)
{
    hf_worker *w = arg;
    const hf_queue *queues[HF_QUEUES_MAX];
    size_t which, n = waiting_queues(w, queues);
    int64_t at_ms;
    hf_err err = hf_wait_read(answer, queues, n, &which, &at_ms);
    w->wake->blocked = w->wake->unblocking = w->wake->wait_stale = false;
    w->wake->unblock_ms = 0;
    if (w->phase == HF_ENDED)
        return;
    if (err != HF_OK) {
        /* A baton may have been popped and lost with the answer. */
        w->wake->wake_doubt = true;
        for (size_t i = 0; i < w->wake->n_waiting_on; i++)
            w->wake->give_back = owes(w->wake->waiting_on[i]) || w->wake->give_back;
        if (err != HF_UNSURE && err != HF_READONLY)
            on_wait_refused(w, answer->detail);
        return;
    }
    w->wake->wait_refused = false;
    w->wake->wait_backoff_ms = 0;
    if (which < n) {
        hf_served *served = w->wake->waiting_on[which];
        report_woken(served, at_ms);
        if (owes(served) || !hf_life_serving(w) || hf_running_slots(w) == 0)
            hf_check_give_back(w);
        else
            on_baton(w, served, at_ms);
        hf_wake_timers(w);
    }
    if (hf_boot_ns() >= w->wake->check_at_ns)
        hf_check_send(w);
    hf_life_turn(w);
}

/* The blocked call itself answers, with or without a baton. Or it has not come yet, on
 * its own connection: then this is tried again. */
static void on_unblocked(const hf_answer *answer, void *arg)
{
    hf_worker *w = arg;
    if (w->phase == HF_ENDED || !w->wake->blocked ||
        (answer->err == HF_OK && hf_reply_int(answer->reply) != 0))
        return;
    w->wake->unblocking = false;
    if (answer->err == HF_AUTH) { /* the next waits are short, but this one is not */
        hf_redis_unblock_refused(w->wake_client);
        hf_client_reset(w->wake_client);
        hf_life_report_lacks(w);
        return;
    }
    w->wake->unblock_ms = w->wake->unblock_ms == 0 ? UNBLOCK_MS : 2 * w->wake->unblock_ms;
    w->wake->unblock_at_ns = hf_boot_ns() + w->wake->unblock_ms * HF_MS_NS;
    look_in(w, w->wake->unblock_ms);
}

/* A full worker would keep a baton from workers that could use it. */
static void unblock(hf_worker *w)
{
    if (!w->wake->blocked || w->wake->unblocking || !hf_client_ready(w->client) ||
        hf_boot_ns() < w->wake->unblock_at_ns)
        return;
    if (hf_redis_unblock(w->client, w->wake_client, on_unblocked, w) == HF_OK)
        w->wake->unblocking = true;
}

void hf_wake_pump(hf_worker *w)
{
    const hf_queue *queues[HF_QUEUES_MAX];
    bool can = hf_life_serving(w) && hf_running_slots(w) > 0;
    if (w->wake->give_back && !w->wake->checking)
        hf_check_give_back(w);
    if (!can) {
        unblock(w);
        return;
    }
    if (w->wake->blocked && w->wake->wait_stale)
        unblock(w);
    if (w->wake->blocked || w->redis->pause_until_ns != 0 ||
        w->wake->wait_hold_until_ns != 0 || !hf_client_ready(w->client) ||
        !hf_client_ready(w->wake_client))
        return;
    if (w->wake->wake_doubt) {
        w->wake->wake_doubt = false;
        hf_queues_doubt(w);
    }
    if (!hf_queues_quiet(w))
        return;
    if (w->opts.burst && w->held == 0)
        hf_check_send(w);
    choose_waited(w);
    size_t n = waiting_queues(w, queues);
    if (n == 0)
        return;
    if (hf_op_wait(w->wake_client, queues, n, wait_ms(w), on_woken, w) == HF_OK)
        w->wake->blocked = w->wake->waited = true;
}

void hf_wake_client_event(hf_client *client, hf_err err, const char *detail, void *arg)
{
    hf_worker *w = arg;
    (void)client;
    if (err == HF_OK) {
        w->wake->wake_doubt = w->wake->waited;
        w->wake->wait_away = false;
        hf_life_report_lacks(w);
        hf_life_turn(w);
    } else if (w->phase == HF_SERVING) {
        if (!w->wake->wait_away)
            hf_report_text(w, HF_LOG_WARN, "the waiting connection is away", "error",
                           detail);
        w->wake->wait_away = true;
        /* It may stay away while the other serves (too many clients): without it nothing
         * is heard of, so each failed try to connect is a time to look. */
        hf_queues_doubt(w);
        hf_life_turn(w);
    }
}

/* ---- for the other parts ---- */

void hf_wake_open(hf_worker *w)
{
    uv_timer_t *timers[] = {&w->wake->baton_timer, &w->wake->look};
    hf_machine_id(w->wake->machine);
    for (size_t i = 0; i < 2; i++) {
        uv_timer_init(&w->loop, timers[i]);
        timers[i]->data = w;
    }
}

void hf_wake_start(hf_worker *w)
{
    uv_timer_start(&w->wake->look, on_look, longest_wait_ms(w), 0);
}

void hf_wake_close(hf_worker *w)
{
    uv_handle_t *timers[] = {(uv_handle_t *)&w->wake->baton_timer,
                             (uv_handle_t *)&w->wake->look};
    for (size_t i = 0; i < 2; i++)
        if (!uv_is_closing(timers[i]))
            uv_close(timers[i], NULL);
}

void hf_wake_queues_changed(hf_worker *w, bool some_left)
{
    w->wake->give_back = w->wake->give_back || some_left;
    w->wake->wait_stale = w->wake->blocked;
}

bool hf_wake_blocks(const hf_worker *w)
{
    return w->wake->blocked;
}

bool hf_wake_idle(const hf_worker *w)
{
    return !w->wake->checking && !w->wake->give_back &&
           (!w->wake->blocked || !hf_client_ready(w->wake_client));
}
