/* futex.h - a word that threads sleep on.
 *
 * Unlike a condition variable it needs no lock around it: the woken thread runs at once,
 * and the waking thread may wake it even if the word's memory is already gone. */
#ifndef HF_BASE_FUTEX_H
#define HF_BASE_FUTEX_H

#include <stdatomic.h>
#include <stdint.h>

/* Sleeps while the word is `seen`, at most this many ns. Also comes back for no reason.
 */
void hf_futex_wait(atomic_uint *word, unsigned seen, uint64_t ns);

/* Wakes one thread that sleeps on the word, whose value was changed before. The word may
 * be gone by now: then nothing happens, or a stranger comes back for no reason. */
void hf_futex_wake(atomic_uint *word);

#endif
