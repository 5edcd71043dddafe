/* test_lock_red.c - a lock that a majority of independent servers holds: the faults that
 * it survives and those that it does not, and that it never believes more than its
 * servers do. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "tests/support/set_fixture.h"

enum { N = HF_SET_SERVERS, MAJORITY = N / 2 + 1, LEASE_MS = 4000, WAIT_MS = 60000 };

static hf_set_fixture fixture;
static hf_lock_servers *a, *b;

static int begin(void **state)
{
    (void)state;
    hf_set_fixture_begin(&fixture);
    a = b = NULL;
    return 0;
}

static int end(void **state)
{
    (void)state;
    hf_lock_servers_close(a, NULL, NULL);
    hf_lock_servers_close(b, NULL, NULL);
    return 0;
}

/* ---- taking it ---- */

static hf_err take_with(hf_lock_servers *servers, hf_redlock_opts opts, hf_lock_set **out,
                        char detail[HF_DETAIL_SIZE])
{
    opts.name = opts.name == NULL ? "n" : opts.name;
    opts.lease_ms = opts.lease_ms == 0 ? LEASE_MS : opts.lease_ms;
    if (opts.node_timeout_ms == 0)
        opts.node_timeout_ms = opts.lease_ms / 4;
    opts.on_event = hf_set_fixture_on_event;
    opts.event_arg = &fixture;
    *out = NULL;
    return hf_redlock_acquire_wait(servers, &opts, out, detail);
}

static hf_lock_set *must_with(hf_lock_servers *servers, hf_redlock_opts opts)
{
    hf_lock_set *set;
    opts.wait_ms = WAIT_MS;
    hf_err err = take_with(servers, opts, &set, fixture.detail);
    if (err != HF_OK)
        fail_msg("%s: %s", hf_err_name(err), fixture.detail);
    assert_true(hf_lock_set_held(set));
    assert_true(hf_lock_set_remaining_ms(set) <=
                (opts.lease_ms == 0 ? LEASE_MS : opts.lease_ms));
    return set;
}

static hf_lock_set *must(hf_lock_servers *servers)
{
    return must_with(servers,
                     (hf_redlock_opts){HF_REDLOCK_OPTS_INIT, .wait_ms = WAIT_MS});
}

static hf_err refused(hf_lock_servers *servers, hf_redlock_opts opts)
{
    hf_lock_set *set;
    hf_err err = take_with(servers, opts, &set, fixture.detail);
    assert_int_not_equal(err, HF_OK);
    assert_null(set);
    return err;
}

static void released(hf_lock_set *set)
{
    assert_int_equal(hf_lock_set_release_wait(set, NULL), HF_RELEASE_DONE);
}

/* Waits until all servers can be asked, not only a majority. */
static void connected(hf_lock_servers *servers)
{
    hf_lock_set *set = must(servers);
    EVENTUALLY(30000, hf_lock_set_standing(set) == N);
    released(set);
}

static size_t left_behind(void)
{
    return hf_set_fixture_count(&fixture, N, "n");
}

/* ---- a majority ---- */

static void r10_one_holder_at_a_time(void **state)
{
    (void)state;
    a = hf_set_fixture_open(&fixture, N, false);
    b = hf_set_fixture_open(&fixture, N, false);
    hf_lock_set *set = must(a);
    EVENTUALLY(30000, hf_lock_set_standing(set) == N && left_behind() == N);
    assert_int_equal(hf_lock_set_get_state(set), HF_LOCK_HELD);
    assert_true(hf_lock_set_fence(set, 0) == 0);
    assert_int_equal(refused(b, (hf_redlock_opts){HF_REDLOCK_OPTS_INIT}), HF_TAKEN);
    assert_non_null(strstr(fixture.detail, "0 of 5 servers granted it, 3 are needed"));
    assert_int_equal(refused(b, (hf_redlock_opts){HF_REDLOCK_OPTS_INIT, .wait_ms = 200}),
                     HF_TAKEN);
    assert_int_equal(left_behind(), N);
    released(set);
    EVENTUALLY(30000, left_behind() == 0); /* what was cancelled leaves when it can */
    released(must(b));
}

static void r10_even_or_too_few_servers_are_refused(void **state)
{
    static const size_t counts[] = {1, 2, 4};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(counts); i++) {
        hf_lock_servers *few = hf_set_fixture_open(&fixture, counts[i], false);
        assert_int_equal(refused(few, (hf_redlock_opts){HF_REDLOCK_OPTS_INIT}),
                         HF_INVALID);
        assert_non_null(
            strstr(fixture.detail, "an odd number of servers, at least 3: found"));
        hf_lock_servers_close(few, NULL, NULL);
    }
    a = hf_set_fixture_open(&fixture, N, false);
    assert_int_equal(refused(a, (hf_redlock_opts){HF_REDLOCK_OPTS_INIT, .name = "a/b/c"}),
                     HF_INVALID);
    assert_int_equal(refused(a, (hf_redlock_opts){HF_REDLOCK_OPTS_INIT, .lease_ms = 400,
                                                  .node_timeout_ms = 101}),
                     HF_INVALID);
    assert_int_equal(refused(a, (hf_redlock_opts){HF_REDLOCK_OPTS_INIT, .lease_ms = 99,
                                                  .node_timeout_ms = 1}),
                     HF_INVALID);
}

static void r10_two_of_five_may_be_dead(void **state)
{
    hf_lock_release_result each[N];
    (void)state;
    hf_fixture_kill(&fixture.redis[0], SIGKILL);
    hf_fixture_kill(&fixture.redis[3], SIGKILL);
    a = hf_set_fixture_open(&fixture, N, false);
    hf_lock_set *set = must(a);
    EVENTUALLY(30000, left_behind() == MAJORITY);
    ALWAYS(200, hf_lock_set_held(set));
    assert_int_equal(hf_lock_set_release_wait(set, each), HF_RELEASE_DONE);
    assert_int_not_equal(each[0], HF_RELEASE_DONE);
    assert_int_not_equal(each[3], HF_RELEASE_DONE);
    EVENTUALLY(30000, left_behind() == 0);
}

static void r10_with_three_of_five_dead_nothing_stays_on_the_others(void **state)
{
    (void)state;
    for (size_t i = 0; i < MAJORITY; i++)
        hf_fixture_kill(&fixture.redis[i], SIGKILL);
    a = hf_set_fixture_open(&fixture, N, false);
    for (int i = 0; i < 3; i++) {
        hf_redlock_opts opts = {HF_REDLOCK_OPTS_INIT, .lease_ms = 60000,
                                .node_timeout_ms = 500};
        opts.wait_ms = i == 2 ? 600 : 0;
        assert_int_equal(refused(a, opts), HF_CONN);
        EVENTUALLY(30000, left_behind() == 0);
    }
}

/* ---- answers that do not come ---- */

static void r10_an_unanswered_lock_is_released_too(void **state)
{
    (void)state;
    a = hf_set_fixture_open(&fixture, N, true);
    connected(a);
    for (size_t i = 0; i < MAJORITY; i++)
        hf_proxy_set(&fixture.proxy[i], PROXY_ANSWERS, PROXY_HOLD);
    const hf_redlock_opts opts = {HF_REDLOCK_OPTS_INIT, .lease_ms = 60000,
                                  .node_timeout_ms = 300};
    assert_int_equal(refused(a, opts), HF_CONN);
    EVENTUALLY(30000, left_behind() == MAJORITY); /* executed, and not known to be */
    for (size_t i = 0; i < MAJORITY; i++)
        hf_proxy_set(&fixture.proxy[i], PROXY_ANSWERS, PROXY_PASS);
    EVENTUALLY(30000, left_behind() == 0);
}

static void r10_servers_that_stand_still_are_no_majority(void **state)
{
    (void)state;
    fixture.request_timeout_ms = 400;
    a = hf_set_fixture_open(&fixture, N, false);
    connected(a);
    for (size_t i = 0; i < MAJORITY; i++)
        hf_fixture_signal(&fixture.redis[i], SIGSTOP);
    const hf_redlock_opts opts = {HF_REDLOCK_OPTS_INIT, .lease_ms = 60000,
                                  .node_timeout_ms = 300};
    assert_int_equal(refused(a, opts), HF_CONN);
    for (size_t i = 0; i < MAJORITY; i++)
        hf_fixture_signal(&fixture.redis[i], SIGCONT);
    EVENTUALLY(30000, left_behind() == 0);
    ALWAYS(200, left_behind() == 0);
    released(must(a));
}

typedef struct taker {
    hf_lock_servers *servers;
    hf_redlock_opts opts;
    hf_lock_set *set;
    hf_err err;
    char detail[HF_DETAIL_SIZE];
    atomic_bool done;
    pthread_t thread;
} taker;

static void *run_taker(void *arg)
{
    taker *t = arg;
    t->err = take_with(t->servers, t->opts, &t->set, t->detail);
    atomic_store(&t->done, true);
    return NULL;
}

static void taker_begin(taker *t, hf_lock_servers *servers, hf_redlock_opts opts)
{
    *t = (taker){.servers = servers, .opts = opts};
    assert_int_equal(pthread_create(&t->thread, NULL, run_taker, t), 0);
}

static void taker_end(taker *t)
{
    assert_int_equal(pthread_join(t->thread, NULL), 0);
}

/* An answer that took long leaves that much less of the lease. */
static void r10_the_validity_counts_from_before_the_request(void **state)
{
    enum { LONG_MS = 20000, SLOW_MS = 1200 };
    taker t;
    (void)state;
    fixture.request_timeout_ms = 10000;
    a = hf_set_fixture_open(&fixture, N, true);
    connected(a);
    for (size_t i = 0; i < N; i++)
        hf_proxy_keep_answer(&fixture.proxy[i], "late-one");
    taker_begin(&t, a,
                (hf_redlock_opts){HF_REDLOCK_OPTS_INIT, .name = "late-one",
                                  .lease_ms = LONG_MS, .fixed = true});
    for (size_t i = 0; i < N; i++)
        EVENTUALLY(30000, hf_proxy_kept(&fixture.proxy[i]) == 1);
    uint64_t seen_ns = hf_boot_ns();
    ALWAYS(SLOW_MS, !t.done);
    for (size_t i = 0; i < N; i++)
        hf_proxy_let_go(&fixture.proxy[i]);
    taker_end(&t);
    if (t.err != HF_OK)
        fail_msg("%s: %s", hf_err_name(t.err), t.detail);
    assert_true(hf_lock_set_deadline_ns(t.set) <= seen_ns + LONG_MS * HF_MS_NS);
    released(t.set);
}

/* The second of three comes when the lease of the first is over: that is no majority. */
static void r10_a_slow_server_makes_no_false_success(void **state)
{
    taker t;
    (void)state;
    hf_fixture_kill(&fixture.redis[2], SIGKILL);
    hf_proxy_set(&fixture.proxy[1], PROXY_REQUESTS, PROXY_HOLD);
    a = hf_set_fixture_open(&fixture, 3, true);
    taker_begin(&t, a,
                (hf_redlock_opts){HF_REDLOCK_OPTS_INIT, .lease_ms = 600, .fixed = true});
    EVENTUALLY(30000, hf_set_fixture_has(&fixture, 0, "n") || t.done);
    EVENTUALLY(30000, !hf_set_fixture_has(&fixture, 0, "n"));
    hf_proxy_set(&fixture.proxy[1], PROXY_REQUESTS, PROXY_PASS);
    taker_end(&t);
    assert_int_equal(t.err, HF_CONN);
    EVENTUALLY(30000, !hf_set_fixture_has(&fixture, 1, "n"));
}

/* ---- loss ---- */

static void cut(size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        hf_proxy_refuse(&fixture.proxy[i], true);
        hf_proxy_close_all(&fixture.proxy[i]);
    }
}

static void l5_lost_by_the_deadline_when_no_server_can_be_reached(void **state)
{
    (void)state;
    fixture.request_timeout_ms = 500;
    a = hf_set_fixture_open(&fixture, N, true);
    hf_lock_set *set =
        must_with(a, (hf_redlock_opts){HF_REDLOCK_OPTS_INIT, .lease_ms = 4000});
    struct pollfd fd = {.fd = hf_lock_set_fd(set), .events = POLLIN};
    assert_int_equal(poll(&fd, 1, 0), 0);
    ALWAYS(4500, hf_lock_set_held(set)); /* it is renewed */
    cut(0, N);
    uint64_t last_ns = hf_lock_set_deadline_ns(set);
    for (uint64_t now_ns = hf_boot_ns(); now_ns < last_ns + 100 * HF_MS_NS;
         now_ns = hf_boot_ns()) {
        unsigned lost = fixture.lost;
        if (hf_lock_set_held(set))
            assert_true(now_ns < last_ns && lost == 0);
        hf_test_pause_ms(2);
    }
    assert_false(hf_lock_set_held(set));
    EVENTUALLY(30000, fixture.lost == 1);
    assert_true(fixture.suspect >= 1);
    assert_int_equal(poll(&fd, 1, 0), 1);
    assert_int_equal(hf_lock_set_why(set, NULL), HF_LOCK_DEADLINE);
    assert_int_not_equal(hf_lock_set_release_wait(set, NULL), HF_RELEASE_DONE);
    assert_int_equal(fixture.lost, 1);
}

/* Their renewals fail for a while, and they come back before the deadline. */
static void a_majority_that_is_away_for_a_while_is_suspect(void **state)
{
    (void)state;
    a = hf_set_fixture_open(&fixture, N, true);
    hf_lock_set *set =
        must_with(a, (hf_redlock_opts){HF_REDLOCK_OPTS_INIT, .lease_ms = 9000});
    cut(0, MAJORITY);
    /* A slow renewal before the cut may have told about both as well. */
    EVENTUALLY(30000, hf_lock_set_get_state(set) == HF_LOCK_SUSPECT);
    assert_true(fixture.suspect >= 1);
    assert_true(hf_lock_set_held(set));
    for (size_t i = 0; i < MAJORITY; i++)
        hf_proxy_refuse(&fixture.proxy[i], false);
    EVENTUALLY(30000, hf_lock_set_get_state(set) == HF_LOCK_HELD && fixture.held >= 1);
    assert_int_equal(fixture.lost, 0);
    (void)hf_lock_set_release_wait(set, NULL);
}

static void a_fixed_one_ends_and_a_longest_hold_too(void **state)
{
    (void)state;
    a = hf_set_fixture_open(&fixture, N, false);
    hf_lock_set *set = must_with(
        a, (hf_redlock_opts){HF_REDLOCK_OPTS_INIT, .lease_ms = 2000, .fixed = true});
    EVENTUALLY(30000, fixture.lost == 1);
    assert_int_equal(hf_lock_set_why(set, NULL), HF_LOCK_DEADLINE);
    (void)hf_lock_set_release_wait(set, NULL);
    set = must_with(a, (hf_redlock_opts){HF_REDLOCK_OPTS_INIT, .lease_ms = 4000,
                                         .max_hold_ms = 2000});
    EVENTUALLY(30000, fixture.lost == 2);
    assert_int_equal(hf_lock_set_why(set, NULL), HF_LOCK_MAX_HOLD);
    (void)hf_lock_set_release_wait(set, NULL);
    released(must(a));
}

/* ---- servers that forget ---- */

static void owner_on(size_t i, char out[HF_LOCK_OWNER_SIZE])
{
    const char *value = hf_fixture_command(&fixture.redis[i], "GET hf:lock:{n}:cell:n");
    (void)snprintf(out, HF_LOCK_OWNER_SIZE, "%.*s", (int)strcspn(value, ":"), value);
}

static void a_server_that_forgot_is_entered_again(void **state)
{
    char one[HF_LOCK_OWNER_SIZE], other[HF_LOCK_OWNER_SIZE];
    (void)state;
    a = hf_set_fixture_open(&fixture, N, false);
    hf_lock_set *set = must(a);
    EVENTUALLY(30000, left_behind() == N);
    for (size_t i = 0; i < 2; i++) { /* one after the other */
        hf_fixture_kill(&fixture.redis[i], SIGKILL);
        hf_fixture_restart(&fixture.redis[i]);
        EVENTUALLY(30000, hf_set_fixture_has(&fixture, i, "n"));
        EVENTUALLY(30000, hf_lock_set_standing(set) == N);
        owner_on(i, one);
        owner_on(4, other);
        assert_string_equal(one, other);
    }
    assert_int_equal(fixture.lost, 0);
    released(set);
    EVENTUALLY(30000, left_behind() == 0);
}

static void without_a_majority_none_is_entered_again(void **state)
{
    (void)state;
    fixture.request_timeout_ms = 500;
    a = hf_set_fixture_open(&fixture, N, true);
    hf_lock_set *set =
        must_with(a, (hf_redlock_opts){HF_REDLOCK_OPTS_INIT, .lease_ms = 1500});
    EVENTUALLY(30000, hf_lock_set_standing(set) == N);
    cut(0, MAJORITY);
    EVENTUALLY(30000, fixture.lost == 1);
    EVENTUALLY(30000, hf_set_fixture_count(&fixture, MAJORITY, "n") == 0);
    for (size_t i = 0; i < MAJORITY; i++) {
        unsigned before = hf_proxy_connections(&fixture.proxy[i]);
        hf_proxy_refuse(&fixture.proxy[i], false);
        EVENTUALLY(30000, hf_proxy_connections(&fixture.proxy[i]) >= before + 2);
    }
    ALWAYS(500, hf_set_fixture_count(&fixture, MAJORITY, "n") == 0);
    assert_false(hf_lock_set_held(set));
    (void)hf_lock_set_release_wait(set, NULL);
    EVENTUALLY(30000, left_behind() == 0);
}

/* Why a server that forgets must not come back before a lease has passed: A has it on the
 * first and second of three, and hears nothing for a while. The second restarts without
 * its data and gives its vote once more. */
static void counterexample_a_server_without_persistence_votes_twice(void **state)
{
    (void)state;
    cut(2, 3); /* A never reaches the third */
    fixture.request_timeout_ms = 500;
    a = hf_set_fixture_open(&fixture, 3, true);
    hf_lock_set *first =
        must_with(a, (hf_redlock_opts){HF_REDLOCK_OPTS_INIT, .lease_ms = 15000});
    assert_int_equal(hf_lock_set_standing(first), 2);
    cut(0, 2);
    hf_fixture_kill(&fixture.redis[1], SIGKILL);
    hf_fixture_restart(&fixture.redis[1]);
    b = hf_set_fixture_open(&fixture, 3, false);
    hf_lock_set *second = must(b);
    bool both = hf_lock_set_held(second) && hf_lock_set_held(first);
    assert_true(both); /* two holders: this is what no client can prevent */
    EVENTUALLY(30000, fixture.lost == 1); /* it ends with the lease of the first */
    assert_false(hf_lock_set_held(first));
    assert_true(hf_lock_set_held(second));
    (void)hf_lock_set_release_wait(first, NULL);
    released(second);
}

/* ---- many want it ---- */

static atomic_int inside, entered;

static void *work(void *arg)
{
    for (int i = 0; i < 10; i++) {
        hf_lock_set *set;
        char detail[HF_DETAIL_SIZE];
        const hf_redlock_opts opts = {HF_REDLOCK_OPTS_INIT, .wait_ms = WAIT_MS * 2};
        hf_err err = take_with(arg, opts, &set, detail);
        if (err != HF_OK)
            return strdup(detail);
        int before = atomic_fetch_add(&inside, 1);
        bool alone = before == 0 || !hf_lock_set_held(set);
        atomic_fetch_add(&entered, 1);
        atomic_fetch_sub(&inside, 1);
        (void)hf_lock_set_release_wait(set, NULL);
        if (!alone)
            return strdup("two at once");
    }
    return NULL;
}

static void many_get_it_in_turn(void **state)
{
    pthread_t threads[4];
    (void)state;
    a = hf_set_fixture_open(&fixture, N, false);
    b = hf_set_fixture_open(&fixture, N, false);
    for (size_t i = 0; i < HF_COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, i % 2 ? a : b), 0);
    for (size_t i = 0; i < HF_COUNT(threads); i++) {
        void *why;
        assert_int_equal(pthread_join(threads[i], &why), 0);
        if (why != NULL)
            fail_msg("%s", (char *)why);
    }
    assert_int_equal(entered, 40);
}

static void closing_gives_it_back(void **state)
{
    taker t;
    (void)state;
    a = hf_set_fixture_open(&fixture, N, false);
    b = hf_set_fixture_open(&fixture, N, false);
    (void)must(a);
    taker_begin(&t, b, (hf_redlock_opts){HF_REDLOCK_OPTS_INIT, .wait_ms = -1});
    ALWAYS(100, !t.done);
    hf_lock_servers_close(b, NULL, NULL);
    b = NULL;
    taker_end(&t);
    assert_int_equal(t.err, HF_CLOSED);
    hf_lock_servers_close(a, NULL, NULL);
    a = NULL;
    EVENTUALLY(30000, left_behind() == 0);
}

/* ---- a loop of one's own ---- */

static void a_loop_of_ones_own(void **state)
{
    const hf_redlock_opts opts = {HF_REDLOCK_OPTS_INIT, .name = "n", .wait_ms = -1,
                                  .lease_ms = LEASE_MS};
    hf_set_told t = {0}, u = {0};
    hf_lock_servers *c;
    hf_lock_set *waits;
    uv_loop_t loop;
    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    const hf_lock_client_opts looped = {HF_LOCK_CLIENT_OPTS_INIT, .loop = &loop};
    assert_int_equal(hf_lock_servers_open(&c, fixture.urls, N, &looped, fixture.detail),
                     HF_OK);
    assert_int_equal(hf_redlock_acquire_wait(c, &opts, &waits, fixture.detail),
                     HF_INVALID);
    assert_int_equal(
        hf_redlock_acquire(c, &opts, hf_set_on_acquired, &t, NULL, fixture.detail),
        HF_OK);
    EVENTUALLY(30000, hf_set_turn(&loop) && t.acquired == 1);
    assert_int_equal(t.err, HF_OK);
    assert_int_equal(
        hf_redlock_acquire(c, &opts, hf_set_on_acquired, &u, &waits, fixture.detail),
        HF_OK);
    ALWAYS(100, hf_set_turn(&loop) && u.acquired == 0);
    hf_lock_set_cancel(waits);
    EVENTUALLY(30000, hf_set_turn(&loop) && u.acquired == 1);
    assert_int_equal(u.err, HF_CANCEL);
    hf_lock_set_release(t.set, hf_set_on_released, &t);
    EVENTUALLY(30000, hf_set_turn(&loop) && t.released == 1);
    assert_int_equal(t.result, HF_RELEASE_DONE);
    assert_int_equal(t.n, N);
    hf_lock_servers_close(c, hf_set_on_closed, &t);
    EVENTUALLY(30000, hf_set_turn(&loop) && t.closed == 1);
    assert_int_equal(uv_loop_close(&loop), 0);
    EVENTUALLY(30000, left_behind() == 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(r10_one_holder_at_a_time),
        TEST(r10_even_or_too_few_servers_are_refused),
        TEST(r10_two_of_five_may_be_dead),
        TEST(r10_with_three_of_five_dead_nothing_stays_on_the_others),
        TEST(r10_an_unanswered_lock_is_released_too),
        TEST(r10_servers_that_stand_still_are_no_majority),
        TEST(r10_the_validity_counts_from_before_the_request),
        TEST(r10_a_slow_server_makes_no_false_success),
        TEST(l5_lost_by_the_deadline_when_no_server_can_be_reached),
        TEST(a_majority_that_is_away_for_a_while_is_suspect),
        TEST(a_fixed_one_ends_and_a_longest_hold_too),
        TEST(a_server_that_forgot_is_entered_again),
        TEST(without_a_majority_none_is_entered_again),
        TEST(counterexample_a_server_without_persistence_votes_twice),
        TEST(many_get_it_in_turn),
        TEST(closing_gives_it_back),
        TEST(a_loop_of_ones_own),
    };
    hf_set_fixture_up(&fixture, N, false);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_set_fixture_down(&fixture);
    return failures;
}
