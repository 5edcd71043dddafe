/* test_lock_multi.c - locks of several servers as one: all or none, in one order. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "tests/support/set_fixture.h"

enum { N = 3, LEASE_MS = 5000, WAIT_MS = 60000 };

static hf_set_fixture fixture;
static hf_lock_servers *a, *b;
static hf_lock_servers *reversed; /* its URLs are the other way round */

static int begin(void **state)
{
    (void)state;
    hf_set_fixture_begin(&fixture);
    a = hf_set_fixture_open(&fixture, N, true);
    b = hf_set_fixture_open(&fixture, N, false);
    return 0;
}

static int end(void **state)
{
    (void)state;
    hf_lock_servers_close(a, NULL, NULL);
    hf_lock_servers_close(b, NULL, NULL);
    return 0;
}

/* ---- what is taken ---- */

static const char *const names[N] = {"n0", "n1", "n2"};

static hf_lock_opts lock_of(size_t server)
{
    return (hf_lock_opts){HF_LOCK_OPTS_INIT, .names = &names[server], .n_names = 1,
                          .lease_ms = LEASE_MS};
}

static hf_multilock_member member(size_t server, const hf_lock_opts *lock)
{
    return (hf_multilock_member){HF_MULTILOCK_MEMBER_INIT, .server = server,
                                 .lock = lock};
}

/* Lock "n<i>" on server i, of each server. */
static void fill_members(hf_multilock_member members[N], hf_lock_opts locks[N])
{
    for (size_t i = 0; i < N; i++) {
        locks[i] = lock_of(i);
        members[i] = member(i, &locks[i]);
    }
}

static hf_err take(hf_lock_servers *servers, int64_t wait_ms, bool backwards,
                   hf_lock_set **out, char detail[HF_DETAIL_SIZE])
{
    hf_multilock_member members[N];
    hf_lock_opts locks[N];
    fill_members(members, locks);
    for (size_t i = 0; i < N / 2 && backwards; i++) {
        const hf_multilock_member last = members[N - 1 - i];
        members[N - 1 - i] = members[i];
        members[i] = last;
    }
    for (size_t i = 0; i < N && servers == reversed; i++)
        members[i].server = N - 1 - members[i].server;
    const hf_multilock_opts opts = {HF_MULTILOCK_OPTS_INIT,
                                    .members = members,
                                    .n_members = N,
                                    .wait_ms = wait_ms,
                                    .on_event = hf_set_fixture_on_event,
                                    .event_arg = &fixture};
    *out = NULL;
    return hf_multilock_acquire_wait(servers, &opts, out, detail);
}

static hf_lock_set *must(hf_lock_servers *servers)
{
    hf_lock_set *set;
    hf_err err = take(servers, WAIT_MS, false, &set, fixture.detail);
    if (err != HF_OK)
        fail_msg("%s: %s", hf_err_name(err), fixture.detail);
    assert_true(hf_lock_set_held(set));
    return set;
}

static hf_lock_set *must_one(hf_lock_servers *servers, size_t server)
{
    hf_lock_set *set;
    const hf_lock_opts lock = lock_of(server);
    const hf_multilock_member one = member(server, &lock);
    const hf_multilock_opts opts = {HF_MULTILOCK_OPTS_INIT, .members = &one,
                                    .n_members = 1, .wait_ms = WAIT_MS};
    assert_int_equal(hf_multilock_acquire_wait(servers, &opts, &set, fixture.detail),
                     HF_OK);
    return set;
}

static size_t left_behind(void)
{
    size_t n = 0;
    for (size_t i = 0; i < N; i++)
        n += hf_set_fixture_has(&fixture, i, names[i]);
    return n;
}

static long long in_line(size_t server)
{
    return hf_fixture_number(&fixture.redis[server], "ZCARD hf:lock:{%s}:q:%s",
                             names[server], names[server]);
}

static void released(hf_lock_set *set)
{
    hf_lock_release_result each[N];
    assert_int_equal(hf_lock_set_release_wait(set, each), HF_RELEASE_DONE);
}

typedef hf_err (*operation)(hf_lock_client *locks, const char *name, const char *owner,
                            size_t *n, char detail[HF_DETAIL_SIZE]);

/* Takes it away, or asks for it, on one server. */
static void operate(operation what, size_t server)
{
    hf_lock_client *locks;
    size_t n;
    assert_int_equal(
        hf_lock_client_open(
            &locks,
            &(hf_lock_client_opts){HF_LOCK_CLIENT_OPTS_INIT,
                                   .server = HF_SERVER(.url = fixture.urls[server])},
            fixture.detail),
        HF_OK);
    assert_int_equal(what(locks, names[server], NULL, &n, fixture.detail), HF_OK);
    assert_int_equal(n, 1);
    hf_lock_client_close(locks, NULL, NULL);
}

/* ---- all or none ---- */

static void r16_all_are_held_or_none(void **state)
{
    hf_lock_set *set, *other;
    (void)state;
    set = must(a);
    assert_int_equal(left_behind(), N);
    assert_int_equal(hf_lock_set_size(set), N);
    assert_int_equal(hf_lock_set_standing(set), N);
    assert_int_equal(hf_lock_set_get_state(set), HF_LOCK_HELD);
    assert_int_equal(hf_lock_set_why(set, NULL), HF_LOCK_NOT_LOST);
    for (size_t i = 0; i < N; i++)
        assert_true(hf_lock_set_fence(set, i) > 0);
    assert_true(hf_lock_set_fence(set, N) == 0);
    assert_int_equal(take(b, 0, true, &other, fixture.detail), HF_TAKEN);
    assert_int_equal(take(b, 100, true, &other, fixture.detail), HF_TAKEN);
    released(set);
    EVENTUALLY(30000, left_behind() == 0); /* whose wait was over leaves when it can */
    released(must(b));
}

static void f8_acquired_members_are_released(void **state)
{
    hf_lock_set *set;
    (void)state;
    for (size_t busy = 0; busy < N; busy++) {
        hf_lock_set *one = must_one(b, busy);
        assert_int_equal(take(a, busy == 1 ? 200 : 0, false, &set, fixture.detail),
                         HF_TAKEN);
        assert_non_null(strstr(fixture.detail, names[busy])); /* says which */
        EVENTUALLY(30000, left_behind() == 1);
        released(one);
    }
}

static void f8_also_where_the_answer_was_lost(void **state)
{
    hf_lock_set *set;
    (void)state;
    released(must(a)); /* it is connected */
    for (size_t lost = 0; lost < N - 1; lost++) {
        hf_lock_set *one = must_one(b, N - 1);
        hf_proxy_lose_answer(&fixture.proxy[lost], names[lost]);
        assert_int_equal(take(a, 300, false, &set, fixture.detail), HF_TAKEN);
        EVENTUALLY(30000, left_behind() == 1);
        assert_true(hf_lock_set_held(one));
        released(one);
    }
}

static void f8_a_server_that_is_down_leaves_nothing_on_the_others(void **state)
{
    hf_lock_set *set;
    (void)state;
    hf_fixture_kill(&fixture.redis[1], SIGKILL);
    const hf_lock_client_opts opts = {HF_LOCK_CLIENT_OPTS_INIT,
                                      .server = HF_SERVER(.connect_timeout_ms = 500)};
    hf_lock_servers *c;
    assert_int_equal(hf_lock_servers_open(&c, fixture.urls, N, &opts, fixture.detail),
                     HF_OK);
    assert_int_equal(take(c, 0, false, &set, fixture.detail), HF_CONN);
    assert_non_null(strstr(fixture.detail, fixture.redis[1].socket));
    EVENTUALLY(30000, !hf_set_fixture_has(&fixture, 0, "n0") &&
                          !hf_set_fixture_has(&fixture, 2, "n2"));
    hf_lock_servers_close(c, NULL, NULL);
    hf_fixture_restart(&fixture.redis[1]);
}

/* ---- in one order ---- */

typedef struct worker {
    hf_lock_servers *servers;
    bool backwards;
    unsigned done;
    hf_err err;
    char detail[HF_DETAIL_SIZE];
} worker;

static void *work(void *arg)
{
    worker *w = arg;
    for (; w->done < 40 && w->err == HF_OK; w->done++) {
        hf_lock_set *set;
        w->err = take(w->servers, WAIT_MS, w->backwards, &set, w->detail);
        if (w->err == HF_OK)
            (void)hf_lock_set_release_wait(set, NULL);
    }
    return NULL;
}

static void r9_opposite_orders_never_wait_in_a_circle(void **state)
{
    const char *back[N];
    (void)state;
    for (size_t i = 0; i < N; i++)
        back[i] = fixture.urls[N - 1 - i];
    assert_int_equal(hf_lock_servers_open(&reversed, back, N, NULL, fixture.detail),
                     HF_OK);
    worker w[3] = {
        {.servers = b}, {.servers = b, .backwards = true}, {.servers = reversed}};
    pthread_t threads[3];
    for (size_t i = 0; i < HF_COUNT(w); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &w[i]), 0);
    for (size_t i = 0; i < HF_COUNT(w); i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (size_t i = 0; i < HF_COUNT(w); i++)
        if (w[i].err != HF_OK)
            fail_msg("%u: %s: %s", w[i].done, hf_err_name(w[i].err), w[i].detail);
    hf_lock_servers_close(reversed, NULL, NULL);
    reversed = NULL;
}

/* ---- loss ---- */

static void the_loss_of_one_is_the_loss_of_all(void **state)
{
    hf_lock_release_result each[N];
    size_t which = 9;
    (void)state;
    hf_lock_set *set = must(a);
    struct pollfd fd = {.fd = hf_lock_set_fd(set), .events = POLLIN};
    assert_int_equal(poll(&fd, 1, 0), 0);
    operate(hf_lock_force, 1);
    EVENTUALLY(30000, fixture.lost == 1);
    assert_int_equal(fixture.member, 1);
    assert_false(hf_lock_set_held(set));
    assert_int_equal(hf_lock_set_get_state(set), HF_LOCK_GONE);
    assert_int_equal(hf_lock_set_why(set, &which), HF_LOCK_FORCED);
    assert_int_equal(which, 1);
    assert_true(hf_lock_set_deadline_ns(set) == 0);
    assert_int_equal(poll(&fd, 1, 0), 1);
    assert_int_equal(hf_lock_set_standing(set), N - 1); /* until they are released */
    assert_int_equal(hf_lock_set_release_wait(set, each), HF_RELEASE_EXPIRED);
    assert_int_equal(each[0], HF_RELEASE_DONE);
    assert_int_equal(each[1], HF_RELEASE_EXPIRED);
    assert_int_equal(each[2], HF_RELEASE_DONE);
    assert_int_equal(fixture.lost, 1);
    EVENTUALLY(30000, left_behind() == 0);
}

static void a_member_that_is_asked_back_is_still_held(void **state)
{
    (void)state;
    hf_lock_set *set = must(a);
    operate(hf_lock_revoke, 2);
    EVENTUALLY(30000, fixture.revoked == 1);
    assert_int_equal(fixture.member, 2);
    assert_true(hf_lock_set_held(set));
    released(set);
    assert_int_equal(fixture.lost, 0);
}

/* Stands in line at the last server while the first is taken away. */
static void a_loss_on_the_way_ends_it(void **state)
{
    worker w = {.servers = a};
    pthread_t thread;
    size_t first = 0, last = 0; /* in the order of their sockets */
    (void)state;
    for (size_t i = 1; i < N; i++) {
        first =
            strcmp(fixture.proxy[i].socket, fixture.proxy[first].socket) < 0 ? i : first;
        last = strcmp(fixture.proxy[i].socket, fixture.proxy[last].socket) > 0 ? i : last;
    }
    hf_lock_set *one = must_one(b, last);
    assert_int_equal(pthread_create(&thread, NULL, work, &w), 0);
    EVENTUALLY(30000, in_line(last) == 1);
    operate(hf_lock_force, first);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(w.err, HF_LOST);
    EVENTUALLY(30000, left_behind() == 1);
    released(one);
    assert_int_equal(fixture.lost, 0); /* it never had it */
}

static void r16_some_releases_fail_and_all_are_tried(void **state)
{
    hf_lock_release_result each[N];
    (void)state;
    for (size_t dead = 0; dead < N; dead += 2) {
        hf_lock_set *set = must(a);
        hf_proxy_set(&fixture.proxy[dead], PROXY_REQUESTS, PROXY_HOLD);
        assert_int_equal(hf_lock_set_release_wait(set, each), HF_RELEASE_UNKNOWN);
        for (size_t i = 0; i < N; i++)
            assert_int_equal(each[i], i == dead ? HF_RELEASE_UNKNOWN : HF_RELEASE_DONE);
        EVENTUALLY(30000, left_behind() == 1);
        hf_proxy_set(&fixture.proxy[dead], PROXY_REQUESTS, PROXY_PASS);
        EVENTUALLY(30000, left_behind() == 0);
    }
}

static void the_deadline_is_the_first_of_all(void **state)
{
    hf_lock_opts locks[2] = {lock_of(0), lock_of(1)};
    const hf_multilock_member two[2] = {member(0, &locks[0]), member(1, &locks[1])};
    hf_lock_set *set;
    (void)state;
    locks[1].lease_ms = 60000;
    locks[0].lease_ms = 300;
    locks[0].fixed = true;
    const hf_multilock_opts opts = {HF_MULTILOCK_OPTS_INIT,
                                    .members = two,
                                    .n_members = 2,
                                    .wait_ms = WAIT_MS,
                                    .on_event = hf_set_fixture_on_event,
                                    .event_arg = &fixture};
    assert_int_equal(hf_multilock_acquire_wait(a, &opts, &set, fixture.detail), HF_OK);
    assert_true(hf_lock_set_remaining_ms(set) <= 300);
    EVENTUALLY(30000, fixture.lost == 1);
    assert_int_equal(hf_lock_set_why(set, NULL), HF_LOCK_DEADLINE);
    (void)hf_lock_set_release_wait(set, NULL);
}

/* ---- what is refused ---- */

static void bad_input_is_refused_in_one_line(void **state)
{
    static const char *const tagged[] = {"t/a", "t/b"};
    hf_lock_set *set;
    hf_lock_servers *c;
    (void)state;
    hf_lock_opts locks[2] = {lock_of(0), lock_of(0)};
    hf_multilock_member two[2] = {member(0, &locks[0]), member(0, &locks[1])};
    locks[0].names = &tagged[0];
    locks[1].names = &tagged[1];
    hf_multilock_opts opts = {HF_MULTILOCK_OPTS_INIT, .members = two, .n_members = 2};
    assert_int_equal(hf_multilock_acquire_wait(a, &opts, &set, fixture.detail),
                     HF_INVALID);
    assert_non_null(strstr(fixture.detail, "one tag in one member"));
    two[1] = member(N, &locks[1]);
    assert_int_equal(hf_multilock_acquire_wait(a, &opts, &set, fixture.detail),
                     HF_INVALID);
    assert_non_null(strstr(fixture.detail, "expected a server of 0 to 2, found 3"));
    two[1] = member(1, &locks[1]);
    locks[1].wait_ms = 5;
    assert_int_equal(hf_multilock_acquire_wait(a, &opts, &set, fixture.detail),
                     HF_INVALID);
    locks[1] = lock_of(1);
    locks[1].lease_ms = 1;
    assert_int_equal(hf_multilock_acquire_wait(a, &opts, &set, fixture.detail),
                     HF_INVALID);
    opts.n_members = 0;
    assert_int_equal(hf_multilock_acquire_wait(a, &opts, &set, fixture.detail),
                     HF_INVALID);

    const char *const twice[] = {fixture.urls[0], fixture.urls[1], fixture.urls[0]};
    const hf_lock_client_opts none = {HF_LOCK_CLIENT_OPTS_INIT,
                                      .server = HF_SERVER(.ns = "hf")};
    assert_int_equal(hf_lock_servers_open(&c, twice, 3, &none, fixture.detail),
                     HF_INVALID);
    assert_non_null(strstr(fixture.detail, "twice"));
    assert_int_equal(hf_lock_servers_open(&c, fixture.urls, 0, &none, fixture.detail),
                     HF_INVALID);
    const char *const bad[] = {fixture.urls[0], "http://x"};
    assert_int_equal(hf_lock_servers_open(&c, bad, 2, &none, fixture.detail), HF_INVALID);
    const hf_lock_client_opts url = {HF_LOCK_CLIENT_OPTS_INIT,
                                     .server = HF_SERVER(.url = fixture.urls[0])};
    assert_int_equal(hf_lock_servers_open(&c, fixture.urls, N, &url, fixture.detail),
                     HF_INVALID);
    const hf_lock_client_opts file = {HF_LOCK_CLIENT_OPTS_INIT,
                                      .server = HF_SERVER(.password_file = "/nowhere")};
    assert_int_equal(hf_lock_servers_open(&c, fixture.urls, N, &file, fixture.detail),
                     HF_CONFIG);
}

/* ---- closing, and a loop of one's own ---- */

static void closing_gives_back_and_answers(void **state)
{
    static const char *const name = "other";
    worker w = {.servers = NULL};
    hf_lock_set *set;
    pthread_t thread;
    (void)state;
    hf_lock_set *one = must_one(b, 1);
    hf_lock_servers *c = hf_set_fixture_open(&fixture, N, false);
    w.servers = c;
    assert_int_equal(pthread_create(&thread, NULL, work, &w), 0);
    EVENTUALLY(30000, in_line(1) == 1);
    hf_lock_opts lock = lock_of(0);
    const hf_multilock_member other = member(0, &lock);
    lock.names = &name;
    const hf_multilock_opts opts = {HF_MULTILOCK_OPTS_INIT, .members = &other,
                                    .n_members = 1};
    assert_int_equal(hf_multilock_acquire_wait(c, &opts, &set, fixture.detail), HF_OK);
    assert_true(hf_set_fixture_has(&fixture, 0, name));
    hf_lock_servers_close(c, NULL, NULL);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(w.err, HF_CLOSED);
    EVENTUALLY(30000, left_behind() == 1);
    assert_false(hf_set_fixture_has(&fixture, 0, name));
    released(one);
}

static void a_loop_of_ones_own(void **state)
{
    hf_multilock_member members[N];
    hf_lock_opts locks[N];
    hf_lock_servers *c;
    hf_lock_set *waits;
    uv_loop_t loop;
    hf_set_told t = {0}, u = {0};
    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(hf_lock_servers_open(
                         &c, fixture.urls, N,
                         &(hf_lock_client_opts){HF_LOCK_CLIENT_OPTS_INIT, .loop = &loop},
                         fixture.detail),
                     HF_OK);
    fill_members(members, locks);
    const hf_multilock_opts opts = {HF_MULTILOCK_OPTS_INIT, .members = members,
                                    .n_members = N, .wait_ms = -1};
    assert_int_equal(hf_multilock_acquire_wait(c, &opts, &waits, fixture.detail),
                     HF_INVALID);
    assert_int_equal(
        hf_multilock_acquire(c, &opts, hf_set_on_acquired, &t, NULL, fixture.detail),
        HF_OK);
    EVENTUALLY(30000, hf_set_turn(&loop) && t.acquired == 1);
    assert_int_equal(t.err, HF_OK);
    assert_int_equal(
        hf_multilock_acquire(c, &opts, hf_set_on_acquired, &u, &waits, fixture.detail),
        HF_OK);
    for (int i = 0; i < 50; i++)
        assert_true(hf_set_turn(&loop));
    hf_lock_set_cancel(waits);
    EVENTUALLY(30000, hf_set_turn(&loop) && u.acquired == 1);
    assert_int_equal(u.err, HF_CANCEL);
    hf_lock_set_release(t.set, hf_set_on_released, &t);
    EVENTUALLY(30000, hf_set_turn(&loop) && t.released == 1);
    assert_int_equal(t.result, HF_RELEASE_DONE);
    assert_int_equal(t.n, N);
    assert_int_equal(
        hf_multilock_acquire(c, &opts, hf_set_on_acquired, &t, NULL, fixture.detail),
        HF_OK);
    EVENTUALLY(30000, hf_set_turn(&loop) && t.acquired == 2);
    hf_lock_servers_close(c, hf_set_on_closed, &t); /* gives it back */
    EVENTUALLY(30000, hf_set_turn(&loop) && t.closed == 1);
    assert_int_equal(uv_loop_close(&loop), 0);
    EVENTUALLY(30000, left_behind() == 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(r16_all_are_held_or_none),
        TEST(f8_acquired_members_are_released),
        TEST(f8_also_where_the_answer_was_lost),
        TEST(f8_a_server_that_is_down_leaves_nothing_on_the_others),
        TEST(r9_opposite_orders_never_wait_in_a_circle),
        TEST(the_loss_of_one_is_the_loss_of_all),
        TEST(a_member_that_is_asked_back_is_still_held),
        TEST(a_loss_on_the_way_ends_it),
        TEST(r16_some_releases_fail_and_all_are_tried),
        TEST(the_deadline_is_the_first_of_all),
        TEST(bad_input_is_refused_in_one_line),
        TEST(closing_gives_back_and_answers),
        TEST(a_loop_of_ones_own),
    };
    hf_set_fixture_up(&fixture, N, false);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_set_fixture_down(&fixture);
    return failures;
}
