/* test_lock_owner.c - one owner whose holds belong to several processes. Each process is
 * one client here. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "tests/support/lock_fixture.h"

enum {
    LEASE_MS = 120000,
    LIVE_MS = 3000, /* renewed */
    SHORT_MS = 500, /* not renewed */
    HEARD_MS = 15000,
    LONG_MS = 30000
};

static hf_lock_fixture fixture;
static hf_lock_client *other; /* a client of another owner */

static int begin(void **state)
{
    (void)hf_lock_fixture_begin(state);
    other = hf_lock_fixture_open(&fixture, hf_fixture_url(&fixture.redis));
    return 0;
}

static int end(void **state)
{
    hf_lock_client_close(other, NULL, NULL);
    return hf_lock_fixture_end(state);
}

static hf_lock_opts of_owner(uint32_t lease_ms)
{
    return (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = lease_ms, .owner = "o",
                          .reentrant = true, .wait_ms = LONG_MS};
}

static size_t holds_of(const char *name, const char *owner)
{
    hf_lock_look look = {HF_LOCK_LOOK_INIT};
    size_t holds = 0;
    assert_int_equal(hf_lock_look_at(other, name, 10, &look, fixture.detail), HF_OK);
    for (size_t i = 0; i < look.n; i++)
        if (strcmp(look.entries[i].owner, owner) == 0)
            holds = look.entries[i].holds;
    hf_lock_look_done(&look);
    return holds;
}

/* From now on, by Redis's clock. */
static int64_t ends_ms(const char *name)
{
    hf_lock_look look = {HF_LOCK_LOOK_INIT};
    assert_int_equal(hf_lock_look_at(other, name, 1, &look, fixture.detail), HF_OK);
    int64_t ends_ms = look.n == 0 ? 0 : look.entries[0].ends_ms - look.now_ms;
    hf_lock_look_done(&look);
    return ends_ms;
}

/* At any moment of its hold: also when a process does not listen yet. */
static const unsigned moments_ms[] = {0, 50, 300};

static void each_process_hears_that_its_lock_is_taken_away(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT(moments_ms); i++) {
        size_t n = 0;
        hf_lock *one = hf_lock_must(&fixture, fixture.a, "n", of_owner(LEASE_MS));
        hf_lock *two = hf_lock_must(&fixture, fixture.b, "n", of_owner(LEASE_MS));
        hf_test_pause_ms(moments_ms[i]);
        assert_int_equal(hf_lock_force(other, "n", NULL, &n, fixture.detail), HF_OK);
        assert_int_equal(n, 1);
        EVENTUALLY(HEARD_MS, !hf_lock_held(one) && !hf_lock_held(two));
        assert_int_equal(hf_lock_why(one), HF_LOCK_FORCED);
        assert_int_equal(hf_lock_why(two), HF_LOCK_FORCED);
        (void)hf_lock_release_wait(one, NULL);
        (void)hf_lock_release_wait(two, NULL);
    }
}

static void each_process_hears_that_its_lock_is_asked_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT(moments_ms); i++) {
        size_t n = 0, left = 0;
        hf_lock *one = hf_lock_must(&fixture, fixture.a, "n", of_owner(LEASE_MS));
        hf_lock *two = hf_lock_must(&fixture, fixture.b, "n", of_owner(LEASE_MS));
        hf_test_pause_ms(moments_ms[i]);
        assert_int_equal(hf_lock_revoke(other, "n", NULL, &n, fixture.detail), HF_OK);
        EVENTUALLY(HEARD_MS, fixture.revoked == 2 * (i + 1));
        assert_int_equal(hf_lock_release_wait(one, &left), HF_RELEASE_STILL_HELD);
        assert_int_equal(left, 1);
        hf_lock_released(two);
    }
}

/* The entry was made by the process that has left. */
static void the_process_that_remains_hears(void **state)
{
    size_t n = 0;
    (void)state;
    hf_lock *one = hf_lock_must(&fixture, fixture.a, "n", of_owner(LEASE_MS));
    hf_lock *two = hf_lock_must(&fixture, fixture.b, "n", of_owner(LEASE_MS));
    assert_int_equal(hf_lock_release_wait(one, NULL), HF_RELEASE_STILL_HELD);
    assert_int_equal(hf_lock_force(other, "n", NULL, &n, fixture.detail), HF_OK);
    assert_int_equal(n, 1);
    EVENTUALLY(HEARD_MS, !hf_lock_held(two));
    (void)hf_lock_release_wait(two, NULL);
}

static void each_process_hears_of_the_grant(void **state)
{
    hf_lock_waiter one, two;
    (void)state;
    hf_lock *before = hf_lock_must(
        &fixture, other, "n", (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LEASE_MS});
    hf_lock_wait_begin(&one, &fixture, fixture.a, "n", of_owner(LEASE_MS));
    hf_lock_begin(&two, &fixture, fixture.b, "n", of_owner(LEASE_MS));
    EVENTUALLY(LONG_MS, holds_of("n", "o") == 2);
    hf_lock_released(before);
    EVENTUALLY(HEARD_MS, one.done && two.done);
    hf_lock_wait_end(&one);
    hf_lock_wait_end(&two);
    assert_int_equal(one.err, HF_OK);
    assert_int_equal(two.err, HF_OK);
    assert_int_equal(hf_lock_fence(one.lock), hf_lock_fence(two.lock));
    assert_int_equal(hf_lock_release_wait(one.lock, NULL), HF_RELEASE_STILL_HELD);
    hf_lock_released(two.lock);
}

/* The second process waits in one of the two lines only. */
static void a_process_that_waits_in_one_of_several_lines_hears_of_the_grant(void **state)
{
    hf_lock_waiter one, two;
    (void)state;
    static const char *const names[] = {"t/a", "t/b"};
    hf_lock_opts both = of_owner(LEASE_MS);
    both.names = names;
    both.n_names = 2;
    hf_lock *before = hf_lock_must(
        &fixture, other, "t/b", (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LEASE_MS});
    hf_lock_begin(&one, &fixture, fixture.a, "t/b", both);
    EVENTUALLY(LONG_MS, holds_of("t/a", "o") == 1);
    hf_lock_begin(&two, &fixture, fixture.b, "t/a", of_owner(LEASE_MS));
    EVENTUALLY(LONG_MS, holds_of("t/a", "o") == 2);
    hf_lock_released(before);
    EVENTUALLY(HEARD_MS, one.done && two.done);
    hf_lock_wait_end(&one);
    hf_lock_wait_end(&two);
    assert_int_equal(hf_lock_release_wait(one.lock, NULL), HF_RELEASE_STILL_HELD);
    hf_lock_released(two.lock);
}

/* ---- the end of one process's holds: a hold that is never renewed is as one of a dead
 * process, and the other process renews its own ---- */

static hf_lock *of_the_dead(uint32_t lease_ms)
{
    hf_lock_opts opts = of_owner(lease_ms);
    opts.fixed = true;
    return hf_lock_must(&fixture, fixture.a, "n", opts);
}

static void holds_of_a_dead_process_end_with_their_lease(void **state)
{
    (void)state;
    hf_lock *dead = of_the_dead(SHORT_MS);
    hf_lock *live = hf_lock_must(&fixture, fixture.b, "n", of_owner(LEASE_MS));
    ALWAYS(2 * SHORT_MS, hf_lock_held(live));
    (void)hf_lock_release_wait(live, NULL); /* its renewals may have found out already */
    hf_lock_released(hf_lock_must(
        &fixture, other, "n",
        (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LEASE_MS, .wait_ms = LONG_MS}));
    assert_true(hf_lock_is_free(&fixture, "n"));
    (void)hf_lock_release_wait(dead, NULL);
}

/* No other client waits, so only the renewals of the live process can prove it. */
static void a_dead_hold_leaves_while_its_owner_lives(void **state)
{
    (void)state;
    hf_lock *dead = of_the_dead(SHORT_MS);
    hf_lock *live = hf_lock_must(&fixture, fixture.b, "n", of_owner(LIVE_MS));
    EVENTUALLY(LONG_MS, holds_of("n", "o") == 1);
    ALWAYS(SHORT_MS, hf_lock_held(live) && holds_of("n", "o") == 1);
    hf_lock_released(live);
    (void)hf_lock_release_wait(dead, NULL);
}

/* Both are alive, and each renews its own hold only. */
static void live_holds_of_one_owner_stay(void **state)
{
    (void)state;
    hf_lock *one = hf_lock_must(&fixture, fixture.a, "n", of_owner(LIVE_MS));
    hf_lock *two = hf_lock_must(&fixture, fixture.b, "n", of_owner(2 * LIVE_MS));
    ALWAYS(LIVE_MS + SHORT_MS,
           hf_lock_held(one) && hf_lock_held(two) && holds_of("n", "o") == 2);
    assert_int_equal(hf_lock_release_wait(one, NULL), HF_RELEASE_STILL_HELD);
    hf_lock_released(two);
}

static void dead_holds_give_their_places_free(void **state)
{
    enum { PLACES = 256 };
    static hf_lock *dead[PLACES - 1];
    hf_lock *next = NULL;
    (void)state;
    hf_lock *live = hf_lock_must(&fixture, fixture.b, "n", of_owner(LIVE_MS));
    for (size_t i = 0; i < HF_COUNT(dead); i++)
        dead[i] = of_the_dead(LIVE_MS);
    EVENTUALLY(LONG_MS, hf_lock_take(&fixture, fixture.b, "n", of_owner(LEASE_MS),
                                     &next) == HF_OK);
    EVENTUALLY(LONG_MS, holds_of("n", "o") == 2);
    assert_int_equal(hf_lock_release_wait(next, NULL), HF_RELEASE_STILL_HELD);
    hf_lock_released(live);
    for (size_t i = 0; i < HF_COUNT(dead); i++)
        (void)hf_lock_release_wait(dead[i], NULL);
}

/* The process that has left had a lease that is much longer. */
static void a_dead_process_keeps_the_lock_for_its_own_lease_only(void **state)
{
    (void)state;
    hf_lock *dead = of_the_dead(2 * SHORT_MS);
    hf_lock *live = hf_lock_must(&fixture, fixture.b, "n", of_owner(LEASE_MS));
    assert_int_equal(hf_lock_release_wait(live, NULL), HF_RELEASE_STILL_HELD);
    hf_lock_refused(&fixture, other, "n",
                    (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LEASE_MS}, HF_TAKEN);
    uint64_t from_ms = hf_test_fair_ms();
    hf_lock_released(hf_lock_must(
        &fixture, other, "n",
        (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = SHORT_MS, .wait_ms = LONG_MS}));
    assert_true(hf_test_fair_ms() - from_ms < HEARD_MS);
    (void)hf_lock_release_wait(dead, NULL);
}

/* The lease of the dead process is the shortest that was ever in the line. */
static void a_dead_process_that_joined_leaves_with_its_own_lease(void **state)
{
    (void)state;
    hf_lock *live = hf_lock_must(&fixture, fixture.b, "n", of_owner(LEASE_MS));
    hf_lock *dead = of_the_dead(SHORT_MS);
    assert_int_equal(hf_lock_release_wait(live, NULL), HF_RELEASE_STILL_HELD);
    uint64_t from_ms = hf_test_fair_ms();
    hf_lock_released(hf_lock_must(
        &fixture, other, "n",
        (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LEASE_MS, .wait_ms = LONG_MS}));
    assert_true(hf_test_fair_ms() - from_ms < HEARD_MS);
    (void)hf_lock_release_wait(dead, NULL);
}

/* What the dead process had alone, the live one has shared. */
static void readers_come_in_after_a_dead_writer_of_a_live_owner(void **state)
{
    hf_lock_waiter w;
    (void)state;
    hf_lock *dead = of_the_dead(2 * SHORT_MS);
    hf_lock_opts shared = of_owner(LIVE_MS);
    shared.mode = HF_LOCK_SHARED;
    hf_lock *live = hf_lock_must(&fixture, fixture.b, "n", shared);
    hf_lock_wait_begin(&w, &fixture, other, "n",
                       (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LEASE_MS,
                                      .mode = HF_LOCK_SHARED, .wait_ms = LONG_MS});
    EVENTUALLY(HEARD_MS, w.done);
    hf_lock_wait_end(&w);
    assert_int_equal(w.err, HF_OK);
    assert_true(hf_lock_held(live));
    hf_lock_released(live);
    hf_lock_released(w.lock);
    (void)hf_lock_release_wait(dead, NULL);
}

static void the_fence_rises_after_the_last_hold_of_an_owner(void **state)
{
    (void)state;
    hf_lock *dead = of_the_dead(SHORT_MS);
    hf_lock *live = hf_lock_must(&fixture, fixture.b, "n", of_owner(LEASE_MS));
    uint64_t fence = hf_lock_fence(live);
    assert_int_equal(hf_lock_fence(dead), fence);
    assert_int_equal(hf_lock_release_wait(live, NULL), HF_RELEASE_STILL_HELD);
    EVENTUALLY(HEARD_MS, ends_ms("n") <= 0);
    hf_lock *again = hf_lock_must(&fixture, fixture.b, "n", of_owner(LEASE_MS));
    assert_true(hf_lock_fence(again) > fence);
    hf_lock_released(again);
    (void)hf_lock_release_wait(dead, NULL);
}

/* A renewal of such an owner does not name its hold. */
static void a_second_process_may_join_the_random_owner_of_the_first(void **state)
{
    (void)state;
    hf_lock *one = hf_lock_must(&fixture, fixture.a, "n",
                                (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LIVE_MS});
    hf_lock_opts joins = of_owner(LEASE_MS);
    joins.owner = hf_lock_owner_of(one);
    hf_lock *two = hf_lock_must(&fixture, fixture.b, "n", joins);
    ALWAYS(LIVE_MS + SHORT_MS, hf_lock_held(one));
    assert_int_equal(holds_of("n", joins.owner), 2);
    assert_int_equal(hf_lock_release_wait(one, NULL), HF_RELEASE_STILL_HELD);
    hf_lock_released(two);
}

/* Other holders do not keep it from the proof that its own old lease is over. */
static void a_process_that_restarts_comes_in_beside_other_readers(void **state)
{
    static const uint32_t waits_ms[] = {0, LONG_MS};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(waits_ms); i++) {
        hf_lock *back = NULL;
        hf_lock_opts shared = of_owner(SHORT_MS);
        shared.mode = HF_LOCK_SHARED;
        shared.fixed = true;
        hf_lock *dead = hf_lock_must(&fixture, fixture.a, "n", shared);
        EVENTUALLY(HEARD_MS, ends_ms("n") <= 0);
        hf_lock *reader =
            hf_lock_must(&fixture, other, "n",
                         (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LEASE_MS,
                                        .mode = HF_LOCK_SHARED});
        shared.fixed = false;
        shared.lease_ms = LIVE_MS;
        shared.wait_ms = waits_ms[i];
        EVENTUALLY(LONG_MS,
                   hf_lock_take(&fixture, fixture.b, "n", shared, &back) == HF_OK);
        hf_lock_released(back);
        hf_lock_released(reader);
        (void)hf_lock_release_wait(dead, NULL);
    }
}

#define TEST(name) cmocka_unit_test_prestate_setup_teardown(name, begin, end, &fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_process_hears_that_its_lock_is_taken_away),
        TEST(each_process_hears_that_its_lock_is_asked_back),
        TEST(the_process_that_remains_hears),
        TEST(each_process_hears_of_the_grant),
        TEST(a_process_that_waits_in_one_of_several_lines_hears_of_the_grant),
        TEST(holds_of_a_dead_process_end_with_their_lease),
        TEST(a_dead_hold_leaves_while_its_owner_lives),
        TEST(live_holds_of_one_owner_stay),
        TEST(dead_holds_give_their_places_free),
        TEST(a_dead_process_keeps_the_lock_for_its_own_lease_only),
        TEST(a_dead_process_that_joined_leaves_with_its_own_lease),
        TEST(readers_come_in_after_a_dead_writer_of_a_live_owner),
        TEST(the_fence_rises_after_the_last_hold_of_an_owner),
        TEST(a_second_process_may_join_the_random_owner_of_the_first),
        TEST(a_process_that_restarts_comes_in_beside_other_readers),
    };
    hf_lock_fixture_up(&fixture, NULL);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_lock_fixture_down(&fixture);
    return failures;
}
