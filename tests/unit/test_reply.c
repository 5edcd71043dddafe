/* test_reply.c - the meaning of Redis's errors and of INFO, how replies are read, and the
 * order of requests that wait for one. */
#include "redis/reply.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <hiredis/hiredis.h>

#include "base/base.h"
#include "redis/flight.h"
#include "redis/info.h"
#include "redis/request.h"

static void an_error_has_the_class_of_its_code(void **state)
{
    static const struct {
        const char *words;
        hf_err err;
    } cases[] = {
        {"NOSCRIPT No matching script. Please use EVAL.", HF_NOSCRIPT},
        {"OOM command not allowed when used memory > 'maxmemory'.", HF_OOM},
        {"OOM command not allowed. script: 1234, on @user_script:12.", HF_OOM},
        {"READONLY You can't write against a read only replica.", HF_READONLY},
        {"MASTERDOWN Link with MASTER is down.", HF_READONLY},
        {"UNBLOCKED force unblock from blocking operation, instance state changed "
         "(master -> replica?)",
         HF_READONLY},
        {"MOVED 3999 127.0.0.1:6381", HF_MOVED},
        {"ASK 3999 127.0.0.1:6381", HF_UNSERVED},
        {"TRYAGAIN Multiple keys request during rehashing of slot", HF_UNSERVED},
        {"CLUSTERDOWN Hash slot not served", HF_UNSERVED},
        {"LOADING Redis is loading the dataset in memory", HF_LOADING},
        {"BUSY Redis is busy running a script.", HF_BUSY_SCRIPT},
        {"MISCONF Redis is configured to save RDB snapshots", HF_MISCONF},
        {"NOREPLICAS Not enough good replicas to write.", HF_MISCONF},
        {"NOAUTH Authentication required.", HF_AUTH},
        {"WRONGPASS invalid username-password pair", HF_AUTH},
        {"NOPERM this user has no permissions", HF_AUTH},
        {"ERR The user executing the script can't run this command or subcommand "
         "script: 1234, on @user_script:12.",
         HF_AUTH},
        {"ERR The user executing the script can't access at least one of the keys "
         "mentioned in the command arguments",
         HF_AUTH},
        {"ERR ACL failure in script: User u has no permissions to run the 'zrem' command",
         HF_AUTH},
        {"ERR max number of clients reached", HF_CONN},
        {"ERR unknown command", HF_REDIS},
        {"BUSYGROUP Consumer Group name already exists", HF_REDIS},
        {"OOMPH", HF_REDIS},
        {"oom", HF_REDIS},
        {"", HF_REDIS},
        {"OOM", HF_OOM},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(cases); i++)
        if (hf_reply_class(cases[i].words) != cases[i].err)
            fail_msg("%s: is %s", cases[i].words,
                     hf_err_name(hf_reply_class(cases[i].words)));
}

static void an_error_inside_a_script_is_seen_through_its_wrapping(void **state)
{
    (void)state;
    assert_int_equal(
        hf_reply_class("ERR Error running script (call to f_6b1b): @user_script:12: -OOM "
                       "command not allowed when used memory > 'maxmemory'."),
        HF_OOM);
    assert_int_equal(hf_reply_class("ERR Error running script (call to f_6b1b): "
                                    "@user_script: 3: -READONLY You can't write against"),
                     HF_READONLY);
    assert_int_equal(hf_reply_class("ERR Error running script (call to f_6b1b): "
                                    "@user_script:3: a - b -OOM"),
                     HF_OOM);
    assert_int_equal(hf_reply_class("ERR Error running script (call to f_6b1b): "
                                    "@user_script:3: attempt to index a nil value"),
                     HF_REDIS);
    assert_int_equal(hf_reply_class("ERR Error running script (call to f_6b1b): "
                                    "@user_script:3: @user_script: 3: The user executing "
                                    "the script can't run this command or subcommand"),
                     HF_AUTH);
    assert_int_equal(hf_reply_class("ERR value is -OOM not a number"), HF_REDIS);
}

static void info_tells_what_the_server_is(void **state)
{
    (void)state;
    hf_server_info info = {.client_id = 7};
    hf_info_parse("# Server\r\nredis_version:7.0.15\r\nredis_git_sha1:0\r\n"
                  "run_id:0123456789abcdef0123456789abcdef01234567\r\n"
                  "maxmemory_policy:noeviction\r\nloading:0\r\naof_enabled:1\r\n"
                  "rdb_bgsave_in_progress:0\r\nrdb_last_bgsave_time_sec:-1\r\n"
                  "rdb_last_bgsave_status:ok\r\naof_last_write_status:ok\r\n"
                  "used_memory:1234567\r\nmaxmemory:5000000000\r\n"
                  "redis_mode:cluster\r\n"
                  "role:master\r\nmaster_replid2:ffff\r\nmaster_replid:aaaa\r\n",
                  &info);
    assert_string_equal(info.version, "7.0.15");
    assert_string_equal(info.run_id, "0123456789abcdef0123456789abcdef01234567");
    assert_string_equal(info.policy, "noeviction");
    assert_string_equal(info.role, "master");
    assert_string_equal(info.replid, "aaaa");
    assert_true(info.aof);
    assert_false(info.rdb);
    assert_false(info.loading);
    assert_false(info.aof_failed || info.rdb_failed);
    assert_true(info.used_memory == 1234567 && info.maxmemory == 5000000000);
    assert_int_equal(info.client_id, 7);
    assert_true(info.in_cluster);
    assert_int_equal(info.clients, -1);
    assert_int_equal(info.uptime_ms, -1);
    assert_int_equal(info.cpu_ms, -1);
    hf_info_parse("uptime_in_seconds:61\r\nconnected_clients:41\r\n"
                  "blocked_clients:4\r\ntotal_commands_processed:123456789\r\n"
                  "used_cpu_sys:1.250000\r\nused_cpu_user:2.5\r\n",
                  &info);
    assert_int_equal(info.uptime_ms, 61000);
    assert_true(info.clients == 41 && info.blocked_clients == 4);
    assert_int_equal(info.commands, 123456789);
    assert_int_equal(info.cpu_ms, 3750);
    hf_info_parse("redis_mode:standalone\r\n", &info);
    assert_false(info.in_cluster);
}

static void info_tells_which_file_could_not_be_written(void **state)
{
    (void)state;
    hf_server_info info = {.client_id = 7};
    hf_info_parse("aof_last_write_status:err\r\nrdb_last_bgsave_status:ok\r\n", &info);
    assert_true(info.aof_failed && !info.rdb_failed);
    hf_info_parse("aof_last_write_status:ok\r\nrdb_last_bgsave_status:err", &info);
    assert_true(!info.aof_failed && info.rdb_failed);
}

static void what_info_does_not_tell_is_empty(void **state)
{
    (void)state;
    hf_server_info info;
    memset(&info, 'x', sizeof info);
    hf_info_parse("xrole:no\nrole", &info);
    assert_string_equal(info.role, "");
    assert_string_equal(info.version, "");
    assert_false(info.aof || info.rdb || info.loading);
    hf_info_parse("redis_version:12345678901234567890123456789\r\nloading:1\r\n"
                  "rdb_last_bgsave_time_sec:0",
                  &info);
    assert_string_equal(info.version, "12345678901234567890123");
    assert_true(info.loading && info.rdb);
}

static void versions_from_6_2_on_are_new_enough(void **state)
{
    (void)state;
    static const char *const good[] = {"6.2.0",  "6.2", "6.10.1",
                                       "7.0.15", "8",   "255.255.255"};
    static const char *const bad[] = {"6.0.16", "5.0.7", "6", "", "x", "2.8.24"};
    for (size_t i = 0; i < HF_COUNT(good); i++)
        assert_true(hf_info_new_enough(good[i]));
    for (size_t i = 0; i < HF_COUNT(bad); i++)
        assert_false(hf_info_new_enough(bad[i]));
}

/* What the parser makes of these bytes; the caller frees it. */
static redisReply *parse(const char *bytes)
{
    redisReader *reader = redisReaderCreate();
    assert_non_null(reader);
    void *reply = NULL;
    assert_int_equal(redisReaderFeed(reader, bytes, strlen(bytes)), REDIS_OK);
    assert_int_equal(redisReaderGetReply(reader, &reply), REDIS_OK);
    redisReaderFree(reader);
    assert_non_null(reply);
    return reply;
}

static void a_reply_of_the_wrong_type_reads_as_nothing(void **state)
{
    (void)state;
    redisReply *r = parse("*6\r\n:42\r\n$2\r\n17\r\n+OK\r\n$-1\r\n*0\r\n-ERR no\r\n");
    assert_true(hf_reply_is_array(r));
    assert_int_equal(hf_reply_len(r), 6);
    assert_int_equal(hf_reply_int(hf_reply_at(r, 0)), 42);
    assert_int_equal(hf_reply_int(hf_reply_at(r, 1)), 17);
    assert_int_equal(hf_reply_int(hf_reply_at(r, 2)), 0);
    assert_string_equal(hf_reply_text(hf_reply_at(r, 2)), "OK");
    assert_string_equal(hf_reply_text(hf_reply_at(r, 0)), "");
    assert_string_equal(hf_reply_text(hf_reply_at(r, 5)), "");
    assert_int_equal(hf_reply_bytes(hf_reply_at(r, 1)).len, 2);
    assert_memory_equal(hf_reply_bytes(hf_reply_at(r, 1)).ptr, "17", 3);
    assert_int_equal(hf_reply_bytes(hf_reply_at(r, 4)).len, 0);
    assert_true(hf_reply_is_nil(hf_reply_at(r, 3)));
    assert_false(hf_reply_is_nil(hf_reply_at(r, 0)));
    assert_false(hf_reply_is_array(hf_reply_at(r, 0)));
    assert_int_equal(hf_reply_len(hf_reply_at(r, 4)), 0);
    assert_null(hf_reply_at(r, 6));
    assert_null(hf_reply_at(hf_reply_at(r, 0), 0));
    freeReplyObject(r);
}

static void no_reply_reads_as_nil(void **state)
{
    (void)state;
    assert_true(hf_reply_is_nil(NULL));
    assert_false(hf_reply_is_array(NULL));
    assert_int_equal(hf_reply_len(NULL), 0);
    assert_null(hf_reply_at(NULL, 0));
    assert_int_equal(hf_reply_int(NULL), 0);
    assert_int_equal(hf_reply_bytes(NULL).len, 0);
    assert_string_equal(hf_reply_text(NULL), "");
}

static void waiters_leave_in_the_order_of_arrival(void **state)
{
    (void)state;
    hf_flight flight = {.n = 0};
    hf_flight_item item = {.cb = NULL};
    assert_false(hf_flight_pop(&flight, &item));
    assert_true(hf_flight_deadline_ns(&flight) == UINT64_MAX);
    uint64_t in = 0, out = 0;
    /* It grows while its head is anywhere. */
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < 7; i++) {
            item.sent_ns = in++;
            assert_int_equal(hf_flight_push(&flight, &item), HF_OK);
        }
        for (int i = 0; i < 5; i++) {
            assert_true(hf_flight_pop(&flight, &item));
            assert_true(item.sent_ns == out++);
        }
    }
    while (hf_flight_pop(&flight, &item))
        assert_true(item.sent_ns == out++);
    assert_true(in == out);
    hf_flight_done(&flight);
}

static void the_earliest_deadline_is_found_anywhere_in_the_line(void **state)
{
    (void)state;
    hf_flight flight = {.n = 0};
    static const uint64_t deadlines[] = {90, 30, 70, 50};
    hf_flight_item item = {.cb = NULL};
    for (size_t i = 0; i < HF_COUNT(deadlines); i++) {
        item.deadline_ns = deadlines[i];
        assert_int_equal(hf_flight_push(&flight, &item), HF_OK);
    }
    assert_true(hf_flight_deadline_ns(&flight) == 30);
    assert_true(hf_flight_pop(&flight, &item) && hf_flight_pop(&flight, &item));
    assert_true(hf_flight_deadline_ns(&flight) == 50);
    hf_flight_done(&flight);
}

static void the_line_has_an_end(void **state)
{
    (void)state;
    hf_flight flight = {.n = 0};
    const hf_flight_item item = {.cb = NULL};
    for (size_t i = 0; i < HF_FLIGHT_MAX; i++)
        assert_int_equal(hf_flight_push(&flight, &item), HF_OK);
    assert_int_equal(hf_flight_push(&flight, &item), HF_NOMEM);
    hf_flight_done(&flight);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_has_the_class_of_its_code),
        cmocka_unit_test(an_error_inside_a_script_is_seen_through_its_wrapping),
        cmocka_unit_test(info_tells_what_the_server_is),
        cmocka_unit_test(info_tells_which_file_could_not_be_written),
        cmocka_unit_test(what_info_does_not_tell_is_empty),
        cmocka_unit_test(versions_from_6_2_on_are_new_enough),
        cmocka_unit_test(a_reply_of_the_wrong_type_reads_as_nothing),
        cmocka_unit_test(no_reply_reads_as_nil),
        cmocka_unit_test(waiters_leave_in_the_order_of_arrival),
        cmocka_unit_test(the_earliest_deadline_is_found_anywhere_in_the_line),
        cmocka_unit_test(the_line_has_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
