/* grants.c - how a lock that waits hears that it was granted: by a message in the
 * client's inbox, for which one connection blocks for all tags (ear.h); or by its next
 * renewal, which says what is true in any case. After the blocking connection was lost
 * everything is renewed at once, because a message may have been lost with it. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "lock/locks.h"

/* ---- what is to be heard: the tags of all that wait ---- */

/* The first tag that has a message is served, so the lock that has waited longest comes
 * first: else those that come and go would keep it from being heard. */
static void choose(hf_ear *ear)
{
    const hf_lock_client *locks = ear->arg;
    const hf_lock *lock = locks->active;
    while (lock != NULL && lock->next != NULL)
        lock = lock->next;
    for (; lock != NULL; lock = lock->prev)
        if (lock->step == STEP_WAIT)
            hf_ear_add(ear, lock->prefix, lock->prefix_len);
}

static bool is_deaf(hf_ear *ear)
{
    const hf_lock_client *locks = ear->arg;
    for (const hf_lock *lock = locks->active; lock != NULL; lock = lock->next)
        if (lock->step == STEP_WAIT && !hf_ear_hears(ear, lock->prefix))
            return true;
    return false;
}

/* ---- messages ---- */

static hf_lock *find_hold(hf_lock *lock, const char *hold, size_t len)
{
    while (lock != NULL &&
           (len != HF_HOLD_SIZE - 1 || memcmp(lock->hold, hold, len) != 0))
        lock = lock->next;
    return lock;
}

/* It may be an old one, of a place that was lost. And one line speaks only for itself:
 * where it may not be alone, the next renewal asks them all. */
void hf_grants_heard(hf_lock *lock, uint64_t fence)
{
    if (lock->step == STEP_ENTER) /* it has overtaken the answer that says: WAITING */
        lock->heard_fence = fence;
    if (lock->step != STEP_WAIT || fence <= lock->number)
        return;
    if (lock->enter.reentrant && lock->n_names > 1)
        hf_watchdog_hurry(lock->locks->watchdog, atomic_load(&lock->lease), hf_boot_ns());
    else
        hf_acquire_granted(lock, fence);
}

/* "granted FENCE HOLD ..." */
static void on_message(hf_ear *ear, const char *text)
{
    hf_lock_client *locks = ear->arg;
    bool granted = strncmp(text, "granted ", 8) == 0;
    const char *at = strchr(text, ' ');
    char *end;
    if (at == NULL)
        return;
    uint64_t fence = strtoull(at, &end, 10);
    while (*end == ' ') {
        const char *hold = end + 1;
        size_t len = strcspn(hold, " ");
        hf_lock *lock = find_hold(locks->active, hold, len);
        if (lock != NULL && granted)
            hf_grants_heard(lock, fence);
        end = (char *)hold + len;
    }
}

static void on_doubt(hf_ear *ear)
{
    const hf_lock_client *locks = ear->arg;
    hf_watchdog_verify(locks->watchdog);
}

static void on_turn(hf_ear *ear)
{
    hf_lock_client *locks = ear->arg;
    hf_grants_listen(locks);
    hf_lock_client_settle(locks);
}

/* ---- listening ---- */

void hf_grants_init(hf_lock_client *locks)
{
    locks->ear = (hf_ear){.opts = locks->client_opts,
                          .inbox = locks->id,
                          .choose = choose,
                          .is_deaf = is_deaf,
                          .on_message = on_message,
                          .on_doubt = on_doubt,
                          .on_turn = on_turn,
                          .arg = locks};
}

void hf_grants_listen(hf_lock_client *locks)
{
    if (!locks->closing)
        hf_ear_listen(&locks->ear, locks->client);
}

uint64_t hf_grants_due_ns(hf_lock_client *locks)
{
    return locks->closing ? UINT64_MAX : hf_ear_due_ns(&locks->ear);
}

void hf_grants_notes(hf_lock_client *locks)
{
    for (hf_lock *lock = locks->active, *next; lock != NULL; lock = next) {
        next = lock->next;
        if (lock->step != STEP_WAIT)
            continue;
        if (atomic_exchange(&lock->lost, false))
            hf_acquire_lost(lock);
        else if (atomic_exchange(&lock->granted, false))
            hf_acquire_granted(lock, atomic_load(&lock->fence));
    }
}
