/* test_worker_cancel.c - a job is cancelled while a worker has it: at each stage of the
 * job, and with lost requests and answers. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "queue_scripts.h"
#include "tests/support/eventually.h"
#include "tests/support/proxy.h"
#include "tests/support/queue_fixture.h"
#include "tests/support/worker_fixture.h"

static hf_queue_fixture queue;
static hf_proxy proxy; /* between the worker and Redis; not the administrator */
static hf_worker_fixture worker;
static hf_admin *admin;

static int up(void **state)
{
    (void)state;
    hf_queue_fixture_start(&queue, NULL);
    hf_proxy_start(&proxy, queue.redis.socket);
    admin = hf_queue_fixture_admin(&queue);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_proxy_set(&proxy, PROXY_REQUESTS, PROXY_PASS);
    hf_proxy_let_go(&proxy);
    hf_worker_fixture_end(&worker);
    hf_proxy_stop(&proxy);
    hf_admin_close(admin);
    hf_queue_fixture_audit(&queue, true);
    hf_queue_fixture_stop(&queue);
    return 0;
}

static void start(uint32_t lease_ms)
{
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .lease_ms = lease_ms,
                                 .server = HF_SERVER(.request_timeout_ms = 20000)};
    hf_worker_fixture_start(&worker, proxy.url, &opts, 0);
}

/* It has said that it is alive, and waits for a baton: it sends nothing by itself. */
static bool at_rest(void)
{
    return hf_fixture_number(&queue.redis, "ZCARD hf:{/}:workers") == 1 &&
           strstr(hf_fixture_command(&queue.redis, "INFO clients"),
                  "blocked_clients:1") != NULL;
}

/* A job that runs. */
static void start_with(uint32_t lease_ms, const char *payload)
{
    start(lease_ms);
    hf_queue_fixture_put(&queue, "a", payload, 0);
    EVENTUALLY(15000, atomic_load(&worker.started) == 1);
}

static void cancel(const char *id)
{
    hf_job_info info = {HF_JOB_INFO_INIT};
    assert_int_equal(hf_admin_cancel(admin, "q", id, &info, NULL), HF_RUNNING);
    assert_true(info.holder[0] != '\0');
}

static void assert_cancelled(const char *id)
{
    EVENTUALLY(15000, hf_queue_fixture_meta(&queue, "cancelled") == 1);
    assert_int_equal(hf_admin_wait(admin, "q", id, 0, 5000, NULL), HF_CANCEL);
    EVENTUALLY(15000, hf_worker_fixture_said(&worker, "outcome=cancelled") == 1);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(hf_worker_fixture_said(&worker, "outcome=lost"), 0);
    assert_int_equal(hf_queue_fixture_meta(&queue, "lost") +
                         hf_queue_fixture_meta(&queue, "unsure") +
                         hf_queue_fixture_meta(&queue, "failed"),
                     -3);
}

static void a_running_handler_is_asked_to_stop_and_its_job_is_gone(void **state)
{
    (void)state;
    start_with(3000, "heed");
    cancel("a");
    assert_cancelled("a");
    assert_true(atomic_load(&worker.asked_to_stop));
    assert_int_equal(atomic_load(&worker.started), 1);
    assert_int_equal(hf_queue_fixture_meta(&queue, "done"), -1);
}

/* It did its work all the same, and that is told. */
static void a_handler_that_finishes_is_done(void **state)
{
    (void)state;
    start_with(3000, "gate");
    hf_job_info info = {HF_JOB_INFO_INIT};
    assert_int_equal(hf_admin_cancel(admin, "q", "a", &info, NULL), HF_RUNNING);
    EVENTUALLY(15000, hf_queue_fixture_meta(&queue, "done") == 1);
    assert_int_equal(hf_admin_wait(admin, "q", "a", info.accepted_ms, 5000, NULL), HF_OK);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_true(atomic_load(&worker.asked_to_stop));
    assert_int_equal(hf_queue_fixture_meta(&queue, "cancelled"), -1);
    assert_int_equal(hf_worker_fixture_said(&worker, "outcome=done"), 1);
    assert_int_equal(hf_worker_fixture_said(&worker, "outcome=cancelled"), 0);
}

/* The worker had made up its mind, but Redis had heard of the cancel first. */
static void a_verdict_on_its_way_is_overtaken(void **state)
{
    (void)state;
    start_with(30000, "heed");
    hf_proxy_set(&proxy, PROXY_REQUESTS, PROXY_HOLD);
    atomic_store(&worker.gate, true);
    EVENTUALLY(15000, hf_worker_fixture_said(&worker, "outcome=retry") == 1);
    cancel("a");
    hf_proxy_set(&proxy, PROXY_REQUESTS, PROXY_PASS);
    EVENTUALLY(15000, hf_queue_fixture_meta(&queue, "cancelled") == 1);
    assert_int_equal(hf_queue_fixture_meta(&queue, "failed"), -1);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(atomic_load(&worker.started), 1);
}

/* The only thread is busy and the loop stands still: the job lies in the pool's line. */
static void what_waits_for_a_thread_is_not_started(void **state)
{
    enum { BEFORE = 40 };
    static const char *const ids[] = {"quick", "slow", "next"};
    static const char *const payloads[] = {"ok", "deaf", "ok"};
    (void)state;
    hf_worker_fixture_start(
        &worker, proxy.url,
        &(hf_worker_opts){HF_WORKER_OPTS_INIT, .lease_ms = 3000, .concurrency = 1}, 0);
    for (unsigned i = 0; i < BEFORE; i++) { /* it learns that its jobs are short */
        char id[16];
        (void)snprintf(id, sizeof id, "j%u", i % 100);
        hf_queue_fixture_put(&queue, id, "ok", 0);
    }
    EVENTUALLY(15000, hf_queue_fixture_meta(&queue, "done") == BEFORE);
    atomic_store(&worker.hold_loop, true); /* as soon as `quick` is done */
    hf_queue_fixture_put_all(&queue, ids, payloads, HF_COUNT(ids));
    EVENTUALLY(15000, atomic_load(&worker.loop_held));
    EVENTUALLY(15000, atomic_load(&worker.started) == BEFORE + 2);
    cancel("next");
    cancel("slow"); /* which sees that the watchdog has heard of both */
    EVENTUALLY(15000, atomic_load(&worker.asked_to_stop));
    atomic_store(&worker.gate, true);
    EVENTUALLY(15000, atomic_load(&worker.returned) == BEFORE + 2);
    ALWAYS(150, atomic_load(&worker.started) == BEFORE + 2);
    atomic_store(&worker.hold_loop, false);
    assert_cancelled("next");
    assert_int_equal(hf_queue_fixture_meta(&queue, "done"), BEFORE + 2);
}

/* So much of its lease had passed that it is renewed before it may start. */
static void what_is_held_back_is_not_started(void **state)
{
    enum { LEASE_MS = 10000, AWAY_MS = 5100 };
    (void)state;
    start(LEASE_MS);
    EVENTUALLY(15000, at_rest());
    hf_proxy_keep_answer(&proxy, hf_lua_queue_claim.sha1);
    hf_queue_fixture_put(&queue, "a", "ok", 0);
    EVENTUALLY(15000, hf_proxy_kept(&proxy) == 1);
    cancel("a");
    ALWAYS(AWAY_MS, atomic_load(&worker.started) == 0);
    hf_proxy_let_go(&proxy);
    assert_cancelled("a");
    assert_int_equal(atomic_load(&worker.started), 0);
}

/* The first sending removed the job; the second finds nothing, and that is right. */
static void an_answer_that_is_lost_changes_nothing(void **state)
{
    (void)state;
    start_with(3000, "heed");
    (void)hf_fixture_command(&queue.redis, "SCRIPT LOAD %s", hf_lua_queue_release.text);
    hf_proxy_lose_answer(&proxy, hf_lua_queue_release.sha1);
    cancel("a");
    EVENTUALLY(15000, hf_proxy_cuts(&proxy) == 1);
    EVENTUALLY(15000, hf_worker_fixture_said(&worker, "Redis is back") == 1);
    assert_cancelled("a");
}

static void a_redis_that_forgot_its_scripts_or_is_full_ends_it_too(void **state)
{
    (void)state;
    start_with(3000, "heed");
    cancel("a");
    assert_string_equal(hf_fixture_command(&queue.redis, "SCRIPT FLUSH"), "OK");
    assert_string_equal(hf_fixture_command(&queue.redis, "CONFIG SET maxmemory 1"), "OK");
    assert_cancelled("a");
    assert_string_equal(hf_fixture_command(&queue.redis, "CONFIG SET maxmemory 0"), "OK");
}

/* Whoever stops while its job is to be cancelled gives it back; it is not put back. */
static void a_worker_that_stops_meanwhile_does_not_bring_it_back(void **state)
{
    (void)state;
    start_with(30000, "heed");
    cancel("a"); /* its next renewal is 10 s away */
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(hf_queue_fixture_meta(&queue, "cancelled"), 1);
    assert_int_equal(hf_fixture_number(&queue.redis, "ZCARD hf:{q}:schedule"), 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, up, down)
    const struct CMUnitTest tests[] = {
        CASE(a_running_handler_is_asked_to_stop_and_its_job_is_gone),
        CASE(a_handler_that_finishes_is_done),
        CASE(a_verdict_on_its_way_is_overtaken),
        CASE(what_waits_for_a_thread_is_not_started),
        CASE(what_is_held_back_is_not_started),
        CASE(an_answer_that_is_lost_changes_nothing),
        CASE(a_redis_that_forgot_its_scripts_or_is_full_ends_it_too),
        CASE(a_worker_that_stops_meanwhile_does_not_bring_it_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
