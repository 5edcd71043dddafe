/* gather_locks.h - the part of gather.h that is about locks. */
#ifndef HF_SEEN_GATHER_LOCKS_H
#define HF_SEEN_GATHER_LOCKS_H

#include "seen/facts.h"

/* Fills the list of locks with those that were found in this time, at most 1,000. Where
 * locks cannot be read, there are none. False: no memory. */
bool hf_gather_locks(hf_lock_client *locks, uint32_t within_ms, hf_facts *facts);

#endif
