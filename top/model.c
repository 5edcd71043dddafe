/* model.c - see model.h. */
#include "top/model.h"

#include <stdlib.h>
#include <string.h>

enum {
    NO_LEVEL = 3,
    TEXT_MAX = 1 << 18,
    MINUTE_MS = 60000,
    ROTATE_MS = 30000, /* a rate is that of the last 30 to 60 s */
    LEAST_MS = 5000    /* a shorter time tells no rate */
};

/* ---- the whole ---- */

void hf_model_init(hf_model *model)
{
    *model = (hf_model){.now_ms = 0};
    hf_buf_init(&model->detail.lines, TEXT_MAX);
    hf_buf_init(&model->log.lines, TEXT_MAX);
}

static void free_queues(hf_top_queue *queues, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(queues[i].past);
    free(queues);
}

void hf_model_done(hf_model *model)
{
    free_queues(model->queues, model->n_queues);
    free(model->workers);
    free(model->jobs);
    free(model->locks);
    free(model->types);
    hf_top_groups_done(&model->dead);
    hf_top_runs_done(&model->runs);
    hf_buf_done(&model->detail.lines);
    hf_buf_done(&model->log.lines);
    hf_model_init(model);
}

int64_t hf_model_age_ms(const hf_model *model, uint64_t now_ns)
{
    if (model->read_ns == 0)
        return -1;
    return now_ns > model->read_ns ? (int64_t)((now_ns - model->read_ns) / 1000000) : 0;
}

/* ---- queues ---- */

static int by_name(const void *name, const void *queue)
{
    return strcmp(name, ((const hf_top_queue *)queue)->stats.queue);
}

hf_top_queue *hf_model_queue(const hf_model *model, const char *name)
{
    return model->n_queues == 0 ? NULL
                                : bsearch(name, model->queues, model->n_queues,
                                          sizeof *model->queues, by_name);
}

static hf_top_queue new_queue(const char *name)
{
    hf_top_queue queue = {.stats = {HF_QUEUE_STATS_INIT}, .level = NO_LEVEL};
    const size_t len = strnlen(name, sizeof queue.stats.queue - 1);
    memcpy(queue.stats.queue, name, len);
    queue.in_per_min = queue.out_per_min = -1;
    queue.failed_per_min = queue.failed_percent = -1;
    return queue;
}

bool hf_model_set_queues(hf_model *model, char *const *names, size_t n)
{
    hf_top_queue *queues = calloc(n + 1, sizeof *queues);
    if (queues == NULL)
        return false;
    for (size_t i = 0; i < n; i++) {
        hf_top_queue *known = hf_model_queue(model, names[i]);
        queues[i] = known != NULL ? *known : new_queue(names[i]);
        if (known != NULL)
            known->past = NULL; /* it has moved */
    }
    free_queues(model->queues, model->n_queues);
    model->queues = queues;
    model->n_queues = n;
    return true;
}

/* ---- rates ---- */

static hf_top_counts counts_of(const hf_queue_stats *s)
{
    return (hf_top_counts){s->now_ms, s->enqueued, s->done, s->failed};
}

/* The reading that the rates count from: the older one, or that of the history. */
static const hf_top_counts *base_of(const hf_top_queue *q)
{
    const hf_top_counts *past = q->past != NULL ? &q->past->counts : NULL;
    if (q->older.at_ms > 0)
        return &q->older;
    if (past != NULL && past->at_ms > 0 && q->stats.now_ms - past->at_ms < 5 * MINUTE_MS)
        return past;
    return &q->recent;
}

static void find_rates(hf_top_queue *q)
{
    const hf_top_counts *from = base_of(q);
    const int64_t ms = q->stats.now_ms - from->at_ms;
    q->in_per_min = q->out_per_min = q->failed_per_min = q->failed_percent = -1;
    if (from->at_ms == 0 || ms < LEAST_MS || q->stats.done < from->done)
        return; /* or the counters began anew */
    const double minutes = (double)ms / MINUTE_MS;
    const double done = (double)(q->stats.done - from->done);
    const double failed = (double)(q->stats.failed - from->failed);
    q->in_per_min = (double)(q->stats.enqueued - from->enqueued) / minutes;
    q->out_per_min = done / minutes;
    q->failed_per_min = failed / minutes;
    if (done + failed > 0)
        q->failed_percent = 100 * failed / (done + failed);
}

void hf_model_take_stats(hf_model *model, const hf_queue_stats *stats)
{
    hf_top_queue *q = hf_model_queue(model, stats->queue);
    if (q == NULL)
        return;
    q->stats = *stats;
    q->known = true;
    q->failed = false;
    if (stats->now_ms > model->now_ms)
        model->now_ms = stats->now_ms;
    if (q->recent.done > stats->done) /* the queue was removed and came back */
        q->recent = q->older = (hf_top_counts){0};
    if (q->recent.at_ms == 0 || stats->now_ms - q->recent.at_ms >= ROTATE_MS) {
        q->older = q->recent;
        q->recent = counts_of(stats);
    }
    find_rates(q);
}

void hf_model_take_past(hf_model *model, const char *queue, hf_top_past *past)
{
    hf_top_queue *q = hf_model_queue(model, queue);
    if (q == NULL) {
        free(past);
        return;
    }
    free(q->past);
    q->past = past;
    find_rates(q);
}

/* ---- the verdict, and the sums ---- */

void hf_model_take_wrongs(hf_model *model, const hf_wrongs *wrongs)
{
    static const char of_queue[] = "queue/";
    model->wrongs = *wrongs;
    model->judged = true;
    for (size_t i = 0; i < model->n_queues; i++)
        model->queues[i].level = NO_LEVEL;
    for (size_t i = 0; i < wrongs->n; i++) {
        const hf_wrong *w = &wrongs->at[i];
        if (strncmp(w->page, of_queue, sizeof of_queue - 1) != 0)
            continue;
        hf_top_queue *q = hf_model_queue(model, w->page + sizeof of_queue - 1);
        if (q != NULL && w->level < q->level)
            q->level = (uint8_t)w->level;
    }
}

hf_top_totals hf_model_totals(const hf_model *model)
{
    hf_top_totals t = {.done_per_min = -1, .failed_percent = -1};
    int64_t oldest = 0;
    double failed = 0, done = 0;
    bool rates = false;
    for (size_t i = 0; i < model->n_queues; i++) {
        const hf_top_queue *q = &model->queues[i];
        t.ready += q->stats.ready;
        t.running += q->stats.running;
        t.dead += q->stats.dead;
        if (q->stats.oldest_ready_ms > 0 && !q->stats.paused &&
            (oldest == 0 || q->stats.oldest_ready_ms < oldest))
            oldest = q->stats.oldest_ready_ms;
        if (q->out_per_min < 0)
            continue;
        rates = true;
        done += q->out_per_min;
        failed += q->failed_per_min;
    }
    for (size_t i = 0; i < model->n_workers; i++)
        t.slots += model->workers[i].silent ? 0 : model->workers[i].slots;
    t.oldest_ms = oldest > 0 && model->now_ms > oldest ? model->now_ms - oldest : -1;
    if (rates)
        t.done_per_min = done;
    if (done + failed > 0)
        t.failed_percent = 100 * failed / (done + failed);
    return t;
}
