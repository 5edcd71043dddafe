/* job_edit.c - `holdfast job edit`: a waiting job is changed. */
#include <stdio.h>

#include "base/buf.h"
#include "cli/cli.h"
#include "cli/common/payload.h"
#include "cli/common/priority.h"
#include "cli/jobs/job_find.h"
#include "cli/out.h"

static int check_usage(const hf_cli *cli)
{
    const hf_argv *args = cli->args;
    if (hf_argv_has(args, "in") && hf_argv_has(args, "at"))
        return hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "job edit: expected --in or --at, found both");
    if (args->n_operands < 2 && !hf_argv_has(args, "in") && !hf_argv_has(args, "at") &&
        !hf_argv_has(args, "priority"))
        return hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "job edit: expected a payload, --in, --at or --priority, found "
                          "none");
    return HF_EXIT_OK;
}

static void take_options(const hf_argv *args, hf_job_edit *edit)
{
    edit->set_due = hf_argv_has(args, "in") || hf_argv_has(args, "at");
    edit->delay_ms = hf_argv_number(args, "in", 0);
    edit->at_ms = hf_argv_number(args, "at", 0);
    edit->set_priority = hf_argv_has(args, "priority");
    if (edit->set_priority) /* it is one of its choices */
        (void)hf_priority_read(hf_argv_text(args, "priority"), &edit->priority);
}

static int tell(const hf_cli *cli, hf_err err, const hf_job_info *job)
{
    if (err == HF_RUNNING)
        return hf_cli_say(cli, HF_EXIT_NO, "", "%s runs: only a waiting job is changed",
                          job->id);
    if (err == HF_DEAD)
        return hf_cli_say(cli, HF_EXIT_NO, "",
                          "%s is dead: only a waiting job is changed", job->id);
    if (err == HF_PARKED)
        return hf_cli_say(cli, HF_EXIT_NO, "",
                          "%s is parked: enqueue it again with its unique key", job->id);
    if (err == HF_GONE)
        return hf_job_gone(cli, job);
    if (err != HF_OK)
        return hf_cli_fail(cli, err, cli->detail);
    if (cli->json)
        hf_out_json(stdout, json_pack("{s:s, s:s, s:s}", "id", job->id, "queue",
                                      job->queue, "outcome", "edited"));
    else
        printf("%s: changed\n", job->id);
    return HF_EXIT_OK;
}

static int edit(const hf_cli *cli, hf_admin *admin)
{
    hf_buf input;
    hf_job_info job = {HF_JOB_INFO_INIT};
    hf_job_edit change = {HF_JOB_EDIT_INIT};
    hf_buf_init(&input, (size_t)cli->config->payload_max);
    take_options(cli->args, &change);
    int code = hf_take_payload(cli, 1, &input, &change.payload, &change.payload_len);
    if (code == HF_EXIT_OK)
        code = hf_job_find(cli, admin, &job);
    if (code == HF_EXIT_OK)
        code = tell(cli, hf_admin_edit(admin, job.queue, job.id, &change, cli->detail),
                    &job);
    hf_buf_done(&input);
    return code;
}

int hf_cmd_job_edit(hf_cli *cli)
{
    int code = check_usage(cli);
    return code == HF_EXIT_OK ? hf_job_command(cli, edit) : code;
}
