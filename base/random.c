/* random.c - base/random.h on getrandom(). */
#include "base/random.h"

#include <errno.h>
#include <sys/random.h>

hf_err hf_random_bytes(void *out, size_t len)
{
    unsigned char *at = out;
    while (len > 0) {
        ssize_t n = getrandom(at, len, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return HF_SYSTEM;
        at += n;
        len -= (size_t)n;
    }
    return HF_OK;
}

uint64_t hf_rng_next(hf_rng *rng)
{
    rng->state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = rng->state;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

double hf_rng_unit(hf_rng *rng)
{
    /* A double holds 53 bits exactly; one bit more could round up to 1. */
    return (double)(hf_rng_next(rng) >> 11) * (1.0 / 9007199254740992.0);
}
