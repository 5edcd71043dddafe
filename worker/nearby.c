/* nearby.c - worker/nearby.h, by the set of processors that a thread may run on.
 *
 * Only a thread that may run on all of them is tied, for some microseconds, and then it
 * may run on all of them again: nothing is to be remembered, and what somebody else has
 * chosen for it stays. */
#define _GNU_SOURCE /* for the processors of threads */
#include "worker/nearby.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

long hf_nearby_processors(void)
{
    return sysconf(_SC_NPROCESSORS_ONLN);
}

bool hf_nearby_begin(pthread_t sleeper, long processors)
{
    cpu_set_t set;
    int here = sched_getcpu();
    if (processors < 2 || here < 0 || here >= CPU_SETSIZE ||
        pthread_getaffinity_np(sleeper, sizeof set, &set) != 0 ||
        CPU_COUNT(&set) < processors)
        return false;
    CPU_ZERO(&set);
    CPU_SET((unsigned)here, &set);
    return pthread_setaffinity_np(sleeper, sizeof set, &set) == 0;
}

void hf_nearby_end(void)
{
    cpu_set_t all;
    memset(&all, 0xFF, sizeof all);
    (void)pthread_setaffinity_np(pthread_self(), sizeof all, &all);
}
