/* The trace of a job: from `holdfast enqueue` to the program that runs it. */
#include <stdio.h>
#include <string.h>

#include "holdfast/job.h"
#include "tests/support/cli_try.h"
#include "tests/support/eventually.h"

#define TRACE(digit) "00-4bf92f3577b34da6a3ce929d0e0e473" digit "-00f067aa0ba902b7-01"
#define HANDLERS                                                                         \
    "handlers:\n"                                                                        \
    "  - {type: tell, env: all, result: stdout, keep: {done: 1h},\n"                     \
    "     exec: [sh, -c, 'printf %s \"${TRACEPARENT-none}\"']}\n"

static hf_cli_fixture *const fixture = &hf_try_fixture;

static const char *const one[] = {"TRACEPARENT=" TRACE("1"), NULL};

static void enqueue(const char *line, const char *input, const char *const *env)
{
    assert_int_equal(hf_cli_fixture_run(fixture, line, input, env), 0);
}

/* What the program of the job has seen. */
static void was_told(const char *id, const char *expected)
{
    char line[80];
    (void)snprintf(line, sizeof line, "job result %s @", id);
    EVENTUALLY(15000, hf_cli_fixture_run(fixture, line, NULL, NULL) == 0);
    assert_string_equal(fixture->out, expected);
}

static void a_program_gets_the_trace_of_its_job(void **state)
{
    (void)state;
    enqueue("enqueue tell @ --id none", NULL, NULL);
    enqueue("enqueue tell @ --id environment", NULL, one);
    enqueue("enqueue tell @ --id option --traceparent " TRACE("2"), NULL, one);
    enqueue("enqueue tell @ --id headers --headers {\"traceparent\":\"" TRACE("3") "\"}",
            NULL, one);
    enqueue("enqueue tell @ --id beside --headers {\"tenant\":\"7\"}", NULL, one);
    enqueue("enqueue @ --bulk -",
            "{\"type\":\"tell\",\"id\":\"line\"}\n"
            "{\"type\":\"tell\",\"id\":\"own\",\"headers\":{\"traceparent\":\"" TRACE(
                "4") "\"}}\n",
            one);
    hf_try_worker("worker @ -c w.yaml");
    was_told("none", "none");
    was_told("environment", TRACE("1"));
    was_told("option", TRACE("2"));
    was_told("headers", TRACE("3"));
    was_told("beside", TRACE("1"));
    was_told("line", TRACE("1"));
    was_told("own", TRACE("4"));
}

static void a_wrong_trace_is_refused_or_ignored(void **state)
{
    static const char *const wrong[] = {"TRACEPARENT=00-1-2-3", NULL};
    (void)state;
    hf_try_run("enqueue tell @ --traceparent 00-1-2-3", 64);
    hf_try_has(fixture->err, "--traceparent: expected a W3C traceparent, found "
                             "'00-1-2-3'");
    enqueue("enqueue tell @ --id ignored --in 1h", NULL, wrong);
    hf_try_run("job show ignored @", 0);
    assert_null(strstr(fixture->out, "headers"));
}

/* A trace is no reason to refuse a job. */
static void headers_without_room_stay_as_they_are(void **state)
{
    static char line[HF_HEADERS_MAX + 64];
    (void)state;
    (void)snprintf(line, sizeof line,
                   "{\"type\":\"tell\",\"id\":\"full\",\"in\":\"1h\",\"headers\":{\"a\":"
                   "\"%0*d\"}}\n",
                   HF_HEADERS_MAX - 20, 0);
    enqueue("enqueue @ --bulk -", line, one);
    hf_try_run("job show full @", 0);
    assert_null(strstr(fixture->out, "traceparent"));
}

#define TEST(name) cmocka_unit_test_setup(name, hf_try_clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_program_gets_the_trace_of_its_job),
        TEST(a_wrong_trace_is_refused_or_ignored),
        TEST(headers_without_room_stay_as_they_are),
    };
    hf_try_up(HF_TEST_COMMAND, HANDLERS);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_try_down();
    return failures;
}
