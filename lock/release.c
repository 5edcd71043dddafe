/* release.c - giving a lock back, and leaving nothing behind of one that was not to be
 * had.
 *
 * The handle's owner gets an answer in request_timeout_ms at most, and once no callback
 * of an event runs any more, which may use what the owner frees then. A release does not
 * wait for such a callback: it may be what releases, or may wait for what the releaser
 * holds. The handle is freed when it has ended. Without an answer the request is made
 * again in the background until the lease must be over. An enter that was not answered
 * may still be on its way: then the request is made once more when that would come too
 * late. */
#include "base/base.h"
#include "base/clock.h"
#include "lock/callback.h"
#include "lock/locks.h"

enum { RETRY_MS = 100 };

static void tell(hf_lock *lock, hf_lock_release_result result, size_t left)
{
    hf_lock_released_cb cb = lock->on_released;
    hf_callback callback;
    lock->on_released = NULL;
    if (cb == NULL)
        return;
    hf_callback_begin(&callback, &lock->locks->driver);
    cb(lock, result, left, lock->released_arg);
    hf_callback_end(&callback);
}

/* Executed before, when nobody heard the answer: then there is nothing left of it. And
 * that a lease is over is only known here: its entry may still have been there. */
static hf_lock_release_result judge(const hf_lock *lock, hf_lock_release_result result)
{
    bool gone = result == HF_RELEASE_EXPIRED || result == HF_RELEASE_NOT_OWNER;
    if (result == HF_RELEASE_DONE && !lock->was_ours &&
        atomic_load(&lock->reason) != HF_LOCK_MAX_HOLD)
        return HF_RELEASE_EXPIRED;
    return gone && lock->in_doubt && lock->was_ours ? HF_RELEASE_DONE : result;
}

/* It was answered. Told, and over, when no callback of an event runs any more. */
static void conclude(hf_lock *lock)
{
    lock->answered = atomic_load(&lock->event_runs);
    if (lock->answered)
        return; /* hf_release_notes() goes on */
    tell(lock, lock->result, lock->left);
    if (lock->left_ms > lock->doubt_ms)
        hf_lock_client_over(lock);
    else
        lock->due_ns = hf_lock_client_boot_ns(lock->locks, lock->doubt_ms + 1);
}

void hf_release_notes(hf_lock_client *locks)
{
    for (hf_lock *lock = locks->active, *next; lock != NULL; lock = next) {
        next = lock->next;
        if (lock->over)
            hf_lock_client_over(lock);
        else if (lock->answered)
            conclude(lock);
    }
}

static void on_left(const hf_answer *answer, void *arg)
{
    hf_lock *lock = arg;
    hf_lock_client *locks = lock->locks;
    hf_left left;
    hf_err err = hf_left_read(answer, &left);
    lock->in_flight--;
    if (left.now_ms > 0)
        hf_lock_client_clock(locks, left.now_ms);
    if (lock->over) {
        hf_lock_client_over(lock);
    } else if (err == HF_OK) {
        lock->result = judge(lock, left.result);
        lock->left = left.left;
        lock->left_ms = left.now_ms;
        conclude(lock);
    } else {
        lock->in_doubt = lock->in_doubt || err == HF_UNSURE;
        lock->due_ns = hf_boot_ns();
        if (err != HF_NOSCRIPT)
            lock->due_ns += RETRY_MS * HF_MS_NS;
    }
    hf_lock_client_settle(locks);
}

void hf_release_send(hf_lock *lock)
{
    hf_lock_client *locks = lock->locks;
    lock->due_ns = UINT64_MAX; /* else with the answer, or with the next connection */
    if (lock->in_flight > 0 || !hf_lock_client_ready(locks))
        return;
    const hf_lock_of of = hf_lock_of_lock(lock);
    /* Late is as good as in time: it only takes away what is its own. */
    hf_err err = hf_op_leave(locks->client, &of, false, 0, 0, on_left, lock);
    if (err == HF_OK)
        lock->in_flight++;
}

void hf_release_drop(hf_lock *lock)
{
    tell(lock, lock->answered ? lock->result : HF_RELEASE_UNKNOWN, lock->left);
    lock->in_flight = 0;
    atomic_store(&lock->cancel_queued, false);
    hf_lock_client_over(lock);
}

void hf_release_answered(hf_lock *lock)
{
    if (lock->over)
        hf_lock_client_over(lock);
    else
        hf_release_send(lock);
}

void hf_release_begin(hf_lock *lock)
{
    uint64_t lease_ns = atomic_load(&lock->lease_ms) * HF_MS_NS;
    lock->step = STEP_LEAVE;
    lock->tell_until_ns = hf_boot_ns() + lock->locks->request_timeout_ms * HF_MS_NS;
    lock->leave_until_ns = lock->tell_until_ns + lease_ns; /* as if renewed last now */
    lock->due_ns = UINT64_MAX;
    hf_lock_client_move(lock, &lock->locks->active);
    hf_lock_client_background(lock, true);
    lock->in_flight++; /* it is ours until all is done here */
    hf_ask_released(lock);
    lock->in_flight--;
    hf_release_send(lock);
}

uint64_t hf_release_due_ns(const hf_lock *lock)
{
    bool waits = lock->patient && atomic_load(&lock->event_runs);
    uint64_t due_ns = lock->on_released != NULL && !waits ? lock->tell_until_ns
                      : lock->answered                    ? UINT64_MAX
                                                          : lock->leave_until_ns;
    if (lock->in_flight == 0 && lock->due_ns < due_ns)
        due_ns = lock->due_ns;
    return due_ns;
}

void hf_release_time(hf_lock *lock, uint64_t now_ns)
{
    if (now_ns >= lock->tell_until_ns &&
        !(lock->patient && atomic_load(&lock->event_runs)))
        tell(lock, lock->answered ? lock->result : HF_RELEASE_UNKNOWN, lock->left);
    if (lock->answered)
        return;
    if (now_ns >= lock->leave_until_ns)
        hf_lock_client_over(lock);
    else if (now_ns >= lock->due_ns)
        hf_release_send(lock);
}

/* ---- the calls ---- */

static void run_release(hf_order *order)
{
    hf_lock *lock = HF_CONTAINER(order, hf_lock, order);
    hf_lock_client *locks = lock->locks;
    lock->on_released = lock->release_cb;
    hf_release_begin(lock);
    hf_lock_client_settle(locks);
}

/* It counts as not held from here on, whatever becomes of the request. */
static void let_go(hf_lock *lock)
{
    hf_lease *lease = atomic_load(&lock->lease);
    int kept = HF_LOCK_NOT_LOST;
    lock->was_ours = lease != NULL && !hf_lease_lost(lease);
    (void)atomic_compare_exchange_strong(&lock->reason, &kept, HF_LOCK_RELEASED);
    hf_held_leave(lock);
    hf_guard_end(&lock->locks->guard, &lock->minded);
    atomic_store(&lock->state, HF_LOCK_GONE);
}

/* From here on the lock itself is background work. */
static void run_release_unwatched(hf_order *order)
{
    hf_driver *driver = &HF_CONTAINER(order, hf_lock, order)->locks->driver;
    run_release(order);
    hf_driver_background(driver, -1);
}

void hf_lock_release(hf_lock *lock, hf_lock_released_cb cb, void *arg)
{
    hf_driver *driver = &lock->locks->driver;
    if (hf_lock_client_forked(lock->locks))
        return;
    let_go(lock);
    lock->release_cb = cb; /* told once: by the order, if it is run, or below */
    lock->released_arg = arg;
    lock->order.run = run_release_unwatched;
    hf_driver_background(driver, 1); /* nobody waits: somebody must run the loop */
    if (hf_lock_client_hand_in(lock->locks, &lock->order) == HF_OK)
        return;
    hf_driver_background(driver, -1);
    if (cb != NULL)
        cb(lock, HF_RELEASE_UNKNOWN, 0, arg); /* closing gives it back */
}

typedef struct awaited {
    hf_driver *driver;
    hf_driver_waiter waiter;
    hf_lock_release_result result;
    size_t left;
} awaited;

static void on_released(hf_lock *lock, hf_lock_release_result result, size_t left,
                        void *arg)
{
    awaited *a = arg;
    (void)lock;
    a->result = result;
    a->left = left;
    hf_driver_done(a->driver, &a->waiter);
}

hf_lock_release_result hf_lock_release_wait(hf_lock *lock, size_t *left)
{
    awaited a = {.driver = &lock->locks->driver, .result = HF_RELEASE_UNKNOWN};
    if (hf_lock_client_forked(lock->locks))
        return HF_RELEASE_UNKNOWN;
    if (!a.driver->threaded || hf_callback_inside(a.driver) ||
        hf_driver_waiter_init(&a.waiter) != HF_OK) {
        hf_lock_release(lock, NULL, NULL); /* without waiting */
        return HF_RELEASE_UNKNOWN;
    }
    let_go(lock);
    lock->release_cb = on_released;
    lock->released_arg = &a;
    lock->order.run = run_release;
    if (hf_lock_client_hand_in(lock->locks, &lock->order) == HF_OK)
        hf_driver_await(a.driver, &a.waiter);
    hf_driver_waiter_done(&a.waiter);
    if (left != NULL)
        *left = a.left;
    return a.result;
}
