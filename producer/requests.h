/* requests.h - carries batches to Redis, each executed at most once, and tells how it
 * went.
 *
 * Lives on one run loop and is used by its owner only; other threads use the submit
 * queue. The states of a request, also of one without an answer, are at the top of
 * requests.c. */
#ifndef HF_PRODUCER_REQUESTS_H
#define HF_PRODUCER_REQUESTS_H

#include "producer/nodes.h"

typedef enum hf_requests_stage {
    HF_REQUESTS_RUNS,    /* until the submit queue is closed and all is answered */
    HF_REQUESTS_FORGETS, /* takes away what Redis remembers */
    HF_REQUESTS_CLOSES   /* the client, then its own handles */
} hf_requests_stage;

typedef struct hf_requests {
    hf_submit_queue queue;
    const char *id;   /* the producer's; borrowed */
    hf_run_loop *run; /* borrowed */
    hf_producer_nodes nodes;
    uint32_t wait_replicas, wait_replicas_ms;
    uv_timer_t timer;
    uint64_t armed_ns; /* when the timer fires; UINT64_MAX: never */
    int handles;       /* the timer and the wake-up of the loop, not closed yet */

    uint64_t turns;            /* requests that were sent */
    uint64_t next_deadline_ns; /* no later than the first one in flight or in doubt */
    uint64_t longest_ns;       /* the longest deadline of any request so far */
    int64_t remember_ms;       /* 0: without a limit */
    bool unanswered;           /* a request stayed so: Redis keeps remembering */

    char why[HF_DETAIL_SIZE]; /* Redis's words at the last refusal */

    uint64_t register_until_ns; /* the end waits so long for the registry; 0: not yet */

    hf_requests_stage stage;
    size_t forgets; /* requests in flight */
    size_t bucket;  /* the target that is forgotten next */
    hf_target *target;
    void (*on_end)(void *arg); /* the last thing that is called on the loop */
    void *arg;
} hf_requests;

/* The hooks of the run loop; the argument is the hf_requests. */
extern const hf_run_hooks hf_requests_hooks;

/* Starts to connect. `opts` were checked and have their defaults; run, queue, id, on_end
 * and arg are set, all else is zero. HF_INVALID, HF_CONFIG, HF_NOMEM, HF_SYSTEM: on_end
 * will not be called. */
HF_MUSTCHECK hf_err hf_requests_start(hf_requests *requests, const hf_producer_opts *opts,
                                      char detail[HF_DETAIL_SIZE]);

#endif
