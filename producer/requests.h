/* requests.h - carries batches to Redis, each executed at most once, and tells how it
 * went.
 *
 * Lives on one run loop and is used by its owner only; other threads use the submit
 * queue. The states of a request, also of one without an answer, are at the top of
 * requests.c. */
#ifndef HF_PRODUCER_REQUESTS_H
#define HF_PRODUCER_REQUESTS_H

#include "producer/submit.h"
#include "redis/server.h"

typedef enum hf_requests_stage {
    HF_REQUESTS_RUNS,    /* until the submit queue is closed and all is answered */
    HF_REQUESTS_FORGETS, /* takes away what Redis remembers */
    HF_REQUESTS_CLOSES   /* the client, then its own handles */
} hf_requests_stage;

typedef struct hf_requests {
    hf_submit_queue queue;
    const char *id;        /* the producer's; borrowed */
    hf_run_loop *run;      /* borrowed */
    hf_server *redis;      /* owned */
    hf_client *client;     /* owned, closed at the end; NULL before it is open */
    hf_replicas *replicas; /* owned; NULL: none are wanted, or it is closing */
    uint32_t wait_replicas_ms;
    uv_timer_t timer;
    uint64_t armed_ns; /* when the timer fires; UINT64_MAX: never */
    int handles;       /* the timer and the wake-up of the loop, not closed yet */

    hf_batches flight; /* HF_REQUEST_SENT, HF_REQUEST_SENT_AGAIN; in the order sent */
    size_t in_flight, jobs_in_flight, bytes_in_flight;
    hf_batches doubt;          /* HF_REQUEST_IN_DOUBT; lowest number first */
    size_t n_in_doubt;         /* those, and HF_REQUEST_SENT_AGAIN */
    uint64_t number;           /* the last one given */
    uint64_t next_deadline_ns; /* no later than the first one of `flight` and `doubt` */
    uint64_t longest_ns;       /* the longest deadline of any request so far */
    int64_t remember_ms;       /* 0: without a limit */
    bool unanswered;           /* a request stayed so: Redis keeps remembering */

    bool clock_asked;         /* Redis's time was asked for and not answered yet */
    bool clock_known;         /* since this connection was made */
    char why[HF_DETAIL_SIZE]; /* Redis's words at the last refusal */

    hf_requests_stage stage;
    size_t forgets; /* requests in flight */
    size_t bucket;  /* the target that is forgotten next */
    hf_queue_state *target;
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
