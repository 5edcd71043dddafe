/* ops.h - the operations on locks. Each is one script (lock/lua), and each decision is
 * taken there; this only carries it to Redis and reads what comes back.
 *
 * Sending answers as hf_request_send() does, and its arguments are copied. Reading fills
 * a struct whose pointers are borrowed from the answer; it gives the answer's own fault,
 * the script's status, or HF_PROTO. Times are Unix ms on Redis's clock. `not_after`: the
 * request does nothing when it is executed later than that (0: no limit). */
#ifndef HF_LOCK_OPS_H
#define HF_LOCK_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/reading.h"
#include "lock/names.h"
#include "lock/watchdog/watchdog.h"
#include "redis/request.h"

enum {
    HF_HOLD_SIZE = 17, /* 16 hexadecimal digits: one acquisition */
    HF_LOCK_CLIENT_SIZE = 96,
    HF_LOCK_ENTRIES_MAX = 2048 /* in one renewal */
};

/* Locks of one tag, and the owner that asks for them. All borrowed. */
typedef struct hf_lock_of {
    hf_bytes prefix;
    const char *const *names;
    size_t n_names;
    const char *owner, *hold;
    bool simple;
} hf_lock_of;

/* ---- acquire ---- */

typedef struct hf_acquire_args {
    const char *client;
    char mode; /* 'x', 's' or 'p' */
    uint32_t permits, limit;
    bool wait, reentrant;
    uint32_t lease_ms;
    int64_t not_after;
    hf_asker asker;
    const char *shown; /* hf_reading_shown() */
} hf_acquire_args;

HF_MUSTCHECK hf_err hf_op_lock_acquire(hf_client *client, const hf_lock_of *lock,
                                       const hf_acquire_args *args, uint32_t timeout_ms,
                                       hf_answer_cb cb, void *arg);

typedef struct hf_acquired {
    int64_t now_ms;
    uint64_t fence; /* with HF_OK */
    size_t place;   /* with HF_IN_LINE: 1 is the head */
    /* HF_IN_LINE: of that place; its grant has a higher fence. It is also the number of
     * the reading, as with HF_TAKEN. */
    uint64_t number;
    uint64_t clock_ms; /* of the reading; 0: there is none */
    /* HF_IN_LINE: when to ask again at the latest; 0: at its third. HF_TAKEN: in how many
     * ms it can be proved that all leases before it are over; 0: a holder lives. */
    uint32_t after_ms;
    uint64_t silent_ms; /* HF_TAKEN: how long no holder has renewed; 0: one lives */
    uint32_t limit;     /* HF_LIMIT */
} hf_acquired;

/* HF_OK, HF_IN_LINE, HF_TAKEN, HF_DEADLOCK, HF_LIMIT, HF_DEADLINE, or a fault. */
HF_MUSTCHECK hf_err hf_op_acquired_read(const hf_answer *answer, hf_acquired *out);

/* ---- renew ---- */

typedef struct hf_lock_renewal {
    hf_bytes prefix;
    const char *owner, *name;
    const char *hold; /* NULL: its owner was made for it; not of a simple lock, nor while
                         it waits */
    uint32_t lease_ms;
    bool simple;
    bool waits; /* it waits, as far as is known: a grant is reported with its fence */
    const char *shown; /* hf_reading_shown(), if it waits or is read while it is held */
} hf_lock_renewal;

HF_MUSTCHECK hf_err hf_op_lock_renew(hf_client *client, const hf_lock_renewal *items,
                                     size_t n, const hf_asker *asker, int64_t not_after,
                                     uint32_t timeout_ms, hf_answer_cb cb, void *arg);

typedef struct hf_lock_renewed {
    int64_t now_ms;
    size_t n; /* as were asked for */
    const hf_reply *reply;
    size_t at; /* in the reply: of the next one that is not simply held */
} hf_lock_renewed;
HF_MUSTCHECK hf_err hf_op_renewed_read(const hf_answer *answer, hf_lock_renewed *out);
/* The result for the i-th lock; i rises from call to call. `what` gets a value:
 *
 *   HF_OK       renewed: its fence, if it waited or other clients of its owner hold it;
 * else 0 HF_CANCEL   asked back: its fence HF_IN_LINE  it waits HF_LOST     1: it was
 * taken away a fault     it is not known
 *
 * If there is a reading of its line's clock, clock_ms is not 0, and after_ms says when to
 * ask again. */
hf_err hf_op_renewed_next(hf_lock_renewed *renewed, size_t i, hf_lease_note *what);

/* ---- release ---- */

typedef struct hf_release_args {
    bool downgrade;
    int64_t not_after;
    const char *machine; /* of the reading */
    const char *shown;   /* hf_reading_shown(); it stays as evidence */
} hf_release_args;

HF_MUSTCHECK hf_err hf_op_lock_release(hf_client *client, const hf_lock_of *lock,
                                       const hf_release_args *args, uint32_t timeout_ms,
                                       hf_answer_cb cb, void *arg);

typedef struct hf_released {
    int64_t now_ms;
    hf_lock_release_result result; /* the worst of all names */
    size_t left;
} hf_released;
HF_MUSTCHECK hf_err hf_op_released_read(const hf_answer *answer, hf_released *out);

/* ---- the rest ---- */

/* owner "", fence 0: any. */
HF_MUSTCHECK hf_err hf_op_lock_force(hf_client *client, hf_bytes prefix, const char *name,
                                     const char *owner, uint64_t fence, bool revoke,
                                     int64_t not_after, const char *word, hf_answer_cb cb,
                                     void *arg);
HF_MUSTCHECK hf_err hf_op_lock_look(hf_client *client, hf_bytes prefix, const char *name,
                                    size_t limit, hf_answer_cb cb, void *arg);
HF_MUSTCHECK hf_err hf_op_fence_check(hf_client *client, hf_bytes prefix,
                                      const char *resource, uint64_t fence,
                                      const char *owner, int64_t remember_ms,
                                      hf_answer_cb cb, void *arg);

#endif
