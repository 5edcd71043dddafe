/* backoff.h - how long to wait after the n-th failure. */
#ifndef HF_BASE_BACKOFF_H
#define HF_BASE_BACKOFF_H

#include <stdint.h>

#include "base/random.h"

typedef enum hf_backoff_shape {
    HF_SHAPE_EXPONENTIAL,
    HF_SHAPE_LINEAR,
    HF_SHAPE_CONSTANT
} hf_backoff_shape;
enum { HF_SHAPE_LAST = HF_SHAPE_CONSTANT };

typedef struct hf_backoff {
    hf_backoff_shape shape;
    int64_t base_ms, cap_ms; /* base >= 0, cap >= base */
    double jitter;           /* 0..1: the part that is put on or taken off at random */
} hf_backoff;

/* The wait after failure n (1 is the first), 0..cap*(1+jitter), and at most
 * HF_DELAY_MAX_MS. */
int64_t hf_backoff_ms(const hf_backoff *backoff, uint32_t n, hf_rng *rng);

#endif
