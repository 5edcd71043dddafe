/* test_job_edit.c - a waiting job gets another payload, another time, another priority;
 * any other job stays as it is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"

static hf_queue_fixture fixture;
static char detail[HF_DETAIL_SIZE];

#define HURRIED "{\"type\":\"t\",\"start_within\":60000}\nold"

static void put(const char *id, const char *record, int64_t due_ms)
{
    const hf_enqueue_args args = {.producer = "", .options = true};
    const hf_enqueue_item item = {id, due_ms, {record, strlen(record)}};
    assert_int_equal(hf_queue_fixture_enqueue_items(&fixture, &args, &item, 1), HF_OK);
}

static hf_err edit(const char *id, const hf_job_edit *change)
{
    return hf_admin_edit(fixture.admin, "q", id, change, detail);
}

static long long score(const char *set, const char *id)
{
    return hf_fixture_number(&fixture.redis, "ZSCORE hf:{q}:%s %s", set, id);
}

static void claim_one(void)
{
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
}

static void what_is_not_named_stays(void **state)
{
    (void)state;
    put("one", "{\"type\":\"t\",\"priority\":\"high\",\"max_attempts\":7}\nold", 5);
    assert_int_equal(edit("one", &(hf_job_edit){HF_JOB_EDIT_INIT}), HF_OK);
    assert_int_equal(edit("one", &(hf_job_edit){HF_JOB_EDIT_INIT, .payload = "new\n",
                                                .payload_len = 4}),
                     HF_OK);
    assert_int_equal(score("schedule:h", "one"), 5);
    hf_job_info info = {HF_JOB_INFO_INIT};
    assert_int_equal(hf_admin_job(fixture.admin, "q", "one", &info, NULL, detail), HF_OK);
    assert_int_equal(info.max_attempts, 7);
    claim_one();
    assert_string_equal(fixture.jobs[0].payload, "new\n");
}

static void its_priority_moves_it(void **state)
{
    static const struct {
        hf_priority priority;
        const char *set;
    } moves[] = {{HF_PRIORITY_LOW, "schedule:l"},
                 {HF_PRIORITY_HIGH, "schedule:h"},
                 {HF_PRIORITY_NORMAL, "schedule"},
                 {HF_PRIORITY_HIGH, "schedule:h"}};
    (void)state;
    put("other", "{\"type\":\"t\"}\n", 1);
    put("one", "{\"type\":\"t\"}\n", 5);
    for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++) {
        const hf_job_edit change = {HF_JOB_EDIT_INIT, .set_priority = true,
                                    .priority = moves[i].priority};
        assert_int_equal(edit("one", &change), HF_OK);
        assert_int_equal(score(moves[i].set, "one"), 5);
        hf_queue_fixture_audit(&fixture, false); /* and it is in no other set */
    }
    claim_one();
    assert_string_equal(fixture.jobs[0].id, "one");
    const hf_verdict_args args = {.worker = "w"};
    const hf_verdict_item item = {.id = "one", .due_ms = 5};
    assert_int_equal(hf_queue_fixture_verdict(&fixture, HF_OP_RELEASE, &args, &item),
                     HF_OK);
    assert_int_equal(score("schedule:h", "one"), 5);
}

static void its_time_moves_the_wake_up(void **state)
{
    (void)state;
    put("one", "{\"type\":\"t\"}\n", -600000);
    const hf_job_edit sooner = {HF_JOB_EDIT_INIT, .set_due = true, .delay_ms = 60000};
    assert_int_equal(edit("one", &sooner), HF_OK);
    long long due = score("schedule", "one");
    assert_in_range(due - hf_queue_fixture_now(&fixture), 55000, 60000);
    assert_int_equal(score("wake", "baton"), due);
    const hf_job_edit at = {HF_JOB_EDIT_INIT, .set_due = true, .at_ms = 253402300799999};
    assert_int_equal(edit("one", &at), HF_OK);
    assert_int_equal(score("schedule", "one"), 253402300799999);
    const hf_job_edit now = {HF_JOB_EDIT_INIT, .set_due = true};
    assert_int_equal(edit("one", &now), HF_OK);
    assert_int_equal(score("wake", "baton"), 0);
    claim_one();
}

static void its_expiry_follows_its_time(void **state)
{
    (void)state;
    put("one", HURRIED, 0);
    const hf_job_edit later = {HF_JOB_EDIT_INIT, .set_due = true, .delay_ms = 100000};
    assert_int_equal(edit("one", &later), HF_OK);
    assert_int_equal(score("expires", "one") - score("schedule", "one"), 60000);
    const hf_job_edit text = {HF_JOB_EDIT_INIT, .payload = "", .payload_len = 0};
    long long by = score("expires", "one");
    assert_int_equal(edit("one", &text), HF_OK);
    assert_int_equal(score("expires", "one"), by);
    const hf_job_edit now = {HF_JOB_EDIT_INIT, .set_due = true};
    assert_int_equal(edit("one", &now), HF_OK);
    claim_one();
    assert_int_equal(fixture.jobs[0].payload_len, 0);
    /* What has started does not begin to expire again. */
    const hf_verdict_args args = {.worker = "w"};
    const hf_verdict_item item = {.id = "one", .error = {"x", 1}, .due_ms = 60000};
    assert_int_equal(hf_queue_fixture_verdict(&fixture, HF_OP_RETRY, &args, &item),
                     HF_OK);
    assert_int_equal(edit("one", &now), HF_OK);
    assert_int_equal(score("expires", "one"), -1);
    claim_one();
}

static void a_large_payload_is_weighed(void **state)
{
    enum { BIG = 5 << 20 };
    char *big = calloc(1, BIG);
    const hf_job_edit change = {HF_JOB_EDIT_INIT, .payload = big, .payload_len = BIG};
    (void)state;
    assert_non_null(big);
    put("one", "{\"type\":\"t\"}\n", 1);
    put("two", "{\"type\":\"t\"}\n", 2);
    assert_int_equal(edit("one", &change), HF_OK);
    assert_int_equal(edit("two", &change), HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 2, 0), 1);
    free(big);
}

static void only_a_waiting_job_is_changed(void **state)
{
    const hf_job_edit change = {HF_JOB_EDIT_INIT, .payload = "new", .payload_len = 3};
    (void)state;
    put("one", "{\"type\":\"t\"}\nold", 0);
    claim_one();
    assert_int_equal(edit("one", &change), HF_RUNNING);
    const hf_verdict_args args = {.worker = "w", .dead_max = 10, .dead_age_ms = 100000};
    const hf_verdict_item item = {.id = "one", .error = {"x", 1}, .reason = "handler"};
    assert_int_equal(hf_queue_fixture_verdict(&fixture, HF_OP_BURY, &args, &item), HF_OK);
    assert_int_equal(edit("one", &change), HF_DEAD);
    assert_int_equal(edit("none", &change), HF_GONE);
    put("late", "{\"type\":\"t\",\"start_within\":1}\n", 0);
    hf_test_pause_ms(5);
    assert_int_equal(edit("late", &change), HF_GONE);
    assert_int_equal(hf_admin_retry(fixture.admin, "q", "one", detail), HF_OK);
    claim_one();
    assert_string_equal(fixture.jobs[0].payload, "old");
}

static void what_is_wrong_is_refused(void **state)
{
    (void)state;
    put("one", "{\"type\":\"t\"}\nold", 0);
    const hf_job_edit both = {HF_JOB_EDIT_INIT, .set_due = true, .delay_ms = 1,
                              .at_ms = 1};
    assert_int_equal(edit("one", &both), HF_INVALID);
    const hf_job_edit negative = {HF_JOB_EDIT_INIT, .set_due = true, .delay_ms = -1};
    assert_int_equal(edit("one", &negative), HF_INVALID);
    const hf_job_edit unset = {HF_JOB_EDIT_INIT, .delay_ms = 1};
    assert_int_equal(edit("one", &unset), HF_INVALID);
    const hf_job_edit level = {HF_JOB_EDIT_INIT, .set_priority = true,
                               .priority = (hf_priority)9};
    assert_int_equal(edit("one", &level), HF_INVALID);
    const hf_job_edit large = {HF_JOB_EDIT_INIT, .payload = "x",
                               .payload_len = (64 << 20) + 1};
    assert_int_equal(edit("one", &large), HF_TOOBIG);
}

#define TEST(name) HF_ADMIN_TEST(name, &fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_not_named_stays),    TEST(its_priority_moves_it),
        TEST(its_time_moves_the_wake_up), TEST(its_expiry_follows_its_time),
        TEST(a_large_payload_is_weighed), TEST(only_a_waiting_job_is_changed),
        TEST(what_is_wrong_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
