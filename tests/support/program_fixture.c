/* program_fixture.c - real programs on a loop, their lines kept and their ends counted.
 */
#include "tests/support/program_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "holdfast/minder.h"

enum { GUARD_MS = 30000, TICK_MS = 100, LEASE_MS = 600000 };

const hf_program_job hf_plain_job = {.id = "j1",
                                     .type = "t",
                                     .queue = "q",
                                     .fence = "17",
                                     .attempt = 1,
                                     .deadline_unix_ms = 0};

static void on_line(void *job_arg, int stream, const char *text, size_t len, void *arg)
{
    hf_outcome *o = job_arg;
    (void)arg;
    assert_int_equal(strlen(text), len);
    o->line_bytes += len;
    if (o->n_lines == HF_PROGRAM_FIXTURE_LINES)
        return;
    o->lines[o->n_lines].stream = stream;
    o->lines[o->n_lines++].text = strdup(text);
}

static void on_ready(bool ready, void *arg)
{
    hf_program_fixture *fixture = arg;
    fixture->ready_calls[ready]++;
    if (!ready && fixture->when_down != NULL)
        fixture->when_down(fixture);
}

static void on_denied(void *job_arg, void *arg)
{
    hf_outcome *o = job_arg;
    (void)arg;
    o->denied++;
}

static void on_done(const hf_program_result *result, void *arg)
{
    hf_outcome *o = arg;
    o->done++;
    o->result = *result;
    snprintf(o->error, sizeof o->error, "%s", result->error);
    o->result.error = o->error;
}

static void on_closed(void *arg)
{
    *(bool *)arg = true;
}

void hf_program_fixture_start(hf_program_fixture *fixture)
{
    hf_groups_opts groups = {.minder_path = HF_PROGRAM_FIXTURE_SELF,
                             .kill_grace_ms = 300,
                             .cgroup = fixture->cgroup,
                             .on_ready = on_ready,
                             .arg = fixture};
    hf_programs_opts opts = {.on_line = on_line, .on_denied = on_denied, .arg = fixture};
    char detail[HF_DETAIL_SIZE];
    hf_tempdir_make(fixture->dir);
    fixture->ready_calls[0] = fixture->ready_calls[1] = 0;
    fixture->when_down = NULL;
    assert_int_equal(uv_loop_init(&fixture->loop), 0);
    assert_int_equal(hf_groups_new(&fixture->groups, &fixture->loop, &groups, detail),
                     HF_OK);
    assert_int_equal(
        hf_programs_new(&fixture->programs, &fixture->loop, fixture->groups, &opts),
        HF_OK);
}

void hf_program_fixture_close(hf_program_fixture *fixture)
{
    bool closed = false;
    hf_programs_close(fixture->programs, on_closed, &closed);
    hf_groups_close(fixture->groups);
    fixture->programs = NULL;
    uv_run(&fixture->loop, UV_RUN_DEFAULT);
    assert_true(closed);
}

void hf_program_fixture_stop(hf_program_fixture *fixture)
{
    if (fixture->programs != NULL)
        hf_program_fixture_close(fixture);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
    /* Nothing that it started is left, not even unreaped. */
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    hf_tempdir_remove(fixture->dir);
}

int hf_program_fixture_up(void **state)
{
    hf_program_fixture_start(*state);
    return 0;
}

int hf_program_fixture_down(void **state)
{
    hf_program_fixture_stop(*state);
    return 0;
}

static void on_guard(uv_timer_t *timer)
{
    (void)timer; /* it ends the loop's wait */
}

void hf_program_fixture_until(hf_program_fixture *fixture, const int *n, int want)
{
    uint64_t until = hf_test_fair_ms() + GUARD_MS;
    uv_timer_t guard;
    uv_timer_init(&fixture->loop, &guard);
    uv_timer_start(&guard, on_guard, TICK_MS, TICK_MS);
    while (*n < want && hf_test_fair_ms() < until)
        uv_run(&fixture->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&guard, NULL);
    uv_run(&fixture->loop, UV_RUN_NOWAIT);
    assert_true(*n >= want);
}

void hf_program_fixture_turn(hf_program_fixture *fixture, unsigned ms)
{
    int never = 0;
    uint64_t until = hf_test_now_ms() + ms;
    uv_timer_t wake;
    uv_timer_init(&fixture->loop, &wake);
    uv_timer_start(&wake, on_guard, 1, 1);
    while (hf_test_now_ms() < until && never == 0)
        uv_run(&fixture->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&wake, NULL);
    uv_run(&fixture->loop, UV_RUN_NOWAIT);
}

hf_err hf_program_fixture_begin(hf_program_fixture *fixture, hf_outcome *o,
                                const hf_program *spec, hf_program_job job)
{
    *o = (hf_outcome){.done = 0};
    if (job.deadline_ns == 0)
        job.deadline_ns = hf_boot_ns() + LEASE_MS * HF_MS_NS;
    hf_err err =
        hf_programs_start(fixture->programs, spec, &job, on_done, o, &o->process);
    assert_int_equal(o->done, 0);
    return err;
}

void hf_program_fixture_finish(hf_program_fixture *fixture, hf_outcome *o)
{
    hf_program_fixture_until(fixture, &o->done, 1);
    hf_program_fixture_turn(fixture, 5);
    assert_int_equal(o->done, 1);
    hf_program_free(o->process);
}

void hf_outcome_free(hf_outcome *o)
{
    for (size_t i = 0; i < o->n_lines; i++)
        free(o->lines[i].text);
}

void hf_program_fixture_script(hf_program_fixture *fixture, hf_outcome *o,
                               const char *script, hf_program spec, hf_program_job job)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    spec.type = "t";
    spec.argv = argv;
    assert_int_equal(hf_program_fixture_begin(fixture, o, &spec, job), HF_OK);
    hf_program_fixture_finish(fixture, o);
}

void hf_program_fixture_sh(hf_program_fixture *fixture, hf_outcome *o, const char *script)
{
    hf_program_fixture_script(fixture, o, script, (hf_program){HF_PROGRAM_INIT},
                              hf_plain_job);
}

bool hf_outcome_has(const hf_outcome *o, int stream, const char *text)
{
    for (size_t i = 0; i < o->n_lines; i++)
        if (o->lines[i].stream == stream && strcmp(o->lines[i].text, text) == 0)
            return true;
    return false;
}

pid_t hf_outcome_pid(const hf_outcome *o, size_t line)
{
    assert_true(line < o->n_lines);
    return (pid_t)strtol(o->lines[line].text, NULL, 10);
}

/* ---- helpers, in programs of their own ---- */

static int print_descriptors(void)
{
    const char *space = "";
    for (int fd = 0; fd < 1024; fd++) {
        if (fcntl(fd, F_GETFD) < 0)
            continue;
        printf("%s%d", space, fd);
        space = " ";
    }
    printf("\n");
    return 0;
}

static int print_signals(void)
{
    sigset_t mask;
    int blocked = 0, ignored = 0;
    char where[128];
    sigprocmask(SIG_SETMASK, NULL, &mask);
    for (int sig = 1; sig < 32; sig++) {
        struct sigaction action;
        blocked += sigismember(&mask, sig);
        ignored += sigaction(sig, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
    }
    printf("blocked %d ignored %d\n", blocked, ignored);
    if (getpgrp() == getpid() && getsid(0) == getpid())
        printf("leads its session and group\n");
    printf("in %s\n", getcwd(where, sizeof where));
    return 0;
}

bool hf_program_fixture_role(int argc, char **argv, int *status)
{
    if (argc < 2)
        return false;
    if (strcmp(argv[1], "minder") == 0)
        *status = hf_minder_main(argc, argv);
    else if (strcmp(argv[1], "descriptors") == 0)
        *status = print_descriptors();
    else if (strcmp(argv[1], "signals") == 0)
        *status = print_signals();
    else
        return false;
    return true;
}
