/* runs.c - `holdfast runs`: what runs, where and since when; with --follow, what starts
 * and ends. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/admin/runs.h"
#include "cli/cli.h"
#include "cli/out.h"
#include "cli/stop.h"
#include "seen/words.h"

enum {
    LOOK_MS = 1000,
    LOOK_SOON_MS = 200,
    PATIENCE_MS = 12000, /* workers hear within 10 s that a viewer watches */
    CLOCK_SIZE = 16,
    WORD_WIDTH = 9
};

static const hf_column columns[] = {
    {"QUEUE", false, 20}, {"JOB", false, 30}, {"TYPE", false, 30},
    {"RUN", true, 0},     {"FOR", true, 0},   {"PROGRESS", true, 0},
    {"LEASE", false, 0},  {"SLOT", true, 0},  {"WORKER", false, 40},
};

/* ---- one run ---- */

static const char *word_of(const hf_seen_run *run)
{
    return run->end_ms != 0 && run->end == HF_RUN_GOES_ON ? "gone"
                                                          : hf_run_end_word(run->end);
}

json_t *hf_runs_json(const hf_seen_run *run)
{
    return json_pack("{s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o}",
                     "queue", hf_out_text(run->queue), "id", hf_out_text(run->id), "type",
                     hf_out_text(run->type), "run", (json_int_t)run->run, "attempt",
                     run->attempt == 0 ? json_null() : json_integer(run->attempt),
                     "worker", hf_out_text(run->worker), "slot",
                     run->told ? json_integer(run->slot) : json_null(), "outcome",
                     word_of(run), "start_ms", hf_out_time(run->start_ms), "end_ms",
                     hf_out_time(run->end_ms), "lease_until_ms",
                     hf_out_time(run->lease_until_ms), "progress",
                     run->has_progress ? json_integer(run->progress) : json_null());
}

static void add_number(hf_table *table, bool known, int64_t number)
{
    if (known)
        hf_table_number(table, number);
    else
        hf_table_text(table, "-");
}

static void add_row(hf_table *table, const hf_seen_run *run, int64_t now_ms)
{
    char span[HF_WORDS_SIZE], lease[HF_WHEN_SIZE], progress[16] = "-";
    hf_format_when(run->lease_until_ms, now_ms, lease);
    if (run->has_progress)
        (void)snprintf(progress, sizeof progress, "%" PRIu32 " %%", run->progress);
    hf_table_text(table, run->queue);
    hf_table_text(table, run->id);
    hf_table_text(table, run->type);
    hf_table_number(table, run->run);
    hf_table_text(table, run->told ? hf_words_span(now_ms - run->start_ms, span) : "-");
    hf_table_text(table, progress);
    hf_table_text(table, lease);
    add_number(table, run->told, run->slot);
    hf_table_text(table, run->worker);
}

/* ---- what runs ---- */

/* Workers may still report something that ran when the command began. */
static bool is_open(const hf_running *r, int64_t began_ms)
{
    for (size_t i = 0; hf_running_refused(r) == HF_OK && i < hf_running_count(r); i++) {
        const hf_seen_run *run = hf_running_at(r, i);
        if (run->held && !run->told && run->seen_ms <= began_ms)
            return true;
    }
    return false;
}

static void warn_refused(const hf_cli *cli, const hf_running *r)
{
    if (hf_running_refused(r) != HF_OK)
        hf_cli_warn(cli, "this user may not ask workers to report their runs (SET of "
                         "the key `watch`)");
}

static int print_running(const hf_cli *cli, const hf_running *r)
{
    hf_table table;
    size_t n = 0;
    hf_table_init(&table, columns, HF_COUNT(columns));
    for (size_t i = 0; i < hf_running_count(r); i++) {
        const hf_seen_run *run = hf_running_at(r, i);
        if (run->end_ms != 0)
            continue;
        n++;
        if (cli->json)
            hf_out_json(stdout, hf_runs_json(run));
        else
            add_row(&table, run, hf_running_now_ms(r));
    }
    if (n == 0 && !cli->json)
        puts("nothing runs");
    return hf_table_print(&table, stdout) ? HF_EXIT_OK : hf_cli_fail(cli, HF_NOMEM, NULL);
}

static int show(const hf_cli *cli, hf_admin *admin, hf_running *r)
{
    static const hf_running_calls none;
    const uint64_t until_ns = hf_boot_ns() + PATIENCE_MS * HF_MS_NS;
    hf_stop_start();
    hf_err err = hf_running_look(r, admin, &none, cli->detail);
    const int64_t began_ms = hf_running_now_ms(r);
    while (err == HF_OK && is_open(r, began_ms) && hf_boot_ns() < until_ns &&
           hf_stop_pause(LOOK_SOON_MS))
        err = hf_running_look(r, admin, &none, cli->detail);
    hf_stop_end();
    if (err != HF_OK)
        return hf_cli_fail(cli, err, cli->detail);
    warn_refused(cli, r);
    return hf_stop_code(print_running(cli, r));
}

/* ---- what starts and ends ---- */

static void begin_line(int64_t at_ms, const char *word)
{
    char time[HF_TIME_SIZE], clock[CLOCK_SIZE];
    hf_format_time(at_ms, time);
    (void)snprintf(clock, sizeof clock, "%.8s", strchr(time, 'T') + 1);
    printf("%s  %-*s  ", clock, WORD_WIDTH, word);
}

static void on_run(const hf_seen_run *run, void *arg)
{
    const hf_cli *cli = arg;
    const bool goes_on = run->end_ms == 0;
    char span[HF_WORDS_SIZE];
    if (cli->json) {
        hf_out_json(stdout, hf_runs_json(run));
        return;
    }
    begin_line(goes_on ? run->start_ms : run->end_ms, word_of(run));
    printf("%s %s %s, run %" PRIu32, run->queue, run->id, run->type, run->run);
    if (!goes_on && run->told)
        printf(", after %s", hf_words_span(run->end_ms - run->start_ms, span));
    printf(", %s", run->worker);
    if (run->told)
        printf(" slot %" PRIu32, run->slot);
    putchar('\n');
}

static void on_short(const char *queue, const hf_runs_entry *entry, void *arg)
{
    const hf_cli *cli = arg;
    if (cli->json) {
        hf_out_json(stdout,
                    json_pack("{s:o, s:o, s:I, s:I, s:I, s:I}", "queue",
                              hf_out_text(queue), "worker", hf_out_text(entry->worker),
                              "at_ms", (json_int_t)entry->at_ms, "short_done",
                              (json_int_t)entry->short_done, "short_failed",
                              (json_int_t)entry->short_failed, "cut",
                              (json_int_t)entry->cut));
        return;
    }
    begin_line(entry->at_ms, "short");
    printf("%s %" PRId64 " done, %" PRId64 " failed", queue, entry->short_done,
           entry->short_failed);
    if (entry->cut > 0)
        printf(", %" PRId64 " longer ones without a line", entry->cut);
    printf(", %s\n", entry->worker);
}

static void on_silent(const hf_seen_worker *worker, void *arg)
{
    const hf_cli *cli = arg;
    if (cli->json) {
        hf_out_json(stdout, json_pack("{s:o, s:I}", "worker", hf_out_text(worker->id),
                                      "gone_ms", (json_int_t)worker->heard_ms));
        return;
    }
    begin_line(worker->heard_ms, "silent");
    printf("%s was last heard then\n", worker->id);
}

static int follow(const hf_cli *cli, hf_admin *admin, hf_running *r)
{
    const hf_running_calls calls = {
        .run = on_run, .shorts = on_short, .silent = on_silent, .arg = (void *)cli};
    hf_stop_start();
    hf_err err = hf_running_look(r, admin, &calls, cli->detail);
    if (err == HF_OK)
        warn_refused(cli, r);
    while (err == HF_OK && fflush(stdout) == 0 && hf_stop_pause(LOOK_MS))
        err = hf_running_look(r, admin, &calls, cli->detail);
    hf_stop_end();
    return err == HF_OK ? hf_stop_code(HF_EXIT_OK) : hf_cli_fail(cli, err, cli->detail);
}

int hf_cmd_runs(hf_cli *cli)
{
    hf_admin *admin = NULL;
    const char *queue = hf_argv_operand(cli->args, 0);
    int code = hf_cli_check_name(cli, "a queue's name", queue);
    if (code == HF_EXIT_OK)
        code = hf_cli_admin(cli, &admin);
    if (code != HF_EXIT_OK)
        return code;
    hf_running *r = hf_running_new(queue);
    if (r == NULL)
        code = hf_cli_fail(cli, HF_NOMEM, NULL);
    else
        code = hf_argv_has(cli->args, "follow") ? follow(cli, admin, r)
                                                : show(cli, admin, r);
    hf_running_free(r);
    hf_admin_close(admin);
    return code;
}
