/* check.c - `holdfast check`: hf_cli_setup() has already read the file and reported its
 * faults. This part checks the files of redis.tls, and reports that all is well. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/cli.h"
#include "cli/out.h"

static int print_reference(const hf_cli *cli)
{
    char *text = NULL;
    hf_err err = hf_config_reference(&text);
    if (err != HF_OK)
        return hf_cli_fail(cli, err, NULL);
    fputs(text, stdout);
    free(text);
    return HF_EXIT_OK;
}

/* For the URL that would be used; if that is no URL for TLS, for the file's own. Only its
 * scheme matters: its password may be in a file that only the worker can read. */
static hf_err check_tls(const hf_cli *cli, char detail[HF_DETAIL_SIZE])
{
    hf_server_opts used = cli->server;
    if (used.tls == NULL)
        hf_config_fill_server(cli->config, &used);
    bool by_tls = strncasecmp(used.url, "rediss", strlen("rediss")) == 0;
    const hf_server_opts opts = {
        HF_SERVER_OPTS_INIT, .url = by_tls ? "rediss://localhost" : "redis://localhost",
        .tls = used.tls};
    return used.tls == NULL ? HF_OK : hf_server_opts_check(&opts, detail);
}

int hf_cmd_check(hf_cli *cli)
{
    char detail[HF_DETAIL_SIZE] = "";
    if (hf_argv_has(cli->args, "reference"))
        return print_reference(cli);
    const char *file = cli->config->file;
    if (file == NULL)
        return hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "missing -c FILE (usage: holdfast check -c FILE)");
    hf_err err = check_tls(cli, detail);
    if (err != HF_OK)
        return hf_cli_fail(cli, err, detail);
    size_t handlers = cli->config->n_handlers;
    size_t queues =
        cli->config->n_queues == 0 ? 1 : cli->config->n_queues; /* `default` */
    size_t schedules = cli->config->n_schedules;
    char more[48] = "";
    if (schedules > 0)
        snprintf(more, sizeof more, ", schedules: %zu", schedules);
    if (cli->json)
        hf_out_json(stdout,
                    json_pack("{s:o, s:b, s:I, s:I, s:I}", "file", hf_out_text(file),
                              "ok", 1, "queues", (json_int_t)queues, "handlers",
                              (json_int_t)handlers, "schedules", (json_int_t)schedules));
    else
        printf("%s: good (queues: %zu, handlers: %zu%s%s)\n", file, queues, handlers,
               handlers == 0 ? ", which a worker needs" : "", more);
    return HF_EXIT_OK;
}
