/* wait.c - see wait.h. */
#include "cli/enqueue/wait.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/text.h"
#include "cli/common/result.h"
#include "cli/out.h"
#include "seen/offer.h"

/* How it ended, for programs. A job that is done says so by the exit code. */
static void put_outcome(const hf_cli *cli, const char *queue, const char *id,
                        const char *outcome)
{
    if (cli->json)
        hf_out_json(stdout, json_pack("{s:s, s:s, s:s}", "id", id, "queue", queue,
                                      "outcome", outcome));
}

static int tell_death(const hf_cli *cli, hf_admin *admin, const char *queue,
                      const char *id)
{
    hf_job_info info = {HF_JOB_INFO_INIT};
    char command[HF_OFFER_SIZE], hint[HF_OFFER_SIZE + 32];
    hf_err err = hf_admin_job(admin, queue, id, &info, NULL, cli->detail);
    snprintf(hint, sizeof hint, "'%s' runs it again",
             hf_offer(command, "job retry", id, queue, ""));
    return hf_cli_say(cli, HF_EXIT_NO, hint, "%s is dead: %s", id,
                      err == HF_OK && info.error[0] != '\0' ? hf_text_gist(info.error)
                                                            : "no error was recorded");
}

static int tell_end(const hf_cli *cli, hf_admin *admin, const char *queue, const char *id,
                    hf_err err)
{
    static const struct {
        hf_err err;
        hf_exit code;
        const char *outcome, *text;
    } ends[] = {
        {HF_DEAD, HF_EXIT_NO, "dead", ""},
        {HF_CANCEL, HF_EXIT_NO, "cancelled", "was cancelled"},
        {HF_DELETED, HF_EXIT_NO, "deleted", "was deleted"},
        {HF_EXPIRED, HF_EXIT_NO, "expired", "did not start in time: it expired"},
        {HF_GONE, HF_EXIT_UNKNOWN, "unknown",
         "is not there, and nothing tells how it ended"},
    };
    for (size_t i = 0; i < HF_COUNT(ends); i++) {
        if (ends[i].err != err)
            continue;
        put_outcome(cli, queue, id, ends[i].outcome);
        return err == HF_DEAD
                   ? tell_death(cli, admin, queue, id)
                   : hf_cli_say(cli, ends[i].code,
                                err == HF_GONE ? "Redis has lost data, or the end was "
                                                 "longer ago than it remembers"
                                               : "",
                                "%s %s", id, ends[i].text);
    }
    return hf_cli_fail(cli, err, cli->detail);
}

int hf_enqueue_end(const hf_cli *cli, const char *queue, const hf_enqueue_result *job)
{
    hf_admin *admin = NULL;
    void *bytes = NULL;
    size_t len = 0;
    hf_result_kind kind = HF_RESULT_NONE;
    int code = hf_cli_admin(cli, &admin);
    if (code != HF_EXIT_OK)
        return code;
    (void)fflush(stdout); /* the reader of a pipe may wait for the id */
    hf_err err = hf_admin_wait_result(admin, queue, job->id, job->accepted_ms, 0, &bytes,
                                      &len, &kind, cli->detail);
    if (err != HF_OK)
        code = tell_end(cli, admin, queue, job->id, err);
    else if (hf_argv_has(cli->args, "result") && bytes == NULL)
        code = hf_cli_say(cli, HF_EXIT_NO, "--keep keeps it for longer",
                          "%s is done, and its result is not kept any more", job->id);
    else if (hf_argv_has(cli->args, "result"))
        hf_result_put(cli, queue, job->id, bytes, len, kind);
    free(bytes);
    hf_admin_close(admin);
    return code;
}
