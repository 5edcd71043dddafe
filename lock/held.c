/* held.c - what the watchdog does with the leases of locks, and what it tells of them.
 *
 * Both run on the watchdog's thread, so that a loop that is busy, or that nobody runs,
 * delays neither a renewal nor the news of a loss. */
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "lock/callback.h"
#include "lock/locks.h"

enum { BATCH_LEASES = HF_LOCK_ENTRIES_MAX / HF_LOCK_NAMES_MAX, ASKED_MS = 10 };

/* ---- renewing ---- */

typedef struct renewal {
    hf_lock_client *locks;
    hf_batch *batch;
    uint16_t entries[BATCH_LEASES]; /* how many each lease has */
    bool held[BATCH_LEASES];        /* it was held when this was sent */
} renewal;

static bool is_held(hf_err code)
{
    return code == HF_OK || code == HF_CANCEL || code == HF_IN_LINE;
}

/* 0: none. */
static uint64_t lower(uint64_t a, uint64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* What the entries of one lease say together. */
static hf_err sum_up(hf_lock_renewed *renewed, size_t first, size_t n,
                     hf_lease_note *note)
{
    hf_err code = HF_OK;
    *note = (hf_lease_note){.value = 0};
    for (size_t i = first; i < first + n; i++) {
        hf_lease_note what;
        hf_err one = hf_lock_renewed_next(renewed, i, &what);
        if (!is_held(one)) {
            *note = what;
            return one;
        }
        if (one == HF_IN_LINE || (one == HF_CANCEL && code == HF_OK))
            code = one;
        note->value = what.value > note->value ? what.value : note->value;
        note->clock_ms = lower(note->clock_ms, what.clock_ms);
        note->after_ms = (uint32_t)lower(note->after_ms, what.after_ms);
    }
    return code;
}

static void on_renewed(const hf_answer *answer, void *arg)
{
    renewal *r = arg;
    hf_batch *batch = r->batch;
    hf_err codes[BATCH_LEASES];
    hf_lease_note notes[BATCH_LEASES] = {{.value = 0}};
    hf_lock_renewed renewed;
    hf_err err = hf_lock_renewed_read(answer, &renewed);
    size_t at = 0;
    if (renewed.now_ms > 0)
        hf_lock_client_clock(r->locks, renewed.now_ms);
    for (size_t i = 0; err == HF_OK && i < batch->n; i++) {
        codes[i] = sum_up(&renewed, at, r->entries[i], &notes[i]);
        at += r->entries[i];
        if (codes[i] == HF_IN_LINE && r->held[i]) { /* it was never granted */
            codes[i] = HF_LOST;
            notes[i].value = 0;
        }
    }
    if (err == HF_OK && renewed.n != at)
        err = HF_PROTO;
    free(r);
    hf_batch_answer(batch, err, answer->sent_ns, err == HF_OK ? codes : NULL, notes);
}

/* Gives how many entries it has. */
static size_t put_items(const hf_lock *lock, uint32_t lease_ms, bool waits,
                        hf_lock_renewal *items)
{
    uint64_t witness = waits ? lock->number : atomic_load(&lock->fence);
    const char *readings = NULL;
    if (lock->seen != NULL) {
        hf_seen_of(lock->seen, witness, atomic_load(&lock->locks->epoch));
        if (lock->seen->n > 0)
            readings = hf_seen_text(lock->seen, hf_boot_ns());
    }
    bool may_leave_out = lock->alone && !waits && !lock->cell && readings == NULL;
    for (size_t i = 0; i < lock->n_names; i++)
        items[i] = (hf_lock_renewal){.prefix = {lock->prefix, lock->prefix_len},
                                     .owner = lock->owner,
                                     .hold = may_leave_out ? NULL : lock->hold,
                                     .name = lock->names[i],
                                     .lease_ms = lease_ms,
                                     .cell = lock->cell,
                                     .waits = waits,
                                     .witness = witness,
                                     .readings = readings};
    return lock->n_names;
}

static void renew(hf_client *client, hf_batch *batch, void *arg)
{
    hf_lock_client *locks = arg;
    hf_lock_renewal items[HF_LOCK_ENTRIES_MAX];
    size_t n = 0;
    hf_err err = HF_NOMEM;
    renewal *r = malloc(sizeof *r);
    if (r != NULL) {
        r->locks = locks;
        r->batch = batch;
        for (size_t i = 0; i < batch->n; i++) {
            const hf_lock *lock = hf_lease_user(batch->leases[i]);
            bool waits = atomic_load(&lock->waits);
            size_t had = n;
            n += put_items(lock, hf_lease_asked_ms(batch->leases[i]), waits, items + n);
            r->entries[i] = (uint16_t)(n - had);
            r->held[i] = !waits;
        }
        err = hf_op_lock_renew(client, items, n, hf_lock_client_not_after(locks),
                               batch->timeout_ms, on_renewed, r);
    }
    if (err != HF_OK) {
        free(r);
        hf_batch_answer(batch, err, hf_boot_ns(), NULL, NULL);
    }
}

/* ---- telling ---- */

static void tell_user(hf_lock *lock, hf_lock_event event)
{
    hf_callback callback;
    if (lock->on_event == NULL)
        return;
    hf_callback_begin(&callback, &lock->locks->driver);
    lock->on_event(lock, event, lock->event_arg);
    hf_callback_end(&callback);
}

void hf_held_signal(hf_lock *lock)
{
    int fd = atomic_load(&lock->fd);
    uint64_t one = 1;
    if (fd >= 0) {
        ssize_t n = write(fd, &one, sizeof one);
        (void)n; /* it is readable already */
    }
}

hf_lock_reason hf_held_reason(const hf_lock *lock, const hf_lease *lease)
{
    hf_lease_note note = {.value = 0};
    hf_err code = lease == NULL ? HF_OK : hf_lease_answer(lease, &note);
    uint64_t max_ns = atomic_load(&lock->max_ns);
    if (max_ns != 0 && hf_boot_ns() >= max_ns)
        return HF_LOCK_MAX_HOLD;
    if (code != HF_LOST)
        return HF_LOCK_DEADLINE;
    return note.value != 0 ? HF_LOCK_FORCED : HF_LOCK_REFUSED;
}

static void on_lost(hf_lock *lock, const hf_lease *lease)
{
    if (atomic_exchange(&lock->waits, false)) {
        atomic_store(&lock->lost, true);
        hf_driver_kick(&lock->locks->driver);
        return;
    }
    atomic_store(&lock->reason, hf_held_reason(lock, lease));
    atomic_store(&lock->state, HF_LOCK_GONE);
    hf_guard_ask(&lock->locks->guard, &lock->minded);
    hf_held_signal(lock);
    tell_user(lock, HF_LOCK_EVENT_LOST);
}

/* Its line's clock was read. Without memory the next reading may be kept. */
static void note_reading(hf_lock *lock, hf_lease *lease, uint64_t witness,
                         hf_lease_note note)
{
    uint64_t now_ns = hf_boot_ns();
    if (note.clock_ms > 0 && hf_acquire_seen(lock, witness))
        hf_seen_add(lock->seen, note.clock_ms, now_ns);
    if (note.after_ms > 0)
        hf_watchdog_hurry(lock->locks->watchdog, lease,
                          now_ns + note.after_ms * HF_MS_NS);
}

/* In line: was it granted meanwhile, or when does it ask again? */
static void on_waiting(hf_lock *lock, hf_lease *lease, hf_err code, hf_lease_note note)
{
    hf_lock_client *locks = lock->locks;
    if (code == HF_IN_LINE) {
        note_reading(lock, lease, lock->number, note);
        return;
    }
    atomic_store(&lock->fence, note.value);
    if (code == HF_CANCEL) /* which is told when the loop has seen the grant */
        hf_watchdog_hurry(locks->watchdog, lease, hf_boot_ns() + ASKED_MS * HF_MS_NS);
    atomic_store(&lock->granted, true);
    hf_driver_kick(&locks->driver);
}

static void on_renewal(hf_lock *lock, hf_lease *lease)
{
    hf_lease_note note;
    hf_err code = hf_lease_answer(lease, &note);
    int suspect = HF_LOCK_SUSPECT;
    if (atomic_load(&lock->waits)) {
        on_waiting(lock, lease, code, note);
        return;
    }
    note_reading(lock, lease, atomic_load(&lock->fence), note);
    hf_guard_extend(&lock->locks->guard, &lock->minded, hf_lease_deadline_ns(lease));
    bool again = atomic_compare_exchange_strong(&lock->state, &suspect, HF_LOCK_HELD);
    if (atomic_exchange(&lock->asked_early, false))
        tell_user(lock, HF_LOCK_EVENT_REVOKED);
    else if (again)
        tell_user(lock, HF_LOCK_EVENT_HELD);
}

/* Before its grant was heard it is nobody's to give back: then it is told later. */
static void on_asked(hf_lock *lock)
{
    bool early = atomic_load(&lock->waits);
    atomic_store(&lock->asked_early, early);
    if (!early ||
        (!atomic_load(&lock->waits) && atomic_exchange(&lock->asked_early, false)))
        tell_user(lock, HF_LOCK_EVENT_REVOKED);
}

/* The release may be told, and the handle freed, from now on. */
static void on_left(hf_lock *lock)
{
    hf_lock_client *locks = lock->locks;
    atomic_store(&lock->event_runs, false);
    hf_driver_kick(&locks->driver);
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
        on_left(lock);
    } else if (atomic_compare_exchange_strong(&lock->state, &held, HF_LOCK_SUSPECT)) {
        tell_user(lock, HF_LOCK_EVENT_SUSPECT);
    }
}

/* ---- life ---- */

hf_err hf_held_start(hf_lock_client *locks, const hf_client_opts *client,
                     char detail[HF_DETAIL_SIZE])
{
    return hf_watchdog_start(&locks->watchdog,
                             &(hf_watchdog_opts){.client = *client,
                                                 .batch_max = BATCH_LEASES,
                                                 .suspects = true,
                                                 .renew = renew,
                                                 .on_client = hf_hear_client,
                                                 .on_call = hf_hear_called,
                                                 .on_stop = hf_hear_stop,
                                                 .on_event = on_event,
                                                 .arg = locks},
                             detail);
}

void hf_held_leave(hf_lock *lock)
{
    hf_hear_end(lock);
    atomic_store(&lock->event_runs, true);
    hf_lease *lease = atomic_exchange(&lock->lease, NULL);
    if (lease == NULL || !hf_watchdog_leave(lock->locks->watchdog, lease))
        atomic_store(&lock->event_runs, false);
}

void hf_held_drop(hf_lock *lock)
{
    hf_hear_end(lock);
    hf_lease *lease = atomic_exchange(&lock->lease, NULL);
    if (lease != NULL)
        hf_watchdog_drop(lock->locks->watchdog, lease);
}
