/* lock_set_calls.c - the calls that take a lock over several servers, give up asking for
 * it, and give it back. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "lock/callback.h"
#include "lock/lock_set.h"

/* ---- taking ---- */

static void run_acquire(hf_lock_task *task)
{
    hf_set_begin(HF_CONTAINER(task, hf_lock_set, task));
}

/* Frees the set if it cannot be. */
hf_err hf_set_hand_in(hf_lock_set *set, hf_lock_set_acquired_cb cb, void *arg,
                      hf_lock_set **out, char detail[HF_DETAIL_SIZE])
{
    set->on_acquired = cb;
    set->acquired_arg = arg;
    set->task.run = run_acquire;
    if (out != NULL)
        *out = set;
    hf_err err = hf_servers_hand_in(set->servers, &set->task, false);
    if (err == HF_OK)
        return HF_OK;
    hf_set_free(set);
    return hf_lock_say(detail, err, "%s", hf_err_text(err));
}

static hf_err forked(const hf_lock_servers *servers, char *detail)
{
    if (hf_servers_forked(servers))
        return hf_lock_say(detail, HF_FORKED, "%s", hf_err_text(HF_FORKED));
    return HF_OK;
}

hf_err hf_multilock_acquire(hf_lock_servers *servers, const hf_multilock_opts *opts,
                            hf_lock_set_acquired_cb cb, void *arg, hf_lock_set **out,
                            char detail[HF_DETAIL_SIZE])
{
    hf_lock_set *set;
    hf_err err = forked(servers, detail);
    if (err == HF_OK)
        err = hf_multi_make(servers, opts, &set, detail);
    return err == HF_OK ? hf_set_hand_in(set, cb, arg, out, detail) : err;
}

hf_err hf_redlock_acquire(hf_lock_servers *servers, const hf_redlock_opts *opts,
                          hf_lock_set_acquired_cb cb, void *arg, hf_lock_set **out,
                          char detail[HF_DETAIL_SIZE])
{
    hf_lock_set *set;
    hf_err err = forked(servers, detail);
    if (err == HF_OK)
        err = hf_red_make(servers, opts, &set, detail);
    return err == HF_OK ? hf_set_hand_in(set, cb, arg, out, detail) : err;
}

static void run_cancel(hf_lock_task *task)
{
    hf_lock_set *set = HF_CONTAINER(task, hf_lock_set, cancel_task);
    atomic_store(&set->cancel_queued, false);
    if (set->over)
        hf_set_over(set);
    else if (!set->notified)
        hf_set_undo(set, true, HF_CANCEL, "cancelled");
}

void hf_lock_set_cancel(hf_lock_set *set)
{
    if (hf_servers_forked(set->servers) || atomic_exchange(&set->cancel_queued, true))
        return;
    set->cancel_task.run = run_cancel;
    if (hf_servers_hand_in(set->servers, &set->cancel_task, false) != HF_OK)
        atomic_store(&set->cancel_queued, false); /* closing cancels it */
}

/* ---- waiting for it ---- */

typedef struct awaited {
    hf_driver *driver;
    hf_driver_waiter waiter;
    hf_lock_set *set;
    hf_err err;
    char detail[HF_DETAIL_SIZE];
} awaited;

static void on_acquired(hf_lock_set *set, hf_err err, const char *detail, void *arg)
{
    awaited *a = arg;
    a->set = set;
    a->err = err;
    (void)snprintf(a->detail, sizeof a->detail, "%s", detail);
    hf_driver_done(a->driver, &a->waiter);
}

static hf_err may_wait(const hf_lock_servers *servers, char *detail)
{
    hf_err err = hf_callback_may_wait(&servers->driver, servers->driver.threaded, detail);
    return err == HF_OK ? forked(servers, detail) : err;
}

static hf_err await(hf_lock_set *set, hf_lock_set **out, char *detail)
{
    awaited a = {.driver = &set->servers->driver};
    hf_err err = hf_driver_waiter_init(&a.waiter);
    if (err != HF_OK) {
        hf_set_free(set);
        return hf_lock_say(detail, err, "%s", hf_err_text(err));
    }
    err = hf_set_hand_in(set, on_acquired, &a, NULL, detail);
    if (err == HF_OK) {
        hf_driver_await(a.driver, &a.waiter);
        err = hf_lock_say(detail, a.err, "%s", a.detail);
    }
    hf_driver_waiter_done(&a.waiter);
    if (err == HF_OK)
        *out = a.set;
    return err;
}

hf_err hf_multilock_acquire_wait(hf_lock_servers *servers, const hf_multilock_opts *opts,
                                 hf_lock_set **out, char detail[HF_DETAIL_SIZE])
{
    hf_lock_set *set;
    hf_err err = may_wait(servers, detail);
    if (err == HF_OK)
        err = hf_multi_make(servers, opts, &set, detail);
    return err == HF_OK ? await(set, out, detail) : err;
}

hf_err hf_redlock_acquire_wait(hf_lock_servers *servers, const hf_redlock_opts *opts,
                               hf_lock_set **out, char detail[HF_DETAIL_SIZE])
{
    hf_lock_set *set;
    hf_err err = may_wait(servers, detail);
    if (err == HF_OK)
        err = hf_red_make(servers, opts, &set, detail);
    return err == HF_OK ? await(set, out, detail) : err;
}

/* ---- giving it back ---- */

static void run_release(hf_lock_task *task)
{
    hf_lock_set *set = HF_CONTAINER(task, hf_lock_set, task);
    set->on_released = set->release_cb;
    hf_set_leave(set);
}

void hf_lock_set_release(hf_lock_set *set, hf_lock_set_released_cb cb, void *arg)
{
    if (hf_servers_forked(set->servers))
        return;
    hf_lock_release_result each[HF_LOCK_MEMBERS_MAX];
    size_t n = set->n;
    hf_set_silence(set, HF_LOCK_RELEASED);
    set->release_cb = cb; /* told once: by the task, if it is run, or below */
    set->released_arg = arg;
    set->task.run = run_release;
    for (size_t i = 0; i < n; i++)
        each[i] = HF_RELEASE_UNKNOWN;
    if (hf_servers_hand_in(set->servers, &set->task, false) != HF_OK && cb != NULL)
        cb(set, HF_RELEASE_UNKNOWN, each, n, arg); /* closing gives it back */
}

typedef struct given {
    hf_driver *driver;
    hf_driver_waiter waiter;
    hf_lock_release_result result, *each;
} given;

static void on_released(hf_lock_set *set, hf_lock_release_result result,
                        const hf_lock_release_result *each, size_t n, void *arg)
{
    given *g = arg;
    (void)set;
    g->result = result;
    if (g->each != NULL)
        memcpy(g->each, each, n * sizeof *each);
    hf_driver_done(g->driver, &g->waiter);
}

hf_lock_release_result hf_lock_set_release_wait(hf_lock_set *set,
                                                hf_lock_release_result *each)
{
    given g = {
        .driver = &set->servers->driver, .result = HF_RELEASE_UNKNOWN, .each = each};
    for (size_t i = 0; each != NULL && i < set->n; i++)
        each[i] = HF_RELEASE_UNKNOWN;
    if (hf_servers_forked(set->servers))
        return HF_RELEASE_UNKNOWN;
    if (!g.driver->threaded || hf_callback_inside(g.driver) ||
        hf_driver_waiter_init(&g.waiter) != HF_OK) {
        hf_lock_set_release(set, NULL, NULL); /* without waiting */
        return HF_RELEASE_UNKNOWN;
    }
    hf_lock_set_release(set, on_released, &g);
    hf_driver_await(g.driver, &g.waiter);
    hf_driver_waiter_done(&g.waiter);
    return g.result;
}
