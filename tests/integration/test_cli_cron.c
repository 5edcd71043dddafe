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

static void options_that_do_not_go_together_are_refused(void **state)
{
    static const char *const cases[][2] = {
        {"cron add s t --every 1h --tz Europe/Berlin @",
         "cron add: expected --cron with --tz, found --every\n"},
        {"cron add s t --every 1h --catch-up 2h @",
         "cron add: expected --missed all with --catch-up, found none\n"},
        {"cron add s t --every 1h --catch-up 2h --missed skip @",
         "cron add: expected --missed all with --catch-up, found skip\n"},
        {"cron add s t --every 3651d @",
         "--every: expected a duration with its unit (ms s "
         "m h d) from 100ms to 3650d, found '3651d'\n"},
        {"cron add s t --every 1h --cron @daily @",
         "cron add: expected either --cron or --every, found both\n"},
        {"cron add s t @", "cron add: expected either --cron or --every, found none\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hf_try_run(cases[i][0], 64);
        hf_try_has(fixture->err, cases[i][1]);
    }
    assert_string_equal(hf_fixture_command(&fixture->redis, "KEYS *"), "");
    hf_try_run("cron add s t --every 1h --catch-up 2h --missed all @", 0);
}

static void a_schedule_without_a_tick_is_told(void **state)
{
    (void)state;
    hf_try_run("cron add s t --every 1h --end @0 @", 0);
    assert_string_equal(fixture->out, "s: ended, no tick follows\n");
    hf_try_run("cron add s t --every 1h --end 2001-01-01T00:00:00Z @", 0);
    assert_string_equal(fixture->out, "s: ended, no tick follows\n");
    hf_try_run("cron add s t --every 1h @", 0);
    hf_try_run("cron pause s @", 0);
    hf_try_run("cron add s t --every 2h @", 0);
    assert_string_equal(fixture->out, "s: paused, no tick follows\n");
}

static void what_others_wrote_is_no_command_to_a_terminal(void **state)
{
    (void)state;
    hf_try_run("cron add s t --every 1h @", 0);
    (void)hf_fixture_command(&fixture->redis, "HSET hf:{default}:cron s %s",
                             "{\"every\":500,\"job\":{\"type\":\"a\\u001b[2Jb\"}}\n");
    (void)hf_fixture_command(&fixture->redis, "HSET hf:{default}:cron_state s %s",
                             "{\"gen\":\"1\",\"job\":\"j\\u001b[2J\"}");
    hf_try_run("cron show s @", 0);
    hf_try_has(fixture->out, "type      a [2Jb\n");
    assert_null(strchr(fixture->out, 0x1b));
    hf_try_run("cron list @", 0);
    assert_null(strchr(fixture->out, 0x1b));
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
    assert_string_equal(fixture->err, "holdfast: 2 schedules are listed, there are "
                                      "more: go on with --after b/s1\n");
    hf_try_run("cron list --after b/s1 --json @", 0);
    hf_try_has(fixture->out, "{\"id\":\"s2\",\"queue\":\"b\"");
    assert_null(strstr(fixture->out, "s1"));
    assert_null(strstr(fixture->out, "s3"));
    hf_try_run("cron list --after b/s2 @", 0);
    assert_string_equal(fixture->out, "no more schedules\n");
    hf_try_run("cron list -q b --limit 1 @", 0);
    hf_try_has(fixture->err, "1 schedule is listed, there are more: go on with "
                             "--after b/s1\n");
    hf_try_run("cron list -q b --after b/s1 @", 0);
    hf_try_has(fixture->out, "\ns2");
    hf_try_run("cron list -q b --limit 2 @", 0);
    assert_string_equal(fixture->err, ""); /* it is full, and the last one */
    hf_try_run("cron list --limit 1 --json @", 0);
    hf_try_has(fixture->err, "{\"more\":true,\"after\":\"a/s3\"}\n");
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
    hf_try_run("cron list -q a --after b/s1 @", 64);
    hf_try_has(fixture->err, "expected a place in queue 'a'");
    hf_try_run("cron list --limit 1001 @", 64);
}

/* ---- changes ---- */

static void each_change_says_what_it_has_done(void **state)
{
    (void)state;
    hf_try_run("cron add s t x --every 1h @", 0);
    hf_try_run("cron show s @", 0);
    hf_try_has(fixture->out, "payload   1 byte\n");
    hf_try_run("cron pause s @", 0);
    assert_string_equal(fixture->out, "s: paused\n");
    hf_try_run("cron resume s --json @", 0);
    assert_string_equal(fixture->out,
                        "{\"id\":\"s\",\"queue\":\"default\",\"outcome\":\"resumed\"}\n");
    hf_try_run("cron remove s @", 0);
    assert_string_equal(fixture->out, "s: removed\n");
    hf_try_run("cron remove s @", 1);
    assert_string_equal(fixture->out, "");
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
        TEST(options_that_do_not_go_together_are_refused),
        TEST(a_schedule_without_a_tick_is_told),
        TEST(what_others_wrote_is_no_command_to_a_terminal),
        TEST(schedules_are_listed_in_pages),
        TEST(a_place_in_the_list_has_a_queue_and_an_id),
        TEST(each_change_says_what_it_has_done),
        TEST(ticks_rise_until_the_last_time_there_is),
        TEST(the_first_time_there_is_has_a_tick_after_it),
    };
    hf_try_up(HF_TEST_COMMAND, NULL);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_try_down();
    return failures;
}
