/* check.c - the periodic check of a worker: it reports that this worker lives, gives back
 * batons that it cannot use, replaces a next_wake that no worker keeps, and reads the
 * clocks of the queues (readings.c). */
#include "worker/source/check.h"

#include "base/base.h"
#include "base/clock.h"
#include "redis/err.h"
#include "worker/node/site.h"
#include "worker/queues/bundle.h"
#include "worker/queues/claim_state.h"
#include "worker/queues/queues.h"
#include "worker/register.h"
#include "worker/schedules.h"
#include "worker/source/readings.h"
#include "worker/source/wake.h"
#include "worker/worker.h"

enum { BURST_WAIT_MS = 500, NOT_NOW_MS = 100 };

uint32_t hf_check_ms(hf_worker *w)
{
    uint32_t ms = hf_bundle_wait_ms(w);
    if (w->opts.burst && ms > BURST_WAIT_MS)
        ms = BURST_WAIT_MS;
    return ms + (uint32_t)(hf_rng_unit(&w->rng) * ms / 10);
}

/* ---- which queues ---- */

/* The queues that are served, and those to which it may have to give a baton back. */
static size_t choose_checked(hf_bundle *b, const hf_queue *out[HF_SLOTS_MAX])
{
    const hf_queues *k = b->site->worker->queues;
    size_t n = 0;
    for (size_t i = 0; i < k->n_slots; i++) {
        hf_served *served = &k->slots[i];
        if (served->state == HF_Q_FREE || served->bundle != b ||
            (hf_queue_is(served, HF_Q_GONE) && served->debt != HF_DEBT_OWED))
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
    const hf_queues *k = b->site->worker->queues;
    for (size_t i = 0; i < k->n_slots; i++)
        if (k->slots[i].bundle == b)
            hf_queue_debt(&k->slots[i], event);
}

void hf_check_other_data(hf_site *site)
{
    const hf_queues *k = site->worker->queues;
    for (size_t i = 0; i < k->n_slots; i++)
        if (k->slots[i].site == site)
            hf_reading_forget(&k->slots[i].wake.reading);
}

/* ---- its answer ---- */

static void note_queues(hf_bundle *b, const hf_checked *checked,
                        const hf_checked_queue *queues)
{
    hf_read_queue read[HF_SLOTS_MAX];
    for (size_t i = 0; i < b->n_checking; i++) {
        hf_served *served = b->checking_at[i];
        if (queues[i].divided)
            hf_queue_recheck(served);
        if (queues[i].unknown)
            hf_queue_forgotten(served);
        read[i] = queues[i].read;
    }
    hf_readings_answered(b, b->checking_at, read, b->n_checking, checked->now_ms,
                         checked->shortest_lease_ms);
}

/* When the queues were registered: before a worker takes ticks Redis knows which
 * schedules its file names. */
static void take_ticks(const hf_bundle *b, const hf_checked_queue *queues, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hf_schedules_checked(b->checking_at[i], queues[i].ticks);
}

/* ---- the check ---- */

/* By checks that were sent when the last job had ended; of this one it is not asked. */
static bool are_empty(const hf_worker *w, const hf_bundle *last)
{
    for (hf_bundle *b = NULL; (b = hf_bundle_next(w->queues, b)) != NULL;)
        if (!hf_queues_only_shards_in(b) &&
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
    bool moved = site != b->site; /* then the answer reports another clock */
    if (err == HF_OK && !moved)
        note_queues(b, &checked, queues);
    checked_all(b);
    if (err != HF_OK) {
        b->give_back = b->give_back || b->check_gives;
        if (hf_err_is(err, HF_ERR_OF_CLUSTER))
            hf_queues_unserved_in(b, site, err, answer);
        else if (err == HF_NOSCRIPT) /* the next one finds it */
            hf_bundle_check_at(b, hf_boot_ns());
        else if (err != HF_UNSURE)
            hf_site_refused(site, err, answer->detail);
        return;
    }
    site->refused = HF_OK;
    hf_server_accepted(site->base.redis);
    w->heard = true;
    hf_site_clock_read(site, checked.now_ms, answer->sent_ns);
    hf_register_site(site);
    if (!moved)
        take_ticks(b, queues, n);
    hf_site_report_lacks(site); /* what was refused since */
    b->empty_ns = checked.empty ? b->checked_ns : 0;
    if (w->opts.burst && w->in_hand == 0 && hf_queues_quiet(w) && are_empty(w, b))
        w->burst_is_over = w->turn_due = true;
}

void hf_check_bundle(hf_bundle *b, bool give_back)
{
    hf_worker *w = b->site->worker;
    const hf_queue *queues[HF_SLOTS_MAX];
    b->give_back = b->give_back || give_back;
    if (b->checking || !hf_site_can_ask(b->site) ||
        (b->only != NULL && b->only->backoff.until_ns != 0))
        return;
    size_t n = choose_checked(b, queues);
    if (n == 0) { /* its only queue leaves, and nothing is owed */
        b->give_back = false;
        return;
    }
    const char *shown[HF_SLOTS_MAX];
    for (size_t i = 0; i < n; i++)
        shown[i] = b->checking_at[i]->wake.reading.text;
    hf_check_args args = {.worker = w->id,
                          .alive_ms = w->opts.lease_ms + HF_ALIVE_MS,
                          .lease_ms = w->opts.lease_ms,
                          .give_back = b->give_back,
                          .asker = hf_readings_asker(w),
                          .shown = shown};
    if (hf_op_check(b->site->base.client, queues, n, &args, on_checked, b) != HF_OK)
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
    const hf_queues *k = site->worker->queues;
    for (hf_bundle *b = NULL; (b = hf_bundle_next(k, b)) != NULL;)
        if (b->site == site)
            hf_check_bundle(b, false);
}

void hf_check_give_back(hf_worker *w)
{
    for (hf_bundle *b = NULL; (b = hf_bundle_next(w->queues, b)) != NULL;)
        hf_check_bundle(b, true);
}

/* A worker that waits for batons checks when the wait is over; but a wait that a baton
 * ended is followed by a whole one. */
static void on_look(uv_timer_t *timer)
{
    hf_bundle *b = timer->data;
    hf_worker *w = b->site->worker;
    uint64_t now = hf_boot_ns(), every_ns = hf_bundle_longest_ms(w) * HF_MS_NS;
    bool again = b->check_again_ns != 0 && now >= b->check_again_ns;
    if (again || now >= b->checked_ns + every_ns)
        hf_check_bundle(b, false);
    if (again && b->checked_ns >= now) /* one that is under way may be too old */
        b->check_again_ns = 0;
    hf_readings_send(b);
    w->turn_due = true;
    if (w->phase == HF_ENDED || uv_is_active((uv_handle_t *)timer))
        return;
    uint64_t due = b->checked_ns + every_ns;
    if (b->check_again_ns != 0 && b->check_again_ns < due)
        due = b->check_again_ns;
    if (b->read_at_ns != 0 && b->read_at_ns < due)
        due = b->read_at_ns;
    uint64_t wait = due > now ? (due - now) / HF_MS_NS + 1 : NOT_NOW_MS;
    uv_update_time(&w->loop);
    uv_timer_start(timer, on_look, wait, 0);
}

void hf_check_at(hf_site *site, uint64_t at_ns)
{
    const hf_queues *k = site->worker->queues;
    for (hf_bundle *b = NULL; (b = hf_bundle_next(k, b)) != NULL;)
        if (b->site == site)
            hf_bundle_check_at(b, at_ns);
}

void hf_check_open(hf_worker *w)
{
    w->queues->on_look = on_look;
}
