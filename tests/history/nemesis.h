/* nemesis.h - what goes wrong while players play: processes are killed and stopped, Redis
 * is paused and forgets, connections are closed, delayed and cut. Its clock is moved
 * where that is wanted. */
#ifndef HF_TESTS_HISTORY_NEMESIS_H
#define HF_TESTS_HISTORY_NEMESIS_H

#include "base/random.h"
#include "tests/history/clock_harm.h"
#include "tests/history/fixture.h"
#include "tests/support/proc.h"

enum { HF_PLAYERS = 4, HF_DEEDS = 14 };

typedef struct hf_nemesis {
    hf_history_fixture *fixture;
    hf_rng rng;
    hf_proc players[HF_PLAYERS];
    unsigned numbers[HF_PLAYERS]; /* of the histories: a new one for each life */
    unsigned born;
    bool spares, harms_clock;
    uint64_t until_ns;
    bool busy;               /* each thread had less than half of a processor meanwhile */
    unsigned done[HF_DEEDS]; /* how often each thing was done */
    unsigned clock[HF_CLOCK_HARMS];
} hf_nemesis;

/* Starts the players, does harm for so long, and waits until they have ended. */
void hf_nemesis_run(hf_nemesis *n, hf_history_fixture *fixture, uint64_t seed,
                    unsigned ms);
/* The same, without harm, and with leases of which no renewal tells anything in time. */
void hf_nemesis_spare(hf_nemesis *n, hf_history_fixture *fixture, uint64_t seed,
                      unsigned ms);
/* The same as the first; half of the harm is done to the wall clock of Redis. */
void hf_nemesis_clock(hf_nemesis *n, hf_history_fixture *fixture, uint64_t seed,
                      unsigned ms);
void hf_nemesis_print(const hf_nemesis *n);
/* Whether as much has happened as a play needs to show something. On a busy machine it
 * may be less. */
bool hf_nemesis_enough(const hf_nemesis *n, uint64_t happened);

#endif
