/* remove.c - `holdfast queue remove`. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/common/confirm.h"
#include "cli/out.h"

static int ask(const hf_cli *cli, hf_admin *admin, const char *queue)
{
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    if (!hf_confirm_wanted(cli))
        return HF_EXIT_OK;
    hf_err err = hf_admin_stats(admin, queue, &stats, cli->detail);
    if (err != HF_OK)
        return hf_cli_fail(cli, err, cli->detail);
    return hf_confirm(cli,
                      "Remove queue '%s' with its settings and counters (%" PRId64
                      " enqueued, %" PRId64 " done)?",
                      queue, stats.enqueued, stats.done);
}

static int remove_it(const hf_cli *cli, hf_admin *admin, const char *queue)
{
    hf_err err = hf_admin_remove(admin, queue, cli->detail);
    if (err == HF_GONE)
        return hf_cli_say(cli, HF_EXIT_NO, "'holdfast queue list' lists the queues", "%s",
                          cli->detail);
    if (err == HF_BUSY)
        return hf_cli_say(cli, HF_EXIT_NO,
                          "'holdfast queue purge' removes its jobs, 'holdfast cron "
                          "remove' a schedule; stop its workers",
                          "%s", cli->detail);
    if (err != HF_OK)
        return hf_cli_fail(cli, err, cli->detail);
    if (cli->json)
        hf_out_json(stdout, json_pack("{s:s, s:b}", "queue", queue, "removed", 1));
    else
        printf("%s: removed\n", queue);
    return HF_EXIT_OK;
}

int hf_cmd_queue_remove(hf_cli *cli)
{
    hf_admin *admin = NULL;
    const char *queue = hf_argv_operand(cli->args, 0);
    int code = hf_cli_check_name(cli, "a queue's name", queue);
    if (code == HF_EXIT_OK)
        code = hf_confirm_possible(cli);
    if (code == HF_EXIT_OK)
        code = hf_cli_admin(cli, &admin);
    if (code == HF_EXIT_OK)
        code = ask(cli, admin, queue);
    if (code == HF_EXIT_OK)
        code = remove_it(cli, admin, queue);
    hf_admin_close(admin);
    return code;
}
