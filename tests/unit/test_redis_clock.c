/* test_redis_clock.c - Redis's clock as a worker knows it: never ahead, not far behind,
 * and what is a jump. Both clocks are the test's. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/random.h"
#include "tests/support/seed.h"
#include "worker/node/site.h"
#include "worker/report.h"

enum { US = 1000, MS = 1000 * US };

static hf_worker w;
static hf_site site;
static uint64_t check_at_ns; /* one more check is planned; 0: none */
static uint64_t boot_ns;
static int64_t redis_minus_boot_ns;
static int verified;
static int64_t jumped_by;

static void on_clock_back(hf_site *at)
{
    (void)at;
    check_at_ns = hf_boot_ns();
}

static const hf_site_hooks hooks = {.on_clock_back = on_clock_back};

int clock_gettime(clockid_t clock, struct timespec *out)
{
    if (clock != CLOCK_BOOTTIME)
        return (int)syscall(SYS_clock_gettime, clock, out);
    *out = (struct timespec){.tv_sec = (time_t)(boot_ns / 1000000000),
                             .tv_nsec = (long)(boot_ns % 1000000000)};
    return 0;
}

void hf_watchdog_verify(hf_watchdog *watchdog)
{
    (void)watchdog;
    verified++;
}

static void on_log(hf_log_level level, const char *message, const hf_log_field *fields,
                   size_t n, void *arg)
{
    (void)level, (void)message, (void)n, (void)arg;
    jumped_by = fields[0].number;
}

static int64_t redis_us(void)
{
    return ((int64_t)boot_ns + redis_minus_boot_ns) / US;
}

/* A request that takes so long on its way there and back. */
static void ask(uint64_t there_ns, uint64_t back_ns)
{
    uint64_t sent_ns = boot_ns;
    boot_ns += there_ns;
    int64_t now_ms = redis_us() / 1000;
    boot_ns += back_ns;
    hf_site_clock_read(&site, now_ms, sent_ns);
}

static int up(void **state)
{
    (void)state;
    w = (hf_worker){.hooks = &hooks, .opts.log = on_log};
    assert_int_equal(hf_counters_new(&w.counters), HF_OK);
    site = (hf_site){.worker = &w};
    check_at_ns = 0;
    w.opts.lease_ms = 10000;
    const hf_server_opts opts = {HF_SERVER_OPTS_INIT, .request_timeout_ms = 5000};
    assert_int_equal(hf_server_open(&site.base.redis, &opts, NULL), HF_OK);
    boot_ns = UINT64_C(5000000) * MS + 123456;
    redis_minus_boot_ns = INT64_C(1700000000000) * MS + 654321;
    verified = 0;
    jumped_by = 0;
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_server_close(site.base.redis);
    hf_counters_free(w.counters);
    return 0;
}

static void before_the_first_answer_it_is_not_known(void **state)
{
    (void)state;
    assert_int_equal(hf_server_now(site.base.redis), 0);
    assert_int_equal(hf_site_not_after(&site), 0);
    ask(MS, MS);
    assert_true(hf_server_now(site.base.redis) > 0);
    assert_int_equal(hf_site_not_after(&site), hf_server_now(site.base.redis) + 1000);
    assert_int_equal(verified, 0);
}

/* Ways of 0.05 to 50 ms, and clocks that drift apart by 0.05 %. */
static void it_is_never_ahead_and_not_far_behind(void **state)
{
    (void)state;
    hf_rng rng = {hf_test_seed()};
    for (int i = 0; i < 100000; i++) {
        uint64_t slow = hf_rng_next(&rng) % 4 == 0 ? 50 : 1;
        ask(50 * US + hf_rng_next(&rng) % (slow * MS),
            50 * US + hf_rng_next(&rng) % (slow * MS));
        uint64_t pause = hf_rng_next(&rng) % (10 * MS);
        boot_ns += pause;
        redis_minus_boot_ns -= (int64_t)pause / 2000;
        int64_t behind_ms = redis_us() / 1000 - hf_server_now(site.base.redis);
        assert_true(behind_ms >= 0);
        if (i > 100)
            assert_true(behind_ms <= 3);
    }
    assert_int_equal(verified, 0);
}

static void an_answer_that_took_long_does_not_set_it_back(void **state)
{
    (void)state;
    ask(50 * US, 50 * US);
    ask(50 * US, UINT64_C(800) * MS);
    assert_true(redis_us() / 1000 - hf_server_now(site.base.redis) <= 3);
}

static void a_slow_answer_is_no_jump(void **state)
{
    (void)state;
    ask(MS, MS);
    ask(UINT64_C(20000) * MS, MS);
    ask(MS, UINT64_C(20000) * MS);
    assert_int_equal(verified, 0);
}

static void a_jump_is_told_and_everything_verified(void **state)
{
    static const int64_t jumps_ms[] = {1500, -1500, 86400000, -86400000};
    (void)state;
    ask(MS, MS);
    for (size_t i = 0; i < sizeof jumps_ms / sizeof jumps_ms[0]; i++) {
        redis_minus_boot_ns += jumps_ms[i] * MS;
        boot_ns += 100 * (uint64_t)MS;
        ask(MS, MS);
        assert_int_equal(verified, i + 1);
        assert_true(llabs(jumped_by - jumps_ms[i]) <= 5);
        assert_true(llabs(redis_us() / 1000 - hf_server_now(site.base.redis)) <= 3);
    }
}

/* What the clock was set back by makes leases last too long: a check finds them. */
static void a_clock_that_was_set_back_plans_a_check_at_once(void **state)
{
    (void)state;
    ask(MS, MS);
    redis_minus_boot_ns += INT64_C(3000) * MS;
    ask(MS, MS);
    assert_int_equal(check_at_ns, 0);
    redis_minus_boot_ns -= INT64_C(3000) * MS;
    ask(MS, MS);
    assert_true(check_at_ns == boot_ns);
}

static void a_clock_that_was_set_by_little_is_not_told(void **state)
{
    (void)state;
    ask(MS, MS);
    for (int i = 0; i < 20; i++) {
        redis_minus_boot_ns += (i % 2 == 0 ? 900 : -900) * MS;
        ask(MS, MS);
        assert_true(llabs(redis_us() / 1000 - hf_server_now(site.base.redis)) <= 3);
    }
    assert_int_equal(verified, 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, up, down)
    const struct CMUnitTest tests[] = {
        CASE(before_the_first_answer_it_is_not_known),
        CASE(it_is_never_ahead_and_not_far_behind),
        CASE(an_answer_that_took_long_does_not_set_it_back),
        CASE(a_slow_answer_is_no_jump),
        CASE(a_jump_is_told_and_everything_verified),
        CASE(a_clock_that_was_set_back_plans_a_check_at_once),
        CASE(a_clock_that_was_set_by_little_is_not_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
