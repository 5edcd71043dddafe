/* check.c - the periodic check: this worker is alive, batons that it cannot use are given
 * back, and promises that nobody keeps are made anew; and the second look.
 *
 * A worker that was killed may itself have promised to come for the end of its lease. Its
 * promise counts as broken soon after its time, but half a lease may pass until the next
 * check sees that. So a check answers for each queue from when on it will be so, if a
 * lease is over by then; and at that time the worker looks at the queue once more, unless
 * the next check comes before and answers anew. A lease that is renewed ends later than
 * the next check comes, so it leads to no look. Nor does a look lead to another one:
 * there is at most one for each queue and check, whatever Redis says. */
#include "base/clock.h"
#include "worker/core.h"

enum { SPREAD_MS = 40 }; /* of the second looks of many workers */

/* ---- which queues ---- */

/* Those that are served, and those that it may have to give a baton back to. */
static size_t choose_queues(hf_worker *w, const hf_queue *out[HF_SLOTS_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < w->n_slots; i++)
        if (w->slots[i].state != HF_Q_FREE &&
            (!hf_queue_is(w->slots[i].state, HF_Q_GONE) ||
             w->slots[i].debt == HF_DEBT_OWED)) {
            w->checking_at[n] = &w->slots[i];
            out[n++] = &w->slots[i].queue;
        }
    return n;
}

static void note_checking(hf_worker *w, size_t n)
{
    w->n_checking = n;
    for (size_t i = 0; i < n; i++)
        w->checking_at[i]->requests++;
}

static void checked_all(hf_worker *w)
{
    for (size_t i = 0; i < w->n_checking; i++)
        w->checking_at[i]->requests--;
    w->n_checking = 0;
}

/* Batons of queues that are served no more. */
static void on_debts(const hf_worker *w, hf_debt_event event)
{
    for (size_t i = 0; i < w->n_slots; i++)
        w->slots[i].debt = hf_debt_next(w->slots[i].debt, event);
}

/* ---- the second look ---- */

/* In place of those that the last check has planned, and that have not come yet. */
static void plan_looks(hf_worker *w, const int64_t *doubts)
{
    int64_t spread_ms = (int64_t)(hf_rng_unit(&w->rng) * SPREAD_MS);
    for (size_t i = 0; i < w->n_checking; i++) {
        hf_served *served = w->checking_at[i];
        bool plan = doubts[i] != 0 && !hf_queue_is(served->state, HF_Q_GONE);
        served->look_ms = plan ? doubts[i] + spread_ms : 0;
    }
}

/* It has put a baton where one was missing. If it could not, the next check will. */
static void on_looked(const hf_answer *answer, void *arg)
{
    hf_worker *w = arg;
    if (w->phase != HF_ENDED && answer->err != HF_OK)
        hf_report_text(w, HF_LOG_DEBUG, "a second look failed", "error", answer->detail);
}

/* Who cannot claim leaves it to those who can: they have planned the same. */
void hf_check_look_again(hf_worker *w)
{
    const hf_queue *queues[HF_QUEUES_MAX];
    size_t n = 0;
    for (size_t i = 0; i < w->n_served; i++) {
        hf_served *served = w->served[i];
        if (served->look_ms == 0 || served->look_ms > hf_clock_now(w))
            continue;
        served->look_ms = 0;
        queues[n++] = &served->queue;
    }
    if (n == 0 || !hf_life_serving(w) || hf_dispatch_slots(w) == 0 ||
        !hf_client_ready(w->client) || w->pause_until_ns != 0)
        return;
    hf_check_args args = {.worker = w->id};
    char learned[HF_REMOTE_STATE_SIZE];
    hf_clock_share(w, &args, learned);
    if (hf_op_check(w->client, queues, n, &args, on_looked, w) == HF_OK)
        hf_report_text(w, HF_LOG_DEBUG, "looks whether anybody comes for a lease's end",
                       NULL, NULL);
}

/* ---- the check ---- */

static void on_checked(const hf_answer *answer, void *arg)
{
    hf_worker *w = arg;
    hf_checked checked;
    int64_t doubts[HF_SLOTS_MAX];
    hf_err err = hf_checked_read(answer, &checked, doubts, w->n_checking);
    w->checking = false;
    on_debts(w, err == HF_OK ? HF_DEBT_PAID : HF_DEBT_FAILED);
    if (w->phase == HF_ENDED)
        return;
    if (err == HF_OK)
        plan_looks(w, doubts);
    checked_all(w);
    if (err != HF_OK) {
        w->give_back = w->give_back || w->check_gives;
        if (err != HF_UNSURE && err != HF_NOSCRIPT)
            hf_life_refused(w, err, answer->detail);
        return;
    }
    w->refused = HF_OK;
    w->heard = true;
    hf_clock_read(w, checked.now_ms, answer->sent_ns);
    hf_clock_adopt(w, &checked);
    hf_server_tell(w);
    hf_server_tell_lacks(w); /* what was refused since */
    if (w->opts.burst && checked.empty && w->held == 0 && hf_queues_quiet(w))
        hf_worker_stop(w);
}

static void send_check(hf_worker *w, bool give_back)
{
    const hf_queue *queues[HF_SLOTS_MAX];
    char learned[HF_REMOTE_STATE_SIZE];
    w->give_back = w->give_back || give_back;
    if (!hf_client_ready(w->client) || w->checking || w->pause_until_ns != 0)
        return;
    size_t n = choose_queues(w, queues);
    hf_check_args args = {.worker = w->id,
                          .alive_ms = w->opts.lease_ms + HF_ALIVE_MS,
                          .give_back = w->give_back};
    hf_clock_share(w, &args, learned);
    if (hf_op_check(w->client, queues, n, &args, on_checked, w) != HF_OK)
        return;
    note_checking(w, n);
    w->checking = true;
    w->checked_ns = hf_boot_ns();
    w->check_gives = w->give_back;
    if (w->give_back)
        on_debts(w, HF_DEBT_SENT);
    w->give_back = false;
    /* A little less than a wait, so that each wait that ends without a baton checks. */
    w->check_at_ns = hf_boot_ns() + hf_wake_wait_ms(w) * HF_MS_NS * 3 / 4;
}

void hf_check_send(hf_worker *w)
{
    send_check(w, false);
}

void hf_check_give_back(hf_worker *w)
{
    send_check(w, true);
}
