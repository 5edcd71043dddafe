/* test_cli_lost.c - every command that changes something, with each of its answers lost,
 * torn, or its requests delayed until the command has ended.
 *
 * The command is run once undisturbed. Then it is run again, from the same data, with the
 * first, the second, ... request of a script hit. The exit code, what it prints, and all
 * that Redis holds afterwards must be the same. Ids that are made and times differ, so
 * they are printed as I and T. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "tests/support/dump.h"
#include "tests/support/proc.h"
#include "tests/support/proxy.h"
#include "tests/support/queue_fixture.h"

enum {
    RUN_MS = 60000,
    LEASE_MS = 7200000,
    TEXT = 1 << 15,
    HITS_MAX = 60,
    MADE_ID = 14,
    RUN_ID = 26
};

/* "$HF" is the command and "$R" the option for its Redis. Before each command the queue q
 * has the waiting jobs a and b, the dead jobs d1 and d2, and r1, which runs; its lease is
 * longer than the test. */
typedef struct row {
    const char *before; /* in the shell, undisturbed; or NULL */
    const char *line;
    int code;
} row;

/* A holder of the lock l that has died. */
#define HOLD "$HF lock l $R --ttl 2h -- sh -c 'kill -9 $PPID' >/dev/null 2>&1; true"

static const row table[] = {
    {NULL, "$HF enqueue t -q q --id n1 $R", 0},
    {NULL, "$HF enqueue t -q q $R", 0},
    {NULL, "$HF enqueue t -q q --id a $R", 0},
    {NULL, "$HF enqueue t -q new --in 1h --priority high $R", 0},
    {NULL, "$HF enqueue t -q q --keep 1h --start-within 1h --max-attempts 2 $R", 0},
    {NULL, "$HF enqueue t -q q --unique k --json $R", 0},
    {"$HF enqueue t -q q --id u --unique k $R", "$HF enqueue t -q q --unique k --json $R",
     0},
    {"$HF enqueue t -q q --id u --unique k $R",
     "$HF enqueue t 2 -q q --unique k --on-conflict replace --json $R", 0},
    {"$HF enqueue t -q q --id u --unique k $R",
     "$HF enqueue t 2 -q q --unique k --on-conflict next --json $R", 0},
    {NULL, "$HF enqueue t -q q --unique k --throttle 1h --json $R", 0},
    {"$HF enqueue t -q q --id u --unique k --throttle 1h $R",
     "$HF enqueue t -q q --unique k --throttle 1h --json $R", 0},
    {"$HF enqueue t -q q --id u --unique k --debounce 1h --max-wait 2h $R",
     "$HF enqueue t 2 -q q --unique k --debounce 1h --max-wait 2h --json $R", 0},
    {NULL,
     "printf '%s\\n' '{\"type\":\"t\",\"id\":\"n1\"}' '{\"type\":\"t\"}' "
     "'{\"type\":\"t\",\"queue\":\"x\"}' | $HF enqueue --bulk - -q q $R",
     0},
    {NULL,
     "printf '%s\\n' '{\"type\":\"t\"}' '{\"type\":\"t\"}' | "
     "$HF enqueue --bulk - --atomic -q q $R",
     0},
    {NULL, "$HF job cancel a $R", 0},
    {NULL, "$HF job cancel a -q q --json $R", 0},
    {NULL, "$HF job cancel r1 -q q --json $R", 0},
    {NULL, "$HF job cancel d1 $R", 1},
    {NULL, "$HF job cancel none $R", 1},
    {NULL, "$HF job delete a --yes $R", 0},
    {NULL, "$HF job delete d1 --yes -q q --json $R", 0},
    {NULL, "$HF job delete r1 --yes $R", 1},
    {NULL, "$HF job delete none --yes -q q $R", 1},
    {NULL, "$HF job retry a $R", 0},
    {NULL, "$HF job retry d1 -q q --json $R", 0},
    {NULL, "$HF job retry r1 -q q $R", 1},
    {NULL, "$HF job edit a --in 2h --priority high $R", 0},
    {NULL, "$HF job edit a other -q q --json $R", 0},
    {NULL, "$HF job edit r1 --in 2h $R", 1},
    {NULL, "$HF dead retry -q q $R", 0},
    {NULL, "$HF dead retry -q q --limit 1 --json $R", 0},
    {NULL, "$HF dead retry -q q --rate 1/s $R", 0},
    {NULL, "$HF dead retry d1 -q q $R", 0},
    {NULL, "$HF dead retry a -q q $R", 1},
    {NULL, "$HF dead purge -q q --yes $R", 0},
    {NULL, "$HF dead purge -q q --limit 1 --yes --json $R", 0},
    {NULL, "$HF dead purge d1 -q q --yes $R", 0},
    {NULL, "$HF queue pause q $R", 0},
    {"$HF queue pause q $R", "$HF queue resume q $R", 0},
    {NULL, "$HF queue limit q --max-running 2 --rate 5/s $R", 0},
    {"$HF queue limit q --max-running 2 $R", "$HF queue limit q --max-running 0 $R", 0},
    {NULL, "$HF queue shards new 2 $R", 0},
    {NULL, "$HF queue purge q --yes $R", 0},
    {"$HF queue pause old $R", "$HF queue resume old $R", 0},
    {"$HF queue pause old $R", "$HF queue remove old --yes --json $R", 0},
    {"$HF queue shards old 2 $R", "$HF queue remove old --yes $R", 0},
    {NULL, "$HF queue remove q --yes $R", 1},
    {NULL, "$HF queue remove none --yes $R", 1},
    {NULL, "$HF cron add s t -q q --every 1h --json $R", 0},
    {"$HF cron add s t -q q --every 1h $R",
     "$HF cron add s t -q q --cron '0 4 * * *' --json $R", 0},
    {"$HF cron add s t -q q --every 1h $R", "$HF cron remove s -q q $R", 0},
    {NULL, "$HF cron remove s -q q $R", 1},
    {"$HF cron add s t -q q --every 1h $R", "$HF cron pause s -q q $R", 0},
    {"$HF cron add s t -q q --every 1h $R && $HF cron pause s -q q $R",
     "$HF cron resume s -q q $R", 0},
    {"$HF cron add s t -q q --every 1h $R", "$HF cron run s -q q $R", 0},
    {"redis-cli -s $S HDEL 'hf:{q}:jobs' a >/dev/null", "$HF doctor --fix --json $R", 1},
    {NULL, "$HF lock l $R -- sh -c 'echo ran'", 0},
    {NULL, "$HF lock l $R -- sh -c 'echo ran; exit 3'", 3},
    {NULL, "$HF locks release l --force --yes $R", 1},
    {HOLD, "$HF locks release l --force --yes $R", 0},
    {HOLD, "$HF locks revoke l $R", 0},
    {HOLD, "$HF locks list $R", 0},
    {NULL, "$HF locks fence-check res 5 --owner me $R", 0},
    {"$HF locks fence-check res 9 --owner me $R",
     "$HF locks fence-check res 5 --owner me $R", 1},
};

static hf_queue_fixture fixture;
static hf_proxy proxy;
static redisContext *connection;
static char dir[HF_TEMPDIR_SIZE];

/* ---- the data ---- */

typedef struct saved {
    redisReply *names, *values[256]; /* DUMP */
    long long ends_ms[256];          /* 0: it has no end */
} saved;

static redisReply *ask(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = redisvCommand(connection, format, args);
    va_end(args);
    if (reply == NULL || reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", format, reply == NULL ? connection->errstr : reply->str);
    return reply;
}

static void save(saved *s)
{
    /* In one request: PEXPIRETIME is not in Redis 6. */
    static const char end_ms[] =
        "local left, time = redis.call('PTTL', KEYS[1]), redis.call('TIME') "
        "return left > 0 and time[1] * 1000 + math.floor(time[2] / 1000) + left or 0";
    s->names = ask("KEYS *");
    assert_true(s->names->elements < HF_COUNT(s->values));
    for (size_t i = 0; i < s->names->elements; i++) {
        redisReply *end = ask("EVAL %s 1 %s", end_ms, s->names->element[i]->str);
        s->ends_ms[i] = end->integer;
        freeReplyObject(end);
        s->values[i] = ask("DUMP %s", s->names->element[i]->str);
    }
}

static void restore(const saved *s)
{
    freeReplyObject(ask("FLUSHALL"));
    for (size_t i = 0; i < s->names->elements; i++)
        freeReplyObject(ask("RESTORE %s %lld %b ABSTTL", s->names->element[i]->str,
                            s->ends_ms[i], s->values[i]->str, s->values[i]->len));
}

static void forget(saved *s)
{
    for (size_t i = 0; i < s->names->elements; i++)
        freeReplyObject(s->values[i]);
    freeReplyObject(s->names);
}

static void prepare(void)
{
    const hf_verdict_args args = {
        .worker = "w", .dead_max = 1000, .dead_age_ms = 1000000};
    for (int i = 1; i <= 2; i++) {
        const char *const id = i == 1 ? "d1" : "d2";
        const hf_verdict_item item = {.id = id, .reason = "handler"};
        hf_queue_fixture_put(&fixture, id, "p", 0);
        assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
        assert_int_equal(hf_queue_fixture_verdict(&fixture, HF_OP_BURY, &args, &item),
                         HF_OK);
    }
    assert_int_equal(hf_queue_fixture_register(&fixture), HF_OK);
    hf_queue_fixture_put(&fixture, "r1", "p", 0);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, LEASE_MS), 1);
    hf_queue_fixture_put(&fixture, "a", "p", -3600000);
    hf_queue_fixture_put(&fixture, "b", "p", 0);
}

/* ---- what is compared ---- */

/* Of two units, as what is left of a lease: 9m59s. */
static bool is_duration(const char *word, size_t len)
{
    size_t units = 0, digits = 0;
    for (size_t i = 0; i < len; i++) {
        bool unit = digits > 0 && strchr("dhms", word[i]) != NULL;
        if (!unit && isdigit((unsigned char)word[i]) == 0)
            return false;
        digits = unit ? 0 : digits + 1;
        units += unit;
    }
    return digits == 0 && units == 2;
}

/* A word in which I or T stands for what differs from run to run; NULL: it stays. */
static const char *changing(const char *word, size_t len)
{
    size_t digits = 0, capitals = 0;
    for (size_t i = 0; i < len; i++) {
        digits += isdigit((unsigned char)word[i]) != 0;
        capitals += isupper((unsigned char)word[i]) != 0;
    }
    if ((len > 12 && digits == len) || is_duration(word, len))
        return "T";
    bool made = len == MADE_ID && capitals > 0;
    return made || (len == RUN_ID && digits + capitals == len) ? "I" : NULL;
}

static void add_plain(FILE *out, const char *text)
{
    while (*text != '\0') {
        size_t len = 0;
        while (isalnum((unsigned char)text[len]) || text[len] == '_' || text[len] == '-')
            len++;
        const char *instead = changing(text, len);
        (void)fwrite(instead != NULL ? instead : text, 1,
                     instead != NULL ? 1
                     : len == 0      ? 1
                                     : len,
                     out);
        text += len == 0 ? 1 : len;
    }
}

typedef struct outcome {
    int code;
    char text[TEXT]; /* what it prints and what Redis holds */
    char said[4096]; /* not compared */
} outcome;

static void path_of(const char *name, char out[HF_TEMPDIR_SIZE + 16])
{
    (void)snprintf(out, HF_TEMPDIR_SIZE + 16, "%s/%s", dir, name);
}

static int run(const char *line, const char *url, outcome *o)
{
    static char hf[512], r[512], s[512], out[HF_TEMPDIR_SIZE + 16],
        err[HF_TEMPDIR_SIZE + 16];
    const char *const args[] = {"sh", "-c", line, NULL};
    const char *const env[] = {hf, r, s, NULL};
    (void)snprintf(hf, sizeof hf, "HF=%s", HF_TEST_COMMAND);
    (void)snprintf(r, sizeof r, "R=--redis=%s", url);
    (void)snprintf(s, sizeof s, "S=%s", fixture.redis.socket);
    path_of("out", out);
    path_of("err", err);
    hf_write_file(out, "");
    hf_write_file(err, "");
    int code = hf_proc_run(
        &(hf_proc_options){.args = args, .env = env, .out = out, .err = err}, RUN_MS);
    if (o != NULL)
        (void)hf_read_file(err, o->said, sizeof o->said);
    return code;
}

static void look(outcome *o, int code)
{
    static char printed[TEXT];
    char out[HF_TEMPDIR_SIZE + 16];
    hf_dump dump;
    path_of("out", out);
    FILE *text = fmemopen(o->text, sizeof o->text, "w");
    assert_non_null(text);
    o->code = code;
    add_plain(text, hf_read_file(out, printed, sizeof printed));
    hf_dump_take(&dump, connection);
    for (size_t i = 0; i < dump.n; i++) {
        if (strstr(dump.keys[i].name, ":seen:") != NULL ||
            strstr(dump.keys[i].name, ":answer:") != NULL)
            continue; /* what Redis remembers, for a while, of what may be in doubt */
        (void)fputs("-- ", text);
        add_plain(text, dump.keys[i].name);
        (void)fprintf(text, dump.keys[i].pttl_ms < 0 ? "\n" : " (ends)\n");
        add_plain(text, dump.keys[i].value);
    }
    hf_dump_done(&dump);
    (void)fclose(text);
}

/* ---- the hits ---- */

typedef enum hit { LOSE, TEAR, DELAY } hit;
static const char *const hits[] = {"lost", "torn", "late"};

static bool strike(const saved *data, const row *r, hit how, unsigned n, outcome *o)
{
    unsigned cuts = hf_proxy_cuts(&proxy);
    restore(data);
    hf_proxy_skip(&proxy, n);
    hf_proxy_lose_answer(&proxy, "");
    if (how == DELAY)
        hf_proxy_delay(&proxy, "EVALSHA");
    else if (how == LOSE)
        hf_proxy_lose_answer(&proxy, "EVALSHA");
    else
        hf_proxy_tear_answer(&proxy, "EVALSHA");
    int code = run(r->line, proxy.url, o);
    bool struck = how == DELAY ? hf_proxy_delayed(&proxy) : hf_proxy_cuts(&proxy) > cuts;
    if (struck && how == DELAY)
        (void)hf_proxy_deliver(&proxy);
    hf_proxy_delay(&proxy, "");
    look(o, code);
    return struck;
}

static size_t compare(const row *r, hit how, unsigned n, const outcome *is,
                      const outcome *must)
{
    if (is->code == must->code && strcmp(is->text, must->text) == 0)
        return 0;
    size_t at = 0, line = 0;
    for (; is->text[at] != '\0' && is->text[at] == must->text[at]; at++)
        line = is->text[at] == '\n' ? at + 1 : line;
    print_error("`%s`, request %u %s: ended with %d instead of %d: %.300s\n%.200s\n"
                "INSTEAD OF\n%.200s\n",
                r->line, n + 1, hits[how], is->code, must->code, is->said,
                is->text + line, must->text + line);
    return 1;
}

static size_t try_row(const saved *base, const row *r)
{
    static outcome must, is;
    size_t wrong = 0;
    saved data = {0};
    restore(base);
    if (r->before != NULL && run(r->before, hf_fixture_url(&fixture.redis), &is) != 0)
        fail_msg("%s: %s", r->before, is.said);
    save(&data);
    int code = run(r->line, proxy.url, &must);
    if (code != r->code)
        print_error("`%s` ENDED with %d: %s", r->line, code, must.said);
    restore(&data); /* now Redis knows its scripts */
    look(&must, run(r->line, proxy.url, &must));
    for (hit how = LOSE; how <= DELAY; how++)
        for (unsigned n = 0; n < HITS_MAX && strike(&data, r, how, n, &is); n++)
            wrong += compare(r, how, n, &is, &must);
    forget(&data);
    return wrong;
}

static void what_is_lost_or_late_changes_no_outcome(void **state)
{
    size_t wrong = 0;
    saved base;
    const char *only = getenv("HF_ROW");
    (void)state;
    prepare();
    save(&base);
    for (size_t i = 0; i < HF_COUNT(table); i++)
        if (only == NULL || strstr(table[i].line, only) != NULL)
            wrong += try_row(&base, &table[i]);
    forget(&base);
    assert_int_equal(wrong, 0);
}

static int up(void **state)
{
    (void)state;
    hf_queue_fixture_start(&fixture, NULL);
    hf_proxy_start(&proxy, fixture.redis.socket);
    connection = hf_fixture_connect(&fixture.redis);
    hf_tempdir_make(dir);
    return 0;
}

static int down(void **state)
{
    (void)state;
    freeReplyObject(ask("FLUSHALL")); /* the lives of keys that were restored are wrong */
    redisFree(connection);
    hf_proxy_stop(&proxy);
    hf_queue_fixture_stop(&fixture);
    hf_tempdir_remove(dir);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_lost_or_late_changes_no_outcome, up,
                                        down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
