/* test_lock_heard.c - how soon a client learns of a grant, of a lock that is taken away,
 * and of a lock that is asked back. The leases are too long here for a renewal to report
 * it in time. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "lock_scripts.h"
#include "tests/support/lock_fixture.h"

enum { LEASE_MS = 120000, HEARD_MS = 15000, LONG_MS = 30000 };

static hf_lock_fixture fixture;
static hf_lock_client *far; /* a client behind the proxy */

static int begin(void **state)
{
    (void)hf_lock_fixture_begin(state);
    (void)hf_fixture_command(&fixture.redis, "CONFIG RESETSTAT");
    far = hf_lock_fixture_open(&fixture, fixture.proxy.url);
    return 0;
}

static int end(void **state)
{
    hf_proxy_let_go(&fixture.proxy);
    hf_lock_client_close(far, NULL, NULL);
    return hf_lock_fixture_end(state);
}

static hf_lock *must(hf_lock_client *locks, const char *name)
{
    return hf_lock_must(&fixture, locks, name,
                        (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LEASE_MS});
}

static void wait_begin(hf_lock_waiter *w, hf_lock_client *locks, const char *name)
{
    hf_lock_wait_begin(w, &fixture, locks, name,
                       (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LEASE_MS,
                                      .wait_ms = (int64_t)2 * LEASE_MS});
}

/* Two requests, one after the other: what was asked before is executed. */
static void come_and_go(hf_lock_client *locks)
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
    hf_lock *one = must(fixture.a, "one"), *two = must(fixture.a, "two");
    hf_proxy_keep_request(&fixture.proxy, "BLPOP");
    wait_begin(&first, far, "one");
    EVENTUALLY(LONG_MS, hf_proxy_keeps_request(&fixture.proxy));
    wait_begin(&second, far, "two");
    come_and_go(far);
    hf_proxy_let_go(&fixture.proxy);
    hf_lock_released(two);
    EVENTUALLY(HEARD_MS, second.done);
    hf_lock_released(one);
    EVENTUALLY(HEARD_MS, first.done);
    hf_lock_wait_released(&first);
    hf_lock_wait_released(&second);
}

/* Its message comes by another connection than the answer that says that it waits. */
static void a_grant_that_is_heard_before_the_answer_counts(void **state)
{
    hf_lock_waiter first, second;
    (void)state;
    hf_lock *one = must(fixture.a, "t/one"), *two = must(fixture.a, "t/two");
    EVENTUALLY(LONG_MS,
               hf_fixture_calls(&fixture.redis, "blpop") == 1); /* their holder */
    wait_begin(&first, far, "t/one");
    come_and_go(far);
    EVENTUALLY(LONG_MS, hf_fixture_calls(&fixture.redis, "blpop") == 2);
    hf_proxy_keep_answer(&fixture.proxy, hf_lua_lock_acquire.sha1);
    wait_begin(&second, far, "t/two");
    hf_lock_released(two);
    EVENTUALLY(LONG_MS,
               hf_fixture_calls(&fixture.redis, "blpop") == 3); /* it was heard */
    hf_proxy_let_go(&fixture.proxy);
    EVENTUALLY(HEARD_MS, second.done);
    hf_lock_released(one);
    EVENTUALLY(HEARD_MS, first.done);
    hf_lock_wait_released(&first);
    hf_lock_wait_released(&second);
}

/* Both are granted while the client does not listen. Its next wait is for three tags, the
 * one after that for the two that remain: that one is kept, by its number of words. */
static void the_lock_that_has_waited_longest_is_heard_first(void **state)
{
    hf_lock_waiter zero, first, second;
    (void)state;
    hf_lock *none = must(fixture.a, "zero"), *one = must(fixture.a, "one"),
            *two = must(fixture.a, "two");
    hf_proxy_keep_request(&fixture.proxy, "*3\r\n$5\r\nBLPOP");
    wait_begin(&zero, far, "zero");
    EVENTUALLY(LONG_MS, hf_proxy_keeps_request(&fixture.proxy));
    wait_begin(&first, far, "one");
    wait_begin(&second, far, "two");
    come_and_go(far);
    hf_lock_released(two);
    hf_lock_released(one);
    hf_proxy_keep_request(&fixture.proxy, "*4\r\n$5\r\nBLPOP");
    hf_proxy_let_go(&fixture.proxy);
    EVENTUALLY(LONG_MS, hf_proxy_keeps_request(&fixture.proxy));
    EVENTUALLY(HEARD_MS, first.done);
    assert_false(second.done);
    hf_proxy_let_go(&fixture.proxy);
    EVENTUALLY(HEARD_MS, second.done);
    hf_lock_released(none);
    EVENTUALLY(HEARD_MS, zero.done);
    hf_lock_wait_released(&zero);
    hf_lock_wait_released(&first);
    hf_lock_wait_released(&second);
}

/* ---- what is held ---- */

typedef struct way {
    hf_lock_form form;
    hf_lock_mode mode;
    bool fixed, waited;
} way;

static const way ways[] = {{.mode = HF_LOCK_EXCLUSIVE},
                           {.mode = HF_LOCK_SHARED},
                           {.fixed = true},
                           {.waited = true}};

static hf_lock *hold(const way *how)
{
    hf_lock_waiter w;
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .lease_ms = LEASE_MS, .mode = how->mode,
                               .fixed = how->fixed, .wait_ms = (int64_t)2 * LEASE_MS};
    if (!how->waited)
        return hf_lock_must(&fixture, fixture.a, "n", opts);
    hf_lock *before = must(fixture.b, "n");
    hf_lock_wait_begin(&w, &fixture, fixture.a, "n", opts);
    hf_lock_released(before);
    hf_lock_wait_end(&w);
    assert_non_null(w.lock);
    return w.lock;
}

/* At any moment of its hold: also when its holder does not listen yet. */
static const unsigned moments_ms[] = {0, 50, 300};

static void a_lock_that_is_taken_away_is_lost_at_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT(ways) * HF_COUNT(moments_ms); i++) {
        size_t n = 0;
        hf_lock *lock = hold(&ways[i / HF_COUNT(moments_ms)]);
        hf_test_pause_ms(moments_ms[i % HF_COUNT(moments_ms)]);
        assert_int_equal(hf_lock_force(fixture.b, "n", NULL, &n, fixture.detail), HF_OK);
        assert_int_equal(n, 1);
        EVENTUALLY(HEARD_MS, !hf_lock_held(lock));
        EVENTUALLY(HEARD_MS, fixture.lost == i + 1);
        assert_int_equal(hf_lock_why(lock), HF_LOCK_FORCED);
        assert_int_equal(hf_lock_release_wait(lock, NULL), HF_RELEASE_EXPIRED);
    }
}

static atomic_bool is_told, may_go_on;

static void tell_and_stop(hf_lock *lock, hf_lock_event event, void *arg)
{
    (void)lock;
    (void)arg;
    if (event == HF_LOCK_EVENT_LOST && !atomic_exchange(&is_told, true))
        EVENTUALLY(LONG_MS, atomic_load(&may_go_on));
}

/* Two locks are lost with one renewal, and the event of the first one takes long. */
static void the_reason_of_a_loss_is_known_before_its_event(void **state)
{
    static const char *const names[] = {"n/one", "n/two"};
    hf_lock *locks[HF_COUNT(names)];
    (void)state;
    atomic_store(&is_told, false);
    atomic_store(&may_go_on, false);
    for (size_t i = 0; i < HF_COUNT(names); i++)
        locks[i] = hf_lock_must(&fixture, fixture.a, names[i],
                                (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LEASE_MS,
                                               .on_event = tell_and_stop});
    for (size_t i = 0; i < HF_COUNT(names); i++)
        (void)hf_fixture_command(&fixture.redis, "DEL hf:lock:{n}:x:%s hf:lock:{n}:e:%s",
                                 names[i], names[i]);
    (void)hf_fixture_command(&fixture.redis, "CLIENT KILL TYPE normal SKIPME yes");
    EVENTUALLY(HEARD_MS, atomic_load(&is_told));
    for (size_t i = 0; i < HF_COUNT(names); i++) {
        assert_false(hf_lock_held(locks[i]));
        assert_int_equal(hf_lock_why(locks[i]), HF_LOCK_REFUSED);
    }
    atomic_store(&may_go_on, true);
    for (size_t i = 0; i < HF_COUNT(names); i++)
        (void)hf_lock_release_wait(locks[i], NULL);
}

static void a_lock_that_is_asked_back_is_told_at_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT(ways) * HF_COUNT(moments_ms); i++) {
        size_t n = 0;
        hf_lock *lock = hold(&ways[i / HF_COUNT(moments_ms)]);
        hf_test_pause_ms(moments_ms[i % HF_COUNT(moments_ms)]);
        assert_int_equal(hf_lock_revoke(fixture.b, "n", NULL, &n, fixture.detail), HF_OK);
        assert_int_equal(n, 1);
        EVENTUALLY(HEARD_MS, fixture.revoked == i + 1);
        assert_true(hf_lock_held(lock));
        hf_lock_released(lock);
    }
}

/* Its lock is granted, and the answer that says so is kept. */
static void begin_unheard(hf_lock_waiter *w, const char *name, hf_lock_opts opts)
{
    hf_lock_look look = {HF_LOCK_LOOK_INIT};
    size_t n = 0;
    opts.form = HF_LOCK_LINE;
    w->thread = 0;
    hf_lock_begin(w, &fixture, far, name, opts);
    while (n == 0) {
        assert_int_equal(hf_lock_look_at(fixture.b, name, 1, &look, fixture.detail),
                         HF_OK);
        n = look.n;
        hf_lock_look_done(&look);
        hf_test_pause_ms(2);
    }
}

/* Its client does not know yet that it has the lock, and listens already. */
static void a_lock_that_is_taken_away_before_its_holder_knows_is_lost_soon(void **state)
{
    hf_lock_waiter w;
    size_t n = 0;
    (void)state;
    hf_lock *other = must(far, "t/other");
    EVENTUALLY(LONG_MS, hf_fixture_calls(&fixture.redis, "blpop") == 1);
    hf_proxy_keep_answer(&fixture.proxy, hf_lua_lock_acquire.sha1);
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .lease_ms = LEASE_MS,
                               .wait_ms = LONG_MS};
    begin_unheard(&w, "t/one", opts);
    assert_int_equal(hf_lock_force(fixture.b, "t/one", NULL, &n, fixture.detail), HF_OK);
    assert_int_equal(n, 1);
    EVENTUALLY(LONG_MS,
               hf_fixture_calls(&fixture.redis, "blpop") == 2); /* it was heard */
    hf_proxy_let_go(&fixture.proxy);
    hf_lock_wait_end(&w);
    assert_int_equal(w.err, HF_OK);
    EVENTUALLY(HEARD_MS, !hf_lock_held(w.lock));
    assert_int_equal(hf_lock_why(w.lock), HF_LOCK_FORCED);
    (void)hf_lock_release_wait(w.lock, NULL);
    hf_lock_released(other);
}

/* The message was taken from the inbox, and lost with the connection that listens. */
static void a_message_that_is_lost_is_found_out(void **state)
{
    size_t n = 0;
    (void)state;
    hf_proxy_lose_answer(&fixture.proxy, "BLPOP");
    hf_lock *lock = must(far, "n");
    EVENTUALLY(LONG_MS, hf_fixture_calls(&fixture.redis, "blpop") == 1);
    unsigned cuts = hf_proxy_cuts(&fixture.proxy);
    assert_int_equal(hf_lock_force(fixture.b, "n", NULL, &n, fixture.detail), HF_OK);
    assert_int_equal(n, 1);
    EVENTUALLY(LONG_MS, hf_proxy_cuts(&fixture.proxy) > cuts);
    EVENTUALLY(HEARD_MS, !hf_lock_held(lock));
    assert_int_equal(hf_lock_why(lock), HF_LOCK_FORCED);
    (void)hf_lock_release_wait(lock, NULL);
}

/* However many it holds and for however long: one wait, and no request but renewals. And
 * whoever gives back at once asks nothing more for it. */
static void a_holder_listens_by_one_call_that_waits(void **state)
{
    enum { LOCKS = 50 };
    hf_lock *locks[LOCKS];
    char name[32];
    (void)state;
    for (size_t i = 0; i < LOCKS; i++)
        hf_lock_released(must(fixture.a, "brief"));
    long long brief = hf_fixture_calls(&fixture.redis, "blpop");
    assert_true(brief <= LOCKS / 10);
    for (size_t i = 0; i < LOCKS; i++) {
        (void)snprintf(name, sizeof name, "t/%zu", i);
        locks[i] = must(fixture.a, name);
    }
    EVENTUALLY(LONG_MS, hf_fixture_calls(&fixture.redis, "blpop") > brief);
    long long waits = hf_fixture_calls(&fixture.redis, "blpop"),
              scripts = hf_fixture_calls(&fixture.redis, "evalsha");
    ALWAYS(1000, hf_fixture_calls(&fixture.redis, "blpop") == waits &&
                     hf_fixture_calls(&fixture.redis, "evalsha") == scripts);
    for (size_t i = 0; i < LOCKS; i++)
        hf_lock_released(locks[i]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_prestate_setup_teardown(name, begin, end, &fixture)
    const struct CMUnitTest tests[] = {
        TEST(a_wait_that_was_ended_before_it_began_is_ended_again),
        TEST(a_grant_that_is_heard_before_the_answer_counts),
        TEST(the_lock_that_has_waited_longest_is_heard_first),
        TEST(a_lock_that_is_taken_away_is_lost_at_once),
        TEST(the_reason_of_a_loss_is_known_before_its_event),
        TEST(a_lock_that_is_asked_back_is_told_at_once),
        TEST(a_lock_that_is_taken_away_before_its_holder_knows_is_lost_soon),
        TEST(a_message_that_is_lost_is_found_out),
        TEST(a_holder_listens_by_one_call_that_waits),
    };
    hf_lock_fixture_up(&fixture, NULL);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_lock_fixture_down(&fixture);
    return failures;
}
