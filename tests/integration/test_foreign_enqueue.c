/* test_foreign_enqueue.c - enqueue.lua as other languages call it, by docs/keys.md alone:
 * what is not as it should be is refused with a sentence, and has changed nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "queue_scripts.h"
#include "tests/support/dump.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"

#define RECORD "{\"type\":\"t\",\"created\":1700000000000}\npayload"
#define NAME_32 "abcdefghijklmnopqrstuvwxyz.:-_09"
#define NAME_128 NAME_32 NAME_32 NAME_32 NAME_32

static const char longest[] = NAME_128, too_long[] = NAME_128 "x";

enum { ARGS = 16 };

static hf_queue_fixture fixture;
static redisContext *connection;

static int up(void **state)
{
    (void)state;
    hf_queue_fixture_start(&fixture, NULL);
    connection = hf_fixture_connect(&fixture.redis);
    return 0;
}

static int down(void **state)
{
    (void)state;
    redisFree(connection);
    hf_queue_fixture_stop(&fixture);
    return 0;
}

static redisReply *enqueue(const char *const *args, size_t n)
{
    const char *argv[4 + ARGS] = {"EVAL", (const char *)hf_lua_queue_enqueue.text, "1",
                                  "hf:{q}:"};
    assert_true(n <= ARGS);
    memcpy(argv + 4, args, n * sizeof *args);
    redisReply *reply = redisCommandArgv(connection, (int)(4 + n), argv, NULL);
    assert_non_null(reply);
    return reply;
}

static void is_accepted(const char *const *args, size_t n)
{
    redisReply *reply = enqueue(args, n);
    if (reply->type != REDIS_REPLY_ARRAY || reply->element[0]->integer != 0)
        fail_msg("refused: %s", reply->type == REDIS_REPLY_ERROR ? reply->str : "");
    freeReplyObject(reply);
}

static void is_refused(const char *const *args, size_t n, const char *why)
{
    char difference[256];
    hf_dump before, after;
    hf_dump_take(&before, connection);
    redisReply *reply = enqueue(args, n);
    if (reply->type != REDIS_REPLY_ERROR)
        fail_msg("taken: %s", why);
    if (strstr(reply->str, "holdfast: ") == NULL || strstr(reply->str, why) == NULL)
        fail_msg("expected '%s', found: %s", why, reply->str);
    freeReplyObject(reply);
    hf_dump_take(&after, connection);
    if (!hf_dump_same(&before, &after, difference, sizeof difference))
        fail_msg("%s: it has changed %s", why, difference);
    hf_dump_done(&before);
    hf_dump_done(&after);
}

/* Two jobs of a producer that numbers its requests. */
static const char *const good[] = {"p", "1",    "0",   "60000",  "0",   "one",
                                   "0", RECORD, "two", "-60000", RECORD};
enum { PRODUCER, NUMBER, NOT_AFTER, REMEMBER, WAITED, ID = 8, DUE, TEXT };

static void each_argument_is_looked_at_before_anything_is_written(void **state)
{
    static const struct {
        int place;
        const char *word, *why;
    } bad[] = {
        {PRODUCER, "a producer", "a producer"},
        {PRODUCER, too_long, "a producer"},
        {NUMBER, "", "a number"},
        {NUMBER, "1e3", "a number"},
        {NUMBER, "-1", "a number"},
        {NUMBER, "99999999999999999999", "a number"},
        {NOT_AFTER, "nan", "a number"},
        {NOT_AFTER, "soon", "a number"},
        {REMEMBER, "0", "to remember"},
        {REMEMBER, "inf", "a number"},
        {REMEMBER, "3155760000001", "a number"},
        {WAITED, "nan", "a number"},
        {ID, "", "job 2: expected an id"},
        {ID, "a b", "job 2: expected an id"},
        {ID, "=5", "job 2: expected an id"},
        {ID, "a\nb", "job 2: expected an id"},
        {ID, "caf\xc3\xa9", "job 2: expected an id"},
        {ID, too_long, "job 2: expected an id"},
        {DUE, "", "job 2: expected to be due"},
        {DUE, "nan", "job 2: expected to be due"},
        {DUE, "inf", "job 2: expected to be due"},
        {DUE, "-inf", "job 2: expected to be due"},
        {DUE, "1e30", "job 2: expected to be due"},
        {DUE, "0x10", "job 2: expected to be due"},
        {DUE, "1.5", "job 2: expected to be due"},
        {DUE, " 1", "job 2: expected to be due"},
        {DUE, "253402300800000", "job 2: expected to be due"},
        {DUE, "-3155760000001", "job 2: expected to be due"},
        {TEXT, "", "job 2: expected a record"},
        {TEXT, "payload", "job 2: expected a record"},
        {TEXT, "{\"type\":\"t\"}", "job 2: expected a record"},
        {TEXT, "{\"type\":\"t\"\n", "job 2: expected a record"},
        {TEXT, "{}\n", "job 2: expected a record"},
        {TEXT, "{\"type\":7}\n", "job 2: expected a record"},
        {TEXT, "{\"type\":\"a b\"}\n", "job 2: expected a record"},
        {TEXT, "[\"type\"]\n", "job 2: expected a record"},
        {TEXT, "\n{\"type\":\"t\"}\n", "job 2: expected a record"},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(bad); i++) {
        const char *args[ARGS];
        memcpy(args, good, sizeof good);
        args[bad[i].place] = bad[i].word;
        is_refused(args, HF_COUNT(good), bad[i].why);
    }
    is_accepted(good, HF_COUNT(good));
    assert_int_equal(hf_fixture_number(&fixture.redis, "HLEN hf:{q}:jobs"), 2);
}

static void the_bounds_themselves_are_accepted(void **state)
{
    static const char *const args[] = {"",
                                       "0",
                                       "0",
                                       "0",
                                       "0",
                                       longest,
                                       "253402300799999",
                                       "{\"type\":\"t\"}\r\n",
                                       "far",
                                       "-3155760000000",
                                       RECORD,
                                       "-n"};
    (void)state;
    is_accepted(args, HF_COUNT(args));
    assert_int_equal(
        hf_fixture_number(&fixture.redis, "ZSCORE hf:{q}:schedule %s", longest),
        253402300799999);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 10, 0), 0);
    assert_true(fixture.next_ms > fixture.now_ms);
}

static void a_request_of_another_shape_is_refused(void **state)
{
    static const char *const none[] = {"", "0", "0", "0", "0", "n"};
    static const char *const odd[] = {"", "0", "0", "0", "0", "a", "0", RECORD, "-", "b"};
    (void)state;
    is_refused(none, 5, "1 to 10000 jobs");
    is_refused(none, 6, "1 to 10000 jobs");
    is_refused(odd, HF_COUNT(odd), "1 to 10000 jobs");
    is_refused(odd, 7, "1 to 10000 jobs");
}

static void ids_that_were_made_are_looked_at_as_well(void **state)
{
    static const char *const args[] = {"", "0", "0", "0", "0", "a b", "0", RECORD, "n"};
    (void)state;
    is_refused(args, HF_COUNT(args), "job 1: expected an id");
}

/* The letters say of each id whether it must be new, in capitals too. */
static void a_made_id_that_is_known_changes_nothing(void **state)
{
    static const char *const letters[] = {"-n", "Cn", "CN", "-N", "N"};
    const char *args[] = {"",  "0",    "0",   "0", "0",    "old",
                          "0", RECORD, "new", "0", RECORD, NULL};
    (void)state;
    is_accepted((const char *const[]){"", "0", "0", "0", "0", "new", "0", RECORD}, 8);
    for (size_t i = 0; i < HF_COUNT(letters); i++) {
        args[11] = letters[i];
        redisReply *reply = enqueue(args, HF_COUNT(args));
        assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
        assert_int_equal(reply->element[0]->integer, HF_EXISTS);
        freeReplyObject(reply);
    }
    assert_int_equal(hf_fixture_number(&fixture.redis, "HLEN hf:{q}:jobs"), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_argument_is_looked_at_before_anything_is_written),
        TEST(the_bounds_themselves_are_accepted),
        TEST(a_request_of_another_shape_is_refused),
        TEST(ids_that_were_made_are_looked_at_as_well),
        TEST(a_made_id_that_is_known_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
