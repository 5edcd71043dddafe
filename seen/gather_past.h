/* gather_past.h - the facts that the history of a queue tells. */
#ifndef HF_SEEN_GATHER_PAST_H
#define HF_SEEN_GATHER_PAST_H

#include "seen/facts.h"

/* Reads the last minutes of a queue into *out. It costs a request. */
HF_MUSTCHECK hf_err hf_gather_past(hf_admin *admin, const hf_queue_stats *now,
                                   hf_facts_past *out, char detail[HF_DETAIL_SIZE]);
/* What they tell at the time of these figures, which stand for the present. */
void hf_gather_past_judge(const hf_queue_stats *now, hf_facts_past *past);

#endif
