/* short_runs.c - see short_runs.h. */
#include "dashboard/short_runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/out.h"

enum {
    WORKERS = 500,
    CELLS = 120,
    SECOND_MS = 1000,
    FINE_MS = 60000, /* for so long at least it is told by the second */
    MIDDLE_MS = 600000
};

/* A ring for each scale: two minutes, ten minutes, an hour. */
static const int64_t steps[] = {SECOND_MS, 5 * SECOND_MS, 30 * SECOND_MS};

typedef struct cell {
    int64_t begin_ms; /* 0: empty */
    int64_t done, failed, cut;
    uint64_t look; /* that last added to it */
} cell;

typedef struct row {
    char worker[HF_HOLDER_SIZE];
    int64_t last_ms;
    cell cells[HF_COUNT(steps)][CELLS];
} row;

struct hf_short_runs {
    row *rows[WORKERS]; /* owned */
    size_t n;
    uint64_t look; /* the last one that found something */
    int64_t cut;   /* that it found */
};

hf_short_runs *hf_short_runs_new(void)
{
    return calloc(1, sizeof(hf_short_runs));
}

void hf_short_runs_free(hf_short_runs *s)
{
    for (size_t i = 0; s != NULL && i < s->n; i++)
        free(s->rows[i]);
    free(s);
}

/* That of the worker that was silent for longest becomes that of a new one. NULL: out of
 * memory. */
static row *row_of(hf_short_runs *s, const char *worker)
{
    size_t oldest = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (strcmp(s->rows[i]->worker, worker) == 0)
            return s->rows[i];
        if (s->rows[i]->last_ms < s->rows[oldest]->last_ms)
            oldest = i;
    }
    const size_t at = s->n < WORKERS ? s->n : oldest;
    if (at == s->n) {
        s->rows[at] = malloc(sizeof *s->rows[at]);
        if (s->rows[at] == NULL)
            return NULL;
        s->n++;
    }
    memset(s->rows[at], 0, sizeof *s->rows[at]);
    (void)snprintf(s->rows[at]->worker, HF_HOLDER_SIZE, "%s", worker);
    return s->rows[at];
}

static void add(cell *cells, int64_t step_ms, const hf_runs_entry *entry, uint64_t look)
{
    const int64_t begin_ms = entry->at_ms - entry->at_ms % step_ms;
    cell *c = &cells[begin_ms / step_ms % CELLS];
    if (c->begin_ms != begin_ms)
        *c = (cell){.begin_ms = begin_ms};
    c->done += entry->short_done;
    c->failed += entry->short_failed;
    c->cut += entry->cut;
    c->look = look;
}

void hf_short_runs_add(hf_short_runs *s, const hf_runs_entry *entry, uint64_t look)
{
    row *r = entry->at_ms > 0 ? row_of(s, entry->worker) : NULL;
    if (r == NULL)
        return; /* its picture lacks a column */
    if (s->look != look)
        s->cut = 0;
    s->look = look;
    s->cut += entry->cut;
    r->last_ms = entry->at_ms > r->last_ms ? entry->at_ms : r->last_ms;
    for (size_t i = 0; i < HF_COUNT(steps); i++)
        add(r->cells[i], steps[i], entry, look);
}

static void tell(json_t *list, const row *r, const cell *c)
{
    if (c->done + c->failed == 0)
        return;
    (void)json_array_append_new(
        list, json_pack("{s:o, s:I, s:I, s:I}", "worker", hf_out_text(r->worker), "t_ms",
                        (json_int_t)c->begin_ms, "ok", (json_int_t)c->done, "failed",
                        (json_int_t)c->failed));
}

/* The cells of one scale that begin in [from, until). */
static int64_t tell_scale(json_t *list, const row *r, size_t scale, int64_t from_ms,
                          int64_t until_ms)
{
    int64_t cut = 0;
    for (size_t i = 0; i < CELLS; i++) {
        const cell *c = &r->cells[scale][i];
        if (c->begin_ms == 0 || c->begin_ms < from_ms || c->begin_ms >= until_ms)
            continue;
        tell(list, r, c);
        cut += c->cut;
    }
    return cut;
}

json_t *hf_short_runs_since(const hf_short_runs *s, int64_t from_ms, int64_t now_ms,
                            int64_t *cut)
{
    json_t *list = json_array();
    const int64_t back_ms = now_ms - from_ms;
    const size_t scale = back_ms <= (int64_t)CELLS * SECOND_MS ? 0
                         : back_ms <= MIDDLE_MS                ? 1
                                                               : 2;
    const int64_t coarse = steps[HF_COUNT(steps) - 1];
    /* Scales meet where cells of both begin, so nothing counts twice. */
    int64_t fine_ms = now_ms - FINE_MS;
    fine_ms = scale == 0 ? from_ms - from_ms % SECOND_MS : fine_ms - fine_ms % coarse;
    *cut = 0;
    for (size_t i = 0; i < s->n && list != NULL; i++) {
        if (scale > 0)
            *cut += tell_scale(list, s->rows[i], scale, from_ms - from_ms % steps[scale],
                               fine_ms);
        *cut += tell_scale(list, s->rows[i], 0, fine_ms, INT64_MAX);
    }
    return list;
}

json_t *hf_short_runs_news(const hf_short_runs *s, uint64_t from_look, uint64_t look,
                           int64_t *cut)
{
    json_t *list = json_array();
    *cut = s->look == look ? s->cut : 0;
    for (size_t i = 0; i < s->n && list != NULL; i++)
        for (size_t k = 0; k < CELLS; k++)
            if (s->rows[i]->cells[0][k].look >= from_look)
                tell(list, s->rows[i], &s->rows[i]->cells[0][k]);
    return list;
}
