/* test_rate_tokens.c - a job that was claimed and never started costs its queue's rate
 * nothing, in every way to give it back; a job that started does. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"
#include "tests/support/worker_fixture.h"

static hf_queue_fixture fixture;
static hf_worker_fixture worker;

static void set_rate(int per_hour)
{
    (void)hf_fixture_command(&fixture.redis,
                             "HSET hf:{q}:meta rate_limit %d rate_per 3600000 uses r",
                             per_hour);
}

static int up(void **state)
{
    (void)hf_queue_fixture_up(state);
    set_rate(1);
    return 0;
}

static int down(void **state)
{
    hf_worker_fixture_end(&worker);
    return hf_queue_fixture_down(state);
}

static void claim_one(void)
{
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
}

static void no_token_is_left(void)
{
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 0);
    assert_true(fixture.next_ms > fixture.now_ms + 3000000);
}

static hf_err give_back(hf_verdict_op op, const hf_verdict_item *item)
{
    const hf_verdict_args args = {.worker = "w", .dead_max = 10, .dead_age_ms = 1000000};
    return hf_queue_fixture_verdict(&fixture, op, &args, item);
}

static void a_job_that_never_started_gives_its_token_back(void **state)
{
    hf_verdict_item item = {.id = "one"};
    (void)state;
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "one", 0), HF_OK);
    for (int i = 0; i < 3; i++) {
        claim_one();
        item.due_ms = fixture.jobs[0].due_ms;
        assert_int_equal(give_back(HF_OP_RELEASE, &item), HF_OK);
    }
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "two", 0), HF_OK);
    claim_one();
    no_token_is_left();
}

static void a_job_that_had_started_does_not(void **state)
{
    (void)state;
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "one", 0), HF_OK);
    claim_one();
    const hf_verdict_item item = {.id = "one", .started = true};
    assert_int_equal(give_back(HF_OP_RELEASE, &item), HF_OK);
    no_token_is_left();
}

static void a_job_that_was_refused_gives_its_token_back(void **state)
{
    const hf_verdict_item item = {
        .id = "one", .due_ms = 60000, .error = {"no handler", 10}};
    (void)state;
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "one", 0), HF_OK);
    claim_one();
    assert_int_equal(give_back(HF_OP_RELEASE, &item), HF_OK);
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "two", 0), HF_OK);
    claim_one();
}

static void a_job_that_no_worker_can_run_returns_its_token(void **state)
{
    const hf_verdict_item item = {
        .id = "one", .counts = false, .error = {"what?", 5}, .reason = "record"};
    (void)state;
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "one", 0), HF_OK);
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "two", 0), HF_OK);
    claim_one();
    assert_int_equal(give_back(HF_OP_BURY, &item), HF_OK);
    claim_one();
    assert_string_equal(fixture.jobs[0].id, "two");
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "three", 0), HF_OK);
    no_token_is_left();
}

static void a_job_that_is_dead_after_it_ran_does_not(void **state)
{
    const hf_verdict_item item = {
        .id = "one", .counts = true, .error = {"no", 2}, .reason = "handler"};
    (void)state;
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "one", 0), HF_OK);
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "two", 0), HF_OK);
    claim_one();
    assert_int_equal(give_back(HF_OP_BURY, &item), HF_OK);
    no_token_is_left();
}

static void a_claim_whose_answer_was_lost_gives_its_tokens_back(void **state)
{
    (void)state;
    set_rate(20); /* the bucket holds 2 */
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "one", 0), HF_OK);
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "two", 0), HF_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 2, 0), 2);
        assert_int_equal(hf_queue_fixture_unclaim(&fixture, "w", fixture.number), HF_OK);
    }
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 2, 0), 2);
}

static void a_cancelled_job_that_never_started_gives_its_token_back(void **state)
{
    const hf_verdict_item item = {.id = "one"};
    (void)state;
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "one", 0), HF_OK);
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "two", 0), HF_OK);
    claim_one();
    hf_admin *admin = hf_queue_fixture_admin(&fixture);
    assert_int_equal(hf_admin_cancel(admin, "q", "one", NULL, NULL), HF_RUNNING);
    hf_admin_close(admin);
    assert_int_equal(give_back(HF_OP_RELEASE, &item), HF_OK);
    claim_one();
    assert_string_equal(fixture.jobs[0].id, "two");
}

static void the_bucket_holds_no_more_than_before(void **state)
{
    (void)state;
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "one", 0), HF_OK);
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "two", 0), HF_OK);
    claim_one();
    (void)hf_fixture_command(&fixture.redis,
                             "HDEL hf:{q}:meta tokens tokens_at"); /* full */
    const hf_verdict_item item = {.id = "one", .due_ms = 1};
    assert_int_equal(give_back(HF_OP_RELEASE, &item), HF_OK);
    assert_string_equal(hf_fixture_command(&fixture.redis, "HGET hf:{q}:meta tokens"),
                        "1.000000");
    assert_int_equal(give_back(HF_OP_RELEASE, &item), HF_LOST);
    claim_one();
    no_token_is_left();
}

/* ---- a worker ---- */

static long long done(void)
{
    return hf_queue_fixture_meta(&fixture, "done");
}

static void a_type_without_a_handler_burns_no_tokens(void **state)
{
    static const char stranger[] = "{\"type\":\"stranger\",\"created\":1}\n";
    const hf_enqueue_args args = {.producer = ""};
    const hf_enqueue_item item = {"stranger", 0, {stranger, sizeof stranger - 1}};
    (void)state;
    assert_int_equal(hf_queue_fixture_enqueue_items(&fixture, &args, &item, 1), HF_OK);
    hf_worker_fixture_start(&worker, hf_fixture_url(&fixture.redis),
                            &(hf_worker_opts){HF_WORKER_OPTS_INIT}, 0);
    EVENTUALLY(15000, hf_worker_fixture_said(&worker, "outcome=no_handler") >= 3);
    hf_queue_fixture_put(&fixture, "mine", "ok", 0);
    EVENTUALLY(15000, done() == 1);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

static void a_handler_that_a_stop_interrupts_has_had_its_token(void **state)
{
    (void)state;
    hf_queue_fixture_put(&fixture, "one", "heed", 0);
    hf_worker_fixture_start(
        &worker, hf_fixture_url(&fixture.redis),
        &(hf_worker_opts){HF_WORKER_OPTS_INIT, .shutdown_timeout_ms = UINT32_MAX}, 0);
    EVENTUALLY(15000, atomic_load(&worker.inside) == 1);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    no_token_is_left();
}

#define TEST(name) cmocka_unit_test_prestate_setup_teardown(name, up, down, &fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_job_that_never_started_gives_its_token_back),
        TEST(a_job_that_had_started_does_not),
        TEST(a_job_that_was_refused_gives_its_token_back),
        TEST(a_job_that_no_worker_can_run_returns_its_token),
        TEST(a_job_that_is_dead_after_it_ran_does_not),
        TEST(a_claim_whose_answer_was_lost_gives_its_tokens_back),
        TEST(a_cancelled_job_that_never_started_gives_its_token_back),
        TEST(the_bucket_holds_no_more_than_before),
        TEST(a_type_without_a_handler_burns_no_tokens),
        TEST(a_handler_that_a_stop_interrupts_has_had_its_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
