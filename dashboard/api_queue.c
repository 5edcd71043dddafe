/* api_queue.c - one queue: its figures, why its jobs wait, its history, its jobs. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/id.h"
#include "base/text.h"
#include "cli/jobs/job_out.h"
#include "cli/jobs/job_why.h"
#include "cli/out.h"
#include "dashboard/api.h"
#include "dashboard/overview.h"
#include "dashboard/reasons.h"

enum { MINUTE_MS = 60000, HOUR_MS = 3600000, LOOKED_MAX = 1000, PAGES_MAX = 20 };

/* NULL: it is none, and that is the answer. */
static const char *queue_of(hf_query *ask)
{
    if (hf_name_ok(ask->args[0]))
        return ask->args[0];
    (void)hf_ask_refuse(ask, 400, "invalid", "expected a queue's name");
    return NULL;
}

static hf_err is_known(hf_reader *r, const char *queue, bool *known)
{
    char **names = NULL;
    size_t n = 0;
    hf_err err = hf_admin_queues(r->admin, &names, &n, r->detail);
    *known = false;
    for (size_t i = 0; i < n && err == HF_OK; i++)
        *known = *known || strcmp(names[i], queue) == 0;
    free(names);
    return err;
}

/* ---- queues/Q ---- */

static void on_shard(const hf_shard_info *s, void *arg)
{
    json_t *object = json_pack("{s:I, s:o, s:o}", "shard", (json_int_t)s->number, "tag",
                               hf_out_text(s->tag), "node",
                               s->node == NULL ? json_null() : hf_out_text(s->node));
    if (object != NULL && s->stats != NULL)
        (void)json_object_update_new(
            object,
            json_pack("{s:I, s:I, s:I, s:I}", "ready", (json_int_t)s->stats->ready,
                      "delayed", (json_int_t)s->stats->delayed, "running",
                      (json_int_t)s->stats->running, "dead", (json_int_t)s->stats->dead));
    (void)json_array_append_new(arg, object);
}

static void take_id(const hf_job_info *info, void *arg)
{
    memcpy(arg, info->id, sizeof info->id);
}

/* Its oldest ready job, and what keeps it. HF_GONE: it has none, or it went, or another
 * program has put something there that is no id. */
static hf_err ask_oldest(hf_reader *r, const char *queue, hf_job_why *why)
{
    char id[HF_ID_SIZE] = "";
    hf_err err = hf_admin_list(r->admin, queue, HF_STATE_READY, NULL, 1, take_id, id,
                               NULL, r->detail);
    if (err == HF_OK)
        err =
            hf_name_ok(id) ? hf_admin_why(r->admin, queue, id, why, r->detail) : HF_GONE;
    return err;
}

/* Adds why its jobs wait, the free slots, and how long the backlog takes. */
static hf_err add_why(hf_reader *r, json_t *object, const hf_queue_stats *s)
{
    hf_job_info *job = calloc(1, sizeof *job);
    hf_job_why *why = calloc(1, sizeof *why);
    hf_err err = HF_NOMEM;
    const double rate = json_number_value(json_object_get(object, "out_per_min"));
    if (job != NULL && why != NULL) {
        *job = (hf_job_info){HF_JOB_INFO_INIT};
        *why = (hf_job_why){HF_JOB_WHY_INIT, .job = job};
        err = ask_oldest(r, s->queue, why);
    }
    if (err == HF_OK || err == HF_GONE) {
        const bool waits = err == HF_OK;
        (void)json_object_set_new(object, "reasons",
                                  waits ? hf_reasons_json(r, why) : json_array());
        (void)json_object_set_new(object, "oldest_id",
                                  waits ? hf_out_text(job->id) : json_null());
        (void)json_object_set_new(object, "free_slots",
                                  waits ? json_integer(why->slots - why->busy)
                                        : json_null());
        (void)json_object_set_new(
            object, "backlog_ms",
            s->ready > 0 && rate > 0
                ? json_integer((json_int_t)((double)s->ready * MINUTE_MS / rate))
                : json_null());
        err = HF_OK;
    }
    free(job);
    free(why);
    return err;
}

hf_err hf_api_queue(hf_query *ask, hf_reader *r)
{
    bool known;
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    const char *queue = queue_of(ask);
    if (queue == NULL)
        return HF_OK;
    hf_err err = hf_overview_read(r);
    if (err == HF_OK)
        err = hf_reader_open(r);
    if (err == HF_OK)
        err = is_known(r, queue, &known);
    if (err == HF_OK && !known)
        return hf_ask_refuse(ask, 404, "not_found", "no queue '%s'", queue);
    if (err == HF_OK)
        err = hf_admin_stats(r->admin, queue, &stats, r->detail);
    if (err != HF_OK)
        return err;
    json_t *object = hf_overview_queue(r, &stats), *shards = json_array();
    err = object == NULL ? HF_NOMEM
                         : hf_admin_shards(r->admin, queue, on_shard, shards, r->detail);
    if (err == HF_OK)
        err = add_why(r, object, &stats);
    (void)json_object_set_new(object, "shards", shards);
    if (err == HF_OK)
        return hf_ask_give(ask, r, object, 0);
    json_decref(object);
    return err;
}

hf_err hf_api_queue_why(hf_query *ask, hf_reader *r)
{
    const char *queue = queue_of(ask);
    hf_job_info *job = calloc(1, sizeof *job);
    hf_job_why *why = calloc(1, sizeof *why);
    hf_err err = job == NULL || why == NULL ? HF_NOMEM : HF_OK;
    if (err == HF_OK && queue != NULL) {
        *job = (hf_job_info){HF_JOB_INFO_INIT};
        *why = (hf_job_why){HF_JOB_WHY_INIT, .job = job};
        err = ask_oldest(r, queue, why);
        if (err == HF_OK)
            err = hf_ask_give(ask, r, hf_reasons_whole_json(r, why), 0);
        else if (err == HF_GONE)
            err = hf_ask_give(ask, r, json_pack("{s:[]}", "reasons"), 0);
    }
    free(job);
    free(why);
    return err;
}

/* ---- queues/Q/history ---- */

enum { SERIES = 10 };
static const char *const series_names[SERIES] = {
    "t",    "ready",  "oldest_ms", "running", "in",
    "done", "failed", "dead",      "delayed", "dead_jobs"};

typedef struct history {
    json_t *series[SERIES];
    int64_t enqueued; /* at the step before; -1: not known */
} history;

static json_t *when_seen(const hf_history_step *s, int64_t value)
{
    return s->seen ? json_integer(value) : json_null();
}

static void on_step(const hf_history_step *s, void *arg)
{
    history *h = arg;
    const bool counts = s->seen && h->enqueued >= 0 && s->ever_enqueued >= h->enqueued;
    json_t *const values[SERIES] = {json_integer(s->begin_ms),
                                    when_seen(s, s->ready),
                                    when_seen(s, s->oldest_ms),
                                    when_seen(s, s->running),
                                    counts ? json_integer(s->ever_enqueued - h->enqueued)
                                           : json_null(),
                                    json_integer(s->done),
                                    json_integer(s->failed),
                                    json_integer(s->dead),
                                    when_seen(s, s->delayed),
                                    when_seen(s, s->dead_jobs)};
    for (size_t i = 0; i < SERIES; i++)
        (void)json_array_append_new(h->series[i], values[i]);
    h->enqueued = s->seen ? s->ever_enqueued : -1;
}

hf_err hf_api_queue_history(hf_query *ask, hf_reader *r)
{
    int64_t since_ms;
    history h = {.enqueued = -1};
    hf_history_span span = {HF_HISTORY_SPAN_INIT};
    const char *queue = queue_of(ask);
    if (queue == NULL)
        return HF_OK;
    if (!hf_target_duration(&ask->target, "since", HOUR_MS, &since_ms))
        return hf_ask_refuse(ask, 400, "invalid", "since: expected a duration as 1h");
    json_t *object = json_object();
    for (size_t i = 0; i < SERIES; i++) {
        h.series[i] = json_array();
        (void)json_object_set_new(object, series_names[i], h.series[i]);
    }
    const hf_history_opts opts = {HF_HISTORY_OPTS_INIT, .since_ms = since_ms,
                                  .type = hf_ask_param(ask, "type"), .on_step = on_step,
                                  .arg = &h};
    hf_err err = hf_admin_history(r->admin, queue, &opts, &span, r->detail);
    (void)json_object_set_new(object, "step_ms", json_integer(span.length_ms));
    if (err == HF_OK)
        return hf_ask_give(ask, r, object, 0);
    json_decref(object);
    return err;
}

/* ---- queues/Q/jobs ---- */

typedef struct lister {
    const char *type, *error, *match;
    json_t *items;
    size_t looked_at;
} lister;

static bool is_wanted(const lister *l, const hf_job_info *j)
{
    if (l->type != NULL && strcmp(l->type, j->type) != 0)
        return false;
    if (l->error != NULL && strstr(j->error, l->error) == NULL)
        return false;
    return l->match == NULL || strstr(j->id, l->match) != NULL ||
           strstr(j->type, l->match) != NULL || strstr(j->error, l->match) != NULL;
}

static void on_job(const hf_job_info *job, void *arg)
{
    lister *l = arg;
    l->looked_at++;
    if (is_wanted(l, job))
        (void)json_array_append_new(l->items, hf_job_json(job));
}

static bool state_of(const hf_query *ask, hf_job_state *out)
{
    static const hf_job_state states[] = {
        HF_STATE_READY, HF_STATE_DELAYED, HF_STATE_RETRY, HF_STATE_RUNNING,
        HF_STATE_DEAD,  HF_STATE_DONE,    HF_STATE_PARKED};
    const char *word = hf_ask_param(ask, "state");
    *out = HF_STATE_READY;
    for (size_t i = 0; i < HF_COUNT(states) && word != NULL; i++) {
        *out = states[i];
        if (strcmp(word, hf_job_state_name(states[i])) == 0)
            return true;
    }
    return word == NULL;
}

hf_err hf_api_queue_jobs(hf_query *ask, hf_reader *r)
{
    hf_job_state state;
    char next[HF_CURSOR_SIZE] = "";
    const char *queue = queue_of(ask), *after = hf_ask_param(ask, "after");
    const size_t limit = queue == NULL ? 0 : hf_ask_limit(ask);
    lister l = {.type = hf_ask_param(ask, "type"),
                .error = hf_ask_param(ask, "error"),
                .match = hf_ask_param(ask, "match")};
    const bool filtered = l.type != NULL || l.error != NULL || l.match != NULL;
    hf_err err = HF_OK;
    if (limit == 0)
        return HF_OK;
    if (!state_of(ask, &state))
        return hf_ask_refuse(ask, 400, "invalid",
                             "state: expected ready, delayed, retry, running, dead, done "
                             "or parked");
    l.items = json_array();
    for (size_t page = 0; err == HF_OK && json_array_size(l.items) < limit; page++) {
        const size_t room = limit - json_array_size(l.items);
        if (page == PAGES_MAX || l.looked_at + room > LOOKED_MAX ||
            (page > 0 && (next[0] == '\0' || !filtered)))
            break;
        err = hf_admin_list(r->admin, queue, state, page == 0 ? after : next, room,
                            on_job, &l, next, r->detail);
    }
    if (err == HF_OK)
        return hf_ask_list(ask, r, l.items, next, l.looked_at);
    json_decref(l.items);
    return err;
}
