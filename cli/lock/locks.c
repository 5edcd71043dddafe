/* locks.c - `holdfast lock list|show|release|revoke|fence-check`. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/mask.h"
#include "base/text.h"
#include "cli/common/confirm.h"
#include "cli/common/more.h"
#include "cli/lock/locks.h"
#include "cli/lock/open.h"
#include "cli/out.h"

enum { PAGE = 50, NAMES_MAX = 100000, ENTRIES = 1000, TOKEN_SIZE = 24 };

static const char *mode_of(const hf_lock_entry *e)
{
    static const char *const names[] = {"exclusive", "shared", "permits"};
    return names[e->mode];
}

/* ---- list ---- */

typedef struct lister {
    const hf_cli *cli;
    char **names; /* owned; each once */
    size_t n, cap;
    const char *last; /* of the names, that was shown */
    bool failed;
} lister;

static bool note_name(const char *name, void *arg)
{
    lister *l = arg;
    if (l->n == l->cap) {
        size_t cap = l->cap == 0 ? 64 : 2 * l->cap;
        char **names = cap > NAMES_MAX ? NULL : realloc(l->names, cap * sizeof *names);
        if (names == NULL) {
            l->failed = true;
            return false;
        }
        l->names = names;
        l->cap = cap;
    }
    l->names[l->n] = strdup(name);
    l->failed = l->names[l->n] == NULL;
    l->n += !l->failed;
    return !l->failed;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorted, and each once. */
static void tidy(lister *l)
{
    size_t kept = 0;
    if (l->n > 0)
        qsort(l->names, l->n, sizeof *l->names, by_text);
    for (size_t i = 0; i < l->n; i++) {
        if (kept > 0 && strcmp(l->names[i], l->names[kept - 1]) == 0)
            free(l->names[i]);
        else
            l->names[kept++] = l->names[i];
    }
    l->n = kept;
}

static int64_t last_end(const hf_lock_look *look)
{
    int64_t ends_ms = 0;
    for (size_t i = 0; i < look->n; i++)
        if (look->entries[i].granted && look->entries[i].ends_ms > ends_ms)
            ends_ms = look->entries[i].ends_ms;
    return ends_ms;
}

static void list_one(const lister *l, hf_table *table, const char *name,
                     const hf_lock_look *look)
{
    char ends[HF_WHEN_SIZE];
    const size_t holders = look->holders;
    const int64_t ends_ms = last_end(look);
    if (l->cli->json) {
        hf_out_json(stdout,
                    json_pack("{s:o, s:s, s:I, s:I, s:o}", "name", hf_out_text(name),
                              "mode", look->n > 0 ? mode_of(look->entries) : "exclusive",
                              "holders", (json_int_t)holders, "waiting",
                              (json_int_t)(look->all - holders), "ends_ms",
                              hf_out_time(ends_ms)));
        return;
    }
    hf_format_when(ends_ms, look->now_ms, ends);
    hf_table_text(table, name);
    hf_table_text(table, look->n > 0 ? mode_of(look->entries) : "-");
    hf_table_number(table, (int64_t)holders);
    hf_table_number(table, (int64_t)(look->all - holders));
    hf_table_text(table, ends);
}

static hf_err list_page(lister *l, hf_lock_client *locks, size_t limit, size_t *more,
                        char *detail)
{
    static const hf_column columns[] = {{"NAME", false, 60},
                                        {"MODE", false, 0},
                                        {"HOLDERS", true, 0},
                                        {"WAITING", true, 0},
                                        {"ENDS", false, 0}};
    const char *after = hf_argv_text(l->cli->args, "after");
    hf_table table;
    hf_err err = HF_OK;
    size_t shown = 0;
    hf_table_init(&table, columns, HF_COUNT(columns));
    for (size_t i = 0; i < l->n && err == HF_OK; i++) {
        hf_lock_look look = {HF_LOCK_LOOK_INIT};
        if (after != NULL && strcmp(l->names[i], after) <= 0)
            continue;
        if (shown == limit) {
            ++*more;
            continue;
        }
        err = hf_lock_look_at(locks, l->names[i], ENTRIES, &look, detail);
        if (err == HF_OK && look.all > 0) {
            list_one(l, &table, l->names[i], &look);
            l->last = l->names[i];
            shown++;
        }
        hf_lock_look_done(&look);
    }
    if (!hf_table_print(&table, stdout) && err == HF_OK)
        err = HF_NOMEM;
    if (err == HF_OK && shown == 0 && !l->cli->json)
        puts("no locks");
    return err;
}

static int list(const hf_cli *cli, hf_lock_client *locks)
{
    char detail[HF_DETAIL_SIZE] = "";
    lister l = {.cli = cli};
    size_t limit = (size_t)hf_argv_number(cli->args, "limit", PAGE), more = 0;
    hf_err err = hf_lock_list(locks, note_name, &l, detail);
    if (err == HF_OK && l.failed)
        err = HF_NOMEM;
    tidy(&l);
    if (err == HF_OK)
        err = list_page(&l, locks, limit, &more, detail);
    if (err == HF_OK && more > 0)
        hf_more_tell(cli, limit, "lock", l.last);
    for (size_t i = 0; i < l.n; i++)
        free(l.names[i]);
    free(l.names);
    return err == HF_OK ? HF_EXIT_OK : hf_cli_fail(cli, err, detail);
}

int hf_cmd_locks_list(hf_cli *cli)
{
    hf_lock_client *locks = NULL;
    int code = hf_cli_locks(cli, &locks);
    if (code == HF_EXIT_OK)
        code = list(cli, locks);
    hf_lock_client_close(locks, NULL, NULL);
    return code;
}

/* ---- show ---- */

json_t *hf_locks_json(const hf_lock_entry *e)
{
    return json_pack("{s:o, s:o, s:s, s:b, s:I, s:I, s:I, s:o, s:b}", "owner",
                     hf_out_text(e->owner), "client", hf_out_text(e->client), "mode",
                     mode_of(e), "held", (int)e->granted, "permits",
                     (json_int_t)e->permits, "holds", (json_int_t)e->holds, "fence",
                     (json_int_t)e->fence, "ends_ms", hf_out_time(e->ends_ms), "revoked",
                     (int)e->revoked);
}

static void show_row(hf_table *table, const hf_lock_entry *e, int64_t now_ms)
{
    char ends[HF_WHEN_SIZE], fence[TOKEN_SIZE];
    (void)snprintf(fence, sizeof fence, "%" PRIu64, e->fence);
    hf_format_when(e->ends_ms, now_ms, ends);
    hf_table_text(table, !e->granted ? "waits" : e->revoked ? "asked back" : "holds");
    hf_table_text(table, mode_of(e));
    hf_table_number(table, e->permits);
    hf_table_number(table, (int64_t)e->holds);
    hf_table_text(table, e->granted ? fence : "-");
    hf_table_text(table, ends);
    hf_table_text(table, e->client[0] != '\0' ? e->client : "-");
    hf_table_text(table, e->owner);
}

static int show(const hf_cli *cli, hf_lock_client *locks, const char *name)
{
    static const hf_column columns[] = {
        {"STATE", false, 0},   {"MODE", false, 0},  {"PERMITS", true, 0},
        {"HOLDS", true, 0},    {"FENCE", true, 0},  {"ENDS", false, 0},
        {"CLIENT", false, 40}, {"OWNER", false, 0},
    };
    char detail[HF_DETAIL_SIZE] = "";
    hf_lock_look look = {HF_LOCK_LOOK_INIT};
    hf_table table;
    size_t limit = (size_t)hf_argv_number(cli->args, "limit", PAGE);
    hf_err err = hf_lock_look_at(locks, name, limit, &look, detail);
    if (err != HF_OK)
        return hf_cli_fail(cli, err, detail);
    hf_table_init(&table, columns, HF_COUNT(columns));
    for (size_t i = 0; i < look.n; i++) {
        if (cli->json)
            hf_out_json(stdout, hf_locks_json(&look.entries[i]));
        else
            show_row(&table, &look.entries[i], look.now_ms);
    }
    bool printed = hf_table_print(&table, stdout);
    if (look.all > look.n && !cli->json)
        printf("%zu more: a higher --limit shows them\n", look.all - look.n);
    size_t all = look.all;
    hf_lock_look_done(&look);
    if (!printed)
        return hf_cli_fail(cli, HF_NOMEM, "");
    return all > 0 ? HF_EXIT_OK
                   : hf_cli_say(cli, HF_EXIT_NO, "", "lock '%s' has no holder", name);
}

int hf_cmd_locks_show(hf_cli *cli)
{
    hf_lock_client *locks = NULL;
    const char *name = hf_argv_operand(cli->args, 0);
    int code = hf_cli_check_lock(cli, "a lock's name", name);
    if (code == HF_EXIT_OK)
        code = hf_cli_locks(cli, &locks);
    if (code == HF_EXIT_OK)
        code = show(cli, locks, name);
    hf_lock_client_close(locks, NULL, NULL);
    return code;
}

/* ---- release, revoke ---- */

typedef hf_err (*taker)(hf_lock_client *locks, const char *name, const char *owner,
                        size_t *n, char *detail);

/* `key`: the name of the holders' number in JSON; `done`: the result in words. */
static int take_from(const hf_cli *cli, hf_lock_client *locks, const char *name,
                     taker take, const char *key, const char *done)
{
    char detail[HF_DETAIL_SIZE] = "";
    size_t n = 0;
    hf_err err = take(locks, name, hf_argv_text(cli->args, "owner"), &n, detail);
    if (err != HF_OK)
        return hf_cli_fail(cli, err, detail);
    if (n == 0)
        return hf_cli_say(cli, HF_EXIT_NO, "", "lock '%s' has no holder%s", name,
                          hf_argv_has(cli->args, "owner") ? " of that owner" : "");
    if (cli->json)
        hf_out_json(stdout, json_pack("{s:o, s:I}", "name", hf_out_text(name), key,
                                      (json_int_t)n));
    else
        printf("lock '%s': %s %zu holder%s\n", name, done, n, n == 1 ? "" : "s");
    return HF_EXIT_OK;
}

static int check_owner(const hf_cli *cli)
{
    const char *owner = hf_argv_text(cli->args, "owner");
    return hf_cli_check_name(cli, "an owner", owner);
}

int hf_cmd_locks_release(hf_cli *cli)
{
    hf_lock_client *locks = NULL;
    const char *name = hf_argv_operand(cli->args, 0);
    int code = hf_cli_check_lock(cli, "a lock's name", name);
    if (code == HF_EXIT_OK)
        code = check_owner(cli);
    if (code == HF_EXIT_OK && !hf_argv_has(cli->args, "force"))
        code = hf_cli_say(cli, HF_EXIT_USAGE,
                          "'holdfast lock revoke NAME' asks the holder instead",
                          "a lock is released by its holder; to take it away, say "
                          "--force");
    if (code == HF_EXIT_OK)
        code = hf_confirm_possible(cli);
    if (code == HF_EXIT_OK && hf_confirm_wanted(cli))
        code = hf_confirm(cli, "Take lock '%s' away from its holder now?", name);
    if (code == HF_EXIT_OK)
        code = hf_cli_locks(cli, &locks);
    if (code == HF_EXIT_OK)
        code = take_from(cli, locks, name, hf_lock_force, "lost", "taken from");
    hf_lock_client_close(locks, NULL, NULL);
    return code;
}

int hf_cmd_locks_revoke(hf_cli *cli)
{
    hf_lock_client *locks = NULL;
    const char *name = hf_argv_operand(cli->args, 0);
    int code = hf_cli_check_lock(cli, "a lock's name", name);
    if (code == HF_EXIT_OK)
        code = check_owner(cli);
    if (code == HF_EXIT_OK)
        code = hf_cli_locks(cli, &locks);
    if (code == HF_EXIT_OK)
        code =
            take_from(cli, locks, name, hf_lock_revoke, "asked_back", "asked back from");
    hf_lock_client_close(locks, NULL, NULL);
    return code;
}

/* ---- fence-check ---- */

static int fence_check(const hf_cli *cli, hf_lock_client *locks, const char *resource,
                       int64_t fence)
{
    char detail[HF_DETAIL_SIZE] = "";
    uint64_t highest = 0;
    hf_err err =
        hf_fence_check(locks, resource, (uint64_t)fence, hf_argv_text(cli->args, "owner"),
                       hf_argv_number(cli->args, "remember", 0), &highest, detail);
    if (err != HF_OK && err != HF_LOST)
        return hf_cli_fail(cli, err, detail);
    if (err == HF_LOST)
        return hf_cli_say(cli, HF_EXIT_NO, "",
                          "fence %" PRId64 " may not write to '%s' any more: %" PRIu64
                          " was here",
                          fence, resource, highest);
    if (cli->json)
        hf_out_json(stdout, json_pack("{s:o, s:I}", "resource", hf_out_text(resource),
                                      "fence", (json_int_t)fence));
    return HF_EXIT_OK;
}

int hf_cmd_locks_fence_check(hf_cli *cli)
{
    hf_lock_client *locks = NULL;
    int64_t fence;
    const char *resource = hf_argv_operand(cli->args, 0);
    const char *text = hf_argv_operand(cli->args, 1);
    int code = hf_cli_check_lock(cli, "a resource's name", resource);
    if (code == HF_EXIT_OK && !hf_parse_int(text, 1, INT64_MAX, &fence))
        code = hf_cli_say(cli, HF_EXIT_DATA, "", "expected a fence above 0, found '%s'",
                          HF_FOUND(text));
    if (code == HF_EXIT_OK && !hf_argv_has(cli->args, "owner"))
        code = hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "expected --owner, whose fence it is: under 'holdfast lock' "
                          "$HOLDFAST_LOCK_OWNER");
    if (code == HF_EXIT_OK)
        code = check_owner(cli);
    if (code == HF_EXIT_OK)
        code = hf_cli_locks(cli, &locks);
    if (code == HF_EXIT_OK)
        code = fence_check(cli, locks, resource, fence);
    hf_lock_client_close(locks, NULL, NULL);
    return code;
}
