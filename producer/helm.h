/* helm.h - which thread uses the engine of a producer that has a thread of its own.
 *
 * Waking a thread takes about as long as a whole request to Redis. So a call that waits
 * does not hand its jobs to another thread: it sends them itself, and reads the answer
 * itself. What is shared is handed over, never used by two at a time:
 *
 *   the helm     the right to use the engine, its client and its loop. Whoever is at it
 *                does not sleep, and before leaving it does what others have come to want
 *                meanwhile, so no call waits for the helm.
 *   the lookout  the one thread that sleeps until something comes from Redis, or until
 *                the loop's next timer, and then runs a turn of the loop.
 *   the keeper   the producer's own thread. It looks out while no call waits, and while a
 *                callback is owed: only the keeper runs callbacks.
 *
 * The lookout reads the answers of all. When it has its own it leaves, and the call that
 * has waited longest becomes the lookout: it had to be woken anyway.
 *
 * Invariants, whenever the inbox's lock is free:
 *   H1  what is wanted of the engine is wanted of somebody: of who is at the helm, or of
 *       the keeper, which was called, or looks once more before it sleeps.
 *   H2  while a call waits, somebody is at the helm, or looks out, or was told to, or the
 *       keeper was called.
 *   H3  a call that was told is woken by who told it, before that thread sleeps.
 *   H4  whoever is at the helm and is not the keeper has no batch with a callback in
 *       flight, and takes none.
 *   H5  the lookout gives that up itself; only the keeper's is taken by a call. So a call
 *       never sleeps at the loop while another thread reads its answer. */
#ifndef HF_PRODUCER_HELM_H
#define HF_PRODUCER_HELM_H

#include "base/spin.h"
#include "producer/engine.h"

/* Guarded by the inbox's lock. */
typedef struct hf_helm {
    hf_engine *engine; /* borrowed */
    bool taken;
    unsigned wanted;    /* of the engine */
    hf_waiter *lookout; /* NULL: nobody */
    uint64_t until_ns;  /* until when it sleeps at most; 0: it is awake */
    uint64_t due_ns;    /* when the loop's next timer is due; UINT64_MAX: never */
    uint64_t used_ns;   /* when a call looked out last */
    bool over;          /* nothing is left on the loop */
    hf_spin spin;       /* of calls that look out */

    hf_waiter keeper; /* never told anything */
    int bell;         /* owned: an eventfd that wakes the keeper when it polls */
    bool rung;
    bool keeper_polls;  /* also when it is not the lookout any more */
    bool keeper_sleeps; /* on its word */
} hf_helm;

/* HF_SYSTEM: the system refused. */
HF_MUSTCHECK hf_err hf_helm_init(hf_helm *helm, hf_engine *engine);
void hf_helm_done(hf_helm *helm); /* also of one that is all zero */

/* What the producer's own thread does until the engine has come to its end. */
void hf_helm_keep(hf_helm *helm);

/* Something has come that is the keeper's: a callback is owed, or the inbox was closed.
 */
void hf_helm_call(hf_helm *helm);

/* Waits until every part of the waiter was told, and takes part in the work meanwhile.
 * `ready`: what it has put in can perhaps be sent. False: not until then; the last part
 * frees the waiter. */
HF_MUSTCHECK bool hf_helm_await(hf_helm *helm, hf_waiter *waiter, bool ready,
                                uint64_t until_ns);

#endif
