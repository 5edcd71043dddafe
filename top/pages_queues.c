/* pages_queues.c - the pages Overview and Types. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "seen/offer.h"
#include "top/format.h"
#include "top/pages.h"

static const hf_top_queue *queue_at(const hf_model *model, size_t row)
{
    return &model->queues[row];
}

/* ---- queues ---- */

static int64_t oldest_ms(const hf_model *model, const hf_top_queue *q)
{
    const int64_t since = q->stats.oldest_ready_ms;
    return since == 0 ? -1 : model->now_ms > since ? model->now_ms - since : 0;
}

static void show_queue(const hf_model *model, size_t row, hf_shown *out)
{
    static const hf_style styles[] = {HF_STYLE_BAD, HF_STYLE_WARN, HF_STYLE_BOLD,
                                      HF_STYLE_PLAIN};
    const hf_top_queue *q = queue_at(model, row);
    char text[HF_SHOWN_SIZE];
    (void)snprintf(text, sizeof text, "%s%s%s", q->stats.queue,
                   q->stats.paused ? " paused" : "", q->failed ? " away" : "");
    hf_show_text(out, q->failed ? HF_STYLE_DIM : styles[q->level], text);
}

static const char *name_of_queue(const hf_model *model, size_t row)
{
    return queue_at(model, row)->stats.queue;
}

/* A column of one counter of the figures. */
#define FIGURE(name, field)                                                              \
    static double number_##name(const hf_model *model, size_t row)                       \
    {                                                                                    \
        return (double)queue_at(model, row)->field;                                      \
    }                                                                                    \
    static void show_##name(const hf_model *model, size_t row, hf_shown *out)            \
    {                                                                                    \
        hf_show_count(out, queue_at(model, row)->field);                                 \
    }
FIGURE(ready, stats.ready)
FIGURE(delayed, stats.delayed)
FIGURE(parked, stats.parked)
FIGURE(workers, stats.workers)
FIGURE(dead, stats.dead)
#undef FIGURE

#define RATE(name, field)                                                                \
    static double number_##name(const hf_model *model, size_t row)                       \
    {                                                                                    \
        return queue_at(model, row)->field;                                              \
    }                                                                                    \
    static void show_##name(const hf_model *model, size_t row, hf_shown *out)            \
    {                                                                                    \
        hf_show_rate(out, queue_at(model, row)->field);                                  \
    }
RATE(in, in_per_min)
RATE(out, out_per_min)
#undef RATE

static double number_oldest(const hf_model *model, size_t row)
{
    return (double)oldest_ms(model, queue_at(model, row));
}

static void show_oldest(const hf_model *model, size_t row, hf_shown *out)
{
    const int64_t ms = oldest_ms(model, queue_at(model, row));
    hf_show_span(out, ms);
    if (ms >= model->late_ms && model->late_ms > 0 && !queue_at(model, row)->stats.paused)
        out->style = ms >= 10 * model->late_ms ? HF_STYLE_BAD : HF_STYLE_WARN;
}

static double number_running(const hf_model *model, size_t row)
{
    return (double)queue_at(model, row)->stats.running;
}

static void show_running(const hf_model *model, size_t row, hf_shown *out)
{
    const hf_queue_stats *s = &queue_at(model, row)->stats;
    char running[HF_TOP_FORMAT_SIZE], limit[HF_TOP_FORMAT_SIZE];
    hf_show_count(out, s->running);
    if (s->max_running > 0)
        (void)snprintf(out->text, sizeof out->text, "%s/%s",
                       hf_top_count(s->running, running),
                       hf_top_count(s->max_running, limit));
}

static double number_failed(const hf_model *model, size_t row)
{
    return queue_at(model, row)->failed_percent;
}

static void show_failed(const hf_model *model, size_t row, hf_shown *out)
{
    enum { MANY = 20 };
    const double percent = queue_at(model, row)->failed_percent;
    char text[HF_TOP_FORMAT_SIZE];
    hf_show_text(out,
                 percent >= MANY ? HF_STYLE_BAD
                 : percent > 0   ? HF_STYLE_PLAIN
                                 : HF_STYLE_DIM,
                 hf_top_percent(percent, text));
}

static void show_hour(const hf_model *model, size_t row, hf_shown *out)
{
    const hf_top_past *past = queue_at(model, row)->past;
    if (past != NULL)
        hf_show_spark(out, past->ready, HF_TOP_SPARK);
}

static void show_types(const hf_model *model, size_t row, hf_shown *out)
{
    const hf_top_past *past = queue_at(model, row)->past;
    if (past != NULL)
        hf_show_text(out, HF_STYLE_DIM, past->types);
}

static size_t count_queues(const hf_model *model)
{
    return model->n_queues;
}

/* What is wrong first, then the oldest, then the fullest. */
static hf_rank rank_queue(const hf_model *model, size_t row)
{
    const hf_top_queue *q = queue_at(model, row);
    const double age = q->level < 3 ? (double)oldest_ms(model, q) : 0;
    return (hf_rank){.a = (double)q->level,
                     .b = -(age * 1e6 + (double)(q->stats.ready + q->stats.running)),
                     .name = q->stats.queue};
}

static void key_of_queue(const hf_model *model, size_t row, char out[HF_ROW_KEY])
{
    (void)snprintf(out, HF_ROW_KEY, "%s", queue_at(model, row)->stats.queue);
}

static void words_of_queue(const hf_model *model, size_t row, char out[HF_SHOWN_SIZE])
{
    const hf_top_queue *q = queue_at(model, row);
    (void)snprintf(out, HF_SHOWN_SIZE, "%s%s", q->stats.queue,
                   q->stats.paused ? " paused" : "");
}

static void command_of_queue(const hf_model *model, size_t row, char out[HF_ROW_COMMAND])
{
    (void)hf_offer(out, "queue show", queue_at(model, row)->stats.queue, NULL, "");
}

static const hf_top_column queue_columns[] = {
    {"QUEUE", 12, 0, false, true, show_queue, NULL, name_of_queue},
    {"READY", 7, 0, true, false, show_ready, number_ready, NULL},
    {"OLDEST", 7, 0, true, false, show_oldest, number_oldest, NULL},
    {"DELAYED", 8, 100, true, false, show_delayed, number_delayed, NULL},
    {"RUNNING", 8, 0, true, false, show_running, number_running, NULL},
    {"IN/min", 7, 70, true, false, show_in, number_in, NULL},
    {"OUT/min", 7, 0, true, false, show_out, number_out, NULL},
    {"FAIL%", 6, 0, true, false, show_failed, number_failed, NULL},
    {"DEAD", 6, 0, true, false, show_dead, number_dead, NULL},
    {"PARKED", 7, 140, true, false, show_parked, number_parked, NULL},
    {"WORKERS", 8, 140, true, false, show_workers, number_workers, NULL},
    {"LAST HOUR", 20, 100, false, false, show_hour, NULL, NULL},
    {"TYPES", 30, 140, false, false, show_types, NULL, NULL},
};

const hf_page_table hf_page_overview = {
    .title = "Overview",
    .brief = "Over",
    .empty = "there is no queue: 'holdfast enqueue TYPE PAYLOAD' makes one",
    .columns = queue_columns,
    .n_columns = HF_COUNT(queue_columns),
    .count = count_queues,
    .rank = rank_queue,
    .key = key_of_queue,
    .words = words_of_queue,
    .command = command_of_queue,
};

/* ---- types ---- */

static const hf_top_type *type_at(const hf_model *model, size_t row)
{
    return &model->types[row];
}

static const char *name_of_type(const hf_model *model, size_t row)
{
    return type_at(model, row)->type;
}

static const char *queue_of_type(const hf_model *model, size_t row)
{
    return type_at(model, row)->queue;
}

static void show_type(const hf_model *model, size_t row, hf_shown *out)
{
    hf_show_text(out, HF_STYLE_PLAIN, type_at(model, row)->type);
}

static void show_type_queue(const hf_model *model, size_t row, hf_shown *out)
{
    hf_show_text(out, HF_STYLE_PLAIN, type_at(model, row)->queue);
}

#define COUNTED(name)                                                                    \
    static double number_type_##name(const hf_model *model, size_t row)                  \
    {                                                                                    \
        return (double)type_at(model, row)->name;                                        \
    }                                                                                    \
    static void show_type_##name(const hf_model *model, size_t row, hf_shown *out)       \
    {                                                                                    \
        hf_show_count(out, type_at(model, row)->name);                                   \
    }
COUNTED(done)
COUNTED(failed)
COUNTED(dead)
#undef COUNTED

#define TIME(name)                                                                       \
    static double number_type_##name(const hf_model *model, size_t row)                  \
    {                                                                                    \
        return type_at(model, row)->name;                                                \
    }                                                                                    \
    static void show_type_##name(const hf_model *model, size_t row, hf_shown *out)       \
    {                                                                                    \
        char text[HF_TOP_FORMAT_SIZE];                                                   \
        hf_show_text(out, HF_STYLE_PLAIN,                                                \
                     hf_top_short_span(type_at(model, row)->name, text));                \
    }
TIME(run_p50)
TIME(run_p99)
TIME(wait_p50)
TIME(wait_p99)
#undef TIME

static size_t count_types(const hf_model *model)
{
    return model->n_types;
}

static hf_rank rank_type(const hf_model *model, size_t row)
{
    const hf_top_type *t = type_at(model, row);
    return (hf_rank){.a = -(double)(t->done + t->failed), .name = t->type};
}

static void key_of_type(const hf_model *model, size_t row, char out[HF_ROW_KEY])
{
    (void)snprintf(out, HF_ROW_KEY, "%s %s", type_at(model, row)->queue,
                   type_at(model, row)->type);
}

static void words_of_type(const hf_model *model, size_t row, char out[HF_SHOWN_SIZE])
{
    key_of_type(model, row, out);
}

static void command_of_type(const hf_model *model, size_t row, char out[HF_ROW_COMMAND])
{
    const hf_top_type *t = type_at(model, row);
    char of_type[HF_ID_SIZE + 16] = "";
    if (strcmp(t->type, "*") != 0)
        (void)snprintf(of_type, sizeof of_type, " --type %s", t->type);
    (void)hf_offer(out, "stats", "", t->queue, of_type);
}

static const hf_top_column type_columns[] = {
    {"TYPE", 12, 0, false, true, show_type, NULL, name_of_type},
    {"QUEUE", 12, 70, false, false, show_type_queue, NULL, queue_of_type},
    {"DONE", 7, 0, true, false, show_type_done, number_type_done, NULL},
    {"FAILED", 7, 0, true, false, show_type_failed, number_type_failed, NULL},
    {"DEAD", 6, 0, true, false, show_type_dead, number_type_dead, NULL},
    {"RUN50", 6, 70, true, false, show_type_run_p50, number_type_run_p50, NULL},
    {"RUN99", 7, 0, true, false, show_type_run_p99, number_type_run_p99, NULL},
    {"WAIT50", 7, 100, true, false, show_type_wait_p50, number_type_wait_p50, NULL},
    {"WAIT99", 7, 0, true, false, show_type_wait_p99, number_type_wait_p99, NULL},
};

const hf_page_table hf_page_types = {
    .title = "Types",
    .brief = "Type",
    .empty = "nothing has ended in the last hour",
    .columns = type_columns,
    .n_columns = HF_COUNT(type_columns),
    .count = count_types,
    .rank = rank_type,
    .key = key_of_type,
    .words = words_of_type,
    .command = command_of_type,
};
