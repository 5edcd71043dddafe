/* hour.c - see hour.h. */
#include "dashboard/hour.h"

#include "base/base.h"

enum { MINUTE_MS = 60000 };

void hf_hour_add(hf_hour_queue *q, const hf_history_step *s)
{
    const int64_t number = s->begin_ms / MINUTE_MS;
    hf_hour_minute *m = &q->hour->at[number % HF_HOUR_ROOM];
    if (m->number != number)
        *m = (hf_hour_minute){.number = number};
    if (s->seen)
        q->as = (hf_hour_minute){.known = true,
                                 .ready = s->ready,
                                 .oldest_ms = s->oldest_ms,
                                 .running = s->running};
    q->as.number = number;
    m->known = m->known || q->as.known;
    m->ready += q->as.ready;
    m->running += q->as.running;
    if (q->as.oldest_ms > m->oldest_ms)
        m->oldest_ms = q->as.oldest_ms;
    m->done += s->done;
    m->failed += s->failed;
    m->dead += s->dead;
}

void hf_hour_end(const hf_hour_queue *q)
{
    if (q->hour->last == 0 || q->as.number < q->hour->last)
        q->hour->last = q->as.number;
}

static json_t *when_known(const hf_hour_minute *m, int64_t value)
{
    return m->known ? json_integer(value) : json_null();
}

json_t *hf_hour_json(const hf_hour *h)
{
    static const char *const names[] = {"ready", "oldest_ms", "running",
                                        "done",  "failed",    "dead"};
    json_t *object = json_object(), *lists[HF_COUNT(names)];
    for (size_t i = 0; i < HF_COUNT(names); i++) {
        lists[i] = json_array();
        (void)json_object_set_new(object, names[i], lists[i]);
    }
    for (int64_t n = h->last - HF_HOUR_MINUTES + 1; n <= h->last; n++) {
        static const hf_hour_minute none;
        const hf_hour_minute *at = &h->at[n % HF_HOUR_ROOM];
        const hf_hour_minute *m = at->number == n ? at : &none;
        json_t *const values[] = {when_known(m, m->ready),   when_known(m, m->oldest_ms),
                                  when_known(m, m->running), json_integer(m->done),
                                  json_integer(m->failed),   json_integer(m->dead)};
        for (size_t i = 0; i < HF_COUNT(names); i++)
            (void)json_array_append_new(lists[i], values[i]);
    }
    return object;
}
