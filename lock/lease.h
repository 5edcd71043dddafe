/* lease.h - a lease as the watchdog keeps it, the heap that orders them by when something
 * is to be done, and what the watchdog's two files share. Private to lock/. */
#ifndef HF_LOCK_LEASE_H
#define HF_LOCK_LEASE_H

#include <stdatomic.h>
#include <uv.h>

#include "base/random.h"
#include "lock/watchdog.h"

#define HF_NOT_IN_HEAP SIZE_MAX

struct hf_lease {
    void *user;
    size_t group;
    uint64_t
        number; /* rises with each that is added; so small that as a time it is past */
    uint32_t ttl_ms, asked_ms; /* asked_ms: in the renewal that is under way */
    /* 0: LOST, for ever. Whoever finds by the clock that it has passed makes it 0, and
     * only what is not 0 is ever raised: so nobody sees a lease come back. */
    _Atomic uint64_t deadline_ns;

    /* under the watchdog's lock */
    size_t at;                      /* in the heap, or HF_NOT_IN_HEAP */
    uint32_t failures;              /* renewals in a row */
    uint64_t latest_ns;             /* its deadline is never later; 0: no limit */
    uint64_t hurry_ns;              /* renewed no later than this; 0: nobody hurries */
    _Atomic int code;               /* of the last renewal that was answered, */
    _Atomic uint64_t note;          /* and its note: the value, */
    _Atomic uint32_t note_ms;       /* the time, */
    _Atomic uint64_t note_clock_ms; /* and the clock */
    uint32_t refs;   /* batches that name it, and its place in the line of events */
    uint32_t busy;   /* calls of the user's that run with it */
    unsigned events; /* to be told: bits, 1 << hf_lease_event */
    hf_lease *next_event;
    bool dropped;   /* by its owner: freed with the last reference */
    bool leaving;   /* the same, and LEFT is to be told when it is not busy any more */
    bool in_flight; /* a renewal was sent and not answered */
    bool again;     /* one more at once after the answer */
    bool lost;      /* it was, or will be, told */
    bool cancelled; /* the same */
    bool fixed;     /* not renewed any more */
    bool asked_for; /* but it is asked for, once */
};

/* Under lock. No later than its limit. False: it was too late, and the lease is lost. */
bool hf_lease_raise(hf_lease *lease, uint64_t to_ns);

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

/* -- the watchdog -- */

enum { HF_DUE_MAX = 4096 }; /* leases that are collected at a time */

struct hf_watchdog {
    hf_watchdog_opts opts;

    /* its thread only, once that runs */
    uv_loop_t loop;
    hf_client *client;
    uv_poll_t timer;
    hf_lease *due[HF_DUE_MAX];
    bool delivering; /* the events that are in line will be told anyway */

    uv_thread_t thread;
    int timer_fd;
    uv_mutex_t lock;
    uv_cond_t idle; /* something is not `busy` any more */

    /* under lock */
    size_t waiters; /* for idle */
    hf_lease_heap heap;
    size_t n_leases;
    uint64_t numbers;  /* of leases that were added ever */
    uint64_t call_ns;  /* of on_call; UINT64_MAX: none */
    uint64_t armed_ns; /* what the timer is set to; UINT64_MAX: nothing */
    hf_lease *events, *last_event;
    hf_rng rng;
    bool stopping;
};

/* -- watchdog.c, under lock except deliver -- */
void hf_watchdog_note(hf_watchdog *w, hf_lease *lease, hf_lease_event event);
void hf_watchdog_unref(hf_lease *lease);
void hf_watchdog_not_busy(hf_watchdog *w, hf_lease *lease);
void hf_watchdog_deliver(hf_watchdog *w); /* tells the events in line, sets the timer */

/* -- renewal.c -- */
/* Something is to be done about it at due_ns, or at its deadline if that is earlier. */
void hf_renewal_plan(hf_watchdog *w, hf_lease *lease, uint64_t due_ns); /* under lock */
uint64_t hf_renewal_third_ns(uint32_t ttl_ms, double jitter);           /* jitter: 0..1 */
void hf_renewal_lose(hf_watchdog *w, hf_lease *lease);                  /* under lock */
void hf_renewal_send_due(hf_watchdog *w); /* not under lock */

#endif
