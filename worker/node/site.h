/* site.h - one Redis, as a worker uses it: the connections, and what is known of it
 * alone.
 *
 * Each queue that is served has a site, where its keys are. What is said of "Redis" in
 * the other headers is said of the site of a queue. Belongs to the loop. */
#ifndef HF_WORKER_NODE_SITE_H
#define HF_WORKER_NODE_SITE_H

#include "worker/worker.h"

struct hf_site {
    hf_node base; /* its client is for claims, verdicts and checks */
    hf_worker *worker;
    uv_timer_t pause_timer;
    _Atomic uint64_t unwatched_ns; /* since then the watchdog has no connection to it; 0:
                                      it has one, or has not tried yet. Written by the
                                      watchdog's thread */

    bool claimable;             /* by the claims of this turn */
    bool claimed;               /* the queue in question has a claim under way here */
    uint64_t no_crash_until_ns; /* after a reconnect, no crash is counted */
    uint64_t life;              /* when it was connected last; 0: never */
    unsigned lacks_logged;      /* commands that it does not permit: it was logged */
    bool register_due;          /* some of its queues are not registered there */
    hf_err refused;             /* why it said "not now", as it was logged last */
    hf_outage outage;           /* of the connection for claims and verdicts */
    hf_outage unguarded;        /* too few replicas have confirmed */
    _Atomic int64_t stepped_ms; /* its clock was set by this much: to be logged */

    struct { /* the watchdog's connection: leases.c */
        hf_outage outage;
        uint64_t late_logged_ns; /* 0: never */
        /* under note_lock: its events, for the loop to log */
        hf_err err; /* the last failure; HF_OK: none */
        bool is_back;
        char detail[HF_DETAIL_SIZE];
        hf_err confirm_err; /* a renewal was not confirmed by replicas; HF_OK: none */
        char confirm_detail[HF_DETAIL_SIZE];
        bool unserved;    /* a renewal was refused: another node may have the queue */
        bool late;        /* a lease had less than kill_grace left when it was renewed, */
        uint64_t left_ns; /* and this is what it had */
    } watch;
};

/* What a site tells the parts that use it. Called from the loop's thread, never when the
 * worker has ended. */
struct hf_site_hooks {
    /* It is connected to a Redis that may be used, for the first time or again. */
    void (*on_up)(hf_site *site);
    /* Its connection was lost: the next one may show other data. */
    void (*on_other_data)(hf_site *site);
    /* Its clock was set back. */
    void (*on_clock_back)(hf_site *site);
    /* This Redis cannot be used, and the worker has not started: it ends. */
    void (*on_unusable)(hf_worker *w, hf_err err, const char *detail);
    /* On the watchdog's thread: its connection came or went, or could not be made. */
    void (*on_watch)(hf_site *site, hf_err err, const char *detail);
    /* Whether a queue, or the registry, is there. */
    bool (*is_needed)(const hf_worker *w, const hf_site *site);
};

bool hf_site_ready(const hf_site *site);   /* it is connected */
bool hf_site_can_ask(const hf_site *site); /* a request can be made now */
/* The watchdog can renew there. If it could not for half a lease, that is more than a
 * reconnect. */
bool hf_site_watched(const hf_site *site);
bool hf_site_serves(const hf_site *site); /* its jobs may be claimed */
/* Of its connection for claims and verdicts: a part of hf_nodes_hooks. */
void hf_site_on_event(hf_node *base, hf_err err, const char *detail);

/* It said "not now": verdicts and claims wait. */
void hf_site_pause(hf_site *site, hf_err err);
/* It refused a claim or a check. Without permission from the start on the worker ends. */
void hf_site_refused(hf_site *site, hf_err err, const char *detail);
/* This worker was away, or Redis was, but not the holders of jobs: no crash is counted
 * for a while. */
void hf_site_count_no_crash(hf_site *site);
/* It is used from now on: logs whether it is another one than before, and if it may be,
 * has the leases verified. */
void hf_site_note_life(hf_site *site);
/* Logs the commands that it does not permit, each once. */
void hf_site_report_lacks(hf_site *site);

/* True: a node of a cluster has answered with these words that it does not have a slot,
 * or not now. Nothing happened there, and the queues look for their sites again. */
bool hf_site_unserved(hf_site *site, hf_err err, const char *detail);

/* ---- its clock ---- */

/* An answer says now_ms. Any thread. True: the clock was set, leases are verified, and
 * the loop's thread has to call the second one, which tells the other parts. The third
 * one does both. */
bool hf_site_clock_sample(hf_site *site, int64_t now_ms, uint64_t sent_ns);
void hf_site_clock_tell(hf_site *site);
void hf_site_clock_read(hf_site *site, int64_t now_ms, uint64_t sent_ns);

/* The latest time at which a request may be executed, on the clock of this Redis; 0: not
 * known yet. Any thread. */
int64_t hf_site_not_after(const hf_site *site);

/* Whether it has come to this time. The alarm of a worker is set by the same estimate. */
bool hf_site_time_has_come(const hf_site *site, int64_t at_ms);

/* ---- its replicas: with wait_replicas an answer counts only when they have it ---- */

/* Asks whether they have what the connection for claims and verdicts has just answered;
 * `cb` is called once. The leases do the same on the watchdog's thread. */
void hf_site_confirm(hf_site *site, hf_confirm *confirm,
                     void (*cb)(void *arg, hf_err err, const char *detail), void *arg);
/* Logs how it ended: once for each reason and each minute, and again when replicas
 * confirm. */
void hf_site_confirm_report(hf_site *site, hf_err err, const char *detail);

#endif
