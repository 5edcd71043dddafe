/* hf-clock-preload.c - makes a redis-server believe another wall clock.
 *
 *     HF_SERVER_CLOCK=FILE LD_PRELOAD=hf-clock-preload.so redis-server ...
 *
 * The file is that of tests/support/server_clock.h. gettimeofday(), time(), and
 * clock_gettime() of CLOCK_REALTIME and CLOCK_REALTIME_COARSE answer the moved clock; all
 * other clocks are untouched. From them Redis takes what TIME answers and when a key
 * ends. A server that cannot map the file does not start: it would run by the real clock,
 * and its test would show nothing.
 *
 * The acceptance scripts load this object to move the clock: hf_preload_open() and
 * what follows it. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "tests/support/server_clock.h"

#define SEEN __attribute__((visibility("default")))

enum { S_NS = 1000000000, US_NS = 1000 };

typedef int (*real_fn)(clockid_t id, struct timespec *ts);

static hf_server_clock *server_clock; /* NULL: nothing is moved */

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv(HF_SERVER_CLOCK_ENV);
    if (path == NULL)
        return;
    server_clock = hf_server_clock_open(path, false);
    if (server_clock == NULL) {
        perror(path);
        _Exit(1);
    }
    atomic_store(&server_clock->used, 1);
}

/* Asked for each time until it is known: other objects read clocks before begin() runs.
 */
static int real_clock(clockid_t id, struct timespec *ts)
{
    static _Atomic(real_fn) known;
    real_fn real = atomic_load(&known);
    if (real == NULL) {
        void *found = dlsym(RTLD_NEXT, "clock_gettime");
        if (found == NULL)
            abort();
        memcpy(&real, &found, sizeof real);
        atomic_store(&known, real);
    }
    return real(id, ts);
}

static int64_t in_ns(const struct timespec *ts)
{
    return (int64_t)ts->tv_sec * S_NS + ts->tv_nsec;
}

static int64_t wall_ns(clockid_t id)
{
    struct timespec real, monotonic;
    (void)real_clock(id, &real);
    if (server_clock == NULL)
        return in_ns(&real);
    const int64_t stands_ns = atomic_load(&server_clock->stands_ns);
    if (stands_ns != 0)
        return stands_ns;
    (void)real_clock(CLOCK_MONOTONIC, &monotonic);
    return in_ns(&real) + hf_server_clock_ahead(server_clock, in_ns(&monotonic));
}

/* glibc's headers name these parameters as they like, and say that they are not NULL. */
SEEN int clock_gettime(clockid_t id, struct timespec *ts)
{
    if (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE)
        return real_clock(id, ts);
    const int64_t ns = wall_ns(id);
    *ts = (struct timespec){.tv_sec = (time_t)(ns / S_NS), .tv_nsec = (long)(ns % S_NS)};
    return 0;
}

SEEN int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
    (void)zone; /* obsolete; Redis passes NULL */
    const int64_t ns = wall_ns(CLOCK_REALTIME);
    *tv = (struct timeval){.tv_sec = (time_t)(ns / S_NS),
                           .tv_usec = (suseconds_t)(ns % S_NS / US_NS)};
    return 0;
}

SEEN time_t time(time_t *t)
{
    const time_t now = (time_t)(wall_ns(CLOCK_REALTIME) / S_NS);
    if (t != NULL)
        *t = now;
    return now;
}

/* ---- for the acceptance scripts ---- */

SEEN hf_server_clock *hf_preload_open(const char *path);
SEEN void hf_preload_step(hf_server_clock *clock, int64_t ms);
SEEN void hf_preload_slew(hf_server_clock *clock, int permille);
SEEN void hf_preload_stand(hf_server_clock *clock, int64_t unix_ms);
SEEN int hf_preload_used(const hf_server_clock *clock);

/* Makes the file for a server to come. */
hf_server_clock *hf_preload_open(const char *path)
{
    return hf_server_clock_open(path, true);
}

void hf_preload_step(hf_server_clock *clock, int64_t ms)
{
    hf_server_clock_step(clock, ms);
}

void hf_preload_slew(hf_server_clock *clock, int permille)
{
    hf_server_clock_slew(clock, permille);
}

void hf_preload_stand(hf_server_clock *clock, int64_t unix_ms)
{
    hf_server_clock_stand(clock, unix_ms);
}

int hf_preload_used(const hf_server_clock *clock)
{
    return atomic_load(&clock->used) == 1;
}
