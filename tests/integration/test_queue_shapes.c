/* test_queue_shapes.c - what scripts do in more than one way, because what is usual can
 * be done with less: jobs that became due together or one by one, ids that rise or not,
 * batches of which all or some are held, leases that are to be moved or not, marks that
 * are none. HF_SEED repeats what is drawn. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/random.h"
#include "holdfast/admin.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"
#include "tests/support/seed.h"

#define RECORD "{\"v\":1,\"type\":\"t\",\"created\":1700000000000}\npayload"

enum { JOBS = 700, ROUNDS = 12, LONG_AGO = 1700000000 };

static hf_queue_fixture fixture;
static hf_rng rng;
static const hf_bytes record = {RECORD, sizeof RECORD - 1};
static const hf_enqueue_args nobody = {.producer = ""};

static unsigned draw(unsigned n)
{
    return (unsigned)(hf_rng_next(&rng) % n);
}

/* ---- when a job was due ---- */

static char ids[JOBS][16];
static int64_t dues[JOBS];

/* In runs of one time each, most of them long, or none longer than one. */
static void enqueue_runs(unsigned longest)
{
    static hf_enqueue_item items[JOBS];
    int64_t due = INT64_C(1000) * LONG_AGO;
    for (unsigned i = 0, left = 0; i < JOBS; i++) {
        if (left == 0) {
            left = 1 + draw(longest);
            due += 1 + draw(3) * draw(1000);
        }
        left--;
        (void)snprintf(ids[i], sizeof ids[i], "job-%05u", i);
        dues[i] = due;
        items[i] = (hf_enqueue_item){ids[i], due, record};
    }
    assert_int_equal(hf_queue_fixture_enqueue_items(&fixture, &nobody, items, JOBS),
                     HF_OK);
    assert_int_equal(fixture.n_codes, 0);
}

/* The jobs of the last answer are those from `first` on, by steps. */
static void assert_taken(size_t first, size_t step)
{
    for (size_t i = 0; i < fixture.n_jobs; i++) {
        assert_string_equal(fixture.jobs[i].id, ids[first + i * step]);
        assert_true(fixture.jobs[i].due_ms == dues[first + i * step]);
    }
}

static void assert_waiting(size_t first, size_t n)
{
    for (size_t i = first; i < first + n; i++)
        assert_true(hf_fixture_number(&fixture.redis, "ZSCORE hf:{q}:schedule %s",
                                      ids[i]) == dues[i]);
}

static const unsigned runs[] = {1, 3, 40, 400, JOBS};

static void every_job_says_when_it_was_due(void **state)
{
    (void)state;
    for (size_t round = 0; round < ROUNDS; round++) {
        size_t n = 0;
        (void)hf_fixture_command(&fixture.redis, "FLUSHALL");
        enqueue_runs(runs[round % HF_COUNT(runs)]);
        while (n < JOBS) {
            size_t got = hf_queue_fixture_claim(&fixture, "w",
                                                1 + draw(round % 2 == 0 ? 400 : 30), 0);
            assert_true(got > 0);
            assert_taken(n, 1);
            if (draw(4) == 0) { /* its answer was lost: all go back where they were */
                assert_int_equal(hf_queue_fixture_unclaim(&fixture, "w", fixture.number),
                                 HF_OK);
                assert_int_equal(fixture.n_jobs, got);
                assert_waiting(n, got);
            } else {
                n += got;
            }
        }
        hf_queue_fixture_audit(&fixture, false);
    }
}

/* In one claim: those are looked past, however many rounds it takes. */
static void so_does_a_job_among_others_that_are_held_elsewhere(void **state)
{
    enum { EACH = 2, FREE = (JOBS + EACH - 1) / EACH };
    (void)state;
    for (size_t round = 0; round < HF_COUNT(runs); round++) {
        (void)hf_fixture_command(&fixture.redis, "FLUSHALL");
        enqueue_runs(runs[round]);
        for (size_t i = 0; i < JOBS; i++)
            if (i % EACH != 0)
                (void)hf_fixture_command(
                    &fixture.redis, "SET hf:{q}:lock:%s stranger:1 PX 60000", ids[i]);
        assert_int_equal(hf_queue_fixture_claim(&fixture, "w", FREE, 0), FREE);
        assert_taken(0, EACH);
        assert_int_equal(hf_queue_fixture_unclaim(&fixture, "w", fixture.number), HF_OK);
        assert_int_equal(fixture.n_jobs, FREE);
        for (size_t i = 0; i < JOBS; i += EACH)
            assert_waiting(i, 1);
    }
    fixture.broken = true; /* a lock of what does not run */
}

/* ---- ids that are named twice ---- */

static void ids_that_do_not_rise_are_held_against_each_other(void **state)
{
    static const char other[] = "{\"v\":1,\"type\":\"other\",\"created\":1}\n";
    const hf_bytes second = {other, sizeof other - 1};
    const hf_enqueue_item items[] = {
        {"b", 1000, record}, {"d", 2000, record}, {"a", 3000, record}, {"b", 1, second},
        {"c", 4000, record}, {"a", 1, second},    {"e", 5000, record}, {"e", 1, second}};
    static const hf_err expected[] = {HF_OK, HF_OK,     HF_OK, HF_EXISTS,
                                      HF_OK, HF_EXISTS, HF_OK, HF_EXISTS};
    static const char *const order[] = {"b", "d", "a", "c", "e"};
    (void)state;
    assert_int_equal(
        hf_queue_fixture_enqueue_items(&fixture, &nobody, items, HF_COUNT(items)), HF_OK);
    assert_int_equal(fixture.n_codes, HF_COUNT(expected));
    for (size_t i = 0; i < HF_COUNT(expected); i++)
        assert_int_equal(fixture.codes[i], expected[i]);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "enqueued"), 5);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 10, 0), 5);
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(fixture.jobs[i].id, order[i]);
        assert_string_equal(fixture.jobs[i].type, "t");
        assert_true(fixture.jobs[i].due_ms == 1000 * ((int64_t)i + 1));
    }
}

/* ---- batches of which all, or some, are held ---- */

/* Three jobs, claimed by w. */
static void hold_three(char fence[32])
{
    static const char *const names[] = {"a", "b", "c"};
    for (size_t i = 0; i < HF_COUNT(names); i++)
        assert_int_equal(hf_queue_fixture_enqueue(&fixture, names[i], 0), HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 10, 0), 3);
    memcpy(fence, fixture.fence, sizeof fixture.fence);
}

static void complete_these(const char *const names[], const char *fence, size_t n)
{
    hf_verdict_item items[8];
    const hf_verdict_args args = {.worker = "w"};
    for (size_t i = 0; i < n; i++)
        items[i] = (hf_verdict_item){.id = names[i], .fence = fence};
    assert_int_equal(hf_queue_fixture_verdicts(&fixture, HF_OP_COMPLETE, &args, items, n),
                     HF_OK);
}

static void assert_counted(long long done, long long lost)
{
    assert_int_equal(hf_queue_fixture_meta(&fixture, "done"), done);
    assert_string_equal(hf_fixture_command(&fixture.redis, "HINCRBY hf:{q}:meta lost 0"),
                        lost == 0   ? "0"
                        : lost == 1 ? "1"
                                    : "2");
}

static void a_job_that_is_completed_twice_at_once_is_done_once(void **state)
{
    static const char *const names[] = {"a", "b", "a", "c", "c"};
    static const hf_err expected[] = {HF_OK, HF_OK, HF_LOST, HF_OK, HF_LOST};
    char fence[32];
    (void)state;
    hold_three(fence);
    complete_these(names, fence, HF_COUNT(names));
    assert_int_equal(fixture.n_codes, HF_COUNT(names));
    for (size_t i = 0; i < HF_COUNT(names); i++)
        assert_int_equal(fixture.codes[i], expected[i]);
    assert_counted(3, 2);
    hf_queue_fixture_audit(&fixture, true);
}

/* Nine jobs, the k-th of them claimed by w in claim k / 2: fences of one or two jobs. */
static void hold_nine(char names[9][8], char fences[9][32], hf_verdict_item items[9])
{
    for (size_t i = 0; i < 9; i++) {
        (void)snprintf(names[i], 8, "j%zu", i);
        assert_int_equal(hf_queue_fixture_enqueue(&fixture, names[i], 0), HF_OK);
        if (i % 2 == 0 && i < 8)
            continue;
        size_t n = hf_queue_fixture_claim(&fixture, "w", 10, 0);
        assert_int_equal(n, i == 8 ? 1 : 2);
        for (size_t k = i + 1 - n; k <= i; k++)
            memcpy(fences[k], fixture.fence, sizeof fixture.fence);
    }
    for (size_t i = 0; i < 9; i++)
        items[i] = (hf_verdict_item){.id = names[i], .fence = fences[i]};
}

static void jobs_of_many_claims_are_completed_at_once(void **state)
{
    const hf_verdict_args args = {.worker = "w"};
    char names[9][8], fences[9][32];
    hf_verdict_item items[9];
    (void)state;
    hold_nine(names, fences, items);
    assert_int_equal(hf_queue_fixture_verdicts(&fixture, HF_OP_COMPLETE, &args, items, 9),
                     HF_OK);
    assert_int_equal(fixture.n_codes, 0); /* all are done */
    assert_counted(9, 0);
    hf_queue_fixture_audit(&fixture, true);
}

static void each_job_is_completed_under_its_own_fence(void **state)
{
    const hf_verdict_args args = {.worker = "w"};
    char names[9][8], fences[9][32];
    hf_verdict_item items[9];
    (void)state;
    hold_nine(names, fences, items);
    items[1].fence = fences[2]; /* of another claim */
    items[8].fence = fences[0];
    assert_int_equal(hf_queue_fixture_verdicts(&fixture, HF_OP_COMPLETE, &args, items, 9),
                     HF_OK);
    assert_int_equal(fixture.n_codes, 9);
    for (size_t i = 0; i < 9; i++)
        assert_int_equal(fixture.codes[i], i == 1 || i == 8 ? HF_LOST : HF_OK);
    assert_counted(7, 2);
    assert_string_equal(hf_fixture_command(&fixture.redis, "ZRANGE hf:{q}:running 0 0"),
                        "j1\n");
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:running"), 2);
    hf_queue_fixture_audit(&fixture, false);
}

static void a_job_that_only_its_lock_knows_of_is_done_with_the_others(void **state)
{
    static const char *const names[] = {"a", "b", "c"};
    char fence[32];
    (void)state;
    hold_three(fence);
    (void)hf_fixture_command(&fixture.redis, "ZREM hf:{q}:running b");
    complete_these(names, fence, HF_COUNT(names));
    assert_int_equal(fixture.n_codes, 0); /* all are done */
    assert_counted(3, 0);
    hf_queue_fixture_audit(&fixture, true);
}

static void a_job_that_is_lost_keeps_no_other_from_being_done(void **state)
{
    static const char *const names[] = {"a", "b", "c"};
    char fence[32];
    (void)state;
    hold_three(fence);
    (void)hf_fixture_command(&fixture.redis, "SET hf:{q}:lock:b other:1 PX 60000");
    complete_these(names, fence, HF_COUNT(names));
    assert_int_equal(fixture.n_codes, 3);
    assert_int_equal(fixture.codes[0], HF_OK);
    assert_int_equal(fixture.codes[1], HF_LOST);
    assert_int_equal(fixture.codes[2], HF_OK);
    assert_counted(2, 1);
    assert_int_equal(hf_fixture_number(&fixture.redis, "EXISTS hf:{q}:lock:b"), 1);
    fixture.broken = true; /* its lock is nobody's, and ends before its score says */
}

/* ---- leases ---- */

static long long ends(const char *id)
{
    return hf_fixture_number(&fixture.redis, "ZSCORE hf:{q}:running %s", id);
}

static void renew_these(const char *const names[], const char *fence, uint32_t lease_ms)
{
    const hf_renew_args args = {.worker = "w", .lease_ms = lease_ms};
    const hf_renew_item items[] = {
        {names[0], fence}, {names[1], fence}, {names[2], fence}};
    assert_int_equal(hf_queue_fixture_renew_all(&fixture, &args, items, HF_COUNT(items)),
                     HF_OK);
}

static void assert_lock_as_score(const char *id)
{
    assert_true(ends(id) == hf_fixture_expiry(&fixture.redis, "hf:{q}:lock:%s", id));
}

static void leases_that_are_renewed_together_end_together(void **state)
{
    static const char *const names[] = {"a", "b", "c"};
    char fence[32];
    (void)state;
    hold_three(fence);
    assert_int_equal(hf_queue_fixture_renew(&fixture, "w", "b", fence, 90000), HF_OK);
    renew_these(names, fence, 60000);
    assert_int_equal(fixture.n_codes, 0); /* all are held */
    assert_true(ends("a") == hf_queue_fixture_lease_end(&fixture, 60000));
    assert_true(ends("b") == hf_queue_fixture_lease_end(&fixture, 60000));
    assert_true(ends("c") == hf_queue_fixture_lease_end(&fixture, 60000));
    for (size_t i = 0; i < 3; i++)
        assert_lock_as_score(names[i]);
    renew_these(names, fence, 120000);
    assert_int_equal(fixture.n_codes, 0);
    for (size_t i = 0; i < 3; i++) {
        assert_true(ends(names[i]) == hf_queue_fixture_lease_end(&fixture, 120000));
        assert_lock_as_score(names[i]);
    }
}

static void renewing_a_job_that_does_not_run_loses_it_alone(void **state)
{
    static const char *const names[] = {"a", "b", "c"};
    char fence[32];
    (void)state;
    hold_three(fence);
    (void)hf_fixture_command(&fixture.redis, "ZREM hf:{q}:running b");
    (void)hf_fixture_command(&fixture.redis, "PEXPIRE hf:{q}:lock:b 5000");
    renew_these(names, fence, 60000);
    assert_int_equal(fixture.n_codes, 3);
    assert_int_equal(fixture.codes[0], HF_OK);
    assert_int_equal(fixture.codes[1], HF_LOST);
    assert_int_equal(fixture.codes[2], HF_OK);
    assert_true(hf_fixture_number(&fixture.redis, "PTTL hf:{q}:lock:b") <= 5000);
    assert_true(ends("c") == hf_queue_fixture_lease_end(&fixture, 60000));
    assert_lock_as_score("c");
    fixture.broken = true;
}

static void a_lease_that_is_named_twice_is_moved_once(void **state)
{
    static const char *const names[] = {"a", "b", "b"};
    char fence[32];
    (void)state;
    hold_three(fence);
    renew_these(names, fence, 60000);
    assert_true(fixture.n_codes == 0 ||
                (fixture.codes[1] == HF_OK && fixture.codes[2] == HF_OK));
    assert_true(ends("b") == hf_queue_fixture_lease_end(&fixture, 60000));
    assert_lock_as_score("b");
}

/* ---- when the next wake-up is ---- */

/* A claim because of a baton: its wake-up is cleared. */
static void claim_for_a_baton(const char *worker, uint32_t lease_ms)
{
    hf_claim_args args = hf_queue_fixture_claim_args(worker, 10, lease_ms);
    args.doubted = true;
    assert_int_equal(hf_queue_fixture_claim_with(&fixture, &args), HF_OK);
    assert_int_equal(fixture.n_jobs, 1);
}

static long long next_wake(void)
{
    return hf_queue_fixture_meta(&fixture, "next_wake");
}

static void a_claim_plans_a_wake_up_for_what_becomes_due_next(void **state)
{
    (void)state;
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "now", 0), HF_OK);
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "later", -60000), HF_OK);
    long long due = fixture.now_ms + 60000;
    claim_for_a_baton("w", 0);
    assert_true(next_wake() == due);
    assert_true(fixture.next_ms == due);
}

static void a_claim_of_the_last_job_leaves_no_baton(void **state)
{
    (void)state;
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "one", 0), HF_OK);
    assert_int_equal(hf_fixture_number(&fixture.redis, "EXISTS hf:{q}:wake"), 1);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 10, 0), 1);
    assert_int_equal(hf_fixture_number(&fixture.redis, "EXISTS hf:{q}:wake"), 0);
    assert_int_equal(hf_fixture_number(&fixture.redis, "HEXISTS hf:{q}:meta next_wake"),
                     0);
    assert_int_equal(fixture.next_ms, 0);
}

static void jobs_held_by_a_pause_or_a_limit_wake_no_worker(void **state)
{
    static const char *const fields[] = {"paused", "max_running"};
    static const char *const uses[] = {"p", "n"};
    (void)state;
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "runs", 0), HF_OK);
    claim_for_a_baton("w", 0);
    for (size_t i = 0; i < HF_COUNT(fields); i++) {
        (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:meta %s 1 uses %s",
                                 fields[i], uses[i]);
        assert_int_equal(hf_queue_fixture_enqueue(&fixture, fields[i], 0), HF_OK);
        assert_int_equal(hf_fixture_number(&fixture.redis, "EXISTS hf:{q}:wake"), 0);
        (void)hf_fixture_command(&fixture.redis, "HDEL hf:{q}:meta uses %s", fields[i]);
    }
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "free", 0), HF_OK);
    assert_int_equal(hf_fixture_number(&fixture.redis, "EXISTS hf:{q}:wake"), 1);
}

/* ---- marks that are none ---- */

static void on_listed(const hf_job_info *info, void *arg)
{
    uint32_t *crashes = arg;
    *crashes = info->crashes;
}

/* Somebody wrote into `crashes` by hand. */
static void a_mark_that_tells_no_number_counts_as_none(void **state)
{
    hf_admin *admin = hf_queue_fixture_admin(&fixture);
    hf_job_info info = {HF_JOB_INFO_INIT};
    hf_job_why why = {HF_JOB_WHY_INIT, .job = &info};
    uint32_t listed = 7;
    (void)state;
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "one", 0), HF_OK);
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:crashes one many");
    assert_int_equal(hf_admin_job(admin, "q", "one", &info, NULL, NULL), HF_OK);
    assert_int_equal(info.crashes, 0);
    assert_int_equal(info.payload_len, 7);
    assert_int_equal(hf_admin_why(admin, "q", "one", &why, NULL), HF_OK);
    assert_int_equal(why.job->crashes, 0);
    assert_int_equal(why.job->payload_len, 7);
    assert_int_equal(hf_admin_list(admin, "q", HF_STATE_READY, NULL, 10, on_listed,
                                   &listed, NULL, NULL),
                     HF_OK);
    assert_int_equal(listed, 0);
    hf_admin_close(admin);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 1000), 1);
    assert_int_equal(fixture.jobs[0].crashes, 0);
    /* The next one is the first that is counted. */
    hf_claim_args args = hf_queue_fixture_claim_args("other", 1, 0);
    EVENTUALLY(15000, hf_queue_fixture_claim_with(&fixture, &args) == HF_OK &&
                          fixture.n_jobs == 1);
    assert_int_equal(fixture.jobs[0].crashes, 1);
    assert_string_equal(fixture.jobs[0].id, "one");
}

#define TEST(name) HF_QUEUE_TEST(name, &fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_job_says_when_it_was_due),
        TEST(so_does_a_job_among_others_that_are_held_elsewhere),
        TEST(ids_that_do_not_rise_are_held_against_each_other),
        TEST(a_job_that_is_completed_twice_at_once_is_done_once),
        TEST(jobs_of_many_claims_are_completed_at_once),
        TEST(each_job_is_completed_under_its_own_fence),
        TEST(a_job_that_only_its_lock_knows_of_is_done_with_the_others),
        TEST(a_job_that_is_lost_keeps_no_other_from_being_done),
        TEST(leases_that_are_renewed_together_end_together),
        TEST(renewing_a_job_that_does_not_run_loses_it_alone),
        TEST(a_lease_that_is_named_twice_is_moved_once),
        TEST(a_claim_plans_a_wake_up_for_what_becomes_due_next),
        TEST(a_claim_of_the_last_job_leaves_no_baton),
        TEST(jobs_held_by_a_pause_or_a_limit_wake_no_worker),
        TEST(a_mark_that_tells_no_number_counts_as_none),
    };
    rng.state = hf_test_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
