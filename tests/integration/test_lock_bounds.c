/* test_lock_bounds.c - the longest time to hold a lock, lines longer than a script looks
 * at, fences larger than a number of Lua is exact, missing options, and a handle that
 * ends while something is asked about it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "tests/support/lock_fixture.h"

enum { LONG_MS = 30000, SOON_MS = 5000 };

static hf_lock_fixture fixture;

/* ---- max_hold_ms ---- */

static void is_lost_in_time(const hf_lock *lock)
{
    EVENTUALLY(SOON_MS, !hf_lock_held(lock));
    EVENTUALLY(SOON_MS, fixture.lost == 1);
    assert_int_equal(hf_lock_why(lock), HF_LOCK_MAX_HOLD);
}

static void an_extended_lock_is_held_no_longer_than_it_may_be(void **state)
{
    hf_lock_look look = {HF_LOCK_LOOK_INIT};
    (void)state;
    hf_lock *lock = hf_lock_must(
        &fixture, fixture.a, "n",
        (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = 10000, .max_hold_ms = 1500});
    assert_int_equal(hf_lock_extend_wait(lock, 10 * LONG_MS, NULL), HF_OK);
    assert_true(hf_lock_remaining_ms(lock) <= 1500);
    assert_int_equal(hf_lock_look_at(fixture.b, "n", 1, &look, fixture.detail), HF_OK);
    assert_int_equal(look.n, 1);
    assert_true(look.entries[0].ends_ms - look.now_ms <= 10000);
    hf_lock_look_done(&look);
    is_lost_in_time(lock);
    (void)hf_lock_release_wait(lock, NULL);
}

static void a_fixed_lock_is_held_no_longer_than_it_may_be(void **state)
{
    (void)state;
    hf_lock *lock = hf_lock_must(&fixture, fixture.a, "n",
                                 (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LONG_MS,
                                                .fixed = true, .max_hold_ms = 300});
    is_lost_in_time(lock);
    hf_lock_released(lock); /* Redis has it to the end of its lease, or so long */
}

/* ---- a long line ---- */

static void put_in_line(unsigned n)
{
    (void)hf_fixture_command(
        &fixture.redis, "EVAL %s 0 %u",
        "local p, now = 'hf:lock:{n}:', redis.call('TIME')[1] * 1000 "
        "for i = 1, ARGV[1] do local o = 'waits-' .. i "
        "redis.call('ZADD', p .. 'x:n', now, o) "
        "redis.call('ZADD', p .. 'q:n', now * 1000 + i, o) "
        "redis.call('HSET', p .. 'e:n', o, 'x 0 1 0 nobody n hold-' .. i .. '=x 20000') "
        "end",
        n);
}

static void holders_of_a_long_line_are_seen_and_robbed(void **state)
{
    enum { WAITERS = 1500 };
    hf_lock_look look = {HF_LOCK_LOOK_INIT};
    size_t n = 0;
    (void)state;
    const hf_lock_opts shared = {HF_LOCK_OPTS_INIT, .mode = HF_LOCK_SHARED,
                                 .lease_ms = 2 * LONG_MS};
    hf_lock *one = hf_lock_must(&fixture, fixture.a, "n", shared);
    hf_lock *two = hf_lock_must(&fixture, fixture.b, "n", shared);
    put_in_line(WAITERS);
    assert_int_equal(hf_lock_look_at(fixture.b, "n", 10, &look, fixture.detail), HF_OK);
    assert_int_equal(look.all, WAITERS + 2);
    assert_int_equal(look.holders, 2);
    assert_int_equal(look.n, 10);
    assert_true(look.entries[0].granted && look.entries[1].granted);
    assert_false(look.entries[2].granted);
    hf_lock_look_done(&look);
    /* Also those that it does not show. */
    assert_int_equal(hf_lock_look_at(fixture.b, "n", 1, &look, fixture.detail), HF_OK);
    assert_int_equal(look.n, 1);
    assert_int_equal(look.holders, 2);
    assert_int_equal(look.all, WAITERS + 2);
    hf_lock_look_done(&look);
    assert_int_equal(hf_lock_revoke(fixture.b, "n", NULL, &n, fixture.detail), HF_OK);
    assert_int_equal(n, 2);
    assert_int_equal(hf_lock_force(fixture.b, "n", NULL, &n, fixture.detail), HF_OK);
    assert_int_equal(n, 2);
    EVENTUALLY(SOON_MS, !hf_lock_held(one) && !hf_lock_held(two));
    (void)hf_lock_release_wait(one, NULL);
    (void)hf_lock_release_wait(two, NULL);
}

/* ---- fences ---- */

static void fences_are_compared_to_the_last_digit(void **state)
{
    static const uint64_t rising[] = {9,
                                      10,
                                      UINT64_C(9007199254740992),
                                      UINT64_C(9007199254740993),
                                      UINT64_C(9007199254740994),
                                      INT64_MAX - 1,
                                      INT64_MAX};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(rising); i++) {
        uint64_t highest = 0;
        assert_int_equal(
            hf_fence_check(fixture.a, "r", rising[i], "me", 0, &highest, fixture.detail),
            HF_OK);
        assert_true(highest == rising[i]);
        for (size_t k = 0; k < i; k++) {
            assert_int_equal(hf_fence_check(fixture.a, "r", rising[k], "me", 0, &highest,
                                            fixture.detail),
                             HF_LOST);
            assert_true(highest == rising[i]);
        }
        assert_int_equal(hf_fence_check(fixture.a, "r", rising[i], "me", 0, NULL, NULL),
                         HF_OK);
        assert_int_equal(
            hf_fence_check(fixture.a, "r", rising[i], "other", 0, NULL, NULL), HF_LOST);
    }
}

/* ---- options ---- */

static void a_client_without_options_is_refused(void **state)
{
    hf_lock_client *locks = NULL;
    (void)state;
    assert_int_equal(hf_lock_client_open(&locks, NULL, fixture.detail), HF_INVALID);
    assert_null(locks);
    assert_string_equal(fixture.detail, "expected options, found none");
}

/* ---- a release while something is asked about the lock ---- */

typedef struct order {
    atomic_int told, ended; /* how many calls began, and ended */
    int downgraded, released;
    hf_err err;
    bool was_mine;
} order;

static void on_downgraded(hf_lock *lock, hf_err err, const char *detail, void *arg)
{
    (void)detail;
    order *o = arg;
    o->err = err;
    o->was_mine = strlen(hf_lock_owner_of(lock)) == 32;
    o->downgraded = ++o->told;
    o->ended++;
}

static void on_released(hf_lock *lock, hf_lock_release_result result, size_t left,
                        void *arg)
{
    order *o = arg;
    (void)lock;
    (void)left;
    (void)result;
    o->released = ++o->told;
    o->ended++;
}

/* Redis has forgotten the script: both are sent again. */
static void a_downgrade_is_answered_before_its_lock_ends(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        order o = {.told = 0};
        hf_lock *lock =
            hf_lock_must(&fixture, fixture.a, "n",
                         (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = LONG_MS});
        (void)hf_fixture_command(&fixture.redis, "SCRIPT FLUSH");
        assert_int_equal(hf_lock_downgrade(lock, on_downgraded, &o, NULL), HF_OK);
        hf_lock_release(lock, on_released, &o);
        EVENTUALLY(LONG_MS, o.ended == 2);
        assert_int_equal(o.downgraded, 1);
        assert_int_equal(o.released, 2);
        assert_true(o.err == HF_OK || o.err == HF_LOST);
        assert_true(o.was_mine);
        assert_true(hf_lock_is_free(&fixture, "n"));
    }
}

int main(void)
{
#define TEST(name) HF_LOCK_TEST(name, &fixture)
    const struct CMUnitTest tests[] = {
        TEST(an_extended_lock_is_held_no_longer_than_it_may_be),
        TEST(a_fixed_lock_is_held_no_longer_than_it_may_be),
        TEST(holders_of_a_long_line_are_seen_and_robbed),
        TEST(fences_are_compared_to_the_last_digit),
        TEST(a_client_without_options_is_refused),
        TEST(a_downgrade_is_answered_before_its_lock_ends),
    };
    hf_lock_fixture_up(&fixture, NULL);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_lock_fixture_down(&fixture);
    return failures;
}
