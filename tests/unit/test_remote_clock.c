/* test_remote_clock.c - the knowledge of another machine's clock: it is never ahead, and
 * steps are seen. Both clocks are the test's. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/remote_clock.h"
#include "tests/support/seed.h"

enum { US = 1000, LEASE_MS = 1000 };

#define MS ((uint64_t)HF_MS_NS)

static hf_remote_clock clock_;
static uint64_t boot_ns;
static int64_t offset_us; /* of the remote clock */
static hf_rng rng;

static int64_t remote_ms(void)
{
    return ((int64_t)(boot_ns / US) + offset_us) / 1000;
}

/* A request that takes so long on its way there and back. */
static int64_t ask(hf_remote_clock *c, uint64_t there_ns, uint64_t back_ns)
{
    uint64_t sent_ns = boot_ns;
    boot_ns += there_ns;
    int64_t now_ms = remote_ms();
    boot_ns += back_ns;
    return hf_remote_clock_read(c, sent_ns, boot_ns, now_ms);
}

static void ask_for(uint32_t ms)
{
    for (uint64_t end_ns = boot_ns + ms * MS; boot_ns < end_ns; boot_ns += 250 * MS)
        (void)ask(&clock_, 100 * US, 100 * US);
}

static int up(void **state)
{
    (void)state;
    boot_ns = 5000000 * MS;
    offset_us = INT64_C(1700000000000) * 1000;
    clock_ = (hf_remote_clock){.known = false};
    return 0;
}

static void a_new_clock_is_not_known(void **state)
{
    (void)state;
    assert_false(clock_.known);
    (void)ask(&clock_, US, US);
    assert_true(clock_.known);
}

static void a_time_is_foretold_to_the_delay_of_an_answer(void **state)
{
    (void)state;
    assert_int_equal(hf_remote_clock_when(&clock_, 0), 0);
    ask_for(LEASE_MS);
    int64_t at_ms = remote_ms() + 60000;
    boot_ns = hf_remote_clock_when(&clock_, at_ms);
    assert_in_range(remote_ms() - at_ms, 0, 1);
    for (int64_t ms = at_ms; ms < INT64_MAX / 2; ms *= 2) /* years that no ns hold */
        assert_true(hf_remote_clock_when(&clock_, ms) >= boot_ns - MS);
    assert_true(hf_remote_clock_when(&clock_, INT64_C(253402300799999)) == UINT64_MAX);
    assert_true(hf_remote_clock_when(&clock_, INT64_MAX) == UINT64_MAX);
}

static void now_is_never_ahead_with_any_delay_of_answers(void **state)
{
    (void)state;
    rng.state = 1;
    for (int i = 0; i < 20000; i++) {
        (void)ask(&clock_, hf_rng_next(&rng) % (30 * MS), hf_rng_next(&rng) % (30 * MS));
        boot_ns += hf_rng_next(&rng) % (500 * MS);
        offset_us += (int64_t)(hf_rng_next(&rng) % 3) - 1;
        assert_true(hf_remote_clock_now(&clock_, boot_ns) <= remote_ms());
        assert_true(remote_ms() - hf_remote_clock_now(&clock_, boot_ns) < 40);
    }
}

static void a_step_is_told_with_its_size_and_direction(void **state)
{
    (void)state;
    ask_for(LEASE_MS);
    offset_us += 20000 * 1000;
    assert_in_range(ask(&clock_, 100 * US, 100 * US), 19990, 20000);
    assert_int_equal(ask(&clock_, 100 * US, 100 * US), 0);
    offset_us -= 300 * 1000;
    assert_in_range(-ask(&clock_, 100 * US, 100 * US), 290, 300);
}

static void a_slow_answer_is_no_step(void **state)
{
    (void)state;
    ask_for(LEASE_MS);
    assert_int_equal(ask(&clock_, 600 * MS, 100 * US), 0);
    assert_int_equal(ask(&clock_, 100 * US, 600 * MS), 0);
    assert_true(hf_remote_clock_now(&clock_, boot_ns) <= remote_ms());
}

static void an_answer_that_was_overtaken_does_not_set_the_time(void **state)
{
    (void)state;
    ask_for(LEASE_MS);
    uint64_t sent_ns = boot_ns;
    int64_t old_ms = remote_ms();
    offset_us += 5000 * 1000;
    boot_ns += 10 * MS;
    (void)ask(&clock_, 100 * US, 100 * US);
    assert_int_equal(hf_remote_clock_read(&clock_, sent_ns, boot_ns + MS, old_ms), 0);
    assert_in_range(remote_ms() - hf_remote_clock_now(&clock_, boot_ns), 0, 2);
}

#define CASE(f) cmocka_unit_test_setup(f, up)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE(a_new_clock_is_not_known),
        CASE(a_time_is_foretold_to_the_delay_of_an_answer),
        CASE(now_is_never_ahead_with_any_delay_of_answers),
        CASE(a_step_is_told_with_its_size_and_direction),
        CASE(a_slow_answer_is_no_step),
        CASE(an_answer_that_was_overtaken_does_not_set_the_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
