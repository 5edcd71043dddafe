/* multi.h - all members of a set, in order. */
#ifndef HF_LOCK_SET_MULTI_H
#define HF_LOCK_SET_MULTI_H

#include "lock/set/set.h"

HF_MUSTCHECK hf_err hf_multi_make(hf_lock_servers *servers, const hf_multilock_opts *opts,
                                  hf_lock_set **out, char detail[HF_DETAIL_SIZE]);

#endif
