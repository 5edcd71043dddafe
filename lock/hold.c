/* hold.c - lock/hold.h.
 *
 * Renewals and events run on the watchdog's thread, because the client's loop may be
 * busy, or not run at all. */
#include "lock/hold.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "lock/callback.h"
#include "lock/client.h"
#include "lock/guard.h"
#include "lock/lock.h"
#include "lock/nodes.h"
#include "lock/notices.h"
#include "lock/ops.h"
#include "lock/watchdog/lease.h"
#include "lock/watchdog/watch_loop.h"
#include "lock/watchdog/watchdog.h"

enum { BATCH_LEASES = HF_LOCK_ENTRIES_MAX / HF_LOCK_NAMES_MAX, ASKED_MS = 10 };

/* ---- renewals ---- */

typedef struct renewal {
    hf_lock_node *node;
    hf_renew_batch *batch;
    unsigned slot;
    uint32_t wanted;                /* replicas that must confirm it; 0: none */
    uint16_t entries[BATCH_LEASES]; /* how many each lease has */
    bool held[BATCH_LEASES];        /* it was held when this was sent */
    uint64_t sent_ns;
    hf_err codes[BATCH_LEASES];
    hf_lease_note notes[BATCH_LEASES];
    hf_confirm confirm;
} renewal;

/* 0: none. */
static uint64_t lower(uint64_t a, uint64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* The joint result of the entries of one lease. */
static hf_err sum_up(hf_lock_renewed *renewed, size_t first, size_t n,
                     hf_lease_note *note)
{
    hf_err code = HF_OK;
    *note = (hf_lease_note){.value = 0};
    for (size_t i = first; i < first + n; i++) {
        hf_lease_note what;
        hf_err one = hf_op_renewed_next(renewed, i, &what);
        if (!hf_lease_is_held(one)) {
            *note = what;
            return one;
        }
        if (one == HF_IN_LINE || (one == HF_CANCEL && code == HF_OK))
            code = one;
        note->value = what.value > note->value ? what.value : note->value;
        note->clock_ms = lower(note->clock_ms, what.clock_ms);
        note->after_ms = (uint32_t)lower(note->after_ms, what.after_ms);
        note->redis_ms = what.redis_ms;
    }
    return code;
}

static void end_renewal(renewal *r, hf_err err)
{
    hf_watchdog_answer(r->batch, err, r->sent_ns, err == HF_OK ? r->codes : NULL,
                       r->notes);
    free(r);
}

/* If the slot has moved, the replicas of another node must confirm the renewal. */
static bool is_still_there(const renewal *r)
{
    hf_server *redis = hf_cluster_server(r->node->base.nodes->cluster, r->slot);
    bool same = redis == r->node->base.redis;
    hf_server_close(redis);
    return same;
}

/* A renewal that replicas do not have does not count. */
static void on_confirmed(void *arg, hf_err err, const char *detail)
{
    renewal *r = arg;
    (void)detail;
    if (err == HF_OK && !is_still_there(r))
        err = HF_UNSURE;
    for (size_t i = 0; err != HF_OK && i < r->batch->n; i++)
        if (r->codes[i] == HF_OK || r->codes[i] == HF_CANCEL)
            r->codes[i] = HF_UNCONFIRMED;
    end_renewal(r, HF_OK);
}

static void confirm(renewal *r)
{
    r->confirm = (hf_confirm){.wanted = r->wanted,
                              .until_ns = hf_boot_ns() + r->batch->timeout_ms * HF_MS_NS,
                              .cb = on_confirmed,
                              .arg = r};
    hf_node_second_confirm(&r->node->base, &r->confirm);
}

static void on_renewed(const hf_answer *answer, void *arg)
{
    renewal *r = arg;
    const hf_renew_batch *batch = r->batch;
    hf_lock_renewed renewed;
    hf_err err = hf_op_renewed_read(answer, &renewed);
    size_t at = 0;
    (void)hf_node_answered(&r->node->base, NULL, answer);
    if (renewed.now_ms > 0)
        hf_lock_node_clock(r->node, renewed.now_ms, answer->sent_ns);
    for (size_t i = 0; err == HF_OK && i < batch->n; i++) {
        r->codes[i] = sum_up(&renewed, at, r->entries[i], &r->notes[i]);
        at += r->entries[i];
        if (r->codes[i] == HF_IN_LINE && r->held[i]) { /* it was never granted */
            r->codes[i] = HF_LOST;
            r->notes[i].value = 0;
        }
    }
    if (err == HF_OK && renewed.n != at)
        err = HF_PROTO;
    r->sent_ns = answer->sent_ns;
    if (err == HF_OK && r->wanted > 0)
        confirm(r);
    else
        end_renewal(r, err);
}

/* Gives how many entries it has. */
static size_t put_items(const hf_lock *lock, const hf_lock_node *node, uint32_t lease_ms,
                        bool waits, hf_lock_renewal *items)
{
    const char *shown = hf_reading_shown(&lock->reading, atomic_load(&node->epoch));
    bool may_leave_out = lock->alone && !waits && !lock->simple && shown[0] == '\0';
    for (size_t i = 0; i < lock->n_names; i++)
        items[i] = (hf_lock_renewal){.prefix = {lock->prefix, lock->prefix_len},
                                     .owner = lock->owner,
                                     .hold = may_leave_out ? NULL : lock->hold,
                                     .name = lock->names[i],
                                     .lease_ms = lease_ms,
                                     .simple = lock->simple,
                                     .waits = waits,
                                     .shown = shown};
    return lock->n_names;
}

/* One request: of the same slot in a cluster, and of those that want the same replicas.
 */
size_t hf_hold_group(const hf_lock *lock)
{
    enum { WANTED_MAX = 0xffff };
    size_t wanted = lock->wait_replicas < WANTED_MAX ? lock->wait_replicas : WANTED_MAX;
    return wanted * HF_SLOTS + lock->slot;
}

static void renew(hf_renew_batch *batch, void *arg)
{
    const hf_lock *first = hf_lease_user(batch->leases[0]);
    hf_lock_node *node = atomic_load(&first->node);
    hf_client *client = node->base.second.client;
    hf_lock_renewal items[HF_LOCK_ENTRIES_MAX];
    size_t n = 0;
    renewal *r = malloc(sizeof *r);
    hf_err err = r == NULL ? HF_NOMEM : HF_CONN;
    if (r != NULL && client != NULL &&
        (first->wait_replicas == 0 || hf_node_second_replicas(&node->base) == HF_OK)) {
        *r = (renewal){.node = node,
                       .batch = batch,
                       .slot = first->slot,
                       .wanted = first->wait_replicas};
        for (size_t i = 0; i < batch->n; i++) {
            const hf_lock *lock = hf_lease_user(batch->leases[i]);
            bool waits = atomic_load(&lock->acquire.waits);
            size_t had = n;
            n += put_items(lock, node, hf_lease_asked_ms(batch->leases[i]), waits,
                           items + n);
            r->wanted = lock->wait_replicas > r->wanted ? lock->wait_replicas : r->wanted;
            r->entries[i] = (uint16_t)(n - had);
            r->held[i] = !waits;
        }
        const hf_lock_client *locks = arg;
        hf_asker asker = hf_asker_now(locks->machine);
        err = hf_op_lock_renew(client, items, n, &asker, hf_lock_node_not_after(node),
                               batch->timeout_ms, on_renewed, r);
    }
    if (err == HF_OK && batch->full)
        hf_client_flush(client);
    if (err != HF_OK) {
        free(r);
        hf_watchdog_answer(batch, err, hf_boot_ns(), NULL, NULL);
    }
}

/* ---- events ---- */

static void tell_user(hf_lock *lock, hf_lock_event event)
{
    hf_callback callback;
    if (lock->on_event == NULL)
        return;
    hf_callback_begin(&callback, lock->locks);
    lock->on_event(lock, event, lock->event_arg);
    hf_callback_end(&callback);
}

void hf_hold_signal(hf_lock *lock)
{
    int fd = atomic_load(&lock->fd);
    uint64_t one = 1;
    if (fd >= 0) {
        ssize_t n = write(fd, &one, sizeof one);
        (void)n; /* it is readable already */
    }
}

hf_lock_reason hf_hold_reason(const hf_lock *lock, const hf_lease *lease)
{
    hf_lease_note note = {.value = 0};
    hf_err code = lease == NULL ? HF_OK : hf_lease_answer(lease, &note);
    uint64_t max_ns = atomic_load(&lock->held.max_ns);
    if (max_ns != 0 && hf_boot_ns() >= max_ns)
        return HF_LOCK_MAX_HOLD;
    if (code != HF_LOST)
        return HF_LOCK_DEADLINE;
    return note.value != 0 ? HF_LOCK_FORCED : HF_LOCK_REFUSED;
}

static void on_lost(hf_lock *lock, const hf_lease *lease)
{
    if (atomic_exchange(&lock->acquire.waits, false)) {
        atomic_store(&lock->acquire.lost, true);
        hf_run_loop_wake(&lock->locks->tasks.run);
        return;
    }
    atomic_store(&lock->reason, hf_hold_reason(lock, lease));
    atomic_store(&lock->state, HF_LOCK_GONE);
    hf_guard_ask(&lock->locks->guard, &lock->held.minded);
    hf_hold_signal(lock);
    tell_user(lock, HF_LOCK_EVENT_LOST);
}

static void note_reading(hf_lock *lock, hf_lease *lease, uint64_t number,
                         hf_lease_note note)
{
    if (note.clock_ms > 0)
        hf_lock_note_reading(lock, number, note.clock_ms, note.redis_ms);
    else
        hf_reading_forget(&lock->reading); /* it holds alone */
    if (note.after_ms > 0)
        hf_watchdog_hurry(lock->locks->watchdog, lease,
                          hf_boot_ns() + note.after_ms * HF_MS_NS);
}

/* In line: was it granted meanwhile, or when does it ask again? */
static void on_waiting(hf_lock *lock, hf_lease *lease, hf_err code, hf_lease_note note)
{
    hf_lock_client *locks = lock->locks;
    if (code == HF_IN_LINE) {
        note_reading(lock, lease, lock->acquire.number, note);
        if (atomic_load(&lock->acquire.unheard))
            hf_watchdog_hurry(locks->watchdog, lease,
                              hf_boot_ns() + HF_UNHEARD_MS * HF_MS_NS);
        return;
    }
    atomic_store(&lock->fence, note.value);
    if (code == HF_CANCEL) /* which is told when the loop has seen the grant */
        hf_watchdog_hurry(locks->watchdog, lease, hf_boot_ns() + ASKED_MS * HF_MS_NS);
    atomic_store(&lock->acquire.granted, true);
    hf_run_loop_wake(&locks->tasks.run);
}

static void on_renewal(hf_lock *lock, hf_lease *lease)
{
    hf_lease_note note;
    hf_err code = hf_lease_answer(lease, &note);
    int suspect = HF_LOCK_SUSPECT;
    if (atomic_load(&lock->acquire.waits)) {
        on_waiting(lock, lease, code, note);
        return;
    }
    note_reading(lock, lease, atomic_load(&lock->fence), note);
    hf_guard_extend(&lock->locks->guard, &lock->held.minded, hf_lease_deadline_ns(lease));
    bool again = atomic_compare_exchange_strong(&lock->state, &suspect, HF_LOCK_HELD);
    if (atomic_exchange(&lock->acquire.asked_early, false))
        tell_user(lock, HF_LOCK_EVENT_REVOKED);
    else if (again)
        tell_user(lock, HF_LOCK_EVENT_HELD);
}

/* Before its grant was heard no caller can give it back: then it is told later. */
static void on_asked(hf_lock *lock)
{
    bool early = atomic_load(&lock->acquire.waits);
    atomic_store(&lock->acquire.asked_early, early);
    if (!early || (!atomic_load(&lock->acquire.waits) &&
                   atomic_exchange(&lock->acquire.asked_early, false)))
        tell_user(lock, HF_LOCK_EVENT_REVOKED);
}

/* The release may be told, and the handle freed, from now on. */
static void on_callback_ended(hf_lock *lock)
{
    hf_lock_client *locks = lock->locks;
    atomic_store(&lock->release.event_runs, false);
    hf_run_loop_wake(&locks->tasks.run);
}

static void on_event(void *user, hf_lease *lease, hf_lease_event event, void *arg)
{
    hf_lock *lock = user;
    int held = HF_LOCK_HELD;
    (void)arg;
    if (event == HF_LEASE_RENEWED) {
        on_renewal(lock, lease);
    } else if (event == HF_LEASE_LOST) {
        on_lost(lock, lease);
    } else if (event == HF_LEASE_CANCELLED) {
        on_asked(lock);
    } else if (event == HF_LEASE_LEFT) {
        on_callback_ended(lock);
    } else if (atomic_compare_exchange_strong(&lock->state, &held, HF_LOCK_SUSPECT)) {
        tell_user(lock, HF_LOCK_EVENT_SUSPECT);
    }
}

/* ---- the lease begins and ends ---- */

hf_err hf_hold_start(hf_lock_client *locks, const hf_watchdog_opts *opts)
{
    hf_watchdog_opts all = *opts;
    all.request_timeout_ms = locks->request_timeout_ms;
    all.batch_max = BATCH_LEASES;
    all.suspects = true;
    all.renew = renew;
    all.on_event = on_event;
    all.arg = locks;
    return hf_watchdog_start(&locks->watchdog, &all);
}

void hf_hold_leave(hf_lock *lock)
{
    hf_notices_end(lock);
    atomic_store(&lock->release.event_runs, true);
    hf_lease *lease = atomic_exchange(&lock->held.lease, NULL);
    if (lease == NULL || !hf_watchdog_leave(lock->locks->watchdog, lease))
        atomic_store(&lock->release.event_runs, false);
}

void hf_hold_drop(hf_lock *lock)
{
    hf_notices_end(lock);
    hf_lease *lease = atomic_exchange(&lock->held.lease, NULL);
    if (lease != NULL)
        hf_watchdog_drop(lock->locks->watchdog, lease);
}

void hf_hold_renew_now(hf_lock *lock)
{
    int held = HF_LOCK_HELD;
    (void)atomic_compare_exchange_strong(&lock->state, &held, HF_LOCK_SUSPECT);
    hf_watchdog_hurry(lock->locks->watchdog, atomic_load(&lock->held.lease),
                      hf_boot_ns());
}
