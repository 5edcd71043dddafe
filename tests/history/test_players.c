/* test_players.c - processes that take locks of all kinds at random, with and without
 * faults around them: their history is always sound.
 *
 * From the environment: HF_SEED, and HF_HISTORY_MS, how long they play;
 * HF_KEEP=1: the history stays. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/history/nemesis.h"
#include "tests/history/play.h"

enum { PLAY_MS = 5000 };

static hf_history_fixture fixture;

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

static uint64_t any_seed(void)
{
    uint64_t any;
    assert_int_equal(hf_random_bytes(&any, sizeof any), HF_OK);
    uint64_t seed = from_environment("HF_SEED", any >> 32);
    print_message("HF_SEED=%" PRIu64 "\n", seed);
    return seed;
}

static unsigned how_long(void)
{
    return (unsigned)from_environment("HF_HISTORY_MS", PLAY_MS);
}

static void their_history_is_sound(void **state)
{
    hf_nemesis nemesis;
    (void)state;
    hf_nemesis_run(&nemesis, &fixture, any_seed(), how_long());
    hf_nemesis_print(&nemesis);
    hf_history_fixture_judge(&fixture);
    hf_report_print(&fixture.report, stdout);
    assert_true(hf_nemesis_enough(&nemesis, fixture.report.acquired));
    assert_true(fixture.report.waited > 0 || nemesis.busy);
    assert_true(fixture.report.writes > 0 || nemesis.busy);
}

/* Nothing goes wrong, and no renewal helps: each grant is heard by its message. */
static void o3_a_grant_is_heard_at_once(void **state)
{
    hf_nemesis nemesis;
    (void)state;
    hf_taken *held = hf_history_fixture_take(&fixture, fixture.b, HF_PLAY_HELD,
                                             (hf_lock_opts){HF_LOCK_OPTS_INIT});
    assert_non_null(held);
    hf_nemesis_spare(&nemesis, &fixture, any_seed(), how_long());
    assert_int_equal(hf_record_release(held), HF_RELEASE_DONE);
    hf_history_fixture_judge(&fixture);
    hf_report_print(&fixture.report, stdout);
    assert_true(fixture.report.waited > 0 || nemesis.busy);
    assert_true(hf_nemesis_enough(&nemesis, fixture.report.heard));
}

#define TEST(name) HF_HISTORY_TEST(name, &fixture)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(their_history_is_sound),
        TEST(o3_a_grant_is_heard_at_once),
    };
    if (argc == 8 && strcmp(argv[1], "play") == 0)
        return hf_play_main(argv + 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
