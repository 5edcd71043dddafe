/* test_text.c - durations, sizes, numbers and times as people write them. */
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "holdfast/producer.h"

typedef struct number_case {
    const char *text;
    int64_t value;
} number_case;

static void a_duration_is_a_whole_number_with_a_unit(void **state)
{
    static const number_case cases[] = {
        {"250ms", 250},
        {"10s", 10000},
        {"5m", 300000},
        {"1h", 3600000},
        {"1d", 86400000},
        {"180d", INT64_C(180) * 86400000},
        {"0", 0},
        {"0s", 0},
        {"007s", 7000},
        {"36525d", HF_DELAY_MAX_MS},
        {"1h30m", 5400000},
        {"1d12h", 129600000},
        {"1d0h0m0s1ms", 86400001},
        {"90m30s", 5430000},
        {"36524d24h", HF_DELAY_MAX_MS},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        int64_t ms = -1;
        assert_true(hf_parse_duration_ms(cases[i].text, &ms));
        assert_int_equal(ms, cases[i].value);
    }
}

static void what_is_no_duration_is_refused_and_changes_nothing(void **state)
{
    static const char *const bad[] = {"",
                                      "10",
                                      "s",
                                      "10 s",
                                      " 10s",
                                      "10s ",
                                      "1.5s",
                                      "-1s",
                                      "+1s",
                                      "10S",
                                      "10sec",
                                      "1s1s",
                                      "30m1h",
                                      "1h1h",
                                      "1h30",
                                      "1h 30m",
                                      "1h30m10",
                                      "1hm",
                                      "1h-30m",
                                      "36525d1ms",
                                      "9223372036854775807ms1ms",
                                      "1ms1s",
                                      "0x1s",
                                      "36526d",
                                      "2562047788015h",
                                      "3155760000001ms",
                                      "99999999999999999999ms"};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(bad); i++) {
        int64_t ms = 42;
        if (hf_parse_duration_ms(bad[i], &ms))
            fail_msg("taken for a duration: '%s'", bad[i]);
        assert_int_equal(ms, 42);
    }
}

static void a_size_counts_bytes_or_powers_of_1024(void **state)
{
    static const number_case cases[] = {
        {"0", 0},
        {"17", 17},
        {"17B", 17},
        {"4KiB", 4096},
        {"1MiB", 1048576},
        {"2GiB", INT64_C(2147483648)},
        {"8589934591GiB", INT64_C(8589934591) << 30},
    };
    static const char *const bad[] = {"",   "MiB",    "1MB",           "1mib", "1 MiB",
                                      "-1", "1.5MiB", "8589934592GiB", "1KiB "};
    (void)state;
    int64_t bytes = 0;
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        assert_true(hf_parse_size(cases[i].text, &bytes));
        assert_int_equal(bytes, cases[i].value);
    }
    for (size_t i = 0; i < HF_COUNT(bad); i++)
        assert_false(hf_parse_size(bad[i], &bytes));
}

static void a_number_is_all_of_the_text_and_within_its_range(void **state)
{
    (void)state;
    int64_t n = 0;
    assert_true(hf_parse_int("16", 1, 1000, &n));
    assert_int_equal(n, 16);
    assert_true(hf_parse_int("-5", -10, 0, &n));
    assert_int_equal(n, -5);
    assert_true(hf_parse_int("9223372036854775807", 0, INT64_MAX, &n));
    assert_true(n == INT64_MAX);
    assert_false(hf_parse_int("9223372036854775808", 0, INT64_MAX, &n));
    assert_false(hf_parse_int("0", 1, 1000, &n));
    assert_false(hf_parse_int("1001", 1, 1000, &n));
    assert_false(hf_parse_int("", 0, 1, &n));
    assert_false(hf_parse_int("-", -1, 1, &n));
    assert_false(hf_parse_int("--1", -1, 1, &n));
    assert_false(hf_parse_int("1x", 0, 1, &n));
    assert_false(hf_parse_int(" 1", 0, 1, &n));
}

static void a_time_needs_its_zone(void **state)
{
    static const number_case cases[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"2000-02-29T00:00:00Z", INT64_C(951782400000)},
        {"2001-09-09T01:46:40Z", INT64_C(1000000000000)},
        {"2026-11-21T10:00:00Z", INT64_C(1795255200000)},
        {"2026-11-21t10:00:00.5z", INT64_C(1795255200500)},
        {"2026-11-21T10:00:00.0259999Z", INT64_C(1795255200025)},
        {"2026-11-21T11:00:00.250+01:00", INT64_C(1795255200250)},
        {"2026-11-21T04:30:00-05:30", INT64_C(1795255200000)},
        {"2016-12-31T23:59:60Z", INT64_C(1483228800000)},
        {"1969-12-31T23:59:59.999Z", -1},
        {"0000-03-01T00:00:00Z", INT64_C(-62162035200000)},
        {"9999-12-31T23:59:59.999Z", INT64_C(253402300799999)},
        {"@0", 0},
        {"@1795255200", INT64_C(1795255200000)},
        {"@1795255200.25", INT64_C(1795255200250)},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        int64_t ms = 42;
        if (!hf_parse_time_ms(cases[i].text, &ms) || ms != cases[i].value)
            fail_msg("%s was read as %lld", cases[i].text, (long long)ms);
    }
}

static void what_a_time_lacks_is_told(void **state)
{
    static const char *const cases[][2] = {
        {"2030-01-31T08:00:00", " (add Z for UTC, or an offset such as +01:00)"},
        {"2030-01-31T08:00:00.5", " (add Z for UTC, or an offset such as +01:00)"},
        {"2030-01-31T08:00", " (add :00Z for UTC, or :00 and an offset such as +01:00)"},
        {"2030-01-31", " (add T00:00:00Z for its beginning in UTC)"},
        {"2030-02-31T08:00:00", ""},
        {"tomorrow", ""},
        {"@1x", ""},
        {"", ""},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(cases); i++)
        assert_string_equal(hf_time_needs(cases[i][0]), cases[i][1]);
}

static void what_is_no_time_is_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "now",
                                      "2026-11-21",
                                      "2026-11-21T10:00:00",
                                      "2026-11-21T10:00Z",
                                      "2026-11-21 10:00:00Z",
                                      "2026-13-01T00:00:00Z",
                                      "2026-00-01T00:00:00Z",
                                      "2026-02-29T00:00:00Z",
                                      "2100-02-29T00:00:00Z",
                                      "2026-04-31T00:00:00Z",
                                      "2026-11-21T24:00:00Z",
                                      "2026-11-21T10:60:00Z",
                                      "2026-11-21T10:00:61Z",
                                      "2026-11-21T10:00:00.Z",
                                      "2026-11-21T10:00:00+0100",
                                      "2026-11-21T10:00:00+24:00",
                                      "2026-11-21T10:00:00Zx",
                                      "26-11-21T10:00:00Z",
                                      "@",
                                      "@-1",
                                      "@1.",
                                      "@1x",
                                      "@ 1",
                                      "@99999999999999999999",
                                      "@253402300800",
                                      "9999-12-31T23:59:59-00:01",
                                      "1795255200"};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(bad); i++) {
        int64_t ms = 0;
        if (hf_parse_time_ms(bad[i], &ms))
            fail_msg("taken for a time: '%s'", bad[i]);
    }
}

static void durations_are_written_in_the_largest_unit_that_divides_them(void **state)
{
    static const number_case cases[] = {
        {"0ms", 0},      {"1500ms", 1500}, {"10s", 10000},    {"90s", 90000},
        {"2h", 7200000}, {"1d", 86400000}, {"25h", 90000000},
    };
    (void)state;
    char text[HF_DURATION_SIZE];
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        hf_format_duration(cases[i].value, text);
        assert_string_equal(text, cases[i].text);
    }
    hf_format_duration(INT64_MIN, text);
    assert_string_equal(text, "-9223372036854775808ms");
}

static void a_written_time_is_read_back_as_the_same(void **state)
{
    static const int64_t cases[] = {0,
                                    -1,
                                    1,
                                    999,
                                    INT64_C(951782400000),
                                    INT64_C(1795255200123),
                                    INT64_C(253402300799999),
                                    INT64_C(-62167219200000)};
    (void)state;
    char text[HF_TIME_SIZE];
    hf_format_time(INT64_C(1795255200025), text);
    assert_string_equal(text, "2026-11-21T10:00:00.025Z");
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        int64_t back = 42;
        hf_format_time(cases[i], text);
        assert_true(hf_parse_time_ms(text, &back));
        assert_true(back == cases[i]);
    }
    /* A day of every month of 400 years, and both of its neighbours. */
    for (int64_t day = -719468; day < 146097; day += 29) {
        int64_t back = 42;
        hf_format_time(day * 86400000 + 1, text);
        assert_true(hf_parse_time_ms(text, &back));
        assert_true(back == day * 86400000 + 1);
    }
}

static void a_time_beyond_the_calendar_is_its_end(void **state)
{
    (void)state;
    char text[HF_TIME_SIZE];
    hf_format_time(INT64_MAX, text);
    assert_string_equal(text, "9999-12-31T23:59:59.999Z");
    hf_format_time(INT64_MIN, text);
    assert_string_equal(text, "0000-01-01T00:00:00.000Z");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_duration_is_a_whole_number_with_a_unit),
        cmocka_unit_test(what_is_no_duration_is_refused_and_changes_nothing),
        cmocka_unit_test(a_size_counts_bytes_or_powers_of_1024),
        cmocka_unit_test(a_number_is_all_of_the_text_and_within_its_range),
        cmocka_unit_test(a_time_needs_its_zone),
        cmocka_unit_test(what_a_time_lacks_is_told),
        cmocka_unit_test(what_is_no_time_is_refused),
        cmocka_unit_test(durations_are_written_in_the_largest_unit_that_divides_them),
        cmocka_unit_test(a_written_time_is_read_back_as_the_same),
        cmocka_unit_test(a_time_beyond_the_calendar_is_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
