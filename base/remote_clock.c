/* remote_clock.c - base/remote_clock.h.
 *
 * The bounds of the offset are narrowed by each sample that is narrow itself, and widened
 * as time passes, faster than a clock is slewed in ordinary operation. A sample that
 * contradicts them starts them anew: the clock was set, or is slewed fast. So a step of
 * any size is noticed, unless it is smaller than the width of the samples.
 */
#include "base/remote_clock.h"

#include "base/clock.h"

enum {
    US_NS = 1000,
    MS_US = 1000,
    DRIFT = 1000, /* the offset moves by at most a thousandth of the time, unnoticed */
    NARROW_US = 200000
};

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t greater(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* How far these bounds are from those that are known; 0: they agree. */
static int64_t apart_us(const hf_remote_clock *c, int64_t low_us, int64_t high_us)
{
    return low_us > c->high_us   ? low_us - c->high_us
           : high_us < c->low_us ? high_us - c->low_us
                                 : 0;
}

static void drift(hf_remote_clock *c, uint64_t to_ns)
{
    int64_t by_us = (int64_t)((to_ns - c->last_ns) / US_NS / DRIFT) + 1;
    c->low_us -= by_us;
    c->high_us += by_us;
    c->last_ns = to_ns;
}

int64_t hf_remote_clock_read(hf_remote_clock *c, uint64_t sent_ns, uint64_t read_ns,
                             int64_t remote_ms)
{
    /* The remote time comes in whole ms. */
    int64_t low_us = remote_ms * MS_US - (int64_t)((read_ns + US_NS - 1) / US_NS);
    int64_t high_us = (remote_ms + 1) * MS_US - (int64_t)(sent_ns / US_NS);
    if (!c->known) {
        *c = (hf_remote_clock){true, read_ns, low_us, high_us};
        return 0;
    }
    /* Of two connections: another answer may be newer. */
    if (read_ns < c->last_ns ||
        (sent_ns < c->last_ns && apart_us(c, low_us, high_us) != 0))
        return 0;
    drift(c, read_ns);
    int64_t moved_us = apart_us(c, low_us, high_us);
    if (moved_us != 0) {
        c->low_us = low_us;
        c->high_us = high_us;
    } else if (high_us - low_us <= NARROW_US) {
        c->low_us = greater(c->low_us, low_us);
        c->high_us = lesser(c->high_us, high_us);
    }
    return moved_us / MS_US;
}

int64_t hf_remote_clock_now(const hf_remote_clock *c, uint64_t boot_ns)
{
    int64_t past_us =
        boot_ns > c->last_ns ? (int64_t)((boot_ns - c->last_ns) / US_NS) : 0;
    return ((int64_t)(boot_ns / US_NS) + c->low_us - past_us / DRIFT) / MS_US;
}

uint64_t hf_remote_clock_when(const hf_remote_clock *c, int64_t remote_ms)
{
    const int64_t last_us = INT64_MAX / US_NS; /* in some 300 years */
    if (remote_ms >= last_us / MS_US)
        return UINT64_MAX;
    int64_t boot_us = remote_ms * MS_US - c->low_us;
    if (boot_us >= last_us)
        return UINT64_MAX;
    return boot_us > 0 ? (uint64_t)boot_us * US_NS : 0;
}
