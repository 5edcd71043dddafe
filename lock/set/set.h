/* set.h - locks over several servers, for the files that implement them:
 *
 *   servers.c  the client: a loop, and a client of locks for each server on it
 *   set.c      one acquisition, from the calls that take it to its end: asking its
 *              members, giving them back
 *   state.c    a holder's questions and events
 *   multi.c    all of them, in order
 *   red.c      a majority of them, at once
 *
 *   TAKE --enough are held--> HELD --release--> LEAVE --> END
 *     ^ '--it cannot be had--> UNDO --> END
 *     '------- PAUSE <----------' (RedLock)
 *
 * All clients share one loop. Everything happens on it, unless a remark says otherwise.
 * Events of members come on the thread that renews, so a user hears of one at a time.
 * That thread reads which members were joined (`lock`) under the set's lock, and only the
 * loop changes it. A member is removed before it is released, so no thread uses a handle
 * that has ended. */
#ifndef HF_LOCK_SET_SET_H
#define HF_LOCK_SET_SET_H

#include "base/random.h"
#include "holdfast/lock.h"
#include "holdfast/lock_set.h"
#include "lock/names.h"
#include "lock/tasks.h"
#include "redis/url.h"

typedef struct hf_set_member {
    hf_lock_set *set;
    size_t server, place; /* in `urls`; in the caller's order */
    hf_lock_opts opts;    /* its pointers point into `text` */
    void *text;           /* owned */
    hf_lock *asked;       /* not answered yet */
    hf_lock *lock;        /* it counts; changed under set->lock */
    bool leaving;         /* a release is not answered yet */
    atomic_bool lost;     /* the lock that was asked for last is lost */
    hf_lock_release_result result;
    bool may_leave;  /* a request to leave may still be sent for the handle that ended */
    hf_err err;      /* why it could not be acquired */
    uint64_t due_ns; /* RedLock: not asked again before */
} hf_set_member;

typedef enum hf_set_step {
    SET_TAKE,
    SET_PAUSE,
    SET_HELD,
    SET_UNDO, /* acquired members are released */
    SET_LEAVE
} hf_set_step;

/* The differences of the two rules. */
typedef struct hf_set_kind {
    void (*begin)(hf_lock_set *set);
    void (*got)(hf_set_member *m, hf_lock *lock); /* in TAKE or HELD */
    void (*refused)(hf_set_member *m, const char *detail);
    void (*left)(hf_set_member *m);   /* given back in HELD, because it was lost; NULL:
                                         none is */
    void (*undone)(hf_lock_set *set); /* nothing is under way any more */
    void (*lost)(hf_lock_set *set);   /* a member may have been lost */
    uint64_t (*due_ns)(const hf_lock_set *set); /* UINT64_MAX: nothing is */
    void (*time)(hf_lock_set *set, uint64_t now_ns);
} hf_set_kind;

typedef enum hf_set_phase { PHASE_NEW, PHASE_HELD, PHASE_GONE } hf_set_phase;

struct hf_lock_set {
    hf_lock_servers *servers;
    const hf_set_kind *kind;
    hf_lock_set *next, *prev;
    size_t n, needed;
    hf_lock_set_acquired_cb on_acquired;
    void *acquired_arg;
    hf_lock_set_event_cb on_event;
    void *event_arg;
    int64_t wait_ms;
    uint64_t begun_ns, until_ns; /* UINT64_MAX: for ever */
    hf_handle handle;
    atomic_bool member_lost;

    hf_set_step step;
    size_t open; /* answers that have not come yet */
    bool notified, over;
    bool final; /* UNDO is its end */
    hf_err err;
    char detail[HF_DETAIL_SIZE];
    hf_lock_set_released_cb release_cb;  /* as the call gave it */
    hf_lock_set_released_cb on_released; /* still to be told */
    void *released_arg;
    uint64_t tell_until_ns; /* of the release */

    /* MultiLock */
    size_t at; /* the member that is asked */
    /* RedLock */
    hf_redlock_opts red;
    char *name; /* owned */
    char owner[HF_LOCK_OWNER_SIZE];
    uint32_t tries;
    uint64_t check_ns; /* TAKE: the time-out; PAUSE: its end */
    uint64_t max_ns;   /* the end of max_hold */

    uv_mutex_t lock; /* and under it: */
    bool silent;     /* its user gets no more events; a running call may not have ended */
    hf_set_phase phase;
    bool lost, lost_reported, suspect;
    hf_lock_reason reason;
    size_t lost_member;
    int fd; /* -1: none yet */
    hf_set_member members[];
};

struct hf_lock_servers {
    hf_tasks tasks;
    hf_rng rng;
    uint32_t connect_timeout_ms, request_timeout_ms;
    size_t n;
    hf_lock_client *clients[HF_LOCK_SERVERS_MAX];
    char places[HF_LOCK_SERVERS_MAX][HF_URL_PLACE_SIZE];

    hf_lock_set *sets;
    bool closing;
};

/* HF_NOMEM; HF_INVALID: wait_ms is too long. */
HF_MUSTCHECK hf_err hf_set_new(hf_lock_set **out, hf_lock_servers *servers,
                               const hf_set_kind *kind, size_t n, int64_t wait_ms,
                               char *detail);
void hf_set_free(hf_lock_set *set);
/* The calls that acquire, as lock_set.h has them. After a failure the set is freed. */
HF_MUSTCHECK hf_err hf_set_acquire(hf_lock_set *set, hf_lock_set_acquired_cb cb,
                                   void *arg, hf_lock_set **out,
                                   char detail[HF_DETAIL_SIZE]);
HF_MUSTCHECK hf_err hf_set_acquire_wait(hf_lock_set *set, hf_lock_set **out,
                                        char detail[HF_DETAIL_SIZE]);
void hf_set_begin(hf_lock_set *set); /* on the loop */
/* Its answer comes to got() or refused(). */
HF_MUSTCHECK hf_err hf_set_ask(hf_set_member *m, const hf_lock_opts *opts,
                               char detail[HF_DETAIL_SIZE]);
void hf_set_join(hf_set_member *m, hf_lock *lock);
hf_lock *hf_set_take_out(hf_set_member *m);
void hf_set_give_back(hf_set_member *m, hf_lock *lock);
/* It cannot be acquired now. Continues in undone(). */
void hf_set_undo(hf_lock_set *set, bool final, hf_err err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Enough members are held: reports this to the caller. False: some were lost meanwhile.
 */
HF_MUSTCHECK bool hf_set_become_held(hf_lock_set *set);
void hf_set_fail(hf_lock_set *set); /* reports err and detail, and ends it */
void hf_set_close(hf_lock_set *set);
/* Does what is due. This may free the set. */
void hf_set_time(hf_lock_set *set, uint64_t now_ns);
uint64_t hf_set_due_ns(const hf_lock_set *set); /* UINT64_MAX: nothing */
/* Goes on if nothing is under way any more. This may free the set. */
void hf_set_check(hf_lock_set *set);
const char *hf_set_place(const hf_set_member *m);

#endif
