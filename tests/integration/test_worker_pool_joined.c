/* test_worker_pool_joined.c - a program that was started by hand joins a pool: it gets
 * the jobs, and the worker ends it only if it must. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/pool_test.h"
#include "tests/support/proc.h"
#include "tests/support/skip.h"

enum { NOBODY = 65534 };

static const hf_worker_opts quick = {HF_WORKER_OPTS_INIT, .lease_ms = 6000,
                                     .minder = HF_TEST_COMMAND};
static char path[108];
static hf_proc joined;

static hf_pool listening(uint32_t processes)
{
    hf_pool pool = pool_of(processes, NULL);
    snprintf(path, sizeof path, "%s/join", f.queue.redis.dir);
    pool.listen = path;
    return pool;
}

static hf_pool only_listening(void)
{
    hf_pool pool = listening(1);
    pool.argv = NULL;
    return pool;
}

static void come(const char *const *more)
{
    static const char *words[HF_POOL_FIXTURE_ARGS];
    char variable[180];
    snprintf(variable, sizeof variable, "HOLDFAST_SOCKET=%s", path);
    hf_pool_fixture_argv(&f, words, more);
    const hf_proc_options how = {.args = words, .env = ARGS(variable)};
    hf_proc_start(&joined, &how);
}

/* Beside one of its own. */
static void start_both(void)
{
    start(&quick, listening(1), true);
    come(NULL);
    EVENTUALLY(SOON_MS, said("a process of a pool is ready") == 2);
    EVENTUALLY(SOON_MS, did("stop ") == 1);
}

static int teardown(void **state)
{
    hf_proc_kill(&joined);
    f.alone = false;
    return hf_pool_fixture_down(state);
}

static bool runs_in(const char *id, pid_t pid)
{
    return hf_pool_fixture_pid_of(&f, id) == pid;
}

static void it_takes_the_place_of_a_process(void **state)
{
    (void)state;
    start_both();
    put("a", "noop", "");
    put("b", "noop", "");
    EVENTUALLY(SOON_MS, ended("a", "done") && ended("b", "done"));
    assert_true(runs_in("a", joined.pid) && runs_in("b", joined.pid));
    hf_proc_kill(&joined);
    is_served("c");
    assert_int_not_equal(hf_pool_fixture_pid_of(&f, "c"), joined.pid);
}

static void one_of_several_processes_stays(void **state)
{
    (void)state;
    start(&quick, listening(2), true);
    EVENTUALLY(SOON_MS, said("a process of a pool is ready") == 2);
    come(NULL);
    EVENTUALLY(SOON_MS, did("stop ") == 1);
    ALWAYS(300, did("stop ") == 1);
}

static void without_a_program_a_job_waits_for_one_that_joins(void **state)
{
    (void)state;
    f.alone = true;
    start(&quick, only_listening(), false);
    EVENTUALLY(SOON_MS, said("programs may join a pool") == 1);
    put("a", "noop", "");
    ALWAYS(300, !ended("a", "done"));
    assert_int_equal(said("outcome="), 0);
    come(NULL);
    EVENTUALLY(SOON_MS, ended("a", "done"));
    assert_true(runs_in("a", joined.pid));
    /* The next one may have other types: somebody works on it. */
    hf_proc_kill(&joined);
    EVENTUALLY(SOON_MS, said("a process of a pool has ended") == 1);
    hf_write_file(f.types, "echo");
    come(NULL);
    put("b", "echo", "");
    EVENTUALLY(SOON_MS, ended("b", "done"));
    assert_int_equal(said("outcome=crashed"), 0);
}

static void other_handlers_do_not_wait_for_one_that_joins(void **state)
{
    (void)state;
    start(&quick, only_listening(), false);
    put("b", "t", "ok");
    EVENTUALLY(SOON_MS, ended("b", "done"));
}

/* A debugger was ended with it: that says nothing about the job. */
static void its_end_in_a_run_is_no_crash(void **state)
{
    (void)state;
    start_both();
    put("a", "gentle", "");
    EVENTUALLY(SOON_MS, did("begin") == 1);
    hf_proc_kill(&joined);
    EVENTUALLY(SOON_MS, hf_pool_fixture_ended(&f, "a", "released", ""));
    EVENTUALLY(SOON_MS, did("begin") == 2);
    assert_int_equal(said("outcome=crashed"), 0);
    assert_string_equal(hf_pool_fixture_crashes(&f, "a"), "(nil)");
}

/* The job may run elsewhere now. */
static void it_is_killed_if_the_lock_of_its_run_is_lost(void **state)
{
    (void)state;
    start_both();
    put("a", "gentle", "");
    EVENTUALLY(SOON_MS, did("begin") == 1);
    f.queue.broken = true;
    hf_test_take_over(&f.queue.redis, "q", "a");
    EVENTUALLY(SOON_MS, ended("a", "lost"));
    assert_true(hf_proc_wait(&joined, SOON_MS));
    assert_int_equal(joined.status, 128 + SIGKILL);
}

static void it_is_let_go_when_it_closes_its_socket(void **state)
{
    (void)state;
    start_both();
    put("a", "close", "");
    EVENTUALLY(SOON_MS, did("close ") == 1 && ended("a", "done"));
    is_served("b");
    assert_false(runs_in("b", joined.pid));
    ALWAYS(1300, hf_pid_alive(joined.pid));
    assert_int_equal(said("protocol error"), 0);
}

/* It stands in a debugger, perhaps. */
static void it_is_let_go_if_it_does_not_heed_the_end_of_the_worker(void **state)
{
    (void)state;
    start_both();
    hf_proc_signal(&joined, SIGSTOP);
    assert_int_equal(hf_worker_fixture_stop(&f.worker), HF_OK);
    assert_true(hf_pid_alive(joined.pid));
    assert_int_equal(access(path, F_OK), -1);
}

static void it_is_killed_with_its_run_at_the_end_of_the_worker(void **state)
{
    (void)state;
    hf_worker_opts with = quick;
    with.shutdown_timeout_ms = 100;
    start(&with, listening(1), true);
    come(NULL);
    EVENTUALLY(SOON_MS, did("stop ") == 1);
    put("a", "deaf", "");
    EVENTUALLY(SOON_MS, did("begin") == 1);
    assert_int_equal(hf_worker_fixture_stop(&f.worker), HF_OK);
    assert_true(ended("a", "released"));
    assert_true(hf_proc_wait(&joined, SOON_MS));
    assert_int_equal(joined.status, 128 + SIGKILL);
}

static void one_that_says_nothing_takes_no_place(void **state)
{
    (void)state;
    start(&quick, listening(1), true);
    come(ARGS("ready-after=3600000"));
    EVENTUALLY(SOON_MS, did("start ") == 2);
    put("end", "die-idle", "0");
    EVENTUALLY(SOON_MS, did("start ") == 3);
    is_served("a");
    assert_false(runs_in("a", joined.pid));
    assert_int_equal(hf_worker_fixture_stop(&f.worker), HF_OK);
    assert_true(hf_pid_alive(joined.pid));
}

static void it_stays_while_a_reload_brings_the_same_types(void **state)
{
    (void)state;
    start_both();
    hf_pool pool = listening(1);
    reload(&quick, &pool, 1);
    is_served("a");
    assert_true(runs_in("a", joined.pid));
    assert_true(hf_pid_alive(joined.pid));
}

/* ---- who gets in ---- */

static void only_this_user_sees_the_socket(void **state)
{
    struct stat found;
    (void)state;
    mode_t mask = umask(0);
    start(&quick, listening(1), true);
    umask(mask);
    assert_int_equal(stat(path, &found), 0);
    assert_true(S_ISSOCK(found.st_mode));
    assert_int_equal(found.st_mode & 0777, 0600);
}

/* 0: it was let in as far as to see that it is not wanted. */
static int be_refused(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = "join"};
    char byte;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    return connect(fd, (const struct sockaddr *)&at, sizeof at) == 0 &&
                   recv(fd, &byte, 1, 0) <= 0
               ? 0
               : 1;
}

static void a_program_of_another_user_is_refused(void **state)
{
    (void)state;
    if (geteuid() != 0)
        HF_SKIP("only root can start a program of another user");
    start(&quick, listening(1), true);
    assert_int_equal(chmod(f.queue.redis.dir, 0755), 0);
    assert_int_equal(chmod(path, 0666), 0);
    pid_t other = fork();
    if (other == 0)
        /* The folders above may be closed to others. */
        _exit(chdir(f.queue.redis.dir) == 0 && setuid(NOBODY) == 0 ? be_refused() : 2);
    int status;
    assert_int_equal(waitpid(other, &status, 0), other);
    assert_int_equal(status, 0);
    EVENTUALLY(SOON_MS, said("a program may not join a pool") == 1);
    assert_int_equal(said("it belongs to another user"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name)                                                                       \
    cmocka_unit_test_prestate_setup_teardown(name, hf_pool_fixture_up, teardown, &f)
        TEST(it_takes_the_place_of_a_process),
        TEST(one_of_several_processes_stays),
        TEST(without_a_program_a_job_waits_for_one_that_joins),
        TEST(other_handlers_do_not_wait_for_one_that_joins),
        TEST(its_end_in_a_run_is_no_crash),
        TEST(it_is_killed_if_the_lock_of_its_run_is_lost),
        TEST(it_is_let_go_when_it_closes_its_socket),
        TEST(it_is_let_go_if_it_does_not_heed_the_end_of_the_worker),
        TEST(it_is_killed_with_its_run_at_the_end_of_the_worker),
        TEST(one_that_says_nothing_takes_no_place),
        TEST(it_stays_while_a_reload_brings_the_same_types),
        TEST(only_this_user_sees_the_socket),
        TEST(a_program_of_another_user_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
