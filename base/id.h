/* id.h - names and ids: which are allowed, and how new ones are made. */
#ifndef HF_BASE_ID_H
#define HF_BASE_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/error.h"

enum { HF_NEW_ID_LEN = 26, HF_NEW_ID_SIZE = HF_NEW_ID_LEN + 1 };

/* A name or id: 1..128 bytes of [A-Za-z0-9._:-]. */
bool hf_name_ok(const char *name);
bool hf_name_ok_n(const char *name, size_t len);

/* Makes ids: 26 characters of Crockford's base32, 10 of Unix ms and 16 random (the ULID
 * form), each greater than the one before from the same maker, also within a millisecond
 * and when the clock goes back. Not thread-safe. */
typedef struct hf_id_maker {
    uint64_t ms;
    uint64_t hi; /* 16 random bits */
    uint64_t lo; /* 64 random bits */
} hf_id_maker;

HF_MUSTCHECK hf_err hf_id_maker_init(hf_id_maker *maker);
void hf_id_next(hf_id_maker *maker, char out[HF_NEW_ID_SIZE]);

/* The id of line `n` of the run `run`: 26 characters, the same each time, rising with n.
 * Of a run that is 26 characters long the first 18 are kept; another is hashed. */
void hf_id_of_run(const char *run, uint64_t n, char out[HF_NEW_ID_SIZE]);

#endif
