/* workers.c - `holdfast worker list`: those that live, and those that fell silent. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/text.h"
#include "cli/admin/workers.h"
#include "cli/cli.h"
#include "cli/common/more.h"
#include "cli/out.h"

enum { PAGE = 50, LIST_SIZE = 256, RECENT_MS = 3600 * 1000 };

typedef struct lister {
    hf_table table;
    const char *after; /* NULL: from the start */
    bool after_silent; /* whether it is among the silent ones */
    bool json, all;
    size_t limit, shown, more, hidden;
    char last[HF_HOLDER_SIZE + 8]; /* that was shown */
    bool goes_on;                  /* after an earlier page */
} lister;

/* ---- one worker ---- */

static json_t *names(const char *const *list, size_t n)
{
    json_t *array = json_array();
    for (size_t i = 0; array != NULL && i < n; i++)
        (void)json_array_append_new(array, hf_out_text(list[i]));
    return array;
}

/* A worker that serves has a word more to say while a pool of it takes no jobs. */
static const char *state_of(const hf_worker_info *w)
{
    const char *state = w->silent ? "silent" : w->state;
    for (size_t i = 0; i < w->n_pools && strcmp(w->state, "serving") == 0; i++) {
        if (strcmp(w->pools[i].state, "down") == 0)
            return "pool down";
        if (strcmp(w->pools[i].state, "starting") == 0)
            state = "starting";
    }
    return state;
}

static json_t *pools(const hf_worker_info *w)
{
    json_t *array = json_array();
    for (size_t i = 0; array != NULL && i < w->n_pools; i++) {
        const hf_worker_pool_info *p = &w->pools[i];
        (void)json_array_append_new(
            array,
            json_pack("{s:o, s:o, s:I, s:I, s:I, s:I}", "name", hf_out_text(p->name),
                      "state", hf_out_text(p->state), "processes",
                      (json_int_t)p->processes, "slots", (json_int_t)p->slots, "running",
                      (json_int_t)p->running, "memory", (json_int_t)p->memory));
    }
    return array;
}

json_t *hf_workers_json(const hf_worker_info *w)
{
    return json_pack("{s:o, s:o, s:I, s:o, s:I, s:I, s:o, s:o, s:b, s:o, s:o, s:o, s:o}",
                     "id", hf_out_text(w->id), "host", hf_out_text(w->host), "pid",
                     (json_int_t)w->pid, "state", hf_out_text(state_of(w)), "running",
                     (json_int_t)w->running, "concurrency", (json_int_t)w->concurrency,
                     "queues", names(w->queues, w->n_queues), "types",
                     names(w->types, w->n_types), "all_types", (int)w->all_types,
                     "heard_ms", hf_out_time(w->heard_ms), "started_ms",
                     hf_out_time(w->started_ms), "version", hf_out_text(w->version),
                     "pools", pools(w));
}

static void add_row(lister *l, const hf_worker_info *w)
{
    char heard[HF_WHEN_SIZE], pid[24], busy[48] = "-", queues[LIST_SIZE] = "";
    size_t len = 0;
    for (size_t i = 0; i < w->n_queues && len < sizeof queues; i++)
        len += (size_t)snprintf(queues + len, sizeof queues - len, "%s%s",
                                i == 0 ? "" : ",", w->queues[i]);
    (void)snprintf(pid, sizeof pid, "%" PRId64, w->pid);
    if (!w->silent)
        (void)snprintf(busy, sizeof busy, "%" PRIu32 "/%" PRIu32, w->running,
                       w->concurrency);
    hf_format_when(w->heard_ms, w->now_ms, heard);
    hf_table_text(&l->table, w->host);
    hf_table_text(&l->table, pid);
    hf_table_text(&l->table, state_of(w));
    hf_table_text(&l->table, busy);
    hf_table_text(&l->table, queues[0] != '\0' ? queues : "-");
    hf_table_text(&l->table, heard);
    hf_table_text(&l->table, w->version[0] != '\0' ? w->version : "-");
}

/* ---- all of them ---- */

static void on_worker(const hf_worker_info *w, void *arg)
{
    lister *l = arg;
    if (w->silent && !l->all && w->heard_ms < w->now_ms - RECENT_MS) {
        l->hidden++;
        return;
    }
    if (l->after != NULL &&
        (w->silent < l->after_silent ||
         (w->silent == l->after_silent && strcmp(w->id, l->after) <= 0)))
        return; /* they come in this order */
    if (l->shown == l->limit) {
        l->more++;
        return;
    }
    l->shown++;
    (void)snprintf(l->last, sizeof l->last, "%s/%s", w->silent ? "silent" : "live",
                   w->id);
    if (l->json)
        hf_out_json(stdout, hf_workers_json(w));
    else
        add_row(l, w);
}

static void print_rest(const lister *l)
{
    if (l->shown == 0)
        puts(l->goes_on ? "no more workers" : "no workers");
    if (l->hidden > 0)
        printf("%zu went silent more than an hour ago: holdfast worker list --all\n",
               l->hidden);
}

/* Among which workers the one is that --after names; one that has gone was live. */
static void find(const hf_worker_info *w, void *arg)
{
    lister *l = arg;
    if (strcmp(w->id, l->after) == 0)
        l->after_silent = w->silent;
}

/* "live/ID", "silent/ID", or only an id. */
static int take_after(const hf_cli *cli, hf_admin *admin, lister *l)
{
    const char *id = hf_argv_text(cli->args, "after");
    l->after = id;
    if (id == NULL)
        return HF_EXIT_OK;
    l->after_silent = strncmp(id, "silent/", 7) == 0;
    if (l->after_silent || strncmp(id, "live/", 5) == 0) {
        l->after = strchr(id, '/') + 1;
        return hf_cli_check_name(cli, "a worker's id", l->after);
    }
    int code = hf_cli_check_name(cli, "a worker's id", id);
    hf_err err =
        code == HF_EXIT_OK ? hf_admin_workers(admin, find, l, cli->detail) : HF_OK;
    return err == HF_OK ? code : hf_cli_fail(cli, err, cli->detail);
}

static int list(const hf_cli *cli, hf_admin *admin)
{
    static const hf_column columns[] = {
        {"HOST", false, 40},   {"PID", true, 0},      {"STATE", false, 0},
        {"RUNNING", true, 0},  {"QUEUES", false, 40}, {"HEARD", false, 0},
        {"VERSION", false, 0},
    };
    lister l = {.json = cli->json,
                .all = hf_argv_has(cli->args, "all"),
                .goes_on = hf_argv_has(cli->args, "after"),
                .limit = (size_t)hf_argv_number(cli->args, "limit", PAGE)};
    int code = take_after(cli, admin, &l);
    if (code != HF_EXIT_OK)
        return code;
    hf_table_init(&l.table, columns, HF_COUNT(columns));
    hf_err err = hf_admin_workers(admin, on_worker, &l, cli->detail);
    if (!hf_table_print(&l.table, stdout) && err == HF_OK)
        err = HF_NOMEM;
    if (err != HF_OK)
        return hf_cli_fail(cli, err, cli->detail);
    if (!cli->json)
        print_rest(&l);
    if (l.more > 0)
        hf_more_tell(cli, l.shown, "worker", l.last);
    return HF_EXIT_OK;
}

int hf_cmd_workers(hf_cli *cli)
{
    hf_admin *admin = NULL;
    int code = hf_cli_admin(cli, &admin);
    if (code == HF_EXIT_OK)
        code = list(cli, admin);
    hf_admin_close(admin);
    return code;
}
