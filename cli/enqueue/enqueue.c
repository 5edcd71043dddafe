/* enqueue.c - `holdfast enqueue`: one job, and if asked for, waiting for its end.
 * Many jobs from a file are in cmd_bulk.c. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "cli/cli.h"
#include "cli/enqueue/cmd_bulk.h"
#include "cli/out.h"

/* ---- the payload ---- */

/* All of standard input; one byte more than allowed is enough to see that it is too much.
 */
static hf_err read_input(hf_buf *out)
{
    char chunk[16384];
    for (;;) {
        ssize_t n = read(STDIN_FILENO, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return HF_SYSTEM;
        if (n == 0)
            return hf_buf_err(out);
        hf_buf_add(out, chunk, (size_t)n);
        if (hf_buf_err(out) != HF_OK)
            return hf_buf_err(out);
    }
}

static int take_payload(const hf_cli *cli, hf_buf *input, hf_job *job)
{
    const char *payload = hf_argv_operand(cli->args, 1);
    size_t max = (size_t)cli->config->payload_max;
    hf_err err = HF_OK;
    if (payload != NULL && strcmp(payload, "-") == 0) {
        err = read_input(input);
        job->payload = input->len > 0 ? input->data : "";
        job->payload_len = input->len;
    } else if (payload != NULL) {
        job->payload = payload;
        job->payload_len = strlen(payload);
    }
    if (err == HF_SYSTEM)
        return hf_cli_say(cli, HF_EXIT_DATA, "",
                          "expected a payload on standard input, found "
                          "none (%s)",
                          strerror(errno));
    if (err == HF_TOOBIG || job->payload_len > max)
        return hf_cli_say(cli, HF_EXIT_DATA,
                          "limits.payload in the configuration raises it",
                          "expected a payload of at most %zu bytes, found more", max);
    return err == HF_OK ? HF_EXIT_OK : hf_cli_fail(cli, err, NULL);
}

/* ---- the job ---- */

static int take_options(const hf_cli *cli, hf_job *job)
{
    const hf_argv *args = cli->args;
    job->type = hf_argv_operand(args, 0);
    job->id = hf_argv_text(args, "id");
    job->delay_ms = hf_argv_number(args, "in", 0);
    job->at_ms = hf_argv_number(args, "at", 0);
    job->max_attempts = (uint32_t)hf_argv_number(args, "max-attempts", 0);
    job->timeout_ms = (uint32_t)hf_argv_number(args, "timeout", 0);
    job->queue = hf_cli_queue(cli);
    if (job->queue == NULL)
        return HF_EXIT_DATA;
    int code = hf_cli_check_name(cli, "a type", job->type);
    if (code == HF_EXIT_OK && job->id != NULL)
        code = hf_cli_check_name(cli, "a job's id", job->id);
    return code;
}

static int check_usage(const hf_cli *cli)
{
    const hf_argv *args = cli->args;
    if (args->n_operands == 0)
        return hf_cli_say(cli, HF_EXIT_USAGE, "holdfast enqueue --help says more",
                          "enqueue: expected TYPE or --bulk FILE, found neither");
    if (hf_argv_has(args, "in") && hf_argv_has(args, "at"))
        return hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "enqueue: expected --in or --at, found both");
    if (hf_argv_has(args, "run") || hf_argv_has(args, "atomic"))
        return hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "enqueue: expected --bulk with --run and "
                          "--atomic, found none");
    return HF_EXIT_OK;
}

static void print_id(const hf_cli *cli, const hf_job *job,
                     const hf_enqueue_result *result)
{
    if (!cli->json) {
        puts(result->id);
        return;
    }
    hf_out_json(stdout,
                json_pack("{s:s, s:s, s:s, s:b}", "id", result->id, "queue", job->queue,
                          "type", job->type, "existed", result->err != HF_OK));
}

/* An id that is there already is no failure, wherever it is. */
static bool is_there(hf_err err)
{
    return err == HF_OK || err == HF_EXISTS || err == HF_RUNNING || err == HF_DEAD;
}

static int send_one(const hf_cli *cli, const hf_job *job, hf_enqueue_result *result)
{
    char detail[HF_DETAIL_SIZE] = "";
    hf_producer *producer = NULL;
    hf_producer_opts opts = {0};
    hf_cli_fill_producer(cli, &opts);
    hf_err err = hf_producer_open(&producer, &opts, detail);
    if (err != HF_OK)
        return hf_cli_fail(cli, err, detail);
    err = hf_enqueue_wait(producer, job, 1, result, 0, detail);
    hf_producer_close(producer, NULL, NULL);
    if (!is_there(err))
        return hf_cli_fail(cli, err, detail);
    print_id(cli, job, result);
    return HF_EXIT_OK;
}

/* ---- waiting ---- */

static int tell_death(const hf_cli *cli, hf_admin *admin, const char *queue,
                      const char *id)
{
    hf_job_info info;
    char hint[2 * HF_ID_SIZE + 64];
    hf_err err = hf_admin_job(admin, queue, id, &info, NULL);
    snprintf(hint, sizeof hint, "'holdfast job retry %s -q %s' runs it again", id, queue);
    return hf_cli_say(cli, HF_EXIT_NO, hint, "%s is dead: %s", id,
                      err == HF_OK && info.error[0] != '\0' ? info.error
                                                            : "no error is told");
}

static int wait_for(const hf_cli *cli, const char *queue, const char *id)
{
    hf_admin *admin = NULL;
    int code = hf_cli_admin(cli, &admin);
    if (code != HF_EXIT_OK)
        return code;
    fflush(stdout); /* the id, for whoever waits for it in a pipe */
    hf_err err = hf_admin_wait(admin, queue, id, 0);
    if (err == HF_DEAD)
        code = tell_death(cli, admin, queue, id);
    else if (err == HF_CANCEL)
        code = hf_cli_say(cli, HF_EXIT_NO, "", "%s was cancelled or deleted", id);
    else if (err != HF_OK)
        code = hf_cli_fail(cli, err, hf_admin_detail(admin));
    hf_admin_close(admin);
    return code;
}

int hf_cmd_enqueue(hf_cli *cli)
{
    if (hf_argv_has(cli->args, "bulk"))
        return hf_cmd_bulk(cli);
    hf_buf input;
    hf_job job = {0};
    hf_enqueue_result result = {0};
    hf_buf_init(&input, (size_t)cli->config->payload_max);
    int code = check_usage(cli);
    if (code == HF_EXIT_OK)
        code = take_options(cli, &job);
    if (code == HF_EXIT_OK)
        code = take_payload(cli, &input, &job);
    if (code == HF_EXIT_OK)
        code = send_one(cli, &job, &result);
    hf_buf_done(&input);
    if (code == HF_EXIT_OK && hf_argv_has(cli->args, "wait"))
        code = wait_for(cli, job.queue, result.id);
    return code;
}
