/* test_cli_examples.c - every example in the help of a command runs, as it is printed,
 * against a private Redis with a few jobs, a schedule and a held lock. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "tests/support/cli_try.h"
#include "tests/support/eventually.h"

enum { LINE_SIZE = 512, RUN_MS = 120000, START_MS = 30000, NAGIOS_CRITICAL = 2 };

/* What the examples call theirs: a waiting job, one that is kept, a dead one, jobs of the
 * queue "mail", an empty queue "mial", a schedule and files. */
#define SEED                                                                             \
    "set -e\n"                                                                           \
    "holdfast enqueue report --id report-7 --keep 1h\n"                                  \
    "holdfast enqueue import --id import-3\n"                                            \
    "holdfast enqueue import --id import-3 --queue mail\n"                               \
    "holdfast worker run -c worker.yaml --burst\n"                                       \
    "holdfast job delete import-3 --queue $OTHER --yes\n"                                \
    "holdfast enqueue email '{\"to\":\"ada\"}' --id order-17 --in 1h\n"                  \
    "holdfast enqueue email --queue mail\n"                                              \
    "holdfast queue pause mial\n"                                                        \
    "holdfast cron add nightly report --every 1d\n"

static const char worker_yaml[] = "queues:\n"
                                  "  - name: default\n"
                                  "  - name: mail\n"
                                  "  - name: reports\n"
                                  "handlers:\n"
                                  "  - type: email\n"
                                  "    exec: ['true']\n"
                                  "  - type: report\n"
                                  "    exec: [echo, made]\n"
                                  "    logs: true\n"
                                  "  - type: import\n"
                                  "    exec: ['false']\n"
                                  "    max_attempts: 1\n";

static hf_proc beside; /* what an example needs: a worker, or the holder of a lock */

static bool has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

/* The command is in PATH and finds Redis by itself, as it does for a user. */
static void set_environment(void)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s:%s", HF_TEST_BUILD, getenv("PATH"));
    assert_int_equal(setenv("PATH", path, 1), 0);
    assert_int_equal(setenv("REDIS_URL", hf_try_fixture.redis.url, 1), 0);
    assert_int_equal(setenv("HOLDFAST_LOCK_OWNER", "cd83jq0mrvf3a", 1), 0);
}

static void start(hf_proc *proc, const char *line)
{
    char out[HF_CLI_PATH], err[HF_CLI_PATH];
    const char *const args[] = {"bash", "-c", line, NULL};
    hf_cli_fixture_path(&hf_try_fixture, "out", out);
    hf_cli_fixture_path(&hf_try_fixture, "log", err);
    hf_write_file(out, "");
    hf_write_file(err, "");
    hf_proc_start(proc,
                  &(hf_proc_options){
                      .args = args, .out = out, .err = err, .dir = hf_try_fixture.dir});
}

static int run(const char *line)
{
    hf_proc proc = {0};
    start(&proc, line);
    if (!hf_proc_wait(&proc, RUN_MS)) {
        hf_proc_kill(&proc);
        return -1;
    }
    return proc.status;
}

/* From one database of Redis to another. */
static void copy_keys(int from, int to)
{
    static const char script[] =
        "redis.call('SELECT', ARGV[1]) local keys = redis.call('KEYS', '*') "
        "for _, key in ipairs(keys) do redis.call('COPY', key, key, 'DB', ARGV[2]) end "
        "return #keys";
    assert_true(hf_fixture_number(&hf_try_fixture.redis, "EVAL %s 0 %d %d", script, from,
                                  to) > 0);
}

/* Each example finds the same. A dead job is in the queue that it names. The commands run
 * once for each of the two, which other databases keep. */
static void seed(const char *example)
{
    static bool kept[2];
    const int mail = has(example, "mail");
    hf_fixture_command(&hf_try_fixture.redis, "FLUSHDB");
    hf_cli_fixture_put(&hf_try_fixture, "worker.yaml", worker_yaml);
    hf_cli_fixture_put(&hf_try_fixture, "jobs.jsonl", "{\"type\":\"email\"}\n");
    if (kept[mail]) {
        copy_keys(1 + mail, 0);
        return;
    }
    assert_int_equal(setenv("OTHER", mail ? "default" : "mail", 1), 0);
    int code = run(SEED);
    if (code != 0)
        fail_msg("the seed ends with %d: %s", code,
                 hf_cli_fixture_get(&hf_try_fixture, "log"));
    copy_keys(0, 1 + mail);
    kept[mail] = true;
}

static bool is_held(void)
{
    return run("holdfast lock show shop/stock") == 0;
}

/* What it needs beside it runs, until it is killed. */
static void begin_beside(const char *example)
{
    if (has(example, "--wait") && has(example, "enqueue")) {
        start(&beside, "exec holdfast worker run -c worker.yaml");
    } else if (has(example, "shop/stock")) {
        start(&beside, "exec holdfast lock run shop/stock -- sleep 1000");
        EVENTUALLY(START_MS, is_held());
    }
}

/* A worker runs until it is told to stop. */
static int run_until_told(const char *line)
{
    hf_proc proc = {0};
    char text[LINE_SIZE + 8];
    (void)snprintf(text, sizeof text, "exec %s", line);
    start(&proc, text);
    EVENTUALLY(START_MS, hf_try_logged("serving") || hf_try_logged("listening"));
    hf_proc_signal(&proc, SIGTERM);
    assert_true(hf_proc_wait(&proc, RUN_MS));
    return proc.status;
}

static bool runs_for_ever(const char *line)
{
    return (has(line, "worker run") && !has(line, "--burst")) || has(line, "--listen");
}

static void try_example(const hf_command *command, const char *line)
{
    char start_of_it[LINE_SIZE];
    (void)snprintf(start_of_it, sizeof start_of_it, "holdfast %s", command->name);
    size_t len = strlen(start_of_it);
    if (strncmp(line, start_of_it, len) != 0 || (line[len] != '\0' && line[len] != ' '))
        fail_msg("`%s` is no example of `%s`", line, start_of_it);
    if (command->run == hf_cmd_demo || command->run == hf_cmd_bench)
        return; /* tests/chaos/test_demo.c and test_bench.c run them */
    if (has(line, "--listen") && access(HF_TEST_BUILD "/holdfast-dashboard", X_OK) != 0)
        return; /* it is not built here */
    if (!command->bare)
        seed(line);
    begin_beside(line);
    int code = runs_for_ever(line) ? run_until_told(line) : run(line);
    /* This Redis saves nothing, and after a while jobs have waited long for a worker. */
    bool finds = command->run == hf_cmd_doctor || command->run == hf_cmd_wrong;
    int found = has(line, "--nagios") ? NAGIOS_CRITICAL : HF_EXIT_NO;
    if (code != 0 && !(finds && code > 0 && code <= found)) {
        print_message("%s", hf_cli_fixture_get(&hf_try_fixture, "out"));
        fail_msg("`%s` ends with %d: %s", line, code,
                 hf_cli_fixture_get(&hf_try_fixture, "log"));
    }
    hf_proc_kill(&beside);
}

static void try_examples(const hf_command *command)
{
    char line[LINE_SIZE];
    size_t n = 0;
    for (const char *at = command->examples; at != NULL && *at != '\0';) {
        size_t len = strcspn(at, "\n");
        assert_true(len < sizeof line);
        (void)snprintf(line, sizeof line, "%.*s", (int)len, at);
        if (!has(line, "--tz") || access("/usr/share/zoneinfo/Europe/Berlin", F_OK) == 0)
            try_example(command, line);
        at += len + (at[len] == '\n' ? 1 : 0);
        n++;
    }
    if ((n > 0) == command->hidden)
        fail_msg("%s has %zu examples", command->name, n);
}

static void every_example_of_a_help_runs(void **state)
{
    (void)state;
    for (const hf_command *c = hf_commands(); c->name != NULL; c++)
        try_examples(c);
}

static int end(void **state)
{
    (void)state;
    hf_proc_kill(&beside);
    return 0;
}

int main(void)
{
    hf_try_up(HF_TEST_COMMAND, NULL);
    set_environment();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(every_example_of_a_help_runs, end),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hf_try_down();
    return failed;
}
