/* test_cli_blocked.c - the command while the pipe of its standard error is full and is
 * not read: nothing that has a deadline waits for it. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
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

static void a_blocked_message_stops_neither_a_lock_nor_its_loss(void **state)
{
    (void)state;
    char pipe[HF_CLI_PATH];
    hf_proc lock = {0};
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
                                "echo >began; exec sleep 1000",
                                NULL};
    int reader = make_full(pipe);
    start(&lock, args, pipe);
    EVENTUALLY(20000, hf_cli_fixture_has(fixture, "began"));
    hf_try_run("locks release one @ --force --yes", 0);
    assert_true(hf_proc_wait(&lock, 20000));
    assert_int_equal(lock.status, 75);
    (void)close(reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_blocked_log_stops_neither_jobs_nor_the_end,
                               hf_try_clean),
        cmocka_unit_test_setup(a_blocked_message_stops_neither_a_lock_nor_its_loss,
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
