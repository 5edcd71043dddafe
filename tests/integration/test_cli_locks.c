/* test_cli_locks.c - `holdfast lock list`: shows and changes locks that programs hold. */
#include <stdio.h>
#include <string.h>

#include "tests/support/cli_try.h"
#include "tests/support/lock_fixture.h"

static hf_lock_client *locks;
static atomic_uint lost, revoked;

static void on_event(hf_lock *lock, hf_lock_event event, void *arg)
{
    (void)lock;
    (void)arg;
    if (event == HF_LOCK_EVENT_LOST)
        atomic_fetch_add(&lost, 1);
    if (event == HF_LOCK_EVENT_REVOKED)
        atomic_fetch_add(&revoked, 1);
}

static int begin(void **state)
{
    const hf_lock_client_opts opts = {
        HF_LOCK_CLIENT_OPTS_INIT,
        .server = HF_SERVER(.url = hf_fixture_url(&hf_try_fixture.redis)),
        .on_event = on_event};
    atomic_store(&lost, 0);
    atomic_store(&revoked, 0);
    (void)hf_try_clean(state);
    assert_int_equal(hf_lock_client_open(&locks, &opts, NULL), HF_OK);
    return 0;
}

static int end(void **state)
{
    (void)state;
    hf_lock_client_close(locks, NULL, NULL);
    return 0;
}

static hf_lock *take(const char *name, uint32_t lease_ms)
{
    hf_lock *lock = NULL;
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .names = &name, .n_names = 1,
                               .lease_ms = lease_ms, .owner = "me"};
    assert_int_equal(hf_lock_acquire_wait(locks, &opts, &lock, NULL), HF_OK);
    return lock;
}

static void locks_are_listed_and_shown(void **state)
{
    (void)state;
    hf_try_run("locks list @", 0);
    hf_try_has(hf_try_fixture.out, "no locks");
    hf_lock *one = take("t/one", 0), *two = take("two", 0);
    hf_try_run("locks list @", 0);
    hf_try_has(hf_try_fixture.out, "t/one");
    hf_try_has(hf_try_fixture.out, "two");
    hf_try_run("locks list @ --after t/one", 0);
    assert_null(strstr(hf_try_fixture.out, "t/one"));
    hf_try_run("locks show @ t/one", 0);
    hf_try_has(hf_try_fixture.out, "holds");
    json_t *shown = hf_try_object("locks show @ --json t/one", 0);
    assert_string_equal(hf_try_text(shown, "owner"), "me");
    assert_int_equal(hf_try_number(shown, "fence"), (long long)hf_lock_fence(one));
    json_decref(shown);
    assert_int_equal(hf_lock_release_wait(one, NULL), HF_RELEASE_DONE);
    assert_int_equal(hf_lock_release_wait(two, NULL), HF_RELEASE_DONE);
    hf_try_run("locks show @ two", 1);
}

static void a_lock_is_taken_away_only_by_force(void **state)
{
    (void)state;
    hf_lock *lock = take("n", 300);
    hf_try_run("locks release @ n", 64);
    hf_try_run("locks release @ n --force --yes --owner other", 1);
    hf_try_run("locks release @ n --force --yes", 0);
    EVENTUALLY(15000, lost == 1);
    assert_int_equal(hf_lock_why(lock), HF_LOCK_FORCED);
    hf_lock *next = take("n", 0);
    assert_int_equal(hf_lock_release_wait(next, NULL), HF_RELEASE_DONE);
    (void)hf_lock_release_wait(lock, NULL);
    hf_try_run("locks release @ n --force --yes", 1);
}

static void a_holder_is_asked_once(void **state)
{
    (void)state;
    hf_lock *lock = take("n", 300);
    hf_try_run("locks revoke @ n", 0);
    hf_try_has(hf_try_fixture.out, "lock 'n': asked back from 1 holder\n");
    EVENTUALLY(15000, revoked == 1);
    assert_true(hf_lock_held(lock));
    hf_try_run("locks show @ n", 0);
    hf_try_has(hf_try_fixture.out, "asked back");
    ALWAYS(400, revoked == 1);
    assert_int_equal(hf_lock_release_wait(lock, NULL), HF_RELEASE_DONE);
}

static void r20_a_stale_fence_is_refused(void **state)
{
    (void)state;
    hf_try_run("locks fence-check @ file 7 --owner a", 0);
    hf_try_run("locks fence-check @ file 7 --owner a", 0);
    hf_try_run("locks fence-check @ file 7 --owner b", 1);
    hf_try_run("locks fence-check @ file 6 --owner a", 1);
    hf_try_run("locks fence-check @ file 8 --owner b", 0);
    hf_try_run("locks fence-check @ file 0 --owner b", 65);
    hf_try_run("locks fence-check @ file 9", 64);
    hf_try_run("locks show @ a/b/c", 65);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(locks_are_listed_and_shown, begin, end),
        cmocka_unit_test_setup_teardown(a_lock_is_taken_away_only_by_force, begin, end),
        cmocka_unit_test_setup_teardown(a_holder_is_asked_once, begin, end),
        cmocka_unit_test_setup_teardown(r20_a_stale_fence_is_refused, begin, end),
    };
    hf_try_up(HF_TEST_COMMAND, NULL);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_try_down();
    return failures;
}
