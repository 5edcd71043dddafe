/* plan.h - the plan of a worker, checked and copied: its options with the defaults filled
 * in, its queues, its handlers, its pools. Made for a new worker, and for each reload.
 * Belongs to the worker's loop; before that runs, to the thread that made the worker. */
#ifndef HF_WORKER_PLAN_H
#define HF_WORKER_PLAN_H

#include "base/backoff.h"
#include "base/buf.h"
#include "holdfast/job.h"
#include "holdfast/worker.h"
#include "queue/ops.h"
#include "worker/handler.h"
#include "worker/pool_spec.h"

enum { HF_SCHEDULES_MAX = 1000 }; /* of the options of one worker */

typedef struct hf_plan_queue {
    hf_queue queue;
    hf_worker_queue settings; /* without text; its weight is not 0 */
    char on_dead[HF_ID_SIZE]; /* "" : none; not in `settings` */
    bool offered;             /* only the program of a pool names it (worker/offered.h) */
} hf_plan_queue;
/* With the defaults filled in. HF_INVALID with a sentence. */
HF_MUSTCHECK hf_err hf_plan_queue_of(hf_plan_queue *out, const char *ns,
                                     const hf_worker_queue *queue,
                                     char detail[HF_DETAIL_SIZE]);

/* A schedule of the options, as Redis keeps it. */
typedef struct hf_plan_schedule {
    char id[HF_ID_SIZE], queue[HF_ID_SIZE];
    hf_buf value;
    int64_t rev;
} hf_plan_schedule;
/* The caller owns what is in *out, also after an error. HF_NOMEM, HF_TOOBIG. */
HF_MUSTCHECK hf_err hf_plan_schedule_of(hf_plan_schedule *out,
                                        const hf_schedule *schedule);
void hf_plan_schedules_free(hf_plan_schedule *list, size_t n);

typedef struct hf_plan {
    hf_worker_opts opts; /* without text and queues; kill_grace_ms as it was asked for */
    hf_server_opts server; /* with its defaults; its text is owned */
    char *minder;          /* owned; NULL as in the options */
    hf_tracer tracer;      /* no on_span: none; a reload keeps the old one */
    char ns[HF_ID_SIZE];
    size_t n_queues;
    hf_plan_queue queues[HF_QUEUES_MAX];
    size_t n_programs;
    hf_handler **programs; /* owned, with a reference to each */
    size_t n_pools;
    hf_pool_spec **pools; /* owned, with a reference to each */
    size_t n_schedules;
    hf_plan_schedule *schedules; /* owned */
} hf_plan;

enum { HF_KILL_GRACE_MS = 1000 }; /* when no other was asked for */

/* HF_INVALID, HF_NOMEM: *out is untouched, and `detail` (may be NULL) says
 * why. The caller owns *out and ends it with hf_plan_free(). */
HF_MUSTCHECK hf_err hf_plan_new(hf_plan **out, const hf_worker_opts *opts,
                                const hf_program *programs, size_t n_programs,
                                const hf_pool *pools, size_t n_pools,
                                char detail[HF_DETAIL_SIZE]);
void hf_plan_free(hf_plan *plan); /* NULL is fine */

const hf_plan_queue *hf_plan_find(const hf_plan *plan, const char *queue); /* or NULL */

/* HF_INVALID with a sentence: these limits cannot be divided among n shards. */
HF_MUSTCHECK hf_err hf_plan_shards_fit(const hf_worker_queue *limits, unsigned n,
                                       char detail[HF_DETAIL_SIZE]);

hf_backoff hf_plan_backoff(const hf_worker_opts *opts);

#endif
