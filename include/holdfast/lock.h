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
 * LOST is final. If Redis has only forgotten the script, the client asks again at once
 * and reports nothing.
 *
 * All modes (exclusive, shared, permits, reentrant) use one line of leased entries for
 * each name, in order of arrival: the recipe of ephemeral sequential nodes from
 * ZooKeeper's documentation, with leases for sessions. A waiter sends a renewal every
 * third of a lease and does not poll. Each release wakes exactly the waiters that now
 * hold the lock. A client that waits for locks of more than 256 tags at a time (of 32
 * slots in a cluster) asks for the others four times a second.
 *
 * In a cluster each lock is on the node that has the slot of its tag, and follows that
 * slot. While no node serves the slot, an acquisition waits until wait_ms is over, and a
 * held lock is SUSPECT until its deadline.
 *
 * A client can be opened in two ways, like a producer. With a loop of libuv, all calls
 * and callbacks belong to that loop's thread, except the callbacks of events
 * (hf_lock_event_cb), and no call blocks. Without a loop the client has a thread of its
 * own, which runs all callbacks except those of events. The client is thread-safe then,
 * and the calls that end in _wait may be used; inside a callback of the same client they
 * return HF_INVALID at once. A callback is never called from inside the call that it
 * belongs to. After fork() the child must not use the parent's client: HF_FORKED. */
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
    /* Bytes of a lock's name, of [A-Za-z0-9._:-] with at most one '/' between them. The
     * part before the '/' is its tag; a name without '/' is its own tag. Locks of one tag
     * share a hash slot and a counter of fences, and can be taken together. */
    HF_LOCK_NAME_MAX = 128,
    HF_LOCK_NAMES_MAX = 16, /* locks in one acquisition */
    HF_LOCK_OWNER_MAX = 64, /* bytes of an owner, of [A-Za-z0-9._:-] */
    HF_LOCK_OWNER_SIZE = HF_LOCK_OWNER_MAX + 1,
    HF_LOCK_LEASE_MIN_MS = 100,       /* of every lease, in ms */
    HF_LOCK_LEASE_MAX_MS = 86400000,  /* a day */
    HF_LOCK_LEASE_MS = 30000,         /* the default */
    HF_LOCK_GUARD_LEASE_MIN_MS = 250, /* of a renewed lease, for hf_lock_guard() */
    HF_LOCK_PERMITS_MAX = 100000,
    HF_LOCK_HOLDS_MAX = 256 /* holds of one owner in one lock */
};

/* Special values of wait_ms. */
#define HF_WAIT_NONE INT64_C(0)     /* one try */
#define HF_WAIT_FOREVER INT64_C(-1) /* wait until the lock is held or cancelled */

typedef enum hf_lock_mode {
    HF_LOCK_EXCLUSIVE,
    HF_LOCK_SHARED, /* shared with other HF_LOCK_SHARED; an earlier exclusive waiter goes
                       first */
    HF_LOCK_PERMITS /* takes `permits` of `limit` */
} hf_lock_mode;

typedef enum hf_lock_form {
    HF_LOCK_LINE, /* a fair lock: in order of arrival; the default */
    HF_LOCK_SPIN  /* a simple lock: SET NX PX. A waiter tries again after 1 ms, then after
                     up to 128 ms, doubling, with jitter. There is no order, and a waiter
                     is not seen in Redis. Only one name, exclusive, not reentrant */
} hf_lock_form;

typedef enum hf_lock_state {
    HF_LOCK_ENTERING, /* requested, no answer yet */
    HF_LOCK_WAITING,  /* Redis has answered: another owner has it */
    HF_LOCK_HELD,
    HF_LOCK_SUSPECT, /* still held, but the last renewal failed */
    HF_LOCK_GONE     /* lost, released, cancelled, or never held: see hf_lock_why() */
} hf_lock_state;

/* Why a lock is no longer held. */
typedef enum hf_lock_reason {
    HF_LOCK_NOT_LOST, /* it is held, or it never was */
    HF_LOCK_RELEASED, /* its holder released it */
    HF_LOCK_DEADLINE, /* the local deadline passed: no renewal was answered in time */
    HF_LOCK_REFUSED,  /* Redis has no such lease: it ended, was deleted, or was lost by a
                         failover or a restart */
    HF_LOCK_FORCED,   /* hf_lock_force() took it away */
    HF_LOCK_MAX_HOLD, /* it was held for max_hold_ms */
    HF_LOCK_CLOSED    /* the client was closed */
} hf_lock_reason;

/* The result of a release. */
typedef enum hf_lock_release_result {
    HF_RELEASE_DONE,       /* this owner has no hold on the lock any more */
    HF_RELEASE_STILL_HELD, /* other holds of the same owner remain */
    HF_RELEASE_EXPIRED,    /* the lease had ended before; no other owner has it alone */
    HF_RELEASE_NOT_OWNER,  /* the lease had ended before; another owner has it */
    HF_RELEASE_UNKNOWN /* no answer in time: the lock ends with its lease at the latest */
} hf_lock_release_result;

typedef enum hf_lock_event {
    HF_LOCK_EVENT_SUSPECT, /* a renewal failed; still held for hf_lock_remaining_ms() */
    HF_LOCK_EVENT_HELD,    /* renewed again after SUSPECT */
    HF_LOCK_EVENT_REVOKED, /* hf_lock_revoke() asks the holder to release it; still held
                            */
    HF_LOCK_EVENT_LOST     /* the last event, once; hf_lock_why() has the reason */
} hf_lock_event;

/* Called on the thread that renews the client's leases, even if the client has a loop: a
 * busy loop cannot delay it. It must be quick. It may call only the functions under "is
 * it still mine?", and hf_lock_release() or hf_lock_release_wait() of this lock. No
 * callback begins after the release; one that is running then has returned before the
 * release is reported. */
typedef void (*hf_lock_event_cb)(hf_lock *lock, hf_lock_event event, void *arg);

/* HF_OK: the lock is held. After any other answer it is not held, nothing of it outlives
 * its lease in Redis, and the handle is freed when the callback returns. HF_TAKEN:
 * another owner has it, and wait_ms is over; `detail` says how long its holder has not
 * renewed, if that is longer than its lease, else it is empty. HF_DEADLOCK: the same
 * owner has it already, without being reentrant, or asks for more (shared to exclusive).
 * HF_LIMIT: the lock has another number of permits, or its owner too many holds.
 * HF_CANCEL: hf_lock_cancel(). HF_CLOSED: the client was closed. HF_POLICY: this Redis
 * may evict keys, so it can give no locks. Otherwise a fault.
 *
 * If a lease is lost right after its grant, HF_LOCK_EVENT_LOST may come before this. */
typedef void (*hf_lock_acquired_cb)(hf_lock *lock, hf_err err, const char *detail,
                                    void *arg);

/* The answer of hf_lock_downgrade(). */
typedef void (*hf_lock_changed_cb)(hf_lock *lock, hf_err err, const char *detail,
                                   void *arg);

/* `left`: remaining holds of the same owner. The handle is freed when it returns. */
typedef void (*hf_lock_released_cb)(hf_lock *lock, hf_lock_release_result result,
                                    size_t left, void *arg);

/* Zero means the default. All text is copied. */
typedef struct hf_lock_client_opts {
    size_t size;            /* HF_LOCK_CLIENT_OPTS_INIT */
    struct uv_loop_s *loop; /* borrowed; NULL: a thread of its own, thread-safe */
    const hf_server_opts
        *server;               /* which Redis; NULL: the defaults. A request that
                                  reaches Redis after request_timeout_ms does nothing */
    hf_lock_event_cb on_event; /* for each lock without its own; may be NULL */
    void *arg;
    const char *minder; /* path of the `holdfast` command, for hf_lock_guard(); NULL:
                           found by PATH */
} hf_lock_client_opts;
#define HF_LOCK_CLIENT_OPTS_INIT HF_STRUCT_INIT(hf_lock_client_opts)

/* Zero means the default. All text is copied. */
typedef struct hf_lock_opts {
    size_t size;              /* HF_LOCK_OPTS_INIT */
    const char *const *names; /* 1..HF_LOCK_NAMES_MAX different names of one tag: all or
                                 none are acquired in one step, even after a wait */
    size_t n_names;
    hf_lock_mode mode;
    hf_lock_form form;
    uint32_t permits, limit; /* HF_LOCK_PERMITS: 1..limit permits of limit,
                                1..HF_LOCK_PERMITS_MAX */
    bool reentrant;    /* `owner` (not NULL) may hold it several times. All processes
                          of the owner share one fence; a dead one takes part until
                          its lease is over */
    const char *owner; /* common to all acquisitions that belong together; NULL: 128
                          random bits. HF_LOCK_SPIN cannot tell two acquisitions of
                          one owner apart: both hold, and one release ends both */
    int64_t wait_ms; /* HF_WAIT_NONE (0), HF_WAIT_FOREVER or 1..2^40. Tries of one machine
                        add up: a try that was refused leaves the evidence by which a
                        later one gets the lock of a dead holder (docs/locks.md) */
    uint32_t reach_ms;         /* Redis must be reached in this time, or in
                                  connect_timeout_ms if that is shorter; 0: the latter */
    uint32_t lease_ms;         /* HF_LOCK_LEASE_MIN_MS..HF_LOCK_LEASE_MAX_MS; default
                                  HF_LOCK_LEASE_MS */
    bool fixed;                /* never renewed: it ends with its lease */
    uint32_t max_hold_ms;      /* longest time that it is held, in spite of renewals and
                                  extensions; 0: no limit */
    uint32_t wait_replicas;    /* the minimum of replicas that must confirm it within
                                  request_timeout_ms; every connected one must. Else it is
                                  released, and the answer is HF_MISCONF. A renewal that
                                  they do not confirm has failed */
    hf_lock_event_cb on_event; /* NULL: the client's */
    void *event_arg;
} hf_lock_opts;
#define HF_LOCK_OPTS_INIT HF_STRUCT_INIT(hf_lock_opts)

#ifdef __cplusplus
extern "C" {
#endif

/* HF_OK: `name` is a valid name of a lock; else HF_INVALID. */
HF_API HF_MUSTCHECK hf_err hf_lock_name_check(const char *name);

/* ---- the client ---- */

/* Makes a client and starts to connect it, without waiting. The caller owns *out and ends
 * it with hf_lock_client_close(). HF_INVALID, HF_CONFIG, HF_NOMEM, HF_SYSTEM: *out is
 * untouched. */
HF_API HF_MUSTCHECK hf_err hf_lock_client_open(hf_lock_client **out,
                                               const hf_lock_client_opts *opts,
                                               char detail[HF_DETAIL_SIZE]);

/* Releases every lock (at most request_timeout_ms), answers waiting acquisitions with
 * HF_CLOSED, and frees the client; its handles must not be used any more. With a loop:
 * returns at once, and calls cb (may be NULL) on the loop's thread at the end. Without a
 * loop: returns at the end; called inside a callback of this client it would wait for
 * itself, so it aborts the program. NULL is fine. */
HF_API void hf_lock_client_close(hf_lock_client *locks, void (*cb)(void *arg), void *arg);

/* Makes an owner: 128 random bits as 32 hexadecimal digits. HF_SYSTEM: the system has no
 * random numbers. */
HF_API HF_MUSTCHECK hf_err hf_lock_owner_make(char out[HF_LOCK_OWNER_SIZE]);

/* ---- acquiring ---- */

/* Requests a lock. HF_OK: cb will be called exactly once, and *out (out may be NULL) is
 * the handle, which may be given to hf_lock_cancel() until then. HF_INVALID, HF_CLOSED,
 * HF_FORKED, HF_NOMEM: cb will not be called. Redis must be reached within
 * connect_timeout_ms or reach_ms, whatever wait_ms is; a refusal (HF_AUTH,
 * HF_UNSUPPORTED, HF_CONFIG) ends the attempt at once. In the line, the lock waits
 * through an outage of Redis until wait_ms is over. */
HF_API HF_MUSTCHECK hf_err hf_lock_acquire(hf_lock_client *locks,
                                           const hf_lock_opts *opts,
                                           hf_lock_acquired_cb cb, void *arg,
                                           hf_lock **out, char detail[HF_DETAIL_SIZE]);

/* Ends the wait: the callback gets HF_CANCEL, or HF_OK if the grant came first. From any
 * thread if the client has a thread of its own. */
HF_API void hf_lock_cancel(hf_lock *lock);

/* Requests a lock and waits. HF_OK: *out is held. Otherwise an answer of
 * hf_lock_acquire() or of its callback. The client must have its own thread; inside one
 * of its callbacks the answer is HF_INVALID. */
HF_API HF_MUSTCHECK hf_err hf_lock_acquire_wait(hf_lock_client *locks,
                                                const hf_lock_opts *opts, hf_lock **out,
                                                char detail[HF_DETAIL_SIZE]);

/* ---- releasing ---- */

/* Releases a lock that is held or was lost, and ends the handle. The lock counts as not
 * held from this call on. The call does not wait for a callback of an event, so it may be
 * made in such a callback, or while the caller holds a mutex that such a callback takes.
 * `cb` (may be NULL) is called after the answer, when no such callback runs any more, or
 * after request_timeout_ms. */
HF_API void hf_lock_release(hf_lock *lock, hf_lock_released_cb cb, void *arg);
/* The same, waiting at most request_timeout_ms. After that time a callback of an event,
 * which waits for something that the caller holds, may still run. `left` may be NULL. If
 * the client has a loop, and inside any callback of this client, the call does not wait
 * and returns HF_RELEASE_UNKNOWN. */
HF_API hf_lock_release_result hf_lock_release_wait(hf_lock *lock, size_t *left);

/* Makes an exclusive hold shared, without a gap; waiters that want to share get the lock,
 * too. The callback comes before that of a later release. HF_OK. HF_LOST: it is not held
 * (any more). HF_INVALID: it is not exclusive, or not a fair lock. HF_UNSURE: it may be
 * shared or still exclusive. */
HF_API HF_MUSTCHECK hf_err hf_lock_downgrade_wait(hf_lock *lock,
                                                  char detail[HF_DETAIL_SIZE]);
HF_API HF_MUSTCHECK hf_err hf_lock_downgrade(hf_lock *lock, hf_lock_changed_cb cb,
                                             void *arg, char detail[HF_DETAIL_SIZE]);

/* Lets the lease end lease_ms from now, but never earlier than before, nor later than
 * max_hold_ms allows. Later renewals use lease_ms, too; a fixed lock is still not
 * renewed. HF_OK. HF_LOST: it is not held. HF_INVALID: lease_ms is out of range, or too
 * short for the grace of the guarded group. HF_UNSURE: it may have been extended.
 * HF_UNCONFIRMED: it was, but too few replicas have it (wait_replicas), so the local
 * deadline has not moved. */
HF_API HF_MUSTCHECK hf_err hf_lock_extend_wait(hf_lock *lock, uint32_t lease_ms,
                                               char detail[HF_DETAIL_SIZE]);

/* ---- is it still mine? Lock-free, from any thread, no request ---- */

/* HELD or SUSPECT, and the local deadline has not passed. */
HF_API bool hf_lock_held(const hf_lock *lock);
HF_API hf_lock_state hf_lock_get_state(const hf_lock *lock);
HF_API hf_lock_reason hf_lock_why(const hf_lock *lock);
/* The time until the local deadline; 0: not held. Check it before each long step. */
HF_API int64_t hf_lock_remaining_ms(const hf_lock *lock);
/* The local deadline in ns of CLOCK_BOOTTIME; 0: not held. */
HF_API uint64_t hf_lock_deadline_ns(const hf_lock *lock);
/* The fence of the grant: microseconds since 1970, or a higher number. 0: not granted. */
HF_API uint64_t hf_lock_fence(const hf_lock *lock);
/* Its owner. Borrowed from the handle. */
HF_API const char *hf_lock_owner_of(const hf_lock *lock);
/* An eventfd that becomes readable when the lock is lost. The first call makes it, and it
 * is closed with the handle; poll it, and do not read from it. -1: none can be made. */
HF_API int hf_lock_fd(hf_lock *lock);

/* ---- processes that may run only while the lock is held ---- */

/* Guards a process group: it ends with the lock. The group gets TERM grace_ms before the
 * local deadline and KILL at the deadline; every renewal moves both. If the lock is lost
 * earlier, for any reason, the group gets TERM at once and KILL after grace_ms. A small
 * process, the minder (`holdfast minder`, one for each client), sends the signals, even
 * while this process is stopped; when this process is gone it sends KILL at once. The
 * first call starts the minder and waits for it, some milliseconds and at most 5 s. A
 * lock guards one group, which may be the caller's own. If the leader is a child of the
 * caller, and not the caller's own, its limit RLIMIT_LOCKS, which Linux does not use, is
 * set to a number that its descendants inherit: KILL then reaches those too that leave
 * the group (setsid).
 *
 * group 0: the group has ended, and is no longer guarded. Call this before the leader of
 * the group is reaped, because its number may then pass to another process. A release
 * does the same; hf_lock_client_close() kills groups that are still guarded. From any
 * thread.
 *
 * HF_OK: the group is guarded; after any other answer it is not. HF_LOST: the lock is not
 * held. HF_INVALID: `group` is 1 or less; the lock guards another group; the lease or
 * the grace leaves no room for a renewal (hf_lock_grace_max()); or the grace is more than
 * half of a fixed lease. HF_CONFIG: `holdfast` cannot be run as a minder. HF_SYSTEM: the
 * minder is gone and is being replaced, or the system has no process or memory for one.
 * HF_FORKED. */
HF_API HF_MUSTCHECK hf_err hf_lock_guard(hf_lock *lock, pid_t group, uint32_t grace_ms,
                                         char detail[HF_DETAIL_SIZE]);

/* The longest grace_ms for a renewed lease: half of it, and less for a lease below 1 s. A
 * renewal is sent after a third of the lease, and needs 100 ms for its answer before TERM
 * would end a healthy group. 0 for a lease below HF_LOCK_GUARD_LEASE_MIN_MS, which
 * hf_lock_guard() refuses. */
HF_API uint32_t hf_lock_grace_max(uint32_t lease_ms);

/* Whether the guarded group was, or may have been, sent TERM or KILL because of this
 * lock. It stays true if the lock was renewed after that: a program that obeyed and
 * exited with 0 may not have done its work. Call it before hf_lock_guard() with group 0
 * and before the release. From any thread. */
HF_API bool hf_lock_guard_asked(hf_lock *lock);

/* KILL to all that the guarded group has started, also to what has left it, and waits
 * until all of that has exited. For a command that has failed, or was told to end: what
 * it left must not run beside the next holder. Call it before hf_lock_guard() with group
 * 0. False: some of it is left after timeout_ms. True at once where nothing is guarded.
 * From any thread; it blocks. */
HF_API bool hf_lock_guard_kill(hf_lock *lock, uint32_t timeout_ms);

/* ---- for operators ---- */

typedef struct hf_lock_entry {
    size_t size; /* the library sets it */
    char owner[HF_LOCK_OWNER_SIZE];
    char client[96]; /* host-pid-random of the client; "" for a plain SET */
    hf_lock_mode mode;
    uint32_t permits;
    bool granted, revoked;
    uint64_t fence;   /* 0: it waits */
    int64_t ends_ms;  /* the end of its lease: Unix ms on Redis's clock. It may be past,
                         because this clock alone does not end a lease */
    size_t holds;     /* of this owner */
    int64_t since_ms; /* when it was granted the lock, or joined the line: Unix ms; 0: not
                         known */
    int64_t
        lease_ms; /* the length of its lease; 0: of a plain SET, which ends by itself */
} hf_lock_entry;

typedef struct hf_lock_look {
    size_t size;    /* HF_LOCK_LOOK_INIT */
    int64_t now_ms; /* Unix ms on Redis's clock */
    size_t all;     /* entries of the lock */
    size_t n;       /* of them in `entries`: holders first, then waiters in order */
    hf_lock_entry *entries; /* read with hf_lock_look_entry(), freed by
                               hf_lock_look_done() */
    size_t holders;         /* of all entries; the others wait */
    uint32_t taken, limit;  /* permits that are taken, of so many; 0: it has none */
} hf_lock_look;
#define HF_LOCK_LOOK_INIT HF_STRUCT_INIT(hf_lock_look)

/* The calls below wait for the answer, so the client must have its own thread, and they
 * must not be made inside one of its callbacks. HF_OK, HF_INVALID, a fault, HF_UNSURE. */

/* The holders and waiters of a lock, at most `limit` (1..1000) of them. End *out with
 * hf_lock_look_done(). */
HF_API HF_MUSTCHECK hf_err hf_lock_look_at(hf_lock_client *locks, const char *name,
                                           size_t limit, hf_lock_look *out,
                                           char detail[HF_DETAIL_SIZE]);
HF_API void hf_lock_look_done(hf_lock_look *look);
/* The i-th entry, borrowed from *look; NULL: there are fewer. */
HF_API const hf_lock_entry *hf_lock_look_entry(const hf_lock_look *look, size_t i);

/* Calls each(name, arg) for every lock, in no order, at least once each, until it returns
 * false. `each` is a callback of the client, so it must not make a call that waits. The
 * call goes through all keys of Redis in slices; in a cluster through those of each node,
 * and a lock whose slot moves meanwhile may be missing. */
HF_API HF_MUSTCHECK hf_err hf_lock_list(hf_lock_client *locks,
                                        bool (*each)(const char *name, void *arg),
                                        void *arg, char detail[HF_DETAIL_SIZE]);

/* The same for at most within_ms. HF_TIMEOUT: not all keys were looked at by then;
 * `place` is where the next call goes on. "": from the beginning; also what it is when
 * all keys were looked at. NULL: from the beginning each time. */
enum { HF_LOCK_PLACE_SIZE = 32 };
HF_API HF_MUSTCHECK hf_err hf_lock_list_for(hf_lock_client *locks,
                                            char place[HF_LOCK_PLACE_SIZE],
                                            uint32_t within_ms,
                                            bool (*each)(const char *name, void *arg),
                                            void *arg, char detail[HF_DETAIL_SIZE]);

/* Takes a lock away from its holder (owner NULL: from all its holders). They get
 * HF_LOCK_EVENT_LOST within about 0.1 s while Redis answers; the holder of an
 * HF_LOCK_SPIN gets it with its next renewal. Until then two holders may believe that
 * they have the lock; the next fence is higher. *n: how many holders lost it. */
HF_API HF_MUSTCHECK hf_err hf_lock_force(hf_lock_client *locks, const char *name,
                                         const char *owner, size_t *n,
                                         char detail[HF_DETAIL_SIZE]);
/* The same for the one holder with this fence (hf_lock_entry). A later hold has another
 * fence, also one of the same owner, and stays. */
HF_API HF_MUSTCHECK hf_err hf_lock_force_fence(hf_lock_client *locks, const char *name,
                                               uint64_t fence, size_t *n,
                                               char detail[HF_DETAIL_SIZE]);
/* Asks holders to release a lock: they get HF_LOCK_EVENT_REVOKED, as fast as above. */
HF_API HF_MUSTCHECK hf_err hf_lock_revoke(hf_lock_client *locks, const char *name,
                                          const char *owner, size_t *n,
                                          char detail[HF_DETAIL_SIZE]);

/* Asks whether the holder of `fence` may still write to `resource`, a name like that of a
 * lock. Redis keeps the highest fence of each resource, at its tag, for remember_ms (0:
 * without end); a step of its clock forward ends that time early. HF_OK: it may write,
 * and no lower fence may from now on. HF_LOST: it may not; a higher fence was here, or
 * the same fence of another owner. After both *highest (may be NULL) is the highest
 * fence. HF_POLICY: this Redis may evict keys, so it cannot remember fences. */
HF_API HF_MUSTCHECK hf_err hf_fence_check(hf_lock_client *locks, const char *resource,
                                          uint64_t fence, const char *owner,
                                          int64_t remember_ms, uint64_t *highest,
                                          char detail[HF_DETAIL_SIZE]);

#ifdef __cplusplus
}
#endif

#endif
