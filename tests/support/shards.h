/* shards.h - queues that are divided into shards, for tests. */
#ifndef HF_TESTS_SHARDS_H
#define HF_TESTS_SHARDS_H

#include "queue/shards.h"
#include "tests/support/redis_fixture.h"

/* Divides a queue of the namespace "hf" at this Redis, which has the slot of its name;
 * fails the test if it cannot. */
void hf_test_divide(hf_fixture *redis, const char *queue, unsigned n, hf_shards *out);

/* The key of a shard: "hf:{wide/0-12}:schedule". */
enum { HF_TEST_SHARD_KEY = 192 };
const char *hf_test_shard_key(const hf_shards *shards, unsigned i, const char *key,
                              char out[HF_TEST_SHARD_KEY]);

/* How many members of this sorted set all shards of one Redis have. */
long long hf_test_shards_count(hf_fixture *redis, const hf_shards *shards,
                               const char *key);

#endif
