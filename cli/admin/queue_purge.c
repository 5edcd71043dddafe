/* queue_purge.c - `holdfast queue purge`: everything out of a queue but what runs. */
#include <inttypes.h>

#include "cli/cli.h"
#include "cli/common/confirm.h"
#include "cli/common/slices.h"

/* Exactly what will be lost, and what will not. */
static int ask(const hf_cli *cli, hf_admin *admin, const char *queue)
{
    hf_queue_stats stats;
    if (!hf_confirm_wanted(cli))
        return HF_EXIT_OK;
    hf_err err = hf_admin_stats(admin, queue, &stats);
    if (err != HF_OK)
        return hf_cli_fail(cli, err, hf_admin_detail(admin));
    return hf_confirm(cli,
                      "Remove all jobs of queue '%s' that do not run: %" PRId64
                      " waiting, %" PRId64 " dead? (%" PRId64 " running %s left alone)",
                      queue, stats.ready + stats.delayed, stats.dead, stats.running,
                      stats.running == 1 ? "is" : "are");
}

static int purge(const hf_cli *cli, hf_admin *admin, const char *queue)
{
    const hf_slices_words words = {
        .queue = queue, .key = "removed", .one = "job removed", .many = "jobs removed"};
    hf_slices slices;
    size_t n = 0;
    hf_slices_start(&slices, "jobs");
    hf_err err = hf_admin_purge(admin, queue, hf_slices_progress, &slices, &n);
    return hf_slices_end(&slices, cli, admin, &words, err, n);
}

int hf_cmd_queue_purge(hf_cli *cli)
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
        code = purge(cli, admin, queue);
    hf_admin_close(admin);
    return code;
}
