/* waking_state.h - what the waking part knows; its own files alone include this. */
#ifndef HF_WORKER_WAKING_STATE_H
#define HF_WORKER_WAKING_STATE_H

#include "base/machine.h"
#include "worker/site.h"

enum { HF_WAIT_MS = 5000 }; /* a blocking call; half a lease if that is shorter */

/* Queues that one request may name: all those of a Redis, or of a cluster those of one
 * slot. They share a blocking call, a look and a check. */
typedef struct hf_bundle {
    hf_site *site;   /* NULL: not in use */
    hf_served *only; /* in a cluster; NULL: it has all queues */

    /* the blocking call */
    hf_client *client; /* owned; NULL: not opened yet */
    bool blocked;
    bool waited;     /* it has blocked before: a baton may be lost with its connection */
    bool wake_doubt; /* one may have been lost */
    bool wait_stale; /* it names other queues than are served */
    hf_served *waiting_on[HF_SLOTS_MAX]; /* what it names */
    size_t n_waiting_on;
    size_t wait_order;        /* which queue the next one names first */
    uint32_t wait_backoff_ms; /* as of a queue, but for the blocking call */
    uint64_t wait_hold_until_ns;
    bool wait_refused, wait_away; /* it was logged */
    bool unblocking;
    unsigned unblocks;      /* requests for it that are under way */
    uint32_t unblock_ms;    /* the pause before unblocking is tried again */
    uint64_t unblock_at_ns; /* not before this */

    /* the look at queues that were found empty */
    hf_served *peeking_at[HF_SLOTS_MAX];
    size_t n_peeking;
    uint64_t peeked_ns;

    /* the check */
    uv_timer_t look;
    hf_site *checked_site;      /* that was asked */
    bool checking, check_gives; /* one is under way; it gives batons back */
    bool give_back;             /* the next one has to */
    hf_served *checking_at[HF_SLOTS_MAX];
    size_t n_checking;
    uint64_t checked_ns;     /* when the last one was sent */
    uint64_t check_at_ns;    /* not before this when a wait has ended */
    uint64_t check_again_ns; /* one more at this time; 0: none */
    uint64_t empty_ns;       /* when the last one was sent, if it found no job; or 0 */

    /* the readings (readings.c) */
    bool has_read;       /* a read was answered */
    uint32_t read_ms;    /* from one to the next */
    uint64_t read_at_ns; /* the next one; 0: none is planned, or one is under way */
    hf_site *read_site;  /* that was asked */
    hf_served *reading_at[HF_SLOTS_MAX];
    size_t n_reading; /* 0: none is under way */
} hf_bundle;

typedef struct hf_waking {
    hf_served *slots; /* of queues, HF_SLOTS_MAX; they stay where they are */
    size_t n_slots;   /* behind these none is used */
    hf_whole *wholes[HF_QUEUES_MAX]; /* the queues that are served, in their order */
    size_t n_wholes;
    hf_served *served[HF_SLOTS_MAX]; /* and their members */
    size_t n_served;
    uint64_t first_number; /* no claim of a queue that has left had a higher one */
    hf_bundle *bundles; /* owned; a single one, or one for each slot. NULL: it has never
                           run */
    size_t n_bundles;
    uint64_t open_at_ns; /* the next connection that blocks: they come one by one */
    uint64_t worked_ns;  /* when a job was held last */
    uv_poll_t alarm;   /* of the times of batons: a timer of the loop has whole ms only */
    int alarm_fd;      /* -1: closed */
    uint64_t alarm_ns; /* for which it is set; 0: it is not */
    char machine[HF_MACHINE_SIZE];
} hf_waking;

/* -- queues.c -- */
/* Of those in use; the first one after NULL, and NULL after the last one. */
hf_bundle *hf_bundle_next(const hf_waking *k, hf_bundle *b);
bool hf_bundle_is_quiet(const hf_bundle *b); /* nothing to claim, nothing under way */
void hf_bundle_doubt(hf_bundle *b);          /* each of its queues may have something */

static inline uint64_t hf_earlier_ns(uint64_t a_ns, uint64_t b_ns) /* 0: none */
{
    return a_ns == 0 || (b_ns != 0 && b_ns < a_ns) ? b_ns : a_ns;
}

/* -- check.c -- */
uint32_t hf_check_ms(hf_worker *w); /* from one check to the next */
uint32_t hf_check_longest_ms(const hf_worker *w);
void hf_check_bundle(hf_bundle *b, bool give_back);
void hf_check_bundle_at(hf_bundle *b, uint64_t at_ns);
void hf_check_look_in(hf_bundle *b, uint32_t ms);
/* Of a cluster's node: it does not have this queue, or not now. */
void hf_bundle_unserved(hf_bundle *b, hf_site *site, hf_err err, const char *detail);
/* It has the own keys of a queue that is divided: there are no jobs. */
bool hf_bundle_has_only_shards(const hf_bundle *b);

/* -- wake.c -- */
/* Whether its Redis's clock has come to this time. The alarm is set by the same estimate.
 */
bool hf_has_come(const hf_served *served, int64_t at_ms);
void hf_bundle_open(hf_bundle *b, hf_site *site, hf_served *only);
void hf_bundle_move(hf_bundle *b, hf_site *site);
void hf_bundle_end(hf_bundle *b); /* its queue has left, and nothing is under way */

#endif
