/* test_cli_lock_terminal.c - `holdfast lock` at a terminal: the command reads from it and
 * is interrupted by it, stops and goes on in a shell, and gives it back. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/cli_try.h"
#include "tests/support/eventually.h"

enum { LONG_MS = 30000 };

static hf_terminal terminal;

static int end(void **state)
{
    (void)state;
    if (terminal.pid != 0)
        (void)hf_terminal_end(&terminal, 0);
    return 0;
}

/* The words that run a script under the lock. */
static void words_of(const char *options, const char *script, const char *after,
                     char *line, size_t size)
{
    char path[HF_CLI_PATH];
    hf_cli_fixture_put(&hf_try_fixture, "script", script);
    hf_cli_fixture_path(&hf_try_fixture, "script", path);
    (void)snprintf(line, size, "%s lock --redis %s %s a sh %s%s", HF_TEST_COMMAND,
                   hf_try_fixture.redis.url, options, path, after);
}

static void run(const char *options, const char *script)
{
    char path[HF_CLI_PATH], line[HF_CLI_PATH + 128];
    hf_cli_fixture_put(&hf_try_fixture, "script", script);
    hf_cli_fixture_path(&hf_try_fixture, "script", path);
    (void)snprintf(line, sizeof line, "lock @ %s a sh %s", options, path);
    hf_cli_fixture_at_terminal(&hf_try_fixture, &terminal, line, NULL);
}

static void shows(const char *text)
{
    const uint64_t until = hf_test_fair_ms() + LONG_MS;
    while (!hf_terminal_shows(&terminal, text))
        if (hf_test_fair_ms() >= until)
            fail_msg("expected \"%s\" at the terminal, found:\n%s", text, terminal.text);
}

static void begin_shell(void)
{
    static const char *const args[] = {"/bin/sh", "-i", NULL};
    static const char *const env[] = {"PS1=ready> ", "ENV=", NULL};
    hf_terminal_start(&terminal, args, env, hf_try_fixture.dir);
    shows("ready> ");
}

/* One line for the shell. What it answers is told from the echo by its quotes. */
static void type(const char *line)
{
    char text[6 * HF_CLI_PATH];
    (void)snprintf(text, sizeof text, "%s\n", line);
    hf_terminal_type(&terminal, text);
}

static void end_shell(void)
{
    type("exit 0");
    assert_int_equal(hf_terminal_end(&terminal, LONG_MS), 0);
}

static const char reads[] = "echo beg''un; read x </dev/tty; echo got-$x; exit 6";

static void the_command_reads_from_the_terminal(void **state)
{
    (void)state;
    run("", reads);
    shows("begun");
    hf_terminal_type(&terminal, "hello\n");
    assert_int_equal(hf_terminal_end(&terminal, LONG_MS), 6);
    assert_non_null(strstr(terminal.text, "got-hello"));
}

static void the_command_is_in_the_foreground_from_its_start(void **state)
{
    (void)state;
    run("", "set -- $(ps -o tpgid=,pgid= -p $$); echo beg''un; [ $1 = $2 ]");
    assert_int_equal(hf_terminal_end(&terminal, LONG_MS), 0);
    assert_non_null(strstr(terminal.text, "begun"));
}

static void an_interrupt_ends_the_command(void **state)
{
    (void)state;
    run("", "echo beg''un; exec sleep 600");
    shows("begun");
    hf_terminal_type(&terminal, "\003");
    assert_int_equal(hf_terminal_end(&terminal, LONG_MS), 128 + SIGINT);
    hf_try_run("locks show @ a", 1);
}

static void an_interrupt_ends_the_wait(void **state)
{
    hf_proc holder = {0};
    (void)state;
    hf_cli_fixture_begin(&hf_try_fixture, &holder, "lock @ a sleep 600", "log");
    EVENTUALLY(LONG_MS,
               hf_cli_fixture_run(&hf_try_fixture, "lock @ -n a true", NULL, NULL) == 1);
    run("", "echo beg''un");
    EVENTUALLY(LONG_MS,
               hf_fixture_number(&hf_try_fixture.redis, "ZCARD hf:lock:{a}:q:a") == 1);
    hf_terminal_type(&terminal, "\003");
    assert_int_equal(hf_terminal_end(&terminal, LONG_MS), 128 + SIGINT);
    assert_null(strstr(terminal.text, "begun"));
    hf_proc_signal(&holder, SIGTERM);
    assert_true(hf_proc_wait(&holder, LONG_MS));
}

static void it_stops_and_continues_in_a_shell(void **state)
{
    char line[4 * HF_CLI_PATH];
    (void)state;
    begin_shell();
    words_of("", reads, "", line, sizeof line);
    type(line);
    shows("begun");
    hf_terminal_type(&terminal, "\032");
    shows("Stopped");
    type("echo the shell is h''ere");
    shows("the shell is here");
    type("fg");
    hf_terminal_type(&terminal, "hello\n");
    shows("got-hello");
    type("echo status-$?-");
    shows("status-6-");
    end_shell();
}

/* Nobody renews while it is stopped: that is told, the command is ended before another
 * has the lock, and who goes on with it hears of the loss. */
static void stopping_it_for_too_long_loses_the_lock(void **state)
{
    char line[4 * HF_CLI_PATH];
    (void)state;
    begin_shell();
    words_of("--ttl 4s --grace 1s", "echo $$ >pid; echo beg''un; exec sleep 600", "",
             line, sizeof line);
    type(line);
    shows("begun");
    hf_terminal_type(&terminal, "\032");
    shows("lock 'a' is not renewed meanwhile, and the command is ended in ");
    shows("Stopped");
    hf_cli_fixture_put(
        &hf_try_fixture, "next",
        "case $(ps -o stat= -p $(cat pid)) in Z*) echo it has en''ded;; esac");
    (void)snprintf(line, sizeof line, "%s lock --redis %s a sh next", HF_TEST_COMMAND,
                   hf_try_fixture.redis.url);
    type(line);
    shows("it has ended");
    type("fg");
    type("echo status-$?-");
    shows("lost");
    shows("status-75-");
    end_shell();
}

static void in_the_background_it_stops_when_it_wants_the_terminal(void **state)
{
    char line[4 * HF_CLI_PATH];
    (void)state;
    begin_shell();
    words_of("", reads, " &", line, sizeof line);
    type(line);
    shows("begun");
    type("until jobs >jobs; grep -q Stopped jobs; do sleep 0.02; done; "
         "echo it is sto''pped");
    shows("it is stopped");
    type("fg");
    hf_terminal_type(&terminal, "hello\n");
    shows("got-hello");
    end_shell();
}

static void in_a_pipeline_it_gets_the_terminal_when_it_asks(void **state)
{
    char line[4 * HF_CLI_PATH];
    (void)state;
    begin_shell();
    words_of("", reads, " | tr a-z A-Z", line, sizeof line);
    type(line);
    shows("BEGUN");
    hf_terminal_type(&terminal, "hello\n");
    shows("GOT-HELLO");
    end_shell();
}

static void an_interrupt_reaches_it_in_a_pipeline(void **state)
{
    char line[4 * HF_CLI_PATH];
    (void)state;
    begin_shell();
    words_of(
        "",
        "trap 'echo tra''pped; exit 2' INT; echo beg''un; while :; do sleep 0.02; done",
        " | cat", line, sizeof line);
    type(line);
    shows("begun");
    hf_terminal_type(&terminal, "\003");
    EVENTUALLY(LONG_MS,
               hf_cli_fixture_run(&hf_try_fixture, "lock @ -n a true", NULL, NULL) == 0);
    end_shell();
}

/* The command is in the foreground group alone; what was asked to end is the line. */
static void an_interrupt_ends_a_loop_around_it(void **state)
{
    char line[4 * HF_CLI_PATH], whole[5 * HF_CLI_PATH];
    (void)state;
    begin_shell();
    words_of("", "echo beg''un; exec sleep 600", "", line, sizeof line);
    (void)snprintf(whole, sizeof whole, "sh -c 'while :; do %s; done'", line);
    type(whole);
    shows("begun");
    hf_terminal_type(&terminal, "\003");
    type("echo the loop is o''ver");
    shows("the loop is over");
    end_shell();
}

static int count_of(const char *part)
{
    int n = 0;
    for (const char *at = terminal.text; (at = strstr(at, part)) != NULL; at++)
        n++;
    return n;
}

/* In the background, and its shell has forgotten it: no job control can give it the
 * terminal or let it go on. */
static void begin_orphan(const char *options, const char *script)
{
    char line[4 * HF_CLI_PATH], whole[5 * HF_CLI_PATH];
    begin_shell();
    words_of(options, script, "", line, sizeof line);
    (void)snprintf(whole, sizeof whole, "(sh -c '%s; echo status-$?-' &)", line);
    type(whole);
    shows("begun");
}

static void without_job_control_a_command_that_wants_the_terminal_is_ended(void **state)
{
    (void)state;
    begin_orphan("", reads);
    shows("the command wants the terminal");
    shows("status-129-");
    assert_int_equal(count_of("the command wants the terminal"), 1);
    assert_in_range(count_of("stopped: lock"), 0, 1);
    assert_null(strstr(terminal.text, "got-"));
    hf_try_run("locks show @ a", 1);
    end_shell();
}

static void without_job_control_a_command_that_keeps_asking_is_killed(void **state)
{
    (void)state;
    begin_orphan("--grace 200ms",
                 "trap '' HUP; echo beg''un; while :; do read x </dev/tty; done");
    shows("status-137-");
    assert_int_equal(count_of("the command wants the terminal"), 1);
    assert_in_range(count_of("stopped: lock"), 0, 2);
    end_shell();
}

/* It is alone at its terminal, so ^Z stops nothing, as without the lock. */
static void without_job_control_it_is_not_stopped(void **state)
{
    (void)state;
    run("", reads);
    shows("begun");
    hf_terminal_type(&terminal, "\032");
    shows("it goes on: no shell could continue it later");
    hf_terminal_type(&terminal, "hello\n");
    assert_int_equal(hf_terminal_end(&terminal, LONG_MS), 6);
    assert_non_null(strstr(terminal.text, "got-hello"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, hf_try_clean, end)
        TEST(the_command_reads_from_the_terminal),
        TEST(the_command_is_in_the_foreground_from_its_start),
        TEST(an_interrupt_ends_the_command),
        TEST(an_interrupt_ends_the_wait),
        TEST(it_stops_and_continues_in_a_shell),
        TEST(stopping_it_for_too_long_loses_the_lock),
        TEST(in_the_background_it_stops_when_it_wants_the_terminal),
        TEST(in_a_pipeline_it_gets_the_terminal_when_it_asks),
        TEST(an_interrupt_reaches_it_in_a_pipeline),
        TEST(an_interrupt_ends_a_loop_around_it),
        TEST(without_job_control_a_command_that_wants_the_terminal_is_ended),
        TEST(without_job_control_a_command_that_keeps_asking_is_killed),
        TEST(without_job_control_it_is_not_stopped),
    };
    (void)signal(SIGINT, SIG_DFL); /* ignored where the tests run in the background */
    (void)signal(SIGQUIT, SIG_DFL);
    hf_try_up(HF_TEST_COMMAND, NULL);
    int failures = cmocka_run_group_tests_name("cli_lock_terminal", tests, NULL, NULL);
    hf_try_down();
    return failures;
}
