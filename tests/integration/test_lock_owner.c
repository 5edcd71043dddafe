/* test_lock_owner.c - one owner whose holds belong to several processes. Each process is
 * one client here. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "tests/support/lock_rig.h"

enum { LEASE_MS = 120000, HEARD_MS = 1000, LONG_MS = 30000 };

static hf_lock_rig rig;
static hf_locks *other; /* a client of another owner */

static int up(void **state)
{
    (void)state;
    hf_lock_rig_up(&rig);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_lock_rig_down(&rig);
    return 0;
}

static int begin(void **state)
{
    (void)state;
    hf_lock_rig_begin(&rig);
    other = hf_lock_rig_open(&rig, hf_fixture_url(&rig.redis));
    return 0;
}

static int end(void **state)
{
    (void)state;
    hf_locks_close(other, NULL, NULL);
    hf_lock_rig_end(&rig);
    return 0;
}

static hf_lock_opts of_owner(uint32_t lease_ms)
{
    return (hf_lock_opts){
        .lease_ms = lease_ms, .owner = "o", .reentrant = true, .wait_ms = LONG_MS};
}

static size_t holds_of(const char *name, const char *owner)
{
    hf_lock_look look;
    size_t holds = 0;
    assert_int_equal(hf_lock_look_at(other, name, 10, &look, rig.detail), HF_OK);
    for (size_t i = 0; i < look.n; i++)
        if (strcmp(look.entries[i].owner, owner) == 0)
            holds = look.entries[i].holds;
    hf_lock_look_done(&look);
    return holds;
}

/* At any moment of its hold: also when a process does not listen yet. */
static const unsigned moments_ms[] = {0, 50, 300};

static void each_process_hears_that_its_lock_is_taken_away(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT(moments_ms); i++) {
        size_t n = 0;
        hf_lock *one = hf_lock_must(&rig, rig.a, "n", of_owner(LEASE_MS));
        hf_lock *two = hf_lock_must(&rig, rig.b, "n", of_owner(LEASE_MS));
        hf_test_pause_ms(moments_ms[i]);
        assert_int_equal(hf_lock_force(other, "n", NULL, &n, rig.detail), HF_OK);
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
        hf_lock *one = hf_lock_must(&rig, rig.a, "n", of_owner(LEASE_MS));
        hf_lock *two = hf_lock_must(&rig, rig.b, "n", of_owner(LEASE_MS));
        hf_test_pause_ms(moments_ms[i]);
        assert_int_equal(hf_lock_revoke(other, "n", NULL, &n, rig.detail), HF_OK);
        EVENTUALLY(HEARD_MS, rig.revoked == 2 * (i + 1));
        assert_int_equal(hf_lock_release_wait(one, &left), HF_STILL_HELD);
        assert_int_equal(left, 1);
        hf_lock_released(two);
    }
}

/* The entry was made by the process that has left. */
static void the_process_that_remains_hears(void **state)
{
    size_t n = 0;
    (void)state;
    hf_lock *one = hf_lock_must(&rig, rig.a, "n", of_owner(LEASE_MS));
    hf_lock *two = hf_lock_must(&rig, rig.b, "n", of_owner(LEASE_MS));
    assert_int_equal(hf_lock_release_wait(one, NULL), HF_STILL_HELD);
    assert_int_equal(hf_lock_force(other, "n", NULL, &n, rig.detail), HF_OK);
    assert_int_equal(n, 1);
    EVENTUALLY(HEARD_MS, !hf_lock_held(two));
    (void)hf_lock_release_wait(two, NULL);
}

static void each_process_hears_of_the_grant(void **state)
{
    hf_lock_waiter one, two;
    (void)state;
    hf_lock *before =
        hf_lock_must(&rig, other, "n", (hf_lock_opts){.lease_ms = LEASE_MS});
    hf_lock_wait_begin(&one, &rig, rig.a, "n", of_owner(LEASE_MS));
    hf_lock_begin(&two, &rig, rig.b, "n", of_owner(LEASE_MS));
    EVENTUALLY(LONG_MS, holds_of("n", "o") == 2);
    hf_lock_released(before);
    EVENTUALLY(HEARD_MS, one.done && two.done);
    hf_lock_wait_end(&one);
    hf_lock_wait_end(&two);
    assert_int_equal(one.err, HF_OK);
    assert_int_equal(two.err, HF_OK);
    assert_int_equal(hf_lock_fence(one.lock), hf_lock_fence(two.lock));
    assert_int_equal(hf_lock_release_wait(one.lock, NULL), HF_STILL_HELD);
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
    hf_lock *before =
        hf_lock_must(&rig, other, "t/b", (hf_lock_opts){.lease_ms = LEASE_MS});
    hf_lock_begin(&one, &rig, rig.a, "t/b", both);
    EVENTUALLY(LONG_MS, holds_of("t/a", "o") == 1);
    hf_lock_begin(&two, &rig, rig.b, "t/a", of_owner(LEASE_MS));
    EVENTUALLY(LONG_MS, holds_of("t/a", "o") == 2);
    hf_lock_released(before);
    EVENTUALLY(HEARD_MS, one.done && two.done);
    hf_lock_wait_end(&one);
    hf_lock_wait_end(&two);
    assert_int_equal(hf_lock_release_wait(one.lock, NULL), HF_STILL_HELD);
    hf_lock_released(two.lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_process_hears_that_its_lock_is_taken_away,
                                        begin, end),
        cmocka_unit_test_setup_teardown(each_process_hears_that_its_lock_is_asked_back,
                                        begin, end),
        cmocka_unit_test_setup_teardown(the_process_that_remains_hears, begin, end),
        cmocka_unit_test_setup_teardown(each_process_hears_of_the_grant, begin, end),
        cmocka_unit_test_setup_teardown(
            a_process_that_waits_in_one_of_several_lines_hears_of_the_grant, begin, end),
    };
    return cmocka_run_group_tests(tests, up, down);
}
