/* test_spin.c - when a thread spins for an answer, and when it stops to try. */
#include "base/spin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { START_NS = 1000000 };

/* Begins so often, a microsecond after an answer each time. How often it span. */
static int tries(hf_spin *spin, int times, bool in_vain)
{
    int span = 0;
    for (int i = 0; i < times; i++) {
        uint64_t now_ns = START_NS + (uint64_t)i * 1000000;
        hf_spin_read(spin, now_ns);
        if (hf_spin_begin(spin, now_ns + 1000) == 0)
            continue;
        hf_spin_end(spin, in_vain);
        span++;
    }
    return span;
}

static void the_first_answer_is_not_spun_for(void **state)
{
    (void)state;
    hf_spin spin = {0};
    assert_int_equal(hf_spin_begin(&spin, 1), 0);
    assert_int_equal(hf_spin_begin(&spin, START_NS), 0);
}

static void what_follows_an_answer_closely_is_span_for(void **state)
{
    (void)state;
    hf_spin spin = {0};
    hf_spin_read(&spin, START_NS);
    uint64_t now_ns = START_NS + HF_SPIN_RECENT_NS;
    assert_int_equal(hf_spin_begin(&spin, now_ns), now_ns + HF_SPIN_NS);
    assert_int_equal(hf_spin_begin(&spin, now_ns + 1), 0);
    assert_int_equal(tries(&spin, 1000, false), 1000);
}

static void after_failures_it_is_tried_less_often(void **state)
{
    (void)state;
    hf_spin spin = {0};
    /* 1 + 1 left out + 1 + 3 + 1 + 7 + 1 + 15 + 1 + 31 + 1 + 63 or 64 ... */
    assert_int_equal(tries(&spin, 6 + 1 + 3 + 7 + 15 + 31, true), 6);
    assert_in_range(tries(&spin, 100 * (HF_SPIN_GAP_MAX + 1), true), 99, 101);
    assert_true(spin.gap == HF_SPIN_GAP_MAX);
}

static void one_success_makes_up_for_all(void **state)
{
    (void)state;
    hf_spin spin = {0};
    (void)tries(&spin, 1000, true);
    assert_in_range(tries(&spin, HF_SPIN_GAP_MAX + 10, false), 10, 10 + HF_SPIN_GAP_MAX);
    assert_int_equal(tries(&spin, 100, false), 100);
}

/* Pauses are no reason to try less. */
static void a_worker_after_a_pause_leaves_nothing_out(void **state)
{
    (void)state;
    hf_spin spin = {0};
    hf_spin_read(&spin, START_NS);
    assert_true(hf_spin_begin(&spin, START_NS + 1) != 0);
    hf_spin_end(&spin, true);
    uint32_t skip = spin.skip;
    assert_true(skip > 0);
    assert_int_equal(hf_spin_begin(&spin, START_NS + 10 * HF_SPIN_RECENT_NS), 0);
    assert_int_equal(spin.skip, skip);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_answer_is_not_spun_for),
        cmocka_unit_test(what_follows_an_answer_closely_is_span_for),
        cmocka_unit_test(after_failures_it_is_tried_less_often),
        cmocka_unit_test(one_success_makes_up_for_all),
        cmocka_unit_test(a_worker_after_a_pause_leaves_nothing_out),
    };
    return cmocka_run_group_tests_name("spin", tests, NULL, NULL);
}
