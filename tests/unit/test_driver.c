/* test_driver.c - who waits runs the loop. */
#include "lock/driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static hf_driver driver;
static uv_timer_t answer;
static hf_driver_waiter *waiter;

static void on_answer(uv_timer_t *timer)
{
    (void)timer;
    hf_driver_done(&driver, waiter);
}

static void on_turn(void *arg)
{
    (void)arg;
    uv_update_time(driver.loop);
    (void)uv_timer_start(&answer, on_answer, 0, 0);
}

static int up(void **state)
{
    (void)state;
    if (hf_driver_open(&driver, NULL, on_turn, NULL) != HF_OK)
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

static void a_timer_that_is_due_at_once_ends_the_wait(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        hf_driver_waiter self;
        assert_int_equal(hf_driver_waiter_init(&self), HF_OK);
        waiter = &self;
        hf_driver_kick(&driver);
        hf_driver_await(&driver, &self);
        hf_driver_waiter_done(&self);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_timer_that_is_due_at_once_ends_the_wait),
    };
    return cmocka_run_group_tests_name("driver", tests, up, down);
}
