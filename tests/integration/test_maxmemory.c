/* test_maxmemory.c - in a Redis that is full, only enqueue is refused. All that leads to
 * an end of jobs, and so to room, goes on. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"

enum { JOBS = 12 };

static hf_queue_fixture fixture;
static const char *const ids[JOBS] = {"id-00", "id-01", "id-02", "id-03",
                                      "id-04", "id-05", "id-06", "id-07",
                                      "id-08", "id-09", "id-10", "id-11"};

/* Less than what any Redis uses: from now on every command that may need memory is
 * refused. */
static void make_full(void)
{
    assert_string_equal(hf_fixture_command(&fixture.redis, "CONFIG SET maxmemory 1"),
                        "OK");
    assert_non_null(strstr(hf_fixture_command(&fixture.redis, "SET a b"), "OOM"));
}

static void make_room(void)
{
    assert_string_equal(hf_fixture_command(&fixture.redis, "CONFIG SET maxmemory 0"),
                        "OK");
}

static void enqueue_all(void)
{
    for (size_t i = 0; i < JOBS; i++)
        assert_int_equal(hf_queue_fixture_enqueue(&fixture, ids[i], 0), HF_OK);
}

static void enqueue_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    enqueue_all();
    make_full();
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "more", 0), HF_OOM);
    assert_true(fixture.detail[0] != '\0');
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:schedule"), JOBS);
    assert_int_equal(hf_fixture_number(&fixture.redis, "HLEN hf:{q}:jobs"), JOBS);
    make_room();
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "more", 0), HF_OK);
}

/* Jobs that were ready are moved first then, which a full Redis would allow. */
static void enqueue_is_refused_also_after_a_step_back_of_the_clock(void **state)
{
    (void)state;
    enqueue_all();
    (void)hf_fixture_command(&fixture.redis, "HINCRBY hf:{q}:meta high 60000");
    make_full();
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "more", -1000), HF_OOM);
    assert_int_equal(hf_fixture_number(&fixture.redis, "HLEN hf:{q}:jobs"), JOBS);
    make_room();
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "more", -1000), HF_OK);
}

static void an_existing_id_is_told_even_then(void **state)
{
    (void)state;
    enqueue_all();
    make_full();
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, ids[0], 0), HF_EXISTS);
    make_room();
}

static hf_err verdict(hf_verdict_op op, const char *id)
{
    const hf_verdict_args args = {.worker = "w", .dead_max = 10, .dead_age_ms = 1000000};
    const hf_verdict_item item = {
        .id = id, .error = {"a longer error than before", 26}, .reason = "handler"};
    return hf_queue_fixture_verdict(&fixture, op, &args, &item);
}

static void everything_else_continues(void **state)
{
    (void)state;
    enqueue_all();
    assert_int_equal(hf_queue_fixture_claim(&fixture, "other", 1, 0), 1);
    make_full();
    assert_string_equal(hf_fixture_command(&fixture.redis, "SCRIPT FLUSH"), "OK");
    hf_claim_args args = hf_queue_fixture_claim_args("w", JOBS, 0);
    args.alive_ms = 30000;
    args.doubted = true;
    assert_int_equal(hf_queue_fixture_claim_with(&fixture, &args), HF_OK);
    assert_int_equal(fixture.n_jobs, JOBS - 1);
    assert_int_equal(hf_queue_fixture_renew(&fixture, "w", ids[1], NULL, 60000), HF_OK);
    assert_int_equal(hf_queue_fixture_complete(&fixture, "w", ids[1], NULL), HF_OK);
    assert_int_equal(verdict(HF_OP_RETRY, ids[2]), HF_OK);
    assert_int_equal(verdict(HF_OP_RELEASE, ids[3]), HF_OK);
    assert_int_equal(verdict(HF_OP_BURY, ids[4]), HF_OK);
    assert_int_equal(hf_queue_fixture_check(&fixture, "w", true), HF_OK);
    assert_int_equal(hf_queue_fixture_wait(&fixture, 2000), HF_OK);
    assert_int_equal(fixture.which, 0);
    assert_int_equal(hf_queue_fixture_unclaim(&fixture, "w", fixture.number), HF_OK);
    assert_int_equal(fixture.n_jobs, JOBS - 1 - 4); /* those that were not settled */
    hf_queue_fixture_audit(&fixture, false);
    make_room();
}

static void takeovers_and_burials_continue(void **state)
{
    (void)state;
    enqueue_all();
    hf_claim_args args = hf_queue_fixture_claim_args("w", 1, 20);
    args.poison = 2;
    assert_int_equal(hf_queue_fixture_claim_with(&fixture, &args), HF_OK);
    make_full();
    fixture.judges_by_itself = true;
    for (int crashes = 1; crashes < 3; crashes++) {
        (void)hf_fixture_command(&fixture.redis,
                                 "EVAL %s 2 hf:{q}:lock:id-00 hf:{q}:running",
                                 "redis.call('DEL', KEYS[1]) "
                                 "redis.call('ZADD', KEYS[2], 0, 'id-00')");
        assert_int_equal(hf_queue_fixture_claim_with(&fixture, &args), HF_OK);
    }
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:dead"), 1);
    make_room();
}

static void orders_and_signs_of_life_continue(void **state)
{
    (void)state;
    enqueue_all();
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    assert_int_equal(verdict(HF_OP_BURY, ids[0]), HF_OK);
    hf_admin *admin = hf_queue_fixture_admin(&fixture);
    make_full();
    assert_int_equal(hf_admin_pause(admin, "q", true, NULL), HF_OK);
    assert_int_equal(hf_admin_pause(admin, "q", false, NULL), HF_OK);
    assert_int_equal(hf_admin_limit(admin, "q", 5, 10, 1000, NULL), HF_OK);
    assert_int_equal(hf_admin_retry(admin, "q", ids[0], NULL), HF_OK);
    hf_err err;
    HF_QUEUE_FIXTURE_ASK(err, &fixture,
                         hf_op_heartbeat(fixture.client, "hf", "w", "{}", 30000,
                                         hf_queue_fixture_on_answer, &fixture));
    assert_int_equal(err, HF_OK);
    make_room();
    hf_admin_close(admin);
}

/* What makes room can be asked for, and what it needs for that is had. */
static void jobs_are_ended_and_looked_into(void **state)
{
    hf_job_why why = {HF_JOB_WHY_INIT};
    size_t n;
    (void)state;
    enqueue_all();
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 5, 0), 5);
    for (size_t i = 2; i < 5; i++)
        assert_int_equal(verdict(HF_OP_BURY, ids[i]), HF_OK);
    hf_admin *admin = hf_queue_fixture_admin(&fixture);
    make_full();
    assert_string_equal(hf_fixture_command(&fixture.redis, "SCRIPT FLUSH"), "OK");
    assert_int_equal(hf_admin_cancel(admin, "q", ids[0], NULL, NULL), HF_RUNNING);
    assert_int_equal(verdict(HF_OP_RELEASE, ids[0]), HF_OK);
    assert_int_equal(hf_admin_wait(admin, "q", ids[0], 0, 1000, NULL), HF_CANCEL);
    assert_int_equal(hf_admin_cancel(admin, "q", ids[5], NULL, NULL), HF_OK);
    assert_int_equal(hf_admin_delete(admin, "q", ids[6], NULL, NULL), HF_OK);
    assert_int_equal(hf_admin_retry(admin, "q", ids[2], NULL), HF_OK);
    const hf_dead_filter one = {HF_DEAD_FILTER_INIT, .limit = 1, .type = "t"};
    assert_int_equal(hf_admin_dead_retry(admin, "q", &one, 10, NULL, NULL, &n, NULL),
                     HF_OK);
    assert_int_equal(n, 1);
    assert_int_equal(hf_admin_dead_purge(admin, "q", NULL, NULL, NULL, &n, NULL), HF_OK);
    assert_int_equal(n, 1);
    assert_int_equal(hf_admin_why(admin, "q", ids[7], &why, NULL), HF_OK);
    assert_int_equal(hf_admin_purge(admin, "q", NULL, NULL, &n, NULL), HF_OK);
    assert_int_equal(n, JOBS - 5);
    assert_int_equal(hf_fixture_number(&fixture.redis, "HLEN hf:{q}:jobs"), 1);
    make_room();
    hf_admin_close(admin);
}

#define TEST(name) HF_QUEUE_TEST(name, &fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(enqueue_is_refused_and_changes_nothing),
        TEST(enqueue_is_refused_also_after_a_step_back_of_the_clock),
        TEST(an_existing_id_is_told_even_then),
        TEST(everything_else_continues),
        TEST(takeovers_and_burials_continue),
        TEST(orders_and_signs_of_life_continue),
        TEST(jobs_are_ended_and_looked_into),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
