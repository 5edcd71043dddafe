/* state.h - a holder's questions about a set, and its events. */
#ifndef HF_LOCK_SET_STATE_H
#define HF_LOCK_SET_STATE_H

#include "lock/set/set.h"

/* Enough are held, so it is from now on. False: they are not any more. */
HF_MUSTCHECK bool hf_set_state_hold(hf_lock_set *set);
bool hf_set_state_stands(hf_lock_set *set); /* it is held at this moment */
void hf_set_state_on_event(hf_lock *lock, hf_lock_event event, void *member);
void hf_set_state_silence(hf_lock_set *set, hf_lock_reason reason);

#endif
