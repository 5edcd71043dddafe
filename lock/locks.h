/* locks.h - the inside of a client of locks, shared by the files that it is spread over:
 *
 *   locks.c        its life; tasks.c: its loop, and work that is submitted
 *   nodes.c        its connections; which Redis has a lock
 *   acquisition.c  from the call that acquires a lock to HELD, or to its end
 *   hold.c         from HELD to the end of the release
 *   hear.c         the watchdog's connections, and what they hear of held locks
 *   options.c      the options of an acquisition
 *   confirm.c      waits until replicas have it
 *   reading.c      what was read of the line's clock
 *   change.c       downgrade, extend, guard; guard.c: the minder of guarded groups
 *   state.c        a holder's calls that need no request
 *   ask.c          one request whose caller waits; lock_admin.c: the calls that use it
 *
 * Everything without a remark belongs to the loop (redis/run_loop.h). A request that was
 * not answered may have been executed. The request to acquire is therefore sent again
 * with the same hold, which changes nothing if it was executed. A lock that is given up
 * is released in the background, until Redis has answered that or the lease must be
 * over. */
#ifndef HF_LOCK_LOCKS_H
#define HF_LOCK_LOCKS_H

#include <stdatomic.h>

#include "base/machine.h"
#include "base/random.h"
#include "base/reading.h"
#include "lock/guard.h"
#include "lock/listener.h"
#include "lock/member.h"
#include "lock/node.h"
#include "lock/ops.h"
#include "lock/tasks.h"
#include "lock/watchdog.h"

enum { HF_UNHEARD_MS = 250 /* a waiting lock that is not listened for asks so often */ };

/* The channel by which holders learn that a lock is taken away, or asked back
 * (hear.c). */
typedef struct hf_hear_list {
    hf_lock *first, *last; /* in the order in which they were granted */
} hf_hear_list;

typedef struct hf_hear {
    uv_mutex_t lock;
    hf_hear_list young, old; /* under lock; the old ones are listened for */
    bool called;             /* the same: a call is set, for the first young one */
    hf_lock_node *told;      /* the same: nodes to be connected, or to be left */

    /* the watchdog's thread */
    hf_listener listener;
    char inbox[HF_LOCK_CLIENT_SIZE + 8];
    hf_watchdog *watchdog;
    hf_lock_node *watched; /* it has connections to these */
    unsigned n_watched;    /* and others, which it is closing */
    uint64_t changes;      /* of the cluster's table, as of the last look */
    bool wants;            /* an old one is not heard */
    unsigned closing;      /* all those, and the listener, when it has stopped; then */
    void (*closed)(void *arg);
    void *closed_arg;
    uint64_t unknown_ns; /* when a message named a hold that is not known; 0: none did */
} hf_hear;

typedef enum hf_lock_step {
    STEP_ACQUIRE, /* to be sent, or sent */
    STEP_PAUSE,   /* before it is sent again */
    STEP_WAIT,    /* in line */
    STEP_CONFIRM, /* granted; replicas are asked */
    STEP_HELD,
    STEP_RELEASE, /* to be sent, or sent */
} hf_lock_step;

struct hf_lock {
    hf_lock_client *locks;
    hf_lock *next, *prev; /* in locks->active, or locks->resting */
    hf_lock **list;

    /* not changed after it was handed in */
    char prefix[HF_TAG_PREFIX_SIZE];
    size_t prefix_len;
    char owner[HF_LOCK_OWNER_SIZE], hold[HF_HOLD_SIZE];
    char *names_text; /* owned */
    const char *names[HF_LOCK_NAMES_MAX];
    size_t n_names;
    hf_acquire_args acquire;
    bool simple, fixed; /* simple: of one name, without a line */
    bool alone;         /* its owner was made for it, and has no other hold */
    unsigned slot;      /* of its keys; 0 without a cluster */
    uint32_t max_hold_ms, wait_replicas;
    uint64_t until_ns;   /* the end of its wait; UINT64_MAX: none */
    uint64_t reached_ns; /* Redis must have answered by then */
    hf_lock_acquired_cb on_acquired;
    hf_lock_event_cb on_event;
    void *acquired_arg, *event_arg;

    /* any thread */
    _Atomic(hf_lock_node *) node; /* that has it; the loop changes it */
    _Atomic int state, reason;
    _Atomic uint64_t fence;
    _Atomic uint32_t lease_ms; /* as renewed; extend changes it */
    _Atomic(hf_lease *) lease; /* from the first good answer to the release */
    _Atomic uint64_t max_ns;   /* the end of max_hold; 0: none yet */
    atomic_bool waits;         /* not held yet: the watchdog tells the loop its news */
    atomic_bool granted, lost; /* that is it */
    atomic_bool asked_early;   /* it was asked back before its grant was heard */
    atomic_bool unheard;       /* there is no room to listen for its grant */
    atomic_bool event_runs;    /* released, and a callback of an event has not ended */
    _Atomic int fd;            /* -1: none yet */
    hf_minded minded;          /* the group that ends with it; the guard's lock */

    hf_lock *hear_next,
        *hear_prev;          /* in a list of the client's hear, and under its lock */
    hf_hear_list *hear_list; /* NULL: in none */
    uint64_t heard_ns;       /* from when on it is listened for */

    hf_handle handle;
    hf_lock_step step;
    unsigned in_flight;  /* requests of its own */
    hf_lock_node *asked; /* of the last one */
    bool moved;          /* which was answered HF_MOVED */
    uint64_t rest_ns;    /* no node serves it: confirm.c and a release wait for that */
    bool may_be_there;   /* a request to acquire was executed, or may have been */
    int64_t doubt_ms;    /* until then, on Redis's clock, one that was not answered may
                            still be executed; 0: there is none */
    bool notified;       /* its acquired callback was called */
    bool background;     /* it is released without a waiting caller: the loop must run */
    bool in_doubt;       /* a release was sent and not answered */
    bool was_ours;       /* when that was sent, the deadline had not passed */
    bool over;           /* to be freed when nothing refers to it any more */
    uint64_t sent_ns;    /* of the last request to acquire */
    uint64_t number;     /* of its place in the line: it is granted with a higher fence */
    hf_reading reading;  /* of the watchdog's thread while there is a lease */
    bool leaves_reading; /* it ends without the lock: its release shows the reading */
    uint64_t
        heard_fence; /* of a grant that was heard before the answer that says WAITING */
    uint64_t due_ns; /* the end of a pause, or of one before confirm.c */
    uint64_t confirm_until_ns; /* of the wait for a server to that */
    hf_confirm confirm;        /* while */
    bool asks_replicas;
    uint64_t release_until_ns, tell_until_ns; /* of the release */
    bool answered; /* the release; not told, because a callback of an event runs */
    bool patient;  /* it is not told before that has ended, however long it takes */
    hf_lock_release_result result; /* of the answer, with `left` and */
    size_t left;
    int64_t left_ms; /* Redis's time */
    uint32_t tries;
    hf_err last_err; /* why it was not let in so far */
    char detail[HF_DETAIL_SIZE];
    hf_lock_released_cb release_cb;  /* as the call gave it */
    hf_lock_released_cb on_released; /* still to be told */
    void *released_arg;
};

struct hf_lock_client {
    hf_tasks tasks;
    hf_lock_nodes nodes;
    uint32_t connect_timeout_ms, request_timeout_ms;
    hf_listener listener; /* for locks that wait */
    hf_watchdog *watchdog;
    hf_guard guard;
    hf_hear hear; /* for locks that are held */
    char ns[HF_ID_SIZE];
    char id[HF_LOCK_CLIENT_SIZE];
    char machine[HF_MACHINE_SIZE]; /* base/machine.h; its own id if there is none */
    hf_lock_event_cb on_event;
    void *arg;
    hf_rng rng;

    hf_lock *active;  /* there is something to do or to wait for */
    hf_lock *resting; /* held */
    struct hf_lock_ask *asks;
    bool closing;
    uint64_t close_until_ns;
};

/* ---- locks.c ---- */
/* A node is ready, or serves more: sends what waits for that. */
void hf_lock_client_pump(hf_lock_client *locks);
/* A node refuses this client, so waiting would not help. */
void hf_lock_client_refused(hf_lock_client *locks, const hf_lock_node *node);
/* Sets the timer again, and continues closing. At the end of every action on the loop. */
void hf_lock_client_end_turn(hf_lock_client *locks);
void hf_lock_client_move(hf_lock *lock, hf_lock **list); /* NULL: out of all */
/* It is given back, and no call waits for that: the loop must run all the same. */
void hf_lock_client_background(hf_lock *lock, bool on);
/* Frees it now, or with its last answer. */
void hf_lock_client_over(hf_lock *lock);

/* ---- options.c ---- */
HF_MUSTCHECK hf_err hf_lock_make(hf_lock_client *locks, const hf_lock_opts *opts,
                                 hf_lock **out, char detail[HF_DETAIL_SIZE]);
void hf_lock_free(hf_lock *lock);
hf_lock_of hf_lock_of_lock(const hf_lock *lock);

/* ---- acquisition.c ---- */
void hf_acquire_send(hf_lock *lock); /* if it can be */
void hf_acquire_not_reached(
    hf_lock *lock);                  /* it fails, for the reason of the connection */
void hf_acquire_lost(hf_lock *lock); /* its place in the line */
void hf_acquire_confirmed(hf_lock *lock);
/* It ends without the lock. */
void hf_acquire_fail(hf_lock *lock, hf_err err, const char *detail);
void hf_acquire_time(hf_lock *lock, uint64_t now_ns); /* what is due */
uint64_t hf_acquire_due_ns(const hf_lock *lock);      /* UINT64_MAX: nothing */

/* The line's clock was read (hf_reading_note()). */
void hf_acquire_read(hf_lock *lock, uint64_t number, uint64_t clock_ms, int64_t redis_ms);

void hf_grants_init(hf_lock_client *locks); /* once its options are complete */
void hf_grants_listen(hf_lock_client *locks);
uint64_t hf_grants_due_ns(hf_lock_client *locks); /* UINT64_MAX: nothing */
void hf_grants_notes(hf_lock_client *locks);      /* the watchdog's note */

/* ---- confirm.c ---- */
void hf_confirm_begin(hf_lock *lock);
void hf_confirm_send(hf_lock *lock); /* if it can be */
void hf_confirm_time(hf_lock *lock, uint64_t now_ns);
uint64_t hf_confirm_due_ns(const hf_lock *lock);
void hf_confirm_end(hf_lock *lock); /* no answer of replicas counts any more */

/* ---- hear.c ---- */
HF_MUSTCHECK hf_err
hf_hear_init(hf_lock_client *locks); /* HF_SYSTEM: nothing is left of it */
void hf_hear_done(hf_lock_client *locks);
/* It is held, and has a lease. Before it is told; any thread, like its end. */
void hf_hear_begin(hf_lock *lock);
void hf_hear_end(hf_lock *lock);
/* The watchdog's thread connects to a node, or leaves it; until then it may use it. */
void hf_hear_node(hf_lock_node *node);
void hf_hear_part(hf_lock_node *node);
bool hf_hear_parted(hf_lock_node *node);
/* As the watchdog calls its user. */
void hf_hear_called(hf_watchdog *watchdog, hf_client *none, uv_loop_t *loop, void *arg);
void hf_hear_stop(void (*closed)(void *arg), void *closed_arg, void *arg);

/* ---- hold.c ---- */
/* loop NULL: the watchdog has its own. */
HF_MUSTCHECK hf_err hf_held_start(hf_lock_client *locks, hf_watch_loop *loop,
                                  char detail[HF_DETAIL_SIZE]);
/* Of its lease in the watchdog. */
size_t hf_held_group(const hf_lock *lock);
/* It is not looked after any more. From any thread; waits for a callback that runs. */
void hf_held_drop(hf_lock *lock);
/* The same without waiting: then `event_runs`, until the loop is woken. */
void hf_held_leave(hf_lock *lock);
void hf_held_signal(hf_lock *lock); /* its descriptor becomes readable */
/* Why it is lost. The lease may be NULL: it was dropped. */
hf_lock_reason hf_held_reason(const hf_lock *lock, const hf_lease *lease);

/* ---- hold.c: release ---- */
/* Leaves, until the lease must be over at most; in the end frees it. */
void hf_release_begin(hf_lock *lock);
/* At once, with what is known: the client is gone. */
void hf_release_drop(hf_lock *lock);
/* A request was answered that was on its way when it was given up. */
void hf_release_answered(hf_lock *lock);
uint64_t hf_release_due_ns(const hf_lock *lock);
void hf_release_send(hf_lock *lock);
void hf_release_time(hf_lock *lock, uint64_t now_ns);
void hf_release_notes(hf_lock_client *locks); /* a callback of an event may have ended */

/* ---- ask.c ---- */

/* One request whose caller waits. Faults that did nothing are tried again until the end.
 */
typedef struct hf_lock_ask {
    hf_task task;
    struct hf_lock_ask *next;
    hf_lock_client *locks;
    hf_lock *lock;    /* it is about this one, which is not left, nor freed, before; or */
    hf_server *redis; /* for this one (borrowed); or */
    unsigned slot;    /* about keys in this one */
    hf_lock_node *node;    /* that it was for last */
    bool moved;            /* which has answered HF_MOVED */
    hf_run_waiter *waiter; /* or */
    void (*on_end)(struct hf_lock_ask *ask);
    bool calls_back; /* also where its caller waits: `read` calls a callback */
    hf_err (*send)(struct hf_lock_ask *ask, hf_client *client, hf_answer_cb cb,
                   void *arg);
    hf_err (*read)(struct hf_lock_ask *ask, const hf_answer *answer);
    /* With HF_OK, and when the replicas that `lock` waits for have it; NULL: nothing. */
    hf_err (*take)(struct hf_lock_ask *ask);
    hf_confirm confirm; /* while they are asked */
    void *arg;
    uint64_t until_ns, due_ns, sent_ns;
    bool in_flight;
    bool repeats; /* executed twice, it does its work once: so it is sent again also when
                     its answer was lost */
    bool unsure;  /* that has happened */
    bool writes_what_must_stay; /* HF_POLICY where it may be evicted */
    hf_err err;                 /* of its end, or until then of the last refusal */
    char detail[HF_DETAIL_SIZE];
} hf_lock_ask;

/* Waits for it; gives its err. */
HF_MUSTCHECK hf_err hf_ask_wait(hf_lock_ask *ask, hf_lock_client *locks,
                                char detail[HF_DETAIL_SIZE]);
/* on_end is called in any case if this gives HF_OK. */
HF_MUSTCHECK hf_err hf_ask_begin(hf_lock_ask *ask, hf_lock_client *locks);
void hf_ask_pump(hf_lock_client *locks, uint64_t now_ns);
uint64_t hf_ask_due_ns(const hf_lock_client *locks);
/* It was released: its requests that are not under way are not sent again. */
void hf_ask_released(const hf_lock *lock);
/* Those that are not under way. node NULL: of all nodes. */
void hf_ask_end_all(hf_lock_client *locks, const hf_lock_node *node, hf_err err,
                    const char *detail);

#endif
