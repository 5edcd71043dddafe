/* change.c - downgrade, extend and guard. All leave the lock held, even if they fail. */
#include <stdlib.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/detail.h"
#include "lock/ask.h"
#include "lock/callback.h"
#include "lock/client.h"
#include "lock/guard.h"
#include "lock/lock.h"
#include "lock/nodes.h"
#include "lock/ops.h"
#include "lock/tasks.h"
#include "lock/watchdog/lease.h"
#include "lock/watchdog/watchdog.h"

/* ---- downgrade ---- */

typedef struct downgrade {
    hf_lock_ask ask;
    hf_lock *lock;
    hf_lock_changed_cb cb;
    void *arg;
} downgrade;

static hf_err send_downgrade(hf_lock_ask *ask, hf_client *client, hf_answer_cb cb,
                             void *arg)
{
    const hf_lock_of of = hf_lock_of_lock(ask->arg);
    const hf_release_args args = {.downgrade = true,
                                  .not_after = hf_lock_node_not_after(ask->node),
                                  .machine = ask->locks->machine,
                                  .shown = ""};
    return hf_op_lock_release(client, &of, &args, 0, cb, arg);
}

static hf_err read_downgrade(hf_lock_ask *ask, const hf_answer *answer)
{
    hf_released left;
    hf_err err = hf_op_released_read(answer, &left);
    (void)ask;
    if (err != HF_OK)
        return err;
    return left.result == HF_RELEASE_STILL_HELD ? HF_OK : HF_LOST;
}

static hf_err not_held(char *detail)
{
    return hf_say_err(detail, HF_LOST);
}

/* A child of fork() has no part in it, whatever its copy of the lock says. */
static hf_err check_held(const hf_lock *lock, char *detail)
{
    if (hf_tasks_forked(&lock->locks->tasks))
        return hf_say_err(detail, HF_FORKED);
    return hf_lock_held(lock) ? HF_OK : not_held(detail);
}

static hf_err check_downgrade(const hf_lock *lock, char *detail)
{
    if (lock->simple || lock->mode != 'x')
        return hf_say(detail, HF_INVALID, "expected an exclusive hold of a fair lock");
    return check_held(lock, detail);
}

static hf_err conclude(hf_lock *lock, hf_err err)
{
    if (err == HF_OK)
        lock->mode = 's';
    return err;
}

hf_err hf_lock_downgrade_wait(hf_lock *lock, char detail[HF_DETAIL_SIZE])
{
    hf_lock_ask ask = {
        .lock = lock, .send = send_downgrade, .read = read_downgrade, .arg = lock};
    hf_err err = check_downgrade(lock, detail);
    return err != HF_OK ? err : conclude(lock, hf_ask_wait(&ask, lock->locks, detail));
}

static void on_downgraded(hf_lock_ask *ask)
{
    downgrade *d = HF_CONTAINER(ask, downgrade, ask);
    hf_err err = conclude(d->lock, ask->err);
    hf_callback callback;
    hf_callback_begin(&callback, ask->locks);
    d->cb(d->lock, err, ask->detail, d->arg);
    hf_callback_end(&callback);
    free(d);
}

hf_err hf_lock_downgrade(hf_lock *lock, hf_lock_changed_cb cb, void *arg,
                         char detail[HF_DETAIL_SIZE])
{
    hf_err err = check_downgrade(lock, detail);
    if (err != HF_OK)
        return err;
    downgrade *d = calloc(1, sizeof *d);
    if (d == NULL)
        return hf_say_err(detail, HF_NOMEM);
    *d = (downgrade){.lock = lock, .cb = cb, .arg = arg};
    d->ask = (hf_lock_ask){.lock = lock,
                           .send = send_downgrade,
                           .read = read_downgrade,
                           .on_end = on_downgraded,
                           .arg = lock};
    err = hf_ask_begin(&d->ask, lock->locks);
    if (err == HF_OK)
        return HF_OK;
    free(d);
    return hf_say_err(detail, err);
}

/* ---- extend ---- */

typedef struct extension {
    hf_lock *lock;
    uint32_t lease_ms;
} extension;

static hf_err send_extension(hf_lock_ask *ask, hf_client *client, hf_answer_cb cb,
                             void *arg)
{
    const extension *e = ask->arg;
    const hf_lock *lock = e->lock;
    hf_lock_renewal items[HF_LOCK_NAMES_MAX];
    for (size_t i = 0; i < lock->n_names; i++)
        items[i] = (hf_lock_renewal){.prefix = {lock->prefix, lock->prefix_len},
                                     .owner = lock->owner,
                                     .hold = lock->hold,
                                     .name = lock->names[i],
                                     .lease_ms = e->lease_ms,
                                     .simple = lock->simple,
                                     .shown = ""};
    hf_asker asker = hf_asker_now(ask->locks->machine);
    return hf_op_lock_renew(client, items, lock->n_names, &asker,
                            hf_lock_node_not_after(ask->node), 0, cb, arg);
}

static hf_err read_extension(hf_lock_ask *ask, const hf_answer *answer)
{
    const extension *e = ask->arg;
    const hf_lock *lock = e->lock;
    hf_lock_renewed renewed;
    hf_err err = hf_op_renewed_read(answer, &renewed);
    if (err != HF_OK)
        return err;
    for (size_t i = 0; i < lock->n_names; i++) {
        hf_lease_note what;
        hf_err one = hf_op_renewed_next(&renewed, i, &what);
        if (one != HF_OK && one != HF_CANCEL)
            return one == HF_IN_LINE ? HF_LOST : one;
    }
    return HF_OK;
}

static hf_err take_extension(hf_lock_ask *ask)
{
    const extension *e = ask->arg;
    hf_lock *lock = e->lock;
    hf_lease *lease = atomic_load(&lock->held.lease);
    if (lease == NULL ||
        !hf_watchdog_extend(ask->locks->watchdog, lease, e->lease_ms, ask->sent_ns))
        return HF_LOST;
    hf_guard_extend(&lock->locks->guard, &lock->held.minded, hf_lease_deadline_ns(lease));
    atomic_store(&lock->lease_ms, e->lease_ms);
    return HF_OK;
}

/* No longer than it may be held. */
static uint32_t cut(const hf_lock *lock, uint32_t lease_ms)
{
    uint64_t max_ns = atomic_load(&lock->held.max_ns), now_ns = hf_boot_ns();
    if (max_ns == 0 || now_ns + lease_ms * HF_MS_NS <= max_ns)
        return lease_ms;
    return max_ns > now_ns ? (uint32_t)((max_ns - now_ns) / HF_MS_NS) + 1 : 1;
}

hf_err hf_lock_extend_wait(hf_lock *lock, uint32_t lease_ms, char detail[HF_DETAIL_SIZE])
{
    extension e = {.lock = lock, .lease_ms = lease_ms};
    hf_lock_ask ask = {.lock = lock,
                       .send = send_extension,
                       .read = read_extension,
                       .take = take_extension,
                       .arg = &e};
    if (lease_ms < HF_LOCK_LEASE_MIN_MS || lease_ms > HF_LOCK_LEASE_MAX_MS)
        return hf_say(detail, HF_INVALID, "expected a lease of %d to %d ms, found %u",
                      HF_LOCK_LEASE_MIN_MS, HF_LOCK_LEASE_MAX_MS, lease_ms);
    if (!lock->fixed && !hf_guard_fits(&lock->locks->guard, &lock->held.minded, lease_ms))
        return hf_say(detail, HF_INVALID,
                      "expected a lease with room for the grace of the guarded group, "
                      "found %u ms",
                      lease_ms);
    hf_err err = check_held(lock, detail);
    if (err != HF_OK)
        return err;
    e.lease_ms = cut(lock, lease_ms);
    return hf_ask_wait(&ask, lock->locks, detail);
}

/* ---- guard ---- */

/* The grace for a lease, and a group that a lock may guard. */
static hf_err check_guard(const hf_lock *lock, pid_t group, uint32_t grace_ms,
                          char *detail)
{
    uint32_t lease_ms = atomic_load(&lock->lease_ms);
    uint32_t most = lock->fixed ? lease_ms / 2 : hf_lock_grace_max(lease_ms);
    if (group <= 1)
        return hf_say(detail, HF_INVALID, "expected a process group, found %d", group);
    if (!(lock->fixed ? grace_ms <= most : hf_guard_has_room(lease_ms, grace_ms)))
        return hf_say(detail, HF_INVALID,
                      "expected a grace of at most %u ms for a lease of %u ms, found %u",
                      most, lease_ms, grace_ms);
    return check_held(lock, detail);
}

hf_err hf_lock_guard(hf_lock *lock, pid_t group, uint32_t grace_ms,
                     char detail[HF_DETAIL_SIZE])
{
    hf_lock_client *locks = lock->locks;
    hf_guard *guard = &locks->guard;
    if (hf_tasks_forked(&locks->tasks))
        return hf_say_err(detail, HF_FORKED);
    if (group == 0) {
        hf_guard_end(guard, &lock->held.minded);
        return HF_OK;
    }
    hf_err err = check_guard(lock, group, grace_ms, detail);
    if (err == HF_OK)
        err = hf_guard_start(guard, detail);
    if (err != HF_OK)
        return err;
    uint64_t deadline_ns = hf_lock_deadline_ns(lock);
    if (deadline_ns <= hf_boot_ns())
        return not_held(detail);
    err = hf_guard_hold(guard, &lock->held.minded, group, deadline_ns, grace_ms);
    if (err == HF_INVALID)
        return hf_say(detail, err, "expected one group for a lock, found another one");
    if (err != HF_OK)
        return hf_say_err(detail, err);
    /* A renewal may have come in between, or the loss. */
    hf_guard_extend(guard, &lock->held.minded, hf_lock_deadline_ns(lock));
    if (!hf_lock_held(lock))
        hf_guard_ask(guard, &lock->held.minded);
    return HF_OK;
}

bool hf_lock_guard_asked(hf_lock *lock)
{
    if (hf_tasks_forked(&lock->locks->tasks))
        return false;
    return hf_guard_asked(&lock->locks->guard, &lock->held.minded);
}

bool hf_lock_guard_kill(hf_lock *lock, uint32_t timeout_ms)
{
    hf_lock_client *locks = lock->locks;
    return hf_tasks_forked(&locks->tasks) ||
           hf_guard_kill_family(&locks->guard, &lock->held.minded, timeout_ms);
}
