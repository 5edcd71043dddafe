/* `holdfast cron` as people and scripts meet it. */
#include <stdio.h>
#include <string.h>

#include "tests/support/cli_try.h"
#include "tests/support/eventually.h"

static hf_cli_fixture *const fixture = &hf_try_fixture;

static int run_with(const char *line, const char *input)
{
    return hf_cli_fixture_run(fixture, line, input, NULL);
}

/* ---- add ---- */

static void a_payload_comes_from_standard_input(void **state)
{
    (void)state;
    assert_int_equal(run_with("cron add s t - --every 1h @", "two\nlines\n"), 0);
    hf_try_run("cron show s --payload @", 0);
    assert_string_equal(fixture->out, "two\nlines\n");
    assert_int_equal(run_with("cron add s t - --every 1h @", ""), 0);
    hf_try_run("cron show s --payload @", 0);
    assert_string_equal(fixture->out, "");
    hf_try_run("cron add s t text --every 1h @", 0);
    hf_try_run("cron show s --payload @", 0);
    assert_string_equal(fixture->out, "text");
}

static void a_payload_has_the_bound_of_the_configuration(void **state)
{
    (void)state;
    static const char *const lines[] = {"cron add s t - --every 1h @ -c small.yaml",
                                        "cron add s t 12345 --every 1h @ -c small.yaml"};
    hf_cli_fixture_put(fixture, "small.yaml", "limits: {payload: 4}\n");
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(run_with(lines[i], "12345"), 65);
        hf_try_has(fixture->err, "expected a payload of at most 4 bytes, found more");
    }
    assert_string_equal(hf_fixture_command(&fixture->redis, "KEYS *"), "");
    assert_int_equal(run_with(lines[0], "1234"), 0);
}

/* ---- list ---- */

static void schedules_are_listed_in_pages(void **state)
{
    (void)state;
    hf_try_run("cron list @", 0);
    assert_string_equal(fixture->out, "no schedules\n");
    hf_try_run("cron add s2 t --every 1h -q b @", 0);
    hf_try_run("cron add s1 t --every 1h -q b @", 0);
    hf_try_run("cron add s3 t --every 1h -q a @", 0);
    hf_try_run("cron list --limit 2 @", 0);
    hf_try_has(fixture->out, "\ns3");
    hf_try_has(fixture->out, "\ns1");
    assert_null(strstr(fixture->out, "s2"));
    assert_string_equal(fixture->err, "holdfast: 2 schedules are listed, there may be "
                                      "more: go on with --after b/s1\n");
    hf_try_run("cron list --after b/s1 --json @", 0);
    hf_try_has(fixture->out, "{\"id\":\"s2\",\"queue\":\"b\"");
    assert_null(strstr(fixture->out, "s1"));
    assert_null(strstr(fixture->out, "s3"));
    hf_try_run("cron list --after b/s2 @", 0);
    assert_string_equal(fixture->out, "no more schedules\n");
    hf_try_run("cron list -q b --limit 1 @", 0);
    hf_try_has(fixture->err, "1 schedule is listed, there may be more: go on with -q b "
                             "--after s1\n");
    hf_try_run("cron list -q b --after s1 @", 0);
    hf_try_has(fixture->out, "\ns2");
    assert_string_equal(fixture->err, "");
    /* What was named may be gone. */
    hf_try_run("cron list --after aa/s9 --json @", 0);
    hf_try_has(fixture->out, "{\"id\":\"s1\"");
}

static void a_place_in_the_list_has_a_queue_and_an_id(void **state)
{
    (void)state;
    hf_try_run("cron list --after s1 @", 64);
    assert_string_equal(fixture->err, "holdfast: --after: expected QUEUE/ID without "
                                      "--queue, found 's1'\n");
    hf_try_run("cron list --after b/ @", 65);
    hf_try_has(fixture->err, "expected a schedule's id");
    hf_try_run("cron list --after /s1 @", 65);
    hf_try_has(fixture->err, "expected a queue's name");
    hf_try_run("cron list -q b --after b/s1 @", 65);
    hf_try_has(fixture->err, "expected a schedule's id");
    hf_try_run("cron list --limit 1001 @", 64);
}

/* ---- next ---- */

static void ticks_rise_until_the_last_time_there_is(void **state)
{
    (void)state;
    hf_try_run("cron next @yearly --from 9997-06-01T00:00:00Z", 0);
    assert_string_equal(fixture->out, "9998-01-01T00:00:00Z\n9999-01-01T00:00:00Z\n");
    hf_try_run("cron next @yearly --from 9997-06-01T00:00:00Z --tz Europe/Berlin", 0);
    assert_string_equal(fixture->out, "9997-12-31T23:00:00Z\n9998-12-31T23:00:00Z\n"
                                      "9999-12-31T23:00:00Z\n");
    assert_string_equal(fixture->err, "");
    hf_try_run("cron next @yearly --from 9999-01-01T00:00:00Z", 65);
    assert_string_equal(fixture->out, "");
    assert_string_equal(fixture->err,
                        "holdfast: cron '@yearly': expected a tick within 40 years and "
                        "before the year 10000, found none\n");
}

static void the_first_time_there_is_has_a_tick_after_it(void **state)
{
    (void)state;
    hf_try_run("cron next @hourly -n 1 --from 1970-01-01T00:00:00Z", 0);
    assert_string_equal(fixture->out, "1970-01-01T01:00:00Z\n");
    hf_try_run("cron next @hourly -n 1 --from 1969-12-31T23:59:59Z", 64);
    hf_try_has(fixture->err, "--from: expected a time from 1970 to 9999");
}

#define TEST(name) cmocka_unit_test_setup(name, hf_try_clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_payload_comes_from_standard_input),
        TEST(a_payload_has_the_bound_of_the_configuration),
        TEST(schedules_are_listed_in_pages),
        TEST(a_place_in_the_list_has_a_queue_and_an_id),
        TEST(ticks_rise_until_the_last_time_there_is),
        TEST(the_first_time_there_is_has_a_tick_after_it),
    };
    hf_try_up(HF_TEST_COMMAND, NULL);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_try_down();
    return failures;
}
