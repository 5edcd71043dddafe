/* job.c - `holdfast job ...`: one job, or a page of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/jobs/job_find.h"
#include "cli/jobs/job_out.h"
#include "cli/jobs/page.h"
#include "cli/out.h"

enum { PAGE = 50 };

/* ---- show ---- */

static int print_payload(const hf_cli *cli, hf_admin *admin, hf_job_info *job)
{
    void *payload = NULL;
    char queue[HF_ID_SIZE];
    memcpy(queue, job->queue, sizeof queue);
    hf_err err = hf_admin_job(admin, queue, hf_argv_operand(cli->args, 0), job, &payload,
                              cli->detail);
    if (err == HF_GONE)
        return hf_job_not_found(cli, queue);
    if (err != HF_OK)
        return hf_cli_fail(cli, err, cli->detail);
    fwrite(payload, 1, job->payload_len, stdout);
    free(payload);
    return HF_EXIT_OK;
}

static int show(const hf_cli *cli, hf_admin *admin)
{
    hf_job_info job = {HF_JOB_INFO_INIT};
    int code = hf_job_find(cli, admin, &job);
    if (code != HF_EXIT_OK)
        return code;
    if (hf_argv_has(cli->args, "payload") && job.state == HF_STATE_DONE)
        return hf_cli_say(cli, HF_EXIT_NO, "",
                          "%s is done, and its payload is not kept: 'holdfast job result "
                          "%s' prints its result",
                          job.id, job.id);
    if (hf_argv_has(cli->args, "payload"))
        return print_payload(cli, admin, &job);
    if (cli->json) {
        hf_job_print_json(&job);
        return HF_EXIT_OK;
    }
    int64_t now_ms;
    code = hf_page_time(cli, admin, job.queue, &now_ms);
    if (code == HF_EXIT_OK)
        hf_job_print_whole(&job, now_ms);
    return code;
}

int hf_cmd_job_show(hf_cli *cli)
{
    return hf_job_command(cli, show);
}

/* ---- list ---- */

typedef struct lister {
    hf_table table;
    bool json;
    int64_t now_ms;
} lister;

static void on_job(const hf_job_info *job, void *arg)
{
    lister *l = arg;
    if (l->json)
        hf_job_print_json(job);
    else
        hf_job_add_row(&l->table, job, l->now_ms);
}

static int list(const hf_cli *cli, hf_admin *admin)
{
    /* Those that run first. `delayed` has the retried ones. */
    static const hf_job_state all[] = {HF_STATE_RUNNING, HF_STATE_READY, HF_STATE_DELAYED,
                                       HF_STATE_PARKED,  HF_STATE_DEAD,  HF_STATE_DONE};
    int64_t asked = hf_argv_number(cli->args, "state", -1);
    const hf_job_state one = asked < 0 ? HF_STATE_READY : (hf_job_state)asked;
    lister l = {.json = cli->json};
    const hf_page_opts opts = {.states = asked < 0 ? all : &one,
                               .n_states = asked < 0 ? HF_COUNT(all) : 1,
                               .limit = (size_t)hf_argv_number(cli->args, "limit", PAGE),
                               .cb = on_job,
                               .arg = &l};
    hf_page page;
    int code = hf_page_time(cli, admin, hf_argv_text(cli->args, "queue"), &l.now_ms);
    if (code != HF_EXIT_OK)
        return code;
    hf_job_table(&l.table, asked);
    code = hf_page_list(cli, admin, &opts, &page);
    if (!hf_table_print(&l.table, stdout) && code == HF_EXIT_OK)
        return hf_cli_fail(cli, HF_NOMEM, NULL);
    if (code == HF_EXIT_OK)
        hf_page_tell_end(cli, &page, asked < 0 ? "jobs" : "such jobs");
    return code;
}

int hf_cmd_job_list(hf_cli *cli)
{
    hf_admin *admin = NULL;
    int code = hf_cli_check_name(cli, "a queue's name", hf_argv_text(cli->args, "queue"));
    if (code == HF_EXIT_OK)
        code = hf_cli_admin(cli, &admin);
    if (code == HF_EXIT_OK)
        code = list(cli, admin);
    hf_admin_close(admin);
    return code;
}
