/* set.c - one lock over several servers: its members are asked, joined, taken out
 * and given back; and its end. The two rules decide the order (hf_set_kind). */
#include "lock/set/set.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/detail.h"
#include "base/mask.h"
#include "lock/acquire.h"
#include "lock/callback.h"
#include "lock/lock.h"
#include "lock/release.h"
#include "lock/set/state.h"
#include "lock/tasks.h"

#define WAIT_MAX_MS (INT64_C(1) << 40)

const char *hf_set_place(const hf_set_member *m)
{
    return m->set->servers->places[m->server];
}

/* ---- life ---- */

hf_err hf_set_new(hf_lock_set **out, hf_lock_servers *servers, const hf_set_kind *kind,
                  size_t n, int64_t wait_ms, char *detail)
{
    if (wait_ms > WAIT_MAX_MS)
        return hf_say(detail, HF_INVALID,
                      "expected a wait of at most %" PRId64 " ms, found %" PRId64,
                      WAIT_MAX_MS, wait_ms);
    hf_lock_set *set = calloc(1, sizeof *set + n * sizeof set->members[0]);
    if (set == NULL || uv_mutex_init(&set->lock) != 0) {
        free(set);
        return hf_say_err(detail, HF_NOMEM);
    }
    set->servers = servers;
    set->handle.tasks = &servers->tasks;
    set->kind = kind;
    set->n = set->needed = n;
    set->wait_ms = wait_ms;
    set->fd = -1;
    for (size_t i = 0; i < n; i++)
        set->members[i] = (hf_set_member){
            .set = set, .server = i, .place = i, .result = HF_RELEASE_EXPIRED};
    *out = set;
    return HF_OK;
}

void hf_set_free(hf_lock_set *set)
{
    for (size_t i = 0; i < set->n; i++)
        free(set->members[i].text);
    free(set->name);
    if (set->fd >= 0)
        (void)close(set->fd);
    uv_mutex_destroy(&set->lock);
    free(set);
}

static void unlink_set(hf_lock_set *set)
{
    if (set->next != NULL)
        set->next->prev = set->prev;
    if (set->prev != NULL)
        set->prev->next = set->next;
    else
        set->servers->sets = set->next;
}

/* Frees it now, or when its cancel has run. */
static void end(hf_lock_set *set)
{
    set->over = true;
    if (atomic_load(&set->handle.cancel_queued))
        return;
    unlink_set(set);
    hf_set_free(set);
}

static void tell(hf_lock_set *set, hf_err err, const char *detail)
{
    hf_callback callback;
    set->notified = true;
    hf_tasks_handle_pay(&set->handle);
    hf_callback_begin(&callback, set->servers);
    set->on_acquired(set, err, detail, set->acquired_arg);
    hf_callback_end(&callback);
}

void hf_set_fail(hf_lock_set *set)
{
    tell(set, set->err, set->detail);
    end(set);
}

void hf_set_begin(hf_lock_set *set)
{
    hf_lock_servers *servers = set->servers;
    set->begun_ns = hf_boot_ns();
    set->until_ns =
        set->wait_ms < 0 ? UINT64_MAX : set->begun_ns + (uint64_t)set->wait_ms * HF_MS_NS;
    set->next = servers->sets;
    set->prev = NULL;
    if (set->next != NULL)
        set->next->prev = set;
    servers->sets = set;
    set->kind->begin(set);
}

/* ---- its members ---- */

void hf_set_join(hf_set_member *m, hf_lock *lock)
{
    uv_mutex_lock(&m->set->lock);
    m->lock = lock;
    uv_mutex_unlock(&m->set->lock);
}

hf_lock *hf_set_take_out(hf_set_member *m)
{
    uv_mutex_lock(&m->set->lock);
    hf_lock *lock = m->lock;
    m->lock = NULL;
    uv_mutex_unlock(&m->set->lock);
    return lock;
}

static bool is_ending(const hf_lock_set *set)
{
    return set->step == SET_UNDO || set->step == SET_LEAVE;
}

static void on_released(hf_lock *lock, hf_lock_release_result result, size_t left,
                        void *arg)
{
    hf_set_member *m = arg;
    hf_lock_set *set = m->set;
    hf_lock_servers *servers = set->servers;
    (void)left;
    m->leaving = false;
    m->result = result;
    m->may_leave = result == HF_RELEASE_UNKNOWN || hf_acquire_was_at_fault(lock);
    set->open--;
    if (set->step == SET_HELD && set->kind->left != NULL)
        set->kind->left(m);
    hf_set_check(set);
    hf_tasks_turned(&servers->tasks);
}

void hf_set_give_back(hf_set_member *m, hf_lock *lock)
{
    m->leaving = true;
    m->result = HF_RELEASE_UNKNOWN; /* so far */
    m->set->open++;
    hf_release_patiently(lock, on_released, m); /* its events look at the set */
}

static void on_acquired(hf_lock *lock, hf_err err, const char *detail, void *arg)
{
    hf_set_member *m = arg;
    hf_lock_set *set = m->set;
    hf_lock_servers *servers = set->servers;
    m->asked = NULL;
    set->open--;
    if (err == HF_OK && is_ending(set)) {
        hf_set_give_back(m, lock);
    } else if (err == HF_OK) {
        set->kind->got(m, lock);
    } else {
        bool left_behind = hf_lock_left_behind(lock);
        m->result = left_behind ? HF_RELEASE_UNKNOWN : HF_RELEASE_EXPIRED;
        m->may_leave = left_behind || hf_acquire_was_at_fault(lock);
        if (!is_ending(set)) {
            m->err = err;
            set->kind->refused(m, detail);
        }
    }
    hf_set_check(set);
    hf_tasks_turned(&servers->tasks);
}

hf_err hf_set_ask(hf_set_member *m, const hf_lock_opts *opts, char detail[HF_DETAIL_SIZE])
{
    hf_lock_opts own = *opts;
    own.on_event = hf_set_state_on_event;
    own.event_arg = m;
    atomic_store(&m->lost, false);
    m->err = HF_OK;
    hf_err err = hf_lock_acquire(m->set->servers->clients[m->server], &own, on_acquired,
                                 m, &m->asked, detail);
    if (err == HF_OK)
        m->set->open++;
    else
        m->asked = NULL;
    return err;
}

/* In reverse, and each of them, even if others fail. */
static void give_all_back(hf_lock_set *set)
{
    for (size_t i = set->n; i-- > 0;) {
        hf_set_member *m = &set->members[i];
        hf_lock *lock = hf_set_take_out(m);
        if (lock != NULL)
            hf_set_give_back(m, lock);
        if (m->asked != NULL)
            hf_lock_cancel(m->asked);
    }
}

/* ---- from step to step ---- */

bool hf_set_become_held(hf_lock_set *set)
{
    if (!hf_set_state_hold(set))
        return false;
    set->step = SET_HELD;
    tell(set, HF_OK, "");
    return true;
}

void hf_set_undo(hf_lock_set *set, bool final, hf_err err, const char *format, ...)
{
    va_list args;
    if (set->final)
        return;
    set->final = final;
    set->err = err;
    va_start(args, format);
    (void)hf_say_args(set->detail, err, format, args);
    va_end(args);
    if (set->step == SET_UNDO)
        return;
    set->step = SET_UNDO;
    give_all_back(set);
}

static void leave(hf_lock_set *set)
{
    if (set->step == SET_LEAVE)
        return;
    set->step = SET_LEAVE;
    set->tell_until_ns = hf_boot_ns() + set->servers->request_timeout_ms * HF_MS_NS;
    give_all_back(set);
}

static int by_result(const void *a, const void *b)
{
    hf_lock_release_result x = *(const hf_lock_release_result *)a;
    hf_lock_release_result y = *(const hf_lock_release_result *)b;
    return x < y ? -1 : x > y;
}

/* All of it was given back, or what could be so far. */
static void tell_released(hf_lock_set *set)
{
    hf_lock_set_released_cb cb = set->on_released;
    hf_lock_release_result each[HF_LOCK_MEMBERS_MAX], sorted[HF_LOCK_MEMBERS_MAX];
    for (size_t i = 0; i < set->n; i++) {
        sorted[i] = set->members[i].result;
        each[set->members[i].place] = sorted[i];
    }
    qsort(sorted, set->n, sizeof sorted[0], by_result);
    hf_callback callback;
    set->on_released = NULL;
    hf_tasks_handle_pay(&set->handle);
    hf_callback_begin(&callback, set->servers);
    if (cb != NULL)
        cb(set, sorted[set->needed - 1], each, set->n, set->released_arg);
    hf_callback_end(&callback);
}

void hf_set_check(hf_lock_set *set)
{
    if (set->over || set->open > 0)
        return;
    if (set->step == SET_UNDO) {
        set->kind->undone(set);
    } else if (set->step == SET_LEAVE) {
        tell_released(set);
        end(set);
    }
}

/* The release is reported in time, even if a callback of an event blocks. */
static uint64_t tell_ns(const hf_lock_set *set)
{
    bool waits = set->step == SET_LEAVE && set->on_released != NULL;
    return waits ? set->tell_until_ns : UINT64_MAX;
}

uint64_t hf_set_due_ns(const hf_lock_set *set)
{
    uint64_t due_ns = set->kind->due_ns(set), at_ns = tell_ns(set);
    return at_ns < due_ns ? at_ns : due_ns;
}

void hf_set_time(hf_lock_set *set, uint64_t now_ns)
{
    if (now_ns >= set->kind->due_ns(set))
        set->kind->time(set, now_ns);
    if (now_ns >= tell_ns(set))
        tell_released(set);
    hf_set_check(set);
}

void hf_set_close(hf_lock_set *set)
{
    if (set->step == SET_HELD) {
        hf_set_state_silence(set, HF_LOCK_CLOSED);
        leave(set);
    } else if (set->step != SET_LEAVE) {
        hf_set_undo(set, true, HF_CLOSED, "the client is being closed");
    }
}

/* ---- taking: the calls ---- */

static void run_acquire(hf_task *task)
{
    hf_set_begin(HF_CONTAINER(task, hf_lock_set, handle.task));
}

static void run_cancel(hf_task *task)
{
    hf_lock_set *set = HF_CONTAINER(task, hf_lock_set, handle.cancel_task);
    atomic_store(&set->handle.cancel_queued, false);
    if (set->over)
        end(set);
    else if (!set->notified)
        hf_set_undo(set, true, HF_CANCEL, "cancelled");
}

/* It was not submitted. */
static hf_err refuse(hf_lock_set *set, hf_err err, char *detail)
{
    hf_set_free(set);
    return hf_say_err(detail, err);
}

hf_err hf_set_acquire(hf_lock_set *set, hf_lock_set_acquired_cb cb, void *arg,
                      hf_lock_set **out, char detail[HF_DETAIL_SIZE])
{
    set->on_acquired = cb;
    set->acquired_arg = arg;
    if (out != NULL)
        *out = set;
    hf_err err = hf_tasks_handle_submit(&set->handle, run_acquire, true);
    return err == HF_OK ? HF_OK : refuse(set, err, detail);
}

void hf_lock_set_cancel(hf_lock_set *set)
{
    hf_tasks_handle_cancel(&set->handle, run_cancel);
}

static void on_taken(hf_lock_set *set, hf_err err, const char *detail, void *awaited)
{
    hf_tasks_handle_answer(&set->handle, awaited, err, detail);
}

hf_err hf_set_acquire_wait(hf_lock_set *set, hf_lock_set **out,
                           char detail[HF_DETAIL_SIZE])
{
    hf_awaited a = {.err = HF_OK};
    set->on_acquired = on_taken;
    set->acquired_arg = &a;
    hf_err err = hf_tasks_handle_await(&set->handle, run_acquire, &a.waiter);
    if (err != HF_OK)
        return refuse(set, err, detail);
    if (a.err != HF_OK)
        return hf_say(detail, a.err, "%s", a.detail);
    *out = set;
    return HF_OK;
}

/* ---- giving it back: the calls ---- */

static void run_release(hf_task *task)
{
    hf_lock_set *set = HF_CONTAINER(task, hf_lock_set, handle.task);
    set->on_released = set->release_cb;
    leave(set);
}

/* It counts as not held from here on. */
static void give_up(hf_lock_set *set, hf_lock_set_released_cb cb, void *arg)
{
    hf_set_state_silence(set, HF_LOCK_RELEASED);
    set->release_cb = cb; /* told once: by the task, if it is run, or by the call */
    set->released_arg = arg;
}

void hf_lock_set_release(hf_lock_set *set, hf_lock_set_released_cb cb, void *arg)
{
    hf_lock_release_result each[HF_LOCK_MEMBERS_MAX];
    size_t n = set->n;
    if (hf_tasks_forked(set->handle.tasks))
        return;
    give_up(set, cb, arg);
    for (size_t i = 0; i < n; i++)
        each[i] = HF_RELEASE_UNKNOWN;
    if (hf_tasks_handle_submit(&set->handle, run_release, cb != NULL) != HF_OK &&
        cb != NULL)
        cb(set, HF_RELEASE_UNKNOWN, each, n, arg); /* closing gives it back */
}

typedef struct given {
    hf_run_waiter waiter;
    hf_lock_release_result result, *each;
} given;

static void on_given(hf_lock_set *set, hf_lock_release_result result,
                     const hf_lock_release_result *each, size_t n, void *arg)
{
    given *g = arg;
    g->result = result;
    if (g->each != NULL)
        memcpy(g->each, each, n * sizeof *each);
    hf_run_loop_done(&set->handle.tasks->run, &g->waiter);
}

hf_lock_release_result hf_lock_set_release_wait(hf_lock_set *set,
                                                hf_lock_release_result *each)
{
    given g = {.result = HF_RELEASE_UNKNOWN, .each = each};
    for (size_t i = 0; each != NULL && i < set->n; i++)
        each[i] = HF_RELEASE_UNKNOWN;
    if (hf_tasks_may_wait(set->handle.tasks, NULL) != HF_OK) {
        hf_lock_set_release(set, NULL, NULL); /* without waiting */
        return HF_RELEASE_UNKNOWN;
    }
    give_up(set, on_given, &g);
    /* HF_CLOSED: closing gives it back. */
    hf_err err = hf_tasks_handle_await(&set->handle, run_release, &g.waiter);
    return err == HF_OK ? g.result : HF_RELEASE_UNKNOWN;
}
