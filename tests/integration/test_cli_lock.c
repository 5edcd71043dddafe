/* test_cli_lock.c - `holdfast lock`: its exit status, the environment of the command, the
 * order of holders, signals and the terminal. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "holdfast/lock.h"
#include "tests/support/cli_try.h"
#include "tests/support/eventually.h"
#include "tests/support/unix_socket.h"

enum { LONG_MS = 30000, ROUNDS = 20 };

static hf_proc holder; /* another `holdfast lock` */

static void remove_marks(void)
{
    static const char *const names[] = {"ready", "out", "err", "go", "left"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        hf_cli_fixture_remove(&hf_try_fixture, names[i]);
}

static int begin(void **state)
{
    remove_marks();
    return hf_try_clean(state);
}

static int end(void **state)
{
    (void)state;
    hf_proc_kill(&holder);
    return 0;
}

static bool is_there(const char *name)
{
    return hf_cli_fixture_has(&hf_try_fixture, name);
}

/* Runs the command with a program of several words; "" keeps what it prints. */
static int run(const char *options, const char *script)
{
    char path[HF_CLI_PATH], line[HF_CLI_PATH + 128];
    hf_cli_fixture_put(&hf_try_fixture, "script", script);
    hf_cli_fixture_path(&hf_try_fixture, "script", path);
    (void)snprintf(line, sizeof line, "lock @ -c w.yaml %s sh %s", options, path);
    return hf_cli_fixture_run(&hf_try_fixture, line, NULL, NULL);
}

static void begin_lock(hf_proc *proc, const char *options, const char *script)
{
    char path[HF_CLI_PATH], line[HF_CLI_PATH + 128];
    hf_cli_fixture_put(&hf_try_fixture, "held", script);
    hf_cli_fixture_path(&hf_try_fixture, "held", path);
    (void)snprintf(line, sizeof line, "lock @ -c w.yaml %s sh %s", options, path);
    hf_cli_fixture_begin(&hf_try_fixture, proc, line, "log");
}

/* Somebody who holds it until the file "go" is there. */
static void hold(const char *options)
{
    begin_lock(&holder, options,
               ": >ready; while [ ! -e go ]; do sleep 0.02; done; exit 3");
    EVENTUALLY(LONG_MS, is_there("ready"));
}

static void let_go(int code)
{
    hf_cli_fixture_put(&hf_try_fixture, "go", "");
    assert_true(hf_proc_wait(&holder, LONG_MS));
    assert_int_equal(holder.status, code);
}

/* ---- what it exits with ---- */

/* It is there, and does not answer. Who only tries hears of that soon, who waits for a
 * while no later than he would wait. */
static void a_single_try_does_not_wait_for_redis(void **state)
{
    static const char *const lines[] = {
        "lock -c mute.yaml -n a true", "lock -c mute.yaml --nb a true",
        "lock -c mute.yaml -w 1.5 a true", "lock -c mute.yaml --timeout=1.5 a true"};
    char path[HF_CLI_PATH], config[HF_CLI_PATH + 64];
    (void)state;
    hf_cli_fixture_path(&hf_try_fixture, "mute", path);
    int listener = hf_socket_listen(path);
    assert_true(listener >= 0);
    (void)snprintf(config, sizeof config,
                   "redis:\n  url: unix://%s\n  connect_timeout: 1m\n", path);
    hf_cli_fixture_put(&hf_try_fixture, "mute.yaml", config);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        uint64_t from_ms = hf_test_now_ms();
        hf_try_run(lines[i], 69);
        assert_true(hf_test_now_ms() - from_ms >= (i < 2 ? 900U : 1400U));
    }
    (void)close(listener);
    (void)unlink(path);
}

/* ---- who gets it ---- */

static void one_that_is_busy_is_not_had(void **state)
{
    (void)state;
    hold("a");
    hf_try_run("lock @ -c w.yaml -n a true", 1);
    assert_string_equal(hf_try_fixture.err, "");
    hf_try_run("lock @ -c w.yaml -w 0 -E 9 a true", 9);
    hf_try_run("lock @ -c w.yaml -w 0.25 -E 0 a false", 0);
    hf_try_run("lock @ -c w.yaml --spin -w .1 a true", 1);
    hf_try_run("lock @ -c w.yaml -nv a true", 1);
    hf_try_has(hf_try_fixture.err, "another client holds lock 'a'");
    hf_try_run("lock @ -c w.yaml --nonblocking -v a true", 1);
    hf_try_has(hf_try_fixture.err, "another client holds lock 'a'");
    hf_try_run("lock @ -c w.yaml -n b true", 0);
    let_go(3);
    hf_try_run("lock @ -c w.yaml -n a true", 0);
}

/* Its lease is over by Redis's clock, and the waits of several commands prove it. */
static void a_dead_holder_is_told_and_tries_add_up(void **state)
{
    static const char line[] = "lock @ -c w.yaml -w 0.1 a true";
    unsigned refused = 0;
    (void)state;
    begin_lock(&holder, "--ttl 1s a", ": >ready; exec sleep 1000");
    EVENTUALLY(LONG_MS, is_there("ready"));
    hf_proc_signal(&holder, SIGKILL);
    assert_true(hf_proc_wait(&holder, LONG_MS));
    hf_test_pause_ms(1500);
    hf_try_run("lock @ -c w.yaml -n a true", 1);
    hf_try_has(hf_try_fixture.err, "lock 'a' is held; its holder has not renewed for ");
    while (hf_cli_fixture_run(&hf_try_fixture, line, NULL, NULL) == 1 && refused < 100)
        refused++;
    assert_true(refused < 100);
    hf_try_run("lock @ -c w.yaml -n a true", 0);
}

static void the_waiter_gets_it_next(void **state)
{
    hf_proc next = {0};
    (void)state;
    hold("a");
    begin_lock(&next, "-v -w 60 a", "exit 5");
    assert_false(hf_proc_wait(&next, 100));
    let_go(3);
    assert_true(hf_proc_wait(&next, LONG_MS));
    assert_int_equal(next.status, 5);
}

static void modes_go_beside_each_other_as_they_should(void **state)
{
    (void)state;
    hold("-s t/a,t/b");
    hf_try_run("lock @ -c w.yaml -s -n t/a true", 0);
    hf_try_run("lock @ -c w.yaml -x -n t/a true", 1);
    hf_try_run("lock @ -c w.yaml -n t/c,t/b true", 1);
    hf_try_run("locks show @ t/c", 1);
    let_go(3);
    (void)unlink("ready");
    remove_marks();
    hold("--permits 2/3 p");
    hf_try_run("lock @ -c w.yaml --permits 1/3 -n p true", 0);
    hf_try_run("lock @ -c w.yaml --permits 2/3 -n p true", 1);
    hf_try_run("lock @ -c w.yaml --permits 1/4 -n p true", 65); /* it has another limit */
    let_go(3);
}

/* ---- what the command sees ---- */

static void the_environment_tells_of_the_lock(void **state)
{
    (void)state;
    assert_int_equal(run("t/a,t/b", "env | grep ^HOLDFAST_LOCK_ | sort"), 0);
    long long fence = 0, deadline_ms = 0;
    int fd = -1;
    const char *at = strstr(hf_try_fixture.out, "_DEADLINE_UNIX_MS=");
    assert_true(at != NULL && sscanf(at, "_DEADLINE_UNIX_MS=%lld", &deadline_ms) == 1);
    at = strstr(hf_try_fixture.out, "_FENCE=");
    assert_true(at != NULL && sscanf(at, "_FENCE=%lld", &fence) == 1);
    at = strstr(hf_try_fixture.out, "_FD=");
    assert_true(at != NULL && sscanf(at, "_FD=%d", &fd) == 1);
    hf_try_has(hf_try_fixture.out, "HOLDFAST_LOCK_NAME=t/a,t/b\n");
    hf_try_has(hf_try_fixture.out, "HOLDFAST_LOCK_OWNER=");
    assert_true(fence > 1000000000000000 && fd > 2);
    assert_true(deadline_ms > fence / 1000);
}

static int count_of(const char *text, const char *part)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++)
        n++;
    return n;
}

/* What the test itself was given is passed on; one pipe more reports a loss. */
static void no_descriptor_of_ours_leaks(void **state)
{
    static const char *const kinds[] = {"socket:[", "anon_inode:", "/dev/tty", "pipe:["};
    static const int more[] = {0, 0, 0, 1};
    const char *const args[] = {"ls", "-l", "/proc/self/fd", NULL};
    char path[HF_CLI_PATH];
    int under[4];
    (void)state;
    hf_try_run("lock @ a ls -l /proc/self/fd", 0);
    for (size_t i = 0; i < 4; i++)
        under[i] = count_of(hf_try_fixture.out, kinds[i]);
    hf_cli_fixture_put(&hf_try_fixture, "plain", "");
    hf_cli_fixture_path(&hf_try_fixture, "plain", path);
    assert_int_equal(
        hf_proc_run(&(hf_proc_options){.args = args, .out = path, .err = path}, LONG_MS),
        0);
    const char *plain = hf_cli_fixture_get(&hf_try_fixture, "plain");
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(under[i], count_of(plain, kinds[i]) + more[i]);
}

/* ---- its end ---- */

static void what_stays_in_the_background_keeps_the_lock(void **state)
{
    (void)state;
    begin_lock(&holder, "-v a",
               "(: >left; while [ ! -e go ]; do sleep 0.02; done) & exit 4");
    EVENTUALLY(LONG_MS, is_there("left"));
    EVENTUALLY(LONG_MS, strstr(hf_cli_fixture_get(&hf_try_fixture, "log"),
                               "waiting for the command's other processes") != NULL);
    hf_try_run("lock @ -c w.yaml -n a true", 1);
    assert_false(hf_proc_wait(&holder, 50));
    let_go(4);
    hf_try_run("lock @ -c w.yaml -n a true", 0);
}

/* Who goes on changes while it is looked for: each ends when it has made the next. */
static void any_process_left_of_the_group_keeps_the_lock(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        assert_int_equal(run("a", "rm -f left; (sh -c 'sleep 0.1; : >left' &) & exit 3"),
                         3);
        assert_true(is_there("left"));
    }
}

static void a_process_that_leaves_the_group_is_not_waited_for(void **state)
{
    (void)state;
    begin_lock(
        &holder, "a",
        "setsid sh -c ': >left; while [ ! -e go ]; do sleep 0.02; done; : >gone' & "
        "exit 0");
    EVENTUALLY(LONG_MS, is_there("left"));
    assert_true(hf_proc_wait(&holder, LONG_MS));
    assert_int_equal(holder.status, 0);
    hf_cli_fixture_put(&hf_try_fixture, "go", "");
    EVENTUALLY(LONG_MS, is_there("gone")); /* it does not outlive the test */
}

static void signals_are_passed_on(void **state)
{
    static const int passed[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
    (void)state;
    for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++) {
        char script[128];
        (void)snprintf(script, sizeof script,
                       "trap 'exit %d' %d; : >ready; while :; do sleep 0.02; done",
                       (int)i + 40, passed[i]);
        begin_lock(&holder, "a", script);
        EVENTUALLY(LONG_MS, is_there("ready"));
        hf_proc_signal(&holder, passed[i]);
        assert_true(hf_proc_wait(&holder, LONG_MS));
        assert_int_equal(holder.status, (int)i + 40);
        remove_marks();
    }
}

static void a_signal_ends_the_wait(void **state)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
    (void)state;
    hold("a");
    for (size_t i = 0; i < sizeof ending / sizeof ending[0]; i++) {
        hf_proc waiter = {0};
        begin_lock(&waiter, "a", ": >left");
        EVENTUALLY(LONG_MS, hf_fixture_number(&hf_try_fixture.redis,
                                              "ZCARD hf:lock:{a}:q:a") == 1);
        hf_proc_signal(&waiter, ending[i]);
        assert_true(hf_proc_wait(&waiter, LONG_MS));
        assert_int_equal(waiter.status, 128 + ending[i]);
        EVENTUALLY(LONG_MS, hf_fixture_number(&hf_try_fixture.redis,
                                              "ZCARD hf:lock:{a}:q:a") == 0);
    }
    let_go(3);
    assert_false(is_there("left"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
        TEST(a_single_try_does_not_wait_for_redis),
        TEST(one_that_is_busy_is_not_had),
        TEST(a_dead_holder_is_told_and_tries_add_up),
        TEST(the_waiter_gets_it_next),
        TEST(modes_go_beside_each_other_as_they_should),
        TEST(the_environment_tells_of_the_lock),
        TEST(no_descriptor_of_ours_leaks),
        TEST(what_stays_in_the_background_keeps_the_lock),
        TEST(any_process_left_of_the_group_keeps_the_lock),
        TEST(a_process_that_leaves_the_group_is_not_waited_for),
        TEST(signals_are_passed_on),
        TEST(a_signal_ends_the_wait),
    };
    hf_try_up(HF_TEST_COMMAND, HF_CLI_PATIENT);
    int failures = cmocka_run_group_tests_name("cli_lock", tests, NULL, NULL);
    hf_try_down();
    return failures;
}
