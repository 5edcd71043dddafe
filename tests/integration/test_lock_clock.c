/* test_lock_clock.c - what steps of Redis's clock do to locks: no two believe, a holder
 * that lives keeps its lock, and that of a dead one is had in the end. */
#include "base/base.h"
#include "tests/support/lock_fixture.h"

/* Leases of holders that live are longer: a busy machine must not let them end. */
enum {
    LEASE_MS = 1000,
    LIVE_MS = 2500,
    HOUR_MS = 3600000,
    PATIENCE_MS = 20000,
    NIGHT_MS = 3 * LEASE_MS
};

static hf_lock_fixture fixture;

/* Steps whose sum is none, with pauses between them. */
static void disturb(void)
{
    enum { PART_MS = LIVE_MS * 7 / 10 };
    static const int64_t steps[] = {HOUR_MS,  -2 * HOUR_MS, HOUR_MS,
                                    -PART_MS, 2 * PART_MS,  -PART_MS};
    for (size_t i = 0; i < HF_COUNT(steps); i++) {
        hf_fixture_clock_jump(&fixture.redis, steps[i]);
        hf_test_pause_ms(LIVE_MS / 2);
    }
}

static void a_holder_that_lives_keeps_its_lock(void **state)
{
    hf_lock_waiter w;
    (void)state;
    hf_lock *lock = hf_lock_must(&fixture, fixture.a, "n",
                                 (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LIVE_MS});
    hf_lock_wait_begin(&w, &fixture, fixture.b, "n",
                       (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LIVE_MS});
    disturb();
    assert_true(hf_lock_held(lock));
    assert_false(w.done);
    hf_lock_released(lock);
    hf_lock_wait_released(&w);
}

/* Its lease is over by Redis's clock at once, but not by the holder's. */
static void a_try_after_a_step_forward_is_refused(void **state)
{
    (void)state;
    hf_lock *lock = hf_lock_must(&fixture, fixture.a, "n",
                                 (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LIVE_MS});
    hf_fixture_clock_jump(&fixture.redis, 24 * HOUR_MS);
    hf_lock_refused(&fixture, fixture.b, "n", (hf_lock_opts){HF_LOCK_OPTS_INIT},
                    HF_TAKEN);
    assert_true(hf_lock_held(lock));
    hf_fixture_clock_jump(&fixture.redis, -24 * HOUR_MS);
    hf_lock_released(lock);
}

/* The second step comes before a renewal would have given the keys a new end. */
static void a_holder_keeps_its_lock_through_steps_of_weeks(void **state)
{
    static const int64_t day_ms = (int64_t)24 * HOUR_MS;
    (void)state;
    hf_lock *lock = hf_lock_must(&fixture, fixture.a, "n",
                                 (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LIVE_MS});
    hf_fixture_clock_jump(&fixture.redis, 14 * day_ms);
    ALWAYS(LIVE_MS, hf_lock_held(lock));
    hf_fixture_clock_jump(&fixture.redis, 29 * day_ms);
    ALWAYS(LIVE_MS, hf_lock_held(lock));
    hf_lock_released(lock);
    hf_fixture_clock_jump(&fixture.redis, -43 * day_ms);
}

/* A waiter gets what was given back, although no lease is proved to be over. */
static void every_mode_is_given_back_after_a_step_forward(void **state)
{
    static const hf_lock_opts modes[] = {
        {HF_LOCK_OPTS_INIT, .lease_ms = LIVE_MS},
        {HF_LOCK_OPTS_INIT, .lease_ms = LIVE_MS, .mode = HF_LOCK_SHARED},
        {HF_LOCK_OPTS_INIT, .lease_ms = LIVE_MS, .mode = HF_LOCK_PERMITS, .limit = 1}};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(modes); i++) {
        hf_lock_waiter w;
        hf_lock *lock = hf_lock_must(&fixture, fixture.a, "n", modes[i]);
        hf_fixture_clock_jump(&fixture.redis, 24 * HOUR_MS);
        hf_lock_wait_begin(&w, &fixture, fixture.b, "n",
                           (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LIVE_MS});
        ALWAYS(LIVE_MS, hf_lock_held(lock) && !w.done);
        hf_fixture_clock_jump(&fixture.redis, 24 * HOUR_MS);
        hf_lock_released(lock);
        hf_lock_wait_released(&w);
        hf_fixture_clock_jump(&fixture.redis, -48 * HOUR_MS);
    }
}

static void die_with(const char *name)
{
    hf_locker dead;
    hf_locker_start(&dead, fixture.redis.dir, fixture.redis.url, name, "lease=1000");
    EVENTUALLY(PATIENCE_MS, hf_locker_said(&dead, "held", NULL));
    hf_locker_kill(&dead);
}

/* Whatever the end of the dead one's lease says: long ago, or in hours. */
static void dead_clients_leave_within_a_lease_of_the_waiter(void **state)
{
    static const int64_t steps[] = {0, HOUR_MS, -HOUR_MS};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(steps); i++) {
        die_with("n");
        hf_fixture_clock_jump(&fixture.redis, steps[i]);
        uint64_t from_ms = hf_test_fair_ms();
        hf_lock_released(
            hf_lock_must(&fixture, fixture.b, "n",
                         (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = PATIENCE_MS}));
        assert_in_range(hf_test_fair_ms() - from_ms, 0, NIGHT_MS);
        hf_fixture_clock_jump(&fixture.redis, -steps[i]);
    }
}

/* The counter of fences ended by a step forward, and the line is ahead of what a new one
 * gives out. */
static void a_dead_client_leaves_though_the_fences_began_again(void **state)
{
    (void)state;
    hf_fixture_clock_jump(&fixture.redis, 3 * HOUR_MS);
    die_with("n");
    hf_fixture_clock_jump(&fixture.redis, 2 * HOUR_MS);
    EVENTUALLY(PATIENCE_MS,
               hf_fixture_number(&fixture.redis, "EXISTS hf:lock:{n}:fence") == 0);
    hf_fixture_clock_jump(&fixture.redis, -5 * HOUR_MS);
    uint64_t from_ms = hf_test_fair_ms();
    hf_lock_released(
        hf_lock_must(&fixture, fixture.b, "n",
                     (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = PATIENCE_MS}));
    assert_in_range(hf_test_fair_ms() - from_ms, 0, NIGHT_MS);
}

/* Each is refused at once, and a later one gets it. */
static void single_tries_add_up(void **state)
{
    static const int64_t steps[] = {2 * LEASE_MS, HOUR_MS, -HOUR_MS};
    static const hf_lock_form forms[] = {HF_LOCK_LINE, HF_LOCK_SPIN};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(steps) * HF_COUNT(forms); i++) {
        const hf_lock_opts once = {HF_LOCK_OPTS_INIT, .wait_ms = 0, .form = forms[i % 2]};
        hf_lock *lock;
        die_with("n");
        hf_fixture_clock_jump(&fixture.redis, steps[i / 2]);
        uint64_t from_ms = hf_test_now_ms(), fair_ms = hf_test_fair_ms();
        hf_lock_refused(&fixture, fixture.b, "n", once, HF_TAKEN);
        EVENTUALLY(PATIENCE_MS,
                   hf_lock_take(&fixture, fixture.b, "n", once, &lock) == HF_OK);
        assert_true(hf_test_now_ms() - from_ms >= LEASE_MS);
        assert_in_range(hf_test_fair_ms() - fair_ms, 0, NIGHT_MS);
        hf_lock_released(lock);
        hf_fixture_clock_jump(&fixture.redis, -steps[i / 2]);
    }
}

/* Each client tries once, is refused, and leaves. */
static void tries_of_several_clients_add_up(void **state)
{
    const hf_lock_opts once = {HF_LOCK_OPTS_INIT, .wait_ms = 0};
    hf_lock *lock;
    (void)state;
    die_with("n");
    uint64_t from_ms = hf_test_fair_ms();
    do {
        hf_lock_client *client = hf_lock_fixture_open(&fixture, fixture.redis.url);
        hf_err err = hf_lock_take(&fixture, client, "n", once, &lock);
        if (err == HF_OK)
            hf_lock_released(lock);
        hf_lock_client_close(client, NULL, NULL);
        if (err == HF_OK)
            break;
        hf_test_pause_ms(LEASE_MS / 10);
    } while (hf_test_fair_ms() - from_ms < PATIENCE_MS);
    assert_in_range(hf_test_fair_ms() - from_ms, 0, NIGHT_MS);
}

#define TEST(name) HF_LOCK_TEST(name, &fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_holder_that_lives_keeps_its_lock),
        TEST(a_try_after_a_step_forward_is_refused),
        TEST(a_holder_keeps_its_lock_through_steps_of_weeks),
        TEST(every_mode_is_given_back_after_a_step_forward),
        TEST(dead_clients_leave_within_a_lease_of_the_waiter),
        TEST(a_dead_client_leaves_though_the_fences_began_again),
        TEST(single_tries_add_up),
        TEST(tries_of_several_clients_add_up),
    };
    hf_lock_fixture_up(&fixture, &(hf_fixture_options){.clock = true});
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_lock_fixture_down(&fixture);
    return failures;
}
