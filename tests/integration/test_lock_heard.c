/* test_lock_heard.c - how soon a client hears what became of its locks: a grant, a lock
 * that is taken away, a lock that is asked back. Leases are so long here that no renewal
 * could tell of it in time. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "lock_scripts.h"
#include "tests/support/lock_rig.h"
#include "tests/support/proxy.h"

enum { LEASE_MS = 120000, HEARD_MS = 5000, LONG_MS = 30000 };

static hf_lock_rig rig;
static hf_proxy proxy;
static hf_locks *far; /* a client behind the proxy */

static int up(void **state)
{
    (void)state;
    hf_lock_rig_up(&rig);
    hf_proxy_start(&proxy, rig.redis.socket);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_proxy_stop(&proxy);
    hf_lock_rig_down(&rig);
    return 0;
}

static int begin(void **state)
{
    (void)state;
    hf_lock_rig_begin(&rig);
    (void)hf_fixture_command(&rig.redis, "CONFIG RESETSTAT");
    far = hf_lock_rig_open(&rig, proxy.url);
    return 0;
}

static int end(void **state)
{
    (void)state;
    hf_proxy_let_go(&proxy);
    hf_locks_close(far, NULL, NULL);
    hf_lock_rig_end(&rig);
    return 0;
}

static hf_lock *must(hf_locks *locks, const char *name)
{
    return hf_lock_must(&rig, locks, name, (hf_lock_opts){.lease_ms = LEASE_MS});
}

static void wait_begin(hf_lock_waiter *w, hf_locks *locks, const char *name)
{
    hf_lock_wait_begin(
        w, &rig, locks, name,
        (hf_lock_opts){.lease_ms = LEASE_MS, .wait_ms = (int64_t)2 * LEASE_MS});
}

/* Two requests, one after the other: what was asked before is executed. */
static void come_and_go(hf_locks *locks)
{
    for (int i = 0; i < 2; i++)
        hf_lock_released(must(locks, "other"));
}

/* ---- a grant ---- */

/* The wait for messages of the first tag is still on its way when the second one is to be
 * added to it, so that ending it finds nothing to end. */
static void a_wait_that_was_ended_before_it_began_is_ended_again(void **state)
{
    hf_lock_waiter first, second;
    (void)state;
    hf_lock *one = must(rig.a, "one"), *two = must(rig.a, "two");
    hf_proxy_keep_request(&proxy, "BLPOP");
    wait_begin(&first, far, "one");
    EVENTUALLY(LONG_MS, hf_proxy_keeps_request(&proxy));
    wait_begin(&second, far, "two");
    come_and_go(far);
    hf_proxy_let_go(&proxy);
    hf_lock_released(two);
    EVENTUALLY(HEARD_MS, second.done);
    hf_lock_released(one);
    EVENTUALLY(HEARD_MS, first.done);
    hf_lock_wait_end(&first);
    hf_lock_wait_end(&second);
    hf_lock_released(first.lock);
    hf_lock_released(second.lock);
}

/* Its message comes by another connection than the answer that says that it waits. */
static void a_grant_that_is_heard_before_the_answer_counts(void **state)
{
    hf_lock_waiter first, second;
    (void)state;
    hf_lock *one = must(rig.a, "t/one"), *two = must(rig.a, "t/two");
    wait_begin(&first, far, "t/one");
    come_and_go(far);
    EVENTUALLY(LONG_MS, hf_fixture_calls(&rig.redis, "blpop") == 1);
    hf_proxy_keep_answer(&proxy, hf_lua_lock_enter.sha1);
    wait_begin(&second, far, "t/two");
    hf_lock_released(two);
    EVENTUALLY(LONG_MS, hf_fixture_calls(&rig.redis, "blpop") == 2); /* it was heard */
    hf_proxy_let_go(&proxy);
    EVENTUALLY(HEARD_MS, second.done);
    hf_lock_released(one);
    EVENTUALLY(HEARD_MS, first.done);
    hf_lock_wait_end(&first);
    hf_lock_wait_end(&second);
    hf_lock_released(first.lock);
    hf_lock_released(second.lock);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_wait_that_was_ended_before_it_began_is_ended_again),
        TEST(a_grant_that_is_heard_before_the_answer_counts),
    };
    return cmocka_run_group_tests(tests, up, down);
}
