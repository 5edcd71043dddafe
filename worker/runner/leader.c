/* leader.c - worker/runner/leader.h.
 *
 * `at` names the owner of the loop. Only its owner changes it, with one exception: while
 * the leader is in a handler, the leader and the caller may both take the loop, and one
 * of them succeeds. Each term of a leader has a number: a leader that leaves its handler
 * late cannot take the loop from the next one. The wakeup timer belongs to the owner as
 * well. A thread that gives the loop away sets the timer before that, because a timer
 * that two threads set at the same time may never fire. */
#include "worker/runner/leader.h"

#include <stdint.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "worker/runner/state.h"
#include "worker/runner/threads.h"
#include "worker/worker.h"

enum { CALLERS, LEADERS, IN_HANDLER, OWNERS = 4 };

enum {
    SHORT_US = 200,   /* handlers that take less on average are run by the leader */
    WAKEUP_US = 1000, /* the longest time that a handler may hold up the loop */
    US_NS = 1000
};

hf_err hf_leader_open(hf_worker *w, void (*after)(hf_worker *w))
{
    w->runner->lead.after = after;
    w->runner->lead.wakeup = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
    if (w->runner->lead.wakeup < 0)
        return HF_SYSTEM;
    pthread_mutex_init(&w->runner->lead.gate, NULL);
    return HF_OK;
}

void hf_leader_close(hf_worker *w)
{
    if (w->runner->lead.wakeup < 0)
        return;
    (void)close(w->runner->lead.wakeup);
    pthread_mutex_destroy(&w->runner->lead.gate);
    w->runner->lead.wakeup = -1;
}

/* Fires this many ns from now; 0: not any more. */
static void set_wakeup(hf_worker *w, uint32_t ns)
{
    const struct itimerspec spec = {.it_value = {.tv_nsec = ns}};
    w->runner->lead.wakeup_ns = ns == 0 ? 0 : hf_boot_ns() + ns;
    int failed = timerfd_settime(w->runner->lead.wakeup, 0, &spec, NULL);
    HF_ASSERT(failed == 0);
}

/* False: it is not `from` any more. */
static bool pass(hf_worker *w, unsigned from, unsigned to)
{
    return atomic_compare_exchange_strong(&w->runner->lead.at, &from, to);
}

/* ---- the leader ---- */

/* False: the caller was quicker, and has the loop. */
static bool run_one(hf_worker *w, unsigned term)
{
    pthread_mutex_lock(&w->runner->lead.gate);
    atomic_store(&w->runner->lead.at, term + IN_HANDLER);
    if (w->runner->lead.wakeup_ns <= hf_boot_ns()) /* it has fired, or is not set */
        set_wakeup(w, WAKEUP_US * US_NS);
    pthread_mutex_unlock(&w->runner->lead.gate);
    hf_threads_run_here(w->runner->threads);
    if (!pass(w, term + IN_HANDLER, term + LEADERS)) {
        uv_async_send(&w->async);
        return false;
    }
    uv_update_time(&w->loop);
    w->runner->lead.after(w);
    set_wakeup(w, 0);
    return true;
}

static void lead(void *arg)
{
    hf_worker *w = arg;
    unsigned term = atomic_load(&w->runner->lead.at) - LEADERS;
    for (;;) {
        (void)uv_run(&w->loop, UV_RUN_DEFAULT);
        if (!w->runner->lead.has_job)
            break;
        w->runner->lead.has_job = false;
        if (!run_one(w, term))
            return;
    }
    pthread_mutex_lock(&w->runner->lead.gate);
    atomic_store(&w->runner->lead.at, term + CALLERS);
    set_wakeup(w, 1);
    pthread_mutex_unlock(&w->runner->lead.gate);
}

/* ---- on the loop ---- */

static bool are_short(const hf_worker *w)
{
    return w->runner->mean_run_ns > 0 && w->runner->mean_run_ns < SHORT_US * US_NS;
}

void hf_leader_expect(hf_worker *w)
{
    if (w->runner->lead.on)
        set_wakeup(w, WAKEUP_US * US_NS);
}

bool hf_leader_keep_one(hf_worker *w, hf_run_list *list)
{
    if (!w->runner->lead.on || list->n != 1 || w->runner->c_out != 1)
        return false;
    hf_threads_leave(w->runner->threads, list);
    w->runner->lead.has_job = true;
    uv_stop(&w->loop);
    return true;
}

void hf_leader_turned(hf_worker *w, bool idle)
{
    bool fit = w->phase == HF_SERVING && are_short(w) && !w->has_programs;
    if (w->runner->lead.on ? !fit || w->runner->c_out > 0 : fit && idle)
        uv_stop(&w->loop);
}

/* ---- the caller ---- */

/* Until the loop is its own again. */
static void await(hf_worker *w, unsigned term)
{
    uint64_t times;
    bool ours = false;
    while (!ours) {
        ssize_t n = read(w->runner->lead.wakeup, &times, sizeof times);
        (void)n; /* it looks after every wake-up */
        pthread_mutex_lock(&w->runner->lead.gate);
        ours = pass(w, term + IN_HANDLER, term + CALLERS) ||
               atomic_load(&w->runner->lead.at) == term + CALLERS;
        pthread_mutex_unlock(&w->runner->lead.gate);
    }
}

void hf_leader_run(hf_worker *w)
{
    while (uv_run(&w->loop, UV_RUN_DEFAULT) != 0) {
        unsigned term = atomic_load(&w->runner->lead.at) - CALLERS + OWNERS;
        w->runner->lead.on = true;
        atomic_store(&w->runner->lead.at, term + LEADERS);
        bool led = hf_threads_offer(w->runner->threads, lead, w);
        if (led)
            await(w, term);
        else /* not now: no thread waits */
            atomic_store(&w->runner->lead.at, term + CALLERS);
        w->runner->lead.on = false;
        uv_update_time(&w->loop);
        w->turn_due = w->turn_due || led;
    }
}
