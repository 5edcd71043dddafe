/* pages_workers.c - the pages Workers and Locks. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "seen/holder.h"
#include "seen/offer.h"
#include "top/format.h"
#include "top/pages.h"

/* ---- workers ---- */

static const hf_top_worker *worker_at(const hf_model *model, size_t row)
{
    return &model->workers[row];
}

static const char *host_of(const hf_model *model, size_t row)
{
    return worker_at(model, row)->host;
}

static const char *state_of(const hf_model *model, size_t row)
{
    const hf_top_worker *w = worker_at(model, row);
    return w->silent ? "silent" : w->pools_down > 0 ? "pool down" : w->state;
}

static const char *version_of(const hf_model *model, size_t row)
{
    return worker_at(model, row)->version;
}

static void show_host(const hf_model *model, size_t row, hf_shown *out)
{
    hf_show_text(out, HF_STYLE_PLAIN, worker_at(model, row)->host);
}

static double number_pid(const hf_model *model, size_t row)
{
    return (double)worker_at(model, row)->pid;
}

static void show_pid(const hf_model *model, size_t row, hf_shown *out)
{
    (void)snprintf(out->text, sizeof out->text, "%" PRId64, worker_at(model, row)->pid);
    out->style = HF_STYLE_PLAIN;
}

static void show_state(const hf_model *model, size_t row, hf_shown *out)
{
    const hf_top_worker *w = worker_at(model, row);
    hf_show_text(out,
                 w->silent || w->pools_down > 0     ? HF_STYLE_BAD
                 : strcmp(w->state, "serving") == 0 ? HF_STYLE_GOOD
                                                    : HF_STYLE_WARN,
                 state_of(model, row));
}

static double number_busy(const hf_model *model, size_t row)
{
    return (double)worker_at(model, row)->running;
}

static void show_busy(const hf_model *model, size_t row, hf_shown *out)
{
    const hf_top_worker *w = worker_at(model, row);
    char text[HF_SHOWN_SIZE] = "-";
    if (!w->silent)
        (void)snprintf(text, sizeof text, "%" PRId64 "/%" PRId64, w->running, w->slots);
    hf_show_text(out, w->running == 0 ? HF_STYLE_DIM : HF_STYLE_PLAIN, text);
}

static double number_up(const hf_model *model, size_t row)
{
    const int64_t since = worker_at(model, row)->started_ms;
    return since == 0 ? -1 : (double)(model->now_ms - since);
}

static void show_up(const hf_model *model, size_t row, hf_shown *out)
{
    hf_show_span(out, (int64_t)number_up(model, row));
}

static double number_heard(const hf_model *model, size_t row)
{
    const int64_t ago = model->now_ms - worker_at(model, row)->heard_ms;
    return ago < 0 ? 0 : (double)ago;
}

static void show_heard(const hf_model *model, size_t row, hf_shown *out)
{
    hf_show_span(out, (int64_t)number_heard(model, row));
    if (worker_at(model, row)->silent)
        out->style = HF_STYLE_BAD;
}

static void show_version(const hf_model *model, size_t row, hf_shown *out)
{
    hf_show_text(out, HF_STYLE_PLAIN, worker_at(model, row)->version);
}

static void show_queues(const hf_model *model, size_t row, hf_shown *out)
{
    hf_show_text(out, HF_STYLE_PLAIN, worker_at(model, row)->queues);
}

static void show_types(const hf_model *model, size_t row, hf_shown *out)
{
    hf_show_text(out, HF_STYLE_DIM, worker_at(model, row)->types);
}

static size_t count_workers(const hf_model *model)
{
    return model->n_workers;
}

/* The silent first, then what is not as it should be, then the busiest. */
static hf_rank rank_worker(const hf_model *model, size_t row)
{
    const hf_top_worker *w = worker_at(model, row);
    const bool well = strcmp(w->state, "serving") == 0 && w->pools_down == 0;
    return (hf_rank){.a = w->silent ? 0
                          : well    ? 2
                                    : 1,
                     .b = w->silent ? (double)-w->heard_ms : (double)-w->running,
                     .name = w->id};
}

static void key_of_worker(const hf_model *model, size_t row, char out[HF_ROW_KEY])
{
    (void)snprintf(out, HF_ROW_KEY, "%s", worker_at(model, row)->id);
}

static void words_of_worker(const hf_model *model, size_t row, char out[HF_SHOWN_SIZE])
{
    const hf_top_worker *w = worker_at(model, row);
    (void)snprintf(out, HF_SHOWN_SIZE, "%s %s %.160s", w->id, state_of(model, row),
                   w->queues);
}

static void command_of_worker(const hf_model *model, size_t row, char out[HF_ROW_COMMAND])
{
    (void)model;
    (void)row;
    (void)snprintf(out, HF_ROW_COMMAND, "holdfast worker list --all");
}

static const hf_top_column worker_columns[] = {
    {"WORKER", 12, 0, false, true, show_host, NULL, host_of},
    {"PID", 8, 0, true, false, show_pid, number_pid, NULL},
    {"STATE", 9, 0, false, false, show_state, NULL, state_of},
    {"RUNNING", 9, 0, true, false, show_busy, number_busy, NULL},
    {"UP", 7, 0, true, false, show_up, number_up, NULL},
    {"HEARD", 7, 0, true, false, show_heard, number_heard, NULL},
    {"VERSION", 8, 100, false, false, show_version, NULL, version_of},
    {"QUEUES", 20, 80, false, false, show_queues, NULL, NULL},
    {"TYPES", 40, 140, false, false, show_types, NULL, NULL},
};

const hf_page_table hf_page_workers = {
    .title = "Workers",
    .brief = "Work",
    .empty = "there is no worker: 'holdfast worker run -c worker.yaml' is one",
    .columns = worker_columns,
    .n_columns = HF_COUNT(worker_columns),
    .count = count_workers,
    .rank = rank_worker,
    .key = key_of_worker,
    .words = words_of_worker,
    .command = command_of_worker,
};

/* ---- locks ---- */

static const hf_facts_lock *lock_at(const hf_model *model, size_t row)
{
    return &model->locks[row];
}

static const char *name_of_lock(const hf_model *model, size_t row)
{
    return lock_at(model, row)->name;
}

static const char *holder_of_lock(const hf_model *model, size_t row)
{
    return lock_at(model, row)->holder;
}

static void show_lock(const hf_model *model, size_t row, hf_shown *out)
{
    hf_show_text(out, HF_STYLE_PLAIN, lock_at(model, row)->name);
}

static void show_holder(const hf_model *model, size_t row, hf_shown *out)
{
    const char *holder = lock_at(model, row)->holder;
    char text[HF_HOLDER_TEXT] = "-";
    if (holder[0] != '\0')
        hf_holder_text(holder, text);
    hf_show_text(out, HF_STYLE_PLAIN, text);
}

static double number_left(const hf_model *model, size_t row)
{
    const int64_t ends = lock_at(model, row)->ends_ms;
    return ends == 0 ? 0 : (double)(ends - model->now_ms);
}

static void show_left(const hf_model *model, size_t row, hf_shown *out)
{
    const int64_t left = (int64_t)number_left(model, row);
    if (lock_at(model, row)->ends_ms > 0 && left < 0)
        hf_show_text(out, HF_STYLE_BAD, "over");
    else
        hf_show_span(out, lock_at(model, row)->ends_ms > 0 ? left : -1);
}

static double number_waiting(const hf_model *model, size_t row)
{
    return (double)lock_at(model, row)->waiting;
}

static void show_waiting(const hf_model *model, size_t row, hf_shown *out)
{
    hf_show_count(out, (int64_t)lock_at(model, row)->waiting);
}

static double number_waits(const hf_model *model, size_t row)
{
    const int64_t since = lock_at(model, row)->waits_ms;
    return since == 0 ? -1 : since > model->now_ms ? 0 : (double)(model->now_ms - since);
}

static void show_waits(const hf_model *model, size_t row, hf_shown *out)
{
    hf_show_span(out, (int64_t)number_waits(model, row));
}

static size_t count_locks(const hf_model *model)
{
    return model->n_locks;
}

/* The longest wait first. */
static hf_rank rank_lock(const hf_model *model, size_t row)
{
    return (hf_rank){.a = -number_waits(model, row), .name = lock_at(model, row)->name};
}

static void key_of_lock(const hf_model *model, size_t row, char out[HF_ROW_KEY])
{
    (void)snprintf(out, HF_ROW_KEY, "%s", lock_at(model, row)->name);
}

static void words_of_lock(const hf_model *model, size_t row, char out[HF_SHOWN_SIZE])
{
    (void)snprintf(out, HF_SHOWN_SIZE, "%.200s %.96s", lock_at(model, row)->name,
                   lock_at(model, row)->holder);
}

static void command_of_lock(const hf_model *model, size_t row, char out[HF_ROW_COMMAND])
{
    (void)hf_offer(out, "lock show", lock_at(model, row)->name, NULL, "");
}

static const hf_top_column lock_columns[] = {
    {"LOCK", 16, 0, false, true, show_lock, NULL, name_of_lock},
    {"HOLDER", 20, 0, false, false, show_holder, NULL, holder_of_lock},
    {"LEASE", 6, 0, true, false, show_left, number_left, NULL},
    {"WAITING", 7, 0, true, false, show_waiting, number_waiting, NULL},
    {"FOR", 7, 0, true, false, show_waits, number_waits, NULL},
};

const hf_page_table hf_page_locks = {
    .title = "Locks",
    .brief = "Lock",
    .empty = "no lock is held",
    .columns = lock_columns,
    .n_columns = HF_COUNT(lock_columns),
    .count = count_locks,
    .rank = rank_lock,
    .key = key_of_lock,
    .words = words_of_lock,
    .command = command_of_lock,
};
