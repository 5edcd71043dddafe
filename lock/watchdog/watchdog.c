/* watchdog.c - lock/watchdog/watchdog.h.
 *
 * One heap orders every lease by the time of its next action: its renewal, or its
 * deadline while a renewal is under way. A timer on CLOCK_BOOTTIME is set to the first of
 * them; any thread may set it, so adding and dropping cost no system call unless a lease
 * is due before all others.
 *
 *   timer -> collect leases that are due, and those due soon
 *              |-> its deadline has passed: LOST
 *              '-> batches -> renew() ... answer: held: in a third of the lease
 *                                                 failed: soon
 *
 * The deadline is checked last: an answer counts only if the deadline has not passed when
 * it is handled, however early it was sent or had arrived. So a process that was stopped
 * for a while finds its leases lost, even if good answers have arrived.
 *
 * Leases are renewed in the order in which they were added: leases due at the same time
 * are a nanosecond apart. Keys that were made in the same order lie side by side in
 * Redis's memory, which halves the time of a renewal there.
 *
 * The lock is never held while the user's functions run. The leases of a running function
 * are `busy`, and hf_watchdog_drop() waits for them. */
#include "lock/watchdog/watchdog.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/random.h"
#include "lock/watchdog/lease.h"
#include "lock/watchdog/lease_heap.h"
#include "lock/watchdog/watch_loop.h"
#include "redis/err.h"

enum {
    BATCH_MAX = 500,
    DUE_MAX = 4096, /* leases that are collected at a time */
    REQUEST_LEAST_MS = 200,
    RETRY_FIRST_MS = 100,
    RETRY_LAST_MS = 1000
};

struct hf_watchdog {
    hf_watchdog_opts opts;

    hf_watch_loop *loop; /* a reference */
    _Atomic uint64_t verify_ns;

    /* its thread only, once that runs */
    uv_poll_t timer;
    hf_lease *due[DUE_MAX];
    bool delivering;  /* the events that are in line will be told anyway */
    unsigned closing; /* the handles and connections that are being closed */

    int timer_fd;
    uv_mutex_t lock;
    uv_cond_t idle; /* something is not `busy` any more, or all of it is closed */

    /* under lock */
    size_t waiters; /* for idle */
    hf_lease_heap heap;
    size_t n_leases;
    uint64_t numbers;  /* of leases that were added ever */
    uint64_t call_ns;  /* of on_call; UINT64_MAX: none */
    uint64_t armed_ns; /* the time of the timer; UINT64_MAX: not set */
    hf_lease *events, *last_event;
    hf_rng rng;
    bool stopping, closed;
};

/* ---- the timer, the line of events, references; all under lock ---- */

static void set_timer(hf_watchdog *w, uint64_t at_ns)
{
    hf_timer_set(w->timer_fd, at_ns);
    w->armed_ns = at_ns;
}

static void arm(hf_watchdog *w)
{
    uint64_t due_ns = w->call_ns;
    if (w->heap.n > 0 && w->heap.slots[0].due_ns < due_ns)
        due_ns = w->heap.slots[0].due_ns;
    if (due_ns < w->armed_ns)
        set_timer(w, due_ns);
}

static void unref_by(hf_lease *lease, unsigned n)
{
    HF_ASSERT(lease->refs >= n);
    lease->refs -= n;
    if (lease->refs == 0 && lease->dropped)
        free(lease);
}

static void unref(hf_lease *lease)
{
    unref_by(lease, 1);
}

static void queue_event(hf_watchdog *w, hf_lease *lease, hf_lease_event event)
{
    if (lease->events == 0) {
        lease->refs++;
        lease->next_event = NULL;
        if (w->last_event != NULL)
            w->last_event->next_event = lease;
        else
            w->events = lease;
        w->last_event = lease;
    }
    lease->events |= 1U << event;
}

static void not_busy(hf_watchdog *w, hf_lease *lease)
{
    if (--lease->busy > 0)
        return;
    if (w->waiters > 0)
        uv_cond_broadcast(&w->idle);
    if (lease->leaving)
        queue_event(w, lease, HF_LEASE_LEFT);
    lease->leaving = false;
}

/* Under lock, which is let go meanwhile. */
static void tell(hf_watchdog *w, hf_lease *lease, hf_lease_event event)
{
    uv_mutex_unlock(&w->lock);
    w->opts.on_event(lease->user, lease, event, w->opts.arg);
    uv_mutex_lock(&w->lock);
}

/* The same. None of them once it is dropped, which each may do. */
static void tell_all(hf_watchdog *w, hf_lease *lease, unsigned events)
{
    static const hf_lease_event order[] = {HF_LEASE_RENEWED, HF_LEASE_SUSPECT,
                                           HF_LEASE_CANCELLED, HF_LEASE_LOST};
    if (events & 1U << HF_LEASE_LEFT)
        tell(w, lease, HF_LEASE_LEFT);
    if (lease->dropped)
        return;
    lease->busy++;
    for (size_t i = 0; i < HF_COUNT(order); i++)
        if (events & 1U << order[i] && !lease->dropped)
            tell(w, lease, order[i]);
    not_busy(w, lease);
}

/* Not under lock: reports the queued events. A lease that was dropped meanwhile has
 * none. */
static void deliver(hf_watchdog *w)
{
    uv_mutex_lock(&w->lock);
    while (w->events != NULL) {
        hf_lease *lease = w->events;
        unsigned events = lease->events;
        w->events = lease->next_event;
        if (w->events == NULL)
            w->last_event = NULL;
        lease->events = 0;
        tell_all(w, lease, events);
        unref(lease);
    }
    arm(w);
    uv_mutex_unlock(&w->lock);
}

typedef struct batch {
    hf_renew_batch shown;
    hf_watchdog *watchdog;
    int refs; /* the one that sends, and the answer; the watchdog's thread only */
    hf_lease *leases[];
} batch;

/* Its next action is at due_ns, or at its deadline if that is earlier. */
static void plan(hf_watchdog *w, hf_lease *lease, uint64_t due_ns)
{
    uint64_t deadline_ns = atomic_load(&lease->deadline_ns);
    hf_lease_heap_put(&w->heap, lease, due_ns < deadline_ns ? due_ns : deadline_ns);
}

/* ---- renewals: answers ---- */

static void lose(hf_watchdog *w, hf_lease *lease)
{
    atomic_store(&lease->deadline_ns, 0);
    hf_lease_heap_take(&w->heap, lease);
    if (!lease->lost)
        queue_event(w, lease, HF_LEASE_LOST);
    lease->lost = true;
}

/* A third of the lease, up to a tenth of it less: workers drift apart. */
static uint64_t third_ns(uint32_t ttl_ms, double jitter)
{
    double third = (double)ttl_ms * (double)HF_MS_NS / 3;
    return (uint64_t)(third - third * jitter / 10);
}

/* Sent again at once: by now Redis has the script, and its new time is known. */
static bool is_sent_again(const hf_lease *lease, hf_err err)
{
    return hf_err_is(err, HF_ERR_AT_ONCE) && lease->failures == 1;
}

static uint64_t retry_ns(const hf_lease *lease, hf_err err)
{
    if (is_sent_again(lease, err))
        return 0;
    uint64_t ms = RETRY_FIRST_MS;
    for (uint32_t i = 1; i < lease->failures && ms < RETRY_LAST_MS; i++)
        ms *= 2;
    return (ms < RETRY_LAST_MS ? ms : RETRY_LAST_MS) * HF_MS_NS;
}

typedef struct verdict {
    hf_err err;
    uint64_t sent_ns, now_ns;
    double jitter;
    uint64_t place; /* in the batch, which is kept */
} verdict;

/* Under lock. When the next renewal is, after one that was answered well. */
static uint64_t next_ns(hf_lease *lease, const verdict *v, bool again)
{
    uint64_t next_ns = v->sent_ns + third_ns(lease->ttl_ms, v->jitter) + v->place;
    if (lease->fixed)
        next_ns = UINT64_MAX;
    if (lease->hurry_ns != 0 && lease->hurry_ns < next_ns)
        next_ns = lease->hurry_ns;
    lease->hurry_ns = 0;
    if (again)
        next_ns = v->now_ns + v->place;
    lease->asked_for = lease->fixed && next_ns != UINT64_MAX;
    return next_ns;
}

/* Under lock. */
static void conclude(hf_watchdog *w, hf_lease *lease, const verdict *v, hf_err code,
                     hf_lease_note note)
{
    bool again = lease->again;
    lease->in_flight = lease->again = false;
    if (lease->dropped || lease->lost)
        return;
    if (v->err == HF_OK && code == HF_LOST) {
        atomic_store(&lease->code, code);
        atomic_store(&lease->note, note.value);
        lose(w, lease);
    } else if (v->err == HF_OK && hf_lease_is_held(code)) {
        if (!hf_lease_raise(lease, hf_lease_deadline(v->sent_ns, lease->asked_ms))) {
            lose(w, lease);
            return;
        }
        lease->failures = 0;
        atomic_store(&lease->code, code);
        atomic_store(&lease->note, note.value);
        atomic_store(&lease->note_ms, note.after_ms);
        atomic_store(&lease->note_clock_ms, note.clock_ms);
        atomic_store(&lease->note_redis_ms, note.redis_ms);
        queue_event(w, lease, HF_LEASE_RENEWED);
        if (code == HF_CANCEL && !lease->cancelled) {
            lease->cancelled = true;
            queue_event(w, lease, HF_LEASE_CANCELLED);
        }
        plan(w, lease, next_ns(lease, v, again));
    } else if (hf_lease_lost(lease)) {
        lose(w, lease);
    } else {
        lease->failures++;
        lease->asked_for = lease->fixed;
        if (w->opts.suspects && lease->failures <= 2 && !is_sent_again(lease, v->err))
            queue_event(w, lease, HF_LEASE_SUSPECT);
        plan(w, lease, again ? v->now_ns : v->now_ns + retry_ns(lease, v->err));
    }
}

static void unref_batch(batch *b)
{
    if (--b->refs == 0)
        free(b);
}

void hf_watchdog_answer(hf_renew_batch *shown, hf_err err, uint64_t sent_ns,
                        const hf_err *codes, const hf_lease_note *notes)
{
    batch *b = HF_CONTAINER(shown, batch, shown);
    hf_watchdog *w = b->watchdog;
    uv_mutex_lock(&w->lock);
    verdict v = {err, sent_ns, hf_boot_ns(), hf_rng_unit(&w->rng), 0};
    for (size_t i = 0; i < shown->n; i++) {
        v.place = i;
        conclude(w, shown->leases[i], &v, codes == NULL ? HF_OK : codes[i],
                 notes == NULL ? (hf_lease_note){.value = 0} : notes[i]);
        unref(shown->leases[i]);
    }
    uv_mutex_unlock(&w->lock);
    shown->n = 0; /* answered */
    unref_batch(b);
    if (!w->delivering)
        deliver(w);
}

/* ---- renewals that are due ---- */

/* Under lock: finds leases that are lost or due for a renewal. Leases due soon go with
 * them: leases taken one by one are renewed together. */
static size_t collect(hf_watchdog *w, uint64_t now_ns)
{
    size_t n = 0;
    while (w->heap.n > 0 && n < DUE_MAX) {
        hf_lease_slot first = w->heap.slots[0];
        hf_lease *lease = first.lease;
        if (first.due_ns <= now_ns && hf_lease_lost(lease)) {
            lose(w, lease);
            continue;
        }
        uint64_t soon_ns = n == 0 ? 0 : lease->ttl_ms * HF_MS_NS / 20;
        if (lease->in_flight || (lease->fixed && !lease->asked_for) ||
            first.due_ns > now_ns + soon_ns)
            break;
        lease->in_flight = true;
        lease->asked_for = false;
        lease->asked_ms = lease->fixed ? 1 : lease->ttl_ms;
        lease->refs += 2; /* of the answer, which may come at once; and while busy */
        lease->busy++;
        plan(w, lease, UINT64_MAX); /* at its deadline */
        w->due[n++] = lease;
    }
    return n;
}

static int by_group(const void *a, const void *b)
{
    const hf_lease *x = *(hf_lease *const *)a, *y = *(hf_lease *const *)b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static uint32_t timeout_of(const hf_watchdog *w, hf_lease *const *leases, size_t n)
{
    uint32_t ms = w->opts.request_timeout_ms;
    for (size_t i = 0; i < n; i++) {
        uint32_t tenth = leases[i]->asked_ms / 10;
        tenth = tenth < REQUEST_LEAST_MS ? REQUEST_LEAST_MS : tenth;
        ms = tenth < ms ? tenth : ms;
    }
    return ms;
}

/* Sends one batch, of leases that are busy, and makes them not busy. */
static void send_batch(hf_watchdog *w, hf_lease *const *leases, size_t n)
{
    batch *b = malloc(sizeof *b + n * sizeof(hf_lease *));
    if (b != NULL) {
        b->watchdog = w;
        b->refs = 2;
        memcpy(b->leases, leases, n * sizeof(hf_lease *));
        b->shown = (hf_renew_batch){leases[0]->group, n, b->leases,
                                    timeout_of(w, leases, n), n == w->opts.batch_max};
        w->opts.renew(&b->shown, w->opts.arg);
    }
    uv_mutex_lock(&w->lock);
    verdict v = {HF_NOMEM, 0, hf_boot_ns(), 0, 0};
    for (size_t i = 0; i < n; i++) {
        not_busy(w, leases[i]);
        if (b == NULL)
            conclude(w, leases[i], &v, HF_OK, (hf_lease_note){.value = 0});
        unref_by(leases[i], b == NULL ? 2 : 1);
    }
    uv_mutex_unlock(&w->lock);
    if (b != NULL)
        unref_batch(b);
}

static void send_all(hf_watchdog *w, size_t n)
{
    size_t max = w->opts.batch_max;
    qsort(w->due, n, sizeof(hf_lease *), by_group);
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from; to < n && to - from < max; to++)
            if (w->due[to]->group != w->due[from]->group)
                break;
        send_batch(w, w->due + from, to - from);
    }
}

static void send_due(hf_watchdog *w)
{
    size_t n;
    w->delivering = true; /* not in between, but once at the end */
    do {
        uv_mutex_lock(&w->lock);
        n = collect(w, hf_boot_ns());
        uv_mutex_unlock(&w->lock);
        send_all(w, n);
    } while (n == DUE_MAX);
    w->delivering = false;
}

/* ---- the thread ---- */

/* When the last is closed the watchdog may be gone at once. */
static void on_closed(void *arg)
{
    hf_watchdog *w = arg;
    if (--w->closing > 0)
        return;
    uv_mutex_lock(&w->lock);
    w->closed = true;
    uv_cond_broadcast(&w->idle);
    uv_mutex_unlock(&w->lock);
}

static void on_timer_closed(uv_handle_t *handle)
{
    on_closed(handle->data);
}

static void close_all(hf_watchdog *w)
{
    w->closing = 1;
    uv_close((uv_handle_t *)&w->timer, on_timer_closed);
    if (w->opts.on_stop == NULL)
        return;
    w->closing++;
    w->opts.on_stop(on_closed, w, w->opts.arg);
}

static void on_timer(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    hf_watchdog *w = poll->data;
    uv_mutex_lock(&w->lock);
    w->armed_ns = UINT64_MAX;
    uint64_t times;
    ssize_t n = read(w->timer_fd, &times, sizeof times);
    (void)
        n; /* nothing there: it was set again in between; due leases are handled anyway */
    bool stopping = w->stopping, call = w->call_ns <= hf_boot_ns();
    if (call)
        w->call_ns = UINT64_MAX;
    uv_mutex_unlock(&w->lock);
    if (stopping) {
        close_all(w);
        return;
    }
    if (call)
        w->opts.on_call(w, &w->loop->uv, w->opts.arg);
    send_due(w);
    deliver(w);
}

/* ---- life ---- */

/* The parts that do not need the loop. */
static void free_watchdog(hf_watchdog *w)
{
    close(w->timer_fd);
    uv_cond_destroy(&w->idle);
    uv_mutex_destroy(&w->lock);
    free(w->heap.slots);
    free(w);
}

static hf_watchdog *make_watchdog(const hf_watchdog_opts *opts)
{
    hf_watchdog *w = calloc(1, sizeof *w);
    if (w == NULL)
        return NULL;
    w->opts = *opts;
    w->opts.batch_max = opts->batch_max == 0 ? BATCH_MAX : opts->batch_max;
    w->armed_ns = w->call_ns = UINT64_MAX;
    w->rng.state = hf_boot_ns() ^ (uint64_t)getpid() << 32;
    w->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (w->timer_fd < 0)
        goto free_it;
    if (uv_mutex_init(&w->lock) != 0)
        goto close_timer;
    if (uv_cond_init(&w->idle) == 0)
        return w;
    uv_mutex_destroy(&w->lock);
close_timer:
    close(w->timer_fd);
free_it:
    free(w);
    return NULL;
}

/* Its handle on the loop, whose thread does not run yet. */
static void open_timer(hf_watchdog *w)
{
    HF_ASSERT(uv_poll_init(&w->loop->uv, &w->timer, w->timer_fd) == 0);
    w->timer.data = w;
    (void)uv_poll_start(&w->timer, UV_READABLE, on_timer);
}

hf_err hf_watchdog_start(hf_watchdog **out, const hf_watchdog_opts *opts)
{
    hf_watch_loop *loop = opts->loop;
    hf_err err = HF_OK;
    if (loop == NULL)
        err = hf_watch_loop_open(&loop);
    else
        hf_watch_loop_ref(loop);
    if (err != HF_OK)
        return err;
    hf_watchdog *w = make_watchdog(opts);
    if (w == NULL) {
        hf_watch_loop_unref(loop);
        return HF_SYSTEM;
    }
    w->loop = loop;
    open_timer(w);
    if (opts->loop == NULL)
        err = hf_watch_loop_start(loop);
    if (err == HF_OK)
        *out = w;
    else
        hf_watchdog_stop(w);
    return err;
}

static void await_closed(hf_watchdog *w)
{
    while (!w->loop->runs && !w->closed)
        hf_watch_loop_turn(w->loop);
    uv_mutex_lock(&w->lock);
    while (!w->closed)
        uv_cond_wait(&w->idle, &w->lock);
    uv_mutex_unlock(&w->lock);
}

void hf_watchdog_stop(hf_watchdog *w)
{
    if (w == NULL)
        return;
    uv_mutex_lock(&w->lock);
    HF_ASSERT(w->n_leases == 0);
    w->stopping = true;
    set_timer(w, 0);
    uv_mutex_unlock(&w->lock);
    await_closed(w);
    hf_watch_loop_unref(w->loop);
    free_watchdog(w);
}

/* ---- leases come and go ---- */

/* Under lock, and there is room in the heap. */
static hf_lease *add_one(hf_watchdog *w, size_t group, uint32_t ttl_ms,
                         uint64_t deadline_ns, uint64_t due_ns)
{
    hf_lease *lease = malloc(sizeof *lease);
    if (lease == NULL)
        return NULL;
    *lease = (hf_lease){
        .group = group, .number = ++w->numbers, .ttl_ms = ttl_ms, .at = HF_NOT_IN_HEAP};
    atomic_init(&lease->deadline_ns, deadline_ns);
    plan(w, lease, due_ns);
    w->n_leases++;
    return lease;
}

void hf_watchdog_add_many(hf_watchdog *w, size_t group, uint32_t ttl_ms, uint64_t sent_ns,
                          bool renew_now, void *const *users, hf_lease **leases, size_t n)
{
    uint64_t deadline_ns = hf_lease_deadline(sent_ns, ttl_ms);
    uv_mutex_lock(&w->lock);
    bool room = hf_lease_heap_reserve(&w->heap, n);
    uint64_t due_ns = renew_now ? 0 : sent_ns + third_ns(ttl_ms, hf_rng_unit(&w->rng));
    for (size_t i = 0; i < n; i++) {
        leases[i] = room ? add_one(w, group, ttl_ms, deadline_ns, due_ns + i) : NULL;
        if (leases[i] != NULL)
            leases[i]->user = users[i];
    }
    arm(w);
    uv_mutex_unlock(&w->lock);
}

hf_lease *hf_watchdog_add(hf_watchdog *w, size_t group, uint32_t ttl_ms, uint64_t sent_ns,
                          bool renew_now, void *user)
{
    hf_lease *lease;
    hf_watchdog_add_many(w, group, ttl_ms, sent_ns, renew_now, &user, &lease, 1);
    return lease;
}

/* Under lock. */
static void end_one(hf_watchdog *w, hf_lease *lease)
{
    HF_ASSERT(!lease->dropped);
    hf_lease_heap_take(&w->heap, lease);
    w->n_leases--;
    lease->dropped = true;
    if (lease->refs == 0)
        free(lease);
}

/* Under lock. */
static void drop_one(hf_watchdog *w, hf_lease *lease)
{
    while (lease->busy > 0) {
        HF_ASSERT(!hf_watch_loop_is_self(w->loop)); /* it would wait for itself */
        w->waiters++;
        uv_cond_wait(&w->idle, &w->lock);
        w->waiters--;
    }
    end_one(w, lease);
}

void hf_watchdog_drop_many(hf_watchdog *w, hf_lease *const *leases, size_t n)
{
    uv_mutex_lock(&w->lock);
    for (size_t i = 0; i < n; i++)
        if (leases[i] != NULL)
            drop_one(w, leases[i]);
    uv_mutex_unlock(&w->lock);
}

void hf_watchdog_drop(hf_watchdog *w, hf_lease *lease)
{
    hf_watchdog_drop_many(w, &lease, 1);
}

bool hf_watchdog_leave(hf_watchdog *w, hf_lease *lease)
{
    uv_mutex_lock(&w->lock);
    bool busy = lease->busy > 0;
    lease->leaving = busy;
    end_one(w, lease);
    uv_mutex_unlock(&w->lock);
    return busy;
}

bool hf_watchdog_has_leases(hf_watchdog *w)
{
    uv_mutex_lock(&w->lock);
    bool has = w->n_leases > 0;
    uv_mutex_unlock(&w->lock);
    return has;
}

void hf_watchdog_verify(hf_watchdog *w)
{
    uv_mutex_lock(&w->lock);
    atomic_store(&w->verify_ns, hf_boot_ns());
    for (size_t i = 0; i < w->heap.n; i++) {
        hf_lease_slot *slot = &w->heap.slots[i];
        if (slot->lease->in_flight)
            slot->lease->again = true; /* what is under way may be too old */
        else
            slot->due_ns = slot->lease->number;
        slot->lease->asked_for = slot->lease->fixed;
    }
    hf_lease_heap_order(&w->heap);
    arm(w);
    uv_mutex_unlock(&w->lock);
}

uint64_t hf_watchdog_verify_ns(const hf_watchdog *w)
{
    return atomic_load(&w->verify_ns);
}

void hf_watchdog_call(hf_watchdog *w, uint64_t at_ns)
{
    uv_mutex_lock(&w->lock);
    if (at_ns < w->call_ns) {
        w->call_ns = at_ns;
        arm(w);
    }
    uv_mutex_unlock(&w->lock);
}

/* ---- one lease is treated differently ---- */

void hf_watchdog_hurry(hf_watchdog *w, hf_lease *lease, uint64_t due_ns)
{
    uv_mutex_lock(&w->lock);
    if (lease->lost) {
        /* nothing is left to renew */
    } else if (lease->in_flight) {
        if (lease->hurry_ns == 0 || due_ns < lease->hurry_ns)
            lease->hurry_ns = due_ns;
    } else if (lease->at != HF_NOT_IN_HEAP && due_ns < w->heap.slots[lease->at].due_ns) {
        lease->asked_for = lease->fixed;
        plan(w, lease, due_ns);
        arm(w);
    }
    uv_mutex_unlock(&w->lock);
}

void hf_watchdog_fix(hf_watchdog *w, hf_lease *lease)
{
    uv_mutex_lock(&w->lock);
    lease->fixed = true;
    if (lease->at != HF_NOT_IN_HEAP)
        plan(w, lease, UINT64_MAX);
    uv_mutex_unlock(&w->lock);
}

void hf_watchdog_end(hf_watchdog *w, hf_lease *lease)
{
    uv_mutex_lock(&w->lock);
    lose(w, lease);
    set_timer(w, 0); /* the event is told on the thread */
    uv_mutex_unlock(&w->lock);
}

void hf_watchdog_limit(hf_watchdog *w, hf_lease *lease, uint64_t at_ns)
{
    uv_mutex_lock(&w->lock);
    uint64_t deadline_ns = atomic_load(&lease->deadline_ns);
    lease->latest_ns = at_ns;
    while (deadline_ns > at_ns) /* which a lost one, of 0, is not */
        if (atomic_compare_exchange_weak(&lease->deadline_ns, &deadline_ns, at_ns))
            break;
    if (lease->at != HF_NOT_IN_HEAP) {
        plan(w, lease, w->heap.slots[lease->at].due_ns);
        arm(w);
    }
    uv_mutex_unlock(&w->lock);
}

bool hf_watchdog_extend(hf_watchdog *w, hf_lease *lease, uint32_t ttl_ms,
                        uint64_t sent_ns)
{
    uv_mutex_lock(&w->lock);
    bool held = hf_lease_raise(lease, hf_lease_deadline(sent_ns, ttl_ms));
    lease->ttl_ms = ttl_ms;
    if (held && !lease->lost && !lease->in_flight) {
        plan(w, lease, lease->fixed ? UINT64_MAX : sent_ns + third_ns(ttl_ms, 0));
        arm(w);
    }
    uv_mutex_unlock(&w->lock);
    return held;
}
