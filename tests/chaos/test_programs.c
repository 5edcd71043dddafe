/* test_programs.c - real programs, run by worker/program/programs.h: how they end, what
 * they get, and what they print. This program is also its own minder and its own helpers,
 * chosen by its first argument. */
#define _DEFAULT_SOURCE /* NOLINT(bugprone-reserved-identifier): MAP_ANONYMOUS */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/support/program_fixture.h"

#include "base/base.h"
#include "worker/program/output.h"

static hf_program_fixture fixture;

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
        hf_outcome o;
        hf_program_fixture_sh(&fixture, &o, cases[i].script);
        assert_int_equal(o.result.verdict, cases[i].verdict);
        assert_int_equal(o.result.by_signal, cases[i].by_signal);
        assert_int_equal(o.result.status, cases[i].status);
        assert_string_equal(o.error, cases[i].error);
        assert_true(o.result.started);
        assert_false(o.result.timed_out || o.result.ended || o.result.withheld);
        hf_outcome_free(&o);
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
        {"echo '{\"verdict\":\"perhaps\"}' >&3", HF_VERDICT_DONE, -1, ""},
        {"echo '{\"verdict\":\"release\",\"in\":\"10m\"}' >&3; echo text >&2; exit 1",
         HF_VERDICT_RELEASE, 600000, ""},
        {"echo '{\"verdict\":\"cancel\",\"in\":\"10m\",\"error\":\"too late\"}' >&3",
         HF_VERDICT_CANCEL, -1, "too late"},
        {"echo '{\"verdict\":\"retry\",\"in\":30}' >&3; exit 65", HF_VERDICT_DEAD, -1,
         "exit status 65"},
        {"echo '{\"verdict\":\"done\"}' >&3; kill -9 $$", HF_VERDICT_RETRY, -1,
         "killed by signal 9"},
    };
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        hf_outcome o;
        hf_program_fixture_sh(&fixture, &o, cases[i].script);
        assert_int_equal(o.result.verdict, cases[i].verdict);
        assert_int_equal(o.result.has_retry_in, cases[i].retry_in_ms >= 0);
        if (o.result.has_retry_in)
            assert_int_equal(o.result.retry_in_ms, cases[i].retry_in_ms);
        assert_string_equal(o.error, cases[i].error);
        hf_outcome_free(&o);
    }
}

static void what_cannot_be_executed_says_why_and_is_retried(void **state)
{
    (void)state;
    char plain[HF_TEMPDIR_SIZE + 16];
    snprintf(plain, sizeof plain, "%s/plain", fixture.dir);
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
        hf_outcome o;
        assert_int_equal(
            hf_program_fixture_begin(&fixture, &o, &cases[i].spec, hf_plain_job), HF_OK);
        hf_program_fixture_finish(&fixture, &o);
        assert_int_equal(o.result.verdict, HF_VERDICT_RETRY);
        assert_false(o.result.started);
        assert_false(o.result.withheld);
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
        hf_program_job job = hf_plain_job;
        hf_outcome o;
        job.payload = payload;
        job.payload_len = SIZE;
        hf_program_fixture_script(&fixture, &o, cases[i].script,
                                  (hf_program){HF_PROGRAM_INIT}, job);
        assert_int_equal(o.result.verdict, HF_VERDICT_DONE);
        if (cases[i].line != NULL)
            assert_true(hf_outcome_has(&o, 1, cases[i].line));
        hf_outcome_free(&o);
    }
    hf_program_job job = hf_plain_job;
    hf_outcome o;
    hf_program_fixture_script(&fixture, &o, "cat; echo .", (hf_program){HF_PROGRAM_INIT},
                              job);
    assert_true(hf_outcome_has(&o, 1, "."));
    hf_outcome_free(&o);
    free(payload);
}

static void a_program_that_never_reads_1_mib_blocks_nothing(void **state)
{
    (void)state;
    enum { SIZE = 1 << 20 };
    char *payload = calloc(1, SIZE);
    const char *argv[] = {"sleep", "1000", NULL};
    hf_program spec = {HF_PROGRAM_INIT, .argv = argv};
    hf_program_job job = hf_plain_job;
    hf_outcome sleeper, other;
    job.payload = payload;
    job.payload_len = SIZE;
    assert_int_equal(hf_program_fixture_begin(&fixture, &sleeper, &spec, job), HF_OK);
    hf_program_fixture_sh(&fixture, &other, "echo other");
    assert_true(hf_outcome_has(&other, 1, "other"));
    assert_int_equal(sleeper.done, 0);
    hf_program_end(sleeper.process, 0);
    hf_program_fixture_finish(&fixture, &sleeper);
    assert_true(sleeper.result.ended);
    assert_int_equal(sleeper.result.status, SIGKILL);
    hf_outcome_free(&other);
    free(payload);
}

static void its_environment_is_what_is_documented(void **state)
{
    (void)state;
    static const char *const names[] = {"HFT_PASSED", "HFT_UNSET", "HOLDFAST_FENCE",
                                        "PATH", NULL};
    hf_program_job job = hf_plain_job;
    job.headers = "{\"a\":\"b\"}";
    hf_outcome o;
    assert_int_equal(setenv("HFT_PASSED", "a b", 1), 0);
    assert_int_equal(setenv("HFT_SECRET", "x", 1), 0);
    assert_int_equal(setenv("HOLDFAST_FENCE", "99", 1), 0);
    assert_int_equal(setenv("TZ", "UTC", 1), 0);
    job.attempt = 4;
    job.deadline_unix_ms = 1700000000123;
    const char *argv[] = {"env", NULL};
    hf_program spec = {HF_PROGRAM_INIT, .argv = argv, .env = names};
    assert_int_equal(hf_program_fixture_begin(&fixture, &o, &spec, job), HF_OK);
    hf_program_fixture_finish(&fixture, &o);
    static const char *const expected[] = {"HOLDFAST_VERDICT_FD=3",
                                           "HOLDFAST_CHECKPOINT_FD=4",
                                           "HOLDFAST_JOB_ID=j1",
                                           "HOLDFAST_TYPE=t",
                                           "HOLDFAST_QUEUE=q",
                                           "HOLDFAST_ATTEMPT=4",
                                           "HOLDFAST_FENCE=17",
                                           "HFT_PASSED=a b",
                                           "TZ=UTC",
                                           "HOLDFAST_DEADLINE_UNIX_MS=1700000000123",
                                           "HOLDFAST_HEADERS={\"a\":\"b\"}"};
    for (size_t i = 0; i < HF_COUNT(expected); i++)
        assert_true(hf_outcome_has(&o, 1, expected[i]));
    size_t passed = HF_COUNT(expected);
    for (size_t i = 0; i < o.n_lines; i++)
        for (const char *const *name =
                 (const char *const[]){"PATH=", "HOME=", "LANG=", "TMPDIR=", NULL};
             *name != NULL; name++)
            passed += strncmp(o.lines[i].text, *name, strlen(*name)) == 0;
    assert_int_equal(o.n_lines, passed);
    unsetenv("HOLDFAST_FENCE");
    hf_outcome_free(&o);
}

static void it_has_no_descriptors_but_0_to_4(void **state)
{
    (void)state;
    int leaks[20];
    for (size_t i = 0; i < HF_COUNT(leaks); i++)
        leaks[i] = open("/dev/null", O_RDONLY); /* a host that does not mark them */
    const char *argv[] = {HF_PROGRAM_FIXTURE_SELF, "descriptors", NULL};
    hf_program spec = {HF_PROGRAM_INIT, .argv = argv};
    hf_outcome o;
    assert_int_equal(hf_program_fixture_begin(&fixture, &o, &spec, hf_plain_job), HF_OK);
    hf_program_fixture_finish(&fixture, &o);
    assert_int_equal(o.n_lines, 1);
    assert_string_equal(o.lines[0].text, "0 1 2 3 4");
    for (size_t i = 0; i < HF_COUNT(leaks); i++)
        close(leaks[i]);
    hf_outcome_free(&o);
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
    const char *argv[] = {HF_PROGRAM_FIXTURE_SELF, "signals", NULL};
    hf_program spec = {HF_PROGRAM_INIT, .argv = argv, .cwd = "/"};
    hf_outcome o;
    assert_int_equal(hf_program_fixture_begin(&fixture, &o, &spec, hf_plain_job), HF_OK);
    hf_program_fixture_finish(&fixture, &o);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    sigaction(SIGHUP, &before, NULL);
    assert_true(hf_outcome_has(&o, 1, "blocked 0 ignored 0"));
    assert_true(hf_outcome_has(&o, 1, "leads its session and group"));
    assert_true(hf_outcome_has(&o, 1, "in /"));
    hf_outcome_free(&o);
}

#ifndef HF_SANITIZED /* where it is copied */
/* Of a process that was copied each page that it writes to afterwards is a fault. */
static void a_large_worker_is_not_copied_for_it(void **state)
{
    (void)state;
    enum { PAGES = 4096, PAGE = 4096 };
    struct rusage before, after;
    char *large = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(large, MAP_FAILED);
    (void)madvise(large, PAGES * PAGE, MADV_NOHUGEPAGE);
    memset(large, 1, PAGES * PAGE);
    getrusage(RUSAGE_SELF, &before);
    hf_outcome o;
    hf_program_fixture_sh(&fixture, &o, "true");
    memset(large, 2, PAGES * PAGE);
    getrusage(RUSAGE_SELF, &after);
    assert_int_equal(o.result.verdict, HF_VERDICT_DONE);
    assert_true(after.ru_minflt - before.ru_minflt < PAGES / 4);
    munmap(large, PAGES * PAGE);
    hf_outcome_free(&o);
}
#endif

/* ---- what it prints ---- */

static void each_line_is_told_with_its_stream(void **state)
{
    (void)state;
    hf_outcome o;
    hf_program_fixture_sh(&fixture, &o,
                          "echo one; echo two >&2; printf three; "
                          "head -c 5000 /dev/zero | tr '\\0' x >&2");
    assert_true(hf_outcome_has(&o, 1, "one"));
    assert_true(hf_outcome_has(&o, 2, "two"));
    assert_true(hf_outcome_has(&o, 1, "three"));
    assert_int_equal(o.n_lines, 5);
    size_t sizes = 0; /* the long line comes in two parts */
    for (size_t i = 0; i < o.n_lines; i++)
        sizes += o.lines[i].text[0] == 'x' ? strlen(o.lines[i].text) : 0;
    assert_int_equal(sizes, 5000);
    hf_outcome_free(&o);
}

static void ten_megabytes_on_stderr_are_cut_in_bounded_memory(void **state)
{
    (void)state;
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    hf_outcome o;
    uint64_t from_ms = hf_test_fair_ms();
    hf_program_fixture_sh(
        &fixture, &o,
        "yes 0123456789abcde0123456789abcde0123456789abcde0123456789abcde--- "
        "| head -c 10000000 >&2; echo the end >&2; exit 1");
    uint64_t took_ms = hf_test_fair_ms() - from_ms;
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
    hf_outcome_free(&o);
}

int main(int argc, char **argv)
{
    int status;
    if (hf_program_fixture_role(argc, argv, &status))
        return status;
#define TEST(name) HF_PROGRAM_TEST(name, &fixture)
    const struct CMUnitTest tests[] = {
        TEST(the_exit_status_is_the_verdict),
        TEST(a_verdict_line_goes_before_the_exit_status),
        TEST(what_cannot_be_executed_says_why_and_is_retried),
        TEST(stdin_is_the_payload_and_may_be_left_alone),
        TEST(a_program_that_never_reads_1_mib_blocks_nothing),
        TEST(its_environment_is_what_is_documented),
        TEST(it_has_no_descriptors_but_0_to_4),
        TEST(it_starts_with_default_signals_in_a_session_of_its_own),
#ifndef HF_SANITIZED
        TEST(a_large_worker_is_not_copied_for_it),
#endif
        TEST(each_line_is_told_with_its_stream),
        TEST(ten_megabytes_on_stderr_are_cut_in_bounded_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
