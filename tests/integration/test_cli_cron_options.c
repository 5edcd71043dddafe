/* `holdfast cron add` and `cron show` with the options of jobs. */
#include <stdio.h>
#include <string.h>

#include "tests/support/cli_try.h"
#include "tests/support/eventually.h"

static hf_cli_fixture *const fixture = &hf_try_fixture;

static void the_options_of_jobs_are_taken_and_shown(void **state)
{
    (void)state;
    hf_try_run("cron add s t @ --every 1h --priority=high --keep=1h --on-dead=t.died "
               "--start-within=10m --expired=dead --max-attempts=3 --timeout=2s",
               0);
    hf_try_run("cron show s @", 0);
    hf_try_has(fixture->out, "priority  high\n"
                             "attempts  at most 3\n"
                             "timeout   2s\n"
                             "keep      1h\n"
                             "expires   10m after it is due, and is dead then\n"
                             "on dead   t.died\n");
    hf_try_run("cron show s @ --json", 0);
    hf_try_has(fixture->out,
               "\"priority\":\"high\",\"max_attempts\":3,\"timeout_ms\":2000,"
               "\"keep_ms\":3600000,\"start_within_ms\":600000,\"expired\":\"dead\","
               "\"on_dead\":\"t.died\"}");
    hf_try_run("cron run s @", 0);
    assert_int_equal(hf_fixture_number(&fixture->redis, "ZCARD hf:{default}:schedule:h"),
                     1);
    assert_int_equal(hf_fixture_number(&fixture->redis, "ZCARD hf:{default}:expires"), 1);
}

static void without_options_nothing_is_said_of_them(void **state)
{
    (void)state;
    hf_try_run("cron add s t @ --every 1h", 0);
    hf_try_run("cron show s @", 0);
    hf_try_has(fixture->out, "jitter    0ms\nticks     accepted 0");
    hf_try_run("cron show s @ --json", 0);
    hf_try_has(fixture->out, "\"priority\":\"normal\",\"max_attempts\":null,"
                             "\"timeout_ms\":null,\"keep_ms\":null,"
                             "\"start_within_ms\":null,\"expired\":null,"
                             "\"on_dead\":null}");
}

static void options_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    hf_try_run("cron add s t @ --every 1h --expired dead", 64);
    hf_try_has(fixture->err, "cron add: --expired needs --start-within");
    hf_try_run("cron add s t @ --every 1h --on-dead *", 65);
    hf_try_has(fixture->err, "expected a type");
    hf_try_run("cron add s t @ --every 1h --unique k", 64);
    hf_try_has(fixture->err, "--unique");
    assert_int_equal(hf_fixture_number(&fixture->redis, "EXISTS hf:{default}:cron"), 0);
}

#define TEST(name) cmocka_unit_test_setup(name, hf_try_clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_options_of_jobs_are_taken_and_shown),
        TEST(without_options_nothing_is_said_of_them),
        TEST(options_that_do_not_fit_are_refused),
    };
    hf_try_up(HF_TEST_COMMAND, "queues: [{name: default}]\n");
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_try_down();
    return failures;
}
