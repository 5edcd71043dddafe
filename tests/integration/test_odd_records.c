/* test_odd_records.c - records of other producers at which a script could fail when it
 * rewrites their line: the job moves, and its neighbours too. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"

static hf_queue_fixture fixture;

/* Readable for cjson, which has no words for them; or not what a record's line is. */
static const char *const lines[] = {
    "{\"v\":1,\"type\":\"t\",\"created\":1,\"x\":1e999}\npayload",
    "{\"v\":1,\"type\":\"t\",\"created\":1,\"x\":NaN}\npayload",
    "{\"v\":1,\"type\":\"t\",\"created\":1,\"attempts\":\"x\"}\npayload",
    "{\"v\":1,\"type\":\"t\",\"created\":1,\"attempts\":{}}\npayload",
    "[1]\npayload",
    "7\npayload",
    "\"text\"\npayload",
    "null\npayload",
    "\npayload",
};
enum { GOOD = HF_COUNT(lines), JOBS = GOOD + 1 };

static char ids[JOBS][8];

/* One good job comes last in the batch, behind all the odd ones. */
static void claim_all(char fence[32])
{
    const hf_enqueue_args args = {.producer = ""};
    hf_enqueue_item items[JOBS];
    for (int i = 0; i < JOBS; i++) {
        const char *line = i < GOOD ? lines[i] : "{\"type\":\"t\"}\npayload";
        (void)snprintf(ids[i], sizeof ids[i], "id-%d", i);
        items[i] = (hf_enqueue_item){ids[i], 1, {line, strlen(line)}};
    }
    assert_int_equal(hf_queue_fixture_enqueue_items(&fixture, &args, items, JOBS), HF_OK);
    const hf_claim_args claim = hf_queue_fixture_claim_args("w", JOBS, 0);
    assert_int_equal(hf_queue_fixture_claim_with(&fixture, &claim), HF_OK);
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:running"), JOBS);
    memcpy(fence, fixture.fence, sizeof fixture.fence);
}

/* A record that no worker could read is a finding, wherever its job is. */
static void on_finding(const hf_finding *finding, void *arg)
{
    (void)arg;
    assert_non_null(strstr(finding->text, "its record cannot be read"));
}

static void move_all(hf_verdict_op op, bool counts)
{
    const hf_verdict_args args = {
        .worker = "w", .dead_max = 100000, .dead_age_ms = 1000000};
    hf_verdict_item items[JOBS];
    char fence[32];
    claim_all(fence);
    for (int i = 0; i < JOBS; i++)
        items[i] = (hf_verdict_item){.id = ids[i],
                                     .fence = fence,
                                     .counts = counts,
                                     .due_ms = 1,
                                     .error = {"no", 2},
                                     .reason = "handler"};
    assert_int_equal(hf_queue_fixture_verdicts(&fixture, op, &args, items, JOBS), HF_OK);
    for (int i = 0; i < JOBS; i++)
        assert_int_equal(fixture.codes[i], HF_OK);
    size_t found;
    assert_int_equal(
        hf_admin_audit(fixture.admin, "q",
                       &(hf_audit_opts){HF_AUDIT_OPTS_INIT, .cb = on_finding}, &found,
                       NULL),
        HF_OK);
}

static void remove_all(void)
{
    size_t n;
    assert_int_equal(hf_admin_purge(fixture.admin, "q", NULL, NULL, &n, NULL), HF_OK);
    assert_int_equal(n, JOBS);
}

static void payloads_are_kept(void)
{
    for (int i = 0; i < JOBS; i++) {
        const char *record =
            hf_fixture_command(&fixture.redis, "HGET hf:{q}:jobs %s", ids[i]);
        assert_non_null(strstr(record, "\npayload"));
        if (i == GOOD)
            assert_non_null(strstr(record, "\"type\":\"t\""));
    }
}

static void they_die(void **state)
{
    (void)state;
    for (int counts = 0; counts < 2; counts++) {
        size_t n;
        move_all(HF_OP_BURY, counts != 0);
        assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:dead"), JOBS);
        payloads_are_kept();
        assert_int_equal(
            hf_admin_dead_retry(fixture.admin, "q", NULL, 0, NULL, NULL, &n, NULL),
            HF_OK);
        assert_int_equal(n, JOBS);
        payloads_are_kept();
        remove_all();
    }
}

static void they_are_tried_again(void **state)
{
    (void)state;
    move_all(HF_OP_RETRY, true);
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:schedule"), JOBS);
    payloads_are_kept();
    remove_all();
}

static void they_are_put_back(void **state)
{
    (void)state;
    move_all(HF_OP_RELEASE, false);
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:schedule"), JOBS);
    payloads_are_kept();
    remove_all();
}

#define TEST(name) HF_ADMIN_TEST(name, &fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(they_die),
        TEST(they_are_tried_again),
        TEST(they_are_put_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
