/* job_find.c - see job_find.h. */
#include "cli/jobs/job_find.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "seen/offer.h"

enum { NAMED_MAX = 8, NAMES_SIZE = NAMED_MAX * (HF_ID_SIZE + 8) };

int hf_job_command(const hf_cli *cli, int (*act)(const hf_cli *cli, hf_admin *admin))
{
    hf_admin *admin = NULL;
    const char *queue = hf_argv_text(cli->args, "queue");
    int code = hf_cli_check_name(cli, "a job's id", hf_argv_operand(cli->args, 0));
    if (code == HF_EXIT_OK)
        code = hf_cli_check_name(cli, "a queue's name", queue);
    if (code == HF_EXIT_OK)
        code = hf_cli_admin(cli, &admin);
    if (code == HF_EXIT_OK)
        code = act(cli, admin);
    hf_admin_close(admin);
    return code;
}

int hf_job_not_found(const hf_cli *cli, const char *queue)
{
    return hf_cli_say(cli, HF_EXIT_NO, "it is done, was removed, or was never accepted",
                      "no job '%s' in %s%s%s", hf_argv_operand(cli->args, 0),
                      queue != NULL ? "queue '" : "any queue", queue != NULL ? queue : "",
                      queue != NULL ? "'" : "");
}

int hf_job_gone(const hf_cli *cli, const hf_job_info *job)
{
    char command[HF_OFFER_SIZE];
    const char *queue = hf_argv_text(cli->args, "queue");
    return job->state == HF_STATE_DONE
               ? hf_cli_say(cli, HF_EXIT_NO, "holdfast job result ID prints its result",
                            "%s is done: only '%s' changes it", job->id,
                            hf_offer(command, "job delete", job->id, queue, ""))
               : hf_job_not_found(cli, job->queue);
}

/* ---- in every queue ---- */

typedef struct finding {
    const char *id;
    hf_job_info *job; /* the first one that was found */
    size_t n;
    char queues[NAMES_SIZE]; /* "'a' and 'b'", of the first few */
} finding;

static void add_queue(finding *f, const char *name)
{
    size_t len = strlen(f->queues);
    if (f->n++ < NAMED_MAX)
        (void)snprintf(f->queues + len, sizeof f->queues - len, "%s'%s'",
                       f->n == 1 ? "" : " and ", name);
}

static hf_err look_into(const hf_cli *cli, hf_admin *admin, const char *queue, finding *f)
{
    hf_job_info other = {HF_JOB_INFO_INIT}; /* is never looked at */
    hf_err err =
        hf_admin_job(admin, queue, f->id, f->n == 0 ? f->job : &other, NULL, cli->detail);
    if (err == HF_OK)
        add_queue(f, queue);
    return err == HF_GONE ? HF_OK : err;
}

static hf_err look_everywhere(const hf_cli *cli, hf_admin *admin, finding *f)
{
    char **names;
    size_t n;
    hf_err err = hf_admin_queues(admin, &names, &n, cli->detail);
    if (err != HF_OK)
        return err;
    for (size_t i = 0; i < n && err == HF_OK; i++)
        err = look_into(cli, admin, names[i], f);
    free(names);
    return err;
}

int hf_job_find(const hf_cli *cli, hf_admin *admin, hf_job_info *out)
{
    const char *queue = hf_argv_text(cli->args, "queue");
    finding f = {.id = hf_argv_operand(cli->args, 0), .job = out};
    hf_err err = queue != NULL ? look_into(cli, admin, queue, &f)
                               : look_everywhere(cli, admin, &f);
    if (err != HF_OK)
        return hf_cli_fail(cli, err, cli->detail);
    if (f.n == 0)
        return hf_job_not_found(cli, queue);
    if (f.n > 1)
        return hf_cli_say(cli, HF_EXIT_USAGE, "name its queue with --queue",
                          "%s: expected --queue, since there is a job '%s' in %s%s",
                          cli->args->command->name, f.id, f.queues,
                          f.n > NAMED_MAX ? " and others" : "");
    return HF_EXIT_OK;
}
