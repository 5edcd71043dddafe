/* test_schedules.c - schedules, as the scripts decide: by a command and of a file, and
 * after steps of Redis's clock. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "queue/schedule.h"
#include "queue_scripts.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"

static hf_queue_fixture q;

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
    hf_queue_fixture_stop(&q);
    return 0;
}

/* ---- by hand ---- */

/* What a worker sends: one job for its tick. */
static hf_err tick_with(const char *id, const char *gen, int64_t next_ms,
                        int64_t new_next_ms, const char *job, bool claims)
{
    char next[24];
    hf_err err;
    int64_t now_ms = hf_queue_fixture_now(&q);
    (void)snprintf(next, sizeof next, "%lld", (long long)next_ms);
    const hf_cron_tick one = {.id = {id, strlen(id)},
                              .next = {next, strlen(next)},
                              .gen = gen,
                              .new_next_ms = new_next_ms,
                              .from_ms = now_ms,
                              .n = 1,
                              .ids = &job,
                              .ticks_ms = &next_ms,
                              .dues_ms = &next_ms};
    HF_QUEUE_FIXTURE_ASK(
        err, &q,
        hf_op_cron_tick(q.client, &q.queue,
                        &(hf_cron_tick_args){.ticks = &one, .n = 1, .claims = claims},
                        hf_queue_fixture_on_answer, &q));
    return err;
}

static hf_err tick(const char *id, const char *gen, int64_t next_ms, int64_t new_next_ms,
                   const char *job)
{
    return tick_with(id, gen, next_ms, new_next_ms, job, false);
}

static void gen_of(const char *id, char out[32])
{
    char text[512];
    hf_schedule_state state;
    (void)snprintf(text, sizeof text, "%s",
                   hf_fixture_command(&q.redis, "HGET hf:{q}:cron_state %s", id));
    assert_int_equal(hf_schedule_read_state(&state, (hf_bytes){text, strlen(text)}),
                     HF_OK);
    (void)snprintf(out, 32, "%s", state.gen);
}

static void of_several_workers_one_decides_on_a_tick(void **state)
{
    char gen[32];
    (void)state;
    hf_schedule_fixture_put(
        &q, (hf_schedule){.id = "s", .every_ms = 3600000, .overlap = HF_OVERLAP_ALLOW});
    int64_t now = hf_queue_fixture_now(&q);
    hf_schedule_fixture_set_next(&q, "s", now - 10);
    gen_of("s", gen);
    assert_int_equal(tick("s", gen, now - 10, now + 3600000, "j1"), HF_OK);
    assert_int_equal(tick("s", gen, now - 10, now + 3600000, "j2"), HF_OK);
    assert_int_equal(tick("s", "1", now + 3600000, now + 7200000, "j3"), HF_OK);
    assert_int_equal(hf_schedule_fixture_enqueued(&q), 1);
    hf_schedule_info info = hf_schedule_fixture_info(&q, "s");
    assert_int_equal(info.accepted, 1);
    assert_string_equal(info.job, "j1");
    assert_int_equal(info.last_ms, now - 10);
    assert_int_equal(info.next_ms, now + 3600000);
}

static void a_schedule_that_was_changed_meanwhile_is_left_alone(void **state)
{
    char gen[32];
    (void)state;
    hf_schedule_fixture_put(&q, (hf_schedule){.id = "s", .every_ms = 3600000});
    gen_of("s", gen);
    int64_t next = hf_schedule_fixture_info(&q, "s").next_ms;
    hf_schedule_fixture_put(
        &q, (hf_schedule){
                .id = "s", .every_ms = 3600000, .payload = "new", .payload_len = 3});
    assert_int_equal(tick("s", gen, next, next + 3600000, "j1"), HF_OK);
    assert_int_equal(hf_schedule_fixture_enqueued(&q), 0);
}

static void overlap_with(hf_overlap overlap, long long jobs, long long skipped)
{
    char gen[32];
    hf_schedule_fixture_put(
        &q, (hf_schedule){.id = "s", .every_ms = 3600000, .overlap = overlap});
    gen_of("s", gen);
    int64_t now = hf_queue_fixture_now(&q);
    hf_schedule_fixture_set_next(&q, "s", now - 10);
    assert_int_equal(tick("s", gen, now - 10, now - 5, "j1"), HF_OK);
    assert_int_equal(tick("s", gen, now - 5, now + 3600000, "j2"), HF_OK);
    assert_int_equal(hf_schedule_fixture_enqueued(&q), jobs);
    assert_int_equal(hf_schedule_fixture_info(&q, "s").skipped, skipped);
}

static void a_tick_is_skipped_while_the_last_job_waits(void **state)
{
    (void)state;
    overlap_with(HF_OVERLAP_SKIP, 1, 1);
}

static void a_tick_may_make_a_second_job(void **state)
{
    (void)state;
    overlap_with(HF_OVERLAP_ALLOW, 2, 0);
}

static void a_tick_may_cancel_the_last_job(void **state)
{
    (void)state;
    overlap_with(HF_OVERLAP_CANCEL, 2, 0);
    assert_int_equal(hf_queue_fixture_meta(&q, "cancelled"), 1);
    assert_int_equal(hf_fixture_number(&q.redis, "ZCARD hf:{q}:schedule"), 1);
    char gen[32];
    gen_of("s", gen);
    assert_int_equal(hf_queue_fixture_claim(&q, "w", 1, 0), 1);
    int64_t now = hf_queue_fixture_now(&q);
    hf_schedule_fixture_set_next(&q, "s", now);
    assert_int_equal(tick("s", gen, now, now + 3600000, "j3"), HF_OK);
    assert_int_equal(hf_fixture_number(&q.redis, "HEXISTS hf:{q}:cancel j2"), 1);
}

static void a_dead_job_overlaps_nothing(void **state)
{
    char gen[32];
    (void)state;
    hf_schedule_fixture_put(&q, (hf_schedule){.id = "s", .every_ms = 3600000});
    gen_of("s", gen);
    int64_t now = hf_queue_fixture_now(&q);
    hf_schedule_fixture_set_next(&q, "s", now - 10);
    assert_int_equal(tick("s", gen, now - 10, now - 5, "j1"), HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&q, "w", 1, 0), 1);
    const hf_verdict_args args = {.worker = "w", .dead_max = 10, .dead_age_ms = 1000000};
    const hf_verdict_item item = {.id = "j1", .fence = q.fence, .reason = "handler"};
    assert_int_equal(hf_queue_fixture_verdict(&q, HF_OP_BURY, &args, &item), HF_OK);
    assert_int_equal(tick("s", gen, now - 5, now + 3600000, "j2"), HF_OK);
    assert_int_equal(hf_schedule_fixture_enqueued(&q), 2);
}

static long long baton(void)
{
    return hf_fixture_number(&q.redis, "ZSCORE hf:{q}:wake baton");
}

/* It comes for the job; the schedule's next tick is for whichever worker is free then. */
static void no_other_worker_is_woken_for_a_job_that_the_sender_takes(void **state)
{
    char gen[32];
    (void)state;
    hf_schedule_fixture_put(
        &q, (hf_schedule){.id = "s", .every_ms = 3600000, .overlap = HF_OVERLAP_ALLOW});
    gen_of("s", gen);
    int64_t now = hf_queue_fixture_now(&q);
    const int64_t next = now + 3600000;
    hf_schedule_fixture_set_next(&q, "s", now - 10);
    assert_int_equal(tick_with("s", gen, now - 10, now - 5, "j1", false), HF_OK);
    assert_int_equal(baton(), 0);
    assert_int_equal(hf_queue_fixture_claim(&q, "w", 1, 0), 1);
    (void)hf_fixture_command(&q.redis, "ZPOPMIN hf:{q}:wake");
    assert_int_equal(tick_with("s", gen, now - 5, next, "j2", true), HF_OK);
    assert_int_equal(hf_fixture_number(&q.redis, "ZCARD hf:{q}:wake"), 0);
    hf_claim_args args = hf_queue_fixture_claim_args("w", 1, 0);
    args.due = true;
    assert_int_equal(hf_queue_fixture_claim_with(&q, &args), HF_OK);
    assert_int_equal(q.n_jobs, 1);
    assert_int_equal(baton(), next);
}

static void a_limit_counts_the_jobs_that_were_accepted(void **state)
{
    char gen[32];
    (void)state;
    hf_schedule_fixture_put(
        &q, (hf_schedule){
                .id = "s", .every_ms = 3600000, .limit = 2, .overlap = HF_OVERLAP_ALLOW});
    gen_of("s", gen);
    int64_t now = hf_queue_fixture_now(&q);
    hf_schedule_fixture_set_next(&q, "s", now - 10);
    assert_int_equal(tick("s", gen, now - 10, now - 8, "j1"), HF_OK);
    assert_int_equal(tick("s", gen, now - 8, now - 6, "j2"), HF_OK);
    assert_int_equal(tick("s", gen, now - 6, now - 4, "j3"), HF_OK);
    assert_int_equal(hf_schedule_fixture_enqueued(&q), 2);
    assert_int_equal(hf_schedule_fixture_info(&q, "s").next_ms, 0);
}

static void a_claim_tells_of_due_ticks_and_a_baton_waits_for_the_next(void **state)
{
    (void)state;
    hf_schedule_fixture_put(&q, (hf_schedule){.id = "s", .every_ms = 3600000});
    int64_t next = hf_schedule_fixture_info(&q, "s").next_ms;
    assert_int_equal(hf_fixture_number(&q.redis, "ZSCORE hf:{q}:wake baton"), next);
    int64_t now = hf_queue_fixture_now(&q);
    hf_schedule_fixture_set_next(&q, "s", now - 10);
    assert_int_equal(hf_queue_fixture_claim(&q, "w", 1, 0), 0);
    /* One worker is told. Another one comes a second later, if that one dies. */
    int64_t by = hf_queue_fixture_meta(&q, "cron_by");
    assert_in_range(by, now + 900, now + 2000);
    assert_int_equal(q.next_ms, by);
}

static void a_paused_schedule_drops_its_ticks(void **state)
{
    (void)state;
    hf_schedule_fixture_put(&q, (hf_schedule){.id = "s", .every_ms = 3600000});
    assert_int_equal(hf_admin_schedule_pause(q.admin, "q", "s", true, NULL), HF_OK);
    assert_int_equal(hf_schedule_fixture_info(&q, "s").next_ms, 0);
    assert_true(hf_schedule_fixture_info(&q, "s").paused);
    hf_fixture_clock_jump(&q.redis, 5 * 3600000);
    assert_int_equal(hf_admin_schedule_pause(q.admin, "q", "s", false, NULL), HF_OK);
    hf_schedule_info info = hf_schedule_fixture_info(&q, "s");
    assert_false(info.paused);
    assert_true(info.next_ms > info.now_ms);
    assert_int_equal(hf_admin_schedule_pause(q.admin, "q", "none", true, NULL), HF_GONE);
    assert_int_equal(hf_admin_schedule_pause(q.admin, "q", "none", false, NULL), HF_GONE);
}

static void a_run_by_hand_has_no_part_in_the_schedule(void **state)
{
    char job[HF_ID_SIZE];
    (void)state;
    hf_schedule_fixture_put(
        &q, (hf_schedule){
                .id = "s", .every_ms = 3600000, .payload = "hello", .payload_len = 5});
    int64_t next = hf_schedule_fixture_info(&q, "s").next_ms;
    assert_int_equal(hf_admin_schedule_run(q.admin, "q", "s", job, NULL), HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&q, "w", 1, 0), 1);
    assert_string_equal(q.jobs[0].id, job);
    assert_string_equal(q.jobs[0].payload, "hello");
    hf_schedule_info info = hf_schedule_fixture_info(&q, "s");
    assert_int_equal(info.accepted, 0);
    assert_string_equal(info.job, "");
    assert_int_equal(info.next_ms, next);
    assert_int_equal(hf_admin_schedule_run(q.admin, "q", "none", job, NULL), HF_GONE);
}

/* The answer was lost, and the job is done before the request comes again. */
static void a_run_by_hand_that_is_sent_twice_makes_one_job(void **state)
{
    char job[HF_ID_SIZE];
    (void)state;
    hf_schedule_fixture_put(&q, (hf_schedule){.id = "s", .every_ms = 3600000});
    assert_int_equal(hf_admin_schedule_run(q.admin, "q", "s", job, NULL), HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&q, "w", 1, 0), 1);
    assert_int_equal(hf_queue_fixture_complete(&q, "w", job, NULL), HF_OK);
    (void)hf_fixture_command(&q.redis, "EVALSHA %s 1 hf:{q}: 0 s run %s",
                             hf_lua_queue_cron_change.sha1, job);
    assert_int_equal(hf_schedule_fixture_enqueued(&q), 1);
    assert_int_equal(hf_admin_schedule_run(q.admin, "q", "s", job, NULL), HF_OK);
    assert_int_equal(hf_schedule_fixture_enqueued(&q), 2);
}

static void a_purge_leaves_schedules_and_removal_leaves_nothing(void **state)
{
    size_t n;
    (void)state;
    hf_schedule_fixture_put(&q, (hf_schedule){.id = "s", .every_ms = 3600000});
    assert_int_equal(hf_admin_purge(q.admin, "q", NULL, NULL, &n, NULL), HF_OK);
    assert_int_equal(hf_schedule_fixture_info(&q, "s").accepted, 0);
    assert_int_equal(hf_admin_schedule_remove(q.admin, "q", "s", NULL), HF_OK);
    assert_int_equal(hf_admin_schedule_remove(q.admin, "q", "s", NULL), HF_GONE);
    assert_int_equal(hf_fixture_number(&q.redis, "EXISTS hf:{q}:cron hf:{q}:cron_state "
                                                 "hf:{q}:cron_next hf:{q}:cron_named "
                                                 "hf:{q}:wake"),
                     0);
    assert_string_equal(hf_fixture_command(&q.redis, "HGET hf:{q}:meta uses"), "(nil)");
}

static void what_is_no_schedule_is_refused_with_one_line(void **state)
{
    static const struct {
        hf_schedule schedule;
        const char *why;
    } cases[] = {
        {{.id = "a b", .every_ms = 1000, .type = "t"}, "expected an id"},
        {{.id = "s", .every_ms = 1000, .type = "*"}, "expected a type"},
        {{.id = "s", .every_ms = 99, .type = "t"}, "expected a period of 100 ms"},
        {{.id = "s", .type = "t"}, "expected either cron or every, found none"},
        {{.id = "s", .cron = "* * * * *", .every_ms = 1000, .type = "t"}, "found both"},
        {{.id = "s", .cron = "61 * * * *", .type = "t"},
         "minute: expected 0-59, found '61'"},
        {{.id = "s", .cron = "0 0 30 2 *", .type = "t"}, "a day that its months have"},
        {{.id = "s", .cron = "* * * * *", .tz = "Mars/X", .type = "t"}, "found 'Mars/X'"},
        {{.id = "s", .every_ms = 1000, .tz = "UTC", .type = "t"},
         "a tz only beside cron"},
        {{.id = "s", .every_ms = 1000, .jitter_ms = -1, .type = "t"}, "a jitter"},
        {{.id = "s", .every_ms = 1000, .start_ms = 2000, .end_ms = 1000, .type = "t"},
         "an end after its start"},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        char detail[HF_DETAIL_SIZE] = "";
        hf_schedule schedule = cases[i].schedule;
        schedule.size = sizeof schedule;
        schedule.queue = "q";
        assert_int_equal(hf_admin_schedule_put(q.admin, &schedule, detail), HF_INVALID);
        if (strstr(detail, cases[i].why) == NULL)
            fail_msg("expected \"%s\", found \"%s\"", cases[i].why, detail);
    }
    assert_int_equal(hf_fixture_number(&q.redis, "EXISTS hf:{q}:cron"), 0);
}

/* ---- of files ---- */

static hf_err put_file(const char *how, const char *payload, int64_t rev)
{
    char value[128];
    hf_err err;
    (void)snprintf(value, sizeof value,
                   "{\"every\":3600000,\"job\":{\"type\":\"t\"}}\n%s", payload);
    const hf_cron_put_args args = {.id = "s",
                                   .value = {value, strlen(value)},
                                   .next_ms = 4000000000000,
                                   .file = how,
                                   .rev = rev};
    HF_QUEUE_FIXTURE_ASK(
        err, &q,
        hf_op_cron_put(q.client, &q.queue, &args, hf_queue_fixture_on_answer, &q));
    return err;
}

static void assert_payload(const char *expected)
{
    hf_schedule_info info = {HF_SCHEDULE_INFO_INIT};
    void *payload = NULL;
    assert_int_equal(hf_admin_schedule(q.admin, "q", "s", &info, &payload, NULL), HF_OK);
    assert_string_equal(payload, expected);
    free(payload);
}

static void a_file_changes_its_schedule_only_when_its_text_changes(void **state)
{
    (void)state;
    assert_int_equal(put_file("start", "one", 0), HF_OK);
    assert_payload("one");
    hf_schedule_fixture_put(
        &q, (hf_schedule){
                .id = "s", .every_ms = 3600000, .payload = "hand", .payload_len = 4});
    assert_int_equal(put_file("start", "one", 0), HF_OK);
    assert_payload("hand");
    assert_int_equal(put_file("start", "two", 0), HF_OK);
    assert_payload("two");
    assert_int_equal(put_file("keep", "one", 0), HF_OK); /* an older worker lives on */
    assert_payload("two");
    assert_int_equal(put_file("start", "three", 5), HF_OK);
    assert_int_equal(put_file("start", "four", 4), HF_OK);
    assert_payload("three");
    assert_int_equal(put_file("start", "three", 7), HF_OK); /* the same, but newer */
    assert_int_equal(put_file("start", "four", 6), HF_OK);
    assert_payload("three");
    /* What a command has removed stays away until the file changes. */
    assert_int_equal(hf_admin_schedule_remove(q.admin, "q", "s", NULL), HF_OK);
    assert_int_equal(put_file("start", "three", 7), HF_OK);
    assert_int_equal(put_file("keep", "three", 7), HF_OK);
    assert_int_equal(hf_fixture_number(&q.redis, "HEXISTS hf:{q}:cron s"), 0);
    assert_int_equal(put_file("start", "five", 7), HF_OK);
    assert_payload("five");
}

/* A number is a part of the file: its author wants the schedule as it says. */
static void a_newer_file_takes_back_what_a_command_has_changed(void **state)
{
    (void)state;
    assert_int_equal(put_file("start", "one", 0), HF_OK);
    hf_schedule_fixture_put(
        &q, (hf_schedule){
                .id = "s", .every_ms = 3600000, .payload = "hand", .payload_len = 4});
    assert_int_equal(put_file("start", "one", 1), HF_OK);
    assert_payload("one");
    assert_int_equal(hf_admin_schedule_remove(q.admin, "q", "s", NULL), HF_OK);
    assert_int_equal(put_file("start", "one", 1), HF_OK);
    assert_int_equal(hf_fixture_number(&q.redis, "HEXISTS hf:{q}:cron s"), 0);
    assert_int_equal(put_file("start", "one", 2), HF_OK);
    assert_payload("one");
}

/* Also if it was a command's by then: the file still names it. */
static void a_schedule_of_a_command_that_was_removed_does_not_come_back(void **state)
{
    (void)state;
    assert_int_equal(put_file("start", "one", 0), HF_OK);
    hf_schedule_fixture_put(
        &q, (hf_schedule){
                .id = "s", .every_ms = 3600000, .payload = "hand", .payload_len = 4});
    assert_int_equal(hf_admin_schedule_remove(q.admin, "q", "s", NULL), HF_OK);
    assert_int_equal(put_file("keep", "one", 0), HF_OK);
    assert_int_equal(put_file("start", "one", 0), HF_OK);
    assert_int_equal(hf_fixture_number(&q.redis, "HEXISTS hf:{q}:cron s"), 0);
    assert_int_equal(put_file("start", "two", 0), HF_OK);
    assert_payload("two");
}

static void check(void)
{
    assert_int_equal(hf_queue_fixture_check(&q, "w", false), HF_OK);
}

static bool exists(void)
{
    return hf_fixture_number(&q.redis, "HEXISTS hf:{q}:cron s") == 1;
}

static void a_schedule_that_no_file_names_ends_after_ten_minutes(void **state)
{
    (void)state;
    assert_int_equal(put_file("start", "one", 0), HF_OK);
    hf_fixture_clock_jump(&q.redis, 9 * 60000);
    check();
    assert_true(exists());
    assert_int_equal(put_file("keep", "one", 0), HF_OK);
    for (int minute = 0; minute < 9; minute++) {
        hf_fixture_clock_jump(&q.redis, 60000 - 1000);
        check();
        assert_true(exists());
    }
    hf_fixture_clock_jump(&q.redis, 90000);
    check();
    assert_false(exists());
    assert_string_equal(hf_fixture_command(&q.redis, "HGET hf:{q}:meta uses"), "(nil)");
}

/* The time in which no worker was there does not count: the one that names it may be
 * about to start. */
static void an_outage_does_not_end_the_schedules_of_files(void **state)
{
    (void)state;
    assert_int_equal(put_file("start", "one", 0), HF_OK);
    hf_fixture_clock_jump(&q.redis, INT64_C(3) * 86400000);
    check();
    check();
    assert_true(exists());
    hf_fixture_clock_jump(&q.redis, 10 * 60000 + 1000);
    check();
    assert_false(exists());
}

static void a_schedule_by_command_needs_no_file(void **state)
{
    (void)state;
    hf_schedule_fixture_put(&q, (hf_schedule){.id = "s", .every_ms = 3600000});
    hf_fixture_clock_jump(&q.redis, 11 * 60000);
    check();
    hf_fixture_clock_jump(&q.redis, 11 * 60000);
    check();
    assert_true(exists());
}

/* ---- Redis's clock ---- */

/* The worker that is informed of it decides by the kind of the schedule (cron/ticks.c).
 */
static void a_step_back_has_the_next_tick_reckoned_anew(void **state)
{
    (void)state;
    hf_schedule_fixture_put(&q, (hf_schedule){.id = "s", .every_ms = 3600000});
    for (int i = 0; i < 2; i++) {
        hf_fixture_clock_jump(&q.redis, i == 0 ? -60000 : -INT64_C(4) * 3600000);
        check();
        assert_true(hf_schedule_fixture_info(&q, "s").next_ms <=
                    hf_queue_fixture_now(&q));
    }
    q.broken = true; /* its clock has gone far back */
}

static void a_schedule_that_is_written_after_a_step_back_does_not_hide_it(void **state)
{
    (void)state;
    hf_schedule_fixture_put(&q, (hf_schedule){.id = "s", .every_ms = 60000});
    hf_fixture_clock_jump(&q.redis, -INT64_C(4) * 3600000);
    hf_schedule_fixture_put(&q, (hf_schedule){.id = "other", .every_ms = 60000});
    check();
    assert_true(hf_schedule_fixture_info(&q, "s").next_ms <= hf_queue_fixture_now(&q));
    q.broken = true; /* its clock has gone far back */
}

/* `cron resume` decides on ticks, too: those meanwhile are dropped. */
static void a_step_back_is_seen_after_a_pause(void **state)
{
    (void)state;
    hf_schedule_fixture_put(&q, (hf_schedule){.id = "s", .every_ms = 60000});
    assert_int_equal(hf_admin_schedule_pause(q.admin, "q", "s", true, NULL), HF_OK);
    hf_fixture_clock_jump(&q.redis, INT64_C(10) * 3600000);
    assert_int_equal(hf_admin_schedule_pause(q.admin, "q", "s", false, NULL), HF_OK);
    hf_fixture_clock_jump(&q.redis, -INT64_C(5) * 3600000);
    check();
    assert_true(hf_schedule_fixture_info(&q, "s").next_ms <= hf_queue_fixture_now(&q));
}

static int64_t decided_until(void)
{
    hf_schedule_state state;
    char text[512];
    (void)snprintf(text, sizeof text, "%s",
                   hf_fixture_command(&q.redis, "HGET hf:{q}:cron_state s"));
    assert_int_equal(hf_schedule_read_state(&state, (hf_bytes){text, strlen(text)}),
                     HF_OK);
    return state.from_ms;
}

static void a_change_after_a_small_step_back_repeats_no_tick(void **state)
{
    static const int64_t hour_ms = 3600000;
    (void)state;
    hf_schedule_fixture_put(&q, (hf_schedule){.id = "s", .every_ms = 60000});
    int64_t until = decided_until();
    hf_fixture_clock_jump(&q.redis, -hour_ms);
    hf_schedule_fixture_put(
        &q,
        (hf_schedule){.id = "s", .every_ms = 60000, .payload = "new", .payload_len = 3});
    assert_int_equal(decided_until(), until);
    assert_int_equal(hf_admin_schedule_pause(q.admin, "q", "s", true, NULL), HF_OK);
    assert_int_equal(hf_admin_schedule_pause(q.admin, "q", "s", false, NULL), HF_OK);
    assert_int_equal(decided_until(), until);
    hf_fixture_clock_jump(&q.redis, -3 * hour_ms); /* a large one */
    hf_schedule_fixture_put(&q, (hf_schedule){.id = "s", .every_ms = 60000});
    assert_true(decided_until() < until - 3 * hour_ms);
    q.broken = true; /* its clock has gone far back */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(of_several_workers_one_decides_on_a_tick),
        TEST(a_schedule_that_was_changed_meanwhile_is_left_alone),
        TEST(a_tick_is_skipped_while_the_last_job_waits),
        TEST(a_tick_may_make_a_second_job),
        TEST(a_tick_may_cancel_the_last_job),
        TEST(a_dead_job_overlaps_nothing),
        TEST(no_other_worker_is_woken_for_a_job_that_the_sender_takes),
        TEST(a_limit_counts_the_jobs_that_were_accepted),
        TEST(a_claim_tells_of_due_ticks_and_a_baton_waits_for_the_next),
        TEST(a_paused_schedule_drops_its_ticks),
        TEST(a_run_by_hand_has_no_part_in_the_schedule),
        TEST(a_run_by_hand_that_is_sent_twice_makes_one_job),
        TEST(a_purge_leaves_schedules_and_removal_leaves_nothing),
        TEST(what_is_no_schedule_is_refused_with_one_line),
        TEST(a_file_changes_its_schedule_only_when_its_text_changes),
        TEST(a_newer_file_takes_back_what_a_command_has_changed),
        TEST(a_schedule_of_a_command_that_was_removed_does_not_come_back),
        TEST(a_schedule_that_no_file_names_ends_after_ten_minutes),
        TEST(an_outage_does_not_end_the_schedules_of_files),
        TEST(a_schedule_by_command_needs_no_file),
        TEST(a_step_back_has_the_next_tick_reckoned_anew),
        TEST(a_schedule_that_is_written_after_a_step_back_does_not_hide_it),
        TEST(a_step_back_is_seen_after_a_pause),
        TEST(a_change_after_a_small_step_back_repeats_no_tick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
