/* gather_past.c - see gather_past.h.
 *
 * Attempts are counted by the counters of the queue: what they are now, less what they
 * were in the minute before. So an attempt is known at once, and not only when the worker
 * sends its minute. */
#include "seen/gather_past.h"

#include <string.h>

enum {
    MINUTE_MS = 60000,
    WINDOW_MS = 10 * MINUTE_MS,  /* what is read, and for crashed and lost ones */
    ATTEMPTS_MS = 5 * MINUTE_MS, /* for attempts that failed */
    APART_MS = MINUTE_MS / 2,    /* nearer samples are of one minute */
    STEPS = WINDOW_MS / MINUTE_MS + 2
};

typedef struct past {
    hf_history_span span;
    size_t n; /* the steps in which the queue was seen */
    hf_history_step seen[STEPS];
    int64_t crashed, lost;
} past;

static void on_step(const hf_history_step *step, void *arg)
{
    past *p = arg;
    p->crashed += step->crashed;
    p->lost += step->lost;
    if (step->seen && p->n < STEPS)
        p->seen[p->n++] = *step;
}

/* Since the last sample that is old enough; without one, since the history began. */
static void count_attempts(const past *p, hf_facts_past *out)
{
    const hf_history_step *now = &p->seen[p->n - 1];
    int64_t done = p->span.ever_done, failed = p->span.ever_failed;
    int64_t since_ms = now->seen_ms - ATTEMPTS_MS;
    for (size_t i = p->n - 1; i > 0; i--) {
        const hf_history_step *step = &p->seen[i - 1];
        if (step->seen_ms > now->seen_ms - ATTEMPTS_MS)
            continue;
        done = step->ever_done;
        failed = step->ever_failed;
        since_ms = step->seen_ms;
        break;
    }
    done = now->ever_done > done ? now->ever_done - done : 0;
    out->failed = now->ever_failed > failed ? now->ever_failed - failed : 0;
    out->attempts = done + out->failed;
    out->done_per_min = done * MINUTE_MS / (now->seen_ms - since_ms);
}

/* Each sample had fewer ready jobs than the next one. The last one may be too young to
 * have more. */
static void count_rises(const past *p, hf_facts_past *out)
{
    const hf_history_step *now = &p->seen[p->n - 1], *first = now;
    for (size_t i = p->n - 1; i > 0; i--) {
        const hf_history_step *step = &p->seen[i - 1];
        const bool is_young = first == now && now->seen_ms - step->seen_ms < APART_MS;
        if (is_young ? step->ready > now->ready : step->ready >= first->ready)
            break;
        first = step;
    }
    const int64_t took_ms = now->seen_ms - first->seen_ms;
    if (took_ms <= 0)
        return;
    out->rises = (took_ms + APART_MS) / MINUTE_MS;
    out->rise_per_min = ((now->ready - first->ready) * MINUTE_MS + took_ms / 2) / took_ms;
}

hf_err hf_gather_past(hf_admin *admin, const char *queue, hf_facts_past *out,
                      char detail[HF_DETAIL_SIZE])
{
    past p = {.span = {HF_HISTORY_SPAN_INIT}};
    /* "*": the sums of all other types are not needed. */
    const hf_history_opts opts = {HF_HISTORY_OPTS_INIT, .since_ms = WINDOW_MS,
                                  .type = "*", .on_step = on_step, .arg = &p};
    hf_err err = hf_admin_history(admin, queue, &opts, &p.span, detail);
    if (err != HF_OK || p.n == 0)
        return err;
    *out = (hf_facts_past){.known = true, .crashed = p.crashed, .lost = p.lost};
    count_attempts(&p, out);
    count_rises(&p, out);
    return HF_OK;
}
