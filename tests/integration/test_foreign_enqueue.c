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

static const char *prefix = "hf:{q}:";

static redisReply *enqueue(const char *const *args, size_t n)
{
    const char *argv[4 + ARGS] = {"EVAL", (const char *)hf_lua_queue_enqueue.text, "1",
                                  prefix};
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

static void headers_are_one_object_of_texts(void **state)
{
    static const char *const bad[] = {"7",
                                      "\"a\"",
                                      "[]",
                                      "[\"a\"]",
                                      "{\"a\":7}",
                                      "{\"a\":null}",
                                      "{\"a\":{\"b\":\"c\"}}"};
    static const char *const taken[] = {"{}", "{\"a\":\"}{\\\"\"}",
                                        "{\"caf\xc3\xa9\" : \"\\u00e9\"}"};
    char record[HF_HEADERS_MAX + 64];
    const char *args[] = {"", "0", "0", "0", "0", "one", "0", record};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(bad); i++) {
        snprintf(record, sizeof record, "{\"type\":\"t\",\"headers\":%s}\n", bad[i]);
        is_refused(args, HF_COUNT(args),
                   "job 1: expected as its headers one JSON object");
    }
    snprintf(record, sizeof record, "{\"type\":\"t\",\"headers\":{\"a\":\"%0*d\"}}\n",
             HF_HEADERS_MAX - 7, 0);
    is_refused(args, HF_COUNT(args), "job 1: expected as its headers one JSON object");
    snprintf(record, sizeof record, "{\"type\":\"t\",\"headers\":{\"a\":\"%0*d\"}}\n",
             HF_HEADERS_MAX - 8, 0);
    is_accepted(args, HF_COUNT(args));
    for (size_t i = 0; i < HF_COUNT(taken); i++) {
        snprintf(record, sizeof record, "{\"type\":\"t\",\"headers\":%s}\n", taken[i]);
        is_accepted(args, HF_COUNT(args));
    }
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

/* ---- what a worker must be able to read ---- */

static void refuses_line(const char *line, const char *why)
{
    char record[512], text[256];
    const char *const args[] = {"", "0", "0", "0", "0", "one", "0", record};
    (void)snprintf(record, sizeof record, "%s\npayload", line);
    (void)snprintf(text, sizeof text, "job 1: expected %s", why);
    is_refused(args, HF_COUNT(args), text);
}

static void each_field_is_looked_at(void **state)
{
    static const struct {
        const char *line, *why;
    } bad[] = {
        {"{\"type\":\"t\",\"max_attempts\":\"many\"}",
         "as its max_attempts a whole number"},
        {"{\"type\":\"t\",\"max_attempts\":0}",
         "as its max_attempts a whole number from 1"},
        {"{\"type\":\"t\",\"max_attempts\":-1}", "as its max_attempts"},
        {"{\"type\":\"t\",\"max_attempts\":4294967296}", "as its max_attempts"},
        {"{\"type\":\"t\",\"max_attempts\":null}", "as its max_attempts"},
        {"{\"type\":\"t\",\"max_attempts\":5.0}", "as its max_attempts"},
        {"{\"type\":\"t\",\"max_attempts\":5e0}", "as its max_attempts"},
        {"{\"type\":\"t\",\"timeout\":\"30s\"}", "as its timeout a whole number"},
        {"{\"type\":\"t\",\"timeout\":[30]}", "as its timeout"},
        {"{\"type\":\"t\",\"keep\":\"1h\"}", "as its keep a whole number"},
        {"{\"type\":\"t\",\"keep\":3155760000001}", "as its keep"},
        {"{\"type\":\"t\",\"created\":1.5}", "as its created a whole number"},
        {"{\"type\":\"t\",\"created\":\"now\"}", "as its created"},
        {"{\"type\":\"t\",\"v\":2}", "as its v 1"},
        {"{\"type\":\"t\",\"v\":\"1\"}", "as its v 1"},
        {"{\"type\":\"a b\"}", "a record with a type"},
        /* what Redis would take for JSON */
        {"{\"type\":\"t\",\"x\":0x10}", "a record: a line of JSON"},
        {"{\"type\":\"t\",\"x\":nan}", "a record: a line of JSON"},
        {"{\"type\":\"t\",\"x\":-Infinity}", "a record: a line of JSON"},
        {"{\"type\":\"t\",\"x\":1e999}", "a record: a line of JSON"},
        {"{\"type\":\"t\",\"x\":007}", "a record: a line of JSON"},
        {"{\"type\":\"t\",\"x\":9223372036854775808}", "a record: a line of JSON"},
        {"{\"type\":\"t\",\"x\":\"\t\"}", "a record: a line of JSON"},
        {"{\"type\":\"t\",\"x\":\"\xc3\"}", "a record: a line of JSON"},
        {"{\"type\":\"t\",\"x\":\"\xed\xa0\x80\"}", "a record: a line of JSON"},
        {"{\"type\":\"t\",\"x\":\"\xc3"
         "a\xa9\"}",
         "a record: a line of JSON"},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(bad); i++)
        refuses_line(bad[i].line, bad[i].why);
}

static void what_holdfast_writes_itself_is_refused(void **state)
{
    static const char *const reserved[] = {
        "error", "failed",    "refused",  "history",  "reason", "died",
        "cron",  "scheduled", "attempts", "start_by", "alone",  "failed_fence"};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(reserved); i++) {
        char line[64], why[64];
        (void)snprintf(line, sizeof line, "{\"type\":\"t\",\"%s\":1}", reserved[i]);
        (void)snprintf(why, sizeof why, "no %s in its record; ", reserved[i]);
        refuses_line(line, why);
    }
    refuses_line("{\"type\":\"t\",\"attempts\":3}",
                 "no attempts in its record; max_attempts is the limit");
}

/* A worker must read what was accepted. */
static void other_fields_are_the_callers(void **state)
{
    static const char *const lines[] = {
        "{ \"type\": \"t\", \"max_attempts\": 5, \"timeout\": 4294967295 }",
        "{\"keep\":3155760000000,\"type\":\"t\",\"v\":1,\"created\":0}",
        ("{\"type\":\"t\",\"o\":{\"timeout\":\"30s\",\"attempts\":[1,-2.5e-3]},"
         "\"timeout\":5}"),
        "{\"type\":\"t\",\"order\":9223372036854775807,\"a\":true,\"b\":null}",
        "{\"type\":\"t\",\"x\":\"caf\xc3\xa9 \\\" \\\\\",\"y\":\"\xf0\x9f\x98\x80\"}",
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(lines); i++) {
        char record[256], id[8];
        const char *const args[] = {"", "0", "0", "0", "0", id, "0", record};
        (void)snprintf(record, sizeof record, "%s\npayload", lines[i]);
        (void)snprintf(id, sizeof id, "%zu", i);
        is_accepted(args, HF_COUNT(args));
        assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
        assert_string_equal(fixture.jobs[0].type, "t"); /* it was read */
    }
}

/* A caller that says that it has checked all, and has not. */
static void a_record_that_cannot_be_read_says_why(void **state)
{
    static const char *const args[] = {
        "", "0", "0", "0", "0", "one", "0", "{\"type\":\"t\",\"timeout\":\"30s\"}\n",
        "C"};
    const hf_verdict_args verdict = {.worker = "w", .dead_max = 9, .dead_age_ms = 60000};
    const hf_verdict_item item = {.id = "one", .reason = "record", .error = {"x", 1}};
    char detail[HF_DETAIL_SIZE];
    hf_job_info info = {HF_JOB_INFO_INIT};
    (void)state;
    is_accepted(args, HF_COUNT(args));
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    assert_int_equal(hf_queue_fixture_verdict(&fixture, HF_OP_BURY, &verdict, &item),
                     HF_OK);
    hf_admin *admin = hf_queue_fixture_admin(&fixture);
    assert_int_equal(hf_admin_job(admin, "q", "one", &info, NULL, detail), HF_OK);
    hf_admin_close(admin);
    assert_int_equal(info.state, HF_STATE_DEAD);
    assert_string_equal(info.type, "t");
    assert_string_equal(info.error,
                        "its record cannot be read: expected as its timeout a "
                        "whole number from 0 to 4294967295");
    fixture.broken = true;
}

/* ---- names that no command could use ---- */

static void a_queue_that_cannot_be_named_is_refused(void **state)
{
    static const char *const bad[] = {
        "hf:{my queue}:", "hf:q:",    "hf:{}:", "hf:{q}",      "hf:{q}:x:",
        "hf:{/}:",        "h f:{q}:", "{q}:",   "hf:{a}:{q}:", "hf:{" NAME_128 "x}:"};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(bad); i++) {
        prefix = bad[i];
        is_refused(good, HF_COUNT(good), "enqueue: expected the key hf:{QUEUE}:");
    }
    prefix = "hf:{q}:";
}

static void a_registered_queue_has_a_name(void **state)
{
    static const struct {
        const char *key, *name;
        bool good;
    } tries[] = {{"hf:{/}:", "q.1:a_b-C", true}, {"hf:{/}:", "my queue", false},
                 {"hf:{/}:", "", false},         {"hf:{/}:", too_long, false},
                 {"hf:{/}:", "a/1-2", false},    {"hf:{q}:", "q", false},
                 {"hf:/:", "q", false}};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(tries); i++) {
        redisReply *reply =
            redisCommand(connection, "EVAL %s 1 %s %s", hf_lua_queue_register.text,
                         tries[i].key, tries[i].name);
        assert_non_null(reply);
        assert_int_equal(reply->type == REDIS_REPLY_ERROR, !tries[i].good);
        freeReplyObject(reply);
    }
    assert_int_equal(hf_fixture_number(&fixture.redis, "SCARD hf:{/}:queues"), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_argument_is_looked_at_before_anything_is_written),
        TEST(headers_are_one_object_of_texts),
        TEST(the_bounds_themselves_are_accepted),
        TEST(a_request_of_another_shape_is_refused),
        TEST(ids_that_were_made_are_looked_at_as_well),
        TEST(a_made_id_that_is_known_changes_nothing),
        TEST(each_field_is_looked_at),
        TEST(what_holdfast_writes_itself_is_refused),
        TEST(other_fields_are_the_callers),
        TEST(a_record_that_cannot_be_read_says_why),
        TEST(a_queue_that_cannot_be_named_is_refused),
        TEST(a_registered_queue_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
