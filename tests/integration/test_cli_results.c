/* `holdfast job result`, and kept jobs in the other commands about jobs. */
#include <stdio.h>
#include <string.h>

#include "tests/support/cli_try.h"
#include "tests/support/eventually.h"

#define HANDLERS                                                                         \
    "worker: {concurrency: 2, lease: 20s, shutdown_timeout: 1s}\n"                       \
    "queues:\n"                                                                          \
    "  - {name: default, keep: {done: 1h}}\n"                                            \
    "  - {name: other}\n"                                                                \
    "handlers:\n"                                                                        \
    "  - {type: good, exec: ['true']}\n"                                                 \
    "  - {type: short, exec: ['true'], keep: {done: 0s}}\n"                              \
    "  - {type: says, exec: [sh, -c, 'cat >&$HOLDFAST_VERDICT_FD']}\n"                   \
    "  - {type: bad, exec: [sh, -c, 'echo boom >&2; exit 65']}\n"

static hf_cli_fixture *const fixture = &hf_try_fixture;

/* As if a handler had given it. */
static void give_result(const char *id, const char *kind, const char *bytes)
{
    char words[160];
    (void)snprintf(words, sizeof words, "{\"type\":\"good\",\"result\":\"%s\"}\n%s", kind,
                   bytes);
    const char *set =
        hf_fixture_command(&fixture->redis, "HSET hf:{default}:results %s %s", id, words);
    assert_string_equal(set, "0");
}

static void run_job(const char *type, const char *id)
{
    char line[160];
    (void)snprintf(line, sizeof line, "enqueue %s @ --id %s --wait", type, id);
    hf_try_run(line, strcmp(type, "bad") == 0 ? 1 : 0);
}

static void a_result_is_printed_and_nothing_else(void **state)
{
    (void)state;
    hf_try_worker("worker @ -c w.yaml");
    run_job("good", "one");
    hf_try_run("job result one @", 0);
    assert_string_equal(fixture->out, "");
    give_result("one", "json", "{\"a\":[1,2]}");
    hf_try_run("job result one @", 0);
    assert_string_equal(fixture->out, "{\"a\":[1,2]}\n");
    give_result("one", "bytes", "a\tb");
    hf_try_run("job result one @ -q default", 0);
    assert_string_equal(fixture->out, "a\tb");
    assert_string_equal(fixture->err, "");
}

static void a_result_is_an_object_for_programs(void **state)
{
    (void)state;
    hf_try_worker("worker @ -c w.yaml");
    run_job("good", "one");
    hf_try_run("job result one @ --json", 0);
    assert_string_equal(fixture->out, "{\"id\":\"one\",\"queue\":\"default\"}\n");
    give_result("one", "json", "{\"a\":[1,2]}");
    hf_try_run("job result one @ --json", 0);
    hf_try_has(fixture->out, "\"result\":{\"a\":[1,2]}");
    give_result("one", "bytes", "ab");
    hf_try_run("job result one @ --json", 0);
    hf_try_has(fixture->out, "\"result_base64\":\"YWI=\"");
}

static void a_json_result_is_what_the_handler_wrote(void **state)
{
    static const char line[] =
        "{\"verdict\":\"done\",\"result\": { \"z\" : 0.1, \"a\" : "
        "[1e3 , 123456789012345678901234567890, \"\x7F\"],\"a\":-0}}\n";
    (void)state;
    hf_try_worker("worker @ -c w.yaml");
    assert_int_equal(hf_cli_fixture_run(fixture,
                                        "enqueue says - @ --id one --wait --result", line,
                                        NULL),
                     0);
    assert_string_equal(
        fixture->out,
        "{\"z\":0.1,\"a\":[1e3,123456789012345678901234567890,\"\x7F\"],\"a\":-0}\n");
    hf_try_run("job result one @ --json", 0);
    assert_string_equal(
        fixture->out, "{\"id\":\"one\",\"queue\":\"default\",\"result\":{\"z\":0.1,\"a\":"
                      "[1e3,123456789012345678901234567890,\"\\u007f\"],\"a\":-0}}\n");
    give_result("one", "json", "{no JSON");
    hf_try_run("job result one @ --json", 0);
    hf_try_has(fixture->out, "\"result_base64\":\"e25vIEpTT04=\"");
}

static void a_job_can_say_that_it_is_kept(void **state)
{
    (void)state;
    hf_try_worker("worker @ -c w.yaml");
    hf_try_run("enqueue good @ -q other --id one --keep 1h --wait", 0);
    hf_try_run("job result one @", 0);
    hf_try_run("enqueue short @ --id two --wait --result", 0);
    assert_string_equal(fixture->out, "");
    hf_try_run("enqueue short @ --id three --wait --result --json", 0);
    assert_string_equal(fixture->out, "{\"id\":\"three\",\"queue\":\"default\"}\n");
    hf_try_run("job show three @ --json", 0);
    hf_try_has(fixture->out, "\"kept_until_ms\":");
    hf_try_run("enqueue good @ --result", 64);
    hf_try_has(fixture->err, "--result needs --wait");
    hf_try_run("enqueue @ --bulk x --keep 1h", 64);
}

static void what_is_not_there_ends_with_1(void **state)
{
    (void)state;
    hf_try_worker("worker @ -c w.yaml");
    hf_try_run("job result nobody @", 1);
    hf_try_has(fixture->err, "no job 'nobody' in any queue");
    run_job("short", "short");
    hf_try_run("job result short @", 1);
    hf_try_run("enqueue good @ --id waits --in 1h", 0);
    hf_try_run("job result waits @", 1);
    hf_try_has(fixture->err, "waits is not done: it waits");
    run_job("bad", "dies");
    hf_try_run("job result dies @", 1);
    hf_try_has(fixture->err, "dies is not done: it is dead");
    assert_string_equal(fixture->out, "");
}

static void kept_jobs_are_listed_shown_explained_and_deleted(void **state)
{
    (void)state;
    hf_try_worker("worker @ -c w.yaml");
    run_job("good", "one");
    hf_try_run("enqueue good @ --id two -q other --wait", 0);
    assert_true(hf_try_is_in("one", "done"));
    hf_try_run("job list @ --state done", 0);
    hf_try_has(fixture->out, "DONE");
    hf_try_has(fixture->out, "one");
    hf_try_run("job list @", 0);
    hf_try_has(fixture->out, "done ");
    hf_try_run("job show one @", 0);
    hf_try_has(fixture->out, "state     done\n");
    hf_try_has(fixture->out, "kept      until ");
    hf_try_has(fixture->out, "result    none\n");
    hf_try_run("job show one @ --payload", 1);
    hf_try_has(fixture->err, "its payload is not kept");
    hf_try_run("job why one @", 0);
    hf_try_has(fixture->out, "it is done, and kept until ");
    assert_int_equal(hf_try_figure("default", "kept"), 1);
    assert_int_equal(hf_try_figure("other", "kept"), 0);
    hf_try_run("queue show default @", 0);
    hf_try_has(fixture->out, "  kept      1 done job");
    hf_try_run("job cancel one @", 1);
    assert_string_equal(fixture->err, "holdfast: one is done: only 'holdfast job delete "
                                      "one' changes it\n");
    hf_try_run("job retry one @ -q default", 1);
    hf_try_has(fixture->err, "one is done: only 'holdfast job delete one -q default' ");
    hf_try_run("job edit one x @", 1);
    hf_try_has(fixture->err, "one is done: ");
    hf_try_run("job show two @", 1);
    hf_try_run("doctor @", 0);
    hf_try_run("job delete one @ --yes", 0);
    hf_try_run("job result one @", 1);
    assert_int_equal(hf_try_figure("default", "kept"), 0);
}

/* Also of a job that is not kept: what it tried. */
static void the_attempts_of_a_job_are_shown(void **state)
{
    (void)state;
    hf_try_worker("worker @ -c w.yaml");
    run_job("bad", "dies");
    hf_try_run("job show dies @", 0);
    hf_try_has(fixture->out, "\nattempt   20");
    hf_try_has(fixture->out, ": boom\n");
    hf_try_run("job show dies @ --json", 0);
    hf_try_has(fixture->out, "\"history\":[{\"ended_ms\":");
    hf_try_run("enqueue good @ --id fresh --in 1h", 0);
    hf_try_run("job show fresh @ --json", 0);
    assert_null(strstr(fixture->out, "history"));
}

/* The record alone has them. */
static void the_options_of_a_job_are_shown(void **state)
{
    (void)state;
    hf_try_run("enqueue good @ --id all --in 1h --keep 90s --on-dead bad --unique k "
               "--unique-until done --headers {\"tenant\":\"7\"}",
               0);
    hf_try_run("job show all @", 0);
    hf_try_has(fixture->out, "\nheaders   {\"tenant\":\"7\"}\n");
    hf_try_has(fixture->out, "\nkeep      90s once it is done\n");
    hf_try_has(fixture->out, "\non dead   bad\n");
    hf_try_has(fixture->out, "\nunique    k, until it is done\n");
    hf_try_run("job show all @ --json", 0);
    hf_try_has(fixture->out, "\"keep_ms\":90000,\"on_dead\":\"bad\"");
    hf_try_has(fixture->out, "\"unique\":\"k\",\"unique_until\":\"done\"");
    hf_try_has(fixture->out, "\"headers\":{\"tenant\":\"7\"}");
    hf_try_run("enqueue good @ --headers {\"tenant\":7}", 64);
    hf_try_has(fixture->err,
               "expected as its headers one JSON object whose values are texts");
    hf_try_run("enqueue good @ --id soon --unique other --debounce 1m --max-wait 1h", 0);
    hf_try_run("job show soon @", 0);
    hf_try_has(fixture->out, "\nunique    other, until it starts\n");
    assert_null(strstr(fixture->out, "on dead"));
    hf_try_run("job show soon @ --json", 0);
    hf_try_has(fixture->out, "\"keep_ms\":0,\"on_dead\":null");
}

#define TEST(name) cmocka_unit_test_setup(name, hf_try_clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_result_is_printed_and_nothing_else),
        TEST(a_result_is_an_object_for_programs),
        TEST(a_json_result_is_what_the_handler_wrote),
        TEST(a_job_can_say_that_it_is_kept),
        TEST(what_is_not_there_ends_with_1),
        TEST(kept_jobs_are_listed_shown_explained_and_deleted),
        TEST(the_attempts_of_a_job_are_shown),
        TEST(the_options_of_a_job_are_shown),
    };
    hf_try_up(HF_TEST_COMMAND, HANDLERS);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_try_down();
    return failures;
}
