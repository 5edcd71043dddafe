/* lock_set.h - one lock over several servers, made of locks of lock.h on each.
 *
 * Two rules, one handle:
 *
 *   MultiLock  locks of several servers, held while ALL of them are held. For work that
 *              needs several things that live apart.
 *   RedLock    one name on an odd number of independent servers, held while a MAJORITY of
 *              them holds it. For a lock that outlives the loss of a server.
 *
 * Neither is atomic: each server decides for itself, and what was taken is given back
 * when the rest cannot be acquired. Only locks of one server and one tag are atomic
 * (`names` of lock.h).
 *
 * A MultiLock takes its members one after the other, in the same order for all callers:
 * by the server's address, then by the tag. So callers that name the same
 * locks in opposite orders never wait for each other in a circle. The address is the
 * host and port, or the path, as the URL has it: write it in the same way everywhere, for
 * "localhost" and "127.0.0.1" are two places in that order (with those a circle can
 * close, and wait_ms ends it). When one cannot be acquired, the rule is that of
 * Curator's InterProcessMultiLock: all that were taken are released in reverse, each is
 * tried whatever became of the others.
 *
 * RedLock is the algorithm of Redis's documentation ("Distributed Locks with Redis"):
 * one random owner on all servers, all asked at once with a time-out far below the lease,
 * success only with a majority and while its leases last, otherwise released everywhere,
 * also where no answer came, and tried again after a random delay. The validity is the
 * majority-th largest of the local deadlines, each of which counts from before its own
 * request was sent, minus drift and a margin. Each server's lease is renewed separately.
 * A server that lost the lock (restarted, not reached for a lease) counts as missing, and
 * is entered again with the same owner, but only while a majority still holds.
 *
 * RedLock buys availability, not correctness: a server that forgets (a restart without
 * persistence, an asynchronous failover) can give its vote twice, and then two clients
 * hold (docs/locks.md has the counterexample). There is no fence over several servers,
 * so it must not guard what must never be written by two.
 *
 * Loops, threads, callbacks and fork() as in lock.h; times are ms. */
#ifndef HOLDFAST_LOCK_SET_H
#define HOLDFAST_LOCK_SET_H

#include "holdfast/lock.h"
#include "holdfast/struct.h"

typedef struct hf_lock_servers hf_lock_servers; /* a client of several servers */
typedef struct hf_lock_set hf_lock_set;         /* one acquisition */

enum {
    HF_LOCK_SERVERS_MAX = 15,
    HF_LOCK_MEMBERS_MAX = 16, /* of a MultiLock */
    HF_REDLOCK_SERVERS_MIN = 3
};

/* SUSPECT: it stands only because leases stand whose last renewal failed. LOST: of a
 * MultiLock one member was lost (the others are kept until the release), of a RedLock
 * fewer than a majority are left; hf_lock_set_why() says why. `member` is the one whose
 * news it is: its place in `members`, or in the servers' `urls`. Called one at a time, on
 * threads that renew; the rules of hf_lock_event_cb. */
typedef void (*hf_lock_set_event_cb)(hf_lock_set *set, hf_lock_event event, size_t member,
                                     void *arg);

/* As hf_lock_acquired_cb; `detail` says which server. HF_LOST (MultiLock): a member that
 * was taken was lost while the others were waited for. HF_CONN (RedLock): too few servers
 * answered. When this is called with a fault, all that had been taken was given back;
 * what a server did not answer to is given back when it can be reached, or ends with its
 * lease, and `detail` says so. */
typedef void (*hf_lock_set_acquired_cb)(hf_lock_set *set, hf_err err, const char *detail,
                                        void *arg);

/* `each`: what became of each member, in the order of `members` or `urls`, n of them,
 * borrowed. `result`: of a MultiLock the worst of them (the last in
 * hf_lock_release_result); of a RedLock what a majority said, at the best. A server that
 * did not have the lock any more says HF_RELEASE_EXPIRED. The handle is freed when it
 * returns. */
typedef void (*hf_lock_set_released_cb)(hf_lock_set *set, hf_lock_release_result result,
                                        const hf_lock_release_result *each, size_t n,
                                        void *arg);

/* Zero means the default. All is copied. */
typedef struct hf_multilock_member {
    size_t size;              /* HF_MULTILOCK_MEMBER_INIT */
    size_t server;            /* its place in `urls` */
    const hf_lock_opts *lock; /* as in lock.h; wait_ms and on_event are the set's: leave
                                 them 0 */
} hf_multilock_member;
#define HF_MULTILOCK_MEMBER_INIT HF_STRUCT_INIT(hf_multilock_member)

typedef struct hf_multilock_opts {
    size_t size;                        /* HF_MULTILOCK_OPTS_INIT */
    const hf_multilock_member *members; /* in any order; at most one for each server and
                                           tag, whose locks are its `names` */
    size_t n_members;                   /* 1..HF_LOCK_MEMBERS_MAX */
    int64_t wait_ms;                    /* for all of them together; as in lock.h */
    hf_lock_set_event_cb on_event;
    void *event_arg;
} hf_multilock_opts;
#define HF_MULTILOCK_OPTS_INIT HF_STRUCT_INIT(hf_multilock_opts)

typedef struct hf_redlock_opts {
    size_t size; /* HF_REDLOCK_OPTS_INIT */
    const char *name;
    int64_t wait_ms;          /* as in lock.h */
    uint32_t lease_ms;        /* HF_LOCK_LEASE_MS */
    uint32_t node_timeout_ms; /* a server that does not answer in this time is left out of
                                 a try: a hundredth of the lease, at least 50; 1 to a
                                 quarter of the lease */
    bool fixed;               /* never renewed */
    uint32_t max_hold_ms;     /* 0: as long as it takes */
    hf_lock_set_event_cb on_event;
    void *event_arg;
} hf_redlock_opts;
#define HF_REDLOCK_OPTS_INIT HF_STRUCT_INIT(hf_redlock_opts)

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the client ---- */

/* Starts to connect to all, does not wait for it. `urls`: n of them, 1 to
 * HF_LOCK_SERVERS_MAX, of different places. `opts` (NULL: the defaults) is for
 * each of them; its url, on_event, arg and minder must be left out. HF_INVALID,
 * HF_CONFIG, HF_NOMEM, HF_SYSTEM: *out is untouched and `detail` (may be NULL) says why.
 * The caller owns *out. */
HF_API HF_MUSTCHECK hf_err hf_lock_servers_open(hf_lock_servers **out,
                                                const char *const *urls, size_t n,
                                                const hf_lock_client_opts *opts,
                                                char detail[HF_DETAIL_SIZE]);

/* Gives every set back, answers what is under way with HF_CLOSED, then frees the client;
 * at most twice request_timeout_ms. With a loop: returns at once and calls cb (may be
 * NULL). Without: returns at the end. NULL is fine. */
HF_API void hf_lock_servers_close(hf_lock_servers *servers, void (*cb)(void *arg),
                                  void *arg);

/* ---- taking ---- */

/* HF_OK: cb will be called exactly once, and *out (may be NULL) is good for
 * hf_lock_set_cancel() until then. HF_INVALID (and `detail`, which may be NULL, says
 * what), HF_CLOSED, HF_FORKED, HF_NOMEM, HF_SYSTEM: it never will be. The callback comes
 * at the latest connect_timeout_ms or wait_ms after the call, whichever is longer, and
 * node_timeout_ms and twice request_timeout_ms more. */
HF_API HF_MUSTCHECK hf_err hf_multilock_acquire(hf_lock_servers *servers,
                                                const hf_multilock_opts *opts,
                                                hf_lock_set_acquired_cb cb, void *arg,
                                                hf_lock_set **out,
                                                char detail[HF_DETAIL_SIZE]);
/* The same; HF_INVALID also with fewer than three servers, or an even number of them. */
HF_API HF_MUSTCHECK hf_err hf_redlock_acquire(hf_lock_servers *servers,
                                              const hf_redlock_opts *opts,
                                              hf_lock_set_acquired_cb cb, void *arg,
                                              hf_lock_set **out,
                                              char detail[HF_DETAIL_SIZE]);

/* The same, waiting for the answer: only for a client with a thread of its own, and not
 * inside a callback of it, where it is HF_INVALID. */
HF_API HF_MUSTCHECK hf_err hf_multilock_acquire_wait(hf_lock_servers *servers,
                                                     const hf_multilock_opts *opts,
                                                     hf_lock_set **out,
                                                     char detail[HF_DETAIL_SIZE]);
HF_API HF_MUSTCHECK hf_err hf_redlock_acquire_wait(hf_lock_servers *servers,
                                                   const hf_redlock_opts *opts,
                                                   hf_lock_set **out,
                                                   char detail[HF_DETAIL_SIZE]);

/* Ends the wait: HF_CANCEL, or HF_OK when the grant was faster. From any thread when the
 * client has its own. */
HF_API void hf_lock_set_cancel(hf_lock_set *set);

/* ---- giving it back ---- */

/* Gives all members back, in reverse, each of them whatever becomes of the others; ends
 * the handle. It counts as not held from this call on. At most request_timeout_ms. */
HF_API void hf_lock_set_release(hf_lock_set *set, hf_lock_set_released_cb cb, void *arg);
/* `each` (may be NULL): room for hf_lock_set_size() of them. With a loop, and inside a
 * callback of this client, also of an event: HF_RELEASE_UNKNOWN, it is given back without
 * waiting.
 */
HF_API hf_lock_release_result hf_lock_set_release_wait(hf_lock_set *set,
                                                       hf_lock_release_result *each);

/* ---- is it still mine? From any thread, no request, also in an event's callback ---- */

HF_API bool hf_lock_set_held(const hf_lock_set *set);
HF_API hf_lock_state hf_lock_set_get_state(const hf_lock_set *set); /* never WAITING */
/* Why it is not held any more; `member` (may be NULL): whose loss was the one too many.
 */
HF_API hf_lock_reason hf_lock_set_why(const hf_lock_set *set, size_t *member);
/* Until the local deadline: of a MultiLock the first of its members', of a RedLock the
 * majority-th largest. 0: not held. Ask before each step that takes long. */
HF_API int64_t hf_lock_set_remaining_ms(const hf_lock_set *set);
/* CLOCK_BOOTTIME of the same in ns; 0: not held. */
HF_API uint64_t hf_lock_set_deadline_ns(const hf_lock_set *set);
/* How many members there are; how many of them are held at this moment. */
HF_API size_t hf_lock_set_size(const hf_lock_set *set);
HF_API size_t hf_lock_set_standing(const hf_lock_set *set);
/* The fence of a member of a MultiLock, good for what is guarded by that server's lock
 * alone. 0: it is not held, or the set is a RedLock, where there is none: the servers'
 * numbers cannot be compared, and hf_lock_fence() of one of them would mean nothing. */
HF_API uint64_t hf_lock_set_fence(const hf_lock_set *set, size_t member);
/* A descriptor as of hf_lock_fd(), readable when the set is lost. -1: none can be made.
 */
HF_API int hf_lock_set_fd(hf_lock_set *set);

#ifdef __cplusplus
}
#endif

#endif
