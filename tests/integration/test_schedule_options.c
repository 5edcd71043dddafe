/* test_schedule_options.c - the jobs of a schedule have the options of a job, and these
 * act as those of any other job. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "queue/schedule.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"
#include "tests/support/worker_fixture.h"

enum { HOUR_MS = 3600000 };

static hf_queue_fixture q;
static hf_worker_fixture worker;
static char detail[HF_DETAIL_SIZE];

static int up(void **state)
{
    (void)state;
    static const hf_fixture_options options = {.clock = true};
    hf_queue_fixture_start(&q, &options);
    q.admin = hf_queue_fixture_admin(&q);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_worker_fixture_end(&worker);
    hf_queue_fixture_stop(&q);
    return 0;
}

static hf_err try_put(hf_schedule schedule)
{
    schedule.size = sizeof schedule;
    schedule.id = "s";
    schedule.queue = "q";
    schedule.type = "t";
    schedule.every_ms = HOUR_MS;
    return hf_admin_schedule_put(q.admin, &schedule, detail);
}

static void put(hf_schedule schedule)
{
    if (try_put(schedule) != HF_OK)
        fail_msg("%s", detail);
}

static hf_schedule_info info(void)
{
    hf_schedule_info info = {HF_SCHEDULE_INFO_INIT};
    assert_int_equal(hf_admin_schedule(q.admin, "q", "s", &info, NULL, detail), HF_OK);
    return info;
}

/* A worker decides on a tick that has come: it makes this job, due then. */
static void tick(const char *job, int64_t due_ms)
{
    char text[512], next[24];
    hf_schedule_state state;
    hf_err err;
    int64_t now_ms = hf_queue_fixture_now(&q);
    (void)snprintf(text, sizeof text, "%s",
                   hf_fixture_command(&q.redis, "HGET hf:{q}:cron_state s"));
    assert_int_equal(hf_schedule_read_state(&state, (hf_bytes){text, strlen(text)}),
                     HF_OK);
    (void)snprintf(next, sizeof next, "%lld", (long long)(now_ms - 1));
    (void)hf_fixture_command(&q.redis, "ZADD hf:{q}:cron_next %s s", next);
    const hf_cron_tick one = {.id = {"s", 1},
                              .next = {next, strlen(next)},
                              .gen = state.gen,
                              .new_next_ms = now_ms + HOUR_MS,
                              .from_ms = now_ms,
                              .n = 1,
                              .ids = &job,
                              .ticks_ms = &now_ms,
                              .dues_ms = &due_ms};
    HF_QUEUE_FIXTURE_ASK(err, &q,
                         hf_op_cron_tick(q.client, &q.queue,
                                         &(hf_cron_tick_args){.ticks = &one, .n = 1},
                                         hf_queue_fixture_on_answer, &q));
    assert_int_equal(err, HF_OK);
}

static long long score(const char *key, const char *id)
{
    return hf_fixture_number(&q.redis, "ZSCORE hf:{q}:%s %s", key, id);
}

static void has(const char *record, const char *field)
{
    if (strstr(record, field) == NULL)
        fail_msg("no %s in %s", field, record);
}

static void a_tick_makes_a_job_with_the_options_of_its_schedule(void **state)
{
    char record[512];
    (void)state;
    put((hf_schedule){.priority = HF_PRIORITY_HIGH,
                      .expired = HF_EXPIRED_DEAD,
                      .max_attempts = 3,
                      .timeout_ms = 2000,
                      .keep_ms = HF_DELAY_MAX_MS,
                      .start_within_ms = 600000,
                      .on_dead = "t.died"});
    hf_schedule_info s = info();
    assert_int_equal(s.priority, HF_PRIORITY_HIGH);
    assert_int_equal(s.expired, HF_EXPIRED_DEAD);
    assert_int_equal(s.max_attempts, 3);
    assert_int_equal(s.timeout_ms, 2000);
    assert_int_equal(s.keep_ms, HF_DELAY_MAX_MS);
    assert_int_equal(s.start_within_ms, 600000);
    assert_string_equal(s.on_dead, "t.died");
    int64_t due = hf_queue_fixture_now(&q) + 30000;
    tick("one", due);
    assert_int_equal(score("schedule:h", "one"), due);
    assert_int_equal(score("expires", "one"), due + 600000);
    (void)snprintf(record, sizeof record, "%s",
                   hf_fixture_command(&q.redis, "HGET hf:{q}:jobs one"));
    has(record, "\"priority\":\"high\"");
    has(record, "\"expired\":\"dead\"");
    has(record, "\"max_attempts\":3");
    has(record, "\"timeout\":2000");
    has(record, "\"keep\":3155760000000");
    has(record, "\"start_within\":600000");
    has(record, "\"on_dead\":\"t.died\"");
    has(hf_fixture_command(&q.redis, "HGET hf:{q}:meta uses"), "l");
    has(hf_fixture_command(&q.redis, "HGET hf:{q}:meta uses"), "x");
}

static void its_priority_counts_at_once(void **state)
{
    (void)state;
    hf_queue_fixture_put(&q, "normal", "", 1);
    put((hf_schedule){.priority = HF_PRIORITY_LOW});
    tick("low", 1);
    put((hf_schedule){.priority = HF_PRIORITY_HIGH, .overlap = HF_OVERLAP_ALLOW});
    tick("high", 1);
    put((hf_schedule){.overlap = HF_OVERLAP_ALLOW});
    tick("plain", 2);
    assert_int_equal(hf_queue_fixture_claim(&q, "w", 4, 0), 4);
    assert_string_equal(q.jobs[0].id, "high");
    assert_string_equal(q.jobs[1].id, "normal");
    assert_string_equal(q.jobs[2].id, "plain");
    assert_string_equal(q.jobs[3].id, "low");
}

static void a_run_by_hand_has_them_as_well(void **state)
{
    char job[HF_ID_SIZE];
    (void)state;
    put((hf_schedule){.priority = HF_PRIORITY_LOW, .start_within_ms = 600000});
    assert_int_equal(hf_admin_schedule_run(q.admin, "q", "s", job, detail), HF_OK);
    assert_int_equal(score("expires", job) - score("schedule:l", job), 600000);
}

/* Redis's time goes on until the job has expired. */
static void pass(void)
{
    hf_fixture_clock_jump(&q.redis, 2000);
}

static void a_job_that_did_not_start_in_time_expires(void **state)
{
    (void)state;
    put((hf_schedule){.start_within_ms = 1000,
                      .expired = HF_EXPIRED_DEAD,
                      .on_dead = "t.died",
                      .priority = HF_PRIORITY_HIGH});
    tick("one", 1); /* its time begins now, not at a due time that is past */
    assert_int_equal(score("expires", "one") - score("schedule:h", "one"), 1000);
    pass();
    assert_int_equal(hf_queue_fixture_claim(&q, "w", 1, 0), 1);
    assert_string_equal(q.jobs[0].type, "t.died");
    assert_true(score("dead", "one") > 0);
    assert_int_equal(hf_queue_fixture_meta(&q, "expired"), 1);
}

static void an_expired_job_overlaps_nothing(void **state)
{
    (void)state;
    put((hf_schedule){.start_within_ms = 1000, .priority = HF_PRIORITY_LOW});
    tick("one", 1);
    tick("two", 1);
    assert_int_equal(info().skipped, 1); /* it waits at its level */
    pass();
    tick("three", 1);
    assert_int_equal(info().skipped, 1);
    assert_string_equal(info().job, "three");
    assert_int_equal(hf_queue_fixture_claim(&q, "w", 2, 0), 1);
    assert_string_equal(q.jobs[0].id, "three");
}

static void options_that_are_none_are_refused(void **state)
{
    static const struct {
        hf_schedule schedule;
        const char *why;
    } cases[] = {
        {{.priority = (hf_priority)7}, "schedule 's': expected a priority"},
        {{.keep_ms = -1}, "expected a keep_ms of 0..3155760000000, found -1"},
        {{.start_within_ms = HF_DELAY_MAX_MS + 1}, "expected a start_within_ms"},
        {{.expired = HF_EXPIRED_DEAD}, "HF_EXPIRED_DEAD only with start_within_ms"},
        {{.on_dead = "a b"}, "expected as its on_dead"},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        detail[0] = '\0';
        assert_int_equal(try_put(cases[i].schedule), HF_INVALID);
        has(detail, cases[i].why);
    }
    assert_int_equal(hf_fixture_number(&q.redis, "EXISTS hf:{q}:cron"), 0);
}

/* Another program writes a schedule with these options of its jobs. */
static hf_err put_text(const char *options)
{
    char value[256];
    hf_err err;
    (void)snprintf(value, sizeof value,
                   "{\"every\":3600000,\"job\":{\"type\":\"t\"%s}}\n", options);
    const hf_cron_put_args args = {
        .id = "s", .value = {value, strlen(value)}, .next_ms = 1, .file = ""};
    HF_QUEUE_FIXTURE_ASK(
        err, &q,
        hf_op_cron_put(q.client, &q.queue, &args, hf_queue_fixture_on_answer, &q));
    return err;
}

static void the_script_refuses_them_as_well(void **state)
{
    static const struct {
        const char *options, *why;
    } cases[] = {
        {",\"priority\":\"normal\"", "as its priority high or low"},
        {",\"start_within\":0", "as its start_within a whole number of ms"},
        {",\"on_dead\":\"a b\"", "as its on_dead a type"},
        {",\"unique\":\"k\"", "no unique keys of its jobs: `overlap` keeps them apart"},
        {",\"unique_for\":5", "no unique keys of its jobs: `overlap` keeps them apart"},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        assert_int_not_equal(put_text(cases[i].options), HF_OK);
        has(q.detail, "ERR holdfast: schedule: expected ");
        has(q.detail, cases[i].why);
    }
    assert_int_equal(hf_fixture_number(&q.redis, "EXISTS hf:{q}:cron"), 0);
    assert_int_equal(put_text(",\"priority\":\"low\",\"keep\":\"x\""), HF_OK);
    assert_int_equal(info().priority, HF_PRIORITY_LOW);
    assert_int_equal(info().keep_ms, 0); /* it is no number */
}

static void a_worker_keeps_the_done_jobs_of_its_schedule(void **state)
{
    const hf_schedule file = {HF_SCHEDULE_INIT,
                              .id = "s",
                              .queue = "q",
                              .every_ms = 100,
                              .type = "t",
                              .payload = "ok",
                              .payload_len = 2,
                              .limit = 3,
                              .keep_ms = HOUR_MS,
                              .missed = HF_MISSED_ALL,
                              .overlap = HF_OVERLAP_ALLOW,
                              .priority = HF_PRIORITY_HIGH};
    hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .lease_ms = 5000, .schedules = &file,
                           .n_schedules = 1};
    (void)state;
    hf_worker_fixture_start(&worker, q.redis.url, &opts, 0);
    EVENTUALLY(10000, hf_fixture_number(&q.redis, "ZCARD hf:{q}:done") == 3);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_tick_makes_a_job_with_the_options_of_its_schedule),
        TEST(its_priority_counts_at_once),
        TEST(a_run_by_hand_has_them_as_well),
        TEST(a_job_that_did_not_start_in_time_expires),
        TEST(an_expired_job_overlaps_nothing),
        TEST(options_that_are_none_are_refused),
        TEST(the_script_refuses_them_as_well),
        TEST(a_worker_keeps_the_done_jobs_of_its_schedule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
