/* gather_locks.h - the part of gather.h that is about locks. */
#ifndef HF_SEEN_GATHER_LOCKS_H
#define HF_SEEN_GATHER_LOCKS_H

#include "seen/gather.h"

/* Fills the list of locks with those that were known before and those that are found, at
 * most 1,000. Where locks cannot be read, there are none. False: no memory. */
bool hf_gather_locks(const hf_gather_opts *opts, hf_facts *facts);

#endif
