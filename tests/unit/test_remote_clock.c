/* test_remote_clock.c - the knowledge of another machine's clock: it is never ahead,
 * steps are seen, and no lease is judged to be over too early, for any change of that
 * clock. Both clocks are the test's. */
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

enum { US = 1000, LEASE_MS = 1000, GAP_MS = 750, WINDOW_MS = LEASE_MS + GAP_MS };

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
    hf_remote_clock_init(&clock_, LEASE_MS);
    return 0;
}

static void a_new_clock_is_not_known_and_vouches_for_nothing(void **state)
{
    (void)state;
    assert_false(hf_remote_clock_known(&clock_));
    assert_int_equal(hf_remote_clock_vouched(&clock_, boot_ns), -WINDOW_MS);
    (void)ask(&clock_, US, US);
    assert_true(hf_remote_clock_known(&clock_));
    assert_int_equal(hf_remote_clock_at_least(&clock_, boot_ns), 0);
    assert_int_equal(hf_remote_clock_vouched(&clock_, boot_ns), -WINDOW_MS);
    boot_ns += 100 * MS;
    assert_int_equal(hf_remote_clock_vouched(&clock_, boot_ns), -WINDOW_MS + 100);
}

static void after_a_lease_and_a_gap_it_vouches_for_almost_the_remote_time(void **state)
{
    (void)state;
    ask_for(WINDOW_MS + 250);
    for (int i = 0; i < 100; i++) { /* as long as there are samples */
        (void)ask(&clock_, 100 * US, 100 * US);
        int64_t ago = remote_ms() - hf_remote_clock_vouched(&clock_, boot_ns);
        assert_in_range(ago, 0, 5);
        boot_ns += hf_rng_next(&rng) % (GAP_MS - 10) * MS;
    }
    int64_t vouched = hf_remote_clock_vouched(&clock_, boot_ns);
    assert_in_range(remote_ms() - vouched, 0, 5);
    assert_in_range(hf_remote_clock_at_least(&clock_, boot_ns) - remote_ms(), 0, 5);
    assert_in_range(remote_ms() - hf_remote_clock_now(&clock_, boot_ns), 0, 2);
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

static void after_a_step_forward_own_leases_are_judged_by_the_old_time(void **state)
{
    (void)state;
    ask_for(2 * LEASE_MS);
    int64_t lease_end = remote_ms() + LEASE_MS;
    uint64_t given_ns = boot_ns;
    offset_us += 20000 * 1000;
    while (hf_remote_clock_least(&clock_, boot_ns) < lease_end)
        (void)ask(&clock_, 100 * US, 20 * MS);
    assert_in_range((boot_ns - given_ns) / MS, LEASE_MS, LEASE_MS + 60);
}

static void after_a_step_it_vouches_again_in_a_lease_and_a_gap(void **state)
{
    (void)state;
    static const int64_t steps_ms[] = {100, -100, 20000, -20000};
    for (size_t i = 0; i < HF_COUNT(steps_ms); i++) {
        ask_for(3 * LEASE_MS);
        assert_true(hf_remote_clock_vouched(&clock_, boot_ns) > 0);
        offset_us += steps_ms[i] * 1000;
        (void)ask(&clock_, 100 * US, 100 * US);
        assert_int_equal(hf_remote_clock_vouched(&clock_, boot_ns), -WINDOW_MS);
    }
}

/* It runs away by a tenth, as a clock that is slewed fast. */
static void run_away(uint32_t ms, int permille)
{
    for (uint64_t end_ns = boot_ns + ms * MS; boot_ns < end_ns; boot_ns += 250 * MS) {
        (void)ask(&clock_, 100 * US, 100 * US);
        offset_us += permille * 250;
    }
}

static void a_clock_that_is_slewed_was_not_set(void **state)
{
    (void)state;
    ask_for(2 * LEASE_MS);
    for (int i = 0; i < 10; i++) {
        run_away(LEASE_MS, i % 2 == 0 ? 100 : -100);
        assert_true(hf_remote_clock_vouched(&clock_, boot_ns) > 0);
    }
}

/* The other one sees only times to which the clock is set for a moment, and the holder
 * only the time between them. */
static void a_clock_that_is_set_to_and_fro_is_no_proof(void **state)
{
    (void)state;
    hf_remote_clock holder;
    hf_remote_clock_init(&holder, LEASE_MS);
    for (int i = 0; i < 10; i++) {
        (void)ask(&clock_, US, US);
        (void)ask(&holder, US, US);
        boot_ns += 250 * MS;
    }
    int64_t low_us = offset_us - 7000 * 1000;
    for (int i = 0; i < 4; i++, boot_ns += 250 * MS) {
        offset_us = low_us + 5000 * 1000;
        if (i == 2)
            (void)ask(&clock_, US, US);
        offset_us = low_us;
        (void)ask(&holder, US, US);
    }
    uint64_t given_ns = boot_ns;
    int64_t at_least = hf_remote_clock_at_least(&holder, boot_ns);
    int64_t lease_end = (remote_ms() > at_least ? remote_ms() : at_least) + LEASE_MS;
    offset_us = low_us + 5000 * 1000;
    while (hf_remote_clock_vouched(&clock_, boot_ns) < lease_end) {
        boot_ns += 50 * MS;
        (void)ask(&clock_, US, US);
    }
    assert_true(boot_ns - given_ns >= LEASE_MS * MS);
}

static void a_lease_that_is_given_in_an_excursion_ends_by_the_older_time(void **state)
{
    (void)state;
    ask_for(2 * LEASE_MS);
    int64_t before_ms = remote_ms();
    offset_us -= 20000 * 1000;
    (void)ask(&clock_, 100 * US, 100 * US);
    assert_true(hf_remote_clock_at_least(&clock_, boot_ns) >= before_ms);
    ask_for(hf_remote_gap_ms(LEASE_MS) + 300); /* now all have seen the step */
    assert_true(hf_remote_clock_at_least(&clock_, boot_ns) < before_ms);
}

/* Another party's samples may lie around the step and the renewal, for it may have been
 * set just before it was seen. */
static void an_offset_counts_until_a_gap_after_the_next_sample(void **state)
{
    (void)state;
    ask_for(2 * LEASE_MS);
    (void)ask(&clock_, 100 * US, 100 * US);
    uint64_t pause_ns = (hf_remote_gap_ms(LEASE_MS) - 100) * MS;
    boot_ns += pause_ns;
    int64_t before_ms = remote_ms();
    offset_us -= 20000 * 1000;
    (void)ask(&clock_, 100 * US, 100 * US);
    boot_ns += pause_ns;
    assert_true(hf_remote_clock_at_least(&clock_, boot_ns) >= before_ms);
}

static void after_a_gap_everything_is_learned_anew(void **state)
{
    (void)state;
    ask_for(2 * LEASE_MS);
    boot_ns += (GAP_MS + 1) * MS;
    assert_int_equal(hf_remote_clock_vouched(&clock_, boot_ns), -WINDOW_MS);
    assert_int_equal(hf_remote_clock_at_least(&clock_, boot_ns), 0);
    (void)ask(&clock_, US, US);
    assert_true(hf_remote_clock_vouched(&clock_, boot_ns) < 0);
}

/* It lay in a buffer: what the clock has done since it was given is not known. */
static void an_answer_that_is_read_late_is_as_old_as_its_request(void **state)
{
    (void)state;
    ask_for(2 * LEASE_MS);
    (void)ask(&clock_, US, US);
    (void)ask(&clock_, US, (GAP_MS - 50) * MS);
    assert_true(hf_remote_clock_vouched(&clock_, boot_ns) > 0);
    boot_ns += 51 * MS;
    assert_int_equal(hf_remote_clock_vouched(&clock_, boot_ns), -WINDOW_MS);
    (void)ask(&clock_, US, US);
    assert_true(hf_remote_clock_vouched(&clock_, boot_ns) < 0);
}

/* It has forgotten what lies further back than the leases that it judged: that the clock
 * was slower then. */
static void a_longer_lease_is_judged_once_its_length_was_sampled(void **state)
{
    (void)state;
    enum { LONG_MS = 30 * LEASE_MS };
    char text[HF_REMOTE_STATE_SIZE];
    hf_remote_clock next;
    ask_for(2 * LONG_MS);
    int64_t lease_end = remote_ms() + LONG_MS;
    run_away(LONG_MS - LEASE_MS, 90);
    assert_true(remote_ms() > lease_end);
    hf_remote_clock_save(&clock_, text);
    hf_remote_clock_init(&next, LONG_MS);
    (void)ask(&next, 100 * US, 100 * US);
    hf_remote_clock_adopt(&next, text, strlen(text));
    assert_true(hf_remote_clock_vouched(&next, boot_ns) < lease_end);
    hf_remote_clock_judge(&clock_, LONG_MS);
    assert_true(hf_remote_clock_vouched(&clock_, boot_ns) < lease_end);
    (void)ask(&clock_, 100 * US, 100 * US);
    assert_true(hf_remote_clock_vouched(&clock_, boot_ns) < lease_end);
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

/* Others may have seen it, and judge by it. */
static void an_answer_that_was_overtaken_tells_of_a_time_that_there_was(void **state)
{
    (void)state;
    ask_for(3 * LEASE_MS);
    (void)ask(&clock_, US, US);
    uint64_t sent_ns = boot_ns;
    offset_us += 5000 * 1000;
    int64_t late_ms = remote_ms();
    offset_us -= 5000 * 1000;
    (void)ask(&clock_, US, US);
    assert_true(hf_remote_clock_vouched(&clock_, boot_ns) > 0);
    assert_true(hf_remote_clock_at_least(&clock_, boot_ns) < late_ms);
    assert_int_equal(hf_remote_clock_read(&clock_, sent_ns, boot_ns, late_ms), 0);
    assert_int_equal(hf_remote_clock_vouched(&clock_, boot_ns), -WINDOW_MS);
    assert_true(hf_remote_clock_at_least(&clock_, boot_ns) >= late_ms);
}

/* ---- what another process has learned ---- */

static void a_process_continues_with_what_another_one_knew(void **state)
{
    (void)state;
    char text[HF_REMOTE_STATE_SIZE];
    hf_remote_clock next;
    ask_for(2 * LEASE_MS);
    hf_remote_clock_save(&clock_, text);
    hf_remote_clock_init(&next, LEASE_MS);
    (void)ask(&next, 100 * US, 100 * US);
    hf_remote_clock_adopt(&next, text, strlen(text));
    assert_in_range(remote_ms() - hf_remote_clock_vouched(&next, boot_ns), 0, 5);
    assert_true(hf_remote_clock_at_least(&next, boot_ns) >= remote_ms());
}

/* Also one that has not seen it. */
static void after_a_step_no_process_continues_as_if_there_was_none(void **state)
{
    (void)state;
    char text[HF_REMOTE_STATE_SIZE];
    hf_remote_clock next;
    ask_for(2 * LEASE_MS);
    offset_us -= 300 * 1000;
    ask_for(LEASE_MS);
    hf_remote_clock_save(&clock_, text);
    hf_remote_clock_init(&next, LEASE_MS);
    (void)ask(&next, 100 * US, 100 * US);
    hf_remote_clock_adopt(&next, text, strlen(text));
    int64_t left = -hf_remote_clock_vouched(&next, boot_ns);
    assert_in_range(left, WINDOW_MS - LEASE_MS - 5, WINDOW_MS - LEASE_MS + 5);
    offset_us += 300 * 1000; /* as it was before: it is another step */
    hf_remote_clock_init(&next, LEASE_MS);
    (void)ask(&next, 100 * US, 100 * US);
    hf_remote_clock_adopt(&next, text, strlen(text));
    assert_int_equal(hf_remote_clock_vouched(&next, boot_ns), -WINDOW_MS);
}

static void what_is_too_old_or_another_machine_s_or_no_text_is_not_adopted(void **state)
{
    (void)state;
    char text[HF_REMOTE_STATE_SIZE];
    hf_remote_clock next;
    ask_for(2 * LEASE_MS);
    hf_remote_clock_save(&clock_, text);
    boot_ns += (hf_remote_gap_ms(LEASE_MS) + 1) * MS;
    hf_remote_clock_init(&next, LEASE_MS);
    (void)ask(&next, 100 * US, 100 * US);
    hf_remote_clock_adopt(&next, text, strlen(text));
    assert_true(hf_remote_clock_vouched(&next, boot_ns) < 0);

    ask_for(2 * LEASE_MS);
    hf_remote_clock_save(&clock_, text);
    hf_remote_clock_init(&next, LEASE_MS);
    offset_us += 60000 * 1000;
    (void)ask(&next, 100 * US, 100 * US);
    hf_remote_clock_adopt(&next, text, strlen(text));
    assert_true(hf_remote_clock_vouched(&next, boot_ns) < 0);

    static const char *const bad[] = {
        "", "1", "x y z w", "1 2 3 4 5", "9 1 0 0", "1 18446744073709551615 0 0"};
    for (size_t i = 0; i < HF_COUNT(bad); i++) {
        hf_remote_clock_adopt(&next, bad[i], strlen(bad[i]));
        assert_true(hf_remote_clock_vouched(&next, boot_ns) < 0);
    }
}

/* ---- at random: holders and claimers with clocks of their own ---- */

enum { PARTIES = 4, ROUNDS = 400, STEPS = 3000, MARGIN_MS = 62 };

typedef struct party {
    hf_remote_clock clock;
    uint64_t next_ns; /* it asks, or reads the answer */
    bool asked;
    uint64_t sent_ns;
    int64_t told_ms;
} party;

typedef struct lease {
    uint64_t given_ns;
    int64_t ends_ms;
    bool marked; /* given by a holder that did not know the clock well */
    const party *holder;
} lease;

/* Most holders die at once, or the others would have nothing to judge. */
static bool renews(const lease *held, const party *p)
{
    return held->holder == p && boot_ns - held->given_ns < (LEASE_MS - MARGIN_MS) * MS &&
           hf_rng_next(&rng) % 3 == 0;
}

/* Again and again, and half of the steps are taken back. */
static void step_at_random(uint64_t *quiet_until_ns, int64_t *back_us, uint64_t *back_ns)
{
    if (*back_us != 0 && boot_ns >= *back_ns) {
        offset_us -= *back_us;
        *back_us = 0;
        *quiet_until_ns = boot_ns + hf_rng_next(&rng) % (3 * LEASE_MS * MS);
    } else if (*back_us == 0 && boot_ns >= *quiet_until_ns) {
        int64_t by_us = (int64_t)(hf_rng_next(&rng) % 8000000) - 4000000;
        offset_us += by_us;
        *quiet_until_ns = boot_ns + hf_rng_next(&rng) % (3 * LEASE_MS * MS);
        if (hf_rng_next(&rng) % 2 == 0) { /* there and back */
            *back_us = by_us;
            *back_ns = boot_ns + hf_rng_next(&rng) % (1500 * MS);
        }
    }
}

static void read_answer(party *p, lease *held)
{
    (void)hf_remote_clock_read(&p->clock, p->sent_ns, boot_ns, p->told_ms);
    p->asked = false;
    p->next_ns = boot_ns + hf_rng_next(&rng) % (550 * MS);
    if (hf_rng_next(&rng) % 100 == 0)
        p->next_ns += 5 * LEASE_MS * MS; /* stopped */
    if (hf_rng_next(&rng) % 100 == 0) {  /* started anew */
        hf_remote_clock_init(&p->clock, LEASE_MS);
        held->holder = held->holder == p ? NULL : held->holder;
    }
}

/* Some read an answer late. */
static void ask_at_random(party *p, lease *held, uint64_t *judged)
{
    uint64_t sent_ns = boot_ns;
    bool due = held->given_ns == 0 || renews(held, p);
    int64_t least = hf_remote_clock_at_least(&p->clock, sent_ns);
    int64_t vouched = hf_remote_clock_vouched(&p->clock, sent_ns);
    boot_ns += hf_rng_next(&rng) % (5 * MS);
    int64_t now = remote_ms(), from = now > least ? now : least;
    if (!due && held->ends_ms <= (now < vouched ? now : vouched)) {
        uint64_t lasted_ms = (boot_ns - held->given_ns) / MS;
        if (!held->marked && lasted_ms < LEASE_MS - MARGIN_MS)
            fail_msg("over after %" PRIu64 " ms", lasted_ms);
        (*judged)++;
        due = true;
    }
    if (due)
        *held = (lease){sent_ns, from + LEASE_MS, least == 0, p};
    p->asked = true;
    p->sent_ns = sent_ns;
    p->told_ms = now;
    p->next_ns = boot_ns + hf_rng_next(&rng) % (5 * MS);
    if (hf_rng_next(&rng) % 8 == 0)
        p->next_ns += hf_rng_next(&rng) % (GAP_MS * MS);
}

/* The property of the header: a lease whose end is vouched for has lasted its length,
 * less the margin that a holder keeps. */
static void no_lease_is_over_early_with_any_clock(void **state)
{
    (void)state;
    uint64_t judged = 0;
    rng.state = hf_test_seed();
    for (int round = 0; round < ROUNDS; round++) {
        party parties[PARTIES] = {0};
        lease held = {0};
        uint64_t quiet_ns = 0, back_ns = 0;
        int64_t back_us = 0;
        for (int i = 0; i < PARTIES; i++)
            hf_remote_clock_init(&parties[i].clock, LEASE_MS);
        for (int step = 0; step < STEPS; step++) {
            boot_ns += hf_rng_next(&rng) % (20 * MS);
            step_at_random(&quiet_ns, &back_us, &back_ns);
            party *p = &parties[hf_rng_next(&rng) % PARTIES];
            if (boot_ns < p->next_ns)
                continue;
            if (p->asked)
                read_answer(p, &held);
            else
                ask_at_random(p, &held, &judged);
        }
    }
    printf("%" PRIu64 " leases judged\n", judged);
    assert_true(judged > ROUNDS);
}

#define CASE(f) cmocka_unit_test_setup(f, up)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE(a_new_clock_is_not_known_and_vouches_for_nothing),
        CASE(after_a_lease_and_a_gap_it_vouches_for_almost_the_remote_time),
        CASE(a_time_is_foretold_to_the_delay_of_an_answer),
        CASE(now_is_never_ahead_with_any_delay_of_answers),
        CASE(a_step_is_told_with_its_size_and_direction),
        CASE(a_slow_answer_is_no_step),
        CASE(after_a_step_forward_own_leases_are_judged_by_the_old_time),
        CASE(after_a_step_it_vouches_again_in_a_lease_and_a_gap),
        CASE(a_clock_that_is_slewed_was_not_set),
        CASE(a_clock_that_is_set_to_and_fro_is_no_proof),
        CASE(a_lease_that_is_given_in_an_excursion_ends_by_the_older_time),
        CASE(an_offset_counts_until_a_gap_after_the_next_sample),
        CASE(after_a_gap_everything_is_learned_anew),
        CASE(an_answer_that_is_read_late_is_as_old_as_its_request),
        CASE(a_longer_lease_is_judged_once_its_length_was_sampled),
        CASE(an_answer_that_was_overtaken_does_not_set_the_time),
        CASE(an_answer_that_was_overtaken_tells_of_a_time_that_there_was),
        CASE(a_process_continues_with_what_another_one_knew),
        CASE(after_a_step_no_process_continues_as_if_there_was_none),
        CASE(what_is_too_old_or_another_machine_s_or_no_text_is_not_adopted),
        CASE(no_lease_is_over_early_with_any_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
