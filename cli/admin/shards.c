/* shards.c - `holdfast queue shards`: divides a queue into shards, and shows them. */
#include "cli/admin/shards.h"

#include <stdio.h>

#include "base/base.h"
#include "base/mask.h"
#include "base/text.h"
#include "cli/out.h"

enum { FIGURES = 5 };

typedef struct list {
    hf_table table;
    hf_shards_shown shown;
} list;

static const hf_column columns[] = {
    {"SHARD", true, 0}, {"TAG", false, 60},   {"SLOT", true, 0},    {"STATE", false, 0},
    {"READY", true, 0}, {"DELAYED", true, 0}, {"RUNNING", true, 0}, {"DEAD", true, 0},
    {"DONE", true, 0},  {"NODE", false, 0},
};

static void add_row(hf_table *table, const hf_shard_info *shard)
{
    const hf_queue_stats *s = shard->stats;
    hf_table_number(table, shard->number);
    hf_table_text(table, shard->tag);
    hf_table_number(table, shard->slot);
    hf_table_text(table, s == NULL ? "unknown" : s->paused ? "paused" : "on");
    if (s == NULL) {
        for (int i = 0; i < FIGURES; i++)
            hf_table_text(table, "-");
    } else {
        hf_table_number(table, s->ready);
        hf_table_number(table, s->delayed);
        hf_table_number(table, s->running);
        hf_table_number(table, s->dead);
        hf_table_number(table, s->done);
    }
    hf_table_text(table, shard->node != NULL ? shard->node : "-");
}

/* Without figures if it could not be asked. */
static json_t *json_of(const hf_shard_info *shard)
{
    const hf_queue_stats *s = shard->stats;
    json_t *object =
        json_pack("{s:I, s:o, s:I, s:o, s:b}", "shard", (json_int_t)shard->number, "tag",
                  hf_out_text(shard->tag), "slot", (json_int_t)shard->slot, "node",
                  shard->node != NULL ? hf_out_text(shard->node) : json_null(), "unknown",
                  s == NULL);
    json_t *figures =
        s == NULL ? NULL
                  : json_pack("{s:b, s:I, s:I, s:I, s:I, s:I}", "paused", (int)s->paused,
                              "ready", (json_int_t)s->ready, "delayed",
                              (json_int_t)s->delayed, "running", (json_int_t)s->running,
                              "dead", (json_int_t)s->dead, "done", (json_int_t)s->done);
    if (figures != NULL)
        (void)json_object_update(object, figures);
    json_decref(figures);
    return object;
}

static void on_shard(const hf_shard_info *shard, void *arg)
{
    list *l = arg;
    l->shown.n++;
    if (l->shown.array != NULL)
        (void)json_array_append_new(l->shown.array, json_of(shard));
    else
        add_row(&l->table, shard);
}

int hf_shards_show(const hf_cli *cli, hf_admin *admin, const char *queue,
                   hf_shards_shown *out)
{
    list l = {.shown = {.array = cli->json ? json_array() : NULL}};
    hf_table_init(&l.table, columns, HF_COUNT(columns));
    hf_err err = hf_admin_shards(admin, queue, on_shard, &l, cli->detail);
    if (l.shown.n > 0 && !cli->json)
        printf("%s: %zu shards\n", queue, l.shown.n);
    bool whole = hf_table_print(&l.table, stdout);
    *out = l.shown;
    if (err != HF_OK)
        return hf_cli_fail(cli, err, cli->detail);
    return whole ? HF_EXIT_OK : hf_cli_fail(cli, HF_NOMEM, NULL);
}

/* ---- queue shards ---- */

static int show(const hf_cli *cli, hf_admin *admin, const char *queue)
{
    hf_shards_shown shown;
    int code = hf_shards_show(cli, admin, queue, &shown);
    if (cli->json && (code == HF_EXIT_OK || shown.n > 0))
        hf_out_json(stdout,
                    json_pack("{s:s, s:O}", "queue", queue, "shards", shown.array));
    else if (code == HF_EXIT_OK && shown.n == 0)
        printf("%s: not divided\n", queue);
    json_decref(shown.array);
    return code;
}

static int divide(const hf_cli *cli, hf_admin *admin, const char *queue, unsigned n)
{
    hf_err err = hf_admin_divide(admin, queue, n, cli->detail);
    return err == HF_OK ? show(cli, admin, queue) : hf_cli_fail(cli, err, cli->detail);
}

/* 0: it was not given. */
static int read_number(const hf_cli *cli, int64_t *out)
{
    const char *text = hf_argv_operand(cli->args, 1);
    *out = 0;
    if (text == NULL || hf_parse_int(text, HF_SHARDS_LEAST, HF_SHARDS_MOST, out))
        return HF_EXIT_OK;
    return hf_cli_say(cli, HF_EXIT_USAGE, "",
                      "queue shards: expected %d to %d shards, found '%s'",
                      HF_SHARDS_LEAST, HF_SHARDS_MOST, HF_FOUND(text));
}

int hf_cmd_queue_shards(hf_cli *cli)
{
    int64_t n = 0;
    hf_admin *admin = NULL;
    const char *queue = hf_argv_operand(cli->args, 0);
    int code = hf_cli_check_name(cli, "a queue's name", queue);
    if (code == HF_EXIT_OK)
        code = read_number(cli, &n);
    if (code == HF_EXIT_OK)
        code = hf_cli_admin(cli, &admin);
    if (code == HF_EXIT_OK)
        code = n == 0 ? show(cli, admin, queue) : divide(cli, admin, queue, (unsigned)n);
    hf_admin_close(admin);
    return code;
}
