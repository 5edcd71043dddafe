/* test_cron.c - cron expressions: what they name, what is refused, and when they tick.
 * The acceptance script 70-cron-oracle compares many more with another implementation. */
#include "cron/expr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/text.h"

static int64_t seconds_of(const char *text)
{
    int64_t ms = 0;
    assert_true(hf_parse_time_ms(text, &ms));
    return ms / 1000;
}

static void assert_ticks(const hf_zone *zone, const char *text, const char *from,
                         const char *const *ticks)
{
    char detail[HF_DETAIL_SIZE] = "";
    hf_cron cron;
    if (hf_cron_parse(&cron, text, detail) != HF_OK)
        fail_msg("'%s': %s", text, detail);
    int64_t at = seconds_of(from);
    for (size_t i = 0; ticks[i] != NULL; i++) {
        char found[HF_TIME_SIZE];
        assert_true(hf_cron_next(&cron, zone, at, &at));
        hf_format_time(at * 1000, found);
        if (at != seconds_of(ticks[i]))
            fail_msg("'%s' from %s: expected %s, found %s", text, from, ticks[i], found);
    }
}

typedef struct tick_case {
    const char *text, *from, *ticks[4];
} tick_case;

static void an_expression_names_times(void **state)
{
    static const tick_case cases[] = {
        {"* * * * *", "2026-11-24T10:00:30Z", {"2026-11-24T10:01:00Z"}},
        {"* * * * *", "2026-11-24T10:00:00Z", {"2026-11-24T10:01:00Z"}},
        {"*/15 9-10 * * *",
         "2026-11-24T10:31:00Z",
         {"2026-11-24T10:45:00Z", "2026-11-25T09:00:00Z"}},
        {"50/5 0 1 1 *",
         "2026-11-24T10:00:00Z",
         {"2027-01-01T00:50:00Z", "2027-01-01T00:55:00Z"}},
        {"30-30/1 0 * * *",
         "2026-11-24T00:00:00Z",
         {"2026-11-24T00:30:00Z", "2026-11-25T00:30:00Z"}},
        {"*/20 0 0 * * *",
         "2026-11-24T10:00:00Z",
         {"2026-11-25T00:00:00Z", "2026-11-25T00:00:20Z"}},
        {"0 0 L * *",
         "2028-02-01T00:00:00Z",
         {"2028-02-29T00:00:00Z", "2028-03-31T00:00:00Z"}},
        {"0 0 LW * *",
         "2026-01-15T00:00:00Z",
         {"2026-01-30T00:00:00Z", "2026-02-27T00:00:00Z"}},
        {"0 0 * * 5L",
         "2026-11-01T00:00:00Z",
         {"2026-11-27T00:00:00Z", "2026-12-25T00:00:00Z"}},
        {"0 0 * * TUE#2",
         "2026-11-01T00:00:00Z",
         {"2026-11-10T00:00:00Z", "2026-12-08T00:00:00Z"}},
        {"0 0 * * 7",
         "2026-11-24T00:00:00Z",
         {"2026-11-29T00:00:00Z", "2026-12-06T00:00:00Z"}},
        {"0 0 * * sat-7",
         "2026-11-24T00:00:00Z",
         {"2026-11-28T00:00:00Z", "2026-11-29T00:00:00Z"}},
        {"0 0 13 * 5", "2026-11-24T00:00:00Z", {"2026-11-27T00:00:00Z"}},
        {"0 0 */13 * 5",
         "2026-11-24T00:00:00Z",
         {"2026-11-27T00:00:00Z", "2027-01-01T00:00:00Z"}},
        {"0 0 29 feb *",
         "2026-11-24T00:00:00Z",
         {"2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"}},
        {" 5\t4  * * * ", "2026-11-24T00:00:00Z", {"2026-11-24T04:05:00Z"}},
        {"@weekly", "2026-11-24T00:00:00Z", {"2026-11-29T00:00:00Z"}},
        {"@hourly", "2026-11-24T00:00:00Z", {"2026-11-24T01:00:00Z"}},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(cases); i++)
        assert_ticks(NULL, cases[i].text, cases[i].from, cases[i].ticks);
}

typedef struct bad_case {
    const char *text, *why;
} bad_case;

static const bad_case bad_cases[] = {
    {"", "cron: expected 5 fields (minute hour day month weekday) or 6 (second first), "
         "found ''"},
    {"* * * *", "found '* * * *'"},
    {"* * * * * * *", "or 6 (second first)"},
    {"@reboot", "found '@reboot'"},
    {"60 * * * *", "cron '60 * * * *', minute: expected 0-59, found '60'"},
    {"* 24 * * *", "hour: expected 0-23, found '24'"},
    {"* * 0 * *", "day of month: expected 1-31, L or LW, found '0'"},
    {"* * 32 * *", "found '32'"},
    {"* * 15W * *", "found '15W'"},
    {"* * ? * *", "found '?'"},
    {"* * * 13 *", "month: expected 1-12 or JAN-DEC, found '13'"},
    {"* * * foo *", "found 'foo'"},
    {"* * * * 8", "day of week: expected 0-7, SUN-SAT, 5L or 5#2, found '8'"},
    {"* * * * 5#6", "found '5#6'"},
    {"* * * * 5#", "found '5#'"},
    {"* * * * 5LL", "found '5LL'"},
    {"* * * * L", "found 'L'"},
    {"5,,6 * * * *", "minute: expected 0-59, found ''"},
    {"5, * * * *", "found ''"},
    {"5-3 * * * *", "minute: expected a range that rises, found '5-3'"},
    {"* 22-4 * * *", "hour: expected a range that rises, found '22-4'"},
    {"*/0 * * * *", "minute: expected a step of at least 1, found '*/0'"},
    {"1/0 * * * *", "minute: expected a step of at least 1, found '1/0'"},
    {"*/90 * * * *", "minute: expected a step of at most 60, found '*/90'"},
    {"5,*/61 * * * *", "minute: expected a step of at most 60, found '*/61'"},
    {"50/15 * * * *", "minute: expected a step of at most 10, found '50/15'"},
    {"* 8-18/12 * * *", "hour: expected a step of at most 11, found '8-18/12'"},
    {"* */25 * * *", "hour: expected a step of at most 24, found '*/25'"},
    {"0 0 */32 * *", "day of month: expected a step of at most 31, found '*/32'"},
    {"0 0 1 */13 *", "month: expected a step of at most 12, found '*/13'"},
    {"0 0 * * */8", "day of week: expected a step of at most 7, found '*/8'"},
    {"*/99 * * * * *", "second: expected a step of at most 60, found '*/99'"},
    {"0 0 31 4,6 *",
     "day of month: expected a day that its months have, at most 30, found '31'"},
    {"0 0 1,30-31 feb *",
     "day of month: expected a day that its months have, at most 29, found '30-31'"},
    {"0 0 31 9 1",
     "day of month: expected a day that its months have, at most 30, found '31'"},
    {"*/ * * * *", "a step of at least 1, found '*/'"},
    {"5/x * * * *", "found '5/x'"},
    {"1-2-3 * * * *", "found '1-2-3'"},
    {"-5 * * * *", "found '-5'"},
    {"** * * * *", "found '**'"},
    {"99999999999999999999 * * * *", "minute: expected 0-59"},
    {"*/99999999999999999999 * * * *", "a step of at least 1"},
    {"0 0 * * * 61", "day of week"},
    {"61 0 0 * * *", "second: expected 0-59, found '61'"},
};

static void what_is_no_expression_is_refused_with_its_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT(bad_cases); i++) {
        char detail[HF_DETAIL_SIZE] = "";
        hf_cron cron;
        assert_int_equal(hf_cron_parse(&cron, bad_cases[i].text, detail), HF_INVALID);
        if (strstr(detail, bad_cases[i].why) == NULL)
            fail_msg("'%s': expected \"%s\", found \"%s\"", bad_cases[i].text,
                     bad_cases[i].why, detail);
    }
}

/* By rules of our own: Berlin's, one of half an hour, one of three hours, and one of
 * less. */
static hf_zone *zone_of(const char *rule)
{
    char file[512] = "TZif3", detail[HF_DETAIL_SIZE] = "";
    const size_t header = 44, part = header + 6 + 4;
    hf_zone *zone = NULL;
    for (int i = 0; i < 2; i++) { /* the first part is not read; both have one type */
        memcpy(file + (size_t)i * part, "TZif3", sizeof "TZif3");
        file[(size_t)i * part + 39] = 1;
        file[(size_t)i * part + 43] = 4;
    }
    int len = snprintf(file + 2 * part, sizeof file - 2 * part, "\n%s\n", rule);
    hf_err err = hf_zone_read(&zone, file, 2 * part + (size_t)len, detail);
    if (err != HF_OK)
        fail_msg("%s: %s", rule, detail);
    return zone;
}

typedef struct zone_case {
    const char *rule, *text, *from, *ticks[4];
} zone_case;

static void ticks_survive_a_change_of_the_clocks(void **state)
{
    static const char berlin[] = "CET-1CEST,M3.5.0,M10.5.0/3";
    static const char howe[] = "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0";
    static const char three[] = "<+08>-8<+11>-11,M3.5.0,M10.5.0/5";
    static const char less[] = "<+08>-8<+1059>-10:59,M3.5.0,M10.5.0/5";
    static const zone_case cases[] = {
        {berlin,
         "30 2 * * *",
         "2026-03-28T12:00:00Z",
         {"2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
        {berlin,
         "0,30 2,3 * * *",
         "2026-03-28T12:00:00Z",
         {"2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"}},
        {berlin, "*/30 2 * * *", "2026-03-28T12:00:00Z", {"2026-03-30T00:00:00Z"}},
        {berlin,
         "30 2 * * *",
         "2026-10-24T12:00:00Z",
         {"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
        {berlin, "30 2 * * *", "2026-10-25T01:10:00Z", {"2026-10-26T01:30:00Z"}},
        {berlin,
         "30 * * * *",
         "2026-10-25T00:00:00Z",
         {"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"}},
        {berlin,
         "30 0-23 * * *",
         "2026-10-25T00:00:00Z",
         {"2026-10-25T00:30:00Z", "2026-10-25T02:30:00Z"}},
        {howe,
         "15 2 * * *",
         "2026-10-03T12:00:00Z",
         {"2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"}},
        {three, "30 3 * * *", "2026-03-28T12:00:00Z", {"2026-03-29T16:30:00Z"}},
        {less, "30 3 * * *", "2026-03-28T12:00:00Z", {"2026-03-28T18:00:00Z"}},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        hf_zone *zone = zone_of(cases[i].rule);
        assert_ticks(zone, cases[i].text, cases[i].from, cases[i].ticks);
        hf_zone_free(zone);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_expression_names_times),
        cmocka_unit_test(what_is_no_expression_is_refused_with_its_place),
        cmocka_unit_test(ticks_survive_a_change_of_the_clocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
