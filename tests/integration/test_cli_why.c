/* `holdfast job why` and `holdfast worker list`: the reasons why a job does not run, and
 * the workers that could run it. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cli_try.h"
#include "tests/support/eventually.h"

#define HANDLERS                                                                         \
    "worker: {concurrency: 2, lease: 1s, shutdown_timeout: 1s}\n"                        \
    "handlers:\n"                                                                        \
    "  - {type: good, exec: ['true']}\n"                                                 \
    "  - {type: bad, exec: [sh, -c, 'echo boom >&2; exit 65']}\n"                        \
    "  - {type: later, exec: [sh, -c, 'echo no >&2; exit 1']}\n"                         \
    "  - {type: long, exec: [sleep, '60']}\n"

static hf_cli_fixture *const fixture = &hf_try_fixture;
static hf_proc *const worker = &hf_try_proc;
static hf_terminal terminal;

/* How many live workers there are. */
static unsigned count_workers(void)
{
    unsigned n = 0;
    hf_try_run("workers @ --json", 0);
    for (const char *at = fixture->out; (at = strchr(at, '\n')) != NULL; at++)
        n++;
    return n;
}

static void start_worker(void)
{
    hf_try_worker("worker @ -c w.yaml");
    EVENTUALLY(15000, count_workers() == 1); /* its first heartbeat */
}

/* A job that runs in `worker`. */
static void start_running(const char *id)
{
    char line[160];
    start_worker();
    snprintf(line, sizeof line, "enqueue long @ --id %s", id);
    hf_try_run(line, 0);
    EVENTUALLY(15000, hf_try_is_in(id, "running"));
}

static void bad_input_ends_with_its_code_and_one_clear_line(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int code;
        const char *said;
    } bad[] = {
        {"job why x @ -q q", 1, "no job 'x' in queue 'q'"},
        {"workers @ --limit 0", 64, "--limit: expected an integer from 1 to 1000"},
        {"workers q @", 64, "expected nothing more after 'worker list', found 'q'"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        hf_try_run(bad[i].line, bad[i].code);
        hf_try_has(fixture->err, bad[i].said);
        assert_string_equal(fixture->out, "");
    }
}

/* ---- heartbeats by hand ---- */

/* One that holds for so long from now; ended long ago: the worker has gone silent. */
static void forge(const char *id, long long holds_ms, const char *rest)
{
    hf_fixture_command(&fixture->redis, "SADD hf:{/}:queues default");
    long long now = hf_try_figure("default", "now_ms");
    hf_fixture_command(&fixture->redis, "ZADD hf:{/}:workers %lld %s", now + holds_ms,
                       id);
    if (holds_ms > 0)
        hf_fixture_command(&fixture->redis,
                           "SET hf:{/}:worker:%s {\"v\":1,\"now_ms\":%lld,%s} PX %lld",
                           id, now, rest, holds_ms);
}

#define WEB1 "web1-11-00000000000000aa"
#define WEB2 "web-2-12-00000000000000bb"
#define WEB3 "web3-13-00000000000000cc"

static void forge_three(void)
{
    forge(WEB1, 30000,
          "\"state\":\"serving\",\"concurrency\":16,\"running\":3,\"started_ms\":"
          "1700000000000,"
          "\"version\":\"0.1.0\",\"queues\":[\"default\",\"mail\"],\"types\":[\"a\","
          "\"b\"]");
    forge(WEB2, -600000, "");
    forge(WEB3, -7200000, "");
}

/* ---- why ---- */

/* The reasons that it gives, with a space between them. */
static void ask_why(const char *id, char got[256])
{
    char line[160];
    *got = '\0';
    snprintf(line, sizeof line, "job why %s @ --json", id);
    json_t *why = hf_try_object(line, 0);
    const json_t *reasons = json_object_get(why, "reasons");
    for (size_t i = 0; i < json_array_size(reasons); i++) {
        size_t len = strlen(got);
        snprintf(got + len, 256 - len, "%s%s", i == 0 ? "" : " ",
                 json_string_value(json_array_get(reasons, i)));
    }
    json_decref(why);
}

static bool why_is(const char *id, const char *words)
{
    char got[256];
    ask_why(id, got);
    return strcmp(got, words) == 0;
}

static void assert_why(const char *id, const char *words)
{
    char line[160], got[256];
    ask_why(id, got);
    assert_string_equal(got, words);
    snprintf(line, sizeof line, "job why %s @", id);
    hf_try_run(line, 0);
}

static void why_says_what_keeps_a_job_that_waits(void **state)
{
    (void)state;
    hf_try_run("enqueue good @ --id a", 0);
    hf_try_run("enqueue good @ --id b", 0);
    hf_try_run("enqueue good @ --id c --in 1h", 0);
    assert_why("a", "no_worker");
    hf_try_has(fixture->out,
               "no_worker           no live worker takes jobs of queue 'default'");
    assert_why("b", "no_worker behind");
    hf_try_has(fixture->out, "behind              1 job is due and comes first\n");
    hf_try_run("queue pause default @", 0);
    assert_why("c", "delayed paused no_worker");
    hf_try_has(fixture->out, "delayed             it is due at 20");
    hf_try_has(fixture->out, "'holdfast job retry c' runs it now\n");
    hf_try_has(fixture->out, "'holdfast queue resume default' starts its jobs again\n");
    start_worker();
    assert_why("a", "paused");
}

/* It is due for long, and who should take it is only a heartbeat. */
static bool tells_of_workers_that_may_be_gone(const char *id)
{
    char line[64];
    snprintf(line, sizeof line, "job why %s @", id);
    hf_try_run(line, 0);
    return strstr(fixture->out, "nothing holds it up, but it was due ") != NULL &&
           strstr(fixture->out, " ago: the worker that takes it may be dead; ") != NULL;
}

static void why_names_the_types_that_are_taken_and_slots_in_use(void **state)
{
    (void)state;
    forge_three();
    hf_try_run("enqueue strange @ --id s", 0);
    assert_why("s", "no_worker_for_type");
    hf_try_has(fixture->out,
               "no handler for type 'strange' in the 1 live worker of queue "
               "'default', which takes a, b: deploy a worker that has one; if the type "
               "is mistyped, 'holdfast job delete s' and enqueue the job again\n");
    hf_try_run("enqueue a @ --id a -q mail", 0);
    assert_why("a", "none");
    hf_try_has(fixture->out, "none                nothing holds it up");
    EVENTUALLY(15000, tells_of_workers_that_may_be_gone("a"));
    forge(WEB1, 30000,
          "\"state\":\"serving\",\"concurrency\":4,\"running\":4,\"queues\":[\"mail\"],"
          "\"types\":[\"*\"]");
    assert_why("a", "busy");
    hf_try_has(fixture->out, "all 4 slots of the workers that take it (1) are in use");
}

static void why_names_the_holder_and_the_users_of_the_limit(void **state)
{
    (void)state;
    char who[128];
    hf_try_run("queue limit default @ --max-running 1", 0);
    start_running("r1");
    hf_try_run("enqueue good @ --id w1", 0);
    assert_why("r1", "running");
    snprintf(who, sizeof who, " pid %d runs it since 20", (int)worker->pid);
    hf_try_has(fixture->out, who);
    hf_try_has(fixture->out, "'holdfast job cancel r1' ends it\n");
    assert_why("w1", "max_running");
    snprintf(who, sizeof who, " pid %d: 1): ", (int)worker->pid);
    hf_try_has(fixture->out, "1 job of queue 'default' runs, of at most 1 (");
    hf_try_has(fixture->out, who);
    hf_try_run("queue limit default @ --max-running 0", 0);
    hf_try_run("enqueue long @ --id r2", 0);
    hf_try_run("enqueue long @ --id r3", 0);
    EVENTUALLY(15000, hf_try_is_in("r2", "running"));
    EVENTUALLY(15000, hf_try_figure("default", "ready") == 1); /* w1 has been done */
    EVENTUALLY(15000, why_is("r3", "busy")); /* after it was claimed ahead, and given
                                                back */
    assert_why("r3", "busy"); /* though the last heartbeat knew of none that ran */
    hf_try_has(fixture->out, "all 2 slots of the workers that take it (1) are in use");
    hf_try_has(fixture->out, "; job r1 of its queue runs longest, since 20");
    hf_try_has(fixture->out, ": 'holdfast job cancel r1' ends it if it hangs\n");
}

/* The fence is the time of the claim, unless the clock went back before it. */
static void why_does_not_tell_since_when_where_that_is_unknown(void **state)
{
    (void)state;
    char who[128];
    hf_fixture_command(&fixture->redis, "HSET hf:{default}:meta fence 4000000000000000");
    start_running("r1");
    assert_why("r1", "running");
    snprintf(who, sizeof who, " pid %d runs it, with a lease until 20", (int)worker->pid);
    hf_try_has(fixture->out, who);
}

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

static void why_says_that_a_holder_is_gone(void **state)
{
    (void)state;
    start_running("r1");
    hf_proc_kill(worker);
    EVENTUALLY(15000,
               hf_fixture_number(&fixture->redis, "EXISTS hf:{default}:lock:r1") == 0);
    assert_why("r1", "running");
    hf_try_has(fixture->out, "has not renewed its lease: a worker that serves the queue");
    (void)hf_fixture_command(&fixture->redis, "ZADD hf:{default}:running 0 r1");
    assert_why("r1", "running");
    hf_try_has(fixture->out,
               "its lease is over, and the next claim takes the job over\n");
    (void)hf_fixture_command(&fixture->redis, "DEL hf:{/}:workers");
    assert_why("r1", "running no_worker");
    hf_try_has(fixture->out, "its holder is gone, and no live worker serves queue "
                             "'default': the job waits until one starts, which takes it "
                             "over\n");
}

static void why_has_every_figure_in_its_object(void **state)
{
    (void)state;
    static const char *const keys[] = {"id",
                                       "queue",
                                       "type",
                                       "state",
                                       "attempts",
                                       "crashes",
                                       "due_ms",
                                       "holder",
                                       "error",
                                       "reasons",
                                       "paused",
                                       "before",
                                       "max_running",
                                       "running",
                                       "rate_limit",
                                       "rate_per_ms",
                                       "next_token_ms",
                                       "locked_until_ms",
                                       "cancelling",
                                       "workers",
                                       "workers_for_type",
                                       "slots",
                                       "busy",
                                       "holders",
                                       "held_since_ms",
                                       "now_ms"};
    hf_try_run("enqueue good @ --id a", 0);
    json_t *why = hf_try_object("job why a @ --json", 0);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (json_object_get(why, keys[i]) == NULL)
            fail_msg("there is no '%s'", keys[i]);
    json_decref(why);
}

static void why_tells_a_failed_attempt_a_rate_and_a_death(void **state)
{
    (void)state;
    start_worker();
    hf_try_run("enqueue bad @ --id d1 --wait", 1);
    assert_why("d1", "dead");
    hf_try_has(fixture->out, ": boom; 'holdfast job retry d1' runs it again\n");
    hf_try_run("queue limit default @ --rate 1/h", 0);
    hf_try_run("enqueue good @ --id g1 --wait", 0);
    hf_try_run("enqueue good @ --id g2", 0);
    assert_why("g2", "rate");
    hf_try_has(fixture->out,
               "queue 'default' may start 1 job in 1h, and the next one at 20");
    hf_try_run("queue limit default @ --rate 0", 0);
    hf_try_run("enqueue later @ --id f1", 0);
    EVENTUALLY(15000, hf_try_is_in("f1", "retry"));
    assert_why("f1", "retry");
    hf_try_has(fixture->out,
               "retry               attempt 1 failed (no); the next is due at 20");
}

static void why_says_how_a_dead_holder_frees_its_key(void **state)
{
    (void)state;
    start_worker();
    hf_try_run("enqueue bad @ --id d1 --unique k --unique-until done --wait", 1);
    hf_try_run("enqueue good @ --id next --unique k --on-conflict next", 0);
    assert_why("next", "parked");
    hf_try_has(fixture->out,
               "it follows d1, which is dead and holds its unique key until "
               "it is done or removed: 'holdfast job retry d1' or "
               "'holdfast job delete d1'\n");
    hf_try_run("job delete d1 @ --yes", 0);
    EVENTUALLY(15000, hf_try_figure("default", "done") == 1);
}

/* Both ids belong to one shard. */
static void why_tells_the_limit_of_a_shard(void **state)
{
    (void)state;
    hf_try_run("queue shards default 2 @", 0);
    start_worker();
    hf_try_run("queue limit default @ --rate 1/h", 0);
    hf_try_run("enqueue good @ --id g1 --wait", 0);
    hf_try_run("enqueue good @ --id g3", 0);
    assert_why("g3", "rate");
    hf_try_has(
        fixture->out,
        "its shard of queue 'default' may start 1 job in 2h, and the next one at 20");
    hf_try_has(fixture->out, " sets another rate for all 2 shards together\n");
}

/* ---- workers ---- */

static void workers_are_shown_while_they_live(void **state)
{
    (void)state;
    hf_try_run("workers @", 0);
    assert_string_equal(fixture->out, "no workers\n");
    start_worker();
    json_t *w = hf_try_object("workers @ --json", 0);
    assert_int_equal(hf_try_number(w, "pid"), worker->pid);
    assert_int_equal(hf_try_number(w, "concurrency"), 2);
    assert_int_equal(hf_try_number(w, "running"), 0);
    assert_string_equal(hf_try_text(w, "state"), "serving");
    assert_true(hf_try_number(w, "heard_ms") > 1700000000000);
    json_decref(w);
    hf_proc_signal(worker, SIGTERM);
    assert_true(hf_proc_wait(worker, 15000));
    hf_try_run("workers @ --all", 0); /* it said that it ends */
    assert_string_equal(fixture->out, "no workers\n");
}

static void workers_that_fell_silent_are_shown_too_the_old_ones_on_demand(void **state)
{
    (void)state;
    forge_three();
    hf_try_run("workers @", 0);
    hf_try_has(fixture->out, "HOST   PID  STATE    RUNNING  QUEUES        HEARD");
    hf_try_has(fixture->out, "\nweb1    11  serving     3/16  default,mail  ");
    hf_try_has(fixture->out, "\nweb-2   12  silent         -  -             10m ago ");
    hf_try_has(fixture->out,
               "\n1 went silent more than an hour ago: holdfast worker list --all\n");
    assert_null(strstr(fixture->out, "web3"));
    hf_try_run("workers @ --all", 0);
    hf_try_has(fixture->out, "\nweb3    13  silent         -  -             2h ago");
    assert_null(strstr(fixture->out, "more than an hour"));
}

static void a_redis_that_refuses_writes_is_told(void **state)
{
    (void)state;
    hf_try_run("enqueue t @ --id j", 0);
    (void)hf_fixture_command(&fixture->redis, "CONFIG SET min-replicas-to-write 1");
    hf_try_run("job why j @", 0);
    hf_try_has(fixture->out, "refused             Redis refuses every write");
    hf_try_has(fixture->out, "NOREPLICAS");
    hf_try_run("doctor @ --json", 1);
    hf_try_has(fixture->out, "\"writes\"");
    hf_try_has(fixture->out, "every write is refused, so no job is accepted");
    (void)hf_fixture_command(&fixture->redis, "CONFIG SET min-replicas-to-write 0");
    hf_try_run("job why j @", 0);
    assert_null(strstr(fixture->out, "refused"));
}

/* The job starts and ends there: memory is no reason for it to wait. */
static void a_full_redis_keeps_no_job(void **state)
{
    (void)state;
    hf_try_run("enqueue good @ --id j", 0);
    (void)hf_fixture_command(&fixture->redis, "CONFIG SET maxmemory 1");
    assert_why("j", "no_worker");
    hf_try_run("doctor @ --json", 1);
    hf_try_has(fixture->out, "\"memory\"");
    hf_try_has(fixture->out, "is reached, so new jobs are refused, and all else goes on");
    assert_null(strstr(fixture->out, "\"writes\""));
    hf_try_run("enqueue good @", 75);
    start_worker();
    EVENTUALLY(15000, hf_try_figure("default", "done") == 1);
    (void)hf_fixture_command(&fixture->redis, "CONFIG SET maxmemory 0");
}

static void workers_are_listed_page_by_page_with_all_their_fields(void **state)
{
    (void)state;
    static const char *const keys[] = {
        "id",     "host",  "pid",     "state",     "running",  "concurrency",
        "queues", "types", "version", "all_types", "heard_ms", "started_ms"};
    forge_three();
    hf_try_run("workers @ --limit 1", 0);
    hf_try_has(fixture->err,
               "1 worker is listed, there are more: go on with --after live/" WEB1 "\n");
    json_t *w = hf_try_object("workers @ --limit 1 --json", 0);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (json_object_get(w, keys[i]) == NULL)
            fail_msg("there is no '%s'", keys[i]);
    assert_string_equal(hf_try_text(w, "version"), "0.1.0");
    assert_int_equal(json_array_size(json_object_get(w, "types")), 2);
    assert_true(json_is_true(json_object_get(w, "all_types")));
    json_decref(w);
    w = hf_try_object("workers @ --after " WEB1 " --json", 0);
    assert_string_equal(hf_try_text(w, "id"), WEB2);
    assert_string_equal(hf_try_text(w, "host"), "web-2");
    assert_string_equal(hf_try_text(w, "state"), "silent");
    assert_true(json_is_null(json_object_get(w, "started_ms")));
    json_decref(w);
    w = hf_try_object("workers @ --after live/" WEB1 " --json", 0);
    assert_string_equal(hf_try_text(w, "id"), WEB2);
    json_decref(w);
    hf_try_run("workers @ --after web0-gone --json", 0); /* none is left out */
    hf_try_has(fixture->out, WEB1);
    hf_try_has(fixture->out, WEB2);
    hf_try_run("workers @ --all --after " WEB3, 0);
    assert_string_equal(fixture->out, "no more workers\n");
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

#define TEST(name) cmocka_unit_test_setup(name, hf_try_clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(bad_input_ends_with_its_code_and_one_clear_line),
        TEST(why_says_what_keeps_a_job_that_waits),
        TEST(why_names_the_types_that_are_taken_and_slots_in_use),
        TEST(why_names_the_holder_and_the_users_of_the_limit),
        TEST(why_does_not_tell_since_when_where_that_is_unknown),
        TEST(a_job_is_shown_by_the_time_of_redis),
        TEST(why_says_that_a_holder_is_gone),
        TEST(why_has_every_figure_in_its_object),
        TEST(why_tells_a_failed_attempt_a_rate_and_a_death),
        TEST(why_says_how_a_dead_holder_frees_its_key),
        TEST(why_tells_the_limit_of_a_shard),
        TEST(workers_are_shown_while_they_live),
        TEST(workers_that_fell_silent_are_shown_too_the_old_ones_on_demand),
        TEST(a_redis_that_refuses_writes_is_told),
        TEST(a_full_redis_keeps_no_job),
        TEST(workers_are_listed_page_by_page_with_all_their_fields),
        TEST(words_are_bright_on_a_terminal_unless_that_is_not_wanted),
        TEST(a_table_is_as_wide_as_its_terminal),
    };
    hf_try_up(HF_TEST_COMMAND, HANDLERS);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_try_down();
    return failures;
}
