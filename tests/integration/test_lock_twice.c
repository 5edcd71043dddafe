/* test_lock_twice.c - every script of locks, sent twice with the same arguments, and once
 * after its time: see test_twice.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "lock_scripts.h"
#include "tests/support/dump.h"
#include "tests/support/redis_fixture.h"

enum { ARGS_MAX = 32, TEXT_SIZE = 512 };

#define PREFIX "hf:lock:{t}:"

static hf_fixture redis;
static redisContext *connection;

typedef struct sending {
    const char *what;
    const hf_script *script;
    const char *args[ARGS_MAX]; /* $T: not_after */
    int keys;                   /* how often the prefix is given; 0: once */
    int not_after;              /* its place among the arguments, from 1; 0: none */
    const char *first, *second; /* T for each time in it, F for each fence */
    bool reads;                 /* the first changes nothing either */
    bool again;                 /* the second does more of the same */
} sending;

/* See prepare(). */
static const sending table[] = {
    {.what = "enter a free lock",
     .script = &hf_lua_lock_enter,
     .args = {"D", "hd", "c9", "x", "1", "0", "-", "30000", "$T", "t/d"},
     .not_after = 9,
     .first = "0 T F",
     .second = "0 T F"},
    {.what = "enter several",
     .script = &hf_lua_lock_enter,
     .args = {"D", "hd", "c9", "x", "1", "0", "w", "30000", "$T", "t/d", "t/e"},
     .not_after = 9,
     .first = "0 T F",
     .second = "0 T F"},
    {.what = "enter the line",
     .script = &hf_lua_lock_enter,
     .args = {"D", "hd", "c9", "x", "1", "0", "w", "30000", "$T", "t/a"},
     .not_after = 9,
     .first = "-11 T 2 0 F",
     .second = "-11 T 2 0 F"},
    {.what = "enter several of which one is taken",
     .script = &hf_lua_lock_enter,
     .args = {"D", "hd", "c9", "x", "1", "0", "-", "30000", "$T", "t/a", "t/d"},
     .not_after = 9,
     .first = "-9 T T t/a",
     .second = "-9 T T t/a",
     .reads = true},
    {.what = "enter again without reentrance",
     .script = &hf_lua_lock_enter,
     .args = {"A", "hd", "c9", "x", "1", "0", "w", "30000", "$T", "t/a"},
     .not_after = 9,
     .first = "-10 T t/a",
     .second = "-10 T t/a",
     .reads = true},
    {.what = "enter again with reentrance",
     .script = &hf_lua_lock_enter,
     .args = {"A", "hd", "c9", "x", "1", "0", "r", "30000", "$T", "t/a"},
     .not_after = 9,
     .first = "0 T F",
     .second = "0 T F"},
    {.what = "enter with another limit",
     .script = &hf_lua_lock_enter,
     .args = {"D", "hd", "c9", "p", "1", "4", "w", "30000", "$T", "t/p"},
     .not_after = 9,
     .first = "-12 T 3",
     .second = "-12 T 3",
     .reads = true},
    {.what = "enter a cell",
     .script = &hf_lua_lock_enter,
     .args = {"D", "hd", "c9", "x", "1", "0", "c", "30000", "$T", "t/d"},
     .not_after = 9,
     .first = "0 T F",
     .second = "0 T F"},
    {.what = "keep a holder, a waiter, a cell, and others that are none",
     .script = &hf_lua_lock_keep,
     .args = {"$T",    "1", "l",  "90000", "A", "ha", "t/a",   "1", "w",
              "90000", "B", "hb", "t/a",   "1", "c",  "90000", "C", "hc",
              "t/c",   "1", "l",  "90000", "D", "hd", "t/a"},
     .keys = 4,
     .not_after = 1,
     .first = "0 T 4 1 -11 T 3 -2 0",
     .second = "0 T 4 1 -11 T 3 -2 0"},
    {.what = "keep a hold that its owner has not",
     .script = &hf_lua_lock_keep,
     .args = {"$T", "1", "l", "90000", "A", "h0", "t/a"},
     .not_after = 1,
     .first = "0 T 1 0 -2 0",
     .second = "0 T 1 0 -2 0",
     .reads = true},
    {.what = "keep what is not there",
     .script = &hf_lua_lock_keep,
     .args = {"$T", "1", "l", "90000", "D", "hd", "t/d", "1", "c", "90000", "D", "hd",
              "t/d", "1", "o", "90000", "D", "t/d"},
     .keys = 3,
     .not_after = 1,
     .first = "0 T 3 0 -2 0 1 -2 0 2 -2 0",
     .second = "0 T 3 0 -2 0 1 -2 0 2 -2 0",
     .reads = true},
    {.what = "leave as the holder",
     .script = &hf_lua_lock_leave,
     .args = {"A", "ha", "-", "$T", "t/a"},
     .not_after = 4,
     .first = "0 T 0 0",
     .second = "0 T 3 0"},
    {.what = "leave the line",
     .script = &hf_lua_lock_leave,
     .args = {"B", "hb", "-", "$T", "t/a"},
     .not_after = 4,
     .first = "0 T 0 0",
     .second = "0 T 3 0"},
    {.what = "leave a cell",
     .script = &hf_lua_lock_leave,
     .args = {"C", "hc", "c", "$T", "t/c"},
     .not_after = 4,
     .first = "0 T 0 0",
     .second = "0 T 2 0"},
    {.what = "leave what another has",
     .script = &hf_lua_lock_leave,
     .args = {"D", "hd", "-", "$T", "t/a"},
     .not_after = 4,
     .first = "0 T 3 0",
     .second = "0 T 3 0",
     .reads = true},
    {.what = "leave with a hold that its owner has not",
     .script = &hf_lua_lock_leave,
     .args = {"A", "h0", "-", "$T", "t/a"},
     .not_after = 4,
     .first = "0 T 3 0",
     .second = "0 T 3 0",
     .reads = true},
    {.what = "leave another's cell",
     .script = &hf_lua_lock_leave,
     .args = {"D", "hd", "c", "$T", "t/c"},
     .not_after = 4,
     .first = "0 T 3 0",
     .second = "0 T 3 0",
     .reads = true},
    {.what = "go from alone to shared",
     .script = &hf_lua_lock_leave,
     .args = {"A", "ha", "d", "$T", "t/a"},
     .not_after = 4,
     .first = "0 T 1 1",
     .second = "0 T 1 1"},
    {.what = "force one owner",
     .script = &hf_lua_lock_force,
     .args = {"t/a", "A", "0", "$T"},
     .not_after = 4,
     .first = "0 T 1",
     .second = "0 T 0"},
    {.what = "ask for it back",
     .script = &hf_lua_lock_force,
     .args = {"t/a", "", "1", "$T"},
     .not_after = 4,
     .first = "0 T 1",
     .second = "0 T 1",
     .again = true}, /* one more message */
    {.what = "look",
     .script = &hf_lua_lock_look,
     .args = {"t/a", "2"},
     .first = "0 T  0 2 {A T x 1 1 F c1 t/a ha=x B T x 0 1 0 c2 t/a hb=x}",
     .second = "0 T  0 2 {A T x 1 1 F c1 t/a ha=x B T x 0 1 0 c2 t/a hb=x}",
     .reads = true},
    {.what = "fence_check of a higher fence",
     .script = &hf_lua_lock_fence_check,
     .args = {"t/g", "8", "A", "0"},
     .first = "0 T 8",
     .second = "0 T 8"},
    {.what = "fence_check of a lower fence",
     .script = &hf_lua_lock_fence_check,
     .args = {"t/g", "6", "A", "0"},
     .first = "-2 T 7",
     .second = "-2 T 7",
     .reads = true},
    {.what = "fence_check of another owner's fence",
     .script = &hf_lua_lock_fence_check,
     .args = {"t/g", "7", "A", "0"},
     .first = "-2 T 7",
     .second = "-2 T 7",
     .reads = true},
};

/* ---- sending ---- */

static redisReply *run(const hf_script *script, int keys, const char *const *args,
                       bool late)
{
    const char *argv[3 + 4 + ARGS_MAX] = {"EVAL", (const char *)script->text};
    size_t lens[HF_COUNT(argv)];
    char n_keys[8], not_after[32];
    int n = 3;
    long long now =
        hf_fixture_number(&redis, "EVAL %s 0", "return redis.call('TIME')[1] * 1000");
    keys = keys == 0 ? 1 : keys;
    (void)snprintf(n_keys, sizeof n_keys, "%d", keys);
    (void)snprintf(not_after, sizeof not_after, "%lld", now + (late ? -5000 : 60000));
    argv[2] = n_keys;
    for (int i = 0; i < keys; i++)
        argv[n++] = PREFIX;
    for (int i = 0; i < ARGS_MAX && args[i] != NULL; i++)
        argv[n++] = strcmp(args[i], "$T") == 0 ? not_after : args[i];
    for (int i = 0; i < n; i++)
        lens[i] = i == 1 ? script->len : strlen(argv[i]);
    redisReply *reply = redisCommandArgv(connection, n, argv, lens);
    assert_non_null(reply);
    return reply;
}

static void answer(const sending *s, bool late, char out[TEXT_SIZE])
{
    redisReply *reply = run(s->script, s->keys, s->args, late);
    hf_print_reply(reply, out, TEXT_SIZE);
    freeReplyObject(reply);
}

static void enter(const char *owner, const char *hold, const char *client,
                  const char *mode, const char *limit, const char *flags,
                  const char *name)
{
    const char *const args[] = {owner, hold,    client, mode, "1", limit,
                                flags, "60000", "0",    name, NULL};
    freeReplyObject(run(&hf_lua_lock_enter, 0, args, false));
}

/* A holds t/a alone and B waits for it; C has the cell t/c, P one of three permits of
 * t/p; Z has written to t/g with the fence 7. */
static void prepare(void)
{
    assert_string_equal(hf_fixture_command(&redis, "FLUSHALL"), "OK");
    enter("A", "ha", "c1", "x", "0", "-", "t/a");
    enter("B", "hb", "c2", "x", "0", "w", "t/a");
    enter("C", "hc", "c3", "x", "0", "c", "t/c");
    enter("P", "hp", "c4", "p", "3", "-", "t/p");
    (void)hf_fixture_command(&redis, "SET " PREFIX "guard:t/g %s", "7 Z");
}

/* ---- the tests ---- */

static void assert_answer(const sending *s, const char *which, const char *found,
                          const char *expected)
{
    if (strcmp(found, expected) != 0)
        fail_msg("%s, %s answer:\n  found    %s\n  expected %s", s->what, which, found,
                 expected);
}

static void assert_same(const sending *s, const char *which, const hf_dump *before,
                        const hf_dump *after)
{
    char difference[1024];
    if (!hf_dump_same(before, after, difference, sizeof difference))
        fail_msg("%s, %s sending changed something: %s", s->what, which, difference);
}

static void send_twice(const sending *s)
{
    char text[TEXT_SIZE], unused[TEXT_SIZE];
    hf_dump before, between, after;
    prepare();
    hf_dump_take(&before, connection);
    answer(s, false, text);
    hf_dump_take(&between, connection);
    assert_answer(s, "first", text, s->first);
    if (s->reads)
        assert_same(s, "first", &before, &between);
    else if (hf_dump_same(&before, &between, unused, sizeof unused))
        fail_msg("%s: the first sending changed nothing", s->what);
    answer(s, false, text);
    hf_dump_take(&after, connection);
    assert_answer(s, "second", text, s->second);
    if (!s->again)
        assert_same(s, "second", &between, &after);
    hf_dump_done(&before);
    hf_dump_done(&between);
    hf_dump_done(&after);
}

static void every_script_sent_twice_does_its_work_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT(table); i++)
        send_twice(&table[i]);
}

static void after_its_time_no_script_changes_anything(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT(table); i++) {
        const sending *s = &table[i];
        char text[TEXT_SIZE];
        hf_dump before, after;
        if (s->not_after == 0)
            continue;
        assert_string_equal(s->args[s->not_after - 1], "$T");
        prepare();
        hf_dump_take(&before, connection);
        answer(s, true, text);
        hf_dump_take(&after, connection);
        assert_answer(s, "late", text, "-4 T");
        assert_same(s, "late", &before, &after);
        hf_dump_done(&before);
        hf_dump_done(&after);
    }
}

static void the_table_names_every_script(void **state)
{
    (void)state;
    for (const hf_script *const *script = hf_lua_lock_all; *script != NULL; script++) {
        size_t i = 0;
        while (i < HF_COUNT(table) && table[i].script != *script)
            i++;
        if (i == HF_COUNT(table))
            fail_msg("%s is not in the table", (*script)->name);
    }
}

static int up(void **state)
{
    (void)state;
    hf_fixture_start(&redis, NULL);
    connection = hf_fixture_connect(&redis);
    return connection == NULL;
}

static int down(void **state)
{
    (void)state;
    redisFree(connection);
    hf_fixture_stop(&redis);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_names_every_script),
        cmocka_unit_test(every_script_sent_twice_does_its_work_once),
        cmocka_unit_test(after_its_time_no_script_changes_anything),
    };
    return cmocka_run_group_tests(tests, up, down);
}
