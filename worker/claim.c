/* claim.c - asking a queue for jobs: when it may have some, the request, the answer.
 *
 * A queue is `hot` while a claim may find something: at the start, after a claim that
 * left something, when its baton came due, and after a reconnect. If what was left is
 * less than the other workers may take meanwhile, it is contested: it is asked beside
 * others, but not for its own sake; its baton goes from one worker to the next, and none
 * comes in vain. One claim at a time is under way for each queue. The rules that keep
 * wake-ups from being lost:
 *
 *   - its timer is dropped when the claim is sent, not when the answer comes: a baton
 *     popped meanwhile (the two connections answer in any order) sets a new one;
 *   - a due baton popped meanwhile leads to one more claim after this one;
 *   - a claim whose answer was lost may have locked jobs that nobody here knows: past
 *     its not_after they are asked for and released, and only then is the queue
 *     claimed again. */
#include <string.h>

#include "base/clock.h"
#include "worker/core.h"

enum { NOT_NOW_MS = 100 };

/* ---- the answer ---- */

static void take_all(hf_worker *w, hf_served *served, const hf_claimed *claimed,
                     uint64_t sent_ns)
{
    hf_run *runs[HF_CLAIM_MAX];
    hf_lease *leases[HF_CLAIM_MAX];
    size_t n = 0;
    uint64_t half_ns = w->opts.lease_ms * HF_MS_NS / 2;
    bool renew_first = hf_boot_ns() - sent_ns > half_ns;
    for (size_t i = 0; i < claimed->n && n < HF_CLAIM_MAX; i++) {
        hf_claimed_job job;
        hf_claimed_at(claimed, i, &job);
        runs[n] = hf_run_new(served, &job, claimed->fence, claimed->now_ms);
        if (runs[n] != NULL) {
            atomic_store(&runs[n]->await_renewal, renew_first);
            n++;
        }
    }
    hf_watchdog_add_many(w->watchdog, served->slot, w->opts.lease_ms, sent_ns,
                         renew_first, (void *const *)runs, leases, n);
    for (size_t i = 0; i < n; i++) {
        runs[i]->lease = leases[i];
        if (leases[i] == NULL) {
            hf_run_free(runs[i]); /* out of memory: its lease ends by itself */
            continue;
        }
        w->held++;
        runs[i]->state = HF_HELD_BACK;
        if (renew_first && runs[i]->reason == NULL)
            hf_run_push(&w->held_back, runs[i]);
        else
            hf_run_take(w, runs[i]);
    }
}

static void on_unclaimed(const hf_answer *answer, void *arg)
{
    hf_served *served = arg;
    if (answer->err == HF_OK) {
        hf_rest_answered(served);
        served->unsure = served->claiming = false;
        served->hot = served->baton = true;
    } else {
        served->claiming = true; /* asked again by hf_claim_lost() */
        if (answer->err != HF_UNSURE && answer->err != HF_NOSCRIPT)
            hf_rest_refused(served, answer->err, answer->detail);
        served->claim_sent_ns = 0;
    }
}

/* Until its not_after the request may still be executed. That is at most as long after
 * its sending as any request has; if it seems longer, Redis's clock was set back. */
static uint32_t unsure_left_ms(const hf_worker *w, const hf_served *served)
{
    int64_t left = served->claim_not_after - hf_clock_now(w) + 1;
    uint64_t until_ns = served->unsure_ns + (HF_NOT_AFTER_MS + 1) * HF_MS_NS;
    uint64_t boot_ns = hf_boot_ns();
    if (served->claim_not_after == 0 || left <= 0 || boot_ns >= until_ns)
        return 0;
    int64_t most = (int64_t)((until_ns - boot_ns) / HF_MS_NS) + 1;
    return (uint32_t)(left < most ? left : most);
}

void hf_claim_lost(hf_worker *w)
{
    if (!hf_client_ready(w->client) || w->pause_until_ns != 0)
        return;
    for (size_t i = 0; i < w->n_slots; i++) {
        hf_served *served = &w->slots[i];
        if (!served->unsure || served->claim_sent_ns != 0 || served->rest_until_ns != 0)
            continue;
        uint32_t left = unsure_left_ms(w, served);
        if (left > 0) {
            hf_rest(served, left);
            continue;
        }
        if (hf_op_unclaim(w->client, &served->queue, w->id, served->claim_number,
                          on_unclaimed, served) == HF_OK)
            served->claim_sent_ns = hf_boot_ns();
    }
}

static void on_fault(hf_served *served, hf_err err, const char *detail)
{
    served->hot = served->baton = true;
    served->again = false;
    if (err == HF_UNSURE || err == HF_PROTO) {
        served->unsure = served->claiming = true;
        served->unsure_ns = hf_boot_ns();
        served->claim_sent_ns = 0;
        return;
    }
    if (err != HF_DEADLINE && err != HF_NOSCRIPT)
        hf_rest_refused(served, err, detail);
}

static bool has_more(const hf_claimed *claimed)
{
    return claimed->next_ms != 0 && claimed->next_ms <= claimed->now_ms;
}

static void on_claimed(const hf_answer *answer, void *arg)
{
    hf_served *served = arg;
    hf_worker *w = served->worker;
    hf_claimed claimed;
    hf_err err = hf_claimed_read(answer, &claimed);
    served->claiming = false;
    if (claimed.now_ms != 0)
        hf_clock_read(w, claimed.now_ms, answer->sent_ns);
    if (err != HF_OK) {
        hf_claim_refund(served, served->asked);
        served->asked = 0;
        on_fault(served, err, answer->detail);
        return;
    }
    hf_rest_answered(served);
    w->heard = served->looked = true;
    hf_report_claimed(served, &claimed);
    hf_report_buried(served, &claimed);
    if (claimed.n > 0)
        take_all(w, served, &claimed, answer->sent_ns);
    if (claimed.n < served->asked)
        hf_claim_refund(served, served->asked - (uint32_t)claimed.n);
    served->hot = served->again || has_more(&claimed);
    served->contested = !served->again && !claimed.more;
    served->again = false;
    if (served->sent_due_ms > claimed.now_ms && served->timer_ms == 0)
        served->timer_ms = served->sent_due_ms; /* it came too early */
    served->asked = 0;
}

/* ---- the request ---- */

void hf_claim_send(hf_worker *w, hf_served *served, uint32_t n)
{
    uint64_t now = hf_boot_ns();
    uint32_t slots = hf_dispatch_slots(w);
    bool refresh = now >= w->alive_at_ns;
    hf_claim_args args = {
        .worker = w->id,
        .number = served->claim_number + 1,
        .max = n > HF_CLAIM_BATCH ? HF_CLAIM_BATCH : n,
        .slots = slots == 0 ? 1 : slots,
        .lease_ms = w->opts.lease_ms,
        .not_after = hf_clock_not_after(w),
        .alive_ms = refresh ? w->opts.lease_ms + HF_ALIVE_MS : 0,
        .poison = w->opts.poison,
        .dead_max = w->opts.dead_max,
        .dead_age_ms = w->opts.dead_age_ms,
        .baton = served->baton,
        .due = served->due_ms != 0,
        .forgive = now < w->forgive_until_ns,
    };
    args.clock = hf_clock_shown(w, &args.judged_ms);
    hf_err err = hf_op_claim(w->client, &served->queue, &args, on_claimed, served);
    if (err != HF_OK) {
        hf_claim_refund(served, args.max);
        if (err != HF_CONN)
            hf_life_pause(w, NOT_NOW_MS);
        return;
    }
    served->claim_number++;
    served->claiming = true;
    served->asked = args.max;
    served->claim_not_after = args.not_after;
    /* A claim that clears the promise puts a new baton; any other one leaves it, and then
     * its timer has to stay: nobody else would come at its time. */
    if (args.baton)
        served->timer_ms = 0;
    served->baton = false;
    served->sent_due_ms = served->due_ms;
    served->due_ms = 0;
    if (refresh && w->n_served == 1)
        w->alive_at_ns = now + HF_WAIT_MS * HF_MS_NS;
    if (args.due) {
        hf_redis_flush(w->client); /* a job waits for it; the rest of the turn can wait */
        hf_lead_expect(w);
    }
}

void hf_claim_all(hf_worker *w, bool baton)
{
    for (size_t i = 0; i < w->n_served; i++) {
        w->served[i]->hot = true;
        w->served[i]->baton = w->served[i]->baton || baton;
    }
}

bool hf_claim_quiet(const hf_worker *w)
{
    for (size_t i = 0; i < w->n_served; i++) {
        const hf_served *served = w->served[i];
        if (!hf_claim_cannot(served) && (hf_claim_sure(served) || served->claiming))
            return false;
    }
    return true;
}

bool hf_claim_sure(const hf_served *served)
{
    return served->hot && (!served->contested || served->baton || served->due_ms != 0);
}

bool hf_claim_cannot(const hf_served *served)
{
    return served->rest_until_ns != 0 || served->unsure;
}
