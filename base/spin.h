/* spin.h - whether a thread that waits for an answer of Redis, or of a process of a pool,
 * first polls for it for a short while, instead of sleeping at once.
 *
 * While requests follow one another closely, falling asleep and waking up takes longer
 * than Redis needs for a script, and as much processor time as polling. After a pause
 * spinning does not pay: Redis sleeps by then, and wakes fastest on the processor that
 * the asking thread leaves. It does not pay either where Redis is far away, or shares the
 * processor, as it may while several threads ask. So a thread spins only when no other
 * waits and the last answer was read a moment ago. After each useless spin it skips twice
 * as many. (After A. Karlin et al., Empirical Studies of Competitive Spinning for a
 * Shared-Memory Multiprocessor, SOSP 1991.)
 *
 * Not locked: it belongs to the thread that waits. All zero is a new one. Times:
 * CLOCK_BOOTTIME.
 */
#ifndef HF_BASE_SPIN_H
#define HF_BASE_SPIN_H

#include <stdbool.h>
#include <stdint.h>

enum {
    HF_SPIN_NS = 50000,         /* the longest */
    HF_SPIN_RECENT_NS = 100000, /* how long after an answer it is begun */
    HF_SPIN_GAP_MAX = 64        /* times left out */
};

typedef struct hf_spin {
    uint64_t read_ns; /* when the last answer was read; 0: never */
    uint32_t gap;  /* times to skip after the last useless spin; 0: it was not useless */
    uint32_t skip; /* of those that are still to come */
} hf_spin;

/* The thread is about to wait for an answer that is due: until when it spins; 0: it
 * sleeps. */
uint64_t hf_spin_begin(hf_spin *spin, uint64_t now_ns);

/* The end of a spin. In vain: its time has passed without an answer. */
void hf_spin_end(hf_spin *spin, bool in_vain);

/* An answer was read, by spinning or after sleep. */
void hf_spin_read(hf_spin *spin, uint64_t now_ns);

#endif
