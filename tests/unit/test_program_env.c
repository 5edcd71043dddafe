/* test_program_env.c - the environment of a program. */
#define _GNU_SOURCE /* clearenv() */
#include "worker/program/env.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static hf_program_env env;

static int set_up(void **state)
{
    (void)state;
    assert_int_equal(clearenv(), 0);
    setenv("PATH", "/bin", 1);
    setenv("TOKEN", "a=b", 1);
    setenv("OTHER", "", 1);
    setenv("HOLDFAST_TYPE", "forged", 1);
    setenv("HOLDFAST_FD", "3", 1);
    setenv("HOLDFAST_HEADERS", "{}", 1);
    setenv("TRACEPARENT", "of-the-worker", 1);
    setenv("HOLDFAST_LOCK_FENCE", "9", 1);
    setenv("HOLDFAST_BIN", "/opt/holdfast", 1);
    setenv("NOTIFY_SOCKET", "/run/x", 1);
    setenv("WATCHDOG_USEC", "1", 1);
    setenv("LISTEN_FDS", "1", 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    hf_program_env_done(&env);
    return 0;
}

/* How many variables of this name there are. */
static size_t number_of(const char *name)
{
    size_t n = 0, len = strlen(name);
    for (size_t i = 0; env.vars[i] != NULL; i++)
        n += strncmp(env.vars[i], name, len) == 0 && env.vars[i][len] == '=' ? 1 : 0;
    return n;
}

static bool has(const char *var)
{
    for (size_t i = 0; env.vars[i] != NULL; i++)
        if (strcmp(env.vars[i], var) == 0)
            return true;
    return false;
}

static void make(const char *const *names, bool all)
{
    const hf_program program = {HF_PROGRAM_INIT, .env = names, .env_all = all};
    const hf_program_job job = {.id = "1",
                                .type = "t",
                                .queue = "q",
                                .fence = "7",
                                .attempt = 2,
                                .scheduled_unix_ms = 5};
    assert_int_equal(hf_program_env_init(&env, &program, &job), HF_OK);
    assert_true(has("HOLDFAST_TYPE=t"));
    assert_true(has("HOLDFAST_ATTEMPT=2"));
    assert_true(has("HOLDFAST_SCHEDULED_UNIX_MS=5"));
    assert_int_equal(number_of("HOLDFAST_TYPE"), 1);
    assert_int_equal(number_of("HOLDFAST_FD"), 0);
    assert_int_equal(number_of("PATH"), 1);
}

static void names_are_passed_on_once(void **state)
{
    static const char *const names[] = {
        "TOKEN", "TOKEN", "PATH", "HOLDFAST_TYPE", "HOLDFAST_FD", "NOT_THERE", NULL};
    (void)state;
    make(names, false);
    assert_true(has("TOKEN=a=b"));
    assert_int_equal(number_of("TOKEN"), 1);
    assert_int_equal(number_of("OTHER"), 0);
    assert_int_equal(number_of("NOT_THERE"), 0);
}

static void without_names_little_is_passed_on(void **state)
{
    (void)state;
    make(NULL, false);
    assert_int_equal(number_of("TOKEN"), 0);
}

/* Not what the worker sets, and not what systemd says to the worker alone. */
static void all_of_it_is_passed_on(void **state)
{
    (void)state;
    make(NULL, true);
    assert_true(has("TOKEN=a=b"));
    assert_true(has("OTHER="));
    assert_true(has("HOLDFAST_BIN=/opt/holdfast"));
    assert_int_equal(number_of("HOLDFAST_HEADERS"), 0);
    assert_int_equal(number_of("TRACEPARENT"), 0);
    assert_int_equal(number_of("HOLDFAST_LOCK_FENCE"), 0);
    assert_int_equal(number_of("NOTIFY_SOCKET"), 0);
    assert_int_equal(number_of("WATCHDOG_USEC"), 0);
    assert_int_equal(number_of("LISTEN_FDS"), 0);
}

static void the_trace_of_the_job_is_told(void **state)
{
    static const char *const names[] = {"TRACEPARENT", NULL};
    const hf_program program = {HF_PROGRAM_INIT, .env = names};
    const hf_program_job job = {
        .id = "1", .type = "t", .queue = "q", .fence = "7", .traceparent = "of-the-job"};
    (void)state;
    assert_int_equal(hf_program_env_init(&env, &program, &job), HF_OK);
    assert_true(has("TRACEPARENT=of-the-job"));
    assert_int_equal(number_of("TRACEPARENT"), 1);
}

/* An orchestrator may set hundreds. */
static void a_large_environment_is_passed_on(void **state)
{
    char name[32];
    (void)state;
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "SERVICE_%d", i);
        setenv(name, "10.0.0.1", 1);
    }
    make(NULL, true);
    assert_true(has("SERVICE_999=10.0.0.1"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(names_are_passed_on_once),         TEST(without_names_little_is_passed_on),
        TEST(all_of_it_is_passed_on),           TEST(the_trace_of_the_job_is_told),
        TEST(a_large_environment_is_passed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
