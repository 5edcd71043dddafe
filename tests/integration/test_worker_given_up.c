/* test_worker_given_up.c - a handler gives its job back for later, or does not want it
 * any more: no attempt is counted. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "queue_scripts.h"
#include "tests/support/eventually.h"
#include "tests/support/proxy.h"
#include "tests/support/queue_fixture.h"
#include "tests/support/worker_fixture.h"

enum { LATER_MS = 400 };

static hf_queue_fixture queue;
static hf_worker_fixture worker;
static hf_admin *admin;
static atomic_int runs;
static atomic_uint last_attempt;

static int up(void **state)
{
    (void)state;
    atomic_store(&runs, 0);
    hf_queue_fixture_start(&queue, NULL);
    admin = hf_queue_fixture_admin(&queue);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_worker_fixture_end(&worker);
    hf_admin_close(admin);
    hf_queue_fixture_audit(&queue, true);
    hf_queue_fixture_stop(&queue);
    return 0;
}

/* "snooze": twice for later, then done; "cancel": not wanted; "fail": fails, then as
 * "snooze". */
static hf_verdict handle(hf_run *run, void *arg)
{
    size_t len;
    const char *what = hf_run_payload(run, &len);
    int before = atomic_fetch_add(&runs, 1);
    (void)arg;
    atomic_store(&last_attempt, hf_run_attempt(run));
    if (len == 6 && memcmp(what, "cancel", 6) == 0) {
        hf_run_set_error(run, "too late");
        return HF_VERDICT_CANCEL;
    }
    if (len == 4 && before == 0) {
        hf_run_set_error(run, "it failed");
        return HF_VERDICT_RETRY;
    }
    if (before < 2) {
        hf_run_set_retry_in(run, LATER_MS);
        return HF_VERDICT_RELEASE;
    }
    return HF_VERDICT_DONE;
}

static void start(const char *url, const char *payload)
{
    hf_worker_fixture_start_handler(&worker, url, 0, handle, NULL);
    hf_queue_fixture_put(&queue, "a", payload, 0);
}

static void a_released_job_waits_for_its_time_and_counts_no_attempt(void **state)
{
    (void)state;
    uint64_t from_ms = hf_test_now_ms();
    start(queue.redis.url, "snooze");
    EVENTUALLY(15000, hf_queue_fixture_meta(&queue, "done") == 1);
    assert_true(hf_test_now_ms() - from_ms >= 2 * LATER_MS - 1);
    assert_int_equal(atomic_load(&runs), 3);
    assert_int_equal(atomic_load(&last_attempt), 1);
    assert_int_equal(hf_queue_fixture_meta(&queue, "failed"), -1);
    EVENTUALLY(15000, hf_worker_fixture_said(&worker, "outcome=released in=400ms") == 2);
}

/* The record keeps what is known of its failure. */
static void a_release_after_a_failure_keeps_its_attempts(void **state)
{
    (void)state;
    hf_job_info info = {HF_JOB_INFO_INIT};
    start(queue.redis.url, "fail");
    EVENTUALLY(15000, hf_worker_fixture_said(&worker, "outcome=released") == 1);
    EVENTUALLY(15000, hf_admin_job(admin, "q", "a", &info, NULL, NULL) == HF_OK &&
                          info.state == HF_STATE_RETRY);
    assert_int_equal(info.attempts, 1);
    assert_string_equal(info.error, "it failed");
    EVENTUALLY(15000, hf_queue_fixture_meta(&queue, "done") == 1);
    assert_int_equal(atomic_load(&last_attempt), 2);
}

static void a_job_that_its_handler_cancels_is_gone_as_cancelled(void **state)
{
    (void)state;
    start(queue.redis.url, "cancel");
    EVENTUALLY(15000, hf_queue_fixture_meta(&queue, "cancelled") == 1);
    assert_int_equal(hf_admin_wait(admin, "q", "a", 0, 5000, NULL), HF_CANCEL);
    EVENTUALLY(15000, hf_worker_fixture_said(&worker, "outcome=cancelled") == 1);
    assert_int_equal(atomic_load(&runs), 1);
    assert_int_equal(hf_fixture_number(&queue.redis, "HLEN hf:{q}:jobs"), 0);
}

static void an_answer_that_is_lost_counts_nothing_twice(void **state)
{
    (void)state;
    hf_proxy proxy;
    hf_proxy_start(&proxy, queue.redis.socket);
    (void)hf_fixture_command(&queue.redis, "SCRIPT LOAD %s", hf_lua_queue_release.text);
    hf_proxy_lose_answer(&proxy, hf_lua_queue_release.sha1);
    start(proxy.url, "cancel");
    EVENTUALLY(15000, hf_proxy_cuts(&proxy) == 1);
    EVENTUALLY(15000, hf_worker_fixture_said(&worker, "Redis is back") == 1);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(hf_queue_fixture_meta(&queue, "cancelled"), 1);
    assert_int_equal(hf_queue_fixture_meta(&queue, "lost"), -1);
    hf_proxy_stop(&proxy);
}

/* A request to cancel overrides the wish to run again. */
static void a_cancelled_job_is_not_put_back(void **state)
{
    (void)state;
    hf_worker_fixture_start(&worker, queue.redis.url, NULL, 0);
    hf_queue_fixture_put(&queue, "a", "doze", 0);
    EVENTUALLY(15000, atomic_load(&worker.started) == 1);
    assert_int_equal(hf_admin_cancel(admin, "q", "a", NULL, NULL), HF_RUNNING);
    atomic_store(&worker.gate, true);
    EVENTUALLY(15000, hf_queue_fixture_meta(&queue, "cancelled") == 1);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(hf_fixture_number(&queue.redis, "ZCARD hf:{q}:schedule"), 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, up, down)
    const struct CMUnitTest tests[] = {
        CASE(a_released_job_waits_for_its_time_and_counts_no_attempt),
        CASE(a_release_after_a_failure_keeps_its_attempts),
        CASE(a_job_that_its_handler_cancels_is_gone_as_cancelled),
        CASE(an_answer_that_is_lost_counts_nothing_twice),
        CASE(a_cancelled_job_is_not_put_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
