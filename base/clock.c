/* clock.c - base/clock.h on clock_gettime(). */
#include "base/clock.h"

#include <sys/timerfd.h>
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

void hf_timer_set(int fd, uint64_t at_ns)
{
    struct itimerspec spec = {0};
    if (at_ns != UINT64_MAX) {
        spec.it_value.tv_sec = (time_t)(at_ns / (1000 * HF_MS_NS));
        spec.it_value.tv_nsec = (long)(at_ns % (1000 * HF_MS_NS)) + (at_ns == 0);
    }
    HF_ASSERT(timerfd_settime(fd, TFD_TIMER_ABSTIME, &spec, NULL) == 0);
}
