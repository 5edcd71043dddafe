/* dead.c - `holdfast dead list`: jobs that are not tried any more. What is done to
 * them is in dead_many.c. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/jobs/dead_sift.h"
#include "cli/jobs/job_out.h"

enum { PAGE = 50 };

typedef struct lister {
    hf_table table;
    bool json;
    int64_t now_ms;
    char last[HF_ID_SIZE];
} lister;

static void on_job(const hf_job_info *job, void *arg)
{
    lister *l = arg;
    memcpy(l->last, job->id, sizeof l->last);
    if (l->json)
        hf_job_print_json(job);
    else
        hf_job_add_row(&l->table, job, l->now_ms);
}

static int list(const hf_cli *cli, hf_admin *admin, const char *queue)
{
    hf_queue_stats stats;
    size_t n = 0;
    hf_err err = hf_admin_stats(admin, queue, &stats); /* for Redis's time */
    if (err != HF_OK)
        return hf_cli_fail(cli, err, hf_admin_detail(admin));
    hf_dead_filter filter = hf_dead_filter_of(cli, stats.now_ms, PAGE);
    lister l = {.json = cli->json, .now_ms = stats.now_ms};
    hf_job_table(&l.table, true);
    err = hf_dead_sift(admin, queue, &filter, hf_argv_text(cli->args, "after"), on_job,
                       &l, &n);
    if (!hf_table_print(&l.table, stdout) && err == HF_OK)
        err = HF_NOMEM;
    if (err != HF_OK)
        return hf_cli_fail(cli, err, hf_admin_detail(admin));
    bool some = filter.type != NULL || filter.since_ms > 0;
    if (n == 0 && !cli->json)
        printf("%s: no %sdead jobs\n", queue, some ? "such " : "");
    if (n == filter.limit && !cli->json)
        hf_job_tell_more(queue, NULL, n, l.last);
    return HF_EXIT_OK;
}

int hf_cmd_dead_list(hf_cli *cli)
{
    hf_admin *admin = NULL;
    const char *after = hf_argv_text(cli->args, "after");
    int code = hf_dead_check(cli);
    if (code == HF_EXIT_OK && after != NULL)
        code = hf_cli_check_name(cli, "a job's id", after);
    if (code == HF_EXIT_OK)
        code = hf_cli_admin(cli, &admin);
    if (code == HF_EXIT_OK)
        code = list(cli, admin, hf_cli_queue(cli));
    hf_admin_close(admin);
    return code;
}
