/* test_programs.c - real programs, run by worker/programs.h: how they end, what they see,
 * what they print, and what is left when something goes wrong. This program is also its
 * own minder and its own helpers, chosen by its first argument. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "tests/support/eventually.h"
#include "tests/support/proc.h"
#include "tests/support/tempdir.h"

#include "base/base.h"
#include "base/clock.h"
#include "worker/process.h"
#include "worker/programs.h"

enum { LINES_MAX = 2048, GUARD_MS = 30000 };

#define SELF "/proc/self/exe"

typedef struct outcome {
    int done; /* how often done_cb was called */
    hf_program_result result;
    char error[HF_PROGRAM_ERROR_MAX + 1];
    size_t n_lines, line_bytes;
    struct {
        int stream;
        char *text;
    } lines[LINES_MAX];
    hf_process *process;
} outcome;

static uv_loop_t loop;
static hf_programs *programs;
static int ready_calls[2];
static char dir[HF_TEMPDIR_SIZE];

static void on_line(void *job_arg, int stream, const char *text, size_t len, void *arg)
{
    outcome *o = job_arg;
    (void)arg;
    assert_int_equal(strlen(text), len);
    o->line_bytes += len;
    if (o->n_lines == LINES_MAX)
        return;
    o->lines[o->n_lines].stream = stream;
    o->lines[o->n_lines++].text = strdup(text);
}

static void on_ready(bool ready, void *arg)
{
    (void)arg;
    ready_calls[ready]++;
}

static void on_done(const hf_program_result *result, void *arg)
{
    outcome *o = arg;
    o->done++;
    o->result = *result;
    snprintf(o->error, sizeof o->error, "%s", result->error);
    o->result.error = o->error;
}

static int up(void **state)
{
    (void)state;
    hf_programs_opts opts = {.minder_path = SELF,
                             .kill_grace_ms = 300,
                             .on_line = on_line,
                             .on_ready = on_ready};
    char detail[HF_DETAIL_SIZE];
    hf_tempdir_make(dir);
    ready_calls[0] = ready_calls[1] = 0;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(hf_programs_new(&programs, &loop, &opts, detail), HF_OK);
    return 0;
}

static void on_closed(void *arg)
{
    *(bool *)arg = true;
}

static int down(void **state)
{
    (void)state;
    bool closed = false;
    if (programs != NULL) {
        hf_programs_close(programs, on_closed, &closed);
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_true(closed);
    }
    programs = NULL;
    assert_int_equal(uv_loop_close(&loop), 0);
    /* Nothing that it started is left, not even unreaped. */
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    hf_tempdir_remove(dir);
    return 0;
}

static void on_guard(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
}

/* Runs the loop until *n is at least `want`. */
static void run_until(const int *n, int want)
{
    bool late = false;
    uv_timer_t guard;
    uv_timer_init(&loop, &guard);
    guard.data = &late;
    uv_timer_start(&guard, on_guard, GUARD_MS, 0);
    while (*n < want && !late)
        uv_run(&loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&guard, NULL);
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_false(late);
}

static void run_for(unsigned ms)
{
    int never = 0;
    uint64_t until = hf_test_now_ms() + ms;
    uv_timer_t wake;
    bool ignored;
    uv_timer_init(&loop, &wake);
    wake.data = &ignored;
    uv_timer_start(&wake, on_guard, 1, 1);
    while (hf_test_now_ms() < until && never == 0)
        uv_run(&loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&wake, NULL);
    uv_run(&loop, UV_RUN_NOWAIT);
}

static const hf_program_job plain_job = {.id = "j1",
                                         .type = "t",
                                         .queue = "q",
                                         .fence = "17",
                                         .attempt = 1,
                                         .deadline_unix_ms = 0};

static hf_err start_with(outcome *o, const hf_program *spec, hf_program_job job)
{
    *o = (outcome){.done = 0};
    if (job.deadline_ns == 0)
        job.deadline_ns = hf_boot_ns() + 60000 * HF_MS_NS;
    hf_err err = hf_programs_start(programs, spec, &job, on_done, o, &o->process);
    assert_int_equal(o->done, 0);
    return err;
}

static void finish(outcome *o)
{
    run_until(&o->done, 1);
    run_for(5);
    assert_int_equal(o->done, 1);
    hf_program_free(o->process);
}

static void forget(outcome *o)
{
    for (size_t i = 0; i < o->n_lines; i++)
        free(o->lines[i].text);
}

/* Runs a shell script as a program from start to end; forget() what it gives. */
static void run_script(outcome *o, const char *script, hf_program spec,
                       hf_program_job job)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    spec.type = "t";
    spec.argv = argv;
    assert_int_equal(start_with(o, &spec, job), HF_OK);
    finish(o);
}

static void run_simply(outcome *o, const char *script)
{
    run_script(o, script, (hf_program){.cwd = NULL}, plain_job);
}

static bool has_line(const outcome *o, int stream, const char *text)
{
    for (size_t i = 0; i < o->n_lines; i++)
        if (o->lines[i].stream == stream && strcmp(o->lines[i].text, text) == 0)
            return true;
    return false;
}

static pid_t pid_in_line(const outcome *o, size_t i)
{
    assert_true(i < o->n_lines);
    return (pid_t)strtol(o->lines[i].text, NULL, 10);
}

/* ---- how it ends ---- */

static void the_exit_status_is_the_verdict(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        hf_verdict verdict;
        bool by_signal;
        int status;
        const char *error;
    } cases[] = {
        {"exit 0", HF_VERDICT_DONE, false, 0, ""},
        {"echo no problem >&2", HF_VERDICT_DONE, false, 0, ""},
        {"exit 65", HF_VERDICT_DEAD, false, 65, "exit status 65"},
        {"exit 3", HF_VERDICT_RETRY, false, 3, "exit status 3"},
        {"echo; echo out of ink >&2; exit 1", HF_VERDICT_RETRY, false, 1, "out of ink"},
        {"kill -9 $$", HF_VERDICT_RETRY, true, 9, "killed by signal 9"},
        {"echo why >&2; kill -TERM $$", HF_VERDICT_RETRY, true, 15,
         "killed by signal 15: why"},
    };
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        outcome o;
        run_simply(&o, cases[i].script);
        assert_int_equal(o.result.verdict, cases[i].verdict);
        assert_int_equal(o.result.by_signal, cases[i].by_signal);
        assert_int_equal(o.result.status, cases[i].status);
        assert_string_equal(o.error, cases[i].error);
        assert_true(o.result.started);
        assert_false(o.result.timed_out || o.result.ended || o.result.minder_failed);
        forget(&o);
    }
}

static void a_verdict_line_goes_before_the_exit_status(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        hf_verdict verdict;
        int64_t retry_in_ms; /* -1: not said */
        const char *error;
    } cases[] = {
        {"echo '{\"verdict\":\"retry\",\"in\":\"30s\",\"error\":\"busy\"}' >&3",
         HF_VERDICT_RETRY, 30000, "busy"},
        {"echo '{\"verdict\":\"done\"}' >&$HOLDFAST_VERDICT_FD; exit 1", HF_VERDICT_DONE,
         -1, ""},
        {"printf '{\"verdict\":\"dead\",\"error\":\"never\"}' >&3", HF_VERDICT_DEAD, -1,
         "never"},
        {"echo '{\"in\":\"5m\"}' >&3; exit 2", HF_VERDICT_RETRY, 300000, "exit status 2"},
        {"echo '{\"error\":\"it was me\"}' >&3; echo text >&2; exit 65", HF_VERDICT_DEAD,
         -1, "it was me"},
        {"echo '{\"verdict\":\"perhaps\"}' >&3", HF_VERDICT_DONE, -1,
         "the verdict line is not valid: expected \"done\", \"retry\" or \"dead\" as "
         "`verdict`"},
        {"echo '{\"verdict\":\"retry\",\"in\":30}' >&3; exit 65", HF_VERDICT_DEAD, -1,
         "the verdict line is not valid: expected a duration such as \"30s\" as `in`"},
        {"echo '{\"verdict\":\"done\"}' >&3; kill -9 $$", HF_VERDICT_RETRY, -1,
         "killed by signal 9"},
    };
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        outcome o;
        run_simply(&o, cases[i].script);
        assert_int_equal(o.result.verdict, cases[i].verdict);
        assert_int_equal(o.result.has_retry_in, cases[i].retry_in_ms >= 0);
        if (o.result.has_retry_in)
            assert_int_equal(o.result.retry_in_ms, cases[i].retry_in_ms);
        assert_string_equal(o.error, cases[i].error);
        forget(&o);
    }
}

static void what_cannot_be_executed_says_why_and_is_retried(void **state)
{
    (void)state;
    char plain[HF_TEMPDIR_SIZE + 16];
    snprintf(plain, sizeof plain, "%s/plain", dir);
    hf_write_file(plain, "not a program\n");
    const char *missing[] = {"/nowhere/at-all", NULL};
    const char *unknown[] = {"holdfast-test-no-such-command", NULL};
    const char *refused[] = {plain, NULL};
    const char *good[] = {"true", NULL};
    const struct {
        hf_program spec;
        const char *error;
    } cases[] = {
        {{.argv = missing}, "cannot run '/nowhere/at-all': No such file or directory"},
        {{.argv = unknown},
         "cannot run 'holdfast-test-no-such-command': No such file or directory"},
        {{.argv = refused}, "Permission denied"},
        {{.argv = good, .cwd = "/nowhere"},
         "cannot enter '/nowhere': No such file or directory"},
    };
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        outcome o;
        assert_int_equal(start_with(&o, &cases[i].spec, plain_job), HF_OK);
        finish(&o);
        assert_int_equal(o.result.verdict, HF_VERDICT_RETRY);
        assert_false(o.result.started);
        assert_false(o.result.minder_failed);
        assert_non_null(strstr(o.error, cases[i].error));
    }
}

/* ---- what it gets ---- */

static void stdin_is_the_payload_and_may_be_left_alone(void **state)
{
    (void)state;
    enum { SIZE = 1 << 20 };
    static const struct {
        const char *script, *line;
    } cases[] = {
        {"wc -c | tr -d ' '", "1048576"},
        {"true", NULL},                          /* never read */
        {"exec 0<&-; sleep 0.2; echo on", "on"}, /* closed early */
        {"head -c 3 | wc -c | tr -d ' '", "3"},
    };
    char *payload = malloc(SIZE);
    assert_non_null(payload);
    for (size_t i = 0; i < SIZE; i++)
        payload[i] = (char)i; /* NULs and all */
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        hf_program_job job = plain_job;
        outcome o;
        job.payload = payload;
        job.payload_len = SIZE;
        run_script(&o, cases[i].script, (hf_program){.cwd = NULL}, job);
        assert_int_equal(o.result.verdict, HF_VERDICT_DONE);
        if (cases[i].line != NULL)
            assert_true(has_line(&o, 1, cases[i].line));
        forget(&o);
    }
    hf_program_job job = plain_job;
    outcome o;
    run_script(&o, "cat; echo .", (hf_program){.cwd = NULL}, job);
    assert_true(has_line(&o, 1, "."));
    forget(&o);
    free(payload);
}

static void a_program_that_never_reads_1_mib_blocks_nothing(void **state)
{
    (void)state;
    enum { SIZE = 1 << 20 };
    char *payload = calloc(1, SIZE);
    const char *argv[] = {"sleep", "60", NULL};
    hf_program spec = {.argv = argv};
    hf_program_job job = plain_job;
    outcome sleeper, other;
    job.payload = payload;
    job.payload_len = SIZE;
    assert_int_equal(start_with(&sleeper, &spec, job), HF_OK);
    run_simply(&other, "echo other");
    assert_true(has_line(&other, 1, "other"));
    assert_int_equal(sleeper.done, 0);
    hf_program_end(sleeper.process, 0);
    finish(&sleeper);
    assert_true(sleeper.result.ended);
    assert_int_equal(sleeper.result.status, SIGKILL);
    forget(&other);
    free(payload);
}

static void its_environment_is_what_the_contract_says(void **state)
{
    (void)state;
    static const char *const names[] = {"HFT_PASSED", "HFT_UNSET", "HOLDFAST_FENCE",
                                        "PATH", NULL};
    hf_program_job job = plain_job;
    outcome o;
    assert_int_equal(setenv("HFT_PASSED", "a b", 1), 0);
    assert_int_equal(setenv("HFT_SECRET", "x", 1), 0);
    assert_int_equal(setenv("HOLDFAST_FENCE", "99", 1), 0);
    assert_int_equal(setenv("TZ", "UTC", 1), 0);
    job.attempt = 4;
    job.deadline_unix_ms = 1700000000123;
    const char *argv[] = {"env", NULL};
    hf_program spec = {.argv = argv, .env = names};
    assert_int_equal(start_with(&o, &spec, job), HF_OK);
    finish(&o);
    static const char *const expected[] = {"HOLDFAST_CONTRACT=1",
                                           "HOLDFAST_VERDICT_FD=3",
                                           "HOLDFAST_JOB_ID=j1",
                                           "HOLDFAST_TYPE=t",
                                           "HOLDFAST_QUEUE=q",
                                           "HOLDFAST_ATTEMPT=4",
                                           "HOLDFAST_FENCE=17",
                                           "HFT_PASSED=a b",
                                           "TZ=UTC",
                                           "HOLDFAST_DEADLINE_UNIX_MS=1700000000123"};
    for (size_t i = 0; i < HF_COUNT(expected); i++)
        assert_true(has_line(&o, 1, expected[i]));
    size_t passed = HF_COUNT(expected);
    for (size_t i = 0; i < o.n_lines; i++)
        for (const char *const *name =
                 (const char *const[]){"PATH=", "HOME=", "LANG=", "TMPDIR=", NULL};
             *name != NULL; name++)
            passed += strncmp(o.lines[i].text, *name, strlen(*name)) == 0;
    assert_int_equal(o.n_lines, passed);
    unsetenv("HOLDFAST_FENCE");
    forget(&o);
}

static void it_has_no_descriptors_but_0_to_3(void **state)
{
    (void)state;
    int leaks[20];
    for (size_t i = 0; i < HF_COUNT(leaks); i++)
        leaks[i] = open("/dev/null", O_RDONLY); /* a host that does not mark them */
    const char *argv[] = {SELF, "descriptors", NULL};
    hf_program spec = {.argv = argv};
    outcome o;
    assert_int_equal(start_with(&o, &spec, plain_job), HF_OK);
    finish(&o);
    assert_int_equal(o.n_lines, 1);
    assert_string_equal(o.lines[0].text, "0 1 2 3");
    for (size_t i = 0; i < HF_COUNT(leaks); i++)
        close(leaks[i]);
    forget(&o);
}

static void it_starts_with_default_signals_in_a_session_of_its_own(void **state)
{
    (void)state;
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    sigset_t usr1, mask;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigaction(SIGHUP, &ignore, &before);
    pthread_sigmask(SIG_BLOCK, &usr1, &mask);
    const char *argv[] = {SELF, "signals", NULL};
    hf_program spec = {.argv = argv, .cwd = "/"};
    outcome o;
    assert_int_equal(start_with(&o, &spec, plain_job), HF_OK);
    finish(&o);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    sigaction(SIGHUP, &before, NULL);
    assert_true(has_line(&o, 1, "blocked 0 ignored 0"));
    assert_true(has_line(&o, 1, "leads its session and group"));
    assert_true(has_line(&o, 1, "in /"));
    forget(&o);
}

/* ---- what it prints ---- */

static void each_line_is_told_with_its_stream(void **state)
{
    (void)state;
    outcome o;
    run_simply(&o, "echo one; echo two >&2; printf three; "
                   "head -c 5000 /dev/zero | tr '\\0' x >&2");
    assert_true(has_line(&o, 1, "one"));
    assert_true(has_line(&o, 2, "two"));
    assert_true(has_line(&o, 1, "three"));
    assert_int_equal(o.n_lines, 5);
    size_t sizes = 0; /* the long line comes in two parts */
    for (size_t i = 0; i < o.n_lines; i++)
        sizes += o.lines[i].text[0] == 'x' ? strlen(o.lines[i].text) : 0;
    assert_int_equal(sizes, 5000);
    forget(&o);
}

static void ten_megabytes_on_stderr_are_cut_in_bounded_memory(void **state)
{
    (void)state;
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    outcome o;
    uint64_t from_ms = hf_test_now_ms();
    run_simply(&o, "yes 0123456789abcde0123456789abcde0123456789abcde0123456789abcde--- "
                   "| head -c 10000000 >&2; echo the end >&2; exit 1");
    uint64_t took_ms = hf_test_now_ms() - from_ms;
    getrusage(RUSAGE_SELF, &after);
    assert_true(took_ms < 5000);
    assert_true(after.ru_maxrss - before.ru_maxrss < 4096); /* KiB */
    assert_int_equal(o.n_lines, HF_PROGRAM_OUTPUT_MAX / 64 + 1);
    char left_out[64];
    snprintf(left_out, sizeof left_out, "%d bytes of output left out",
             10000000 + 8 - HF_PROGRAM_OUTPUT_MAX);
    assert_int_equal(o.lines[o.n_lines - 1].stream, 0);
    assert_string_equal(o.lines[o.n_lines - 1].text, left_out);
    assert_int_equal(strlen(o.error), HF_PROGRAM_ERROR_MAX - 1); /* without its newline */
    assert_string_equal(o.error + strlen(o.error) - 7, "the end");
    forget(&o);
}

/* ---- its time, and its family ---- */

static void a_time_out_asks_first_and_kills_after_the_grace(void **state)
{
    (void)state;
    hf_program_job job = plain_job;
    outcome o;
    job.timeout_ms = 200;
    run_script(&o, "trap 'echo asked; exit 0' TERM; sleep 60 & wait",
               (hf_program){.grace_ms = 5000}, job);
    assert_true(has_line(&o, 1, "asked"));
    assert_true(o.result.timed_out);
    assert_int_equal(o.result.verdict, HF_VERDICT_RETRY);
    assert_string_equal(o.error, "time-out after 200ms");
    forget(&o);

    uint64_t from_ms = hf_test_now_ms();
    run_script(&o, "trap '' TERM; echo deaf >&2; while :; do sleep 0.05; done",
               (hf_program){.grace_ms = 300}, job);
    assert_true(hf_test_now_ms() - from_ms >= 500);
    assert_true(o.result.timed_out && o.result.by_signal);
    assert_int_equal(o.result.status, SIGKILL);
    assert_string_equal(o.error, "time-out after 200ms: deaf");
    forget(&o);
}

static void a_program_that_ended_while_the_loop_was_slow_has_not_timed_out(void **state)
{
    (void)state;
    const char *argv[] = {"true", NULL};
    hf_program spec = {.argv = argv};
    hf_program_job job = plain_job;
    outcome o;
    job.timeout_ms = 150;
    assert_int_equal(start_with(&o, &spec, job), HF_OK);
    hf_test_pause_ms(400); /* the loop does not turn */
    finish(&o);
    assert_false(o.result.timed_out);
    assert_int_equal(o.result.verdict, HF_VERDICT_DONE);
}

static void what_its_leader_leaves_in_the_group_is_killed(void **state)
{
    (void)state;
    outcome o;
    run_simply(&o, "sleep 60 & echo $!; (trap '' TERM HUP; sleep 60) & echo $!");
    assert_int_equal(o.result.verdict, HF_VERDICT_DONE);
    for (size_t i = 0; i < 2; i++) {
        pid_t pid = pid_in_line(&o, i);
        assert_true(pid > 1);
        EVENTUALLY(1000, !hf_pid_alive(pid));
    }
    forget(&o);
}

static void who_left_the_group_cannot_hold_the_verdict_back(void **state)
{
    (void)state;
    outcome o;
    char script[512];
    snprintf(script, sizeof script,
             "setsid sh -c 'echo $$; touch %s/left; exec sleep 60' & "
             "while [ ! -e %s/left ]; do sleep 0.01; done; echo here; exit 7",
             dir, dir);
    uint64_t from_ms = hf_test_now_ms();
    run_simply(&o, script);
    assert_true(hf_test_now_ms() - from_ms < 4000);
    assert_int_equal(o.result.status, 7);
    assert_true(has_line(&o, 1, "here"));
    pid_t left = pid_in_line(&o, 0);
    assert_true(left > 1 && hf_pid_alive(left));
    assert_int_equal(kill(left, SIGKILL), 0);
    forget(&o);
}

static void end_asks_and_kills_after_its_grace_or_at_once(void **state)
{
    (void)state;
    const char *polite[] = {"sh", "-c", "trap 'exit 9' TERM; echo up; sleep 60 & wait",
                            NULL};
    const char *deaf[] = {"sh", "-c",
                          "trap '' TERM; echo up; while :; do sleep 0.05; done", NULL};
    const struct {
        const char *const *argv;
        uint32_t grace_ms;
        int status;
    } cases[] = {{polite, 5000, 9}, {deaf, 200, SIGKILL}, {deaf, 0, SIGKILL}};
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        hf_program spec = {.argv = cases[i].argv};
        outcome o;
        assert_int_equal(start_with(&o, &spec, plain_job), HF_OK);
        int lines = 0;
        for (; lines < 1; lines = (int)o.n_lines)
            uv_run(&loop, UV_RUN_ONCE);
        hf_program_end(o.process, cases[i].grace_ms);
        finish(&o);
        assert_true(o.result.ended);
        assert_int_equal(o.result.status, cases[i].status);
        forget(&o);
    }
    outcome o; /* before it can have made its group */
    hf_program spec = {.argv = deaf};
    assert_int_equal(start_with(&o, &spec, plain_job), HF_OK);
    hf_program_end(o.process, 60000);
    hf_program_end(o.process, 0); /* sooner */
    finish(&o);
    assert_true(o.result.ended && o.result.by_signal);
    forget(&o);
}

static void closing_kills_everything_and_answers_each_once(void **state)
{
    (void)state;
    enum { N = 20 };
    static outcome outcomes[N];
    const char *argv[] = {"sh", "-c", "trap '' TERM; sleep 60 & wait", NULL};
    hf_program spec = {.argv = argv};
    for (size_t i = 0; i < N; i++)
        assert_int_equal(start_with(&outcomes[i], &spec, plain_job), HF_OK);
    bool closed = false;
    hf_programs_close(programs, on_closed, &closed);
    programs = NULL;
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(closed);
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

static void without_descriptors_nothing_is_half_started(void **state)
{
    (void)state;
    const char *argv[] = {"true", NULL};
    hf_program spec = {.argv = argv};
    struct rlimit limit, low;
    outcome o;
    run_simply(&o, "true"); /* what is made once is made now */
    forget(&o);
    int before = count_fds(), refused = 0, started = 0;
    getrlimit(RLIMIT_NOFILE, &limit);
    for (int room = 0; room <= 12; room++) {
        low = limit;
        low.rlim_cur = (rlim_t)before + (rlim_t)room;
        setrlimit(RLIMIT_NOFILE, &low);
        hf_err err = start_with(&o, &spec, plain_job);
        setrlimit(RLIMIT_NOFILE, &limit);
        if (err == HF_OK) {
            started++;
            finish(&o);
            assert_int_equal(o.result.verdict, HF_VERDICT_DONE);
        } else {
            refused++;
            assert_int_equal(err, HF_SYSTEM);
            run_for(2);
            assert_int_equal(o.done, 0);
        }
        assert_int_equal(count_fds(), before);
    }
    assert_true(refused >= 5 && started >= 1);
}

static void three_hundred_programs_leave_nothing_behind(void **state)
{
    (void)state;
    enum { AT_ONCE = 30, ROUNDS = 10 };
    static outcome outcomes[AT_ONCE];
    const char *argv[] = {SELF, "descriptors", NULL};
    hf_program spec = {.argv = argv};
    int before = count_fds();
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < AT_ONCE; i++)
            assert_int_equal(start_with(&outcomes[i], &spec, plain_job), HF_OK);
        for (size_t i = 0; i < AT_ONCE; i++) {
            finish(&outcomes[i]);
            assert_int_equal(outcomes[i].n_lines, 1);
            assert_string_equal(outcomes[i].lines[0].text, "0 1 2 3");
            forget(&outcomes[i]);
        }
    }
    assert_int_equal(count_fds(), before);
}

/* The minder is dead, and nobody has noticed yet. */
static void kill_minder_unseen(void)
{
    pid_t minder = hf_minder_pid(programs->minder);
    siginfo_t info;
    assert_true(minder > 0);
    kill(minder, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)minder, &info, WEXITED | WNOWAIT), 0);
}

static void a_program_that_cannot_tell_the_minder_is_not_executed(void **state)
{
    (void)state;
    char mark[HF_TEMPDIR_SIZE + 16];
    snprintf(mark, sizeof mark, "%s/mark", dir);
    const char *argv[] = {"touch", mark, NULL};
    hf_program spec = {.argv = argv};
    outcome o;
    kill_minder_unseen();
    assert_true(hf_programs_ready(programs));
    assert_int_equal(start_with(&o, &spec, plain_job), HF_OK);
    finish(&o);
    assert_true(o.result.minder_failed);
    assert_false(o.result.started);
    assert_int_equal(access(mark, F_OK), -1);
    run_until(&ready_calls[1], 1);
    assert_int_equal(ready_calls[0], 1);
}

static void without_a_minder_nothing_is_started_until_there_is_another(void **state)
{
    (void)state;
    const char *argv[] = {"true", NULL};
    hf_program spec = {.argv = argv};
    outcome o;
    pid_t first = hf_minder_pid(programs->minder);
    kill_minder_unseen();
    run_until(&ready_calls[0], 1);
    assert_false(hf_programs_ready(programs));
    assert_int_equal(start_with(&o, &spec, plain_job), HF_BUSY);
    run_until(&ready_calls[1], 1);
    assert_true(hf_programs_ready(programs));
    assert_true(hf_minder_pid(programs->minder) != first);
    run_simply(&o, "true");
    assert_int_equal(o.result.verdict, HF_VERDICT_DONE);
    forget(&o);
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
        hf_programs *none = NULL;
        char detail[HF_DETAIL_SIZE];
        hf_programs_opts opts = {.minder_path = cases[i].path, .kill_grace_ms = 1000};
        assert_int_equal(hf_programs_new(&none, &loop, &opts, detail), HF_CONFIG);
        assert_null(none);
        assert_non_null(strstr(detail, cases[i].text));
    }
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

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "minder") == 0)
        return hf_minder_main(argc, argv);
    if (argc > 1 && strcmp(argv[1], "descriptors") == 0)
        return print_descriptors();
    if (argc > 1 && strcmp(argv[1], "signals") == 0)
        return print_signals();
#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)
    const struct CMUnitTest tests[] = {
        TEST(the_exit_status_is_the_verdict),
        TEST(a_verdict_line_goes_before_the_exit_status),
        TEST(what_cannot_be_executed_says_why_and_is_retried),
        TEST(stdin_is_the_payload_and_may_be_left_alone),
        TEST(a_program_that_never_reads_1_mib_blocks_nothing),
        TEST(its_environment_is_what_the_contract_says),
        TEST(it_has_no_descriptors_but_0_to_3),
        TEST(it_starts_with_default_signals_in_a_session_of_its_own),
        TEST(each_line_is_told_with_its_stream),
        TEST(ten_megabytes_on_stderr_are_cut_in_bounded_memory),
        TEST(a_time_out_asks_first_and_kills_after_the_grace),
        TEST(a_program_that_ended_while_the_loop_was_slow_has_not_timed_out),
        TEST(what_its_leader_leaves_in_the_group_is_killed),
        TEST(who_left_the_group_cannot_hold_the_verdict_back),
        TEST(end_asks_and_kills_after_its_grace_or_at_once),
        TEST(closing_kills_everything_and_answers_each_once),
        TEST(without_descriptors_nothing_is_half_started),
        TEST(three_hundred_programs_leave_nothing_behind),
        TEST(a_program_that_cannot_tell_the_minder_is_not_executed),
        TEST(without_a_minder_nothing_is_started_until_there_is_another),
        TEST(a_minder_that_is_none_is_said_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
