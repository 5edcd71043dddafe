/* cmd_queue_purge.c - `holdfast queue purge`: everything out of a queue but what runs. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/confirm.h"
#include "cli/out.h"
#include "cli/slices.h"

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

static void tell(const hf_cli *cli, const char *queue, size_t n, bool cut)
{
    if (cli->json)
        hf_out_json(stdout, json_pack("{s:s, s:I, s:b}", "queue", queue, "removed",
                                      (json_int_t)n, "complete", (int)!cut));
    else
        printf("%s: %zu %s removed%s\n", queue, n, n == 1 ? "job" : "jobs",
               cut ? ", then it was stopped" : "");
}

static int purge(const hf_cli *cli, hf_admin *admin, const char *queue)
{
    hf_slices slices;
    size_t n = 0;
    hf_slices_start(&slices, "jobs");
    hf_err err = hf_admin_purge(admin, queue, hf_slices_progress, &slices, &n);
    int signalled = hf_slices_end(&slices);
    if (err == HF_OK || n > 0)
        tell(cli, queue, n, slices.cut || err != HF_OK);
    if (err != HF_OK)
        return hf_cli_fail(cli, err, hf_admin_detail(admin));
    return signalled != 0 ? signalled : HF_EXIT_OK;
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
