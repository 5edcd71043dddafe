/* eventually.c - the clock and the pause behind eventually.h. */
#include "tests/support/eventually.h"

#include <errno.h>
#include <time.h>

uint64_t hf_test_now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

void hf_test_pause_ms(unsigned ms)
{
    struct timespec left = {.tv_sec = (time_t)(ms / 1000),
                            .tv_nsec = (long)(ms % 1000) * 1000000L};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

/* A machine that runs asks 400 times in a second, and half as often with a sanitizer. */
unsigned hf_test_asks(uint64_t ms)
{
    enum { ONE_IN_MS = 4, MOST = 1000 };
    return (unsigned)(ms / ONE_IN_MS < MOST ? ms / ONE_IN_MS : MOST);
}
