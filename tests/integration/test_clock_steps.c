/* test_clock_steps.c - what steps of Redis's clock do to jobs that wait for their time,
 * to the list of leases, and to workers and producers whose requests are under way. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "holdfast/producer.h"
#include "queue_scripts.h"
#include "tests/support/eventually.h"
#include "tests/support/proxy.h"
#include "tests/support/queue_fixture.h"
#include "tests/support/worker_fixture.h"

enum {
    S_MS = 1000,
    MINUTE_MS = 60 * S_MS,
    HOUR_MS = 60 * MINUTE_MS,
    LEASE_MS = 30 * S_MS
};

static hf_queue_fixture fixture;
static hf_proxy proxy;
static hf_worker_fixture worker;

static int up(void **state)
{
    (void)state;
    hf_queue_fixture_start(&fixture, &(hf_fixture_options){.clock = true});
    hf_proxy_start(&proxy, fixture.redis.socket);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_worker_fixture_end(&worker);
    hf_proxy_stop(&proxy);
    hf_queue_fixture_stop(&fixture);
    return 0;
}

static void check(void)
{
    const hf_queue *queue = &fixture.queue;
    const hf_check_args args = {
        .worker = "w", .alive_ms = MINUTE_MS, .lease_ms = LEASE_MS};
    assert_int_equal(hf_queue_fixture_check_with(&fixture, &queue, 1, &args), HF_OK);
}

static void claim(const char *id)
{
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, id, 0), HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    assert_string_equal(fixture.jobs[0].id, id);
}

/* ms until it is due; at most 0: it is ready. */
static int64_t wait_of(const char *id)
{
    int64_t due = hf_fixture_number(&fixture.redis, "ZSCORE hf:{q}:schedule %s", id);
    return due - hf_queue_fixture_now(&fixture);
}

static void assert_wait(const char *id, int64_t ms)
{
    int64_t wait = wait_of(id);
    if (wait > ms || wait < ms - 10 * S_MS)
        fail_msg("%s is due in %lld ms, expected %lld", id, (long long)wait,
                 (long long)ms);
}

static void say(hf_verdict_op op, const char *id, int64_t due_ms, const char *error)
{
    const hf_verdict_args args = {.worker = "w"};
    const hf_verdict_item item = {.id = id,
                                  .fence = fixture.fence,
                                  .due_ms = due_ms,
                                  .error = {error, strlen(error)}};
    assert_int_equal(hf_queue_fixture_verdict(&fixture, op, &args, &item), HF_OK);
}

/* ---- what waits for its time ---- */

/* Also when that script is the first one to see the step. */
static void a_delay_that_begins_after_a_step_back_is_kept(void **state)
{
    (void)state;
    claim("retried");
    check();
    hf_fixture_clock_jump(&fixture.redis, -HOUR_MS);
    say(HF_OP_RETRY, "retried", MINUTE_MS, "x");
    assert_wait("retried", MINUTE_MS);

    claim("refused");
    check();
    hf_fixture_clock_jump(&fixture.redis, -HOUR_MS);
    say(HF_OP_RELEASE, "refused", MINUTE_MS, "nobody takes it");
    assert_wait("refused", MINUTE_MS);
}

static void a_job_that_was_due_is_due_when_it_is_given_back(void **state)
{
    (void)state;
    claim("released");
    int64_t due_ms = fixture.jobs[0].due_ms;
    char fence[sizeof fixture.fence];
    memcpy(fence, fixture.fence, sizeof fence);
    claim("unclaimed");
    uint64_t number = fixture.number;
    hf_fixture_clock_jump(&fixture.redis, -HOUR_MS);
    check(); /* others have seen the step meanwhile */
    memcpy(fixture.fence, fence, sizeof fence);
    say(HF_OP_RELEASE, "released", due_ms, "");
    assert_true(wait_of("released") <= 0);
    assert_int_equal(hf_queue_fixture_unclaim(&fixture, "w", number), HF_OK);
    assert_true(wait_of("unclaimed") <= 0);
}

/* While there are more jobs to move than one script moves. */
static bool has(const char *key)
{
    return hf_fixture_number(&fixture.redis, "EXISTS %s", key) == 1;
}

/* Its word lasts until the time of before the step, and `ended:` says that it is there.
 */
static void how_a_job_ended_before_a_step_back_is_no_word_on_a_new_one(void **state)
{
    hf_admin *admin = hf_queue_fixture_admin(&fixture);
    char detail[HF_DETAIL_SIZE];
    (void)state;
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "old", 0), HF_OK);
    assert_int_equal(hf_admin_delete(admin, "q", "old", NULL, detail), HF_OK);
    hf_fixture_clock_jump(&fixture.redis, -HOUR_MS);
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "other", 0), HF_OK);
    assert_int_equal(hf_admin_delete(admin, "q", "other", NULL, detail), HF_OK);
    hf_fixture_clock_jump(&fixture.redis, 2 * MINUTE_MS);
    assert_false(has("hf:{q}:ended:other"));
    assert_true(has("hf:{q}:ended:old"));
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "old", 0), HF_OK);
    assert_false(has("hf:{q}:ended:old"));
    hf_admin_close(admin);
}

static void a_delay_that_begins_while_ready_jobs_are_moved_is_kept(void **state)
{
    (void)state;
    enum { JOBS = 2500 };
    claim("retried");
    check();
    for (int i = 0; i < JOBS; i++) {
        char id[32];
        (void)snprintf(id, sizeof id, "j%05d", i);
        assert_int_equal(hf_queue_fixture_enqueue(&fixture, id, 0), HF_OK);
    }
    hf_fixture_clock_jump(&fixture.redis, -HOUR_MS);
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "delayed", -MINUTE_MS), HF_OK);
    say(HF_OP_RETRY, "retried", MINUTE_MS, "x");
    assert_wait("delayed", MINUTE_MS);
    assert_wait("retried", MINUTE_MS);
    for (int i = 0; i < 3; i++)
        check();
    assert_wait("delayed", MINUTE_MS);
    assert_wait("retried", MINUTE_MS);
    assert_true(wait_of("j00000") <= 0);
    assert_true(wait_of("j02499") <= 0);
}

/* ---- the lengths of leases ---- */

static void a_step_forward_forgets_no_length_of_a_lease(void **state)
{
    (void)state;
    static const int64_t steps[] = {61 * MINUTE_MS, 30 * HOUR_MS};
    for (size_t i = 0; i < 2; i++) {
        char id[8];
        (void)snprintf(id, sizeof id, "j%zu", i);
        assert_int_equal(hf_queue_fixture_enqueue(&fixture, id, 0), HF_OK);
        hf_claim_args args = hf_queue_fixture_claim_args("long", 1, MINUTE_MS);
        args.alive_ms = MINUTE_MS + 15 * S_MS;
        args.max = 2; /* with the one before */
        assert_int_equal(hf_queue_fixture_claim_with(&fixture, &args), HF_OK);
        assert_int_equal(fixture.n_jobs, i + 1);
        hf_fixture_clock_jump(&fixture.redis, steps[i]);
        const hf_queue *queue = &fixture.queue;
        const hf_check_args short_one = {
            .worker = "short", .alive_ms = 17 * S_MS, .lease_ms = 2 * S_MS};
        for (int k = 0; k < 3; k++)
            assert_int_equal(hf_queue_fixture_check_with(&fixture, &queue, 1, &short_one),
                             HF_OK);
        assert_true(
            hf_fixture_number(&fixture.redis, "ZSCORE hf:{q}:leases %d", MINUTE_MS) > 0);
    }
}

/* ---- workers ---- */

static bool at_rest(void)
{
    return hf_fixture_number(&fixture.redis, "ZCARD hf:{/}:workers") == 1 &&
           strstr(hf_fixture_command(&fixture.redis, "INFO clients"),
                  "blocked_clients:1") != NULL;
}

static void start(void)
{
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .lease_ms = LEASE_MS};
    hf_worker_fixture_start(&worker, proxy.url, &opts, 0);
    EVENTUALLY(15000, at_rest());
}

/* Else its queue would not be asked for an hour. */
static void a_lost_claim_is_given_back_though_the_clock_was_set_back(void **state)
{
    (void)state;
    start();
    hf_proxy_refuse(&proxy, true);
    hf_proxy_lose_answer(&proxy, hf_lua_queue_claim.sha1);
    hf_queue_fixture_put(&fixture, "a", "ok", 0);
    EVENTUALLY(15000, hf_proxy_cuts(&proxy) == 1);
    hf_fixture_clock_jump(&fixture.redis, -HOUR_MS);
    hf_proxy_refuse(&proxy, false);
    EVENTUALLY(15000, hf_queue_fixture_meta(&fixture, "done") == 1);
    hf_queue_fixture_put(&fixture, "b", "ok", 0);
    EVENTUALLY(5000, hf_queue_fixture_meta(&fixture, "done") == 2);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

/* The step has ended its locks. A lost answer is no crash, and no lease has to be over.
 */
static void a_lost_claim_is_given_back_though_the_clock_was_set_forward(void **state)
{
    (void)state;
    start();
    hf_proxy_refuse(&proxy, true);
    hf_proxy_lose_answer(&proxy, hf_lua_queue_claim.sha1);
    hf_queue_fixture_put(&fixture, "a", "ok", 0);
    EVENTUALLY(15000, hf_proxy_cuts(&proxy) == 1);
    hf_fixture_clock_jump(&fixture.redis, HOUR_MS);
    hf_proxy_refuse(&proxy, false);
    EVENTUALLY(15000, hf_queue_fixture_meta(&fixture, "done") == 1);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "crashed"), -1);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_string_equal(hf_fixture_command(&fixture.redis, "KEYS hf:{q}:last:*"), "");
}

static void a_lost_claim_is_given_back_without_its_locks(void **state)
{
    (void)state;
    claim("a");
    hf_fixture_clock_jump(&fixture.redis, HOUR_MS);
    assert_int_equal(hf_queue_fixture_unclaim(&fixture, "w", fixture.number), HF_OK);
    assert_int_equal(fixture.n_jobs, 1);
    assert_true(wait_of("a") <= 0);
    assert_int_equal(hf_queue_fixture_unclaim(&fixture, "w", fixture.number), HF_OK);
    assert_int_equal(fixture.n_jobs, 0);
}

static void a_lost_claim_gives_back_nothing_of_a_later_holder(void **state)
{
    (void)state;
    enum { SHORT_MS = 40 };
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "a", 0), HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, SHORT_MS), 1);
    uint64_t number = fixture.number;
    EVENTUALLY(5000, hf_queue_fixture_claim(&fixture, "other", 1, SHORT_MS) == 1);
    hf_fixture_clock_jump(&fixture.redis, HOUR_MS);
    assert_int_equal(hf_queue_fixture_unclaim(&fixture, "w", number), HF_OK);
    assert_int_equal(fixture.n_jobs, 0);
    assert_true(hf_fixture_number(&fixture.redis, "ZSCORE hf:{q}:running a") > 0);
}

/* The claim of a job tells it of the step. Its last check was a moment ago. */
static void a_worker_checks_at_once_when_the_clock_was_set_back(void **state)
{
    (void)state;
    start();
    hf_proxy_keep_request(&proxy, hf_lua_queue_check.sha1);
    hf_fixture_clock_jump(&fixture.redis, -HOUR_MS);
    hf_queue_fixture_put(&fixture, "a", "ok", 0);
    EVENTUALLY(2000, hf_proxy_keeps_request(&proxy));
    hf_proxy_let_go(&proxy);
    EVENTUALLY(15000, hf_queue_fixture_meta(&fixture, "done") == 1);
    assert_int_equal(hf_worker_fixture_said(&worker, "the clock of Redis jumped"), 1);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

/* Its lease seems to last for an hour. A holder that lives renews all the while. */
static void the_job_of_a_dead_holder_runs_again_after_a_step_back(void **state)
{
    (void)state;
    enum { SHORT_MS = 2 * S_MS };
    hf_queue_fixture_put(&fixture, "dead", "ok", 0);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "gone", 1, SHORT_MS), 1);
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .lease_ms = SHORT_MS,
                                 .concurrency = 2};
    hf_queue_fixture_put(&fixture, "held", "gate", 0);
    hf_worker_fixture_start(&worker, proxy.url, &opts, 0);
    EVENTUALLY(15000, atomic_load(&worker.started) == 1);
    hf_fixture_clock_jump(&fixture.redis, -HOUR_MS);
    EVENTUALLY(15000, hf_queue_fixture_meta(&fixture, "done") == 1);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "crashed"), 1);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "lost"), -1);
    atomic_store(&worker.gate, true);
    EVENTUALLY(15000, hf_queue_fixture_meta(&fixture, "done") == 2);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

/* Its verdict is the first that the worker hears of the step. */
static void a_job_that_ends_after_a_step_forward_is_done(void **state)
{
    (void)state;
    start();
    for (int i = 0; i < 5; i++) {
        char id[8];
        (void)snprintf(id, sizeof id, "j%d", i);
        atomic_store(&worker.gate, false);
        hf_queue_fixture_put(&fixture, id, "gate", 0);
        EVENTUALLY(15000, atomic_load(&worker.started) == i + 1 && at_rest());
        hf_fixture_clock_jump(&fixture.redis, HOUR_MS);
        atomic_store(&worker.gate, true);
        EVENTUALLY(15000, atomic_load(&worker.returned) == i + 1);
        EVENTUALLY(15000, hf_queue_fixture_meta(&fixture, "done") > i ||
                              hf_queue_fixture_meta(&fixture, "lost") > 0);
    }
    assert_int_equal(hf_queue_fixture_meta(&fixture, "lost"), -1);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "done"), 5);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

/* Something else has told the worker of the step, so the verdict is not too late. The
 * watchdog's renewal is still on its way. */
static void a_job_that_ends_after_a_step_that_was_heard_is_done(void **state)
{
    (void)state;
    start();
    hf_queue_fixture_put(&fixture, "held", "gate", 0);
    EVENTUALLY(15000, atomic_load(&worker.started) == 1 && at_rest());
    hf_proxy_keep_request(&proxy, hf_lua_queue_renew.sha1);
    hf_fixture_clock_jump(&fixture.redis, HOUR_MS);
    hf_queue_fixture_put(&fixture, "quick", "ok", 0);
    EVENTUALLY(15000, hf_worker_fixture_said(&worker, "the clock of Redis jumped") == 1 &&
                          hf_proxy_keeps_request(&proxy));
    atomic_store(&worker.gate, true);
    EVENTUALLY(15000, hf_queue_fixture_meta(&fixture, "done") == 2 ||
                          hf_queue_fixture_meta(&fixture, "lost") > 0);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "lost"), -1);
    hf_proxy_let_go(&proxy);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

/* ---- producers ---- */

static void *step_after_the_cut(void *arg)
{
    (void)arg;
    EVENTUALLY(15000, hf_proxy_cuts(&proxy) == 1);
    hf_fixture_clock_jump(&fixture.redis, HOUR_MS);
    hf_proxy_refuse(&proxy, false);
    return NULL;
}

/* The step ends what Redis remembers of the producer, so nobody can tell. */
static void a_lost_request_is_not_executed_again_after_a_step_forward(void **state)
{
    (void)state;
    hf_producer *producer;
    char detail[HF_DETAIL_SIZE];
    pthread_t thread;
    const char *sha;
    const hf_producer_opts opts = {HF_PRODUCER_OPTS_INIT,
                                   .server = HF_SERVER(.url = proxy.url),
                                   .deadline_ms = 5000};
    const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t"};
    assert_int_equal(hf_producer_open(&producer, &opts, detail), HF_OK);
    assert_int_equal(hf_enqueue_wait(producer, &job, 1, NULL, 0, detail), HF_OK);
    (void)hf_enqueue_script(NULL, &sha);
    hf_proxy_refuse(&proxy, true);
    hf_proxy_lose_answer(&proxy, sha);
    assert_int_equal(pthread_create(&thread, NULL, step_after_the_cut, NULL), 0);
    hf_err err = hf_enqueue_wait(producer, &job, 1, NULL, 0, detail);
    (void)pthread_join(thread, NULL);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "enqueued"), 2);
    assert_int_equal(err, HF_UNSURE);
    assert_int_equal(hf_enqueue_wait(producer, &job, 1, NULL, 0, detail), HF_OK);
    hf_producer_close(producer, NULL, NULL);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, up, down)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE(a_delay_that_begins_after_a_step_back_is_kept),
        CASE(a_job_that_was_due_is_due_when_it_is_given_back),
        CASE(how_a_job_ended_before_a_step_back_is_no_word_on_a_new_one),
        CASE(a_delay_that_begins_while_ready_jobs_are_moved_is_kept),
        CASE(a_step_forward_forgets_no_length_of_a_lease),
        CASE(a_lost_claim_is_given_back_without_its_locks),
        CASE(a_lost_claim_is_given_back_though_the_clock_was_set_back),
        CASE(a_lost_claim_is_given_back_though_the_clock_was_set_forward),
        CASE(a_lost_claim_gives_back_nothing_of_a_later_holder),
        CASE(a_worker_checks_at_once_when_the_clock_was_set_back),
        CASE(the_job_of_a_dead_holder_runs_again_after_a_step_back),
        CASE(a_job_that_ends_after_a_step_forward_is_done),
        CASE(a_job_that_ends_after_a_step_that_was_heard_is_done),
        CASE(a_lost_request_is_not_executed_again_after_a_step_forward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
