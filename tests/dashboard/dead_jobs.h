/* dead_jobs.h - a queue "q" with dead jobs, for tests of what is done with them. */
#ifndef HF_TESTS_DASHBOARD_DEAD_JOBS_H
#define HF_TESTS_DASHBOARD_DEAD_JOBS_H

#include "base/base.h"
#include "tests/support/redis_fixture.h"

/* `n` dead jobs of the type "t" whose errors differ in a number; each `every`th has
 * another error. */
static inline void dead_jobs_make(hf_fixture *redis, unsigned n, unsigned every)
{
    static const char script[] =
        "for i = 1, ARGV[1] do local id = 'id-' .. i "
        "local e = i % ARGV[2] == 0 and 'other' or 'no host ' .. i "
        "redis.call('HSET', KEYS[1] .. 'jobs', id, "
        "'{\"v\":1,\"type\":\"t\",\"created\":1,\"error\":\"' .. e .. '\"}\\n') "
        "redis.call('ZADD', KEYS[1] .. 'dead', 1000 + i, id) end return 1";
    (void)hf_fixture_command(redis, "EVAL %s 1 hf:{q}: %u %u", script, n, every);
}

static inline long long dead_jobs_left(hf_fixture *redis)
{
    return hf_fixture_number(redis, "ZCARD hf:{q}:dead");
}

#endif
