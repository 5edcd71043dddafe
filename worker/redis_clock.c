/* redis_clock.c - Redis's clock, as this worker knows it: the last TIME plus what has
 * passed since the answer was read.
 *
 * It lags by the answer's way here and is never ahead, so a timer set by it does not fire
 * early, again and again, until the time has come. Each answer gives a lower bound of the
 * difference between the two clocks; the highest of them is kept, and falls by a
 * thousandth of the time that passes, faster than a clock is slewed. */
#include "base/clock.h"
#include "worker/core.h"

enum { JUMP_MS = 1000, NOT_AFTER_MS = 1000, US_NS = 1000, MS_US = 1000, SLEW = 1000 };

static int64_t offset(const hf_worker *w)
{
    return atomic_load(&w->redis_minus_boot_us);
}

static int64_t guess_at(const hf_worker *w, uint64_t boot_ns)
{
    return ((int64_t)(boot_ns / US_NS) + offset(w)) / MS_US;
}

/* A clock that jumped makes every lease look ended, or endless: nothing is taken over for
 * one lease, and what is held is verified at once. */
static void on_jump(hf_worker *w, int64_t by_ms)
{
    for (size_t i = 0; i < w->n_served; i++)
        w->served[i]->jumped = true;
    hf_log_field field = {.key = "by_ms", .number = by_ms};
    hf_report(w, HF_LOG_ERROR, "the clock of Redis jumped", &field, 1);
    hf_watchdog_verify(w->watchdog);
}

void hf_clock_read(hf_worker *w, int64_t now_ms, uint64_t sent_ns)
{
    uint64_t read_ns = hf_boot_ns();
    bool jumped = false;
    if (offset(w) != INT64_MIN) {
        int64_t ahead = now_ms - guess_at(w, read_ns);
        int64_t behind =
            guess_at(w, sent_ns > w->now_read_ns ? sent_ns : w->now_read_ns) - now_ms;
        jumped = ahead > JUMP_MS || behind > JUMP_MS;
        if (jumped)
            on_jump(w, ahead > JUMP_MS ? ahead : -behind);
    }
    /* TIME came in whole ms, so this is up to one more behind. */
    int64_t bound = now_ms * MS_US - (int64_t)((read_ns + US_NS - 1) / US_NS);
    if (offset(w) != INT64_MIN && !jumped) {
        int64_t kept =
            offset(w) - (int64_t)((read_ns - w->now_read_ns) / US_NS / SLEW) - 1;
        bound = bound > kept ? bound : kept;
    }
    atomic_store(&w->redis_minus_boot_us, bound);
    w->now_read_ns = read_ns;
}

int64_t hf_clock_now(const hf_worker *w)
{
    return offset(w) == INT64_MIN ? 0 : guess_at(w, hf_boot_ns());
}

int64_t hf_clock_not_after(const hf_worker *w)
{
    uint32_t room = w->opts.request_timeout_ms;
    if (offset(w) == INT64_MIN)
        return 0;
    return hf_clock_now(w) + (room < NOT_AFTER_MS ? room : NOT_AFTER_MS);
}
