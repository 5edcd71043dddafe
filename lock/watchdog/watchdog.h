/* watchdog.h - keeps leases alive from a thread and a connection of its own, and knows
 * when one is lost. Several watchdogs may share a thread (lock/watchdog/watch_loop.h).
 *
 * A lease is a promise with an end. The watchdog renews each at a third of its time, in
 * batches, by a function of its user's; it knows tokens only as the user's pointers. The
 * local deadline of a lease counts from before the request that was answered was sent,
 * minus drift and a margin, on CLOCK_BOOTTIME. Past it the lease is LOST even if Redis
 * cannot be asked, and also if an answer comes later. LOST is for ever.
 *
 *            renewed                     deadline passed, or Redis said so
 *   HELD <------------- HELD -------------------------------------------> LOST
 *
 * Calls are thread-safe unless said otherwise. Callbacks run on the watchdog's thread,
 * without any lock held, and must be quick. */
#ifndef HF_LOCK_WATCHDOG_WATCHDOG_H
#define HF_LOCK_WATCHDOG_WATCHDOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lock/watchdog/lease.h"
#include "lock/watchdog/watch_loop.h"

typedef struct hf_watchdog hf_watchdog;

typedef enum hf_lease_event {
    HF_LEASE_RENEWED,   /* hf_lease_deadline_ns() has moved */
    HF_LEASE_LOST,      /* once for each lease */
    HF_LEASE_CANCELLED, /* Redis carries a request to cancel; told at most once; still
                           held */
    HF_LEASE_LEFT,      /* after hf_watchdog_leave(): the callback that ran has ended; the
                           last one */
    HF_LEASE_SUSPECT    /* a renewal failed, the first one in a row or the second, but
                           none that is sent again at once; still held. Only told
                           where opts.suspects says so */
} hf_lease_event;

/* A batch that is being renewed. The user's `renew` sends it, and calls
 * hf_watchdog_answer() once for it, with the answers; from the answer's callback, or
 * before `renew` returns if it could not be sent. */
typedef struct hf_renew_batch {
    size_t group; /* as given to hf_watchdog_add() */
    size_t n;
    hf_lease **leases;   /* borrowed from the batch */
    uint32_t timeout_ms; /* for the request */
    bool full;           /* others follow: a connection of the user is flushed */
} hf_renew_batch;

typedef struct hf_watchdog_opts {
    uint32_t request_timeout_ms; /* the longest timeout_ms of a batch */
    hf_watch_loop *loop; /* shared with others, and not started yet: its owner starts
                            it; NULL: one of its own */
    uint32_t batch_max;  /* 500 */
    bool suspects;       /* the user gets HF_LEASE_SUSPECT, too */
    void (*renew)(hf_renew_batch *batch, void *arg);
    /* `user` is the lease's. Never called for a lease after hf_watchdog_drop() returned.
     */
    void (*on_event)(void *user, hf_lease *lease, hf_lease_event event, void *arg);
    /* At the time that hf_watchdog_call() has set; may be NULL. The user opens its
     * connections on this loop, and calls hf_watchdog_verify() when one is ready. */
    void (*on_call)(hf_watchdog *watchdog, struct uv_loop_s *loop, void *arg);
    /* The last call; may be NULL. The user closes what it has opened on that loop, and
     * calls `closed` once that is done. */
    void (*on_stop)(void (*closed)(void *arg), void *closed_arg, void *arg);
    void *arg;
} hf_watchdog_opts;

/* Starts the thread, unless the loop is shared. HF_SYSTEM, HF_NOMEM. */
HF_MUSTCHECK hf_err hf_watchdog_start(hf_watchdog **out, const hf_watchdog_opts *opts);
/* Waits until on_stop has closed all, and frees; every lease must have been dropped.
 * The last on a loop ends the thread. Not on the thread. NULL is fine. */
void hf_watchdog_stop(hf_watchdog *watchdog);

/* Looks after a lease of ttl_ms that was asked for at sent_ns (hf_boot_ns() before the
 * request was written). NULL: out of memory. The caller owns one reference, and ends it
 * with hf_watchdog_drop(). `renew_now`: before its third. */
hf_lease *hf_watchdog_add(hf_watchdog *watchdog, size_t group, uint32_t ttl_ms,
                          uint64_t sent_ns, bool renew_now, void *user);
/* The same for n at once, under one lock; leases[i] is NULL where memory ran out. */
void hf_watchdog_add_many(hf_watchdog *watchdog, size_t group, uint32_t ttl_ms,
                          uint64_t sent_ns, bool renew_now, void *const *users,
                          hf_lease **leases, size_t n);

/* on_call comes at at_ns, or earlier if it was due earlier. */
void hf_watchdog_call(hf_watchdog *watchdog, uint64_t at_ns);

/* Renews the lease once, at due_ns at the latest. If a renewal is under way, this one
 * comes after it. A lease that is not renewed any more is only asked for, with 1 ms,
 * which moves nothing. */
void hf_watchdog_hurry(hf_watchdog *watchdog, hf_lease *lease, uint64_t due_ns);
/* The lease is not renewed any more: it ends at its deadline. */
void hf_watchdog_fix(hf_watchdog *watchdog, hf_lease *lease);
/* The lease is LOST from now on. A caller does this before it gives back something that
 * is still in use. The event comes as always. */
void hf_watchdog_end(hf_watchdog *watchdog, hf_lease *lease);
/* The lease is LOST at at_ns at the latest. Renewals and extensions do not change this.
 */
void hf_watchdog_limit(hf_watchdog *watchdog, hf_lease *lease, uint64_t at_ns);
/* Another thread asked for ttl_ms at sent_ns, and the answer says that it is held. False:
 * it is lost. */
bool hf_watchdog_extend(hf_watchdog *watchdog, hf_lease *lease, uint32_t ttl_ms,
                        uint64_t sent_ns);

/* No more renewals, no more events; waits for a callback of the user (`renew`,
 * `on_event`) that runs with one of these leases. Do not call it inside one, or while
 * holding a lock that one waits for. The lease must not be used after. NULL among them is
 * fine.
 */
void hf_watchdog_drop(hf_watchdog *watchdog, hf_lease *lease);
void hf_watchdog_drop_many(hf_watchdog *watchdog, hf_lease *const *leases, size_t n);
/* The same without waiting, also from inside a callback. True: a callback runs with this
 * lease. HF_LEASE_LEFT comes when it has ended; until then the lease's user is in use. */
HF_MUSTCHECK bool hf_watchdog_leave(hf_watchdog *watchdog, hf_lease *lease);

bool hf_watchdog_has_leases(hf_watchdog *watchdog);

/* Renews everything at once (a failover, a queue that moved, a new connection, a
 * clock that jumped). */
void hf_watchdog_verify(hf_watchdog *watchdog);
/* When that was called last, by hf_boot_ns(); 0: never. What was locked before may have
 * no lock until it is renewed. Any thread. */
uint64_t hf_watchdog_verify_ns(const hf_watchdog *watchdog);

/* For `renew`: the answer to the whole batch. err HF_OK: codes[i] is HF_OK, HF_LOST,
 * HF_CANCEL, HF_IN_LINE (as HF_OK), or a fault for leases[i]; any other err: nothing was
 * renewed. Leases that were not renewed are tried again until the deadline, after
 * 100 ms, doubled up to 1 s. `sent_ns`:
 * before it was sent. On the watchdog's thread. The users of leases may be gone by then:
 * further notes of the answers are kept in notes[i] (may be NULL) for on_event. */
void hf_watchdog_answer(hf_renew_batch *batch, hf_err err, uint64_t sent_ns,
                        const hf_err *codes, const hf_lease_note *notes);

#endif
