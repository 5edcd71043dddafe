/* cmd_dead.c - `holdfast dead ...`: jobs that are not tried any more, and trying them
 * again. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/job_out.h"

enum { PAGE = 50, SLICE = 200 };

/* ---- list ---- */

typedef struct sieve {
    hf_table table;
    bool json;
    const char *type; /* NULL: every type */
    int64_t since_ms; /* 0: from the start */
    int64_t now_ms;
    size_t wanted, kept, seen;
    char last[HF_ID_SIZE];
} sieve;

static void on_job(const hf_job_info *job, void *arg)
{
    sieve *s = arg;
    s->seen++;
    memcpy(s->last, job->id, sizeof s->last);
    if (s->kept == s->wanted || job->due_ms < s->since_ms ||
        (s->type != NULL && strcmp(s->type, job->type) != 0))
        return;
    s->kept++;
    if (s->json)
        hf_job_print_json(job);
    else
        hf_job_add_row(&s->table, job, s->now_ms);
}

/* Slice by slice, until there are enough that pass, or no more. */
static hf_err sift(hf_admin *admin, const char *queue, const char *after, sieve *s)
{
    char from[HF_ID_SIZE];
    hf_err err = HF_OK;
    do {
        s->seen = 0;
        err = hf_admin_list(admin, queue, HF_STATE_DEAD, after, SLICE, on_job, s);
        memcpy(from, s->last, sizeof from);
        after = from;
    } while (err == HF_OK && s->seen == SLICE && s->kept < s->wanted);
    return err;
}

static int list(const hf_cli *cli, const char *queue)
{
    hf_admin *admin = NULL;
    int code = hf_cli_admin(cli, &admin);
    if (code != HF_EXIT_OK)
        return code;
    int64_t since = hf_argv_number(cli->args, "since", -1);
    sieve s = {.json = cli->json,
               .type = hf_argv_text(cli->args, "type"),
               .now_ms = hf_wall_ms(),
               .wanted = (size_t)hf_argv_number(cli->args, "limit", PAGE)};
    s.since_ms = since < 0 ? 0 : s.now_ms - since;
    hf_job_table(&s.table);
    hf_err err = sift(admin, queue, hf_argv_text(cli->args, "after"), &s);
    if (!hf_table_print(&s.table, stdout) && err == HF_OK)
        err = HF_NOMEM;
    if (err != HF_OK)
        code = hf_cli_fail(cli, err, hf_admin_detail(admin));
    else if (s.kept == 0 && !cli->json)
        printf("%s: no such dead jobs\n", queue);
    hf_admin_close(admin);
    return code;
}

int hf_cmd_dead_list(hf_cli *cli)
{
    const char *queue = hf_cli_queue(cli);
    const char *type = hf_argv_text(cli->args, "type");
    const char *after = hf_argv_text(cli->args, "after");
    int code = queue == NULL ? HF_EXIT_DATA : HF_EXIT_OK;
    if (code == HF_EXIT_OK && type != NULL)
        code = hf_cli_check_name(cli, "a type", type);
    if (code == HF_EXIT_OK && after != NULL)
        code = hf_cli_check_name(cli, "a job's id", after);
    return code == HF_EXIT_OK ? list(cli, queue) : code;
}

/* ---- retry ---- */

static int retry(const hf_cli *cli, const char *queue, const char *id)
{
    hf_admin *admin = NULL;
    size_t n = 0;
    int code = hf_cli_admin(cli, &admin);
    if (code != HF_EXIT_OK)
        return code;
    hf_err err = hf_admin_revive(admin, queue, id, &n);
    if (err == HF_GONE)
        code =
            hf_cli_say(cli, HF_EXIT_NO, "", "no dead job '%s' in queue '%s'", id, queue);
    else if (err != HF_OK)
        code = hf_cli_fail(cli, err, hf_admin_detail(admin));
    else if (cli->json)
        hf_out_json(stdout,
                    json_pack("{s:s, s:I}", "queue", queue, "retried", (json_int_t)n));
    else
        printf("%s: %zu %s back in the line\n", queue, n, n == 1 ? "job is" : "jobs are");
    hf_admin_close(admin);
    return code;
}

int hf_cmd_dead_retry(hf_cli *cli)
{
    const char *queue = hf_cli_queue(cli);
    const char *id = hf_argv_operand(cli->args, 0);
    int code = queue == NULL ? HF_EXIT_DATA : HF_EXIT_OK;
    if (code == HF_EXIT_OK && id != NULL)
        code = hf_cli_check_name(cli, "a job's id", id);
    return code == HF_EXIT_OK ? retry(cli, queue, id) : code;
}
