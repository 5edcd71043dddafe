/* lease.c - the deadline of a lease: lock-free, and never back from LOST. */
#include "lock/watchdog/lease.h"

#include "base/clock.h"
#include "lock/watchdog/lease_heap.h"

enum {
    MARGIN_LEAST_MS = 50, /* what a holder needs to stop */
    DRIFT_MS = 2
};

uint64_t hf_lease_deadline(uint64_t sent_ns, uint32_t ttl_ms)
{
    uint64_t ttl_ns = ttl_ms * HF_MS_NS, margin_ns = ttl_ns / 50;
    if (margin_ns < MARGIN_LEAST_MS * HF_MS_NS)
        margin_ns = MARGIN_LEAST_MS * HF_MS_NS;
    uint64_t cut_ns = ttl_ns / 100 + DRIFT_MS * HF_MS_NS + margin_ns;
    return ttl_ns > cut_ns ? sent_ns + ttl_ns - cut_ns : sent_ns;
}

int64_t hf_lease_remaining_ms(uint64_t deadline_ns)
{
    uint64_t now_ns = hf_boot_ns();
    if (deadline_ns <= now_ns)
        return 0;
    return (int64_t)((deadline_ns - now_ns + HF_MS_NS - 1) / HF_MS_NS);
}

bool hf_lease_lost(const hf_lease *lease)
{
    /* Logically const: it only records what the clock has already decided. */
    _Atomic uint64_t *deadline = &((hf_lease *)lease)->deadline_ns;
    uint64_t at_ns = atomic_load(deadline);
    while (at_ns != 0 && hf_boot_ns() >= at_ns)
        if (atomic_compare_exchange_weak(deadline, &at_ns, 0))
            return true;
    return at_ns == 0;
}

uint64_t hf_lease_deadline_ns(const hf_lease *lease)
{
    return atomic_load(&lease->deadline_ns);
}

void *hf_lease_user(const hf_lease *lease)
{
    return lease->user;
}

uint32_t hf_lease_asked_ms(const hf_lease *lease)
{
    return lease->asked_ms;
}

hf_err hf_lease_answer(const hf_lease *lease, hf_lease_note *note)
{
    note->value = atomic_load(&lease->note);
    note->after_ms = atomic_load(&lease->note_ms);
    note->clock_ms = atomic_load(&lease->note_clock_ms);
    note->redis_ms = atomic_load(&lease->note_redis_ms);
    return (hf_err)atomic_load(&lease->code);
}

bool hf_lease_raise(hf_lease *lease, uint64_t to_ns)
{
    uint64_t at_ns = atomic_load(&lease->deadline_ns);
    if (lease->latest_ns != 0 && to_ns > lease->latest_ns)
        to_ns = lease->latest_ns;
    while (!hf_lease_lost(lease)) {
        if (to_ns <= at_ns ||
            atomic_compare_exchange_weak(&lease->deadline_ns, &at_ns, to_ns))
            return true;
    }
    return false;
}
