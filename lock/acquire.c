/* acquire.c - from the request to HELD, or to its end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/base.h"
#include "base/clock.h"
#include "lock/callback.h"
#include "lock/locks.h"

enum {
    SPIN_FIRST_MS = 1,
    SPIN_LAST_MS = 128,
    FAULT_FIRST_MS = 10,
    FAULT_LAST_MS = 1000,
    PROOF_ASK_MS = 500,
    PROOF_SPARE_MS = 1000
};

/* ---- its end ---- */

static void tell(hf_lock *lock, hf_err err, const char *detail)
{
    if (lock->told)
        return;
    lock->told = true;
    hf_lock_client_background(lock, false);
    hf_callback callback;
    hf_callback_begin(&callback, &lock->locks->driver);
    lock->on_acquired(lock, err, detail, lock->acquired_arg);
    hf_callback_end(&callback);
}

void hf_acquire_fail(hf_lock *lock, hf_err err, const char *detail)
{
    hf_held_drop(lock);
    atomic_store(&lock->waits, false);
    atomic_store(&lock->state, HF_LOCK_GONE);
    tell(lock, err, detail);
    if (lock->may_be_there || lock->in_flight > 0)
        hf_release_begin(lock);
    else
        hf_lock_client_over(lock);
}

/* ---- again ---- */

/* Until when faults are tried again. */
static uint64_t limit_ns(const hf_lock *lock)
{
    return lock->reached_ns;
}

/* Redis was reached: an outage is waited out from now on. */
static void was_reached(hf_lock *lock)
{
    if (lock->until_ns > lock->reached_ns)
        lock->reached_ns = lock->until_ns;
}

static void pause_until(hf_lock *lock, const hf_backoff *backoff, uint64_t limit)
{
    int64_t ms = hf_backoff_ms(backoff, ++lock->tries, &lock->locks->rng);
    uint64_t due_ns = hf_boot_ns() + (uint64_t)ms * HF_MS_NS;
    lock->step = STEP_PAUSE;
    lock->due_ns = due_ns < limit ? due_ns : limit;
}

bool hf_acquire_seen(hf_lock *lock, uint64_t witness)
{
    if (lock->seen == NULL)
        lock->seen = calloc(1, sizeof *lock->seen);
    if (lock->seen == NULL)
        return false;
    hf_seen_of(lock->seen, witness, atomic_load(&lock->locks->epoch));
    return true;
}

static void spin(hf_lock *lock)
{
    static const hf_backoff backoff = {HF_SHAPE_EXPONENTIAL, SPIN_FIRST_MS, SPIN_LAST_MS,
                                       0.5};
    if (hf_boot_ns() >= lock->until_ns)
        hf_acquire_fail(lock, HF_TAKEN, "");
    else
        pause_until(lock, &backoff, lock->until_ns);
}

/* The lease before it seems to be over, by Redis's clock. Only our own clock can prove
 * it, in as long as that lease lasts: so that a lock whose holder died is had at last,
 * even if each only tries once. */
static bool proves(hf_lock *lock, uint32_t after_ms)
{
    uint64_t now_ns = hf_boot_ns(), after_ns = after_ms * HF_MS_NS;
    if (lock->prove_until_ns == 0)
        lock->prove_until_ns =
            now_ns + after_ns + after_ns / 4 + PROOF_SPARE_MS * HF_MS_NS;
    if (now_ns >= lock->prove_until_ns)
        return false;
    lock->step = STEP_PAUSE;
    lock->due_ns =
        now_ns + (after_ms < PROOF_ASK_MS ? after_ms : PROOF_ASK_MS) * HF_MS_NS;
    return true;
}

static void was_taken(hf_lock *lock, const hf_entered *e)
{
    if (e->after_ms > 0) {
        if (!hf_acquire_seen(lock, e->number)) {
            hf_acquire_fail(lock, HF_NOMEM, hf_err_text(HF_NOMEM));
            return;
        }
        hf_seen_add(lock->seen, e->clock_ms, hf_boot_ns());
    }
    if (lock->cell && hf_boot_ns() < lock->until_ns)
        spin(lock);
    else if (e->after_ms == 0 || !proves(lock, e->after_ms))
        hf_acquire_fail(lock, HF_TAKEN, "");
}

/* Whether it makes sense to wait for the end of this. */
static bool passes(hf_err err)
{
    return err != HF_AUTH && err != HF_REDIS && err != HF_PROTO && err != HF_LOST;
}

static void again(hf_lock *lock, hf_err err, const char *detail)
{
    static const hf_backoff backoff = {HF_SHAPE_EXPONENTIAL, FAULT_FIRST_MS,
                                       FAULT_LAST_MS, 0.2};
    lock->last_err = err;
    (void)snprintf(lock->detail, sizeof lock->detail, "%s", detail);
    if (hf_boot_ns() >= limit_ns(lock) || !passes(err))
        hf_acquire_fail(lock, err, detail);
    else if (err == HF_UNSURE || err == HF_CONN)
        lock->step = STEP_ENTER; /* with the next connection */
    else if (err == HF_NOSCRIPT || err == HF_DEADLINE)
        hf_acquire_send(lock);
    else
        pause_until(lock, &backoff, limit_ns(lock));
}

/* ---- held ---- */

static void hold(hf_lock *lock)
{
    hf_lease *lease = atomic_load(&lock->lease);
    bool lost = hf_lease_lost(lease);
    if (!lost && lock->fixed)
        hf_watchdog_fix(lock->locks->watchdog, lease);
    if (!lost && lock->max_hold_ms != 0) {
        uint64_t max_ns = hf_boot_ns() + lock->max_hold_ms * HF_MS_NS;
        atomic_store(&lock->max_ns, max_ns);
        hf_watchdog_limit(lock->locks->watchdog, lease, max_ns);
    }
    if (!lost)
        hf_hear_begin(lock);
    /* From now on the watchdog tells the user of a loss, and until now the loop: one of
     * the two takes it. The user may give it back at once, so the lease is not ours. */
    if (lost || !atomic_exchange(&lock->waits, false)) {
        hf_acquire_lost(lock);
        return;
    }
    lock->step = STEP_HELD;
    int entering = HF_LOCK_ENTERING, waiting = HF_LOCK_WAITING;
    if (!atomic_compare_exchange_strong(&lock->state, &entering, HF_LOCK_HELD))
        (void)atomic_compare_exchange_strong(&lock->state, &waiting, HF_LOCK_HELD);
    hf_lock_client_move(lock, &lock->locks->resting);
    tell(lock, HF_OK, "");
}

void hf_acquire_confirmed(hf_lock *lock)
{
    hold(lock);
}

static void become_held(hf_lock *lock, uint64_t fence)
{
    atomic_store(&lock->fence, fence);
    if (lock->wait_replicas == 0)
        hold(lock);
    else
        hf_confirm_begin(lock);
}

/* False: it could not be looked after, and has ended. */
static bool look_after(hf_lock *lock)
{
    atomic_store(&lock->waits, true);
    hf_lease *lease = hf_watchdog_add(lock->locks->watchdog, 0, lock->enter.lease_ms,
                                      lock->sent_ns, false, lock);
    atomic_store(&lock->lease, lease);
    if (lease == NULL)
        hf_acquire_fail(lock, HF_NOMEM, hf_err_text(HF_NOMEM));
    return lease != NULL;
}

void hf_acquire_granted(hf_lock *lock, uint64_t fence)
{
    if (lock->step == STEP_WAIT)
        become_held(lock, fence);
}

void hf_acquire_lost(hf_lock *lock)
{
    hf_held_drop(lock);
    atomic_store(&lock->waits, false);
    atomic_store(&lock->lost, false);
    atomic_store(&lock->granted, false);
    atomic_store(&lock->asked_early, false);
    atomic_store(&lock->fence, 0);
    if (hf_boot_ns() >= limit_ns(lock)) {
        hf_acquire_fail(lock, HF_TAKEN, "its place in the line was lost");
        return;
    }
    lock->tries = 0;
    lock->reached_ns = lock->until_ns;
    atomic_store(&lock->state, HF_LOCK_ENTERING);
    hf_acquire_send(lock);
}

/* ---- the request ---- */

static void stand_in_line(hf_lock *lock, const hf_entered *e)
{
    hf_lock_client *locks = lock->locks;
    lock->step = STEP_WAIT;
    lock->tries = 0;
    lock->reached_ns = lock->until_ns;
    lock->number = e->number;
    lock->prove_until_ns = 0;
    atomic_store(&lock->state, HF_LOCK_WAITING);
    if (!hf_acquire_seen(lock, e->number)) {
        hf_acquire_fail(lock, HF_NOMEM, hf_err_text(HF_NOMEM));
        return;
    }
    uint64_t now_ns = hf_boot_ns();
    hf_seen_add(lock->seen, e->clock_ms, now_ns);
    if (!look_after(lock))
        return;
    if (e->after_ms > 0)
        hf_watchdog_hurry(locks->watchdog, atomic_load(&lock->lease),
                          now_ns + e->after_ms * HF_MS_NS);
    hf_grants_listen(locks);
    hf_grants_heard(lock, lock->heard_fence);
}

/* Whether the enter that was answered with this did something, or may have. */
static bool may_have_done(hf_err err)
{
    return err == HF_OK || err == HF_IN_LINE || err == HF_UNSURE || err == HF_PROTO ||
           err == HF_REDIS;
}

static void on_entered(const hf_answer *answer, void *arg)
{
    hf_lock *lock = arg;
    hf_lock_client *locks = lock->locks;
    hf_entered e;
    hf_err err = hf_entered_read(answer, &e);
    lock->in_flight--;
    if (e.now_ms > 0) {
        hf_lock_client_clock(locks, e.now_ms);
        was_reached(lock);
    }
    lock->may_be_there = lock->may_be_there || may_have_done(err);
    if (err == HF_UNSURE)
        lock->doubt_ms = lock->enter.not_after;
    if (lock->step != STEP_ENTER) { /* it was given up meanwhile */
        hf_release_answered(lock);
    } else if (err == HF_OK) {
        if (look_after(lock))
            become_held(lock, e.fence);
    } else if (err == HF_IN_LINE) {
        stand_in_line(lock, &e);
    } else if (err == HF_TAKEN) {
        was_taken(lock, &e);
    } else if (err == HF_DEADLOCK) {
        hf_acquire_fail(lock, err, "");
    } else if (err == HF_LIMIT) {
        char detail[HF_DETAIL_SIZE];
        (void)snprintf(detail, sizeof detail, "the limit is %u", e.limit);
        hf_acquire_fail(lock, err, detail);
    } else {
        again(lock, err, answer->detail);
    }
    hf_lock_client_settle(locks);
}

void hf_acquire_send(hf_lock *lock)
{
    hf_lock_client *locks = lock->locks;
    char detail[HF_DETAIL_SIZE];
    lock->step = STEP_ENTER;
    if (lock->in_flight > 0 || !hf_lock_client_ready(locks))
        return;
    if (!hf_lock_client_fit(locks, detail)) {
        hf_acquire_fail(lock, HF_POLICY, detail);
        return;
    }
    const hf_lock_of of = hf_lock_of_lock(lock);
    lock->enter.not_after = hf_lock_client_not_after(locks);
    uint64_t sent_ns = hf_boot_ns();
    lock->enter.readings = NULL;
    if (lock->seen != NULL && hf_acquire_seen(lock, lock->seen->witness)) {
        lock->enter.witness = lock->seen->witness;
        lock->enter.readings = hf_seen_text(lock->seen, sent_ns);
    }
    hf_err err = hf_op_enter(locks->client, &of, &lock->enter, 0, on_entered, lock);
    if (err == HF_OK) {
        lock->in_flight++;
        lock->sent_ns = sent_ns;
    } else if (err != HF_CONN) {
        hf_acquire_fail(lock, err, hf_err_text(err));
    }
}

/* ---- time ---- */

uint64_t hf_acquire_due_ns(const hf_lock *lock)
{
    if (lock->step == STEP_PAUSE)
        return lock->due_ns;
    if (lock->step == STEP_WAIT)
        return lock->until_ns;
    if (lock->step == STEP_CONFIRM)
        return lock->in_round ? UINT64_MAX : lock->due_ns;
    return lock->step == STEP_ENTER && lock->in_flight == 0 ? limit_ns(lock) : UINT64_MAX;
}

static void not_reached(hf_lock *lock)
{
    const hf_client *client = lock->locks->client;
    hf_err err = hf_client_status(client);
    if (lock->last_err != HF_OK && err == HF_OK)
        hf_acquire_fail(lock, lock->last_err, lock->detail);
    else
        hf_acquire_fail(lock, err == HF_OK ? HF_CONN : err, hf_client_detail(client));
}

void hf_acquire_time(hf_lock *lock, uint64_t now_ns)
{
    if (now_ns < hf_acquire_due_ns(lock))
        return;
    if (lock->step == STEP_WAIT)
        hf_acquire_fail(lock, HF_TAKEN, "");
    else if (lock->step == STEP_ENTER)
        not_reached(lock);
    else if (lock->step == STEP_CONFIRM)
        hf_confirm_late(lock);
    else if (lock->cell && now_ns >= lock->until_ns && lock->last_err == HF_OK &&
             lock->prove_until_ns == 0)
        hf_acquire_fail(lock, HF_TAKEN, "");
    else
        hf_acquire_send(lock);
}
