/* runs.c - see runs.h. */
#include "top/runs.h"

#include <stdlib.h>
#include <string.h>

void hf_top_runs_done(hf_top_runs *runs)
{
    free(runs->at);
    *runs = (hf_top_runs){0};
}

static bool is_same(const hf_top_run *a, const hf_top_run *b)
{
    if (strcmp(a->id, b->id) != 0)
        return false;
    return b->fence != 0 ? a->fence == b->fence
                         : a->run == b->run && strcmp(a->worker, b->worker) == 0;
}

static hf_top_run *find(const hf_top_runs *runs, const hf_top_run *run)
{
    hf_top_run *found = NULL;
    for (size_t i = 0; i < runs->n; i++)
        if (is_same(&runs->at[i], run) &&
            (found == NULL || runs->at[i].start_ms > found->start_ms))
            found = &runs->at[i];
    return found;
}

/* The place of a new one: at the end, or that of the run that ended first. */
static hf_top_run *place(hf_top_runs *runs)
{
    hf_top_run *oldest = NULL;
    if (runs->at == NULL)
        runs->at = calloc(HF_RUNS_MAX, sizeof *runs->at);
    if (runs->at == NULL)
        return NULL;
    if (runs->n < HF_RUNS_MAX)
        return &runs->at[runs->n++];
    for (size_t i = 0; i < runs->n; i++)
        if (runs->at[i].end_ms > 0 &&
            (oldest == NULL || runs->at[i].end_ms < oldest->end_ms))
            oldest = &runs->at[i];
    return oldest;
}

bool hf_top_runs_tell(hf_top_runs *runs, const hf_top_run *run)
{
    hf_top_run *known = find(runs, run);
    if (known == NULL) {
        known = place(runs);
        if (known != NULL)
            *known = *run;
        return known != NULL || runs->at != NULL;
    }
    if (run->seen_ms > known->seen_ms)
        known->seen_ms = run->seen_ms;
    if (run->end_ms > 0 && (known->end_ms == 0 || run->end == HF_TOP_RUN_FAILED)) {
        known->end_ms = run->end_ms;
        known->end = run->end;
    }
    return true;
}

void hf_top_runs_listed(hf_top_runs *runs, int64_t now_ms, bool whole, int64_t since_ms)
{
    size_t kept = 0;
    for (size_t i = 0; i < runs->n; i++) {
        hf_top_run *run = &runs->at[i];
        if (whole && run->end_ms == 0 && run->seen_ms != now_ms) {
            run->end_ms = now_ms;
            run->end = HF_TOP_RUN_ENDED;
        }
        if (run->end_ms == 0 || run->end_ms >= since_ms)
            runs->at[kept++] = *run;
    }
    runs->n = kept;
}

static void mark(const hf_top_run *run, int64_t from_ms, int64_t step_ms, int64_t now_ms,
                 hf_lane_cell *cells, size_t n)
{
    const int64_t end_ms = run->end_ms > 0 ? run->end_ms : now_ms;
    const int64_t first =
        run->start_ms < from_ms ? 0 : (run->start_ms - from_ms) / step_ms;
    const int64_t last = (end_ms - from_ms) / step_ms;
    const hf_lane_cell cell = run->end_ms > 0 ? HF_LANE_ENDED : HF_LANE_RUNS;
    for (int64_t i = first; end_ms >= from_ms && i <= last && i < (int64_t)n; i++)
        if (cells[i] < cell)
            cells[i] = cell;
    if (run->end == HF_TOP_RUN_FAILED && end_ms >= from_ms && last < (int64_t)n)
        cells[last] = HF_LANE_FAILED;
}

void hf_top_runs_lane(const hf_top_runs *runs, const char *worker, int64_t from_ms,
                      int64_t step_ms, int64_t now_ms, hf_lane_cell *cells, size_t n)
{
    for (size_t i = 0; i < n; i++)
        cells[i] = HF_LANE_EMPTY;
    for (size_t i = 0; i < runs->n; i++)
        if (strcmp(runs->at[i].worker, worker) == 0)
            mark(&runs->at[i], from_ms, step_ms, now_ms, cells, n);
}
