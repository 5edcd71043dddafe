/* members.h - the processes of a pool: a list, and what each may be asked. */
#ifndef HF_WORKER_POOL_MEMBERS_H
#define HF_WORKER_POOL_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/metrics/counters.h"
#include "worker/pool/child.h"
#include "worker/pool/wear.h"

/* A process of the pool. */
typedef struct hf_member {
    struct hf_supervisor *owner;
    struct hf_member *next;
    hf_child *child;
    uint64_t generation;       /* of the program */
    uint64_t born_ns, busy_ns; /* when it had a job last */
    hf_wear limits;
    const char *because; /* it is stopped; NULL: it is not, or all are */
    bool joined;         /* it was started by hand */
    bool worn;           /* it is replaced */
    bool exclusive;      /* a job runs in it that has to run alone */
    bool stopped;
} hf_member;

bool hf_member_serves(const hf_member *member);
/* It has a place in the pool; one that joins, from when it is ready. */
bool hf_member_is_alive(const hf_member *member);
/* It starts, or has ended and its end is not known yet. */
bool hf_member_is_open(const hf_member *member);
/* It was never ready, and ends: whether its start has failed is known when it has gone.
 */
bool hf_member_is_unjudged(const hf_member *member);
bool hf_member_is_worn(const hf_member *member);
bool hf_member_has_joined(const hf_member *member); /* and serves */

size_t hf_members_count(const hf_member *list, bool (*is)(const hf_member *member));

/* `because`: for the metrics (worker/metrics/counters.h); NULL: all are stopped. */
void hf_member_stop(hf_member *member, const char *because);
/* It has ended, and not because all stop: counts why (worker/metrics/counters.h). */
void hf_member_count_end(const hf_member *member, hf_counters *counters, const char *pool,
                         bool wanted, bool failed);
/* Frees it. */
void hf_members_remove(hf_member **list, hf_member *gone);

#endif
