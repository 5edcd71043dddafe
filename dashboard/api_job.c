/* api_job.c - one job: what it is, why it does not run, its logs, its bytes; what runs;
 * and what a word finds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/id.h"
#include "cli/jobs/job_out.h"
#include "cli/out.h"
#include "dashboard/api.h"
#include "dashboard/job_runs.h"
#include "dashboard/overview.h"
#include "dashboard/reasons.h"

enum {
    LOGS_MAX = 256 * 1024,
    LOG_EVENT_MAX = 24 * 1024,
    PAYLOAD_MAX = 64 * 1024,
    RUNNING = 200
};

static const char bytes_type[] = "application/octet-stream";

typedef struct job_place {
    const char *queue, *id; /* queue NULL: any */
} job_place;

/* False: the id or the queue is none, and that is the answer. */
static bool place_of(hf_query *ask, job_place *out)
{
    bool good;
    out->id = ask->args[0];
    out->queue = hf_ask_name(ask, "queue", &good);
    if (good && !hf_name_ok(out->id)) {
        (void)hf_ask_refuse(ask, 400, "invalid", "expected a job's id");
        return false;
    }
    return good;
}

/* ---- jobs/ID ---- */

static json_t *whole_job(const hf_reader *r, const hf_job_info *job)
{
    json_t *object = hf_job_json(job);
    (void)json_object_set_new(object, "runs", hf_job_runs_json(r, job));
    (void)json_object_set_new(object, "scheduled_ms", hf_out_time(job->scheduled_ms));
    (void)json_object_set_new(object, "reason",
                              job->reason[0] == '\0' ? json_null()
                                                     : hf_out_text(job->reason));
    return object;
}

hf_err hf_api_job(hf_query *ask, hf_reader *r)
{
    job_place at;
    hf_job_info job = {HF_JOB_INFO_INIT};
    if (!place_of(ask, &at))
        return HF_OK;
    hf_err err = hf_admin_job(r->admin, at.queue, at.id, &job, NULL, r->detail);
    return err == HF_OK ? hf_ask_give(ask, r, whole_job(r, &job), 0) : err;
}

hf_err hf_api_job_why(hf_query *ask, hf_reader *r)
{
    job_place at;
    hf_job_info job = {HF_JOB_INFO_INIT};
    hf_job_why why = {HF_JOB_WHY_INIT, .job = &job};
    if (!place_of(ask, &at))
        return HF_OK;
    hf_err err = hf_admin_why(r->admin, at.queue, at.id, &why, r->detail);
    return err == HF_OK ? hf_ask_give(ask, r, hf_reasons_whole_json(r, &why), 0) : err;
}

/* ---- its bytes ---- */

hf_err hf_api_job_payload(hf_query *ask, hf_reader *r)
{
    job_place at;
    int64_t max;
    void *payload = NULL;
    hf_job_info job = {HF_JOB_INFO_INIT};
    if (!place_of(ask, &at))
        return HF_OK;
    if (!hf_target_number(&ask->target, "max", 1, INT32_MAX, PAYLOAD_MAX, &max))
        return hf_ask_refuse(ask, 400, "invalid", "max: expected a number of bytes");
    if (r->opts->hide_payloads)
        return hf_ask_refuse(ask, 403, "hidden", "this dashboard shows no payloads");
    hf_err err = hf_admin_job(r->admin, at.queue, at.id, &job, &payload, r->detail);
    if (err != HF_OK)
        return err;
    const size_t len = job.payload_len < (size_t)max ? job.payload_len : (size_t)max;
    return hf_ask_bytes(ask, payload, len, bytes_type, ".payload");
}

hf_err hf_api_job_result(hf_query *ask, hf_reader *r)
{
    job_place at;
    void *bytes = NULL;
    size_t len;
    hf_result_kind kind;
    if (!place_of(ask, &at))
        return HF_OK;
    if (r->opts->hide_payloads)
        return hf_ask_refuse(ask, 403, "hidden", "this dashboard shows no results");
    hf_err err =
        hf_admin_result(r->admin, at.queue, at.id, &bytes, &len, &kind, r->detail);
    return err == HF_OK ? hf_ask_bytes(ask, bytes, len, bytes_type,
                                       kind == HF_RESULT_JSON ? ".json" : ".result")
                        : err;
}

/* ---- jobs/ID/logs ---- */

typedef struct log_reader {
    json_t *items;
    size_t bytes;
} log_reader;

static void on_part(const hf_log_part *part, void *arg)
{
    log_reader *l = arg;
    bool exact;
    if (part->len == 0 || l->bytes + part->len > LOGS_MAX)
        return;
    l->bytes += part->len;
    json_t *text = hf_out_bytes(part->text, part->len, &exact);
    json_t *object = json_pack("{s:I, s:I, s:I, s:o}", "fence", (json_int_t)part->fence,
                               "attempt", (json_int_t)part->attempt, "from",
                               (json_int_t)part->from, "text", text);
    char *encoded = exact ? NULL : hf_base64_encode(part->text, part->len);
    if (encoded != NULL)
        (void)json_object_set_new(object, "text_base64", json_string(encoded));
    free(encoded);
    (void)json_array_append_new(l->items, object);
}

static hf_err read_logs(hf_query *ask, hf_reader *r, hf_log_place *place, json_t **items)
{
    job_place at;
    log_reader l = {.items = json_array()};
    hf_err err = place_of(ask, &at) ? hf_admin_logs(r->admin, at.queue, at.id, place,
                                                    on_part, &l, r->detail)
                                    : HF_INVALID;
    *items = l.items;
    return err;
}

static json_t *logs_object(json_t *items, const hf_log_place *place)
{
    return json_pack("{s:O, s:I, s:I, s:b}", "items", items, "fence",
                     (json_int_t)place->fence, "from", (json_int_t)place->bytes, "ended",
                     (int)place->ended);
}

hf_err hf_api_job_logs(hf_query *ask, hf_reader *r)
{
    int64_t fence, from;
    json_t *items;
    hf_log_place place = {HF_LOG_PLACE_INIT};
    if (!hf_target_number(&ask->target, "fence", 0, INT64_MAX, 0, &fence) ||
        !hf_target_number(&ask->target, "from", 0, INT64_MAX, 0, &from))
        return hf_ask_refuse(ask, 400, "invalid", "fence, from: expected numbers");
    place.fence = (uint64_t)fence;
    place.bytes = (uint64_t)from;
    hf_err err = read_logs(ask, r, &place, &items);
    if (err == HF_OK)
        err = hf_ask_give(ask, r, logs_object(items, &place), 0);
    json_decref(items);
    return ask->text == NULL ? err : HF_OK;
}

/* Removes what an event has no room for, and tells from where on it is whole. */
static hf_log_place cut_to_event(json_t *items, hf_log_place from,
                                 const hf_log_place *until)
{
    size_t n = json_array_size(items), bytes = 0;
    while (n > 0) {
        bytes +=
            json_string_length(json_object_get(json_array_get(items, n - 1), "text"));
        if (bytes > LOG_EVENT_MAX)
            break;
        n--;
    }
    if (n == 0)
        return from;
    while (n-- > 0)
        (void)json_array_remove(items, 0);
    const json_t *first = json_array_get(items, 0);
    if (first == NULL)
        return *until;
    from.fence = (uint64_t)json_integer_value(json_object_get(first, "fence"));
    from.bytes = (uint64_t)json_integer_value(json_object_get(first, "from"));
    return from;
}

/* What is new since the last event. A page that lacks what was before asks for it. */
hf_err hf_api_job_log_news(hf_query *ask, hf_reader *r)
{
    json_t *items;
    hf_log_place place = {HF_LOG_PLACE_INIT, .fence = ask->place[0],
                          .bytes = ask->place[1]};
    const hf_log_place before = place;
    hf_err err = read_logs(ask, r, &place, &items);
    if (err == HF_OK) {
        const hf_log_place after = cut_to_event(items, before, &place);
        json_t *object = logs_object(items, &place);
        (void)json_object_set_new(object, "after",
                                  json_pack("{s:I, s:I}", "fence",
                                            (json_int_t)after.fence, "from",
                                            (json_int_t)after.bytes));
        ask->place[0] = place.fence;
        ask->place[1] = place.bytes;
        err = hf_ask_give(ask, r, object, 0);
    }
    json_decref(items);
    return ask->text == NULL ? err : HF_OK;
}

/* ---- running ---- */

typedef struct runs {
    const hf_reader *r;
    json_t *items;
} runs;

static void on_running(const hf_job_info *job, void *arg)
{
    runs *all = arg;
    hf_job_info copy = *job;
    const hf_job_why why = {HF_JOB_WHY_INIT, .job = &copy,
                            .now_ms = hf_reader_now_ms(all->r)};
    json_t *object = hf_job_json(job);
    (void)json_object_set_new(object, "started_ms", hf_out_time(hf_why_held_since(&why)));
    (void)json_array_append_new(all->items, object);
}

hf_err hf_api_job_running(hf_query *ask, hf_reader *r)
{
    bool good;
    size_t looked = 0;
    runs all = {.r = r};
    const char *only = hf_ask_name(ask, "queue", &good);
    hf_err err = good ? hf_overview_read(r) : HF_OK;
    if (err == HF_OK && good)
        err = hf_reader_open(r);
    if (err != HF_OK || !good)
        return err;
    const hf_facts *f = hf_overview_facts(r->overview);
    all.items = json_array();
    for (size_t i = 0; i < f->n_queues && err == HF_OK; i++) {
        const hf_queue_stats *s = &f->queues[i].stats;
        const size_t n = json_array_size(all.items);
        if ((only != NULL && strcmp(only, s->queue) != 0) || s->running == 0 ||
            n >= RUNNING)
            continue;
        looked += (size_t)s->running;
        err = hf_admin_list(r->admin, s->queue, HF_STATE_RUNNING, NULL, RUNNING - n,
                            on_running, &all, NULL, r->detail);
    }
    if (err == HF_OK)
        return hf_ask_list(ask, r, all.items, "", looked);
    json_decref(all.items);
    return err;
}

/* ---- find ---- */

static hf_err give_found(hf_query *ask, hf_reader *r, const char *kind, const char *name,
                         const char *queue)
{
    json_t *object = json_pack("{s:o}", kind, hf_out_text(name));
    if (queue != NULL)
        (void)json_object_set_new(object, "queue", hf_out_text(queue));
    return hf_ask_give(ask, r, object, 0);
}

static bool has_type(const json_t *workers, const char *type)
{
    size_t i, j;
    json_t *worker, *name;
    json_array_foreach(workers, i, worker)
    {
        json_array_foreach(json_object_get(worker, "types"), j, name)
        {
            if (strcmp(json_string_value(name), type) == 0)
                return true;
        }
    }
    return false;
}

static hf_err find_other(hf_query *ask, hf_reader *r, const char *word)
{
    hf_err err = hf_overview_read(r);
    if (err != HF_OK)
        return err;
    const hf_facts *f = hf_overview_facts(r->overview);
    for (size_t i = 0; i < f->n_queues; i++)
        if (strcmp(f->queues[i].stats.queue, word) == 0)
            return give_found(ask, r, "queue", word, NULL);
    for (size_t i = 0; i < f->n_schedules; i++)
        if (strcmp(f->schedules[i].id, word) == 0)
            return give_found(ask, r, "schedule", word, f->schedules[i].queue);
    for (size_t i = 0; i < f->n_locks; i++)
        if (strcmp(f->locks[i].name, word) == 0)
            return give_found(ask, r, "lock", word, NULL);
    for (size_t i = 0; i < f->n_workers; i++)
        if (strncmp(f->workers[i].id, word, strlen(word)) == 0)
            return give_found(ask, r, "worker", f->workers[i].id, NULL);
    if (has_type(hf_overview_worker_objects(r->overview), word))
        return give_found(ask, r, "type", word, NULL);
    return hf_ask_refuse(ask, 404, "not_found",
                         "no job, queue, schedule, lock, worker or type '%s'", word);
}

/* The id of a job comes first: the others have pages to look at. */
hf_err hf_api_job_find(hf_query *ask, hf_reader *r)
{
    const char *word = hf_ask_param(ask, "q");
    hf_job_info job = {HF_JOB_INFO_INIT};
    if (word == NULL || *word == '\0')
        return hf_ask_refuse(ask, 400, "invalid", "q: expected a name");
    if (hf_name_ok(word)) {
        hf_err err = hf_admin_job(r->admin, NULL, word, &job, NULL, r->detail);
        if (err == HF_OK)
            return give_found(ask, r, "job", job.id, job.queue);
        if (err == HF_INVALID) /* in several queues */
            return give_found(ask, r, "job", word, NULL);
        if (err != HF_GONE)
            return err;
    }
    return find_other(ask, r, word);
}
