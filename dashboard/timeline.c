/* timeline.c - see timeline.h. */
#include "dashboard/timeline.h"

#include <stdlib.h>

#include "base/clock.h"
#include "cli/admin/runs.h"
#include "cli/out.h"
#include "dashboard/overview.h"
#include "dashboard/short_runs.h"
#include "seen/gather.h"

enum {
    OLD_MS = 900,    /* a viewer asks each second */
    PER_SECOND = 50, /* queues that are looked at: two requests for each */
    RESTS_MS = 30000,
    HOUR_MS = 3600000,
    SINCE_MS = 120000,
    RUNS = 2000, /* in an answer */
    NEWS = 6,    /* looks that an event covers: a slow reader misses some events */
    EVENT_MAX = 30 * 1024
};

struct hf_timeline {
    hf_running *running;          /* owned */
    hf_short_runs *shorts;        /* owned */
    uint64_t looked_ns, tried_ns; /* 0: never */
    const hf_facts *facts;        /* borrowed, while it looks */
};

void hf_timeline_free(hf_timeline *t)
{
    if (t == NULL)
        return;
    hf_running_free(t->running);
    hf_short_runs_free(t->shorts);
    free(t);
}

const hf_running *hf_timeline_running(const hf_reader *r)
{
    return r->timeline == NULL ? NULL : r->timeline->running;
}

/* ---- looking ---- */

static uint64_t ms_since(uint64_t ns)
{
    return (hf_boot_ns() - ns) / HF_MS_NS;
}

static hf_err make(hf_reader *r)
{
    hf_timeline *t = calloc(1, sizeof *t);
    if (t == NULL)
        return HF_NOMEM;
    t->shorts = hf_short_runs_new();
    t->running = hf_running_new(NULL);
    if (t->shorts == NULL || t->running == NULL) {
        hf_timeline_free(t);
        return HF_NOMEM;
    }
    r->timeline = t;
    r->free_timeline = hf_timeline_free;
    return HF_OK;
}

static void on_shorts(const char *queue, const hf_runs_entry *entry, void *arg)
{
    const hf_timeline *t = arg;
    (void)queue;
    hf_short_runs_add(t->shorts, entry, hf_running_looks(t->running));
}

/* Its last run was told by now, or is given up. A new one is seen in the figures. */
static bool rests(const char *queue, void *arg)
{
    const hf_timeline *t = arg;
    const hf_facts_queue *q = hf_facts_find(t->facts, queue);
    return q != NULL && q->stats.now_ms - q->ran_ms > RESTS_MS;
}

static hf_err look(hf_timeline *t, hf_reader *r)
{
    const hf_running_calls calls = {
        .shorts = on_shorts, .rests = rests, .now_ms = hf_reader_now_ms(r), .arg = t};
    t->facts = hf_overview_facts(r->overview);
    hf_err err = hf_running_look(t->running, r->admin, &calls, r->detail);
    t->tried_ns = hf_boot_ns();
    if (err == HF_OK)
        t->looked_ns = t->tried_ns;
    return err;
}

static bool is_old(const hf_timeline *t)
{
    const uint64_t seconds = 1 + hf_running_queues(t->running) / PER_SECOND;
    return t->looked_ns == 0 || t->looked_ns != t->tried_ns ||
           ms_since(t->looked_ns) >= seconds * OLD_MS;
}

/* With an answer, there is nothing to add. */
static hf_err read_if_old(hf_query *ask, hf_reader *r)
{
    hf_err err = hf_reader_open(r);
    if (err == HF_OK && r->timeline == NULL)
        err = make(r);
    if (err != HF_OK || !is_old(r->timeline))
        return err;
    err = hf_overview_read(r);
    if (err != HF_OK)
        return err;
    err = look(r->timeline, r);
    if (err != HF_AUTH)
        return err;
    /* Redis is not away: this user may not read what workers tell. */
    return hf_ask_refuse(ask, 403, "auth", "%s", r->detail);
}

/* ---- what is told ---- */

static json_t *workers_of(const hf_running *running)
{
    json_t *list = json_array();
    const int64_t since_ms = hf_running_now_ms(running) - HOUR_MS;
    for (size_t i = 0; i < hf_running_n_workers(running) && list != NULL; i++) {
        const hf_seen_worker *w = hf_running_worker(running, i);
        if (w->silent && w->heard_ms < since_ms)
            continue;
        (void)json_array_append_new(
            list,
            json_pack("{s:o, s:o, s:o, s:I, s:o, s:o, s:o}", "id", hf_out_text(w->id),
                      "host", w->host[0] == '\0' ? json_null() : hf_out_text(w->host),
                      "pid", w->pid == 0 ? json_null() : json_integer(w->pid), "slots",
                      (json_int_t)w->slots, "started_ms", hf_out_time(w->started_ms),
                      "gone_ms", w->silent ? json_integer(w->heard_ms) : json_null(),
                      "ended_ms", w->listed ? json_null() : json_integer(w->heard_ms)));
    }
    return list;
}

static void add_run(json_t *list, const hf_seen_run *run)
{
    json_t *object = hf_runs_json(run);
    (void)json_object_set_new(object, "again", json_integer(run->again));
    (void)json_array_append_new(list, object);
}

/* Those that went on at from_ms or later. Jobs of which no worker has told are in
 * `running`. */
static json_t *runs_since(const hf_running *running, int64_t from_ms, int64_t *cut)
{
    json_t *list = json_array();
    for (size_t i = 0; i < hf_running_count(running) && list != NULL; i++) {
        const hf_seen_run *run = hf_running_at(running, i);
        if (!run->told || (run->end_ms != 0 && run->end_ms < from_ms))
            continue;
        if (json_array_size(list) < RUNS)
            add_run(list, run);
        else
            ++*cut;
    }
    return list;
}

static json_t *runs_changed(const hf_running *running, uint64_t from_look)
{
    json_t *list = json_array();
    for (size_t i = 0; i < hf_running_count(running) && list != NULL; i++) {
        const hf_seen_run *run = hf_running_at(running, i);
        if (run->told && run->changed >= from_look)
            add_run(list, run);
    }
    return list;
}

static json_t *pack(const hf_timeline *t, json_t *runs, json_t *shorts, int64_t cut,
                    uint64_t from_look)
{
    return json_pack("{s:o, s:o, s:o, s:I, s:I, s:I, s:b}", "workers",
                     workers_of(t->running), "runs", runs, "short", shorts, "cut",
                     (json_int_t)cut, "look", (json_int_t)hf_running_looks(t->running),
                     "from_look", (json_int_t)from_look, "watched",
                     (int)(hf_running_refused(t->running) == HF_OK));
}

hf_err hf_timeline_get(hf_query *ask, hf_reader *r)
{
    int64_t since_ms, cut = 0;
    if (!hf_target_number(&ask->target, "since_ms", 1, HOUR_MS, SINCE_MS, &since_ms))
        return hf_ask_refuse(ask, 400, "invalid", "since_ms: expected 1 to %d", HOUR_MS);
    hf_err err = read_if_old(ask, r);
    if (err != HF_OK || ask->text != NULL)
        return err;
    const hf_timeline *t = r->timeline;
    const int64_t now_ms = hf_running_now_ms(t->running), from_ms = now_ms - since_ms;
    json_t *shorts = hf_short_runs_since(t->shorts, from_ms, now_ms, &cut);
    json_t *runs = runs_since(t->running, from_ms, &cut);
    json_t *object = pack(t, runs, shorts, cut, 0);
    (void)json_object_set_new(object, "from_ms", json_integer(from_ms));
    return hf_ask_give(ask, r, object, (int64_t)ms_since(t->looked_ns));
}

/* Of as many looks as there is room for; of none, a page asks for all of it. */
hf_err hf_timeline_news(hf_query *ask, hf_reader *r)
{
    hf_err err = read_if_old(ask, r);
    if (err != HF_OK || ask->text != NULL)
        return err;
    const hf_timeline *t = r->timeline;
    const uint64_t look = hf_running_looks(t->running);
    for (uint64_t back = look < NEWS ? look : NEWS; err == HF_OK; back /= 2) {
        int64_t cut;
        const uint64_t from = look - back + 1;
        json_t *shorts = hf_short_runs_news(t->shorts, from, look, &cut);
        err = hf_ask_give(ask, r,
                          pack(t, runs_changed(t->running, from), shorts, cut, from),
                          (int64_t)ms_since(t->looked_ns));
        if (back == 0 || ask->len <= EVENT_MAX)
            break;
    }
    return err;
}
