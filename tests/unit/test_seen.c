/* test_seen.c - what a client remembers of the clock of a lock's line. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "lock/seen.h"

enum { THIRD_MS = 10000, READINGS = 500 };

static hf_seen seen;

static int begin(void **state)
{
    (void)state;
    memset(&seen, 0, sizeof seen);
    return 0;
}

static uint64_t at_ns(uint64_t ms)
{
    return ms * HF_MS_NS;
}

static void readings_are_shown_with_their_age_the_newest_first(void **state)
{
    (void)state;
    hf_seen_of(&seen, 7, 1);
    assert_string_equal(hf_seen_text(&seen, at_ns(100)), "");
    hf_seen_add(&seen, 1000, at_ns(100));
    hf_seen_add(&seen, 1300, at_ns(500));
    assert_string_equal(hf_seen_text(&seen, at_ns(700)), "1300:200 1000:600 ");
    assert_string_equal(hf_seen_text(&seen, at_ns(400)), "1300:0 1000:300 ");
}

static void an_answer_to_an_older_request_is_no_reading(void **state)
{
    (void)state;
    hf_seen_of(&seen, 7, 1);
    hf_seen_add(&seen, 1300, at_ns(500));
    hf_seen_add(&seen, 1000, at_ns(600));
    hf_seen_add(&seen, 1300, at_ns(650));
    assert_string_equal(hf_seen_text(&seen, at_ns(700)), "1300:200 ");
}

static void another_line_or_connection_begins_anew(void **state)
{
    (void)state;
    hf_seen_of(&seen, 7, 1);
    hf_seen_add(&seen, 1300, at_ns(500));
    hf_seen_of(&seen, 7, 1);
    assert_string_equal(hf_seen_text(&seen, at_ns(700)), "1300:200 ");
    hf_seen_of(&seen, 8, 1);
    assert_string_equal(hf_seen_text(&seen, at_ns(700)), "");
    hf_seen_add(&seen, 1300, at_ns(500));
    hf_seen_of(&seen, 8, 2);
    assert_string_equal(hf_seen_text(&seen, at_ns(700)), "");
}

/* The age of the youngest reading that is at least so old. */
static uint64_t youngest_of(const char *text, uint64_t age_ms)
{
    uint64_t clock, age;
    int n;
    for (; sscanf(text, "%" SCNu64 ":%" SCNu64 " %n", &clock, &age, &n) == 2; text += n)
        if (age >= age_ms)
            return age;
    return UINT64_MAX;
}

/* A lease of any length is proved to be over no more than a half later than it could. */
static void some_of_many_are_kept_for_leases_of_any_length(void **state)
{
    (void)state;
    hf_seen_of(&seen, 7, 1);
    for (uint64_t i = 1; i <= READINGS; i++) {
        hf_seen_add(&seen, i, at_ns(i * THIRD_MS));
        const char *text = hf_seen_text(&seen, at_ns(i * THIRD_MS));
        for (uint64_t age_ms = THIRD_MS; age_ms <= (i - 1) * THIRD_MS; age_ms *= 2)
            assert_in_range(youngest_of(text, age_ms), age_ms,
                            age_ms + age_ms / 2 + THIRD_MS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(readings_are_shown_with_their_age_the_newest_first, begin),
        cmocka_unit_test_setup(an_answer_to_an_older_request_is_no_reading, begin),
        cmocka_unit_test_setup(another_line_or_connection_begins_anew, begin),
        cmocka_unit_test_setup(some_of_many_are_kept_for_leases_of_any_length, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
