/* job.c - `holdfast job ...`: one job, or a page of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "cli/cli.h"
#include "cli/jobs/job_find.h"
#include "cli/jobs/job_out.h"
#include "cli/out.h"

enum { PAGE = 50 };

/* Redis's time, by which jobs are due. Where the queue's figures are refused it is this
 * machine's: a table is worth more than the words in one column of it. */
static hf_err time_of(const hf_cli *cli, hf_admin *admin, const char *queue,
                      int64_t *now_ms)
{
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    hf_err err = hf_admin_stats(admin, queue, &stats, cli->detail);
    *now_ms = err == HF_OK ? stats.now_ms : hf_wall_ms();
    return err == HF_REDIS ? HF_OK : err;
}

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
    hf_err err = time_of(cli, admin, job.queue, &now_ms);
    if (err != HF_OK)
        return hf_cli_fail(cli, err, cli->detail);
    hf_job_print_whole(&job, now_ms);
    return HF_EXIT_OK;
}

int hf_cmd_job_show(hf_cli *cli)
{
    return hf_job_command(cli, show);
}

/* ---- list ---- */

typedef struct lister {
    hf_table table;
    bool json;
    size_t n;
    int64_t now_ms;
    char last[HF_ID_SIZE];
    hf_job_state last_state;
} lister;

static void on_job(const hf_job_info *job, void *arg)
{
    lister *l = arg;
    l->n++;
    memcpy(l->last, job->id, sizeof l->last);
    l->last_state = job->state;
    if (l->json)
        hf_job_print_json(job);
    else
        hf_job_add_row(&l->table, job, l->now_ms);
}

/* Without a state: all there are, those that run first. `delayed` has the retried ones.
 */
static hf_err list_all(const hf_cli *cli, hf_admin *admin, const char *queue,
                       size_t limit, lister *l, char *next)
{
    static const hf_job_state order[] = {HF_STATE_RUNNING, HF_STATE_READY,
                                         HF_STATE_DELAYED, HF_STATE_PARKED,
                                         HF_STATE_DEAD,    HF_STATE_DONE};
    hf_err err = HF_OK;
    for (size_t i = 0; i < HF_COUNT(order) && err == HF_OK && l->n < limit; i++)
        err = hf_admin_list(admin, queue, order[i], NULL, limit - l->n, on_job, l, next,
                            cli->detail);
    return err;
}

/* Beside the page, not in it. */
static void tell_rest(const hf_cli *cli, const char *rest)
{
    if (cli->json)
        hf_out_json(stderr, json_pack("{s:s}", "after", rest));
    else
        (void)fprintf(stderr,
                      "holdfast: 50000 jobs were looked at, there are more: go on with "
                      "--after %s\n",
                      rest);
}

/* The state to go on with. A list of all states has the retried among the delayed. */
static const char *state_to_name(int64_t asked, hf_job_state last)
{
    if (asked >= 0)
        return hf_job_state_name((hf_job_state)asked);
    return hf_job_state_name(last == HF_STATE_RETRY ? HF_STATE_DELAYED : last);
}

static int list(const hf_cli *cli, const char *queue)
{
    hf_admin *admin = NULL;
    const char *after = hf_argv_text(cli->args, "after");
    size_t limit = (size_t)hf_argv_number(cli->args, "limit", PAGE);
    int64_t state = hf_argv_number(cli->args, "state", -1);
    int code = hf_cli_admin(cli, &admin);
    if (code != HF_EXIT_OK)
        return code;
    lister l = {.json = cli->json};
    char next[HF_ID_SIZE] = "";
    hf_job_table(&l.table, state);
    hf_err err = cli->json ? HF_OK : time_of(cli, admin, queue, &l.now_ms);
    if (err == HF_OK)
        err = state < 0 ? list_all(cli, admin, queue, limit, &l, next)
                        : hf_admin_list(admin, queue, (hf_job_state)state, after, limit,
                                        on_job, &l, next, cli->detail);
    if (!hf_table_print(&l.table, stdout) && err == HF_OK)
        err = HF_NOMEM;
    if (err != HF_OK)
        code = hf_cli_fail(cli, err, cli->detail);
    else if (next[0] != '\0')
        tell_rest(cli, next);
    else if (l.n == 0 && !cli->json)
        printf("%s: no %sjobs\n", queue, state < 0 ? "" : "such ");
    else if (l.n == limit && !cli->json)
        hf_job_tell_more(queue, state_to_name(state, l.last_state), l.n, l.last);
    hf_admin_close(admin);
    return code;
}

int hf_cmd_job_list(hf_cli *cli)
{
    const char *after = hf_argv_text(cli->args, "after");
    const char *queue = hf_cli_queue(cli);
    if (queue == NULL)
        return HF_EXIT_DATA;
    if (after != NULL && !hf_argv_has(cli->args, "state"))
        return hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "--after: expected --state with it, found none");
    int code = hf_cli_check_name(cli, "a job's id", after);
    return code == HF_EXIT_OK ? list(cli, queue) : code;
}
