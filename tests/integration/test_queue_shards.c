/* test_queue_shards.c - a queue is divided into shards before it is used, keeps their
 * number, and refuses what belongs to them. */
#include "queue/shards.h"

#include <string.h>

#include "base/base.h"
#include "queue/keys.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"

static hf_queue_fixture fixture;

static hf_divided divided;

static void on_divided(const hf_answer *answer, void *arg)
{
    fixture.err = hf_divided_read(answer, &divided);
    (void)snprintf(fixture.detail, sizeof fixture.detail, "%s", answer->detail);
    fixture.answered = true;
    (void)arg;
}

/* 0: only asks. */
static hf_err divide(unsigned n)
{
    hf_err err;
    hf_shards wanted;
    if (n > 0)
        assert_int_equal(hf_shards_make(&wanted, "q", n), HF_OK);
    fixture.broken = true; /* the audit is not of the queue any more */
    HF_QUEUE_FIXTURE_ASK(err, &fixture,
                         hf_op_shards(fixture.client, &fixture.queue, 0,
                                      n > 0 ? &wanted : NULL, on_divided, NULL));
    return err;
}

static void a_queue_is_divided_once(void **state)
{
    char why[HF_DETAIL_SIZE] = "";
    (void)state;
    assert_int_equal(divide(0), HF_OK);
    assert_int_equal(divided.shards.n, 0);
    assert_int_equal(divide(4), HF_OK);
    assert_true(hf_divided_is(&divided, 4, why));
    assert_string_equal(
        hf_fixture_command(&fixture.redis, "HMGET hf:{q}:meta shards uses"),
        "4 q/0-1 q/1-3 q/2-1 q/3-3\ns\n");
    long long writes = hf_queue_fixture_writes(&fixture);
    assert_int_equal(divide(4), HF_OK);
    assert_true(hf_divided_is(&divided, 4, why));
    assert_int_equal(divide(8), HF_OK);
    assert_int_equal(divided.shards.n, 4);
    assert_false(hf_divided_is(&divided, 8, why));
    assert_non_null(strstr(why, "it has 4 shards"));
    assert_int_equal(hf_queue_fixture_writes(&fixture), writes);
}

static void expect_undivided(const char *reason)
{
    char why[HF_DETAIL_SIZE] = "";
    assert_int_equal(divide(4), HF_OK);
    assert_int_equal(divided.shards.n, 0);
    assert_false(hf_divided_is(&divided, 4, why));
    if (strstr(why, reason) == NULL)
        fail_msg("expected '%s', found '%s'", reason, why);
}

/* A waiting, a running and a dead job. */
static void a_queue_with_jobs_is_not_divided(void **state)
{
    (void)state;
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "one", 0), HF_OK);
    expect_undivided("it has jobs");
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    expect_undivided("it has jobs");
    const hf_verdict_args args = {.worker = "w", .dead_max = 10, .dead_age_ms = 1000000};
    const hf_verdict_item item = {.id = "one", .error = {"no", 2}, .reason = "handler"};
    assert_int_equal(hf_queue_fixture_verdict(&fixture, HF_OP_BURY, &args, &item), HF_OK);
    expect_undivided("it has jobs");
}

static void a_queue_whose_jobs_are_done_is_divided(void **state)
{
    (void)state;
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "one", 0), HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    assert_int_equal(hf_queue_fixture_complete(&fixture, "w", "one", NULL), HF_OK);
    assert_int_equal(divide(4), HF_OK);
    assert_int_equal(divided.shards.n, 4);
}

/* An order of an operator is not dropped silently; what a file said is said again. */
static void a_queue_with_settings_of_an_operator_is_not_divided(void **state)
{
    char detail[HF_DETAIL_SIZE];
    (void)state;
    assert_int_equal(hf_admin_pause(fixture.admin, "q", true, detail), HF_OK);
    expect_undivided("it is paused");
    assert_int_equal(hf_admin_pause(fixture.admin, "q", false, detail), HF_OK);
    assert_int_equal(hf_admin_limit(fixture.admin, "q", 3, -1, -1, detail), HF_OK);
    expect_undivided("it has limits");
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:meta file %s", "3 0 0");
    assert_int_equal(divide(4), HF_OK);
    assert_int_equal(divided.shards.n, 4);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "max_running"), -1);
}

static void expect_refused(hf_err err)
{
    hf_shards shards;
    assert_int_equal(err, HF_SHARDED);
    assert_int_equal(hf_shards_refused(&shards, fixture.detail), HF_OK);
    assert_int_equal(shards.n, 4);
    assert_string_equal(shards.tags[0], "q/0-1");
}

static void what_belongs_to_the_shards_is_refused(void **state)
{
    const hf_claim_args args = hf_queue_fixture_claim_args("w", 1, 0);
    (void)state;
    assert_int_equal(divide(4), HF_OK);
    long long writes = hf_queue_fixture_writes(&fixture);
    expect_refused(hf_queue_fixture_enqueue(&fixture, "one", 0));
    expect_refused(hf_queue_fixture_claim_with(&fixture, &args));
    assert_int_equal(hf_queue_fixture_writes(&fixture), writes);
}

/* Before it was divided a request was executed, and its answer was lost. */
static void a_request_that_was_executed_before_is_not_refused(void **state)
{
    const hf_enqueue_args args = {.producer = "p", .number = 7, .remember_ms = 60000};
    const hf_enqueue_item item = {
        "one",
        0,
        {"{\"type\":\"t\",\"created\":1}\n", sizeof "{\"type\":\"t\",\"created\":1}"}};
    (void)state;
    assert_int_equal(hf_queue_fixture_enqueue_items(&fixture, &args, &item, 1), HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    assert_int_equal(hf_queue_fixture_complete(&fixture, "w", "one", NULL), HF_OK);
    assert_int_equal(divide(4), HF_OK);
    assert_int_equal(hf_queue_fixture_enqueue_items(&fixture, &args, &item, 1), HF_OK);
    assert_true(fixture.repeated);
}

/* Its script does not know the letter; a key of another type ends it before it writes. */
static void a_producer_of_an_older_version_changes_nothing(void **state)
{
    (void)state;
    assert_int_equal(divide(4), HF_OK);
    (void)hf_fixture_command(&fixture.redis, "HDEL hf:{q}:meta uses");
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "one", 0), HF_REDIS);
    assert_non_null(strstr(fixture.detail, "WRONGTYPE"));
    assert_int_equal(hf_fixture_number(&fixture.redis, "EXISTS hf:{q}:schedule"), 0);
}

static void a_shard_is_a_queue_for_its_jobs(void **state)
{
    const hf_queue whole = fixture.queue;
    (void)state;
    assert_int_equal(divide(4), HF_OK);
    hf_shards_queue(&divided.shards, &whole, 3, &fixture.queue);
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "one", 0), HF_OK);
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q/3-3}:schedule"), 1);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    assert_int_equal(hf_queue_fixture_complete(&fixture, "w", "one", NULL), HF_OK);
    fixture.queue = whole;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) HF_ADMIN_TEST(name, &fixture)
        TEST(a_queue_is_divided_once),
        TEST(a_queue_with_jobs_is_not_divided),
        TEST(a_queue_whose_jobs_are_done_is_divided),
        TEST(a_queue_with_settings_of_an_operator_is_not_divided),
        TEST(what_belongs_to_the_shards_is_refused),
        TEST(a_request_that_was_executed_before_is_not_refused),
        TEST(a_producer_of_an_older_version_changes_nothing),
        TEST(a_shard_is_a_queue_for_its_jobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
