/* server_clock.h - the wall clock of one private redis-server, which a test moves.
 *
 * A server that runs with the preload (tests/preload/hf-clock-preload.c) adds to the real
 * wall clock what a small file says: an offset, and a rate that changes it. The test and
 * the server map that file. Nothing else on the machine sees the moved clock, and
 * CLOCK_MONOTONIC and CLOCK_BOOTTIME stay as they are.
 *
 * Every reading is of one state: the writer fills the place that is not in use and then
 * stores the new number of the state. A reader never waits for a writer, so a writer may
 * die at any moment. One thread at a time writes. */
#ifndef HF_TESTS_SERVER_CLOCK_H
#define HF_TESTS_SERVER_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define HF_SERVER_CLOCK_ENV "HF_SERVER_CLOCK" /* names the file to the preload */

enum { HF_SERVER_CLOCK_SLEW_MAX = 100 }; /* permille */

/* The wall clock is the real one + offset_ns + (CLOCK_MONOTONIC - from_ns) * permille /
 * 1000. */
typedef struct hf_server_clock_state {
    _Atomic int64_t offset_ns, from_ns, permille;
} hf_server_clock_state;

/* The file. All zero: the real clock. */
typedef struct hf_server_clock {
    _Atomic uint64_t number; /* state[number % 2] holds */
    _Atomic uint64_t used;   /* 1: a server reads it */
    hf_server_clock_state state[2];
    _Atomic int64_t stands_ns; /* not 0: the wall clock stands at this Unix time */
} hf_server_clock;

/* Maps the file, and makes it when `make`. NULL: errno says why. */
hf_server_clock *hf_server_clock_open(const char *path, bool make);
void hf_server_clock_close(hf_server_clock *clock);

/* How far the server's wall clock is ahead of the real one when CLOCK_MONOTONIC is
 * `now_ns`. */
int64_t hf_server_clock_ahead(const hf_server_clock *clock, int64_t now_ns);

/* The clock jumps, forward or (below 0) back. It happens at once and whole. */
void hf_server_clock_step(hf_server_clock *clock, int64_t ms);
/* From now on the clock runs faster (or below 0: slower) than the real one by this many
 * permille, up to HF_SERVER_CLOCK_SLEW_MAX. */
void hf_server_clock_slew(hf_server_clock *clock, int permille);
/* The clock stands at this Unix time until it is set again: what Redis does depends on no
 * real time. 0: it goes on as the other functions say. */
void hf_server_clock_stand(hf_server_clock *clock, int64_t unix_ms);

#endif
