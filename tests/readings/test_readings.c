/* test_readings.c - no lease is found over too early, whatever happens to clocks,
 * messages, processes, machines and Redis; and in calm times none is found over late.
 *
 * HF_SEED repeats a run, HF_TAKEOVERS says how many takeovers it has (20000). */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/readings/players.h"
#include "tests/support/seed.h"

static hf_rng rng;

static uint64_t takeovers(void)
{
    const char *text = getenv("HF_TAKEOVERS");
    return text == NULL ? 20000 : strtoull(text, NULL, 10);
}

static double mean_of(const rd_figures *f)
{
    return f->timed > 0 ? f->renewal_sum / (double)f->timed : 0;
}

static void print(const char *what, const rd_figures *f)
{
    print_message("%-26s %8" PRIu64 " takeovers, %" PRIu64 " early; since renewal %.3f "
                  "(worst %.2f), death %.3f (%.2f), step %.2f leases; lost %" PRIu64
                  ", paused %" PRIu64 ", stuck %" PRIu64 ", %.1f reads in a lease\n",
                  what, f->takeovers, f->early, mean_of(f), f->renewal_worst,
                  f->deaths > 0 ? f->death_sum / (double)f->deaths : 0, f->death_worst,
                  f->step_worst, f->early_lost, f->early_paused, f->stuck,
                  (double)f->reads / f->process_leases);
}

/* ---- too early ---- */

enum { ANY = RD_EVENTS }; /* each of them, or not */

static const struct {
    const char *name;
    unsigned events;
} weathers[] = {
    {"calm", 0},
    {"steps", RD_STEPS},
    {"messages", RD_MESSAGES | RD_STOPS},
    {"machines", RD_REBOOTS | RD_SUSPENDS | RD_ROAM},
    {"same names", RD_REBOOTS | RD_SAME_NAME | RD_MESSAGES | RD_STEPS},
    {"pauses", RD_PAUSES | RD_SUSPENDS | RD_STEPS},
    {"failovers", RD_FAILOVERS | RD_MESSAGES | RD_STOPS},
    {"removals", RD_REMOVALS | RD_STEPS | RD_MESSAGES},
    {"all", RD_EVENTS - 1 - RD_ONE_STEP - RD_PAUSES - RD_FAILOVERS},
    {"all and failovers", RD_EVENTS - 1 - RD_ONE_STEP - RD_PAUSES},
    {"glitches", RD_GLITCHES | RD_STOPS},
    {"any", ANY},
};

enum { WEATHERS = sizeof weathers / sizeof weathers[0] };

static rd_lengths any_lengths(void)
{
    static const int64_t choice[] = {10000, 5000, 2000, 1000, 30000};
    rd_lengths lengths = {.n = 1 + rd_below(&rng, RD_LENGTHS), .ms = {10000}};
    for (unsigned i = 1; i < lengths.n; i++)
        lengths.ms[i] = choice[rd_below(&rng, 5)];
    return lengths;
}

static rd_setup any_setup(unsigned events, bool locks)
{
    rd_setup setup = {.locks = locks,
                      .slots = 1 + rd_below(&rng, 8),
                      .machines = 1 + rd_below(&rng, 4),
                      .lengths = any_lengths(),
                      .events = events};
    if (events == ANY)
        setup.events = (unsigned)hf_rng_next(&rng) & (RD_EVENTS - 1);
    if (rd_chance(&rng, 0.5))
        setup.life_s = (double)rd_between(&rng, RD_S / 2.0, 60.0 * RD_S) / RD_S;
    if (rd_chance(&rng, 0.3))
        setup.rule.guard = RD_BOTH_CLOCKS;
    if (setup.locks && setup.slots < 3)
        setup.slots = 3;
    if ((setup.events & RD_ROAM) == 0 && setup.machines > setup.slots)
        setup.machines = setup.slots;
    return setup;
}

static void add(rd_figures *sum, const rd_figures *f)
{
    sum->takeovers += f->takeovers;
    sum->requests += f->requests;
    sum->reads += f->reads;
    sum->process_leases += f->process_leases;
    sum->early += f->early;
    sum->early_lost += f->early_lost;
    sum->early_paused += f->early_paused;
    sum->stuck += f->stuck;
    sum->timed += f->timed;
    sum->deaths += f->deaths;
    sum->renewal_sum += f->renewal_sum;
    sum->death_sum += f->death_sum;
    if (f->renewal_worst > sum->renewal_worst)
        sum->renewal_worst = f->renewal_worst;
    if (f->death_worst > sum->death_worst)
        sum->death_worst = f->death_worst;
    if (f->step_worst > sum->step_worst)
        sum->step_worst = f->step_worst;
}

static void check_sound(const rd_setup *setup, uint64_t seed, const rd_figures *f)
{
    bool pauses = (setup->events & RD_PAUSES) != 0;
    bool failovers = (setup->events & RD_FAILOVERS) != 0;
    if (f->early == 0 && f->stuck == 0 && (pauses || f->early_paused == 0) &&
        (failovers || f->early_lost == 0))
        return;
    print("wrong", f);
    fail_msg("setup: seed %" PRIu64 ", locks %d, slots %u, machines %u, life %.1f, "
             "lengths %u: %" PRId64 " %" PRId64 " %" PRId64 ", events %#x, guard %d",
             seed, setup->locks, setup->slots, setup->machines, setup->life_s,
             setup->lengths.n, setup->lengths.ms[0], setup->lengths.ms[1],
             setup->lengths.ms[2], setup->events, (int)setup->rule.guard);
}

static void run_all(bool locks)
{
    enum { AT_ONCE = 200 };
    rng.state = hf_test_seed();
    rd_figures sums[WEATHERS] = {{0}};
    uint64_t rounds = takeovers() / (2 * AT_ONCE), n = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        const rd_setup setup = any_setup(weathers[i % WEATHERS].events, locks);
        uint64_t seed = hf_rng_next(&rng);
        const rd_figures f = rd_play(&setup, seed, AT_ONCE);
        check_sound(&setup, seed, &f);
        add(&sums[i % WEATHERS], &f);
        n += f.takeovers;
    }
    for (unsigned i = 0; i < WEATHERS; i++)
        if (sums[i].takeovers > 0)
            print(weathers[i].name, &sums[i]);
    print_message("%" PRIu64 " takeovers of %s, none too early\n", n,
                  locks ? "locks" : "jobs");
}

static void no_takeover_of_a_job_is_too_early(void **state)
{
    (void)state;
    run_all(false);
}

static void no_takeover_of_a_lock_is_too_early(void **state)
{
    (void)state;
    run_all(true);
}

/* ---- too late ---- */

static rd_figures play(const char *what, const rd_setup *setup, uint64_t n)
{
    const rd_figures f = rd_play(setup, hf_test_seed(), n);
    print(what, &f);
    assert_int_equal(f.early, 0);
    assert_int_equal(f.stuck, 0);
    return f;
}

static const double lives_s[] = {0.5, 1, 4, 10, 60};

static void check_calm(int64_t lease_ms, double bound)
{
    for (unsigned i = 0; i < sizeof lives_s / sizeof lives_s[0]; i++) {
        char what[40];
        (void)snprintf(what, sizeof what, "%d ms, lives of %.1f s", (int)lease_ms,
                       lives_s[i]);
        const rd_setup setup = {
            .slots = 2, .machines = 1, .life_s = lives_s[i], .lengths = {1, {lease_ms}}};
        const rd_figures f = play(what, &setup, 500);
        assert_true(f.renewal_worst < bound);
        assert_true(f.death_worst < bound);
        assert_true(mean_of(&f) < 1.15);
    }
}

static void in_calm_times_a_takeover_comes_within_1_2_leases(void **state)
{
    (void)state;
    check_calm(10000, 1.2);
}

static void a_takeover_of_a_short_lease_comes_within_1_35_leases(void **state)
{
    (void)state;
    check_calm(1000, 1.35);
}

/* The evidence of a queue expires after an hour by that clock. */
static void a_step_of_redis_s_clock_by_less_than_an_hour_delays_no_takeover(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof lives_s / sizeof lives_s[0]; i++) {
        const rd_setup setup = {.slots = 2,
                                .machines = 1,
                                .life_s = lives_s[i],
                                .step_s = 3000,
                                .lengths = {1, {10000}},
                                .events = RD_ONE_STEP};
        const rd_figures f = play("steps now and then", &setup, 500);
        assert_true(f.renewal_worst < 1.2);
    }
}

static void any_step_of_redis_s_clock_costs_a_lease_at_most(void **state)
{
    (void)state;
    static const rd_guard guards[] = {RD_NO_GUARD, RD_BOTH_CLOCKS};
    for (unsigned i = 0; i < 2; i++) {
        const rd_setup setup = {.slots = 2,
                                .machines = 1,
                                .life_s = 4,
                                .step_s = 86400,
                                .lengths = {1, {10000}},
                                .events = RD_ONE_STEP,
                                .rule.guard = guards[i]};
        const rd_figures f =
            play(i == 0 ? "any steps" : "any steps, guarded", &setup, 500);
        assert_true(f.step_worst < 1.2);
        assert_true(f.renewal_worst < 2.3);
    }
}

static void mixed_lengths_cost_a_part_of_the_longest(void **state)
{
    (void)state;
    static const rd_lengths mixed[] = {
        {2, {10000, 5000}}, {2, {10000, 2000}}, {2, {10000, 1000}}};
    for (unsigned i = 0; i < 3; i++) {
        const rd_setup setup = {
            .slots = 4, .machines = 1, .life_s = 4, .lengths = mixed[i]};
        const rd_figures f = play("mixed", &setup, 500);
        double longest = (double)mixed[i].ms[0], shortest = (double)mixed[i].ms[1];
        assert_true(f.renewal_worst < 1.4 + 0.22 * longest / shortest);
    }
}

/* Each process tries for a moment, and dies with what it gets. */
static void evidence_adds_up_over_tries(void **state)
{
    (void)state;
    rd_setup setup = {.locks = true,
                      .slots = 1,
                      .machines = 1,
                      .alone = true,
                      .life_s = 0.1,
                      .gap_s = 2,
                      .lengths = {1, {10000}}};
    const rd_figures f = play("a try each 2 s", &setup, 500);
    assert_true(f.renewal_worst < 1 + 2 * 0.21);
    assert_true(mean_of(&f) < 1 + 1.5 * 0.21);
    setup.machines = 3; /* the evidence of each machine is its own */
    setup.events = RD_ROAM;
    (void)play("on one of 3 machines", &setup, 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_takeover_of_a_job_is_too_early),
        cmocka_unit_test(no_takeover_of_a_lock_is_too_early),
        cmocka_unit_test(in_calm_times_a_takeover_comes_within_1_2_leases),
        cmocka_unit_test(a_takeover_of_a_short_lease_comes_within_1_35_leases),
        cmocka_unit_test(a_step_of_redis_s_clock_by_less_than_an_hour_delays_no_takeover),
        cmocka_unit_test(any_step_of_redis_s_clock_costs_a_lease_at_most),
        cmocka_unit_test(mixed_lengths_cost_a_part_of_the_longest),
        cmocka_unit_test(evidence_adds_up_over_tries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
