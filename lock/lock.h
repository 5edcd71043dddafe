/* lock.h - one lock of a client, from the call that acquires it to the end of its
 * release; making and freeing it.
 *
 *   client.c   a client's life; tasks.c: its loop, and work that is submitted
 *   nodes.c    what it knows of each Redis that it is connected to
 *   acquire.c  from the call that acquires a lock to HELD, or to its end
 *   hold.c     while it is held; release.c: its release
 *   notices.c  messages about held locks
 *   change.c   downgrade, extend, guard; guard.c: the minder of guarded groups
 *   lock.c     making and freeing a lock; what several steps do
 *   state.c    a holder's calls that need no request
 *   ask.c      one request whose caller waits; lock_admin.c: the calls that use it
 *
 * Everything without a remark belongs to the loop (redis/run_loop.h). A request that was
 * not answered may have been executed. The request to acquire is therefore sent again
 * with the same hold, which changes nothing if it was executed. A lock that is given up
 * is released in the background, until Redis has answered that or the lease must be
 * over. */
#ifndef HF_LOCK_LOCK_H
#define HF_LOCK_LOCK_H

#include <stdatomic.h>

#include "base/reading.h"
#include "lock/guard.h"
#include "lock/nodes.h"
#include "lock/ops.h"
#include "lock/tasks.h"
#include "lock/watchdog/watchdog.h"

/* Its life. acquire.c has the ways from step to step, release.c those of the last one. A
 * lock that was never there, and leaves nothing to say, is freed without a release. */
typedef enum hf_lock_step {
    STEP_ACQUIRE, /* to be sent, or sent */
    STEP_PAUSE,   /* before it is sent again */
    STEP_WAIT,    /* in line */
    STEP_CONFIRM, /* granted; replicas are asked */
    STEP_HELD,
    STEP_RELEASE, /* to be sent, or sent */
} hf_lock_step;

struct hf_lock {
    /* ---- common: valid in all steps ---- */

    hf_lock_client *locks;
    hf_lock *next, *prev; /* in locks->active, or locks->held */
    hf_lock **list;
    hf_handle handle;
    hf_lock_step step;
    bool over; /* to be freed when nothing refers to it any more */

    /* as it was handed in; not changed, but for the mode */
    char prefix[HF_TAG_PREFIX_SIZE];
    size_t prefix_len;
    char owner[HF_LOCK_OWNER_SIZE], hold[HF_HOLD_SIZE];
    char *names_text; /* owned */
    const char *names[HF_LOCK_NAMES_MAX];
    size_t n_names;
    char mode;          /* of the script; a downgrade changes it */
    bool simple, fixed; /* simple: of one name, without a line */
    bool alone;         /* its owner was made for it, and has no other hold */
    unsigned slot;      /* of its keys; 0 without a cluster */
    uint32_t max_hold_ms, wait_replicas;
    hf_lock_event_cb on_event;
    void *event_arg;

    /* any thread */
    _Atomic(hf_lock_node *) node; /* that has it; the loop changes it */
    _Atomic int state, reason;
    _Atomic uint64_t fence;    /* 0: not granted so far */
    _Atomic uint32_t lease_ms; /* as renewed; extend changes it */
    _Atomic int fd;            /* -1: none yet */

    /* its requests: to acquire, to confirm, to release */
    unsigned in_flight;
    hf_lock_node *asked;     /* of the last one */
    hf_node_backoff backoff; /* PAUSE, CONFIRM and RELEASE wait for its end */
    uint64_t due_ns;         /* the next one, in PAUSE, CONFIRM and RELEASE */
    bool may_be_there;       /* a request to acquire was executed, or may have been */
    int64_t doubt_ms;   /* until then, on Redis's clock, one that was not answered may
                           still be executed; 0: there is none */
    hf_reading reading; /* of the watchdog's thread while there is a lease */

    /* ---- acquire: valid in ACQUIRE, PAUSE, WAIT and CONFIRM ---- */

    struct {
        hf_acquire_args args;
        uint64_t until_ns;   /* the end of its wait; UINT64_MAX: none */
        uint64_t reached_ns; /* Redis must have answered by then */
        hf_lock_acquired_cb cb;
        void *arg;
        uint32_t tries;
        char detail[HF_DETAIL_SIZE]; /* of last_err */

        /* also in HELD and RELEASE */
        hf_err last_err; /* why it was not let in so far */
        bool notified;   /* cb was called */

        /* in ACQUIRE */
        uint64_t sent_ns;     /* of the last request, and until there is a lease */
        uint64_t heard_fence; /* of a grant that was heard before the answer that says
                                 WAITING */

        /* in WAIT */
        uint64_t number;           /* of its place: it is granted with a higher fence */
        atomic_bool granted, lost; /* any thread: what the watchdog reports */
        atomic_bool unheard; /* any thread: there is no room to listen for its grant */

        /* in WAIT and CONFIRM; any thread */
        atomic_bool waits; /* not held yet: the watchdog reports changes to the loop, not
                              to the user. False in all other steps */
        atomic_bool asked_early; /* it was asked back before its grant was heard; true
                                    also in HELD, until that is told */

        /* in CONFIRM */
        uint64_t confirm_until_ns; /* of the wait for a server to that */
        bool asks_replicas;        /* false in all other steps; true, with: */
        hf_confirm confirm;
    } acquire;

    /* ---- held: valid in HELD, also when it is lost ---- */

    struct {
        /* in a list of the client's notices, and under their lock */
        hf_lock *next, *prev;
        struct hf_notices_list *list; /* NULL: in none, as in all other steps */
        uint64_t heard_ns;            /* from when on it is listened for */

        /* also in WAIT and CONFIRM; any thread */
        _Atomic(hf_lease *) lease; /* NULL: none, as in all other steps */

        /* also in RELEASE; any thread */
        _Atomic uint64_t max_ns; /* the end of max_hold; 0: none */
        hf_minded minded;        /* the group that ends with it; the guard's lock */
    } held;

    /* ---- release: valid in RELEASE ---- */

    struct {
        hf_lock_released_cb on_released; /* still to be told */
        uint64_t until_ns, tell_until_ns;
        bool background;     /* no caller waits for it: the loop must run */
        bool leaves_reading; /* it ends without the lock: its release shows the reading */
        bool in_doubt;       /* a request was sent and not answered */
        bool answered;       /* but not told: a callback of an event runs */
        hf_lock_release_result result; /* of the answer, with `left` and */
        size_t left;
        int64_t left_ms; /* Redis's time */

        /* also before, from the call on that gives it back; any thread */
        bool was_ours;          /* the deadline had not passed */
        hf_lock_released_cb cb; /* as the call gave it */
        void *arg;
        bool patient;           /* it is told after the callback of an event that runs,
                                   however long that takes */
        atomic_bool event_runs; /* such a callback has not ended */
    } release;
};

HF_MUSTCHECK hf_err hf_lock_make(hf_lock_client *locks, const hf_lock_opts *opts,
                                 hf_lock **out, char detail[HF_DETAIL_SIZE]);
void hf_lock_free(hf_lock *lock);
hf_lock_of hf_lock_of_lock(const hf_lock *lock);

/* ---- what several steps do ---- */

void hf_lock_move(hf_lock *lock, hf_lock **list); /* NULL: out of all */
/* Brings it to the node of its slot. It stays where it is while none is known. */
hf_lock_node *hf_lock_route(hf_lock *lock);
/* No answer of the replicas that it asks counts any more. */
void hf_lock_confirm_end(hf_lock *lock);
/* The line's clock was read (hf_reading_note()). */
void hf_lock_note_reading(hf_lock *lock, uint64_t number, uint64_t clock_ms,
                          int64_t redis_ms);
/* A request to acquire was executed and not undone so far, or may have been. */
bool hf_lock_left_behind(const hf_lock *lock);
/* It is given back, and no call waits for that: the loop must run all the same. */
void hf_lock_background(hf_lock *lock, bool on);
/* Frees it now, or with its last answer. */
void hf_lock_over(hf_lock *lock);

/* Whether hf_lock_acquire() would take such options: HF_OK or HF_INVALID. Any thread. */
HF_MUSTCHECK hf_err hf_lock_opts_check(const hf_lock_opts *opts,
                                       char detail[HF_DETAIL_SIZE]);

#endif
