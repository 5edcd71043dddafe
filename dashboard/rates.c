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
    SETTLED_MS = 75000, /* after the last change: all workers have told what ended */
    WHOLE_MS = 15 * MINUTE_MS, /* a worker that could not reach Redis tells it later */
    QUEUES = 10000
};

typedef struct sample {
    int64_t ms, enqueued, done, failed;
} sample;

typedef struct row {
    char queue[HF_ID_SIZE];
    bool noted;
    size_t n;
    sample at[SAMPLES], last;  /* the newest first; and the very last */
    int64_t moved_ms;          /* when its counters were seen to change last */
    uint64_t past_ns;          /* when its history was brought up to date; 0: never */
    int64_t read_ms, whole_ms; /* when it was read; and all of its hour; 0: never */
    int64_t upto;              /* the last minute that is known, as far as it had gone */
    hf_hour_minute hour[HF_HOUR_ROOM]; /* by number */
    hf_rate past;
} row;

struct hf_rates {
    row *rows; /* owned, sorted by name */
    size_t n, cap;
    size_t turn; /* whose history is read next */
    bool whole;  /* that of all queues was read; that of a new one may be missing yet */
};

hf_rates *hf_rates_new(void)
{
    return calloc(1, sizeof(hf_rates));
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
    if (s->enqueued != q->last.enqueued || s->done != q->last.done ||
        s->failed != q->last.failed || q->moved_ms == 0)
        q->moved_ms = s->now_ms;
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
    sample before, last; /* the last two steps that were seen */
} past_reader;

static void on_step(const hf_history_step *s, void *arg)
{
    past_reader *p = arg;
    const int64_t number = s->begin_ms / MINUTE_MS;
    p->q->hour[number % HF_HOUR_ROOM] = (hf_hour_minute){.number = number,
                                                         .known = s->seen,
                                                         .ready = s->ready,
                                                         .oldest_ms = s->oldest_ms,
                                                         .running = s->running,
                                                         .done = s->done,
                                                         .failed = s->failed,
                                                         .dead = s->dead};
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

/* How many minutes of the present one's past have to be read; -1: none, because all that
 * its workers had to tell was read. A minute that ended a minute ago does not change any
 * more, unless a worker could not reach Redis. */
static int64_t minutes_to_read(const row *q)
{
    const int64_t back = q->last.ms / MINUTE_MS - q->upto + 2;
    if (q->whole_ms == 0)
        return MINUTES - 1;
    if (q->read_ms - q->moved_ms > SETTLED_MS)
        return -1;
    return q->last.ms - q->whole_ms > WHOLE_MS || back >= MINUTES ? MINUTES - 1 : back;
}

/* Whether Redis was asked. */
static bool read_past(row *q, hf_admin *admin)
{
    past_reader p = {.q = q};
    const int64_t minutes = minutes_to_read(q);
    const hf_history_opts opts = {HF_HISTORY_OPTS_INIT, .since_ms = minutes * MINUTE_MS,
                                  .on_step = on_step, .arg = &p, .now_ms = q->last.ms};
    const uint64_t now = hf_boot_ns();
    if (q->past_ns != 0 && now - q->past_ns < MINUTE_MS * HF_MS_NS)
        return false;
    q->past_ns = now;
    if (minutes >= 0 && hf_admin_history(admin, q->queue, &opts, NULL, NULL) != HF_OK)
        return true;
    q->upto = q->last.ms / MINUTE_MS;
    if (minutes < 0)
        return false;
    q->read_ms = q->last.ms;
    q->whole_ms = minutes == MINUTES - 1 ? q->last.ms : q->whole_ms;
    if (p.before.ms != 0 && p.last.ms - p.before.ms >= LEAST_MS)
        q->past = between(&p.before, &p.last);
    return true;
}

bool hf_rates_read_past(hf_rates *r, hf_admin *admin, const char *queue)
{
    row *q = find(r, queue);
    return q != NULL && read_past(q, admin);
}

void hf_rates_read_some(hf_rates *r, hf_admin *admin, size_t most)
{
    const size_t first = r->turn;
    bool whole = r->n > 0;
    for (size_t i = 0; i < r->n; i++) {
        row *q = &r->rows[(first + i) % r->n];
        if (most > 0 && read_past(q, admin)) {
            most--;
            r->turn = (size_t)(q - r->rows) + 1;
        }
        whole = whole && q->upto > 0;
    }
    r->whole = r->whole || whole;
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
    hf_hour hour = {.last = INT64_MAX};
    for (size_t i = 0; i < r->n; i++)
        if (r->rows[i].upto > 0 && r->rows[i].upto < hour.last)
            hour.last = r->rows[i].upto;
    if (!r->whole || r->n == 0)
        return json_null();
    for (size_t i = 0; i < r->n; i++)
        hf_hour_add(&hour, r->rows[i].hour);
    return hf_hour_json(&hour);
}

json_t *hf_rates_spark(const hf_rates *r, const char *queue)
{
    const row *q = find(r, queue);
    json_t *list = json_array();
    for (int64_t back = MINUTES - 1; back >= 0 && list != NULL; back--) {
        const int64_t number = q == NULL ? 0 : q->upto - back;
        const hf_hour_minute *m = number <= 0 ? NULL : &q->hour[number % HF_HOUR_ROOM];
        const bool known = m != NULL && m->number == number && m->known;
        (void)json_array_append_new(list, known ? json_integer(m->ready) : json_null());
    }
    return list;
}
