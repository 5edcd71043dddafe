/* Administration for people and scripts: the commands ask before they destroy, leave
 * running jobs alone, and print what they did. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/audit.h"
#include "tests/support/cli_try.h"
#include "tests/support/eventually.h"

#define HANDLERS                                                                         \
    "worker: {concurrency: 2, lease: 20s, shutdown_timeout: 1s}\n"                       \
    "handlers:\n"                                                                        \
    "  - {type: good, exec: ['true']}\n"                                                 \
    "  - {type: bad, exec: [sh, -c, 'echo boom >&2; exit 65']}\n"                        \
    "  - {type: worse, exec: [sh, -c, 'exit 65']}\n"                                     \
    "  - {type: later, exec: [sh, -c, 'echo no >&2; exit 1']}\n"                         \
    "  - {type: long, exec: [sleep, '60']}\n"

enum { MANY = 3000 };

static hf_cli_fixture *const fixture = &hf_try_fixture;
static hf_proc *const worker = &hf_try_proc;
static hf_terminal terminal;

/* ---- running it ---- */

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

/* ---- at a terminal ---- */

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

/* ---- bad input ---- */

typedef struct bad {
    const char *line;
    int code;
    const char *said;
} bad;

static const bad bad_inputs[] = {
    {"queue purge q @", 64, "queue purge: needs --yes (there is no terminal to ask)"},
    {"dead purge @", 64, "dead purge: needs --yes (there is no terminal to ask)"},
    {"job delete x @", 64, "job delete: needs --yes (there is no terminal to ask)"},
    {"queue purge @ --yes", 64, "missing Q (usage: holdfast queue purge Q)"},
    {"queue purge a/b @ --yes", 65, "expected a queue's name"},
    {"dead purge x @ --yes", 1, "no job 'x' in any queue"},
    {"dead purge x @ --yes --type t", 64,
     "dead purge: expected an id or --type, found both"},
    {"dead purge @ --yes --type a/b", 65, "expected a type"},
    {"dead purge @ --yes --since yesterday", 64, "--since: expected a duration"},
    {"dead purge @ --yes --limit 0", 64, "--limit: expected an integer from 1"},
    {"dead purge @ --yes --rate 5/s", 64, "expected an option of 'dead purge'"},
    {"dead retry x @ --type t", 64, "dead retry: expected an id or --type, found both"},
    {"dead retry x @ --rate 5/s", 64, "dead retry: expected an id or --rate, found both"},
    {"dead retry @ --rate 5", 64,
     "--rate: expected JOBS/s, a whole number from 1 to "
     "1000000 (50/s), found '5'"},
    {"dead retry @ --rate 0", 64, "--rate: expected JOBS/s"},
    {"dead retry @ --rate 1/m", 64, "--rate: expected JOBS/s"},
    {"dead retry @ --rate fast", 64, "--rate: expected JOBS/s"},
    {"dead retry @ --rate 1000000/1ms", 64, "--rate: expected JOBS/s"},
    {"job cancel @", 64, "missing ID (usage: holdfast job cancel ID)"},
    {"job cancel a/b @", 65, "expected a job's id"},
    {"job cancel x @ -q a/b", 65, "expected a queue's name"},
    {"job delete x @ --yes -q a/b", 65, "expected a queue's name"},
    {"job cancel x @", 1, "no job 'x' in any queue"},
    {"job cancel x @ -q q", 1, "no job 'x' in queue 'q'"},
    {"job delete x @ --yes", 1, "no job 'x' in any queue"},
    {"job retry x @", 1, "no job 'x' in any queue"},
    {"queue list @ --after a/b", 65, "expected a queue's name"},
};

static void every_bad_input_ends_with_its_code_and_one_clear_line(void **state)
{
    (void)state;
    char json[200];
    for (size_t i = 0; i < sizeof bad_inputs / sizeof bad_inputs[0]; i++) {
        const bad *b = &bad_inputs[i];
        hf_try_run(b->line, b->code);
        assert_int_equal(strncmp(fixture->err, "holdfast: ", 10), 0);
        hf_try_has(fixture->err, b->said);
        assert_ptr_equal(strchr(fixture->err, '\n'),
                         fixture->err + strlen(fixture->err) - 1);
        assert_string_equal(fixture->out, "");
        snprintf(json, sizeof json, "%s --json", b->line);
        json_t *fault = hf_try_object(json, b->code);
        assert_int_equal(hf_try_number(fault, "code"), b->code);
        hf_try_has(hf_try_text(fault, "error"), b->said);
        assert_non_null(hf_try_text(fault, "hint"));
        json_decref(fault);
    }
    assert_string_equal(hf_fixture_command(&fixture->redis, "KEYS *"), "");
}

/* ---- purge ---- */

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
    json_t *purged = hf_try_object("queue purge q @ --yes --json", 0);
    assert_int_equal(hf_try_number(purged, "removed"), MANY);
    assert_true(json_is_true(json_object_get(purged, "complete")));
    assert_string_equal(hf_try_text(purged, "queue"), "q");
    json_decref(purged);
    assert_string_equal(fixture->err, "");
    hf_try_run("queue purge q @ --yes", 0);
    assert_string_equal(fixture->out, "q: 0 jobs removed\n");
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

/* ---- cancel ---- */

static void a_waiting_job_is_cancelled_at_once(void **state)
{
    (void)state;
    hf_try_run("enqueue good @ --id c1", 0);
    hf_try_run("enqueue good @ --id c2 --in 1h", 0);
    hf_try_run("job cancel c1 @", 0);
    assert_string_equal(fixture->out, "c1: cancelled\n");
    json_t *answer = hf_try_object("job cancel c2 @ --wait --json", 0);
    assert_string_equal(hf_try_text(answer, "id"), "c2");
    assert_string_equal(hf_try_text(answer, "queue"), "default");
    assert_string_equal(hf_try_text(answer, "outcome"), "cancelled");
    json_decref(answer);
    hf_try_run("job cancel c1 @", 1);
    hf_try_has(fixture->err, "no job 'c1' in any queue");
    assert_int_equal(hf_try_figure("default", "cancelled"), 2);
    assert_int_equal(hf_try_figure("default", "deleted"), 0);
    hf_test_audit(&fixture->redis, true);
}

static void a_dead_job_is_not_cancelled_and_the_way_is_told(void **state)
{
    (void)state;
    kill_off("bad", (const char *const[]){"d1", NULL});
    hf_try_run("job cancel d1 @ -q default", 1);
    hf_try_has(fixture->err, "d1 is dead, and will not run");
    hf_try_has(fixture->err, "'holdfast job delete d1 -q default' removes it");
    assert_true(hf_try_is_in("d1", "dead"));
}

static void a_running_job_is_asked_to_end_and_a_waiter_is_told(void **state)
{
    (void)state;
    start_running("r1");
    json_t *answer = hf_try_object("job cancel r1 @ --json", 0);
    assert_string_equal(hf_try_text(answer, "outcome"), "asked");
    assert_int_equal(hf_try_number(answer, "pid"), worker->pid);
    char host[256] = "";
    assert_int_equal(gethostname(host, sizeof host - 1), 0);
    assert_int_equal(strncmp(hf_try_text(answer, "host"), host, 8), 0);
    long long hears = hf_try_number(answer, "hears_by_ms");
    long long end = hf_try_number(answer, "lease_end_ms");
    assert_in_range(end - hears, 0, 20000);
    json_decref(answer);
    /* Twice is once, or it has ended meanwhile. */
    int code = hf_cli_fixture_run(fixture, "job cancel r1 @ --wait", NULL, NULL);
    if (code != 0 && strstr(fixture->err, "no job 'r1' in any queue") == NULL)
        fail_msg("%d: %s%s", code, fixture->out, fixture->err);
    EVENTUALLY(15000, hf_try_figure("default", "cancelled") == 1);
    hf_try_run("enqueue long @ --id r2", 0);
    EVENTUALLY(15000, hf_try_is_in("r2", "running"));
    hf_try_run("job cancel r2 @ --wait", 0);
    hf_try_has(fixture->out, "r2: runs, and was asked to end: its holder ");
    hf_try_has(fixture->out,
               " at the latest; if that is gone, it ends with its lease at ");
    hf_try_has(fixture->out, "\nr2: cancelled\n");
    assert_int_equal(hf_try_figure("default", "cancelled"), 2);
    assert_int_equal(hf_try_figure("default", "dead"), 0);
}

static void a_waiter_learns_that_its_job_was_removed(void **state)
{
    (void)state;
    static const char *const ways[] = {"job cancel w @", "job delete w @ --yes",
                                       "queue purge default @ --yes"};
    static const char *const said[] = {"holdfast: w was cancelled\n",
                                       "holdfast: w was deleted\n",
                                       "holdfast: w was deleted\n"};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        hf_proc waiting;
        hf_cli_fixture_begin(fixture, &waiting, "enqueue good @ --id w --wait", "log");
        EVENTUALLY(15000, hf_try_is_in("w", "ready"));
        hf_try_run(ways[i], 0);
        assert_true(hf_proc_wait(&waiting, 10000));
        assert_int_equal(waiting.status, 1);
        assert_string_equal(hf_cli_fixture_get(fixture, "log"), said[i]);
    }
}

static void a_job_that_redis_lost_has_an_unknown_end(void **state)
{
    hf_proc waiting;
    (void)state;
    hf_cli_fixture_begin(fixture, &waiting, "enqueue good @ --id w --in 1h --wait",
                         "log");
    EVENTUALLY(15000, hf_try_is_in("w", "delayed"));
    (void)hf_fixture_command(&fixture->redis, "FLUSHALL");
    assert_true(hf_proc_wait(&waiting, 10000));
    assert_int_equal(waiting.status, 76);
    assert_non_null(
        strstr(hf_cli_fixture_get(fixture, "log"), "nothing tells how it ended"));
}

/* ---- ids of dead jobs ---- */

static void a_dead_id_takes_no_job_without_a_word(void **state)
{
    (void)state;
    kill_off("bad", (const char *const[]){"d1", NULL});
    hf_try_run("enqueue good @ --id d1", 73);
    assert_string_equal(fixture->out, "");
    hf_try_has(fixture->err, "not accepted: d1 is dead, and has this id");
    hf_try_run("enqueue good @ --id d1 --json", 73);
    hf_try_has(fixture->out, "\"existed\":true,\"state\":\"dead\"");
    hf_cli_fixture_put(fixture, "some",
                       "{\"type\":\"good\",\"id\":\"d1\"}\n"
                       "{\"type\":\"good\",\"id\":\"new\",\"in\":\"1h\"}\n");
    hf_try_run("enqueue @ --bulk some", 73);
    hf_try_has(fixture->err, "1 jobs were not accepted");
    hf_try_run("enqueue good @ --in 1h --id d1 --replace-dead", 0);
    assert_true(hf_try_is_in("d1", "delayed"));
    assert_int_equal(hf_try_figure("default", "dead"), 0);
    hf_try_run("enqueue good @ --in 1h --id d1 --replace-dead", 0); /* it lives */
    hf_try_run("doctor @", 0);
}

/* ---- delete and retry ---- */

static void a_job_is_deleted_only_after_a_yes(void **state)
{
    (void)state;
    kill_off("bad", (const char *const[]){"d1", NULL});
    hf_try_run("enqueue good @ --id w1 --in 1h", 0);
    ask_at_terminal("job delete d1 @", "Delete job 'd1' (bad, dead) of queue 'default'?",
                    "no\n", 1);
    assert_true(hf_try_is_in("d1", "dead"));
    ask_at_terminal("job delete d1 @", "Delete job 'd1'", "y\n", 0);
    hf_try_has(terminal.text, "d1: deleted\r\n");
    json_t *answer = hf_try_object("job delete w1 @ --yes --json", 0);
    assert_string_equal(hf_try_text(answer, "outcome"), "deleted");
    json_decref(answer);
    hf_try_run("job delete d1 @ --yes", 1);
    assert_int_equal(hf_try_figure("default", "deleted"), 2);
    hf_test_audit(&fixture->redis, true);
}

static void a_running_job_is_not_deleted_and_the_way_is_told(void **state)
{
    (void)state;
    start_running("r1");
    hf_try_run("job delete r1 @ --yes", 1);
    hf_try_has(fixture->err, "r1 runs (");
    hf_try_has(fixture->err,
               "), and a running job is not removed: 'holdfast job cancel r1' "
               "ends it");
    json_t *fault = hf_try_object("job delete r1 @ --yes --json", 1);
    hf_try_has(hf_try_text(fault, "hint"), "holdfast job cancel ID");
    json_decref(fault);
    assert_true(hf_try_is_in("r1", "running"));
    assert_int_equal(hf_try_figure("default", "deleted"), 0);
    assert_string_equal(hf_fixture_command(&fixture->redis, "EXISTS hf:{default}:cancel"),
                        "0");
}

static void a_job_is_retried_whether_it_waits_or_is_dead(void **state)
{
    (void)state;
    kill_off("bad", (const char *const[]){"d1", NULL});
    hf_try_run("enqueue good @ --id w1 --in 1h", 0);
    hf_try_run("job retry d1 @", 0);
    assert_string_equal(fixture->out, "d1: due now\n");
    assert_true(hf_try_is_in("d1", "ready"));
    json_t *answer = hf_try_object("job retry w1 @ --json", 0);
    assert_string_equal(hf_try_text(answer, "outcome"), "retried");
    json_decref(answer);
    assert_true(hf_try_is_in("w1", "ready"));
    start_running("r1");
    hf_try_run("job retry r1 @", 1);
    hf_try_has(fixture->err, "r1 runs already");
}

static void an_id_that_two_queues_have_is_not_guessed(void **state)
{
    (void)state;
    static const char *const verbs[] = {"cancel", "delete --yes", "retry", "show",
                                        "show --payload"};
    char line[160];
    hf_try_run("enqueue good @ --id twin -q a --in 1h", 0);
    hf_try_run("enqueue good @ --id twin -q b --in 1h", 0);
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        snprintf(line, sizeof line, "job %s twin @", verbs[i]);
        hf_try_run(line, 64);
        hf_try_has(fixture->err,
                   "expected --queue, since there is a job 'twin' in 'a' and 'b'");
        assert_string_equal(fixture->out, "");
    }
    assert_int_equal(hf_try_figure("a", "delayed") + hf_try_figure("b", "delayed"), 2);
    hf_try_run("job delete twin @ --yes -q b", 0);
    assert_int_equal(hf_try_figure("a", "delayed"), 1);
    assert_int_equal(hf_try_figure("b", "delayed"), 0);
    hf_try_run("job cancel twin @", 0);
}

/* ---- the dead ---- */

static void dead_jobs_are_retried_by_filter_and_at_a_rate(void **state)
{
    (void)state;
    kill_off("bad", (const char *const[]){"b1", "b2", "b3", "b4", NULL});
    kill_off("worse", (const char *const[]){"w1", NULL});
    hf_try_run("dead retry @ --type worse", 0);
    assert_string_equal(fixture->out, "default: 1 job will run again\n");
    assert_true(hf_try_is_in("w1", "ready"));
    /* The worker ran them at the same time: any may have died first. */
    char first[16];
    snprintf(first, sizeof first, "%s",
             hf_fixture_command(&fixture->redis, "ZRANGE hf:{default}:dead 0 0"));
    first[strcspn(first, "\n")] = '\0';
    hf_try_run("dead retry @ --type bad --limit 1", 0);
    assert_true(hf_try_is_in(first, "ready"));
    hf_try_run("dead retry @ --since 0", 0);
    assert_string_equal(fixture->out, "default: 0 jobs will run again\n");
    json_t *answer = hf_try_object("dead retry @ --since 1h --rate 2/2s --json", 0);
    assert_int_equal(hf_try_number(answer, "retried"), 3);
    assert_true(json_is_true(json_object_get(answer, "complete")));
    json_decref(answer);
    assert_int_equal(hf_try_figure("default", "dead"), 0);
    assert_int_equal(hf_fixture_number(&fixture->redis, "ZCARD hf:{default}:schedule"),
                     5);
    /* One after the other, a second apart. */
    long long last, before;
    assert_int_equal(
        sscanf(hf_fixture_command(&fixture->redis, "ZREVRANGE hf:{default}:schedule 0 1 "
                                                   "WITHSCORES"),
               "%*s %lld %*s %lld", &last, &before),
        2);
    assert_int_equal(last - before, 1000);
    hf_try_run("dead retry @ --rate 5/s", 0);
    assert_string_equal(fixture->out, "0 jobs will run again\n");
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
    hf_try_run("dead purge @ --type bad --yes", 0);
    assert_string_equal(fixture->out, "default: 1 dead job removed\n");
    hf_try_run("dead purge @ --type none --yes", 0);
    assert_string_equal(fixture->out, "default: 0 dead jobs removed\n");
    ask_at_terminal("dead purge @", "Remove 2 of the 2", "yes\n", 0);
    json_t *answer = hf_try_object("dead purge @ --yes --json", 0);
    assert_int_equal(hf_try_number(answer, "removed"), 0);
    json_decref(answer);
    hf_test_audit(&fixture->redis, true);
}

static void one_dead_job_is_purged_by_its_id_and_never_one_that_lives(void **state)
{
    (void)state;
    kill_off("bad", (const char *const[]){"b1", "b2", NULL});
    hf_try_run("enqueue good @ --id w1 --in 1h", 0);
    hf_try_run("dead purge w1 @ --yes", 1);
    hf_try_has(fixture->err, "no dead job 'w1' in queue 'default'");
    assert_true(hf_try_is_in("w1", "delayed"));
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

static void dead_jobs_of_all_queues_are_listed_and_changed_after_a_question(void **state)
{
    (void)state;
    kill_off("bad", (const char *const[]){"b1", "b2", NULL});
    for (int i = 0; i < 2;
         i++) { /* dead of another queue, as a worker would leave them */
        hf_try_run(i == 0 ? "enqueue bad @ -q mail --id m1"
                          : "enqueue bad @ -q mail --id m2",
                   0);
        (void)hf_fixture_command(&fixture->redis, "ZREM hf:{mail}:schedule m%d", i + 1);
        (void)hf_fixture_command(&fixture->redis, "ZADD hf:{mail}:dead %d m%d", i + 1,
                                 i + 1);
    }
    hf_try_run("dead list @", 0);
    hf_try_has(fixture->out, "\nb1  default ");
    hf_try_has(fixture->out, "\nm2  mail ");
    hf_try_run("dead list @ --limit 3 --type bad --json", 0);
    hf_try_has(fixture->out, "\"id\":\"m1\",\"queue\":\"mail\"");
    hf_try_has(fixture->err, "{\"more\":true,\"after\":\"mail/dead/1/m1\"}");
    hf_try_run("dead list @ --after mail/dead/1/m1 --json", 0);
    hf_try_has(fixture->out, "{\"id\":\"m2\"");
    hf_try_run("dead retry @", 64);
    hf_try_has(fixture->err, "dead retry: expected --queue, or --yes for the queues "
                             "'default', 'mail', found neither");
    hf_try_run("dead retry m2 @", 0); /* its queue is found */
    assert_string_equal(fixture->out, "mail: 1 job will run again\n");
    ask_at_terminal("dead retry @", "Retry 3 dead jobs of 2 queues ('default', 'mail')?",
                    "n\n", 1);
    assert_int_equal(hf_try_figure("mail", "dead"), 1);
    hf_try_run("dead retry @ --yes --limit 2", 0);
    assert_string_equal(fixture->out, "default: 2 jobs will run again\n");
    hf_try_run("dead retry @ --type none", 0); /* one queue is left */
    assert_string_equal(fixture->out, "mail: 0 jobs will run again\n");
    hf_try_run("dead purge @ --yes", 0);
    assert_string_equal(fixture->out, "mail: 1 dead job removed\n");
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

/* ---- pages ---- */

static void queues_are_listed_page_by_page(void **state)
{
    (void)state;
    hf_try_run("enqueue good @ -q q1", 0);
    hf_try_run("enqueue good @ -q q2", 0);
    hf_try_run("enqueue good @ -q q3", 0);
    hf_try_run("queue list @ --limit 2 --json", 0);
    hf_try_has(fixture->out, "\"queue\":\"q1\"");
    hf_try_has(fixture->out, "\"queue\":\"q2\"");
    assert_null(strstr(fixture->out, "q3"));
    hf_try_run("queue list @ --limit 2", 0);
    hf_try_has(fixture->err,
               "2 queues are listed, there are more: go on with --after q2\n");
    hf_try_run("queue list @ --limit 2 --json", 0);
    assert_string_equal(fixture->err, "{\"more\":true,\"after\":\"q2\"}\n");
    hf_try_run("queue list @ --after q2", 0);
    assert_null(strstr(fixture->out, "q2"));
    hf_try_has(fixture->out, "q3");
}

#define TEST(name) cmocka_unit_test_setup(name, hf_try_clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_bad_input_ends_with_its_code_and_one_clear_line),
        TEST(a_user_at_a_terminal_is_told_what_is_waited_for),
        TEST(a_user_at_a_terminal_is_told_what_to_do),
        TEST(a_purge_at_a_terminal_says_what_will_go_and_takes_no_for_an_answer),
        TEST(a_purge_shows_a_bar_on_a_terminal_and_none_in_a_pipe),
        TEST(a_purge_that_is_interrupted_stops_after_its_slice_and_says_how_far_it_came),
        TEST(interrupting_the_question_does_nothing),
        TEST(a_waiting_job_is_cancelled_at_once),
        TEST(a_dead_job_is_not_cancelled_and_the_way_is_told),
        TEST(a_running_job_is_asked_to_end_and_a_waiter_is_told),
        TEST(a_waiter_learns_that_its_job_was_removed),
        TEST(a_job_that_redis_lost_has_an_unknown_end),
        TEST(a_dead_id_takes_no_job_without_a_word),
        TEST(a_job_is_deleted_only_after_a_yes),
        TEST(a_running_job_is_not_deleted_and_the_way_is_told),
        TEST(a_job_is_retried_whether_it_waits_or_is_dead),
        TEST(an_id_that_two_queues_have_is_not_guessed),
        TEST(dead_jobs_are_retried_by_filter_and_at_a_rate),
        TEST(dead_jobs_are_purged_by_filter_and_the_question_counts_them),
        TEST(one_dead_job_is_purged_by_its_id_and_never_one_that_lives),
        TEST(what_dies_while_the_question_stands_is_not_purged),
        TEST(dead_jobs_of_all_queues_are_listed_and_changed_after_a_question),
        TEST(a_filter_that_lets_nothing_pass_purges_nothing),
        TEST(queues_are_listed_page_by_page),
    };
    hf_try_up(HF_TEST_COMMAND, HANDLERS);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_try_down();
    return failures;
}
