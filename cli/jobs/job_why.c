/* job_why.c - `holdfast job why`: the reasons why a job does not run, the most important
 * first. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/jobs/job_find.h"
#include "cli/jobs/job_out.h"
#include "cli/jobs/job_why.h"
#include "seen/holder.h"
#include "seen/reason_read.h"

enum { WORD_WIDTH = 20 };

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

json_t *hf_job_why_json(const hf_job_why *why, const hf_reason *reasons, size_t n)
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
        object = NULL;
    }
    return object;
}

/* ---- the command ---- */

static void print_line(const hf_reason_facts *facts, hf_reason reason)
{
    char text[HF_REASON_TEXT_SIZE];
    bool bright = hf_out_is_bright(stdout);
    printf("%s%-*s%s%s\n", bright ? "\033[1m" : "", WORD_WIDTH, hf_reason_word(reason),
           bright ? "\033[0m" : "", hf_reason_text(facts, reason, text));
}

static void print_lines(const hf_cli *cli, hf_admin *admin, const hf_job_why *why,
                        const hf_reason *reasons, size_t n)
{
    hf_reason_read read;
    hf_reason_read_for(admin, why, reasons, n, &read);
    const hf_reason_facts facts =
        hf_reason_facts_of(why, &read, hf_argv_text(cli->args, "queue"));
    for (size_t i = 0; i < n; i++)
        print_line(&facts, reasons[i]);
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
        hf_out_json(stdout, hf_job_why_json(&why, reasons, n));
    else
        print_lines(cli, admin, &why, reasons, n);
    return HF_EXIT_OK;
}

int hf_cmd_job_why(hf_cli *cli)
{
    return hf_job_command(cli, why);
}
