/* test_admin_away.c - what the synchronous calls do while Redis is not there, or not
 * itself. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "holdfast/admin.h"
#include "tests/support/eventually.h"
#include "tests/support/redis_fixture.h"

enum { SHORT_MS = 300 };

static hf_fixture redis;

static hf_err open_with(hf_admin **out, const char *url, uint32_t connect_ms,
                        char detail[HF_DETAIL_SIZE])
{
    const hf_admin_opts opts = {
        HF_ADMIN_OPTS_INIT,
        .server = HF_SERVER(.url = url, .connect_timeout_ms = connect_ms),
        .deadline_ms = SHORT_MS};
    return hf_admin_open(out, &opts, detail);
}

static hf_admin *open_admin(void)
{
    char detail[HF_DETAIL_SIZE];
    hf_admin *admin;
    if (open_with(&admin, hf_fixture_url(&redis), 5000, detail) != HF_OK)
        fail_msg("open: %s", detail);
    return admin;
}

/* ---- opening ---- */

static void opening_waits_for_redis_and_then_says_what_is_wrong(void **state)
{
    char detail[HF_DETAIL_SIZE] = "";
    hf_admin *admin = NULL;
    (void)state;
    uint64_t from = hf_test_now_ms();
    assert_int_equal(open_with(&admin, "unix:///nowhere/s", SHORT_MS, detail), HF_CONN);
    assert_true(hf_test_now_ms() - from >= SHORT_MS);
    assert_null(admin);
    assert_non_null(strstr(detail, "/nowhere/s"));
}

static void opening_refuses_what_cannot_be_right(void **state)
{
    char detail[HF_DETAIL_SIZE] = "";
    hf_admin *admin;
    (void)state;
    assert_int_equal(open_with(&admin, "http://x", SHORT_MS, detail), HF_INVALID);
    assert_true(detail[0] != '\0');
    const hf_admin_opts opts = {
        HF_ADMIN_OPTS_INIT,
        .server = HF_SERVER(.url = hf_fixture_url(&redis), .ns = "a b")};
    assert_int_equal(hf_admin_open(&admin, &opts, NULL), HF_INVALID);
    hf_admin_close(NULL);
}

static void a_wrong_password_is_told_at_once(void **state)
{
    char detail[HF_DETAIL_SIZE] = "", url[HF_TEMPDIR_SIZE + 64];
    hf_fixture guarded;
    hf_admin *admin;
    (void)state;
    hf_fixture_start(&guarded, &(hf_fixture_options){.password = "secret"});
    uint64_t from = hf_test_fair_ms();
    assert_int_equal(open_with(&admin, hf_fixture_url(&guarded), 30000, detail), HF_AUTH);
    (void)snprintf(url, sizeof url, "unix://:wrong@%s", guarded.socket);
    assert_int_equal(open_with(&admin, url, 30000, detail), HF_AUTH);
    assert_true(hf_test_fair_ms() - from < 10000);
    assert_null(strstr(detail, "wrong"));
    (void)snprintf(url, sizeof url, "unix://:secret@%s", guarded.socket);
    assert_int_equal(open_with(&admin, url, 5000, detail), HF_OK);
    hf_admin_close(admin);
    hf_fixture_stop(&guarded);
}

/* ---- calls ---- */

static void a_call_waits_for_the_connection_and_then_gives_up(void **state)
{
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    char detail[HF_DETAIL_SIZE] = "";
    (void)state;
    hf_admin *admin = open_admin();
    hf_fixture_kill(&redis, SIGKILL);
    uint64_t from = hf_test_now_ms();
    hf_err err = hf_admin_stats(admin, "q", &stats, detail);
    assert_int_equal(err, HF_CONN);
    assert_true(detail[0] != '\0');
    assert_true(hf_test_now_ms() - from >= SHORT_MS - 50);
    hf_fixture_restart(&redis);
    EVENTUALLY(15000, hf_admin_stats(admin, "q", &stats, NULL) == HF_OK);
    hf_admin_close(admin);
}

static void a_silent_redis_ends_in_a_fault_at_the_deadline(void **state)
{
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    (void)state;
    hf_admin *admin = open_admin();
    hf_fixture_signal(&redis, SIGSTOP);
    uint64_t from = hf_test_fair_ms();
    hf_err err = hf_admin_pause(admin, "q", true, NULL);
    assert_true(err == HF_UNSURE || err == HF_CONN);
    assert_true(hf_test_fair_ms() - from < 5000);
    hf_fixture_signal(&redis, SIGCONT);
    EVENTUALLY(15000, hf_admin_stats(admin, "q", &stats, NULL) == HF_OK);
    assert_false(stats.paused); /* it came too late, and did nothing */
    hf_admin_close(admin);
}

static void forgotten_scripts_are_loaded_again(void **state)
{
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    (void)state;
    hf_admin *admin = open_admin();
    for (int i = 0; i < 3; i++) {
        assert_string_equal(hf_fixture_command(&redis, "SCRIPT FLUSH"), "OK");
        assert_int_equal(hf_admin_stats(admin, "q", &stats, NULL), HF_OK);
        assert_int_equal(hf_admin_pause(admin, "q", false, NULL), HF_OK);
    }
    hf_admin_close(admin);
}

/* A script of somebody else that runs for a while. */
static void *hold_redis(void *arg)
{
    (void)arg;
    redisContext *c = hf_fixture_connect(&redis);
    if (c != NULL)
        freeReplyObject(redisCommand(
            c, "EVAL %s 0",
            "local t = redis.call('TIME') local from = t[1] * 1000 + t[2] / 1000 "
            "repeat t = redis.call('TIME') until t[1] * 1000 + t[2] / 1000 > from + "
            "400"));
    redisFree(c);
    return NULL;
}

static void a_busy_redis_is_asked_again_until_the_deadline(void **state)
{
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    pthread_t holder;
    char detail[HF_DETAIL_SIZE];
    hf_admin *admin;
    (void)state;
    const hf_admin_opts opts = {HF_ADMIN_OPTS_INIT,
                                .server = HF_SERVER(.url = hf_fixture_url(&redis)),
                                .deadline_ms = 5000};
    assert_int_equal(hf_admin_open(&admin, &opts, detail), HF_OK);
    (void)hf_fixture_command(&redis, "CONFIG SET busy-reply-threshold 20");
    assert_int_equal(pthread_create(&holder, NULL, hold_redis, NULL), 0);
    uint64_t until = hf_test_now_ms() + 1000;
    while (hf_test_now_ms() < until &&
           hf_admin_stats(admin, "q", &stats, detail) == HF_OK)
        continue;
    assert_true(hf_test_now_ms() >= until); /* every one of them was answered */
    assert_int_equal(pthread_join(holder, NULL), 0);
    hf_admin_close(admin);
}

#define TEST(name) HF_REDIS_TEST(name, &redis)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(opening_waits_for_redis_and_then_says_what_is_wrong),
        TEST(opening_refuses_what_cannot_be_right),
        TEST(a_wrong_password_is_told_at_once),
        TEST(a_call_waits_for_the_connection_and_then_gives_up),
        TEST(a_silent_redis_ends_in_a_fault_at_the_deadline),
        TEST(forgotten_scripts_are_loaded_again),
        TEST(a_busy_redis_is_asked_again_until_the_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
