/* test_bench.c - `holdfast bench` gives every figure that it promises, and leaves nothing
 * in a Redis that it was given, nor a process, also when it is interrupted. How high the
 * figures are is for the acceptance scripts to say. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "tests/support/cli_fixture.h"
#include "tests/support/eventually.h"

enum { BENCH_MS = 300000, KEYS_MS = 20000, END_MS = 30000 };

static hf_cli_fixture fixture;

static int up(void **state)
{
    (void)state;
    hf_cli_fixture_start(&fixture, HF_TEST_COMMAND);
    return setenv("TMPDIR", fixture.dir, 1);
}

static int down(void **state)
{
    (void)state;
    hf_cli_fixture_stop(&fixture);
    return 0;
}

/* Whether a process has our TMPDIR in its environment. */
static bool is_ours(const char *pid, const char *variable)
{
    char name[300], text[16384];
    (void)snprintf(name, sizeof name, "/proc/%s/environ", pid);
    FILE *file = fopen(name, "rb");
    size_t len = file == NULL ? 0 : fread(text, 1, sizeof text - 1, file);
    if (file != NULL)
        (void)fclose(file);
    text[len] = '\0';
    for (size_t at = 0; at < len; at += strlen(text + at) + 1) {
        if (strcmp(text + at, variable) == 0)
            return true;
    }
    return false;
}

/* Processes that the bench has left: they inherited what we gave it. */
static size_t left_running(void)
{
    size_t n = 0;
    const struct dirent *entry;
    char variable[HF_TEMPDIR_SIZE + 8];
    (void)snprintf(variable, sizeof variable, "TMPDIR=%s", fixture.dir);
    DIR *list = opendir("/proc");
    assert_non_null(list);
    while ((entry = readdir(list)) != NULL) {
        long pid = strtol(entry->d_name, NULL, 10);
        if (pid > 0 && pid != (long)getpid())
            n += is_ours(entry->d_name, variable) ? 1 : 0;
    }
    closedir(list);
    return n;
}

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value))
        fail_msg("'%s' is no number", key);
    return json_number_value(value);
}

static void assert_spread(const json_t *figures, const char *key)
{
    const json_t *spread = json_object_get(figures, key);
    assert_true(json_is_object(spread));
    assert_int_equal(json_object_size(spread), 2);
    assert_true(number(spread, "p50") > 0);
    assert_true(number(spread, "p99") >= number(spread, "p50"));
}

static void test_it_gives_every_figure_and_leaves_no_key(void **state)
{
    (void)state;
    static const char *const numbers[] = {
        "enqueue_per_s", "process_per_s", "bare_enqueue_per_s", "bare_process_per_s",
        "enqueue_ratio", "process_ratio", "bytes_per_job"};
    static const char *const spreads[] = {"pickup_us", "bare_pickup_us", "lateness_ms",
                                          "recovery_ms"};
    hf_proc bench;
    char out[HF_CLI_PATH];
    hf_cli_fixture_path(&fixture, "figures", out);
    const char *const args[] = {HF_TEST_COMMAND, "bench",   "--json",          "--jobs",
                                "3000",          "--redis", fixture.redis.url, NULL};
    hf_proc_start(&bench, &(hf_proc_options){.args = args, .out = out});
    bool ended = hf_proc_wait(&bench, BENCH_MS);
    hf_proc_kill(&bench); /* or the next test counts it */
    assert_true(ended);
    assert_int_equal(bench.status, 0);
    const char *text = hf_cli_fixture_get(&fixture, "figures");
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    json_t *figures = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(figures);
    assert_int_equal(json_object_size(figures), 11);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        assert_true(number(figures, numbers[i]) > 0);
    for (size_t i = 0; i < sizeof spreads / sizeof *spreads; i++)
        assert_spread(figures, spreads[i]);
    json_decref(figures);
    assert_int_equal(hf_fixture_number(&fixture.redis, "DBSIZE"), 0);
    assert_int_equal(left_running(), 0);
}

static void test_an_interrupt_leaves_no_key_and_no_process(void **state)
{
    (void)state;
    hf_proc bench;
    const char *const args[] = {HF_TEST_COMMAND, "bench",           "--jobs", "1000",
                                "--redis",       fixture.redis.url, NULL};
    hf_proc_start(&bench, &(hf_proc_options){.args = args, .out = "/dev/null"});
    EVENTUALLY(KEYS_MS, hf_fixture_number(&fixture.redis, "DBSIZE") > 0);
    assert_int_equal(left_running(), 1); /* so that none below means something */
    hf_proc_signal(&bench, SIGINT);
    assert_true(hf_proc_wait(&bench, END_MS));
    assert_int_equal(bench.status, 128 + SIGINT);
    assert_int_equal(hf_fixture_number(&fixture.redis, "DBSIZE"), 0);
    assert_int_equal(left_running(), 0);
}

static void test_what_makes_no_sense_is_a_usage_error(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "bench --jobs 0",           "bench --jobs many",
        "bench --jobs 10000001",    "bench --payload -1",
        "bench --payload 2097152",  "bench --concurrency 0",
        "bench --concurrency 1025", "bench more",
        "bench --redis nowhere",    "bench --jobs 10000000 --payload 1000"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        int code = hf_cli_fixture_run(&fixture, lines[i], NULL, NULL);
        if (code != 64 || fixture.err[0] == '\0')
            fail_msg("`%s` ended with %d: %s", lines[i], code, fixture.err);
    }
}

static void test_the_victim_is_nothing_to_start_by_hand(void **state)
{
    (void)state;
    assert_int_equal(hf_cli_fixture_run(&fixture, "bench-victim", "", NULL), 65);
    assert_non_null(strstr(fixture.err, "holdfast bench"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_gives_every_figure_and_leaves_no_key),
        cmocka_unit_test(test_an_interrupt_leaves_no_key_and_no_process),
        cmocka_unit_test(test_what_makes_no_sense_is_a_usage_error),
        cmocka_unit_test(test_the_victim_is_nothing_to_start_by_hand),
    };
    return cmocka_run_group_tests(tests, up, down);
}
