/* routes_table.c - see routes_table.h. */
#include "dashboard/routes_table.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "dashboard/checkup.h"
#include "dashboard/metrics.h"
#include "dashboard/timeline.h"

enum { BELOW = 2 /* segments of "api/v1" */ };

static const hf_route routes[] = {
    {.path = "about", .run = hf_api_other_about, .away_is_fine = true},
    {.path = "overview", .run = hf_overview_get, .away_is_fine = true},
    {.path = "queues", .run = hf_overview_queues, .away_is_fine = true},
    {.path = "queues/*", .run = hf_api_queue},
    {.path = "queues/*/why", .run = hf_api_queue_why},
    {.path = "queues/*/history", .run = hf_api_queue_history},
    {.path = "queues/*/jobs", .run = hf_api_queue_jobs},
    {.path = "find", .run = hf_api_job_find},
    {.path = "jobs/*", .run = hf_api_job},
    {.path = "jobs/*/why", .run = hf_api_job_why},
    {.path = "jobs/*/logs", .run = hf_api_job_logs},
    {.path = "jobs/*/result", .run = hf_api_job_result},
    {.path = "jobs/*/payload", .run = hf_api_job_payload},
    {.path = "running", .run = hf_api_job_running},
    {.path = "runs", .run = hf_timeline_get},
    {.path = "dead/groups", .run = hf_api_dead_groups},
    {.path = "tasks", .run = hf_api_tasks, .away_is_fine = true},
    {.path = "tasks/*", .run = hf_api_tasks_one, .away_is_fine = true},
    {.path = "schedules", .run = hf_api_other_schedules},
    {.path = "workers", .run = hf_overview_workers, .away_is_fine = true},
    {.path = "locks", .run = hf_api_other_locks},
    {.path = "lock", .run = hf_api_other_lock},
    {.path = "stats", .run = hf_api_stats},
    {.path = "redis", .run = hf_api_redis},
    {.path = "doctor", .run = hf_checkup_get},
    {.post = true, .path = "doctor", .run = hf_checkup_look},
    {true, "queues/*/pause", hf_changes_pause, "pause", false},
    {true, "queues/*/resume", hf_changes_resume, "resume", false},
    {true, "queues/*/limit", hf_changes_limit, "limit", false},
    {true, "queues/*/purge", hf_changes_purge, "purge", false},
    {true, "jobs/*/retry", hf_changes_job_retry, "retry", false},
    {true, "jobs/*/cancel", hf_changes_job_cancel, "cancel", false},
    {true, "jobs/*/edit", hf_changes_job_edit, "edit", false},
    {true, "jobs/*/delete", hf_changes_job_delete, "delete", false},
    {true, "dead/retry", hf_api_tasks_retry, "dead_retry", false},
    {true, "dead/purge", hf_api_tasks_purge, "dead_purge", false},
    {true, "tasks/*/stop", hf_api_tasks_stop, "task_stop", true},
    {true, "schedules/*/*/run", hf_changes_schedule_run, "schedule_run", false},
    {true, "schedules/*/*/pause", hf_changes_schedule_pause, "schedule_pause", false},
    {true, "schedules/*/*/resume", hf_changes_schedule_resume, "schedule_resume", false},
    {true, "lock/revoke", hf_changes_lock_revoke, "lock_revoke", false},
    {true, "lock/release", hf_changes_lock_release, "lock_release", false},
};

static const hf_route metrics = {
    .path = "metrics", .run = hf_metrics_get, .away_is_fine = true};

const hf_route *hf_route_metrics(void)
{
    return &metrics;
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
