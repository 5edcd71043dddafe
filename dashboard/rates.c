/* rates.c - see rates.h. */
#include "dashboard/rates.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "dashboard/hour.h"

enum {
    SAMPLES = 13,
    APART_MS = 5000, /* between samples: all of them span a minute */
    LEAST_MS = 4000, /* a shorter span tells nothing */
    MINUTES = 60,
    MINUTE_MS = 60000,
    QUEUES = 10000
};

typedef struct sample {
    int64_t ms, enqueued, done, failed;
} sample;

typedef struct row {
    char queue[HF_ID_SIZE];
    bool noted;
    size_t n;
    sample at[SAMPLES], last; /* the newest first; and the very last */
    uint64_t past_ns;         /* when the history was read; 0: never */
    uint64_t round;           /* the last one that it was added in */
    hf_rate past;
    int64_t spark[MINUTES]; /* -1: not known */
} row;

struct hf_rates {
    row *rows; /* owned, sorted by name */
    size_t n, cap;
    uint64_t round;     /* under way, from 1 on: each queue is added once */
    hf_hour hour, next; /* of the round before; of the one under way */
};

hf_rates *hf_rates_new(void)
{
    hf_rates *r = calloc(1, sizeof *r);
    if (r != NULL)
        r->round = 1;
    return r;
}

void hf_rates_free(hf_rates *r)
{
    if (r != NULL)
        free(r->rows);
    free(r);
}

/* The place of a queue, or where it belongs. */
static size_t place_of(const hf_rates *r, const char *queue)
{
    size_t low = 0, high = r->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(r->rows[middle].queue, queue) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static row *find(const hf_rates *r, const char *queue)
{
    size_t i = place_of(r, queue);
    return i < r->n && strcmp(r->rows[i].queue, queue) == 0 ? &r->rows[i] : NULL;
}

static row *make(hf_rates *r, const char *queue)
{
    size_t i = place_of(r, queue);
    if (r->n == r->cap) {
        size_t cap = r->cap == 0 ? 16 : 2 * r->cap;
        row *rows = cap > QUEUES ? NULL : realloc(r->rows, cap * sizeof *rows);
        if (rows == NULL)
            return NULL;
        r->rows = rows;
        r->cap = cap;
    }
    memmove(&r->rows[i + 1], &r->rows[i], (r->n - i) * sizeof *r->rows);
    r->n++;
    r->rows[i] = (row){.past = {-1, -1, -1}};
    memcpy(r->rows[i].queue, queue, strlen(queue) + 1);
    for (size_t m = 0; m < MINUTES; m++)
        r->rows[i].spark[m] = -1;
    return &r->rows[i];
}

void hf_rates_note(hf_rates *r, const hf_queue_stats *s)
{
    row *q = find(r, s->queue);
    if (q == NULL)
        q = make(r, s->queue);
    if (q == NULL)
        return;
    q->noted = true;
    q->last = (sample){s->now_ms, s->enqueued, s->done, s->failed};
    /* A counter that falls is that of a queue that began anew. */
    if (q->n > 0 && (s->enqueued < q->at[0].enqueued || s->done < q->at[0].done))
        q->n = 0;
    if (q->n > 0 && s->now_ms - q->at[0].ms < APART_MS)
        return;
    size_t kept = q->n < SAMPLES ? q->n : SAMPLES - 1;
    memmove(&q->at[1], &q->at[0], kept * sizeof *q->at);
    q->at[0] = q->last;
    q->n = kept + 1;
}

void hf_rates_tidy(hf_rates *r)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->n; i++) {
        if (r->rows[i].noted)
            r->rows[kept++] = r->rows[i];
    }
    r->n = kept;
    for (size_t i = 0; i < r->n; i++)
        r->rows[i].noted = false;
}

/* ---- the past ---- */

typedef struct past_reader {
    row *q;
    size_t minute;
    hf_hour_queue hour;  /* its hour NULL: it was added in this round */
    sample before, last; /* the last two steps that were seen */
} past_reader;

static void on_step(const hf_history_step *s, void *arg)
{
    past_reader *p = arg;
    if (p->hour.hour != NULL)
        hf_hour_add(&p->hour, s);
    if (p->minute < MINUTES)
        p->q->spark[p->minute] = s->seen ? s->ready : -1;
    p->minute++;
    if (!s->seen)
        return;
    p->before = p->last;
    p->last = (sample){s->seen_ms, s->ever_enqueued, s->ever_done, s->ever_failed};
}

static double by_minute(int64_t from, int64_t to, int64_t ms)
{
    return to < from ? -1 : (double)(to - from) * MINUTE_MS / (double)ms;
}

static hf_rate between(const sample *a, const sample *b)
{
    int64_t ms = b->ms - a->ms;
    return (hf_rate){by_minute(a->enqueued, b->enqueued, ms),
                     by_minute(a->done, b->done, ms),
                     by_minute(a->failed, b->failed, ms)};
}

void hf_rates_read_past(hf_rates *r, hf_admin *admin, const char *queue)
{
    row *q = find(r, queue);
    const uint64_t now = hf_boot_ns();
    if (q == NULL || (q->past_ns != 0 && now - q->past_ns < MINUTE_MS * HF_MS_NS))
        return;
    past_reader p = {.q = q, .hour.hour = q->round == r->round ? NULL : &r->next};
    const hf_history_opts opts = {HF_HISTORY_OPTS_INIT,
                                  .since_ms = (int64_t)(MINUTES - 1) * MINUTE_MS,
                                  .on_step = on_step, .arg = &p, .now_ms = q->last.ms};
    q->past_ns = now;
    if (hf_admin_history(admin, queue, &opts, NULL, NULL) != HF_OK)
        return;
    if (p.hour.hour != NULL)
        hf_hour_end(&p.hour);
    q->round = r->round;
    if (p.before.ms != 0 && p.last.ms - p.before.ms >= LEAST_MS)
        q->past = between(&p.before, &p.last);
}

void hf_rates_read_some(hf_rates *r, hf_admin *admin, size_t most)
{
    bool whole = r->n > 0;
    for (size_t i = 0; i < r->n; i++) {
        row *q = &r->rows[i];
        const uint64_t before = q->past_ns;
        if (q->round != r->round && most > 0)
            hf_rates_read_past(r, admin, q->queue);
        most -= q->past_ns != before ? 1 : 0;
        whole = whole && q->round == r->round;
    }
    if (!whole)
        return;
    r->hour = r->next;
    r->next = (hf_hour){.last = 0};
    r->round++;
}

/* ---- what is told ---- */

hf_rate hf_rates_of(const hf_rates *r, const char *queue)
{
    const row *q = find(r, queue);
    if (q == NULL)
        return (hf_rate){-1, -1, -1};
    const sample *first = q->n == 0 ? &q->last : &q->at[q->n - 1];
    if (q->last.ms - first->ms < LEAST_MS)
        return q->past;
    return between(first, &q->last);
}

double hf_rate_failed_pct(const hf_rate *rate)
{
    double all = rate->done + rate->failed;
    return rate->done < 0 || rate->failed < 0 || all <= 0 ? -1 : 100 * rate->failed / all;
}

json_t *hf_rate_json(double rate)
{
    return rate < 0 ? json_null() : json_real((double)(int64_t)(rate * 10 + 0.5) / 10);
}

json_t *hf_rates_hour(const hf_rates *r)
{
    return r->hour.last == 0 ? json_null() : hf_hour_json(&r->hour);
}

json_t *hf_rates_spark(const hf_rates *r, const char *queue)
{
    const row *q = find(r, queue);
    json_t *list = json_array();
    for (size_t i = 0; i < MINUTES && list != NULL; i++)
        (void)json_array_append_new(
            list, q == NULL || q->spark[i] < 0 ? json_null() : json_integer(q->spark[i]));
    return list;
}
