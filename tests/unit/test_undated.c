/* test_undated.c - a lease is over when its number was told a whole lease ago. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/undated.h"

static hf_undated undated;

static int up(void **state)
{
    (void)state;
    undated = (hf_undated){.n = 0};
    return 0;
}

static void a_number_is_over_at_its_time_and_covers_those_before(void **state)
{
    (void)state;
    hf_undated_told(&undated, 3, 100);
    hf_undated_told(&undated, 5, 150);
    assert_int_equal(hf_undated_over(&undated, 99), 0);
    assert_int_equal(hf_undated_next_ns(&undated, 99), 100);
    assert_int_equal(hf_undated_over(&undated, 100), 3);
    assert_int_equal(hf_undated_next_ns(&undated, 100), 150);
    assert_int_equal(hf_undated_over(&undated, 149), 3);
    assert_int_equal(hf_undated_over(&undated, 150), 5);
    assert_int_equal(hf_undated_next_ns(&undated, 150), 0);
}

static void a_number_that_is_told_again_keeps_its_time(void **state)
{
    (void)state;
    hf_undated_told(&undated, 3, 100);
    hf_undated_told(&undated, 3, 150);
    assert_int_equal(hf_undated_over(&undated, 100), 3);
    hf_undated_told(&undated, 3, 300);
    assert_int_equal(hf_undated_over(&undated, 200), 3); /* some may be left */
}

static void when_none_is_left_the_numbers_are_forgotten(void **state)
{
    (void)state;
    hf_undated_told(&undated, 3, 100);
    hf_undated_told(&undated, 0, 150);
    assert_int_equal(hf_undated_over(&undated, 1000), 0);
    hf_undated_told(&undated, 3, 1100);
    assert_int_equal(hf_undated_over(&undated, 1000), 0);
}

/* They are of other data. */
static void numbers_that_begin_anew_are_not_those_of_before(void **state)
{
    (void)state;
    hf_undated_told(&undated, 7, 100);
    hf_undated_told(&undated, 1, 150);
    assert_int_equal(hf_undated_over(&undated, 149), 0);
    assert_int_equal(hf_undated_over(&undated, 150), 1);
}

static void more_numbers_than_it_keeps_are_over_late_but_never_early(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= 10; i++)
        hf_undated_told(&undated, (int64_t)i, 100 * i);
    for (uint64_t ns = 0; ns <= 1100; ns += 50)
        assert_true(hf_undated_over(&undated, ns) <= (int64_t)(ns / 100));
    assert_int_equal(hf_undated_over(&undated, 1000), 10);
}

#define CASE(f) cmocka_unit_test_setup(f, up)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE(a_number_is_over_at_its_time_and_covers_those_before),
        CASE(a_number_that_is_told_again_keeps_its_time),
        CASE(when_none_is_left_the_numbers_are_forgotten),
        CASE(numbers_that_begin_anew_are_not_those_of_before),
        CASE(more_numbers_than_it_keeps_are_over_late_but_never_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
