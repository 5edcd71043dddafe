/* supervisors.c - worker/pool/supervisors.h. */
#include "worker/pool/supervisors.h"

#include <stdlib.h>

#include "base/base.h"
#include "base/clock.h"
#include "worker/pool/supervisor.h"
#include "worker/report.h"

enum {
    TICKS_A_LEASE = 12,
    TICK_LEAST_MS = 50,
    TICK_MOST_MS = 1000,
    END_MS = 1500 /* from the request to KILL, when the worker ends */
};

typedef struct hf_supervisors {
    hf_groups *groups;
    uv_timer_t timer;
    hf_supervisor *list[HF_SUPERVISORS_MAX]; /* owned; those that a reload took out end */
    bool leaving[HF_SUPERVISORS_MAX];
    size_t n;
    bool opened; /* each of the first ones has been ready, or has failed */
    bool closing, left;
} hf_supervisors;

/* NOLINTBEGIN(bugprone-macro-parentheses): a name cannot be in parentheses */
#define EACH(w, s)                                                                       \
    for (size_t i_ = 0; (w)->supervisors != NULL && i_ < (w)->supervisors->n; i_++)      \
        for (hf_supervisor *s = (w)->supervisors->list[i_]; s != NULL; s = NULL)
/* NOLINTEND(bugprone-macro-parentheses) */

/* ---- their number ---- */

static void settle(hf_worker *w)
{
    hf_supervisors *all = w->supervisors;
    if (!all->closing || all->left)
        return;
    EACH(w, s)
    if (!hf_supervisor_is_empty(s))
        return;
    all->left = true;
    hf_groups_leave(all->groups);
    hf_groups_done(all->groups);
}

/* The last process of a pool that stops has gone. */
static void on_gone(hf_worker *w)
{
    settle(w);
    w->turn_due = true;
}

static void remove_at(hf_supervisors *all, size_t i)
{
    hf_supervisor_free(all->list[i]);
    all->n--;
    all->list[i] = all->list[all->n];
    all->leaving[i] = all->leaving[all->n];
}

/* Those that a reload took out, when their last run has ended. */
static void forget_left(hf_worker *w)
{
    hf_supervisors *all = w->supervisors;
    for (size_t i = all->n; i-- > 0;)
        if (all->leaving[i] && hf_supervisor_is_done(all->list[i]))
            remove_at(all, i);
}

static hf_err add(hf_worker *w, hf_pool_spec *spec)
{
    hf_supervisors *all = w->supervisors;
    if (all->n == HF_COUNT(all->list))
        return HF_TOOBIG;
    hf_supervisor *s = hf_supervisor_new(w, all->groups, spec, on_gone);
    if (s == NULL)
        return HF_NOMEM;
    all->leaving[all->n] = false;
    all->list[all->n++] = s;
    return HF_OK;
}

/* ---- time ---- */

static void on_tick(uv_timer_t *timer)
{
    hf_worker *w = timer->data;
    uint64_t now = hf_boot_ns();
    EACH(w, s)
    hf_supervisor_tick(s, now);
    forget_left(w);
}

static uint64_t tick_ms(const hf_worker *w)
{
    uint64_t ms = w->opts.lease_ms / TICKS_A_LEASE;
    return ms < TICK_LEAST_MS ? TICK_LEAST_MS : ms > TICK_MOST_MS ? TICK_MOST_MS : ms;
}

/* ---- the start and the end ---- */

hf_err hf_supervisors_start(hf_worker *w, hf_groups *groups)
{
    hf_supervisors *all = calloc(1, sizeof *all);
    if (all == NULL)
        return HF_NOMEM;
    w->supervisors = all;
    all->groups = groups;
    hf_groups_enter(groups);
    uv_timer_init(&w->loop, &all->timer);
    all->timer.data = w;
    uv_timer_start(&all->timer, on_tick, tick_ms(w), tick_ms(w));
    hf_err err = HF_OK;
    for (size_t i = 0; err == HF_OK && i < w->n_pools; i++)
        err = add(w, w->pools[i]);
    uint64_t now = hf_boot_ns();
    EACH(w, s)
    hf_supervisor_turn(s, now);
    return err;
}

/* Of several pools of one program each keeps its own processes. */
static size_t find(const hf_supervisors *all, const hf_pool_spec *spec, const bool *kept)
{
    size_t i = 0;
    while (i < all->n &&
           (all->leaving[i] || kept[i] ||
            !hf_pool_spec_same_program(hf_supervisor_spec(all->list[i]), spec)))
        i++;
    return i;
}

void hf_supervisors_take(hf_worker *w)
{
    hf_supervisors *all = w->supervisors;
    bool kept[HF_COUNT(all->list) + 1] = {false};
    if (all == NULL)
        return;
    for (size_t i = 0; i < w->n_pools; i++) {
        size_t at = find(all, w->pools[i], kept);
        kept[at] = true;
        if (at < all->n)
            hf_supervisor_renew(all->list[at], w->pools[i]);
        else if (add(w, w->pools[i]) != HF_OK)
            hf_report_text(w, HF_LOG_ERROR, "a pool cannot be added: others still end",
                           "pool", w->pools[i]->name);
    }
    for (size_t i = 0; i < all->n; i++)
        if (!kept[i] && !all->leaving[i]) {
            all->leaving[i] = true;
            hf_supervisor_retire(all->list[i]);
        }
    w->turn_due = true;
}

void hf_supervisors_stop(hf_worker *w)
{
    EACH(w, s)
    hf_supervisor_stop(s);
}

void hf_supervisors_end(hf_worker *w)
{
    EACH(w, s)
    hf_supervisor_cancel_all(s, END_MS);
}

void hf_supervisors_close(hf_worker *w)
{
    hf_supervisors *all = w->supervisors;
    if (all == NULL || all->closing)
        return;
    all->closing = true;
    EACH(w, s)
    hf_supervisor_kill(s);
    uv_close((uv_handle_t *)&all->timer, NULL);
    settle(w);
}

void hf_supervisors_free(hf_worker *w)
{
    if (w->supervisors == NULL)
        return;
    while (w->supervisors->n > 0)
        remove_at(w->supervisors, 0);
    free(w->supervisors);
    w->supervisors = NULL;
}

/* ---- jobs ---- */

static bool any_starts(const hf_worker *w)
{
    EACH(w, s)
    if (hf_supervisor_health(s) == HF_POOL_STARTING)
        return true;
    return false;
}

void hf_supervisors_turn(hf_worker *w)
{
    uint64_t now = w->supervisors == NULL ? 0 : hf_boot_ns();
    EACH(w, s)
    {
        hf_supervisor_dispatch(s);
        hf_supervisor_turn(s, now);
    }
    if (hf_supervisors_starting(w))
        w->supervisors->opened = !any_starts(w);
}

void hf_supervisors_tick(hf_worker *w, uint64_t keep_ms)
{
    uint64_t now = hf_boot_ns();
    EACH(w, s)
    {
        hf_supervisor_release_stale(s, now, keep_ms);
        hf_supervisor_decide(s, now);
    }
}

void hf_supervisors_accept(hf_run *run)
{
    hf_supervisor_accept(run->handler->pool, run);
}

void hf_supervisors_withdraw(hf_run *run)
{
    hf_supervisor_withdraw(run->handler->pool, run);
}

static void cancel(hf_run *run, hf_frame_why why, uint32_t grace_ms)
{
    if (run->child != NULL)
        hf_child_cancel(run->child, run, why, grace_ms);
}

/* The lease is over: nothing of it may run a moment longer. */
void hf_supervisors_lose(hf_run *run)
{
    cancel(run, HF_FRAME_WHY_LOST, 0);
}

void hf_supervisors_cancel(hf_run *run)
{
    cancel(run, HF_FRAME_WHY_CANCELLED, run->handler->program.grace_ms);
}

void hf_supervisors_recall(hf_worker *w, hf_run_list *out)
{
    EACH(w, s)
    for (hf_run *run; (run = hf_run_pop(hf_supervisor_waiting(s))) != NULL;)
        hf_run_push(out, run);
}

/* ---- what they can take ---- */

bool hf_supervisors_starting(const hf_worker *w)
{
    return w->supervisors != NULL && !w->supervisors->opened;
}

bool hf_supervisors_any_unknown(const hf_worker *w, int64_t *backoff_ms)
{
    EACH(w, s)
    if (!hf_supervisor_has_offer(s)) {
        *backoff_ms = hf_supervisor_backoff_ms(s);
        return true;
    }
    return false;
}

size_t hf_supervisors_offers(const hf_worker *w, const hf_ready *out[HF_SUPERVISORS_MAX])
{
    size_t n = 0;
    EACH(w, s)
    if (hf_supervisor_offer(s) != NULL)
        out[n++] = hf_supervisor_offer(s);
    return n;
}

size_t hf_supervisors_facts(const hf_worker *w, hf_pool_facts out[HF_POOLS_MAX])
{
    const hf_supervisors *all = w->supervisors;
    size_t n = 0;
    for (size_t i = 0; all != NULL && i < all->n && n < HF_POOLS_MAX; i++)
        if (!all->leaving[i])
            out[n++] = hf_supervisor_facts(all->list[i]);
    return n;
}

size_t hf_supervisors_slots(const hf_worker *w)
{
    size_t n = 0;
    EACH(w, s)
    n += hf_supervisor_slots(s);
    return n;
}

size_t hf_supervisors_usable(const hf_worker *w)
{
    size_t n = 0;
    EACH(w, s)
    n += hf_supervisor_usable(s);
    return n;
}

size_t hf_supervisors_free_slots(const hf_worker *w)
{
    size_t n = 0;
    EACH(w, s)
    n += hf_supervisor_free_slots(s);
    return n;
}

size_t hf_supervisors_ahead(const hf_worker *w)
{
    size_t n = 0;
    EACH(w, s)
    n += hf_supervisor_ahead(s);
    return n;
}

size_t hf_supervisors_running(const hf_worker *w)
{
    return w->in_pools;
}

size_t hf_supervisors_waiting(const hf_worker *w)
{
    size_t n = 0;
    EACH(w, s)
    n += hf_supervisor_waiting(s)->n;
    return n;
}

void hf_supervisors_started(hf_worker *w, void (*fn)(hf_run *run, void *arg), void *arg)
{
    EACH(w, s)
    for (hf_run *run = hf_supervisor_started(s)->head; run != NULL; run = run->next)
        fn(run, arg);
}

bool hf_supervisors_alive(const hf_worker *w)
{
    EACH(w, s)
    if (!hf_supervisor_is_empty(s))
        return true;
    return false;
}
