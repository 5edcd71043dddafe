/* random.h - bytes that cannot be guessed, and cheap numbers for jitter. */
#ifndef HF_BASE_RANDOM_H
#define HF_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/error.h"

/* From the system's generator. HF_SYSTEM if it has none. */
HF_MUSTCHECK hf_err hf_random_bytes(void *out, size_t len);

/* splitmix64 (S. Vigna, public domain): for jitter and seeded tests, not for secrets. */
typedef struct hf_rng {
    uint64_t state;
} hf_rng;

uint64_t hf_rng_next(hf_rng *rng);
double hf_rng_unit(hf_rng *rng); /* 0 <= x < 1 */

#endif
