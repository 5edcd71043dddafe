/* test_schedules_held.c - a schedule that no live worker's file names makes no jobs, and
 * goes on when one names it again. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "queue/schedule.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"
#include "tests/support/worker_fixture.h"

enum { OFTEN_MS = 100, MINUTE_MS = 60000 };

#define HELD "warn a schedule makes no jobs: no live worker names it"

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

static bool is_flagged(void)
{
    return strstr(hf_fixture_command(&q.redis, "HGET hf:{q}:cron_state s"), "\"held\"") !=
           NULL;
}

/* ---- the script ---- */

static void put_file(const char *how)
{
    static const char value[] =
        "{\"every\":3600000,\"missed\":\"all\",\"job\":{\"type\":\"t\"}}\n";
    hf_err err;
    const hf_cron_put_args args = {.id = "s",
                                   .value = {value, strlen(value)},
                                   .next_ms = 4000000000000,
                                   .file = how};
    HF_QUEUE_FIXTURE_ASK(
        err, &q,
        hf_op_cron_put(q.client, &q.queue, &args, hf_queue_fixture_on_answer, &q));
    assert_int_equal(err, HF_OK);
}

static void present(const char *name, const char *said)
{
    hf_err err;
    HF_QUEUE_FIXTURE_ASK(err, &q,
                         hf_op_present(q.client, &q.queue, name, MINUTE_MS, said,
                                       hf_queue_fixture_on_answer, &q));
    assert_int_equal(err, HF_OK);
}

static size_t told, held;

static void count_told(const hf_answer *answer, void *arg)
{
    hf_cron_due due;
    told = held = 0;
    if (answer->err == HF_OK && hf_cron_due_read(answer, &due) == HF_OK)
        for (size_t i = 0; i < due.n; i++) {
            hf_cron_due_one one;
            hf_cron_due_at(&due, i, &one);
            told += one.held ? 0 : 1;
            held += one.held ? 1 : 0;
        }
    hf_queue_fixture_on_answer(answer, arg);
}

/* Its tick has come, and a worker asks for it. */
static void ask(const char *name)
{
    hf_err err;
    (void)hf_fixture_command(&q.redis, "ZADD hf:{q}:cron_next 1000 s");
    HF_QUEUE_FIXTURE_ASK(err, &q,
                         hf_op_cron_due(q.client, &q.queue, name, count_told, &q));
    assert_int_equal(err, HF_OK);
}

static int64_t next_tick(void)
{
    return hf_fixture_number(&q.redis, "ZSCORE hf:{q}:cron_next s");
}

static void a_tick_is_told_while_a_live_worker_names_its_schedule(void **state)
{
    (void)state;
    put_file("start");
    present("new", " t @s2 @xs ");
    present("old", " t @s @s2 ");
    ask("new");
    assert_int_equal(told, 1);
    assert_false(hf_schedule_fixture_info(&q, "s").held);
    hf_fixture_clock_jump(&q.redis, MINUTE_MS + 1000); /* it has died */
    present("new", " t @s2 @xs ");
    ask("new");
    assert_int_equal(told, 0);
    assert_int_equal(held, 1);
    assert_true(hf_schedule_fixture_info(&q, "s").held);
    assert_int_equal(hf_schedule_fixture_info(&q, "s").next_ms, 0);
    ask("new");
    assert_int_equal(told + held, 0); /* once */
    ask("old");                       /* it asks, so it lives */
    assert_int_equal(told, 1);
}

/* A type and a schedule of one name differ. */
static void check(const char *name)
{
    const hf_queue *queue = &q.queue;
    const hf_check_args args = {
        .worker = name, .alive_ms = MINUTE_MS, .lease_ms = MINUTE_MS};
    assert_int_equal(hf_queue_fixture_check_with(&q, &queue, 1, &args), HF_OK);
}

/* It seems that no worker has named it for 10 minutes. */
static void a_step_forward_ends_no_schedule_of_a_live_worker(void **state)
{
    (void)state;
    put_file("start");
    present("w", " t @s ");
    hf_fixture_clock_jump(&q.redis, 10 * MINUTE_MS + 1000);
    check("w");
    assert_true(hf_fixture_number(&q.redis, "EXISTS hf:{q}:cron") == 1);
    present("w", " t ");
    hf_fixture_clock_jump(&q.redis, 10 * MINUTE_MS + 1000);
    check("w");
    assert_true(hf_fixture_number(&q.redis, "EXISTS hf:{q}:cron") == 0);
}

static void a_type_is_no_schedule(void **state)
{
    (void)state;
    put_file("start");
    present("w", " s ");
    ask("w");
    assert_int_equal(held, 1);
}

/* It may be about to say it. */
static void a_worker_that_said_nothing_yet_holds_nothing(void **state)
{
    (void)state;
    put_file("start");
    ask("w");
    assert_int_equal(told, 1);
    present("new", " t ");
    assert_int_equal(hf_queue_fixture_check(&q, "w", false), HF_OK);
    ask("new");
    assert_int_equal(told, 1);
}

/* Else a clock that was set would hold it for long. */
static void what_is_held_is_looked_at_again_soon(void **state)
{
    (void)state;
    put_file("start");
    present("w", " t ");
    ask("w");
    int64_t in_ms = next_tick() - hf_queue_fixture_now(&q);
    assert_in_range(in_ms, 1, 5000);
}

static void a_file_that_names_it_again_has_its_ticks_judged_at_once(void **state)
{
    (void)state;
    put_file("start");
    present("w", " t ");
    ask("w");
    assert_true(is_flagged());
    present("w", " t @s ");
    (void)hf_fixture_command(&q.redis, "DEL hf:{q}:wake");
    put_file("keep");
    assert_false(is_flagged());
    assert_true(next_tick() <= hf_queue_fixture_now(&q));
    assert_int_equal(hf_fixture_number(&q.redis, "ZCARD hf:{q}:wake"), 1);
    put_file("keep"); /* nothing is released twice */
    (void)hf_fixture_command(&q.redis, "ZADD hf:{q}:cron_next 4000000000000 s");
    put_file("keep");
    assert_int_equal(next_tick(), 4000000000000);
}

static void a_pause_lasts_when_a_file_names_it_again(void **state)
{
    (void)state;
    put_file("start");
    present("w", " t ");
    ask("w");
    assert_int_equal(hf_admin_schedule_pause(q.admin, "q", "s", true, NULL), HF_OK);
    assert_false(hf_schedule_fixture_info(&q, "s").held);
    put_file("keep");
    assert_int_equal(hf_fixture_number(&q.redis, "EXISTS hf:{q}:cron_next"), 0);
    assert_true(hf_schedule_fixture_info(&q, "s").paused);
    assert_int_equal(hf_admin_schedule_pause(q.admin, "q", "s", false, NULL), HF_OK);
    assert_true(next_tick() > hf_queue_fixture_now(&q));
}

static void a_command_takes_over_what_is_held(void **state)
{
    (void)state;
    put_file("start");
    present("w", " t ");
    ask("w");
    const hf_schedule same = {HF_SCHEDULE_INIT,    .id = "s",   .queue = "q",
                              .every_ms = 3600000, .type = "t", .missed = HF_MISSED_ALL};
    assert_int_equal(hf_admin_schedule_put(q.admin, &same, NULL), HF_OK);
    assert_false(is_flagged());
    ask("w");
    assert_int_equal(told, 1);
}

/* ---- with workers ---- */

static hf_worker_opts with(const hf_schedule *schedules, size_t n)
{
    return (hf_worker_opts){HF_WORKER_OPTS_INIT, .lease_ms = 5000, .schedules = schedules,
                            .n_schedules = n};
}

static const hf_schedule often[] = {{HF_SCHEDULE_INIT, .id = "s", .queue = "q",
                                     .every_ms = OFTEN_MS, .type = "t", .payload = "ok",
                                     .payload_len = 2, .overlap = HF_OVERLAP_ALLOW}};

static void start(hf_worker_fixture *fixture, size_t n)
{
    const hf_worker_opts opts = with(often, n);
    hf_worker_fixture_start(fixture, q.redis.url, &opts, 0);
}

static void reload(size_t n)
{
    hf_worker_opts opts = with(often, n);
    hf_worker_fixture_fill(&worker, q.redis.url, &opts);
    assert_int_equal(hf_worker_reload(worker.worker, &opts, NULL, 0, NULL, 0, NULL),
                     HF_OK);
}

static size_t said(hf_worker_fixture *fixture)
{
    return hf_worker_fixture_said(fixture, HELD);
}

static void a_reload_without_a_schedule_ends_its_ticks_until_the_next_one(void **state)
{
    (void)state;
    start(&worker, 1);
    EVENTUALLY(10000, hf_schedule_fixture_enqueued(&q) >= 3);
    reload(0);
    EVENTUALLY(5000, said(&worker) == 1);
    assert_int_equal(hf_worker_fixture_said(&worker, "key=schedules name=s now=removed"),
                     1);
    long long n = hf_schedule_fixture_enqueued(&q);
    hf_schedule_info before = hf_schedule_fixture_info(&q, "s");
    for (int look = 0; look < 3; look++) {
        int64_t next = next_tick();
        hf_fixture_clock_jump(&q.redis, 6000);
        EVENTUALLY(10000, next_tick() > next);
    }
    assert_int_equal(hf_schedule_fixture_enqueued(&q), n);
    assert_int_equal(said(&worker), 1);
    assert_true(hf_schedule_fixture_info(&q, "s").held);
    reload(1);
    EVENTUALLY(3000, hf_schedule_fixture_enqueued(&q) >= n + 3);
    hf_schedule_info after = hf_schedule_fixture_info(&q, "s");
    assert_false(after.held);
    assert_true(after.dropped >= before.dropped + 3 * 6000 / OFTEN_MS - 10);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

static void it_ticks_while_another_worker_names_it(void **state)
{
    (void)state;
    start(&worker, 1);
    start(&other, 1);
    EVENTUALLY(10000, hf_schedule_fixture_enqueued(&q) >= 3);
    reload(0);
    EVENTUALLY(5000, hf_worker_fixture_said(&worker, "reloaded") == 1);
    long long n = hf_schedule_fixture_enqueued(&q);
    EVENTUALLY(10000, hf_schedule_fixture_enqueued(&q) >= n + 30);
    assert_int_equal(said(&worker) + said(&other), 0);
    assert_int_equal(hf_worker_fixture_stop(&other), HF_OK);
    EVENTUALLY(5000, said(&worker) == 1);
    n = hf_schedule_fixture_enqueued(&q);
    hf_fixture_clock_jump(&q.redis, 6000);
    assert_int_equal(hf_schedule_fixture_enqueued(&q), n);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

/* It tells Redis what its file names before it asks for ticks. */
static void a_worker_that_starts_without_it_makes_no_job_of_it(void **state)
{
    (void)state;
    start(&other, 1);
    EVENTUALLY(10000, hf_schedule_fixture_enqueued(&q) >= 3);
    assert_int_equal(hf_worker_fixture_stop(&other), HF_OK);
    long long n = hf_schedule_fixture_enqueued(&q);
    start(&worker, 0);
    EVENTUALLY(10000, said(&worker) == 1);
    assert_int_equal(hf_schedule_fixture_enqueued(&q), n);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    start(&other, 1); /* and one that names it says no word */
    EVENTUALLY(10000, hf_schedule_fixture_enqueued(&q) >= n + 3);
    assert_int_equal(said(&other), 0);
    assert_int_equal(hf_worker_fixture_stop(&other), HF_OK);
}

static void a_queue_that_leaves_the_file_takes_its_schedules_with_it(void **state)
{
    static const hf_worker_queue queues[] = {{HF_WORKER_QUEUE_INIT, .name = "else"}};
    (void)state;
    start(&worker, 1);
    start(&other, 0);
    EVENTUALLY(10000, hf_schedule_fixture_enqueued(&q) >= 3);
    hf_worker_opts opts = with(NULL, 0);
    opts.queues = queues;
    opts.n_queues = 1;
    hf_worker_fixture_fill(&worker, q.redis.url, &opts);
    assert_int_equal(hf_worker_reload(worker.worker, &opts, NULL, 0, NULL, 0, NULL),
                     HF_OK);
    EVENTUALLY(5000, said(&other) == 1);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(hf_worker_fixture_stop(&other), HF_OK);
}

static void a_schedule_by_command_needs_no_worker_that_names_it(void **state)
{
    (void)state;
    assert_int_equal(hf_admin_schedule_put(q.admin, &often[0], NULL), HF_OK);
    start(&worker, 0);
    EVENTUALLY(10000, hf_schedule_fixture_enqueued(&q) >= 5);
    assert_false(hf_schedule_fixture_info(&q, "s").held);
    assert_int_equal(said(&worker), 0);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_tick_is_told_while_a_live_worker_names_its_schedule),
        TEST(a_step_forward_ends_no_schedule_of_a_live_worker),
        TEST(a_type_is_no_schedule),
        TEST(a_worker_that_said_nothing_yet_holds_nothing),
        TEST(what_is_held_is_looked_at_again_soon),
        TEST(a_file_that_names_it_again_has_its_ticks_judged_at_once),
        TEST(a_pause_lasts_when_a_file_names_it_again),
        TEST(a_command_takes_over_what_is_held),
        TEST(a_reload_without_a_schedule_ends_its_ticks_until_the_next_one),
        TEST(it_ticks_while_another_worker_names_it),
        TEST(a_worker_that_starts_without_it_makes_no_job_of_it),
        TEST(a_queue_that_leaves_the_file_takes_its_schedules_with_it),
        TEST(a_schedule_by_command_needs_no_worker_that_names_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
