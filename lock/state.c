/* state.c - a holder's calls that need no request: lock-free, from any thread. */
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "lock/hold.h"
#include "lock/lock.h"
#include "lock/watchdog/lease.h"

bool hf_lock_held(const hf_lock *lock)
{
    return hf_lock_remaining_ms(lock) > 0;
}

uint64_t hf_lock_deadline_ns(const hf_lock *lock)
{
    const hf_lease *lease = atomic_load(&lock->held.lease);
    int state = atomic_load(&lock->state);
    if (lease == NULL || (state != HF_LOCK_HELD && state != HF_LOCK_SUSPECT) ||
        hf_lease_lost(lease))
        return 0;
    return hf_lease_deadline_ns(lease);
}

int64_t hf_lock_remaining_ms(const hf_lock *lock)
{
    return hf_lease_remaining_ms(hf_lock_deadline_ns(lock));
}

/* By the clock, also before the watchdog has come to it. */
hf_lock_state hf_lock_get_state(const hf_lock *lock)
{
    hf_lock_state state = (hf_lock_state)atomic_load(&lock->state);
    if ((state == HF_LOCK_HELD || state == HF_LOCK_SUSPECT) &&
        hf_lock_deadline_ns(lock) == 0)
        return HF_LOCK_GONE;
    return state;
}

hf_lock_reason hf_lock_why(const hf_lock *lock)
{
    hf_lock_reason reason = (hf_lock_reason)atomic_load(&lock->reason);
    if (reason == HF_LOCK_NOT_LOST && atomic_load(&lock->fence) != 0 &&
        hf_lock_get_state(lock) == HF_LOCK_GONE)
        return hf_hold_reason(lock, atomic_load(&lock->held.lease));
    return reason;
}

uint64_t hf_lock_fence(const hf_lock *lock)
{
    return atomic_load(&lock->fence);
}

const char *hf_lock_owner_of(const hf_lock *lock)
{
    return lock->owner;
}

int hf_lock_fd(hf_lock *lock)
{
    int none = -1, fd = atomic_load(&lock->fd);
    if (fd >= 0)
        return fd;
    fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return -1;
    if (!atomic_compare_exchange_strong(&lock->fd, &none, fd)) {
        (void)close(fd); /* another thread was faster */
        return none;
    }
    /* It may have been lost before the watchdog could see the descriptor. */
    if (hf_lock_get_state(lock) == HF_LOCK_GONE)
        hf_hold_signal(lock);
    return fd;
}
