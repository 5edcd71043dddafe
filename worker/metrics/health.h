/* health.h - whether the worker lives and serves, and how busy it is, for any thread that
 * asks.
 * The thread that turns the loop writes it. */
#ifndef HF_WORKER_METRICS_HEALTH_H
#define HF_WORKER_METRICS_HEALTH_H

#include <stdatomic.h>
#include <stdint.h>

typedef enum hf_health_state {
    HF_HEALTH_STARTING,
    HF_HEALTH_SERVING,
    HF_HEALTH_QUIET,
    HF_HEALTH_STOPPING
} hf_health_state;

typedef struct hf_health {
    _Atomic uint64_t due_ms; /* by then the loop turns next, on its clock; 0: it does not
                                run. While it is at work that is when its turn began */
    _Atomic uint64_t heard_ns; /* Redis has answered a claim or a check; 0: never */
    atomic_int state;
    _Atomic uint32_t running, slots; /* jobs that run, of this many at a time */
} hf_health;

/* The loop sleeps, for so long (-1: without an end), or is at work (0). */
static inline void hf_health_turns(hf_health *h, uint64_t now_ms, int sleeps_ms)
{
    const uint64_t due = sleeps_ms < 0 ? UINT64_MAX : now_ms + (uint64_t)sleeps_ms;
    atomic_store_explicit(&h->due_ms, due, memory_order_relaxed);
}

static inline void hf_health_heard(hf_health *h, uint64_t now_ns)
{
    atomic_store_explicit(&h->heard_ns, now_ns, memory_order_relaxed);
}

static inline void hf_health_is(hf_health *h, hf_health_state state, uint32_t running,
                                uint32_t slots)
{
    atomic_store_explicit(&h->state, (int)state, memory_order_relaxed);
    atomic_store_explicit(&h->running, running, memory_order_relaxed);
    atomic_store_explicit(&h->slots, slots, memory_order_relaxed);
}

/* For how many ms it is overdue. */
static inline uint64_t hf_health_age_ms(const hf_health *h, uint64_t now_ms)
{
    const uint64_t due = atomic_load_explicit(&h->due_ms, memory_order_relaxed);
    return now_ms > due ? now_ms - due : 0;
}

#endif
