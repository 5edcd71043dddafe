/* twice.c - see twice.h. */
#include "tests/support/twice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "tests/support/eventually.h"

enum { TEXT_SIZE = 512, ROW_MS = 60000 };

void hf_twice_up(hf_twice *suite)
{
    hf_fixture_start(&suite->redis, NULL);
    suite->connection = hf_fixture_connect(&suite->redis);
    assert_non_null(suite->connection);
}

void hf_twice_down(hf_twice *suite)
{
    redisFree(suite->connection);
    hf_fixture_stop(&suite->redis);
}

/* ---- sending ---- */

static long long server_ms(const hf_twice *suite)
{
    redisReply *reply = redisCommand(suite->connection, "TIME");
    assert_non_null(reply);
    long long ms = strtoll(reply->element[0]->str, NULL, 10) * 1000 +
                   strtoll(reply->element[1]->str, NULL, 10) / 1000;
    freeReplyObject(reply);
    return ms;
}

redisReply *hf_twice_send(hf_twice *suite, const hf_script *script,
                          const char *const keys[HF_TWICE_KEYS], const char *const *args,
                          bool late)
{
    const char *argv[3 + HF_TWICE_KEYS + HF_TWICE_ARGS] = {"EVAL",
                                                           (const char *)script->text};
    size_t lens[HF_COUNT(argv)] = {4, script->len};
    char n_keys[8], not_after[24], with_word[32];
    int n = 3;
    while (n < 3 + HF_TWICE_KEYS && keys != NULL && keys[n - 3] != NULL) {
        argv[n] = keys[n - 3];
        n++;
    }
    if (n == 3)
        argv[n++] = suite->prefix;
    (void)snprintf(n_keys, sizeof n_keys, "%d", n - 3);
    (void)snprintf(not_after, sizeof not_after, "%lld",
                   server_ms(suite) + (late ? -1 : 60000));
    (void)snprintf(with_word, sizeof with_word, "%s word", not_after);
    argv[2] = n_keys;
    for (int i = 0; i < HF_TWICE_ARGS && args[i] != NULL; i++) {
        const char *arg = suite->expand != NULL ? suite->expand(args[i]) : args[i];
        argv[n++] = strcmp(arg, "$T") == 0   ? not_after
                    : strcmp(arg, "$W") == 0 ? with_word
                                             : arg;
    }
    for (int i = 2; i < n; i++)
        lens[i] = strlen(argv[i]);
    redisReply *reply = redisCommandArgv(suite->connection, n, argv, lens);
    assert_non_null(reply);
    return reply;
}

static void answer(hf_twice *suite, const hf_sending *s, bool late, char out[TEXT_SIZE])
{
    redisReply *reply = hf_twice_send(suite, s->script, s->keys, s->args, late);
    hf_print_reply(reply, out, TEXT_SIZE);
    freeReplyObject(reply);
}

/* ---- what is expected ---- */

static void assert_answer(const hf_sending *s, const char *which, const char *found,
                          const char *expected)
{
    if (strcmp(found, expected) != 0)
        fail_msg("%s, %s answer:\n  found    %s\n  expected %s", s->what, which, found,
                 expected);
}

static void assert_same(const hf_sending *s, const char *which, const hf_dump *before,
                        const hf_dump *after)
{
    char difference[1024];
    if (!hf_dump_same(before, after, difference, sizeof difference))
        fail_msg("%s, %s sending changed something: %s", s->what, which, difference);
}

static void must_be_once(const hf_sending *s, const char *first, const char *second,
                         const hf_dump dumps[3])
{
    char unused[TEXT_SIZE];
    assert_answer(s, "first", first, s->first);
    if (s->reads)
        assert_same(s, "first", &dumps[0], &dumps[1]);
    else if (hf_dump_same(&dumps[0], &dumps[1], unused, sizeof unused))
        fail_msg("%s: the first sending changed nothing", s->what);
    assert_answer(s, "second", second, s->second == NULL ? s->first : s->second);
    if (!s->again)
        assert_same(s, "second", &dumps[1], &dumps[2]);
}

/* False: what was prepared may have become too old before the end. */
static bool send_twice(hf_twice *suite, const hf_sending *s)
{
    char first[TEXT_SIZE], second[TEXT_SIZE];
    hf_dump dumps[3];
    const long long from_ms = server_ms(suite);
    suite->prepare();
    hf_dump_take(&dumps[0], suite->connection);
    answer(suite, s, false, first);
    hf_dump_take(&dumps[1], suite->connection);
    answer(suite, s, false, second);
    const bool fresh =
        suite->fresh_ms == 0 || server_ms(suite) - from_ms < suite->fresh_ms;
    if (s->counted != NULL && fresh)
        suite->uncount(s->counted);
    hf_dump_take(&dumps[2], suite->connection);
    if (fresh)
        must_be_once(s, first, second, dumps);
    for (size_t i = 0; i < HF_COUNT(dumps); i++)
        hf_dump_done(&dumps[i]);
    return fresh;
}

static void send_late(hf_twice *suite, const hf_sending *s)
{
    char text[TEXT_SIZE];
    hf_dump before, after;
    const char *time = s->args[s->not_after - 1];
    assert_true(strcmp(time, "$T") == 0 || strcmp(time, "$W") == 0);
    suite->prepare();
    hf_dump_take(&before, suite->connection);
    answer(suite, s, true, text);
    hf_dump_take(&after, suite->connection);
    assert_answer(s, "late", text, "-4 T");
    assert_same(s, "late", &before, &after);
    hf_dump_done(&before);
    hf_dump_done(&after);
}

/* ---- the tests ---- */

void hf_twice_the_table_names_every_script(void **state)
{
    const hf_twice *suite = *state;
    for (const hf_script *const *script = suite->all; *script != NULL; script++) {
        size_t i = 0;
        while (i < suite->n && suite->table[i].script != *script)
            i++;
        if (i == suite->n)
            fail_msg("%s is not in the table", (*script)->name);
    }
}

void hf_twice_every_script_does_its_work_once(void **state)
{
    hf_twice *suite = *state;
    for (size_t i = 0; i < suite->n; i++)
        EVENTUALLY(ROW_MS, send_twice(suite, &suite->table[i]));
}

void hf_twice_no_script_changes_anything_after_its_time(void **state)
{
    hf_twice *suite = *state;
    for (size_t i = 0; i < suite->n; i++)
        if (suite->table[i].not_after != 0)
            send_late(suite, &suite->table[i]);
}
