/* queues.h - the queues that a worker serves: their settings, their states, their slots.
 *
 * A queue of the plan is a whole, with a name, a weight and limits. Its members are what
 * the worker claims from: each has keys with a prefix of its own, a state, a slot and a
 * site. The first member has the queue's own keys; the others are its shards (shards.c).
 *
 * Belongs to the loop, but for `queue` and `slot`, which other threads may read while a
 * job of the queue is held. */
#ifndef HF_WORKER_QUEUES_H
#define HF_WORKER_QUEUES_H

#include "worker/queue_state.h"
#include "worker/shared.h"

/* A queue of the plan. It lives as long as its first member. */
struct hf_whole {
    hf_served *members; /* by next_member */
    size_t n_members;   /* also those that are leaving */
    size_t index;       /* its place among those that are served */
    uint32_t weight;
    hf_worker_queue limits; /* its text is not used */
    char on_dead[HF_ID_SIZE];
    bool new_limits;      /* Redis did not know them: that has to be logged */
    double credit;        /* jobs by weight that the others had and it did not; <= 0 */
    hf_served *turn;      /* the member that is claimed next; NULL: none can be */
    uint32_t under_way;   /* jobs, of the claims of its members */
    bool busy;            /* one of these will probably bring something */
    unsigned n_shards;    /* as Redis told; 0: it is not divided */
    uint32_t told_shards; /* so many were wanted, and it was logged that they are not */
    bool unserved;        /* it was logged that they cannot be served */
};

/* A member of a queue that is served, and what is known of it. */
struct hf_served {
    hf_worker *worker;
    hf_whole *whole;
    hf_served *next_member;
    hf_whole own;             /* of a first member: its whole */
    unsigned shard;           /* of another one: which shard it is, from 0 */
    _Atomic(hf_site *) site;  /* where its keys are */
    hf_site *asked_site;      /* of the claim, or of what became of it, under way */
    unsigned key_slot;        /* of its keys, in a cluster */
    struct hf_bundle *bundle; /* the queues that it shares requests with */
    hf_queue queue;
    hf_queue_state state;
    hf_debt debt;
    size_t slot;          /* its place in memory, and its group with the watchdog */
    size_t runs;          /* jobs that are held */
    unsigned requests;    /* looks, checks and registrations under way that name it */
    bool registered;      /* Redis knows of it, of its limits, and of what tells of its
                             deaths */
    bool present;         /* it knows that this worker serves it (present.h) */
    bool looked;          /* a claim was answered */
    uint32_t asked;       /* jobs, of the claim under way; */
    uint64_t asked_ns;    /* and when it was sent */
    uint64_t alive_at_ns; /* then a claim says that this worker lives */
    double credit;        /* jobs that the other members had and it did not; <= 0 */
    uint64_t claim_number, lost_ns; /* IN_DOUBT: since when */
    int64_t claim_not_after;
    int64_t timer_ms;            /* the owned baton's time on Redis's clock; 0: none */
    int64_t due_ms, sent_due_ms; /* of the baton that has come since the last claim (0:
                                    none, or it was given back), and of the one for which
                                    the claim under way is made */
    hf_reading reading;          /* of its clock, to be shown; "": no lease runs there */
    bool schedules_put;          /* Redis knows those of the file (schedules.c) */
    uint64_t kept_ns;            /* when it was last told that the file names them */
    unsigned puts;               /* requests for them under way, */
    hf_err puts_err;             /* and why one of them failed; HF_OK: none has */
    bool reckoning;              /* a request about ticks is under way, */
    bool reckon_again;           /* and others became due meanwhile */
    uint64_t hold_until_ns;      /* nothing is asked of it; 0: it may be */
    uint32_t backoff_ms;         /* the last one; 0: it was answered since */
    hf_err refused;              /* why, as it was logged last */
    uint32_t moves;              /* nodes that did not have it, in a row */
    uint64_t forgive_until_ns;   /* since it moved: no crash is counted */
};

/* Of one member. */
typedef struct hf_shard_limits {
    uint32_t max_running, rate_limit;
    int64_t rate_per_ms;
} hf_shard_limits;

HF_MUSTCHECK hf_err hf_queues_open(hf_worker *w);
void hf_queues_close(hf_worker *w);

size_t hf_wholes_count(const hf_worker *w); /* those that are served, in their order */
hf_whole *hf_wholes_at(const hf_worker *w, size_t i);
hf_whole *hf_wholes_find(const hf_worker *w, const char *name); /* a leaving one, too */
const char *hf_whole_name(const hf_whole *whole);
bool hf_whole_is_gone(const hf_whole *whole); /* a reload took it out */
hf_served *hf_whole_add(hf_whole *whole, const hf_queue *queue); /* a slot must be free */

size_t hf_queues_count(const hf_worker *w); /* the members of these, in their order */
hf_served *hf_queues_at(const hf_worker *w, size_t i);

/* Of all slots, also those of queues that are leaving. The slots stay where they are;
 * one at or beyond the count is free. */
size_t hf_queues_slots(const hf_worker *w);
hf_served *hf_queues_slot(const hf_worker *w, size_t slot);

size_t hf_queues_room(hf_worker *w); /* free slots */
/* Takes its settings from the plan: a new one (a slot must be free), one that comes back,
 * or one that is served. */
hf_whole *hf_wholes_put(hf_worker *w, const hf_plan_queue *queue);
void hf_whole_leave(hf_whole *whole);
/* Serves these, in this order, and no others. */
void hf_wholes_order(hf_worker *w, hf_whole *const *list, size_t n);
/* Gives all members their sites. */
HF_MUSTCHECK hf_err hf_queues_place(hf_worker *w);

void hf_queue_on(hf_served *served, hf_queue_event event);
void hf_queue_come_back(hf_served *served); /* it was gone */
/* The fields of a log line that name it. Returns how many. */
size_t hf_queue_fields(const hf_served *served, hf_log_field out[2]);
void hf_queue_hold(hf_served *served, uint32_t ms); /* no request for it for this long */
/* This site refused a request. True: because of this queue; else all queues wait, or
 * another site has it. */
bool hf_queue_refused(hf_served *served, hf_site *site, hf_err err, const char *detail);
/* Another site has its keys by now. */
void hf_queue_move(hf_served *served, hf_site *site);
/* So many jobs of it that were asked for did not come, or did not start: its queue may
 * have others for them. */
void hf_queue_refund(hf_served *served, uint32_t n);

void hf_queues_hold_over(hf_worker *w, uint64_t now_ns);
void hf_queues_doubt(hf_site *site);      /* each of it may have something */
void hf_queues_drop_timers(hf_worker *w); /* their batons are given back */
bool hf_queues_quiet(const hf_worker *w); /* nothing to claim, nothing under way */
/* Each was asked for jobs; but for those of a cluster's node that is away. */
bool hf_queues_looked(const hf_worker *w);
/* Some claim's jobs are not known yet. away_too: also if its Redis is away. */
bool hf_queues_under_way(const hf_worker *w, bool away_too);
uint32_t hf_backoff_longer(uint32_t ms); /* than the last time */

/* -- shards.c -- */
bool hf_queue_is_divided(const hf_served *served); /* its jobs are in its shards */
/* Divides it as the plan says: a part of its registration. */
HF_MUSTCHECK hf_err hf_shards_ask(hf_served *served);
/* A request was refused with HF_SHARDED and these words. False: they make no sense. */
bool hf_shards_learn(hf_served *served, const char *words);
/* It is divided, as a check has told. */
void hf_shards_doubt(hf_served *served);
/* The limits of the plan for this member. */
hf_shard_limits hf_queue_limits(const hf_served *served);

#endif
