/* The messages to systemd, read from the test's own socket, which NOTIFY_SOCKET names. */
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/worker/service.h"
#include "tests/support/cli_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/worker_fixture.h"

enum { TEXT = 1 << 14, WATCHDOG_MS = 900 };

#define HANDLERS                                                                         \
    "handlers:\n"                                                                        \
    "  - {type: env, env: [NOTIFY_SOCKET, WATCHDOG_USEC], exec: [env]}\n"                \
    "  - {type: long, exec: [sleep, '1000']}\n"

#define FILE_TEXT "worker: {concurrency: 4, lease: 1s, shutdown_timeout: 10s}\n" HANDLERS
#define PATIENT "worker: {concurrency: 4, lease: 1m, shutdown_timeout: 1m}\n" HANDLERS

static hf_cli_fixture fixture;
static hf_proc worker;
static int listener;
static char told[TEXT]; /* every datagram, with a newline behind it */

/* ---- the socket ---- */

static void listen_at(const char *name)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    size_t len = strlen(name);
    memcpy(at.sun_path, name, len);
    if (name[0] == '@')
        at.sun_path[0] = '\0';
    listener = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(listener >= 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&at,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)),
                     0);
    told[0] = '\0';
}

static const char *hear(void)
{
    size_t len = strlen(told);
    ssize_t n;
    while ((n = recv(listener, told + len, sizeof told - len - 2, 0)) > 0) {
        len += (size_t)n;
        told[len++] = '\n';
        told[len] = '\0';
    }
    return told;
}

static bool heard(const char *text)
{
    return strstr(hear(), text) != NULL;
}

static size_t count(const char *text)
{
    size_t n = 0;
    for (const char *at = strstr(hear(), text); at != NULL; at = strstr(at + 1, text))
        n++;
    return n;
}

static bool logged(const char *part)
{
    return strstr(hf_cli_fixture_get(&fixture, "log"), part) != NULL;
}

/* The worker inherits what systemd would set. */
static void begin(const char *name, unsigned watchdog_ms, const char *watchdog_pid)
{
    char usec[32];
    snprintf(usec, sizeof usec, "%u000", watchdog_ms);
    setenv("NOTIFY_SOCKET", name, 1);
    if (watchdog_ms != 0)
        setenv("WATCHDOG_USEC", usec, 1);
    if (watchdog_pid != NULL)
        setenv("WATCHDOG_PID", watchdog_pid, 1);
    hf_cli_fixture_begin(&fixture, &worker, "worker @ -c w.yaml", "log");
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

static void begin_at_path(unsigned watchdog_ms)
{
    char path[HF_CLI_PATH];
    hf_cli_fixture_path(&fixture, "notify", path);
    (void)unlink(path);
    listen_at(path);
    begin(path, watchdog_ms, NULL);
}

static int clean(void **state)
{
    (void)state;
    hf_proc_kill(&worker);
    if (listener > 0)
        close(listener);
    listener = 0;
    hf_cli_fixture_remove(&fixture, "w.yaml"); /* it may be a pipe */
    hf_fixture_signal(&fixture.redis, SIGCONT);
    hf_fixture_command(&fixture.redis, "FLUSHALL");
    hf_cli_fixture_put(&fixture, "w.yaml", FILE_TEXT);
    return 0;
}

/* ---- tests ---- */

static void it_is_ready_when_its_queues_were_claimed_and_tells_how_it_is(void **state)
{
    (void)state;
    begin_at_path(0);
    EVENTUALLY(15000, heard("READY=1\n"));
    EVENTUALLY(15000, heard("STATUS=serving, 0 of 4 slots busy\n"));
    hf_proc_signal(&worker, SIGTERM);
    EVENTUALLY(15000, heard("STOPPING=1\n"));
    EVENTUALLY(15000, heard("STATUS=stopping, "));
    assert_true(hf_proc_wait(&worker, 15000));
    assert_int_equal(worker.status, 0);
    assert_int_equal(count("READY=1\n"), 1);
    assert_int_equal(count("WATCHDOG=1"), 0);
}

/* It can be reached, and answers nothing. */
static void it_is_not_ready_while_redis_does_not_answer(void **state)
{
    (void)state;
    hf_fixture_signal(&fixture.redis, SIGSTOP);
    begin_at_path(WATCHDOG_MS);
    ALWAYS(1000, !heard("READY=1") && !heard("WATCHDOG=1"));
    hf_fixture_signal(&fixture.redis, SIGCONT);
    EVENTUALLY(15000, heard("READY=1\n") && heard("WATCHDOG=1\n"));
}

/* Full from its first claim on, it never asks its second queue, and yet it is ready. */
static void a_full_worker_is_ready_and_alive(void **state)
{
    (void)state;
    hf_cli_fixture_put(&fixture, "w.yaml",
                       "worker: {concurrency: 1, lease: 1s, order: strict}\n"
                       "queues: [{name: a}, {name: b}]\n" HANDLERS);
    assert_int_equal(hf_cli_fixture_run(&fixture, "enqueue long @ -q a", NULL, NULL), 0);
    begin_at_path(WATCHDOG_MS);
    EVENTUALLY(15000, heard("READY=1\n"));
    EVENTUALLY(15000, count("WATCHDOG=1\n") >= 3);
    hf_proc_signal(&worker, SIGTSTP);
    size_t before = count("WATCHDOG=1\n");
    EVENTUALLY(15000,
               count("WATCHDOG=1\n") >= before + 3 && heard("STATUS=quiet, 1 of 1"));
}

static void an_idle_worker_is_alive_while_redis_answers(void **state)
{
    (void)state;
    begin_at_path(WATCHDOG_MS);
    EVENTUALLY(15000, count("WATCHDOG=1\n") >= 3);
    hf_fixture_signal(&fixture.redis, SIGSTOP);
    EVENTUALLY(15000, logged("Redis is away"));
    size_t before = count("WATCHDOG=1\n");
    ALWAYS(2 * WATCHDOG_MS, count("WATCHDOG=1\n") <= before + 1);
    before = count("WATCHDOG=1\n");
    hf_fixture_signal(&fixture.redis, SIGCONT);
    EVENTUALLY(15000, count("WATCHDOG=1\n") >= before + 2);
    assert_int_equal(count("READY=1\n"), 1);
    assert_true(logged("WatchdogSec is below 20 s"));
}

static void the_watchdog_of_another_process_is_not_ours(void **state)
{
    char name[64];
    (void)state;
    snprintf(name, sizeof name, "@hf-notify-%ld", (long)getpid());
    listen_at(name);
    begin(name, WATCHDOG_MS, "1");
    EVENTUALLY(15000, heard("READY=1\n"));
    ALWAYS(WATCHDOG_MS, !heard("WATCHDOG=1"));
}

static void a_reload_begins_and_ends(void **state)
{
    (void)state;
    begin_at_path(0);
    EVENTUALLY(15000, heard("READY=1\n"));
    hf_cli_fixture_put(&fixture, "w.yaml", "queues: [{name: new}]\n" FILE_TEXT);
    hf_proc_signal(&worker, SIGHUP);
    EVENTUALLY(15000, heard("RELOADING=1\nMONOTONIC_USEC="));
    EVENTUALLY(15000, count("READY=1\n") == 2);
    EVENTUALLY(15000, logged("msg=reloaded"));
    hf_cli_fixture_put(&fixture, "w.yaml", "nonsense\n");
    hf_proc_signal(&worker, SIGHUP);
    EVENTUALLY(15000, count("RELOADING=1\n") == 2 && count("READY=1\n") == 3);
    EVENTUALLY(15000, logged("nothing was changed"));
}

static void fill_up(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    memcpy(at.sun_path, path, strlen(path) + 1);
    int filler = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    while (sendto(filler, "x", 1, 0, (struct sockaddr *)&at, sizeof at) == 1)
        ;
    close(filler);
}

/* Nobody reads for more than the second that a datagram may take. */
static void that_it_is_ready_is_told_as_soon_as_there_is_room(void **state)
{
    char path[HF_CLI_PATH];
    (void)state;
    hf_cli_fixture_path(&fixture, "notify", path);
    (void)unlink(path);
    listen_at(path);
    fill_up(path);
    begin(path, 0, NULL);
    EVENTUALLY(15000, logged("serving"));
    hf_test_pause_ms(1500);
    EVENTUALLY(15000, heard("READY=1\n"));
}

/* In their order, each once. The job that runs keeps it for its shutdown time-out. */
static void that_it_reloads_and_stops_is_told_as_soon_as_there_is_room(void **state)
{
    char path[HF_CLI_PATH];
    (void)state;
    hf_cli_fixture_put(&fixture, "w.yaml", PATIENT);
    begin_at_path(0);
    EVENTUALLY(15000, heard("READY=1\n"));
    assert_int_equal(hf_cli_fixture_run(&fixture, "enqueue long @", NULL, NULL), 0);
    EVENTUALLY(15000,
               hf_fixture_number(&fixture.redis, "ZCARD hf:{default}:running") == 1);
    hf_cli_fixture_path(&fixture, "notify", path);
    fill_up(path);
    hf_proc_signal(&worker, SIGHUP);
    EVENTUALLY(15000, logged("msg=reloaded"));
    hf_test_pause_ms(1500);
    EVENTUALLY(15000, count("READY=1\n") == 2);
    assert_int_equal(count("RELOADING=1\n"), 1);
    assert_non_null(strstr(strstr(told, "RELOADING=1\n"), "READY=1\n"));
    fill_up(path);
    hf_proc_signal(&worker, SIGTERM);
    hf_test_pause_ms(1500);
    EVENTUALLY(15000, heard("STOPPING=1\n"));
    assert_int_equal(count("STOPPING=1\n"), 1);
    assert_int_equal(count("READY=1\n"), 2);
}

/* While it is held up by a first reload it is not done with the second. */
static void it_is_ready_again_when_the_last_reload_was_taken(void **state)
{
    char path[HF_CLI_PATH];
    hf_worker_fixture held = {.worker = NULL};
    hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .concurrency = 1};
    hf_service service;
    (void)state;
    hf_cli_fixture_path(&fixture, "notify", path);
    (void)unlink(path);
    listen_at(path);
    hf_worker_fixture_start(&held, fixture.redis.url, &opts, 0);
    setenv("NOTIFY_SOCKET", path, 1);
    hf_service_open(&service, held.worker, NULL);
    EVENTUALLY(15000, (hf_service_tick(&service), heard("READY=1\n")));
    atomic_store(&held.hold_loop, true);
    assert_int_equal(hf_cli_fixture_run(&fixture, "enqueue t ok @ -q q", NULL, NULL), 0);
    EVENTUALLY(15000, atomic_load(&held.loop_held));
    hf_worker_fixture_fill(&held, fixture.redis.url, &opts);
    for (int i = 0; i < 2; i++) {
        hf_service_reloading(&service);
        assert_int_equal(hf_worker_reload(held.worker, &opts, NULL, 0, NULL, 0, NULL),
                         HF_OK);
        hf_service_reload_asked(&service);
        hf_service_tick(&service);
    }
    ALWAYS(50, (hf_service_tick(&service), count("READY=1\n")) == 1);
    atomic_store(&held.hold_loop, false);
    EVENTUALLY(15000, (hf_service_tick(&service), count("READY=1\n")) == 2);
    hf_service_close(&service);
    hf_worker_fixture_end(&held);
}

/* It could keep whoever reads it waiting, and then no signal would be heard. */
static void a_pipe_in_the_place_of_the_file_is_not_read(void **state)
{
    char path[HF_CLI_PATH];
    (void)state;
    begin_at_path(0);
    EVENTUALLY(15000, heard("READY=1\n"));
    hf_cli_fixture_path(&fixture, "w.yaml", path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    hf_proc_signal(&worker, SIGHUP);
    EVENTUALLY(15000, logged("expected a file, found something else"));
    EVENTUALLY(15000, count("READY=1\n") == 2);
    hf_proc_signal(&worker, SIGTERM);
    assert_true(hf_proc_wait(&worker, 15000));
    assert_int_equal(unlink(path), 0);
}

static void programs_know_nothing_of_it(void **state)
{
    (void)state;
    begin_at_path(60000);
    EVENTUALLY(15000, heard("READY=1\n"));
    assert_int_equal(hf_cli_fixture_run(&fixture, "enqueue env @ --wait", NULL, NULL), 0);
    EVENTUALLY(15000, logged("HOLDFAST_VERDICT_FD=3"));
    assert_false(logged("NOTIFY_SOCKET"));
    assert_false(logged("WATCHDOG_USEC"));
}

static void a_socket_that_cannot_be_used_is_said(void **state)
{
    (void)state;
    begin("vsock:2:1", 0, NULL);
    EVENTUALLY(15000, logged("NOTIFY_SOCKET cannot be used"));
    EVENTUALLY(15000, logged("serving"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, clean, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_is_ready_when_its_queues_were_claimed_and_tells_how_it_is),
        TEST(it_is_not_ready_while_redis_does_not_answer),
        TEST(a_full_worker_is_ready_and_alive),
        TEST(an_idle_worker_is_alive_while_redis_answers),
        TEST(the_watchdog_of_another_process_is_not_ours),
        TEST(a_reload_begins_and_ends),
        TEST(that_it_is_ready_is_told_as_soon_as_there_is_room),
        TEST(that_it_reloads_and_stops_is_told_as_soon_as_there_is_room),
        TEST(it_is_ready_again_when_the_last_reload_was_taken),
        TEST(a_pipe_in_the_place_of_the_file_is_not_read),
        TEST(programs_know_nothing_of_it),
        TEST(a_socket_that_cannot_be_used_is_said),
    };
    hf_cli_fixture_start(&fixture, HF_TEST_COMMAND);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_cli_fixture_stop(&fixture);
    return failures;
}
