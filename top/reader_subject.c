/* reader_subject.c - the details and the log of a row (reader_page.h). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/text.h"
#include "seen/figures.h"
#include "seen/holder.h"
#include "seen/reason_read.h"
#include "seen/words.h"
#include "top/format.h"
#include "top/reader_page.h"

enum { LINES_MAX = 1 << 18, LOG_KEPT = 1 << 16, LISTED = 10, LOCK_ENTRIES = 100 };

/* ---- lines ---- */

/* A text of others: each of its lines begins with the mark. */
static void add_text(hf_buf *out, char mark, const char *text)
{
    while (*text != '\0') {
        const size_t len = strcspn(text, "\n");
        hf_buf_printf(out, "%c%.*s\n", mark, (int)len, text);
        text += len + (text[len] == '\n' ? 1 : 0);
    }
}

static void add_time(hf_buf *out, const char *name, int64_t ms, int64_t now_ms)
{
    char when[HF_MOMENT_SIZE];
    if (ms == 0)
        return;
    hf_format_moment(ms, now_ms, when);
    hf_buf_printf(out, " %-13s %s\n", name, when);
}

static void add_count(hf_buf *out, const char *name, int64_t n)
{
    char text[HF_TOP_FORMAT_SIZE];
    if (n != 0)
        hf_buf_printf(out, " %-13s %s\n", name, hf_top_count(n, text));
}

static void add_word(hf_buf *out, const char *name, const char *text)
{
    if (text[0] != '\0')
        hf_buf_printf(out, " %-13s %s\n", name, text);
}

static void add_fault(hf_top_reader *reader, hf_buf *out, hf_err err)
{
    if (err == HF_GONE)
        hf_buf_text(out, "~it is not there any more\n");
    else if (err != HF_OK)
        hf_buf_printf(out, "!%s\n",
                      reader->detail[0] != '\0' ? reader->detail : hf_err_text(err));
}

/* ---- a job ---- */

static void add_reasons(hf_top_reader *reader, hf_buf *out, const hf_job_why *why)
{
    char text[HF_REASON_TEXT_SIZE];
    hf_reason reasons[HF_REASONS];
    hf_reason_read read;
    const size_t n = hf_why_reasons(why, reader->poison, reasons);
    hf_reason_read_for(reader->admin, why, reasons, n, &read);
    const hf_reason_facts facts = hf_reason_facts_of(why, &read, why->job->queue);
    hf_buf_printf(out, "#why: job %s\n", why->job->id);
    for (size_t i = 0; i < n; i++) {
        (void)hf_reason_text(&facts, reasons[i], text);
        hf_buf_printf(out, "%c%s: ", i == 0 ? '~' : ' ', hf_reason_word(reasons[i]));
        char *more = strchr(text, '\n');
        if (more != NULL)
            *more++ = '\0';
        hf_buf_printf(out, "%s\n", text);
        if (more != NULL)
            add_text(out, ' ', more);
    }
}

static void add_attempts(hf_buf *out, const hf_job_info *job, int64_t now_ms)
{
    char when[HF_WHEN_SIZE], ran[HF_TOP_FORMAT_SIZE], who[HF_HOLDER_TEXT];
    if (job->n_history > 0)
        hf_buf_text(out, "#failed attempts, the last one first\n");
    for (size_t i = job->n_history; i > 0; i--) {
        const hf_job_attempt *a = &job->history[i - 1];
        hf_format_when(a->ended_ms, now_ms, when);
        hf_holder_text(a->worker, who);
        hf_buf_printf(out, " %s, ran %s on %s: %s\n", when,
                      hf_top_short_span((double)a->ran_ms, ran), who,
                      hf_text_gist(a->error));
    }
}

static void add_job(hf_buf *out, const hf_job_why *why)
{
    const hf_job_info *job = why->job;
    char who[HF_HOLDER_TEXT], text[64];
    hf_buf_text(out, "#facts\n");
    add_word(out, "queue", job->queue);
    add_word(out, "type", job->type);
    if (job->holder[0] != '\0') {
        hf_holder_text(job->holder, who);
        add_word(out, "worker", who);
    }
    add_time(out, "created", job->created_ms, why->now_ms);
    add_time(out, job->state == HF_STATE_DEAD ? "died" : "due", job->due_ms, why->now_ms);
    add_time(out, "held since", hf_why_held_since(why), why->now_ms);
    add_count(out, "attempts", (int64_t)job->attempts);
    add_count(out, "crashes", (int64_t)job->crashes);
    if (job->has_progress) {
        (void)snprintf(text, sizeof text, "%" PRIu32 "%%", job->progress);
        add_word(out, "progress", text);
    }
    add_word(out, "note", job->note);
    add_word(out, "unique key", job->unique);
    add_word(out, "follows", job->follows);
    add_word(out, "headers", job->headers);
    add_count(out, "payload bytes", (int64_t)job->payload_len);
    add_count(out, "logs", (int64_t)job->logs);
}

static hf_err read_job(hf_top_reader *reader, const hf_subject *s, const char *id,
                       hf_buf *out)
{
    hf_job_info *job = malloc(sizeof *job);
    if (job == NULL)
        return HF_NOMEM;
    *job = (hf_job_info){HF_JOB_INFO_INIT};
    hf_job_why why = {HF_JOB_WHY_INIT, .job = job};
    hf_err err = hf_admin_why(reader->admin, s->queue, id, &why, reader->detail);
    if (err == HF_OK) {
        add_reasons(reader, out, &why);
        if (job->error[0] != '\0') {
            hf_buf_text(out, "#error\n");
            add_text(out, ' ', job->error);
        }
        if (s->over != HF_OVER_WHY) {
            add_attempts(out, job, why.now_ms);
            add_job(out, &why);
        }
    }
    free(job);
    return err;
}

/* ---- a queue ---- */

static void add_wrongs(hf_top_reader *reader, hf_buf *out, const char *queue)
{
    static const char marks[] = {'!', '~', ' '};
    char page[HF_WRONG_PAGE];
    (void)snprintf(page, sizeof page, "queue/%s", queue);
    (void)pthread_mutex_lock(&reader->mutex);
    const hf_wrongs *wrongs = &reader->model.wrongs;
    for (size_t i = 0; i < wrongs->n; i++) {
        const hf_wrong *w = &wrongs->at[i];
        if (strcmp(w->page, page) != 0)
            continue;
        hf_buf_printf(out, "%c%s\n", marks[w->level], w->what);
        if (w->why[0] != '\0')
            hf_buf_printf(out, " %s\n", w->why);
        hf_buf_printf(out, "$$ %s\n", w->command);
    }
    (void)pthread_mutex_unlock(&reader->mutex);
}

static void add_figures(hf_buf *out, const hf_queue_stats *s)
{
    char rate[64], per[HF_DURATION_SIZE];
    hf_buf_text(out, "#now\n");
    add_count(out, "ready", s->ready);
    add_count(out, "delayed", s->delayed);
    add_count(out, "running", s->running);
    add_count(out, "parked", s->parked);
    add_count(out, "kept", s->kept);
    add_count(out, "dead", s->dead);
    add_count(out, "died in 1 h", s->died_hour);
    add_count(out, "workers", s->workers);
    add_time(out, "oldest due", s->oldest_ready_ms, s->now_ms);
    add_time(out, "next due", s->next_due_ms, s->now_ms);
    add_time(out, "last claim", s->claimed_ms, s->now_ms);
    hf_buf_text(out, "#limits\n");
    add_time(out, "paused since", s->paused ? s->paused_ms : 0, s->now_ms);
    if (s->paused && s->paused_ms == 0)
        hf_buf_text(out, " paused\n");
    add_count(out, "max running", s->max_running);
    if (s->rate_limit > 0) {
        hf_format_duration(s->rate_per_ms, per);
        (void)snprintf(rate, sizeof rate, "%" PRId64 " in %s", s->rate_limit, per);
        add_word(out, "rate", rate);
    }
    if (!s->paused && s->max_running == 0 && s->rate_limit == 0)
        hf_buf_text(out, "-none\n");
    hf_buf_text(out, "#since it began\n");
    for (const hf_figure *f = hf_figures; f->name != NULL; f++)
        add_count(out, f->name, hf_figures_of(f, s));
}

static void take_id(const hf_job_info *info, void *arg)
{
    memcpy(arg, info->id, sizeof info->id);
}

static hf_err read_queue(hf_top_reader *reader, const hf_subject *s, hf_buf *out)
{
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    char id[HF_ID_SIZE] = "";
    hf_err err = hf_admin_stats(reader->admin, s->queue, &stats, reader->detail);
    if (err != HF_OK)
        return err;
    add_wrongs(reader, out, s->queue);
    if (stats.ready > 0)
        err = hf_admin_list(reader->admin, s->queue, HF_STATE_READY, NULL, 1, take_id, id,
                            NULL, reader->detail);
    if (err == HF_OK && id[0] != '\0') {
        const hf_subject why = {.over = HF_OVER_WHY, .page = s->page};
        hf_subject job = why;
        memcpy(job.queue, s->queue, sizeof job.queue);
        err = read_job(reader, &job, id, out);
        err = err == HF_GONE ? HF_OK : err; /* it has started meanwhile */
    } else if (err == HF_OK) {
        hf_buf_text(out, "-no job of it waits to start\n");
    }
    if (s->over != HF_OVER_WHY)
        add_figures(out, &stats);
    return err;
}

/* ---- a worker ---- */

typedef struct one_worker {
    const char *id;
    hf_buf *out;
    bool found;
} one_worker;

static void on_worker(const hf_worker_info *w, void *arg)
{
    one_worker *one = arg;
    char list[1024], memory[HF_TOP_FORMAT_SIZE];
    if (strcmp(w->id, one->id) != 0)
        return;
    one->found = true;
    hf_buf_printf(one->out, "#worker %s pid %" PRId64 "\n", w->host, w->pid);
    if (w->silent)
        hf_buf_text(one->out, "!it is silent: it sent no heartbeat and no goodbye\n");
    add_word(one->out, "id", w->id);
    add_word(one->out, "state", w->state);
    add_word(one->out, "version", w->version);
    add_time(one->out, "heard", w->heard_ms, w->now_ms);
    add_time(one->out, "started", w->started_ms, w->now_ms);
    if (!w->silent)
        hf_buf_printf(one->out, " %-13s %" PRIu32 " of %" PRIu32 " slots\n", "running",
                      w->running, w->concurrency);
    hf_top_names(w->queues, w->n_queues, list, sizeof list);
    add_word(one->out, "queues", list);
    hf_top_names(w->types, w->n_types, list, sizeof list);
    add_word(one->out, "types", list);
    for (size_t i = 0; i < w->n_pools; i++) {
        const hf_worker_pool_info *p = &w->pools[i];
        hf_buf_printf(one->out,
                      "%cpool %s: %s, %" PRIu32 " processes, %" PRIu32 " of %" PRIu32
                      " slots, %s MiB\n",
                      strcmp(p->state, "down") == 0 ? '!' : ' ', p->name, p->state,
                      p->processes, p->running, p->slots,
                      hf_top_count(p->memory >> 20, memory));
    }
    hf_buf_printf(one->out, "$$ kill -TERM %" PRId64 "   (on %s; it stops cleanly)\n",
                  w->pid, w->host);
}

static hf_err read_worker(hf_top_reader *reader, const hf_subject *s, hf_buf *out)
{
    one_worker one = {.id = s->id, .out = out};
    hf_err err = hf_admin_workers(reader->admin, on_worker, &one, reader->detail);
    return err != HF_OK ? err : one.found ? HF_OK : HF_GONE;
}

/* ---- a lock ---- */

static void add_entry(hf_buf *out, const hf_lock_entry *e, int64_t now_ms)
{
    char who[HF_HOLDER_TEXT], since[HF_WHEN_SIZE], left[HF_TOP_FORMAT_SIZE];
    hf_holder_text(e->client[0] != '\0' ? e->client : e->owner, who);
    hf_format_when(e->since_ms, now_ms, since);
    if (!e->granted)
        hf_buf_printf(out, " waits: %s, since %s\n", who, since);
    else
        hf_buf_printf(out, "%cholds: %s, fence %" PRIu64 ", since %s, lease %s%s\n",
                      e->ends_ms < now_ms ? '!' : ' ', who, e->fence, since,
                      e->ends_ms < now_ms ? "over"
                                          : hf_top_span(e->ends_ms - now_ms, left),
                      e->revoked ? ", asked to release" : "");
}

static hf_err read_lock(hf_top_reader *reader, const hf_subject *s, hf_buf *out)
{
    hf_lock_look look = {HF_LOCK_LOOK_INIT};
    if (reader->locks == NULL)
        return HF_OK; /* none was listed */
    hf_err err =
        hf_lock_look_at(reader->locks, s->id, LOCK_ENTRIES, &look, reader->detail);
    if (err == HF_OK)
        hf_buf_printf(out, "#lock %s\n", s->id);
    if (err == HF_OK && look.all == 0)
        hf_buf_text(out, "-nobody holds it\n");
    for (size_t i = 0; err == HF_OK && i < look.n; i++)
        add_entry(out, hf_lock_look_entry(&look, i), look.now_ms);
    if (err == HF_OK && look.all > look.n)
        hf_buf_printf(out, "-and %zu more\n", look.all - look.n);
    hf_lock_look_done(&look);
    return err;
}

/* ---- a type ---- */

static void on_step(const hf_history_step *step, void *arg)
{
    char when[HF_TIME_SIZE];
    if (step->done + step->failed + step->dead == 0)
        return;
    hf_format_time(step->begin_ms, when);
    when[16] = '\0'; /* to the minute */
    hf_buf_printf(arg, " %s  done %" PRId64 "  failed %" PRId64 "  dead %" PRId64 "\n",
                  when + 11, step->done, step->failed, step->dead);
}

static hf_err read_type(hf_top_reader *reader, const hf_subject *s, hf_buf *out)
{
    const hf_history_opts opts = {HF_HISTORY_OPTS_INIT, .type = s->id, .on_step = on_step,
                                  .arg = out};
    hf_buf_printf(out, "#%s of queue %s, by the minute (UTC)\n", s->id, s->queue);
    return hf_admin_history(reader->admin, s->queue, &opts, NULL, reader->detail);
}

/* ---- a log ---- */

/* A part of a log may begin and end within a line. */
static void add_stream(hf_buf *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        const char *end = memchr(text + i, '\n', len - i);
        const size_t n = end != NULL ? (size_t)(end - text) + 1 - i : len - i;
        if (out->len == 0 || out->data[out->len - 1] == '\n')
            hf_buf_text(out, " ");
        hf_buf_add(out, text + i, n);
        i += n;
    }
}

static void on_part(const hf_log_part *part, void *arg)
{
    hf_top_reader *reader = arg;
    hf_buf *out = &reader->log;
    const bool open = out->len > 0 && out->data[out->len - 1] != '\n';
    if (part->fence != reader->log_fence)
        hf_buf_printf(out, "%s#attempt %" PRIu32 "\n", open ? "\n" : "", part->attempt);
    reader->log_fence = part->fence;
    add_stream(out, part->text, part->len);
    if (out->len > LOG_KEPT) { /* from the beginning of a line on */
        const size_t over = out->len - LOG_KEPT;
        hf_buf_cut(out, over + strcspn(out->data + over, "\n") + 1);
    }
}

static hf_err read_log(hf_top_reader *reader, const hf_subject *s)
{
    hf_err err = hf_admin_logs(reader->admin, s->queue, s->id, &reader->log_place,
                               on_part, reader, reader->detail);
    if (reader->log.len == 0 && (err == HF_OK || err == HF_GONE))
        hf_buf_text(&reader->log, err == HF_OK ? "-it has written no log so far\n"
                                               : "-its log has gone: it has ended\n");
    (void)pthread_mutex_lock(&reader->mutex);
    hf_buf_clear(&reader->model.log.lines);
    hf_buf_text(&reader->model.log.lines,
                reader->log.data != NULL ? reader->log.data : "");
    (void)pthread_mutex_unlock(&reader->mutex);
    return err;
}

/* ---- any of them ---- */

static hf_err read_detail(hf_top_reader *reader, const hf_subject *s, hf_buf *out)
{
    switch (s->page) {
    case HF_PAGE_RUNNING:
    case HF_PAGE_DEAD:
        return s->id[0] == '\0' ? HF_OK : read_job(reader, s, s->id, out);
    case HF_PAGE_WORKERS:
        return read_worker(reader, s, out);
    case HF_PAGE_LOCKS:
        return read_lock(reader, s, out);
    case HF_PAGE_TYPES:
        return read_type(reader, s, out);
    case HF_PAGE_OVERVIEW:
    case HF_PAGES:
    default:
        return read_queue(reader, s, out);
    }
}

/* Another row: nothing of the former one stays. */
static void begin_subject(hf_top_reader *reader, const hf_subject *s)
{
    reader->subject = *s;
    reader->log_place = (hf_log_place){HF_LOG_PLACE_INIT};
    reader->log_fence = 0;
    hf_buf_clear(&reader->log);
    (void)pthread_mutex_lock(&reader->mutex);
    hf_buf_clear(&reader->model.log.lines);
    hf_buf_clear(&reader->model.detail.lines);
    (void)pthread_mutex_unlock(&reader->mutex);
}

void hf_reader_subject(hf_top_reader *reader, const hf_subject *s)
{
    hf_buf out;
    if (!hf_subject_same(&reader->subject, s))
        begin_subject(reader, s);
    if (s->over == HF_OVER_LOG) {
        (void)read_log(reader, s);
        return;
    }
    hf_buf_init(&out, LINES_MAX);
    reader->detail[0] = '\0';
    add_fault(reader, &out, read_detail(reader, s, &out));
    if (out.len == 0)
        hf_buf_text(&out, "-there is nothing to tell\n");
    (void)pthread_mutex_lock(&reader->mutex);
    hf_buf_done(&reader->model.detail.lines);
    reader->model.detail.lines = out;
    (void)pthread_mutex_unlock(&reader->mutex);
}

/* ---- changes ---- */

static hf_err make(hf_top_reader *reader, const hf_change *c, size_t *n)
{
    const hf_dead_filter filter = {HF_DEAD_FILTER_INIT, .type = c->id};
    switch (c->kind) {
    case HF_CHANGE_PAUSE:
    case HF_CHANGE_RESUME:
        return hf_admin_pause(reader->admin, c->queue, c->kind == HF_CHANGE_PAUSE,
                              reader->detail);
    case HF_CHANGE_CANCEL:
        return hf_admin_cancel(reader->admin, c->queue, c->id, NULL, reader->detail);
    case HF_CHANGE_RETRY:
        return hf_admin_retry(reader->admin, c->queue, c->id, reader->detail);
    case HF_CHANGE_RETRY_TYPE:
        return hf_admin_dead_retry(reader->admin, c->queue, &filter, 0, NULL, NULL, n,
                                   reader->detail);
    case HF_CHANGE_NONE:
    default:
        return HF_OK;
    }
}

static void tell_change(const hf_change *c, hf_err err, size_t n, const char *detail,
                        char *out, size_t size)
{
    char count[HF_WORDS_SIZE];
    if (c->kind == HF_CHANGE_CANCEL && err == HF_RUNNING)
        (void)snprintf(out, size, "%s was asked to end", c->id);
    else if (err == HF_RUNNING)
        (void)snprintf(out, size, "%s runs already", c->id);
    else if (err == HF_GONE)
        (void)snprintf(out, size, "%s is not there any more", c->id);
    else if (err != HF_OK)
        (void)snprintf(out, size, "failed: %s",
                       detail[0] != '\0' ? detail : hf_err_text(err));
    else if (c->kind == HF_CHANGE_RETRY_TYPE)
        (void)snprintf(out, size, "%s will run again",
                       hf_words_count((int64_t)n, "job", "jobs", count));
    else
        (void)snprintf(out, size, "%s %s", c->id[0] != '\0' ? c->id : c->queue,
                       c->kind == HF_CHANGE_PAUSE    ? "is paused"
                       : c->kind == HF_CHANGE_RESUME ? "goes on"
                       : c->kind == HF_CHANGE_CANCEL ? "was cancelled"
                                                     : "is due now");
}

/* What was changed is seen at once: the next key is about it. */
static void read_changed(hf_top_reader *reader, const char *queue)
{
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    char detail[HF_DETAIL_SIZE];
    if (hf_admin_stats(reader->admin, queue, &stats, detail) != HF_OK)
        return;
    (void)pthread_mutex_lock(&reader->mutex);
    hf_model_take_stats(&reader->model, &stats);
    (void)pthread_mutex_unlock(&reader->mutex);
}

void hf_reader_change(hf_top_reader *reader, const hf_change *change)
{
    size_t n = 0;
    char notice[sizeof reader->model.notice];
    reader->detail[0] = '\0';
    hf_err err = hf_reader_connect(reader) ? make(reader, change, &n) : HF_CONN;
    tell_change(change, err, n, reader->detail, notice, sizeof notice);
    reader->at.dead_ns = 0;
    if (err == HF_OK)
        read_changed(reader, change->queue);
    (void)pthread_mutex_lock(&reader->mutex);
    memcpy(reader->model.notice, notice, sizeof notice);
    (void)pthread_mutex_unlock(&reader->mutex);
}
