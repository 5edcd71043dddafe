/* backoff.c - base/backoff.h. */
#include "base/backoff.h"

#include "base/base.h"
#include "holdfast/job.h"

/* base * times, never more than cap, without overflow on the way. */
static int64_t times_capped(int64_t base, uint64_t times, int64_t cap)
{
    if (base == 0)
        return 0;
    if (times > (uint64_t)(cap / base))
        return cap;
    return base * (int64_t)times;
}

int64_t hf_backoff_ms(const hf_backoff *backoff, uint32_t n, hf_rng *rng)
{
    HF_ASSERT(backoff->base_ms >= 0 && backoff->cap_ms >= backoff->base_ms);
    HF_ASSERT(backoff->jitter >= 0 && backoff->jitter <= 1);
    if (n == 0)
        n = 1;
    int64_t wait = backoff->base_ms;
    switch (backoff->shape) {
    case HF_SHAPE_EXPONENTIAL:
        wait =
            times_capped(backoff->base_ms, n > 63 ? UINT64_MAX : UINT64_C(1) << (n - 1),
                         backoff->cap_ms);
        break;
    case HF_SHAPE_LINEAR:
        wait = times_capped(backoff->base_ms, n, backoff->cap_ms);
        break;
    case HF_SHAPE_CONSTANT:
        break;
    }
    if (wait > HF_DELAY_MAX_MS)
        wait = HF_DELAY_MAX_MS;
    if (backoff->jitter <= 0)
        return wait;
    double shift = backoff->jitter * (2 * hf_rng_unit(rng) - 1);
    double jittered = (double)wait * (1 + shift);
    return jittered >= (double)HF_DELAY_MAX_MS ? HF_DELAY_MAX_MS : (int64_t)jittered;
}
