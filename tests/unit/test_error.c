/* test_error.c - the answers of holdfast/error.h have their names, and two clocks run. */
#include "holdfast/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/detail.h"

#define NUMBER(name, number, text) number,

static void every_answer_has_its_name_and_sentence(void **state)
{
    (void)state;
    assert_string_equal(hf_err_name(HF_OK), "HF_OK");
    assert_string_equal(hf_err_name(HF_UNSURE), "HF_UNSURE");
    assert_string_equal(hf_err_name((hf_err)-37), "HF_LOADING");
    assert_string_equal(hf_err_text(HF_NOMEM), "out of memory");
    assert_string_equal(hf_err_name((hf_err)12345), "HF_UNKNOWN");
    assert_string_equal(hf_err_text((hf_err)12345), "unknown answer");
}

static void an_error_and_its_detail_are_one_sentence(void **state)
{
    char out[64];
    (void)state;
    assert_string_equal(hf_say_whole(HF_NOMEM, NULL, out, sizeof out), "out of memory");
    assert_string_equal(hf_say_whole(HF_NOMEM, "", out, sizeof out), "out of memory");
    assert_string_equal(hf_say_whole(HF_NOMEM, "out of memory", out, sizeof out),
                        "out of memory");
    assert_string_equal(hf_say_whole(HF_NOMEM, "a list", out, sizeof out),
                        "out of memory: a list");
    assert_string_equal(hf_say_whole(HF_INVALID, "expected a name", out, sizeof out),
                        "expected a name");
    assert_string_equal(hf_say_whole(HF_NOMEM, "a list", out, 8), "out of ");
}

static void no_number_is_used_twice_and_each_is_in_its_family(void **state)
{
    static const int numbers[] = {HF_ERR_MAP(NUMBER)};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(numbers); i++) {
        assert_in_range(-numbers[i], 0, 61);
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(numbers[i], numbers[k]);
    }
}

static void the_clock_of_deadlines_never_goes_back(void **state)
{
    (void)state;
    uint64_t last = hf_boot_ns();
    for (int i = 0; i < 1000; i++) {
        uint64_t now = hf_boot_ns();
        assert_true(now >= last);
        last = now;
    }
    assert_true(hf_wall_ms() > INT64_C(1700000000000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_answer_has_its_name_and_sentence),
        cmocka_unit_test(an_error_and_its_detail_are_one_sentence),
        cmocka_unit_test(no_number_is_used_twice_and_each_is_in_its_family),
        cmocka_unit_test(the_clock_of_deadlines_never_goes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
