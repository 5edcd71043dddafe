/* The command at a terminal: it asks before it destroys and takes only a yes, shows how
 * far it is, says what it waits for and what to do, and fits the terminal. What it prints
 * without one is in tests/transcripts. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/admin.h"
#include "tests/support/cli_try.h"
#include "tests/support/eventually.h"

#define HANDLERS                                                                         \
    HF_CLI_PATIENT                                                                       \
    "worker: {concurrency: 2, lease: 20s, shutdown_timeout: 1s}\n"                       \
    "handlers:\n"                                                                        \
    "  - {type: good, exec: ['true']}\n"                                                 \
    "  - {type: bad, exec: [sh, -c, 'echo boom >&2; exit 65']}\n"                        \
    "  - {type: worse, exec: [sh, -c, 'exit 65']}\n"                                     \
    "  - {type: long, exec: [sleep, '1000']}\n"

enum { MANY = 3000 };

static hf_cli_fixture *const fixture = &hf_try_fixture;
static hf_terminal terminal;

/* Jobs of a type that have run, and died of it. */
static void kill_off(const char *type, const char *const *ids)
{
    char line[160];
    for (; *ids != NULL; ids++) {
        snprintf(line, sizeof line, "enqueue %s @ --id %s", type, *ids);
        hf_try_run(line, 0);
    }
    hf_try_run("worker @ -c w.yaml --burst", 0);
}

/* A job that runs in `worker`. */
static void start_running(const char *id)
{
    char line[160];
    hf_try_worker("worker @ -c w.yaml");
    snprintf(line, sizeof line, "enqueue long @ --id %s", id);
    hf_try_run(line, 0);
    EVENTUALLY(15000, hf_try_is_in(id, "running"));
}

static void put_many(const char *queue, int n)
{
    char path[HF_CLI_PATH];
    hf_cli_fixture_path(fixture, "many", path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < n; i++)
        fprintf(file, "{\"type\":\"good\",\"queue\":\"%s\"}\n", queue);
    assert_int_equal(fclose(file), 0);
    hf_try_run("enqueue @ --bulk many", 0);
}

/* Runs it there, waits for the question, types the answer; what was shown is in
 * terminal.text. */
static void ask_at_terminal(const char *line, const char *question, const char *answer,
                            int code)
{
    hf_cli_fixture_at_terminal(fixture, &terminal, line, NULL);
    EVENTUALLY(15000, terminal.pid == 0 || hf_terminal_shows(&terminal, " [y/N] "));
    hf_try_has(terminal.text, question);
    hf_terminal_type(&terminal, answer);
    int got = hf_terminal_end(&terminal, 10000);
    if (got != code)
        fail_msg("`%s` ended with %d instead of %d: %s", line, got, code, terminal.text);
}

static void a_user_at_a_terminal_is_told_what_is_waited_for(void **state)
{
    static const char *const lines[] = {
        "queue list --redis redis://me:S3cret@127.0.0.1:1 -c patient.yaml",
        "enqueue t --redis redis://me:S3cret@127.0.0.1:1 -c patient.yaml",
        "enqueue --bulk jobs --redis redis://me:S3cret@127.0.0.1:1 -c patient.yaml",
        "lock n --redis redis://me:S3cret@127.0.0.1:1 -c patient.yaml -- true"};
    (void)state;
    hf_cli_fixture_put(fixture, "patient.yaml", "redis: {connect_timeout: 2s}\n");
    hf_cli_fixture_put(fixture, "jobs", "{\"type\": \"t\"}\n");
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        hf_cli_fixture_at_terminal(fixture, &terminal, lines[i], NULL);
        EVENTUALLY(15000,
                   terminal.pid == 0 || hf_terminal_shows(&terminal, "waiting for"));
        assert_int_equal(hf_terminal_end(&terminal, 10000), 69);
        hf_try_has(terminal.text,
                   "holdfast: waiting for Redis at redis://***@127.0.0.1:1 ...\r\n");
    }
    hf_try_run("queue list @", 0); /* not without a terminal */
    assert_string_equal(fixture->err, "");
}

static void a_user_at_a_terminal_is_told_what_to_do(void **state)
{
    (void)state;
    hf_cli_fixture_at_terminal(fixture, &terminal, "job show nothing @", NULL);
    assert_int_equal(hf_terminal_end(&terminal, 10000), 1);
    assert_string_equal(terminal.text,
                        "holdfast: no job 'nothing' in any queue\r\n"
                        "  it is done, was removed, or was never accepted\r\n");
    hf_try_run("job show nothing @", 1); /* a pipe, or a log, gets one line */
    assert_string_equal(fixture->err, "holdfast: no job 'nothing' in any queue\n");
}

static void
a_purge_at_a_terminal_says_what_will_go_and_takes_no_for_an_answer(void **state)
{
    (void)state;
    static const char question[] =
        "Remove all jobs of queue 'default' that do not run: 3 waiting, 1 dead? "
        "(1 running is left alone) [y/N] ";
    static const char *const noes[] = {
        "n\n", "\n", "Yes!\n", "yesyes\n", "no yes\n", "yes yes yes yes\n", "\004"};
    kill_off("bad", (const char *const[]){"d1", NULL});
    start_running("r1");
    hf_try_run("enqueue good @ --in 1h --id a", 0);
    hf_try_run("enqueue good @ --in 1h --id b", 0);
    hf_try_run("enqueue good @ --in 1h --id c", 0);
    for (size_t i = 0; i < sizeof noes / sizeof noes[0]; i++) {
        ask_at_terminal("queue purge default @", question, noes[i], 1);
        hf_try_has(terminal.text, "holdfast: queue purge: nothing was done\r\n");
        assert_int_equal(hf_try_figure("default", "delayed"), 3);
        assert_int_equal(hf_try_figure("default", "dead"), 1);
    }
    ask_at_terminal("queue purge default @", question, "yes\n", 0);
    hf_try_has(terminal.text, "default: 4 jobs removed\r\n");
    assert_int_equal(hf_try_figure("default", "delayed"), 0);
    assert_int_equal(hf_try_figure("default", "dead"), 0);
    assert_int_equal(hf_try_figure("default", "running"), 1);
    assert_int_equal(hf_try_figure("default", "deleted"), 4);
    assert_true(hf_try_is_in("r1", "running"));
}

static void a_purge_shows_a_bar_on_a_terminal_and_none_in_a_pipe(void **state)
{
    (void)state;
    put_many("q", MANY);
    ask_at_terminal("queue purge q @", "3000 waiting, 0 dead? (0 running are left alone)",
                    "y\n", 0);
    hf_try_has(terminal.text, "\r[");
    hf_try_has(terminal.text, "%  ");
    hf_try_has(terminal.text, "q: 3000 jobs removed\r\n");
    put_many("q", MANY);
    hf_try_run("queue purge q @ --yes", 0);
    assert_string_equal(fixture->err, "");
}

static void
a_purge_that_is_interrupted_stops_after_its_slice_and_says_how_far_it_came(void **state)
{
    (void)state;
    put_many("q", MANY);
    hf_cli_fixture_at_terminal(fixture, &terminal, "queue purge q @", NULL);
    EVENTUALLY(15000, hf_terminal_shows(&terminal, " [y/N] "));
    assert_false(
        hf_pid_catches(terminal.pid, SIGINT)); /* at the question ^C just ends it */
    hf_fixture_signal(&fixture->redis, SIGSTOP);
    hf_terminal_type(&terminal, "yes\n");
    EVENTUALLY(15000, hf_pid_catches(terminal.pid, SIGINT));
    hf_terminal_type(&terminal, "\003");
    EVENTUALLY(15000,
               !hf_pid_catches(terminal.pid, SIGINT)); /* it has been caught, once */
    hf_fixture_signal(&fixture->redis, SIGCONT);
    assert_int_equal(hf_terminal_end(&terminal, 15000), 128 + SIGINT);
    hf_try_has(terminal.text, " jobs removed, then it was stopped\r\n");
    long long left = hf_fixture_number(&fixture->redis, "ZCARD hf:{q}:schedule");
    char said[64];
    snprintf(said, sizeof said, "q: %lld jobs removed, then", MANY - left);
    assert_in_range(left, 1, MANY - 1);
    hf_try_has(terminal.text, said);
    hf_test_audit(&fixture->redis, false);
}

static void interrupting_the_question_does_nothing(void **state)
{
    (void)state;
    hf_try_run("enqueue good @ --in 1h", 0);
    ask_at_terminal("queue purge default @", "1 waiting", "\003", 128 + SIGINT);
    assert_int_equal(hf_try_figure("default", "delayed"), 1);
}

static void a_job_is_deleted_only_after_a_yes(void **state)
{
    (void)state;
    kill_off("bad", (const char *const[]){"d1", NULL});
    ask_at_terminal("job delete d1 @", "Delete job 'd1' (bad, dead) of queue 'default'?",
                    "no\n", 1);
    assert_true(hf_try_is_in("d1", "dead"));
    ask_at_terminal("job delete d1 @", "Delete job 'd1'", "y\n", 0);
    hf_try_has(terminal.text, "d1: deleted\r\n");
    assert_int_equal(hf_try_figure("default", "deleted"), 1);
    hf_test_audit(&fixture->redis, true);
}

static void dead_jobs_are_purged_by_filter_and_the_question_counts_them(void **state)
{
    (void)state;
    kill_off("bad", (const char *const[]){"b1", "b2", "b3", NULL});
    kill_off("worse", (const char *const[]){"w1", "w2", NULL});
    ask_at_terminal("dead purge @ --type bad --limit 2",
                    "Remove 2 of the 5 dead jobs of queue 'default'? [y/N] ", "n\n", 1);
    assert_int_equal(hf_try_figure("default", "dead"), 5);
    ask_at_terminal("dead purge @ --type bad --limit 2", "Remove 2 of the 5", "y\n", 0);
    hf_try_has(terminal.text, "default: 2 dead jobs removed\r\n");
    ask_at_terminal("dead purge @", "Remove 3 of the 3", "yes\n", 0);
    assert_int_equal(hf_try_figure("default", "dead"), 0);
    hf_test_audit(&fixture->redis, true);
}

static void one_dead_job_is_purged_by_its_id_and_never_one_that_lives(void **state)
{
    (void)state;
    kill_off("bad", (const char *const[]){"b1", "b2", NULL});
    ask_at_terminal("dead purge b1 @",
                    "Remove the dead job 'b1' (bad) of queue 'default'?", "no\n", 1);
    ask_at_terminal("dead purge b1 @", "Remove the dead job 'b1'", "yes\n", 0);
    hf_try_has(terminal.text, "default: 1 dead job removed\r\n");
    assert_true(hf_try_is_in("b2", "dead"));
    /* Retried while the question stands: it is not dead any more. */
    hf_cli_fixture_at_terminal(fixture, &terminal, "dead purge b2 @", NULL);
    EVENTUALLY(15000, hf_terminal_shows(&terminal, " [y/N] "));
    hf_try_run("dead retry b2 @", 0);
    hf_terminal_type(&terminal, "y\n");
    assert_int_equal(hf_terminal_end(&terminal, 10000), 1);
    hf_try_has(terminal.text, "no dead job 'b2' in queue 'default'");
    assert_true(hf_try_is_in("b2", "ready"));
}

static void what_dies_while_the_question_stands_is_not_purged(void **state)
{
    (void)state;
    kill_off("bad", (const char *const[]){"b1", "b2", NULL});
    hf_cli_fixture_at_terminal(fixture, &terminal, "dead purge @", NULL);
    EVENTUALLY(15000, hf_terminal_shows(&terminal, "Remove 2 of the 2 dead jobs"));
    kill_off("bad", (const char *const[]){"b3", NULL});
    hf_terminal_type(&terminal, "yes\n");
    assert_int_equal(hf_terminal_end(&terminal, 10000), 0);
    hf_try_has(terminal.text, "default: 2 dead jobs removed\r\n");
    assert_true(hf_try_is_in("b3", "dead"));
}

static void dead_jobs_of_several_queues_are_retried_after_a_question(void **state)
{
    (void)state;
    kill_off("bad", (const char *const[]){"b1", "b2", NULL});
    hf_try_run("enqueue bad @ -q mail --id m1", 0);
    (void)hf_fixture_command(&fixture->redis, "ZREM hf:{mail}:schedule m1");
    (void)hf_fixture_command(&fixture->redis, "ZADD hf:{mail}:dead 1 m1");
    ask_at_terminal("dead retry @", "Retry 3 dead jobs of 2 queues ('default', 'mail')?",
                    "n\n", 1);
    assert_int_equal(hf_try_figure("mail", "dead"), 1);
    ask_at_terminal("dead retry @", "Retry 3 dead jobs", "y\n", 0);
    assert_int_equal(hf_try_figure("mail", "dead"), 0);
    assert_int_equal(hf_try_figure("default", "dead"), 0);
}

static void a_filter_that_lets_nothing_pass_purges_nothing(void **state)
{
    (void)state;
    kill_off("bad", (const char *const[]){"b1", NULL});
    hf_cli_fixture_at_terminal(fixture, &terminal, "dead purge @ --type none", NULL);
    assert_int_equal(hf_terminal_end(&terminal, 10000), 0); /* there is nothing to ask */
    hf_try_has(terminal.text, "default: 0 dead jobs removed\r\n");
    assert_int_equal(hf_try_figure("default", "dead"), 1);
}

/* The bar is taken away before anything is printed. */
static void the_doctor_shows_how_far_it_is(void **state)
{
    (void)state;
    hf_try_run("enqueue t @ --id lost --in 1h", 0);
    hf_fixture_command(&fixture->redis, "HDEL hf:{default}:jobs lost");
    hf_cli_fixture_at_terminal(fixture, &terminal, "doctor @", NULL);
    assert_int_equal(hf_terminal_end(&terminal, 10000), 1);
    hf_try_has(terminal.text, "ids looked at");
    hf_try_has(terminal.text, "\rdefault: I1: lost: is in `schedule`");
    hf_try_run("doctor @", 1);
    assert_string_equal(fixture->err, ""); /* none in a pipe */
}

static void words_are_bright_on_a_terminal_unless_that_is_not_wanted(void **state)
{
    (void)state;
    static const char *const plain[] = {"NO_COLOR=1", NULL};
    static const char *const dumb[] = {"TERM=dumb", NULL};
    static const char *const lines[] = {"job why a @", "queue list @"};
    hf_try_run("enqueue good @ --id a", 0);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        hf_cli_fixture_at_terminal(fixture, &terminal, lines[i], NULL);
        assert_int_equal(hf_terminal_end(&terminal, 10000), 0);
        hf_try_has(terminal.text, "\033[1m");
        hf_cli_fixture_at_terminal(fixture, &terminal, lines[i], plain);
        assert_int_equal(hf_terminal_end(&terminal, 10000), 0);
        assert_null(strchr(terminal.text, '\033'));
        hf_cli_fixture_at_terminal(fixture, &terminal, lines[i], dumb);
        assert_int_equal(hf_terminal_end(&terminal, 10000), 0);
        assert_null(strchr(terminal.text, '\033'));
    }
}

/* COLUMNS says how wide a terminal is, and a pipe is as wide as what goes into it. */
static void a_table_is_as_wide_as_its_terminal(void **state)
{
    (void)state;
    static const char *const narrow[] = {"COLUMNS=60", "TERM=dumb", NULL};
    static const char *const wide[] = {"COLUMNS=200", "TERM=dumb", NULL};
    static const char type[] = "a.type.of.more.than.forty.characters.is.long";
    char line[128];
    snprintf(line, sizeof line, "enqueue %s @ --id a", type);
    hf_try_run(line, 0);
    hf_cli_fixture_at_terminal(fixture, &terminal, "job list @", narrow);
    assert_int_equal(hf_terminal_end(&terminal, 10000), 0);
    hf_try_has(terminal.text, "a.type.of.");
    assert_null(strstr(terminal.text, type));
    hf_cli_fixture_at_terminal(fixture, &terminal, "job list @", wide);
    assert_int_equal(hf_terminal_end(&terminal, 10000), 0);
    hf_try_has(terminal.text, type);
    assert_int_equal(setenv("COLUMNS", "60", 1), 0);
    hf_try_run("job list @", 0);
    assert_int_equal(unsetenv("COLUMNS"), 0);
    hf_try_has(fixture->out, type);
}

/* A clock of the server's own. */
static void a_job_is_shown_by_the_time_of_redis(void **state)
{
    (void)state;
    static const char *const commands[] = {"enqueue good --id x", "job show x",
                                           "job list"};
    char line[512];
    hf_fixture other;
    hf_fixture_start(&other, &(hf_fixture_options){.clock = true});
    hf_fixture_clock_step(&other, 7200000);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        snprintf(line, sizeof line, "%s --redis %s", commands[i], hf_fixture_url(&other));
        hf_try_run(line, 0);
        assert_null(strstr(fixture->out, "in 1h"));
    }
    hf_fixture_stop(&other);
}

#define TEST(name) cmocka_unit_test_setup(name, hf_try_clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_user_at_a_terminal_is_told_what_is_waited_for),
        TEST(a_user_at_a_terminal_is_told_what_to_do),
        TEST(a_purge_at_a_terminal_says_what_will_go_and_takes_no_for_an_answer),
        TEST(a_purge_shows_a_bar_on_a_terminal_and_none_in_a_pipe),
        TEST(a_purge_that_is_interrupted_stops_after_its_slice_and_says_how_far_it_came),
        TEST(interrupting_the_question_does_nothing),
        TEST(a_job_is_deleted_only_after_a_yes),
        TEST(dead_jobs_are_purged_by_filter_and_the_question_counts_them),
        TEST(one_dead_job_is_purged_by_its_id_and_never_one_that_lives),
        TEST(what_dies_while_the_question_stands_is_not_purged),
        TEST(dead_jobs_of_several_queues_are_retried_after_a_question),
        TEST(a_filter_that_lets_nothing_pass_purges_nothing),
        TEST(the_doctor_shows_how_far_it_is),
        TEST(words_are_bright_on_a_terminal_unless_that_is_not_wanted),
        TEST(a_table_is_as_wide_as_its_terminal),
        TEST(a_job_is_shown_by_the_time_of_redis),
    };
    hf_try_up(HF_TEST_COMMAND, HANDLERS);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_try_down();
    return failures;
}
