/* check.c - `holdfast check`: hf_cli_setup() has read the file already, and has said
 * what is wrong with it; what is left is to say that nothing is. */
#include <stdio.h>
#include <stdlib.h>

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

int hf_cmd_check(hf_cli *cli)
{
    if (hf_argv_has(cli->args, "reference"))
        return print_reference(cli);
    const char *file = cli->config->file;
    if (file == NULL)
        return hf_cli_say(cli, HF_EXIT_USAGE, "", "check: expected -c FILE, found none");
    size_t handlers = cli->config->n_handlers;
    size_t queues =
        cli->config->n_queues == 0 ? 1 : cli->config->n_queues; /* `default` */
    if (cli->json)
        hf_out_json(stdout, json_pack("{s:o, s:b, s:I, s:I}", "file", hf_out_text(file),
                                      "ok", 1, "queues", (json_int_t)queues, "handlers",
                                      (json_int_t)handlers));
    else
        printf("%s: good (queues: %zu, handlers: %zu%s)\n", file, queues, handlers,
               handlers == 0 ? ", which a worker needs" : "");
    return HF_EXIT_OK;
}
