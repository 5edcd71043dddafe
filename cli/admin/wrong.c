/* wrong.c - `holdfast wrong`: the verdict, for people, for programs and for Nagios. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/out.h"
#include "cli/waiting.h"
#include "holdfast/lock.h"
#include "seen/gather.h"
#include "seen/words.h"
#include "seen/wrong.h"

enum {
    ANSWER_MS = 3100, /* a little longer than the silence that is wrong */
    LOCKS_MS = 1000,
    AUDIT_MS = 1000,
    LEVEL_WIDTH = 6
};

/* The codes of a plugin of Nagios. */
enum { NAGIOS_OK, NAGIOS_WARNING, NAGIOS_CRITICAL };

/* ---- reading ---- */

/* A fault of a Redis is a thing that is wrong. After any other one the command cannot
 * judge. */
static bool is_of_redis(hf_err err)
{
    return err != HF_INVALID && err != HF_CONFIG && err != HF_NOMEM && err != HF_SYSTEM;
}

static hf_err read_open(const hf_server_opts *server, hf_admin *admin, hf_facts *facts)
{
    const hf_lock_client_opts opts = {HF_LOCK_CLIENT_OPTS_INIT, .server = server};
    hf_gather_opts gather = {.admin = admin, .locks_ms = LOCKS_MS, .audit_ms = AUDIT_MS};
    if (hf_lock_client_open(&gather.locks, &opts, NULL) != HF_OK)
        gather.locks = NULL; /* then there are no locks to report */
    hf_err err = hf_facts_gather(&gather, facts);
    hf_lock_client_close(gather.locks, NULL, NULL);
    return err;
}

static hf_err read_facts(const hf_cli *cli, hf_facts *facts)
{
    hf_server_opts server = cli->server;
    const hf_admin_opts opts = {HF_ADMIN_OPTS_INIT, .server = &server,
                                .deadline_ms = ANSWER_MS};
    hf_admin *admin = NULL;
    const int64_t since_ms = hf_wall_ms();
    server.connect_timeout_ms = ANSWER_MS;
    hf_waiting *waiting = hf_waiting_begin(server.url, cli->json);
    hf_err err = hf_admin_open(&admin, &opts, cli->detail);
    if (err == HF_OK)
        err = read_open(&server, admin, facts);
    else if (is_of_redis(err))
        err = hf_facts_away(facts, err, cli->detail, since_ms);
    hf_waiting_end(waiting);
    hf_admin_close(admin);
    return err;
}

/* ---- --json ---- */

static void print_json(const hf_wrong *w)
{
    hf_out_json(stdout, json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "level",
                                  hf_wrong_level_word(w->level), "rule",
                                  hf_wrong_rule_word(w->rule), "since_ms",
                                  hf_out_time(w->since_ms), "what", hf_out_text(w->what),
                                  "why", hf_out_text(w->why), "command",
                                  hf_out_text(w->command), "page", hf_out_text(w->page)));
}

/* ---- for people ---- */

static const char *colour_of(hf_wrong_level level)
{
    static const char *const colours[] = {"\033[1;31m", "\033[33m", "\033[1m", "\033[2m"};
    return colours[level];
}

static void print_one(const hf_wrong *w)
{
    bool bright = hf_out_is_bright(stdout);
    printf("%s%-*s%s%s\n", bright ? colour_of(w->level) : "", LEVEL_WIDTH,
           hf_wrong_level_word(w->level), bright ? "\033[0m" : "", w->what);
    if (w->why[0] != '\0')
        printf("%*s%s\n", LEVEL_WIDTH, "", w->why);
    printf("%*s$ %s\n", LEVEL_WIDTH, "", w->command);
}

static void print_well(const hf_facts *facts)
{
    char queues[HF_WORDS_SIZE], workers[HF_WORDS_SIZE], schedules[HF_WORDS_SIZE],
        locks[HF_WORDS_SIZE];
    printf(
        "All is well with Redis, %s, %s, %s and %s.\n",
        hf_words_count((int64_t)facts->n_queues, "queue", "queues", queues),
        hf_words_count((int64_t)facts->n_workers, "worker", "workers", workers),
        hf_words_count((int64_t)facts->n_schedules, "schedule", "schedules", schedules),
        hf_words_count((int64_t)facts->n_locks, "lock", "locks", locks));
}

static void print_text(const hf_facts *facts, const hf_wrongs *wrongs)
{
    char verdict[HF_VERDICT_SIZE];
    const size_t all = hf_wrong_all(wrongs);
    if (hf_wrong_things(wrongs) + wrongs->levels[HF_LEVEL_NOTE] == 0)
        print_well(facts);
    else
        printf("%s.\n", hf_wrong_verdict(wrongs, verdict));
    for (size_t i = 0; i < wrongs->n; i++)
        print_one(&wrongs->at[i]);
    if (all > wrongs->n)
        printf("and %zu more\n", all - wrongs->n);
}

/* ---- --nagios ---- */

/* A bar begins the figures. */
static void print_without_bars(const char *text)
{
    for (; *text != '\0'; text++)
        putchar(*text == '|' ? '/' : *text);
}

static int print_nagios(const hf_wrongs *wrongs)
{
    static const char *const words[] = {"OK", "WARNING", "CRITICAL"};
    char verdict[HF_VERDICT_SIZE];
    const int code = wrongs->levels[HF_LEVEL_BAD] > 0    ? NAGIOS_CRITICAL
                     : wrongs->levels[HF_LEVEL_WARN] > 0 ? NAGIOS_WARNING
                                                         : NAGIOS_OK;
    printf("HOLDFAST %s - %s", words[code], hf_wrong_verdict(wrongs, verdict));
    if (code != NAGIOS_OK || wrongs->levels[HF_LEVEL_NOTE] > 0) {
        fputs(": ", stdout);
        print_without_bars(wrongs->at[0].what);
    }
    printf(" | bad=%zu;;0;0 warn=%zu;0;;0 note=%zu;;;0 hint=%zu;;;0\n",
           wrongs->levels[HF_LEVEL_BAD], wrongs->levels[HF_LEVEL_WARN],
           wrongs->levels[HF_LEVEL_NOTE], wrongs->levels[HF_LEVEL_HINT]);
    for (size_t i = 0; i < wrongs->n; i++) {
        printf("%s: ", hf_wrong_level_word(wrongs->at[i].level));
        print_without_bars(wrongs->at[i].what);
        putchar(' ');
        print_without_bars(wrongs->at[i].why);
        putchar('\n');
    }
    return code;
}

/* ---- the command ---- */

int hf_cmd_wrong(hf_cli *cli)
{
    hf_facts facts = {.late_ms = hf_argv_number(cli->args, "late", HF_FACTS_LATE_MS),
                      .poison = cli->config->worker.poison};
    hf_wrongs wrongs;
    const bool nagios = hf_argv_has(cli->args, "nagios");
    if (nagios && cli->json)
        return hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "--nagios has a form of its own: leave out --json");
    hf_err err = read_facts(cli, &facts);
    if (err == HF_OK) {
        hf_wrong_judge(&facts, &wrongs);
        if (!nagios && !cli->json)
            print_text(&facts, &wrongs);
        for (size_t i = 0; i < wrongs.n && cli->json; i++)
            print_json(&wrongs.at[i]);
    }
    hf_facts_done(&facts);
    if (err != HF_OK)
        return hf_cli_fail(cli, err, cli->detail);
    if (nagios)
        return print_nagios(&wrongs);
    return wrongs.levels[HF_LEVEL_BAD] > 0 ? HF_EXIT_NO : HF_EXIT_OK;
}
