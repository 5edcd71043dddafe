/* wake.c - waiting without polling: the batons and their timers.
 *
 * `wake` of each queue holds at most one baton, whose score says when somebody should
 * claim. A worker that has a free slot and nothing to claim blocks on the batons of all
 * its queues, on a connection of its own. Who pops a baton owns its time: it claims if it
 * has come, else keeps a timer and blocks again. A baton that cannot be used (no free
 * slot, quiet, stopping) is given back. After the blocking connection was lost an answer
 * may have been lost with it, so every queue is claimed once before the block is trusted
 * again. A promise lost with a worker that died is found by every idle worker's check
 * (check.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "worker/core.h"

enum { BURST_WAIT_MS = 500, UNBLOCK_MS = 5 };

static uint32_t shortest_wait_ms(const hf_worker *w)
{
    return w->opts.lease_ms / 2 < HF_WAIT_MS ? w->opts.lease_ms / 2 : HF_WAIT_MS;
}

uint32_t hf_wake_longest_ms(const hf_worker *w)
{
    return shortest_wait_ms(w) * 11 / 10;
}

uint32_t hf_wake_wait_ms(hf_worker *w)
{
    uint32_t ms = shortest_wait_ms(w);
    if (w->opts.burst && ms > BURST_WAIT_MS)
        ms = BURST_WAIT_MS;
    return ms + (uint32_t)(hf_rng_unit(&w->rng) * ms / 10);
}

/* Each time another one is named first. One that cannot be claimed is not named: a
 * refusal for its sake would be one for all. */
static void choose_queues(hf_worker *w)
{
    w->n_waiting_on = 0;
    for (size_t i = 0; i < w->n_served; i++) {
        hf_served *served = w->served[(i + w->wait_order) % w->n_served];
        if (!hf_queue_is(served->state, HF_Q_UNHEARD))
            w->waiting_on[w->n_waiting_on++] = served;
    }
    w->wait_order = w->wait_order + 1 < w->n_served ? w->wait_order + 1 : 0;
}

static size_t waiting_queues(const hf_worker *w, const hf_queue *out[HF_QUEUES_MAX])
{
    for (size_t i = 0; i < w->n_waiting_on; i++)
        out[i] = &w->waiting_on[i]->queue;
    return w->n_waiting_on;
}

/* ---- timers of batons ---- */

static void on_baton(hf_worker *w, hf_served *served, int64_t at_ms)
{
    if (at_ms <= hf_clock_now(w)) {
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

static uint64_t earlier(uint64_t a_ns, uint64_t b_ns) /* 0: none */
{
    return a_ns == 0 || (b_ns != 0 && b_ns < a_ns) ? b_ns : a_ns;
}

static uint64_t backoff_over_ns(const hf_worker *w) /* 0: there is none */
{
    uint64_t first = earlier(w->wait_hold_until_ns, w->spawn_hold_until_ns);
    for (size_t i = 0; i < w->n_slots; i++)
        first = earlier(first, w->slots[i].hold_until_ns);
    return first;
}

static void end_backoffs(hf_worker *w)
{
    uint64_t now = hf_boot_ns();
    if (w->wait_hold_until_ns <= now)
        w->wait_hold_until_ns = 0;
    if (w->spawn_hold_until_ns <= now)
        w->spawn_hold_until_ns = 0;
    hf_queues_hold_over(w, now);
}

/* Sets the one timer to the earliest of the owned times, of the planned looks, and of the
 * ends of backoffs. */
void hf_wake_timers(hf_worker *w)
{
    int64_t first = 0, now = hf_clock_now(w);
    uint64_t over_ns = backoff_over_ns(w), boot_ns = hf_boot_ns();
    for (size_t i = 0; i < w->n_served; i++)
        first = sooner(first, sooner(w->served[i]->timer_ms, w->served[i]->look_ms));
    if (first == 0 && over_ns == 0) {
        uv_timer_stop(&w->baton_timer);
        return;
    }
    uint64_t wait = first > now ? (uint64_t)(first - now) : 0;
    uint64_t backoff = over_ns > boot_ns ? (over_ns - boot_ns) / HF_MS_NS + 1 : 0;
    if (first == 0 || (over_ns != 0 && backoff < wait))
        wait = backoff;
    uv_update_time(&w->loop);
    uv_timer_start(&w->baton_timer, hf_wake_on_timer, wait, 0);
}

/* With a free slot: claim. Without one, or quiet: somebody else shall. */
void hf_wake_on_timer(uv_timer_t *timer)
{
    hf_worker *w = timer->data;
    bool back = false;
    end_backoffs(w);
    hf_check_look_again(w);
    for (size_t i = 0; i < w->n_served; i++) {
        hf_served *served = w->served[i];
        if (served->timer_ms == 0 || served->timer_ms > hf_clock_now(w))
            continue;
        served->due_ms = served->timer_ms;
        served->timer_ms = 0;
        hf_queue_on(served, HF_E_BATON);
        back = back || !hf_life_serving(w) || hf_dispatch_slots(w) == 0;
    }
    hf_wake_timers(w);
    if (back)
        hf_check_give_back(w);
    hf_life_turn(w);
}

/* ---- blocking ---- */

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
    if (!w->wait_refused)
        hf_report_text(w, HF_LOG_WARN, "Redis does not let this worker wait for jobs",
                       "error", detail);
    w->wait_refused = true;
    w->wait_backoff_ms = hf_backoff_longer(w->wait_backoff_ms);
    w->wait_hold_until_ns = hf_boot_ns() + w->wait_backoff_ms * HF_MS_NS;
}

static void on_woken(const hf_answer *answer, void *arg)
{
    hf_worker *w = arg;
    const hf_queue *queues[HF_QUEUES_MAX];
    size_t which, n = waiting_queues(w, queues);
    int64_t at_ms;
    hf_err err = hf_wait_read(answer, queues, n, &which, &at_ms);
    w->blocked = w->unblocking = w->wait_stale = false;
    w->unblock_ms = 0;
    if (w->phase == HF_ENDED)
        return;
    if (err != HF_OK) {
        /* A baton may have been popped and lost with the answer. */
        w->wake_doubt = true;
        for (size_t i = 0; i < w->n_waiting_on; i++)
            w->give_back = owes(w->waiting_on[i]) || w->give_back;
        if (err != HF_UNSURE && err != HF_READONLY)
            on_wait_refused(w, answer->detail);
        return;
    }
    w->wait_refused = false;
    w->wait_backoff_ms = 0;
    if (which < n) {
        hf_served *served = w->waiting_on[which];
        hf_report_woken(served, at_ms);
        if (owes(served) || !hf_life_serving(w) || hf_dispatch_slots(w) == 0)
            hf_check_give_back(w);
        else
            on_baton(w, served, at_ms);
        hf_wake_timers(w);
    }
    if (hf_boot_ns() >= w->check_at_ns)
        hf_check_send(w);
    hf_life_turn(w);
}

/* The blocked call itself answers, with or without a baton. Or it has not come yet, on
 * its own connection: then this is tried again. */
static void on_unblocked(const hf_answer *answer, void *arg)
{
    hf_worker *w = arg;
    if (w->phase == HF_ENDED || !w->blocked ||
        (answer->err == HF_OK && hf_reply_int(answer->reply) != 0))
        return;
    w->unblocking = false;
    if (answer->err == HF_AUTH) { /* the wait ends by itself within seconds */
        w->unblock_ms = hf_backoff_longer(w->unblock_ms);
        w->cannot_unblock = true;
        hf_server_tell_lacks(w);
    } else {
        w->unblock_ms = w->unblock_ms == 0 ? UNBLOCK_MS : 2 * w->unblock_ms;
    }
    w->unblock_at_ns = hf_boot_ns() + w->unblock_ms * HF_MS_NS;
    hf_beat_look_in(w, w->unblock_ms);
}

/* A full worker would keep a baton from those who could use it. */
static void unblock(hf_worker *w)
{
    if (!w->blocked || w->unblocking || !hf_client_ready(w->client) ||
        hf_boot_ns() < w->unblock_at_ns)
        return;
    if (hf_redis_unblock(w->client, w->wake_client, on_unblocked, w) == HF_OK)
        w->unblocking = true;
}

void hf_wake_pump(hf_worker *w)
{
    const hf_queue *queues[HF_QUEUES_MAX];
    bool can = hf_life_serving(w) && hf_dispatch_slots(w) > 0;
    if (w->give_back && !w->checking)
        hf_check_give_back(w);
    if (!can) {
        unblock(w);
        return;
    }
    if (w->blocked && w->wait_stale)
        unblock(w);
    if (w->blocked || w->pause_until_ns != 0 || w->wait_hold_until_ns != 0 ||
        !hf_client_ready(w->client) || !hf_client_ready(w->wake_client))
        return;
    if (w->wake_doubt) {
        w->wake_doubt = false;
        hf_queues_doubt(w);
    }
    if (!hf_queues_quiet(w))
        return;
    if (w->opts.burst && w->held == 0)
        hf_check_send(w);
    choose_queues(w);
    size_t n = waiting_queues(w, queues);
    if (n == 0)
        return;
    if (hf_op_wait(w->wake_client, queues, n, hf_wake_wait_ms(w), on_woken, w) == HF_OK)
        w->blocked = w->waited = true;
}

void hf_wake_client_event(hf_client *client, hf_err err, const char *detail, void *arg)
{
    hf_worker *w = arg;
    hf_client_follow(w->client, client);
    if (err == HF_OK) {
        w->wake_doubt = w->waited;
        w->wait_away = false;
        hf_life_turn(w);
    } else if (w->phase == HF_SERVING) {
        if (!w->wait_away)
            hf_report_text(w, HF_LOG_WARN, "the waiting connection is away", "error",
                           detail);
        w->wait_away = true;
        /* It may stay away while the other serves (too many clients): without it nothing
         * is heard of, so each failed try to connect is a time to look. */
        hf_queues_doubt(w);
        hf_life_turn(w);
    }
}
