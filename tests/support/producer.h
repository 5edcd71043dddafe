/* producer.h - opens producers for tests. */
#ifndef HF_TESTS_PRODUCER_H
#define HF_TESTS_PRODUCER_H

#include "holdfast/producer.h"
#include "tests/support/redis_fixture.h"

/* Opens a producer at this Redis, unless `opts` name another; fails the test if it
 * cannot. */
hf_producer *hf_test_producer(const hf_fixture *redis, hf_producer_opts opts);

#endif
