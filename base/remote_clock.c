/* remote_clock.c - base/remote_clock.h.
 *
 * The present bounds of the offset are narrowed by each sample that is narrow itself, and
 * widened as time passes, faster than a clock is slewed in ordinary operation. A sample
 * that contradicts them starts them anew: the clock was set, or is slewed fast. So a step
 * of any size is noticed, unless it is smaller than the width of the samples; a holder's
 * margin (lease.c) covers those.
 *
 * The past is kept as spans. Each covers a 32nd of the time that is judged. Merging two
 * of them keeps the wider bounds for the longer time, which only makes the answers more
 * careful.
 */
#include "base/remote_clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum {
    US_NS = 1000,
    MS_US = 1000,
    SLEW = 10,    /* it is slewed by at most a tenth of the time; more is a step */
    DRIFT = 1000, /* the offset moves by at most a thousandth of the time, unnoticed */
    GAP_LEASE_MAX_MS = 10000,
    NARROW_LEAST_US = 50000,
    PARTS = 32
};

uint32_t hf_remote_gap_ms(uint32_t lease_ms)
{
    return (lease_ms < GAP_LEASE_MAX_MS ? lease_ms : GAP_LEASE_MAX_MS) * 3 / 4;
}

static uint64_t gap_ns(const hf_remote_clock *c)
{
    return hf_remote_gap_ms(c->lease_ms) * HF_MS_NS;
}

/* A lease that was given just before the first of its samples counts as well. */
static uint64_t window_ns(const hf_remote_clock *c)
{
    return c->lease_ms * HF_MS_NS + gap_ns(c);
}

void hf_remote_clock_init(hf_remote_clock *c, uint32_t lease_ms)
{
    *c = (hf_remote_clock){.lease_ms = lease_ms};
}

void hf_remote_clock_judge(hf_remote_clock *c, uint32_t lease_ms)
{
    c->lease_ms = lease_ms;
}

bool hf_remote_clock_known(const hf_remote_clock *c)
{
    return c->n > 0;
}

/* ---- spans ---- */

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t greater(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static uint64_t greater_ns(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void widen(hf_remote_span *span, const hf_remote_span *by)
{
    span->last_ns = by->last_ns;
    span->low_us = lesser(span->low_us, by->low_us);
    span->high_us = greater(span->high_us, by->high_us);
}

static void drop_first(hf_remote_clock *c)
{
    c->n--;
    memmove(c->spans, c->spans + 1, c->n * sizeof c->spans[0]);
}

static void add_span(hf_remote_clock *c, const hf_remote_span *span, bool apart)
{
    uint64_t window = window_ns(c);
    hf_remote_span *back = c->n > 0 ? &c->spans[c->n - 1] : NULL;
    if (back != NULL && !apart && span->last_ns - back->first_ns < window / PARTS) {
        widen(back, span);
        return;
    }
    while (c->n > 1 && c->spans[1].first_ns + window < span->last_ns) {
        drop_first(c);
        c->since_ns = c->spans[0].first_ns; /* nothing is known about the time before */
    }
    if (c->n == HF_REMOTE_SPANS) {
        uint64_t first_ns = c->spans[0].first_ns;
        widen(&c->spans[0], &c->spans[1]);
        c->spans[1] = c->spans[0];
        c->spans[1].first_ns = first_ns;
        drop_first(c);
    }
    c->spans[c->n++] = *span;
}

/* ---- samples ---- */

static bool too_old(const hf_remote_clock *c, uint64_t boot_ns)
{
    return c->n == 0 || boot_ns > c->sent_ns + gap_ns(c);
}

/* The bounds of the offset by one sample. The remote time comes in whole ms. */
static hf_remote_span sample_of(uint64_t sent_ns, uint64_t read_ns, int64_t remote_ms)
{
    return (hf_remote_span){
        .first_ns = read_ns,
        .last_ns = read_ns,
        .low_us = remote_ms * MS_US - (int64_t)((read_ns + US_NS - 1) / US_NS),
        .high_us = (remote_ms + 1) * MS_US - (int64_t)(sent_ns / US_NS),
    };
}

static void drift(hf_remote_clock *c, uint64_t to_ns)
{
    int64_t by_us = (int64_t)((to_ns - c->last_ns) / US_NS / DRIFT) + 1;
    c->low_us -= by_us;
    c->high_us += by_us;
    c->last_ns = to_ns;
}

/* How far a sample is from the bounds of the offset; 0: they agree. */
static int64_t apart_us(const hf_remote_clock *c, const hf_remote_span *s)
{
    return s->low_us > c->high_us   ? s->low_us - c->high_us
           : s->high_us < c->low_us ? s->high_us - c->low_us
                                    : 0;
}

/* A move is a step if the fastest slew makes a clock move less since the last sample. */
static void note_move(hf_remote_clock *c, uint64_t read_ns, int64_t by_us)
{
    uint64_t most_us = (read_ns - c->sent_ns) / US_NS / SLEW;
    if ((uint64_t)llabs(by_us) > most_us)
        c->steady_ns = read_ns;
}

static void start(hf_remote_clock *c, const hf_remote_span *s, uint64_t sent_ns)
{
    c->n = 0;
    c->since_ns = c->steady_ns = c->last_ns = s->last_ns;
    c->sent_ns = sent_ns;
    c->low_us = s->low_us;
    c->high_us = s->high_us;
    add_span(c, s, true);
}

int64_t hf_remote_clock_read(hf_remote_clock *c, uint64_t sent_ns, uint64_t read_ns,
                             int64_t remote_ms)
{
    hf_remote_span s = sample_of(sent_ns, read_ns, remote_ms);
    if (too_old(c, read_ns)) {
        start(c, &s, sent_ns);
        return 0;
    }
    if (read_ns < c->last_ns)
        return 0;
    int64_t moved_us = apart_us(c, &s);
    if (moved_us != 0 && sent_ns < c->last_ns) {
        /* Of two connections: another answer may be newer. But this was a time too. */
        note_move(c, read_ns, moved_us);
        add_span(c, &s, true);
        return 0;
    }
    drift(c, read_ns);
    int64_t narrow_us = c->lease_ms * (int64_t)MS_US / 50;
    moved_us = apart_us(c, &s);
    if (moved_us != 0) {
        note_move(c, read_ns, moved_us);
        c->low_us = s.low_us;
        c->high_us = s.high_us;
    } else if (s.high_us - s.low_us <= greater(narrow_us, NARROW_LEAST_US)) {
        c->low_us = greater(c->low_us, s.low_us);
        c->high_us = lesser(c->high_us, s.high_us);
        s.low_us = c->low_us;
        s.high_us = c->high_us;
    } else { /* it may hide a step as wide as itself */
        s.low_us = lesser(c->low_us, s.low_us);
        s.high_us = greater(c->high_us, s.high_us);
    }
    add_span(c, &s, moved_us != 0);
    c->sent_ns = greater_ns(c->sent_ns, sent_ns);
    return moved_us / MS_US;
}

/* ---- questions ---- */

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

/* After a lease and a gap without a step, each holder has seen the time that is judged by
 * here, however often the clock was set and set back between two samples. */
int64_t hf_remote_clock_vouched(const hf_remote_clock *c, uint64_t boot_ns)
{
    uint64_t window = window_ns(c), known_ns;
    if (too_old(c, boot_ns))
        return -(int64_t)(window / HF_MS_NS);
    uint64_t from_ns = greater_ns(c->since_ns, c->steady_ns);
    known_ns = boot_ns > from_ns ? boot_ns - from_ns : 0;
    if (known_ns < window)
        return -(int64_t)((window - known_ns + HF_MS_NS - 1) / HF_MS_NS);
    return hf_remote_clock_least(c, boot_ns);
}

int64_t hf_remote_clock_least(const hf_remote_clock *c, uint64_t boot_ns)
{
    if (too_old(c, boot_ns))
        return 0;
    int64_t low_us = c->low_us;
    for (size_t i = 0; i < c->n; i++)
        if (c->spans[i].last_ns + window_ns(c) >= boot_ns)
            low_us = lesser(low_us, c->spans[i].low_us);
    return ((int64_t)(boot_ns / US_NS) + low_us) / MS_US;
}

int64_t hf_remote_clock_at_least(const hf_remote_clock *c, uint64_t boot_ns)
{
    if (too_old(c, boot_ns) || boot_ns < c->since_ns + gap_ns(c))
        return 0;
    int64_t high_us = c->high_us;
    for (size_t i = 0; i < c->n; i++) {
        /* Its offset may have lasted until just before the next sample. */
        uint64_t until_ns = i + 1 < c->n ? c->spans[i + 1].first_ns : boot_ns;
        if (until_ns + gap_ns(c) >= boot_ns)
            high_us = greater(high_us, c->spans[i].high_us);
    }
    return ((int64_t)(boot_ns / US_NS) + high_us) / MS_US;
}

/* ---- between processes of one machine ---- */

/* since, last: ns; the bounds of all spans since the last step: microseconds. */
void hf_remote_clock_save(const hf_remote_clock *c, char out[HF_REMOTE_STATE_SIZE])
{
    int64_t low_us = c->low_us, high_us = c->high_us;
    for (size_t i = 0; i < c->n; i++)
        if (c->spans[i].last_ns >= c->steady_ns) {
            low_us = lesser(low_us, c->spans[i].low_us);
            high_us = greater(high_us, c->spans[i].high_us);
        }
    uint64_t since_ns = greater_ns(c->since_ns, c->steady_ns);
    out[0] = '\0';
    if (c->n > 0 && since_ns <= c->sent_ns)
        (void)snprintf(out, HF_REMOTE_STATE_SIZE,
                       "%" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64, since_ns,
                       c->sent_ns, low_us, high_us);
}

void hf_remote_clock_adopt(hf_remote_clock *c, const char *text, size_t len)
{
    char copy[HF_REMOTE_STATE_SIZE];
    hf_remote_span theirs;
    int end = -1;
    if (c->n == 0 || len == 0 || len >= sizeof copy)
        return;
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (sscanf(copy, "%" SCNu64 " %" SCNu64 " %" SCNd64 " %" SCNd64 "%n",
               &theirs.first_ns, &theirs.last_ns, &theirs.low_us, &theirs.high_us,
               &end) != 4 ||
        end != (int)len)
        return;
    uint64_t since_ns = theirs.first_ns;
    if (since_ns >= c->since_ns || since_ns > theirs.last_ns ||
        theirs.last_ns > c->last_ns || theirs.last_ns + gap_ns(c) < c->since_ns ||
        theirs.low_us > theirs.high_us || theirs.low_us > c->high_us ||
        theirs.high_us < c->low_us)
        return;
    /* Their bounds count as if they were from their last sample: longer than they need.
     */
    theirs.first_ns = theirs.last_ns;
    if (c->n == HF_REMOTE_SPANS)
        drop_first(c);
    memmove(c->spans + 1, c->spans, c->n * sizeof c->spans[0]);
    c->spans[0] = theirs;
    c->n++;
    if (c->steady_ns <= c->since_ns)
        c->steady_ns = since_ns;
    c->since_ns = since_ns;
}
