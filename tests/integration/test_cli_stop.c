/* test_cli_stop.c - long commands that a signal or the end of their reader stops: they
 * report how far they came, and everything they printed is whole. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "queue_scripts.h"
#include "tests/support/cli_try.h"
#include "tests/support/eventually.h"
#include "tests/support/proxy.h"

enum { BLOCK = 10000, LONG_MS = 30000, ID_BYTES = 15 /* with the end of its line */ };

static hf_cli_fixture *const fixture = &hf_try_fixture;
static hf_proc proc;
static hf_terminal terminal;
static hf_proxy proxy;

/* ---- what runs ---- */

/* In the shell; "$HF" is the command, "$R" the server, "$P" the proxy. */
static void begin(const char *script)
{
    static char hf[HF_CLI_PATH], url[HF_CLI_PATH], by_proxy[HF_CLI_PATH];
    const char *const args[] = {"sh", "-c", script, NULL};
    const char *const env[] = {hf, url, by_proxy, NULL};
    char err[HF_CLI_PATH];
    snprintf(hf, sizeof hf, "HF=%s", fixture->command);
    snprintf(url, sizeof url, "R=--redis=%s", fixture->redis.url);
    snprintf(by_proxy, sizeof by_proxy, "P=--redis=%s", proxy.url);
    hf_cli_fixture_path(fixture, "said", err);
    hf_write_file(err, "");
    const hf_proc_options options = {
        .args = args, .env = env, .err = err, .dir = fixture->dir};
    hf_proc_start(&proc, &options);
}

/* The command's first request with that script does not arrive. */
static void begin_kept(const hf_script *script, const char *line)
{
    (void)hf_fixture_command(&fixture->redis, "SCRIPT LOAD %s", script->text);
    hf_proxy_keep_request(&proxy, script->sha1);
    begin(line);
    EVENTUALLY(LONG_MS, hf_proxy_keeps_request(&proxy));
}

static int end(void)
{
    if (!hf_proc_wait(&proc, 4 * LONG_MS))
        fail_msg("it does not end");
    return proc.status;
}

static bool says(const char *text)
{
    char path[HF_CLI_PATH];
    hf_cli_fixture_path(fixture, "said", path);
    return strstr(hf_read_file(path, fixture->err, sizeof fixture->err), text) != NULL;
}

static void must_say(const char *text)
{
    if (!says(text))
        fail_msg("'%s' is not in '%s'", text, fixture->err);
}

/* ---- jobs and their ids ---- */

static int open_feed(void)
{
    char path[HF_CLI_PATH];
    int fd = -1;
    hf_cli_fixture_path(fixture, "feed", path);
    EVENTUALLY(LONG_MS, (fd = open(path, O_WRONLY | O_NONBLOCK)) >= 0);
    assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
    return fd;
}

static void make_feed(void)
{
    char path[HF_CLI_PATH];
    hf_cli_fixture_path(fixture, "feed", path);
    assert_int_equal(mkfifo(path, 0600), 0);
}

static void put_lines(int fd, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_int_equal(write(fd, "{\"type\":\"t\"}\n", 13), 13);
}

static void put_file(size_t n)
{
    char path[HF_CLI_PATH];
    hf_cli_fixture_path(fixture, "jobs", path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    put_lines(fd, n);
    (void)close(fd);
}

static long long accepted(void)
{
    return hf_fixture_number(&fixture->redis, "ZCARD hf:{default}:schedule");
}

static long long printed_bytes(void)
{
    char path[HF_CLI_PATH];
    struct stat st;
    hf_cli_fixture_path(fixture, "ids", path);
    return stat(path, &st) == 0 ? (long long)st.st_size : -1;
}

/* ---- enqueue --bulk ---- */

static void a_bulk_that_waits_for_lines_ends_with_its_count_and_whole_ids(void **state)
{
    static const struct {
        int signal;
        const char *script, *said;
    } cases[] = {
        {SIGINT, "exec $HF enqueue -c patient.yaml --bulk feed $R >ids",
         "stopped by SIGINT (10000 jobs"},
        {SIGTERM, "exec $HF enqueue -c patient.yaml --bulk - $R <feed >ids",
         "stopped by SIGTERM (10000 jobs"},
        {SIGHUP, "exec $HF enqueue -c patient.yaml --bulk - $R <feed >ids",
         "stopped by SIGHUP (10000 jobs"},
    };
    (void)state;
    make_feed();
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        (void)hf_try_clean(NULL);
        hf_cli_fixture_remove(fixture, "ids");
        begin(cases[i].script);
        int fd = open_feed();
        put_lines(fd, BLOCK + 500);
        EVENTUALLY(LONG_MS, printed_bytes() == BLOCK * ID_BYTES);
        hf_proc_signal(&proc, cases[i].signal);
        assert_int_equal(end(), 128 + cases[i].signal);
        (void)close(fd);
        must_say(cases[i].said);
        must_say(" were accepted; go on with --run ");
        assert_int_equal(accepted(), BLOCK);
        assert_int_equal(printed_bytes(), BLOCK * ID_BYTES);
    }
}

static void a_block_on_its_way_is_waited_for(void **state)
{
    (void)state;
    put_file(3 * BLOCK);
    begin("exec $HF enqueue -c patient.yaml --bulk jobs $R >ids");
    EVENTUALLY(LONG_MS, printed_bytes() >= BLOCK * ID_BYTES);
    hf_fixture_signal(&fixture->redis, SIGSTOP);
    hf_proc_signal(&proc, SIGINT);
    EVENTUALLY(LONG_MS, !hf_pid_catches(proc.pid, SIGINT)); /* it was caught, once */
    hf_fixture_signal(&fixture->redis, SIGCONT);
    assert_int_equal(end(), 128 + SIGINT);
    char said[64];
    snprintf(said, sizeof said, "stopped by SIGINT (%s%lld jobs were accepted",
             accepted() == 3 * BLOCK ? "all " : "", accepted());
    must_say(said);
    assert_int_equal(printed_bytes(), accepted() * ID_BYTES);
}

/* The first signal comes while the command waits for an answer: before, it would end
 * without a second one. Both may be there before a handler has run. Then the command
 * counts any of them as the first. */
static void the_second_signal_ends_it_at_once(void **state)
{
    static const int second[] = {SIGINT, SIGTERM};
    (void)state;
    hf_proxy_start(&proxy, fixture->redis.socket);
    put_file(1);
    for (size_t i = 0; i < HF_COUNT(second); i++) {
        begin_kept(&hf_lua_queue_enqueue,
                   "exec $HF enqueue -c patient.yaml --bulk jobs $P >ids");
        hf_proc_signal(&proc, SIGINT);
        EVENTUALLY(LONG_MS, !hf_pid_catches(proc.pid, SIGINT));
        hf_proc_signal(&proc, second[i]);
        int code = end();
        assert_true(code == 128 + second[i] || code == 128 + SIGINT);
        assert_false(says("stopped"));
        hf_proxy_let_go(&proxy);
    }
    hf_proxy_stop(&proxy);
}

/* The time that an answer has bounds the first block as well, so it is many times what
 * one took just before. */
static void what_stays_without_an_answer_is_counted(void **state)
{
    enum { MOST_MS = 600000 };
    char config[128];
    (void)state;
    put_file(BLOCK);
    const uint64_t began_ms = hf_test_now_ms();
    begin("exec $HF enqueue -c patient.yaml --bulk jobs $R >ids");
    assert_int_equal(end(), 0);
    unsigned ms = 3000 + 10 * (unsigned)(hf_test_now_ms() - began_ms);
    ms = ms < MOST_MS ? ms : MOST_MS;
    snprintf(config, sizeof config,
             "redis: {connect_timeout: %ums, request_timeout: %ums}\n", ms, ms);
    hf_cli_fixture_put(fixture, "c.yaml", config);
    make_feed();
    begin("exec $HF enqueue --bulk feed -c c.yaml $R >ids");
    int fd = open_feed();
    put_lines(fd, BLOCK);
    EVENTUALLY(LONG_MS, printed_bytes() == BLOCK * ID_BYTES); /* it has the answer */
    put_lines(fd, 4);
    hf_fixture_signal(&fixture->redis, SIGSTOP);
    (void)close(fd); /* so the last block is sent */
    hf_proc_signal(&proc, SIGTERM);
    int code = end();
    hf_fixture_signal(&fixture->redis, SIGCONT);
    assert_int_equal(code, 128 + SIGTERM);
    must_say("(10000 jobs were accepted");
    assert_true(says(", 4 may have been; go on with --run ") ||
                says("stopped by SIGTERM (10000 jobs were accepted; go on"));
}

static void one_block_or_nothing_stays_so(void **state)
{
    (void)state;
    make_feed();
    begin("exec $HF enqueue -c patient.yaml --bulk - --atomic $R <feed >ids");
    int fd = open_feed();
    put_lines(fd, 10);
    EVENTUALLY(LONG_MS, hf_pid_catches(proc.pid, SIGTERM));
    hf_proc_signal(&proc, SIGTERM);
    assert_int_equal(end(), 128 + SIGTERM);
    (void)close(fd);
    must_say("stopped by SIGTERM (nothing was accepted)");
    assert_int_equal(accepted(), 0);
    assert_int_equal(printed_bytes(), 0);
}

static void a_signal_that_is_ignored_stays_ignored(void **state)
{
    (void)state;
    make_feed();
    begin("trap '' HUP INT; exec $HF enqueue -c patient.yaml --bulk - $R <feed >ids");
    int fd = open_feed();
    EVENTUALLY(LONG_MS, hf_pid_catches(proc.pid, SIGTERM));
    hf_proc_signal(&proc, SIGHUP);
    hf_proc_signal(&proc, SIGINT);
    put_lines(fd, 10);
    (void)close(fd);
    assert_int_equal(end(), 0);
    assert_int_equal(printed_bytes(), 10 * ID_BYTES);
}

/* ^C reaches the whole group of the terminal. */
static void at_a_terminal_the_count_comes_after_the_bar(void **state)
{
    char hf[HF_CLI_PATH], url[HF_CLI_PATH];
    const char *const args[] = {
        "/bin/sh", "-c", "exec $HF enqueue -c patient.yaml --bulk feed $R >ids", NULL};
    const char *const env[] = {hf, url, NULL};
    (void)state;
    snprintf(hf, sizeof hf, "HF=%s", fixture->command);
    snprintf(url, sizeof url, "R=--redis=%s", fixture->redis.url);
    make_feed();
    hf_terminal_start(&terminal, args, env, fixture->dir);
    int fd = open_feed();
    put_lines(fd, BLOCK);
    EVENTUALLY(LONG_MS, printed_bytes() == BLOCK * ID_BYTES);
    hf_terminal_type(&terminal, "\003");
    assert_int_equal(hf_terminal_end(&terminal, LONG_MS), 128 + SIGINT);
    (void)close(fd);
    const char *last = strrchr(terminal.text, '\r');
    assert_non_null(last);
    hf_try_has(last, "stopped by SIGINT (10000 jobs were accepted; go on with --run ");
}

/* ---- nothing takes what is printed ---- */

static void a_bulk_whose_ids_cannot_be_written_stops_and_says_so(void **state)
{
    static const struct {
        const char *script, *said;
        int code;
    } cases[] = {
        {"($HF enqueue -c patient.yaml --bulk jobs $R; echo $? >code) | head -1 >ids",
         "standard output cannot be written: Broken pipe (", 128 + SIGPIPE},
        {"$HF enqueue -c patient.yaml --bulk jobs $R >/dev/full; echo $? >code",
         "standard output cannot be written: No space left on device (10000 jobs", 73},
    };
    (void)state;
    put_file(20 * BLOCK);
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        char code[16];
        (void)hf_try_clean(NULL);
        begin(cases[i].script);
        assert_int_equal(end(), 0);
        snprintf(code, sizeof code, "%d\n", cases[i].code);
        EVENTUALLY(LONG_MS, strcmp(hf_cli_fixture_get(fixture, "code"), code) == 0);
        must_say(cases[i].said);
        must_say(" were accepted; go on with --run ");
        const char *first = strstr(fixture->err, "holdfast: ");
        assert_null(strstr(first + 1, "holdfast: ")); /* one line */
        assert_in_range(accepted(), BLOCK, 19 * BLOCK);
    }
}

/* ---- others ---- */

/* The signal comes while a slice is on its way. */
static void stop_at(const hf_script *script, const char *line)
{
    begin_kept(script, line);
    hf_proc_signal(&proc, SIGHUP);
    EVENTUALLY(LONG_MS, !hf_pid_catches(proc.pid, SIGHUP));
    hf_proxy_let_go(&proxy);
    assert_int_equal(end(), 128 + SIGHUP);
}

static void work_in_slices_ends_after_its_slice(void **state)
{
    (void)state;
    hf_proxy_start(&proxy, fixture->redis.socket);
    put_file(2000);
    begin("exec $HF enqueue -c patient.yaml --bulk jobs $R >/dev/null");
    assert_int_equal(end(), 0);
    stop_at(&hf_lua_queue_audit_jobs, "exec $HF doctor --fix $P >printed");
    hf_try_has(hf_cli_fixture_get(fixture, "printed"), ", then it was stopped\n");
    stop_at(&hf_lua_queue_purge, "exec $HF queue purge default --yes $P >printed");
    hf_try_has(hf_cli_fixture_get(fixture, "printed"),
               " jobs removed, then it was stopped\n");
    assert_in_range(accepted(), 1, 1999);
    hf_proxy_stop(&proxy);
}

static bool printed(const char *text)
{
    return strstr(hf_cli_fixture_get(fixture, "printed"), text) != NULL;
}

static void following_a_log_ends_with_all_that_was_read(void **state)
{
    (void)state;
    hf_try_run("enqueue t @ --id a --in 1h", 0);
    (void)hf_fixture_command(&fixture->redis, "HSET hf:{default}:logs a 7");
    (void)hf_fixture_command(&fixture->redis, "HSET hf:{default}:log:a 7 %b",
                             "1 3 a\xE2\x82", (size_t)7);
    hf_cli_fixture_put(fixture, "printed", "");
    begin("exec $HF job logs a -f $R >printed");
    EVENTUALLY(LONG_MS, printed("\na"));
    assert_false(printed("\xE2")); /* the rest of a character may come */
    hf_proc_signal(&proc, SIGTERM);
    assert_int_equal(end(), 128 + SIGTERM);
    assert_true(printed("a\xE2\x82"));
    begin("($HF job logs a -f $R; echo $? >code) | head -1 >printed");
    assert_int_equal(end(), 0); /* head has gone, and no more of the log comes */
    assert_string_equal(hf_cli_fixture_get(fixture, "code"), "141\n");
}

static int up(void **state)
{
    (void)hf_try_clean(state);
    hf_cli_fixture_remove(fixture, "feed");
    hf_cli_fixture_remove(fixture, "ids");
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_proc_kill(&proc);
    hf_fixture_signal(&fixture->redis, SIGCONT);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_bulk_that_waits_for_lines_ends_with_its_count_and_whole_ids),
        TEST(a_block_on_its_way_is_waited_for),
        TEST(the_second_signal_ends_it_at_once),
        TEST(what_stays_without_an_answer_is_counted),
        TEST(one_block_or_nothing_stays_so),
        TEST(a_signal_that_is_ignored_stays_ignored),
        TEST(at_a_terminal_the_count_comes_after_the_bar),
        TEST(a_bulk_whose_ids_cannot_be_written_stops_and_says_so),
        TEST(work_in_slices_ends_after_its_slice),
        TEST(following_a_log_ends_with_all_that_was_read),
    };
    hf_try_up(HF_TEST_COMMAND, NULL);
    hf_cli_fixture_put(fixture, "patient.yaml", "redis: {connect_timeout: 5m}\n");
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hf_try_down();
    return failed;
}
