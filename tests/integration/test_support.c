/* test_support.c - the tools of the other tests do what their headers say. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "tests/support/eventually.h"
#include "tests/support/fake_redis.h"
#include "tests/support/proc.h"
#include "tests/support/proxy.h"
#include "tests/support/redis_fixture.h"

static hf_fixture redis;

/* The answer to GET k through a socket, or -1 when none came. */
static int get(redisContext *c)
{
    redisReply *reply = c == NULL || c->err ? NULL : redisCommand(c, "GET k");
    int value =
        reply != NULL && reply->str != NULL ? (int)strtol(reply->str, NULL, 10) : -1;
    freeReplyObject(reply);
    return value;
}

static redisContext *through(const char *path, long ms)
{
    const struct timeval wait = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    redisContext *c = redisConnectUnixWithTimeout(path, wait);
    if (c != NULL)
        (void)redisSetTimeout(c, wait);
    return c;
}

static void a_fixture_answers_in_text_and_numbers(void **state)
{
    (void)state;
    assert_string_equal(hf_fixture_command(&redis, "PING"), "PONG");
    assert_int_equal(hf_fixture_number(&redis, "RPUSH list a %s", "b c"), 2);
    assert_string_equal(hf_fixture_command(&redis, "LRANGE list 0 -1"), "a\nb c\n");
    assert_string_equal(hf_fixture_command(&redis, "GET nothing"), "(nil)");
    assert_memory_equal(hf_fixture_command(&redis, "NONSENSE"), "(error) ERR", 11);
    assert_memory_equal(hf_fixture_url(&redis), "unix:///", 8);
}

static void a_killed_server_keeps_what_it_wrote(void **state)
{
    (void)state;
    hf_fixture own;
    hf_fixture_start(
        &own, &(hf_fixture_options){.persistent = true, .tcp = true, .password = "word"});
    assert_string_equal(hf_fixture_command(&own, "SET k 7"), "OK");
    hf_fixture_kill(&own, SIGKILL);
    assert_string_equal(hf_fixture_command(&own, "GET k"), "(gone)");
    hf_fixture_restart(&own);
    assert_int_equal(hf_fixture_number(&own, "GET k"), 7);
    redisContext *c = redisConnect("127.0.0.1", own.port);
    redisReply *reply = redisCommand(c, "GET k");
    assert_non_null(reply);
    assert_memory_equal(reply->str, "NOAUTH", 6);
    freeReplyObject(reply);
    redisFree(c);
    hf_fixture_stop(&own);
}

static void a_program_is_run_waited_for_and_killed(void **state)
{
    (void)state;
    char dir[HF_TEMPDIR_SIZE];
    char out[HF_TEMPDIR_SIZE + 8];
    char text[64];
    hf_tempdir_make(dir);
    (void)snprintf(out, sizeof out, "%s/out", dir);
    const char *const say[] = {"sh", "-c", "echo \"$WORD\"; exit 3", NULL};
    const char *const env[] = {"WORD=hello", NULL};
    assert_int_equal(
        hf_proc_run(&(hf_proc_options){.args = say, .env = env, .out = out}, 15000), 3);
    assert_string_equal(hf_read_file(out, text, sizeof text), "hello\n");

    const char *const wait[] = {"sleep", "1000", NULL};
    hf_proc p;
    hf_proc_start(&p, &(hf_proc_options){.args = wait});
    pid_t pid = p.pid;
    assert_true(hf_pid_alive(pid));
    assert_false(hf_proc_wait(&p, 20));
    hf_proc_signal(&p, SIGTERM);
    assert_true(hf_proc_wait(&p, 15000));
    assert_int_equal(p.status, 128 + SIGTERM);
    assert_false(hf_pid_alive(pid));
    hf_tempdir_remove(dir);
}

static void a_proxy_passes_holds_and_cuts(void **state)
{
    (void)state;
    hf_proxy proxy;
    (void)hf_fixture_command(&redis, "SET k 5");
    hf_proxy_start(&proxy, redis.socket);
    redisContext *c = through(proxy.socket, 15000);
    assert_int_equal(get(c), 5);

    hf_proxy_set(&proxy, PROXY_REQUESTS, PROXY_HOLD);
    const uint64_t before = hf_proxy_bytes(&proxy, PROXY_REQUESTS);
    (void)redisAppendCommand(c, "INCR k");
    int written = 0;
    while (!written)
        assert_int_equal(redisBufferWrite(c, &written), REDIS_OK);
    EVENTUALLY(15000, hf_proxy_bytes(&proxy, PROXY_REQUESTS) > before);
    assert_int_equal(hf_fixture_number(&redis, "GET k"), 5);
    hf_proxy_set(&proxy, PROXY_REQUESTS, PROXY_PASS);
    EVENTUALLY(15000, hf_fixture_number(&redis, "GET k") == 6);
    redisFree(c);

    c = through(proxy.socket, 15000);
    hf_proxy_cut_after(&proxy, PROXY_ANSWERS, 3);
    assert_int_equal(get(c), -1);
    assert_int_equal(hf_proxy_cuts(&proxy), 1);
    redisFree(c);
    hf_proxy_stop(&proxy);
}

static void a_proxy_loses_the_answer_of_what_was_executed(void **state)
{
    (void)state;
    hf_proxy proxy;
    (void)hf_fixture_command(&redis, "SET k 5");
    hf_proxy_start(&proxy, redis.socket);
    redisContext *c = through(proxy.socket, 15000);
    hf_proxy_lose_answer(&proxy, "INCR");
    assert_null(redisCommand(c, "INCR k"));
    assert_int_equal(hf_fixture_number(&redis, "GET k"), 6);
    redisFree(c);

    hf_proxy_refuse(&proxy, true);
    c = through(proxy.socket, 15000);
    assert_int_equal(get(c), -1);
    redisFree(c);
    hf_proxy_refuse(&proxy, false);
    c = through(proxy.socket, 15000);
    assert_int_equal(get(c), 6);
    hf_proxy_close_all(&proxy);
    assert_int_equal(get(c), -1);
    assert_int_equal(hf_proxy_connections(&proxy), 3);
    redisFree(c);
    hf_proxy_stop(&proxy);
}

static void a_proxy_keeps_the_answer_of_one_and_serves_others(void **state)
{
    (void)state;
    hf_proxy proxy;
    (void)hf_fixture_command(&redis, "SET k 5");
    hf_proxy_start(&proxy, redis.socket);
    redisContext *kept = through(proxy.socket, 15000);
    redisContext *other = through(proxy.socket, 15000);
    hf_proxy_keep_answer(&proxy, "INCR");
    assert_int_equal(redisAppendCommand(kept, "INCR k"), REDIS_OK);
    int written = 0;
    while (!written)
        assert_int_equal(redisBufferWrite(kept, &written), REDIS_OK);
    EVENTUALLY(15000, hf_proxy_kept(&proxy) == 1);
    assert_int_equal(get(other), 6);
    hf_proxy_let_go(&proxy);
    redisReply *reply = NULL;
    assert_int_equal(redisGetReply(kept, (void **)&reply), REDIS_OK);
    assert_int_equal(reply->integer, 6);
    assert_int_equal(hf_proxy_kept(&proxy), 0);
    freeReplyObject(reply);
    redisFree(kept);
    redisFree(other);
    hf_proxy_stop(&proxy);
}

static void a_fake_follows_its_script(void **state)
{
    (void)state;
    static const hf_fake_auto autos[] = {{"PING", "+PONG\r\n"}, {NULL, NULL}};
    static const hf_fake_step steps[] = {HF_FAKE_EXPECT("GET k"),
                                         HF_FAKE_SEND("$2\r\n4"),
                                         HF_FAKE_STALL(20),
                                         HF_FAKE_SEND("2\r\n"),
                                         HF_FAKE_EXPECT("GET"),
                                         HF_FAKE_CLOSE,
                                         HF_FAKE_END};
    hf_fake fake;
    hf_fake_start(&fake, autos, steps);
    redisContext *c = through(fake.socket, 15000);
    freeReplyObject(redisCommand(c, "PING"));
    assert_int_equal(get(c), 42);
    assert_int_equal(get(c), -1);
    redisFree(c);
    EVENTUALLY(15000, hf_fake_done(&fake));
    assert_null(hf_fake_stop(&fake));
}

static void a_fake_says_what_did_not_come(void **state)
{
    (void)state;
    static const hf_fake_step steps[] = {HF_FAKE_EXPECT("GET other"), HF_FAKE_END};
    hf_fake fake;
    hf_fake_start(&fake, NULL, steps);
    redisContext *c = through(fake.socket, 15000);
    assert_int_equal(get(c), -1);
    redisFree(c);
    assert_string_equal(hf_fake_stop(&fake), "step 0 expects `GET other`, found `GET k`");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fixture_answers_in_text_and_numbers),
        cmocka_unit_test(a_killed_server_keeps_what_it_wrote),
        cmocka_unit_test(a_program_is_run_waited_for_and_killed),
        cmocka_unit_test(a_proxy_passes_holds_and_cuts),
        cmocka_unit_test(a_proxy_loses_the_answer_of_what_was_executed),
        cmocka_unit_test(a_proxy_keeps_the_answer_of_one_and_serves_others),
        cmocka_unit_test(a_fake_follows_its_script),
        cmocka_unit_test(a_fake_says_what_did_not_come),
    };
    hf_fixture_start(&redis, NULL);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_fixture_stop(&redis);
    return failures;
}
