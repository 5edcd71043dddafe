/* logs.c - `holdfast job logs`: what the runs of a job have printed. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/jobs/job_find.h"
#include "cli/out.h"

enum { LOOK_AGAIN_MS = 500 };

typedef struct printer {
    const hf_job_info *job;
    bool json, plain; /* plain: no byte that a terminal could take for a command */
    uint64_t fence;   /* the run that was printed last; 0: none */
    uint64_t bytes;   /* of its log */
} printer;

static void print_json(const printer *p, const hf_log_part *part)
{
    char *text = strndup(part->text, part->len); /* to the first NUL */
    hf_out_json(stdout,
                json_pack("{s:o, s:o, s:I, s:I, s:I, s:o}", "job",
                          hf_out_text(p->job->id), "queue", hf_out_text(p->job->queue),
                          "attempt", (json_int_t)part->attempt, "fence",
                          (json_int_t)part->fence, "from", (json_int_t)part->from, "text",
                          hf_out_text(text == NULL ? "" : text)));
    free(text);
}

static void print_text(const printer *p, const hf_log_part *part)
{
    if (!p->plain) {
        (void)fwrite(part->text, 1, part->len, stdout);
        return;
    }
    for (size_t i = 0; i < part->len;) {
        const char *at = part->text + i; /* a NUL follows the last byte */
        size_t len = *at == '\n' || *at == '\t' ? 0 : hf_control_len(at);
        putchar(len == 0 && *at != '\0' ? *at : ' ');
        i += len == 0 ? 1 : len;
    }
}

static void on_part(const hf_log_part *part, void *arg)
{
    printer *p = arg;
    if (p->json) {
        print_json(p, part);
        return;
    }
    if (part->fence != p->fence)
        printf("==> attempt %" PRIu32 " <==\n", part->attempt);
    uint64_t known = part->fence == p->fence ? p->bytes : 0;
    if (part->from > known)
        printf("==> %" PRIu64 " bytes are not kept <==\n", part->from - known);
    print_text(p, part);
    p->fence = part->fence;
    p->bytes = part->from + part->len;
}

/* Until the job is gone or dead. */
static int show(const hf_cli *cli, hf_admin *admin)
{
    const struct timespec pause = {.tv_nsec = LOOK_AGAIN_MS * 1000000L};
    hf_job_info job = {HF_JOB_INFO_INIT};
    hf_log_place place = {HF_LOG_PLACE_INIT};
    bool follow = hf_argv_has(cli->args, "follow");
    int code = hf_job_find(cli, admin, &job);
    if (code != HF_EXIT_OK)
        return code;
    printer p = {.job = &job, .json = cli->json, .plain = isatty(STDOUT_FILENO) == 1};
    hf_err err =
        hf_admin_logs(admin, job.queue, job.id, &place, on_part, &p, cli->detail);
    while (err == HF_OK && follow && !place.ended && fflush(stdout) == 0) {
        (void)nanosleep(&pause, NULL);
        err = hf_admin_logs(admin, job.queue, job.id, &place, on_part, &p, cli->detail);
    }
    return err == HF_OK || err == HF_GONE ? HF_EXIT_OK
                                          : hf_cli_fail(cli, err, cli->detail);
}

int hf_cmd_job_logs(hf_cli *cli)
{
    return hf_job_command(cli, show);
}
