/* reason_read.c - see reason_read.h. */
#include "seen/reason_read.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* ---- the types that live workers take ---- */

/* As `why` counts them: a quiet worker takes nothing. */
static bool serves(const hf_worker_info *worker, const char *queue)
{
    if (worker->silent ||
        (worker->state[0] != '\0' && strcmp(worker->state, "serving") != 0))
        return false;
    for (size_t i = 0; i < worker->n_queues; i++)
        if (strcmp(worker->queues[i], queue) == 0)
            return true;
    return false;
}

static bool lists(const char *list, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = list; (at = strstr(at, name)) != NULL; at++)
        if ((at == list || at[-1] == ' ') && (at[len] == '\0' || at[len] == ','))
            return true;
    return false;
}

typedef struct taken {
    const char *queue;
    char types[HF_REASON_TYPES_SIZE]; /* "a, b" */
    bool full;
} taken;

static void add_type(taken *t, const char *type)
{
    static const char others[] = ", and others";
    const size_t len = strlen(t->types);
    if (t->full || lists(t->types, type))
        return;
    t->full = len + strlen(type) + 2 + sizeof others > sizeof t->types;
    if (t->full)
        (void)snprintf(t->types + len, sizeof t->types - len, "%s",
                       others + (len == 0 ? 2 : 0));
    else
        (void)snprintf(t->types + len, sizeof t->types - len, "%s%s",
                       len == 0 ? "" : ", ", type);
}

static void on_worker(const hf_worker_info *worker, void *arg)
{
    taken *t = arg;
    for (size_t i = 0; serves(worker, t->queue) && i < worker->n_types; i++)
        add_type(t, worker->types[i]);
}

/* Only a help: without an answer there are none to tell. */
static void find_types(hf_admin *admin, taken *t)
{
    t->types[0] = '\0';
    if (hf_admin_workers(admin, on_worker, t, NULL) != HF_OK)
        t->types[0] = '\0';
    hf_text_plain(t->types);
}

static void on_shard(const hf_shard_info *shard, void *arg)
{
    (void)shard;
    ++*(unsigned *)arg;
}

/* Only a help, too. */
static unsigned count_shards(hf_admin *admin, const char *queue)
{
    unsigned n = 0;
    hf_err err = hf_admin_shards(admin, queue, on_shard, &n, NULL);
    return err == HF_OK ? n : 0;
}

/* Only a help, too. */
static bool follows_dead(hf_admin *admin, const hf_job_info *job)
{
    hf_job_info holder = {HF_JOB_INFO_INIT};
    return job->follows[0] != '\0' &&
           hf_admin_job(admin, job->queue, job->follows, &holder, NULL, NULL) == HF_OK &&
           holder.state == HF_STATE_DEAD;
}

enum { RUNNING_LOOKED = 100 };

typedef struct longest {
    int64_t now_ms;
    hf_reason_read *out;
} longest;

static void on_running(const hf_job_info *job, void *arg)
{
    longest *l = arg;
    hf_job_info copy = *job;
    const hf_job_why why = {HF_JOB_WHY_INIT, .job = &copy, .now_ms = l->now_ms};
    const int64_t since_ms = hf_why_held_since(&why);
    if (since_ms == 0 || (l->out->longest_ms != 0 && since_ms >= l->out->longest_ms))
        return;
    l->out->longest_ms = since_ms;
    memcpy(l->out->longest, job->id, sizeof l->out->longest);
}

/* Only a help, too. Of more running jobs than it looks at, none. */
static void find_longest(hf_admin *admin, const hf_job_why *why, hf_reason_read *out)
{
    longest l = {why->now_ms, out};
    char next[HF_CURSOR_SIZE] = "";
    if (hf_admin_list(admin, why->job->queue, HF_STATE_RUNNING, NULL, RUNNING_LOOKED,
                      on_running, &l, next, NULL) != HF_OK ||
        next[0] != '\0')
        out->longest[0] = '\0';
}

void hf_reason_read_for(hf_admin *admin, const hf_job_why *why, const hf_reason *reasons,
                        size_t n, hf_reason_read *out)
{
    taken got = {.queue = why->job->queue};
    *out = (hf_reason_read){.shards = 0};
    for (size_t i = 0; i < n; i++) {
        if (reasons[i] == HF_REASON_NO_WORKER_FOR_TYPE)
            find_types(admin, &got);
        if (hf_reason_is_limit(reasons[i]))
            out->shards = count_shards(admin, why->job->queue);
        if (reasons[i] == HF_REASON_BUSY)
            find_longest(admin, why, out);
    }
    memcpy(out->types, got.types, sizeof out->types);
    out->follows_dead = follows_dead(admin, why->job);
}

hf_reason_facts hf_reason_facts_of(const hf_job_why *why, const hf_reason_read *read,
                                   const char *queue)
{
    return (hf_reason_facts){.why = why,
                             .queue = queue,
                             .types = read->types,
                             .shards = read->shards,
                             .follows_dead = read->follows_dead,
                             .longest = read->longest,
                             .longest_ms = read->longest_ms};
}
