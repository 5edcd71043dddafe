/* test_directed.c - histories in which one thing goes wrong at the worst moment: each
 * breaks a rule of history.h at once if the code that guards it is broken. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "tests/history/fixture.h"
#include "tests/support/proc.h"

enum { LONG_MS = 30000, DEAD_LEASE_MS = 400 };

static hf_history_fixture fixture;

static hf_taken *must(hf_lock_client *locks, const char *name, hf_lock_opts opts)
{
    hf_taken *t = hf_history_fixture_take(&fixture, locks, name, opts);
    assert_non_null(t);
    return t;
}

static bool is_held(const hf_taken *t)
{
    return hf_lock_held(hf_taken_lock(t));
}

/* ---- S1: the deadline counts from before the request ---- */

/* True: its holder has it from 2/3 of its lease on, and the next one waited. */
static bool answered_late(void)
{
    enum { LEASE_MS = 1500 };
    const hf_lock_opts fixed = {HF_LOCK_OPTS_INIT, .lease_ms = LEASE_MS, .fixed = true};
    hf_seeker late, next;
    uint64_t from = hf_boot_ns();
    hf_proxy_keep_answer(&fixture.proxy, "late");
    hf_seek_begin(&late, &fixture, fixture.a, "late", fixed);
    EVENTUALLY(LONG_MS, hf_proxy_kept(&fixture.proxy) == 1);
    hf_seek_begin(&next, &fixture, fixture.b, "late",
                  (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = LONG_MS});
    hf_test_pause_ms(LEASE_MS * 2 / 3);
    hf_proxy_let_go(&fixture.proxy);
    hf_seek_end(&late);
    hf_history_fixture_disturbed(&fixture, from, hf_boot_ns());
    hf_seek_end(&next);
    assert_non_null(next.taken);
    bool had = late.taken != NULL;
    if (had)
        (void)hf_record_release(late.taken);
    (void)hf_record_release(next.taken);
    return had;
}

static void s1_an_answer_that_comes_late(void **state)
{
    bool had = false;
    (void)state;
    (void)hf_record_release(must(fixture.a, "before", (hf_lock_opts){HF_LOCK_OPTS_INIT}));
    for (int i = 0; i < 5 && !had; i++) /* a machine may be too busy for it */
        had = answered_late();
    hf_history_fixture_judge(&fixture);
    assert_true(had);
}

/* ---- S4: only its own ---- */

/* Takes it until that is possible: the lease of another life ends first. */
static hf_taken *take_when_over(hf_lock_client *locks, const char *name,
                                hf_lock_opts opts)
{
    hf_taken *t = NULL;
    EVENTUALLY(LONG_MS,
               (t = hf_history_fixture_take(&fixture, locks, name, opts)) != NULL);
    return t;
}

static void released_by_an_earlier_one(const char *name, hf_lock_opts opts)
{
    hf_lock_opts fixed = opts, other = opts;
    fixed.lease_ms = 300;
    fixed.fixed = true;
    other.owner = NULL;
    hf_taken *old = must(fixture.a, name, fixed);
    hf_taken *new = take_when_over(fixture.b, name, opts);
    assert_false(is_held(old));
    hf_lock_release_result result = hf_record_release(old);
    hf_taken *third = hf_history_fixture_take(&fixture, fixture.a, name, other);
    bool held = is_held(new);
    (void)hf_record_release(new);
    if (third != NULL)
        (void)hf_record_release(third);
    hf_history_fixture_judge(&fixture);
    assert_true(result == HF_RELEASE_EXPIRED || result == HF_RELEASE_NOT_OWNER);
    assert_true(held);
    assert_null(third);
}

static void s4_a_line_is_not_left_for_another_life(void **state)
{
    (void)state;
    released_by_an_earlier_one("line", (hf_lock_opts){HF_LOCK_OPTS_INIT, .owner = "me"});
}

static void s4_a_cell_is_not_released_by_another(void **state)
{
    (void)state;
    released_by_an_earlier_one("cell",
                               (hf_lock_opts){HF_LOCK_OPTS_INIT, .form = HF_LOCK_SPIN});
}

/* ---- O1: the dead are passed over ---- */

/* The program itself, as a process that waits and will be killed. */
static int wait_until_killed(const char *url, const char *name)
{
    hf_lock_client *locks;
    hf_lock *lock;
    const hf_lock_opts opts = {
        HF_LOCK_OPTS_INIT,         .names = &name, .n_names = 1, .owner = "dead",
        .lease_ms = DEAD_LEASE_MS, .wait_ms = -1};
    if (hf_lock_client_open(&locks,
                            &(hf_lock_client_opts){HF_LOCK_CLIENT_OPTS_INIT,
                                                   .server = HF_SERVER(.url = url)},
                            NULL) != HF_OK)
        return 1;
    return hf_lock_acquire_wait(locks, &opts, &lock, NULL) == HF_OK ? 0 : 1;
}

static void kill_while_waiting(const char *name)
{
    const char *const args[] = {hf_proc_self(), "wait", hf_fixture_url(&fixture.redis),
                                name, NULL};
    hf_proc p;
    hf_proc_start(&p, &(hf_proc_options){.args = args});
    EVENTUALLY(LONG_MS, hf_history_fixture_queue(&fixture, name) == 1);
    hf_proc_kill(&p);
}

static bool dead_lease_is_over(const char *name)
{
    long long began =
        hf_fixture_number(&fixture.redis, "ZSCORE hf:lock:{%s}:x:%s dead", name, name);
    return began + DEAD_LEASE_MS < hf_wall_ms();
}

static bool dead_is_granted(const char *name)
{
    return strncmp(hf_fixture_command(&fixture.redis, "HGET hf:lock:{%s}:e:%s dead", name,
                                      name),
                   "x 1", 3) == 0;
}

static void o1_a_dead_waiter_is_passed_over(void **state)
{
    hf_seeker next;
    (void)state;
    hf_taken *first = must(fixture.a, "n", (hf_lock_opts){HF_LOCK_OPTS_INIT});
    kill_while_waiting("n");
    hf_seek_begin(
        &next, &fixture, fixture.b, "n",
        (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = LONG_MS, .lease_ms = 3000});
    EVENTUALLY(LONG_MS,
               dead_lease_is_over("n") && hf_history_fixture_queue(&fixture, "n") > 0);
    (void)hf_record_release(first);
    EVENTUALLY(LONG_MS, next.done || dead_is_granted("n"));
    if (!next.done)
        hf_history_fixture_delete(&fixture,
                                  "n"); /* it stands in line anew, and the test ends */
    hf_seek_end(&next);
    hf_history_fixture_judge(&fixture);
    assert_non_null(next.taken);
    (void)hf_record_release(next.taken);
}

static void l1_a_dead_holder_is_followed_by_the_next(void **state)
{
    hf_seeker next;
    (void)state;
    hf_taken *first =
        must(fixture.a, "n",
             (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = 300, .fixed = true});
    hf_seek_begin(&next, &fixture, fixture.b, "n",
                  (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = LONG_MS});
    hf_seek_end(&next);
    assert_non_null(next.taken);
    assert_false(is_held(first));
    (void)hf_record_release(first);
    assert_true(is_held(next.taken));
    (void)hf_record_release(next.taken);
    hf_history_fixture_judge(&fixture);
}

/* ---- S7: what is gone is not renewed ---- */

static void gone_is_told(const char *name, hf_lock_opts opts)
{
    enum { LEASE_MS = 600 };
    opts.lease_ms = LEASE_MS;
    hf_taken *old = must(fixture.a, name, opts);
    hf_history_fixture_delete(&fixture, name);
    uint64_t until_ns = hf_boot_ns() + 3 * LEASE_MS * HF_MS_NS;
    hf_taken *new = must(fixture.b, name, opts);
    while (is_held(old) && hf_boot_ns() < until_ns)
        hf_test_pause_ms(2);
    bool held = is_held(old);
    (void)hf_record_release(old);
    (void)hf_record_release(new);
    hf_history_fixture_judge(&fixture);
    assert_false(held);
}

static void s7_a_line_that_was_deleted_is_not_renewed(void **state)
{
    (void)state;
    gone_is_told("n", (hf_lock_opts){HF_LOCK_OPTS_INIT});
}

static void s7_a_cell_that_was_deleted_is_not_renewed(void **state)
{
    (void)state;
    gone_is_told("n", (hf_lock_opts){HF_LOCK_OPTS_INIT, .form = HF_LOCK_SPIN});
}

/* ---- S12: in order, whatever the mode ---- */

static void s12_no_client_overtakes_an_exclusive_waiter(void **state)
{
    const hf_lock_opts shared = {HF_LOCK_OPTS_INIT, .mode = HF_LOCK_SHARED,
                                 .owner = "reader"};
    hf_lock_opts alone = shared;
    hf_seeker writer;
    (void)state;
    hf_taken *first = must(fixture.a, "n", shared);
    hf_seek_begin(&writer, &fixture, fixture.b, "n",
                  (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = LONG_MS});
    EVENTUALLY(LONG_MS, hf_history_fixture_queue(&fixture, "n") == 1);
    hf_taken *second = hf_history_fixture_take(
        &fixture, fixture.a, "n",
        (hf_lock_opts){HF_LOCK_OPTS_INIT, .mode = HF_LOCK_SHARED});
    alone.mode = HF_LOCK_EXCLUSIVE;
    alone.reentrant = true;
    alone.wait_ms = LONG_MS;
    hf_taken *upgraded = hf_history_fixture_take(&fixture, fixture.a, "n", alone);
    (void)hf_record_release(first);
    if (second != NULL)
        (void)hf_record_release(second);
    hf_seek_end(&writer);
    if (writer.taken != NULL)
        (void)hf_record_release(writer.taken);
    hf_history_fixture_judge(&fixture);
    assert_null(second);
    assert_null(upgraded);
    assert_non_null(writer.taken);
}

/* ---- O2: what a hand-over costs ---- */

enum { MANY = 24, HAND_OVERS = 6 };

/* The least number of scripts, and of what they call, between a release and the next
 * holder's knowing; with `n` that wait. */
static unsigned long hand_over_cost(const char *name, size_t n)
{
    hf_seeker seekers[MANY];
    unsigned long least = (unsigned long)-1;
    hf_taken *holder =
        must(fixture.a, name, (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = 600000});
    for (size_t i = 0; i < n; i++) {
        hf_seek_begin(
            &seekers[i], &fixture, fixture.b, name,
            (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = 600000, .wait_ms = -1});
        EVENTUALLY(LONG_MS, hf_history_fixture_queue(&fixture, name) == (long long)i + 1);
    }
    for (size_t i = 0; i < n; i++) {
        hf_watch_sync(&fixture.watch);
        unsigned long before = atomic_load(&fixture.watch.commands);
        (void)hf_record_release(holder);
        hf_seek_end(&seekers[i]);
        assert_non_null(holder = seekers[i].taken);
        hf_watch_sync(&fixture.watch);
        unsigned long cost = atomic_load(&fixture.watch.commands) - before;
        if (i < HAND_OVERS && i + 1 < n && cost < least)
            least = cost;
    }
    (void)hf_record_release(holder);
    return least;
}

static void o2_a_hand_over_costs_the_same_for_few_and_many(void **state)
{
    (void)state;
    unsigned long few = hand_over_cost("few", HAND_OVERS);
    unsigned long many = hand_over_cost("many", MANY);
    print_message("%lu and %lu calls of scripts for a hand-over\n", few, many);
    assert_true(few > 3);
    assert_int_equal(few, many);
    hf_history_fixture_judge(&fixture);
    assert_int_equal(fixture.report.waited, HAND_OVERS + MANY);
    assert_int_equal(fixture.report.messages, HAND_OVERS + MANY);
}

#define TEST(name) HF_HISTORY_TEST(name, &fixture)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(o1_a_dead_waiter_is_passed_over),
        TEST(s1_an_answer_that_comes_late),
        TEST(s4_a_line_is_not_left_for_another_life),
        TEST(s4_a_cell_is_not_released_by_another),
        TEST(l1_a_dead_holder_is_followed_by_the_next),
        TEST(s7_a_line_that_was_deleted_is_not_renewed),
        TEST(s7_a_cell_that_was_deleted_is_not_renewed),
        TEST(s12_no_client_overtakes_an_exclusive_waiter),
        TEST(o2_a_hand_over_costs_the_same_for_few_and_many),
    };
    if (argc == 4 && strcmp(argv[1], "wait") == 0)
        return wait_until_killed(argv[2], argv[3]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
