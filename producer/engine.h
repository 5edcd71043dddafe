/* engine.h - carries batches to Redis, each executed at most once, and tells how it went.
 *
 * Lives on one run loop and is used by its owner only; what other threads put in comes
 * through the inbox. See requests.c for what happens to a request whose answer does not
 * come, and engine.c for its life. */
#ifndef HF_PRODUCER_ENGINE_H
#define HF_PRODUCER_ENGINE_H

#include "base/random.h"
#include "producer/inbox.h"

typedef enum hf_engine_stage {
    HF_ENGINE_RUNS,    /* until the inbox is closed and all is answered */
    HF_ENGINE_FORGETS, /* takes away what Redis remembers */
    HF_ENGINE_CLOSES   /* the client, then its own handles */
} hf_engine_stage;

typedef struct hf_engine {
    hf_inbox inbox;
    const char *id;    /* the producer's; borrowed */
    hf_run_loop *run;  /* borrowed */
    hf_client *client; /* owned, closed at the end; NULL before it is open */
    uv_timer_t timer;
    uint64_t armed_ns; /* when the timer shall fire; UINT64_MAX: never */
    int handles;       /* the timer and the wake-up of the loop, not closed yet */

    hf_batches flight; /* sent, and the client has not answered; in the order sent */
    size_t in_flight, jobs_in_flight, bytes_in_flight;
    hf_batches doubt;          /* no answer came; to be sent again, lowest number first */
    size_t doubted;            /* those in `doubt`, and those of them in flight again */
    uint64_t number;           /* the last one given */
    uint64_t next_deadline_ns; /* no later than the first one of `flight` and `doubt` */
    uint64_t longest_ns;       /* the longest deadline of any request so far */
    int64_t remember_ms;       /* 0: as long as it takes */
    bool tainted; /* something stayed unanswered: Redis goes on remembering */

    bool clock_asked; /* Redis's time was asked for and not answered yet */
    int64_t clock_ms; /* Redis's time when ours was clock_ns; 0: not known */
    uint64_t clock_ns;

    uint64_t paused_ns; /* when the last pause began */
    uint64_t pause_until_ns;
    uint32_t refusals; /* pauses in a row */
    hf_rng rng;
    char why[HF_DETAIL_SIZE]; /* Redis's words at the last refusal */

    char run_id[48]; /* of the server, and how many there were */
    uint64_t server_lives;

    hf_engine_stage stage;
    size_t forgets; /* requests in flight */
    size_t bucket;  /* the lane that is forgotten next */
    hf_lane *lane;
    void (*on_end)(void *arg); /* the last thing that is called on the loop */
    void *arg;
} hf_engine;

/* What the run loop calls; the argument is the engine. */
extern const hf_run_hooks hf_engine_hooks;

/* Starts to connect. `opts` were checked and have their defaults; run, inbox, id, on_end
 * and arg are set, all else is zero. HF_INVALID, HF_CONFIG, HF_NOMEM, HF_SYSTEM: on_end
 * will not be called. */
HF_MUSTCHECK hf_err hf_engine_start(hf_engine *engine, const hf_producer_opts *opts,
                                    char detail[HF_DETAIL_SIZE]);

/* Sends what may be sent now, and sets the timer for the rest. */
void hf_requests_pump(hf_engine *engine);

/* ---- the parts of the engine, for each other ---- */

/* outcomes.c. `end` is for a batch that is in no list: tells its jobs, unless they have
 * been told, and frees it. `unsent`: the same for one that was never sent, in time. */
void hf_outcome_end(hf_engine *engine, hf_batch *batch, hf_err err, const hf_reply *codes,
                    const char *detail);
void hf_outcome_unsent(hf_engine *engine, hf_batch *batch);
/* All that were never sent, with the client's fault. */
void hf_outcome_fail_unsent(hf_engine *engine);
/* All whose deadline has come. */
void hf_outcome_expire(hf_engine *engine, uint64_t now_ns);
void hf_outcome_on_answer(const hf_answer *answer, void *batch);

#endif
