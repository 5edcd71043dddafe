/* test_queue_ops.c - jobs go in, are taken, and come to their ends, with the real
 * scripts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "holdfast/admin.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"

#define RECORD "{\"v\":1,\"type\":\"t\",\"created\":1700000000000}\npayload"

static hf_queue_fixture fixture;
static const hf_bytes record = {RECORD, sizeof RECORD - 1};

/* ---- what a queue uses ---- */

/* A later version gave it a feature. It takes jobs, and its own workers claim them. */
static void a_queue_that_uses_what_a_worker_does_not_know_is_left_alone(void **state)
{
    const hf_claim_args args = hf_queue_fixture_claim_args("w", 1, 0);
    (void)state;
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:meta uses bz");
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "one", 0), HF_OK);
    assert_int_not_equal(hf_queue_fixture_claim_with(&fixture, &args), HF_OK);
    assert_non_null(strstr(fixture.detail, "does not know: `bz` in hf:{q}:meta"));
    assert_int_equal(hf_fixture_number(&fixture.redis, "EXISTS hf:{q}:running"), 0);
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:meta uses b");
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
}

static void expect_uses(const char *letters)
{
    const char *uses = hf_fixture_command(&fixture.redis, "HGET hf:{q}:meta uses");
    for (const char *at = letters; *at != '\0'; at++)
        if (strchr(uses, *at) == NULL)
            fail_msg("expected the letters `%s`, found `%s`", letters, uses);
    assert_int_equal(strlen(uses), strlen(letters));
}

/* An older version sets a field without its letter, and takes it away the same way. */
static void a_check_puts_right_what_a_queue_is_said_to_use(void **state)
{
    (void)state;
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:meta uses bz paused 1 "
                                             "max_running 1 rate_limit 9 rate_per 9");
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:crashes one 1");
    assert_int_equal(hf_queue_fixture_check(&fixture, "w", false), HF_OK);
    expect_uses("bzpnrm");
    (void)hf_fixture_command(&fixture.redis, "HDEL hf:{q}:meta paused max_running "
                                             "rate_limit rate_per");
    (void)hf_fixture_command(&fixture.redis, "DEL hf:{q}:crashes");
    assert_int_equal(hf_queue_fixture_check(&fixture, "w", false), HF_OK);
    expect_uses("bz");
}

/* ---- enqueue ---- */

static void a_job_is_enqueued_claimed_and_completed(void **state)
{
    (void)state;
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "one", 0), HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 10, 0), 1);
    assert_string_equal(fixture.jobs[0].id, "one");
    assert_string_equal(fixture.jobs[0].type, "t");
    assert_string_equal(fixture.jobs[0].payload, "payload");
    assert_int_equal(fixture.jobs[0].crashes, 0);
    assert_true(fixture.jobs[0].due_ms > 0 && fixture.jobs[0].due_ms <= fixture.now_ms);
    assert_int_equal(hf_queue_fixture_complete(&fixture, "w", "one", NULL), HF_OK);
    assert_int_equal(hf_queue_fixture_complete(&fixture, "w", "one", NULL), HF_GONE);
    hf_queue_fixture_audit(&fixture, true);
}

static void an_id_that_is_known_exists_and_tells_where(void **state)
{
    (void)state;
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "one", 0), HF_OK);
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "one", 0), HF_EXISTS);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "one", 0), HF_RUNNING);
    const hf_verdict_args args = {.worker = "w", .dead_max = 10, .dead_age_ms = 1000000};
    const hf_verdict_item item = {.id = "one", .error = {"no", 2}, .reason = "handler"};
    assert_int_equal(hf_queue_fixture_verdict(&fixture, HF_OP_BURY, &args, &item), HF_OK);
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "one", 0), HF_DEAD);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 0);
}

static void a_finished_id_is_accepted_again(void **state)
{
    (void)state;
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "one", 0), HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    assert_int_equal(hf_queue_fixture_complete(&fixture, "w", "one", NULL), HF_OK);
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "one", 0), HF_OK);
}

static void of_one_id_twice_in_a_request_the_first_counts(void **state)
{
    static const char other[] = "{\"v\":1,\"type\":\"other\",\"created\":1}\n";
    (void)state;
    const hf_enqueue_args args = {.producer = ""};
    const hf_enqueue_item items[] = {
        {"one", 0, record}, {"two", 0, record}, {"one", 0, {other, sizeof other - 1}}};
    assert_int_equal(
        hf_queue_fixture_enqueue_items(&fixture, &args, items, HF_COUNT(items)), HF_OK);
    assert_int_equal(fixture.n_codes, 3);
    assert_int_equal(fixture.codes[0], HF_OK);
    assert_int_equal(fixture.codes[1], HF_OK);
    assert_int_equal(fixture.codes[2], HF_EXISTS);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 10, 0), 2);
    assert_string_equal(fixture.jobs[0].type, "t");
}

static void i8_an_executed_request_is_not_executed_again(void **state)
{
    (void)state;
    const hf_enqueue_args args = {.producer = "p", .number = 7, .remember_ms = 60000};
    const hf_enqueue_item item = {"one", 0, record};
    assert_int_equal(hf_queue_fixture_enqueue_items(&fixture, &args, &item, 1), HF_OK);
    assert_false(fixture.repeated);
    assert_int_equal(fixture.n_codes, 0); /* all are new */
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    assert_int_equal(hf_queue_fixture_complete(&fixture, "w", "one", NULL), HF_OK);
    assert_int_equal(hf_queue_fixture_enqueue_items(&fixture, &args, &item, 1), HF_OK);
    assert_true(fixture.repeated);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 0);
    hf_queue_fixture_begin(&fixture);
    assert_int_equal(hf_queue_fixture_end(
                         &fixture, hf_op_forget(fixture.client, &fixture.queue, "p",
                                                hf_queue_fixture_on_answer, &fixture)),
                     HF_OK);
    assert_int_equal(hf_queue_fixture_enqueue_items(&fixture, &args, &item, 1), HF_OK);
    assert_false(fixture.repeated);
}

static void i4_no_job_starts_before_its_time(void **state)
{
    (void)state;
    int64_t at = hf_queue_fixture_now(&fixture) + 400;
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "delayed", -400), HF_OK);
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "at", at), HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 0);
    assert_true(fixture.next_ms >= at - 1);
    EVENTUALLY(15000, hf_queue_fixture_claim(&fixture, "w", 1, 0) == 1);
    assert_true(fixture.now_ms >= at);
    assert_string_equal(fixture.jobs[0].id, "at");
    EVENTUALLY(15000, hf_queue_fixture_claim(&fixture, "w", 1, 0) == 1);
    assert_true(fixture.now_ms >= fixture.jobs[0].due_ms);
}

static void a_resent_delay_does_not_grow(void **state)
{
    (void)state;
    const hf_enqueue_args args = {.producer = "", .waited_ms = 5000};
    const hf_enqueue_item items[] = {{"later", -60000, record}, {"now", -4000, record}};
    assert_int_equal(hf_queue_fixture_enqueue_items(&fixture, &args, items, 2), HF_OK);
    long long due = hf_fixture_number(&fixture.redis, "ZSCORE hf:{q}:schedule later");
    assert_true(due == fixture.now_ms + 55000);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 10, 0), 1);
    assert_string_equal(fixture.jobs[0].id, "now");
}

/* The greatest request, and more than one command takes at a time. */
static void i7_ten_thousand_jobs_are_accepted_as_one(void **state)
{
    (void)state;
    char(*ids)[16] = calloc(HF_BATCH_JOBS, sizeof *ids);
    hf_enqueue_item *items = calloc(HF_BATCH_JOBS, sizeof *items);
    if (ids == NULL || items == NULL)
        abort();
    for (size_t i = 0; i < HF_BATCH_JOBS; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "id-%05zu", i);
        items[i] = (hf_enqueue_item){ids[i], 0, record};
    }
    const hf_enqueue_args args = {.producer = ""};
    assert_int_equal(
        hf_queue_fixture_enqueue_items(&fixture, &args, items, HF_BATCH_JOBS), HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", HF_CLAIM_MAX, 0),
                     HF_CLAIM_MAX);
    for (size_t i = 0; i < HF_CLAIM_MAX; i++)
        assert_string_equal(fixture.jobs[i].id, ids[i]);
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:schedule"),
                     HF_BATCH_JOBS - HF_CLAIM_MAX);
    free(ids);
    free(items);
}

static void a_queue_is_registered_once(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        assert_int_equal(hf_queue_fixture_register(&fixture), HF_OK);
    assert_string_equal(hf_fixture_command(&fixture.redis, "SMEMBERS hf:{/}:queues"),
                        "q\n");
}

/* ---- ends ---- */

static void a_retried_job_comes_back_with_its_error_and_one_attempt_more(void **state)
{
    (void)state;
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "one", 0), HF_OK);
    for (uint32_t attempts = 0; attempts < 3; attempts++) {
        EVENTUALLY(15000, hf_queue_fixture_claim(&fixture, "w", 1, 0) == 1);
        assert_int_equal(fixture.jobs[0].attempts, attempts);
        assert_string_equal(fixture.jobs[0].error,
                            attempts == 0 ? "" : "it \"broke\" / \xc3\xa9 ?");
        assert_string_equal(fixture.jobs[0].payload, "payload");
        const hf_verdict_args args = {.worker = "w"};
        const hf_verdict_item item = {
            .id = "one", .due_ms = 2000, .error = {"it \"broke\" / \xc3\xa9 \xff", 17}};
        assert_int_equal(hf_queue_fixture_verdict(&fixture, HF_OP_RETRY, &args, &item),
                         HF_OK);
        assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 0);
    }
    assert_int_equal(hf_queue_fixture_meta(&fixture, "failed"), 3);
}

static void a_binary_payload_survives_a_retry(void **state)
{
    static const char raw[] = "{\"v\":1,\"type\":\"t\",\"created\":1}\n\0\n\xff\"\\ \x01";
    (void)state;
    const hf_enqueue_args none = {.producer = ""};
    const hf_enqueue_item job = {"one", 0, {raw, sizeof raw - 1}};
    assert_int_equal(hf_queue_fixture_enqueue_items(&fixture, &none, &job, 1), HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    size_t len = fixture.jobs[0].payload_len;
    const hf_verdict_args args = {.worker = "w"};
    const hf_verdict_item item = {.id = "one", .error = {"x", 1}};
    assert_int_equal(hf_queue_fixture_verdict(&fixture, HF_OP_RETRY, &args, &item),
                     HF_OK);
    EVENTUALLY(15000, hf_queue_fixture_claim(&fixture, "w", 1, 0) == 1);
    assert_int_equal(len, 7);
    assert_int_equal(fixture.jobs[0].payload_len, len);
}

static void a_released_job_keeps_its_place(void **state)
{
    (void)state;
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "first", 1700000000000), HF_OK);
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "second", 1700000000001), HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    assert_true(fixture.jobs[0].due_ms == 1700000000000);
    const hf_verdict_args args = {.worker = "w"};
    const hf_verdict_item item = {.id = "first", .due_ms = fixture.jobs[0].due_ms};
    assert_int_equal(hf_queue_fixture_verdict(&fixture, HF_OP_RELEASE, &args, &item),
                     HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "other", 1, 0), 1);
    assert_string_equal(fixture.jobs[0].id, "first");
    assert_int_equal(fixture.jobs[0].attempts, 0);
}

static void a_job_without_a_handler_waits_with_that_error(void **state)
{
    (void)state;
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "one", 0), HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    const hf_verdict_args args = {.worker = "w"};
    const hf_verdict_item item = {
        .id = "one", .due_ms = 100, .error = {"no handler", 10}};
    assert_int_equal(hf_queue_fixture_verdict(&fixture, HF_OP_RELEASE, &args, &item),
                     HF_OK);
    int64_t from = fixture.now_ms;
    EVENTUALLY(15000, hf_queue_fixture_claim(&fixture, "w", 1, 0) == 1);
    assert_true(fixture.now_ms >= from + 100);
    assert_string_equal(fixture.jobs[0].error, "no handler");
    assert_int_equal(fixture.jobs[0].attempts, 0);
}

static void bury(const char *id, uint32_t dead_max, int64_t dead_age_ms)
{
    const hf_verdict_args args = {
        .worker = "w", .dead_max = dead_max, .dead_age_ms = dead_age_ms};
    const hf_verdict_item item = {
        .id = id, .counts = true, .error = {"no good", 7}, .reason = "attempts"};
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, id, 0), HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    assert_string_equal(fixture.jobs[0].id, id);
    assert_int_equal(hf_queue_fixture_verdict(&fixture, HF_OP_BURY, &args, &item), HF_OK);
}

static void the_dead_are_bounded_by_count(void **state)
{
    (void)state;
    bury("a", 2, 1000000);
    hf_test_pause_ms(2); /* they died one after the other, and the score shows it */
    bury("b", 2, 1000000);
    hf_test_pause_ms(2);
    bury("c", 2, 1000000);
    assert_string_equal(hf_fixture_command(&fixture.redis, "ZRANGE hf:{q}:dead 0 -1"),
                        "b\nc\n");
    assert_string_equal(hf_fixture_command(&fixture.redis, "HEXISTS hf:{q}:jobs a"), "0");
    assert_int_equal(hf_fixture_number(&fixture.redis, "HLEN hf:{q}:jobs"), 2);
}

static void enqueue_many(size_t n)
{
    const hf_enqueue_args args = {.producer = ""};
    static char ids[HF_FIXTURE_JOBS][8];
    static hf_enqueue_item items[HF_FIXTURE_JOBS];
    static unsigned number;
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "%07u", number++);
        items[i] = (hf_enqueue_item){ids[i], 0, record};
    }
    assert_int_equal(hf_queue_fixture_enqueue_items(&fixture, &args, items, n), HF_OK);
}

/* This many jobs die by one verdict. */
static void bury_many(size_t n, uint32_t dead_max)
{
    const hf_verdict_args args = {
        .worker = "w", .dead_max = dead_max, .dead_age_ms = 1000000};
    static hf_verdict_item items[HF_FIXTURE_JOBS];
    enqueue_many(n);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", (uint32_t)n, 0), n);
    for (size_t i = 0; i < n; i++)
        items[i] = (hf_verdict_item){.id = fixture.jobs[i].id,
                                     .fence = fixture.fence,
                                     .counts = true,
                                     .error = {"no good", 7},
                                     .reason = "attempts"};
    assert_int_equal(hf_queue_fixture_verdicts(&fixture, HF_OP_BURY, &args, items, n),
                     HF_OK);
}

static void the_dead_are_bounded_after_any_verdict(void **state)
{
    static const size_t batches[] = {1, 250, 250, 1000, 99, 250};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(batches); i++) {
        bury_many(batches[i], 50);
        long long dead = hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:dead");
        if (dead > 50)
            fail_msg("%zu were buried, and %lld are dead", batches[i], dead);
        assert_int_equal(hf_fixture_number(&fixture.redis, "HLEN hf:{q}:jobs"), dead);
    }
}

static void the_dead_are_bounded_after_any_number_of_crashes(void **state)
{
    (void)state;
    enqueue_many(600);
    while (hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:schedule") > 0)
        assert_int_equal(hf_queue_fixture_claim(&fixture, "gone", 200, 100), 200);
    hf_claim_args args = hf_queue_fixture_claim_args("w", 1000, 0);
    args.poison = 1;
    args.dead_max = 50;
    EVENTUALLY(15000, hf_queue_fixture_claim_with(&fixture, &args) == HF_OK &&
                          hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:dead") <= 50 &&
                          hf_fixture_number(&fixture.redis, "HLEN hf:{q}:jobs") <= 50);
}

/* A lowered bound is reached by and by: no script takes out many more than it brings. */
static void a_lowered_bound_of_the_dead_is_reached_in_slices(void **state)
{
    (void)state;
    bury_many(1000, 1000);
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:dead"), 1000);
    for (long long expected = 900; expected > 50; expected -= 100) {
        bury_many(10, 50);
        assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:dead"),
                         expected);
    }
    bury_many(10, 50);
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:dead"), 50);
}

static void the_dead_are_bounded_by_age(void **state)
{
    (void)state;
    bury("old", 100, 1000000);
    hf_test_pause_ms(30);
    bury("young", 100, 20);
    assert_string_equal(hf_fixture_command(&fixture.redis, "ZRANGE hf:{q}:dead 0 -1"),
                        "young\n");
    assert_int_equal(hf_fixture_number(&fixture.redis, "HLEN hf:{q}:jobs"), 1);
}

/* Every second of them was never accepted; the first ten were sent before. */
static void a_batch_of_verdicts_is_answered_one_by_one(void **state)
{
    enum { MANY = 100 };
    hf_verdict_item items[MANY];
    char ids[MANY][16];
    (void)state;
    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "id-%02zu", i);
        if (i % 2 == 0)
            assert_int_equal(hf_queue_fixture_enqueue(&fixture, ids[i], 0), HF_OK);
    }
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", MANY, 0), MANY / 2);
    for (size_t i = 0; i < MANY; i++)
        items[i] =
            (hf_verdict_item){.id = ids[i], .fence = fixture.fence, .resent = i < 10};
    const hf_verdict_args args = {.worker = "w"};
    assert_int_equal(
        hf_queue_fixture_verdicts(&fixture, HF_OP_COMPLETE, &args, items, MANY), HF_OK);
    assert_int_equal(fixture.n_codes, MANY);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(fixture.codes[i], i % 2 == 0 ? HF_OK : HF_GONE);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "done"), MANY / 2);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "lost"), MANY / 2 - 5);
    hf_queue_fixture_audit(&fixture, true);
}

static void of_one_job_twice_in_a_batch_only_the_first_counts(void **state)
{
    (void)state;
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "one", 0), HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    const hf_verdict_args args = {.worker = "w"};
    const hf_verdict_item item = {
        .id = "one", .fence = fixture.fence, .due_ms = 1, .error = {"x", 1}};
    const hf_verdict_item twice[] = {item, item};
    assert_int_equal(hf_queue_fixture_verdicts(&fixture, HF_OP_RETRY, &args, twice, 2),
                     HF_OK);
    assert_int_equal(fixture.codes[0], HF_OK);
    assert_int_equal(fixture.codes[1], HF_LOST);
    EVENTUALLY(15000, hf_queue_fixture_claim(&fixture, "w", 1, 0) == 1);
    assert_int_equal(fixture.jobs[0].attempts, 1);
}

/* ---- late ---- */

static void a_late_request_of_each_kind_says_so(void **state)
{
    static const hf_verdict_op ops[] = {HF_OP_COMPLETE, HF_OP_RETRY, HF_OP_RELEASE,
                                        HF_OP_BURY};
    (void)state;
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "one", 0), HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    int64_t past = fixture.now_ms - 1;
    for (size_t i = 0; i < HF_COUNT(ops); i++) {
        const hf_verdict_args args = {.worker = "w", .not_after = past, .dead_max = 1};
        const hf_verdict_item item = {
            .id = "one", .error = {"x", 1}, .reason = "handler"};
        assert_int_equal(hf_queue_fixture_verdict(&fixture, ops[i], &args, &item),
                         HF_DEADLINE);
        assert_true(fixture.now_ms > past);
    }
    const hf_enqueue_args args = {.producer = "", .not_after = past};
    const hf_enqueue_item item = {"two", 0, record};
    assert_int_equal(hf_queue_fixture_enqueue_items(&fixture, &args, &item, 1),
                     HF_DEADLINE);
    hf_claim_args claim = hf_queue_fixture_claim_args("w", 1, 0);
    claim.not_after = past;
    assert_int_equal(hf_queue_fixture_claim_with(&fixture, &claim), HF_DEADLINE);
    const hf_renew_args renew = {.worker = "w", .lease_ms = 1000, .not_after = past};
    assert_int_equal(hf_queue_fixture_renew_with(&fixture, &renew, "one", NULL),
                     HF_DEADLINE);
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:running"), 1);
}

#define TEST(name) HF_QUEUE_TEST(name, &fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_queue_that_uses_what_a_worker_does_not_know_is_left_alone),
        TEST(a_check_puts_right_what_a_queue_is_said_to_use),
        TEST(a_job_is_enqueued_claimed_and_completed),
        TEST(an_id_that_is_known_exists_and_tells_where),
        TEST(a_finished_id_is_accepted_again),
        TEST(of_one_id_twice_in_a_request_the_first_counts),
        TEST(i8_an_executed_request_is_not_executed_again),
        TEST(i4_no_job_starts_before_its_time),
        TEST(a_resent_delay_does_not_grow),
        TEST(i7_ten_thousand_jobs_are_accepted_as_one),
        TEST(a_queue_is_registered_once),
        TEST(a_retried_job_comes_back_with_its_error_and_one_attempt_more),
        TEST(a_binary_payload_survives_a_retry),
        TEST(a_released_job_keeps_its_place),
        TEST(a_job_without_a_handler_waits_with_that_error),
        TEST(the_dead_are_bounded_by_count),
        TEST(the_dead_are_bounded_after_any_verdict),
        TEST(the_dead_are_bounded_after_any_number_of_crashes),
        TEST(a_lowered_bound_of_the_dead_is_reached_in_slices),
        TEST(the_dead_are_bounded_by_age),
        TEST(a_batch_of_verdicts_is_answered_one_by_one),
        TEST(of_one_job_twice_in_a_batch_only_the_first_counts),
        TEST(a_late_request_of_each_kind_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
