/* shards.h - a queue of the plan that is divided into shards. Belongs to the loop. */
#ifndef HF_WORKER_QUEUES_SHARDS_H
#define HF_WORKER_QUEUES_SHARDS_H

#include "worker/queues/queues.h"

/* The limits of one member. */
typedef struct hf_shard_limits {
    uint32_t max_running, rate_limit;
    int64_t rate_per_ms;
} hf_shard_limits;

/* The limits of the plan for this member. */
hf_shard_limits hf_shards_limits_of(const hf_served *served);

/* Divides it as the plan says: a part of its registration. */
HF_MUSTCHECK hf_err hf_shards_divide(hf_served *served);
/* A request was refused with HF_SHARDED and these words. False: they make no sense. */
bool hf_shards_learn(hf_served *served, const char *words);

#endif
