/* clock_harm.h - what a nemesis does to the wall clock of a server: steps of any size,
 * twice in a row, there and back, and rates. */
#ifndef HF_TESTS_HISTORY_CLOCK_HARM_H
#define HF_TESTS_HISTORY_CLOCK_HARM_H

#include "base/random.h"
#include "tests/support/redis_fixture.h"

enum { HF_CLOCK_HARMS = 4 };

extern const char *const hf_clock_harms[HF_CLOCK_HARMS]; /* what each is, in the plural */

/* Does one of them; gives in words what it did, in `words`. */
void hf_clock_harm(hf_fixture *redis, hf_rng *rng, unsigned which, char *words,
                   size_t size);

#endif
