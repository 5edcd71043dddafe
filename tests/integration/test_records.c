/* test_records.c - the failed attempts of a job, as they are kept in its record; and
 * records of other producers at which a script could fail when it rewrites their line:
 * the job moves, and its neighbours too. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"

static hf_queue_fixture fixture;
static char detail[HF_DETAIL_SIZE];

/* ---- failed attempts ---- */

static void must(hf_err err)
{
    if (err != HF_OK)
        fail_msg("%s: %s", hf_err_name(err), detail);
}

static void fail_once(hf_verdict_op op, const char *worker, int64_t ran_ms,
                      const char *error)
{
    const hf_verdict_args args = {
        .worker = worker, .dead_max = 10, .dead_age_ms = 1000000};
    const hf_verdict_item item = {.id = "one",
                                  .counts = true,
                                  .error = {error, strlen(error)},
                                  .reason = "handler",
                                  .ran_ms = ran_ms};
    assert_int_equal(hf_queue_fixture_claim(&fixture, worker, 1, 0), 1);
    must(hf_queue_fixture_verdict(&fixture, op, &args, &item));
}

static hf_job_info look(void)
{
    hf_job_info info = {HF_JOB_INFO_INIT};
    must(hf_admin_job(fixture.admin, "q", "one", &info, NULL, detail));
    return info;
}

static void each_tells_when_where_how_long_and_why(void **state)
{
    (void)state;
    must(hf_queue_fixture_enqueue(&fixture, "one", 0));
    assert_int_equal(look().n_history, 0);
    fail_once(HF_OP_RETRY, "w1", 12, "it broke");
    fail_once(HF_OP_BURY, "w2", 7, "for good");
    hf_job_info info = look();
    assert_int_equal(info.state, HF_STATE_DEAD);
    assert_int_equal(info.attempts, 2);
    assert_int_equal(info.n_history, 2);
    assert_string_equal(info.history[0].worker, "w1");
    assert_string_equal(info.history[0].error, "it broke");
    assert_int_equal(info.history[0].ran_ms, 12);
    assert_string_equal(info.history[1].worker, "w2");
    assert_string_equal(info.history[1].error, "for good");
    assert_int_equal(info.history[1].ended_ms, info.due_ms);
    assert_true(info.history[0].ended_ms <= info.history[1].ended_ms);
}

static void ten_are_kept_with_256_bytes_of_each_error(void **state)
{
    char error[300], word[16];
    (void)state;
    must(hf_queue_fixture_enqueue(&fixture, "one", 0));
    for (int i = 0; i < 12; i++) {
        (void)snprintf(word, sizeof word, "%d", i);
        fail_once(HF_OP_RETRY, "w", i, word);
    }
    hf_job_info info = look();
    assert_int_equal(info.attempts, 12);
    assert_int_equal(info.n_history, HF_ATTEMPTS_KEPT);
    assert_string_equal(info.history[0].error, "2");
    assert_string_equal(info.history[9].error, "11");
    /* The 256th byte from the end would be in the middle of a character. */
    memset(error, 'x', sizeof error);
    memcpy(error + sizeof error - 258, "\xc3\xa4\n", 3);
    error[sizeof error - 1] = '\0';
    fail_once(HF_OP_RETRY, "w", 1, error);
    info = look();
    assert_int_equal(strlen(info.history[9].error), 255);
    assert_int_equal(info.history[9].error[0], '\n');
    assert_string_equal(info.type, "t");
}

/* It names what happened in its last line. */
static void the_end_of_a_trace_is_kept(void **state)
{
    char trace[1500] = "Traceback (most recent call last):\n";
    (void)state;
    must(hf_queue_fixture_enqueue(&fixture, "one", 0));
    size_t n = strlen(trace);
    memset(trace + n, ' ', 600);
    (void)snprintf(trace + n + 600, sizeof trace - n - 600,
                   "\nValueError: no such user\n");
    fail_once(HF_OP_RETRY, "w", 1, trace);
    hf_job_info info = look();
    assert_non_null(strstr(info.history[0].error, "\nValueError: no such user"));
    assert_true(strlen(info.history[0].error) <= HF_ATTEMPT_ERROR_MAX);
    /* A line that has no room itself: it begins with the name, and its end is there. */
    (void)snprintf(trace + n, sizeof trace - n, "\nKeyError: %0600d at the end", 0);
    fail_once(HF_OP_RETRY, "w", 1, trace);
    info = look();
    assert_int_equal(strlen(info.history[1].error), HF_ATTEMPT_ERROR_MAX);
    assert_memory_equal(info.history[1].error, "KeyError: 000", 13);
    assert_non_null(strstr(info.history[1].error, "...000"));
    assert_non_null(strstr(info.history[1].error, "00 at the end"));
}

static void a_dead_job_that_is_retried_begins_anew(void **state)
{
    (void)state;
    must(hf_queue_fixture_enqueue(&fixture, "one", 0));
    fail_once(HF_OP_BURY, "w", 1, "x");
    must(hf_admin_retry(fixture.admin, "q", "one", detail));
    assert_int_equal(look().n_history, 0);
    assert_int_equal(look().attempts, 0);
}

/* Another program's field of this name is no reason to lose the job. */
static void a_field_of_another_kind_is_replaced(void **state)
{
    static const char record[] = "{\"type\":\"t\",\"created\":1,\"history\":\"mine\"}\nx";
    const hf_enqueue_args args = {.producer = ""};
    const hf_enqueue_item item = {.id = "one", .record = {record, sizeof record - 1}};
    (void)state;
    must(hf_queue_fixture_enqueue_items(&fixture, &args, &item, 1));
    fail_once(HF_OP_RETRY, "w", 1, "x");
    assert_int_equal(look().n_history, 1);
}

/* ---- odd records ---- */

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
        TEST(each_tells_when_where_how_long_and_why),
        TEST(ten_are_kept_with_256_bytes_of_each_error),
        TEST(the_end_of_a_trace_is_kept),
        TEST(a_dead_job_that_is_retried_begins_anew),
        TEST(a_field_of_another_kind_is_replaced),
        TEST(they_die),
        TEST(they_are_tried_again),
        TEST(they_are_put_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
