/* test_locks_clock.c - processes take locks of all kinds while the clock of Redis steps
 * by up to hours and runs away, and everything else goes wrong as well: at no time do two
 * of them believe in locks that exclude each other.
 *
 * From the environment: HF_SEED, and HF_HISTORY_MS, how long one seed takes; HF_KEEP=1:
 * the history stays. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/history/nemesis.h"
#include "tests/history/play.h"

enum { SEEDS = 2, PLAY_MS = 5000, SOON_MS = 120000, LEASE_MS = 1000 };

static hf_history_fixture fixture;
static bool open_fixture;

static int end(void **state)
{
    (void)state;
    if (open_fixture)
        hf_history_fixture_end(&fixture);
    open_fixture = false;
    return 0;
}

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

/* Once all is well again, a lock is had. */
static void finish(void)
{
    hf_fixture_clock_slew(&fixture.redis, 0);
    uint64_t from = hf_test_now_ms();
    for (unsigned i = 0; i < HF_PLAY_NAMES; i++) {
        hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .lease_ms = LEASE_MS, .wait_ms = SOON_MS};
        hf_taken *t =
            hf_history_fixture_take(&fixture, fixture.b, hf_play_names[i], opts);
        if (t == NULL)
            fail_msg("%s was not had", hf_play_names[i]);
        (void)hf_record_release(t);
    }
    print_message("the last locks were had after %" PRIu64 " ms\n",
                  hf_test_now_ms() - from);
}

static void play(uint64_t seed, unsigned ms)
{
    hf_nemesis nemesis;
    print_message("HF_SEED=%" PRIu64 "\n", seed);
    hf_history_fixture_begin(&fixture);
    open_fixture = true;
    hf_nemesis_clock(&nemesis, &fixture, seed, ms);
    hf_nemesis_print(&nemesis);
    hf_history_fixture_check(&fixture);
    hf_report_print(&fixture.report, stdout);
    assert_int_equal(fixture.report.broken[RULE_S1], 0);
    assert_true(hf_nemesis_enough(&nemesis, fixture.report.acquired));
    finish();
}

static void s1_no_two_believe_with_any_clock_of_redis(void **state)
{
    uint64_t any;
    assert_int_equal(hf_random_bytes(&any, sizeof any), HF_OK);
    const uint64_t seed = from_environment("HF_SEED", 0);
    const unsigned ms = (unsigned)from_environment("HF_HISTORY_MS", PLAY_MS);
    for (unsigned i = 0; i < (seed == 0 ? SEEDS : 1); i++) {
        play(seed == 0 ? (any >> 32) + i : seed, ms);
        (void)end(state);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(s1_no_two_believe_with_any_clock_of_redis, end)};
    if (argc == 8 && strcmp(argv[1], "play") == 0)
        return hf_play_main(argv + 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
