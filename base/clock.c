/* clock.c - base/clock.h on clock_gettime(). */
#include "base/clock.h"

#include <time.h>

#include "base/base.h"

uint64_t hf_boot_ns(void)
{
    struct timespec t;
    HF_ASSERT(clock_gettime(CLOCK_BOOTTIME, &t) == 0);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

int64_t hf_wall_us(void)
{
    struct timespec t;
    HF_ASSERT(clock_gettime(CLOCK_REALTIME, &t) == 0);
    return (int64_t)t.tv_sec * 1000000 + (int64_t)t.tv_nsec / 1000;
}

int64_t hf_wall_ms(void)
{
    return hf_wall_us() / 1000;
}
