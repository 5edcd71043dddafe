/* test_dead_tasks.c - tasks with a real Redis: they keep their rate, stop, are bounded,
 * and outlive a Redis that is away. */
#include "dashboard/dead_tasks.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/dashboard/dead_jobs.h"
#include "tests/support/eventually.h"

enum { LONG_MS = 30000 };

static hf_fixture redis;
static hf_dead_tasks *tasks;
static atomic_uint ended;

static void on_ended(const hf_task_view *v, void *arg)
{
    (void)arg;
    assert_true(hf_dead_tasks_has_ended(v));
    atomic_fetch_add(&ended, 1);
}

static int set_up(void **state)
{
    static hf_server_opts server;
    const hf_dead_tasks_opts opts = {.server = &server, .ended = on_ended};
    int result = hf_fixture_up(state);
    server = (hf_server_opts){HF_SERVER_OPTS_INIT, .url = hf_fixture_url(&redis),
                              .connect_timeout_ms = 500};
    atomic_store(&ended, 0);
    return result != 0 ? result : hf_dead_tasks_open(&tasks, &opts) == HF_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    hf_dead_tasks_close(tasks);
    return hf_fixture_down(state);
}

static hf_task_order order_of(bool purge, size_t jobs, uint32_t rate)
{
    return (hf_task_order){.purge = purge,
                           .queue = "q",
                           .type = "t",
                           .of_error = true,
                           .key = "no host #",
                           .jobs = jobs,
                           .rate = rate};
}

static hf_task_view view_of(const char *id)
{
    hf_task_view view;
    assert_true(hf_dead_tasks_read(tasks, id, &view));
    return view;
}

static void start(const hf_task_order *order, char id[HF_NEW_ID_SIZE])
{
    assert_int_equal(hf_dead_tasks_start(tasks, order, id), HF_OK);
}

static void only_the_jobs_of_the_group_are_retried(void **state)
{
    char id[HF_NEW_ID_SIZE];
    (void)state;
    dead_jobs_make(&redis, 400, 4);
    const hf_task_order order = order_of(false, 300, HF_TASK_RATE_MAX);
    start(&order, id);
    EVENTUALLY(LONG_MS, view_of(id).state == HF_TASK_DONE);
    const hf_task_view view = view_of(id);
    assert_int_equal(view.done, 300);
    assert_int_equal(view.unsure, 0);
    assert_string_equal(view.why, "");
    assert_int_equal(dead_jobs_left(&redis), 100);
    assert_int_equal(hf_fixture_number(&redis, "ZCARD hf:{q}:schedule"), 300);
    EVENTUALLY(LONG_MS, atomic_load(&ended) == 1);
}

static void a_purge_takes_no_more_than_was_counted(void **state)
{
    char id[HF_NEW_ID_SIZE];
    (void)state;
    dead_jobs_make(&redis, 2000, 2);
    const hf_task_order order = order_of(true, 700, 0);
    start(&order, id);
    EVENTUALLY(LONG_MS, view_of(id).state == HF_TASK_DONE);
    assert_int_equal(view_of(id).done, 700);
    assert_int_equal(dead_jobs_left(&redis), 1300);
}

static void what_dies_later_stays(void **state)
{
    char id[HF_NEW_ID_SIZE];
    (void)state;
    dead_jobs_make(&redis, 100, 101);
    hf_task_order order = order_of(true, 100, 0);
    order.until_ms = 1040;
    start(&order, id);
    EVENTUALLY(LONG_MS, view_of(id).state == HF_TASK_DONE);
    assert_int_equal(view_of(id).done, 40);
    assert_int_equal(dead_jobs_left(&redis), 60);
}

/* 20 in a second: 30 jobs take at least 1.2 s, and what was told is never ahead. */
static void the_rate_is_kept(void **state)
{
    char id[HF_NEW_ID_SIZE];
    (void)state;
    dead_jobs_make(&redis, 30, 31);
    const uint64_t began = hf_test_now_ms();
    const hf_task_order order = order_of(false, 30, 20);
    start(&order, id);
    for (hf_task_view view = view_of(id); !hf_dead_tasks_has_ended(&view);
         view = view_of(id)) {
        assert_true(view.done <= 5 + (hf_test_now_ms() - began) * 20 / 1000);
        hf_test_pause_ms(2);
    }
    assert_true(hf_test_now_ms() - began >= 1200);
    assert_int_equal(view_of(id).done, 30);
}

/* A Redis that stands still for a while, but not so long that a request fails. */
static void a_delay_is_not_made_up_for(void **state)
{
    char id[HF_NEW_ID_SIZE];
    (void)state;
    dead_jobs_make(&redis, 200, 201);
    const hf_task_order order = order_of(false, 200, 20);
    start(&order, id);
    EVENTUALLY(LONG_MS, view_of(id).done >= 5);
    hf_fixture_signal(&redis, SIGSTOP);
    ALWAYS(3000, view_of(id).state == HF_TASK_RUNNING);
    const size_t before = view_of(id).done;
    const uint64_t from = hf_test_now_ms();
    hf_fixture_signal(&redis, SIGCONT);
    EVENTUALLY(LONG_MS, view_of(id).done >= before + 60);
    assert_true(hf_test_now_ms() - from >= 2000);
    assert_true(hf_dead_tasks_stop(tasks, id));
}

static void it_stops_and_says_how_far_it_came(void **state)
{
    char id[HF_NEW_ID_SIZE];
    (void)state;
    dead_jobs_make(&redis, 1000, 1001);
    const hf_task_order order = order_of(false, 1000, 8);
    start(&order, id);
    EVENTUALLY(LONG_MS, view_of(id).done > 0);
    assert_true(hf_dead_tasks_stop(tasks, id));
    EVENTUALLY(LONG_MS, view_of(id).state == HF_TASK_STOPPED);
    const hf_task_view view = view_of(id);
    assert_true(view.stopping && view.ended_ms > 0);
    assert_true(view.done < 1000);
    assert_int_equal(dead_jobs_left(&redis), 1000 - view.done);
    assert_true(hf_dead_tasks_stop(tasks, id)); /* nothing changes */
    assert_false(hf_dead_tasks_stop(tasks, "nothing"));
}

static void only_four_run_at_a_time(void **state)
{
    char ids[HF_TASKS_AT_A_TIME][HF_NEW_ID_SIZE], id[HF_NEW_ID_SIZE];
    static hf_task_view views[HF_TASKS_KEPT];
    (void)state;
    dead_jobs_make(&redis, 1000, 1001);
    const hf_task_order order = order_of(false, 1000, 1);
    for (size_t i = 0; i < HF_TASKS_AT_A_TIME; i++)
        start(&order, ids[i]);
    assert_int_equal(hf_dead_tasks_start(tasks, &order, id), HF_BUSY);
    assert_true(hf_dead_tasks_stop(tasks, ids[1]));
    EVENTUALLY(LONG_MS, view_of(ids[1]).state == HF_TASK_STOPPED);
    start(&order, id);
    assert_int_equal(hf_dead_tasks_list(tasks, views), HF_TASKS_AT_A_TIME + 1);
    assert_string_equal(views[0].id, id);
    assert_string_equal(views[HF_TASKS_AT_A_TIME].id, ids[0]);
}

/* The oldest that has ended is forgotten, and one that runs never is. */
static void those_that_have_ended_are_kept_for_a_while(void **state)
{
    char first[HF_NEW_ID_SIZE], running[HF_NEW_ID_SIZE], id[HF_NEW_ID_SIZE];
    hf_task_view view;
    (void)state;
    dead_jobs_make(&redis, 10, 11);
    const hf_task_order slow = order_of(false, 10, 1), none = order_of(true, 0, 0);
    start(&slow, running);
    start(&none, first);
    for (size_t i = 0; i < HF_TASKS_KEPT - 1; i++) {
        start(&none, id);
        EVENTUALLY(LONG_MS, view_of(id).state == HF_TASK_DONE);
    }
    assert_false(hf_dead_tasks_read(tasks, first, &view));
    assert_true(hf_dead_tasks_read(tasks, running, &view));
}

/* It waits, says so, and goes on; what Redis had not answered is told as not known. */
static void a_redis_that_is_away_is_waited_for(void **state)
{
    char id[HF_NEW_ID_SIZE];
    (void)state;
    dead_jobs_make(&redis, 60, 61);
    const hf_task_order order = order_of(false, 60, 20);
    start(&order, id);
    EVENTUALLY(LONG_MS, view_of(id).done >= 15); /* more than one slice */
    hf_fixture_signal(&redis, SIGSTOP);
    EVENTUALLY(LONG_MS, view_of(id).state == HF_TASK_AWAY);
    assert_string_not_equal(view_of(id).why, "");
    const size_t before = view_of(id).done;
    assert_true(before < 60);
    hf_fixture_signal(&redis, SIGCONT);
    for (hf_task_view v = view_of(id); !hf_dead_tasks_has_ended(&v); v = view_of(id)) {
        assert_true(v.done >= before);
        hf_test_pause_ms(2);
    }
    assert_int_equal(view_of(id).state, HF_TASK_DONE);
    const hf_task_view view = view_of(id);
    assert_int_equal(dead_jobs_left(&redis), 0);
    assert_true(view.done + view.unsure >= 60);
    assert_true(view.done <= 60);
}

static void a_task_that_waits_can_be_stopped(void **state)
{
    char id[HF_NEW_ID_SIZE];
    (void)state;
    dead_jobs_make(&redis, 60, 61);
    hf_fixture_signal(&redis, SIGSTOP);
    const hf_task_order order = order_of(false, 60, 20);
    start(&order, id);
    EVENTUALLY(LONG_MS, view_of(id).state == HF_TASK_AWAY);
    assert_true(hf_dead_tasks_stop(tasks, id));
    EVENTUALLY(LONG_MS, view_of(id).state == HF_TASK_STOPPED);
    hf_fixture_signal(&redis, SIGCONT);
}

static void a_redis_that_refuses_ends_it(void **state)
{
    char id[HF_NEW_ID_SIZE];
    (void)state;
    dead_jobs_make(&redis, 10, 11);
    (void)hf_fixture_command(&redis, "DEL hf:{q}:schedule");
    (void)hf_fixture_command(&redis, "SET hf:{q}:schedule x");
    const hf_task_order order = order_of(false, 10, 0);
    start(&order, id);
    EVENTUALLY(LONG_MS, view_of(id).state == HF_TASK_FAILED);
    assert_string_not_equal(view_of(id).why, "");
    assert_int_equal(view_of(id).done, 0);
}

#define TEST(name)                                                                       \
    cmocka_unit_test_prestate_setup_teardown(name, set_up, tear_down, &redis)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(only_the_jobs_of_the_group_are_retried),
        TEST(a_purge_takes_no_more_than_was_counted),
        TEST(what_dies_later_stays),
        TEST(the_rate_is_kept),
        TEST(a_delay_is_not_made_up_for),
        TEST(it_stops_and_says_how_far_it_came),
        TEST(only_four_run_at_a_time),
        TEST(those_that_have_ended_are_kept_for_a_while),
        TEST(a_redis_that_is_away_is_waited_for),
        TEST(a_task_that_waits_can_be_stopped),
        TEST(a_redis_that_refuses_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
