/* driver.c - see driver.h. */
#include "lock/driver.h"

#include <pthread.h>
#include <signal.h>

#include "base/base.h"
#include "base/clock.h"

/* ---- turns ---- */

/* False: there was nothing to see. */
static bool take_turn(hf_driver *d)
{
    uv_mutex_lock(&d->lock);
    bool due = d->due;
    d->due = false;
    uv_mutex_unlock(&d->lock);
    if (due)
        d->on_turn(d->arg);
    return due;
}

static void on_wake(uv_async_t *wake)
{
    (void)take_turn(wake->data);
}

/* Under lock: nobody runs the loop, and somebody should. */
static void pass_on(hf_driver *d)
{
    if (d->stopping)
        uv_cond_broadcast(&d->work); /* who ends it waits for that, too */
    else if (d->waiters != NULL)
        uv_cond_signal(&d->waiters->turn);
    else if (d->background > 0)
        uv_cond_signal(&d->work);
}

static void run(hf_driver *d, uv_run_mode mode)
{
    d->runs = true;
    (void)uv_run(d->loop, mode); /* which forgets uv_stop() at its end */
    d->runs = false;
}

/* Looks for what is due until somebody has what it waits for. False: there is nothing to
 * look for, or it has not come, and the loop may sleep. */
static bool spin(hf_driver *d)
{
    uint64_t now_ns = hf_boot_ns(), before_ns = d->spin.read_ns;
    uint64_t until_ns = d->is_due(d->arg) ? hf_spin_begin(&d->spin, now_ns) : 0;
    if (until_ns == 0)
        return false;
    while (now_ns < until_ns && d->spin.read_ns == before_ns && d->is_due(d->arg)) {
        run(d, UV_RUN_NOWAIT);
        now_ns = hf_boot_ns();
    }
    bool in_vain = d->spin.read_ns == before_ns && d->is_due(d->arg);
    hf_spin_end(&d->spin, in_vain);
    return !in_vain;
}

/* Under lock, which is let go meanwhile. The loop may wait for long, so it is not run
 * after a turn, which may have been what was waited for. */
static void drive_once(hf_driver *d)
{
    bool alone = d->waiters != NULL && d->waiters->next == NULL;
    d->driven = true;
    uv_mutex_unlock(&d->lock);
    if (!take_turn(d) && !(alone && d->is_due != NULL && spin(d)))
        run(d, UV_RUN_ONCE);
    uv_mutex_lock(&d->lock);
    d->driven = false;
    if (d->stopping)
        uv_cond_broadcast(&d->work);
}

void hf_driver_kick(hf_driver *d)
{
    uv_mutex_lock(&d->lock);
    d->due = true;
    if (d->driven || !d->threaded)
        (void)uv_async_send(&d->wake);
    else
        pass_on(d);
    uv_mutex_unlock(&d->lock);
}

void hf_driver_background(hf_driver *d, int change)
{
    uv_mutex_lock(&d->lock);
    d->background = (size_t)((int64_t)d->background + change);
    if (change > 0 && !d->driven && d->waiters == NULL)
        uv_cond_signal(&d->work);
    uv_mutex_unlock(&d->lock);
}

/* ---- who waits ---- */

hf_err hf_driver_waiter_init(hf_driver_waiter *waiter)
{
    *waiter = (hf_driver_waiter){.done = false};
    return uv_cond_init(&waiter->turn) == 0 ? HF_OK : HF_SYSTEM;
}

void hf_driver_waiter_done(hf_driver_waiter *waiter)
{
    uv_cond_destroy(&waiter->turn);
}

static void remove_waiter(hf_driver *d, hf_driver_waiter *waiter)
{
    hf_driver_waiter **at = &d->waiters;
    while (*at != waiter)
        at = &(*at)->next;
    *at = waiter->next;
}

void hf_driver_await(hf_driver *d, hf_driver_waiter *waiter)
{
    uv_mutex_lock(&d->lock);
    waiter->next = d->waiters;
    d->waiters = waiter;
    while (!waiter->done) {
        if (d->driven || d->stopping)
            uv_cond_wait(&waiter->turn, &d->lock);
        else
            drive_once(d);
    }
    remove_waiter(d, waiter);
    if (!d->driven || d->stopping)
        pass_on(d);
    uv_mutex_unlock(&d->lock);
}

void hf_driver_done(hf_driver *d, hf_driver_waiter *waiter)
{
    hf_spin_read(&d->spin, hf_boot_ns());
    if (d->runs)
        uv_stop(d->loop); /* or a turn whose first timer was this would sleep now */
    uv_mutex_lock(&d->lock);
    waiter->done = true;
    uv_cond_signal(&waiter->turn);
    uv_mutex_unlock(&d->lock);
}

/* ---- the thread ---- */

static void run_thread(void *arg)
{
    hf_driver *d = arg;
    uv_mutex_lock(&d->lock);
    while (!d->stopping) {
        if (d->driven || d->waiters != NULL || d->background == 0)
            uv_cond_wait(&d->work, &d->lock);
        else
            drive_once(d);
        if (!d->driven && d->waiters != NULL)
            pass_on(d);
    }
    pass_on(d);
    uv_mutex_unlock(&d->lock);
}

static hf_err start_thread(hf_driver *d)
{
    sigset_t all, before;
    (void)sigfillset(&all); /* signals are not ours */
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
        return HF_SYSTEM;
    int made = uv_thread_create(&d->thread, run_thread, d);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return made == 0 ? HF_OK : HF_SYSTEM;
}

/* ---- life ---- */

static hf_err open_loop(hf_driver *d, uv_loop_t *loop)
{
    d->loop = loop;
    if (d->threaded) {
        if (uv_loop_init(&d->own) != 0)
            return HF_SYSTEM;
        d->loop = &d->own;
    }
    if (uv_async_init(d->loop, &d->wake, on_wake) == 0) {
        d->wake.data = d;
        return HF_OK;
    }
    if (d->threaded)
        (void)uv_loop_close(&d->own);
    return HF_SYSTEM;
}

hf_err hf_driver_open(hf_driver *d, uv_loop_t *loop, void (*on_turn)(void *arg),
                      bool (*is_due)(void *arg), void *arg)
{
    *d = (hf_driver){
        .threaded = loop == NULL, .on_turn = on_turn, .is_due = is_due, .arg = arg};
    if (uv_mutex_init(&d->lock) != 0)
        return HF_SYSTEM;
    if (uv_cond_init(&d->work) != 0)
        goto destroy_lock;
    if (open_loop(d, loop) != HF_OK)
        goto destroy_work;
    if (!d->threaded || start_thread(d) == HF_OK)
        return HF_OK;
    uv_close((uv_handle_t *)&d->wake, NULL);
    (void)uv_run(d->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&d->own);
destroy_work:
    uv_cond_destroy(&d->work);
destroy_lock:
    uv_mutex_destroy(&d->lock);
    return HF_SYSTEM;
}

void hf_driver_stop(hf_driver *d)
{
    if (!d->threaded)
        return;
    uv_mutex_lock(&d->lock);
    d->stopping = true;
    uv_cond_broadcast(&d->work);
    if (d->driven)
        (void)uv_async_send(&d->wake);
    while (d->driven)
        uv_cond_wait(&d->work, &d->lock);
    d->driven = true; /* by the caller, from now on */
    uv_mutex_unlock(&d->lock);
    HF_ASSERT(uv_thread_join(&d->thread) == 0);
}

void hf_driver_close_wake(hf_driver *d, uv_close_cb cb)
{
    uv_close((uv_handle_t *)&d->wake, cb);
}

void hf_driver_free(hf_driver *d)
{
    uv_mutex_lock(&d->lock);
    while (d->waiters != NULL) /* they have been told, and are on their way */
        uv_cond_wait(&d->work, &d->lock);
    uv_mutex_unlock(&d->lock);
    if (d->threaded)
        HF_ASSERT(uv_loop_close(&d->own) == 0);
    uv_cond_destroy(&d->work);
    uv_mutex_destroy(&d->lock);
}
