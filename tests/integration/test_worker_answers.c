/* test_worker_answers.c - answers that come late to a worker, or never. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "queue_scripts.h"
#include "tests/support/eventually.h"
#include "tests/support/proxy.h"
#include "tests/support/queue_fixture.h"
#include "tests/support/worker_fixture.h"

static hf_queue_fixture queue;
static hf_proxy proxy;
static hf_worker_fixture worker;

static int up(void **state)
{
    (void)state;
    hf_queue_fixture_start(&queue, NULL);
    hf_proxy_start(&proxy, queue.redis.socket);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_proxy_let_go(&proxy);
    hf_worker_fixture_end(&worker);
    hf_proxy_stop(&proxy);
    hf_queue_fixture_audit(&queue, true);
    hf_queue_fixture_stop(&queue);
    return 0;
}

/* It has said that it is alive, and waits for a baton: it sends nothing by itself. */
static bool at_rest(void)
{
    return hf_fixture_number(&queue.redis, "ZCARD hf:{/}:workers") == 1 &&
           strstr(hf_fixture_command(&queue.redis, "INFO clients"),
                  "blocked_clients:1") != NULL;
}

static void start(uint32_t lease_ms, uint32_t request_timeout_ms)
{
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .lease_ms = lease_ms,
                                 .server =
                                     HF_SERVER(.request_timeout_ms = request_timeout_ms)};
    hf_worker_fixture_start(&worker, proxy.url, &opts, 0);
    EVENTUALLY(15000, at_rest());
}

static void stop_when_done(long long jobs)
{
    EVENTUALLY(15000, hf_queue_fixture_meta(&queue, "done") == jobs);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

static void a_verdict_that_did_not_arrive_is_sent_again(void **state)
{
    (void)state;
    start(30000, 0);
    hf_queue_fixture_put(&queue, "a", "gate", 0);
    EVENTUALLY(15000, atomic_load(&worker.started) == 1 && at_rest());
    hf_proxy_cut_after(&proxy, PROXY_REQUESTS, 10);
    atomic_store(&worker.gate, true);
    EVENTUALLY(15000, hf_proxy_cuts(&proxy) == 1);
    stop_when_done(1);
    assert_int_equal(atomic_load(&worker.started), 1);
}

/* It was executed; what is sent again finds no job, and that is as it should be. */
static void a_verdict_whose_answer_did_not_arrive_is_no_loss(void **state)
{
    (void)state;
    start(30000, 0);
    hf_queue_fixture_put(&queue, "first", "ok",
                         0); /* the server has the scripts from then on */
    EVENTUALLY(15000, hf_queue_fixture_meta(&queue, "done") == 1);
    hf_proxy_lose_answer(&proxy, hf_lua_queue_complete.sha1);
    hf_queue_fixture_put(&queue, "a", "ok", 0);
    EVENTUALLY(15000, hf_proxy_cuts(&proxy) == 1);
    EVENTUALLY(15000, hf_worker_fixture_said(&worker, "Redis is back") == 1);
    stop_when_done(2); /* it waits for the answer to what it sends again */
    assert_int_equal(hf_worker_fixture_said(&worker, "outcome=lost"), 0);
    assert_int_equal(hf_queue_fixture_meta(&queue, "lost"), -1);
}

/* Its jobs are locked for a worker that does not know them; they wait for no lease's end.
 */
static void a_claim_whose_answer_did_not_arrive_is_given_back(void **state)
{
    (void)state;
    start(30000, 300);
    hf_proxy_lose_answer(&proxy, hf_lua_queue_claim.sha1);
    hf_queue_fixture_put(&queue, "a", "ok", 0);
    EVENTUALLY(15000, hf_proxy_cuts(&proxy) == 1);
    stop_when_done(1);
    assert_int_equal(hf_queue_fixture_meta(&queue, "crashed"), -1);
}

static void a_jump_of_the_clock_is_told_and_holds_nothing_up(void **state)
{
    (void)state;
    start(30000, 300);
    hf_proxy_shift_clock(&proxy, 10000);
    hf_queue_fixture_put(&queue, "a", "ok", 0);
    EVENTUALLY(15000, hf_worker_fixture_said(&worker, "the clock of Redis jumped") == 1);
    EVENTUALLY(15000, hf_queue_fixture_meta(&queue, "done") == 1 && at_rest());
    hf_proxy_shift_clock(&proxy, -10000);
    hf_queue_fixture_put(&queue, "b", "ok", 0);
    stop_when_done(2);
    assert_int_equal(hf_queue_fixture_meta(&queue, "lost"), -1);
}

/* How long a job of the other queue takes while a claim of this one is in doubt. */
static int64_t run_other(const char *id, long long before)
{
    const hf_queue q = queue.queue;
    const unsigned cuts = hf_proxy_cuts(&proxy);
    hf_proxy_lose_answer(&proxy, hf_lua_queue_claim.sha1);
    int64_t sent_ms = hf_queue_fixture_now(&queue);
    uint64_t fair_ms = hf_test_fair_ms();
    hf_queue_fixture_put(&queue, id, "ok", 0);
    EVENTUALLY(15000, hf_proxy_cuts(&proxy) == cuts + 1);
    assert_int_equal(hf_queue_init(&queue.queue, q.ns, "other"), HF_OK);
    hf_queue_fixture_put(&queue, id, "ok", 0);
    EVENTUALLY(15000, hf_fixture_number(&queue.redis, "HGET hf:{other}:meta done") ==
                          before + 1);
    int64_t other_ms = (int64_t)(hf_test_fair_ms() - fair_ms);
    queue.queue = q;
    EVENTUALLY(15000, hf_queue_fixture_meta(&queue, "done") == before + 1);
    assert_true(hf_queue_fixture_now(&queue) - sent_ms >=
                1000); /* so it was in doubt meanwhile */
    EVENTUALLY(15000, at_rest());
    print_message("the other one after %d ms\n", (int)other_ms);
    return other_ms;
}

/* Only that queue waits until its claim cannot be executed any more. On a busy machine
 * the other's job may take that long by itself: it is enough that one is quick. */
static void a_claim_without_an_answer_holds_up_no_other_queue(void **state)
{
    enum { ROUNDS = 8, QUICK_MS = 900 };
    (void)state;
    static const hf_worker_queue both[] = {{HF_WORKER_QUEUE_INIT, .name = "q"},
                                           {HF_WORKER_QUEUE_INIT, .name = "other"}};
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .queues = both, .n_queues = 2,
                                 .lease_ms = 30000};
    char id[16];
    int64_t best_ms = INT64_MAX;
    hf_worker_fixture_start(&worker, proxy.url, &opts, 0);
    EVENTUALLY(15000, at_rest());
    for (int i = 0; i < ROUNDS && best_ms >= QUICK_MS; i++) {
        (void)snprintf(id, sizeof id, "j%d", i);
        int64_t other_ms = run_other(id, i);
        best_ms = other_ms < best_ms ? other_ms : best_ms;
    }
    assert_true(best_ms < QUICK_MS);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

static void a_lock_counts_from_when_it_was_asked_for(void **state)
{
    (void)state;
    enum { LEASE_MS = 10000, AWAY_MS = 1000, PATIENT_MS = 8000 };
    start(LEASE_MS, PATIENT_MS); /* it does not ask again meanwhile */
    hf_proxy_keep_answer(&proxy, hf_lua_queue_claim.sha1);
    hf_queue_fixture_put(&queue, "a", "ok", 0);
    EVENTUALLY(15000, hf_proxy_kept(&proxy) == 1);
    ALWAYS(AWAY_MS, atomic_load(&worker.started) == 0);
    hf_proxy_let_go(&proxy);
    stop_when_done(1);
    assert_true(atomic_load(&worker.remaining_ms) <= LEASE_MS - AWAY_MS);
}

static void a_lock_of_which_half_is_gone_is_renewed_before_the_job_starts(void **state)
{
    (void)state;
    enum { LEASE_MS = 10000, AWAY_MS = 5050 };
    start(LEASE_MS, 3 * LEASE_MS);
    hf_proxy_keep_answer(&proxy, hf_lua_queue_claim.sha1);
    hf_queue_fixture_put(&queue, "a", "ok", 0);
    EVENTUALLY(15000, hf_proxy_kept(&proxy) == 1);
    ALWAYS(AWAY_MS, atomic_load(&worker.started) == 0);
    hf_proxy_keep_answer(&proxy, hf_lua_queue_renew.sha1);
    hf_proxy_let_go(&proxy); /* the claim's, and the next to be kept is the renewal's */
    EVENTUALLY(15000, hf_proxy_kept(&proxy) == 1);
    ALWAYS(100, atomic_load(&worker.started) == 0);
    hf_proxy_let_go(&proxy);
    stop_when_done(1);
}

/* An outage of hours must not fill the log. */
static void a_server_that_stays_away_is_told_once(void **state)
{
    (void)state;
    start(30000, 0);
    hf_fixture_kill(&queue.redis, SIGKILL);
    EVENTUALLY(15000, hf_worker_fixture_said(&worker, "debug Redis is away") >= 2 &&
                          hf_worker_fixture_said(&worker, "debug the watchdog's") >= 2);
    assert_int_equal(hf_worker_fixture_said(&worker, "error Redis is away"), 1);
    assert_int_equal(hf_worker_fixture_said(&worker, "error the watchdog's"), 1);
    hf_fixture_restart(&queue.redis);
    EVENTUALLY(15000, hf_worker_fixture_said(&worker, "Redis is back") == 1);
    hf_fixture_kill(&queue.redis, SIGKILL);
    EVENTUALLY(15000, hf_worker_fixture_said(&worker, "error Redis is away") == 2);
    hf_fixture_restart(&queue.redis);
    EVENTUALLY(15000, hf_worker_fixture_said(&worker, "Redis is back") == 2);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, up, down)
    const struct CMUnitTest tests[] = {
        CASE(a_verdict_that_did_not_arrive_is_sent_again),
        CASE(a_verdict_whose_answer_did_not_arrive_is_no_loss),
        CASE(a_claim_whose_answer_did_not_arrive_is_given_back),
        CASE(a_jump_of_the_clock_is_told_and_holds_nothing_up),
        CASE(a_claim_without_an_answer_holds_up_no_other_queue),
        CASE(a_lock_counts_from_when_it_was_asked_for),
        CASE(a_lock_of_which_half_is_gone_is_renewed_before_the_job_starts),
        CASE(a_server_that_stays_away_is_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
