/* gather_past.c - see gather_past.h.
 *
 * Attempts are counted by the counters of the queue: what they are now, less what they
 * were in the minute before. So an attempt is known at once, and not only when the worker
 * sends its minute. */
#include "seen/gather_past.h"

#include <stdlib.h>

enum {
    MINUTE_MS = 60000,
    WINDOW_MS = 10 * MINUTE_MS,  /* what is read, and for crashed and lost ones */
    ATTEMPTS_MS = 5 * MINUTE_MS, /* for attempts that failed */
    APART_MS = MINUTE_MS / 2     /* nearer samples are of one minute */
};

static void on_step(const hf_history_step *step, void *arg)
{
    hf_facts_past *p = arg;
    if (p->n == HF_FACTS_MINUTES)
        return;
    p->minutes[p->n++] = (hf_facts_minute){.begin_ms = step->begin_ms,
                                           .seen_ms = step->seen ? step->seen_ms : 0,
                                           .ready = step->ready,
                                           .ever_done = step->ever_done,
                                           .ever_failed = step->ever_failed,
                                           .crashed = step->crashed,
                                           .lost = step->lost};
}

typedef struct read_of {
    hf_facts_queue *queue;
    hf_facts_past past;
    hf_history_opts opts;
    hf_history_span span;
} read_of;

typedef struct reader {
    read_of *next; /* they are told in their order */
    hf_gather_past_cb told;
    void *arg;
} reader;

static bool on_read(hf_err err, const hf_history_of *of, void *arg)
{
    reader *r = arg;
    read_of *read = r->next++;
    (void)of;
    read->past.first_done = read->span.ever_done;
    read->past.first_failed = read->span.ever_failed;
    return r->told(err, read->queue, &read->past, r->arg);
}

bool hf_gather_past(hf_admin *admin, hf_facts_queue *const *queues, size_t n,
                    hf_gather_past_cb told, void *arg, char detail[HF_DETAIL_SIZE])
{
    read_of *reads = calloc(n + 1, sizeof *reads);
    hf_history_of *each = calloc(n + 1, sizeof *each);
    const bool made = reads != NULL && each != NULL;
    for (size_t i = 0; i < n && made; i++) {
        const hf_queue_stats *now = &queues[i]->stats;
        reads[i] = (read_of){.queue = queues[i],
                             .past = {.read_ms = now->now_ms},
                             .span = {HF_HISTORY_SPAN_INIT}};
        /* "*": the sums of all other types are not needed. */
        reads[i].opts = (hf_history_opts){HF_HISTORY_OPTS_INIT,  .since_ms = WINDOW_MS,
                                          .type = "*",           .on_step = on_step,
                                          .arg = &reads[i].past, .now_ms = now->now_ms};
        each[i] = (hf_history_of){now->queue, &reads[i].opts, &reads[i].span};
    }
    if (made)
        hf_admin_history_each(admin, each, n, on_read,
                              &(reader){.next = reads, .told = told, .arg = arg}, detail);
    free(reads);
    free(each);
    return made;
}

/* Since the last sample that is old enough; without one, since the history began. */
static void count_attempts(const hf_queue_stats *now, hf_facts_past *p)
{
    int64_t done = p->first_done, failed = p->first_failed;
    int64_t since_ms = now->now_ms - ATTEMPTS_MS;
    for (size_t i = 0; i < p->n; i++) {
        const hf_facts_minute *m = &p->minutes[i];
        if (m->seen_ms == 0 || m->seen_ms > now->now_ms - ATTEMPTS_MS)
            continue;
        done = m->ever_done;
        failed = m->ever_failed;
        since_ms = m->seen_ms;
    }
    done = now->done > done ? now->done - done : 0;
    p->failed = now->failed > failed ? now->failed - failed : 0;
    p->attempts = done + p->failed;
    p->done_per_min = done * MINUTE_MS / (now->now_ms - since_ms);
}

/* Each sample had fewer ready jobs than the next one. The present may be too young to
 * have more. */
static void count_rises(const hf_queue_stats *now, hf_facts_past *p)
{
    int64_t ready = now->ready, first_ms = now->now_ms;
    for (size_t i = p->n; i > 0; i--) {
        const hf_facts_minute *m = &p->minutes[i - 1];
        const bool is_young =
            first_ms == now->now_ms && now->now_ms - m->seen_ms < APART_MS;
        if (m->seen_ms == 0 || m->seen_ms > now->now_ms)
            continue;
        if (is_young ? m->ready > ready : m->ready >= ready)
            break;
        ready = m->ready;
        first_ms = m->seen_ms;
    }
    const int64_t took_ms = now->now_ms - first_ms;
    if (took_ms <= 0)
        return;
    p->rises = (took_ms + APART_MS) / MINUTE_MS;
    p->rise_per_min = ((now->ready - ready) * MINUTE_MS + took_ms / 2) / took_ms;
}

void hf_gather_past_judge(const hf_queue_stats *now, hf_facts_past *p)
{
    p->known = true;
    p->crashed = p->lost = p->rises = p->rise_per_min = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (p->minutes[i].begin_ms <= now->now_ms - WINDOW_MS - MINUTE_MS)
            continue;
        p->crashed += p->minutes[i].crashed;
        p->lost += p->minutes[i].lost;
    }
    count_attempts(now, p);
    count_rises(now, p);
}
