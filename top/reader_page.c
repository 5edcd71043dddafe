/* reader_page.c - see reader_page.h, and hf_reader_page() of reader.h. */
#include "top/reader_page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "seen/holder.h"
#include "seen/words.h"
#include "top/format.h"

enum {
    SEC = 1000,
    FEW_QUEUES = 40,    /* the whole reads that many in each interval */
    PAST_MS = 60 * SEC, /* a history is as old as this at most */
    WATCHED = 100,      /* with more queues workers are not asked to report their runs */
    BUSY = 20,          /* queues whose running jobs, or dead ones, are listed */
    RUNNING = 200,      /* of each, */
    JOBS = 1000,        /* and in all */
    DEAD = 2000,        /* of a queue that are grouped; of more the last hour's */
    PAGE = 200,
    DEAD_MS = 10 * SEC,
    TYPES_MS = 10 * SEC,
    TYPED = 50, /* queues whose types are listed */
    TYPES = 2000,
    LANES_MS = 130 * SEC, /* as long as the lanes are, and a little more */
    WORKERS = 1 << 15
};

/* Puts a new list into the model, where the old one is freed. */
#define SWAP(reader, field, count, list, n)                                              \
    do {                                                                                 \
        (void)pthread_mutex_lock(&(reader)->mutex);                                      \
        free((reader)->model.field);                                                     \
        (reader)->model.field = (list);                                                  \
        (reader)->model.count = (n);                                                     \
        (void)pthread_mutex_unlock(&(reader)->mutex);                                    \
    } while (0)

static void set_listed(hf_top_reader *reader, hf_top_page page)
{
    (void)pthread_mutex_lock(&reader->mutex);
    reader->model.listed[page] = true;
    (void)pthread_mutex_unlock(&reader->mutex);
}

static bool is_due(uint64_t at_ns, int64_t ms)
{
    return at_ns == 0 || hf_boot_ns() - at_ns >= (uint64_t)ms * HF_MS_NS;
}

/* A call that is about one queue: a fault of this queue alone is for the whole to tell.
 */
static bool was_heard(hf_top_reader *reader, hf_err err)
{
    if (err == HF_OK || err == HF_GONE || err == HF_REDIS || err == HF_PROTO ||
        err == HF_INVALID || err == HF_UNSERVED)
        return err == HF_OK;
    return hf_reader_heard(reader, err);
}

/* ---- queues that are worth a look ---- */

typedef struct names {
    size_t n;
    char at[TYPED][HF_ID_SIZE];
} names;

/* The first queues, at most this many, of which the figure is above 0, a visible one or
 * not. */
static void find_queues(hf_top_reader *reader, size_t most,
                        bool (*wanted)(const hf_top_queue *q), names *out)
{
    out->n = 0;
    (void)pthread_mutex_lock(&reader->mutex);
    for (size_t i = 0; i < reader->model.n_queues && out->n < most; i++)
        if (wanted(&reader->model.queues[i]))
            memcpy(out->at[out->n++], reader->model.queues[i].stats.queue, HF_ID_SIZE);
    (void)pthread_mutex_unlock(&reader->mutex);
}

/* ---- workers ---- */

typedef struct workers {
    hf_top_worker *at;
    size_t n, cap;
    int64_t now_ms;
} workers;

static void on_worker(const hf_worker_info *info, void *arg)
{
    workers *list = arg;
    list->now_ms = info->now_ms;
    if (list->n == list->cap) {
        const size_t cap = list->cap == 0 ? 64 : 2 * list->cap;
        void *at = cap > WORKERS ? NULL : realloc(list->at, cap * sizeof *list->at);
        if (at == NULL)
            return;
        list->at = at;
        list->cap = cap;
    }
    hf_top_worker *w = &list->at[list->n++];
    *w = (hf_top_worker){.pid = info->pid,
                         .heard_ms = info->heard_ms,
                         .started_ms = info->started_ms,
                         .running = info->running,
                         .slots = info->concurrency,
                         .silent = info->silent};
    memcpy(w->id, info->id, sizeof w->id);
    memcpy(w->host, info->host, sizeof w->host);
    memcpy(w->state, info->state, sizeof w->state);
    memcpy(w->version, info->version, sizeof w->version);
    hf_top_names(info->queues, info->n_queues, w->queues, sizeof w->queues);
    hf_top_names(info->types, info->n_types, w->types, sizeof w->types);
    for (size_t i = 0; i < info->n_pools; i++)
        w->pools_down += strcmp(info->pools[i].state, "down") == 0 ? 1 : 0;
}

static bool read_workers(hf_top_reader *reader)
{
    workers list = {.at = NULL};
    hf_err err = hf_admin_workers(reader->admin, on_worker, &list, reader->detail);
    if (!hf_reader_heard(reader, err)) {
        free(list.at);
        return false;
    }
    SWAP(reader, workers, n_workers, list.at, list.n);
    (void)pthread_mutex_lock(&reader->mutex);
    if (list.now_ms > reader->model.now_ms)
        reader->model.now_ms = list.now_ms;
    (void)pthread_mutex_unlock(&reader->mutex);
    set_listed(reader, HF_PAGE_WORKERS);
    return true;
}

/* ---- figures and history of the visible queues ---- */

static void read_stats(hf_top_reader *reader, const hf_want *want)
{
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    for (size_t i = 0; i < want->n_visible && !reader->stopped; i++) {
        hf_err err =
            hf_admin_stats(reader->admin, want->visible[i], &stats, reader->detail);
        if (was_heard(reader, err)) {
            (void)pthread_mutex_lock(&reader->mutex);
            hf_model_take_stats(&reader->model, &stats);
            (void)pthread_mutex_unlock(&reader->mutex);
        } else if (reader->away_ms != 0) {
            return;
        }
    }
}

typedef struct history {
    hf_top_past *past;
    int64_t now_ms;
    size_t minutes;
} history;

/* The steps come in order, so the oldest one goes as a new one comes. */
static void on_step(const hf_history_step *step, void *arg)
{
    enum { OLD_MS = 60 * SEC };
    history *h = arg;
    memmove(h->past->ready, h->past->ready + 1,
            sizeof h->past->ready - sizeof h->past->ready[0]);
    h->past->ready[HF_TOP_SPARK - 1] = step->seen ? step->ready : -1;
    if (step->seen && hf_wall_ms() - step->seen_ms >= OLD_MS)
        h->past->counts = (hf_top_counts){step->seen_ms, step->ever_enqueued,
                                          step->ever_done, step->ever_failed};
}

static void on_type_name(const hf_history_type *type, void *arg)
{
    history *h = arg;
    const size_t len = strlen(h->past->types);
    if (strcmp(type->type, "*") != 0)
        (void)snprintf(h->past->types + len, sizeof h->past->types - len, "%s%s",
                       len > 0 ? "," : "", type->type);
}

static void read_past(hf_top_reader *reader, const char *queue)
{
    history h = {.past = calloc(1, sizeof *h.past)};
    const hf_history_opts opts = {HF_HISTORY_OPTS_INIT, .on_type = on_type_name,
                                  .on_step = on_step, .arg = &h};
    if (h.past == NULL) {
        reader->out_of_memory = true;
        return;
    }
    for (size_t i = 0; i < HF_TOP_SPARK; i++)
        h.past->ready[i] = -1;
    hf_err err = hf_admin_history(reader->admin, queue, &opts, NULL, reader->detail);
    if (!was_heard(reader, err)) {
        free(h.past);
        return;
    }
    h.past->read_ms = (int64_t)(hf_boot_ns() / HF_MS_NS);
    (void)pthread_mutex_lock(&reader->mutex);
    hf_model_take_past(&reader->model, queue, h.past);
    (void)pthread_mutex_unlock(&reader->mutex);
}

static bool past_is_old(hf_top_reader *reader, const char *queue)
{
    (void)pthread_mutex_lock(&reader->mutex);
    const hf_top_queue *q = hf_model_queue(&reader->model, queue);
    const bool old =
        q != NULL && (q->past == NULL ||
                      (int64_t)(hf_boot_ns() / HF_MS_NS) - q->past->read_ms >= PAST_MS);
    (void)pthread_mutex_unlock(&reader->mutex);
    return old;
}

static void read_pasts(hf_top_reader *reader, const hf_want *want)
{
    size_t n = 0;
    for (size_t i = 0; i < want->n_visible && n < HF_READER_PASTS && reader->away_ms == 0;
         i++)
        if (past_is_old(reader, want->visible[i])) {
            read_past(reader, want->visible[i]);
            n++;
        }
}

/* ---- what runs ---- */

typedef struct jobs {
    hf_top_job *at;
    size_t n;
    bool cut;
} jobs;

static void on_job(const hf_job_info *info, void *arg)
{
    enum { US_OF_MS = 1000 };
    jobs *list = arg;
    if (list->n == JOBS) {
        list->cut = true;
        return;
    }
    hf_top_job *job = &list->at[list->n++];
    *job = (hf_top_job){.start_ms = (int64_t)(info->fence / US_OF_MS),
                        .lease_ms = info->lease_remaining_ms,
                        .fence = info->fence,
                        .run = info->attempts + info->crashes + 1,
                        .attempt = info->attempts + 1,
                        .max_attempts = info->max_attempts,
                        .progress = info->progress,
                        .has_progress = info->has_progress};
    memcpy(job->id, info->id, sizeof job->id);
    memcpy(job->queue, info->queue, sizeof job->queue);
    memcpy(job->type, info->type, sizeof job->type);
    memcpy(job->worker, info->holder, sizeof job->worker);
    memcpy(job->note, info->note, sizeof job->note);
}

static void tell_listed(hf_top_reader *reader, const jobs *list, bool whole)
{
    hf_top_runs *runs = &reader->model.runs;
    const int64_t now = reader->model.now_ms;
    for (size_t i = 0; i < list->n; i++) {
        hf_top_run run = {.fence = list->at[i].fence,
                          .run = list->at[i].run,
                          .start_ms = list->at[i].start_ms,
                          .seen_ms = now};
        memcpy(run.id, list->at[i].id, sizeof run.id);
        memcpy(run.worker, list->at[i].worker, sizeof run.worker);
        if (!hf_top_runs_tell(runs, &run))
            reader->out_of_memory = true;
    }
    hf_top_runs_listed(runs, now, whole, now - LANES_MS);
}

static bool went_well(hf_run_end end)
{
    return end == HF_RUN_DONE || end == HF_RUN_CANCELLED || end == HF_RUN_RELEASED;
}

/* How runs ended, as their workers tell, also between two lists. */
static void tell_ended(hf_top_reader *reader)
{
    const hf_running *told = reader->running;
    for (size_t i = 0; told != NULL && i < hf_running_count(told); i++) {
        const hf_seen_run *from = hf_running_at(told, i);
        hf_top_run run = {.run = from->run,
                          .start_ms = from->start_ms,
                          .end_ms = from->end_ms,
                          .end = went_well(from->end) ? HF_TOP_RUN_ENDED
                                                      : HF_TOP_RUN_FAILED};
        if (!from->told || from->end_ms == 0 ||
            from->end_ms < hf_running_now_ms(told) - LANES_MS)
            continue;
        memcpy(run.id, from->id, sizeof run.id);
        memcpy(run.worker, from->worker, sizeof run.worker);
        if (!hf_top_runs_tell(&reader->model.runs, &run))
            reader->out_of_memory = true;
    }
}

/* Says that a viewer watches, too. With many queues it takes too long: then only what
 * runs is known. */
static void look_at_told(hf_top_reader *reader)
{
    static const hf_running_calls none;
    if (reader->model.n_queues > WATCHED)
        return;
    if (reader->running == NULL)
        reader->running = hf_running_new(NULL);
    hf_err err = reader->running == NULL ? HF_NOMEM
                                         : hf_running_look(reader->running, reader->admin,
                                                           &none, reader->detail);
    if (err != HF_AUTH) /* this user may not read what is told */
        (void)was_heard(reader, err);
}

static bool runs_any(const hf_top_queue *q)
{
    return q->stats.running > 0;
}

static void read_running(hf_top_reader *reader)
{
    names queues;
    jobs list = {.at = calloc(JOBS, sizeof *list.at)};
    if (list.at == NULL) {
        reader->out_of_memory = true;
        return;
    }
    find_queues(reader, BUSY, runs_any, &queues);
    list.cut = queues.n == BUSY;
    for (size_t i = 0; i < queues.n; i++) {
        char next[HF_CURSOR_SIZE] = "";
        hf_err err = hf_admin_list(reader->admin, queues.at[i], HF_STATE_RUNNING, NULL,
                                   RUNNING, on_job, &list, next, reader->detail);
        list.cut = list.cut || next[0] != '\0' || err != HF_OK;
        if (!was_heard(reader, err) && reader->away_ms != 0) {
            free(list.at);
            return;
        }
    }
    look_at_told(reader);
    (void)pthread_mutex_lock(&reader->mutex);
    tell_listed(reader, &list, !list.cut);
    tell_ended(reader);
    reader->model.jobs_cut = list.cut;
    (void)pthread_mutex_unlock(&reader->mutex);
    SWAP(reader, jobs, n_jobs, list.at, list.n);
    set_listed(reader, HF_PAGE_RUNNING);
}

/* ---- what is dead ---- */

typedef struct deaths {
    hf_top_groups groups;
    bool no_memory;
} deaths;

static void on_dead(const hf_job_info *info, void *arg)
{
    deaths *d = arg;
    d->no_memory = !hf_top_groups_add(&d->groups, info) || d->no_memory;
}

static bool has_dead(const hf_top_queue *q)
{
    return q->stats.dead > 0;
}

static int64_t dead_of(hf_top_reader *reader, const char *queue, int64_t *hour_ago)
{
    (void)pthread_mutex_lock(&reader->mutex);
    const hf_top_queue *q = hf_model_queue(&reader->model, queue);
    const int64_t n = q != NULL ? q->stats.dead : 0;
    *hour_ago = reader->model.now_ms - 3600 * SEC;
    (void)pthread_mutex_unlock(&reader->mutex);
    return n;
}

/* All of them, or if there are many those of the last hour. */
static hf_err read_deaths(hf_top_reader *reader, const char *queue, deaths *d)
{
    enum { AT_ONCE = 1000 };
    char next[HF_CURSOR_SIZE] = "";
    int64_t hour_ago;
    hf_err err = HF_OK;
    if (dead_of(reader, queue, &hour_ago) > DEAD)
        return hf_admin_deaths(reader->admin, queue, hour_ago, AT_ONCE, on_dead, d,
                               reader->detail);
    for (size_t n = 0; n < DEAD && err == HF_OK; n += PAGE) {
        err = hf_admin_list(reader->admin, queue, HF_STATE_DEAD, n == 0 ? NULL : next,
                            PAGE, on_dead, d, next, reader->detail);
        if (next[0] == '\0')
            break;
    }
    return err;
}

static int64_t sum_of_dead(hf_top_reader *reader)
{
    int64_t sum = 0;
    (void)pthread_mutex_lock(&reader->mutex);
    for (size_t i = 0; i < reader->model.n_queues; i++)
        sum += reader->model.queues[i].stats.dead;
    (void)pthread_mutex_unlock(&reader->mutex);
    return sum;
}

static void read_dead(hf_top_reader *reader)
{
    names queues;
    deaths d = {.no_memory = false};
    const int64_t sum = sum_of_dead(reader);
    if (!is_due(reader->at.dead_ns, sum != reader->dead_sum ? DEAD_MS / 5 : DEAD_MS))
        return;
    find_queues(reader, BUSY, has_dead, &queues);
    for (size_t i = 0; i < queues.n; i++)
        if (!was_heard(reader, read_deaths(reader, queues.at[i], &d)) &&
            reader->away_ms != 0) {
            hf_top_groups_done(&d.groups);
            return;
        }
    reader->at.dead_ns = hf_boot_ns();
    reader->dead_sum = d.groups.dead = sum;
    reader->out_of_memory = d.no_memory || reader->out_of_memory;
    (void)pthread_mutex_lock(&reader->mutex);
    hf_top_groups_done(&reader->model.dead);
    reader->model.dead = d.groups;
    (void)pthread_mutex_unlock(&reader->mutex);
    set_listed(reader, HF_PAGE_DEAD);
}

/* ---- types ---- */

typedef struct types {
    hf_top_type *at;
    size_t n;
    const char *queue;
} types;

static void on_type(const hf_history_type *info, void *arg)
{
    static const double half = 0.5, most = 0.99;
    types *list = arg;
    if (list->n == TYPES)
        return;
    hf_top_type *t = &list->at[list->n++];
    *t = (hf_top_type){.done = info->done,
                       .failed = info->failed,
                       .dead = info->dead,
                       .run_p50 = hf_history_percentile(info->runs, half),
                       .run_p99 = hf_history_percentile(info->runs, most),
                       .wait_p50 = hf_history_percentile(info->waits, half),
                       .wait_p99 = hf_history_percentile(info->waits, most)};
    (void)snprintf(t->queue, sizeof t->queue, "%s", list->queue);
    (void)snprintf(t->type, sizeof t->type, "%s", info->type);
}

static bool has_ended_any(const hf_top_queue *q)
{
    return q->stats.done + q->stats.failed > 0;
}

static void read_types(hf_top_reader *reader)
{
    names queues;
    types list = {.n = 0};
    const hf_history_opts opts = {HF_HISTORY_OPTS_INIT, .on_type = on_type, .arg = &list};
    if (!is_due(reader->at.types_ns, TYPES_MS))
        return;
    list.at = calloc(TYPES, sizeof *list.at);
    reader->out_of_memory = list.at == NULL || reader->out_of_memory;
    if (list.at == NULL)
        return;
    find_queues(reader, TYPED, has_ended_any, &queues);
    for (size_t i = 0; i < queues.n; i++) {
        list.queue = queues.at[i];
        hf_err err =
            hf_admin_history(reader->admin, queues.at[i], &opts, NULL, reader->detail);
        if (!was_heard(reader, err) && reader->away_ms != 0) {
            free(list.at);
            return;
        }
    }
    reader->at.types_ns = hf_boot_ns();
    SWAP(reader, types, n_types, list.at, list.n);
    set_listed(reader, HF_PAGE_TYPES);
}

/* ---- the page ---- */

static size_t count_queues(hf_top_reader *reader)
{
    (void)pthread_mutex_lock(&reader->mutex);
    const size_t n = reader->model.n_queues;
    (void)pthread_mutex_unlock(&reader->mutex);
    return n;
}

void hf_reader_page(hf_top_reader *reader, const hf_want *want)
{
    if (!hf_reader_connect(reader) || !read_workers(reader))
        return;
    if (want->page == HF_PAGE_OVERVIEW) {
        if (count_queues(reader) > FEW_QUEUES)
            read_stats(reader, want);
        read_pasts(reader, want);
    } else if (want->page == HF_PAGE_RUNNING) {
        read_running(reader);
    } else if (want->page == HF_PAGE_DEAD) {
        read_dead(reader);
    } else if (want->page == HF_PAGE_TYPES) {
        read_types(reader);
    }
    if (want->subject.over != HF_OVER_NONE && reader->away_ms == 0)
        hf_reader_subject(reader, &want->subject);
}
