/* gather.h - reads the facts for wrong.h from Redis, by many short scripts. */
#ifndef HF_SEEN_GATHER_H
#define HF_SEEN_GATHER_H

#include "seen/facts.h"

typedef struct hf_gather_opts {
    hf_admin *admin;
    hf_lock_client *locks; /* with a thread of its own; NULL: locks are not looked at */
    uint32_t locks_ms;     /* look for locks no longer than this */
    bool locks_kept;       /* with `before`: of locks that it has nothing is asked, and no
                              new search begins; one that is not at its end goes on */
    /* Facts of an earlier time, of the same Redis: of a queue whose counters have not
     * changed since, deaths and history are not read again, and the reasons of its oldest
     * job only after 30 s. NULL: there are none. */
    const hf_facts *before;
    size_t deaths;     /* look at no more than about so many in all; 0: at 1,000 of
                          each queue */
    size_t pasts;      /* read the histories of no more than so many queues; 0: of all */
    uint32_t audit_ms; /* check the data for this long, at most 2,000 jobs of a queue;
                          0: not at all */
    /* Called before each queue is asked, up to three times for each; a caller that reads
     * again and again takes its time there. False: stop. NULL: ask all at once. */
    bool (*between)(void *arg);
    void *arg;
} hf_gather_opts;

/* Sets now_ms and the lists of *facts; its other members are the caller's. A Redis that
 * fails is a fact: what was read before stays. The caller ends *facts with
 * hf_facts_done(), also after an error: HF_NOMEM. */
HF_MUSTCHECK hf_err hf_facts_gather(const hf_gather_opts *opts, hf_facts *facts);

/* The same of a Redis that could not even be reached; since_ms by this host's clock. */
HF_MUSTCHECK hf_err hf_facts_away(hf_facts *facts, hf_err err, const char *detail,
                                  int64_t since_ms);

/* NULL: it is not among them. */
hf_facts_queue *hf_facts_find(const hf_facts *facts, const char *queue);

void hf_facts_done(hf_facts *facts);

#endif
