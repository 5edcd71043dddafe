/* test_private_redis.c - the redis-server that the demo and the bench start for
 * themselves: it is there when it says so, and when it has gone nothing of it is left. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/private_redis.h"
#include "holdfast/admin.h"
#include "tests/support/admin.h"
#include "tests/support/eventually.h"
#include "tests/support/proc.h"
#include "tests/support/redis_fixture.h"
#include "tests/support/skip.h"

enum { END_MS = 5000, PATH_SIZE = HF_PRIVATE_DIR_SIZE + 32 };

static char dir[HF_TEMPDIR_SIZE]; /* our $TMPDIR: all that is made is in there */
static char path[4096];           /* our PATH */

/* Without a redis-server the fixture ends the program as skipped. */
static int up(void **state)
{
    (void)state;
    hf_fixture redis;
    hf_fixture_start(&redis, NULL);
    hf_fixture_stop(&redis);
    hf_tempdir_make(dir);
    (void)snprintf(path, sizeof path, "%s", getenv("PATH"));
    return setenv("TMPDIR", dir, 1);
}

static int down(void **state)
{
    (void)state;
    hf_tempdir_remove(dir);
    return 0;
}

static size_t entries(const char *name)
{
    size_t n = 0;
    const struct dirent *entry;
    DIR *list = opendir(name);
    assert_non_null(list);
    while ((entry = readdir(list)) != NULL)
        n += entry->d_name[0] == '.' ? 0 : 1;
    closedir(list);
    return n;
}

static bool is_there(const hf_private_redis *redis, const char *name)
{
    char inner[PATH_SIZE];
    struct stat info;
    (void)snprintf(inner, sizeof inner, "%s/%s", redis->dir, name);
    return stat(inner, &info) == 0;
}

static void start(hf_private_redis *redis, bool aof)
{
    char detail[HF_DETAIL_SIZE] = "";
    hf_err err = hf_private_redis_start(redis, aof, detail);
    if (err != HF_OK)
        fail_msg("%s: %s", hf_err_name(err), detail);
}

static void test_it_answers_when_it_was_started(void **state)
{
    (void)state;
    hf_private_redis redis;
    hf_admin *admin;
    start(&redis, false);
    const hf_admin_opts opts = {
        HF_ADMIN_OPTS_INIT,
        .server = HF_SERVER(.url = redis.url, .connect_timeout_ms = 30000)};
    assert_int_equal(hf_admin_open(&admin, &opts, NULL), HF_OK);
    assert_false(hf_admin_server(admin)->aof);
    assert_false(hf_admin_server(admin)->rdb);
    hf_admin_close(admin);
    hf_private_redis_stop(&redis);
}

static void test_nothing_of_it_is_left_when_it_was_stopped(void **state)
{
    (void)state;
    hf_private_redis redis;
    start(&redis, false);
    pid_t pid = redis.pid;
    assert_true(hf_pid_alive(pid));
    assert_int_equal(entries(dir), 1);
    hf_private_redis_stop(&redis);
    assert_false(hf_pid_alive(pid));
    assert_int_equal(entries(dir), 0);
    hf_private_redis_stop(&redis); /* the second time it does nothing */
}

static void test_an_append_only_file_is_kept_and_taken_away(void **state)
{
    (void)state;
    hf_private_redis redis;
    start(&redis, true);
    hf_admin *admin = hf_test_admin(redis.url);
    assert_true(hf_admin_server(admin)->aof);
    hf_admin_close(admin);
    assert_true(is_there(&redis, "appendonlydir") || is_there(&redis, "appendonly.aof"));
    hf_private_redis_stop(&redis);
    assert_int_equal(entries(dir), 0);
}

static void test_two_of_them_do_not_meet(void **state)
{
    (void)state;
    hf_private_redis one, two;
    start(&one, false);
    start(&two, false);
    assert_string_not_equal(one.url, two.url);
    hf_private_redis_stop(&one);
    assert_true(hf_pid_alive(two.pid));
    hf_private_redis_stop(&two);
}

static void test_a_missing_server_is_said_and_leaves_nothing(void **state)
{
    (void)state;
    hf_private_redis redis;
    char detail[HF_DETAIL_SIZE] = "";
    assert_int_equal(setenv("PATH", "/nonexistent", 1), 0);
    hf_err err = hf_private_redis_start(&redis, false, detail);
    assert_int_equal(setenv("PATH", path, 1), 0);
    assert_int_equal(err, HF_SYSTEM);
    assert_non_null(strstr(detail, "redis-server"));
    assert_int_equal(redis.pid, 0);
    assert_int_equal(entries(dir), 0);
}

/* Debian's redis-tools has the server under this name only. */
static void test_the_server_is_found_under_its_other_name(void **state)
{
    (void)state;
    hf_private_redis redis;
    char found[PATH_SIZE * 2] = "", bin[PATH_SIZE], name[PATH_SIZE + 32],
                           list[sizeof path];
    (void)snprintf(list, sizeof list, "%s", path);
    char *rest = list;
    for (char *part; found[0] == '\0' && (part = strtok_r(rest, ":", &rest)) != NULL;) {
        (void)snprintf(found, sizeof found, "%.120s/redis-check-rdb", part);
        if (access(found, X_OK) != 0)
            found[0] = '\0';
    }
    if (found[0] == '\0')
        HF_SKIP("there is no redis-check-rdb in PATH");
    (void)snprintf(bin, sizeof bin, "%s/bin", dir);
    (void)snprintf(name, sizeof name, "%s/redis-check-rdb", bin);
    assert_int_equal(mkdir(bin, 0700), 0);
    assert_int_equal(symlink(found, name), 0);
    assert_int_equal(setenv("PATH", bin, 1), 0);
    char detail[HF_DETAIL_SIZE] = "";
    hf_err err = hf_private_redis_start(&redis, false, detail);
    assert_int_equal(setenv("PATH", path, 1), 0);
    hf_private_redis_stop(&redis);
    hf_tempdir_remove(bin);
    assert_int_equal(err, HF_OK);
}

/* The child starts one, tells its pid, and is killed. */
static void test_it_dies_with_the_process_that_started_it(void **state)
{
    (void)state;
    int ends[2];
    pid_t server = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        hf_private_redis redis;
        char detail[HF_DETAIL_SIZE];
        if (hf_private_redis_start(&redis, false, detail) == HF_OK &&
            write(ends[1], &redis.pid, sizeof redis.pid) == (ssize_t)sizeof redis.pid)
            (void)pause();
        _exit(1);
    }
    ssize_t got = read(ends[0], &server, sizeof server);
    (void)kill(child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
    (void)close(ends[0]);
    (void)close(ends[1]);
    assert_int_equal(got, sizeof server);
    EVENTUALLY(END_MS, !hf_pid_alive(server));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_answers_when_it_was_started),
        cmocka_unit_test(test_nothing_of_it_is_left_when_it_was_stopped),
        cmocka_unit_test(test_an_append_only_file_is_kept_and_taken_away),
        cmocka_unit_test(test_two_of_them_do_not_meet),
        cmocka_unit_test(test_a_missing_server_is_said_and_leaves_nothing),
        cmocka_unit_test(test_the_server_is_found_under_its_other_name),
        cmocka_unit_test(test_it_dies_with_the_process_that_started_it),
    };
    return cmocka_run_group_tests(tests, up, down);
}
