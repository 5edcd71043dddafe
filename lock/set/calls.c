/* calls.c - the calls that take a lock over several servers, give up asking for
 * it, and give it back. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/detail.h"
#include "lock/callback.h"
#include "lock/set/set.h"

/* ---- taking ---- */

static void run_acquire(hf_task *task)
{
    hf_set_begin(HF_CONTAINER(task, hf_lock_set, task));
}

static void prepare(hf_lock_set *set, hf_lock_set_acquired_cb cb, void *arg)
{
    set->on_acquired = cb;
    set->acquired_arg = arg;
    set->task.run = run_acquire;
}

/* It was not submitted. */
static hf_err refuse(hf_lock_set *set, hf_err err, char *detail)
{
    hf_set_free(set);
    return hf_say(detail, err, "%s", hf_err_text(err));
}

static hf_err submit(hf_lock_set *set, hf_lock_set_acquired_cb cb, void *arg,
                     hf_lock_set **out, char *detail)
{
    if (hf_servers_forked(set->servers))
        return refuse(set, HF_FORKED, detail);
    prepare(set, cb, arg);
    set->owes = true;
    if (out != NULL)
        *out = set;
    hf_err err = hf_tasks_submit(&set->servers->tasks, &set->task, true);
    return err == HF_OK ? HF_OK : refuse(set, err, detail);
}

hf_err hf_multilock_acquire(hf_lock_servers *servers, const hf_multilock_opts *opts,
                            hf_lock_set_acquired_cb cb, void *arg, hf_lock_set **out,
                            char detail[HF_DETAIL_SIZE])
{
    hf_lock_set *set;
    hf_err err = hf_multi_make(servers, opts, &set, detail);
    return err == HF_OK ? submit(set, cb, arg, out, detail) : err;
}

hf_err hf_redlock_acquire(hf_lock_servers *servers, const hf_redlock_opts *opts,
                          hf_lock_set_acquired_cb cb, void *arg, hf_lock_set **out,
                          char detail[HF_DETAIL_SIZE])
{
    hf_lock_set *set;
    hf_err err = hf_red_make(servers, opts, &set, detail);
    return err == HF_OK ? submit(set, cb, arg, out, detail) : err;
}

static void run_cancel(hf_task *task)
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
    if (hf_tasks_submit(&set->servers->tasks, &set->cancel_task, false) != HF_OK)
        atomic_store(&set->cancel_queued, false); /* closing cancels it */
}

/* ---- waiting for it ---- */

typedef struct awaited {
    hf_run_loop *run;
    hf_run_waiter waiter;
    hf_err err;
    char detail[HF_DETAIL_SIZE];
} awaited;

static void on_acquired(hf_lock_set *set, hf_err err, const char *detail, void *arg)
{
    awaited *a = arg;
    (void)set;
    a->err = err;
    (void)snprintf(a->detail, sizeof a->detail, "%s", detail);
    hf_run_loop_done(a->run, &a->waiter);
}

/* May a call that waits be made? */
static hf_err may_wait(const hf_lock_servers *servers, char *detail)
{
    hf_err err = hf_callback_may_wait(servers, servers->run.owned, detail);
    if (err == HF_OK && hf_servers_forked(servers))
        err = hf_say(detail, HF_FORKED, "%s", hf_err_text(HF_FORKED));
    return err;
}

static hf_err await(hf_lock_set *set, hf_lock_set **out, char *detail)
{
    hf_lock_servers *servers = set->servers;
    awaited a = {.run = &servers->run};
    prepare(set, on_acquired, &a);
    hf_err err = hf_tasks_await(&servers->tasks, &set->task, false, &a.waiter);
    if (err != HF_OK)
        return refuse(set, err, detail);
    if (a.err != HF_OK)
        return hf_say(detail, a.err, "%s", a.detail);
    *out = set;
    return HF_OK;
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

static void run_release(hf_task *task)
{
    hf_lock_set *set = HF_CONTAINER(task, hf_lock_set, task);
    set->on_released = set->release_cb;
    hf_set_leave(set);
}

/* It counts as not held from here on. */
static void give_up(hf_lock_set *set, hf_lock_set_released_cb cb, void *arg)
{
    hf_set_silence(set, HF_LOCK_RELEASED);
    set->release_cb = cb; /* told once: by the task, if it is run, or by the call */
    set->released_arg = arg;
    set->task.run = run_release;
}

void hf_lock_set_release(hf_lock_set *set, hf_lock_set_released_cb cb, void *arg)
{
    hf_lock_release_result each[HF_LOCK_MEMBERS_MAX];
    size_t n = set->n;
    if (hf_servers_forked(set->servers))
        return;
    give_up(set, cb, arg);
    set->owes = cb != NULL;
    for (size_t i = 0; i < n; i++)
        each[i] = HF_RELEASE_UNKNOWN;
    if (hf_tasks_submit(&set->servers->tasks, &set->task, cb != NULL) != HF_OK &&
        cb != NULL)
        cb(set, HF_RELEASE_UNKNOWN, each, n, arg); /* closing gives it back */
}

typedef struct given {
    hf_run_loop *run;
    hf_run_waiter waiter;
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
    hf_run_loop_done(g->run, &g->waiter);
}

hf_lock_release_result hf_lock_set_release_wait(hf_lock_set *set,
                                                hf_lock_release_result *each)
{
    hf_lock_servers *servers = set->servers;
    given g = {.run = &servers->run, .result = HF_RELEASE_UNKNOWN, .each = each};
    for (size_t i = 0; each != NULL && i < set->n; i++)
        each[i] = HF_RELEASE_UNKNOWN;
    if (may_wait(servers, NULL) != HF_OK) {
        hf_lock_set_release(set, NULL, NULL); /* without waiting */
        return HF_RELEASE_UNKNOWN;
    }
    give_up(set, on_released, &g);
    /* HF_CLOSED: closing gives it back. */
    hf_err err = hf_tasks_await(&servers->tasks, &set->task, false, &g.waiter);
    return err == HF_OK ? g.result : HF_RELEASE_UNKNOWN;
}
