/* test_lock_faults.c - locks when answers are lost, requests come late, messages are old,
 * keys are broken and clocks are wrong. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "lock_scripts.h"
#include "tests/support/lock_fixture.h"

enum { LONG_MS = 60000, PATIENCE_MS = 30000 };

static hf_lock_fixture fixture;
static hf_lock_client *far; /* a client behind the proxy; requests may take 2 s */

static int begin(void **state)
{
    (void)hf_lock_fixture_begin(state);
    far = NULL;
    const hf_lock_client_opts opts = {
        HF_LOCK_CLIENT_OPTS_INIT,
        .server = HF_SERVER(.url = fixture.proxy.url, .request_timeout_ms = 2000)};
    assert_int_equal(hf_lock_client_open(&far, &opts, fixture.detail), HF_OK);
    /* Redis knows the scripts from now on. */
    hf_lock *lock =
        hf_lock_must(&fixture, far, "warm", (hf_lock_opts){HF_LOCK_OPTS_INIT});
    assert_int_equal(hf_lock_release_wait(lock, NULL), HF_RELEASE_DONE);
    return 0;
}

static int end(void **state)
{
    hf_proxy_set(&fixture.proxy, PROXY_REQUESTS, PROXY_PASS);
    hf_proxy_set(&fixture.proxy, PROXY_ANSWERS, PROXY_PASS);
    hf_proxy_shift_clock(&fixture.proxy, 0);
    hf_lock_client_close(far, NULL, NULL);
    return hf_lock_fixture_end(state);
}

static void released(hf_lock *lock)
{
    assert_int_equal(hf_lock_release_wait(lock, NULL), HF_RELEASE_DONE);
}

typedef struct told {
    atomic_int err; /* 1: not told yet */
    hf_lock *lock;
} told;

static void on_acquired(hf_lock *lock, hf_err err, const char *detail, void *arg)
{
    told *t = arg;
    (void)detail;
    t->lock = lock;
    atomic_store(&t->err, err);
}

static hf_lock *ask_for(hf_lock_client *locks, const char *name, hf_lock_opts opts,
                        told *t)
{
    hf_lock *lock;
    atomic_store(&t->err, 1);
    opts.names = &name;
    opts.n_names = 1;
    opts.lease_ms = opts.lease_ms == 0 ? LONG_MS : opts.lease_ms;
    assert_int_equal(hf_lock_acquire(locks, &opts, on_acquired, t, &lock, fixture.detail),
                     HF_OK);
    return lock;
}

/* ---- an enter without an answer ---- */

/* It is asked again, and given back; then the first request is executed after all. */
static void an_enter_that_comes_after_the_leave_stays_for_no_lease(void **state)
{
    const hf_lock_form forms[] = {HF_LOCK_LINE, HF_LOCK_SPIN};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(forms); i++) {
        hf_proxy_delay(&fixture.proxy, hf_lua_lock_acquire.sha1);
        hf_lock *lock = hf_lock_must(
            &fixture, far, "n",
            (hf_lock_opts){HF_LOCK_OPTS_INIT, .form = forms[i], .lease_ms = LONG_MS});
        assert_true(hf_proxy_delayed(&fixture.proxy));
        released(lock);
        (void)hf_proxy_deliver(&fixture.proxy);
        EVENTUALLY(PATIENCE_MS, hf_lock_is_free(&fixture, "n"));
    }
}

/* The same of one that only ever was given up. */
static void an_enter_that_comes_after_it_was_cancelled_stays_for_no_lease(void **state)
{
    told t;
    (void)state;
    hf_proxy_delay(&fixture.proxy, hf_lua_lock_acquire.sha1);
    hf_proxy_refuse(&fixture.proxy, true);
    hf_lock *lock =
        ask_for(far, "n", (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = -1}, &t);
    EVENTUALLY(PATIENCE_MS, hf_proxy_delayed(&fixture.proxy));
    hf_lock_cancel(lock);
    EVENTUALLY(PATIENCE_MS, t.err == HF_CANCEL);
    long long before = hf_fixture_calls(&fixture.redis, "evalsha");
    hf_proxy_refuse(&fixture.proxy, false);
    EVENTUALLY(PATIENCE_MS,
               hf_fixture_calls(&fixture.redis, "evalsha") > before); /* it has left */
    (void)hf_proxy_deliver(&fixture.proxy);
    EVENTUALLY(PATIENCE_MS, hf_lock_is_free(&fixture, "n"));
}

static void what_is_cancelled_on_its_way_is_left(void **state)
{
    told t;
    (void)state;
    hf_proxy_set(&fixture.proxy, PROXY_REQUESTS, PROXY_HOLD);
    uint64_t before = hf_proxy_bytes(&fixture.proxy, PROXY_REQUESTS);
    hf_lock *lock =
        ask_for(far, "n", (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = -1}, &t);
    EVENTUALLY(PATIENCE_MS, hf_proxy_bytes(&fixture.proxy, PROXY_REQUESTS) > before);
    hf_lock_cancel(lock);
    EVENTUALLY(PATIENCE_MS, t.err == HF_CANCEL);
    long long calls = hf_fixture_calls(&fixture.redis, "evalsha");
    hf_proxy_set(&fixture.proxy, PROXY_REQUESTS, PROXY_PASS);
    EVENTUALLY(PATIENCE_MS, hf_fixture_calls(&fixture.redis, "evalsha") >=
                                calls + 2); /* enter, leave */
    EVENTUALLY(PATIENCE_MS, hf_lock_is_free(&fixture, "n"));
    released(hf_lock_must(&fixture, fixture.a, "n", (hf_lock_opts){HF_LOCK_OPTS_INIT}));
}

/* ---- deadlines ---- */

/* Its answer took long: what counts is when it was asked for. */
static void a_deadline_counts_from_before_the_request(void **state)
{
    const hf_lock_form forms[] = {HF_LOCK_LINE, HF_LOCK_SPIN};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(forms); i++) {
        told t;
        hf_proxy_keep_answer(&fixture.proxy, hf_lua_lock_acquire.sha1);
        (void)ask_for(
            far, "n",
            (hf_lock_opts){HF_LOCK_OPTS_INIT, .form = forms[i], .lease_ms = 20000}, &t);
        EVENTUALLY(PATIENCE_MS, hf_proxy_kept(&fixture.proxy) == 1);
        hf_test_pause_ms(1000); /* more than the margin */
        hf_proxy_let_go(&fixture.proxy);
        EVENTUALLY(PATIENCE_MS, t.err == HF_OK);
        long long redis_ms =
            i == 0 ? hf_fixture_number(
                         &fixture.redis, "EVAL %s 1 hf:lock:{n}:x:n",
                         "local t = redis.call('TIME') "
                         "return redis.call('ZRANGE', KEYS[1], 0, 0, "
                         "'WITHSCORES')[2] + 20000 - t[1] * 1000 - t[2] / 1000")
                   : hf_fixture_number(&fixture.redis, "PTTL hf:lock:{n}:cell:n");
        int64_t local_ms = hf_lock_remaining_ms(t.lock); /* later, and still less */
        assert_true(local_ms > 0 && local_ms < redis_ms);
        released(t.lock);
    }
}

/* Long before its next renewal. */
static void a_grant_is_told_by_a_message(void **state)
{
    hf_lock_waiter w;
    (void)state;
    hf_lock *lock =
        hf_lock_must(&fixture, fixture.a, "n",
                     (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = HF_LOCK_LEASE_MAX_MS});
    hf_lock_wait_begin(&w, &fixture, fixture.b, "n",
                       (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = HF_LOCK_LEASE_MAX_MS,
                                      .wait_ms = PATIENCE_MS});
    released(lock);
    hf_lock_wait_end(&w);
    assert_int_equal(w.err, HF_OK);
    released(w.lock);
}

static void fences_rise_also_when_the_clock_is_behind(void **state)
{
    const long long ahead = 8000000000000000; /* a former server's clock, say */
    uint64_t last = (uint64_t)ahead;
    size_t n;
    (void)state;
    (void)hf_fixture_command(&fixture.redis, "SET hf:lock:{n}:fence %lld", ahead);
    for (int i = 0; i < 4; i++) {
        hf_lock *lock =
            hf_lock_must(&fixture, fixture.a, "n",
                         (hf_lock_opts){HF_LOCK_OPTS_INIT,
                                        .form = i % 2 ? HF_LOCK_SPIN : HF_LOCK_LINE});
        assert_true(hf_lock_fence(lock) > last);
        last = hf_lock_fence(lock);
        assert_int_equal(hf_lock_force(fixture.b, "n", NULL, &n, fixture.detail), HF_OK);
        (void)hf_lock_release_wait(lock, NULL);
    }
}

/* ---- old messages ---- */

/* Of the last one in the line: whose inbox hears of it, and the number of its hold. */
static void read_entry(const char *name, char client[128], char hold[32])
{
    char owner[80], mode[8], names[64];
    const char *line =
        hf_fixture_command(&fixture.redis, "EVAL %s 1 hf:lock:{%s}:",
                           "local o = redis.call('ZREVRANGE', KEYS[1] .. 'q:n', 0, 0)[1] "
                           "return o .. ' ' .. redis.call('HGET', KEYS[1] .. 'e:n', o)",
                           name);
    assert_int_equal(sscanf(line, "%79s %7s %*s %*s %*s %127s %63s %31[^=]", owner, mode,
                            client, names, hold),
                     5);
}

static void say_granted(const char *client, uint64_t fence, const char *hold)
{
    (void)hf_fixture_command(&fixture.redis, "EVAL %s 1 hf:lock:{n}:in:%s %llu %s",
                             "return redis.call('RPUSH', KEYS[1], 'granted ' .. ARGV[1] "
                             ".. ' ' .. ARGV[2])",
                             client, (unsigned long long)fence, hold);
}

/* Of a place in the line that was lost, for which there is a new one. */
static void an_old_message_grants_nothing(void **state)
{
    char client[128], hold[32];
    hf_lock_waiter w;
    (void)state;
    hf_lock *lock =
        hf_lock_must(&fixture, fixture.a, "n", (hf_lock_opts){HF_LOCK_OPTS_INIT});
    uint64_t old = hf_lock_fence(lock);
    hf_lock_wait_begin(&w, &fixture, fixture.b, "n", (hf_lock_opts){HF_LOCK_OPTS_INIT});
    read_entry("n", client, hold);
    say_granted(client, old, hold);
    ALWAYS(300, !w.done);
    released(lock);
    hf_lock_wait_end(&w);
    assert_int_equal(w.err, HF_OK);
    assert_true(hf_lock_fence(w.lock) > old);
    released(w.lock);
}

/* An owner that waits for one of two locks already waits for each by itself: the grant of
 * one says nothing of the other. */
static void the_grant_of_one_of_several_is_not_believed(void **state)
{
    static const char *const both[] = {"t/a", "t/b"};
    const hf_lock_opts one = {HF_LOCK_OPTS_INIT, .reentrant = true, .owner = "me"};
    const hf_lock_opts two = {HF_LOCK_OPTS_INIT, .reentrant = true, .owner = "me",
                              .names = both,     .n_names = 2,      .lease_ms = 1500};
    hf_lock_waiter first, second;
    (void)state;
    hf_lock *a = hf_lock_must(&fixture, fixture.a, "t/a",
                              (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LONG_MS});
    hf_lock *b = hf_lock_must(&fixture, fixture.a, "t/b",
                              (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LONG_MS});
    hf_lock_wait_begin(&first, &fixture, fixture.b, "t/a", one);
    hf_lock_wait_begin(&second, &fixture, fixture.b, "t/b", two);
    released(b);
    ALWAYS(1000, !second.done);
    released(a);
    hf_lock_wait_end(&first);
    hf_lock_wait_end(&second);
    assert_int_equal(first.err, HF_OK);
    assert_int_equal(second.err, HF_OK);
    assert_true(hf_lock_held(second.lock));
    size_t left = 9;
    assert_int_equal(hf_lock_release_wait(first.lock, &left), HF_RELEASE_STILL_HELD);
    assert_int_equal(left, 1);
    assert_int_equal(hf_lock_release_wait(second.lock, &left), HF_RELEASE_DONE);
    assert_int_equal(left, 0);
}

/* Whoever believes that it holds the lock and is only in the line is told so. */
static void a_grant_that_never_was_is_found_out(void **state)
{
    char client[128], hold[32];
    hf_lock_waiter w;
    (void)state;
    hf_lock *lock =
        hf_lock_must(&fixture, fixture.a, "n", (hf_lock_opts){HF_LOCK_OPTS_INIT});
    hf_lock_wait_begin(&w, &fixture, fixture.b, "n",
                       (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = 1500});
    read_entry("n", client, hold);
    say_granted(client, 2 * hf_lock_fence(lock), hold);
    hf_lock_wait_end(&w);
    assert_int_equal(w.err, HF_OK);
    EVENTUALLY(PATIENCE_MS, !hf_lock_held(w.lock));
    EVENTUALLY(PATIENCE_MS, hf_lock_why(w.lock) == HF_LOCK_REFUSED);
    released(lock);
    (void)hf_lock_release_wait(w.lock, NULL);
}

/* ---- keys that are not what they should be ---- */

static void a_broken_lock_is_not_the_end_of_the_others(void **state)
{
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .lease_ms = 900};
    (void)state;
    hf_lock *broken = hf_lock_must(&fixture, fixture.a, "broken", opts);
    hf_lock *good = hf_lock_must(&fixture, fixture.a, "good", opts);
    (void)hf_fixture_command(&fixture.redis, "SET hf:lock:{broken}:x:broken text");
    EVENTUALLY(PATIENCE_MS, fixture.lost == 1);
    assert_int_equal(hf_lock_why(broken), HF_LOCK_DEADLINE);
    ALWAYS(1000, hf_lock_held(good));
    assert_true(fixture.suspect >= 1);
    (void)hf_fixture_command(&fixture.redis, "DEL hf:lock:{broken}:x:broken");
    (void)hf_lock_release_wait(broken, NULL);
    released(good);
}

static void a_key_of_another_type_is_told_at_once(void **state)
{
    static const char *const keys[] = {"x:n", "q:n", "e:n", "fence"};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(keys); i++) {
        hf_lock *lock;
        (void)hf_fixture_command(&fixture.redis, "FLUSHALL");
        (void)hf_fixture_command(&fixture.redis, "%s hf:lock:{n}:%s %s",
                                 strcmp(keys[i], "fence") == 0 ? "LPUSH" : "SET", keys[i],
                                 "text");
        hf_err err =
            hf_lock_take(&fixture, fixture.a, "n",
                         (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = -1}, &lock);
        assert_int_equal(err, HF_REDIS);
        assert_non_null(strstr(fixture.detail, "WRONGTYPE"));
        EVENTUALLY(PATIENCE_MS, hf_fixture_number(&fixture.redis, "DBSIZE") == 1);
    }
}

/* Then the renewals tell, and nobody asks again and again for messages. */
static void an_inbox_that_cannot_be_read_only_delays(void **state)
{
    char client[128], hold[32];
    hf_lock_waiter w;
    (void)state;
    hf_lock *lock =
        hf_lock_must(&fixture, fixture.a, "n", (hf_lock_opts){HF_LOCK_OPTS_INIT});
    hf_lock_wait_begin(&w, &fixture, fixture.b, "n",
                       (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = 900});
    read_entry("n", client, hold);
    (void)hf_fixture_command(&fixture.redis, "SET hf:lock:{n}:in:%s text", client);
    (void)hf_fixture_command(&fixture.redis, "CONFIG RESETSTAT");
    (void)hf_fixture_command(&fixture.redis, "CLIENT KILL TYPE normal SKIPME yes");
    EVENTUALLY(PATIENCE_MS, hf_fixture_calls(&fixture.redis, "blpop") > 0);
    ALWAYS(1000, !w.done);
    assert_true(hf_fixture_calls(&fixture.redis, "blpop") < 20);
    released(lock);
    hf_lock_wait_end(&w);
    assert_int_equal(w.err, HF_OK);
    released(w.lock);
}

/* What was deleted by hand frees the lock, and nothing stays stuck. */
static void a_line_without_some_of_its_keys_continues(void **state)
{
    enum { LINE_LEASE_MS = 2500 };
    static const char *const keys[] = {"x:n", "q:n", "e:n"};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(keys); i++) {
        hf_lock_waiter one, two;
        hf_lock *lock =
            hf_lock_must(&fixture, fixture.a, "n",
                         (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LINE_LEASE_MS});
        hf_lock_wait_begin(&one, &fixture, fixture.b, "n",
                           (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LINE_LEASE_MS});
        hf_lock_wait_begin(&two, &fixture, fixture.b, "n",
                           (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LINE_LEASE_MS});
        (void)hf_fixture_command(&fixture.redis, "DEL hf:lock:{n}:%s", keys[i]);
        if (strcmp(keys[i], "q:n") == 0)
            released(lock);
        else
            EVENTUALLY(PATIENCE_MS, !hf_lock_held(lock));
        EVENTUALLY(PATIENCE_MS, one.done || two.done);
        hf_lock_waiter *first = one.done ? &one : &two, *last = one.done ? &two : &one;
        hf_lock_wait_end(first);
        assert_int_equal(first->err, HF_OK);
        released(first->lock);
        hf_lock_wait_end(last);
        assert_int_equal(last->err, HF_OK);
        released(last->lock);
        if (strcmp(keys[i], "q:n") != 0)
            (void)hf_lock_release_wait(lock, NULL);
        EVENTUALLY(PATIENCE_MS, hf_lock_is_free(&fixture, "n"));
    }
}

/* ---- taken away ---- */

static void only_a_lock_that_was_taken_away_is_told_so(void **state)
{
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .owner = "me", .lease_ms = 6000};
    size_t n;
    (void)state;
    hf_lock *one = hf_lock_must(&fixture, fixture.a, "n", opts);
    assert_int_equal(hf_lock_force(fixture.b, "n", "me", &n, fixture.detail), HF_OK);
    assert_int_equal(n, 1);
    hf_lock *two = hf_lock_must(&fixture, fixture.b, "n", opts); /* the same owner */
    EVENTUALLY(PATIENCE_MS, !hf_lock_held(one));
    EVENTUALLY(PATIENCE_MS, hf_lock_why(one) == HF_LOCK_FORCED);
    assert_true(hf_lock_held(two));
    (void)hf_fixture_command(&fixture.redis, "DEL hf:lock:{n}:x:n");
    EVENTUALLY(PATIENCE_MS, !hf_lock_held(two));
    EVENTUALLY(PATIENCE_MS, hf_lock_why(two) == HF_LOCK_REFUSED);
    (void)hf_lock_release_wait(one, NULL);
    (void)hf_lock_release_wait(two, NULL);
}

/* ---- clocks ---- */

/* What the client knows of Redis's clock is 5 s too early: its renewals come too late,
 * and their answers put that right. */
static void a_clock_that_was_wrong_loses_no_lock(void **state)
{
    (void)state;
    hf_lock *lock = hf_lock_must(&fixture, far, "n",
                                 (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = 1500});
    hf_proxy_shift_clock(&fixture.proxy, -5000);
    hf_lock *other = hf_lock_must(&fixture, far, "other",
                                  (hf_lock_opts){HF_LOCK_OPTS_INIT, .fixed = true});
    hf_proxy_shift_clock(&fixture.proxy, 0);
    ALWAYS(3000, hf_lock_held(lock));
    released(lock);
    released(other);
}

/* ---- a Redis that takes no writes ---- */

/* An operator may have to see to it. A waiter for a lock has time; a call that waits for
 * its answer has not, and is told. */
static void without_writes_a_lock_is_waited_for_and_a_call_is_told(void **state)
{
    enum { AT_ONCE_MS = 1500 }; /* a call has more than 5 s */
    told t;
    (void)state;
    hf_lock *held =
        hf_lock_must(&fixture, fixture.a, "held", (hf_lock_opts){HF_LOCK_OPTS_INIT});
    (void)hf_fixture_command(&fixture.redis, "CONFIG SET min-replicas-to-write 1");
    uint64_t before = hf_test_fair_ms();
    assert_int_equal(hf_lock_extend_wait(held, LONG_MS, fixture.detail), HF_MISCONF);
    assert_non_null(strstr(fixture.detail, "NOREPLICAS"));
    assert_true(hf_test_fair_ms() - before < AT_ONCE_MS);
    long long calls = hf_fixture_calls(&fixture.redis, "evalsha");
    hf_lock *lock = ask_for(fixture.a, "n",
                            (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = LONG_MS}, &t);
    EVENTUALLY(PATIENCE_MS, hf_fixture_calls(&fixture.redis, "evalsha") >= calls + 2);
    assert_int_equal(t.err, 1);
    (void)hf_fixture_command(&fixture.redis, "CONFIG SET min-replicas-to-write 0");
    EVENTUALLY(PATIENCE_MS, t.err == HF_OK);
    released(lock);
    released(held);
}

#define TEST(name) cmocka_unit_test_prestate_setup_teardown(name, begin, end, &fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_enter_that_comes_after_the_leave_stays_for_no_lease),
        TEST(an_enter_that_comes_after_it_was_cancelled_stays_for_no_lease),
        TEST(what_is_cancelled_on_its_way_is_left),
        TEST(a_deadline_counts_from_before_the_request),
        TEST(a_grant_is_told_by_a_message),
        TEST(fences_rise_also_when_the_clock_is_behind),
        TEST(an_old_message_grants_nothing),
        TEST(the_grant_of_one_of_several_is_not_believed),
        TEST(a_grant_that_never_was_is_found_out),
        TEST(a_broken_lock_is_not_the_end_of_the_others),
        TEST(a_key_of_another_type_is_told_at_once),
        TEST(an_inbox_that_cannot_be_read_only_delays),
        TEST(a_line_without_some_of_its_keys_continues),
        TEST(only_a_lock_that_was_taken_away_is_told_so),
        TEST(a_clock_that_was_wrong_loses_no_lock),
        TEST(without_writes_a_lock_is_waited_for_and_a_call_is_told),
    };
    hf_lock_fixture_up(&fixture, NULL);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_lock_fixture_down(&fixture);
    return failures;
}
