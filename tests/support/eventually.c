/* eventually.c - the clocks and the pause behind eventually.h. */
#include "tests/support/eventually.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

uint64_t hf_test_now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

/* What part of a processor each thread gets that wants one now; 1: there are enough. At
 * least LEAST, so a test that has failed ends. */
static double share_now(void)
{
    static const double LEAST = 0.125;
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    char text[128];
    long running = 0;
    int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        (void)close(fd);
    text[len < 0 ? 0 : len] = '\0';
    if (sscanf(text, "%*f %*f %*f %ld/", &running) != 1 || running <= processors)
        return 1;
    double share = (double)processors / (double)running;
    return share < LEAST ? LEAST : share;
}

uint64_t hf_test_fair_ms(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t seen_ms;
    static double share, fair_ms;
    double now_share = share_now();
    pthread_mutex_lock(&lock);
    uint64_t now_ms = hf_test_now_ms();
    if (seen_ms != 0)
        fair_ms += (double)(now_ms - seen_ms) * (share < now_share ? share : now_share);
    seen_ms = now_ms;
    share = now_share;
    uint64_t result = (uint64_t)fair_ms;
    pthread_mutex_unlock(&lock);
    return result;
}

void hf_test_pause_since(uint64_t from_ms)
{
    enum { PART = 8, LEAST_MS = 2, MOST_MS = 10 };
    const uint64_t ms = (hf_test_now_ms() - from_ms) / PART;
    hf_test_pause_ms(ms < LEAST_MS ? LEAST_MS : ms > MOST_MS ? MOST_MS : (unsigned)ms);
}

hf_test_span hf_test_span_begin(void)
{
    return (hf_test_span){hf_test_now_ms(), hf_test_fair_ms()};
}

bool hf_test_span_is_busy(hf_test_span span)
{
    return 2 * (hf_test_fair_ms() - span.fair_from_ms) < hf_test_now_ms() - span.from_ms;
}

void hf_test_pause_ms(unsigned ms)
{
    struct timespec left = {.tv_sec = (time_t)(ms / 1000),
                            .tv_nsec = (long)(ms % 1000) * 1000000L};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

/* A machine that runs asks 90 times in a second, and half as often with a sanitizer. */
unsigned hf_test_asks(uint64_t ms)
{
    enum { ONE_IN_MS = 20, MOST = 200 };
    return (unsigned)(ms / ONE_IN_MS < MOST ? ms / ONE_IN_MS : MOST);
}
