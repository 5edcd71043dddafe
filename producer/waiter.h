/* waiter.h - the side of a call that waits.
 *
 * A waiter lives until both sides have left it: the thread that waits, and the last of
 * its parts. The thread leaves early only when the engine does not answer in time, which
 * it does unless a callback holds its thread up. Guarded by the inbox's lock, but for the
 * word that its thread sleeps on. */
#ifndef HF_PRODUCER_WAITER_H
#define HF_PRODUCER_WAITER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "holdfast/producer.h"

/* What a waiter's word says. After HF_WORD_DONE nobody but its thread knows the waiter.
 */
enum {
    HF_WORD_NONE, /* nothing yet */
    HF_WORD_LOOK, /* it is this thread's turn to do something; see helm.h */
    HF_WORD_DONE  /* every part has its answer */
};

typedef struct hf_waiter {
    struct hf_waiter *next, *prev; /* of those that wait, or of those that were told */
    atomic_uint word;
    hf_enqueue_result *results; /* the caller's; NULL: it wants none, or has left */
    size_t pending;             /* parts without an answer */
    bool waits;                 /* it is in the line of those */
    bool left;                  /* the thread does not wait any more */
    hf_err worst;
    char detail[HF_DETAIL_SIZE];
} hf_waiter;

typedef struct hf_waiters {
    hf_waiter *first, *last;
} hf_waiters;

/* NULL: out of memory. */
hf_waiter *hf_waiter_new(hf_enqueue_result *results);
void hf_waiter_free(hf_waiter *waiter); /* NULL is fine */

/* Remembers the id of the job at this place, if anybody wants to know. */
void hf_waiter_note_id(hf_waiter *waiter, size_t place, const char *id);

/* One more part has its answer. After the last one the waiter goes from those that wait
 * to those that were told, or is freed if its thread has left. */
void hf_waiter_told(hf_waiter *waiter, hf_err err, const char *detail,
                    hf_waiters *waiting, hf_waiters *told);

/* Without the lock: says HF_WORD_DONE to each, and wakes all but `self`. */
void hf_waiters_wake(hf_waiters *told, const hf_waiter *self);

void hf_waiters_append(hf_waiters *line, hf_waiter *waiter);
void hf_waiters_remove(hf_waiters *line, hf_waiter *waiter);

#endif
