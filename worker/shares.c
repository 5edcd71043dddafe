/* shares.c - whose turn it is: how many jobs are asked of which queue.
 *
 * By weight: each job that is asked for costs its queue the inverse of the weight, and
 * the next goes to who has spent least; what did not come, or was put back unstarted,
 * costs nothing. In order: a queue is asked only for what the ones before it did not
 * give.
 *
 * While this worker does not block on the batons it hears of none. Those of its queues
 * that were found empty are looked at now and then, all by one request; but not by one
 * that has nothing to do and blocks in the same turn. */
#include <math.h>

#include "base/clock.h"
#include "worker/core.h"

enum { PEEK_MS = 10, SHARES_MAX = 256 };

static bool may_have(const hf_served *served)
{
    return served->hot && served->rest_until_ns == 0;
}

/* Its claim is under way, and will probably bring something. */
static bool is_being_served(const hf_served *served)
{
    return served->claiming && may_have(served) && !served->unsure;
}

static uint32_t under_way(const hf_worker *w)
{
    uint32_t n = 0;
    for (size_t i = 0; i < w->n_served; i++)
        n += w->served[i]->asked;
    return n;
}

/* ---- looking ---- */

static void on_peeked(const hf_answer *answer, void *arg)
{
    hf_worker *w = arg;
    bool ready[HF_QUEUES_MAX] = {false};
    size_t n = w->n_peeking;
    /* A fault tells nothing that the next claim does not tell. */
    hf_err err = hf_peeked_read(answer, ready, n);
    w->n_peeking = 0;
    for (size_t i = 0; i < n; i++) {
        hf_served *served = w->peeking_at[i];
        served->peeking = false;
        served->hot = served->hot || (err == HF_OK && ready[i] && !served->leaving);
    }
    if (err == HF_NOSCRIPT)
        w->peeked_ns = 0;
}

static void peek(hf_worker *w, uint64_t now)
{
    const hf_queue *queues[HF_QUEUES_MAX];
    size_t n = 0;
    bool blocks = hf_claim_quiet(w) && hf_dispatch_slots(w) > 0;
    if (w->n_served < 2 || w->blocked || blocks || w->n_peeking > 0 ||
        w->peeked_ns + PEEK_MS * HF_MS_NS > now)
        return;
    for (size_t i = 0; i < w->n_served; i++) {
        hf_served *served = w->served[i];
        if (served->hot || served->claiming)
            continue;
        queues[n] = &served->queue;
        w->peeking_at[n++] = served;
    }
    if (n == 0 || hf_op_peek(w->client, queues, n, on_peeked, w) != HF_OK)
        return;
    w->n_peeking = n;
    w->peeked_ns = now;
    for (size_t i = 0; i < n; i++)
        w->peeking_at[i]->peeking = true;
}

/* ---- in order ---- */

static void pump_strict(hf_worker *w, uint32_t want)
{
    for (size_t i = 0; i < w->n_served; i++) {
        hf_served *served = w->served[i];
        if (is_being_served(served))
            return;
        if (!served->claiming && may_have(served)) {
            hf_claim_send(w, served, want);
            return;
        }
    }
}

/* ---- by weight ---- */

/* The least served of those that may be asked. Not for one that is far behind while its
 * claim is under way: then the others wait for that answer, or they would get whatever is
 * asked for meanwhile. */
static hf_served *next_by_weight(const hf_worker *w, uint32_t step)
{
    hf_served *best = NULL;
    double lead = -INFINITY;
    for (size_t i = 0; i < w->n_served; i++) {
        hf_served *served = w->served[i];
        if (is_being_served(served) && served->credit > lead)
            lead = served->credit;
        if (!served->claiming && may_have(served) &&
            (best == NULL || served->credit > best->credit))
            best = served;
    }
    return best != NULL && best->credit + 2.0 * step < lead ? NULL : best;
}

/* Nobody saves up for more than the others have, while it has nothing to give. */
static void level_credits(hf_worker *w)
{
    double most = -INFINITY;
    for (size_t i = 0; i < w->n_served; i++)
        if (w->served[i]->credit > most && may_have(w->served[i]))
            most = w->served[i]->credit;
    for (size_t i = 0; i < w->n_served; i++) {
        double credit = w->served[i]->credit - most;
        w->served[i]->credit = credit < 0 ? credit : 0;
    }
}

void hf_claim_refund(hf_served *served, uint32_t n)
{
    served->credit += (double)n / served->weight;
}

static void pump_weighted(hf_worker *w, uint32_t want)
{
    uint32_t shares[HF_QUEUES_MAX] = {0};
    uint32_t step = want / SHARES_MAX + 1;
    level_credits(w);
    for (hf_served *served; want > 0; want -= step) {
        step = step < want ? step : want;
        served = next_by_weight(w, step);
        if (served == NULL || shares[served->index] + step > HF_CLAIM_BATCH)
            break; /* full: what it cannot be asked for is not for the others */
        shares[served->index] += step;
        served->credit -= (double)step / served->weight;
    }
    for (size_t i = 0; i < w->n_served; i++)
        if (shares[i] > 0)
            hf_claim_send(w, w->served[i], shares[i]);
}

/* ---- both ---- */

static bool any_claimable(const hf_worker *w)
{
    for (size_t i = 0; i < w->n_served; i++)
        if (!w->served[i]->claiming && may_have(w->served[i]) &&
            hf_claim_sure(w->served[i]))
            return true;
    return false;
}

/* Redis reads what leaves together as one, answers all of it at the end, and would have
 * nothing to do until we come back. While there is work for every slot the claim leaves a
 * turn later, and so one of the two is always with Redis. */
bool hf_claim_can_wait(const hf_worker *w)
{
    return w->c_out > w->opts.concurrency;
}

void hf_claim_pump(hf_worker *w)
{
    if (!hf_life_serving(w) || !hf_client_ready(w->client) || w->pause_until_ns != 0)
        return;
    uint32_t want = hf_dispatch_wanted(w), pending = under_way(w);
    if (want == 0)
        return;
    peek(w, hf_boot_ns());
    if (want <= pending || !any_claimable(w))
        return;
    want -= pending;
    if (w->opts.strict)
        pump_strict(w, want);
    else
        pump_weighted(w, want);
}
