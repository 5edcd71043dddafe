/* api_stats.c - how long jobs waited and ran: by type, and by the minute of all types. */
#include <stdlib.h>
#include <string.h>

#include "cli/admin/stats.h"
#include "dashboard/api.h"

enum {
    HOUR_MS = 3600000,
    COLUMNS = 320, /* more than a history has steps */
    BY_MINUTE = 50 /* queues that are read by the minute; more are read by ten minutes */
};

typedef struct column {
    int64_t begin_ms;
    int64_t runs[HF_HISTORY_BUCKETS], waits[HF_HISTORY_BUCKETS];
} column;

typedef struct teller {
    json_t *items;
    const hf_history_of *at; /* the queue that is read */
    hf_err err;
    column *columns; /* owned: those of all queues, in order */
    size_t n;
} teller;

static void on_type(const hf_history_type *type, void *arg)
{
    teller *t = arg;
    (void)json_array_append_new(t->items, hf_stats_json(t->at->queue, type));
}

/* The steps of all queues begin alike; while they are read a new one may begin. NULL:
 * there is no room. */
static column *column_at(teller *t, int64_t begin_ms)
{
    size_t i = t->n;
    while (i > 0 && t->columns[i - 1].begin_ms > begin_ms)
        i--;
    if (i > 0 && t->columns[i - 1].begin_ms == begin_ms)
        return &t->columns[i - 1];
    if (t->n == COLUMNS)
        return NULL;
    memmove(&t->columns[i + 1], &t->columns[i], (t->n - i) * sizeof *t->columns);
    t->columns[i] = (column){.begin_ms = begin_ms};
    t->n++;
    return &t->columns[i];
}

static void on_step(const hf_history_step *step, void *arg)
{
    column *to = column_at(arg, step->begin_ms);
    for (size_t i = 0; to != NULL && i < HF_HISTORY_BUCKETS; i++) {
        to->runs[i] += step->runs[i];
        to->waits[i] += step->waits[i];
    }
}

static json_t *column_objects(const teller *t)
{
    json_t *list = json_array();
    for (size_t i = 0; i < t->n && list != NULL; i++) {
        const column *c = &t->columns[i];
        (void)json_array_append_new(list, json_pack("{s:I, s:o, s:o}", "t_ms",
                                                    (json_int_t)c->begin_ms, "runs",
                                                    hf_stats_buckets(c->runs), "waits",
                                                    hf_stats_buckets(c->waits)));
    }
    return list;
}

static bool on_queue(hf_err err, const hf_history_of *of, void *arg)
{
    teller *t = arg;
    t->err = err;
    t->at = of + 1;
    return err == HF_OK;
}

/* The first one tells the time of Redis. */
static hf_err read_each(teller *t, hf_reader *r, const hf_history_of *each, size_t n,
                        hf_history_opts *opts, hf_history_span *span)
{
    t->at = each;
    hf_err err = hf_admin_history(r->admin, each->queue, opts, span, r->detail);
    if (!on_queue(err, each, t))
        return err;
    opts->now_ms = span->now_ms;
    hf_admin_history_each(r->admin, each + 1, n - 1, on_queue, t, r->detail);
    return t->err;
}

static hf_err read_queues(teller *t, hf_reader *r, const char *only,
                          hf_history_opts *opts, hf_history_span *span)
{
    char **names = NULL;
    size_t n = 0, n_each = 0;
    hf_err err = hf_admin_queues(r->admin, &names, &n, r->detail);
    if (err != HF_OK)
        return err;
    hf_history_of *each = calloc(n + 1, sizeof *each);
    for (size_t i = 0; i < n && each != NULL; i++)
        if (only == NULL || strcmp(only, names[i]) == 0)
            each[n_each++] = (hf_history_of){.queue = names[i], .opts = opts};
    opts->by_ten = n_each > BY_MINUTE;
    if (each == NULL)
        err = HF_NOMEM;
    else if (n_each > 0)
        err = read_each(t, r, each, n_each, opts, span);
    free(each);
    free(names);
    return err;
}

hf_err hf_api_stats(hf_query *ask, hf_reader *r)
{
    bool good;
    int64_t since_ms;
    hf_history_span span = {HF_HISTORY_SPAN_INIT};
    const char *only = hf_ask_name(ask, "queue", &good);
    if (!good)
        return HF_OK;
    if (!hf_target_duration(&ask->target, "since", HOUR_MS, &since_ms))
        return hf_ask_refuse(ask, 400, "invalid", "since: expected a duration as 1h");
    teller t = {.items = json_array(), .columns = calloc(COLUMNS, sizeof *t.columns)};
    hf_history_opts opts = {
        HF_HISTORY_OPTS_INIT, .since_ms = since_ms, .type = hf_ask_param(ask, "type"),
        .on_type = on_type,   .on_step = on_step,   .arg = &t};
    hf_err err = t.columns == NULL ? HF_NOMEM : read_queues(&t, r, only, &opts, &span);
    if (err == HF_OK)
        err = hf_ask_give(ask, r,
                          json_pack("{s:O, s:n, s:I, s:I, s:o}", "items", t.items, "next",
                                    "looked_at", (json_int_t)json_array_size(t.items),
                                    "step_ms", (json_int_t)span.length_ms, "columns",
                                    column_objects(&t)),
                          0);
    free(t.columns);
    json_decref(t.items);
    return err;
}
