/* test_handler_lock.c - hf-handler tells a process that runs from one that was killed and
 * had no processor yet to end on: only the first is an overlap. */
#define _GNU_SOURCE /* CPU_SET */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/eventually.h"
#include "tests/support/proc.h"
#include "tests/support/tempdir.h"

enum {
    PATH_SIZE = HF_TEMPDIR_SIZE + 32,
    TEXT_SIZE = 65536,
    SOON_MS = 15000,
    TRIES = 1000
};

static char dir[HF_TEMPDIR_SIZE], fifo[PATH_SIZE], lock[PATH_SIZE], notes[PATH_SIZE];
static char log_to[PATH_SIZE + 8];
static hf_proc busy, first, second;
static int in; /* what the second one reads */

static int up(void **state)
{
    (void)state;
    hf_tempdir_make(dir);
    (void)snprintf(fifo, sizeof fifo, "%s/in", dir);
    (void)snprintf(notes, sizeof notes, "%s/notes", dir);
    (void)snprintf(log_to, sizeof log_to, "log=%s", notes);
    (void)snprintf(lock, sizeof lock, "lock=%s", dir);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_proc_kill(&busy);
    hf_proc_kill(&first);
    hf_proc_kill(&second);
    hf_tempdir_remove(dir);
    return 0;
}

static bool noted(const char *kind, pid_t pid)
{
    static char text[TEXT_SIZE];
    char line[64];
    (void)snprintf(line, sizeof line, "%s %ld ", kind, (long)pid);
    return strstr(hf_read_file(notes, text, sizeof text), line) != NULL;
}

static void start(hf_proc *p, const char *file, const char *action, const char *last)
{
    static const char *const env[] = {"HOLDFAST_JOB_ID=job", NULL};
    static const char handler[] = HF_TEST_BUILD "/tests/helpers/hf-handler";
    const char *const args[] = {handler, log_to, action, last, NULL};
    hf_proc_start(p, &(hf_proc_options){.args = args, .env = env, .in = file});
}

/* The first one has the lock; the second one has started, and asks for it when it is told
 * to. */
static void start_both(void)
{
    (void)unlink(notes);
    start(&first, NULL, lock, "sleep=60000");
    EVENTUALLY(SOON_MS, noted("beat", first.pid));
    in = open(fifo, O_RDWR | O_CLOEXEC);
    assert_true(in >= 0);
    start(&second, fifo, "payload", NULL);
    EVENTUALLY(SOON_MS, noted("start", second.pid));
}

static pid_t ask_for_it(void)
{
    pid_t pid = second.pid;
    assert_true(write(in, lock, strlen(lock)) == (ssize_t)strlen(lock));
    assert_int_equal(close(in), 0);
    assert_true(hf_proc_wait(&second, SOON_MS));
    assert_int_equal(second.status, 0);
    return pid;
}

static void one_that_runs_is_an_overlap(void **state)
{
    (void)state;
    start_both();
    pid_t pid = ask_for_it();
    assert_true(noted("overlap", pid));
    assert_false(noted("dying", pid));
}

/* A process that wants a processor only when nobody else does, where another one spins.
 */
static void starve(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(first.pid, sizeof one, &one), 0);
    assert_int_equal(sched_setaffinity(busy.pid, sizeof one, &one), 0);
    assert_int_equal(sched_setscheduler(first.pid, SCHED_IDLE, &(struct sched_param){0}),
                     0);
}

static void one_that_was_killed_is_none(void **state)
{
    unsigned tries = 0;
    bool dying = false;
    (void)state;
    start(&busy, NULL, "spin=600000", NULL);
    while (!dying) {
        assert_true(tries++ < TRIES);
        start_both();
        starve();
        hf_proc_signal(&first, SIGKILL);
        pid_t pid = ask_for_it();
        dying = noted("dying", pid);
        assert_false(noted("overlap", pid));
        hf_proc_kill(&first);
    }
    print_message("seen in try %u\n", tries);
}

/* As by a process that was killed between its flock() and the number that it writes. */
static void write_other_holder(pid_t pid)
{
    char path[PATH_SIZE], text[32];
    (void)snprintf(path, sizeof path, "%s/job", dir);
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    int n = snprintf(text, sizeof text, "%ld\n", (long)pid);
    assert_true(fd >= 0 && write(fd, text, (size_t)n) == n);
    assert_int_equal(close(fd), 0);
}

static void one_that_was_killed_before_it_wrote_anything_is_none(void **state)
{
    unsigned tries = 0;
    bool dying = false;
    (void)state;
    start(&busy, NULL, "spin=600000", NULL);
    while (!dying) {
        assert_true(tries++ < TRIES);
        start_both();
        write_other_holder(busy.pid);
        starve();
        hf_proc_signal(&first, SIGKILL);
        pid_t pid = ask_for_it();
        dying = noted("dying", pid);
        assert_false(noted("overlap", pid));
        hf_proc_kill(&first);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_that_runs_is_an_overlap, up, down),
        cmocka_unit_test_setup_teardown(one_that_was_killed_is_none, up, down),
        cmocka_unit_test_setup_teardown(
            one_that_was_killed_before_it_wrote_anything_is_none, up, down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
