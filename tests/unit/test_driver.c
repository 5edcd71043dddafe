/* test_driver.c - who waits runs the loop: first it looks, then it sleeps. */
#include "lock/driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"

enum { SLOW_MS = 300 };

static hf_driver driver;
static uv_timer_t answer;
static hf_driver_waiter *waiter;
static uint64_t answer_ms;
static unsigned looked;
static bool due;

static void on_answer(uv_timer_t *timer)
{
    (void)timer;
    hf_driver_done(&driver, waiter);
}

static void on_turn(void *arg)
{
    (void)arg;
    uv_update_time(driver.loop);
    (void)uv_timer_start(&answer, on_answer, answer_ms, 0);
}

static bool is_due(void *arg)
{
    (void)arg;
    looked++;
    return due;
}

static int up(void **state)
{
    (void)state;
    if (hf_driver_open(&driver, NULL, on_turn, is_due, NULL) != HF_OK)
        return -1;
    return uv_timer_init(driver.loop, &answer);
}

static int down(void **state)
{
    (void)state;
    hf_driver_stop(&driver);
    uv_close((uv_handle_t *)&answer, NULL);
    hf_driver_close_wake(&driver, NULL);
    (void)uv_run(driver.loop, UV_RUN_DEFAULT);
    hf_driver_free(&driver);
    return 0;
}

/* Processor time of this thread in ms, while it waits for the answer. */
static double wait_ms(uint64_t ms)
{
    struct timespec before, after;
    hf_driver_waiter self;
    assert_int_equal(hf_driver_waiter_init(&self), HF_OK);
    waiter = &self;
    answer_ms = ms;
    looked = 0;
    hf_driver_kick(&driver);
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    hf_driver_await(&driver, &self);
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    hf_driver_waiter_done(&self);
    return (double)(after.tv_sec - before.tv_sec) * 1e3 +
           (double)(after.tv_nsec - before.tv_nsec) / 1e6;
}

static void a_timer_that_is_due_at_once_ends_the_wait(void **state)
{
    (void)state;
    due = false;
    for (int i = 0; i < 100; i++)
        (void)wait_ms(0);
}

/* The clock may jump over the moment in which an answer is recent: then once more. */
static void who_has_just_had_an_answer_looks_for_the_next_one(void **state)
{
    (void)state;
    due = true;
    for (int i = 0; i < 1000; i++) {
        (void)wait_ms(0);
        (void)wait_ms(2);
        if (looked > 3)
            return;
        driver.spin.skip = 0;
    }
    fail_msg("it slept at once a thousand times");
}

static void it_does_not_look_for_long(void **state)
{
    (void)state;
    due = true;
    for (int i = 0; i < 3; i++) {
        (void)wait_ms(0);
        driver.spin.skip = 0;
        assert_true(wait_ms(SLOW_MS) < SLOW_MS / 2.0);
    }
}

static void it_does_not_look_for_what_is_not_due(void **state)
{
    (void)state;
    due = false;
    for (int i = 0; i < 100; i++) {
        (void)wait_ms(0);
        driver.spin.skip = 0;
        (void)wait_ms(1);
        assert_true(looked <= 3); /* before each sleep */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_timer_that_is_due_at_once_ends_the_wait),
        cmocka_unit_test(who_has_just_had_an_answer_looks_for_the_next_one),
        cmocka_unit_test(it_does_not_look_for_long),
        cmocka_unit_test(it_does_not_look_for_what_is_not_due),
    };
    (void)alarm(30); /* what sleeps for ever fails */
    return cmocka_run_group_tests_name("driver", tests, up, down);
}
