/* queue.c - `holdfast queue ...`: the figures of a queue, pause, resume, limits and
 * purge. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/mask.h"
#include "base/text.h"
#include "cli/admin/pools.h"
#include "cli/admin/queue.h"
#include "cli/admin/shards.h"
#include "cli/cli.h"
#include "cli/common/confirm.h"
#include "cli/common/more.h"
#include "cli/common/rate.h"
#include "cli/common/slices.h"
#include "cli/out.h"
#include "seen/figures.h"

enum { LIMITS_SIZE = 96, PAGE = 50, IN_A_LINE = 6 };

/* ---- showing ---- */

json_t *hf_queue_json(const hf_queue_stats *s)
{
    json_t *object = json_pack(
        "{s:s, s:b, s:I, s:I, s:I, s:I, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
        "s:I}",
        "queue", s->queue, "paused", (int)s->paused, "ready", (json_int_t)s->ready,
        "delayed", (json_int_t)s->delayed, "running", (json_int_t)s->running, "dead",
        (json_int_t)s->dead, "oldest_ready_ms", hf_out_time(s->oldest_ready_ms),
        "next_due_ms", hf_out_time(s->next_due_ms), "max_running",
        (json_int_t)s->max_running, "rate_limit", (json_int_t)s->rate_limit,
        "rate_per_ms", (json_int_t)s->rate_per_ms, "workers", (json_int_t)s->workers,
        "now_ms", (json_int_t)s->now_ms, "kept", (json_int_t)s->kept, "kept_bytes",
        (json_int_t)s->kept_bytes, "parked", (json_int_t)s->parked);
    for (const hf_figure *f = hf_figures; f->name != NULL; f++)
        (void)json_object_set_new(object, f->name, json_integer(hf_figures_of(f, s)));
    return object;
}

/* shards and pools: of a queue that is shown whole; shards is taken over. NULL: none. */
static void print_json(const hf_queue_stats *s, json_t *shards, json_t *pools)
{
    json_t *object = hf_queue_json(s);
    if (json_array_size(shards) > 0)
        (void)json_object_set(object, "shards", shards);
    if (json_array_size(pools) > 0)
        (void)json_object_set(object, "pools", pools);
    json_decref(shards);
    hf_out_json(stdout, object);
}

static void limits_text(const hf_queue_stats *s, char out[LIMITS_SIZE])
{
    char most[24] = "no limit", rate[48] = "no limit", per[HF_DURATION_SIZE];
    if (s->max_running != 0)
        snprintf(most, sizeof most, "%" PRId64, s->max_running);
    hf_format_duration(s->rate_per_ms, per);
    if (s->rate_limit != 0)
        snprintf(rate, sizeof rate, "%" PRId64 "/%.20s", s->rate_limit, per);
    snprintf(out, LIMITS_SIZE, "max_running %s  rate %s", most, rate);
}

static void print_whole(const hf_queue_stats *s)
{
    char oldest[HF_MOMENT_SIZE], next[HF_MOMENT_SIZE], limits[LIMITS_SIZE];
    hf_format_moment(s->oldest_ready_ms, s->now_ms, oldest);
    hf_format_moment(s->next_due_ms, s->now_ms, next);
    limits_text(s, limits);
    printf("%s", s->queue);
    if (s->paused) {
        printf(" (");
        hf_out_state(stdout, "paused");
        putchar(')');
    }
    printf("\n  now       ready %" PRId64 "  delayed %" PRId64 "  running %" PRId64
           "  dead %" PRId64,
           s->ready, s->delayed, s->running, s->dead);
    if (s->parked != 0)
        printf("  parked %" PRId64, s->parked);
    printf("\n  ever    ");
    for (size_t i = 0; hf_figures[i].name != NULL; i++)
        printf("%s  %s %" PRId64, i > 0 && i % IN_A_LINE == 0 ? "\n          " : "",
               hf_figures[i].name, hf_figures_of(&hf_figures[i], s));
    putchar('\n');
    if (s->kept != 0)
        printf("  kept      %" PRId64 " done job%s, %" PRId64 " bytes\n", s->kept,
               s->kept == 1 ? "" : "s", s->kept_bytes);
    printf("  oldest    %s\n  next due  %s\n", oldest, next);
    printf("  limits    %s\n  workers   %" PRId64 "\n", limits, s->workers);
}

static void add_row(hf_table *table, const hf_queue_stats *s)
{
    char oldest[HF_WHEN_SIZE], next[HF_WHEN_SIZE];
    hf_format_when(s->oldest_ready_ms, s->now_ms, oldest);
    hf_format_when(s->next_due_ms, s->now_ms, next);
    hf_table_text(table, s->queue);
    hf_table_text(table, s->paused ? "paused" : "on");
    hf_table_number(table, s->ready);
    hf_table_number(table, s->delayed);
    hf_table_number(table, s->running);
    hf_table_number(table, s->dead);
    hf_table_number(table, s->done);
    hf_table_number(table, s->workers);
    hf_table_text(table, oldest);
    hf_table_text(table, next);
}

/* ---- list and show ---- */

static const hf_column columns[] = {
    {"QUEUE", false, 40},   {"STATE", false, 0},  {"READY", true, 0},
    {"DELAYED", true, 0},   {"RUNNING", true, 0}, {"DEAD", true, 0},
    {"DONE", true, 0},      {"WORKERS", true, 0}, {"OLDEST", false, 0},
    {"NEXT DUE", false, 0},
};

typedef enum manner { MANNER_ROW, MANNER_WHOLE } manner;

/* all: the pools of all queues. */
static int show_whole(const hf_cli *cli, hf_admin *admin, const hf_queue_stats *stats,
                      const json_t *all)
{
    hf_shards_shown shards;
    json_t *pools = hf_pools_of(all, stats->queue);
    if (!cli->json) {
        print_whole(stats);
        hf_pools_print(pools);
    }
    int code = hf_shards_show(cli, admin, stats->queue, &shards);
    if (cli->json)
        print_json(stats, shards.array, pools);
    return code;
}

static int show_each(const hf_cli *cli, hf_admin *admin, const char *const *names,
                     size_t n, manner how)
{
    hf_table table;
    hf_err err = HF_OK;
    json_t *pools = NULL;
    int code = how == MANNER_WHOLE ? hf_pools_read(cli, admin, &pools) : HF_EXIT_OK;
    hf_table_init(&table, columns, HF_COUNT(columns));
    for (size_t i = 0; i < n && err == HF_OK && code == HF_EXIT_OK; i++) {
        hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
        err = hf_admin_stats(admin, names[i], &stats, cli->detail);
        if (err != HF_OK)
            break;
        if (how == MANNER_ROW && !cli->json)
            add_row(&table, &stats);
        else if (how == MANNER_ROW)
            print_json(&stats, NULL, NULL);
        else
            code = show_whole(cli, admin, &stats, pools);
    }
    json_decref(pools);
    bool whole = hf_table_print(&table, stdout);
    if (err != HF_OK)
        return hf_cli_fail(cli, err, cli->detail);
    return whole ? code : hf_cli_fail(cli, HF_NOMEM, NULL);
}

/* The part of the sorted names that was asked for. */
static size_t page_of(const hf_cli *cli, char *const *names, size_t n, size_t *first)
{
    const char *after = hf_argv_text(cli->args, "after");
    size_t limit = (size_t)hf_argv_number(cli->args, "limit", PAGE);
    for (*first = 0; after != NULL && *first < n && strcmp(names[*first], after) <= 0;)
        (*first)++;
    return n - *first < limit ? n - *first : limit;
}

static int show_all(const hf_cli *cli, hf_admin *admin, manner how)
{
    char **names;
    size_t n, first = 0;
    hf_err err = hf_admin_queues(admin, &names, &n, cli->detail);
    if (err != HF_OK)
        return hf_cli_fail(cli, err, cli->detail);
    if (n == 0 && !cli->json)
        puts("there are no queues yet");
    size_t wanted = how == MANNER_ROW ? page_of(cli, names, n, &first) : n;
    int code = show_each(cli, admin, (const char *const *)names + first, wanted, how);
    size_t more = n - first - wanted;
    if (code == HF_EXIT_OK && more > 0 && wanted > 0)
        hf_more_tell(cli, wanted, "queue", names[first + wanted - 1]);
    free(names);
    return code;
}

int hf_cmd_queue_list(hf_cli *cli)
{
    hf_admin *admin = NULL;
    const char *after = hf_argv_text(cli->args, "after");
    int code = hf_cli_check_name(cli, "a queue's name", after);
    if (code == HF_EXIT_OK)
        code = hf_cli_admin(cli, &admin);
    if (code == HF_EXIT_OK)
        code = show_all(cli, admin, MANNER_ROW);
    hf_admin_close(admin);
    return code;
}

/* The queue that is the operand, which is a name; else NULL with the exit code. */
static const char *operand(const hf_cli *cli, int *code)
{
    const char *name = hf_argv_operand(cli->args, 0);
    *code = hf_cli_check_name(cli, "a queue's name", name);
    return *code == HF_EXIT_OK ? name : NULL;
}

/* A queue is registered before its first use; the file may name an unused one. */
static bool is_known(const hf_cli *cli, char *const *registered, size_t n,
                     const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(registered[i], name) == 0)
            return true;
    for (size_t i = 0; i < cli->config->n_queues; i++)
        if (strcmp(cli->config->queues[i].name, name) == 0)
            return true;
    return false;
}

static int show_one(const hf_cli *cli, hf_admin *admin, const char *name)
{
    char **names;
    size_t n;
    hf_err err = hf_admin_queues(admin, &names, &n, cli->detail);
    if (err != HF_OK)
        return hf_cli_fail(cli, err, cli->detail);
    bool known = is_known(cli, names, n, name);
    free(names);
    if (!known)
        return hf_cli_say(cli, HF_EXIT_NO, "'holdfast queue list' lists the queues",
                          "no queue '%s'", name);
    return show_each(cli, admin, &name, 1, MANNER_WHOLE);
}

int hf_cmd_queue_show(hf_cli *cli)
{
    int code;
    hf_admin *admin = NULL;
    const char *name = operand(cli, &code);
    if (code == HF_EXIT_OK)
        code = hf_cli_admin(cli, &admin);
    if (code == HF_EXIT_OK)
        code = name == NULL ? show_all(cli, admin, MANNER_WHOLE)
                            : show_one(cli, admin, name);
    hf_admin_close(admin);
    return code;
}

/* ---- switches ---- */

/* An unknown queue is no error: it may be prepared before its first job. But it may be a
 * typing error. */
static const char *unknown(const hf_queue_stats *s)
{
    return s->enqueued == 0 && s->workers == 0
               ? " (nothing was ever put into it, and no worker serves it)"
               : "";
}

static int say_done(const hf_cli *cli, hf_admin *admin, const char *queue,
                    const char *what)
{
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    char limits[LIMITS_SIZE];
    hf_err err = hf_admin_stats(admin, queue, &stats, cli->detail);
    if (err != HF_OK)
        return hf_cli_fail(cli, err, cli->detail);
    if (cli->json) {
        print_json(&stats, NULL, NULL);
        return HF_EXIT_OK;
    }
    if (what == NULL) {
        limits_text(&stats, limits);
        what = limits;
    }
    printf("%s: %s%s\n", queue, what, unknown(&stats));
    return HF_EXIT_OK;
}

static int set_paused(const hf_cli *cli, bool paused)
{
    int code;
    hf_admin *admin = NULL;
    const char *queue = operand(cli, &code);
    if (code == HF_EXIT_OK)
        code = hf_cli_admin(cli, &admin);
    if (code != HF_EXIT_OK)
        return code;
    hf_err err = hf_admin_pause(admin, queue, paused, cli->detail);
    code = err != HF_OK ? hf_cli_fail(cli, err, cli->detail)
                        : say_done(cli, admin, queue, paused ? "paused" : "resumed");
    hf_admin_close(admin);
    return code;
}

int hf_cmd_queue_pause(hf_cli *cli)
{
    return set_paused(cli, true);
}

int hf_cmd_queue_resume(hf_cli *cli)
{
    return set_paused(cli, false);
}

typedef struct limits {
    int64_t max_running, rate_limit, rate_per_ms; /* -1: as it is */
} limits;

static int read_limits(const hf_cli *cli, limits *out)
{
    const char *rate = hf_argv_text(cli->args, "rate");
    *out = (limits){hf_argv_number(cli->args, "max-running", -1), -1, -1};
    if (rate != NULL && !hf_parse_rate(rate, &out->rate_limit, &out->rate_per_ms))
        return hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "--rate: expected JOBS/DURATION (100/1s, of 1ms to 1d) or 0, "
                          "found '%s'",
                          HF_FOUND(rate));
    if (rate == NULL && out->max_running < 0)
        return hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "queue limit: expected --max-running or --rate, found neither");
    return HF_EXIT_OK;
}

int hf_cmd_queue_limit(hf_cli *cli)
{
    int code;
    limits to;
    hf_admin *admin = NULL;
    const char *queue = operand(cli, &code);
    if (code == HF_EXIT_OK)
        code = read_limits(cli, &to);
    if (code == HF_EXIT_OK)
        code = hf_cli_admin(cli, &admin);
    if (code != HF_EXIT_OK)
        return code;
    hf_err err = hf_admin_limit(admin, queue, to.max_running, to.rate_limit,
                                to.rate_per_ms, cli->detail);
    code = err != HF_OK ? hf_cli_fail(cli, err, cli->detail)
                        : say_done(cli, admin, queue, NULL);
    hf_admin_close(admin);
    return code;
}

/* ---- purge: everything but what runs ---- */

/* Exactly what will be lost, and what will not. */
static int ask(const hf_cli *cli, hf_admin *admin, const char *queue)
{
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    char kept[48] = "";
    if (!hf_confirm_wanted(cli))
        return HF_EXIT_OK;
    hf_err err = hf_admin_stats(admin, queue, &stats, cli->detail);
    if (err != HF_OK)
        return hf_cli_fail(cli, err, cli->detail);
    if (stats.kept != 0)
        (void)snprintf(kept, sizeof kept, ", %" PRId64 " done and kept", stats.kept);
    return hf_confirm(cli,
                      "Remove all jobs of queue '%s' that do not run: %" PRId64
                      " waiting, %" PRId64 " dead%s? (%" PRId64 " running %s left alone)",
                      queue, stats.ready + stats.delayed + stats.parked, stats.dead, kept,
                      stats.running, stats.running == 1 ? "is" : "are");
}

static int purge(const hf_cli *cli, hf_admin *admin, const char *queue)
{
    const hf_slices_words words = {
        .queue = queue, .key = "removed", .one = "job removed", .many = "jobs removed"};
    hf_slices slices;
    size_t n = 0;
    hf_slices_start(&slices, "jobs");
    hf_err err =
        hf_admin_purge(admin, queue, hf_slices_progress, &slices, &n, cli->detail);
    return hf_slices_end(&slices, cli, &words, err, n);
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
