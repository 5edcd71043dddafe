/* lease_heap.h - a lease as the watchdog keeps it, and the heap that orders leases by the
 * time of their next action. Private to the watchdog. */
#ifndef HF_LOCK_WATCHDOG_LEASE_HEAP_H
#define HF_LOCK_WATCHDOG_LEASE_HEAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HF_NOT_IN_HEAP SIZE_MAX

typedef struct hf_lease hf_lease;

struct hf_lease {
    void *user;
    size_t group;
    uint64_t
        number; /* rises with each that is added; so small that as a time it is past */
    uint32_t ttl_ms, asked_ms; /* asked_ms: in the renewal that is under way */
    /* 0: LOST, for ever. The thread that finds by the clock that it has passed sets it to
     * 0, and 0 is never raised: no thread sees a lease come back. */
    _Atomic uint64_t deadline_ns;

    /* under the watchdog's lock */
    size_t at;                      /* in the heap, or HF_NOT_IN_HEAP */
    uint32_t failures;              /* renewals in a row */
    uint64_t latest_ns;             /* its deadline is never later; 0: no limit */
    uint64_t hurry_ns;              /* renewed no later than this; 0: no hurry */
    _Atomic int code;               /* of the last renewal that was answered, */
    _Atomic uint64_t note;          /* and its note: the value, */
    _Atomic uint32_t note_ms;       /* the time, */
    _Atomic uint64_t note_clock_ms; /* and the clock */
    _Atomic int64_t note_redis_ms;  /* and Redis's time */
    uint32_t refs;   /* its sender, its batch, and its place in the line of events */
    uint32_t busy;   /* calls of the user's that run with it */
    unsigned events; /* to be told: bits, 1 << hf_lease_event */
    hf_lease *next_event;
    bool dropped;   /* by its owner: freed with the last reference */
    bool leaving;   /* the same, and LEFT is reported when it is no longer busy */
    bool in_flight; /* a renewal was sent and not answered */
    bool again;     /* one more at once after the answer */
    bool lost;      /* it was, or will be, told */
    bool cancelled; /* the same */
    bool fixed;     /* not renewed any more */
    bool asked_for; /* but it is asked for, once */
};

/* -- a heap; each lease knows its place, so any can be taken out -- */

typedef struct hf_lease_slot {
    uint64_t due_ns;
    hf_lease *lease;
} hf_lease_slot;

typedef struct hf_lease_heap {
    hf_lease_slot *slots; /* owned */
    size_t n, cap;
} hf_lease_heap;

bool hf_lease_heap_reserve(hf_lease_heap *heap, size_t more); /* false: out of memory */
void hf_lease_heap_put(hf_lease_heap *heap, hf_lease *lease,
                       uint64_t due_ns);                       /* in or moved */
void hf_lease_heap_take(hf_lease_heap *heap, hf_lease *lease); /* if it is in it */
void hf_lease_heap_order(hf_lease_heap *heap); /* after due_ns were changed */

#endif
