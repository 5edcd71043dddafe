/* lock.h - distributed locks on Redis, for services that need no queue as well as for
 * those that have one.
 *
 * A lock has a name and lives on one Redis primary. A holder has a lease: it holds the
 * lock until it releases it or until the lease ends. A thread of the client renews the
 * lease after a third of its time. Each grant carries a fence, a number higher than that
 * of every earlier grant. A store that receives writes of holders can refuse a lower one
 * (hf_fence_check(), docs/locks.md).
 *
 *   entering -> WAITING -> HELD <-> SUSPECT -> LOST     (or released, at any point)
 *
 * SUSPECT: a renewal was refused or not answered. The lock is still held until the local
 * deadline. The deadline counts on CLOCK_BOOTTIME from before the request was sent, minus
 * drift and a margin, so it passes before Redis can grant the lock to another client.
 * LOST is final. When Redis has only forgotten the script, the client asks again at once
 * and reports nothing.
 *
 * All modes (exclusive, shared, permits, reentrant) use one line of leased entries for
 * each name, in order of arrival: the recipe of ephemeral sequential nodes from
 * ZooKeeper's documentation, with leases for sessions. A waiter sends a renewal every
 * third of a lease and does not poll. Each release wakes exactly the waiters that it
 * lets in. A client that waits for locks of more than 256 tags at a time learns of some
 * grants only by its renewals, up to a third of a lease late.
 *
 * Two ways, one engine, as in producer.h: opened with a loop, all calls and callbacks
 * but those of events (hf_lock_event_cb) belong to that loop's thread, and nothing here
 * blocks; opened without one the client
 * has a thread of its own, is thread-safe, and the calls that end in _wait may be used,
 * but not inside a callback of the same client: there they are HF_INVALID at once. A
 * callback is never called from inside the call that it belongs to. After fork() the
 * child must not use the parent's client: HF_FORKED. */
#ifndef HOLDFAST_LOCK_H
#define HOLDFAST_LOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "holdfast/error.h"
#include "holdfast/server.h"
#include "holdfast/struct.h"

struct uv_loop_s;

/* A client: its connections and the thread that renews its locks. */
typedef struct hf_lock_client hf_lock_client;
typedef struct hf_lock hf_lock; /* one acquisition, from hf_lock_acquire() to its end */

enum {
    /* Bytes of a lock's name, of [A-Za-z0-9._:-], with at most one '/' in it, not at an
     * end. What stands before the '/' is its tag; without one the name is its own tag.
     * Locks of one tag share a hash slot, a counter of fences, and can be taken together.
     */
    HF_LOCK_NAME_MAX = 128,
    HF_LOCK_NAMES_MAX = 16, /* locks in one acquisition */
    HF_LOCK_OWNER_MAX = 64, /* bytes of an owner, of [A-Za-z0-9._:-] */
    HF_LOCK_OWNER_SIZE = HF_LOCK_OWNER_MAX + 1,
    HF_LOCK_LEASE_MIN_MS = 100,       /* of every lease, in ms */
    HF_LOCK_LEASE_MAX_MS = 86400000,  /* a day */
    HF_LOCK_LEASE_MS = 30000,         /* the default */
    HF_LOCK_GUARD_LEASE_MIN_MS = 250, /* of one that is renewed, with hf_lock_guard() */
    HF_LOCK_PERMITS_MAX = 100000,
    HF_LOCK_HOLDS_MAX = 256 /* acquisitions of one owner in one lock */
};

/* Values of wait_ms beside a number of ms. */
#define HF_WAIT_NONE INT64_C(0)     /* one try */
#define HF_WAIT_FOREVER INT64_C(-1) /* until it is held or cancelled */

typedef enum hf_lock_mode {
    HF_LOCK_EXCLUSIVE,
    HF_LOCK_SHARED, /* beside other shared ones; waits for an exclusive one before it */
    HF_LOCK_PERMITS /* takes `permits` of `limit` */
} hf_lock_mode;

typedef enum hf_lock_form {
    HF_LOCK_LINE, /* in order of arrival; the default */
    HF_LOCK_SPIN  /* a plain SET NX PX; a waiter tries again after 1 ms, doubled up to
                     128 ms, with jitter: no order, no place in Redis while it waits. Only
                     one name, exclusive, not reentrant */
} hf_lock_form;

typedef enum hf_lock_state {
    HF_LOCK_ENTERING, /* asked for, not answered */
    HF_LOCK_WAITING,  /* in line */
    HF_LOCK_HELD,
    HF_LOCK_SUSPECT, /* still held; the last renewal failed */
    HF_LOCK_GONE     /* lost, released, cancelled, or never had: hf_lock_why() */
} hf_lock_state;

/* Why a lock is not held any more. */
typedef enum hf_lock_reason {
    HF_LOCK_NOT_LOST, /* it is held, or it never was */
    HF_LOCK_RELEASED, /* given back by its holder */
    HF_LOCK_DEADLINE, /* the local deadline passed: no renewal was answered in time */
    HF_LOCK_REFUSED,  /* Redis says that the lease is not there: it ended, was deleted, or
                         a  failover or restart lost it */
    HF_LOCK_FORCED,   /* hf_lock_force() took it away */
    HF_LOCK_MAX_HOLD, /* it was held for max_hold_ms */
    HF_LOCK_CLOSED    /* the client was closed */
} hf_lock_reason;

/* What became of a release. */
typedef enum hf_lock_release_result {
    HF_RELEASE_DONE,       /* no acquisition of this owner holds it any more */
    HF_RELEASE_STILL_HELD, /* other acquisitions of the same owner hold it */
    HF_RELEASE_EXPIRED,    /* the lease had ended before; no other owner has it alone */
    HF_RELEASE_NOT_OWNER,  /* the lease had ended before; another owner has it */
    HF_RELEASE_UNKNOWN /* not answered in time: it ends with its lease at the latest */
} hf_lock_release_result;

typedef enum hf_lock_event {
    HF_LOCK_EVENT_SUSPECT, /* a renewal failed; hf_lock_remaining_ms() are left */
    HF_LOCK_EVENT_HELD,    /* held again after SUSPECT */
    HF_LOCK_EVENT_REVOKED, /* hf_lock_revoke() asks for it back; still held */
    HF_LOCK_EVENT_LOST     /* once, the last one; hf_lock_why() says why */
} hf_lock_event;

/* On the client's renewing thread, also when the client was opened with a loop, so that a
 * busy loop cannot delay it: be quick. Only these may be called here: the questions under
 * "is it still mine?", and hf_lock_release() or hf_lock_release_wait() of this lock. None
 * begins once the lock was released; one that runs at that moment has ended when the
 * release is told. */
typedef void (*hf_lock_event_cb)(hf_lock *lock, hf_lock_event event, void *arg);

/* HF_OK: the lock is held. HF_TAKEN: another owner has it, and the time to wait is over.
 * HF_DEADLOCK: the same owner has it already, and it is not reentrant, or asks for more
 * (shared to exclusive). HF_LIMIT: the lock has another number of permits, or its owner
 * too many holds. HF_CANCEL: cancelled. HF_CLOSED. HF_POLICY: this Redis may evict keys,
 * so it gives no locks. Else a fault; after any of these the lock is not held and leaves
 * nothing behind that outlives its lease, and the handle has ended: it is freed when the
 * callback returns. A lease that is lost right after the grant may be told
 * (HF_LOCK_EVENT_LOST) before the grant is. */
typedef void (*hf_lock_acquired_cb)(hf_lock *lock, hf_err err, const char *detail,
                                    void *arg);

/* `left`: holds of the same owner that remain. The handle is freed when it returns. */
typedef void (*hf_lock_released_cb)(hf_lock *lock, hf_lock_release_result result,
                                    size_t left, void *arg);

/* Zero means the default. All text is copied. */
typedef struct hf_lock_client_opts {
    size_t size;                  /* HF_LOCK_CLIENT_OPTS_INIT */
    struct uv_loop_s *loop;       /* borrowed; NULL: a thread of its own, thread-safe */
    const hf_server_opts *server; /* which Redis; NULL: the defaults. request_timeout_ms
                                     is also how late a request may reach Redis */
    hf_lock_event_cb on_event;    /* of each lock that names none */
    void *arg;
    const char *minder; /* path of the `holdfast` command, for hf_lock_guard();
                           "holdfast", found by PATH */
} hf_lock_client_opts;
#define HF_LOCK_CLIENT_OPTS_INIT HF_STRUCT_INIT(hf_lock_client_opts)

/* Zero means the default. All text is copied. */
typedef struct hf_lock_opts {
    size_t size;              /* HF_LOCK_OPTS_INIT */
    const char *const *names; /* 1..HF_LOCK_NAMES_MAX of one tag, each once: all or none,
                                 in one step, also when it has to wait */
    size_t n_names;
    hf_lock_mode mode;
    hf_lock_form form;
    uint32_t permits, limit; /* with HF_LOCK_PERMITS: how many of how many; 1..limit */
    bool reentrant;          /* `owner` may hold it several times; needs an owner. Its
                                processes share one fence, also with a process that
                                died, until the lease of that one is over */
    const char *owner;       /* whose it is, where several acquisitions belong together;
                                NULL: this one alone, 128 random bits. With
                                HF_LOCK_SPIN two of one owner are taken for one that asks
                                twice: both are let in, and one release ends both */
    int64_t wait_ms; /* HF_WAIT_NONE (0), HF_WAIT_FOREVER or 1..2^40. A lock whose leases
                        are all over by Redis's clock, which may have been set, is tried
                        for up to 1.25 of the longest of them and 1 s: docs/locks.md */
    uint32_t reach_ms;      /* Redis must be reached so soon, where that is less than
                               connect_timeout_ms; 0: within that */
    uint32_t lease_ms;      /* HF_LOCK_LEASE_MS; HF_LOCK_LEASE_MIN_MS.._MAX_MS */
    bool fixed;             /* never renewed: it ends with its lease */
    uint32_t max_hold_ms;   /* held for no longer than this, whatever the lease, its
                               renewals and extensions say; 0: as long as it takes */
    uint32_t wait_replicas; /* replicas that must have it within request_timeout_ms, or it
                               is given back and the answer is HF_MISCONF; narrows what a
                               failover can lose, and does not close it. The first lock
                               that asks for them opens one connection more, on which all
                               that want as many are asked for together; one that comes
                               meanwhile waits for that to end */
    hf_lock_event_cb on_event; /* NULL: the client's */
    void *event_arg;
} hf_lock_opts;
#define HF_LOCK_OPTS_INIT HF_STRUCT_INIT(hf_lock_opts)

#ifdef __cplusplus
extern "C" {
#endif

/* HF_OK, or HF_INVALID: no name of a lock. */
HF_API HF_MUSTCHECK hf_err hf_lock_name_check(const char *name);

/* ---- the client ---- */

/* Starts to connect, does not wait for it. The caller owns *out. HF_INVALID, HF_CONFIG,
 * HF_NOMEM, HF_SYSTEM: *out is untouched and `detail` (may be NULL) says why. */
HF_API HF_MUSTCHECK hf_err hf_lock_client_open(hf_lock_client **out,
                                               const hf_lock_client_opts *opts,
                                               char detail[HF_DETAIL_SIZE]);

/* Gives every lock back (at most request_timeout_ms), answers what is under way with
 * HF_CLOSED, then frees the client; handles that were not ended before must not be used
 * after. With a loop: returns at once and calls cb (may be NULL) on the loop's thread.
 * Without: returns at the end, and so ends the program where it is called inside a
 * callback of this client. NULL is fine. */
HF_API void hf_lock_client_close(hf_lock_client *locks, void (*cb)(void *arg), void *arg);

/* An owner of 128 random bits, 32 hexadecimal digits. HF_SYSTEM. */
HF_API HF_MUSTCHECK hf_err hf_lock_owner_make(char out[HF_LOCK_OWNER_SIZE]);

/* ---- taking a lock ---- */

/* Asks for a lock. HF_OK: cb will be called exactly once, and *out (may be NULL) is the
 * handle, good for hf_lock_cancel() until then. HF_INVALID (and `detail`, which may be
 * NULL, says what), HF_CLOSED, HF_FORKED, HF_NOMEM: it never will be. Redis
 * must be reached within connect_timeout_ms, or reach_ms (also without a wait); once
 * in line, an outage is waited out until wait_ms is over. */
HF_API HF_MUSTCHECK hf_err hf_lock_acquire(hf_lock_client *locks,
                                           const hf_lock_opts *opts,
                                           hf_lock_acquired_cb cb, void *arg,
                                           hf_lock **out, char detail[HF_DETAIL_SIZE]);

/* Ends the wait; the callback comes with HF_CANCEL, or with HF_OK when the grant was
 * faster. From any thread when the client has its own. */
HF_API void hf_lock_cancel(hf_lock *lock);

/* The same, waiting for the answer: HF_OK and *out is held, or what a callback would be
 * told. Only for a client with a thread of its own, and not inside a callback of it,
 * where it is HF_INVALID. */
HF_API HF_MUSTCHECK hf_err hf_lock_acquire_wait(hf_lock_client *locks,
                                                const hf_lock_opts *opts, hf_lock **out,
                                                char detail[HF_DETAIL_SIZE]);

/* ---- giving it back ---- */

/* Gives a lock back that is held, or was lost; ends the handle. The lock counts as not
 * held from this call on. Also in a callback of an event, and while holding a mutex that
 * such a callback takes: it does not wait for one. `cb` (may be NULL) is called when it
 * was answered and no such callback runs any more, or after request_timeout_ms. */
HF_API void hf_lock_release(hf_lock *lock, hf_lock_released_cb cb, void *arg);
/* At most request_timeout_ms: a callback of an event that has not ended by then, because
 * it waits for what the caller holds, may run on. `left` may be NULL. With a loop, and
 * inside a callback of this client, also of an event: HF_RELEASE_UNKNOWN, it is given
 * back without waiting. */
HF_API hf_lock_release_result hf_lock_release_wait(hf_lock *lock, size_t *left);

/* Exclusive to shared, without letting go; those that wait to share come in. Its callback
 * comes before that of a release which is asked for after it. HF_OK, HF_LOST (also: it
 * was released meanwhile), HF_INVALID (not an exclusive one of a line), HF_UNSURE: still
 * one of the two.
 */
HF_API HF_MUSTCHECK hf_err hf_lock_downgrade_wait(hf_lock *lock);
HF_API HF_MUSTCHECK hf_err hf_lock_downgrade(
    hf_lock *lock, void (*cb)(hf_lock *lock, hf_err err, void *arg), void *arg);

/* Sets the end of the lease to lease_ms from now, never earlier than it is; later
 * renewals use it as well. Sets, does not add; what goes beyond max_hold_ms is cut off,
 * and a fixed lock is still not renewed. HF_OK, HF_LOST, HF_INVALID (also for one that
 * has no room for the grace of the guarded group), HF_UNSURE. */
HF_API HF_MUSTCHECK hf_err hf_lock_extend_wait(hf_lock *lock, uint32_t lease_ms);

/* ---- is it still mine? Lock-free, from any thread, no request ---- */

HF_API bool hf_lock_held(const hf_lock *lock); /* HELD or SUSPECT, by the clock of now */
HF_API hf_lock_state hf_lock_get_state(const hf_lock *lock);
HF_API hf_lock_reason hf_lock_why(const hf_lock *lock);
/* Until the local deadline; 0: not held. Ask before each step that takes long. */
HF_API int64_t hf_lock_remaining_ms(const hf_lock *lock);
/* CLOCK_BOOTTIME of the local deadline in ns; 0: not held. */
HF_API uint64_t hf_lock_deadline_ns(const hf_lock *lock);
/* The fence of the grant: microseconds since 1970, or more. 0: not granted yet. */
HF_API uint64_t hf_lock_fence(const hf_lock *lock);
HF_API const char *hf_lock_owner_of(const hf_lock *lock);
/* A descriptor (eventfd) that becomes readable when the lock is lost, made at the first
 * call and closed with the handle; poll it, do not read it. -1: none can be made. */
HF_API int hf_lock_fd(hf_lock *lock);

/* ---- processes that may run only while it is held ---- */

/* Has a process group end with the lock: it gets TERM grace_ms before the local deadline
 * and KILL at the deadline, each counted anew from every renewal, by a small process that
 * does its work also while this one is stopped, and sends KILL at once when this one is
 * gone. When the lock is lost earlier, whatever the reason, it gets TERM at once and KILL
 * after grace_ms. That process (`holdfast minder`, one for each client) is started by the
 * first call, which waits for it, some milliseconds and at most 5 s. One group for each
 * lock; it may be the caller's own.
 *
 * group 0: it has ended, and is no longer guarded: to be told before its leader is
 * reaped, because another process may get the number afterwards. The same is said by a
 * release; hf_lock_client_close() kills the groups that are still guarded. From any
 * thread.
 *
 * HF_OK; the group is not guarded: HF_LOST (the lock is not held), HF_INVALID (no group,
 * or a lease or a grace that has no room for a renewal, see hf_lock_grace_max(); for a
 * fixed lease a grace of more than half of it; or another group is guarded), HF_CONFIG
 * (`holdfast` cannot be run as a minder), HF_SYSTEM (the minder has just gone, and is
 * being replaced; or no process, no memory for one), HF_FORKED. */
HF_API HF_MUSTCHECK hf_err hf_lock_guard(hf_lock *lock, pid_t group, uint32_t grace_ms);

/* The longest grace_ms for a lease that is renewed: half of it. Below a second it is
 * less, because a renewal, which is sent at a third of the lease, must have 100 ms to be
 * answered before TERM; else a healthy group would be ended. 0 below
 * HF_LOCK_GUARD_LEASE_MIN_MS, which hf_lock_guard() refuses. */
HF_API uint32_t hf_lock_grace_max(uint32_t lease_ms);

/* Was the guarded group sent TERM or KILL because of this lock, or may it have been? True
 * also when the lock was renewed after all: a program that obeyed and ended with 0 has
 * perhaps not done its work. To be asked before hf_lock_guard(lock, 0, 0) and before the
 * release. From any thread. */
HF_API bool hf_lock_guard_asked(hf_lock *lock);

/* ---- for operators ---- */

typedef struct hf_lock_entry {
    size_t size; /* the library sets it */
    char owner[HF_LOCK_OWNER_SIZE];
    char client[96]; /* host-pid-random of the client; "" for a plain SET */
    hf_lock_mode mode;
    uint32_t permits;
    bool granted, revoked;
    uint64_t fence;  /* 0: it waits */
    int64_t ends_ms; /* of its lease: Unix ms on Redis's clock, which alone does not end
                        it: it may be past */
    size_t holds;    /* acquisitions of this owner */
} hf_lock_entry;

typedef struct hf_lock_look {
    size_t size;            /* HF_LOCK_LOOK_INIT */
    int64_t now_ms;         /* Redis's */
    size_t all;             /* entries that there are */
    size_t n;               /* in `entries`: holders first, then waiters, in order */
    hf_lock_entry *entries; /* hf_lock_look_entry() gives one; hf_lock_look_done() ends
                               them */
} hf_lock_look;
#define HF_LOCK_LOOK_INIT HF_STRUCT_INIT(hf_lock_look)

/* These wait for the answer: only for a client with a thread of its own, and not inside a
 * callback of it. HF_OK, HF_INVALID, a fault, HF_UNSURE; `detail` may be NULL. */
HF_API HF_MUSTCHECK hf_err hf_lock_look_at(hf_lock_client *locks, const char *name,
                                           size_t limit, hf_lock_look *out,
                                           char detail[HF_DETAIL_SIZE]);
HF_API void hf_lock_look_done(hf_lock_look *look);
/* The i-th entry, borrowed from the look; NULL: there are fewer. */
HF_API const hf_lock_entry *hf_lock_look_entry(const hf_lock_look *look, size_t i);

/* Calls each(name, arg) for the locks there are, in no order, each at least once; false
 * ends it. That is a callback: not the place for a call that waits. It goes through all
 * keys of Redis in slices. */
HF_API HF_MUSTCHECK hf_err hf_lock_list(hf_lock_client *locks,
                                        bool (*each)(const char *name, void *arg),
                                        void *arg, char detail[HF_DETAIL_SIZE]);

/* Takes a lock away from its holder (owner NULL: from all that hold it). They hear of it
 * at once, within about 0.1 s while Redis answers, and are told LOST; the holder of an
 * HF_LOCK_SPIN hears of it with its next renewal. Until then two may believe; the next
 * fence is higher. *n: how many. */
HF_API HF_MUSTCHECK hf_err hf_lock_force(hf_lock_client *locks, const char *name,
                                         const char *owner, size_t *n,
                                         char detail[HF_DETAIL_SIZE]);
/* Asks holders to give it back: they are told HF_LOCK_EVENT_REVOKED at once, as above. */
HF_API HF_MUSTCHECK hf_err hf_lock_revoke(hf_lock_client *locks, const char *name,
                                          const char *owner, size_t *n,
                                          char detail[HF_DETAIL_SIZE]);

/* May the holder of `fence` still write to `resource` (a name of a lock; its tag says
 * where the highest fence is kept)? HF_OK: yes, and no lower one may from now on.
 * HF_LOST: no, a higher one was here, or the same one of another owner. *highest (may be
 * NULL) is told in both cases. remember_ms: how long Redis keeps it, in ms; 0: without
 * end. HF_POLICY: this Redis may evict keys, so it remembers no fences. */
HF_API HF_MUSTCHECK hf_err hf_fence_check(hf_lock_client *locks, const char *resource,
                                          uint64_t fence, const char *owner,
                                          int64_t remember_ms, uint64_t *highest,
                                          char detail[HF_DETAIL_SIZE]);

#ifdef __cplusplus
}
#endif

#endif
