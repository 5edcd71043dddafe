/* red.h - a majority of the members of a set, at once. */
#ifndef HF_LOCK_SET_RED_H
#define HF_LOCK_SET_RED_H

#include "lock/set/set.h"

HF_MUSTCHECK hf_err hf_red_make(hf_lock_servers *servers, const hf_redlock_opts *opts,
                                hf_lock_set **out, char detail[HF_DETAIL_SIZE]);

#endif
