/* job_change.c - `holdfast job cancel`, `delete` and `retry`: changes of one job. */
#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/common/confirm.h"
#include "cli/jobs/job_find.h"
#include "cli/jobs/job_out.h"
#include "seen/holder.h"
#include "seen/offer.h"

/* The result, where one word says everything. */
static int tell(const hf_cli *cli, const hf_job_info *job, const char *outcome,
                const char *text)
{
    if (cli->json)
        hf_out_json(stdout, json_pack("{s:s, s:s, s:s}", "id", job->id, "queue",
                                      job->queue, "outcome", outcome));
    else
        printf("%s: %s\n", job->id, text);
    return HF_EXIT_OK;
}

/* ---- cancel ---- */

/* A holder renews after a third of the lease and learns of the request then, so it takes
 * at most a third of the lease. */
static int64_t hears_by(const hf_job_info *job)
{
    return job->due_ms - job->lease_remaining_ms + job->lease_remaining_ms / 3;
}

static void tell_asked(const hf_cli *cli, const hf_job_info *job)
{
    char who[HF_HOLDER_TEXT], soon[HF_WHEN_SIZE], end[HF_MOMENT_SIZE];
    int64_t now = job->due_ms - job->lease_remaining_ms;
    hf_holder holder;
    hf_holder_read(job->holder, &holder);
    hf_holder_text(job->holder, who);
    if (cli->json) {
        hf_out_json(stdout,
                    json_pack("{s:s, s:s, s:s, s:o, s:o, s:I, s:o, s:o}", "id", job->id,
                              "queue", job->queue, "outcome", "asked", "holder",
                              hf_out_text(job->holder), "host", hf_out_text(holder.host),
                              "pid", (json_int_t)holder.pid, "hears_by_ms",
                              hf_out_time(hears_by(job)), "lease_end_ms",
                              hf_out_time(job->due_ms)));
        return;
    }
    hf_format_moment(job->due_ms, now, end);
    hf_format_when(hears_by(job), now, soon);
    printf(
        "%s: runs, and was asked to end: its holder %s learns of it %s at the latest; if "
        "that is gone, it ends with its lease at %s\n",
        job->id, who, soon, end);
}

/* Until it has ended, however long that takes; ^C ends the waiting, and nothing else. */
static int wait_for_end(const hf_cli *cli, hf_admin *admin, const hf_job_info *job,
                        int64_t accepted_ms)
{
    (void)fflush(stdout); /* the reader of a pipe needs it now */
    hf_err err = hf_admin_wait(admin, job->queue, job->id, accepted_ms, 0, cli->detail);
    if (err == HF_CANCEL)
        return tell(cli, job, "cancelled", "cancelled");
    if (err == HF_OK)
        return tell(cli, job, "done", "done before it could be ended");
    if (err == HF_DELETED)
        return tell(cli, job, "deleted", "deleted before it could be ended");
    if (err == HF_GONE)
        return hf_cli_say(cli, HF_EXIT_UNKNOWN, "", "%s: %s", job->id, cli->detail);
    if (err == HF_DEAD)
        return hf_cli_say(cli, HF_EXIT_NO, "holdfast job show ID shows details",
                          "%s died before it could be ended: %s", job->id, cli->detail);
    return hf_cli_fail(cli, err, cli->detail);
}

static int cancel(const hf_cli *cli, hf_admin *admin)
{
    char command[HF_OFFER_SIZE];
    hf_job_info job = {HF_JOB_INFO_INIT}, holding = {HF_JOB_INFO_INIT};
    int code = hf_job_find(cli, admin, &job);
    if (code != HF_EXIT_OK)
        return code;
    hf_err err = hf_admin_cancel(admin, job.queue, job.id, &holding, cli->detail);
    switch (err) {
    case HF_OK:
        return tell(cli, &job, "cancelled", "cancelled");
    case HF_RUNNING:
        tell_asked(cli, &holding);
        return hf_argv_has(cli->args, "wait")
                   ? wait_for_end(cli, admin, &job, holding.accepted_ms)
                   : HF_EXIT_OK;
    case HF_DEAD:
        return hf_cli_say(cli, HF_EXIT_NO, "holdfast dead list shows why it died",
                          "%s is dead, and will not run: '%s' removes it", job.id,
                          hf_offer(command, "job delete", job.id,
                                   hf_argv_text(cli->args, "queue"), ""));
    case HF_GONE:
        return hf_job_gone(cli, &job);
    default:
        return hf_cli_fail(cli, err, cli->detail);
    }
}

/* ---- delete ---- */

static int refuse_running(const hf_cli *cli, const hf_job_info *job)
{
    char who[HF_HOLDER_TEXT], command[HF_OFFER_SIZE];
    hf_holder_text(job->holder, who);
    return hf_cli_say(
        cli, HF_EXIT_NO, "holdfast job cancel ID ends it",
        "%s runs (%s), and a running job is not removed: '%s' ends it", job->id, who,
        hf_offer(command, "job cancel", job->id, hf_argv_text(cli->args, "queue"), ""));
}

static int delete (const hf_cli *cli, hf_admin *admin)
{
    hf_job_info job = {HF_JOB_INFO_INIT}, holding = {HF_JOB_INFO_INIT};
    int code = hf_job_find(cli, admin, &job);
    if (code != HF_EXIT_OK)
        return code;
    if (job.state == HF_STATE_RUNNING)
        return refuse_running(cli, &job);
    code = hf_confirm(cli, "Delete job '%s' (%s, %s) of queue '%s'?", job.id, job.type,
                      hf_job_state_name(job.state), job.queue);
    if (code != HF_EXIT_OK)
        return code;
    hf_err err = hf_admin_delete(admin, job.queue, job.id, &holding, cli->detail);
    if (err == HF_RUNNING) /* it has been claimed meanwhile */
        return refuse_running(cli, &holding);
    if (err == HF_GONE)
        return hf_job_not_found(cli, job.queue);
    return err == HF_OK ? tell(cli, &job, "deleted", "deleted")
                        : hf_cli_fail(cli, err, cli->detail);
}

/* ---- retry ---- */

static int retry(const hf_cli *cli, hf_admin *admin)
{
    hf_job_info job = {HF_JOB_INFO_INIT};
    int code = hf_job_find(cli, admin, &job);
    if (code != HF_EXIT_OK)
        return code;
    hf_err err = hf_admin_retry(admin, job.queue, job.id, cli->detail);
    if (err == HF_RUNNING)
        return hf_cli_say(cli, HF_EXIT_NO, "", "%s runs already", job.id);
    if (err == HF_PARKED)
        return hf_cli_say(cli, HF_EXIT_NO, "",
                          "%s follows %s, which holds its unique key, and stays parked",
                          job.id, job.follows);
    if (err == HF_EXISTS)
        return hf_cli_say(cli, HF_EXIT_NO, "",
                          "%s is dead, and stays so: another job holds its unique key",
                          job.id);
    if (err == HF_GONE)
        return hf_job_gone(cli, &job);
    return err == HF_OK ? tell(cli, &job, "retried", "due now")
                        : hf_cli_fail(cli, err, cli->detail);
}

/* ---- the commands ---- */

int hf_cmd_job_cancel(hf_cli *cli)
{
    return hf_job_command(cli, cancel);
}

int hf_cmd_job_delete(hf_cli *cli)
{
    int code = hf_confirm_possible(cli);
    return code == HF_EXIT_OK ? hf_job_command(cli, delete) : code;
}

int hf_cmd_job_retry(hf_cli *cli)
{
    return hf_job_command(cli, retry);
}
