/* locks_clock.c - Redis's time, as the last answer told it. From any thread. */
#include "base/clock.h"
#include "lock/locks.h"

int64_t hf_lock_client_now(const hf_lock_client *locks)
{
    int64_t offset = atomic_load(&locks->redis_minus_boot_ms);
    return offset == INT64_MIN ? 0 : (int64_t)(hf_boot_ns() / HF_MS_NS) + offset;
}

int64_t hf_lock_client_not_after(const hf_lock_client *locks)
{
    int64_t now = hf_lock_client_now(locks);
    return now == 0 ? 0 : now + locks->request_timeout_ms;
}

uint64_t hf_lock_client_boot_ns(const hf_lock_client *locks, int64_t redis_ms)
{
    int64_t now = hf_lock_client_now(locks);
    return hf_boot_ns() + (redis_ms > now ? (uint64_t)(redis_ms - now) * HF_MS_NS : 0);
}

void hf_lock_client_clock(hf_lock_client *locks, int64_t now_ms)
{
    atomic_store(&locks->redis_minus_boot_ms,
                 now_ms - (int64_t)(hf_boot_ns() / HF_MS_NS));
}
