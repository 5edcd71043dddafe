/* cmd_version.c - `holdfast version`, `holdfast help`: what needs nothing but the binary.
 */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/complete.h"
#include "cli/help.h"
#include "cli/out.h"

int hf_cmd_version(hf_cli *cli)
{
    if (cli->json)
        hf_out_json(stdout, json_pack("{s:s}", "version", HOLDFAST_VERSION));
    else
        puts("holdfast " HOLDFAST_VERSION);
    return HF_EXIT_OK;
}

int hf_cmd_help(hf_cli *cli)
{
    const char *first = hf_argv_operand(cli->args, 0);
    const char *second = hf_argv_operand(cli->args, 1);
    char name[64];
    if (hf_argv_has(cli->args, "man")) {
        hf_help_manual(stdout);
        return HF_EXIT_OK;
    }
    if (hf_argv_has(cli->args, "completion")) {
        hf_complete_script(stdout, hf_argv_number(cli->args, "completion", 0));
        return HF_EXIT_OK;
    }
    if (first == NULL) {
        hf_help_all(stdout);
        return HF_EXIT_OK;
    }
    snprintf(name, sizeof name, "%.30s%s%.30s", first, second != NULL ? " " : "",
             second != NULL ? second : "");
    bool group = false;
    for (const hf_command *c = hf_commands(); c->name != NULL; c++) {
        if (!c->hidden && strcmp(c->name, name) == 0) {
            hf_help_command(stdout, c);
            return HF_EXIT_OK;
        }
        group = group || (strncmp(c->name, name, strlen(name)) == 0 &&
                          c->name[strlen(name)] == ' ');
    }
    if (!group)
        return hf_cli_say(cli, HF_EXIT_USAGE, "", "expected a command, found '%s'", name);
    hf_help_group(stdout, name);
    return HF_EXIT_OK;
}
