/* test_worker_programs.c - a worker's program lives as long as the lock of its job: not
 * after its worker was killed, and through all the renewals before. And short ones find
 * their next job claimed already. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/admin.h"
#include "tests/support/admin.h"
#include "tests/support/cli_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"

/* Those that last are ended by the worker, or by the test. */
#define HANDLERS                                                                         \
    HF_CLI_PATIENT                                                                       \
    "retry: {max_attempts: 1}\n"                                                         \
    "handlers:\n"                                                                        \
    "  - {type: long, exec: [sh, -c, 'sleep 1000 & echo $! > pid; wait']}\n"             \
    "  - {type: short, exec: ['true']}\n"                                                \
    "  - {type: lasts, exec: [sleep, '5.5']}\n"                                          \
    "  - {type: borne, exec: [sh, -c, 'trap \"echo >> terms\" TERM; "                    \
    "echo $$ > pid; while ! test -e go; do sleep 0.1; done; exit 1']}\n"                 \
    "  - {type: deaf, grace: 5s, exec: [sh, -c, 'trap \"echo >> terms\" TERM; "          \
    "echo $$ > pid; while :; do sleep 0.1; done']}\n"

/* It lives on when its worker and its minder were killed, and it sees what it finds. */
#define FAMILY                                                                           \
    HF_CLI_PATIENT                                                                       \
    "worker: {lease: 1s}\n"                                                              \
    "handlers:\n"                                                                        \
    "  - type: family\n"                                                                 \
    "    exec:\n"                                                                        \
    "    - sh\n"                                                                         \
    "    - -c\n"                                                                         \
    "    - |\n"                                                                          \
    "      if test -e pid; then\n"                                                       \
    "        case $(cat /proc/$(cat pid)/stat) in\n"                                     \
    "        '' | *' Z '* | *' X '*) echo gone >found ;;\n"                              \
    "        *) echo alive >found ;;\n"                                                  \
    "        esac\n"                                                                     \
    "      else\n"                                                                       \
    "        sleep 1000 & echo $! >new; mv new pid; wait\n"                              \
    "      fi\n"

static hf_cli_fixture fixture;
static hf_proc worker;

static pid_t program(void)
{
    return (pid_t)strtol(hf_cli_fixture_get(&fixture, "pid"), NULL, 10);
}

static int up(void **state)
{
    (void)state;
    hf_cli_fixture_start(&fixture, HF_TEST_COMMAND);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_proc_kill(&worker);
    if (program() > 1 && hf_pid_alive(program()))
        kill(program(), SIGKILL);
    hf_cli_fixture_stop(&fixture);
    return 0;
}

static void begin(const char *yaml)
{
    hf_cli_fixture_put(&fixture, "w.yaml", yaml);
    hf_cli_fixture_begin(&fixture, &worker, "worker @ -c w.yaml", "log");
    EVENTUALLY(15000, strstr(hf_cli_fixture_get(&fixture, "log"), "serving") != NULL);
}

static void a_killed_worker_takes_its_program_along(void **state)
{
    (void)state;
    begin("worker: {lease: 1m}\n" HANDLERS);
    assert_int_equal(hf_cli_fixture_run(&fixture, "enqueue long @", NULL, NULL), 0);
    EVENTUALLY(15000, program() > 1 && hf_pid_alive(program()));
    hf_proc_kill(&worker);
    EVENTUALLY(15000, !hf_pid_alive(program())); /* though its lease goes on */
}

static pid_t minder_of(const hf_proc *proc)
{
    char path[64], text[256];
    const char *left = text;
    snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", (long)proc->pid,
             (long)proc->pid);
    hf_read_file(path, text, sizeof text);
    for (char *end; *left != '\0'; left = end) {
        char words[256];
        long pid = strtol(left, &end, 10);
        if (end == left)
            break;
        snprintf(path, sizeof path, "/proc/%ld/cmdline", pid);
        hf_read_file(path, words, sizeof words);
        if (strcmp(words + strlen(words) + 1, "minder") == 0)
            return (pid_t)pid;
    }
    return 0;
}

static bool stands(pid_t pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    const char *state = strrchr(hf_read_file(path, text, sizeof text), ')');
    return state != NULL && strncmp(state, ") T", 3) == 0;
}

/* The next run is of a worker that writes the address of Redis in another way. */
static void what_a_dead_worker_has_left_ends_before_the_next_run(void **state)
{
    char line[256];
    (void)state;
    begin(FAMILY);
    assert_int_equal(hf_cli_fixture_run(&fixture, "enqueue family @", NULL, NULL), 0);
    EVENTUALLY(15000, program() > 1 && hf_pid_alive(program()));
    pid_t minder = minder_of(&worker);
    assert_true(minder > 0);
    kill(minder, SIGSTOP);
    EVENTUALLY(15000, stands(minder));
    hf_proc_kill(&worker);
    kill(minder, SIGKILL);
    assert_true(hf_pid_alive(program()));
    snprintf(line, sizeof line, "worker --redis unix://%s/./%s -c w.yaml",
             fixture.redis.dir, strrchr(fixture.redis.socket, '/') + 1);
    hf_cli_fixture_begin(&fixture, &worker, line, "log");
    EVENTUALLY(30000, hf_cli_fixture_has(&fixture, "found"));
    EVENTUALLY(15000, strlen(hf_cli_fixture_get(&fixture, "found")) > 0);
    assert_string_equal(hf_cli_fixture_get(&fixture, "found"), "gone\n");
}

static void a_program_runs_on_while_its_lease_is_renewed(void **state)
{
    (void)state;
    begin("worker: {lease: 4s}\n" HANDLERS);
    const hf_test_span span = hf_test_span_begin();
    assert_int_equal(hf_cli_fixture_run(&fixture, "enqueue lasts @ --wait", NULL, NULL),
                     0);
    assert_null(strstr(hf_cli_fixture_get(&fixture, "log"), "outcome=lost"));
    if (!hf_test_span_is_busy(span))
        assert_null(strstr(hf_cli_fixture_get(&fixture, "log"), "renewed late"));
}

/* Its worker sees to it at once. The minder would 20 s later, at the end of the lease. */
static void a_program_whose_lock_was_taken_is_killed(void **state)
{
    (void)state;
    begin("worker: {lease: 30s}\n" HANDLERS);
    assert_int_equal(hf_cli_fixture_run(&fixture, "enqueue deaf @ --id one", NULL, NULL),
                     0);
    EVENTUALLY(15000, program() > 1 && hf_pid_alive(program()));
    hf_test_take_over(&fixture.redis, "default", "one");
    EVENTUALLY(15000,
               strstr(hf_cli_fixture_get(&fixture, "log"), "outcome=lost") != NULL);
    EVENTUALLY(5000, !hf_pid_alive(program()));
}

/* Redis was away, and the minder asked it to end; its lease was renewed after all. */
static void an_end_long_after_a_late_renewal_is_its_own(void **state)
{
    (void)state;
    begin("worker: {lease: 12s, kill_grace: 3s}\n" HANDLERS);
    assert_int_equal(hf_cli_fixture_run(&fixture, "enqueue borne @", NULL, NULL), 0);
    EVENTUALLY(15000, program() > 1 && hf_pid_alive(program()));
    hf_fixture_signal(&fixture.redis, SIGSTOP);
    EVENTUALLY(15000, strlen(hf_cli_fixture_get(&fixture, "terms")) > 0);
    hf_fixture_signal(&fixture.redis, SIGCONT);
    EVENTUALLY(15000, strstr(hf_cli_fixture_get(&fixture, "log"),
                             "leases were renewed late") != NULL);
    size_t asked; /* a renewal that is late again begins the time anew */
    do {
        asked = strlen(hf_cli_fixture_get(&fixture, "terms"));
        ALWAYS(6000, hf_pid_alive(program()));
    } while (strlen(hf_cli_fixture_get(&fixture, "terms")) > asked);
    hf_cli_fixture_put(&fixture, "go", "");
    EVENTUALLY(15000,
               strstr(hf_cli_fixture_get(&fixture, "log"), "outcome=dead") != NULL);
    assert_null(strstr(hf_cli_fixture_get(&fixture, "log"), "outcome=released"));
}

/* As a parent that wants no zombies starts it. */
static void
a_worker_that_inherits_an_ignored_sigchld_learns_how_programs_end(void **state)
{
    (void)state;
    assert_true(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
    hf_cli_fixture_put(&fixture, "w.yaml", HANDLERS);
    hf_cli_fixture_begin(&fixture, &worker, "worker @ -c w.yaml", "log");
    assert_true(signal(SIGCHLD, SIG_DFL) != SIG_ERR);
    EVENTUALLY(15000, strstr(hf_cli_fixture_get(&fixture, "log"), "serving") != NULL);
    assert_int_equal(hf_cli_fixture_run(&fixture, "enqueue short @ --wait", NULL, NULL),
                     0);
}

/* ---- claimed ahead ---- */

static void put_many(const char *type, int n)
{
    char line[64];
    int len = snprintf(line, sizeof line, "{\"type\":\"%s\",\"payload\":\"\"}\n", type);
    char *text = malloc((size_t)n * (size_t)len + 1);
    assert_non_null(text);
    for (int i = 0; i < n; i++)
        memcpy(text + i * len, line, (size_t)len + 1);
    hf_cli_fixture_put(&fixture, "jobs", text);
    free(text);
    assert_int_equal(hf_cli_fixture_run(&fixture, "enqueue @ --bulk jobs", NULL, NULL),
                     0);
}

static long long running(void)
{
    return hf_fixture_number(&fixture.redis, "ZCARD hf:{default}:running");
}

static long long counted(const char *field)
{
    return hf_fixture_number(&fixture.redis, "HGET hf:{default}:meta %s", field);
}

/* A moment of it may be the one before the next claim. */
static bool stays_at(long long n)
{
    uint64_t until_ms = hf_test_now_ms() + 200;
    while (running() == n && hf_test_now_ms() < until_ms)
        hf_test_pause_ms(2);
    return running() == n;
}

static void a_slot_for_short_programs_waits_for_no_claim(void **state)
{
    enum { SHORT = 600 };
    (void)state;
    put_many("short", SHORT);
    put_many("long", 8);
    put_many("short", 20);
    begin("worker: {concurrency: 8}\n" HANDLERS);
#ifndef HF_SANITIZED /* there, none is short */
    EVENTUALLY(15000, running() > 8);
#endif
    EVENTUALLY(120000, counted("done") == SHORT); /* a process each */
    EVENTUALLY(15000, stays_at(8)); /* what was claimed ahead is others' again */
}

/* ---- cancelled ---- */

static void cancel(const char *id)
{
    hf_admin *admin = hf_test_admin(hf_fixture_url(&fixture.redis));
    assert_int_equal(hf_admin_cancel(admin, "default", id, NULL, NULL), HF_RUNNING);
    hf_admin_close(admin);
}

static void run_until_it_runs(const char *line)
{
    assert_int_equal(hf_cli_fixture_run(&fixture, line, NULL, NULL), 0);
    EVENTUALLY(15000, program() > 1 && hf_pid_alive(program()));
}

static void a_cancelled_program_gets_term(void **state)
{
    (void)state;
    begin("worker: {lease: 12s}\n" HANDLERS);
    run_until_it_runs("enqueue long @ --id one");
    cancel("one");
    EVENTUALLY(15000, counted("cancelled") == 1);
    EVENTUALLY(
        5000, !hf_pid_alive(program())); /* a child of the program, it may end after it */
    assert_int_equal(hf_fixture_number(&fixture.redis, "HLEN hf:{default}:jobs"), 0);
    EVENTUALLY(15000,
               strstr(hf_cli_fixture_get(&fixture, "log"), "outcome=cancelled") != NULL);
    assert_int_equal(counted("failed"), -1);
}

static void one_that_does_not_heed_it_is_killed(void **state)
{
    (void)state;
    begin("worker: {lease: 12s}\n" HANDLERS);
    run_until_it_runs("enqueue deaf @ --id one");
    cancel("one");
    EVENTUALLY(15000, counted("cancelled") == 1);
    EVENTUALLY(5000, !hf_pid_alive(program()));
    assert_true(strlen(hf_cli_fixture_get(&fixture, "terms")) >= 1);
    EVENTUALLY(15000,
               strstr(hf_cli_fixture_get(&fixture, "log"), "outcome=cancelled") != NULL);
}

/* Its holder has heard nothing of it yet, and never will. */
static void what_a_killed_worker_was_to_cancel_runs_nowhere_else(void **state)
{
    (void)state;
    begin("worker: {lease: 4s}\n" HANDLERS);
    run_until_it_runs("enqueue long @ --id one");
    cancel("one");
    hf_proc_kill(&worker);
    EVENTUALLY(15000, !hf_pid_alive(program()));
    pid_t first = program();
    begin("worker: {lease: 4s}\n" HANDLERS);
    EVENTUALLY(15000, counted("cancelled") == 1);
    assert_int_equal(program(), first);
    assert_int_equal(counted("crashed"), -1);
    assert_int_equal(hf_fixture_number(&fixture.redis, "HLEN hf:{default}:jobs"), 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, up, down)
    const struct CMUnitTest tests[] = {
        CASE(a_killed_worker_takes_its_program_along),
        CASE(what_a_dead_worker_has_left_ends_before_the_next_run),
        CASE(a_program_runs_on_while_its_lease_is_renewed),
        CASE(a_program_whose_lock_was_taken_is_killed),
        CASE(an_end_long_after_a_late_renewal_is_its_own),
        CASE(a_worker_that_inherits_an_ignored_sigchld_learns_how_programs_end),
        CASE(a_slot_for_short_programs_waits_for_no_claim),
        CASE(a_cancelled_program_gets_term),
        CASE(one_that_does_not_heed_it_is_killed),
        CASE(what_a_killed_worker_was_to_cancel_runs_nowhere_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
