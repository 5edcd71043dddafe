/* remove.h - what a queue holds, and how one that holds nothing leaves the registry. */
#ifndef HF_ADMIN_REMOVE_H
#define HF_ADMIN_REMOVE_H

#include "admin/ask.h"

/* Of all shards. */
typedef struct hf_holdings {
    int64_t waiting, running, dead, kept, stray, schedules, workers, keys;
    bool used;    /* it ever had a job, or has a setting */
    bool divided; /* into shards */
} hf_holdings;

HF_MUSTCHECK hf_err hf_holdings_of(hf_admin *admin, const hf_queue *queue,
                                   hf_holdings *out);

/* Whether there is nothing at all. A division into shards does not count: it outlives the
 * removal of its queue. */
bool hf_holdings_none(const hf_holdings *h);

/* After the end of a setting: a queue that holds nothing at all is taken off the list, as
 * if it had never had the setting. The caller has asked for the end of the setting: a
 * failure here leaves an empty queue on the list, and is not reported. */
void hf_forget_unused(hf_admin *admin, const hf_queue *queue);

#endif
