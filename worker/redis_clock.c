/* redis_clock.c - Redis's clock, as this worker knows it: the last TIME plus what has
 * passed since the answer was read. It lags by the answer's way here and is never ahead,
 * so a timer set by it does not fire early, again and again, until the time has come. */
#include "base/clock.h"
#include "worker/core.h"

enum { JUMP_MS = 1000, NOT_AFTER_MS = 1000 };

static int64_t offset(const hf_worker *w)
{
    return atomic_load(&w->redis_minus_boot_ms);
}

static int64_t guess_at(const hf_worker *w, uint64_t boot_ns)
{
    return (int64_t)(boot_ns / HF_MS_NS) + offset(w);
}

/* A clock that jumped makes every lease look ended, or endless: nothing is taken over for
 * one lease, and what is held is verified at once. */
static void on_jump(hf_worker *w, int64_t by_ms)
{
    for (size_t i = 0; i < w->n_served; i++)
        w->served[i].jumped = true;
    hf_log_field field = {.key = "by_ms", .number = by_ms};
    hf_report(w, HF_LOG_ERROR, "the clock of Redis jumped", &field, 1);
    hf_watchdog_verify(w->watchdog);
}

void hf_clock_read(hf_worker *w, int64_t now_ms, uint64_t sent_ns)
{
    uint64_t read_ns = hf_boot_ns();
    if (offset(w) != INT64_MIN) {
        int64_t ahead = now_ms - guess_at(w, read_ns);
        int64_t behind =
            guess_at(w, sent_ns > w->now_read_ns ? sent_ns : w->now_read_ns) - now_ms;
        if (ahead > JUMP_MS)
            on_jump(w, ahead);
        else if (behind > JUMP_MS)
            on_jump(w, -behind);
    }
    /* Rounded so that the guess is behind, never ahead. */
    int64_t read_ms = (int64_t)((read_ns + HF_MS_NS - 1) / HF_MS_NS);
    atomic_store(&w->redis_minus_boot_ms, now_ms - read_ms);
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
