/* run_loop.c - see run_loop.h. */
#include "redis/run_loop.h"

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/futex.h"

/* The requests to the owner. */
enum { SUBMIT = 1, TURN = 2 };

enum {
    REST_MS = 100, /* how long after the last caller the service thread polls again */
    RECHECK_MS = 1 /* how soon it looks again at a loop that another thread has */
};

/* The values of a waiter's word. After WORD_DONE only its own thread knows the waiter. */
enum { WORD_NONE, WORD_LOOK, WORD_DONE };

#define CLOSING 0x80000000U /* in `callers`: a thread waits for them to leave */

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- lists of waiters; the lock is held ---- */

static void append(hf_run_waiters *list, hf_run_waiter *waiter)
{
    waiter->next = NULL;
    waiter->prev = list->last;
    *(list->last != NULL ? &list->last->next : &list->first) = waiter;
    list->last = waiter;
}

static void take_out(hf_run_waiters *list, hf_run_waiter *waiter)
{
    *(waiter->prev != NULL ? &waiter->prev->next : &list->first) = waiter->next;
    *(waiter->next != NULL ? &waiter->next->prev : &list->last) = waiter->prev;
    waiter->next = waiter->prev = NULL;
}

static hf_run_waiters take_done(hf_run_loop *loop)
{
    hf_run_waiters done = loop->done;
    loop->done = (hf_run_waiters){NULL, NULL};
    return done;
}

/* ---- wake-ups ---- */

/* Tells a waiter that it is its turn to poll. The answer is its word, which must be woken
 * and can be without the lock; NULL: its thread is awake. */
static atomic_uint *post(hf_run_waiter *waiter)
{
    unsigned none = WORD_NONE;
    bool asleep = atomic_compare_exchange_strong(&waiter->word, &none, WORD_LOOK);
    return asleep ? &waiter->word : NULL;
}

static void wake_word(atomic_uint *word)
{
    if (word != NULL)
        hf_futex_wake(word);
}

/* Without the lock. */
static void wake_done(const hf_run_waiters *done, const hf_run_waiter *self)
{
    hf_run_waiter *next;
    for (hf_run_waiter *waiter = done->first; waiter != NULL; waiter = next) {
        next = waiter->next; /* the waiter may be gone a moment after it is done */
        bool other = waiter != self;
        atomic_store_explicit(&waiter->word, WORD_DONE, memory_order_release);
        if (other)
            hf_futex_wake(&waiter->word);
    }
}

/* A service thread that is awake looks at everything before it sleeps. */
static void wake_service(hf_run_loop *loop)
{
    const uint64_t one = 1;
    if (loop->service_sleeps)
        wake_word(post(&loop->service));
    else if (loop->service_polls && !loop->signalled)
        loop->signalled = write(loop->event, &one, sizeof one) > 0;
}

static bool is_caller(const hf_run_loop *loop, const hf_run_waiter *waiter)
{
    return waiter != NULL && waiter != &loop->service;
}

static void wake_poller(hf_run_loop *loop)
{
    if (!is_caller(loop, loop->poller))
        wake_service(loop);
    else if (loop->until_ns != 0)
        (void)uv_async_send(&loop->wakeup); /* fails only for another kind of handle */
}

/* The owner looks at what is wanted before it leaves; a poller before it sleeps. */
static void want_submit(hf_run_loop *loop)
{
    loop->wanted |= SUBMIT;
    if (!loop->owned)
        (void)uv_async_send(&loop->wakeup);
    else if (!loop->taken)
        wake_poller(loop);
}

void hf_run_loop_wake(hf_run_loop *loop)
{
    hf_run_loop_lock(loop);
    want_submit(loop);
    hf_run_loop_unlock(loop);
}

static void on_wakeup(uv_async_t *wakeup)
{
    hf_run_loop *loop = wakeup->data;
    if (loop->owned)
        return; /* it has ended the poll: the owner looks at what is wanted */
    hf_run_loop_lock(loop);
    loop->wanted = 0;
    hf_run_loop_unlock(loop);
    loop->hooks->submit(loop->arg);
    if (loop->hooks->flush != NULL)
        loop->hooks->flush(loop->arg);
}

void hf_run_loop_background(hf_run_loop *loop, int change)
{
    hf_run_loop_lock(loop);
    loop->background = (size_t)((int64_t)loop->background + change);
    if (loop->background > 0 && loop->waiting.first == NULL && loop->service_sleeps)
        wake_service(loop);
    hf_run_loop_unlock(loop);
}

/* ---- choosing the poller; the lock is held ---- */

static bool callers_may_poll(const hf_run_loop *loop)
{
    return loop->callbacks == 0 && !loop->retired;
}

static bool a_caller_may_poll(const hf_run_loop *loop)
{
    return loop->waiting.first != NULL && callers_may_poll(loop);
}

static bool may_own(const hf_run_loop *loop, const hf_run_waiter *self)
{
    return self == &loop->service || loop->callbacks == 0;
}

/* Timers are counted in ms: one that is due in the same one is no earlier. */
static bool is_before(uint64_t due_ns, uint64_t until_ns)
{
    return due_ns < until_ns && until_ns - due_ns > HF_MS_NS;
}

/* Makes sure that a thread polls, and not for too long. Returns a word to wake. */
static atomic_uint *appoint_poller(hf_run_loop *loop, const hf_run_waiter *self)
{
    hf_run_waiter *first = loop->waiting.first;
    if (loop->wanted != 0 || !callers_may_poll(loop)) {
        wake_service(loop);
        return NULL;
    }
    if (loop->poller == NULL && first != NULL) {
        loop->poller = first;
        return first != self ? post(first) : NULL;
    }
    if (loop->poller == NULL &&
        (loop->background > 0 || is_before(loop->due_ns, loop->service_until_ns)))
        wake_service(loop);
    else if (loop->poller != NULL && is_before(loop->due_ns, loop->until_ns))
        wake_poller(loop);
    return NULL;
}

/* ---- the owner ---- */

typedef struct after_turn {
    uint64_t due_ns;
    bool expects, over;
} after_turn;

/* Without the lock. */
static after_turn turn(hf_run_loop *loop, unsigned wanted)
{
    const hf_run_hooks *hooks = loop->hooks;
    after_turn after = {.due_ns = UINT64_MAX};
    if (wanted & TURN)
        after.over = uv_run(loop->uv, UV_RUN_NOWAIT) == 0;
    else
        uv_update_time(loop->uv);
    if (wanted & SUBMIT)
        hooks->submit(loop->arg);
    if (hooks->flush != NULL)
        hooks->flush(loop->arg);
    int ms = uv_backend_timeout(loop->uv);
    if (ms >= 0)
        after.due_ns = hf_boot_ns() + (uint64_t)ms * HF_MS_NS;
    after.expects = hooks->expects != NULL && hooks->expects(loop->arg);
    return after;
}

/* A caller that is done polls no more. */
static void dismiss_done(hf_run_loop *loop, const hf_run_waiter *self)
{
    hf_run_waiter *poller = loop->poller;
    if (!is_caller(loop, poller) || !poller->done)
        return;
    if (poller == self || loop->until_ns == 0)
        loop->poller = NULL;
    else
        wake_poller(loop);
}

/* Does what is wanted, unless another thread is the owner, which then does this too, or
 * only the service thread may. Wakes the waiters that are done, without the lock. */
static void serve(hf_run_loop *loop, hf_run_waiter *self, unsigned wanted)
{
    loop->wanted |= wanted;
    if (loop->taken)
        return;
    loop->taken = true;
    loop->by_caller = self != &loop->service;
    while (loop->wanted != 0 && may_own(loop, self)) {
        wanted = loop->wanted;
        loop->wanted = 0;
        hf_run_loop_unlock(loop);
        after_turn after = turn(loop, wanted);
        hf_run_loop_lock(loop);
        loop->due_ns = after.due_ns;
        loop->expects = after.expects;
        loop->over = loop->over || after.over;
    }
    loop->taken = false;
    hf_run_waiters done = take_done(loop);
    if (done.first != NULL)
        hf_spin_read(&loop->spin, hf_boot_ns());
    dismiss_done(loop, self);
    atomic_uint *next = appoint_poller(loop, self);
    if (next == NULL && done.first == NULL)
        return;
    hf_run_loop_unlock(loop);
    wake_word(next);
    wake_done(&done, self);
    hf_run_loop_lock(loop);
}

/* ---- sleeping; the lock is held, and let go meanwhile ---- */

/* Until the loop has an event, or something may be due. */
static void poll_loop(hf_run_loop *loop, const hf_run_waiter *self, uint64_t until_ns)
{
    uint64_t now_ns = hf_boot_ns(), wake_ns = earlier(loop->due_ns, until_ns);
    uint64_t ms = wake_ns > now_ns ? (wake_ns - now_ns) / HF_MS_NS + 1 : 0;
    int event = self == &loop->service ? loop->event : -1;
    struct pollfd fds[] = {{.fd = uv_backend_fd(loop->uv), .events = POLLIN},
                           {.fd = event, .events = POLLIN}};
    loop->until_ns = wake_ns;
    if (event >= 0)
        loop->service_until_ns = wake_ns;
    hf_run_loop_unlock(loop);
    (void)poll(fds, HF_COUNT(fds), ms < INT_MAX ? (int)ms : INT_MAX);
    hf_run_loop_lock(loop);
    if (loop->poller == self)
        loop->until_ns = 0;
}

/* True: it is done, and the lock is not held any more. */
static bool sleep_until(hf_run_loop *loop, hf_run_waiter *self, uint64_t until_ns)
{
    uint64_t now_ns = hf_boot_ns();
    hf_run_loop_unlock(loop);
    if (until_ns > now_ns)
        hf_futex_wait(&self->word, WORD_NONE, until_ns - now_ns);
    unsigned word = WORD_LOOK;
    (void)atomic_compare_exchange_strong(&self->word, &word, WORD_NONE);
    if (word == WORD_DONE)
        return true;
    hf_run_loop_lock(loop);
    return false;
}

/* ---- the service thread ---- */

static void service_sleeps(hf_run_loop *loop, uint64_t until_ns)
{
    loop->service_sleeps = true;
    loop->service_until_ns = until_ns;
    (void)sleep_until(loop, &loop->service, until_ns);
    loop->service_sleeps = false;
}

static void service_polls(hf_run_loop *loop)
{
    uint64_t times;
    loop->service_polls = true;
    poll_loop(loop, &loop->service, UINT64_MAX);
    loop->service_polls = false;
    if (loop->signalled)
        loop->signalled = read(loop->event, &times, sizeof times) <= 0;
}

/* While callers poll, and a little longer, the service thread need not: a caller that
 * comes soon finds it asleep, and no event wakes both. */
static bool may_rest(const hf_run_loop *loop, uint64_t now_ns)
{
    if (loop->wanted != 0 || !callers_may_poll(loop))
        return false;
    if (loop->waiting.first != NULL)
        return true;
    return loop->background == 0 && now_ns < loop->due_ns &&
           now_ns < loop->polled_ns + REST_MS * HF_MS_NS;
}

static void rest(hf_run_loop *loop, uint64_t now_ns)
{
    uint64_t until_ns = now_ns + REST_MS * HF_MS_NS;
    if (loop->poller == &loop->service) {
        loop->poller = NULL;
        wake_word(appoint_poller(loop, &loop->service));
    }
    bool alone = loop->waiting.first == NULL;
    service_sleeps(loop, alone ? earlier(until_ns, loop->due_ns) : until_ns);
}

/* Until nothing is left on the loop. */
static void run_service(void *arg)
{
    hf_run_loop *loop = arg;
    hf_run_waiter *self = &loop->service;
    hf_run_loop_lock(loop);
    while (!loop->over) {
        uint64_t now_ns = hf_boot_ns();
        if (may_rest(loop, now_ns)) {
            rest(loop, now_ns);
        } else if (loop->taken || is_caller(loop, loop->poller)) {
            wake_poller(loop);
            service_sleeps(loop, now_ns + RECHECK_MS * HF_MS_NS);
        } else {
            loop->poller = self;
            serve(loop, self, SUBMIT | TURN);
            /* It let the lock go to wake callers, which may want something by now, and
             * one that came meanwhile may be asleep. */
            if (!loop->over && loop->poller == self && loop->wanted == 0 &&
                !a_caller_may_poll(loop))
                service_polls(loop);
        }
    }
    hf_run_loop_unlock(loop);
}

/* ---- a caller ---- */

void hf_run_loop_enter(hf_run_loop *loop)
{
    (void)atomic_fetch_add(&loop->callers, 1);
}

/* After the last one the run loop may be gone at once. */
void hf_run_loop_leave(hf_run_loop *loop)
{
    if (atomic_fetch_sub(&loop->callers, 1) == CLOSING + 1)
        hf_futex_wake(&loop->callers);
}

static void await_callers(hf_run_loop *loop)
{
    unsigned n = atomic_fetch_add(&loop->callers, CLOSING) + CLOSING;
    for (; n != CLOSING; n = atomic_load(&loop->callers))
        hf_futex_wait(&loop->callers, n, 1000 * HF_MS_NS);
}

/* Whether it is the poller, or may become it. */
static bool may_poll(const hf_run_loop *loop, const hf_run_waiter *self)
{
    if (!callers_may_poll(loop))
        return false;
    return loop->poller == self || (!loop->taken && !is_caller(loop, loop->poller));
}

static void give_to_service(hf_run_loop *loop, const hf_run_waiter *self)
{
    if (loop->poller == self)
        loop->poller = NULL;
    wake_service(loop);
}

/* A caller that is done is still in its call until its thread has run. Several of them
 * need the processor, and may call again soon: with a spin beside them, 8 threads get a
 * fifth less done. */
static bool may_spin(const hf_run_loop *loop, const hf_run_waiter *self)
{
    bool alone = loop->waiting.first == self && loop->waiting.last == self &&
                 atomic_load(&loop->callers) <= 2;
    return alone && loop->expects && !loop->taken && callers_may_poll(loop);
}

/* Turns the loop again and again, until it has its answer or may spin no longer
 * (base/spin.h). To poll before each turn would cost a system call more. */
static void spin(hf_run_loop *loop, hf_run_waiter *self, uint64_t until_ns)
{
    uint64_t now_ns = hf_boot_ns(), end_ns = 0;
    if (may_spin(loop, self))
        end_ns = hf_spin_begin(&loop->spin, now_ns);
    if (end_ns == 0)
        return;
    while (now_ns < earlier(end_ns, until_ns) && may_spin(loop, self)) {
        serve(loop, self, TURN);
        if (self->done)
            break;
        now_ns = hf_boot_ns();
    }
    hf_spin_end(&loop->spin, now_ns >= end_ns);
}

/* A request that came on the way here woke only a poller that sleeps. */
static void caller_polls(hf_run_loop *loop, hf_run_waiter *self, uint64_t until_ns)
{
    loop->poller = self;
    if (loop->wanted == 0)
        spin(loop, self, until_ns);
    if (loop->wanted == 0 && !self->done)
        poll_loop(loop, self, until_ns);
    loop->polled_ns = self->done ? loop->spin.read_ns : hf_boot_ns();
    if (self->done || !callers_may_poll(loop))
        return;
    if (loop->taken) /* then the owner does it, and appoints the next poller */
        loop->poller = NULL;
    serve(loop, self, TURN);
}

/* The thread that read the answer is about to report it. */
static void await_word(hf_run_waiter *waiter)
{
    unsigned word;
    while ((word = atomic_load_explicit(&waiter->word, memory_order_acquire)) !=
           WORD_DONE)
        hf_futex_wait(&waiter->word, word, 1000 * HF_MS_NS);
}

/* Lets the lock go. */
static void stop_waiting(hf_run_loop *loop, hf_run_waiter *waiter)
{
    atomic_uint *next = NULL;
    if (!waiter->done) {
        take_out(&loop->waiting, waiter);
        waiter->waits = false;
        waiter->left = true;
    }
    if (loop->poller == waiter) {
        loop->poller = NULL;
        if (!loop->taken) /* else the owner sees to it */
            next = appoint_poller(loop, waiter);
    }
    hf_run_loop_unlock(loop);
    wake_word(next);
}

/* When it runs the submit hook once more. Only if that is needed, because a short sleep
 * costs more than a long one: the kernel has to set the clock for it. While another
 * thread is the owner the answer is not known yet. */
static uint64_t again_at(const hf_run_loop *loop, const hf_run_waiter *waiter,
                         uint64_t now_ns)
{
    bool again = waiter->again_ms != 0 && (loop->taken || loop->unsent);
    return again ? now_ns + waiter->again_ms * HF_MS_NS : UINT64_MAX;
}

bool hf_run_loop_await(hf_run_loop *loop, hf_run_waiter *waiter, uint64_t until_ns)
{
    uint64_t now_ns = hf_boot_ns();
    hf_run_loop_lock(loop);
    waiter->waits = !waiter->done;
    if (waiter->waits)
        append(&loop->waiting, waiter);
    if (waiter->submits)
        serve(loop, waiter, SUBMIT);
    uint64_t again_ns = again_at(loop, waiter, now_ns);
    while (!waiter->done && now_ns < until_ns) {
        if (may_poll(loop, waiter)) {
            caller_polls(loop, waiter, earlier(until_ns, again_ns));
        } else {
            if (!callers_may_poll(loop))
                give_to_service(loop, waiter);
            if (sleep_until(loop, waiter, earlier(until_ns, again_ns)))
                return true;
        }
        if (waiter->done)
            break;
        now_ns = hf_boot_ns();
        if (now_ns >= again_ns) {
            again_ns = UINT64_MAX;
            serve(loop, waiter, SUBMIT);
        }
    }
    bool done = waiter->done;
    stop_waiting(loop, waiter);
    if (done)
        await_word(waiter);
    return done;
}

/* ---- answers ---- */

void hf_run_loop_done_locked(hf_run_loop *loop, hf_run_waiter *waiter)
{
    waiter->done = true;
    if (waiter->waits)
        take_out(&loop->waiting, waiter);
    waiter->waits = false;
    append(&loop->done, waiter);
}

void hf_run_loop_done(hf_run_loop *loop, hf_run_waiter *waiter)
{
    hf_run_loop_lock(loop);
    hf_run_loop_done_locked(loop, waiter);
    hf_run_loop_unlock(loop);
}

void hf_run_loop_wake_done(hf_run_loop *loop)
{
    hf_run_loop_lock(loop);
    hf_run_waiters done = take_done(loop);
    hf_run_loop_unlock(loop);
    wake_done(&done, NULL);
}

/* ---- life ---- */

hf_err hf_run_loop_open(hf_run_loop *loop, uv_loop_t *uv, const hf_run_hooks *hooks,
                        void *arg)
{
    *loop = (hf_run_loop){.uv = uv != NULL ? uv : &loop->own,
                          .owned = uv == NULL,
                          .hooks = hooks,
                          .arg = arg,
                          .event = -1};
    if (uv_mutex_init(&loop->lock) != 0)
        return HF_SYSTEM;
    if (!loop->owned || uv_loop_init(&loop->own) == 0)
        return HF_OK;
    uv_mutex_destroy(&loop->lock);
    return HF_SYSTEM;
}

/* A thread inherits the signal mask of its maker. */
static hf_err start_service(hf_run_loop *loop)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    loop->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->event < 0 || pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
        return HF_SYSTEM;
    loop->served = uv_thread_create(&loop->thread, run_service, loop) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return loop->served ? HF_OK : HF_SYSTEM;
}

hf_err hf_run_loop_start(hf_run_loop *loop)
{
    /* The loop has what this needs, so it cannot fail. */
    HF_ASSERT(uv_async_init(loop->uv, &loop->wakeup, on_wakeup) == 0);
    loop->wakeup.data = loop;
    loop->started = true;
    return loop->owned ? start_service(loop) : HF_OK;
}

void hf_run_loop_retire(hf_run_loop *loop)
{
    hf_run_loop_lock(loop);
    loop->retired = true;
    want_submit(loop);
    hf_run_loop_unlock(loop);
}

void hf_run_loop_close_wakeup(hf_run_loop *loop, uv_close_cb cb)
{
    loop->wakeup.data = loop->arg;
    uv_close((uv_handle_t *)&loop->wakeup, cb);
}

void hf_run_loop_close(hf_run_loop *loop)
{
    if (loop->owned && loop->started) {
        hf_run_loop_retire(loop);
        if (loop->served)
            HF_ASSERT(uv_thread_join(&loop->thread) == 0);
        else
            run_service(loop);
    }
    if (loop->owned) {
        (void)uv_run(loop->uv, UV_RUN_DEFAULT);
        await_callers(loop);
        HF_ASSERT(uv_loop_close(&loop->own) == 0);
    }
    if (loop->event >= 0)
        (void)close(loop->event);
    uv_mutex_destroy(&loop->lock);
}
