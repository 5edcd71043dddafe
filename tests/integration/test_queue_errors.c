/* test_queue_errors.c - what the scripts of a queue say of an error that they caught. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "queue_scripts.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"

static hf_queue_fixture fixture;

/* The check catches an error. Its class must still be in front: the client leaves a
 * replica, and the log names a missing permission. */
static void what_a_check_meets_keeps_its_class(void **state)
{
    static const char *const meets[][2] = {{"hf:{q}:running", "WRONGTYPE "},
                                           {"hf:{q}:workers", "WRONGTYPE "}};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(meets); i++) {
        assert_string_equal(
            hf_fixture_command(&fixture.redis, "SET %s text", meets[i][0]), "OK");
        assert_int_equal(hf_queue_fixture_check(&fixture, "w", false), HF_REDIS);
        assert_memory_equal(fixture.detail, meets[i][1], strlen(meets[i][1]));
        (void)hf_fixture_command(&fixture.redis, "DEL %s", meets[i][0]);
    }
    hf_fixture_command(&fixture.redis, "ACL SETUSER default -zadd");
    assert_int_equal(hf_queue_fixture_check(&fixture, "w", false), HF_AUTH);
    hf_fixture_command(&fixture.redis, "ACL SETUSER default +zadd");
    hf_fixture_command(&fixture.redis, "REPLICAOF 127.0.0.1 1");
    assert_int_equal(hf_queue_fixture_check(&fixture, "w", false), HF_READONLY);
    assert_memory_equal(fixture.detail, "READONLY ", 9);
    hf_fixture_command(&fixture.redis, "REPLICAOF NO ONE");
    hf_queue_fixture_ready(&fixture);
}

/* What pcall() gives for an error differs: Redis 6.2 puts the place in front, 7 gives the
 * text of the error, and plain Lua would give the table. */
static void a_caught_error_of_each_redis_keeps_its_class(void **state)
{
    static const struct {
        const char *caught, *words;
    } all[] = {
        {"'@user_script: 12: -READONLY not here'", "(error) READONLY not here"},
        {"'OOM no room'", "(error) OOM no room"},
        {"{err = 'NOPERM not you'}", "(error) NOPERM not you"},
        {"'WRONGTYPE text'", "(error) WRONGTYPE text"},
        {"'user_script:12: a nil value'", "(error) ERR user_script:12: a nil value"}};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(all); i++) {
        static char script[1 << 16];
        (void)snprintf(script, sizeof script,
                       "local pcall = function() return false, %s end %s", all[i].caught,
                       (const char *)hf_lua_queue_check.text);
        assert_memory_equal(hf_fixture_command(&fixture.redis,
                                               "EVAL %s 1 hf:{q}: w 0 0 1000 0 %s %s 0",
                                               script, "", ""),
                            all[i].words, strlen(all[i].words));
    }
}

#define TEST(name) HF_QUEUE_TEST(name, &fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_a_check_meets_keeps_its_class),
        TEST(a_caught_error_of_each_redis_keeps_its_class),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
