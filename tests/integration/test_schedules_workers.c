/* test_schedules_workers.c - schedules with workers: each tick makes exactly one job, and
 * nothing polls for it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "queue/schedule.h"
#include "queue_scripts.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"
#include "tests/support/skip.h"
#include "tests/support/worker_fixture.h"

static hf_queue_fixture q;
static hf_worker_fixture worker, other;

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
    hf_worker_fixture_end(&other);
    hf_queue_fixture_stop(&q);
    return 0;
}

static hf_worker_opts options_of(const hf_schedule *schedules, size_t n)
{
    return (hf_worker_opts){HF_WORKER_OPTS_INIT, .lease_ms = 5000, .schedules = schedules,
                            .n_schedules = n};
}

static long long done(void)
{
    return hf_queue_fixture_meta(&q, "done");
}

static void two_workers_make_one_job_of_each_tick(void **state)
{
    const hf_schedule schedules[] = {{HF_SCHEDULE_INIT, .id = "s", .queue = "q",
                                      .every_ms = 100, .type = "t", .payload = "ok",
                                      .payload_len = 2, .missed = HF_MISSED_ALL,
                                      .overlap = HF_OVERLAP_ALLOW}};
    hf_worker_opts opts = options_of(schedules, 1);
    (void)state;
    hf_worker_fixture_start(&worker, q.redis.url, &opts, 0);
    hf_worker_fixture_start(&other, q.redis.url, &opts, 0);
    EVENTUALLY(10000, done() >= 20);
    hf_schedule_info info = hf_schedule_fixture_info(&q, "s");
    assert_true(info.of_file);
    assert_int_equal(hf_admin_schedule_pause(q.admin, "q", "s", true, NULL), HF_OK);
    EVENTUALLY(5000, done() == hf_schedule_fixture_enqueued(&q));
    hf_schedule_info last = hf_schedule_fixture_info(&q, "s");
    assert_int_equal(last.accepted, hf_schedule_fixture_enqueued(&q));
    /* Each tick from the first one on, and none twice. */
    assert_int_equal(last.skipped, 0);
    assert_int_equal(last.dropped, 0);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(hf_worker_fixture_stop(&other), HF_OK);
}

static _Atomic int64_t seen_tick;

static hf_verdict note_tick(hf_run *run, void *arg)
{
    (void)arg;
    seen_tick = hf_run_scheduled_ms(run);
    return HF_VERDICT_DONE;
}

static void a_handler_learns_the_time_of_its_tick(void **state)
{
    (void)state;
    hf_schedule_fixture_put(
        &q, (hf_schedule){.id = "s", .every_ms = 200, .overlap = HF_OVERLAP_ALLOW});
    hf_worker_fixture_start_own(&worker, q.redis.url, &hf_brief_lease, 0, note_tick,
                                NULL);
    EVENTUALLY(10000, seen_tick != 0);
    assert_int_equal(seen_tick % 200, 0);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

static void a_reload_changes_the_schedules_of_the_file(void **state)
{
    hf_schedule schedules[] = {
        {HF_SCHEDULE_INIT, .id = "s", .queue = "q", .every_ms = 3600000, .type = "t"}};
    hf_worker_opts opts = options_of(schedules, 1);
    (void)state;
    hf_worker_fixture_start(&worker, q.redis.url, &opts, 0);
    EVENTUALLY(10000, hf_fixture_number(&q.redis, "HEXISTS hf:{q}:cron s") == 1);
    schedules[0].every_ms = 7200000;
    hf_worker_fixture_fill(&worker, q.redis.url, &opts);
    assert_int_equal(hf_worker_reload(worker.worker, &opts, NULL, 0, NULL, 0, NULL),
                     HF_OK);
    EVENTUALLY(5000, hf_schedule_fixture_info(&q, "s").every_ms == 7200000);
    assert_int_equal(
        hf_worker_fixture_said(&worker, "changed key=schedules name=s now=changed"), 1);
    schedules[0].queue = "another";
    assert_int_equal(hf_worker_reload(worker.worker, &opts, NULL, 0, NULL, 0, NULL),
                     HF_INVALID);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

/* Redis does not know the script: all is sent once more, and as news. */
static void a_worker_that_starts_after_a_flush_of_scripts_writes_its_file(void **state)
{
    enum { SCHEDULES = 20 };
    hf_schedule schedules[SCHEDULES];
    char ids[SCHEDULES][8];
    (void)state;
    for (int i = 0; i < SCHEDULES; i++) {
        (void)snprintf(ids[i], sizeof ids[i], i == 0 ? "s" : "s%d", i);
        schedules[i] = (hf_schedule){HF_SCHEDULE_INIT, .id = ids[i], .queue = "q",
                                     .every_ms = i == 0 ? 3600000 : 7200000, .type = "t"};
    }
    hf_worker_opts old = options_of(schedules, 1);
    hf_worker_fixture_start(&other, q.redis.url, &old, 0);
    EVENTUALLY(10000, hf_fixture_number(&q.redis, "HLEN hf:{q}:cron") == 1);
    assert_int_equal(hf_worker_fixture_stop(&other), HF_OK);
    schedules[0].every_ms = 7200000;
    assert_string_equal(hf_fixture_command(&q.redis, "SCRIPT FLUSH"), "OK");
    assert_string_equal(hf_fixture_command(&q.redis, "CONFIG RESETSTAT"), "OK");
    hf_worker_opts opts = options_of(schedules, SCHEDULES);
    hf_worker_fixture_start(&worker, q.redis.url, &opts, 0);
    EVENTUALLY(10000, hf_fixture_number(&q.redis, "HLEN hf:{q}:cron") == SCHEDULES);
    assert_int_equal(hf_schedule_fixture_info(&q, "s").every_ms, 7200000);
    assert_true(hf_fixture_calls(&q.redis, "evalsha") < 4 * SCHEDULES);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

/* They are more than one request may have. */
static void a_thousand_missed_ticks_are_made_up_for_once_each(void **state)
{
    (void)state;
    hf_schedule_fixture_put(&q, (hf_schedule){.id = "s",
                                              .every_ms = 100,
                                              .payload = "ok",
                                              .payload_len = 2,
                                              .missed = HF_MISSED_ALL,
                                              .overlap = HF_OVERLAP_ALLOW});
    hf_fixture_clock_jump(&q.redis, 95000);
    hf_worker_fixture_start(&worker, q.redis.url, &hf_brief_lease, 0);
    EVENTUALLY(15000, hf_schedule_fixture_info(&q, "s").accepted >= 960);
    assert_int_equal(hf_admin_schedule_pause(q.admin, "q", "s", true, NULL), HF_OK);
    EVENTUALLY(15000, done() == hf_schedule_fixture_enqueued(&q));
    hf_schedule_info info = hf_schedule_fixture_info(&q, "s");
    assert_int_equal(info.accepted, hf_schedule_fixture_enqueued(&q));
    assert_int_equal(info.dropped, 0);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

/* How often this script was called, by Redis's own log of all commands. */
static long long calls_of(const hf_script *script)
{
    const char *at = hf_fixture_command(&q.redis, "SLOWLOG GET -1");
    long long n = 0;
    while ((at = strstr(at, script->sha1)) != NULL) {
        at++;
        n++;
    }
    return n;
}

/* Twenty times a record of 1 MiB: one request has room for seven. */
static void one_script_makes_no_more_jobs_than_have_room(void **state)
{
    enum { TICKS = 20, EACH = 7 };
    static char large[1 << 20];
    (void)state;
    memset(large, 'x', sizeof large);
    hf_schedule_fixture_put(&q, (hf_schedule){.id = "s",
                                              .every_ms = 60000,
                                              .payload = large,
                                              .payload_len = sizeof large,
                                              .missed = HF_MISSED_ALL,
                                              .overlap = HF_OVERLAP_ALLOW});
    hf_fixture_clock_jump(&q.redis, TICKS * 60000);
    assert_string_equal(hf_fixture_command(&q.redis, "CONFIG SET slowlog-max-len 100000"),
                        "OK");
    assert_string_equal(
        hf_fixture_command(&q.redis, "CONFIG SET slowlog-log-slower-than 0"), "OK");
    hf_worker_fixture_start(&worker, q.redis.url, &hf_brief_lease, 0);
    EVENTUALLY(15000, hf_schedule_fixture_info(&q, "s").accepted >=
                          TICKS); /* a minute may have passed */
    assert_in_range(calls_of(&hf_lua_queue_cron_tick), TICKS / EACH + 1, TICKS);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

static size_t told; /* by the last answer */

static void count_told(const hf_answer *answer, void *arg)
{
    hf_cron_due due;
    if (answer->err == HF_OK && hf_cron_due_read(answer, &due) == HF_OK)
        told = due.n;
    hf_queue_fixture_on_answer(answer, arg);
}

/* As many as one request of a worker has room for, but one at least. */
static void a_script_reads_no_more_payloads_than_have_room(void **state)
{
    enum { MIB = 1 << 20, MANY = 12, LARGE = 9 };
    static char large[LARGE * MIB];
    static const size_t lens[] = {MIB, LARGE * MIB}, expected[] = {7, 1};
    char id[8];
    hf_err err;
    (void)state;
    memset(large, 'x', sizeof large);
    for (size_t k = 0; k < HF_COUNT(lens); k++) {
        for (int i = 0; i < MANY; i++) {
            (void)snprintf(id, sizeof id, "s%02d", i);
            hf_schedule_fixture_put(&q, (hf_schedule){.id = id,
                                                      .every_ms = 3600000,
                                                      .payload = large,
                                                      .payload_len = lens[k]});
            hf_schedule_fixture_set_next(&q, id, 1000 + i);
        }
        HF_QUEUE_FIXTURE_ASK(err, &q,
                             hf_op_cron_due(q.client, &q.queue, "w", count_told, &q));
        assert_int_equal(err, HF_OK);
        assert_int_equal(told, expected[k]);
    }
}

/* More than one answer reports. */
static void schedules_that_cannot_be_read_hide_no_others(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * HF_DUE_SCHEDULES; i++) {
        (void)hf_fixture_command(&q.redis, "HSET hf:{q}:cron bad%d %s", i,
                                 i % 2 == 0 ? "no JSON\n"
                                            : "{\"job\":{\"type\":\"t\"}}\n");
        (void)hf_fixture_command(&q.redis, "HSET hf:{q}:cron_state bad%d %s", i,
                                 i % 2 == 0 ? "{\"gen\":\"1\"}" : "nor this");
        (void)hf_fixture_command(&q.redis, "ZADD hf:{q}:cron_next 1000 bad%d", i);
    }
    hf_schedule_fixture_put(
        &q, (hf_schedule){.id = "s", .every_ms = 200, .overlap = HF_OVERLAP_ALLOW});
    hf_worker_fixture_start(&worker, q.redis.url, &hf_brief_lease, 0);
    EVENTUALLY(15000, hf_schedule_fixture_info(&q, "s").accepted >= 2);
    assert_int_equal(hf_admin_schedule_remove(q.admin, "q", "s", NULL), HF_OK);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

/* A program in another language may write such things; cron_tick would fail in its
 * middle. */
static void a_number_that_is_none_stops_no_other_schedule(void **state)
{
    static const char *const limits[] = {"\"5\"", "null", "1", "1"};
    static const char *const states[] = {"", "", ",\"accepted\":\"1\"", ",\"job\":1"};
    char line[128], text[64];
    (void)state;
    for (int i = 0; i < 4; i++) {
        (void)snprintf(line, sizeof line,
                       "{\"every\":1000,\"limit\":%s,\"job\":{\"type\":\"t\"}}\n",
                       limits[i]);
        (void)snprintf(text, sizeof text, "{\"gen\":\"1\",\"from\":1%s}", states[i]);
        (void)hf_fixture_command(&q.redis, "HSET hf:{q}:cron bad%d %s", i, line);
        (void)hf_fixture_command(&q.redis, "HSET hf:{q}:cron_state bad%d %s", i, text);
        (void)hf_fixture_command(&q.redis, "ZADD hf:{q}:cron_next 1000 bad%d", i);
    }
    hf_schedule_fixture_put(
        &q, (hf_schedule){.id = "s", .every_ms = 200, .overlap = HF_OVERLAP_ALLOW});
    hf_worker_fixture_start(&worker, q.redis.url, &hf_brief_lease, 0);
    EVENTUALLY(15000, hf_schedule_fixture_info(&q, "s").accepted >= 2);
    assert_int_equal(hf_fixture_number(&q.redis, "ZCOUNT hf:{q}:cron_next -inf 1000"), 0);
    assert_int_equal(hf_admin_schedule_remove(q.admin, "q", "s", NULL), HF_OK);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

static void a_paused_queue_is_an_outage(void **state)
{
    (void)state;
    hf_worker_fixture_start(&worker, q.redis.url, &hf_brief_lease, 0);
    assert_int_equal(hf_admin_pause(q.admin, "q", true, NULL), HF_OK);
    hf_schedule_fixture_put(
        &q,
        (hf_schedule){.id = "s", .every_ms = 3600000, .payload = "ok", .payload_len = 2});
    hf_fixture_clock_jump(&q.redis, 5 * 3600000);
    ALWAYS(300, hf_schedule_fixture_info(&q, "s").accepted == 0);
    assert_int_equal(hf_admin_pause(q.admin, "q", false, NULL), HF_OK);
    EVENTUALLY(10000, hf_schedule_fixture_info(&q, "s").accepted == 1);
    assert_int_equal(hf_schedule_fixture_info(&q, "s").dropped, 4);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

/* Only its check comes to it: its slots are all in use. */
static void a_busy_worker_takes_ticks_as_well(void **state)
{
    hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .lease_ms = 2000, .concurrency = 1};
    (void)state;
    hf_worker_fixture_start(&worker, q.redis.url, &opts, 0);
    hf_queue_fixture_put(&q, "long", "gate", 0);
    EVENTUALLY(10000, worker.started == 1);
    hf_schedule_fixture_put(
        &q, (hf_schedule){.id = "s", .every_ms = 500, .overlap = HF_OVERLAP_ALLOW});
    EVENTUALLY(10000, hf_schedule_fixture_info(&q, "s").accepted >= 2);
    worker.gate = true;
    EVENTUALLY(10000, done() >= 3);
    assert_int_equal(hf_admin_schedule_remove(q.admin, "q", "s", NULL), HF_OK);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

static void note_id(const hf_schedule_info *schedule, void *arg)
{
    unsigned *seen = arg;
    assert_string_equal(schedule->queue, "q");
    *seen |= 1U << (schedule->id[1] - '0');
}

/* Each in the shard of its id, with its jobs. */
static void schedules_of_a_divided_queue_are_in_its_shards(void **state)
{
    static const char *const ids[] = {"s0", "s1", "s2", "s3", "s4", "s5"};
    hf_schedule file = {
        HF_SCHEDULE_INIT, .id = "s7",      .queue = "q",     .every_ms = 200,
        .type = "t",      .payload = "ok", .payload_len = 2, .overlap = HF_OVERLAP_ALLOW};
    hf_worker_opts opts = options_of(&file, 1);
    unsigned seen = 0;
    char job[HF_ID_SIZE];
    (void)state;
    assert_int_equal(hf_admin_divide(q.admin, "q", 4, NULL), HF_OK);
    for (size_t i = 0; i < HF_COUNT(ids); i++)
        hf_schedule_fixture_put(&q, (hf_schedule){.id = ids[i], .every_ms = 3600000});
    hf_worker_fixture_start(&worker, q.redis.url, &opts, 0);
    EVENTUALLY(15000, hf_worker_fixture_said(&worker, "outcome=done") >= 3);
    assert_int_equal(hf_admin_schedules(q.admin, "q", NULL, 1000, note_id, &seen, NULL),
                     HF_OK);
    assert_int_equal(seen, 0xbf);
    assert_true(hf_schedule_fixture_info(&q, "s7").accepted >= 3);
    assert_int_equal(hf_admin_schedule_run(q.admin, "q", "s2", job, NULL), HF_OK);
    assert_int_equal(hf_admin_schedule_remove(q.admin, "q", "s7", NULL), HF_OK);
    assert_int_equal(hf_admin_schedule_remove(q.admin, "q", "s7", NULL), HF_GONE);
    EVENTUALLY(5000, hf_worker_fixture_said(&worker, job) >= 1);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(hf_fixture_number(&q.redis, "EXISTS hf:{q}:cron"), 0);
}

static void copy_zone(const char *name, const char *folder)
{
    char from[256], fresh[256], to[256];
    char bytes[8192];
    (void)snprintf(from, sizeof from, "/usr/share/zoneinfo/%s", name);
    (void)snprintf(fresh, sizeof fresh, "%s/new", folder);
    (void)snprintf(to, sizeof to, "%s/Home", folder);
    FILE *in = fopen(from, "rb");
    if (in == NULL)
        HF_SKIP("there are no time zones: tzdata is missing");
    size_t n = fread(bytes, 1, sizeof bytes, in);
    (void)fclose(in);
    FILE *out = fopen(fresh, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, n, out), n);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(rename(fresh, to), 0);
}

/* At a tick the worker looks whether it still is one. */
static void a_zone_that_is_replaced_counts_from_the_next_tick_on(void **state)
{
    const int64_t day_ms = 86400000;
    (void)state;
    /* Ten minutes after midnight: no noon of either zone is near. */
    hf_fixture_clock_jump(&q.redis,
                          day_ms - hf_queue_fixture_now(&q) % day_ms + day_ms / 144);
    assert_int_equal(setenv("TZDIR", q.redis.dir, 1), 0);
    copy_zone("Asia/Tokyo", q.redis.dir);
    hf_schedule_fixture_put(&q,
                            (hf_schedule){.id = "s", .cron = "0 12 * * *", .tz = "Home"});
    int64_t next = hf_schedule_fixture_info(&q, "s").next_ms; /* noon in Tokyo is 3:00 */
    assert_int_equal(next / 3600000 % 24, 3);
    copy_zone("America/Phoenix", q.redis.dir);
    hf_fixture_clock_jump(&q.redis, next - hf_queue_fixture_now(&q) - 500);
    hf_worker_fixture_start(&worker, q.redis.url, &hf_brief_lease, 0);
    EVENTUALLY(10000, hf_schedule_fixture_info(&q, "s").next_ms / 3600000 % 24 == 19);
    assert_int_equal(hf_schedule_fixture_info(&q, "s").accepted, 0);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(unsetenv("TZDIR"), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(two_workers_make_one_job_of_each_tick),
        TEST(a_handler_learns_the_time_of_its_tick),
        TEST(a_reload_changes_the_schedules_of_the_file),
        TEST(a_worker_that_starts_after_a_flush_of_scripts_writes_its_file),
        TEST(a_thousand_missed_ticks_are_made_up_for_once_each),
        TEST(one_script_makes_no_more_jobs_than_have_room),
        TEST(a_script_reads_no_more_payloads_than_have_room),
        TEST(schedules_that_cannot_be_read_hide_no_others),
        TEST(a_number_that_is_none_stops_no_other_schedule),
        TEST(a_paused_queue_is_an_outage),
        TEST(a_busy_worker_takes_ticks_as_well),
        TEST(schedules_of_a_divided_queue_are_in_its_shards),
        TEST(a_zone_that_is_replaced_counts_from_the_next_tick_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
