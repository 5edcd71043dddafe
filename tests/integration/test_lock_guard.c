/* test_lock_guard.c - processes that may run only while a lock is held
 * (hf_lock_guard()): they live as long as it is renewed, and end with it. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "lock/watchdog/watchdog.h"
#include "tests/support/lock_fixture.h"
#include "tests/support/proc.h"

enum { LEASE_MS = 9000, GRACE_MS = 3000, LONG_MS = 30000 };

static hf_lock_fixture fixture;
static hf_lock_client *locks;
static char dir[HF_TEMPDIR_SIZE];
static pid_t leader; /* of a group; 0: none */

static hf_lock_client *open_client(const char *minder)
{
    hf_lock_client *client = NULL;
    const hf_lock_client_opts opts = {
        HF_LOCK_CLIENT_OPTS_INIT,
        .server = HF_SERVER(.url = hf_fixture_url(&fixture.redis),
                            .connect_timeout_ms = LONG_MS, .request_timeout_ms = LONG_MS),
        .minder = minder};
    assert_int_equal(hf_lock_client_open(&client, &opts, fixture.detail), HF_OK);
    return client;
}

static void remove_marks(void)
{
    static const char *const names[] = {"ready", "asked"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[HF_TEMPDIR_SIZE + 64];
        (void)snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        (void)unlink(path);
    }
}

static int begin(void **state)
{
    remove_marks();
    (void)hf_lock_fixture_begin(state);
    locks = open_client(HF_TEST_COMMAND);
    return 0;
}

static int end(void **state)
{
    hf_fixture_signal(&fixture.redis, SIGCONT);
    hf_lock_client_close(locks, NULL, NULL);
    if (leader != 0) {
        kill(-leader, SIGKILL);
        waitpid(leader, NULL, 0);
    }
    leader = 0;
    return hf_lock_fixture_end(state);
}

static hf_lock *take(void)
{
    return hf_lock_must(&fixture, locks, "job",
                        (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LEASE_MS});
}

/* A group of its own, whose leader is a shell. */
static void start_group(const char *script)
{
    leader = fork();
    if (leader == 0) {
        setpgid(0, 0);
        if (chdir(dir) == 0)
            execl("/bin/sh", "sh", "-c", script, (char *)NULL);
        _exit(127);
    }
    assert_true(leader > 0);
    setpgid(leader, leader);
}

static bool has_ended(void)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)leader, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == leader;
}

static int reap(void)
{
    int status;
    assert_int_equal(waitpid(leader, &status, 0), leader);
    leader = 0;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static bool is_there(const char *name)
{
    char path[HF_TEMPDIR_SIZE + 64];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

static void a_group_lives_while_the_lock_is_renewed(void **state)
{
    (void)state;
    hf_lock *lock = take();
    start_group("exec sleep 1000");
    assert_int_equal(hf_lock_guard(lock, leader, GRACE_MS, NULL), HF_OK);
    ALWAYS(LEASE_MS + LEASE_MS / 4, !has_ended());
    assert_true(hf_lock_held(lock));
    assert_int_equal(hf_lock_guard(lock, 0, 0, NULL), HF_OK);
    kill(leader, SIGKILL);
    assert_int_equal(reap(), 128 + SIGKILL);
    assert_int_equal(hf_lock_release_wait(lock, NULL), HF_RELEASE_DONE);
}

static void a_group_is_asked_before_the_deadline_and_killed_at_it(void **state)
{
    (void)state;
    hf_lock *lock = take();
    start_group("trap ': >asked' TERM; : >ready; while :; do sleep 0.02; done");
    EVENTUALLY(LONG_MS, is_there("ready"));
    assert_int_equal(hf_lock_guard(lock, leader, GRACE_MS, NULL), HF_OK);
    hf_fixture_signal(&fixture.redis, SIGSTOP);
    EVENTUALLY(LONG_MS, is_there("asked") || has_ended());
    assert_true(is_there("asked"));
    uint64_t deadline_ns = hf_lock_deadline_ns(lock); /* 0: it has passed */
    assert_true(deadline_ns == 0 || hf_boot_ns() + GRACE_MS * HF_MS_NS >= deadline_ns);
    EVENTUALLY(LONG_MS, has_ended());
    assert_true(hf_boot_ns() >= deadline_ns);
    assert_int_equal(reap(), 128 + SIGKILL);
    assert_false(hf_lock_held(lock));
    start_group("exec sleep 1000");
    assert_int_equal(hf_lock_guard(lock, 0, 0, NULL), HF_OK);
    assert_int_equal(hf_lock_guard(lock, leader, GRACE_MS, NULL), HF_LOST);
}

/* Its lock is lost long before its deadline: it is asked at once, and has its grace. */
static void a_group_is_asked_as_soon_as_its_lock_is_lost(void **state)
{
    (void)state;
    size_t n;
    hf_lock *lock = hf_lock_must(&fixture, locks, "job",
                                 (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LONG_MS});
    start_group("trap ': >asked' TERM; : >ready; while :; do sleep 0.02; done");
    EVENTUALLY(LONG_MS, is_there("ready"));
    assert_int_equal(hf_lock_guard(lock, leader, GRACE_MS, NULL), HF_OK);
    assert_false(hf_lock_guard_asked(lock));
    uint64_t deadline_ns = hf_lock_deadline_ns(lock), forced_ns = hf_boot_ns();
    assert_int_equal(hf_lock_force(locks, "job", NULL, &n, NULL), HF_OK);
    EVENTUALLY(LONG_MS, !hf_lock_held(lock));
    assert_int_equal(hf_lock_why(lock), HF_LOCK_FORCED);
    EVENTUALLY(LONG_MS, has_ended());
    assert_true(is_there("asked"));
    assert_true(hf_boot_ns() >= forced_ns + GRACE_MS * HF_MS_NS);
    assert_true(hf_boot_ns() < deadline_ns - 10000 * HF_MS_NS);
    assert_true(hf_lock_guard_asked(lock));
    assert_int_equal(reap(), 128 + SIGKILL);
}

static void a_group_is_spared_when_it_is_not_guarded_any_more(void **state)
{
    (void)state;
    hf_lock *lock = take();
    start_group("exec sleep 1000");
    assert_int_equal(hf_lock_guard(lock, leader, GRACE_MS, NULL), HF_OK);
    assert_int_equal(hf_lock_guard(lock, leader, GRACE_MS, NULL),
                     HF_INVALID); /* one each */
    assert_int_equal(hf_lock_guard(lock, 0, 0, NULL), HF_OK);
    hf_fixture_signal(&fixture.redis, SIGSTOP);
    EVENTUALLY(LONG_MS, !hf_lock_held(lock));
    ALWAYS(200, !has_ended());
}

static void closing_the_client_kills_what_is_guarded(void **state)
{
    (void)state;
    hf_lock *lock = take();
    start_group("trap '' TERM; while :; do sleep 0.02; done");
    assert_int_equal(hf_lock_guard(lock, leader, GRACE_MS, NULL), HF_OK);
    hf_lock_client_close(locks, NULL, NULL);
    locks = NULL;
    assert_int_equal(reap(), 128 + SIGKILL);
}

static void what_cannot_be_guarded_is_refused(void **state)
{
    char detail[HF_DETAIL_SIZE] = "";
    (void)state;
    hf_lock *lock = take();
    assert_int_equal(hf_lock_guard(lock, 0, 0, NULL), HF_OK); /* nothing to forget */
    assert_int_equal(hf_lock_guard(lock, 1, 0, NULL), HF_INVALID);
    assert_int_equal(hf_lock_guard(lock, -5, 0, detail), HF_INVALID);
    assert_string_equal(detail, "expected a process group, found -5");
    assert_int_equal(hf_lock_guard(lock, 99, LEASE_MS / 2 + 1, detail), HF_INVALID);
    assert_non_null(strstr(detail, "expected a grace of at most"));
    assert_int_equal(hf_lock_release_wait(lock, NULL), HF_RELEASE_DONE);
    for (uint32_t lease_ms = 100; lease_ms < 300; lease_ms += 100) {
        lock = hf_lock_must(&fixture, locks, "job",
                            (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = lease_ms});
        assert_int_equal(hf_lock_guard(lock, 99, lease_ms / 2, NULL), HF_INVALID);
        (void)hf_lock_release_wait(lock, NULL);
    }
    hf_lock_client *none = open_client("/nonexistent/holdfast");
    lock = hf_lock_must(&fixture, none, "job",
                        (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LEASE_MS});
    start_group("exec sleep 1000");
    assert_int_equal(hf_lock_guard(lock, leader, GRACE_MS, detail), HF_CONFIG);
    assert_non_null(strstr(detail, "/nonexistent/holdfast"));
    assert_int_equal(hf_lock_guard(lock, leader, GRACE_MS, NULL), HF_CONFIG);
    assert_false(has_ended());
    hf_lock_client_close(none, NULL, NULL);
    assert_false(has_ended());
}

/* A healthy holder renews at a third, and has 100 ms to hear the answer. */
static void a_grace_leaves_room_for_a_renewal(void **state)
{
    (void)state;
    for (uint32_t lease_ms = HF_LOCK_GUARD_LEASE_MIN_MS; lease_ms < 100000; lease_ms++) {
        uint64_t asked_ns =
            hf_lease_deadline(0, lease_ms) - hf_lock_grace_max(lease_ms) * HF_MS_NS;
        assert_true(hf_lock_grace_max(lease_ms) <= lease_ms / 2);
        assert_true(asked_ns >= (lease_ms / 3 + 100) * HF_MS_NS);
    }
    assert_int_equal(hf_lock_grace_max(HF_LOCK_LEASE_MS), HF_LOCK_LEASE_MS / 2);
    assert_int_equal(hf_lock_grace_max(HF_LOCK_GUARD_LEASE_MIN_MS - 1), 0);
}

static void a_lease_is_not_set_below_the_grace_of_what_runs(void **state)
{
    char detail[HF_DETAIL_SIZE] = "";
    (void)state;
    hf_lock *lock = take();
    start_group("exec sleep 1000");
    assert_int_equal(hf_lock_extend_wait(lock, LEASE_MS / 3, NULL), HF_OK);
    assert_int_equal(hf_lock_extend_wait(lock, LEASE_MS, NULL), HF_OK);
    assert_int_equal(hf_lock_guard(lock, leader, LEASE_MS / 3, NULL), HF_OK);
    assert_int_equal(hf_lock_extend_wait(lock, LEASE_MS / 3, detail), HF_INVALID);
    assert_non_null(strstr(detail, "the grace of the guarded group"));
    assert_int_equal(hf_lock_extend_wait(lock, LEASE_MS, NULL), HF_OK);
    assert_int_equal(hf_lock_guard(lock, 0, 0, NULL), HF_OK);
    assert_int_equal(hf_lock_extend_wait(lock, LEASE_MS / 3, NULL), HF_OK);
}

#define TEST(name) cmocka_unit_test_prestate_setup_teardown(name, begin, end, &fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_group_lives_while_the_lock_is_renewed),
        TEST(a_group_is_asked_before_the_deadline_and_killed_at_it),
        TEST(a_group_is_asked_as_soon_as_its_lock_is_lost),
        TEST(a_group_is_spared_when_it_is_not_guarded_any_more),
        TEST(closing_the_client_kills_what_is_guarded),
        TEST(what_cannot_be_guarded_is_refused),
        cmocka_unit_test(a_grace_leaves_room_for_a_renewal),
        TEST(a_lease_is_not_set_below_the_grace_of_what_runs),
    };
    hf_lock_fixture_up(&fixture, NULL);
    hf_tempdir_make(dir);
    int failures = cmocka_run_group_tests_name("lock_guard", tests, NULL, NULL);
    hf_tempdir_remove(dir);
    hf_lock_fixture_down(&fixture);
    return failures;
}
