/* `holdfast worker -- COMMAND`: a long-lived program that the command line names, and
 * what helps while it is written. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/cli_try.h"
#include "tests/support/eventually.h"

#define PROGRAM HF_TEST_HELPERS "/hf-pool-program"

enum { SOON_MS = 30000, LINE = 512, FOLDERS_MAX = 4096 };

static hf_cli_fixture *const fixture = &hf_try_fixture;
static hf_proc *const worker = &hf_try_proc;

static int run(const char *line)
{
    return hf_cli_fixture_run(fixture, line, NULL, NULL);
}

static size_t logged(const char *text)
{
    size_t n = 0;
    for (const char *at = hf_cli_fixture_get(fixture, "log");
         (at = strstr(at, text)) != NULL; at++)
        n++;
    return n;
}

static void start(const char *options, const char *arguments)
{
    char line[LINE];
    (void)snprintf(line, sizeof line, "worker @ %s -- " PROGRAM " %s", options,
                   arguments);
    hf_try_worker(line);
}

static void make_folder(const char *name)
{
    char path[HF_CLI_PATH];
    hf_cli_fixture_path(fixture, name, path);
    assert_int_equal(mkdir(path, 0700), 0);
}

static void end(void)
{
    hf_proc_signal(worker, SIGTERM);
    assert_true(hf_proc_wait(worker, SOON_MS));
    assert_int_equal(worker->status, 0);
}

static void it_is_replaced_when_its_files_change(void **state)
{
    (void)state;
    make_folder("code");
    make_folder("code/__pycache__");
    hf_cli_fixture_put(fixture, "code/app.py", "1");
    start("--dev --watch code", "");
    EVENTUALLY(SOON_MS, logged("a process of a pool is ready") == 1);
    hf_cli_fixture_put(fixture, "code/__pycache__/app.pyc", "1");
    hf_cli_fixture_put(fixture, "code/.app.py.swp", "1");
    ALWAYS(600, logged("msg=reloaded") == 0);
    hf_cli_fixture_put(fixture, "code/app.py", "2");
    EVENTUALLY(SOON_MS, logged("msg=reloaded") == 1);
    EVENTUALLY(SOON_MS, logged("a process of a pool is ready") == 2);
    make_folder("code/more");
    EVENTUALLY(SOON_MS, logged("msg=reloaded") == 2);
    hf_cli_fixture_put(fixture, "code/more/other.py", "1");
    EVENTUALLY(SOON_MS, logged("msg=reloaded") == 3);
    assert_int_equal(run("enqueue noop @ --wait"), 0);
    end();
}

static bool shows(const char *options, const char *text)
{
    char line[LINE];
    (void)snprintf(line, sizeof line, "queue show default @ %s", options);
    return run(line) == 0 && strstr(fixture->out, text) != NULL;
}

static void its_pool_is_shown_with_its_queue(void **state)
{
    (void)state;
    start("--processes 2", "parallel=3");
    EVENTUALLY(SOON_MS, shows("", "  pools     hf-pool-program parallel=3: processes 2  "
                                  "slots 6  running 0\n"));
    assert_true(shows("--json", "\"pools\":[{\"name\":\"hf-pool-program parallel=3\","
                                "\"workers\":1,\"down\":0,\"processes\":2,\"slots\":6,"
                                "\"running\":0}]"));
    end();
    assert_false(shows("--json", "pools"));
}

static void its_outputs_are_kept_if_that_is_wanted(void **state)
{
    (void)state;
    start("--processes 1", "");
    assert_int_equal(run("enqueue dead @ --id a"), 0);
    EVENTUALLY(SOON_MS, logged("outcome=dead") == 1);
    end();
    start("--processes 1 --logs", "");
    assert_int_equal(run("enqueue dead @ --id b"), 0);
    EVENTUALLY(SOON_MS, logged("outcome=dead") == 1);
    end();
    (void)run("job logs a @");
    assert_null(strstr(fixture->out, "to stdout a"));
    assert_int_equal(run("job logs b @"), 0);
    assert_non_null(strstr(fixture->out, "to stdout b"));
    assert_int_equal(run("job show b @"), 0);
    assert_non_null(strstr(fixture->out, "of 1 run: holdfast job logs b -q default\n"));
}

static void queues_that_it_names_are_served_unless_others_are_chosen(void **state)
{
    (void)state;
    hf_cli_fixture_put(fixture, "members", ",\"queue\":\"mail\"");
    start("--processes 1", "members=members");
    assert_int_equal(run("enqueue noop @ -q mail --wait"), 0);
    assert_int_equal(run("enqueue noop @ --wait"), 0);
    end();
    start("--processes 1 -q other", "members=members");
    EVENTUALLY(SOON_MS, logged("a type of a pool is in a queue that is not served") > 0);
    assert_int_equal(logged("a program names this queue"), 0);
    end();
}

static void one_file_may_be_watched_alone(void **state)
{
    (void)state;
    make_folder("one");
    hf_cli_fixture_put(fixture, "one/app.py", "1");
    hf_cli_fixture_put(fixture, "one/other.py", "1");
    start("--watch one/app.py --processes 1", "");
    hf_cli_fixture_put(fixture, "one/other.py", "2");
    ALWAYS(600, logged("msg=reloaded") == 0);
    hf_cli_fixture_put(fixture, "one/app.py", "2");
    EVENTUALLY(SOON_MS, logged("msg=reloaded") == 1);
    end();
}

/* More than a worker watches come at once, after its start. */
static void a_new_folder_that_cannot_be_watched_is_told(void **state)
{
    char from[HF_CLI_PATH], to[HF_CLI_PATH];
    (void)state;
    make_folder("empty");
    make_folder("many");
    for (int i = 0; i < FOLDERS_MAX; i++) {
        char name[32];
        snprintf(name, sizeof name, "many/%d", i);
        make_folder(name);
    }
    start("--watch empty --processes 1", "");
    hf_cli_fixture_path(fixture, "many", from);
    hf_cli_fixture_path(fixture, "empty/many", to);
    assert_int_equal(rename(from, to), 0);
    EVENTUALLY(SOON_MS, logged("changes in a new folder are not seen") == 1);
    assert_int_equal(logged("expected at most 4096 folders to be watched"), 1);
    end();
}

static void what_is_not_there_cannot_be_watched(void **state)
{
    (void)state;
    assert_int_not_equal(run("worker @ --watch nowhere -- true"), 0);
    assert_string_equal(fixture->err, "holdfast: --watch: 'nowhere' cannot be watched: "
                                      "No such file or directory\n");
}

static void no_time_out_ends_a_run_in_development(void **state)
{
    (void)state;
    start("--dev", "timeout=50");
    assert_int_equal(run("enqueue sleep 400 @ --timeout 100ms --wait"), 0);
    assert_int_equal(logged("timed out"), 0);
    end();
}

static void it_ends_if_the_command_never_starts(void **state)
{
    (void)state;
    hf_cli_fixture_put(fixture, "how", "exit 1");
    assert_int_equal(run("worker @ --processes 1 -- " PROGRAM " start=how"), 78);
    assert_non_null(strstr(fixture->err, "3 starts of 'hf-pool-program start=how' have "
                                         "failed, the last one: exited with status 1"));
}

/* Its parent is this program, so this shows only that it starts and serves. */
static void it_is_tied_to_its_parent_alone(void **state)
{
    char options[64], expected[128];
    (void)state;
    assert_int_equal(run("worker @ --parent 1 -- true"), 64);
    (void)snprintf(expected, sizeof expected,
                   "holdfast: --parent: expected the parent of this process, %d, found 1",
                   (int)getpid());
    hf_try_has(fixture->err, expected);
    (void)snprintf(options, sizeof options, "--processes 1 --parent %d", (int)getpid());
    start(options, "");
    assert_int_equal(run("enqueue noop @ --wait"), 0);
    end();
}

/* Each thread of it that dies may tell the worker so: it is not asked a second time to
 * hurry. */
static void a_parent_that_dies_slowly_leaves_its_jobs_the_time_to_end(void **state)
{
    (void)state;
    hf_cli_fixture other = *fixture;
    other.command = HF_TEST_HELPERS "/hf-parent";
    hf_cli_fixture_begin(&other, worker,
                         HF_TEST_COMMAND " worker @ --parent PARENT -- " PROGRAM, "log");
    EVENTUALLY(SOON_MS, logged("msg=serving") == 1);
    assert_int_equal(run("enqueue sleep 1500 @ --id a --keep 1h"), 0);
    EVENTUALLY(SOON_MS, hf_try_is_in("a", "running"));
    hf_proc_signal(worker, SIGUSR1);
    EVENTUALLY(SOON_MS, run("worker list @ --json") == 0 &&
                            strstr(fixture->out, "\"state\":\"stopping\"") != NULL);
    hf_proc_kill(worker);
    EVENTUALLY(SOON_MS, !hf_try_is_in("a", "running"));
    assert_true(hf_try_is_in("a", "done"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, hf_try_clean, hf_try_clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_is_replaced_when_its_files_change),
        TEST(its_pool_is_shown_with_its_queue),
        TEST(its_outputs_are_kept_if_that_is_wanted),
        TEST(queues_that_it_names_are_served_unless_others_are_chosen),
        TEST(one_file_may_be_watched_alone),
        TEST(a_new_folder_that_cannot_be_watched_is_told),
        TEST(what_is_not_there_cannot_be_watched),
        TEST(no_time_out_ends_a_run_in_development),
        TEST(it_ends_if_the_command_never_starts),
        TEST(it_is_tied_to_its_parent_alone),
        TEST(a_parent_that_dies_slowly_leaves_its_jobs_the_time_to_end),
    };
    hf_try_up(HF_TEST_COMMAND, NULL);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_try_down();
    return failures;
}
