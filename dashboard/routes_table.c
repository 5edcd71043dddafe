/* routes_table.c - see routes_table.h. */
#include "dashboard/routes_table.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/text.h"
#include "dashboard/checkup.h"
#include "dashboard/metrics.h"
#include "dashboard/timeline.h"

enum { BELOW = 2 /* segments of "api/v1" */ };

static const hf_route routes[] = {
    {.path = "about", .run = hf_api_other_about, .away_is_fine = true},
    {.path = "overview", .run = hf_overview_get, .away_is_fine = true},
    {.path = "queues",
     .run = hf_overview_queues,
     .params = "sort match limit after",
     .away_is_fine = true},
    {.path = "queues/*", .run = hf_api_queue},
    {.path = "queues/*/why", .run = hf_api_queue_why},
    {.path = "queues/*/history", .run = hf_api_queue_history, .params = "since type"},
    {.path = "queues/*/jobs",
     .run = hf_api_queue_jobs,
     .params = "state type error match limit after"},
    {.path = "find", .run = hf_api_job_find, .params = "q"},
    {.path = "jobs/*", .run = hf_api_job, .params = "queue"},
    {.path = "jobs/*/why", .run = hf_api_job_why, .params = "queue"},
    {.path = "jobs/*/logs", .run = hf_api_job_logs, .params = "queue fence from"},
    {.path = "jobs/*/result", .run = hf_api_job_result, .params = "queue"},
    {.path = "jobs/*/payload", .run = hf_api_job_payload, .params = "queue max"},
    {.path = "running", .run = hf_api_job_running, .params = "queue"},
    {.path = "runs", .run = hf_timeline_get, .params = "since_ms"},
    {.path = "dead/groups", .run = hf_api_dead_groups, .params = "queue since"},
    {.path = "tasks", .run = hf_api_tasks, .away_is_fine = true},
    {.path = "tasks/*", .run = hf_api_tasks_one, .away_is_fine = true},
    {.path = "schedules", .run = hf_api_other_schedules, .params = "hours"},
    {.path = "workers", .run = hf_overview_workers, .away_is_fine = true},
    {.path = "locks", .run = hf_api_other_locks},
    {.path = "lock", .run = hf_api_other_lock, .params = "name"},
    {.path = "stats", .run = hf_api_stats, .params = "queue type since"},
    {.path = "redis", .run = hf_api_redis},
    {.path = "doctor", .run = hf_checkup_get},
    {.post = true, .path = "doctor", .run = hf_checkup_look},
    {.post = true, .path = "queues/*/pause", .run = hf_changes_pause, .change = "pause"},
    {.post = true,
     .path = "queues/*/resume",
     .run = hf_changes_resume,
     .change = "resume"},
    {.post = true,
     .path = "queues/*/limit",
     .run = hf_changes_limit,
     .change = "limit",
     .fields = "max_running rate"},
    {.post = true,
     .path = "queues/*/purge",
     .run = hf_changes_purge,
     .change = "purge",
     .fields = "confirm"},
    {.post = true,
     .path = "jobs/*/retry",
     .run = hf_changes_job_retry,
     .change = "retry",
     .fields = "queue"},
    {.post = true,
     .path = "jobs/*/cancel",
     .run = hf_changes_job_cancel,
     .change = "cancel",
     .fields = "queue"},
    {.post = true,
     .path = "jobs/*/edit",
     .run = hf_changes_job_edit,
     .change = "edit",
     .fields = "queue payload delay_ms at_ms priority"},
    {.post = true,
     .path = "jobs/*/delete",
     .run = hf_changes_job_delete,
     .change = "delete",
     .fields = "queue"},
    {.post = true,
     .path = "dead/retry",
     .run = hf_api_tasks_retry,
     .change = "dead_retry",
     .fields = "queue type key since_ms rate expect confirm"},
    {.post = true,
     .path = "dead/purge",
     .run = hf_api_tasks_purge,
     .change = "dead_purge",
     .fields = "queue type key since_ms rate expect confirm"},
    {.post = true,
     .path = "tasks/*/stop",
     .run = hf_api_tasks_stop,
     .change = "task_stop",
     .away_is_fine = true},
    {.post = true,
     .path = "schedules/*/*/run",
     .run = hf_changes_schedule_run,
     .change = "schedule_run"},
    {.post = true,
     .path = "schedules/*/*/pause",
     .run = hf_changes_schedule_pause,
     .change = "schedule_pause"},
    {.post = true,
     .path = "schedules/*/*/resume",
     .run = hf_changes_schedule_resume,
     .change = "schedule_resume"},
    {.post = true,
     .path = "lock/revoke",
     .run = hf_changes_lock_revoke,
     .change = "lock_revoke",
     .fields = "name owner"},
    {.post = true,
     .path = "lock/release",
     .run = hf_changes_lock_release,
     .change = "lock_release",
     .fields = "name fence confirm"},
};

static const hf_route metrics = {
    .path = "metrics", .run = hf_metrics_get, .away_is_fine = true};

static const hf_route events = {.path = "events", .params = "topics"};

const hf_route *hf_route_metrics(void)
{
    return &metrics;
}

const hf_route *hf_route_events(void)
{
    return &events;
}

/* The next word of a path, and where the one behind it begins; NULL: it was the last. */
static const char *next_word(const char *path, size_t *len)
{
    *len = strcspn(path, "/");
    return path[*len] == '/' ? path + *len + 1 : NULL;
}

static bool is_star(const char *word, size_t len)
{
    return len == 1 && *word == '*';
}

static bool is_at(const hf_route *route, const hf_http_target *t)
{
    const char *word = route->path;
    for (size_t i = BELOW, len; i < t->n_segments && word != NULL; i++) {
        const char *next = next_word(word, &len);
        if (!is_star(word, len) &&
            (strncmp(word, t->segments[i], len) != 0 || t->segments[i][len] != '\0'))
            return false;
        word = next;
        if (word == NULL)
            return i + 1 == t->n_segments;
    }
    return false;
}

const hf_route *hf_route_find(const hf_http_target *t, bool post)
{
    for (size_t i = 0; i < HF_COUNT(routes); i++)
        if (routes[i].post == post && is_at(&routes[i], t))
            return &routes[i];
    return NULL;
}

/* Whether it is in the list, as a whole. */
static bool lists(const char *list, const char *word, size_t len)
{
    for (const char *at = list; *at != '\0';
         at += strcspn(at, ","), at += strspn(at, ", "))
        if (strcspn(at, ",") == len && strncmp(at, word, len) == 0)
            return true;
    return false;
}

static void add_name(char *out, const char *path, size_t len)
{
    const size_t at = strlen(out);
    if (!lists(out, path, len))
        (void)snprintf(out + at, HF_ROUTES_TEXT - at, "%s%.*s", at > 0 ? ", " : "",
                       (int)len, path);
}

static bool begins_with(const char *path, const char *word)
{
    const size_t len = strcspn(path, "/");
    return strlen(word) == len && strncmp(path, word, len) == 0;
}

const char *hf_route_names(const hf_http_target *t, bool post, char out[HF_ROUTES_TEXT])
{
    const char *first = t->n_segments > BELOW ? t->segments[BELOW] : "";
    out[0] = '\0';
    for (size_t i = 0; i < HF_COUNT(routes); i++)
        if (routes[i].post == post && begins_with(routes[i].path, first))
            add_name(out, routes[i].path, strlen(routes[i].path));
    if (out[0] != '\0')
        return out;
    for (size_t i = 0; i < HF_COUNT(routes); i++)
        if (routes[i].post == post)
            add_name(out, routes[i].path, strcspn(routes[i].path, "/"));
    if (!post)
        add_name(out, "events", strlen("events"));
    return out;
}

void hf_route_args(const hf_route *route, const hf_http_target *t,
                   const char *args[HF_ASK_ARGS])
{
    const char *word = route->path;
    size_t n = 0;
    for (size_t i = 0; i < HF_ASK_ARGS; i++)
        args[i] = NULL;
    for (size_t i = BELOW, len; i < t->n_segments && word != NULL; i++) {
        const char *next = next_word(word, &len);
        if (is_star(word, len) && n < HF_ASK_ARGS)
            args[n++] = t->segments[i];
        word = next;
    }
}

/* ---- what a request says ---- */

static bool is_among(const char *names, const char *name)
{
    const size_t len = strlen(name);
    while (names != NULL && *names != '\0') {
        const size_t n = strcspn(names, " ");
        if (n == len && memcmp(names, name, n) == 0)
            return true;
        names += n + strspn(names + n, " ");
    }
    return false;
}

/* "queue, type or since" */
static void list_names(const char *names, char *out, size_t size)
{
    size_t len = 0;
    (void)snprintf(out, size, "none");
    while (names != NULL && *names != '\0' && len < size) {
        const size_t n = strcspn(names, " ");
        const bool last = names[n] == '\0';
        len += (size_t)snprintf(out + len, size - len, "%s%.*s",
                                len == 0 ? ""
                                : last   ? " or "
                                         : ", ",
                                (int)n, names);
        names += n + (last ? 0 : 1);
    }
}

static bool is_unknown(const char *kind, const char *name, const char *names,
                       char said[HF_ROUTE_SAID])
{
    char list[HF_ROUTE_SAID / 2];
    list_names(names, list, sizeof list);
    (void)snprintf(said, HF_ROUTE_SAID, "unknown %s '%.64s': expected %s", kind, name,
                   list);
    hf_text_plain(said);
    return false;
}

bool hf_route_reads(const hf_route *route, const hf_http_target *t, json_t *body,
                    char said[HF_ROUTE_SAID])
{
    const char *field;
    json_t *value;
    for (size_t i = 0; i < t->n_params; i++) {
        const char *name = t->params[i].name;
        if (!is_among(route->params, name))
            return is_unknown("parameter", name, route->params, said);
        if (hf_target_param(t, name) != t->params[i].value) {
            (void)snprintf(said, HF_ROUTE_SAID, "%s: given twice", name);
            return false;
        }
    }
    json_object_foreach(body, field, value)
    {
        if (!is_among(route->fields, field))
            return is_unknown("field", field, route->fields, said);
    }
    return true;
}
