/* api_tasks.c - tasks: begun for a group of dead jobs, read and stopped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/out.h"
#include "dashboard/api.h"
#include "dashboard/dead_tasks.h"

enum { JOBS_MAX = 10000000, RETRY_RATE = 50 };

static const char *const state_words[] = {
    [HF_TASK_RUNNING] = "running", [HF_TASK_AWAY] = "away",     [HF_TASK_DONE] = "done",
    [HF_TASK_STOPPED] = "stopped", [HF_TASK_FAILED] = "failed",
};

static json_t *text_or_null(const char *text, bool there)
{
    return there ? hf_out_text(text) : json_null();
}

static json_t *object_of(const hf_task_view *v, int64_t ahead_ms)
{
    const hf_task_order *o = &v->order;
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:s, s:o, s:o, s:I, s:I, s:I, s:I, s:b}", "task", v->id, "verb",
        o->purge ? "purge" : "retry", "state", state_words[v->state], "queue", o->queue,
        "type", text_or_null(o->type, o->type[0] != '\0'), "key",
        text_or_null(o->key, o->of_error), "rate", (json_int_t)o->rate, "total",
        (json_int_t)o->jobs, "done", (json_int_t)v->done, "unsure", (json_int_t)v->unsure,
        "stopping", (int)v->stopping);
    if (object != NULL)
        (void)json_object_update_new(
            object,
            json_pack("{s:o, s:I, s:o}", "error", text_or_null(v->why, v->why[0] != '\0'),
                      "began_ms", (json_int_t)v->began_ms + ahead_ms, "ended_ms",
                      hf_out_time(v->ended_ms == 0 ? 0 : v->ended_ms + ahead_ms)));
    return object;
}

/* ---- reading ---- */

static hf_err no_such_task(hf_query *ask)
{
    return hf_ask_refuse(ask, 404, "not_found",
                         "there is no such task: it began before this dashboard "
                         "started, or is long over");
}

hf_err hf_api_tasks_one(hf_query *ask, hf_reader *r)
{
    hf_task_view view;
    if (!hf_dead_tasks_read(r->opts->tasks, ask->args[0], &view))
        return no_such_task(ask);
    return hf_ask_give(ask, r, object_of(&view, r->ahead_ms), 0);
}

hf_err hf_api_tasks(hf_query *ask, hf_reader *r)
{
    hf_task_view *views = calloc(HF_TASKS_KEPT, sizeof *views);
    if (views == NULL)
        return HF_NOMEM;
    json_t *items = json_array();
    const size_t n = hf_dead_tasks_list(r->opts->tasks, views);
    for (size_t i = 0; i < n; i++)
        (void)json_array_append_new(items, object_of(&views[i], r->ahead_ms));
    free(views);
    return hf_ask_list(ask, r, items, "", n);
}

hf_err hf_api_tasks_stop(hf_query *ask, hf_reader *r)
{
    if (!hf_dead_tasks_stop(r->opts->tasks, ask->args[0]))
        return no_such_task(ask);
    return hf_api_tasks_one(ask, r);
}

/* ---- beginning ---- */

/* A name in the body. False: it is none, and that is the answer. */
static bool take_name(hf_query *ask, const char *field, bool needed, char out[HF_ID_SIZE])
{
    const char *name = hf_ask_text(ask, field);
    out[0] = '\0';
    if (!hf_ask_has(ask, field) && !needed)
        return true;
    if (name == NULL || !hf_name_ok(name)) {
        (void)hf_ask_refuse(ask, 400, "invalid",
                            "%s: expected 1 to 128 characters of A-Z a-z 0-9 . _ : -",
                            field);
        return false;
    }
    memcpy(out, name, strlen(name) + 1);
    return true;
}

static bool take_key(hf_query *ask, hf_task_order *o)
{
    const char *key = hf_ask_text(ask, "key");
    o->of_error = hf_ask_has(ask, "key");
    if (o->of_error && key == NULL) {
        (void)hf_ask_refuse(ask, 400, "invalid", "key: expected a text");
        return false;
    }
    if (o->of_error)
        hf_error_key(key, o->key);
    return true;
}

static bool take_number(hf_query *ask, const char *name, int64_t min, int64_t max,
                        int64_t otherwise, int64_t *out)
{
    if (hf_ask_integer(ask, name, min, max, otherwise, out))
        return true;
    (void)hf_ask_refuse(ask, 400, "invalid",
                        "%s: expected a whole number from %lld to %lld", name,
                        (long long)min, (long long)max);
    return false;
}

/* Reads the body. False: it is not complete, and that is the answer. */
static bool take_order(hf_query *ask, hf_task_order *o, int64_t *expect)
{
    int64_t rate, confirm;
    if (!take_name(ask, "queue", true, o->queue) ||
        !take_name(ask, "type", false, o->type) || !take_key(ask, o) ||
        !take_number(ask, "since_ms", 0, HF_TIME_MAX_MS, 0, &o->since_ms) ||
        !take_number(ask, "rate", 1, HF_TASK_RATE_MAX, o->purge ? 0 : RETRY_RATE,
                     &rate) ||
        !take_number(ask, "expect", 1, JOBS_MAX, 0, expect))
        return false;
    o->rate = (uint32_t)rate;
    if (*expect == 0) {
        (void)hf_ask_refuse(ask, 400, "invalid", "expect: expected a number of jobs");
        return false;
    }
    if (hf_ask_integer(ask, "confirm", 1, JOBS_MAX, 0, &confirm) && confirm == *expect)
        return true;
    (void)hf_ask_refuse(ask, 400, "confirm", "expected \"confirm\": %lld",
                        (long long)*expect);
    return false;
}

/* How many jobs it would be, up to one more than there may be: a tenth more than were
 * seen. */
static hf_err count(hf_reader *r, hf_task_order *o, size_t most)
{
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    const hf_dead_filter filter = {
        HF_DEAD_FILTER_INIT, .type = o->type[0] == '\0' ? NULL : o->type,
        .error = o->of_error ? o->key : NULL, .since_ms = o->since_ms, .limit = most + 1};
    hf_err err = hf_admin_stats(r->admin, o->queue, &stats, r->detail);
    if (err != HF_OK)
        return err;
    o->until_ms = stats.now_ms;
    return hf_admin_dead_count(r->admin, o->queue, &filter, &o->jobs, r->detail);
}

/* A filter that was mistyped finds none, too. */
static hf_err none_is_dead(hf_query *ask, const hf_task_order *o)
{
    const bool typed = o->type[0] != '\0';
    return hf_ask_refuse(
        ask, 404, "not_found", "queue '%s' has no dead job%s%s%s%s%s%s%s", o->queue,
        typed ? " of type '" : "", o->type, typed ? "'" : "",
        o->of_error ? " with the key '" : "", o->of_error ? o->key : "",
        o->of_error ? "'" : "",
        o->of_error
            ? ": expected the key of a group of dead/groups, whose jobs are still dead"
        : typed ? ": expected the type of a job that is dead"
                : "");
}

static hf_err begin(hf_query *ask, hf_reader *r, bool purge)
{
    char id[HF_NEW_ID_SIZE];
    int64_t expect;
    hf_task_order order = {.purge = purge};
    (void)snprintf(order.by, sizeof order.by, "%s", ask->who);
    (void)snprintf(order.role, sizeof order.role, "%s", hf_role_word(ask->role));
    if (!take_order(ask, &order, &expect))
        return HF_OK;
    const size_t most = (size_t)expect + (size_t)expect / 10;
    hf_err err = count(r, &order, most);
    if (err != HF_OK)
        return err;
    if (order.jobs == 0)
        return none_is_dead(ask, &order);
    if (order.jobs > most)
        return hf_ask_refuse(ask, 409, "changed",
                             "more than %zu such jobs are dead, and %lld were expected",
                             most, (long long)expect);
    err = hf_dead_tasks_start(r->opts->tasks, &order, id);
    if (err == HF_BUSY)
        return hf_ask_refuse(ask, 429, "tasks", "%d tasks run already",
                             HF_TASKS_AT_A_TIME);
    return err != HF_OK ? err
                        : hf_ask_give(ask, r,
                                      json_pack("{s:s, s:I}", "task", id, "total",
                                                (json_int_t)order.jobs),
                                      0);
}

hf_err hf_api_tasks_retry(hf_query *ask, hf_reader *r)
{
    return begin(ask, r, false);
}

hf_err hf_api_tasks_purge(hf_query *ask, hf_reader *r)
{
    return begin(ask, r, true);
}
