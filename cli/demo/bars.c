/* bars.c - the runs of the demo as bars: the beginning and end of each, the lane of its
 * worker, and its row there. */
#include <stdlib.h>

#include "cli/demo/demo.h"

enum { BARS_MAX = HF_DEMO_JOBS * HF_DEMO_RUNS_MAX, SPAN_MIN_MS = 1000 };

static void collect(const hf_demo *d, hf_demo_bars *out)
{
    for (size_t i = 0; i < HF_DEMO_JOBS; i++) {
        const hf_demo_job *job = &d->jobs[i];
        for (size_t r = 0; r < hf_demo_runs_of(job); r++) {
            size_t worker = hf_demo_worker_of(d, &job->runs[r]);
            if (worker < HF_DEMO_WORKERS)
                out->bars[out->n++] =
                    (hf_demo_bar){.job = job,
                                  .run = &job->runs[r],
                                  .worker = worker,
                                  .killed = hf_demo_was_killed(d, &job->runs[r])};
        }
    }
}

static int by_start(const void *a, const void *b)
{
    const hf_demo_bar *x = a, *y = b;
    if (x->run->start_ms != y->run->start_ms)
        return x->run->start_ms < y->run->start_ms ? -1 : 1;
    return x->job < y->job ? -1 : x->job > y->job;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The last moment that is seen, and a little. */
static int64_t find_end(const hf_demo *d, const hf_demo_bars *bars)
{
    int64_t last_ms = d->start_ms + SPAN_MIN_MS;
    for (size_t i = 0; i < HF_DEMO_WORKERS; i++)
        last_ms = later(last_ms, d->workers[i].ended_ms);
    if (d->killed_ms != 0)
        last_ms = later(last_ms, d->killed_ms + HF_DEMO_LEASE_MS);
    for (size_t i = 0; i < bars->n; i++) {
        const hf_demo_run *run = bars->bars[i].run;
        last_ms = later(last_ms, later(run->start_ms, run->end_ms));
    }
    return last_ms + (last_ms - d->start_ms) / 50;
}

/* The first free row. Very short runs are drawn longer, so the rows may not suffice: then
 * the row that becomes free first. */
static size_t choose_row(hf_demo_bar *const last[HF_DEMO_SLOTS], size_t n,
                         int64_t start_ms)
{
    size_t best = 0;
    for (size_t i = 0; i < n; i++) {
        if (last[i] == NULL || last[i]->drawn_ms <= start_ms)
            return i;
        if (last[i]->drawn_ms < last[best]->drawn_ms)
            best = i;
    }
    return best;
}

static void place(hf_demo_bars *bars, int64_t least_ms)
{
    hf_demo_bar *last[HF_DEMO_WORKERS][HF_DEMO_SLOTS] = {{NULL}};
    for (size_t i = 0; i < bars->n; i++) {
        hf_demo_bar *b = &bars->bars[i];
        b->row = choose_row(last[b->worker], hf_demo_slots_of(b->worker), b->start_ms);
        b->drawn_ms = later(b->end_ms, b->start_ms + least_ms);
        hf_demo_bar **before = &last[b->worker][b->row];
        if (*before != NULL && (*before)->drawn_ms > b->start_ms)
            (*before)->drawn_ms = b->start_ms;
        *before = b;
    }
}

hf_err hf_demo_bars_collect(hf_demo_bars *out, const hf_demo *d, double px)
{
    *out = (hf_demo_bars){.bars = calloc(BARS_MAX, sizeof *out->bars)};
    if (out->bars == NULL)
        return HF_NOMEM;
    collect(d, out);
    qsort(out->bars, out->n, sizeof out->bars[0], by_start);
    out->until_ms = find_end(d, out);
    for (size_t i = 0; i < out->n; i++) {
        hf_demo_bar *b = &out->bars[i];
        b->start_ms = b->run->start_ms;
        b->end_ms = b->run->end_ms != 0 ? b->run->end_ms
                    : b->killed         ? d->killed_ms
                                        : out->until_ms;
    }
    double ms_per_px = (double)(out->until_ms - d->start_ms) / px;
    place(out, (int64_t)(ms_per_px * HF_DEMO_BAR_MIN) + 1);
    return HF_OK;
}

const hf_demo_bar *hf_demo_bars_find(const hf_demo_bars *bars, const hf_demo_run *run)
{
    for (size_t i = 0; i < bars->n; i++) {
        if (bars->bars[i].run == run)
            return &bars->bars[i];
    }
    return NULL;
}

void hf_demo_bars_done(hf_demo_bars *bars)
{
    free(bars->bars);
    bars->bars = NULL;
}
