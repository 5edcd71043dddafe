/* test_program_faults.c - real programs, run by worker/program/programs.h, when something
 * goes wrong: time is up, a program does not listen or leaves others behind, descriptors
 * run out, the minder dies. Nothing is left afterwards. This program is also its own
 * minder and its own helper, chosen by its first argument. */
/* For syscall: libc has no functions for capabilities. */
#define _GNU_SOURCE /* NOLINT(bugprone-reserved-identifier) */
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/program_fixture.h"
#include "tests/support/tempdir.h"

#include "base/base.h"
#include "base/clock.h"

static hf_program_fixture fixture;

/* ---- its time, and its family ---- */

static void a_time_out_asks_first_and_kills_after_the_grace(void **state)
{
    (void)state;
    hf_program_job job = hf_plain_job;
    hf_outcome o;
    job.timeout_ms = 3000; /* until then its trap is set */
    hf_program_fixture_script(&fixture, &o,
                              "trap 'echo asked; exit 0' TERM; sleep 8 & wait",
                              (hf_program){HF_PROGRAM_INIT, .grace_ms = 5000}, job);
    assert_true(hf_outcome_has(&o, 1, "asked"));
    assert_true(o.result.timed_out);
    assert_int_equal(o.result.verdict, HF_VERDICT_RETRY);
    assert_string_equal(o.error, "time-out after 3s");
    hf_outcome_free(&o);

    uint64_t from_ms = hf_test_now_ms();
    hf_program_fixture_script(&fixture, &o,
                              "trap '' TERM; echo deaf >&2; while :; do sleep 0.05; done",
                              (hf_program){HF_PROGRAM_INIT, .grace_ms = 300}, job);
    assert_true(hf_test_now_ms() - from_ms >= 3300);
    assert_true(o.result.timed_out && o.result.by_signal);
    assert_int_equal(o.result.status, SIGKILL);
    assert_string_equal(o.error, "time-out after 3s: deaf");
    hf_outcome_free(&o);
}

static void a_program_that_ended_while_the_loop_was_slow_has_not_timed_out(void **state)
{
    (void)state;
    const char *argv[] = {"true", NULL};
    hf_program spec = {HF_PROGRAM_INIT, .argv = argv};
    hf_program_job job = hf_plain_job;
    hf_outcome o;
    siginfo_t ended = {.si_pid = 0};
    job.timeout_ms = 150;
    assert_int_equal(hf_program_fixture_begin(&fixture, &o, &spec, job), HF_OK);
    hf_test_pause_ms(400); /* the loop does not turn */
    EVENTUALLY(15000, waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
                          ended.si_pid != 0);
    hf_program_fixture_finish(&fixture, &o);
    assert_false(o.result.timed_out);
    assert_int_equal(o.result.verdict, HF_VERDICT_DONE);
}

static void what_its_leader_leaves_in_the_group_is_killed(void **state)
{
    (void)state;
    hf_outcome o;
    hf_program_fixture_sh(
        &fixture, &o, "sleep 1000 & echo $!; (trap '' TERM HUP; sleep 1000) & echo $!");
    assert_int_equal(o.result.verdict, HF_VERDICT_DONE);
    for (size_t i = 0; i < 2; i++) {
        pid_t pid = hf_outcome_pid(&o, i);
        assert_true(pid > 1);
        EVENTUALLY(15000, !hf_pid_alive(pid));
    }
    hf_outcome_free(&o);
}

/* Nor does it outlive it. */
static void a_process_outside_the_group_cannot_delay_the_verdict(void **state)
{
    (void)state;
    hf_outcome o;
    char script[512];
    snprintf(script, sizeof script,
             "setsid sh -c 'echo $$; touch %s/left; exec sleep 1000' & "
             "while [ ! -e %s/left ]; do sleep 0.01; done; echo here; exit 7",
             fixture.dir, fixture.dir);
    uint64_t from_ms = hf_test_fair_ms();
    hf_program_fixture_sh(&fixture, &o, script);
    assert_true(hf_test_fair_ms() - from_ms < 4000);
    assert_int_equal(o.result.status, 7);
    assert_true(hf_outcome_has(&o, 1, "here"));
    pid_t left = hf_outcome_pid(&o, 0);
    assert_true(left > 1);
    assert_false(hf_pid_alive(left));
    hf_outcome_free(&o);
}

static void end_asks_and_kills_after_its_grace_or_at_once(void **state)
{
    (void)state;
    const char *polite[] = {"sh", "-c", "trap 'exit 9' TERM; echo up; sleep 1000 & wait",
                            NULL};
    const char *deaf[] = {"sh", "-c",
                          "trap '' TERM; echo up; while :; do sleep 0.05; done", NULL};
    const struct {
        const char *const *argv;
        uint32_t grace_ms;
        int status;
    } cases[] = {{polite, 5000, 9}, {deaf, 200, SIGKILL}, {deaf, 0, SIGKILL}};
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        hf_program spec = {HF_PROGRAM_INIT, .argv = cases[i].argv};
        hf_outcome o;
        assert_int_equal(hf_program_fixture_begin(&fixture, &o, &spec, hf_plain_job),
                         HF_OK);
        int lines = 0;
        for (; lines < 1; lines = (int)o.n_lines)
            uv_run(&fixture.loop, UV_RUN_ONCE);
        hf_program_end(o.process, cases[i].grace_ms);
        hf_program_fixture_finish(&fixture, &o);
        assert_true(o.result.ended);
        assert_int_equal(o.result.status, cases[i].status);
        hf_outcome_free(&o);
    }
    hf_outcome o; /* before it can have made its group */
    hf_program spec = {HF_PROGRAM_INIT, .argv = deaf};
    assert_int_equal(hf_program_fixture_begin(&fixture, &o, &spec, hf_plain_job), HF_OK);
    hf_program_end(o.process, 60000);
    hf_program_end(o.process, 0); /* sooner */
    hf_program_fixture_finish(&fixture, &o);
    assert_true(o.result.ended && o.result.by_signal);
    hf_outcome_free(&o);
}

static void closing_kills_everything_and_answers_each_once(void **state)
{
    (void)state;
    enum { N = 20 };
    static hf_outcome outcomes[N];
    const char *argv[] = {"sh", "-c", "trap '' TERM; sleep 1000 & wait", NULL};
    hf_program spec = {HF_PROGRAM_INIT, .argv = argv};
    for (size_t i = 0; i < N; i++)
        assert_int_equal(
            hf_program_fixture_begin(&fixture, &outcomes[i], &spec, hf_plain_job), HF_OK);
    hf_program_fixture_close(&fixture);
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(outcomes[i].done, 1);
        hf_program_extend(outcomes[i].process, hf_boot_ns()); /* is still allowed */
        hf_program_free(outcomes[i].process);
    }
}

/* ---- faults ---- */

static int count_fds(void)
{
    int n = 0;
    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* The thread that ends families looks into /proc, and may do so right now. */
static bool has_at_most(int fds)
{
    hf_program_fixture_turn(&fixture, 1);
    return count_fds() <= fds;
}

/* The limit that leaves `room` free descriptors, wherever the open ones lie. */
static rlim_t limit_for(int room)
{
    int fd = 0;
    for (int free = 0; free < room || fcntl(fd, F_GETFD) >= 0; fd++)
        free += fcntl(fd, F_GETFD) < 0;
    return (rlim_t)fd;
}

static void without_descriptors_nothing_is_half_started(void **state)
{
    (void)state;
    const char *argv[] = {"true", NULL};
    hf_program spec = {HF_PROGRAM_INIT, .argv = argv};
    struct rlimit limit, low;
    hf_outcome o;
    hf_program_fixture_sh(&fixture, &o, "true"); /* what is made once is made now */
    hf_outcome_free(&o);
    int before = count_fds(), refused = 0, started = 0;
    getrlimit(RLIMIT_NOFILE, &limit);
    for (int room = 0; room <= 24; room++) { /* a sanitizer needs more than the rest */
        low = limit;
        low.rlim_cur = limit_for(room);
        setrlimit(RLIMIT_NOFILE, &low);
        hf_err err = hf_program_fixture_begin(&fixture, &o, &spec, hf_plain_job);
        setrlimit(RLIMIT_NOFILE, &limit);
        if (err == HF_OK) {
            started++;
            hf_program_fixture_finish(&fixture, &o);
            assert_int_equal(o.result.verdict, HF_VERDICT_DONE);
        } else {
            refused++;
            assert_int_equal(err, HF_SYSTEM);
            hf_program_fixture_turn(&fixture, 2);
            assert_int_equal(o.done, 0);
        }
        EVENTUALLY(15000, has_at_most(before));
    }
    assert_true(refused >= 5 && started >= 1);
}

static void three_hundred_programs_leave_nothing_behind(void **state)
{
    (void)state;
    enum { AT_ONCE = 30, ROUNDS = 10 };
    static hf_outcome outcomes[AT_ONCE];
    const char *argv[] = {HF_PROGRAM_FIXTURE_SELF, "descriptors", NULL};
    hf_program spec = {HF_PROGRAM_INIT, .argv = argv};
    int before = count_fds();
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < AT_ONCE; i++)
            assert_int_equal(
                hf_program_fixture_begin(&fixture, &outcomes[i], &spec, hf_plain_job),
                HF_OK);
        for (size_t i = 0; i < AT_ONCE; i++) {
            hf_program_fixture_finish(&fixture, &outcomes[i]);
            if (outcomes[i].n_lines != 1)
                fail_msg("%zu lines, withheld %d, by signal %d, status %d: %s",
                         outcomes[i].n_lines, outcomes[i].result.withheld,
                         outcomes[i].result.by_signal, outcomes[i].result.status,
                         outcomes[i].error);
            assert_string_equal(outcomes[i].lines[0].text, "0 1 2 3 4");
            hf_outcome_free(&outcomes[i]);
        }
    }
    EVENTUALLY(15000, has_at_most(before));
}

/* The minder is dead, and nobody has noticed yet. */
static void kill_minder_unseen(void)
{
    pid_t minder = hf_groups_minder_pid(fixture.groups);
    siginfo_t info;
    assert_true(minder > 0);
    kill(minder, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)minder, &info, WEXITED | WNOWAIT), 0);
}

static void a_program_that_cannot_tell_the_minder_is_not_executed(void **state)
{
    (void)state;
    char mark[HF_TEMPDIR_SIZE + 16];
    snprintf(mark, sizeof mark, "%s/mark", fixture.dir);
    const char *argv[] = {"touch", mark, NULL};
    hf_program spec = {HF_PROGRAM_INIT, .argv = argv};
    hf_outcome o;
    kill_minder_unseen();
    assert_true(hf_groups_ready(fixture.groups));
    assert_int_equal(hf_program_fixture_begin(&fixture, &o, &spec, hf_plain_job), HF_OK);
    hf_program_fixture_finish(&fixture, &o);
    assert_true(o.result.withheld);
    assert_false(o.result.started);
    assert_int_equal(access(mark, F_OK), -1);
    hf_program_fixture_until(&fixture, &fixture.ready_calls[1], 1);
    assert_int_equal(fixture.ready_calls[0], 1);
}

/* The worker may have been stopped after it had looked at the lease. The minder learns of
 * the program only when it gets a processor. */
static void a_program_whose_lease_is_over_is_not_executed(void **state)
{
    (void)state;
    char mark[HF_TEMPDIR_SIZE + 16];
    snprintf(mark, sizeof mark, "%s/mark", fixture.dir);
    const char *argv[] = {"touch", mark, NULL};
    hf_program spec = {HF_PROGRAM_INIT, .argv = argv};
    hf_program_job job = hf_plain_job;
    hf_outcome o;
    job.deadline_ns = hf_boot_ns();
    pid_t minder = hf_groups_minder_pid(fixture.groups);
    assert_int_equal(kill(minder, SIGSTOP), 0);
    assert_int_equal(hf_program_fixture_begin(&fixture, &o, &spec, job), HF_OK);
    hf_program_fixture_finish(&fixture, &o);
    assert_int_equal(kill(minder, SIGCONT), 0);
    assert_true(o.result.withheld);
    assert_false(o.result.started);
    assert_string_equal(o.error, "the lease was over before it started");
    assert_int_equal(access(mark, F_OK), -1);
    hf_program_fixture_sh(&fixture, &o, "true");
    assert_int_equal(o.result.verdict, HF_VERDICT_DONE);
    hf_outcome_free(&o);
}

/* Asked in the call that tells it: a moment later the next minder may have said hello. */
static void try_while_down(hf_program_fixture *down)
{
    const char *argv[] = {"true", NULL};
    hf_program spec = {HF_PROGRAM_INIT, .argv = argv};
    hf_outcome o;
    assert_false(hf_groups_ready(down->groups));
    assert_int_equal(hf_program_fixture_begin(down, &o, &spec, hf_plain_job), HF_BUSY);
}

static void without_a_minder_nothing_is_started_until_there_is_another(void **state)
{
    (void)state;
    hf_outcome o;
    pid_t first = hf_groups_minder_pid(fixture.groups);
    fixture.when_down = try_while_down;
    kill_minder_unseen();
    hf_program_fixture_until(&fixture, &fixture.ready_calls[0], 1);
    hf_program_fixture_until(&fixture, &fixture.ready_calls[1], 1);
    assert_true(hf_groups_ready(fixture.groups));
    assert_true(hf_groups_minder_pid(fixture.groups) != first);
    hf_program_fixture_sh(&fixture, &o, "true");
    assert_int_equal(o.result.verdict, HF_VERDICT_DONE);
    hf_outcome_free(&o);
}

static void a_minder_that_is_none_is_said_at_once(void **state)
{
    (void)state;
    static const struct {
        const char *path, *text;
    } cases[] = {
        {"/nowhere/holdfast", "cannot run the minder '/nowhere/holdfast': No such file"},
        {"/bin/true", "'/bin/true' does not answer as a minder"},
    };
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        hf_groups *none = NULL;
        char detail[HF_DETAIL_SIZE];
        hf_groups_opts opts = {.minder_path = cases[i].path, .kill_grace_ms = 1000};
        assert_int_equal(hf_groups_new(&none, &fixture.loop, &opts, detail), HF_CONFIG);
        assert_null(none);
        assert_non_null(strstr(detail, cases[i].text));
    }
}

/* ---- a number that is somebody else's by now ---- */

/* The kernel reaps what such a host starts, before the loop has seen that it ended. */
static void a_host_that_ignores_its_children_has_no_stranger_killed(void **state)
{
    char dir[HF_TEMPDIR_SIZE], file[HF_TEMPDIR_SIZE + 8], text[32];
    const char *argv[] = {"sh", "-c", "echo $$ > \"$0\"", file, NULL};
    hf_program spec = {HF_PROGRAM_INIT, .argv = argv};
    hf_program_job job = hf_plain_job;
    hf_outcome o;
    (void)state;
    hf_tempdir_make(dir);
    (void)snprintf(file, sizeof file, "%s/pid", dir);
    job.timeout_ms = 1;
    assert_true(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
    assert_int_equal(hf_program_fixture_begin(&fixture, &o, &spec, job), HF_OK);
    EVENTUALLY(15000, strchr(hf_read_file(file, text, sizeof text), '\n') != NULL);
    pid_t number = (pid_t)strtol(text, NULL, 10);
    EVENTUALLY(15000, kill(number, 0) != 0);
    pid_t stranger = hf_fork_as(number);
    if (stranger != 0) {
        hf_program_end(o.process, 1);
        hf_program_end(o.process, 0);
    }
    hf_program_fixture_finish(&fixture, &o);
    bool lives = stranger != 0 && kill(stranger, 0) == 0;
    if (lives)
        kill(stranger, SIGKILL);
    EVENTUALLY(15000, stranger == 0 || kill(stranger, 0) != 0);
    assert_true(signal(SIGCHLD, SIG_DFL) != SIG_ERR);
    hf_tempdir_remove(dir);
    if (stranger == 0)
        print_message("numbers cannot be given away here: not tried\n");
    else
        assert_true(lives);
}

/* ---- who may not be signalled ---- */

/* As a worker that is not root meets sudo: here it is root without CAP_KILL. */
static bool set_may_kill(bool may)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    if (syscall(SYS_capget, &header, data) != 0)
        return false;
    data[0].effective &= ~(1U << CAP_KILL);
    if (may)
        data[0].effective |= 1U << CAP_KILL;
    return syscall(SYS_capset, &header, data) == 0;
}

#define AS_ANOTHER "setpriv --reuid=65534 --regid=65534 --clear-groups "

static pid_t outsider; /* 0: none runs */

/* The fixture may not end it, and the test may have failed before it did. */
static int end_outsider(void **state)
{
    if (outsider > 1 && set_may_kill(true))
        (void)kill(outsider, SIGKILL);
    outsider = 0;
    return hf_program_fixture_down(state);
}

/* A thread has the rights of the one that makes it. The one that ends families lasts for
 * the programs: here it is made while the test may not kill, so it may not either. */
static void is_told_once(const char *script)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    hf_program spec = {HF_PROGRAM_INIT, .argv = argv};
    hf_outcome o;
    if (geteuid() != 0) {
        print_message("not root: not tried\n");
        return;
    }
    assert_int_equal(hf_program_fixture_begin(&fixture, &o, &spec, hf_plain_job), HF_OK);
    while (o.n_lines < 1)
        uv_run(&fixture.loop, UV_RUN_ONCE);
    outsider = hf_outcome_pid(&o, 0);
    assert_true(outsider > 1 && set_may_kill(false));
    hf_program_end(o.process, 1);
    hf_program_end(o.process, 0);
    hf_program_fixture_until(&fixture, &o.denied, 1);
    hf_program_fixture_turn(&fixture, 500);
    int denied = o.denied;
    assert_true(set_may_kill(true));
    assert_int_equal(kill(outsider, SIGKILL), 0); /* it has outlived its end */
    outsider = 0;
    hf_program_fixture_finish(&fixture, &o);
    assert_int_equal(denied, 1);
    assert_int_equal(o.denied, 1);
    hf_outcome_free(&o);
}

static void a_leader_of_another_user_is_told_once(void **state)
{
    (void)state;
    is_told_once("exec " AS_ANOTHER "sh -c 'echo $$; exec sleep 1000'");
}

static void a_member_of_another_user_is_told_once(void **state)
{
    (void)state;
    is_told_once(AS_ANOTHER "sh -c 'echo $$; exec sleep 1000' & wait");
}

int main(int argc, char **argv)
{
    int status;
    if (hf_program_fixture_role(argc, argv, &status))
        return status;
#define TEST(name) HF_PROGRAM_TEST(name, &fixture)
#define OUTSIDER_TEST(name)                                                              \
    cmocka_unit_test_prestate_setup_teardown(name, hf_program_fixture_up, end_outsider,  \
                                             &fixture)
    const struct CMUnitTest tests[] = {
        TEST(a_time_out_asks_first_and_kills_after_the_grace),
        TEST(a_program_that_ended_while_the_loop_was_slow_has_not_timed_out),
        TEST(what_its_leader_leaves_in_the_group_is_killed),
        TEST(a_process_outside_the_group_cannot_delay_the_verdict),
        TEST(end_asks_and_kills_after_its_grace_or_at_once),
        TEST(closing_kills_everything_and_answers_each_once),
        TEST(without_descriptors_nothing_is_half_started),
        TEST(three_hundred_programs_leave_nothing_behind),
        TEST(a_program_that_cannot_tell_the_minder_is_not_executed),
        TEST(a_program_whose_lease_is_over_is_not_executed),
        TEST(without_a_minder_nothing_is_started_until_there_is_another),
        TEST(a_minder_that_is_none_is_said_at_once),
        TEST(a_host_that_ignores_its_children_has_no_stranger_killed),
        OUTSIDER_TEST(a_leader_of_another_user_is_told_once),
        OUTSIDER_TEST(a_member_of_another_user_is_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
