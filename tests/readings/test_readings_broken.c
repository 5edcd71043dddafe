/* test_readings_broken.c - the simulation notices each part of the rule that is left out.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/readings/players.h"
#include "tests/support/seed.h"

static rd_setup setup_of(rd_break broken, unsigned events, rd_lengths lengths)
{
    return (rd_setup){.slots = 4,
                      .machines = 2,
                      .life_s = 4,
                      .lengths = lengths,
                      .events = events,
                      .patience = 20,
                      .rule.broken = broken};
}

static const rd_lengths one = {1, {10000}}, two = {2, {10000, 2000}};

static hf_rng rng;

static int seed(void **state)
{
    (void)state;
    rng.state = hf_test_seed();
    return 0;
}

/* Many short histories show more than a long one: what happens first in the life of a
 * line happens often. */
static rd_figures play_until(const rd_setup *setup, bool noticed(const rd_figures *f))
{
    enum { ROUNDS = 500, TAKEOVERS = 100 };
    rd_figures f = {0};
    unsigned i = 0;
    do
        f = rd_play(setup, hf_rng_next(&rng), TAKEOVERS);
    while (!noticed(&f) && ++i < ROUNDS);
    print_message("after %u takeovers: %" PRIu64 " of %" PRIu64
                  " too early, by up to %.3f s; %" PRIu64 " stuck\n",
                  i * TAKEOVERS, f.early, f.takeovers, (double)f.earliest / RD_S,
                  f.stuck);
    return f;
}

static bool early(const rd_figures *f)
{
    return f->early > 0;
}

static bool stuck(const rd_figures *f)
{
    return f->stuck > 0;
}

static void is_early(const rd_setup *setup)
{
    assert_true(play_until(setup, early).early > 0);
}

static void is_stuck(const rd_setup *setup)
{
    assert_true(play_until(setup, stuck).stuck > 0);
}

static void both_are_early(rd_break broken, unsigned events)
{
    rd_setup setup = setup_of(broken, events, one);
    is_early(&setup);
    setup.locks = true;
    setup.slots = 6;
    is_early(&setup);
}

static void readings_that_do_not_move_the_clock(void **state)
{
    (void)state;
    both_are_early(RD_READINGS_MOVE_NOTHING, RD_STEPS);
}

static void a_clock_that_follows_redis_s(void **state)
{
    (void)state;
    both_are_early(RD_CLOCK_FOLLOWS, RD_STEPS);
}

static void readings_that_are_not_compared_with_the_start(void **state)
{
    (void)state;
    both_are_early(RD_START_IGNORED, 0);
}

static void ends_by_redis_s_clock(void **state)
{
    (void)state;
    both_are_early(RD_WALL_ENDS, RD_STEPS);
}

static void readings_of_another_birth(void **state)
{
    (void)state;
    both_are_early(RD_BIRTH_IGNORED, RD_STEPS | RD_REMOVALS | RD_MESSAGES);
}

static void one_length_for_all(void **state)
{
    (void)state;
    const rd_setup setup = setup_of(RD_ONE_LENGTH, RD_STEPS, two);
    is_early(&setup);
}

static void a_length_that_is_forgotten_with_its_worker(void **state)
{
    (void)state;
    const rd_setup setup = setup_of(RD_LENGTH_FORGOTTEN, RD_STEPS, two);
    is_early(&setup);
}

static void a_renewal_that_shortens(void **state)
{
    (void)state;
    rd_setup setup = setup_of(RD_RENEWAL_SHORTENS, RD_STOPS, two);
    setup.locks = true;
    is_early(&setup);
}

static void a_clock_that_stands_still(void **state)
{
    (void)state;
    const rd_setup setup = setup_of(RD_CLOCK_STALLS, RD_DAY_BACK, two);
    is_stuck(&setup);
}

static void a_list_that_forgets_the_readings_in_the_middle(void **state)
{
    (void)state;
    const rd_lengths far = {2, {10000, 1000}};
    const rd_setup setup = setup_of(RD_FORGETS_MIDDLE, 0, far);
    is_stuck(&setup);
}

static void readings_that_are_not_past_the_starts(void **state)
{
    (void)state;
    rd_setup setup = setup_of(RD_STARTS_AHEAD, RD_GLITCHES, one);
    setup.slots = 2;
    setup.patience = 3;
    is_stuck(&setup);
}

static void old_readings_that_stay_after_a_boot(void **state)
{
    (void)state;
    rd_setup setup = setup_of(RD_OLD_BOOT_STAYS, RD_REBOOTS | RD_SAME_NAME, one);
    setup.machines = 1;
    is_stuck(&setup);
}

/* ---- machines that share a name ---- */

static rd_setup clones(rd_guard guard, double apart_s)
{
    rd_setup setup = setup_of(RD_SOUND, RD_ROAM, one);
    setup.slots = 2;
    setup.clones_s = apart_s;
    setup.rule.guard = guard;
    return setup;
}

static void machines_of_one_name(void **state)
{
    (void)state;
    const rd_setup unguarded = clones(RD_NO_GUARD, 1000);
    const rd_setup rough = clones(RD_ROUGH_GUARD, 1000);
    const rd_setup guarded = clones(RD_BOTH_CLOCKS, 1000);
    is_early(&unguarded);
    for (unsigned i = 0; i < 20; i++) {
        uint64_t any = hf_rng_next(&rng);
        assert_int_equal(rd_play(&rough, any, 100).early, 0);
        assert_int_equal(rd_play(&guarded, any, 100).early, 0);
    }
}

/* Two that were copied 2 s apart. */
static void machines_of_one_name_with_almost_the_same_clock(void **state)
{
    (void)state;
    const rd_setup rough = clones(RD_ROUGH_GUARD, 2);
    const rd_setup guarded = clones(RD_BOTH_CLOCKS, 2);
    is_early(&rough);
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(rd_play(&guarded, hf_rng_next(&rng), 100).early, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readings_that_do_not_move_the_clock),
        cmocka_unit_test(a_clock_that_follows_redis_s),
        cmocka_unit_test(readings_that_are_not_compared_with_the_start),
        cmocka_unit_test(ends_by_redis_s_clock),
        cmocka_unit_test(readings_of_another_birth),
        cmocka_unit_test(one_length_for_all),
        cmocka_unit_test(a_length_that_is_forgotten_with_its_worker),
        cmocka_unit_test(a_renewal_that_shortens),
        cmocka_unit_test(a_clock_that_stands_still),
        cmocka_unit_test(a_list_that_forgets_the_readings_in_the_middle),
        cmocka_unit_test(readings_that_are_not_past_the_starts),
        cmocka_unit_test(old_readings_that_stay_after_a_boot),
        cmocka_unit_test(machines_of_one_name),
        cmocka_unit_test(machines_of_one_name_with_almost_the_same_clock),
    };
    return cmocka_run_group_tests(tests, seed, NULL);
}
