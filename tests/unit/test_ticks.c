/* test_ticks.c - the ticks of a schedule: which are made up for after an outage. */
#include "cron/ticks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/base.h"
#include "holdfast/producer.h"
#include "tests/support/skip.h"

#define MINUTE_MS INT64_C(60000)
#define HOUR_MS (60 * MINUTE_MS)
#define DAY_MS (24 * HOUR_MS)
#define NOON (INT64_C(20000) * DAY_MS + 12 * HOUR_MS)

static hf_ticks_due due;

static hf_ticks each_minute(void)
{
    hf_ticks ticks = {.every_ms = 0};
    assert_int_equal(hf_cron_parse(&ticks.cron, "* * * * *", NULL), HF_OK);
    return ticks;
}

static void decide(const hf_ticks *ticks, hf_missed missed, int64_t from_ms,
                   int64_t now_ms)
{
    hf_ticks_decide(ticks, missed, HOUR_MS, from_ms, now_ms, &due);
    assert_true(due.from_ms >= from_ms || from_ms > now_ms);
    for (size_t i = 1; i < due.n; i++)
        assert_true(due.at_ms[i] > due.at_ms[i - 1]);
}

static void a_period_counts_from_the_epoch_or_from_its_start(void **state)
{
    hf_ticks ticks = {.every_ms = 7000};
    int64_t at_ms = 0;
    (void)state;
    assert_true(hf_ticks_next(&ticks, 13999, &at_ms));
    assert_int_equal(at_ms, 14000);
    assert_true(hf_ticks_next(&ticks, 14000, &at_ms));
    assert_int_equal(at_ms, 21000);
    ticks.start_ms = 100100;
    assert_true(hf_ticks_next(&ticks, 5, &at_ms));
    assert_int_equal(at_ms, 100100);
    assert_true(hf_ticks_next(&ticks, 100100, &at_ms));
    assert_int_equal(at_ms, 107100);
    ticks.end_ms = 107100;
    assert_true(hf_ticks_next(&ticks, 100100, &at_ms));
    assert_false(hf_ticks_next(&ticks, 107100, &at_ms));
}

static void no_tick_is_after_the_last_time_there_is(void **state)
{
    const int64_t last_s = HF_TIME_MAX_MS / 1000;
    hf_ticks ticks = {.every_ms = 7000, .start_ms = HF_TIME_MAX_MS - 10000};
    int64_t at_ms = 0;
    (void)state;
    assert_true(hf_ticks_next(&ticks, 0, &at_ms));
    assert_true(hf_ticks_next(&ticks, at_ms, &at_ms));
    assert_int_equal(at_ms, HF_TIME_MAX_MS - 3000);
    assert_false(hf_ticks_next(&ticks, at_ms, &at_ms));
    /* Of an expression as well, whether it follows real time or not. */
    static const char *const texts[] = {"* * * * * *", "0-59 59 23 * * *"};
    for (size_t i = 0; i < 2; i++) {
        ticks = (hf_ticks){.every_ms = 0};
        assert_int_equal(hf_cron_parse(&ticks.cron, texts[i], NULL), HF_OK);
        assert_true(hf_ticks_next(&ticks, (last_s - 1) * 1000, &at_ms));
        assert_int_equal(at_ms, last_s * 1000);
        assert_false(hf_ticks_next(&ticks, at_ms, &at_ms));
        assert_false(hf_ticks_next(&ticks, HF_TIME_MAX_MS + DAY_MS, &at_ms));
    }
}

static void ticks_rise_through_the_epoch(void **state)
{
    hf_ticks ticks = {.every_ms = 0};
    (void)state;
    assert_int_equal(hf_cron_parse(&ticks.cron, "* * * * * *", NULL), HF_OK);
    int64_t at_ms = -2500;
    for (int64_t expected = -2000; expected <= 2000; expected += 1000) {
        assert_true(hf_ticks_next(&ticks, at_ms, &at_ms));
        assert_int_equal(at_ms, expected);
    }
    /* `every` counts from the epoch. */
    ticks = (hf_ticks){.every_ms = 7000};
    assert_true(hf_ticks_next(&ticks, -8000, &at_ms));
    assert_int_equal(at_ms, 0);
}

static void a_tick_that_is_on_time_is_taken_by_each_rule(void **state)
{
    hf_ticks ticks = each_minute();
    (void)state;
    for (int missed = HF_MISSED_ONCE; missed <= HF_MISSED_SKIP; missed++) {
        decide(&ticks, (hf_missed)missed, NOON - 50, NOON + 3);
        assert_int_equal(due.n, 1);
        assert_int_equal(due.at_ms[0], NOON);
        assert_int_equal(due.dropped, 0);
        assert_int_equal(due.from_ms, NOON + 3);
        assert_int_equal(due.next_ms, NOON + MINUTE_MS);
    }
}

static void after_an_outage_of_three_days_each_rule_takes_its_own(void **state)
{
    hf_ticks ticks = each_minute();
    int64_t now_ms = NOON + 3 * DAY_MS + 500;
    (void)state;
    decide(&ticks, HF_MISSED_ONCE, NOON, now_ms);
    assert_int_equal(due.n, 1);
    assert_int_equal(due.at_ms[0], NOON + 3 * DAY_MS);
    assert_int_equal(due.dropped, 3 * 24 * 60 - 1);
    decide(&ticks, HF_MISSED_ALL, NOON, now_ms);
    assert_int_equal(due.n, 60);
    assert_int_equal(due.at_ms[59], NOON + 3 * DAY_MS);
    assert_int_equal(due.dropped, 3 * 24 * 60 - 60);
    decide(&ticks, HF_MISSED_SKIP, NOON, now_ms);
    assert_int_equal(due.n, 1); /* the last one is not late yet */
    assert_int_equal(hf_cron_parse(&ticks.cron, "0 * * * *", NULL), HF_OK);
    decide(&ticks, HF_MISSED_SKIP, NOON, now_ms + MINUTE_MS);
    assert_int_equal(due.n, 0);
    assert_int_equal(due.dropped, 3 * 24);
    decide(&ticks, HF_MISSED_ONCE, NOON, now_ms + MINUTE_MS);
    assert_int_equal(due.n, 1);
    assert_int_equal(due.at_ms[0], NOON + 3 * DAY_MS);
}

static void no_more_than_a_thousand_are_made_up_for(void **state)
{
    hf_ticks ticks = {.every_ms = 100};
    (void)state;
    decide(&ticks, HF_MISSED_ALL, NOON, NOON + 30 * DAY_MS);
    assert_int_equal(due.n, HF_TICKS_MAX);
    assert_int_equal(due.at_ms[HF_TICKS_MAX - 1], NOON + 30 * DAY_MS);
    assert_int_equal(due.at_ms[0], NOON + 30 * DAY_MS - 999 * 100);
    /* Of an expression as well, also where its ticks are few or come in bursts. */
    ticks.every_ms = 0;
    assert_int_equal(hf_cron_parse(&ticks.cron, "* 0-29 3 * * *", NULL), HF_OK);
    hf_ticks_decide(&ticks, HF_MISSED_ALL, 30 * DAY_MS, NOON, NOON + 30 * DAY_MS, &due);
    assert_int_equal(due.n, HF_TICKS_MAX);
    assert_int_equal(due.at_ms[HF_TICKS_MAX - 1],
                     NOON + 30 * DAY_MS - 8 * HOUR_MS - 30 * MINUTE_MS - 1000);
    assert_int_equal(due.at_ms[0], due.at_ms[HF_TICKS_MAX - 1] - 999 * 1000);
}

/* Fixed hours. */
static void no_fixed_time_repeats_after_a_step_back_of_up_to_three_hours(void **state)
{
    hf_ticks ticks = {.every_ms = 0};
    (void)state;
    assert_int_equal(hf_cron_parse(&ticks.cron, "0 9-12 * * *", NULL), HF_OK);
    decide(&ticks, HF_MISSED_ALL, NOON, NOON - 3 * HOUR_MS);
    assert_int_equal(due.n, 0);
    assert_int_equal(due.from_ms, NOON);
    assert_int_equal(due.next_ms, NOON + 21 * HOUR_MS);
    decide(&ticks, HF_MISSED_ALL, NOON, NOON - 3 * HOUR_MS - 1);
    assert_int_equal(due.n, 0);
    assert_int_equal(due.from_ms, NOON - 3 * HOUR_MS - 1);
    assert_int_equal(due.next_ms, NOON - 3 * HOUR_MS);
}

/* A period, and fields that begin with '*'. */
static void what_follows_real_time_goes_on_after_a_step_back(void **state)
{
    hf_ticks periods = {.every_ms = MINUTE_MS}, fields = each_minute();
    const hf_ticks *each[] = {&periods, &fields};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(each); i++) {
        decide(each[i], HF_MISSED_ALL, NOON, NOON - 3 * HOUR_MS);
        assert_int_equal(due.n, 0);
        assert_int_equal(due.dropped, 0);
        assert_int_equal(due.next_ms, NOON - 3 * HOUR_MS + 2 * MINUTE_MS);
        /* Less than a period: the tick that was there does not repeat. */
        decide(each[i], HF_MISSED_ALL, NOON + 100, NOON - 100);
        assert_int_equal(due.n, 0);
        assert_int_equal(due.next_ms, NOON + MINUTE_MS);
    }
}

/* Against a walk from tick to tick, around the changes of a clock. */
static void ticks_are_counted_as_they_come(void **state)
{
    static const char *const texts[] = {"* * * * * *",    "*/7 3 * * *",    "30 2 * * *",
                                        "0,30 1-3 * * 0", "0 */5 29 2 *",   "15 0 L * *",
                                        "0 0 13 * 5",     "59 59 23 * * *", "0 3 * * *"};
    char detail[HF_DETAIL_SIZE];
    hf_zone *zone;
    (void)state;
    if (hf_zone_open(&zone, "Europe/Berlin", detail) != HF_OK)
        HF_SKIP("there are no time zones: tzdata is missing");
    for (size_t i = 0; i < HF_COUNT(texts); i++) {
        hf_cron cron;
        assert_int_equal(hf_cron_parse(&cron, texts[i], detail), HF_OK);
        /* Two days around the last Sundays of March and October 2026. */
        static const int64_t froms[] = {1774655999, 1774731600, 1792799999, 1792890000};
        for (size_t k = 0; k < 2 * HF_COUNT(froms); k++) {
            int64_t from = froms[k / 2], at = from, n = 0;
            int64_t until = from + (k % 2 == 0 ? 2 * 86400 : 5000);
            while (hf_cron_next(&cron, zone, at, &at) && at <= until)
                n++;
            assert_int_equal(hf_cron_count(&cron, zone, from, until), n);
        }
    }
    hf_zone_free(zone);
}

static void all_missed_ticks_are_counted(void **state)
{
    hf_ticks ticks = {.every_ms = 100};
    (void)state;
    decide(&ticks, HF_MISSED_ONCE, NOON, NOON + 365 * DAY_MS);
    assert_int_equal(due.n, 1);
    assert_int_equal(due.dropped, INT64_C(365) * 864000 - 1);
    ticks.every_ms = 0;
    assert_int_equal(hf_cron_parse(&ticks.cron, "* * * * * *", NULL), HF_OK);
    decide(&ticks, HF_MISSED_ONCE, NOON, NOON + 400 * 365 * DAY_MS);
    assert_int_equal(due.dropped, INT64_C(400) * 365 * 86400 - 1);
    ticks.start_ms = NOON + DAY_MS;
    ticks.end_ms = NOON + 3 * DAY_MS;
    decide(&ticks, HF_MISSED_SKIP, NOON, NOON + 9 * DAY_MS);
    assert_int_equal(due.n, 0);
    assert_int_equal(due.dropped, 2 * 86400 + 1);
}

static void a_schedule_that_has_ended_has_no_next_tick(void **state)
{
    hf_ticks ticks = each_minute();
    (void)state;
    ticks.end_ms = NOON;
    decide(&ticks, HF_MISSED_ONCE, NOON - 1, NOON + 1);
    assert_int_equal(due.n, 1);
    assert_int_equal(due.next_ms, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_period_counts_from_the_epoch_or_from_its_start),
        cmocka_unit_test(no_tick_is_after_the_last_time_there_is),
        cmocka_unit_test(ticks_rise_through_the_epoch),
        cmocka_unit_test(a_tick_that_is_on_time_is_taken_by_each_rule),
        cmocka_unit_test(after_an_outage_of_three_days_each_rule_takes_its_own),
        cmocka_unit_test(no_more_than_a_thousand_are_made_up_for),
        cmocka_unit_test(no_fixed_time_repeats_after_a_step_back_of_up_to_three_hours),
        cmocka_unit_test(what_follows_real_time_goes_on_after_a_step_back),
        cmocka_unit_test(ticks_are_counted_as_they_come),
        cmocka_unit_test(all_missed_ticks_are_counted),
        cmocka_unit_test(a_schedule_that_has_ended_has_no_next_tick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
