/* release.c - lock/release.h.
 *
 * The handle's owner gets an answer within request_timeout_ms, but not while a callback
 * of an event runs, which may use memory that the owner frees then. The release itself
 * does not wait for such a callback: the callback may be the one that releases, or may
 * wait for something that the releaser holds. The handle is freed when it has ended.
 * Without an answer the request is repeated in the background until the lease must be
 * over. An unanswered request to acquire may still be on its way: then the release is
 * sent once more after the deadline of that request. */
#include "lock/release.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "lock/ask.h"
#include "lock/callback.h"
#include "lock/client.h"
#include "lock/guard.h"
#include "lock/hold.h"
#include "lock/lock.h"
#include "lock/nodes.h"
#include "lock/ops.h"
#include "lock/tasks.h"
#include "lock/watchdog/lease.h"

enum { RETRY_MS = 100 };

static void notify(hf_lock *lock, hf_lock_release_result result, size_t left)
{
    hf_lock_released_cb cb = lock->release.on_released;
    hf_callback callback;
    lock->release.on_released = NULL;
    if (cb == NULL)
        return;
    hf_tasks_handle_pay(&lock->handle);
    hf_callback_begin(&callback, lock->locks);
    cb(lock, result, left, lock->release.arg);
    hf_callback_end(&callback);
}

/* Executed before, when the answer was lost: then there is nothing left of it. And
 * that a lease is over is only known here: its entry may still have been there. */
static hf_lock_release_result assume_lease(const hf_lock *lock,
                                           hf_lock_release_result result)
{
    bool gone = result == HF_RELEASE_EXPIRED || result == HF_RELEASE_NOT_OWNER;
    if (result == HF_RELEASE_DONE && !lock->release.was_ours &&
        atomic_load(&lock->reason) != HF_LOCK_MAX_HOLD)
        return HF_RELEASE_EXPIRED;
    return gone && lock->release.in_doubt && lock->release.was_ours ? HF_RELEASE_DONE
                                                                    : result;
}

/* It was answered. Told, and over, when no callback of an event runs any more. */
static void conclude(hf_lock *lock)
{
    lock->release.answered = atomic_load(&lock->release.event_runs);
    if (lock->release.answered)
        return; /* hf_release_notes() continues */
    notify(lock, lock->release.result, lock->release.left);
    if (lock->release.left_ms > lock->doubt_ms) {
        hf_lock_over(lock);
        return;
    }
    lock->due_ns = hf_lock_node_boot_ns(atomic_load(&lock->node), lock->doubt_ms + 1);
    hf_lock_background(lock, true);
}

void hf_release_notes(hf_lock_client *locks)
{
    for (hf_lock *lock = locks->active, *next; lock != NULL; lock = next) {
        next = lock->next;
        if (lock->over)
            hf_lock_over(lock);
        else if (lock->release.answered)
            conclude(lock);
    }
}

static void on_release_answered(const hf_answer *answer, void *arg)
{
    hf_lock *lock = arg;
    hf_lock_client *locks = lock->locks;
    hf_released left;
    hf_err err = hf_op_released_read(answer, &left);
    bool elsewhere = hf_node_answered(&lock->asked->base, &lock->backoff, answer);
    lock->in_flight--;
    if (left.now_ms > 0)
        hf_lock_node_clock(lock->asked, left.now_ms, answer->sent_ns);
    if (lock->over) {
        hf_lock_over(lock);
    } else if (err == HF_OK) {
        lock->release.result = assume_lease(lock, left.result);
        lock->release.left = left.left;
        lock->release.left_ms = left.now_ms;
        conclude(lock);
    } else {
        lock->release.in_doubt = lock->release.in_doubt || err == HF_UNSURE;
        lock->due_ns = elsewhere ? lock->backoff.until_ns : hf_boot_ns();
        if (err != HF_NOSCRIPT && !elsewhere)
            lock->due_ns += RETRY_MS * HF_MS_NS;
    }
    hf_tasks_turned(&locks->tasks);
}

void hf_release_send(hf_lock *lock)
{
    hf_lock_node *node = hf_lock_route(lock);
    bool backs_off = hf_boot_ns() < lock->backoff.until_ns;
    /* Otherwise it is sent after the answer, or with the next connection. */
    lock->due_ns = backs_off ? lock->backoff.until_ns : UINT64_MAX;
    if (backs_off || lock->in_flight > 0 || !hf_lock_node_ready(node))
        return;
    lock->asked = node;
    const hf_lock_of of = hf_lock_of_lock(lock);
    /* It may run late: it only removes its own entry. */
    const hf_release_args args = {
        .machine = lock->locks->machine,
        .shown = lock->release.leaves_reading
                     ? hf_reading_shown(&lock->reading, atomic_load(&node->epoch))
                     : ""};
    hf_err err =
        hf_op_lock_release(node->base.client, &of, &args, 0, on_release_answered, lock);
    if (err == HF_OK)
        lock->in_flight++;
}

void hf_release_drop(hf_lock *lock)
{
    notify(lock, lock->release.answered ? lock->release.result : HF_RELEASE_UNKNOWN,
           lock->release.left);
    lock->in_flight = 0;
    atomic_store(&lock->handle.cancel_queued, false);
    hf_lock_over(lock);
}

void hf_release_answered(hf_lock *lock)
{
    if (lock->over)
        hf_lock_over(lock);
    else
        hf_release_send(lock);
}

void hf_release_begin(hf_lock *lock)
{
    uint64_t lease_ns =
        hf_lock_left_behind(lock) ? atomic_load(&lock->lease_ms) * HF_MS_NS : 0;
    lock->step = STEP_RELEASE;
    lock->release.tell_until_ns =
        hf_boot_ns() + lock->locks->request_timeout_ms * HF_MS_NS;
    lock->release.until_ns =
        lock->release.tell_until_ns + lease_ns; /* as if renewed last now */
    lock->due_ns = UINT64_MAX;
    hf_lock_move(lock, &lock->locks->active);
    hf_lock_background(lock, lock->release.on_released == NULL);
    lock->in_flight++; /* it is ours until all is done here */
    hf_ask_released(lock);
    lock->in_flight--;
    hf_release_send(lock);
}

uint64_t hf_release_due_ns(const hf_lock *lock)
{
    bool waits = lock->release.patient && atomic_load(&lock->release.event_runs);
    uint64_t due_ns = lock->release.on_released != NULL && !waits
                          ? lock->release.tell_until_ns
                      : lock->release.answered ? UINT64_MAX
                                               : lock->release.until_ns;
    if (lock->in_flight == 0 && lock->due_ns < due_ns)
        due_ns = lock->due_ns;
    return due_ns;
}

void hf_release_time(hf_lock *lock, uint64_t now_ns)
{
    if (now_ns >= lock->release.tell_until_ns &&
        !(lock->release.patient && atomic_load(&lock->release.event_runs))) {
        notify(lock, lock->release.answered ? lock->release.result : HF_RELEASE_UNKNOWN,
               lock->release.left);
        hf_lock_background(lock, true);
    }
    if (lock->release.answered)
        return;
    if (now_ns >= lock->release.until_ns)
        hf_lock_over(lock);
    else if (now_ns >= lock->due_ns)
        hf_release_send(lock);
}

/* ---- the calls ---- */

static void run_release(hf_task *task)
{
    hf_lock *lock = HF_CONTAINER(task, hf_lock, handle.task);
    lock->release.on_released = lock->release.cb;
    hf_release_begin(lock);
}

/* It counts as not held from here on, even if the request fails. */
static void give_up(hf_lock *lock, hf_lock_released_cb cb, void *arg)
{
    hf_lease *lease = atomic_load(&lock->held.lease);
    int kept = HF_LOCK_NOT_LOST;
    lock->release.was_ours = lease != NULL && !hf_lease_lost(lease);
    (void)atomic_compare_exchange_strong(&lock->reason, &kept, HF_LOCK_RELEASED);
    hf_hold_leave(lock);
    hf_guard_end(&lock->locks->guard, &lock->held.minded);
    atomic_store(&lock->state, HF_LOCK_GONE);
    lock->release.cb = cb; /* told once: by the task, if it is run, or by the call */
    lock->release.arg = arg;
}

void hf_lock_release(hf_lock *lock, hf_lock_released_cb cb, void *arg)
{
    if (hf_tasks_forked(&lock->locks->tasks))
        return;
    give_up(lock, cb, arg);
    if (hf_tasks_handle_submit(&lock->handle, run_release, cb != NULL) != HF_OK &&
        cb != NULL)
        cb(lock, HF_RELEASE_UNKNOWN, 0, arg); /* closing gives it back */
}

void hf_release_patiently(hf_lock *lock, hf_lock_released_cb cb, void *arg)
{
    lock->release.patient = true;
    hf_lock_release(lock, cb, arg);
}

typedef struct awaited {
    hf_run_waiter waiter;
    hf_lock_release_result result;
    size_t left;
} awaited;

static void on_released(hf_lock *lock, hf_lock_release_result result, size_t left,
                        void *arg)
{
    awaited *a = arg;
    a->result = result;
    a->left = left;
    hf_run_loop_done(&lock->locks->tasks.run, &a->waiter);
}

hf_lock_release_result hf_lock_release_wait(hf_lock *lock, size_t *left)
{
    awaited a = {.result = HF_RELEASE_UNKNOWN};
    if (hf_tasks_may_wait(&lock->locks->tasks, NULL) != HF_OK) {
        hf_lock_release(lock, NULL, NULL); /* without waiting */
        return HF_RELEASE_UNKNOWN;
    }
    give_up(lock, on_released, &a);
    /* HF_CLOSED: closing gives it back. */
    hf_err err = hf_tasks_handle_await(&lock->handle, run_release, &a.waiter);
    HF_ASSERT(err == HF_OK || err == HF_CLOSED);
    if (left != NULL)
        *left = a.left;
    return a.result;
}
