/* queues.h - the queues that a worker serves: their settings, their states, their slots.
 *
 * A queue of the plan is a whole, with a name, a weight and limits. Its members are what
 * the worker claims from: each has keys with a prefix of its own, a state, a slot and a
 * site. The first member has the queue's own keys; the others are its shards (shards.h).
 *
 * The worker backs off from a queue when Redis refuses a request because of that queue (a
 * key of another type, no permission for its keys) or no node of a cluster has it, longer
 * each time until a request is answered; the other queues go on. After an error of Redis
 * itself (it loads, it is full, it is a replica) all queues wait: hf_site_refused().
 *
 * Belongs to the loop, but for `queue`, `slot` and `site` (atomic), which the watchdog's
 * thread reads while a job of the queue is held. */
#ifndef HF_WORKER_QUEUES_QUEUES_H
#define HF_WORKER_QUEUES_QUEUES_H

#include "worker/node/site.h"
#include "worker/queues/claim_state.h"

/* A queue of the plan. It lives as long as its first member. */
struct hf_whole {
    hf_served *members; /* by next_member */
    size_t n_members;   /* including those that are leaving */
    size_t index;       /* its place among the served queues */
    uint32_t weight;
    hf_worker_queue limits; /* without its texts */
    char on_dead[HF_ID_SIZE];
    bool offered;       /* only programs name it: it is served while one does */
    bool new_limits;    /* Redis did not have them yet: this must be logged */
    double credit;      /* jobs by weight that the others had and it did not; <= 0 */
    hf_served *turn;    /* the member that is claimed next; NULL: none can be */
    uint32_t under_way; /* jobs that the claims of its members ask for */
    bool busy;          /* one of these claims will probably bring jobs */
    hf_queue_counters *counters; /* borrowed; NULL: no memory for them */
    unsigned n_shards;           /* as Redis says; 0: it is not divided */
    uint32_t logged_shards;      /* it was logged that Redis has not as many as these */
    bool unserved;               /* it was logged that they cannot be served */
    bool logged_mix; /* it was logged that it has types of other workers alone */
};

/* A member of a queue that is served, and what is known of it. */
struct hf_served {
    hf_worker *worker;
    hf_whole *whole;
    hf_served *next_member;
    hf_whole own;            /* of a first member: its whole */
    unsigned shard;          /* of another one: which shard it is, from 0 */
    _Atomic(hf_site *) site; /* where its keys are */
    unsigned key_slot;       /* of its keys, in a cluster */
    hf_bundle *bundle;       /* the queues that it shares requests with */
    hf_queue queue;
    char born[24]; /* no queue of its name at another Redis has it; of hf_op_present() */
    hf_claim_state state;
    unsigned paused; /* by this many: hf_queue_pause() */
    hf_debt debt;
    size_t slot;       /* its place in memory, and its group with the watchdog */
    size_t runs;       /* jobs that are held */
    unsigned requests; /* looks, checks and registrations under way that name it */
    uint64_t no_crash_until_ns; /* since it moved: no crash is counted */

    struct {
        hf_site *site;     /* that was asked for jobs, or about a lost claim */
        uint32_t asked;    /* jobs that the claim under way asks for */
        uint64_t sent_ns;  /* when that claim was sent */
        uint64_t number;   /* of the last claim */
        int64_t not_after; /* of the last claim */
        int64_t due_ms; /* the time of the baton that led to the claim under way; or 0 */
        uint64_t lost_ns;     /* IN_DOUBT: since when */
        uint64_t alive_at_ns; /* when a claim says next that this worker lives */
        bool was_answered;    /* a claim was answered at least once */
        double credit;        /* jobs that the other members had and it did not; <= 0 */
    } claim;

    struct {
        int64_t timer_ms; /* the owned baton's time on Redis's clock; 0: none */
        int64_t due_ms;   /* the time of the baton that came after the last claim; 0: none
                             came, or it was given back */
        hf_reading reading; /* of its clock, to be sent; "": no lease runs there */
    } wake;

    struct {
        bool done;          /* Redis has it, its limits, and its settings for deaths */
        bool present;       /* Redis knows that this worker serves it */
        bool schedules_put; /* Redis knows the schedules of the file (schedules.c) */
        uint64_t kept_ns;   /* when Redis last heard that the file names them */
        unsigned puts;      /* requests about them that are under way */
        hf_err puts_err;    /* why one of these requests failed; HF_OK: none did */
        bool reckoning;     /* a request about ticks is under way */
        bool reckon_again;  /* more ticks became due meanwhile */
    } registration;

    struct {
        uint64_t until_ns;        /* no request before this time; 0: no backoff */
        uint32_t ms;              /* the last backoff; 0: a request was answered since */
        hf_err refused;           /* the reason that was logged last */
        hf_node_backoff of_nodes; /* nodes did not have it */
    } backoff;
};

struct hf_queues {
    hf_served *slots; /* of queues, HF_SLOTS_MAX; they stay where they are */
    size_t n_slots;   /* the slots behind them were never used */
    hf_whole *wholes[HF_QUEUES_MAX]; /* the queues that are served, in their order */
    size_t n_wholes;
    hf_served *served[HF_SLOTS_MAX]; /* and their members */
    size_t n_served;
    uint64_t first_number; /* the highest of a claim of a queue that has left */
    hf_bundle *bundles;    /* owned; one, or in a cluster one for each slot. NULL: the
                              worker has never run */
    size_t n_bundles;
    uv_timer_cb on_look; /* of the bundles' timers */
};

/* ---- one queue ---- */

bool hf_queue_is(const hf_served *served, unsigned traits); /* one of them at least */
/* Sets the next state and keeps the books (claim_state.h). The next turn acts on it. */
void hf_queue_apply(hf_served *served, hf_queue_event event);
void hf_queue_debt(hf_served *served, hf_debt_event event);

/* The fields of a log line that name it. Returns how many. */
size_t hf_queue_fields(const hf_served *served, hf_log_field out[2]);
bool hf_queue_is_divided(const hf_served *served);    /* its jobs are in its shards */
bool hf_queue_is_waited_for(const hf_served *served); /* by the blocking call */

/* It is not claimed, and its batons are left to other workers, until each that has paused
 * it has unpaused it. */
void hf_queue_pause(hf_served *served);
void hf_queue_unpause(hf_served *served);
void hf_queue_back_off(hf_served *served,
                       uint32_t ms);           /* no request for it for this long */
uint32_t hf_queue_backoff_longer(uint32_t ms); /* than the last time */
/* This site refused a request with `err`. True: the queue backs off, because of itself or
 * because no node serves it. False: the queue does not back off. The whole site pauses,
 * or after a first MOVED the queue goes to its new node at once.
 */
bool hf_queue_refused(hf_served *served, hf_site *site, hf_err err,
                      const hf_answer *answer);
/* A request that tells Redis of the queue was answered. What could not be written is
 * written after the next check or reconnect; at once, if Redis only did not know the
 * script. */
void hf_queue_registered(hf_served *served, hf_site *asked, hf_err err,
                         const char *detail);
/* A check has told that Redis does not know this worker of the queue, as after FLUSHALL:
 * what the file says is written again. */
void hf_queue_forgotten(hf_served *served);
/* A check has told that the queue is divided. */
void hf_queue_recheck(hf_served *served);

/* n requested jobs of it did not come, or did not start: refunds their cost. */
void hf_queue_refund(hf_served *served, uint32_t n);

/* ---- all of them ---- */

HF_MUSTCHECK hf_err hf_queues_open(hf_worker *w);
void hf_queues_close(hf_worker *w);

size_t hf_queues_count(const hf_worker *w); /* the members that are served, in order */
hf_served *hf_queues_at(const hf_worker *w, size_t i);

/* The number of all slots, also those of queues that are leaving. The slots stay where
 * they are; one at or beyond the count is free. */
size_t hf_queues_slots(const hf_worker *w);
hf_served *hf_queues_slot(const hf_worker *w, size_t slot);
size_t hf_queues_room(hf_worker *w);                                 /* free slots */
hf_served *hf_queues_take_slot(hf_worker *w, const hf_queue *queue); /* one is free */

/* Gives all members their sites. */
HF_MUSTCHECK hf_err hf_queues_place(hf_worker *w);
/* Another site has its keys by now: what is known by the old one's clock is forgotten,
 * and running jobs renew their leases at the new one. */
void hf_queue_move(hf_served *served, hf_site *site);
void hf_queue_come_back(hf_served *served); /* it was gone */

void hf_queues_hold_over(hf_worker *w, uint64_t now_ns);
void hf_queues_recheck(hf_site *site);    /* each of its queues may have jobs */
void hf_queues_drop_timers(hf_worker *w); /* the caller gives their batons back */
bool hf_queues_quiet(const hf_worker *w); /* none is EAGER or BUSY (claim_state.h) */
/* Each was asked for jobs; but for those of a cluster's node that is away. */
bool hf_queues_all_claimed(const hf_worker *w);
/* Some claim's jobs are not known yet. away_too: also if its Redis is away. */
bool hf_queues_under_way(const hf_worker *w, bool away_too);

/* ---- the queues of the plan ---- */

size_t hf_queues_wholes(const hf_worker *w); /* those that are served, in their order */
hf_whole *hf_queues_whole(const hf_worker *w, size_t i);
hf_whole *hf_queues_find(const hf_worker *w, const char *name); /* a leaving one, too */
const char *hf_queue_whole_name(const hf_whole *whole);
bool hf_queue_whole_is_gone(const hf_whole *whole); /* a reload took it out */

/* Takes its settings from the plan: a new one (a slot must be free), one that comes back,
 * or one that is served. */
hf_whole *hf_queues_put(hf_worker *w, const hf_plan_queue *queue);
hf_served *hf_queue_add_member(hf_whole *whole,
                               const hf_queue *queue); /* a slot must be free */
void hf_queue_whole_leave(hf_whole *whole);
/* Serves these, in this order, and no others. */
void hf_queues_order(hf_worker *w, hf_whole *const *list, size_t n);

/* ---- those of a bundle (bundle.h) ---- */

bool hf_queues_quiet_in(const hf_bundle *b); /* none is EAGER or BUSY */
/* It has the own keys of a queue that is divided: there are no jobs. */
bool hf_queues_only_shards_in(const hf_bundle *b);
void hf_queues_recheck_in(hf_bundle *b); /* each of its queues may have something */
/* A node of a cluster says that it does not have this queue, or not now. */
void hf_queues_unserved_in(hf_bundle *b, hf_site *site, hf_err err,
                           const hf_answer *answer);

/* A reload, or an answer about shards, has changed the queues that are served. */
void hf_queues_changed(hf_worker *w, bool some_left);

#endif
