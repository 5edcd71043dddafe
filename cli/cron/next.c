/* next.c - `holdfast cron next`: when an expression ticks. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mask.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/out.h"
#include "cron/expr.h"

enum { TICKS = 5 };

static void print_tick(const hf_cli *cli, int64_t tick_s)
{
    char text[HF_TIME_SIZE];
    hf_format_time(tick_s * 1000, text);
    memcpy(strchr(text, '.'), "Z", 2); /* no tick is between two seconds */
    if (cli->json)
        hf_out_json(stdout, json_pack("{s:s, s:I}", "at", text, "at_ms",
                                      (json_int_t)tick_s * 1000));
    else
        puts(text);
}

static int print_ticks(const hf_cli *cli, const hf_cron *cron, const hf_zone *zone)
{
    const char *text = hf_argv_operand(cli->args, 0);
    int64_t n = hf_argv_number(cli->args, "count", TICKS), i = 0;
    int64_t from_ms = hf_argv_number(cli->args, "from", hf_wall_ms());
    int64_t at = from_ms / 1000;
    while (i < n && hf_cron_next(cron, zone, at, &at)) {
        print_tick(cli, at);
        i++;
    }
    if (i > 0)
        return HF_EXIT_OK;
    return hf_cli_say(cli, HF_EXIT_DATA, "",
                      "cron '%s': expected a tick within %d years and before the year "
                      "10000, found none",
                      HF_FOUND(text), HF_CRON_YEARS);
}

int hf_cmd_cron_next(hf_cli *cli)
{
    char detail[HF_DETAIL_SIZE] = "";
    const char *name = hf_argv_text(cli->args, "tz");
    hf_zone *zone = NULL;
    hf_cron cron;
    hf_err err = hf_cron_parse(&cron, hf_argv_operand(cli->args, 0), detail);
    if (err == HF_OK && name != NULL)
        err = hf_zone_open(&zone, name, detail);
    if (err == HF_INVALID)
        return hf_cli_say(cli, HF_EXIT_DATA, "", "%s", detail);
    if (err != HF_OK)
        return hf_cli_fail(cli, err, detail);
    int code = print_ticks(cli, &cron, zone);
    hf_zone_free(zone);
    return code;
}
