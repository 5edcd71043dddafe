/* hour.c - see hour.h. */
#include "dashboard/hour.h"

#include "base/base.h"

void hf_hour_add(hf_hour *h, const hf_hour_minute of[HF_HOUR_ROOM])
{
    hf_hour_minute as = {.known = false};
    for (int64_t n = h->last - HF_HOUR_MINUTES + 1; n <= h->last; n++) {
        static const hf_hour_minute none;
        const hf_hour_minute *at = &of[n % HF_HOUR_ROOM];
        const hf_hour_minute *s = at->number == n ? at : &none;
        hf_hour_minute *m = &h->at[n % HF_HOUR_ROOM];
        as = s->known ? *s : as;
        m->number = n;
        m->known = m->known || as.known;
        m->ready += as.ready;
        m->running += as.running;
        if (as.oldest_ms > m->oldest_ms)
            m->oldest_ms = as.oldest_ms;
        m->done += s->done;
        m->failed += s->failed;
        m->dead += s->dead;
    }
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
