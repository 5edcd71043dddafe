/* test_cli_blocked.c - the command while the pipe of its standard error is full and is
 * not read: nothing that has a deadline waits for it. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/cli_try.h"
#include "tests/support/eventually.h"

static hf_cli_fixture *const fixture = &hf_try_fixture;

/* A pipe with a reader that never reads, full to the brim. */
static int make_full(char path[HF_CLI_PATH])
{
    char fill[4096] = "";
    hf_cli_fixture_remove(fixture, "pipe");
    hf_cli_fixture_path(fixture, "pipe", path);
    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    int writer = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0 && writer >= 0);
    while (write(writer, fill, sizeof fill) > 0)
        continue;
    (void)close(writer);
    return reader;
}

static void start(hf_proc *p, const char *const *args, const char *err)
{
    hf_proc_start(p, &(hf_proc_options){.args = args, .err = err, .dir = fixture->dir});
}

static void a_blocked_log_stops_neither_jobs_nor_the_end(void **state)
{
    (void)state;
    char pipe[HF_CLI_PATH];
    hf_proc worker = {0};
    const char *const args[] = {
        HF_TEST_COMMAND, "worker", "--redis", hf_fixture_url(&fixture->redis), "-c",
        "w.yaml",        NULL};
    int reader = make_full(pipe);
    start(&worker, args, pipe);
    hf_try_run("enqueue chat @ --wait", 0);
    hf_try_run("enqueue chat @ --wait", 0);
    hf_proc_signal(&worker, SIGTERM);
    assert_true(hf_proc_wait(&worker, 20000));
    assert_int_equal(worker.status, 0);
    (void)close(reader);
}

static void start_lock(hf_proc *lock, const char *pipe)
{
    const char *const args[] = {HF_TEST_COMMAND,
                                "lock",
                                "--redis",
                                hf_fixture_url(&fixture->redis),
                                "--verbose",
                                "--grace",
                                "100ms",
                                "one",
                                "--",
                                "sh",
                                "-c",
                                "echo $$ >pid; echo >began; exec sleep 1000",
                                NULL};
    hf_cli_fixture_remove(fixture, "began");
    start(lock, args, pipe);
    EVENTUALLY(20000, hf_cli_fixture_has(fixture, "began"));
    hf_try_run("locks release one @ --force --yes", 0);
}

static void a_blocked_message_stops_neither_a_lock_nor_its_loss(void **state)
{
    (void)state;
    char pipe[HF_CLI_PATH];
    hf_proc lock = {0};
    int reader = make_full(pipe);
    start_lock(&lock, pipe);
    assert_true(hf_proc_wait(&lock, 20000));
    assert_int_equal(lock.status, 75);
    (void)close(reader);
}

/* Its end waits 2 s for the pipe. False: this test was too slow to see that. */
static bool is_told_late(void)
{
    enum { LATE_MS = 400, GONE_MS = 1500 };
    char pipe[HF_CLI_PATH], said[1 << 17];
    size_t n = 0;
    hf_proc lock = {0};
    int reader = make_full(pipe);
    start_lock(&lock, pipe);
    pid_t pid = (pid_t)strtol(hf_cli_fixture_get(fixture, "pid"), NULL, 10);
    EVENTUALLY(20000, !hf_pid_alive(pid));
    const uint64_t gone_ms = hf_test_now_ms();
    hf_test_pause_ms(LATE_MS);
    const bool in_time = hf_test_now_ms() - gone_ms < GONE_MS;
    for (bool ended = false; !ended;) {
        ended = hf_proc_wait(&lock, 0);
        for (ssize_t got; (got = read(reader, said + n, sizeof said - 1 - n)) > 0;)
            n += (size_t)got;
    }
    said[n] = '\0';
    assert_int_equal(lock.status, 75);
    (void)close(reader);
    const char *text = said;
    while (text < said + n && *text == '\0') /* what filled it */
        text++;
    if (in_time)
        hf_try_has(text, "lock 'one' is lost: ");
    return in_time;
}

static void a_message_that_waits_is_told_when_the_pipe_flows_again(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++)
        if (is_told_late())
            return;
    print_message("the machine was too busy\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_blocked_log_stops_neither_jobs_nor_the_end,
                               hf_try_clean),
        cmocka_unit_test_setup(a_blocked_message_stops_neither_a_lock_nor_its_loss,
                               hf_try_clean),
        cmocka_unit_test_setup(a_message_that_waits_is_told_when_the_pipe_flows_again,
                               hf_try_clean),
    };
    hf_try_up(HF_TEST_COMMAND, HF_CLI_PATIENT
              "handlers:\n"
              "  - {type: chat, exec: [sh, -c, 'i=0; while [ $i -lt 3000 ]; do echo a "
              "line of text; i=$((i+1)); done']}\n");
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hf_try_down();
    return failed;
}
