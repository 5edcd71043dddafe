/* test_server_clock.c - the wall clock of a private server moves as a test says, for that
 * server alone, and no reading of it is torn. */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "tests/support/eventually.h"
#include "tests/support/redis_fixture.h"

enum {
    S_MS = 1000,
    HOUR_MS = 3600 * S_MS,
    NEAR_MS = 900,
    STAY_MS = 1500,
    WAIT_MS = 60000
};
enum { ROUNDS = 2000 };

static hf_fixture redis;

static int up(void **state)
{
    (void)state;
    hf_fixture_start(&redis, &(hf_fixture_options){.clock = true});
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_fixture_stop(&redis);
    return 0;
}

static int64_t real_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * S_MS + now.tv_nsec / 1000000;
}

static int64_t time_ms(hf_fixture *f)
{
    char *end;
    const char *answer = hf_fixture_command(f, "TIME");
    int64_t s = strtoll(answer, &end, 10);
    return s * S_MS + strtoll(end, NULL, 10) / 1000;
}

/* How far TIME is ahead of this process's clock. The quickest of a few answers tells it
 * best. */
static int64_t ahead_ms(hf_fixture *f)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < 10; i++) {
        const int64_t at = real_ms(), ahead = time_ms(f) - at;
        least = ahead < least ? ahead : least;
    }
    return least;
}

static bool is_near(int64_t is, int64_t expected)
{
    return is >= expected - NEAR_MS && is <= expected + NEAR_MS;
}

static void assert_near(int64_t is, int64_t expected)
{
    if (!is_near(is, expected))
        fail_msg("%" PRId64 " ms, expected about %" PRId64, is, expected);
}

static void a_step_moves_time_for_this_server_alone(void **state)
{
    static const int64_t steps[] = {20 * S_MS, -40 * S_MS, 5 * HOUR_MS, -9 * HOUR_MS, 0};
    hf_fixture other;
    int64_t sum = 0;
    (void)state;
    hf_fixture_start(&other, NULL);
    assert_near(ahead_ms(&redis), 0);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        hf_fixture_clock_jump(&redis, steps[i]);
        sum += steps[i];
        assert_near(ahead_ms(&redis), sum);
        assert_near(ahead_ms(&other), 0);
    }
    hf_fixture_clock_jump(&redis, -sum);
    hf_fixture_stop(&other);
}

static void keys_end_by_the_moved_clock(void **state)
{
    (void)state;
    assert_string_equal(hf_fixture_command(&redis, "SET k v PX 10000"), "OK");
    hf_fixture_clock_jump(&redis, -30 * S_MS);
    assert_near(hf_fixture_number(&redis, "PTTL k"), 40 * S_MS);
    hf_fixture_clock_jump(&redis, 41 * S_MS);
    assert_string_equal(hf_fixture_command(&redis, "GET k"), "(nil)");
    hf_fixture_clock_jump(&redis, -11 * S_MS);
}

/* The rate is seen once the real clock has gone on for a while. */
static void a_slew_changes_the_rate_and_a_step_keeps_it(void **state)
{
    (void)state;
    for (int permille = -100; permille <= 100; permille += 200) {
        const int64_t before = ahead_ms(&redis);
        hf_fixture_clock_slew(&redis, permille);
        hf_fixture_clock_step(&redis, 0);
        const uint64_t from = hf_test_now_ms();
        EVENTUALLY(30000, hf_test_now_ms() - from >= STAY_MS);
        hf_fixture_clock_slew(&redis, 0);
        const int64_t gained = (ahead_ms(&redis) - before) * (permille < 0 ? -1 : 1);
        assert_in_range(gained, STAY_MS / 20, 30000);
    }
}

static void a_restarted_server_continues_with_its_clock(void **state)
{
    (void)state;
    hf_fixture_clock_step(&redis, HOUR_MS);
    hf_fixture_kill(&redis, SIGKILL);
    hf_fixture_restart(&redis);
    assert_near(ahead_ms(&redis), HOUR_MS);
    hf_fixture_clock_jump(&redis, -HOUR_MS);
}

static atomic_bool enough;

static void *there_and_back(void *arg)
{
    (void)arg;
    while (!atomic_load(&enough)) {
        hf_fixture_clock_step(&redis, HOUR_MS);
        hf_fixture_clock_step(&redis, -HOUR_MS);
    }
    return NULL;
}

/* Between the steps the clock is right or one hour ahead, and never anything else. From
 * Redis 7.2 on, all readings of one script are the same. */
static void no_reading_is_torn(void **state)
{
    pthread_t thread;
    unsigned right = 0, ahead = 0;
    (void)state;
    const int64_t from = real_ms();
    assert_int_equal(pthread_create(&thread, NULL, there_and_back, NULL), 0);
    for (int i = 0;
         i < ROUNDS || ((right == 0 || ahead == 0) && real_ms() - from < WAIT_MS); i++) {
        const int64_t at = real_ms();
        int64_t ms =
            strtoll(hf_fixture_command(
                        &redis, "EVAL %s 0 %lld",
                        "local worst = 0 for i = 1, 20 do "
                        "local t = redis.call('TIME')[1] - ARGV[1] "
                        "if math.abs(t) > math.abs(worst) then worst = t end end "
                        "return worst",
                        (long long)(at / S_MS)),
                    NULL, 10) *
            S_MS;
        const int64_t slack = real_ms() - at + 2 * S_MS;
        if (ms >= -slack && ms <= slack)
            right++;
        else if (ms >= HOUR_MS - slack && ms <= HOUR_MS + slack)
            ahead++;
        else
            fail_msg("a reading was %" PRId64 " ms off", ms);
    }
    atomic_store(&enough, true);
    (void)pthread_join(thread, NULL);
    assert_true(right > 0 && ahead > 0);
    EVENTUALLY(WAIT_MS, is_near(ahead_ms(&redis), 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_moves_time_for_this_server_alone),
        cmocka_unit_test(keys_end_by_the_moved_clock),
        cmocka_unit_test(a_slew_changes_the_rate_and_a_step_keeps_it),
        cmocka_unit_test(a_restarted_server_continues_with_its_clock),
        cmocka_unit_test(no_reading_is_torn),
    };
    return cmocka_run_group_tests(tests, up, down);
}
