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
 * by the server's address, then by the tag. So callers that name the same locks in
 * opposite orders never wait for each other in a circle. The address is the host and
 * port, or the path, as the URL spells it. Spell it in the same way everywhere:
 * "localhost" and "127.0.0.1" are two places in that order, and a circle between them
 * lasts for wait_ms. If a member cannot be acquired, the rule is that of Curator's
 * InterProcessMultiLock: all members taken so far are released in reverse order, even if
 * the release of one fails.
 *
 * RedLock is the algorithm of Redis's documentation ("Distributed Locks with Redis"). One
 * random owner asks all servers at once, with a time-out far below the lease. It succeeds
 * only with a majority, and while the leases of that majority last. Otherwise it releases
 * the lock everywhere, even where no answer came, and tries again after a random delay.
 * The local deadline is the majority-th largest of the servers' deadlines. Each of these
 * counts from before its own request was sent, minus drift and a margin. Each server's
 * lease is renewed separately. A server that lost the lock (by a restart, or because it
 * was not reached for a lease) is asked again with the same owner, but only while a
 * majority still holds.
 *
 * In a cluster the members of a MultiLock may have any tags. A RedLock refuses a cluster,
 * because its servers have to fail independently of each other.
 *
 * RedLock gives availability, not correctness: a server that forgets (a restart without
 * persistence, an asynchronous failover) can vote twice, and then two clients hold the
 * lock (docs/locks.md has the counterexample). There is no fence over several servers, so
 * a RedLock must not guard data that two clients must never write.
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

/* HF_LOCK_EVENT_SUSPECT: the set is held only with leases whose last renewal failed.
 * HF_LOCK_EVENT_LOST: a MultiLock lost a member (it keeps the others until the release);
 * a RedLock has less than a majority; hf_lock_set_why() has the reason. `member` caused
 * the event: an index of `members`, or of the servers' `urls`. Called one at a time, by
 * the rules of hf_lock_event_cb, on the thread that renews the leases at all servers. */
typedef void (*hf_lock_set_event_cb)(hf_lock_set *set, hf_lock_event event, size_t member,
                                     void *arg);

/* As hf_lock_acquired_cb; `detail` names the server. HF_LOST: a MultiLock lost a member
 * while it waited for others. HF_CONN: too few servers of a RedLock answered. After any
 * answer but HF_OK all members have been released. A lock on a server that did not answer
 * is released when the server can be reached, or ends with its lease; then `detail` says
 * so. */
typedef void (*hf_lock_set_acquired_cb)(hf_lock_set *set, hf_err err, const char *detail,
                                        void *arg);

/* `each`: the n results of the members, in the order of `members` or `urls`; borrowed.
 * `result`: for a MultiLock the worst of them, which is the last in
 * hf_lock_release_result; for a RedLock the best result that a majority reached. The
 * result of a server that no longer had the lock is HF_RELEASE_EXPIRED. The handle is
 * freed when the callback returns. */
typedef void (*hf_lock_set_released_cb)(hf_lock_set *set, hf_lock_release_result result,
                                        const hf_lock_release_result *each, size_t n,
                                        void *arg);

/* Zero means the default. All text is copied. */
typedef struct hf_multilock_member {
    size_t size;              /* HF_MULTILOCK_MEMBER_INIT */
    size_t server;            /* index of `urls` */
    const hf_lock_opts *lock; /* as in lock.h, but wait_ms and on_event must be 0: the set
                                 has its own */
} hf_multilock_member;
#define HF_MULTILOCK_MEMBER_INIT HF_STRUCT_INIT(hf_multilock_member)

typedef struct hf_multilock_opts {
    size_t size;                        /* HF_MULTILOCK_OPTS_INIT */
    const hf_multilock_member *members; /* in any order; at most one for each server and
                                           tag, with all `names` of that tag */
    size_t n_members;                   /* 1..HF_LOCK_MEMBERS_MAX */
    int64_t wait_ms;                    /* for the whole set; as in lock.h */
    hf_lock_set_event_cb on_event;
    void *event_arg;
} hf_multilock_opts;
#define HF_MULTILOCK_OPTS_INIT HF_STRUCT_INIT(hf_multilock_opts)

typedef struct hf_redlock_opts {
    size_t size; /* HF_REDLOCK_OPTS_INIT */
    const char *name;
    int64_t wait_ms;          /* as in lock.h */
    uint32_t lease_ms;        /* as in lock.h; default HF_LOCK_LEASE_MS */
    uint32_t node_timeout_ms; /* a try does without a server that does not answer in this
                                 time; at most a quarter of the lease; default a
                                 hundredth of it, at least 50 */
    bool fixed;               /* never renewed */
    uint32_t max_hold_ms;     /* 0: no limit */
    hf_lock_set_event_cb on_event;
    void *event_arg;
} hf_redlock_opts;
#define HF_REDLOCK_OPTS_INIT HF_STRUCT_INIT(hf_redlock_opts)

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the client ---- */

/* Makes a client of n servers (1..HF_LOCK_SERVERS_MAX, each at a place of its own), and
 * starts to connect it, without waiting. `opts` (NULL: the defaults) is for each of them;
 * its url, on_event, arg and minder must be 0. The caller owns *out and ends it with
 * hf_lock_servers_close(). HF_INVALID, HF_CONFIG, HF_NOMEM, HF_SYSTEM: *out is untouched.
 */
HF_API HF_MUSTCHECK hf_err hf_lock_servers_open(hf_lock_servers **out,
                                                const char *const *urls, size_t n,
                                                const hf_lock_client_opts *opts,
                                                char detail[HF_DETAIL_SIZE]);

/* Releases every set, answers waiting acquisitions with HF_CLOSED, and frees the client;
 * this takes at most twice request_timeout_ms. With a loop: returns at once, and calls cb
 * (may be NULL) at the end. Without a loop: returns at the end. NULL is fine. */
HF_API void hf_lock_servers_close(hf_lock_servers *servers, void (*cb)(void *arg),
                                  void *arg);

/* ---- acquiring ---- */

/* HF_OK: cb will be called exactly once, and *out (out may be NULL) may be given to
 * hf_lock_set_cancel() until then. HF_INVALID, HF_CLOSED, HF_FORKED, HF_NOMEM, HF_SYSTEM:
 * cb will not be called. The callback comes at the latest after the longer of
 * connect_timeout_ms and wait_ms, plus node_timeout_ms, plus twice request_timeout_ms. */
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

/* The same, and waits: HF_OK and *out is held, or an answer of the callback. The client
 * must have its own thread; inside one of its callbacks the answer is HF_INVALID. */
HF_API HF_MUSTCHECK hf_err hf_multilock_acquire_wait(hf_lock_servers *servers,
                                                     const hf_multilock_opts *opts,
                                                     hf_lock_set **out,
                                                     char detail[HF_DETAIL_SIZE]);
HF_API HF_MUSTCHECK hf_err hf_redlock_acquire_wait(hf_lock_servers *servers,
                                                   const hf_redlock_opts *opts,
                                                   hf_lock_set **out,
                                                   char detail[HF_DETAIL_SIZE]);

/* Ends the wait: the callback gets HF_CANCEL, or HF_OK if the grant came first. From any
 * thread if the client has a thread of its own. */
HF_API void hf_lock_set_cancel(hf_lock_set *set);

/* ---- releasing ---- */

/* Releases all members in reverse order, even if the release of one fails, and ends the
 * handle. The set counts as not held from this call on. cb (may be NULL) is called
 * after at most request_timeout_ms. */
HF_API void hf_lock_set_release(hf_lock_set *set, hf_lock_set_released_cb cb, void *arg);
/* The same, waiting at most request_timeout_ms. `each` (may be NULL) has room for
 * hf_lock_set_size() results. If the client has a loop, and inside any callback of this
 * client, the call does not wait and returns HF_RELEASE_UNKNOWN. */
HF_API hf_lock_release_result hf_lock_set_release_wait(hf_lock_set *set,
                                                       hf_lock_release_result *each);

/* ---- is it still mine? From any thread and in callbacks, no request ---- */

HF_API bool hf_lock_set_held(const hf_lock_set *set);
HF_API hf_lock_state hf_lock_set_get_state(const hf_lock_set *set); /* never WAITING */
/* Why it is no longer held. *member (may be NULL): the member whose loss ended it. */
HF_API hf_lock_reason hf_lock_set_why(const hf_lock_set *set, size_t *member);
/* The time until the local deadline: the first deadline of a MultiLock's members, or the
 * majority-th largest of a RedLock's. 0: not held. Check it before each long step. */
HF_API int64_t hf_lock_set_remaining_ms(const hf_lock_set *set);
/* The local deadline in ns of CLOCK_BOOTTIME; 0: not held. */
HF_API uint64_t hf_lock_set_deadline_ns(const hf_lock_set *set);
/* The number of members; the number of them that are held now. */
HF_API size_t hf_lock_set_size(const hf_lock_set *set);
HF_API size_t hf_lock_set_standing(const hf_lock_set *set);
/* The fence of a member of a MultiLock, for a store that this server's lock alone guards.
 * 0: it is not held, or the set is a RedLock. A RedLock has no fence, because the numbers
 * of different servers cannot be compared. */
HF_API uint64_t hf_lock_set_fence(const hf_lock_set *set, size_t member);
/* An eventfd as of hf_lock_fd(), readable when the set is lost. -1: none can be made. */
HF_API int hf_lock_set_fd(hf_lock_set *set);

#ifdef __cplusplus
}
#endif

#endif
