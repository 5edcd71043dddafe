/* job_why.c - `holdfast job why`: the reasons why a job does not run, the most important
 * first. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/jobs/holder.h"
#include "cli/jobs/job_find.h"
#include "cli/jobs/job_out.h"
#include "cli/jobs/why_say.h"

enum { TYPES_SIZE = 1024 };

/* ---- the types that live workers take ---- */

static bool serves(const hf_worker_info *worker, const char *queue)
{
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
    char types[TYPES_SIZE]; /* "a, b" */
} taken;

static void on_worker(const hf_worker_info *worker, void *arg)
{
    taken *t = arg;
    if (worker->silent || !serves(worker, t->queue))
        return;
    for (size_t i = 0; i < worker->n_types; i++) {
        size_t len = strlen(t->types);
        if (len + HF_ID_SIZE + 8 < sizeof t->types && !lists(t->types, worker->types[i]))
            (void)snprintf(t->types + len, sizeof t->types - len, "%s%s",
                           len == 0 ? "" : ", ", worker->types[i]);
    }
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

/* ---- --json ---- */

static json_t *holders(const hf_job_why *why)
{
    json_t *list = json_array();
    for (size_t i = 0; list != NULL && i < why->n_holders; i++) {
        hf_holder holder;
        hf_holder_read(why->holders[i], &holder);
        (void)json_array_append_new(
            list, json_pack("{s:o, s:o, s:I, s:I}", "id", hf_out_text(why->holders[i]),
                            "host", hf_out_text(holder.host), "pid",
                            (json_int_t)holder.pid, "jobs", (json_int_t)why->held[i]));
    }
    return list;
}

static json_t *words(const hf_reason *reasons, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; list != NULL && i < n; i++)
        (void)json_array_append_new(list, json_string(hf_reason_word(reasons[i])));
    return list;
}

static json_t *of_queue(const hf_job_why *why)
{
    return json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:o}",
                     "paused", (int)why->paused, "before", (json_int_t)why->before,
                     "max_running", (json_int_t)why->max_running, "running",
                     (json_int_t)why->running, "rate_limit", (json_int_t)why->rate_limit,
                     "rate_per_ms", (json_int_t)why->rate_per_ms, "next_token_ms",
                     hf_out_time(why->next_token_ms), "workers", (json_int_t)why->workers,
                     "workers_for_type", (json_int_t)why->workers_for_type, "slots",
                     (json_int_t)why->slots, "busy", (json_int_t)why->busy, "pools_down",
                     (json_int_t)why->pools_down, "holders", holders(why));
}

static void print_json(const hf_job_why *why, const hf_reason *reasons, size_t n)
{
    json_t *object = hf_job_json(why->job);
    json_t *rest =
        json_pack("{s:o, s:o, s:o, s:b, s:I}", "reasons", words(reasons, n),
                  "held_since_ms", hf_out_time(hf_why_held_since(why)), "locked_until_ms",
                  hf_out_time(why->locked_until_ms), "cancelling", (int)why->cancelling,
                  "now_ms", (json_int_t)why->now_ms);
    json_t *queue = of_queue(why);
    bool whole = object != NULL && rest != NULL && queue != NULL &&
                 json_object_update(object, queue) == 0 &&
                 json_object_update(object, rest) == 0;
    json_decref(rest);
    json_decref(queue);
    if (!whole) {
        json_decref(object);
        object = NULL; /* the reader gets an error instead */
    }
    hf_out_json(stdout, object);
}

/* ---- the command ---- */

static void print_lines(const hf_cli *cli, hf_admin *admin, const hf_job_why *why,
                        const hf_reason *reasons, size_t n)
{
    const hf_queue_words words = hf_job_queue_words(cli);
    taken got = {.queue = why->job->queue};
    unsigned shards = 0;
    for (size_t i = 0; i < n; i++) {
        if (reasons[i] == HF_REASON_NO_WORKER_FOR_TYPE)
            find_types(admin, &got);
        if (reasons[i] == HF_REASON_MAX_RUNNING || reasons[i] == HF_REASON_RATE)
            shards = count_shards(admin, why->job->queue);
    }
    const hf_why_say say = {.why = why,
                            .with_queue = words.text,
                            .types = got.types,
                            .shards = shards,
                            .follows_dead = follows_dead(admin, why->job)};
    for (size_t i = 0; i < n; i++)
        hf_why_say_reason(&say, reasons[i]);
}

static int why(const hf_cli *cli, hf_admin *admin)
{
    hf_job_info job = {HF_JOB_INFO_INIT};
    hf_job_why why = {HF_JOB_WHY_INIT, .job = &job};
    hf_reason reasons[HF_REASONS];
    int code = hf_job_find(cli, admin, &job);
    if (code != HF_EXIT_OK)
        return code;
    char queue[HF_ID_SIZE], id[HF_ID_SIZE];
    memcpy(queue, job.queue, sizeof queue);
    memcpy(id, job.id, sizeof id);
    hf_err err = hf_admin_why(admin, queue, id, &why, cli->detail);
    if (err == HF_GONE)
        return hf_job_not_found(cli, queue);
    if (err != HF_OK)
        return hf_cli_fail(cli, err, cli->detail);
    size_t n = hf_why_reasons(&why, cli->config->worker.poison, reasons);
    if (cli->json)
        print_json(&why, reasons, n);
    else
        print_lines(cli, admin, &why, reasons, n);
    return HF_EXIT_OK;
}

int hf_cmd_job_why(hf_cli *cli)
{
    return hf_job_command(cli, why);
}
