/* lease.h - what its user sees of a lease that the watchdog looks after. */
#ifndef HF_LOCK_WATCHDOG_LEASE_H
#define HF_LOCK_WATCHDOG_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast/error.h"

typedef struct hf_lease hf_lease;

/* A further note of an answer on a lease; the user defines its meaning. */
typedef struct hf_lease_note {
    uint64_t value;
    uint32_t after_ms;
    uint64_t clock_ms;
    int64_t redis_ms; /* Redis's time of the answer */
} hf_lease_note;

/* Whether this answer to a renewal keeps the lease. */
static inline bool hf_lease_is_held(hf_err code)
{
    return code == HF_OK || code == HF_CANCEL || code == HF_IN_LINE;
}

/* From any thread, lock-free. Lost: reported, or past its deadline by the clock; the
 * first question settles it, so the answer never returns to false. The deadline of a lost
 * one is 0. */
bool hf_lease_lost(const hf_lease *lease);
uint64_t hf_lease_deadline_ns(const hf_lease *lease);
void *hf_lease_user(const hf_lease *lease);
/* In `renew`: for how many ms this renewal is to ask, as hf_watchdog_extend() may have
 * changed it. The deadline is made of the same number. */
uint32_t hf_lease_asked_ms(const hf_lease *lease);

/* In on_event, after HF_LEASE_RENEWED: the last answer, and its note. */
hf_err hf_lease_answer(const hf_lease *lease, hf_lease_note *note);

/* For the watchdog, under its lock. No later than its limit. False: it was too late, and
 * the lease is lost. */
bool hf_lease_raise(hf_lease *lease, uint64_t to_ns);

/* The time until a deadline; 0: it has passed, or is that of a lost lease. */
int64_t hf_lease_remaining_ms(uint64_t deadline_ns);

/* The deadline of a lease of ttl_ms whose request was made at sent_ns. */
uint64_t hf_lease_deadline(uint64_t sent_ns, uint32_t ttl_ms);

#endif
