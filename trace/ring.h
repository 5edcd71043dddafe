/* ring.h - spans that wait to be sent: copies in a ring of fixed size. Any thread puts
 * them in; one thread takes them out, in batches. A span that finds no room is dropped,
 * and counted. */
#ifndef HF_TRACE_RING_H
#define HF_TRACE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/trace.h"

enum {
    HF_RING_SPANS = 2048, /* with those that are being sent */
    HF_RING_BATCH = 512
};

typedef struct hf_ring hf_ring;

hf_ring *hf_ring_new(void); /* NULL: out of memory */
void hf_ring_free(hf_ring *ring);

/* Any thread. */
void hf_ring_put(hf_ring *ring, const hf_span *span);
void hf_ring_drop(hf_ring *ring, uint64_t n); /* counts spans that were lost elsewhere */
uint64_t hf_ring_dropped(hf_ring *ring);
void hf_ring_close(hf_ring *ring); /* nothing more comes */

/* ---- the thread that takes ---- */

/* Waits until a batch is there, or its first span has waited for a second, or nothing
 * more comes. Returns how many spans it has; 0: the ring is closed and empty. */
size_t hf_ring_take(hf_ring *ring);
const hf_span *hf_ring_at(const hf_ring *ring, size_t i);
void hf_ring_release(hf_ring *ring, size_t n); /* they need their room no more */

#endif
