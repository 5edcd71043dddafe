/* test_lock.c - what a lock promises to its holder and to those that wait: mutual
 * exclusion, order, modes, permits, several at once. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "tests/support/lock_fixture.h"

static hf_lock_fixture fixture;

static hf_lock *must(hf_lock_client *locks, const char *name)
{
    return hf_lock_must(&fixture, locks, name, (hf_lock_opts){HF_LOCK_OPTS_INIT});
}

/* ---- one holder ---- */

static void p1_one_holder_at_a_time(void **state)
{
    (void)state;
    hf_lock *lock = must(fixture.a, "n");
    hf_lock_refused(&fixture, fixture.b, "n", (hf_lock_opts){HF_LOCK_OPTS_INIT},
                    HF_TAKEN);
    hf_lock_refused(&fixture, fixture.b, "n",
                    (hf_lock_opts){HF_LOCK_OPTS_INIT, .form = HF_LOCK_SPIN}, HF_TAKEN);
    hf_lock_refused(&fixture, fixture.b, "n",
                    (hf_lock_opts){HF_LOCK_OPTS_INIT, .mode = HF_LOCK_SHARED}, HF_TAKEN);
    hf_lock_released(lock);
    hf_lock_released(must(fixture.b, "n"));
}

static void a_cell_and_a_line_exclude_each_other(void **state)
{
    (void)state;
    hf_lock_waiter w;
    hf_lock *cell = hf_lock_must(&fixture, fixture.a, "n",
                                 (hf_lock_opts){HF_LOCK_OPTS_INIT, .form = HF_LOCK_SPIN});
    hf_lock_refused(&fixture, fixture.b, "n", (hf_lock_opts){HF_LOCK_OPTS_INIT},
                    HF_TAKEN);
    hf_lock_wait_begin(&w, &fixture, fixture.b, "n", (hf_lock_opts){HF_LOCK_OPTS_INIT});
    hf_lock_released(cell);
    hf_lock_wait_released(&w);
}

static void p5_a_timed_wait_ends_in_time_and_leaves_nothing(void **state)
{
    (void)state;
    hf_lock *lock = must(fixture.a, "n");
    for (int i = 0; i < 20; i++) {
        uint64_t start = hf_test_now_ms();
        hf_lock_refused(&fixture, fixture.b, "n",
                        (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = 30}, HF_TAKEN);
        assert_true(hf_test_now_ms() - start >= 29);
    }
    EVENTUALLY(15000, hf_lock_queue(&fixture, "n") == 0);
    hf_lock_released(lock);
    assert_int_equal(hf_fixture_number(&fixture.redis, "EXISTS hf:lock:{n}:e:n"), 0);
}

static void s3_fences_rise_also_past_force_and_expiry(void **state)
{
    uint64_t last = 0;
    size_t n;
    (void)state;
    for (int i = 0; i < 10; i++) {
        hf_lock *lock = must(i % 2 ? fixture.a : fixture.b, "n");
        assert_true(hf_lock_fence(lock) > last);
        last = hf_lock_fence(lock);
        if (i % 3 == 0)
            assert_int_equal(hf_lock_force(fixture.b, "n", NULL, &n, fixture.detail),
                             HF_OK);
        (void)hf_lock_release_wait(lock, NULL);
    }
}

static void f3_a_lease_that_ended_is_not_released_from_the_next_holder(void **state)
{
    (void)state;
    hf_lock *old =
        hf_lock_must(&fixture, fixture.a, "n",
                     (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = 1500, .fixed = true});
    hf_lock *new = hf_lock_must(&fixture, fixture.b, "n",
                                (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = 20000});
    assert_false(hf_lock_held(old));
    assert_true(hf_lock_fence(new) > hf_lock_fence(old));
    assert_int_equal(hf_lock_release_wait(old, NULL), HF_RELEASE_NOT_OWNER);
    assert_true(hf_lock_held(new));
    hf_lock_released(new);
}

static void r4_a_fixed_lease_ends(void **state)
{
    (void)state;
    hf_lock *lock =
        hf_lock_must(&fixture, fixture.a, "n",
                     (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = 1500, .fixed = true});
    int fd = hf_lock_fd(lock);
    assert_true(fd >= 0);
    EVENTUALLY(20000, !hf_lock_held(lock));
    EVENTUALLY(20000, fixture.lost == 1);
    assert_int_equal(hf_lock_why(lock), HF_LOCK_DEADLINE);
    hf_lock_release_result result = hf_lock_release_wait(lock, NULL);
    assert_true(result == HF_RELEASE_EXPIRED || result == HF_RELEASE_DONE);
}

static void r3_a_lease_is_renewed_while_it_is_held(void **state)
{
    (void)state;
    hf_lock *lock = hf_lock_must(&fixture, fixture.a, "n",
                                 (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = 4500});
    for (int i = 0; i < 2; i++) {
        uint64_t deadline_ns = hf_lock_deadline_ns(lock);
        EVENTUALLY(20000, hf_lock_deadline_ns(lock) > deadline_ns);
    }
    hf_lock_refused(&fixture, fixture.b, "n", (hf_lock_opts){HF_LOCK_OPTS_INIT},
                    HF_TAKEN);
    hf_lock_released(lock);
}

static void a_lock_is_held_no_longer_than_max_hold(void **state)
{
    (void)state;
    hf_lock *lock = hf_lock_must(
        &fixture, fixture.a, "n",
        (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = 10000, .max_hold_ms = 500});
    EVENTUALLY(20000, fixture.lost == 1);
    assert_int_equal(hf_lock_why(lock), HF_LOCK_MAX_HOLD);
    hf_lock *next = hf_lock_must(&fixture, fixture.b, "n",
                                 (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = 20000});
    (void)hf_lock_release_wait(lock, NULL);
    hf_lock_released(next);
}

/* ---- owners ---- */

static void r5_an_owner_holds_as_often_as_it_acquires(void **state)
{
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .reentrant = true, .owner = "me"};
    size_t left = 9;
    (void)state;
    hf_lock *one = hf_lock_must(&fixture, fixture.a, "n", opts);
    hf_lock *two = hf_lock_must(&fixture, fixture.b, "n", opts);
    assert_true(hf_lock_fence(one) == hf_lock_fence(two));
    assert_int_equal(hf_lock_release_wait(one, &left), HF_RELEASE_STILL_HELD);
    assert_int_equal(left, 1);
    hf_lock_refused(&fixture, fixture.b, "n", (hf_lock_opts){HF_LOCK_OPTS_INIT},
                    HF_TAKEN);
    hf_lock_released(two);
    hf_lock_released(must(fixture.b, "n"));
}

static void r14_without_reentrance_the_same_owner_is_refused_at_once(void **state)
{
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .owner = "me", .wait_ms = -1};
    (void)state;
    hf_lock *lock = hf_lock_must(&fixture, fixture.a, "n", opts);
    hf_lock_refused(&fixture, fixture.b, "n", opts, HF_DEADLOCK);
    hf_lock_released(lock);
}

/* Its answer was lost, say: the second request counts from its own time, so must Redis.
 */
static void a_cell_that_is_entered_again_lasts_from_then_on(void **state)
{
    hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .form = HF_LOCK_SPIN, .owner = "me",
                         .fixed = true};
    (void)state;
    hf_lock *one = hf_lock_must(&fixture, fixture.a, "n", opts);
    (void)hf_fixture_command(&fixture.redis, "PEXPIRE hf:lock:{n}:cell:n 2000");
    hf_lock *two = hf_lock_must(&fixture, fixture.b, "n", opts);
    assert_true(hf_lock_fence(one) == hf_lock_fence(two));
    long long left_ms = hf_fixture_number(&fixture.redis, "PTTL hf:lock:{n}:cell:n");
    assert_true(left_ms > 2000 && left_ms >= hf_lock_remaining_ms(two));
    opts.owner = "you";
    hf_lock_refused(&fixture, fixture.b, "n", opts, HF_TAKEN);
    assert_int_equal(hf_lock_release_wait(one, NULL), HF_RELEASE_DONE);
    assert_int_equal(hf_lock_release_wait(two, NULL), HF_RELEASE_EXPIRED);
}

/* ---- shared ---- */

static void r11_readers_share_and_a_writer_is_alone(void **state)
{
    const hf_lock_opts shared = {HF_LOCK_OPTS_INIT, .mode = HF_LOCK_SHARED};
    hf_lock_waiter writer, reader;
    (void)state;
    hf_lock *one = hf_lock_must(&fixture, fixture.a, "n", shared);
    hf_lock *two = hf_lock_must(&fixture, fixture.b, "n", shared);
    hf_lock_wait_begin(&writer, &fixture, fixture.a, "n",
                       (hf_lock_opts){HF_LOCK_OPTS_INIT});
    hf_lock_refused(&fixture, fixture.b, "n", shared,
                    HF_TAKEN); /* not past a writer that waits */
    hf_lock_wait_begin(&reader, &fixture, fixture.b, "n", shared);
    hf_lock_released(one);
    ALWAYS(50, !writer.done);
    hf_lock_released(two);
    hf_lock_wait_end(&writer);
    assert_int_equal(writer.err, HF_OK);
    ALWAYS(50, !reader.done);
    assert_int_equal(hf_lock_downgrade_wait(writer.lock, NULL), HF_OK);
    hf_lock_wait_end(&reader); /* comes in beside it */
    assert_int_equal(reader.err, HF_OK);
    assert_true(hf_lock_held(writer.lock));
    hf_lock_released(writer.lock);
    hf_lock_released(reader.lock);
}

static void r15_an_upgrade_is_refused_at_once(void **state)
{
    hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .mode = HF_LOCK_SHARED, .reentrant = true,
                         .owner = "me"};
    (void)state;
    hf_lock *lock = hf_lock_must(&fixture, fixture.a, "n", opts);
    opts.mode = HF_LOCK_EXCLUSIVE;
    opts.wait_ms = -1;
    hf_lock_refused(&fixture, fixture.a, "n", opts, HF_DEADLOCK);
    hf_lock_released(lock);
}

/* What it wrote is done, what it reads is not: who waits to read comes in. */
static void r15_a_writer_that_also_reads_becomes_a_reader(void **state)
{
    hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .reentrant = true, .owner = "me"};
    hf_lock_waiter reader, writer;
    size_t left = 9;
    (void)state;
    hf_lock *writes = hf_lock_must(&fixture, fixture.a, "n", opts);
    opts.mode = HF_LOCK_SHARED;
    hf_lock *reads = hf_lock_must(&fixture, fixture.a, "n", opts);
    hf_lock_wait_begin(&reader, &fixture, fixture.b, "n",
                       (hf_lock_opts){HF_LOCK_OPTS_INIT, .mode = HF_LOCK_SHARED});
    hf_lock_wait_begin(&writer, &fixture, fixture.b, "n",
                       (hf_lock_opts){HF_LOCK_OPTS_INIT});
    assert_int_equal(hf_lock_release_wait(writes, &left), HF_RELEASE_STILL_HELD);
    assert_int_equal(left, 1);
    hf_lock_wait_end(&reader);
    assert_int_equal(reader.err, HF_OK);
    assert_true(hf_lock_held(reads));
    opts.mode = HF_LOCK_EXCLUSIVE;
    hf_lock_refused(&fixture, fixture.a, "n", opts, HF_DEADLOCK); /* and not back */
    assert_false(writer.done);
    hf_lock_released(reads);
    hf_lock_released(reader.lock);
    hf_lock_wait_released(&writer);
}

static void r6_a_reader_may_read_again_past_a_writer_that_waits(void **state)
{
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .mode = HF_LOCK_SHARED,
                               .reentrant = true, .owner = "me"};
    hf_lock_waiter writer;
    (void)state;
    hf_lock *outer = hf_lock_must(&fixture, fixture.a, "n", opts);
    hf_lock_wait_begin(&writer, &fixture, fixture.b, "n",
                       (hf_lock_opts){HF_LOCK_OPTS_INIT});
    hf_lock *inner = hf_lock_must(&fixture, fixture.a, "n", opts);
    assert_int_equal(hf_lock_release_wait(inner, NULL), HF_RELEASE_STILL_HELD);
    hf_lock_released(outer);
    hf_lock_wait_released(&writer);
}

/* ---- permits ---- */

static void permits_are_never_exceeded_and_given_in_order(void **state)
{
    const hf_lock_opts two = {HF_LOCK_OPTS_INIT, .mode = HF_LOCK_PERMITS, .permits = 2,
                              .limit = 3};
    const hf_lock_opts one = {HF_LOCK_OPTS_INIT, .mode = HF_LOCK_PERMITS, .permits = 1,
                              .limit = 3};
    const hf_lock_opts other = {HF_LOCK_OPTS_INIT, .mode = HF_LOCK_PERMITS, .permits = 1,
                                .limit = 4};
    hf_lock_waiter big, small;
    (void)state;
    hf_lock *a = hf_lock_must(&fixture, fixture.a, "n", two);
    hf_lock_wait_begin(&big, &fixture, fixture.b, "n", two);
    hf_lock_wait_begin(&small, &fixture, fixture.a, "n",
                       one); /* fits, but is not the head */
    ALWAYS(50, !small.done && !big.done);
    hf_lock_refused(&fixture, fixture.b, "n", other, HF_LIMIT);
    hf_lock_released(a);
    hf_lock_wait_end(&big);
    hf_lock_wait_end(&small);
    assert_int_equal(big.err, HF_OK);
    assert_int_equal(small.err, HF_OK);
    hf_lock_refused(&fixture, fixture.b, "n", one, HF_TAKEN);
    hf_lock_released(big.lock);
    hf_lock_released(small.lock);
}

/* ---- several at once ---- */

static void r9_several_locks_of_a_tag_all_or_none(void **state)
{
    static const char *const both[] = {"t/b", "t/a"};
    hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .names = both, .n_names = 2};
    hf_lock_waiter w;
    (void)state;
    hf_lock *a = must(fixture.a, "t/a");
    hf_lock_refused(&fixture, fixture.b, "t/a", opts, HF_TAKEN);
    hf_lock_released(must(fixture.a, "t/b")); /* nothing was taken of it */
    hf_lock *b = must(fixture.a, "t/b");
    hf_lock_wait_begin(&w, &fixture, fixture.b, "t/a", opts);
    hf_lock_released(b);
    ALWAYS(50, !w.done);
    hf_lock_refused(&fixture, fixture.a, "t/b", (hf_lock_opts){HF_LOCK_OPTS_INIT},
                    HF_TAKEN); /* its turn */
    hf_lock_released(a);
    hf_lock_wait_end(&w);
    assert_int_equal(w.err, HF_OK);
    hf_lock_refused(&fixture, fixture.a, "t/a", (hf_lock_opts){HF_LOCK_OPTS_INIT},
                    HF_TAKEN);
    hf_lock_refused(&fixture, fixture.a, "t/b", (hf_lock_opts){HF_LOCK_OPTS_INIT},
                    HF_TAKEN);
    hf_lock_released(w.lock);
    hf_lock_released(must(fixture.a, "t/a"));
    hf_lock_released(must(fixture.a, "t/b"));
}

/* ---- the line ---- */

static void o1_first_come_first_served(void **state)
{
    hf_lock_waiter w[8];
    (void)state;
    hf_lock *lock = must(fixture.a, "n");
    for (size_t i = 0; i < HF_COUNT(w); i++)
        hf_lock_wait_begin(&w[i], &fixture, i % 2 ? fixture.a : fixture.b, "n",
                           (hf_lock_opts){HF_LOCK_OPTS_INIT});
    hf_lock_released(lock);
    for (size_t i = 0; i < HF_COUNT(w); i++) {
        hf_lock_wait_end(&w[i]);
        assert_int_equal(w[i].err, HF_OK);
        for (size_t k = i + 1; k < HF_COUNT(w); k++)
            assert_false(w[k].done);
        hf_lock_released(w[i].lock);
    }
}

static atomic_int told = 1;
static void on_acquired(hf_lock *lock, hf_err err, const char *detail, void *arg)
{
    (void)lock;
    (void)detail;
    (void)arg;
    atomic_store(&told, err);
}

static void p10_a_wait_can_be_cancelled(void **state)
{
    static const char *const name = "n";
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .names = &name, .n_names = 1,
                               .wait_ms = -1};
    hf_lock *waits;
    (void)state;
    hf_lock *lock = must(fixture.a, "n");
    assert_int_equal(
        hf_lock_acquire(fixture.b, &opts, on_acquired, NULL, &waits, fixture.detail),
        HF_OK);
    EVENTUALLY(15000, hf_lock_queue(&fixture, "n") == 1);
    hf_lock_cancel(waits);
    EVENTUALLY(15000, told == HF_CANCEL);
    EVENTUALLY(15000, hf_lock_queue(&fixture, "n") == 0);
    hf_lock_released(lock);
}

static void a_message_that_is_lost_only_delays(void **state)
{
    hf_lock_waiter w;
    (void)state;
    hf_lock *lock = must(fixture.a, "n");
    hf_lock_wait_begin(&w, &fixture, fixture.b, "n",
                       (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = 900});
    /* Another client of that name would take its messages; so takes the test. */
    (void)hf_fixture_command(&fixture.redis, "CLIENT KILL TYPE normal SKIPME yes");
    EVENTUALLY(15000, hf_lock_held(lock));
    hf_lock_released(lock);
    hf_lock_wait_released(&w);
}

#define TEST(name) HF_LOCK_TEST(name, &fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(p1_one_holder_at_a_time),
        TEST(a_cell_and_a_line_exclude_each_other),
        TEST(p5_a_timed_wait_ends_in_time_and_leaves_nothing),
        TEST(s3_fences_rise_also_past_force_and_expiry),
        TEST(f3_a_lease_that_ended_is_not_released_from_the_next_holder),
        TEST(r4_a_fixed_lease_ends),
        TEST(r3_a_lease_is_renewed_while_it_is_held),
        TEST(a_lock_is_held_no_longer_than_max_hold),
        TEST(r5_an_owner_holds_as_often_as_it_acquires),
        TEST(r14_without_reentrance_the_same_owner_is_refused_at_once),
        TEST(a_cell_that_is_entered_again_lasts_from_then_on),
        TEST(r11_readers_share_and_a_writer_is_alone),
        TEST(r15_an_upgrade_is_refused_at_once),
        TEST(r15_a_writer_that_also_reads_becomes_a_reader),
        TEST(r6_a_reader_may_read_again_past_a_writer_that_waits),
        TEST(permits_are_never_exceeded_and_given_in_order),
        TEST(r9_several_locks_of_a_tag_all_or_none),
        TEST(o1_first_come_first_served),
        TEST(p10_a_wait_can_be_cancelled),
        TEST(a_message_that_is_lost_only_delays),
    };
    hf_lock_fixture_up(&fixture, NULL);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_lock_fixture_down(&fixture);
    return failures;
}
