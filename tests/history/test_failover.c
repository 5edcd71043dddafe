/* test_failover.c - a failover that loses a lock: two clients believe that they hold it,
 * for one lease at most; the older one learns of the loss by its deadline, and its fence
 * is refused.
 *
 * The replication is cut before the lock is taken. Stopping the replica would show
 * nothing: the written bytes stay in the socket's buffer, and still reach it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tests/history/fixture.h"

enum { LONG_MS = 30000, LEASE_MS = 3000 };

static hf_history_fixture
    fixture; /* its server is the old primary; fixture.a is behind the proxy */
static hf_fixture replica;
static hf_watch watch;
static hf_lock_client *moved; /* of those that have moved to the new primary */

static int begin(void **state)
{
    static char port[8];
    (void)state;
    hf_history_fixture_begin(&fixture);
    assert_string_equal(
        hf_fixture_command(&fixture.redis, "CONFIG SET repl-diskless-sync-delay 0"),
        "OK");
    (void)snprintf(port, sizeof port, "%u", fixture.redis.port);
    hf_fixture_start(&replica, &(hf_fixture_options){
                                   .args = {"--replicaof", "127.0.0.1", port, NULL}});
    (void)snprintf(fixture.other_server, sizeof fixture.other_server, "%s/other",
                   fixture.dir);
    hf_watch_start(&watch, &replica, fixture.other_server);
    moved = hf_history_fixture_open(hf_fixture_url(&replica));
    return 0;
}

static int end(void **state)
{
    (void)state;
    hf_recorder_rest(fixture.recorder);
    hf_lock_client_close(moved, NULL, NULL);
    hf_watch_stop(&watch);
    hf_history_fixture_end(&fixture);
    hf_fixture_stop(&replica);
    return 0;
}

static bool is_in_step(void)
{
    return strstr(hf_fixture_command(&replica, "INFO replication"),
                  "master_link_status:up") != NULL;
}

/* Gives the moment in which the new primary began to be one. */
static uint64_t fail_over(void)
{
    EVENTUALLY(LONG_MS, is_in_step());
    uint64_t from_ns = hf_boot_ns();
    assert_string_equal(hf_fixture_command(&replica, "REPLICAOF NO ONE"), "OK");
    return from_ns;
}

static hf_taken *take(hf_lock_client *locks)
{
    hf_taken *t = hf_history_fixture_take(
        &fixture, locks, "n", (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LEASE_MS});
    assert_non_null(t);
    return t;
}

/* Waits until its holder knows, and gives its last deadline. */
static uint64_t wait_for_loss(const hf_lock *lock)
{
    uint64_t deadline_ns = 0;
    for (uint64_t at; (at = hf_lock_deadline_ns(lock)) != 0;) {
        deadline_ns = at;
        hf_test_pause_ms(1);
    }
    EVENTUALLY(LONG_MS, hf_lock_why(lock) != HF_LOCK_NOT_LOST);
    return deadline_ns;
}

static hf_err may_write(const hf_lock *lock)
{
    return hf_fence_check(moved, "stock", hf_lock_fence(lock), hf_lock_owner_of(lock), 0,
                          NULL, NULL);
}

/* The older lock is lost, at once or by its deadline; the newer one goes on. */
static void judge(hf_taken *old, hf_taken *new, uint64_t from_ns, uint64_t granted_ns)
{
    const hf_lock *before = hf_taken_lock(old), *after = hf_taken_lock(new);
    uint64_t deadline_ns = wait_for_loss(before), now_ns = hf_boot_ns();
    print_message("two holders for at most %" PRIu64
                  " ms of a lease of %d; fences %" PRIu64 " and %" PRIu64 "\n",
                  (now_ns - granted_ns) / HF_MS_NS, LEASE_MS, hf_lock_fence(before),
                  hf_lock_fence(after));
    assert_true(deadline_ns < granted_ns + LEASE_MS * HF_MS_NS);
    assert_true(hf_lock_fence(after) > hf_lock_fence(before));
    assert_int_equal(may_write(after), HF_OK);
    assert_int_equal(may_write(before), HF_LOST);
    (void)hf_record_release(new);
    (void)hf_record_release(old);
    hf_watch_sync(&watch);
    hf_history_fixture_took(&fixture, "n", from_ns, granted_ns);
    hf_history_fixture_judge(&fixture);
    assert_int_equal(fixture.report.acquired, 2);
}

static void f6_a_holder_that_follows_is_told_by_its_renewal(void **state)
{
    (void)state;
    uint64_t from_ns = fail_over();
    hf_taken *old = take(fixture.a);
    hf_taken *new = take(moved);
    uint64_t granted_ns = hf_boot_ns();
    hf_proxy_move(&fixture.proxy, replica.socket);
    hf_proxy_close_all(&fixture.proxy);
    judge(old, new, from_ns, granted_ns);
}

static void f6_a_holder_that_stays_behind_is_told_by_its_deadline(void **state)
{
    (void)state;
    uint64_t from_ns = fail_over();
    hf_taken *old = take(fixture.a);
    hf_proxy_set(&fixture.proxy, PROXY_REQUESTS, PROXY_HOLD);
    hf_proxy_set(&fixture.proxy, PROXY_ANSWERS, PROXY_HOLD);
    hf_taken *new = take(moved);
    uint64_t granted_ns = hf_boot_ns();
    EVENTUALLY(LONG_MS, !hf_lock_held(hf_taken_lock(old)));
    EVENTUALLY(LONG_MS, hf_lock_why(hf_taken_lock(old)) == HF_LOCK_DEADLINE);
    hf_proxy_set(&fixture.proxy, PROXY_REQUESTS, PROXY_PASS);
    hf_proxy_set(&fixture.proxy, PROXY_ANSWERS, PROXY_PASS);
    hf_proxy_move(&fixture.proxy, replica.socket);
    hf_proxy_close_all(&fixture.proxy);
    judge(old, new, from_ns, granted_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(f6_a_holder_that_follows_is_told_by_its_renewal,
                                        begin, end),
        cmocka_unit_test_setup_teardown(
            f6_a_holder_that_stays_behind_is_told_by_its_deadline, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
