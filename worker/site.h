/* site.h - one Redis, as a worker uses it: the connections, and what is known of it
 * alone.
 *
 * Each queue that is served has a site, where its keys are. What is said of "Redis" in
 * the other headers is said of the site of a queue. Belongs to the loop. */
#ifndef HF_WORKER_SITE_H
#define HF_WORKER_SITE_H

#include "worker/shared.h"

struct hf_site {
    hf_worker *worker;
    hf_site *next;                 /* among those that are being closed */
    bool timer_closed;             /* then */
    hf_server *redis;              /* owned */
    hf_client *client;             /* claims, verdicts and checks; owned */
    hf_replicas *replicas;         /* owned; NULL: none are waited for */
    struct hf_site_leases *leases; /* the watchdog's connection (leases.c); owned */
    uv_timer_t pause_timer;

    bool claimable;             /* by the claims of this turn */
    bool claimed;               /* the queue in question has a claim under way here */
    uint64_t forgive_until_ns;  /* after a reconnect, no crash is counted */
    uint64_t life;              /* when it was connected last; 0: never */
    unsigned lacks_logged;      /* commands that it does not permit: it was logged */
    hf_err refused;             /* why it said "not now", as it was logged last */
    hf_outage outage;           /* of the connection for claims and verdicts */
    hf_outage unguarded;        /* too few replicas have confirmed */
    _Atomic int64_t stepped_ms; /* its clock was set by so much: to be logged */
};

/* -- sites.c: it comes and goes -- */
bool hf_site_ready(const hf_site *site);   /* it is connected */
bool hf_site_can_ask(const hf_site *site); /* a request can be made now */
bool hf_site_serves(const hf_site *site);  /* its jobs may be claimed */
HF_MUSTCHECK hf_err hf_site_connect(hf_site *site, char detail[HF_DETAIL_SIZE]);
void hf_site_disconnect(hf_site *site);
/* It said "not now": verdicts and claims wait. */
void hf_site_pause(hf_site *site, hf_err err);
/* It refused a claim or a check. Without permission from the start on the worker ends. */
void hf_site_refused(hf_site *site, hf_err err, const char *detail);
/* This worker was away, or Redis was, but not the holders of jobs: no crash is counted
 * for a while. */
void hf_site_forgive(hf_site *site);
/* Tells it of its queues and limits that it does not know of. */
void hf_site_register(hf_site *site);
/* One of these requests was answered. */
void hf_site_registered(hf_served *served, hf_err err, const char *detail);
void hf_site_learn_time(hf_site *site);   /* of the registry, if it is not known */
void hf_site_report_lacks(hf_site *site); /* commands that it does not permit */

/* -- route.c: which site a queue has -- */
HF_MUSTCHECK hf_err hf_sites_open(hf_worker *w);
HF_MUSTCHECK hf_err hf_sites_connect(hf_worker *w);
void hf_sites_close(hf_worker *w); /* what is on the loop */
void hf_sites_free(hf_worker *w);
/* Of a queue whose keys are in this slot. */
hf_site *hf_sites_find(hf_worker *w, unsigned key_slot);
/* The node has answered that it does not have a slot, or not now: nothing happened. */
void hf_site_unserved(hf_site *site, hf_err err, const char *detail);
/* Moves queues to other sites, and closes sites that none needs. */
void hf_sites_turn(hf_worker *w);
bool hf_sites_ready(const hf_worker *w); /* any of them is connected */

#endif
