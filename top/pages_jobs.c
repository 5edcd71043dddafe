/* pages_jobs.c - the pages Running and Dead. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "seen/holder.h"
#include "seen/offer.h"
#include "top/format.h"
#include "top/pages.h"

/* ---- what runs ---- */

static const hf_top_job *job_at(const hf_model *model, size_t row)
{
    return &model->jobs[row];
}

static const char *id_of_job(const hf_model *model, size_t row)
{
    return job_at(model, row)->id;
}

static const char *queue_of_job(const hf_model *model, size_t row)
{
    return job_at(model, row)->queue;
}

static const char *type_of_job(const hf_model *model, size_t row)
{
    return job_at(model, row)->type;
}

static const char *worker_of_job(const hf_model *model, size_t row)
{
    return job_at(model, row)->worker;
}

static void show_id(const hf_model *model, size_t row, hf_shown *out)
{
    hf_show_text(out, HF_STYLE_PLAIN, job_at(model, row)->id);
}

static void show_job_queue(const hf_model *model, size_t row, hf_shown *out)
{
    hf_show_text(out, HF_STYLE_PLAIN, job_at(model, row)->queue);
}

static void show_job_type(const hf_model *model, size_t row, hf_shown *out)
{
    hf_show_text(out, HF_STYLE_PLAIN, job_at(model, row)->type);
}

static double number_for(const hf_model *model, size_t row)
{
    const int64_t start = job_at(model, row)->start_ms;
    return start == 0 || start > model->now_ms ? 0 : (double)(model->now_ms - start);
}

static void show_for(const hf_model *model, size_t row, hf_shown *out)
{
    hf_show_span(
        out, job_at(model, row)->start_ms == 0 ? -1 : (int64_t)number_for(model, row));
}

static double number_lease(const hf_model *model, size_t row)
{
    return (double)job_at(model, row)->lease_ms;
}

static void show_lease(const hf_model *model, size_t row, hf_shown *out)
{
    const int64_t ms = job_at(model, row)->lease_ms;
    if (ms <= 0)
        hf_show_text(out, HF_STYLE_BAD, "over");
    else
        hf_show_span(out, ms);
}

static double number_try(const hf_model *model, size_t row)
{
    return (double)job_at(model, row)->attempt;
}

static void show_try(const hf_model *model, size_t row, hf_shown *out)
{
    const hf_top_job *job = job_at(model, row);
    char text[HF_SHOWN_SIZE];
    (void)snprintf(text, sizeof text,
                   job->max_attempts > 0 ? "%" PRIu32 "/%" PRIu32 : "%" PRIu32,
                   job->attempt, job->max_attempts);
    hf_show_text(out, job->attempt > 1 ? HF_STYLE_PLAIN : HF_STYLE_DIM, text);
}

static double number_progress(const hf_model *model, size_t row)
{
    const hf_top_job *job = job_at(model, row);
    return job->has_progress ? (double)job->progress : -1;
}

static void show_progress(const hf_model *model, size_t row, hf_shown *out)
{
    const hf_top_job *job = job_at(model, row);
    char text[HF_SHOWN_SIZE] = "-";
    if (job->has_progress)
        (void)snprintf(text, sizeof text, "%" PRIu32 "%%", job->progress);
    hf_show_text(out, job->has_progress ? HF_STYLE_PLAIN : HF_STYLE_DIM, text);
}

static void show_worker(const hf_model *model, size_t row, hf_shown *out)
{
    hf_holder holder;
    char text[HF_SHOWN_SIZE];
    hf_holder_read(job_at(model, row)->worker, &holder);
    (void)snprintf(text, sizeof text, "%s %" PRId64, holder.host, holder.pid);
    hf_show_text(out, HF_STYLE_PLAIN, text);
}

static void show_note(const hf_model *model, size_t row, hf_shown *out)
{
    hf_show_text(out, HF_STYLE_DIM, job_at(model, row)->note);
}

static size_t count_jobs(const hf_model *model)
{
    return model->n_jobs;
}

/* The longest first. */
static hf_rank rank_job(const hf_model *model, size_t row)
{
    return (hf_rank){.a = -number_for(model, row), .name = job_at(model, row)->id};
}

static void key_of_job(const hf_model *model, size_t row, char out[HF_ROW_KEY])
{
    const hf_top_job *job = job_at(model, row);
    (void)snprintf(out, HF_ROW_KEY, "%s %s", job->queue, job->id);
}

static void words_of_job(const hf_model *model, size_t row, char out[HF_SHOWN_SIZE])
{
    const hf_top_job *job = job_at(model, row);
    (void)snprintf(out, HF_SHOWN_SIZE, "%.80s %.80s %.80s %.70s", job->id, job->queue,
                   job->type, job->worker);
}

static void command_of_job(const hf_model *model, size_t row, char out[HF_ROW_COMMAND])
{
    const hf_top_job *job = job_at(model, row);
    (void)hf_offer(out, "job show", job->id, job->queue, "");
}

static const hf_top_column job_columns[] = {
    {"JOB", 14, 0, false, true, show_id, NULL, id_of_job},
    {"TYPE", 14, 0, false, false, show_job_type, NULL, type_of_job},
    {"QUEUE", 12, 80, false, false, show_job_queue, NULL, queue_of_job},
    {"FOR", 7, 0, true, false, show_for, number_for, NULL},
    {"LEASE", 6, 0, true, false, show_lease, number_lease, NULL},
    {"TRY", 5, 0, true, false, show_try, number_try, NULL},
    {"DONE", 5, 0, true, false, show_progress, number_progress, NULL},
    {"WORKER", 18, 100, false, false, show_worker, NULL, worker_of_job},
    {"NOTE", 40, 140, false, false, show_note, NULL, NULL},
};

const hf_page_table hf_page_running = {
    .title = "Running",
    .brief = "Run",
    .empty = "no job runs",
    .columns = job_columns,
    .n_columns = HF_COUNT(job_columns),
    .count = count_jobs,
    .rank = rank_job,
    .key = key_of_job,
    .words = words_of_job,
    .command = command_of_job,
};

/* ---- what is dead ---- */

static const hf_top_group *group_at(const hf_model *model, size_t row)
{
    return &model->dead.at[row];
}

static const char *queue_of_group(const hf_model *model, size_t row)
{
    return group_at(model, row)->queue;
}

static const char *type_of_group(const hf_model *model, size_t row)
{
    return group_at(model, row)->type;
}

static const char *error_of_group(const hf_model *model, size_t row)
{
    return group_at(model, row)->error;
}

static void show_group_queue(const hf_model *model, size_t row, hf_shown *out)
{
    hf_show_text(out, HF_STYLE_PLAIN, group_at(model, row)->queue);
}

static void show_group_type(const hf_model *model, size_t row, hf_shown *out)
{
    hf_show_text(out, HF_STYLE_PLAIN, group_at(model, row)->type);
}

static void show_error(const hf_model *model, size_t row, hf_shown *out)
{
    const char *error = group_at(model, row)->error;
    hf_show_text(out, HF_STYLE_PLAIN, error[0] != '\0' ? error : "-");
}

static void show_reason(const hf_model *model, size_t row, hf_shown *out)
{
    hf_show_text(out, HF_STYLE_PLAIN, group_at(model, row)->reason);
}

static double number_jobs(const hf_model *model, size_t row)
{
    return (double)group_at(model, row)->jobs;
}

static void show_jobs(const hf_model *model, size_t row, hf_shown *out)
{
    hf_show_count(out, group_at(model, row)->jobs);
}

static double number_first(const hf_model *model, size_t row)
{
    return (double)(model->now_ms - group_at(model, row)->first_ms);
}

static void show_first(const hf_model *model, size_t row, hf_shown *out)
{
    hf_show_span(out, (int64_t)number_first(model, row));
}

static double number_last(const hf_model *model, size_t row)
{
    const int64_t ago = model->now_ms - group_at(model, row)->last_ms;
    return ago < 0 ? 0 : (double)ago;
}

static void show_last(const hf_model *model, size_t row, hf_shown *out)
{
    hf_show_span(out, (int64_t)number_last(model, row));
}

static size_t count_groups(const hf_model *model)
{
    return model->dead.n;
}

static hf_rank rank_group(const hf_model *model, size_t row)
{
    const hf_top_group *g = group_at(model, row);
    return (hf_rank){.a = -(double)g->jobs, .b = -(double)g->last_ms, .name = g->queue};
}

static void key_of_group(const hf_model *model, size_t row, char out[HF_ROW_KEY])
{
    const hf_top_group *g = group_at(model, row);
    (void)snprintf(out, HF_ROW_KEY, "%s %s %016" PRIx64, g->queue, g->type, g->hash);
}

static void words_of_group(const hf_model *model, size_t row, char out[HF_SHOWN_SIZE])
{
    const hf_top_group *g = group_at(model, row);
    (void)snprintf(out, HF_SHOWN_SIZE, "%.80s %.80s %s %.130s", g->queue, g->type,
                   g->reason, g->error);
}

static void command_of_group(const hf_model *model, size_t row, char out[HF_ROW_COMMAND])
{
    const hf_top_group *g = group_at(model, row);
    const bool one = g->queue[0] != '\0';
    char of_type[HF_ID_SIZE + 16] = "";
    if (one && g->type[0] != '\0')
        (void)snprintf(of_type, sizeof of_type, " --type %s", g->type);
    (void)hf_offer(out, "dead list", "", one ? g->queue : NULL, of_type);
}

static const hf_top_column group_columns[] = {
    {"QUEUE", 12, 70, false, false, show_group_queue, NULL, queue_of_group},
    {"TYPE", 14, 0, false, false, show_group_type, NULL, type_of_group},
    {"JOBS", 7, 0, true, false, show_jobs, number_jobs, NULL},
    {"FIRST", 7, 100, true, false, show_first, number_first, NULL},
    {"LAST", 7, 0, true, false, show_last, number_last, NULL},
    {"REASON", 9, 100, false, false, show_reason, NULL, NULL},
    {"ERROR", 20, 0, false, true, show_error, NULL, error_of_group},
};

const hf_page_table hf_page_dead = {
    .title = "Dead",
    .brief = "Dead",
    .empty = "no job is dead",
    .columns = group_columns,
    .n_columns = HF_COUNT(group_columns),
    .count = count_groups,
    .rank = rank_group,
    .key = key_of_group,
    .words = words_of_group,
    .command = command_of_group,
};
