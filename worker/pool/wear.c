/* wear.c - worker/pool/wear.h. */
#include "worker/pool/wear.h"

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

enum { JITTER_PART = 10 };

static uint64_t jittered(uint64_t limit, hf_rng *rng)
{
    double part = (2 * hf_rng_unit(rng) - 1) / JITTER_PART;
    double with = (double)limit * (1 + part);
    return limit == 0 ? 0 : with < 1 ? 1 : (uint64_t)with;
}

hf_wear hf_wear_begin(const hf_pool *pool, uint64_t now_ns, hf_rng *rng)
{
    hf_wear wear = {.max_jobs = jittered(pool->max_jobs, rng),
                    .max_rss = jittered((uint64_t)pool->max_rss, rng)};
    if (pool->max_age_ms > 0)
        wear.end_ns = now_ns + jittered((uint64_t)pool->max_age_ms, rng) * HF_MS_NS;
    return wear;
}

uint64_t hf_wear_resident(pid_t pid)
{
    char path[32];
    unsigned long long resident = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%*u %llu", &resident) != 1)
        resident = 0;
    (void)fclose(file);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

const char *hf_wear_cause(const hf_wear *wear, uint64_t jobs, pid_t pid, uint64_t now_ns)
{
    if (wear->max_jobs != 0 && jobs >= wear->max_jobs)
        return "max_jobs";
    if (wear->end_ns != 0 && now_ns >= wear->end_ns)
        return "max_age";
    if (wear->max_rss != 0 && hf_wear_resident(pid) > wear->max_rss)
        return "max_rss";
    return NULL;
}
