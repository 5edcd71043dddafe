/* clock_harm.c - see clock_harm.h. */
#include "tests/history/clock_harm.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/base.h"
#include "tests/support/eventually.h"

enum {
    STEP_MIN_MS = 100,
    DOUBLINGS = 17,
    DOUBLINGS_SMALL = 4,
    BACK_MS = 60,
    TWICE_MS = 300
};

const char *const hf_clock_harms[HF_CLOCK_HARMS] = {"steps", "double steps",
                                                    "steps there and back", "rates"};

static unsigned below(hf_rng *rng, unsigned limit)
{
    return (unsigned)(hf_rng_next(rng) % limit);
}

/* From 100 ms to 7 hours, as often between one and two seconds as between one and two
 * hours. */
static int64_t any_step_ms(hf_rng *rng)
{
    int64_t ms = (int64_t)STEP_MIN_MS << below(rng, DOUBLINGS + 1);
    ms += (int64_t)(hf_rng_unit(rng) * (double)ms);
    return below(rng, 2) == 0 ? ms : -ms;
}

static void step_twice(hf_fixture *redis, hf_rng *rng, int64_t first, int64_t second,
                       unsigned between_ms, char *words, size_t size)
{
    const unsigned ms = 1 + below(rng, between_ms);
    hf_fixture_clock_step(redis, first);
    hf_test_pause_ms(ms);
    hf_fixture_clock_step(redis, second);
    (void)snprintf(words, size, "%+" PRId64 " ms, after %u ms %+" PRId64 " ms", first, ms,
                   second);
}

void hf_clock_harm(hf_fixture *redis, hf_rng *rng, unsigned which, char *words,
                   size_t size)
{
    const int64_t step = any_step_ms(rng);
    int permille;
    switch (which) {
    case 0:
        hf_fixture_clock_step(redis, step);
        (void)snprintf(words, size, "%+" PRId64 " ms", step);
        break;
    case 1:
        step_twice(redis, rng, step, any_step_ms(rng), TWICE_MS, words, size);
        break;
    case 2:
        step_twice(redis, rng, step, -step, BACK_MS, words, size);
        break;
    default:
        permille =
            (int)below(rng, 2 * HF_SERVER_CLOCK_SLEW_MAX + 1) - HF_SERVER_CLOCK_SLEW_MAX;
        hf_fixture_clock_slew(redis, permille);
        (void)snprintf(words, size, "%+d permille", permille);
        break;
    }
}
