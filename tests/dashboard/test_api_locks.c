/* test_api_locks.c - what the API says of locks, with a real Redis. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dashboard/api.h"
#include "tests/support/redis_fixture.h"

static hf_fixture redis;
static hf_server_opts server;
static hf_poller_opts opts;
static hf_reader reader;
static char answered[1024]; /* its beginning */

static int set_up(void **state)
{
    int result = hf_fixture_up(state);
    if (result != 0)
        return result;
    server = (hf_server_opts){HF_SERVER_OPTS_INIT, .url = hf_fixture_url(&redis)};
    opts = (hf_poller_opts){.server = &server};
    reader = (hf_reader){.opts = &opts};
    return hf_reader_open(&reader) == HF_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    hf_lock_client_close(reader.locks, NULL, NULL);
    hf_admin_close(reader.admin);
    return hf_fixture_down(state);
}

static void on_told(hf_query *ask, bool dropped)
{
    assert_false(dropped);
    (void)ask;
}

static void assert_locks(const char *part)
{
    hf_query *ask = hf_ask_new(hf_api_other_locks, on_told, NULL);
    assert_non_null(ask);
    ask->task.run(&ask->task, &reader);
    assert_int_equal(ask->status, 200);
    (void)snprintf(answered, sizeof answered, "%s", ask->text);
    hf_ask_free(ask);
    if (strstr(answered, part) == NULL)
        fail_msg("%s\nis not in\n%s", part, answered);
}

/* An answer has 50 entries at most. */
static void all_holders_and_waiters_are_counted(void **state)
{
    (void)state;
    (void)hf_fixture_command(
        &redis, "EVAL %s 0",
        "local p, now = 'hf:lock:{n}:', redis.call('TIME')[1] * 1000 "
        "redis.call('HSET', p .. 'e:n', '#', '0 60 0 0 60000 1 0') "
        "for i = 1, 62 do local o, waits = 'o' .. i, i > 60 "
        "redis.call('ZADD', p .. 'x:n', now, o) "
        "if waits then redis.call('ZADD', p .. 'q:n', now * 1000 + i, o) end "
        "redis.call('HSET', p .. 'e:n', o, (waits and 'x 0 1 0' or 's 1 1 9') .. "
        "' web1-1-x n h=s 60000') end");
    assert_locks("\"name\":\"n\",\"mode\":\"shared\",\"holders\":60,\"waiting\":2,");
}

static void permits_are_told_with_their_limit(void **state)
{
    hf_lock *some = NULL, *whole = NULL;
    static const char *const gpu = "gpu", *const shop = "shop";
    const hf_lock_opts two = {HF_LOCK_OPTS_INIT,       .names = &gpu, .n_names = 1,
                              .mode = HF_LOCK_PERMITS, .permits = 2,  .limit = 5};
    const hf_lock_opts all = {HF_LOCK_OPTS_INIT, .names = &shop, .n_names = 1};
    (void)state;
    assert_int_equal(hf_lock_acquire_wait(reader.locks, &two, &some, NULL), HF_OK);
    assert_locks("\"taken\":2,\"limit\":5,\"entries\":");
    assert_int_equal(hf_lock_release_wait(some, NULL), HF_RELEASE_DONE);
    assert_int_equal(hf_lock_acquire_wait(reader.locks, &all, &whole, NULL), HF_OK);
    assert_locks("\"taken\":null,\"limit\":null,\"entries\":");
    assert_int_equal(hf_lock_release_wait(whole, NULL), HF_RELEASE_DONE);
}

#define TEST(name)                                                                       \
    cmocka_unit_test_prestate_setup_teardown(name, set_up, tear_down, &redis)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_holders_and_waiters_are_counted),
        TEST(permits_are_told_with_their_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
