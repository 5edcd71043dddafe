/* ticks.c - see ticks.h. */
#include "cron/ticks.h"

#include "holdfast/job.h"

enum { STEP_BACK_MS = 3 * 3600 * 1000 };

static int64_t floor_s(int64_t ms)
{
    return ms / 1000 - (ms % 1000 < 0);
}

static bool next_period(const hf_ticks *ticks, int64_t after_ms, int64_t *out_ms)
{
    int64_t past = after_ms - ticks->start_ms;
    *out_ms = ticks->start_ms;
    if (past >= 0)
        *out_ms += (past / ticks->every_ms + 1) * ticks->every_ms;
    return *out_ms <= HF_TIME_MAX_MS;
}

bool hf_ticks_next(const hf_ticks *ticks, int64_t after_ms, int64_t *out_ms)
{
    if (ticks->start_ms != 0 && after_ms < ticks->start_ms)
        after_ms = ticks->start_ms - 1;
    bool found = false;
    if (ticks->every_ms != 0) {
        found = next_period(ticks, after_ms, out_ms);
    } else {
        int64_t at_s;
        found = hf_cron_next(&ticks->cron, ticks->zone, floor_s(after_ms), &at_s);
        *out_ms = found ? at_s * 1000 : 0;
    }
    return found && (ticks->end_ms == 0 || *out_ms <= ticks->end_ms);
}

/* The newest ticks after `from` until `now`, at most `max` of them, rising. It looks back
 * further and further, because there may be millions. */
static size_t newest(const hf_ticks *ticks, int64_t from_ms, int64_t now_ms, size_t max,
                     int64_t *out)
{
    int64_t step_ms = ticks->every_ms != 0 ? ticks->every_ms : 1000;
    for (int64_t back_ms = (int64_t)max * step_ms;; back_ms *= 4) {
        bool all = now_ms - from_ms <= back_ms;
        int64_t at = all ? from_ms : now_ms - back_ms;
        size_t n = 0;
        while (hf_ticks_next(ticks, at, &at) && at <= now_ms)
            out[n++ % max] = at;
        if (!all && n < max)
            continue;
        if (n <= max)
            return n;
        /* The oldest of the ring comes first. */
        int64_t ring[HF_TICKS_MAX];
        for (size_t i = 0; i < max; i++)
            ring[i] = out[(n + i) % max];
        for (size_t i = 0; i < max; i++)
            out[i] = ring[i];
        return max;
    }
}

/* Periods that have begun by then. */
static int64_t periods(const hf_ticks *ticks, int64_t until_ms)
{
    return until_ms < ticks->start_ms
               ? 0
               : (until_ms - ticks->start_ms) / ticks->every_ms + 1;
}

static int64_t count(const hf_ticks *ticks, int64_t from_ms, int64_t now_ms)
{
    if (ticks->start_ms != 0 && from_ms < ticks->start_ms)
        from_ms = ticks->start_ms - 1;
    if (ticks->end_ms != 0 && now_ms > ticks->end_ms)
        now_ms = ticks->end_ms;
    if (from_ms >= now_ms)
        return 0;
    if (ticks->every_ms != 0)
        return periods(ticks, now_ms) - periods(ticks, from_ms);
    return hf_cron_count(&ticks->cron, ticks->zone, floor_s(from_ms), floor_s(now_ms));
}

/* Until when ticks are decided on. If the clock was set back, fixed times do not repeat,
 * unless it was by more than 3 hours. What follows real time goes on: the first tick
 * after now may have been there, so it counts as decided on, and the next one comes. */
static int64_t decided_until(const hf_ticks *ticks, int64_t from_ms, int64_t now_ms)
{
    int64_t first_ms;
    if (from_ms <= now_ms || from_ms - now_ms > STEP_BACK_MS)
        return now_ms;
    bool real_time = ticks->every_ms != 0 || ticks->cron.real_time;
    if (real_time && hf_ticks_next(ticks, now_ms, &first_ms) && first_ms < from_ms)
        return first_ms;
    return from_ms;
}

void hf_ticks_decide(const hf_ticks *ticks, hf_missed missed, int64_t catch_up_ms,
                     int64_t from_ms, int64_t now_ms, hf_ticks_due *out)
{
    out->n = 0;
    out->dropped = 0;
    out->from_ms = decided_until(ticks, from_ms, now_ms);
    if (!hf_ticks_next(ticks, out->from_ms, &out->next_ms))
        out->next_ms = 0;
    int64_t all = count(ticks, from_ms, now_ms);
    size_t max = missed == HF_MISSED_ALL ? HF_TICKS_MAX : 1;
    int64_t oldest_ms = now_ms - catch_up_ms;
    if (missed == HF_MISSED_ALL && from_ms < oldest_ms - 1)
        from_ms = oldest_ms - 1;
    if (all > 0)
        out->n = newest(ticks, from_ms, now_ms, max, out->at_ms);
    if (missed == HF_MISSED_SKIP && out->n > 0 &&
        now_ms - out->at_ms[0] > HF_TICK_LATE_MS)
        out->n = 0;
    out->dropped = all > (int64_t)out->n ? all - (int64_t)out->n : 0;
}
