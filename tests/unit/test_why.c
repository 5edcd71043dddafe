/* What keeps a job: which reasons hold, in the order of their weight. And the small
 * readers beside it: a holder's id, a rate. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/common/rate.h"
#include "seen/holder.h"
#include "seen/reasons.h"
#include "tests/support/eventually.h"
#include "tests/support/markdown.h"

enum { NOW_MS = 1000000, POISON = 3 };

/* A job that is due, with a free worker for it. */
static hf_job_why fresh(void)
{
    static hf_job_info job;
    job = (hf_job_info){HF_JOB_INFO_INIT, .id = "j", .queue = "q",
                        .state = HF_STATE_READY, .due_ms = NOW_MS - 10};
    return (hf_job_why){HF_JOB_WHY_INIT,       .job = &job, .workers = 2,
                        .workers_for_type = 1, .slots = 4,  .busy = 3,
                        .now_ms = NOW_MS};
}

static void assert_reasons(const hf_job_why *why, const char *wanted)
{
    hf_reason reasons[HF_REASONS];
    char got[256] = "";
    size_t n = hf_why_reasons(why, POISON, reasons);
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(got);
        snprintf(got + len, sizeof got - len, "%s%s", i == 0 ? "" : " ",
                 hf_reason_word(reasons[i]));
    }
    assert_string_equal(got, wanted);
}

static void nothing_keeps_a_due_job_with_a_free_worker(void **state)
{
    (void)state;
    hf_job_why why = fresh();
    assert_reasons(&why, "none");
}

static void all_that_keeps_a_due_job_is_told_the_weightiest_first(void **state)
{
    (void)state;
    hf_job_why why = fresh();
    why.before = 7;
    assert_reasons(&why, "behind");
    why.busy = 4;
    assert_reasons(&why, "busy behind");
    why.next_token_ms = NOW_MS + 1;
    assert_reasons(&why, "rate busy behind");
    why.max_running = 5;
    why.running = 5;
    assert_reasons(&why, "max_running rate busy behind");
    why.running = 4;
    assert_reasons(&why, "rate busy behind");
    why.locked_until_ms = NOW_MS + 1;
    assert_reasons(&why, "locked rate busy behind");
    why.workers_for_type = 0;
    why.slots = why.busy = 0;
    assert_reasons(&why, "no_worker_for_type locked rate behind");
    why.workers = 0;
    why.paused = true;
    assert_reasons(&why, "paused no_worker locked rate behind");
}

static void a_job_whose_time_is_to_come_waits_for_that_first(void **state)
{
    (void)state;
    hf_job_why why = fresh();
    why.job->due_ms = NOW_MS + 1;
    why.job->state = HF_STATE_DELAYED;
    assert_reasons(&why, "delayed");
    /* What comes and goes says nothing about then; what stays does. */
    why.before = why.max_running = why.running = 1;
    why.next_token_ms = NOW_MS + 5;
    why.busy = why.slots;
    assert_reasons(&why, "delayed");
    why.paused = true;
    assert_reasons(&why, "delayed paused");
    why.job->attempts = 1;
    why.job->state = HF_STATE_RETRY;
    why.workers = why.workers_for_type = 0;
    assert_reasons(&why, "retry paused no_worker");
}

/* It is due at once, again and again. */
static void a_job_without_a_handler_waits_for_that_first(void **state)
{
    (void)state;
    hf_job_why why = fresh();
    why.job->due_ms = NOW_MS + 1;
    why.job->state = HF_STATE_DELAYED;
    why.job->refused_ms = NOW_MS - 5;
    assert_reasons(&why, "delayed"); /* one has come */
    why.workers_for_type = 0;
    assert_reasons(&why, "no_worker_for_type delayed");
    why.job->attempts = 1;
    why.job->state = HF_STATE_RETRY;
    why.paused = true;
    assert_reasons(&why, "no_worker_for_type retry paused");
    why.workers = 0;
    assert_reasons(&why, "retry paused no_worker");
}

static void a_running_job_has_a_holder_and_its_limits_do_not_matter(void **state)
{
    (void)state;
    hf_job_why why = fresh();
    why.job->state = HF_STATE_RUNNING;
    why.job->due_ms = NOW_MS + 1;
    why.paused = true;
    why.max_running = why.running = 1;
    why.workers = why.workers_for_type = 0;
    assert_reasons(&why, "running");
    assert_false(hf_why_lease_is_over(&why));
    why.cancelling = true;
    assert_reasons(&why, "cancelling running");
}

static void a_job_whose_lease_is_over_waits_for_a_takeover(void **state)
{
    (void)state;
    hf_job_why why = fresh();
    why.job->state = HF_STATE_RUNNING;
    assert_true(hf_why_lease_is_over(&why));
    assert_reasons(&why, "running");
    why.max_running = why.running = 1; /* a takeover is free */
    assert_reasons(&why, "running");
    why.paused = true;
    why.busy = why.slots;
    assert_reasons(&why, "running paused busy");
}

static void a_dead_job_is_dead_and_a_suspect_runs_alone(void **state)
{
    (void)state;
    hf_job_why why = fresh();
    why.job->crashes = POISON - 2;
    assert_reasons(&why, "none crashed");
    why.job->crashes = POISON - 1;
    assert_reasons(&why, "none suspect");
    why.paused = true;
    assert_reasons(&why, "paused suspect");
    why.job->state = HF_STATE_DEAD;
    assert_reasons(&why, "dead");
}

static void every_reason_is_explained(void **state)
{
    (void)state;
    char row[64];
    char *text = hf_md_read(HF_TEST_SOURCE "/docs/diagnose.md");
    for (int reason = 0; reason < HF_REASONS; reason++) {
        const char *word = hf_reason_word((hf_reason)reason);
        snprintf(row, sizeof row, "\n| `%s` |", word);
        if (strstr(text, row) == NULL)
            fail_msg("docs/diagnose.md does not explain the reason '%s'", word);
    }
    free(text);
}

static void a_holders_id_is_taken_apart(void **state)
{
    (void)state;
    static const struct {
        const char *id, *text;
    } cases[] = {
        {"web1-4711-00c0ffee00c0ffee", "web1 pid 4711"},
        {"a-b-12-3-00c0ffee00c0ffee", "a-b-12 pid 3"},
        {"web1-x-00c0ffee00c0ffee", "web1-x-00c0ffee00c0ffee"},
        {"web1", "web1"},
        {"-7-00c0ffee00c0ffee", "-7-00c0ffee00c0ffee"},
        {"", ""},
    };
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        char text[HF_HOLDER_TEXT];
        hf_holder_text(cases[i].id, text);
        assert_string_equal(text, cases[i].text);
    }
}

static void a_rate_has_a_count_and_a_time(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t count, per_ms; /* -1: none */
    } cases[] = {
        {"100/1s", 100, 1000}, {"50/s", 50, 1000},   {"5/250ms", 5, 250},
        {"7/h", 7, 3600000},   {"0", 0, 0},          {"1000000/1d", 1000000, 86400000},
        {"5", -1, 0},          {"5/", -1, 0},        {"5/10", -1, 0},
        {"/s", -1, 0},         {"-1/s", -1, 0},      {"1.5/s", -1, 0},
        {"5/0s", -1, 0},       {"5/25h", -1, 0},     {"1000001/s", -1, 0},
        {"5/-1s", -1, 0},      {"5/s/s", -1, 0},     {"5 /s", -1, 0},
        {"", -1, 0},           {"5/seconds", -1, 0},
    };
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        int64_t count = -1, per_ms = -1;
        bool good = hf_parse_rate(cases[i].text, &count, &per_ms);
        if (good != (cases[i].count >= 0))
            fail_msg("'%s' is %sa rate", cases[i].text, good ? "" : "no ");
        if (good) {
            assert_int_equal(count, cases[i].count);
            assert_int_equal(per_ms, cases[i].per_ms);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_keeps_a_due_job_with_a_free_worker),
        cmocka_unit_test(all_that_keeps_a_due_job_is_told_the_weightiest_first),
        cmocka_unit_test(a_job_whose_time_is_to_come_waits_for_that_first),
        cmocka_unit_test(a_job_without_a_handler_waits_for_that_first),
        cmocka_unit_test(a_running_job_has_a_holder_and_its_limits_do_not_matter),
        cmocka_unit_test(a_job_whose_lease_is_over_waits_for_a_takeover),
        cmocka_unit_test(a_dead_job_is_dead_and_a_suspect_runs_alone),
        cmocka_unit_test(every_reason_is_explained),
        cmocka_unit_test(a_holders_id_is_taken_apart),
        cmocka_unit_test(a_rate_has_a_count_and_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
