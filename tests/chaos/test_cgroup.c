/* test_cgroup.c - programs with a control group each: what left its mark and its process
 * group ends with the program all the same. Where this process may make no cgroup there
 * is nothing to test, and the tests say why they are skipped. */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/program_fixture.h"

#include "lock/minder/cgroup.h"
#include "lock/minder/mark.h"

static hf_program_fixture fixture = {.cgroup = true};
static int before;

/* A process that no mark finds. It ends alone after 60 s. */
#define UNMARKED                                                                         \
    "prlimit --locks=0:0 setsid -f sh -c 'echo $$ >&2; exec sleep 60' 2>$D/left; "       \
    "while [ ! -s $D/left ]; do sleep 0.01; done; cat $D/left; "

static void run(hf_outcome *o, const char *script)
{
    char all[1024];
    (void)snprintf(all, sizeof all, "D=%s; %s", fixture.dir, script);
    hf_program_fixture_sh(&fixture, o, all);
}

static void count_one(const hf_cgroup *group, void *arg)
{
    (void)group;
    ++*(int *)arg;
}

/* Those of these tests: others may be there already. */
static int count_groups(void)
{
    int n = -before;
    hf_cgroup_each(count_one, &n);
    return n;
}

static void a_program_that_failed_leaves_nothing_in_its_group(void **state)
{
    hf_outcome o;
    (void)state;
    run(&o, UNMARKED "exit 7");
    assert_int_equal(o.result.verdict, HF_VERDICT_RETRY);
    assert_int_equal(o.n_lines, 1);
    assert_false(hf_pid_alive(hf_outcome_pid(&o, 0)));
    assert_int_equal(count_groups(), 0);
    hf_outcome_free(&o);
}

/* Each of them forks the next one and exits: a pass over /proc seldom meets one. */
static void a_swarm_that_forks_and_exits_is_ended(void **state)
{
    hf_outcome o;
    (void)state;
    run(&o, "echo 'echo . >>$1/beats; setsid sh $0 $1 & exit 0' >$D/relay; "
            "for i in 1 2 3; do setsid sh $D/relay $D & done; "
            "while [ $(cat $D/beats 2>/dev/null | wc -l) -lt 20 ]; do sleep 0.01; done; "
            "exit 7");
    assert_int_equal(o.result.verdict, HF_VERDICT_RETRY);
    assert_int_equal(count_groups(), 0); /* a group with a process cannot be removed */
    hf_outcome_free(&o);
}

static void a_daemon_of_a_program_that_is_done_keeps_its_group(void **state)
{
    hf_outcome o, next;
    (void)state;
    run(&o, UNMARKED "exit 0");
    assert_int_equal(o.n_lines, 1);
    pid_t daemon = hf_outcome_pid(&o, 0);
    assert_true(hf_pid_alive(daemon));
    assert_int_equal(count_groups(), 1);
    kill(daemon, SIGKILL);
    EVENTUALLY(10000, !hf_pid_alive(daemon));
    hf_outcome_free(&o);
    run(&next, "exit 0"); /* its end removes what has become empty */
    assert_int_equal(count_groups(), 0);
    hf_outcome_free(&next);
}

/* The earlier worker left a process without a mark in the group of its run. */
static void a_job_starts_when_the_group_of_its_earlier_run_is_empty(void **state)
{
    hf_program_job job = hf_plain_job;
    job.identity = hf_mark_new(); /* no job of another test ends with it */
    const hf_cgroup earlier = {hf_mark_common(hf_mark_new()),
                               hf_mark_of_job(job.identity)};
    hf_outcome o;
    int status, fd = hf_cgroup_make(&earlier);
    (void)state;
    assert_true(fd >= 0);
    pid_t left = fork();
    if (left == 0) {
        if (!hf_cgroup_enter(fd))
            _exit(1);
        (void)alarm(60);
        for (;;)
            (void)pause();
    }
    (void)close(fd);
    EVENTUALLY(10000, hf_cgroup_of(left).mark == earlier.mark);
    job.ran_before = true;
    hf_program_fixture_script(&fixture, &o, "exit 0", (hf_program){HF_PROGRAM_INIT}, job);
    bool ended = waitpid(left, &status, WNOHANG) == left;
    if (!ended) {
        kill(left, SIGKILL);
        (void)waitpid(left, &status, 0);
    }
    assert_true(ended && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(o.result.verdict, HF_VERDICT_DONE);
    assert_int_equal(count_groups(), 0);
    hf_outcome_free(&o);
}

static void the_group_of_a_strange_name_is_none_of_ours(void **state)
{
    (void)state;
    assert_int_equal(hf_cgroup_of(getpid()).mark, 0);
}

#define TEST(name) HF_PROGRAM_TEST(name, &fixture)

int main(int argc, char **argv)
{
    int status;
    char why[HF_DETAIL_SIZE];
    if (hf_program_fixture_role(argc, argv, &status))
        return status;
    if (hf_cgroup_check(why) != HF_OK) {
        printf("skipped: %s\n", why);
        return 0;
    }
    before = count_groups();
    const struct CMUnitTest tests[] = {
        TEST(a_program_that_failed_leaves_nothing_in_its_group),
        TEST(a_swarm_that_forks_and_exits_is_ended),
        TEST(a_daemon_of_a_program_that_is_done_keeps_its_group),
        TEST(a_job_starts_when_the_group_of_its_earlier_run_is_empty),
        TEST(the_group_of_a_strange_name_is_none_of_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
