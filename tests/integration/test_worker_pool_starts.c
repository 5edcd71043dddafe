/* test_worker_pool_starts.c - processes of a pool that do not start, or are refused when
 * they do, and what happens to jobs meanwhile. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tests/support/pool_test.h"
#include "tests/support/proc.h"

/* Its ticks come each 500 ms. Its processes end if it stands still for half of the lease,
 * which a busy machine may have it do. */
static const hf_worker_opts quick = {HF_WORKER_OPTS_INIT, .lease_ms = 6000,
                                     .minder = HF_TEST_COMMAND};

static void jobs_wait_for_a_program_that_fails_to_start(void **state)
{
    (void)state;
    hf_write_file(f.start, "exit 1");
    start(&quick, pool_of(1, NULL), false);
    EVENTUALLY(SOON_MS, said("a process of a pool does not live") > 0);
    assert_true(said("no module named app") > 0);
    put("a", "noop", "");
    put("b", "t", "ok"); /* of the handler in C: its queue is served */
    EVENTUALLY(SOON_MS, ended("b", "done"));
    EVENTUALLY(SOON_MS, did("start ") >= 2);
    assert_true(is_untouched("a"));
    assert_int_equal(said("outcome=dead"), 0);
    hf_write_file(f.start, "");
    EVENTUALLY(SOON_MS, ended("a", "done"));
    is_served("c");
}

static void starts_that_fail_come_less_and_less_often(void **state)
{
    (void)state;
    hf_write_file(f.start, "exit 1");
    start(&quick, pool_of(4, NULL), false);
    EVENTUALLY(SOON_MS, said("next_try=") >= 4);
    /* 4 at first, so the fourth failure in a row: 8 s, a tenth more or less. */
    EVENTUALLY(SOON_MS, said("next_try=7") + said("next_try=8") > 0);
    assert_true(did("start ") <= 5);
}

/* Also before all that it has left behind has gone. */
static void no_start_comes_before_the_back_off_of_one_that_failed(void **state)
{
    (void)state;
    hf_write_file(f.start, "exit 1");
    start(&quick, pool_of(1, NULL), false);
    EVENTUALLY(SOON_MS, said("next_try=") == 1);
    assert_int_equal(did("start "), 1);
}

static void one_that_is_not_ready_in_time_is_killed(void **state)
{
    (void)state;
    hf_write_file(f.start, "never");
    hf_pool pool = impatient(pool_of(1, NULL));
    pool.start_timeout_ms = 300;
    start(&quick, pool, false);
    EVENTUALLY(SOON_MS, said("it was not ready in time") > 0);
    hf_write_file(f.start, "");
    is_served("a");
}

static void another_version_is_refused_by_name(void **state)
{
    (void)state;
    start(&quick, pool_of(1, ARGS("version=2")), false);
    EVENTUALLY(SOON_MS, said("a process of a pool does not live") > 0);
    assert_int_equal(said("a process of a pool is ready"), 0);
    assert_true(said("version") > 0);
}

static void a_second_ready_is_a_protocol_error(void **state)
{
    (void)state;
    hf_write_file(f.start, "twice");
    start(&quick, pool_of(1, NULL), false);
    EVENTUALLY(SOON_MS, said("protocol error") > 0);
    hf_write_file(f.start, "");
    is_served("a");
}

static void a_type_has_one_handler(void **state)
{
    (void)state;
    hf_write_file(f.types, "noop t");
    start(&quick, pool_of(1, NULL), false);
    EVENTUALLY(SOON_MS, said("its type 't' has a handler of its own already") > 0);
    put("b", "t", "ok");
    EVENTUALLY(SOON_MS, ended("b", "done"));
    hf_write_file(f.types, "noop");
    is_served("a");
}

static void a_process_that_offers_something_else_is_refused(void **state)
{
    (void)state;
    hf_write_file(f.types, "noop exit");
    start(&quick, pool_of(1, NULL), true);
    is_served("a");
    hf_write_file(f.types, "noop echo");
    put("b", "exit", "1");
    EVENTUALLY(SOON_MS, said("after a new version of the program") > 0);
    assert_int_equal(said("a process of a pool is ready"), 1);
    hf_write_file(f.types, "exit noop");
    is_served("c");
}

/* A pool with a process that died, and cannot be replaced, does not stop its queue. */
static void a_pool_that_goes_down_does_not_stop_its_queue(void **state)
{
    (void)state;
    start(&quick, impatient(pool_of(1, NULL)), true);
    put("a", "die-idle", "0");
    EVENTUALLY(SOON_MS, did("begin") == 1);
    pid_t pid = hf_pool_fixture_pid_of(&f, "a");
    hf_write_file(f.start, "never");
    EVENTUALLY(SOON_MS, !hf_pid_alive(pid));
    EVENTUALLY(SOON_MS, did("start ") == 2);
    pid = 0;
    hf_pool_fixture_put_many(&f, "n", "noop", "", 20); /* which wait too long */
    hf_test_pause_ms(300);
    hf_write_file(f.start, "exit 1");
    FILE *log = fopen(f.log, "re");
    char line[128];
    while (log != NULL && fgets(line, sizeof line, log) != NULL)
        if (strncmp(line, "start ", 6) == 0)
            pid = (pid_t)strtol(line + 6, NULL, 10);
    if (log != NULL)
        (void)fclose(log);
    assert_true(pid > 1 && hf_pid_alive(pid));
    kill(pid, SIGKILL);
    EVENTUALLY(SOON_MS, said("a process of a pool does not live") > 0);
    put("b", "t", "ok");
    EVENTUALLY(5000, ended("b", "done"));
    hf_write_file(f.start, "");
    EVENTUALLY(60000, meta("done") == 22);
    assert_int_equal(said("outcome=crashed"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HF_POOL_TEST(jobs_wait_for_a_program_that_fails_to_start, &f),
        HF_POOL_TEST(starts_that_fail_come_less_and_less_often, &f),
        HF_POOL_TEST(no_start_comes_before_the_back_off_of_one_that_failed, &f),
        HF_POOL_TEST(one_that_is_not_ready_in_time_is_killed, &f),
        HF_POOL_TEST(another_version_is_refused_by_name, &f),
        HF_POOL_TEST(a_second_ready_is_a_protocol_error, &f),
        HF_POOL_TEST(a_type_has_one_handler, &f),
        HF_POOL_TEST(a_process_that_offers_something_else_is_refused, &f),
        HF_POOL_TEST(a_pool_that_goes_down_does_not_stop_its_queue, &f),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
