/* test_family.c - what a program has started ends with it, wherever it went: found by the
 * mark that all of it inherits. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/program_fixture.h"

#include "base/base.h"
#include "base/clock.h"
#include "lock/minder/family.h"
#include "lock/minder/mark.h"

static hf_program_fixture fixture;
static pid_t left[4]; /* by a program; 0: none, or it was looked for */
static pid_t stands;  /* a child that was not waited for; 0: none */

/* A test that fails leaves nothing. */
static int down(void **state)
{
    for (size_t i = 0; i < HF_COUNT(left); i++) {
        if (left[i] > 1)
            (void)kill(left[i], SIGKILL);
        left[i] = 0;
    }
    if (stands > 0) {
        (void)kill(stands, SIGKILL);
        (void)waitpid(stands, NULL, 0);
    }
    stands = 0;
    return hf_program_fixture_down(state);
}

/* A process of its own: each writes its number, and ends alone after 60 s. */
#define LEAVE(how) how " sh -c 'echo $$; exec sleep 60' & "
#define READ4                                                                            \
    "while [ $(cat " FILES " | wc -l) -lt 4 ]; do sleep 0.01; done; cat " FILES "; "
#define FILES "$D/1 $D/2 $D/3 $D/4"
#define LEAVE4                                                                           \
    "touch " FILES "; (" LEAVE("timeout 60") ") > $D/1; (" LEAVE(                        \
        "setsid") ") > $D/2; "                                                           \
                  "bash -c \"set -m; sh -c 'echo \\$\\$; exec sleep 60' & \" > $D/3; "   \
                  "env -i setsid setsid -f sh -c 'echo $$; exec sleep 60' > $D/4 < "     \
                  "/dev/null 2>&1; " READ4

static void run_leaving(hf_outcome *o, const char *end, hf_program_job job)
{
    char script[2048];
    (void)snprintf(script, sizeof script, "D=%s; %s%s", fixture.dir, LEAVE4, end);
    hf_program_fixture_script(&fixture, o, script, (hf_program){HF_PROGRAM_INIT}, job);
    for (size_t i = 0; i < HF_COUNT(left) && i < o->n_lines; i++)
        left[i] = hf_outcome_pid(o, i);
    assert_int_equal(o->n_lines, HF_COUNT(left));
}

/* Those that live, which are killed. */
static int count_left(void)
{
    int n = 0;
    for (size_t i = 0; i < HF_COUNT(left); i++) {
        bool lives = hf_pid_alive(left[i]);
        n += lives;
        if (lives)
            kill(left[i], SIGKILL);
        left[i] = 0;
    }
    return n;
}

/* ---- the worker lives ---- */

static void all_of_a_program_that_failed_has_ended_before_its_verdict(void **state)
{
    static const char *const ends[] = {"exit 7", "kill -9 $$",
                                       "echo '{\"verdict\":\"retry\"}' >&3"};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(ends); i++) {
        hf_outcome o;
        run_leaving(&o, ends[i], hf_plain_job);
        assert_int_equal(count_left(), 0);
        assert_int_equal(o.result.verdict, HF_VERDICT_RETRY);
        hf_outcome_free(&o);
    }
}

static void a_daemon_of_a_program_that_is_done_lives_on(void **state)
{
    hf_outcome o;
    (void)state;
    run_leaving(&o, "exit 0", hf_plain_job);
    assert_int_equal(count_left(), 4);
    hf_outcome_free(&o);
}

static void a_process_that_gave_up_its_mark_lives_on(void **state)
{
    hf_outcome o;
    char script[256];
    (void)state;
    (void)snprintf(script, sizeof script,
                   "G=%s/gone; export G; prlimit --locks=0:0 setsid -f sh -c 'echo $$; : "
                   ">$G; exec sleep 60'; while [ ! -e $G ]; do sleep 0.01; done; exit 7",
                   fixture.dir);
    hf_program_fixture_sh(&fixture, &o, script);
    assert_true(o.n_lines > 0 && hf_pid_alive(hf_outcome_pid(&o, 0)));
    kill(hf_outcome_pid(&o, 0), SIGKILL);
    hf_outcome_free(&o);
}

static void the_time_out_asks_what_left_the_group_as_well(void **state)
{
    hf_program_job job = hf_plain_job;
    hf_outcome o;
    (void)state;
    job.timeout_ms = 3000; /* by then both have set their traps */
    hf_program_fixture_script(
        &fixture, &o,
        "trap : TERM; setsid sh -c 'trap \"echo asked; exit\" TERM; while :; do sleep "
        "0.02; done' & while :; do sleep 0.02; done",
        (hf_program){HF_PROGRAM_INIT, .grace_ms = 5000}, job);
    assert_true(o.result.timed_out && hf_outcome_has(&o, 1, "asked"));
    hf_outcome_free(&o);
}

/* ---- the next run ---- */

static void a_job_starts_when_its_earlier_run_has_gone(void **state)
{
    hf_program_job job = hf_plain_job, other = hf_plain_job;
    hf_outcome o, next;
    (void)state;
    job.identity = hf_mark_new(); /* no job of another test ends with it */
    other.identity = hf_mark_new();
    run_leaving(&o, "exit 0", job); /* as one whose worker died would leave it */
    other.ran_before = true;
    hf_program_fixture_script(&fixture, &next, "echo up", (hf_program){HF_PROGRAM_INIT},
                              other);
    hf_outcome_free(&next);
    for (size_t i = 0; i < 4; i++)
        assert_true(hf_pid_alive(hf_outcome_pid(&o, i)));
    char script[256];
    (void)snprintf(script, sizeof script,
                   "for p in %ld %ld %ld %ld; do grep -s '^State:.[RSDT]' "
                   "/proc/$p/status; done; :",
                   (long)hf_outcome_pid(&o, 0), (long)hf_outcome_pid(&o, 1),
                   (long)hf_outcome_pid(&o, 2), (long)hf_outcome_pid(&o, 3));
    job.ran_before = true;
    hf_program_fixture_script(&fixture, &next, script, (hf_program){HF_PROGRAM_INIT},
                              job);
    assert_int_equal(count_left(), 0);
    assert_int_equal(next.n_lines, 0); /* when it started */
    hf_outcome_free(&next);
    hf_outcome_free(&o);
}

static void one_that_is_to_end_while_it_waits_never_starts(void **state)
{
    static const char *const argv[] = {"sh", "-c", "echo up", NULL};
    hf_program spec = {HF_PROGRAM_INIT, .argv = argv};
    hf_program_job job = hf_plain_job;
    hf_outcome o;
    (void)state;
    job.identity = hf_mark_new(); /* or what it ends may be another test's */
    job.ran_before = true;
    assert_int_equal(hf_program_fixture_begin(&fixture, &o, &spec, job), HF_OK);
    hf_program_end(o.process, 0);
    hf_program_fixture_finish(&fixture, &o);
    assert_true(o.result.withheld && !o.result.started);
    assert_int_equal(o.n_lines, 0);
    hf_outcome_free(&o);
}

/* ---- the mark ---- */

static void no_limit_of_its_host_is_changed(void **state)
{
    struct rlimit before, after;
    hf_outcome o;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_LOCKS, &before), 0);
    hf_program_fixture_sh(&fixture, &o, "exit 1");
    hf_outcome_free(&o);
    assert_int_equal(getrlimit(RLIMIT_LOCKS, &after), 0);
    assert_true(before.rlim_cur == after.rlim_cur && before.rlim_max == after.rlim_max);
}

/* A child that stands still, which has this many marks. */
static pid_t fork_marked(int marks, uint64_t made[3])
{
    for (int i = 0; i < 3; i++)
        made[i] = hf_mark_new();
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        (void)setsid();
        for (int i = 0; i < marks; i++)
            hf_mark_set(0, made[i], hf_mark_of_job(7));
        (void)raise(SIGSTOP);
        while (getppid() == parent)
            hf_test_pause_ms(50);
        _exit(0);
    }
    stands = pid;
    assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
    return pid;
}

static void it_has_ended(void)
{
    assert_int_equal(waitpid(stands, NULL, 0), stands);
    stands = 0;
}

static void a_holder_inside_a_program_keeps_the_outer_mark(void **state)
{
    uint64_t made[3];
    hf_mark_pair pairs[4];
    (void)state;
    for (int n = 0; n <= 3; n++) {
        pid_t pid = fork_marked(n, made);
        assert_true(hf_mark_read(pid, &pairs[n]));
        hf_family family = hf_family_of(pid);
        assert_true(family.session == (n == 0 ? pid : 0));
        if (n > 0) {
            assert_true(pairs[n].hard == made[0]);
            family = (hf_family){.mark = made[0]};
        }
        /* The outer mark finds it, however many are set inside. */
        assert_true(hf_family_end(&family, 1, hf_boot_ns() + 10000 * HF_MS_NS));
        it_has_ended();
    }
    assert_true(pairs[1].soft == hf_mark_of_job(7));
    assert_true(hf_mark_last(&pairs[1]) == pairs[1].hard);
    assert_true(hf_mark_last(&pairs[2]) == pairs[2].soft);
    assert_true(pairs[2].soft < pairs[2].hard &&
                pairs[2].soft > hf_mark_of_job(UINT64_MAX));
}

static void without_a_mark_it_is_found_by_its_session(void **state)
{
    uint64_t made[3];
    (void)state;
    pid_t pid = fork_marked(0, made);
    hf_family family = hf_family_of(pid);
    assert_true(family.mark == 0 && family.session == pid);
    assert_true(hf_family_end(&family, 1, hf_boot_ns() + 10000 * HF_MS_NS));
    assert_false(hf_pid_alive(pid));
    it_has_ended();
}

static void what_forks_all_the_time_is_ended(void **state)
{
    hf_outcome o;
    (void)state;
    hf_program_fixture_sh(&fixture, &o,
                          "setsid sh -c 'echo $$; while :; do sleep 5 & sleep 0.002; "
                          "done' & sleep 0.5; exit 7");
    assert_false(hf_pid_alive(hf_outcome_pid(&o, 0)));
    EVENTUALLY(15000, kill(-hf_outcome_pid(&o, 0), 0) == -1);
    hf_outcome_free(&o);
}

int main(int argc, char **argv)
{
    int status;
    if (hf_program_fixture_role(argc, argv, &status))
        return status;
#define TEST(name)                                                                       \
    cmocka_unit_test_prestate_setup_teardown(name, hf_program_fixture_up, down, &fixture)
    const struct CMUnitTest tests[] = {
        TEST(all_of_a_program_that_failed_has_ended_before_its_verdict),
        TEST(a_daemon_of_a_program_that_is_done_lives_on),
        TEST(a_process_that_gave_up_its_mark_lives_on),
        TEST(the_time_out_asks_what_left_the_group_as_well),
        TEST(a_job_starts_when_its_earlier_run_has_gone),
        TEST(one_that_is_to_end_while_it_waits_never_starts),
        TEST(no_limit_of_its_host_is_changed),
        TEST(a_holder_inside_a_program_keeps_the_outer_mark),
        TEST(without_a_mark_it_is_found_by_its_session),
        TEST(what_forks_all_the_time_is_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
