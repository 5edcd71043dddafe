/* handin.c - the calls that ask for a lock, and that give up asking. */
#include <stdio.h>

#include "base/base.h"
#include "lock/callback.h"
#include "lock/locks.h"

static void run_acquire(hf_order *order)
{
    hf_lock *lock = HF_CONTAINER(order, hf_lock, order);
    hf_lock_client *locks = lock->locks;
    hf_lock_client_move(lock, &locks->active);
    if (locks->closing)
        hf_acquire_fail(lock, HF_CLOSED, "the client is being closed");
    else
        hf_acquire_send(lock);
    hf_lock_client_settle(locks);
}

static void run_cancel(hf_order *order)
{
    hf_lock *lock = HF_CONTAINER(order, hf_lock, cancel_order);
    hf_lock_client *locks = lock->locks;
    atomic_store(&lock->cancel_queued, false);
    if (lock->over)
        hf_lock_client_over(lock);
    else if (!lock->told)
        hf_acquire_fail(lock, HF_CANCEL, "cancelled");
    hf_lock_client_settle(locks);
}

static hf_err hand_in(hf_lock_client *locks, const hf_lock_opts *opts,
                      hf_lock_acquired_cb cb, void *arg, bool background, hf_lock **out,
                      char *detail)
{
    hf_lock *lock;
    if (hf_lock_client_forked(locks))
        return hf_lock_say(detail, HF_FORKED, "%s", hf_err_text(HF_FORKED));
    hf_err err = hf_lock_make(locks, opts, &lock, detail);
    if (err != HF_OK)
        return err;
    lock->on_acquired = cb;
    lock->acquired_arg = arg;
    lock->order.run = run_acquire;
    hf_lock_client_background(lock, background);
    if (out != NULL)
        *out = lock;
    err = hf_lock_client_hand_in(locks, &lock->order);
    if (err != HF_OK) {
        hf_lock_client_background(lock, false);
        hf_lock_free(lock);
        return hf_lock_say(detail, err, "%s", hf_err_text(err));
    }
    return HF_OK;
}

hf_err hf_lock_acquire(hf_lock_client *locks, const hf_lock_opts *opts,
                       hf_lock_acquired_cb cb, void *arg, hf_lock **out,
                       char detail[HF_DETAIL_SIZE])
{
    return hand_in(locks, opts, cb, arg, true, out, detail);
}

void hf_lock_cancel(hf_lock *lock)
{
    if (hf_lock_client_forked(lock->locks) || atomic_exchange(&lock->cancel_queued, true))
        return;
    lock->cancel_order.run = run_cancel;
    if (hf_lock_client_hand_in(lock->locks, &lock->cancel_order) != HF_OK)
        atomic_store(&lock->cancel_queued, false); /* closing cancels it */
}

/* ---- waiting for it ---- */

typedef struct awaited {
    hf_driver *driver;
    hf_driver_waiter waiter;
    hf_lock *lock;
    hf_err err;
    char detail[HF_DETAIL_SIZE];
} awaited;

static void on_acquired(hf_lock *lock, hf_err err, const char *detail, void *arg)
{
    awaited *a = arg;
    a->lock = lock;
    a->err = err;
    (void)snprintf(a->detail, sizeof a->detail, "%s", detail);
    hf_driver_done(a->driver, &a->waiter);
}

hf_err hf_lock_acquire_wait(hf_lock_client *locks, const hf_lock_opts *opts,
                            hf_lock **out, char detail[HF_DETAIL_SIZE])
{
    awaited a = {.driver = &locks->driver};
    hf_err err = hf_callback_may_wait(a.driver, a.driver->threaded, detail);
    if (err != HF_OK)
        return err;
    err = hf_driver_waiter_init(&a.waiter);
    if (err != HF_OK)
        return hf_lock_say(detail, err, "%s", hf_err_text(err));
    err = hand_in(locks, opts, on_acquired, &a, false, NULL, detail);
    if (err == HF_OK) {
        hf_driver_await(a.driver, &a.waiter);
        err = a.err;
        (void)hf_lock_say(detail, err, "%s", a.detail);
    }
    hf_driver_waiter_done(&a.waiter);
    if (err == HF_OK)
        *out = a.lock;
    return err;
}
