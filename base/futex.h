/* futex.h - a word that threads sleep on.
 *
 * Unlike a condition variable it needs no lock around it: whoever is woken runs on at
 * once, and who wakes need not care whether the word's memory is still there. */
#ifndef HF_BASE_FUTEX_H
#define HF_BASE_FUTEX_H

#include <stdatomic.h>
#include <stdint.h>

/* Sleeps while the word is `seen`, at most so many ns. Also comes back for no reason. */
void hf_futex_wait(atomic_uint *word, unsigned seen, uint64_t ns);

/* Wakes one thread that sleeps on the word, whose value was changed before. The word may
 * be gone by now: then nothing happens, or a stranger comes back for no reason. */
void hf_futex_wake(atomic_uint *word);

#endif
