/* gather_past.h - the facts that the history of a queue tells. */
#ifndef HF_SEEN_GATHER_PAST_H
#define HF_SEEN_GATHER_PAST_H

#include "seen/facts.h"

/* Reads the last minutes of queues. `told` is called for each; false ends it. */
typedef bool (*hf_gather_past_cb)(hf_err err, hf_facts_queue *queue,
                                  const hf_facts_past *past, void *arg);
/* False: no memory. */
HF_MUSTCHECK bool hf_gather_past(hf_admin *admin, hf_facts_queue *const *queues, size_t n,
                                 hf_gather_past_cb told, void *arg,
                                 char detail[HF_DETAIL_SIZE]);
/* What they tell at the time of these figures, which stand for the present. */
void hf_gather_past_judge(const hf_queue_stats *now, hf_facts_past *past);

#endif
