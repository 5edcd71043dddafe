/* test_cli_replicas.c - `holdfast enqueue --wait-replicas`, with a replica and without.
 */
#include <stdio.h>
#include <string.h>

#include "tests/support/cli_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/replicas.h"

static hf_cli_fixture cli;
static hf_fixture primary, replica;

static int up(void **state)
{
    (void)state;
    hf_cli_fixture_start(&cli, HF_TEST_COMMAND);
    hf_fixture_start(&primary, &(hf_fixture_options){HF_PRIMARY});
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_fixture_stop(&primary);
    hf_cli_fixture_stop(&cli);
    return 0;
}

static void run(const char *line, const char *input, int code)
{
    char env[HF_TEMPDIR_SIZE + 64];
    (void)snprintf(env, sizeof env, "REDIS_URL=%s", primary.url);
    int got = hf_cli_fixture_run(&cli, line, input, (const char *const[]){env, NULL});
    if (got != code)
        fail_msg("%s: expected %d, found %d\n%s%s", line, code, got, cli.out, cli.err);
}

static void expect(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("expected '%s', found '%s'", part, text);
}

static void what_replicas_have_is_accepted(void **state)
{
    (void)state;
    hf_replicas_start(&replica, 1, &primary);
    run("enqueue t --id a --wait-replicas 1", NULL, 0);
    assert_string_equal(cli.out, "a\n");
    assert_int_equal(hf_fixture_number(&replica, "HEXISTS hf:{default}:jobs a"), 1);
    run("enqueue --bulk - --wait-replicas 1", "{\"type\":\"t\"}\n{\"type\":\"t\"}\n", 0);
    assert_int_equal(hf_fixture_number(&replica, "ZCARD hf:{default}:schedule"), 3);
    hf_replicas_stop(&replica, 1);
}

static void too_few_replicas_have_a_code_of_their_own(void **state)
{
    char line[160];
    const char *const jobs = "{\"type\":\"t\"}\n{\"type\":\"t\"}\n";
    (void)state;
    run("enqueue t --id a --wait-replicas 1 --replicas-timeout 200ms", NULL, 74);
    assert_string_equal(cli.out, "a\n");
    expect(cli.err, "too few replicas");
    expect(cli.err, "0 of 1 replicas");
    run("enqueue t --json --wait-replicas 1 --replicas-timeout 200ms", NULL, 74);
    expect(cli.out, "\"existed\":false");
    run("enqueue --bulk - --wait-replicas 1 --replicas-timeout 200ms", jobs, 74);
    expect(cli.err, "go on with --run");
    const char *at = strstr(cli.err, "run ");
    assert_non_null(at);
    (void)snprintf(line, sizeof line, "enqueue --bulk - --wait-replicas 1 --run %.*s",
                   (int)strcspn(at + 4, "\n"), at + 4);
    hf_replicas_start(&replica, 1, &primary);
    run(line, jobs, 0);
    assert_int_equal(hf_fixture_number(&primary, "ZCARD hf:{default}:schedule"), 4);
    hf_replicas_stop(&replica, 1);
}

static void a_time_without_replicas_is_refused(void **state)
{
    (void)state;
    run("enqueue t --replicas-timeout 1s", NULL, 64);
    run("enqueue --bulk - --replicas-timeout 1s", "", 64);
    run("enqueue t --wait-replicas 101", NULL, 64);
    assert_int_equal(hf_fixture_number(&primary, "DBSIZE"), 0);
}

static void doctor_counts_them(void **state)
{
    (void)state;
    hf_cli_fixture_put(&cli, "c.yaml",
                       "redis: {wait_replicas: 1, replicas_timeout: 200ms}\n");
    run("doctor -c c.yaml", NULL, 1);
    expect(cli.out, "0 are connected, and redis.wait_replicas is 1");
    run("enqueue t -c c.yaml", NULL, 74); /* the file says so for all commands */
    run("enqueue t -c c.yaml --wait-replicas 0", NULL, 0);
    hf_replicas_start(&replica, 1, &primary);
    run("doctor -c c.yaml", NULL, 1); /* no worker serves the queue */
    assert_null(strstr(cli.out, "wait_replicas"));
    run("enqueue t -c c.yaml --replicas-timeout 30s", NULL,
        0); /* a new replica is slow */
    hf_replicas_stop(&replica, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_replicas_have_is_accepted),
        TEST(too_few_replicas_have_a_code_of_their_own),
        TEST(a_time_without_replicas_is_refused),
        TEST(doctor_counts_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
