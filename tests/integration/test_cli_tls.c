/* test_cli_tls.c - the command by TLS: every kind of work, and one clear line with the
 * documented exit code for everything that can be wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "tests/support/cli_fixture.h"
#include "tests/support/eventually.h"

enum { TEXT_SIZE = 1024, REFUSED_MS = 20000 };

static hf_cli_fixture fixture;
static hf_fixture strict; /* wants a certificate of each client */

/* A refusal ends a command long before. Silence ends with this time, and then the command
 * by that of a request, which is longer. */
static const char *patience(const char *name)
{
    return strcmp(name, "plain-server") == 0 ? "1s" : "30s";
}

/* A file "NAME.yaml" with a URL and lines below `tls`. */
static void put_config(const char *name, const char *url, const char *tls)
{
    char file[64], text[2 * TEXT_SIZE];
    (void)snprintf(file, sizeof file, "%s.yaml", name);
    (void)snprintf(text, sizeof text,
                   "redis:\n  url: %s\n  connect_timeout: %s\n  request_timeout: 5s\n"
                   "  tls:\n%s"
                   "handlers:\n  - {type: hello, exec: [\"true\"]}\n",
                   url, patience(name), tls);
    hf_cli_fixture_put(&fixture, file, text);
}

static void put_configs(void)
{
    const hf_fixture *redis = &fixture.redis;
    char tls[TEXT_SIZE], url[64];
    (void)snprintf(tls, sizeof tls, "    ca: %s\n", redis->ca);
    put_config("good", redis->tls_url, tls);
    put_config("unix", redis->url, tls);
    put_config("login", "rediss://me@localhost\n  password_file: /nowhere/secret", tls);
    (void)snprintf(url, sizeof url, "rediss://127.0.0.1:%u", (unsigned)redis->port);
    put_config("plain-server", url, tls);
    (void)snprintf(tls, sizeof tls, "    ca: %s/stranger-ca.pem\n", redis->dir);
    put_config("stranger", redis->tls_url, tls);
    (void)snprintf(tls, sizeof tls, "    ca: %s\n    server_name: other.example\n",
                   redis->ca);
    put_config("other-name", redis->tls_url, tls);
    put_config("gone", redis->tls_url, "    ca: /nowhere/ca.pem\n");
    put_config("half", redis->tls_url, "    cert: /nowhere/client.pem\n");
    (void)snprintf(tls, sizeof tls, "    cert: %s/client.pem\n    key: %s/server.key\n",
                   redis->dir, redis->dir);
    put_config("mixed", redis->tls_url, tls);
    put_config("unverified", redis->tls_url, "    verify: false\n");
    (void)snprintf(tls, sizeof tls, "    ca: %s\n", strict.ca);
    put_config("no-client", strict.tls_url, tls);
    (void)snprintf(tls, sizeof tls,
                   "    ca: %s\n    cert: %s/client.pem\n    key: %s/client.key\n",
                   strict.ca, strict.dir, strict.dir);
    put_config("client", strict.tls_url, tls);
}

static int up(void **state)
{
    (void)state;
    hf_cli_fixture_start(&fixture, HF_TEST_COMMAND);
    hf_fixture_stop(&fixture.redis);
    hf_fixture_start(&fixture.redis, &(hf_fixture_options){.tls = true, .tcp = true});
    hf_fixture_start(&strict, &(hf_fixture_options){.tls = true, .tls_clients = true});
    put_configs();
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_fixture_stop(&strict);
    hf_cli_fixture_stop(&fixture);
    return 0;
}

static void run(const char *line, const char *const *env, int code, const char *says)
{
    int got = hf_cli_fixture_run(&fixture, line, NULL, env);
    if (got != code || strstr(fixture.err, says) == NULL)
        fail_msg("%s: expected %d '%s', found %d\n%s%s", line, code, says, got,
                 fixture.out, fixture.err);
}

/* With each kind of client: producer, administration, locks, worker. */
static void run_each(const char *config, int code, const char *says)
{
    static const char *const lines[] = {
        "enqueue hello -c %s.yaml", "queue list -c %s.yaml",
        "lock some-lock -c %s.yaml -- true", "worker --burst -c %s.yaml"};
    for (size_t i = 0; i < HF_COUNT(lines); i++) {
        char line[TEXT_SIZE];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        (void)snprintf(line, sizeof line, lines[i], config);
#pragma GCC diagnostic pop
        uint64_t start_ms = hf_test_fair_ms();
        run(line, NULL, code, says);
        if (code != 0 && hf_test_fair_ms() - start_ms > REFUSED_MS)
            fail_msg("%s: it waited for the refusal to pass", line);
        const char *fault = fixture.err;
        while (strncmp(fault, "holdfast: warning: ", 19) == 0 &&
               strchr(fault, '\n') != NULL)
            fault = strchr(fault, '\n') + 1; /* all may read the key of the tests */
        const char *end = strchr(fault, '\n');
        if (code != 0 && strncmp(lines[i], "worker", 6) != 0 &&
            (end == NULL || end[1] != '\0'))
            fail_msg("%s: expected one line, found:\n%s", line, fixture.err);
    }
}

static void everything_works_by_tls(void **state)
{
    (void)state;
    run_each("good", 0, "");
    assert_int_equal(hf_fixture_number(&fixture.redis, "HGET hf:{default}:meta done"), 1);
    run_each("client", 0, "");
}

static void the_authorities_of_the_system_may_be_named(void **state)
{
    (void)state;
    char url[64], file[TEXT_SIZE];
    (void)snprintf(url, sizeof url, "REDIS_URL=%s", fixture.redis.tls_url);
    (void)snprintf(file, sizeof file, "SSL_CERT_FILE=%s", fixture.redis.ca);
    const char *const known[] = {url, file, NULL}, *const unknown[] = {url, NULL};
    run("enqueue hello", known, 0, "");
    run("enqueue hello", unknown, 77, "certificate is refused");
}

static void a_certificate_that_is_refused_is_said(void **state)
{
    (void)state;
    run_each("stranger", 77, "the server's certificate is refused");
    run_each("other-name", 77, "not for `other.example`");
    run_each("no-client", 77, "the server wants a client certificate");
}

/* Without a connection. */
static void check_looks_at_the_files(void **state)
{
    (void)state;
    run("check -c good.yaml", NULL, 0, "");
    run("check -c client.yaml", NULL, 0, "");
    run("check -c login.yaml", NULL, 0, ""); /* the password is for the worker alone */
    run("check -c gone.yaml", NULL, 78, "`/nowhere/ca.pem`: cannot be opened");
    run("check -c half.yaml", NULL, 78, "belong together");
    run("check -c mixed.yaml", NULL, 78, "key");
    run("check -c unix.yaml", NULL, 78, "rediss://");
    const char *const other[] = {"REDIS_URL=unix:///s", NULL};
    run("check -c gone.yaml", other, 78, "cannot be opened");
}

static void bad_files_and_options_are_errors_of_the_configuration(void **state)
{
    (void)state;
    run_each("gone", 78, "`/nowhere/ca.pem`: cannot be opened");
    run_each("half", 78, "belong together");
    run_each("unix", 78, "rediss://");
    run_each("mixed", 78, "key");
}

static void the_wrong_kind_of_port_is_said(void **state)
{
    (void)state;
    char line[TEXT_SIZE];
    run("enqueue hello -c plain-server.yaml", NULL, 69, "speak TLS");
    (void)snprintf(line, sizeof line,
                   "enqueue hello -c good.yaml --redis redis://127.0.0.1:%u",
                   (unsigned)fixture.redis.tls_port);
    run(line, NULL, 69, "rediss://");
}

static void without_verification_each_start_warns(void **state)
{
    (void)state;
    run_each("unverified", 0, "the certificate of Redis is not verified");
    run("enqueue hello --json -c unverified.yaml", NULL, 0, "{\"warning\":");
    /* Another URL than the file's, and one that TLS does not concern. */
    char line[TEXT_SIZE];
    (void)snprintf(line, sizeof line, "enqueue hello -c unverified.yaml --redis %s",
                   fixture.redis.url);
    run(line, NULL, 0, "");
    assert_string_equal(fixture.err, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_works_by_tls),
        cmocka_unit_test(the_authorities_of_the_system_may_be_named),
        cmocka_unit_test(a_certificate_that_is_refused_is_said),
        cmocka_unit_test(check_looks_at_the_files),
        cmocka_unit_test(bad_files_and_options_are_errors_of_the_configuration),
        cmocka_unit_test(the_wrong_kind_of_port_is_said),
        cmocka_unit_test(without_verification_each_start_warns),
    };
    return cmocka_run_group_tests(tests, up, down);
}
