/* test_backoff.c - how long to wait after the n-th failure. */
#include "base/backoff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/producer.h"

static void without_jitter_the_wait_follows_its_shape(void **state)
{
    (void)state;
    hf_rng rng = {1};
    hf_backoff b = {.shape = HF_SHAPE_EXPONENTIAL, .base_ms = 50, .cap_ms = 2000};
    static const int64_t expected[] = {50, 100, 200, 400, 800, 1600, 2000, 2000};
    for (uint32_t n = 1; n <= 8; n++)
        assert_int_equal(hf_backoff_ms(&b, n, &rng), expected[n - 1]);
    b.shape = HF_SHAPE_LINEAR;
    assert_int_equal(hf_backoff_ms(&b, 1, &rng), 50);
    assert_int_equal(hf_backoff_ms(&b, 7, &rng), 350);
    assert_int_equal(hf_backoff_ms(&b, 41, &rng), 2000);
    b.shape = HF_SHAPE_CONSTANT;
    assert_int_equal(hf_backoff_ms(&b, 1000, &rng), 50);
}

static void many_failures_overflow_nothing(void **state)
{
    (void)state;
    hf_rng rng = {1};
    hf_backoff b = {.shape = HF_SHAPE_EXPONENTIAL, .base_ms = 3, .cap_ms = INT64_MAX};
    for (uint32_t n = 60; n < 70; n++)
        assert_true(hf_backoff_ms(&b, n, &rng) == HF_DELAY_MAX_MS);
    assert_true(hf_backoff_ms(&b, UINT32_MAX, &rng) == HF_DELAY_MAX_MS);
    b.shape = HF_SHAPE_LINEAR;
    b.base_ms = INT64_MAX / 2;
    assert_true(hf_backoff_ms(&b, UINT32_MAX, &rng) == HF_DELAY_MAX_MS);
    b.jitter = 1;
    for (int i = 0; i < 100; i++) {
        int64_t ms = hf_backoff_ms(&b, UINT32_MAX, &rng);
        assert_true(ms >= 0 && ms <= HF_DELAY_MAX_MS);
    }
    b.base_ms = 0;
    assert_int_equal(hf_backoff_ms(&b, UINT32_MAX, &rng), 0);
}

static void jitter_spreads_the_wait_over_its_part_and_no_further(void **state)
{
    (void)state;
    hf_rng rng = {7};
    hf_backoff b = {
        .shape = HF_SHAPE_CONSTANT, .base_ms = 1000, .cap_ms = 1000, .jitter = 0.2};
    int64_t least = INT64_MAX, most = 0;
    for (int i = 0; i < 10000; i++) {
        int64_t ms = hf_backoff_ms(&b, 1, &rng);
        least = ms < least ? ms : least;
        most = ms > most ? ms : most;
    }
    assert_in_range(least, 800, 810);
    assert_in_range(most, 1190, 1200);
}

static void the_zeroth_failure_is_the_first(void **state)
{
    (void)state;
    hf_rng rng = {1};
    hf_backoff b = {.shape = HF_SHAPE_EXPONENTIAL, .base_ms = 50, .cap_ms = 2000};
    assert_int_equal(hf_backoff_ms(&b, 0, &rng), 50);
}

static void random_units_lie_between_0_and_1(void **state)
{
    (void)state;
    hf_rng rng = {3};
    double sum = 0;
    for (int i = 0; i < 10000; i++) {
        double unit = hf_rng_unit(&rng);
        assert_true(unit >= 0 && unit < 1);
        sum += unit;
    }
    assert_true(sum > 4800 && sum < 5200);
}

static void the_same_seed_gives_the_same_numbers(void **state)
{
    (void)state;
    hf_rng a = {99}, b = {99}, c = {100};
    uint64_t first = hf_rng_next(&a);
    assert_true(first == hf_rng_next(&b));
    assert_true(first != hf_rng_next(&c));
    assert_true(hf_rng_next(&a) != first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_jitter_the_wait_follows_its_shape),
        cmocka_unit_test(many_failures_overflow_nothing),
        cmocka_unit_test(jitter_spreads_the_wait_over_its_part_and_no_further),
        cmocka_unit_test(the_zeroth_failure_is_the_first),
        cmocka_unit_test(random_units_lie_between_0_and_1),
        cmocka_unit_test(the_same_seed_gives_the_same_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
