/* test_queue_crash.c - a crash that its holder has seen: the process of a run died, and
 * the worker lives. It counts as one that a takeover finds. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "queue/record.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"

enum { SHORT_MS = 40 };

static const char killed[] = "killed by signal 11 (SEGV)";
static hf_queue_fixture fixture;

static hf_err crash_with(const char *text, bool resent, const char *fence)
{
    const hf_verdict_args args = {
        .worker = "w", .dead_max = 10, .dead_age_ms = 1000000, .poison = 3};
    const hf_verdict_item item = {.id = "one",
                                  .fence = fence,
                                  .resent = resent,
                                  .due_ms = fixture.jobs[0].due_ms,
                                  .error = {text, strlen(text)}};
    return hf_queue_fixture_verdict(&fixture, HF_OP_CRASH, &args, &item);
}

static hf_err crash(void)
{
    return crash_with(killed, false, fixture.fence);
}

static void claim_one(uint32_t lease_ms)
{
    EVENTUALLY(15000, hf_queue_fixture_claim(&fixture, "w", 1, lease_ms) == 1);
    assert_string_equal(fixture.jobs[0].id, "one");
}

static void put(const char *fields)
{
    char record[256];
    int len = snprintf(record, sizeof record, "{\"type\":\"t\"%s}\npayload", fields);
    const hf_enqueue_args args = {.producer = "", .options = true};
    const hf_enqueue_item item = {"one", 0, {record, (size_t)len}};
    assert_int_equal(hf_queue_fixture_enqueue_items(&fixture, &args, &item, 1), HF_OK);
}

static const char *record(void)
{
    return hf_fixture_command(&fixture.redis, "HGET hf:{q}:jobs one");
}

static const char *crashes(void)
{
    return hf_fixture_command(&fixture.redis, "HGET hf:{q}:crashes one");
}

static void report_checkpoint(const char *text)
{
    const hf_renew_note note = {0, HF_RENEW_CHECKPOINT, {text, strlen(text)}};
    const hf_renew_args args = {
        .worker = "w", .lease_ms = 60000, .notes = &note, .n_notes = 1};
    assert_int_equal(hf_queue_fixture_renew_with(&fixture, &args, "one", fixture.fence),
                     HF_OK);
}

/* ---- one crash ---- */

static void a_crash_is_no_attempt_and_the_job_keeps_its_place(void **state)
{
    (void)state;
    put("");
    claim_one(0);
    int64_t due = fixture.jobs[0].due_ms;
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "two", 0), HF_OK);
    assert_int_equal(crash(), HF_OK);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "crashed"), 1);
    assert_true(hf_queue_fixture_meta(&fixture, "failed") <= 0);
    assert_non_null(strstr(record(), "\"error\":\"killed by signal 11 (SEGV)\""));
    assert_null(strstr(record(), "attempts"));
    assert_null(strstr(record(), "history"));
    assert_memory_equal(crashes(), "1; w, its process died 20",
                        strlen("1; w, its process died 20"));
    assert_true(hf_fixture_number(&fixture.redis, "ZSCORE hf:{q}:schedule one") == due);
    claim_one(0); /* before `two` */
    assert_int_equal(fixture.jobs[0].crashes, 1);
    assert_int_equal(fixture.jobs[0].attempts, 0);
    assert_true(fixture.jobs[0].ran_before);
    assert_string_equal(fixture.jobs[0].error, killed);
    assert_string_equal(fixture.jobs[0].payload, "payload");
}

static void a_crash_is_counted_once(void **state)
{
    char fence[sizeof fixture.fence];
    (void)state;
    put("");
    claim_one(0);
    memcpy(fence, fixture.fence, sizeof fence);
    assert_int_equal(crash(), HF_OK);
    assert_int_equal(crash_with(killed, true, fence), HF_LOST);
    claim_one(0);
    assert_int_equal(crash_with(killed, true, fence), HF_LOST);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "crashed"), 1);
    assert_int_equal(fixture.jobs[0].crashes, 1);
    assert_int_equal(hf_queue_fixture_complete(&fixture, "w", "one", NULL), HF_OK);
}

/* A takeover has counted it already. */
static void a_lost_lock_refuses_it(void **state)
{
    char fence[sizeof fixture.fence];
    (void)state;
    put("");
    claim_one(SHORT_MS);
    memcpy(fence, fixture.fence, sizeof fence);
    claim_one(0);
    assert_int_equal(fixture.jobs[0].crashes, 1);
    assert_int_equal(crash_with(killed, false, fence), HF_LOST);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "crashed"), 1);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "lost"), 1);
}

static void a_job_to_cancel_ends_with_its_crash(void **state)
{
    char detail[HF_DETAIL_SIZE];
    (void)state;
    put("");
    claim_one(0);
    assert_int_equal(hf_admin_cancel(fixture.admin, "q", "one", NULL, detail),
                     HF_RUNNING);
    assert_int_equal(crash(), HF_OK);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "cancelled"), 1);
    assert_true(hf_queue_fixture_meta(&fixture, "crashed") <= 0);
}

/* It has started, so it does not expire any more. */
static void a_crashed_job_does_not_expire(void **state)
{
    (void)state;
    put(",\"start_within\":60000");
    claim_one(0);
    assert_int_equal(crash(), HF_OK);
    assert_null(strstr(record(), "start_by"));
    assert_int_equal(hf_fixture_number(&fixture.redis, "EXISTS hf:{q}:expires"), 0);
}

/* ---- alone ---- */

static hf_err give_back(hf_verdict_item item)
{
    const hf_verdict_args args = {.worker = "w"};
    item.id = "one";
    item.fence = fixture.fence;
    item.due_ms = item.due_ms != 0 ? item.due_ms : fixture.jobs[0].due_ms;
    return hf_queue_fixture_verdict(&fixture, HF_OP_RELEASE, &args, &item);
}

static hf_err be_neighbour(void)
{
    return give_back((hf_verdict_item){
        .started = true, .neighbour = true, .error = {"neighbour of bad", 16}});
}

static void fail_it(bool alone)
{
    const hf_verdict_args args = {.worker = "w"};
    const hf_verdict_item item = {.id = "one", .error = {"x", 1}, .alone = alone};
    assert_int_equal(hf_queue_fixture_verdict(&fixture, HF_OP_RETRY, &args, &item),
                     HF_OK);
}

/* What a worker reads of it. */
static bool runs_alone(void)
{
    hf_record read;
    const char *text = record();
    assert_int_equal(hf_record_read(&read, (hf_bytes){text, strlen(text)}), HF_OK);
    bool alone = read.alone;
    hf_record_done(&read);
    return alone;
}

static void a_neighbour_loses_no_attempt_and_no_place(void **state)
{
    (void)state;
    put("");
    claim_one(0);
    int64_t due = fixture.jobs[0].due_ms;
    assert_int_equal(be_neighbour(), HF_OK);
    assert_int_equal(be_neighbour(), HF_LOST); /* the same once more */
    assert_null(strstr(record(), "attempts"));
    assert_null(strstr(record(), "refused"));
    assert_non_null(strstr(record(), "\"error\":\"neighbour of bad\""));
    assert_non_null(strstr(record(), "\"alone\":1"));
    assert_true(hf_fixture_number(&fixture.redis, "ZSCORE hf:{q}:schedule one") == due);
    assert_int_equal(hf_fixture_number(&fixture.redis, "EXISTS hf:{q}:crashes"), 0);
}

static void a_neighbour_for_the_third_time_runs_alone(void **state)
{
    (void)state;
    put("");
    for (int i = 0; i < 2; i++) {
        claim_one(0);
        assert_int_equal(be_neighbour(), HF_OK);
        assert_false(runs_alone());
    }
    claim_one(0);
    fail_it(false); /* a verdict of its own: the row ends */
    assert_null(strstr(record(), "alone"));
    for (int i = 0; i < 4; i++) {
        claim_one(0);
        assert_int_equal(be_neighbour(), HF_OK);
        assert_true(runs_alone() == (i >= 2));
    }
    claim_one(0); /* given back before it has run: it still has to be alone */
    assert_int_equal(give_back((hf_verdict_item){.started = false}), HF_OK);
    assert_true(runs_alone());
    claim_one(0);
    assert_int_equal(give_back((hf_verdict_item){.later = true, .due_ms = 1}), HF_OK);
    assert_false(runs_alone());
}

static void what_timed_out_or_crashed_beside_others_runs_alone_once(void **state)
{
    (void)state;
    put("");
    claim_one(0);
    fail_it(true);
    assert_true(runs_alone());
    claim_one(0);
    fail_it(false);
    assert_false(runs_alone());
    claim_one(0);
    assert_int_equal(crash(), HF_OK);
    assert_true(runs_alone());
}

/* A job that died and is started again is as new. */
static void a_job_that_is_started_again_runs_beside_others(void **state)
{
    char detail[HF_DETAIL_SIZE];
    (void)state;
    put("");
    for (int i = 0; i < 3; i++) {
        claim_one(0);
        (void)crash();
    }
    assert_true(runs_alone());
    assert_int_equal(hf_admin_retry(fixture.admin, "q", "one", detail), HF_OK);
    assert_false(runs_alone());
}

/* ---- what would run it is down ---- */

static void a_job_that_waits_for_its_pool_is_not_refused(void **state)
{
    (void)state;
    (void)hf_fixture_command(&fixture.redis,
                             "HSET hf:{q}:meta rate_limit 10 rate_per 3600000 uses r");
    for (int i = 0; i < 3; i++) { /* each token comes back */
        if (i == 0)
            put(",\"start_within\":600000");
        claim_one(0);
        assert_int_equal(give_back((hf_verdict_item){.waits = true,
                                                     .due_ms = i < 2 ? 1 : 60000,
                                                     .error = {"pool is down", 12}}),
                         HF_OK);
        assert_null(strstr(record(), "attempts"));
        assert_null(strstr(record(), "refused"));
        assert_null(strstr(record(), "alone"));
        assert_non_null(strstr(record(), "\"start_by\":"));
        assert_non_null(strstr(record(), "\"error\":\"pool is down\""));
    }
    assert_true(hf_fixture_number(&fixture.redis, "ZSCORE hf:{q}:schedule one") >
                hf_queue_fixture_now(&fixture) + 30000);
}

/* ---- the last crash ---- */

/* Whoever died with it: all crashes of a job count together. */
static void crashes_of_both_kinds_make_it_poison(void **state)
{
    char *text;
    (void)state;
    put(",\"awaited\":1,\"on_dead\":\"about\"");
    claim_one(0);
    assert_int_equal(crash(), HF_OK);
    claim_one(SHORT_MS); /* its holder dies */
    claim_one(0);
    assert_int_equal(fixture.jobs[0].crashes, 2);
    assert_int_equal(
        crash_with("exited with 7\nTraceback\n  line 3", false, fixture.fence), HF_DEAD);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "crashed"), 3);
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:dead"), 1);
    assert_int_equal(hf_fixture_number(&fixture.redis, "EXISTS hf:{q}:crashes"), 0);
    text = strstr(record(), "\"error\":\"exited with 7; it crashed 3 times; w, its");
    assert_non_null(text);
    assert_non_null(strstr(text, ", lease ended 20"));
    assert_non_null(strstr(text, "Z\\nTraceback\\n  line 3\""));
    assert_non_null(strstr(record(), "\"reason\":\"poison\""));
    assert_int_equal(hf_fixture_number(&fixture.redis, "HEXISTS hf:{q}:jobs one.dead"),
                     1);
    assert_int_equal(hf_fixture_number(&fixture.redis, "HEXISTS hf:{q}:waits one"), 0);
}

static void a_long_error_keeps_its_beginning_and_its_end(void **state)
{
    static const char first[] = "killed by signal 9\n", last[] = "the end.";
    static char text[HF_ERROR_MAX + 1];
    (void)state;
    put("");
    memset(text, 'x', HF_ERROR_MAX);
    memcpy(text, first, sizeof first - 1);
    memcpy(text + HF_ERROR_MAX - (sizeof last - 1), last, sizeof last);
    for (int i = 0; i < 3; i++) {
        claim_one(0);
        assert_int_equal(crash_with(text, false, fixture.fence), i < 2 ? HF_OK : HF_DEAD);
    }
    assert_non_null(
        strstr(record(), "\"error\":\"killed by signal 9; it crashed 3 times"));
    assert_non_null(strstr(record(), "the end.\""));
    assert_true(strlen(record()) < HF_ERROR_MAX + 200);
}

static void a_crash_behind_a_new_checkpoint_is_the_first(void **state)
{
    static const char *const texts[] = {"1 row 1", "1 row 2", "1 row 3", "1 row 3"};
    (void)state;
    put("");
    for (size_t i = 0; i < HF_COUNT(texts); i++) {
        claim_one(0);
        report_checkpoint(texts[i]);
        assert_int_equal(crash(), HF_OK);
        assert_int_equal(crashes()[0], i < 3 ? '1' : '2');
    }
    claim_one(0);
    assert_int_equal(crash(), HF_DEAD);
}

#define TEST(name) HF_ADMIN_TEST(name, &fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_crash_is_no_attempt_and_the_job_keeps_its_place),
        TEST(a_crash_is_counted_once),
        TEST(a_lost_lock_refuses_it),
        TEST(a_job_to_cancel_ends_with_its_crash),
        TEST(a_crashed_job_does_not_expire),
        TEST(a_neighbour_loses_no_attempt_and_no_place),
        TEST(a_neighbour_for_the_third_time_runs_alone),
        TEST(what_timed_out_or_crashed_beside_others_runs_alone_once),
        TEST(a_job_that_is_started_again_runs_beside_others),
        TEST(a_job_that_waits_for_its_pool_is_not_refused),
        TEST(crashes_of_both_kinds_make_it_poison),
        TEST(a_long_error_keeps_its_beginning_and_its_end),
        TEST(a_crash_behind_a_new_checkpoint_is_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
