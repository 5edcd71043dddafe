/* id.h - names and ids: which are allowed, and how new ones are made. */
#ifndef HF_BASE_ID_H
#define HF_BASE_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/random.h"
#include "holdfast/error.h"

enum {
    HF_NEW_ID_LEN = 14,
    HF_NEW_ID_SIZE = HF_NEW_ID_LEN + 1,
    HF_RUN_NAME_LEN = 26,
    HF_RUN_NAME_SIZE = HF_RUN_NAME_LEN + 1,
    HF_RUN_ID_SIZE = HF_RUN_NAME_SIZE /* an id of a run has 14 or 26 characters */
};

/* A name or id: 1..128 bytes of [A-Za-z0-9._:-]. */
bool hf_name_ok(const char *name);
bool hf_name_ok_n(const char *name, size_t len);

/* Makes ids: 84 bits as 14 characters of base64, whose alphabet (- 0-9 A-Z _ a-z) is in
 * the order of its bytes: text sorts as numbers do. The upper 42 bits are Unix ms, until
 * May 2109; of the lower ones the first is 0 (1: a line of a run), and 41 are random in
 * each new ms and rise by one within it. Each id is greater than the previous one of the
 * same maker, even when the clock goes back. Redis stores 14 characters in 16 bytes
 * (docs/design.md explains the length, and how often two makers make the same id). Not
 * thread-safe. */
typedef struct hf_id_maker {
    uint64_t ms;  /* of the last id */
    uint64_t low; /* and its 42 lower bits */
    hf_rng rng;
} hf_id_maker;

HF_MUSTCHECK hf_err hf_id_maker_init(hf_id_maker *maker);
void hf_id_next(hf_id_maker *maker, char out[HF_NEW_ID_SIZE]);

/* Whether the last id tells this time (Unix ms), to within a second. It does not when the
 * clock was set back, or is wrong by years. */
bool hf_id_maker_tells(const hf_id_maker *maker, int64_t unix_ms);

/* When an id was made, in Unix ms; for a line of a run, when the run began. 0: the id has
 * another form than those made here, or an impossible time (before 2020, or later than
 * tomorrow). */
int64_t hf_id_made_ms(const char *id);

/* The id of these 84 bits; bits of `low` above 42 are carried into the ms. */
void hf_id_text(uint64_t ms, uint64_t low, char out[HF_NEW_ID_SIZE]);

/* A name for a run: 26 characters of Crockford's base32, 10 of Unix ms and 16 random. */
HF_MUSTCHECK hf_err hf_run_name(char out[HF_RUN_NAME_SIZE]);

/* The id of line `n` of the run `run`: the same each time, rising with n. For a name from
 * hf_run_name() it has 14 characters, and its time says when the run began. Any other
 * name is hashed to an id of 26 characters, longer than all other ids that are made here.
 */
void hf_id_of_run(const char *run, uint64_t n, char out[HF_RUN_ID_SIZE]);

#endif
