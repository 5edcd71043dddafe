/* offer.h - what the processes of a pool offer, as handlers of the worker: each type that
 * they have named, with its options. */
#ifndef HF_WORKER_POOL_OFFER_H
#define HF_WORKER_POOL_OFFER_H

#include "worker/handler.h"
#include "worker/pool/ready.h"
#include "worker/pool_spec.h"
#include "worker/worker.h"

/* All zeros at first. */
typedef struct hf_offer {
    hf_ready *ready; /* owned; NULL: none was made */
    hf_handler *
        *handlers; /* owned, with a reference to each; in the worker's table, too */
    size_t n;
} hf_offer;

/* Replaces the offer, and the worker's handlers for it. It owns `ready` in any case.
 * HF_INVALID with a sentence: a type has another handler, or there are too many.
 * HF_NOMEM. Nothing has changed then. */
HF_MUSTCHECK hf_err hf_offer_take(hf_offer *offer, hf_worker *w, const hf_pool_spec *spec,
                                  struct hf_supervisor *pool, hf_ready *ready,
                                  char detail[HF_DETAIL_SIZE]);
/* Logs what the program names and this worker does not do: the operator has to. */
void hf_offer_report(const hf_offer *offer, hf_worker *w, const char *pool);
/* The same offer by another spec: its `types` may have changed. */
void hf_offer_renew(hf_offer *offer, hf_worker *w, const hf_pool_spec *spec,
                    struct hf_supervisor *pool);
/* The worker has its types no more; the runs that it has keep their handlers. */
void hf_offer_drop(hf_offer *offer, hf_worker *w);
void hf_offer_free(
    hf_offer *offer); /* when the worker is gone, or hf_offer_drop() was called */

#endif
