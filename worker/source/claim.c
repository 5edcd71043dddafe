/* claim.c - claiming: the choice of the queue, the request, the answer.
 *
 * The choice: by weight, each requested job costs its queue 1/weight, and the queue that
 * has spent least goes next. Jobs that did not arrive, or were put back before they
 * started, are refunded. In strict order a queue is asked only for what the queues before
 * it did not give. Of the members of a queue one is asked for all of it, and each in its
 * turn; those of one site one after the other, so a claim is as large as that of a queue
 * with one member.
 *
 * While this worker does not block on the batons it receives none. It looks at its
 * empty queues now and then, all by one request, unless it has nothing to do and blocks
 * in the same turn.
 *
 * One claim at a time is under way for each queue (worker/queues/claim_state.h). The
 * rules that keep wake-ups from being lost:
 *
 *   - in UNKNOWN the timer of a queue is dropped when the claim is sent, not when the
 * answer comes: a baton popped meanwhile (the two connections answer in any order) sets a
 * new one;
 *   - a due baton popped meanwhile leads to one more claim after this one;
 *   - a claim whose answer was lost may have locked jobs that this worker does not know:
 *     past its not_after they are asked for and released, and only then is the queue
 *     claimed again. */
#include "worker/source/claim.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "holdfast/admin.h"
#include "redis/err.h"
#include "worker/node/site.h"
#include "worker/node/sites.h"
#include "worker/past.h"
#include "worker/queues/bundle.h"
#include "worker/queues/claim_state.h"
#include "worker/queues/queues.h"
#include "worker/queues/shards.h"
#include "worker/report.h"
#include "worker/run/run.h"
#include "worker/run/trace.h"
#include "worker/runner/runner.h"
#include "worker/schedules.h"
#include "worker/source/readings.h"
#include "worker/worker.h"

enum {
    BATCH_MAX = 200,     /* jobs asked for at a time; */
    FAR_BATCH_MAX = 400, /* of a Redis whose answers take FAR_US or longer */
    FAR_US = 300,
    PEEK_MS = 10,
    LATE_MS = 100,      /* an answer is, after this and a few round trips */
    DIVIDED_MS = 10000, /* then the own keys of a divided queue are claimed again */
    SHARES_MAX = 256
};

/* ---- the answer ---- */

static void report_claimed(const hf_served *served, const hf_claimed *claimed)
{
    const hf_log_field fields[] = {{.key = "queue", .text = served->queue.name},
                                   {.key = "asked", .number = served->claim.asked},
                                   {.key = "jobs", .number = (int64_t)claimed->n}};
    hf_report(served->worker, HF_LOG_DEBUG, "claimed", fields, HF_COUNT(fields));
}

/* The jobs that the claim itself moved to `dead`: poison, or without a record. */
static void report_buried(const hf_served *served, const hf_claimed *claimed)
{
    char job[HF_ID_SIZE], text[HF_ERROR_MAX];
    for (size_t i = 0; i < claimed->n_buried; i++) {
        hf_bytes id, why;
        hf_claimed_buried(claimed, i, &id, &why);
        snprintf(job, sizeof job, "%.*s", (int)id.len, (const char *)id.ptr);
        snprintf(text, sizeof text, "%.*s", (int)why.len, (const char *)why.ptr);
        const hf_log_field fields[] = {{.key = "job", .text = job},
                                       {.key = "queue", .text = served->queue.name},
                                       {.key = "outcome", .text = "dead"},
                                       {.key = "error", .text = text}};
        hf_report(served->worker, HF_LOG_WARN, "job", fields, HF_COUNT(fields));
        hf_counters_outcome(served->whole->counters, NULL, "dead");
    }
}

/* ---- its replicas ---- */

enum { FENCE_SIZE = sizeof((hf_run *)NULL)->fence };

/* With wait_replicas: the jobs of a claim wait until replicas have it. */
typedef struct claim {
    hf_confirm confirm;
    hf_served *served;
    hf_site *site;          /* that has answered it */
    char fence[FENCE_SIZE]; /* of all its jobs */
} claim;

static void on_confirmed(void *arg, hf_err err, const char *detail)
{
    claim *c = arg;
    hf_worker *w = c->served->worker;
    c->served->requests--;
    if (w->phase != HF_ENDED) {
        bool moved = c->site != c->served->site;
        if (!moved)
            hf_site_confirm_report(c->site, err, detail);
        hf_runner_confirmed(c->served, c->fence, err == HF_OK && !moved);
        w->turn_due = true; /* a timer may have led here */
    }
    free(c);
}

static void confirm_claim(hf_served *served, hf_bytes fence)
{
    char text[FENCE_SIZE];
    claim *c = malloc(sizeof *c);
    (void)snprintf(text, sizeof text, "%.*s", (int)fence.len, (const char *)fence.ptr);
    if (c == NULL) {
        hf_runner_confirmed(served, text, false);
        return;
    }
    served->requests++;
    c->served = served;
    c->site = served->claim.site;
    memcpy(c->fence, text, sizeof c->fence);
    hf_site_confirm(c->site, &c->confirm, on_confirmed, c);
}

/* ---- its jobs ---- */

static void take_all(hf_worker *w, hf_served *served, const hf_claimed *claimed,
                     uint64_t sent_ns)
{
    hf_run *runs[HF_CLAIM_MAX];
    hf_lease *leases[HF_CLAIM_MAX];
    size_t n = 0;
    uint64_t half_ns = w->opts.lease_ms * HF_MS_NS / 2;
    bool renew_first =
        hf_boot_ns() - sent_ns > half_ns; /* which waits for replicas too */
    const hf_site *site = served->claim.site;
    bool confirm = site->base.replicas != NULL && !renew_first && hf_site_serves(site);
    for (size_t i = 0; i < claimed->n && n < HF_CLAIM_MAX; i++) {
        hf_claimed_job job;
        hf_claimed_at(claimed, i, &job);
        runs[n] = hf_run_new(served, &job, claimed->fence, claimed->now_ms);
        if (runs[n] != NULL) {
            atomic_store(&runs[n]->await_renewal, renew_first);
            hf_trace_begin(runs[n]);
            n++;
        }
    }
    hf_watchdog_add_many(w->watchdog, served->slot, w->opts.lease_ms, sent_ns,
                         renew_first, (void *const *)runs, leases, n);
    for (size_t i = 0; i < n; i++) {
        runs[i]->lease = leases[i];
        if (leases[i] == NULL) {
            hf_run_free(runs[i]); /* out of memory: its lease will end */
            continue;
        }
        w->in_hand++;
        if ((renew_first || confirm) && runs[i]->reason == NULL)
            hf_runner_confirm_first(runs[i]);
        else
            hf_runner_accept(runs[i]);
    }
    if (confirm)
        confirm_claim(served, claimed->fence);
}

static void on_unclaimed(const hf_answer *answer, void *arg)
{
    hf_served *served = arg;
    hf_err err = answer->err;
    hf_queue_event event = HF_E_NOT_RUN;
    if (err == HF_OK)
        event = HF_E_ACCOUNTED;
    else if (err == HF_UNSURE)
        event = HF_E_LOST;
    else if (err != HF_NOSCRIPT &&
             hf_queue_refused(served, served->claim.site, err, answer))
        event = HF_E_REFUSED;
    hf_queue_apply(served, event);
}

/* Until its not_after the request may still be executed. That is at most as long after
 * its sending as any request has; if it seems longer, Redis's clock was set back. */
static uint32_t doubt_left_ms(const hf_served *served)
{
    int64_t left = served->claim.not_after - hf_server_now(served->site->base.redis) + 1;
    uint64_t until_ns = served->claim.lost_ns + (HF_NOT_AFTER_MS + 1) * HF_MS_NS;
    uint64_t boot_ns = hf_boot_ns();
    if (served->claim.not_after == 0 || left <= 0 || boot_ns >= until_ns)
        return 0;
    int64_t most = (int64_t)((until_ns - boot_ns) / HF_MS_NS) + 1;
    return (uint32_t)(left < most ? left : most);
}

void hf_claim_lost(hf_worker *w)
{
    for (size_t i = 0; i < w->queues->n_slots; i++) {
        hf_served *served = &w->queues->slots[i];
        bool in_doubt =
            served->state == HF_Q_IN_DOUBT || served->state == HF_Q_LEAVING_IN_DOUBT;
        if (!in_doubt || served->backoff.until_ns != 0 || !hf_site_can_ask(served->site))
            continue;
        uint32_t left = doubt_left_ms(served);
        served->claim.site = served->site;
        if (left > 0)
            hf_queue_back_off(served, left);
        else if (hf_op_unclaim(served->site->base.client, &served->queue, w->id,
                               served->claim.number, on_unclaimed, served) == HF_OK)
            hf_queue_apply(served, HF_E_ASKED);
    }
}

/* Without an answer, or with one that makes no sense, it may have been executed. */
static void on_fault(hf_served *served, hf_err err, const hf_answer *answer)
{
    hf_queue_event event = HF_E_NOT_RUN;
    if (err == HF_UNSURE || err == HF_PROTO) {
        event = HF_E_LOST;
    } else if (err == HF_SHARDED && hf_shards_learn(served, answer->detail)) {
        hf_queue_back_off(served, DIVIDED_MS);
        event = HF_E_REFUSED;
    } else if (!hf_err_is(err, HF_ERR_AT_ONCE)) {
        err = err == HF_SHARDED ? HF_PROTO : err; /* its words make no sense */
        if (hf_queue_refused(served, served->claim.site, err, answer))
            event = HF_E_REFUSED;
    }
    hf_queue_apply(served, event);
}

static hf_queue_event event_of(const hf_claimed *claimed)
{
    if (claimed->next_ms == 0 || claimed->next_ms > claimed->now_ms)
        return HF_E_EMPTY;
    return claimed->more ? HF_E_MORE : HF_E_SHARED;
}

/* An answer of its Redis takes long: larger claims are worth it, because a queue has one
 * under way. Where the way is short, 16 workers get more done with smaller ones. */
static bool is_far(const hf_served *served)
{
    return hf_server_trip_ns(served->site->base.redis) >= FAR_US * (uint64_t)1000;
}

static uint32_t batch_max(const hf_served *served)
{
    return is_far(served) ? FAR_BATCH_MAX : BATCH_MAX;
}

/* The next claim is on a long way to Redis while the jobs of this one are taken. */
static void claim_ahead(hf_served *served, const hf_claimed *claimed)
{
    hf_worker *w = served->worker;
    if (!claimed->more || !is_far(served) || served->site != served->claim.site)
        return;
    w->arriving = claimed->n;
    hf_claim_pump(w);
    hf_client_flush(served->site->base.client);
    w->arriving = 0;
}

static void on_claimed(const hf_answer *answer, void *arg)
{
    hf_served *served = arg;
    hf_worker *w = served->worker;
    hf_claimed claimed;
    hf_err err = hf_claimed_read(answer, &claimed);
    if (claimed.now_ms != 0)
        hf_site_clock_read(served->claim.site, claimed.now_ms, answer->sent_ns);
    if (err != HF_OK) {
        hf_queue_refund(served, served->claim.asked);
        served->claim.asked = 0;
        on_fault(served, err, answer);
        return;
    }
    w->heard = served->claim.was_answered = true;
    hf_counters_claim(w->counters);
    report_claimed(served, &claimed);
    report_buried(served, &claimed);
    hf_past_buried(served, claimed.n_buried);
    if (claimed.n < served->claim.asked)
        hf_queue_refund(served, served->claim.asked - (uint32_t)claimed.n);
    if (claimed.n == 0)
        served->claim.credit -= 1; /* or its turn would never end */
    if (served->claim.due_ms > claimed.now_ms && served->wake.timer_ms == 0)
        served->wake.timer_ms = served->claim.due_ms; /* it came too early */
    served->claim.asked = 0;
    hf_queue_apply(served, event_of(&claimed));
    claim_ahead(served, &claimed);
    if (claimed.n > 0) {
        take_all(w, served, &claimed, answer->sent_ns);
        hf_readings_expect(served->bundle);
    }
    hf_schedules_claimed(served, claimed.ticks, claimed.now_ms);
}

/* ---- the request ---- */

static void send_claim(hf_worker *w, hf_served *served, uint32_t n)
{
    hf_site *site = served->site;
    uint64_t now = hf_boot_ns();
    uint32_t slots = hf_runner_slots(w), most = batch_max(served);
    bool refresh = now >= served->claim.alive_at_ns;
    hf_claim_args args = {
        .worker = w->id,
        .number = served->claim.number + 1,
        .max = n < most ? n : most,
        .slots = slots == 0 ? 1 : slots,
        .lease_ms = w->opts.lease_ms,
        .not_after = hf_site_not_after(site),
        .alive_ms = refresh ? w->opts.lease_ms + HF_ALIVE_MS : 0,
        .poison = w->opts.poison,
        .dead_max = w->opts.dead_max,
        .dead_age_ms = w->opts.dead_age_ms,
        .doubted = served->state == HF_Q_UNKNOWN,
        .due = served->state == HF_Q_DUE,
        .forgive = now < site->no_crash_until_ns || now < served->no_crash_until_ns,
    };
    served->claim.credit -= args.max;
    hf_err err =
        hf_op_claim(site->base.client, &served->queue, &args, on_claimed, served);
    if (err != HF_OK) {
        hf_queue_refund(served, args.max);
        if (err != HF_CONN)
            hf_site_pause(site, err);
        return;
    }
    served->claim.number++;
    served->claim.site = site;
    served->claim.asked = args.max;
    served->claim.sent_ns = now;
    served->claim.not_after = args.not_after;
    served->claim.due_ms = args.due ? served->wake.due_ms : 0;
    served->wake.due_ms = 0;
    hf_queue_apply(served, HF_E_SENT);
    if (refresh)
        served->claim.alive_at_ns = now + HF_WAIT_MS * HF_MS_NS;
    if (args.due) {
        hf_client_flush(
            site->base.client); /* a job waits for it; the rest of the turn can wait */
        hf_runner_expect(w);
    }
}

void hf_claim_say_alive(hf_worker *w)
{
    for (size_t i = 0; i < w->queues->n_slots; i++)
        w->queues->slots[i].claim.alive_at_ns = 0;
}

/* ---- whose turn it is ---- */

static bool may_be_claimed(const hf_served *served)
{
    return served->site->claimable && hf_queue_is(served, HF_Q_CLAIMABLE);
}

/* The Redis of a claim may be away. That must stop nothing else: only its own queue waits
 * for its jobs any longer. */
static bool is_late(const hf_served *served, uint64_t now)
{
    uint64_t trip_ns = hf_server_trip_ns(served->claim.site->base.redis);
    return now > served->claim.sent_ns + LATE_MS * HF_MS_NS + 4 * trip_ns;
}

/* Notes which members are busy, and how many jobs their claims ask for. */
static void look_at(hf_whole *whole)
{
    uint64_t now = hf_boot_ns();
    whole->under_way = 0;
    whole->busy = false;
    for (hf_served *m = whole->members; m != NULL; m = m->next_member)
        m->site->claimed = false;
    for (hf_served *m = whole->members; m != NULL; m = m->next_member) {
        if (!hf_queue_is(m, HF_Q_BUSY) || is_late(m, now))
            continue;
        m->site->claimed = whole->busy = true;
        whole->under_way += m->claim.asked;
    }
}

/* Whether a claim for more would be about as large as if its queue had one member: the
 * site has answered the last one, and it asks for half as much as the others do. */
static bool is_worth_it(const hf_served *served, uint32_t want)
{
    return !served->site->claimed && want >= served->whole->under_way / 2;
}

/* A member that has nothing to give saves up no more than the others have. */
static void level_members(hf_whole *whole)
{
    double most = -INFINITY;
    for (const hf_served *m = whole->members; m != NULL; m = m->next_member)
        if (m->claim.credit > most && (may_be_claimed(m) || hf_queue_is(m, HF_Q_BUSY)))
            most = m->claim.credit;
    for (hf_served *m = whole->members; m != NULL; m = m->next_member)
        m->claim.credit = m->claim.credit < most ? m->claim.credit - most : 0;
}

/* The least served of the members that can be claimed. */
static void take_turn(hf_whole *whole, uint32_t want)
{
    look_at(whole);
    level_members(whole);
    whole->turn = NULL;
    for (hf_served *m = whole->members; m != NULL; m = m->next_member)
        if (may_be_claimed(m) &&
            (!hf_queue_is(m, HF_Q_PATIENT) || is_worth_it(m, want)) &&
            (whole->turn == NULL || m->claim.credit > whole->turn->claim.credit))
            whole->turn = m;
}

static uint32_t under_way(const hf_worker *w)
{
    uint32_t n = 0;
    uint64_t now = hf_boot_ns();
    for (size_t i = 0; i < w->queues->n_served; i++) {
        const hf_served *served = w->queues->served[i];
        n += served->claim.asked == 0 || is_late(served, now) ? 0 : served->claim.asked;
    }
    return n;
}

/* ---- looking ---- */

static void on_peeked(const hf_answer *answer, void *arg)
{
    hf_bundle *b = arg;
    bool ready[HF_SLOTS_MAX] = {false};
    size_t n = b->n_peeking;
    /* A fault tells nothing that the next claim does not tell. */
    hf_err err = hf_peeked_read(answer, ready, n);
    b->n_peeking = 0;
    for (size_t i = 0; i < n; i++) {
        b->peeking_at[i]->requests--;
        if (err == HF_OK && ready[i])
            hf_queue_apply(b->peeking_at[i], HF_E_SEEN);
    }
    if (err == HF_NOSCRIPT)
        b->peeked_ns = 0;
}

static void peek(hf_bundle *b, uint64_t now)
{
    const hf_worker *w = b->site->worker;
    const hf_queue *queues[HF_SLOTS_MAX];
    size_t n = 0;
    bool blocks = hf_queues_quiet_in(b) && hf_runner_slots(w) > 0;
    /* In a cluster each queue is looked at by itself: as many requests for all. */
    uint64_t peek_ms = b->only == NULL ? PEEK_MS : PEEK_MS * w->queues->n_served;
    if (w->queues->n_served < 2 || b->blocked || blocks || b->n_peeking > 0 ||
        b->peeked_ns + peek_ms * HF_MS_NS > now)
        return;
    for (size_t i = 0; i < w->queues->n_served; i++) {
        hf_served *served = w->queues->served[i];
        if (served->bundle != b || served->state != HF_Q_IDLE)
            continue;
        queues[n] = &served->queue;
        b->peeking_at[n++] = served;
    }
    if (n == 0 || hf_op_peek(b->site->base.client, queues, n, on_peeked, b) != HF_OK)
        return;
    b->n_peeking = n;
    b->peeked_ns = now;
    for (size_t i = 0; i < n; i++)
        b->peeking_at[i]->requests++;
}

/* ---- in order ---- */

/* A claim of this queue is late: its Redis may be away. Nothing passes it there, where it
 * would be answered no earlier. */
static void bar_sites_of(const hf_whole *whole)
{
    for (const hf_served *m = whole->members; m != NULL; m = m->next_member)
        if (hf_queue_is(m, HF_Q_BUSY))
            m->claim.site->claimable = false;
}

static void pump_strict(hf_worker *w, uint32_t want)
{
    for (size_t i = 0; i < w->queues->n_wholes; i++) {
        hf_whole *whole = w->queues->wholes[i];
        take_turn(whole, want);
        if (whole->turn != NULL)
            send_claim(w, whole->turn, want);
        if (whole->turn != NULL || whole->busy)
            return;
        bar_sites_of(whole);
    }
}

/* ---- by weight ---- */

/* The least served of the queues that can be claimed. None, while a queue that is far
 * behind has a claim under way: the others wait for that answer, or they would get all
 * the slots meanwhile. */
static hf_whole *next_by_weight(const hf_worker *w, uint32_t step)
{
    hf_whole *best = NULL;
    double lead = -INFINITY;
    for (size_t i = 0; i < w->queues->n_wholes; i++) {
        hf_whole *whole = w->queues->wholes[i];
        if (whole->busy && whole->credit > lead)
            lead = whole->credit;
        if (whole->turn != NULL && (best == NULL || whole->credit > best->credit))
            best = whole;
    }
    return best != NULL && best->credit + 2.0 * step < lead ? NULL : best;
}

/* A queue that has nothing to give saves up no more than the others have. */
static void level_credits(hf_worker *w)
{
    double most = -INFINITY;
    for (size_t i = 0; i < w->queues->n_wholes; i++) {
        const hf_whole *whole = w->queues->wholes[i];
        if (whole->credit > most && (whole->turn != NULL || whole->busy))
            most = whole->credit;
    }
    for (size_t i = 0; i < w->queues->n_wholes; i++) {
        double credit = w->queues->wholes[i]->credit - most;
        w->queues->wholes[i]->credit = credit < 0 ? credit : 0;
    }
}

static void pump_weighted(hf_worker *w, uint32_t want)
{
    uint32_t shares[HF_QUEUES_MAX] = {0};
    uint32_t step = want / SHARES_MAX + 1;
    for (size_t i = 0; i < w->queues->n_wholes; i++)
        take_turn(w->queues->wholes[i], want);
    level_credits(w);
    for (hf_whole *whole; want > 0; want -= step) {
        step = step < want ? step : want;
        whole = next_by_weight(w, step);
        if (whole == NULL || shares[whole->index] + step > batch_max(whole->turn))
            break; /* full: its share is not given to the others */
        shares[whole->index] += step;
        whole->credit -= (double)step / whole->weight;
    }
    for (size_t i = 0; i < w->queues->n_wholes; i++) {
        hf_served *turn = w->queues->wholes[i]->turn;
        if (turn != NULL && shares[i] > 0)
            send_claim(w, turn, shares[i]);
    }
}

/* ---- both ---- */

static bool any_eager(const hf_worker *w)
{
    for (size_t i = 0; i < w->queues->n_served; i++) {
        const hf_served *served = w->queues->served[i];
        if (served->site->claimable && hf_queue_is(served, HF_Q_EAGER))
            return true;
    }
    return false;
}

/* Some requests must precede the claims of a queue, such as the limits of new shards.
 * They leave at the start of the next turn. False: there is no such site. */
static bool find_claimable_sites(hf_worker *w)
{
    bool any = false;
    for (hf_site *site = NULL; (site = hf_sites_next(w, site)) != NULL;) {
        site->claimable =
            hf_site_serves(site) && hf_site_can_ask(site) && !site->register_due;
        any = any || site->claimable;
    }
    return any;
}

/* Redis reads requests that leave together as one, and answers all of them at the end.
 * Then it has nothing to do until the next ones come. While there is work for every slot
 * the claim leaves a turn later, so Redis always has one of the two. */
bool hf_claim_can_wait(const hf_worker *w)
{
    return hf_runner_all_busy(w);
}

bool hf_claim_pump(hf_worker *w)
{
    if (!find_claimable_sites(w))
        return false;
    uint32_t want = hf_runner_wanted(w), first = under_way(w), asked = first, before;
    if (want == 0)
        return false;
    uint64_t now = hf_boot_ns();
    for (hf_bundle *b = NULL; (b = hf_bundle_next(w->queues, b)) != NULL;)
        if (b->site->claimable)
            peek(b, now);
    if (!any_eager(w))
        return false;
    do { /* of each queue one claim, then of other members another one */
        if (want <= asked)
            break;
        if (w->opts.strict)
            pump_strict(w, want - asked);
        else
            pump_weighted(w, want - asked);
        before = asked;
        asked = under_way(w);
    } while (asked > before && w->queues->n_served > w->queues->n_wholes);
    return asked > first;
}
