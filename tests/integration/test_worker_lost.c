/* test_worker_lost.c - a worker that has lost its lock, or takes what others have lost.
 */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/machine.h"
#include "queue_scripts.h"
#include "tests/support/eventually.h"
#include "tests/support/proxy.h"
#include "tests/support/queue_fixture.h"
#include "tests/support/worker_fixture.h"

static hf_queue_fixture queue;
static hf_proxy proxy;
static hf_worker_fixture worker;
static atomic_bool let_go; /* handlers of a test's own return */

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
    hf_proxy_set(&proxy, PROXY_REQUESTS, PROXY_PASS);
    atomic_store(&let_go, true);
    hf_worker_fixture_end(&worker);
    hf_proxy_stop(&proxy);
    hf_queue_fixture_audit(&queue, true);
    hf_queue_fixture_stop(&queue);
    return 0;
}

/* Nothing that the worker sends arrives, until it has come back. */
static void cut_off(void)
{
    hf_proxy_set(&proxy, PROXY_REQUESTS, PROXY_HOLD);
}

static void let_back(void)
{
    hf_proxy_close_all(&proxy); /* and what was held is forgotten */
    hf_proxy_set(&proxy, PROXY_REQUESTS, PROXY_PASS);
}

static void stop_when_done(long long jobs)
{
    EVENTUALLY(15000, hf_queue_fixture_meta(&queue, "done") == jobs);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

/* How many readings this machine has left in the queue. */
static size_t readings(void)
{
    char machine[HF_MACHINE_SIZE];
    size_t n = 0;
    hf_machine_id(machine);
    for (const char *at =
             hf_fixture_command(&queue.redis, "HGET hf:{q}:readings %s", machine);
         (at = strchr(at, ':')) != NULL; at++)
        n++;
    return n / 2;
}

/* A job of a worker that has died; then one of this machine starts. */
static void start_beside_the_dead(uint32_t lease_ms)
{
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .lease_ms = lease_ms};
    hf_queue_fixture_put(&queue, "a", "ok", 0);
    assert_int_equal(hf_queue_fixture_claim(&queue, "dead", 1, lease_ms), 1);
    hf_worker_fixture_start(&worker, queue.redis.url, &opts, 0);
}

static void end_beside_the_dead(void)
{
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(hf_queue_fixture_complete(&queue, "dead", "a", NULL), HF_OK);
}

/* What the first request has read is shown at once: the next check comes only after 5 s.
 */
static void a_worker_that_dies_young_leaves_what_it_has_read(void **state)
{
    (void)state;
    start_beside_the_dead(3600000);
    EVENTUALLY(4000, readings() > 0);
    end_beside_the_dead();
}

/* Once a second with this lease; the checks are 5 s apart. */
static void a_worker_reads_more_often_than_it_checks(void **state)
{
    (void)state;
    start_beside_the_dead(14000);
    EVENTUALLY(13000, readings() >= 5);
    end_beside_the_dead();
}

/* As a replica that has just become the primary: it has the data, and no script. */
static void a_check_that_redis_does_not_know_is_sent_again(void **state)
{
    (void)state;
    start_beside_the_dead(3600000);
    EVENTUALLY(4000, readings() > 0);
    hf_fixture_command(&queue.redis, "HDEL hf:{q}:meta clock");
    hf_fixture_command(&queue.redis, "SCRIPT FLUSH");
    hf_fixture_command(&queue.redis, "CLIENT KILL TYPE normal");
    EVENTUALLY(3500, hf_queue_fixture_meta(&queue, "clock") > 0); /* else in 3.75 s */
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    hf_fixture_command(&queue.redis, "FLUSHALL");
}

/* Redis would still take its verdict: but by the worker's own clock the lock is over, and
 * what happened since is not known. */
static void a_worker_that_has_lost_its_lock_does_not_finish_the_job(void **state)
{
    (void)state;
    hf_worker_fixture_start(&worker, proxy.url, &hf_brief_lease, 0);
    hf_queue_fixture_put(&queue, "a", "deaf", 0);
    EVENTUALLY(15000, atomic_load(&worker.started) == 1);
    cut_off();
    hf_fixture_command(&queue.redis, "PEXPIRE hf:{q}:lock:a 60000");
    hf_fixture_command(&queue.redis, "ZADD hf:{q}:running %lld a",
                       (long long)hf_queue_fixture_now(&queue) + 60000);
    EVENTUALLY(15000, atomic_load(&worker.asked_to_stop));
    EVENTUALLY(15000, atomic_load(&worker.told) == 1);
    let_back();
    atomic_store(&worker.gate, true);
    stop_when_done(1);
    assert_int_equal(atomic_load(&worker.told), 1);
    assert_int_equal(atomic_load(&worker.started), 2);
    assert_int_equal(hf_worker_fixture_said(&worker, "outcome=lost"), 1);
    assert_int_equal(hf_queue_fixture_meta(&queue, "crashed"), -1);
}

/* The only thread is busy and the loop stands still while their locks run out: the next
 * job in the line is not started. */
static void what_waits_for_a_thread_past_its_deadline_is_not_started(void **state)
{
    (void)state;
    static const char *const ids[] = {"quick", "slow", "next"};
    static const char *const payloads[] = {"ok", "deaf", "ok"};
    enum { BEFORE = 40 };
    hf_worker_fixture_start(
        &worker, proxy.url,
        &(hf_worker_opts){HF_WORKER_OPTS_INIT, .lease_ms = 1000, .concurrency = 1}, 0);
    for (int i = 0; i < BEFORE; i++) { /* it learns that its jobs are short */
        char id[16];
        (void)snprintf(id, sizeof id, "j%d", i);
        hf_queue_fixture_put(&queue, id, "ok", 0);
    }
    EVENTUALLY(15000, hf_queue_fixture_meta(&queue, "done") == BEFORE);
    atomic_store(&worker.hold_loop, true); /* as soon as `quick` is done */
    hf_queue_fixture_put_all(&queue, ids, payloads, HF_COUNT(ids));
    EVENTUALLY(15000, atomic_load(&worker.loop_held));
    cut_off();
    EVENTUALLY(15000,
               atomic_load(&worker.asked_to_stop)); /* `slow` sees that it is lost */
    assert_int_equal(atomic_load(&worker.started), BEFORE + 2);
    atomic_store(&worker.gate, true);
    EVENTUALLY(15000, atomic_load(&worker.returned) == BEFORE + 2);
    ALWAYS(150, atomic_load(&worker.started) == BEFORE + 2);
    let_back();
    atomic_store(&worker.hold_loop, false);
    stop_when_done(BEFORE + 3);
}

/* It has been away itself: that others' leases have ended says nothing of those. */
static void what_is_taken_over_after_a_reconnect_counts_no_crash(void **state)
{
    (void)state;
    hf_worker_fixture_start(&worker, proxy.url, &hf_brief_lease, 0);
    hf_queue_fixture_put(&queue, "a", "deaf", 0);
    EVENTUALLY(15000, atomic_load(&worker.started) == 1);
    hf_proxy_refuse(&proxy, true);
    hf_proxy_close_all(&proxy);
    EVENTUALLY(15000, hf_fixture_number(&queue.redis, "EXISTS hf:{q}:lock:a") == 0);
    hf_proxy_refuse(&proxy, false);
    EVENTUALLY(15000, atomic_load(&worker.started) == 2);
    assert_int_equal(hf_queue_fixture_meta(&queue, "crashed"), -1);
    atomic_store(&worker.gate, true);
    stop_when_done(1);
}

/* Its watchdog's connection is gone and does not come back; the others are there. */
static void a_worker_that_cannot_renew_claims_nothing(void **state)
{
    (void)state;
    hf_worker_fixture_start(&worker, proxy.url,
                            &(hf_worker_opts){HF_WORKER_OPTS_INIT, .lease_ms = 3000}, 0);
    hf_queue_fixture_put(&queue, "a", "deaf", 0);
    EVENTUALLY(15000, atomic_load(&worker.started) == 1);
    hf_proxy_refuse(&proxy, true);
    hf_proxy_lose_answer(&proxy, hf_lua_queue_renew.sha1);
    EVENTUALLY(15000, atomic_load(&worker.asked_to_stop)); /* well past half a lease */
    hf_queue_fixture_put(&queue, "b", "ok", 0);
    ALWAYS(300, atomic_load(&worker.started) == 1);
    hf_proxy_refuse(&proxy, false);
    atomic_store(&worker.gate, true);
    stop_when_done(2);
}

/* It was there when two holders died. The others are not to be there when it is the
 * third. */
static void an_isolated_job_is_started_alone_and_nothing_beside_it(void **state)
{
    (void)state;
    hf_fixture_command(&queue.redis, "HSET hf:{q}:crashes suspect 2");
    (void)hf_fixture_command(&queue.redis, "HSET hf:{q}:meta uses m");
    hf_queue_fixture_put(&queue, "suspect", "gate", 1);
    hf_queue_fixture_put(&queue, "second", "ok", 2);
    hf_queue_fixture_put(&queue, "third", "ok", 3);
    hf_worker_fixture_start(&worker, queue.redis.url, NULL, 0);
    EVENTUALLY(15000, atomic_load(&worker.started) == 1);
    hf_queue_fixture_put(&queue, "new", "ok", 0);
    ALWAYS(200, atomic_load(&worker.started) == 1);
    atomic_store(&worker.gate, true);
    stop_when_done(4);
}

/* ---- what the watchdog does not wait for ---- */

enum { WATCHED_MS = 4000 }; /* a lease, which a busy machine does not end */

static const hf_worker_opts watched = {HF_WORKER_OPTS_INIT, .lease_ms = WATCHED_MS};

/* As with standard error a full pipe: the loop waits in the log, with a job's line. */
static void a_log_that_blocks_ends_no_lease(void **state)
{
    (void)state;
    hf_worker_fixture_start(&worker, proxy.url, &watched, 0);
    hf_queue_fixture_put(&queue, "a", "deaf", 0);
    EVENTUALLY(15000, atomic_load(&worker.started) == 1);
    atomic_store(&worker.hold_loop, true);
    hf_queue_fixture_put(&queue, "b", "ok", 0);
    EVENTUALLY(15000, atomic_load(&worker.loop_held));
    const unsigned before = hf_proxy_connections(&proxy);
    hf_proxy_refuse(&proxy, true);
    hf_proxy_close_all(&proxy); /* Redis answers, but the connections are made anew */
    EVENTUALLY(15000, hf_proxy_connections(&proxy) > before); /* a try of the watchdog */
    hf_proxy_refuse(&proxy, false);
    ALWAYS(WATCHED_MS + 500, !atomic_load(&worker.asked_to_stop));
    atomic_store(&worker.hold_loop, false);
    atomic_store(&worker.gate, true);
    stop_when_done(2);
    assert_true(hf_worker_fixture_said(&worker, "the watchdog's connection is away") > 0);
}

static _Atomic(hf_run *) runs[2];
static atomic_bool in_callback;

static void stand_still(void *arg)
{
    (void)arg;
    atomic_store(&in_callback, true);
    while (!atomic_load(&let_go))
        hf_test_pause_ms(1);
}

static hf_verdict stay_until_let_go(hf_run *run, void *arg)
{
    bool first = strcmp(hf_run_id(run), "a") == 0;
    (void)arg;
    if (first)
        hf_run_on_stop(run, stand_still, NULL);
    atomic_store(&runs[first ? 0 : 1], run);
    while (!atomic_load(&let_go))
        hf_test_pause_ms(1);
    return HF_VERDICT_DONE;
}

static void a_callback_that_blocks_ends_no_other_lease(void **state)
{
    (void)state;
    atomic_store(&in_callback, false);
    atomic_store(&let_go, false);
    hf_worker_fixture_start_own(&worker, queue.redis.url, &watched, 0, stay_until_let_go,
                                NULL);
    hf_queue_fixture_put(&queue, "a", "", 0);
    hf_queue_fixture_put(&queue, "b", "", 0);
    EVENTUALLY(15000, atomic_load(&runs[0]) != NULL && atomic_load(&runs[1]) != NULL);
    hf_fixture_command(&queue.redis, "SET hf:{q}:lock:a other:1 PX 60000");
    EVENTUALLY(15000, atomic_load(&in_callback));
    assert_true(hf_run_lost(atomic_load(&runs[0])));
    ALWAYS(WATCHED_MS + 500, !hf_run_lost(atomic_load(&runs[1])));
    atomic_store(&let_go, true);
    stop_when_done(2);
}

/* ---- at the end of its worker ---- */

static _Atomic(hf_run *) left_behind;

static hf_verdict stay(hf_run *run, void *arg)
{
    (void)arg;
    atomic_store(&left_behind, run);
    while (!atomic_load(&let_go))
        hf_test_pause_ms(1);
    return HF_VERDICT_DONE;
}

/* Its job starts elsewhere as soon as Redis has executed the release. */
static void a_handler_left_behind_stops_believing_before_its_job_goes_back(void **state)
{
    (void)state;
    atomic_store(&left_behind, NULL);
    atomic_store(&let_go, false);
    hf_worker_fixture_start_handler(&worker, queue.redis.url, 0, stay, NULL);
    hf_queue_fixture_put(&queue, "a", "", 0);
    EVENTUALLY(15000, atomic_load(&left_behind) != NULL);
    hf_run *run = atomic_load(&left_behind);
    assert_false(hf_run_lost(run));
    hf_worker_stop(worker.worker);
    hf_worker_stop(worker.worker); /* waits for no handler */
    EVENTUALLY(15000, hf_fixture_number(&queue.redis, "ZCARD hf:{q}:schedule") == 1 ||
                          hf_run_lost(run));
    bool lost = hf_run_lost(run);
    EVENTUALLY(15000, hf_fixture_number(&queue.redis, "ZCARD hf:{q}:schedule") == 1);
    EVENTUALLY(15000, atomic_load(&worker.ended));
    atomic_store(&let_go, true);
    assert_true(lost);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(hf_worker_fixture_said(&worker, "outcome=released"), 1);
    assert_int_equal(hf_worker_fixture_said(&worker, "outcome=lost"), 0);
    hf_worker_fixture_start(&worker, queue.redis.url, &hf_brief_lease, 0);
    stop_when_done(1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, up, down)
    const struct CMUnitTest tests[] = {
        CASE(a_worker_that_dies_young_leaves_what_it_has_read),
        CASE(a_worker_reads_more_often_than_it_checks),
        CASE(a_check_that_redis_does_not_know_is_sent_again),
        CASE(a_worker_that_has_lost_its_lock_does_not_finish_the_job),
        CASE(what_waits_for_a_thread_past_its_deadline_is_not_started),
        CASE(what_is_taken_over_after_a_reconnect_counts_no_crash),
        CASE(a_worker_that_cannot_renew_claims_nothing),
        CASE(an_isolated_job_is_started_alone_and_nothing_beside_it),
        CASE(a_log_that_blocks_ends_no_lease),
        CASE(a_callback_that_blocks_ends_no_other_lease),
        CASE(a_handler_left_behind_stops_believing_before_its_job_goes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
