/* waiter.h - the side of a call that waits.
 *
 * A waiter lives until both sides have left it: the thread that waits, and the last of
 * its parts. The thread leaves early only when the engine does not answer in time, which
 * it does unless a callback holds its thread up. Guarded by the run loop's lock. */
#ifndef HF_PRODUCER_WAITER_H
#define HF_PRODUCER_WAITER_H

#include <stdbool.h>
#include <stddef.h>

#include "holdfast/producer.h"
#include "redis/run_loop.h"

typedef struct hf_waiter {
    hf_run_waiter run;
    hf_enqueue_result *results; /* the caller's; NULL: it wants none */
    size_t pending;             /* parts without an answer */
    hf_err worst;
    char detail[HF_DETAIL_SIZE];
} hf_waiter;

/* NULL: out of memory. */
hf_waiter *hf_waiter_new(hf_enqueue_result *results);
void hf_waiter_free(hf_waiter *waiter); /* NULL is fine */

/* Remembers the id of the job at this place, if anybody wants to know. */
void hf_waiter_note_id(hf_waiter *waiter, size_t place, const char *id);

/* One more part has its answer. After the last one the waiter is done, or is freed if its
 * thread has left. */
void hf_waiter_told(hf_waiter *waiter, hf_err err, const char *detail, hf_run_loop *run);

#endif
