/* renewal.c - leases that are due become batches, and what the answers make of them. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "lock/lease.h"
#include "redis/call.h"

enum {
    REQUEST_MS = 1000,
    REQUEST_LEAST_MS = 200,
    RETRY_FIRST_MS = 100,
    RETRY_LAST_MS = 1000
};

typedef struct batch {
    hf_batch shown;
    hf_watchdog *watchdog;
    int refs; /* the one that sends, and the answer; the watchdog's thread only */
    hf_lease *leases[];
} batch;

void hf_renewal_plan(hf_watchdog *w, hf_lease *lease, uint64_t due_ns)
{
    uint64_t deadline_ns = atomic_load(&lease->deadline_ns);
    hf_lease_heap_put(&w->heap, lease, due_ns < deadline_ns ? due_ns : deadline_ns);
}

/* ---- answers ---- */

void hf_renewal_lose(hf_watchdog *w, hf_lease *lease)
{
    atomic_store(&lease->deadline_ns, 0);
    hf_lease_heap_take(&w->heap, lease);
    if (!lease->lost)
        hf_watchdog_note(w, lease, HF_LEASE_LOST);
    lease->lost = true;
}

/* A third of the lease, up to a tenth of it less, so that workers drift apart. */
uint64_t hf_renewal_third_ns(uint32_t ttl_ms, double jitter)
{
    double third = (double)ttl_ms * (double)HF_MS_NS / 3;
    return (uint64_t)(third - third * jitter / 10);
}

/* Goes again at once: by now Redis has the script, and its time is known anew. */
static bool is_sent_again(const hf_lease *lease, hf_err err)
{
    return (err == HF_NOSCRIPT || err == HF_DEADLINE) && lease->failures == 1;
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
    uint64_t next_ns =
        v->sent_ns + hf_renewal_third_ns(lease->ttl_ms, v->jitter) + v->place;
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

static bool is_held(hf_err code)
{
    return code == HF_OK || code == HF_CANCEL || code == HF_IN_LINE;
}

/* Under lock. */
static void settle(hf_watchdog *w, hf_lease *lease, const verdict *v, hf_err code,
                   hf_lease_note note)
{
    bool again = lease->again;
    lease->in_flight = lease->again = false;
    if (lease->dropped || lease->lost)
        return;
    if (v->err == HF_OK && code == HF_LOST) {
        atomic_store(&lease->code, code);
        atomic_store(&lease->note, note.value);
        hf_renewal_lose(w, lease);
    } else if (v->err == HF_OK && is_held(code)) {
        if (!hf_lease_raise(lease, hf_lease_deadline(v->sent_ns, lease->asked_ms))) {
            hf_renewal_lose(w, lease);
            return;
        }
        lease->failures = 0;
        atomic_store(&lease->code, code);
        atomic_store(&lease->note, note.value);
        atomic_store(&lease->note_ms, note.after_ms);
        atomic_store(&lease->note_clock_ms, note.clock_ms);
        hf_watchdog_note(w, lease, HF_LEASE_RENEWED);
        if (code == HF_CANCEL && !lease->cancelled) {
            lease->cancelled = true;
            hf_watchdog_note(w, lease, HF_LEASE_CANCELLED);
        }
        hf_renewal_plan(w, lease, next_ns(lease, v, again));
    } else if (hf_lease_lost(lease)) {
        hf_renewal_lose(w, lease);
    } else {
        lease->failures++;
        lease->asked_for = lease->fixed;
        if (w->opts.suspects && lease->failures <= 2 && !is_sent_again(lease, v->err))
            hf_watchdog_note(w, lease, HF_LEASE_SUSPECT);
        hf_renewal_plan(w, lease,
                        again ? v->now_ns : v->now_ns + retry_ns(lease, v->err));
    }
}

static void unref_batch(batch *b)
{
    if (--b->refs == 0)
        free(b);
}

void hf_batch_answer(hf_batch *shown, hf_err err, uint64_t sent_ns, const hf_err *codes,
                     const hf_lease_note *notes)
{
    batch *b = HF_CONTAINER(shown, batch, shown);
    hf_watchdog *w = b->watchdog;
    uv_mutex_lock(&w->lock);
    verdict v = {err, sent_ns, hf_boot_ns(), hf_rng_unit(&w->rng), 0};
    for (size_t i = 0; i < shown->n; i++) {
        v.place = i;
        settle(w, shown->leases[i], &v, codes == NULL ? HF_OK : codes[i],
               notes == NULL ? (hf_lease_note){.value = 0} : notes[i]);
        hf_watchdog_unref(shown->leases[i]);
    }
    uv_mutex_unlock(&w->lock);
    shown->n = 0; /* answered */
    unref_batch(b);
    if (!w->delivering)
        hf_watchdog_deliver(w);
}

/* ---- renewals ---- */

/* Under lock: finds what is lost, and what is due for a renewal. What will be due soon
 * goes with it, so that leases taken one by one are renewed together. */
static size_t collect(hf_watchdog *w, uint64_t now_ns)
{
    size_t n = 0;
    while (w->heap.n > 0 && n < HF_DUE_MAX) {
        hf_lease_slot first = w->heap.slots[0];
        hf_lease *lease = first.lease;
        if (first.due_ns <= now_ns && hf_lease_lost(lease)) {
            hf_renewal_lose(w, lease);
            continue;
        }
        uint64_t soon_ns = n == 0 ? 0 : lease->ttl_ms * HF_MS_NS / 20;
        if (lease->in_flight || (lease->fixed && !lease->asked_for) ||
            first.due_ns > now_ns + soon_ns)
            break;
        lease->in_flight = true;
        lease->asked_for = false;
        lease->asked_ms = lease->fixed ? 1 : lease->ttl_ms;
        lease->refs++;
        lease->busy++;
        hf_renewal_plan(w, lease, UINT64_MAX); /* at its deadline */
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
    uint32_t ms = w->opts.client.server.request_timeout_ms;
    ms = ms == 0 ? REQUEST_MS : ms;
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
        b->shown = (hf_batch){leases[0]->group, n, b->leases, timeout_of(w, leases, n)};
        w->opts.renew(w->client, &b->shown, w->opts.arg);
        if (n == w->opts.batch_max)
            hf_redis_flush(w->client); /* there is more: not at the end of the turn */
    }
    uv_mutex_lock(&w->lock);
    verdict v = {HF_NOMEM, 0, hf_boot_ns(), 0, 0};
    for (size_t i = 0; i < n; i++) {
        hf_watchdog_not_busy(w, leases[i]);
        if (b == NULL) {
            settle(w, leases[i], &v, HF_OK, (hf_lease_note){.value = 0});
            hf_watchdog_unref(leases[i]);
        }
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

void hf_renewal_send_due(hf_watchdog *w)
{
    size_t n;
    w->delivering = true; /* not in between, but once at the end */
    do {
        uv_mutex_lock(&w->lock);
        n = collect(w, hf_boot_ns());
        uv_mutex_unlock(&w->lock);
        send_all(w, n);
    } while (n == HF_DUE_MAX);
    w->delivering = false;
}
