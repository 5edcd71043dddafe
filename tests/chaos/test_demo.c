/* test_demo.c - `holdfast demo` keeps its promises, says so in numbers and in a picture,
 * and leaves nothing but this. */
#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/support/eventually.h"
#include "tests/support/proc.h"
#include "tests/support/redis_fixture.h"
#include "tests/support/skip.h"
#include "tests/support/xml.h"

enum {
    DEMO_MS = 90000,
    DEMOS = 3,      /* one that a busy machine made late is played again */
    NO_ANSWER = 69, /* from its Redis, within the time of a request; */
    UNSURE = 75,    /* or a late one */
    BROKEN = 1,
    END_MS = 10000,
    TEXT_SIZE = 16384,
    PICTURE_SIZE = 300000,
    PATH_SIZE = 512,
    RUNS = 390 /* 200 and 50 once, 30 and 10 three times, 10 twice */
};

static char dir[HF_TEMPDIR_SIZE]; /* the demo's $TMPDIR: all that it makes is in there */
static char env[HF_TEMPDIR_SIZE + 8], out[HF_TEMPDIR_SIZE + 8];
static char text[TEXT_SIZE], picture[PICTURE_SIZE];

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

/* How many things demos made in our directory; `inner` gets the path inside of one that
 * is a directory itself. */
static size_t made_by_demos(char inner[PATH_SIZE])
{
    size_t n = 0;
    struct dirent *entry;
    DIR *list = opendir(dir);
    assert_non_null(list);
    inner[0] = '\0';
    while ((entry = readdir(list)) != NULL) {
        if (strncmp(entry->d_name, "holdfast-", 9) != 0)
            continue;
        n++;
        if (strstr(entry->d_name, ".svg") == NULL)
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

/* The demo waits for the last processes, but not for long. */
static void assert_nothing_is_left(void)
{
    char inner[PATH_SIZE];
    assert_int_equal(made_by_demos(inner), 0);
    EVENTUALLY(END_MS, processes_inside() == 0);
}

/* One run for each bar, and each of the ten that were killed leads to the next one. */
static void check_picture(const char *path)
{
    size_t where = 0;
    (void)hf_read_file(path, picture, sizeof picture);
    assert_true(strlen(picture) < sizeof picture - 1);
    const char *problem = hf_xml_problem(picture, &where);
    if (problem != NULL)
        fail_msg("%s: %s: %.60s", path, problem, picture + where);
    assert_int_equal(hf_xml_count(picture, "run"), RUNS);
    assert_int_equal(hf_xml_count(picture, "again"), 10);
    assert_int_equal(hf_xml_count(picture, "kill"), 1);
    assert_int_equal(count(picture, " s, killed</title>"), 10);
    assert_int_equal(unlink(path), 0);
}

/* A promise as the demo tells it, on its line; false: it does not report it. */
static bool is_kept(const char *promise, const char *mark)
{
    const char *at = strstr(text, promise);
    if (at == NULL)
        return false;
    while (at > text && at[-1] != '\n')
        at--;
    const char *broken = strstr(at, mark);
    return broken == NULL || broken > strchr(at, '\n');
}

/* What the demo keeps on any machine. The others lean on leases of 2 s, which expire
 * where a worker gets no processor, and on the time after which the demo ends. */
static bool never_broken(const char *mark)
{
    return is_kept("ran too early", mark) && is_kept("an attempt was counted", mark) &&
           (is_kept("findings of the audit", mark) || !is_kept("still in ", mark));
}

typedef struct played {
    hf_proc proc;
    hf_test_span span;
    char path[PATH_SIZE]; /* of the picture that it makes by itself */
} played;

static void start(played *demo, const char *const *args)
{
    const char *const envs[] = {env, "LC_ALL=C", NULL};
    demo->span = hf_test_span_begin();
    (void)unlink(out); /* else it is added to */
    hf_proc_start(&demo->proc, &(hf_proc_options){.args = args, .env = envs, .out = out});
    (void)snprintf(demo->path, PATH_SIZE, "%s/holdfast-demo-%ld.svg", dir,
                   (long)demo->proc.pid);
}

/* It has ended, and has not succeeded. That is a defect, unless the machine is busy.
 * `mark` is in each line that reports a broken promise. */
static void excuse(const played *demo, const char *mark)
{
    const int status = demo->proc.status;
    const bool busy = hf_test_span_is_busy(demo->span);
    (void)hf_read_file(out, text, sizeof text);
    print_message("status %d%s:\n", status, busy ? ", on a busy machine" : "");
    (void)printf("%s\n", text); /* print_message() would cut it, and its end of line */
    if (!busy || !(status == NO_ANSWER || status == UNSURE ||
                   (status == BROKEN && never_broken(mark))))
        fail_msg("a promise was broken");
    (void)unlink(demo->path);
}

/* Plays a demo: what it says is in `text`. False: a busy machine made it late, and so it
 * did again. */
static bool play(const char *const *args, const char *mark, played *demo)
{
    for (int i = 0; i < DEMOS; i++) {
        start(demo, args);
        assert_true(hf_proc_wait(&demo->proc, DEMO_MS));
        (void)hf_read_file(out, text, sizeof text);
        if (demo->proc.status == 0)
            return true;
        excuse(demo, mark);
    }
    return false;
}

/* Plays a demo to this place, at which it goes on. False: as above. */
static bool play_to(bool (*is_there)(void), const char *const *args, played *demo)
{
    for (int i = 0; i < DEMOS; i++) {
        start(demo, args);
        EVENTUALLY(DEMO_MS, is_there() || hf_proc_wait(&demo->proc, 0));
        if (demo->proc.pid != 0)
            return true;
        excuse(demo, "  ! ");
    }
    return false;
}

static void skip_late(void)
{
    assert_nothing_is_left();
    HF_SKIP("each thread had less than half of a processor, in all demos");
}

static void every_promise_is_kept(void **state)
{
    (void)state;
    char line[PATH_SIZE + 64];
    played demo;
    const char *const args[] = {HF_TEST_COMMAND, "demo", "--json", NULL};
    if (!play(args, "\"kept\":false", &demo))
        skip_late();
    (void)snprintf(line, sizeof line, "{\"picture\":\"%s\",\"runs\":%d}\n", demo.path,
                   RUNS);
    assert_true(count(text, "\n") >= 15);
    assert_int_equal(count(text, "\"kept\":true") + 1, count(text, "\n"));
    assert_non_null(
        strstr(text, "\"promise\":\"jobs accepted\",\"expected\":300,\"seen\":300"));
    assert_non_null(strstr(text, line));
    check_picture(demo.path);
    assert_nothing_is_left();
}

static void in_a_pipe_it_writes_lines_and_the_picture_where_it_is_told_to(void **state)
{
    (void)state;
    char path[PATH_SIZE], last[PATH_SIZE + 64];
    played demo;
    (void)snprintf(path, sizeof path, "%s/named.svg", dir);
    (void)snprintf(last, sizeof last, "\n  The picture of it is in %s\n", path);
    const char *const args[] = {HF_TEST_COMMAND, "demo", "--svg", path, NULL};
    memset(picture, 'x', sizeof picture - 1); /* all that was in it before goes */
    picture[sizeof picture - 1] = '\0';
    hf_write_file(path, picture);
    if (!play(args, "  ! ", &demo))
        skip_late();
    assert_null(strchr(text, '\033'));
    assert_null(strchr(text, '\r'));
    assert_non_null(strstr(text, " s  kill -9 for worker 1, in the middle of 10 jobs\n"));
    assert_non_null(strstr(text, " s  they run again: "));
    assert_string_equal(text + strlen(text) - strlen(last), last);
    check_picture(path);
    assert_nothing_is_left();
}

static void a_picture_that_cannot_be_written_is_told_before_anything_starts(void **state)
{
    (void)state;
    char missing[PATH_SIZE], longer[1001];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    (void)snprintf(missing, sizeof missing, "%s/none/x.svg", dir);
    const struct {
        const char *path, *told;
    } cases[] = {
        {missing, "a file that can be written, found \"/"},
        {missing, "/none/x.svg\" (No such file or directory)\n"},
        {dir, "\" (Is a directory)\n"},
        {"", "a file that can be written, found \"\" (No such file or directory)\n"},
        {longer, "a path of less than 512 bytes, found 1000\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const args[] = {HF_TEST_COMMAND, "demo", "--svg", cases[i].path,
                                    NULL};
        const char *const envs[] = {env, NULL};
        (void)unlink(out); /* else it is added to */
        int status = hf_proc_run(
            &(hf_proc_options){.args = args, .env = envs, .err = out}, END_MS);
        assert_int_equal(status, 65);
        (void)hf_read_file(out, text, sizeof text);
        assert_ptr_equal(strstr(text, "holdfast: --svg: expected "), text);
        if (strstr(text, cases[i].told) == NULL)
            fail_msg("expected %s, found %s", cases[i].told, text);
        assert_int_equal(count(text, "\n"), 1);
        assert_nothing_is_left();
    }
}

static bool ten_jobs_run(void)
{
    char inner[PATH_SIZE], facts[PATH_SIZE + 8];
    if (made_by_demos(inner) == 0)
        return false;
    (void)snprintf(facts, sizeof facts, "%s/facts", inner);
    return count(hf_read_file(facts, text, sizeof text), "start long-") >= 10;
}

static void one_that_is_interrupted_leaves_nothing(void **state)
{
    (void)state;
    static const int signals[] = {SIGTERM, SIGINT};
    const char *const args[] = {HF_TEST_COMMAND, "demo", NULL};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        played demo;
        if (!play_to(ten_jobs_run, args, &demo))
            skip_late();
        assert_true(processes_inside() > 0);
        hf_proc_signal(&demo.proc, signals[i]);
        assert_true(hf_proc_wait(&demo.proc, END_MS));
        assert_int_equal(demo.proc.status, 128 + signals[i]);
        assert_nothing_is_left();
    }
}

/* Nobody can clean up after SIGKILL, but nothing may go on. */
static void one_that_is_killed_takes_all_processes_with_it(void **state)
{
    (void)state;
    const char *const args[] = {HF_TEST_COMMAND, "demo", NULL};
    played demo;
    if (!play_to(ten_jobs_run, args, &demo))
        skip_late();
    hf_proc_kill(&demo.proc);
    EVENTUALLY(END_MS, processes_inside() == 0);
}

/* What was in the file before is still there. */
static void one_that_is_interrupted_leaves_the_file_as_it_was(void **state)
{
    (void)state;
    char path[PATH_SIZE], kept[16];
    (void)snprintf(path, sizeof path, "%s/named.svg", dir);
    hf_write_file(path, "mine");
    const char *const args[] = {HF_TEST_COMMAND, "demo", "--svg", path, NULL};
    played demo;
    if (!play_to(ten_jobs_run, args, &demo))
        skip_late();
    hf_proc_signal(&demo.proc, SIGINT);
    assert_true(hf_proc_wait(&demo.proc, END_MS));
    assert_string_equal(hf_read_file(path, kept, sizeof kept), "mine");
    assert_nothing_is_left();
}

static bool has_stayed(void)
{
    return strstr(hf_read_file(out, text, sizeof text), " until Control-C\n") != NULL;
}

static void with_the_dashboard_it_stays_until_it_is_interrupted(void **state)
{
    (void)state;
    if (access(HF_TEST_BUILD "/holdfast-dashboard", X_OK) != 0)
        HF_SKIP("holdfast-dashboard was not built");
    const char *const args[] = {HF_TEST_COMMAND, "demo", "--dashboard", NULL};
    static const char get[] =
        "exec 3<>/dev/tcp/127.0.0.1/$1; printf 'GET /api/v1/overview HTTP/1.1\\r\\nHost: "
        "127.0.0.1\\r\\nConnection: close\\r\\n\\r\\n' >&3; cat <&3";
    char port[16];
    played demo;
    if (!play_to(has_stayed, args, &demo))
        skip_late();
    const bool kept = strstr(text, "  Every promise was kept.") != NULL; /* in time */
    const char *stays = strstr(text, "stays at http://127.0.0.1:");
    assert_non_null(stays);
    stays += strlen("stays at http://127.0.0.1:");
    (void)snprintf(port, sizeof port, "%.*s", (int)strspn(stays, "0123456789"), stays);
    (void)unlink(out); /* the demo writes nothing more */
    const char *const asks[] = {"bash", "-c", get, "get", port, NULL};
    assert_int_equal(hf_proc_run(&(hf_proc_options){.args = asks, .out = out}, END_MS),
                     0);
    (void)hf_read_file(out, text, sizeof text);
    assert_non_null(strstr(text, "HTTP/1.1 200 "));
    if (kept)
        assert_non_null(strstr(text, "10 jobs of queue default died in the last hour."));
    hf_proc_signal(&demo.proc, SIGINT);
    assert_true(hf_proc_wait(&demo.proc, END_MS));
    assert_int_equal(demo.proc.status, kept ? 0 : 1);
    assert_int_equal(unlink(demo.path), 0);
    assert_nothing_is_left();
}

static void the_redis_of_another_user_is_refused(void **state)
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
        cmocka_unit_test_setup_teardown(
            a_picture_that_cannot_be_written_is_told_before_anything_starts, up, down),
        cmocka_unit_test_setup_teardown(one_that_is_interrupted_leaves_nothing, up, down),
        cmocka_unit_test_setup_teardown(one_that_is_interrupted_leaves_the_file_as_it_was,
                                        up, down),
        cmocka_unit_test_setup_teardown(one_that_is_killed_takes_all_processes_with_it,
                                        up, down),
        cmocka_unit_test_setup_teardown(the_redis_of_another_user_is_refused, up, down),
        /* those that take whole demos */
        cmocka_unit_test_setup_teardown(every_promise_is_kept, up, down),
        cmocka_unit_test_setup_teardown(
            in_a_pipe_it_writes_lines_and_the_picture_where_it_is_told_to, up, down),
        cmocka_unit_test_setup_teardown(
            with_the_dashboard_it_stays_until_it_is_interrupted, up, down),
    };
    return cmocka_run_group_tests(tests, find_redis, NULL);
}
