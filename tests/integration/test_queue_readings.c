/* test_queue_readings.c - when a lease is over, although Redis's clock cannot be trusted:
 * by what machines have read of the queue's clock, and when by their own. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"

enum { SHORT_MS = 40, LEASE_MS = 60000, BOOT_MS = 1000 };

static hf_queue_fixture fixture;

static void enqueue(const char *id)
{
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, id, 0), HF_OK);
}

static int64_t score_of(const char *id)
{
    return hf_fixture_number(&fixture.redis, "ZSCORE hf:{q}:running %s", id);
}

static void check(void)
{
    const hf_queue *queue = &fixture.queue;
    const hf_check_args args = {.worker = "w", .alive_ms = 60000, .lease_ms = SHORT_MS};
    assert_int_equal(hf_queue_fixture_check_with(&fixture, &queue, 1, &args), HF_OK);
}

/* A job that runs, as a claim of that length left it. */
static void run_for(const char *id, uint32_t lease_ms)
{
    hf_claim_args args = hf_queue_fixture_claim_args("dead", 1, lease_ms);
    fixture.judges_by_itself = true;
    args.alive_ms = lease_ms;
    enqueue(id);
    assert_int_equal(hf_queue_fixture_claim_with(&fixture, &args), HF_OK);
    assert_int_equal(fixture.n_jobs, 1);
}

/* What a machine shows that has read just now, at BOOT_MS: by its boot clock, and by
 * Redis's, which is that much older. */
static const char *reading(uint64_t number_off, uint64_t clock_off, int64_t old_ms)
{
    static char shown[HF_READING_SIZE];
    assert_int_equal(hf_queue_fixture_read(&fixture, "m", BOOT_MS, ""), HF_OK);
    (void)snprintf(shown, sizeof shown, "%" PRIu64 ":%" PRIu64 ":%d:%" PRId64,
                   fixture.read.number + number_off, fixture.read.clock_ms + clock_off,
                   BOOT_MS, fixture.now_ms - old_ms);
    return shown;
}

/* Whether the lease of `one` is over for a machine that shows this that much later. */
static bool is_over_for(const char *machine, const char *shown, uint64_t age_ms)
{
    assert_int_equal(hf_queue_fixture_read(&fixture, machine, BOOT_MS + age_ms, shown),
                     HF_OK);
    return score_of("one") == 0;
}

static void a_lease_is_over_when_a_later_reading_is_as_old(void **state)
{
    (void)state;
    run_for("one", LEASE_MS);
    const char *shown = reading(0, 0, LEASE_MS);
    assert_false(is_over_for("m", shown, LEASE_MS - 1));
    assert_int_equal(fixture.read.after_ms, 2);
    assert_false(is_over_for("another", "", LEASE_MS));
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, SHORT_MS), 0);
    assert_true(is_over_for("m", "", LEASE_MS)); /* it was shown before */
    assert_int_equal(hf_fixture_number(&fixture.redis, "EXISTS hf:{q}:lock:one"), 0);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, SHORT_MS), 1);
    assert_int_equal(fixture.jobs[0].crashes, 1);
    assert_true(score_of("one") > 0);
}

static bool has_baton(void)
{
    return hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:wake") == 1;
}

static void forget_wake_up(void)
{
    (void)hf_fixture_command(&fixture.redis, "DEL hf:{q}:wake");
    (void)hf_fixture_command(&fixture.redis, "HDEL hf:{q}:meta next_wake");
}

static void a_lease_that_is_over_wakes_a_worker(void **state)
{
    (void)state;
    run_for("one", LEASE_MS);
    const char *shown = reading(0, 0, LEASE_MS);
    forget_wake_up();
    assert_false(is_over_for("m", shown, LEASE_MS - 1));
    assert_false(has_baton());
    assert_true(is_over_for("m", "", LEASE_MS));
    assert_true(has_baton());
    forget_wake_up();
    check(); /* it may have been lost */
    assert_true(has_baton());
}

/* Two jobs whose leases have passed by Redis's clock; then a reading shows it of one. */
static void a_claim_takes_over_only_what_was_found_over(void **state)
{
    (void)state;
    run_for("one", SHORT_MS);
    run_for("two", SHORT_MS);
    EVENTUALLY(15000, hf_queue_fixture_now(&fixture) > score_of("two"));
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 2, LEASE_MS), 0);
    (void)hf_fixture_command(&fixture.redis, "ZADD hf:{q}:running 0 one");
    (void)hf_fixture_command(&fixture.redis, "DEL hf:{q}:lock:one");
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 2, LEASE_MS), 1);
    assert_string_equal(fixture.jobs[0].id, "one");
}

static void a_reading_before_the_start_proves_nothing(void **state)
{
    (void)state;
    run_for("one", LEASE_MS);
    const char *shown = reading(0, 0, LEASE_MS);
    assert_int_equal(hf_queue_fixture_renew(&fixture, "dead", "one", NULL, LEASE_MS),
                     HF_OK);
    assert_false(is_over_for("m", shown, LEASE_MS));
}

static void a_reading_that_is_none_of_this_clock_proves_nothing(void **state)
{
    (void)state;
    run_for("one", LEASE_MS);
    assert_false(is_over_for("m", reading(1, 0, LEASE_MS), LEASE_MS));
    assert_false(is_over_for("m", reading(0, 3600000, LEASE_MS), LEASE_MS));
    assert_false(is_over_for("m", "1:2:3", LEASE_MS));
    assert_true(is_over_for("m", reading(0, 0, LEASE_MS), LEASE_MS));
}

/* As of two machines that were made of one image. */
static void a_reading_that_redis_contradicts_proves_nothing(void **state)
{
    (void)state;
    run_for("one", LEASE_MS);
    assert_false(is_over_for("m", reading(0, 0, 0), LEASE_MS));
    assert_false(is_over_for("m", "", LEASE_MS));
}

/* As of a machine that was restored from an older image. */
static void a_boot_clock_that_was_set_back_proves_again(void **state)
{
    (void)state;
    run_for("one", LEASE_MS);
    char ahead[HF_READING_SIZE];
    (void)reading(0, 0, 0);
    (void)snprintf(ahead, sizeof ahead, "%" PRIu64 ":%" PRIu64 ":%d:%" PRId64,
                   fixture.read.number, fixture.read.clock_ms, BOOT_MS + 86400000,
                   fixture.now_ms);
    assert_false(is_over_for("m", ahead, 0));
    assert_false(is_over_for("m", reading(0, 0, LEASE_MS), 0));
    assert_true(is_over_for("m", "", LEASE_MS));
}

static long long remembered(void)
{
    return hf_fixture_number(&fixture.redis, "HLEN hf:{q}:readings") - 1;
}

/* While all of them ask, a new one has no place; a lease later they give way to it. */
static void the_machines_that_are_remembered_have_a_maximum(void **state)
{
    (void)state;
    enum { MOST = 256 };
    char machine[16];
    run_for("one", LEASE_MS);
    const char *shown = reading(0, 0, 0);
    for (int i = 0; i < MOST + 9; i++) {
        (void)snprintf(machine, sizeof machine, "m%d", i);
        assert_false(is_over_for(machine, shown, 0));
    }
    assert_int_equal(remembered(), MOST);
    (void)hf_fixture_command(&fixture.redis, "HINCRBY hf:{q}:meta clock %d",
                             LEASE_MS + 1);
    assert_false(is_over_for(machine, shown, 0));
    assert_int_equal(remembered(), 2); /* and the one that has shown nothing */
}

/* What is shown of the last reading: at this time by the boot clock, and so old by
 * Redis's. */
static const char *reading_of(uint64_t boot_ms, int64_t old_ms)
{
    static char shown[HF_READING_SIZE];
    (void)snprintf(shown, sizeof shown, "%" PRIu64 ":%" PRIu64 ":%" PRIu64 ":%" PRId64,
                   fixture.read.number, fixture.read.clock_ms, boot_ms,
                   fixture.now_ms - old_ms);
    return shown;
}

static void each_length_of_a_lease_is_judged_by_itself(void **state)
{
    (void)state;
    run_for("one", LEASE_MS);
    check(); /* of a worker with a short lease */
    const char *shown = reading(0, 0, LEASE_MS);
    assert_false(is_over_for("m", shown, SHORT_MS + 1));
    assert_false(is_over_for("m", "", LEASE_MS)); /* a late one of the short ones, too */
    assert_true(
        is_over_for("m", reading_of(BOOT_MS + LEASE_MS, SHORT_MS), LEASE_MS + SHORT_MS));
}

/* The holder of a long lease renews: for it alone they would prove nothing any more. */
static void old_readings_stay_for_a_shorter_lease_that_comes(void **state)
{
    (void)state;
    enum { THIRD_MS = LEASE_MS / 3 };
    const char *shown = "";
    run_for("long", LEASE_MS);
    check(); /* of a worker with a short lease */
    for (unsigned i = 0; i < 3; i++) {
        uint64_t boot_ms = BOOT_MS + i * THIRD_MS;
        assert_int_equal(hf_queue_fixture_read(&fixture, "m", boot_ms, shown), HF_OK);
        shown = reading_of(boot_ms, (3 - i) * THIRD_MS);
        assert_int_equal(hf_queue_fixture_renew(&fixture, "dead", "long", NULL, LEASE_MS),
                         HF_OK);
    }
    run_for("one", SHORT_MS);
    assert_false(is_over_for("m", shown, 2 * THIRD_MS + SHORT_MS));
    shown = reading_of(BOOT_MS + 2 * THIRD_MS + SHORT_MS, THIRD_MS);
    assert_true(is_over_for("m", shown, LEASE_MS + SHORT_MS));
    assert_true(score_of("long") > 0);
}

/* At the end of all times no lease could begin any more, and each read would go on for
 * ever. */
static void a_score_that_no_lease_can_have_moves_no_clock(void **state)
{
    (void)state;
    run_for("one", LEASE_MS);
    (void)hf_fixture_command(&fixture.redis, "ZADD hf:{q}:running %lld ghost",
                             (long long)HF_TIME_MAX_MS);
    (void)reading(0, 0, 0);
    assert_in_range(fixture.read.clock_ms, 1, fixture.now_ms + 1000);
    assert_in_range(score_of("ghost"), 1, fixture.now_ms + LEASE_MS + 1000);
    (void)hf_fixture_command(&fixture.redis, "ZREM hf:{q}:running ghost");
}

static void a_length_counts_though_the_list_was_lost(void **state)
{
    (void)state;
    run_for("one", LEASE_MS);
    (void)hf_fixture_command(&fixture.redis, "DEL hf:{q}:leases");
    check(); /* of a worker with a short lease */
    const char *shown = reading(0, 0, LEASE_MS);
    assert_false(is_over_for("m", shown, LEASE_MS / 2));
}

static void a_clock_that_was_lost_is_another_one(void **state)
{
    (void)state;
    run_for("one", LEASE_MS);
    const char *shown = reading(0, 0, LEASE_MS);
    assert_false(is_over_for("m", shown, 1));
    (void)hf_fixture_command(&fixture.redis, "HDEL hf:{q}:meta clock");
    assert_false(is_over_for("m", "", LEASE_MS));
    assert_false(is_over_for("m", shown, LEASE_MS));
}

static void no_lease_starts_before_the_clock_of_its_queue(void **state)
{
    (void)state;
    run_for("one", SHORT_MS);
    (void)reading(0, 0, 0);
    int64_t ahead_ms = fixture.now_ms + 3600000;
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:meta clock %lld",
                             (long long)ahead_ms);
    enqueue("two");
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, LEASE_MS), 1);
    assert_int_equal(score_of("two"), ahead_ms + LEASE_MS);
    assert_int_equal(hf_queue_fixture_renew(&fixture, "w", "two", NULL, SHORT_MS), HF_OK);
    assert_int_equal(score_of("two"), ahead_ms + SHORT_MS);
}

/* Redis's clock is far behind; a reading by the boot clock is not. */
static void the_clock_goes_on_while_redis_is_behind(void **state)
{
    (void)state;
    run_for("one", LEASE_MS);
    (void)reading(0, 0, 0);
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:meta clock %lld",
                             (long long)fixture.now_ms + 3600000);
    const char *shown = reading(0, 0, 20000);
    uint64_t clock_ms = fixture.read.clock_ms;
    assert_false(is_over_for("m", shown, 5000));
    assert_in_range(fixture.read.clock_ms, clock_ms + 5000, clock_ms + 5001);
}

static void a_lock_that_ended_too_early_is_made_again_for_its_holder(void **state)
{
    (void)state;
    run_for("one", LEASE_MS);
    (void)hf_fixture_command(&fixture.redis, "DEL hf:{q}:lock:one"); /* by the clock */
    assert_int_equal(hf_queue_fixture_renew(&fixture, "dead", "one", NULL, LEASE_MS),
                     HF_OK);
    assert_int_equal(hf_fixture_number(&fixture.redis, "EXISTS hf:{q}:lock:one"), 1);
    (void)hf_fixture_command(&fixture.redis, "SET hf:{q}:lock:one other:9 PX 60000");
    assert_int_equal(hf_queue_fixture_renew(&fixture, "dead", "one", NULL, LEASE_MS),
                     HF_LOST);
    (void)hf_fixture_command(&fixture.redis, "DEL hf:{q}:lock:one");
    (void)hf_fixture_command(&fixture.redis,
                             "ZADD hf:{q}:running 0 one"); /* it is over */
    assert_int_equal(hf_queue_fixture_renew(&fixture, "dead", "one", NULL, LEASE_MS),
                     HF_LOST);
    assert_int_equal(hf_fixture_number(&fixture.redis, "EXISTS hf:{q}:lock:one"), 0);
    (void)hf_fixture_command(&fixture.redis, "ZREM hf:{q}:running one");
    assert_int_equal(hf_queue_fixture_renew(&fixture, "dead", "one", NULL, LEASE_MS),
                     HF_LOST);
    (void)hf_fixture_command(&fixture.redis, "ZADD hf:{q}:running 0 one");
}

static void what_was_ready_before_the_clock_was_set_back_stays_ready(void **state)
{
    (void)state;
    enum { JOBS = 2500 };
    const char *record = "{\"type\":\"T\"}\n";
    check();
    int64_t old_ms = fixture.now_ms + 40000; /* what the clock said before */
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:meta high %lld",
                             (long long)old_ms);
    for (int i = 0; i < JOBS; i++) {
        char id[32];
        (void)snprintf(id, sizeof id, "j%05d", JOBS - i); /* not by their names */
        (void)hf_fixture_command(&fixture.redis, "ZADD hf:{q}:schedule %lld %s",
                                 (long long)old_ms - JOBS + i, id);
        (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:jobs %s %s", id, record);
    }
    (void)hf_fixture_command(&fixture.redis, "ZADD hf:{q}:schedule %lld later",
                             (long long)old_ms + 60000);
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:jobs later %s", record);
    hf_queue_fixture_put(&fixture, "delayed", "T",
                         -20000); /* none of those, though it is between them */
    for (int i = 0, checks = 0; i < JOBS;) {
        if (hf_queue_fixture_claim(&fixture, "w", 200, 60000) == 0) {
            assert_in_range(++checks, 1, JOBS / 1000 + 1); /* it waits for no time */
            check();
        }
        for (size_t k = 0; k < fixture.n_jobs; k++, i++) {
            char id[32];
            (void)snprintf(id, sizeof id, "j%05d", JOBS - i);
            assert_string_equal(fixture.jobs[k].id, id); /* in their order */
        }
    }
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 200, 60000), 0);
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:schedule"), 2);
    assert_true(hf_fixture_number(&fixture.redis, "ZSCORE hf:{q}:schedule later") ==
                old_ms + 60000);
    assert_true(hf_queue_fixture_meta(&fixture, "high") <= fixture.now_ms);
}

#define TEST(name) HF_QUEUE_TEST(name, &fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_lease_is_over_when_a_later_reading_is_as_old),
        TEST(a_lease_that_is_over_wakes_a_worker),
        TEST(a_claim_takes_over_only_what_was_found_over),
        TEST(a_reading_before_the_start_proves_nothing),
        TEST(a_reading_that_is_none_of_this_clock_proves_nothing),
        TEST(a_reading_that_redis_contradicts_proves_nothing),
        TEST(a_boot_clock_that_was_set_back_proves_again),
        TEST(a_score_that_no_lease_can_have_moves_no_clock),
        TEST(a_length_counts_though_the_list_was_lost),
        TEST(the_machines_that_are_remembered_have_a_maximum),
        TEST(each_length_of_a_lease_is_judged_by_itself),
        TEST(old_readings_stay_for_a_shorter_lease_that_comes),
        TEST(a_clock_that_was_lost_is_another_one),
        TEST(no_lease_starts_before_the_clock_of_its_queue),
        TEST(the_clock_goes_on_while_redis_is_behind),
        TEST(a_lock_that_ended_too_early_is_made_again_for_its_holder),
        TEST(what_was_ready_before_the_clock_was_set_back_stays_ready),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
