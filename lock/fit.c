/* fit.c - may the Redis that was reached give out locks, and remember fences? */
#include <stdio.h>
#include <string.h>

#include "lock/locks.h"

/* A lock that is evicted would be given to another while it is held, and a fence that is
 * evicted would let in who lost it. */
bool hf_lock_client_fit(hf_lock_client *locks, char detail[HF_DETAIL_SIZE])
{
    const char *policy = hf_client_server(locks->client)->policy;
    if (policy[0] == '\0' || strcmp(policy, "noeviction") == 0)
        return true;
    locks->unfit = true;
    (void)snprintf(detail, HF_DETAIL_SIZE,
                   "expected maxmemory-policy noeviction, found %s: locks would be "
                   "evicted first",
                   policy);
    return false;
}
