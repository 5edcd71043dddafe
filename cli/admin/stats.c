/* stats.c - `holdfast stats`: what ended in the last time, by queue and type, with the
 * percentiles of runs and waits. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/text.h"
#include "cli/admin/stats.h"
#include "cli/cli.h"
#include "cli/out.h"

enum { AN_HOUR_MS = 3600000, SECOND_MS = 1000, MINUTE_MS = 60000 };

typedef struct teller {
    const hf_cli *cli;
    hf_table table;
    const char *queue; /* that is read now */
    hf_history_span span;
    json_t *lines; /* of that queue: the span is known only behind them */
    size_t types;
} teller;

static const hf_column columns[] = {
    {"QUEUE", false, 30}, {"TYPE", false, 40},   {"DONE", true, 0},
    {"FAILED", true, 0},  {"DEAD", true, 0},     {"RUN P50", true, 0},
    {"RUN P99", true, 0}, {"WAIT P50", true, 0}, {"WAIT P99", true, 0},
};

/* ---- one type ---- */

enum { TOOK_SIZE = 32 };

/* Two digits: more would not be true. "-" for 0. */
static void took(double ms, char out[TOOK_SIZE])
{
    if (ms <= 0)
        (void)snprintf(out, TOOK_SIZE, "-");
    else if (ms < SECOND_MS)
        (void)snprintf(out, TOOK_SIZE, "%.0fms", ms);
    else if (ms < MINUTE_MS)
        (void)snprintf(out, TOOK_SIZE, "%.1fs", ms / SECOND_MS);
    else
        (void)snprintf(out, TOOK_SIZE, "%.1fm", ms / MINUTE_MS);
}

static void add_took(hf_table *table, const int64_t counts[HF_HISTORY_BUCKETS])
{
    static const double parts[] = {0.5, 0.99};
    for (size_t i = 0; i < HF_COUNT(parts); i++) {
        char text[TOOK_SIZE];
        took(hf_history_percentile(counts, parts[i]), text);
        hf_table_text(table, text);
    }
}

static void add_row(teller *t, const hf_history_type *type)
{
    hf_table_text(&t->table, t->queue);
    hf_table_text(&t->table, type->type);
    hf_table_number(&t->table, type->done);
    hf_table_number(&t->table, type->failed);
    hf_table_number(&t->table, type->dead);
    add_took(&t->table, type->runs);
    add_took(&t->table, type->waits);
}

json_t *hf_stats_buckets(const int64_t counts[HF_HISTORY_BUCKETS])
{
    json_t *array = json_array();
    for (unsigned i = 0; array != NULL && i < HF_HISTORY_BUCKETS; i++) {
        const double bound = hf_history_bound_ms(i);
        if (counts[i] != 0)
            (void)json_array_append_new(
                array, json_pack("[o, I]", isinf(bound) ? json_null() : json_real(bound),
                                 (json_int_t)counts[i]));
    }
    return array;
}

static double tenths(double ms)
{
    return (double)(int64_t)(ms * 10 + 0.5) / 10;
}

json_t *hf_stats_json(const char *queue, const hf_history_type *type)
{
    return json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:o, s:o}", "queue",
        queue, "type", type->type, "done", (json_int_t)type->done, "failed",
        (json_int_t)type->failed, "dead", (json_int_t)type->dead, "run_ms",
        (json_int_t)type->run_ms, "wait_ms", (json_int_t)type->wait_ms, "run_p50_ms",
        tenths(hf_history_percentile(type->runs, 0.5)), "run_p99_ms",
        tenths(hf_history_percentile(type->runs, 0.99)), "wait_p50_ms",
        tenths(hf_history_percentile(type->waits, 0.5)), "wait_p99_ms",
        tenths(hf_history_percentile(type->waits, 0.99)), "runs",
        hf_stats_buckets(type->runs), "waits", hf_stats_buckets(type->waits));
}

static void on_type(const hf_history_type *type, void *arg)
{
    teller *t = arg;
    t->types++;
    if (t->cli->json)
        (void)json_array_append_new(t->lines, hf_stats_json(t->queue, type));
    else
        add_row(t, type);
}

/* ---- queues ---- */

static void print_lines(const teller *t)
{
    json_t *line;
    size_t i;
    json_array_foreach(t->lines, i, line)
    {
        (void)json_object_set_new(line, "from_ms", json_integer(t->span.from_ms));
        (void)json_object_set_new(line, "now_ms", json_integer(t->span.now_ms));
        hf_out_json(stdout, json_incref(line));
    }
}

static hf_err read_queue(teller *t, hf_admin *admin, const char *queue)
{
    const hf_history_opts opts = {
        HF_HISTORY_OPTS_INIT,
        .since_ms = hf_argv_number(t->cli->args, "since", AN_HOUR_MS),
        .type = hf_argv_text(t->cli->args, "type"), .on_type = on_type, .arg = t};
    t->queue = queue;
    t->lines = json_array();
    hf_err err = hf_admin_history(admin, queue, &opts, &t->span, t->cli->detail);
    if (err == HF_OK)
        print_lines(t);
    json_decref(t->lines);
    return err;
}

static void say_nothing_ended(const hf_cli *cli)
{
    char since[HF_DURATION_SIZE];
    hf_format_duration(hf_argv_number(cli->args, "since", AN_HOUR_MS), since);
    printf("nothing ended in the last %s\n", since);
}

static int tell(const hf_cli *cli, hf_admin *admin, char *const *names, size_t n)
{
    teller t = {.cli = cli, .span = {HF_HISTORY_SPAN_INIT}};
    const char *only = hf_argv_text(cli->args, "queue");
    hf_err err = HF_OK;
    bool known = only == NULL;
    hf_table_init(&t.table, columns, HF_COUNT(columns));
    for (size_t i = 0; i < n && err == HF_OK; i++) {
        if (only != NULL && strcmp(only, names[i]) != 0)
            continue;
        known = true;
        err = read_queue(&t, admin, names[i]);
    }
    const bool whole = hf_table_print(&t.table, stdout);
    if (err != HF_OK || !whole)
        return hf_cli_fail(cli, err == HF_OK ? HF_NOMEM : err, cli->detail);
    if (!known)
        return hf_cli_say(cli, HF_EXIT_NO, "'holdfast queue list' lists the queues",
                          "no queue '%s'", only);
    if (t.types == 0 && !cli->json)
        say_nothing_ended(cli);
    return HF_EXIT_OK;
}

int hf_cmd_stats(hf_cli *cli)
{
    hf_admin *admin = NULL;
    char **names = NULL;
    size_t n = 0;
    int code = hf_cli_check_name(cli, "a queue's name", hf_argv_text(cli->args, "queue"));
    if (code == HF_EXIT_OK)
        code = hf_cli_admin(cli, &admin);
    if (code != HF_EXIT_OK)
        return code;
    hf_err err = hf_admin_queues(admin, &names, &n, cli->detail);
    code = err == HF_OK ? tell(cli, admin, names, n) : hf_cli_fail(cli, err, cli->detail);
    free(names);
    hf_admin_close(admin);
    return code;
}
