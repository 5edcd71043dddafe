/* core.h - what the worker's files share: the worker, a queue that it serves, a job it
 * holds.
 *
 * One thread at a time, the one that turns the loop (lead.h), owns all of this. Other
 * threads touch only what says so: handlers run on the pool's threads, lease events come
 * on the watchdog's, stop and quiet from anywhere.
 *
 * The life of a job that is held (run.c):
 *
 *   claimed -> HELD_BACK (renewed first) -> WAITING -> STARTED -> SETTLING -> freed
 *                                              \______(released)____/    |
 *                                                              its verdict is answered
 */
#ifndef HF_WORKER_CORE_H
#define HF_WORKER_CORE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/backoff.h"
#include "base/machine.h"
#include "base/random.h"
#include "base/remote_clock.h"
#include "holdfast/worker.h"
#include "lock/watchdog.h"
#include "queue/ops.h"
#include "queue/record.h"
#include "worker/handlers.h"
#include "worker/lead.h"
#include "worker/plan.h"
#include "worker/programs.h"
#include "worker/queue_state.h"

enum {
    HF_CLAIM_BATCH = 200, /* jobs asked for at a time */
    HF_AHEAD_MAX = 800,   /* jobs claimed ahead */
    HF_AHEAD_MS = 3,      /* so much work is claimed ahead for each slot */
    HF_AHEAD_KEEP_MS =
        100, /* a job claimed ahead that has not started by then is released */
    HF_SUSPECT_AWAY_MS = 1000, /* a suspect that could not run alone stays away */
    HF_SUSPECT_AWAY_MAX_MS = 3600000,
    HF_STRUCK_MS = 100, /* so long after a signal to a program its own may reach us */
    HF_NO_HANDLER_MS = 10000, /* a job that nobody here takes comes again after this */
    HF_NO_HANDLER_END_MS = 3600000, /* so long after it was due it is dead */
    HF_WAIT_MS = 5000,              /* a blocking call; half a lease if that is shorter */
    HF_NOT_AFTER_MS = 1000,         /* a request is not executed later than that */
    HF_BEAT_MS = 10000,             /* heartbeats, which hold for three */
    HF_ALIVE_MS = 15000, /* a worker counts as alive for its lease and so long beyond */
    HF_START_MS = 5000,  /* how long the start waits for Redis */
    HF_HOST_SIZE = 41,   /* of its name in ids; cut */
    HF_RATE_SIZE = 48,   /* of a rate as text */
    HF_TICK_MS = 50,
    HF_REMIND_MS = 60000 /* of a connection that is still away */
};

typedef enum hf_run_state {
    HF_HELD_BACK,
    HF_WAITING,
    HF_STARTED,
    HF_SETTLING
} hf_run_state;

typedef struct hf_served hf_served;

struct hf_run_list {
    hf_run *head, *tail;
    size_t n;
};

/* One job that is held. */
struct hf_run {
    hf_worker *worker;
    hf_served *served;
    hf_run *next, *prev; /* in one hf_run_list, or the pool's queue */
    hf_lease *lease;
    hf_handler *handler; /* a reference; NULL: nobody here takes it */
    hf_run *shadow_of;   /* whose handler has not returned; NULL: a run of its own */
    hf_record record;
    char fence[24];
    int64_t due_ms;  /* Redis's clock */
    int64_t wait_ms; /* from due to claimed */
    uint64_t claimed_ns, started_ns, ended_ns;
    uint32_t timeout_ms;
    hf_run_state state;
    bool suspect, has_retry_in, resent, lost_told, released;
    bool started;                  /* its program; of a C handler begun_ns says it */
    hf_verdict_op op;              /* SETTLING: what is sent */
    const char *reason;            /* BURY */
    hf_verdict verdict;            /* the handler's */
    int64_t delay_ms;              /* RETRY, RELEASE with an error: from now */
    char *error;                   /* owned, NULL: none */
    _Atomic(hf_process *) process; /* of a program */
    atomic_bool lost, cancelled, timed_out, stopping;
    atomic_bool await_renewal; /* HELD_BACK: not told of yet */
    _Atomic uint64_t begun_ns; /* a C handler was called; 0: it waits for a thread */
    /* under worker->stop_lock */
    void (*stop_fn)(void *arg);
    void *stop_arg;
    /* under worker->note_lock: events of the lease for the loop */
    hf_run *note_next, *note_prev;
    unsigned notes; /* bits: 1 << hf_lease_event */
    char id[];      /* then NUL, then the record */
};

/* A queue that is served, and what is known of it. */
struct hf_served {
    hf_worker *worker;
    hf_queue queue;
    hf_queue_state state;
    hf_debt debt;
    size_t slot;       /* its place in memory, and its group with the watchdog */
    size_t index;      /* its place among those that are served */
    size_t runs;       /* jobs that are held */
    unsigned requests; /* looks, checks and registrations under way that name it */
    uint32_t weight;
    hf_worker_queue limits; /* name is not used */
    double credit;          /* jobs by weight that the others had and it did not; <= 0 */
    bool registered;        /* Redis knows of it and of its limits */
    bool new_limits;        /* and its log has to be told */
    bool looked;            /* a claim was answered */
    uint32_t asked;         /* jobs, of the claim under way */
    uint64_t claim_number, lost_ns; /* IN_DOUBT: since when */
    int64_t claim_not_after;
    int64_t timer_ms;            /* the owned baton's time on Redis's clock; 0: none */
    int64_t due_ms, sent_due_ms; /* of the baton for which the next claim (DUE), and the
                                    one under way, is made */
    int64_t look_ms;        /* when it is looked at once more; Redis's clock, 0: not */
    uint64_t hold_until_ns; /* nothing is asked of it; 0: it may be */
    uint32_t backoff_ms;    /* the last one; 0: it was answered since */
    hf_err refused;         /* why, as it was logged last */
    hf_run_list fresh[4], resent[4]; /* verdicts to send, by operation */
    bool sending[4];                 /* a batch of them is under way */
};

typedef enum hf_phase {
    HF_STARTING,
    HF_SERVING,
    HF_STOPPING,
    HF_ENDING,
    HF_ENDED
} hf_phase;

struct hf_pool;

/* A connection that is away, as the log was told. Zero: it is there. */
typedef struct hf_outage {
    hf_err err;
    uint64_t told_ns;
} hf_outage;

struct hf_worker {
    unsigned magic;
    /* as configured; text owned */
    char *url, *password_file, *minder;
    char ns[HF_ID_SIZE];
    hf_worker_opts opts;
    hf_backoff backoff;
    hf_handler *handlers[HF_TYPES_MAX];
    size_t n_handlers;
    bool has_programs, only_programs;
    hf_served *slots; /* of queues, HF_SLOTS_MAX; they stay where they are */
    size_t n_slots;   /* behind these none is used */
    hf_served *served[HF_QUEUES_MAX]; /* those that are served, in their order */
    size_t n_served;
    uint64_t first_number;        /* no claim of a queue that has left had a higher one */
    uint32_t asked_kill_grace_ms; /* before it was bounded */
    char host[HF_HOST_SIZE];
    char id[HF_WORKER_ID_SIZE];
    hf_rng rng;

    /* while it runs */
    uv_loop_t loop;
    hf_client *client, *wake_client; /* claims and verdicts; the blocking call */
    hf_watchdog *watchdog;
    hf_programs *programs;
    struct hf_pool *pool;
    hf_lead lead;
    uv_async_t async; /* handlers returned, notes, stop and quiet */
    uv_check_t turn;  /* after what came in: verdicts and claims go out */
    uv_timer_t baton_timer, tick, beat, look, phase_timer, retry_timer;
    hf_phase phase;
    bool quiet, ran, shadows_sent;
    hf_err result; /* of hf_worker_run() */
    char detail[HF_DETAIL_SIZE];

    struct {
        pthread_mutex_t
            lock; /* of `redis`; held for a few instructions, nothing inside */
        hf_remote_clock redis;
        _Atomic int64_t stepped_ms; /* it was set by so much: to be told; 0: it was not */
        char machine[HF_MACHINE_SIZE];
    } clock;
    uint64_t forgive_until_ns; /* after a reconnect, no crash is counted */
    bool connected_before;
    char run_id[48], replid[48];

    /* waking up */
    uint32_t unblock_ms;    /* the pause before unblocking is tried again */
    uint64_t unblock_at_ns; /* not before this */
    unsigned lacks_told;    /* commands that it is not permitted: the log was told */
    bool wait_stale;        /* the blocking call names other queues than are served */
    bool waited; /* it has blocked before: a baton may be lost with its connection */
    bool blocked, unblocking, checking, check_gives, give_back, wake_doubt;
    uint64_t check_at_ns, alive_at_ns;
    uint64_t check_again_ns;              /* one more check at this time; 0: none */
    hf_served *waiting_on[HF_QUEUES_MAX]; /* what the blocking call under way names */
    size_t n_waiting_on;
    size_t wait_order;        /* which queue the blocking call names first */
    uint32_t wait_backoff_ms; /* as of a queue, but for the blocking call */
    uint64_t wait_hold_until_ns;
    bool wait_refused, wait_away;         /* told */
    bool cannot_unblock;                  /* no permission */
    hf_served *peeking_at[HF_QUEUES_MAX]; /* the look that is under way */
    size_t n_peeking;
    uint64_t peeked_ns;
    hf_served *checking_at[HF_SLOTS_MAX]; /* the check that is under way */
    size_t n_checking;

    /* what it shows of itself */
    bool beating, beat_again; /* a heartbeat is under way; another one shall follow */
    hf_err beat_refused;      /* why, as it was told last */
    const char *shown;        /* the state that was shown last; NULL: none */
    int64_t started_ms;       /* Redis's clock */
    uint64_t checked_ns;      /* when the last check was sent */
    bool heard;               /* Redis has answered a claim or a check */
    _Atomic uint64_t pulse;
    _Atomic uint32_t running_now;

    /* what is held */
    size_t held; /* all, settling ones as well */
    size_t settling;
    size_t c_out;        /* given to the pool and not returned */
    size_t programs_out; /* programs that run */
    size_t suspects_out; /* suspects among those */
    bool exclusive;      /* a suspect C job runs: nothing is started beside it */
    int spawn_error; /* why no program could be started, as it was told last; 0: none */
    uint64_t spawn_told_ns;
    uint32_t spawn_backoff_ms;    /* the last one; 0: one was started since */
    uint64_t spawn_hold_until_ns; /* no program is started; 0: they are */
    hf_run_list held_back, waiting, started;
    hf_run_list struck; /* programs that a signal of somebody else's has ended */
    double mean_run_ns; /* of what ran, smoothed */
    _Atomic uint64_t
        unwatched_ns;        /* since then the watchdog has no connection; 0: it has */
    uint64_t tick_ns;        /* the last tick; 0: none yet */
    uint64_t pause_until_ns; /* verdicts and claims wait: Redis said "not now" */
    hf_err refused;          /* why it said so, as it was told last */
    hf_outage outage;        /* of the connection for claims and verdicts */
    hf_outage watch_outage;  /* of the watchdog's */

    /* from any thread */
    pthread_mutex_t stop_lock, log_lock; /* a handler's function, and the log, are called
                                            with them: not for the watchdog's thread */
    pthread_mutex_t note_lock;           /* under it nobody waits */
    /* under note_lock: what the loop is to tell of the watchdog's connection */
    hf_err watch_err; /* the last failure; HF_OK: none */
    bool watch_is_back;
    char watch_detail[HF_DETAIL_SIZE];
    pthread_mutex_t plan_lock; /* next_plan; and the handlers, for those who only read */
    hf_plan *next_plan;        /* to be taken by the loop; owned */
    _Atomic uint64_t reloads;  /* plans that were taken, ignored or refused */
    atomic_bool reload_taken;  /* the last one was taken */
    hf_run_list notes;         /* chained by note_next */
    atomic_uint stops, orders; /* calls of stop; of quiet and resume */
    atomic_bool quiet_wanted;  /* by the last of those */
    atomic_bool async_ready;
    unsigned stops_seen, orders_seen;
    size_t unreturned;
};

/* -- lists (run.c) -- */
void hf_run_push(hf_run_list *list, hf_run *run);
void hf_run_push_front(hf_run_list *list, hf_run *run);
void hf_run_remove(hf_run_list *list, hf_run *run);
hf_run *hf_run_pop(hf_run_list *list);

/* -- run.c: the life of a held job -- */
hf_run *hf_run_new(hf_served *served, const hf_claimed_job *job, hf_bytes fence,
                   int64_t now_ms);
void hf_run_choose(hf_run *run); /* its handler, of those that there are now */
void hf_run_free(hf_run *run);   /* its lease was dropped, its process freed */
void hf_run_take(hf_worker *w,
                 hf_run *run); /* claimed: held back, waiting, or settled at once */
void hf_run_settle(hf_worker *w, hf_run *run, hf_verdict_op op);
void hf_run_release(hf_worker *w, hf_run *run); /* back to its old place */
/* Back for later with its text, not counted as an attempt. */
void hf_run_put_back(hf_worker *w, hf_run *run, int64_t delay_ms);
void hf_run_cancel(hf_worker *w, hf_run *run); /* given back, where Redis ends it */
void hf_run_finish(hf_worker *w, hf_run *run); /* the handler has returned */
void hf_run_ask_to_stop(hf_run *run);
void hf_run_set_text(hf_run *run, const char *text, size_t len);
/* To release a job whose C handler has not returned and still uses the run. NULL: no
 * memory */
hf_run *hf_run_shadow(hf_run *run);

/* -- dispatch.c: what starts when -- */
void hf_dispatch(hf_worker *w);
uint32_t hf_dispatch_wanted(const hf_worker *w); /* how many jobs more could be used */
uint32_t hf_dispatch_slots(const hf_worker *w);  /* how many could start at once */
void hf_dispatch_returned(hf_worker *w);         /* C handlers came back */
void hf_dispatch_learn(hf_worker *w, uint64_t total_ns, size_t n); /* n took so long */
void hf_dispatch_tick(hf_worker *w);
void hf_dispatch_release_waiting(hf_worker *w);
void hf_dispatch_ask_all(hf_worker *w); /* what runs: to stop */
void hf_dispatch_abandon(hf_worker *w); /* releases the jobs of handlers that stay away */
void hf_dispatch_work(hf_run *run);     /* on a pool thread */

/* -- dispatch_program.c -- */
bool hf_dispatch_program(hf_worker *w, hf_run *run); /* false: not now */
void hf_dispatch_struck(hf_worker *w); /* by a signal: whose fault was it? */
void hf_dispatch_kill(hf_worker *w);   /* all, at once */

/* -- queues.c: the queues that are served -- */
HF_MUSTCHECK hf_err hf_queues_open(hf_worker *w);
hf_served *hf_queues_find(const hf_worker *w,
                          const char *name); /* a leaving one as well */
size_t hf_queues_room(hf_worker *w);         /* free slots */
/* Takes its settings from the plan: a new one (a slot must be free), one that comes back,
 * or one that is served. */
hf_served *hf_queues_put(hf_worker *w, const hf_plan_queue *queue);
/* Serves these, in this order, and no others. */
void hf_queues_order(hf_worker *w, hf_served *const *list, size_t n);
void hf_queue_on(hf_served *served, hf_queue_event event);
void hf_queue_hold(hf_served *served, uint32_t ms); /* asks nothing of it for so long */
/* Redis refused a request. True: because of this queue; else all queues wait. */
bool hf_queue_refused(hf_served *served, hf_err err, const char *detail);
void hf_queues_hold_over(hf_worker *w, uint64_t now_ns);
void hf_queues_doubt(hf_worker *w);           /* each may have something */
bool hf_queues_quiet(const hf_worker *w);     /* nothing to claim, nothing under way */
bool hf_queues_under_way(const hf_worker *w); /* what some claim took is not known yet */
uint32_t hf_backoff_longer(uint32_t ms);      /* than the last time */

/* -- claim.c -- */
void hf_claim_pump(hf_worker *w);
bool hf_claim_can_wait(const hf_worker *w); /* for a turn, after verdicts have left */
void hf_claim_refund(hf_served *served, uint32_t n); /* jobs of it that did not start */
void hf_claim_lost(hf_worker *w); /* the connection came back: ask what was taken */

/* -- wake.c -- */
void hf_wake_pump(hf_worker *w);
void hf_wake_client_event(hf_client *client, hf_err err, const char *detail, void *arg);
uint32_t hf_wake_wait_ms(hf_worker *w);          /* of the next blocking call */
uint32_t hf_wake_longest_ms(const hf_worker *w); /* and a check is sent as often */
void hf_wake_timers(hf_worker *w);
void hf_wake_on_timer(uv_timer_t *timer);

/* -- check.c -- */
void hf_check_send(hf_worker *w);
void hf_check_give_back(hf_worker *w);
void hf_check_look_again(hf_worker *w); /* where its time has come */

/* -- beat.c: what it shows of itself -- */
void hf_beat_start(hf_worker *w);
void hf_beat_send(hf_worker *w); /* what its heartbeat says has changed */
void hf_beat_turn(hf_worker *w);
void hf_beat_look_in(hf_worker *w, uint32_t ms); /* a turn, so soon */

/* -- verdict.c -- */
void hf_verdict_add(hf_worker *w, hf_run *run);
bool hf_verdict_flush(hf_worker *w); /* true: some have left */

/* -- leases.c -- */
hf_err hf_leases_start(hf_worker *w, char detail[HF_DETAIL_SIZE]);
bool hf_leases_watched(const hf_worker *w);
void hf_leases_notes(hf_worker *w); /* events that came from the watchdog */
void hf_leases_forget(hf_run *run); /* its notes, before it is freed */

/* -- redis_clock.c: Redis's clock. Any thread, unless said otherwise -- */
void hf_clock_init(hf_worker *w);
void hf_clock_done(hf_worker *w);
/* An answer says now_ms. True: the clock was set, and the loop's thread is to tell it. */
bool hf_clock_sample(hf_worker *w, int64_t now_ms, uint64_t sent_ns);
void hf_clock_tell(hf_worker *w); /* the loop's thread */
void hf_clock_read(hf_worker *w, int64_t now_ms, uint64_t sent_ns); /* both; the same */
int64_t hf_clock_now(const hf_worker *w);       /* 0: not known yet; never ahead */
int64_t hf_clock_not_after(const hf_worker *w); /* 0: not known yet */
/* What a script is told of it; *judged_ms: the longest lease for which that holds. */
hf_clock_view hf_clock_shown(const hf_worker *w, uint32_t *judged_ms);
/* Fills in what a check carries of it. */
void hf_clock_share(const hf_worker *w, hf_check_args *args,
                    char learned[HF_REMOTE_STATE_SIZE]);
void hf_clock_adopt(hf_worker *w, const hf_checked *checked);

/* -- life.c -- */
bool hf_life_serving(const hf_worker *w); /* it may claim */
void hf_life_check(hf_worker *w);         /* is the stop complete? */
void hf_life_free(hf_worker *w);          /* waits for handlers that had not returned */
void hf_life_pause(hf_worker *w, uint32_t ms); /* Redis said "not now" */
void hf_life_forgive(hf_worker *w);            /* counts no crash for a while */
/* Redis refused a claim or a check. Without permission from the start on the worker ends.
 */
void hf_life_refused(hf_worker *w, hf_err err, const char *detail);
/* Sends what can be sent, starts what can be started: after every event. A timer's
 * callback calls it itself, because the loop blocks before it comes to the end of a turn.
 */
void hf_life_turn(hf_worker *w);

/* -- reload.c -- */
void hf_reload_take(hf_worker *w);
hf_backoff hf_backoff_of(const hf_worker_opts *opts);

/* -- server.c -- */
void hf_server_tell(hf_worker *w); /* of queues and limits that Redis does not know of */
void hf_server_event(hf_client *client, hf_err err, const char *detail, void *arg);
void hf_server_start_over(uv_timer_t *timer);
void hf_server_tell_lacks(hf_worker *w); /* commands that Redis does not permit */

/* -- ending.c -- */
void hf_end_stops(hf_worker *w, unsigned stops); /* so many calls of hf_worker_stop() */
void hf_end_take_down(hf_worker *w);
void hf_end_close_all(hf_worker *w);
void hf_end_forget_held(hf_worker *w); /* what could not be settled any more */

/* -- report.c -- */
void hf_report(hf_worker *w, hf_log_level level, const char *message,
               const hf_log_field *fields, size_t n);
void hf_report_text(hf_worker *w, hf_log_level level, const char *message,
                    const char *key, const char *text);
/* Each failed try to connect comes here: an error at the start, when the reason changes
 * and once a minute, else for debugging. */
void hf_report_outage(hf_worker *w, hf_outage *outage, const char *message, hf_err err,
                      const char *detail);
void hf_report_claimed(const hf_served *served, const hf_claimed *claimed);
void hf_report_woken(const hf_served *served, int64_t at_ms); /* by its baton */
/* What the claim itself put into `dead`: poison, or without a record. */
void hf_report_buried(const hf_served *served, const hf_claimed *claimed);
void hf_report_run(hf_worker *w, const hf_run *run, const char *outcome);
void hf_report_rate(const hf_worker_queue *limits, char out[HF_RATE_SIZE]); /* 100/1s */

#endif
