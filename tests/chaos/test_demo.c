/* test_demo.c - `holdfast demo` keeps its promises, says so in numbers, and leaves
 * nothing. */
#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/eventually.h"
#include "tests/support/proc.h"
#include "tests/support/redis_fixture.h"

enum { DEMO_MS = 90000, END_MS = 10000, TEXT_SIZE = 16384, PATH_SIZE = 512 };

static char dir[HF_TEMPDIR_SIZE]; /* the demo's $TMPDIR: all that it makes is in there */
static char env[HF_TEMPDIR_SIZE + 8], out[HF_TEMPDIR_SIZE + 8];
static char text[TEXT_SIZE];

/* Without a redis-server the fixture ends the program as skipped. */
static int find_redis(void **state)
{
    (void)state;
    hf_fixture redis;
    hf_fixture_start(&redis, NULL);
    hf_fixture_stop(&redis);
    return 0;
}

static int up(void **state)
{
    (void)state;
    hf_tempdir_make(dir);
    (void)snprintf(env, sizeof env, "TMPDIR=%s", dir);
    (void)snprintf(out, sizeof out, "%s/out", dir);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_tempdir_remove(dir);
    return 0;
}

/* Directories of demos in our directory; `inner` gets the path of the last one. */
static size_t demo_dirs(char inner[PATH_SIZE])
{
    size_t n = 0;
    struct dirent *entry;
    DIR *list = opendir(dir);
    assert_non_null(list);
    while ((entry = readdir(list)) != NULL) {
        if (strncmp(entry->d_name, "holdfast-", 9) != 0)
            continue;
        n++;
        (void)snprintf(inner, PATH_SIZE, "%s/%s/demo", dir, entry->d_name);
    }
    (void)closedir(list);
    return n;
}

static size_t count(const char *haystack, const char *needle)
{
    size_t n = 0;
    for (const char *at = haystack; (at = strstr(at, needle)) != NULL;
         at += strlen(needle))
        n++;
    return n;
}

/* Processes that run in our directory: the workers and all that they start. */
static size_t processes_inside(void)
{
    size_t n = 0;
    struct dirent *entry;
    DIR *list = opendir("/proc");
    assert_non_null(list);
    while ((entry = readdir(list)) != NULL) {
        char path[PATH_SIZE], cwd[PATH_SIZE];
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        (void)snprintf(path, sizeof path, "/proc/%.20s/cwd", entry->d_name);
        ssize_t len = readlink(path, cwd, sizeof cwd - 1);
        cwd[len > 0 ? len : 0] = '\0';
        n += strncmp(cwd, dir, strlen(dir)) == 0 ? 1 : 0;
    }
    (void)closedir(list);
    return n;
}

static void assert_nothing_is_left(void)
{
    char inner[PATH_SIZE];
    assert_int_equal(demo_dirs(inner), 0);
    assert_int_equal(processes_inside(), 0);
}

static void every_promise_is_kept(void **state)
{
    (void)state;
    const char *const args[] = {HF_TEST_COMMAND, "demo", "--json", NULL};
    const char *const envs[] = {env, NULL};
    int status =
        hf_proc_run(&(hf_proc_options){.args = args, .env = envs, .out = out}, DEMO_MS);
    (void)hf_read_file(out, text, sizeof text);
    if (status != 0)
        fail_msg("status %d: %s", status, text);
    assert_true(count(text, "\n") >= 15);
    assert_int_equal(count(text, "\"kept\":true"), count(text, "\n"));
    assert_non_null(
        strstr(text, "\"promise\":\"jobs accepted\",\"expected\":300,\"seen\":300"));
    assert_nothing_is_left();
}

static bool ten_jobs_run(void)
{
    char inner[PATH_SIZE], facts[PATH_SIZE + 8];
    if (demo_dirs(inner) == 0)
        return false;
    (void)snprintf(facts, sizeof facts, "%s/facts", inner);
    return count(hf_read_file(facts, text, sizeof text), "start long-") >= 10;
}

static void one_that_is_interrupted_leaves_nothing(void **state)
{
    (void)state;
    static const int signals[] = {SIGTERM, SIGINT};
    const char *const args[] = {HF_TEST_COMMAND, "demo", NULL};
    const char *const envs[] = {env, NULL};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        hf_proc demo;
        hf_proc_start(&demo, &(hf_proc_options){.args = args, .env = envs, .out = out});
        EVENTUALLY(20000, ten_jobs_run());
        assert_true(processes_inside() >= 11);
        hf_proc_signal(&demo, signals[i]);
        assert_true(hf_proc_wait(&demo, END_MS));
        assert_int_equal(demo.status, 128 + signals[i]);
        assert_nothing_is_left();
    }
}

/* Nobody can clean up after SIGKILL, but nothing may go on. */
static void one_that_is_killed_takes_all_processes_with_it(void **state)
{
    (void)state;
    const char *const args[] = {HF_TEST_COMMAND, "demo", NULL};
    const char *const envs[] = {env, NULL};
    hf_proc demo;
    hf_proc_start(&demo, &(hf_proc_options){.args = args, .env = envs, .out = out});
    EVENTUALLY(20000, ten_jobs_run());
    hf_proc_kill(&demo);
    EVENTUALLY(END_MS, processes_inside() == 0);
}

static void the_redis_of_somebody_else_is_refused(void **state)
{
    (void)state;
    const char *const args[] = {HF_TEST_COMMAND, "demo", "--redis", "unix:///nowhere",
                                NULL};
    const char *const envs[] = {env, NULL};
    assert_int_equal(
        hf_proc_run(&(hf_proc_options){.args = args, .env = envs, .err = out}, END_MS),
        64);
    assert_nothing_is_left();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_promise_is_kept, up, down),
        cmocka_unit_test_setup_teardown(one_that_is_interrupted_leaves_nothing, up, down),
        cmocka_unit_test_setup_teardown(one_that_is_killed_takes_all_processes_with_it,
                                        up, down),
        cmocka_unit_test_setup_teardown(the_redis_of_somebody_else_is_refused, up, down),
    };
    return cmocka_run_group_tests(tests, find_redis, NULL);
}
