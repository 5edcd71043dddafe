/* plan.h - what a worker is to do, checked and copied: its options with the defaults
 * filled in, its queues, its programs. Made for a new worker, and for each reload. */
#ifndef HF_WORKER_PLAN_H
#define HF_WORKER_PLAN_H

#include "holdfast/worker.h"
#include "queue/ops.h"
#include "worker/handlers.h"

typedef struct hf_plan_queue {
    hf_queue queue;
    hf_worker_queue settings; /* its weight is not 0; its name is that of `queue` */
} hf_plan_queue;

typedef struct hf_plan {
    hf_worker_opts opts; /* without text and queues; kill_grace_ms as it was asked for */
    hf_server_opts server; /* with its defaults; its text is owned */
    char *minder;          /* owned; NULL as in the options */
    char ns[HF_ID_SIZE];
    size_t n_queues;
    hf_plan_queue queues[HF_QUEUES_MAX];
    size_t n_programs;
    hf_handler **programs; /* owned, with a reference to each */
} hf_plan;

enum { HF_KILL_GRACE_MS = 1000 }; /* when no other was asked for */

/* HF_INVALID, HF_NOMEM: *out is untouched, and `detail` (may be NULL) says
 * why. The caller owns *out and ends it with hf_plan_free(). */
HF_MUSTCHECK hf_err hf_plan_new(hf_plan **out, const hf_worker_opts *opts,
                                const hf_program *programs, size_t n,
                                char detail[HF_DETAIL_SIZE]);
void hf_plan_free(hf_plan *plan); /* NULL is fine */

const hf_plan_queue *hf_plan_find(const hf_plan *plan, const char *queue); /* or NULL */

/* HF_INVALID with a sentence; `detail` and `found` may be NULL. */
hf_err hf_plan_refuse(char detail[HF_DETAIL_SIZE], const char *what, const char *found);

#endif
