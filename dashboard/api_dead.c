/* api_dead.c - the dead jobs by type and error. */
#include <stdlib.h>
#include <string.h>

#include "base/error_key.h"
#include "base/text.h"
#include "cli/out.h"
#include "dashboard/api.h"
#include "dashboard/overview.h"

enum {
    LOOKED_MAX = 10000,
    PAGE = 1000,
    GROUPS = 200, /* what belongs to none of them is counted */
    MINUTES = 60,
    MINUTE_MS = 60000
};

typedef struct group {
    uint64_t hash;
    char key[HF_ERROR_KEY_SIZE]; /* the error, without what differs from job to job */
    char queue[HF_ID_SIZE], type[HF_ID_SIZE], reason[16], sample[HF_ID_SIZE];
    size_t jobs;
    int64_t first_ms, last_ms;
    unsigned spark[MINUTES];
} group;

typedef struct grouper {
    group *groups; /* owned: GROUPS of them */
    size_t n, looked_at, rest;
    int64_t now_ms, since_ms;
} grouper;

static group *group_of(grouper *g, const hf_job_info *job, const char *key)
{
    const uint64_t hash = hf_hash_text(
        hf_hash_text(hf_hash_text(HF_HASH_START, key), job->type), job->queue);
    for (size_t i = 0; i < g->n; i++)
        if (g->groups[i].hash == hash && strcmp(g->groups[i].key, key) == 0 &&
            strcmp(g->groups[i].type, job->type) == 0 &&
            strcmp(g->groups[i].queue, job->queue) == 0)
            return &g->groups[i];
    if (g->n == GROUPS)
        return NULL;
    group *new = &g->groups[g->n++];
    new->hash = hash;
    memcpy(new->key, key, sizeof new->key);
    memcpy(new->queue, job->queue, sizeof new->queue);
    memcpy(new->type, job->type, sizeof new->type);
    memcpy(new->reason, job->reason, sizeof new->reason);
    new->first_ms = job->due_ms;
    return new;
}

static void on_dead(const hf_job_info *job, void *arg)
{
    char key[HF_ERROR_KEY_SIZE];
    grouper *g = arg;
    g->looked_at++;
    if (job->due_ms < g->since_ms)
        return;
    hf_error_key(job->error, key);
    group *of = group_of(g, job, key);
    if (of == NULL) {
        g->rest++;
        return;
    }
    const int64_t ago = (g->now_ms - job->due_ms) / MINUTE_MS;
    of->jobs++;
    of->first_ms = job->due_ms < of->first_ms ? job->due_ms : of->first_ms;
    if (job->due_ms >= of->last_ms) {
        of->last_ms = job->due_ms;
        memcpy(of->sample, job->id, sizeof of->sample);
    }
    if (ago >= 0 && ago < MINUTES)
        of->spark[MINUTES - 1 - ago]++;
}

/* All of them, or where there are too many those of the last hour: a list begins with
 * the oldest deaths. */
static hf_err read_queue(grouper *g, hf_reader *r, const hf_queue_stats *s)
{
    char next[HF_CURSOR_SIZE] = "";
    hf_err err = HF_OK;
    if ((size_t)s->dead > LOOKED_MAX)
        return hf_admin_deaths(r->admin, s->queue,
                               g->now_ms - (int64_t)MINUTES * MINUTE_MS, PAGE, on_dead, g,
                               r->detail);
    for (bool first = true; err == HF_OK && g->looked_at < LOOKED_MAX; first = false) {
        if (!first && next[0] == '\0')
            break;
        err = hf_admin_list(r->admin, s->queue, HF_STATE_DEAD, first ? NULL : next, PAGE,
                            on_dead, g, next, r->detail);
    }
    return err;
}

static int by_last(const void *a, const void *b)
{
    const group *x = a, *y = b;
    return x->last_ms > y->last_ms ? -1 : x->last_ms < y->last_ms;
}

static json_t *objects_of(const grouper *g)
{
    json_t *list = json_array();
    for (size_t i = 0; i < g->n; i++) {
        const group *of = &g->groups[i];
        json_t *spark = json_array();
        for (size_t m = 0; m < MINUTES; m++)
            (void)json_array_append_new(spark, json_integer(of->spark[m]));
        (void)json_array_append_new(
            list,
            json_pack("{s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:o, s:o}", "key",
                      hf_out_text(of->key), "queue", hf_out_text(of->queue), "type",
                      hf_out_text(of->type), "error", hf_out_text(of->key), "reason",
                      hf_out_text(of->reason), "jobs", (json_int_t)of->jobs, "first_ms",
                      (json_int_t)of->first_ms, "last_ms", (json_int_t)of->last_ms,
                      "sample_id", hf_out_text(of->sample), "spark", spark));
    }
    return list;
}

hf_err hf_api_dead_groups(hf_query *ask, hf_reader *r)
{
    bool good;
    int64_t since_ms;
    const char *only = hf_ask_name(ask, "queue", &good);
    if (!good)
        return HF_OK;
    if (!hf_target_duration(&ask->target, "since", 0, &since_ms))
        return hf_ask_refuse(ask, 400, "invalid", "since: expected a duration as 1h");
    hf_err err = hf_overview_read(r);
    if (err == HF_OK)
        err = hf_reader_open(r);
    grouper g = {.now_ms = hf_reader_now_ms(r),
                 .groups = err == HF_OK ? calloc(GROUPS, sizeof *g.groups) : NULL};
    if (err == HF_OK && g.groups == NULL)
        err = HF_NOMEM;
    if (err != HF_OK)
        return err;
    g.since_ms = since_ms == 0 ? 0 : g.now_ms - since_ms;
    const hf_facts *f = hf_overview_facts(r->overview);
    for (size_t i = 0; i < f->n_queues && err == HF_OK; i++) {
        const hf_queue_stats *s = &f->queues[i].stats;
        if (s->dead > 0 && (only == NULL || strcmp(only, s->queue) == 0))
            err = read_queue(&g, r, s);
    }
    qsort(g.groups, g.n, sizeof *g.groups, by_last);
    if (err == HF_OK)
        err = hf_ask_give(ask, r,
                          json_pack("{s:o, s:I, s:I}", "groups", objects_of(&g), "rest",
                                    (json_int_t)g.rest, "looked_at",
                                    (json_int_t)g.looked_at),
                          0);
    free(g.groups);
    return err;
}
