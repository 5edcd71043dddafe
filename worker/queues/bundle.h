/* bundle.h - the queues that one request may name: all those of a Redis, or one queue of
 * a cluster. They share a blocking call, a look and a check. Belongs to the loop.
 */
#ifndef HF_WORKER_QUEUES_BUNDLE_H
#define HF_WORKER_QUEUES_BUNDLE_H

#include "redis/blocking.h"
#include "worker/node/site.h"

enum { HF_WAIT_MS = 5000 }; /* a blocking call; half a lease if that is shorter */

struct hf_bundle {
    hf_site *site;   /* NULL: not in use */
    hf_served *only; /* its queue in a cluster; NULL: it has all queues */

    /* the blocking call */
    hf_blocking *blocking; /* its connection; owned; NULL: not opened yet */
    bool blocked;
    bool waited;     /* it has blocked before: a lost connection may have lost a baton */
    bool wake_doubt; /* a baton may have been lost */
    bool wait_stale; /* the served queues are others than it names */
    hf_served *waiting_on[HF_SLOTS_MAX]; /* the queues that it names */
    size_t n_waiting_on;
    size_t wait_order;        /* which queue the next call names first */
    uint32_t wait_backoff_ms; /* as for a queue, but of the blocking call */
    uint64_t wait_hold_until_ns;
    bool wait_refused, wait_away; /* these were logged */

    /* the look at queues that were found empty */
    hf_served *peeking_at[HF_SLOTS_MAX];
    size_t n_peeking;
    uint64_t peeked_ns;

    /* the check */
    uv_timer_t look;
    hf_site *checked_site;      /* the site that was asked */
    bool checking, check_gives; /* a check is under way; it gives batons back */
    bool give_back;             /* the next check must give batons back */
    hf_served *checking_at[HF_SLOTS_MAX];
    size_t n_checking;
    uint64_t checked_ns;     /* when the last check was sent */
    uint64_t check_at_ns;    /* after a wait, no check before this time */
    uint64_t check_again_ns; /* one more check at this time; 0: none */
    uint64_t empty_ns;       /* when the last check was sent, if it found no job; or 0 */

    /* the readings (readings.c) */
    bool has_read;       /* a read was answered */
    uint32_t read_ms;    /* from one read to the next */
    uint64_t read_at_ns; /* the next read; 0: none is planned, or one is under way */
    hf_site *read_site;  /* the site that was asked */
    hf_served *reading_at[HF_SLOTS_MAX];
    size_t n_reading; /* 0: none is under way */
};

/* The next bundle in use: the first one after NULL, and NULL after the last one. */
hf_bundle *hf_bundle_next(const hf_queues *queues, hf_bundle *b);

void hf_bundle_open(hf_bundle *b, hf_site *site, hf_served *only);
void hf_bundle_move(hf_bundle *b, hf_site *site);
void hf_bundle_end(hf_bundle *b); /* its queue has left, and nothing is under way */
void hf_bundle_close_client(hf_bundle *b);

/* Its timer fires in this many ms, and calls `on_look` of the queues. */
void hf_bundle_look_in(hf_bundle *b, uint32_t ms);
void hf_bundle_check_at(hf_bundle *b, uint64_t at_ns); /* one check more at this time */
uint32_t hf_bundle_wait_ms(const hf_worker *w);        /* from check to check, at least */
uint32_t hf_bundle_longest_ms(const hf_worker *w);     /* and at most */

#endif
