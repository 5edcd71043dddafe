/* test_lock_set_threads.c - the threads of a client of several servers: two of its own,
 * however many servers there are, and one server that stands still holds up none of the
 * others. */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>

#include "base/base.h"
#include "base/clock.h"
#include "tests/support/set_fixture.h"

enum { N = HF_SET_SERVERS, FEW = 3, LEASE_MS = 2000, WAIT_MS = 60000 };

static hf_set_fixture fixture;
static hf_lock_servers *servers;

static int begin(void **state)
{
    (void)state;
    hf_set_fixture_begin(&fixture);
    servers = NULL;
    return 0;
}

static int end(void **state)
{
    (void)state;
    hf_lock_servers_close(servers, NULL, NULL);
    return 0;
}

static const hf_redlock_opts redlock = {HF_REDLOCK_OPTS_INIT,
                                        .name = "n",
                                        .wait_ms = WAIT_MS,
                                        .lease_ms = LEASE_MS,
                                        .node_timeout_ms = LEASE_MS / 4,
                                        .on_event = hf_set_fixture_on_event,
                                        .event_arg = &fixture};

static hf_lock_set *take(void)
{
    hf_lock_set *set;
    hf_err err = hf_redlock_acquire_wait(servers, &redlock, &set, fixture.detail);
    if (err != HF_OK)
        fail_msg("%s: %s", hf_err_name(err), fixture.detail);
    return set;
}

/* ---- how many there are ---- */

static size_t count_threads(void)
{
    size_t n = 0;
    DIR *dir = opendir("/proc/self/task");
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
        n += entry->d_name[0] != '.';
    (void)closedir(dir);
    return n;
}

static void a_client_of_five_servers_has_two_threads(void **state)
{
    (void)state;
    size_t before = count_threads();
    servers = hf_set_fixture_open(&fixture, N, false);
    assert_int_equal(count_threads(), before + 2);
    hf_lock_set *set = take();
    EVENTUALLY(30000, hf_lock_set_standing(set) == N);
    assert_int_equal(count_threads(), before + 2);
    assert_int_equal(hf_lock_set_release_wait(set, NULL), HF_RELEASE_DONE);
    hf_lock_servers_close(servers, NULL, NULL);
    servers = NULL;
    EVENTUALLY(30000, count_threads() == before);
}

static void on_a_loop_of_ones_own_it_has_one(void **state)
{
    uv_loop_t loop;
    hf_set_told t = {0};
    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    size_t before = count_threads();
    const hf_lock_client_opts looped = {HF_LOCK_CLIENT_OPTS_INIT, .loop = &loop};
    hf_lock_servers *other;
    assert_int_equal(
        hf_lock_servers_open(&other, fixture.urls, N, &looped, fixture.detail), HF_OK);
    assert_int_equal(count_threads(), before + 1);
    hf_lock_servers_close(other, hf_set_on_closed, &t);
    EVENTUALLY(30000, hf_set_turn(&loop) && t.closed == 1);
    assert_int_equal(uv_loop_close(&loop), 0);
    EVENTUALLY(30000, count_threads() == before);
}

/* ---- the thread of the events ---- */

static pthread_t threads[4]; /* by event */
static atomic_uint told[4];

static void on_event(hf_lock_set *set, hf_lock_event event, size_t member, void *arg)
{
    (void)set, (void)member, (void)arg;
    threads[event] = pthread_self();
    atomic_fetch_add(&told[event], 1);
}

/* One server is away, and another client has the lock at a second one. That one makes the
 * majority good again when it is asked again, which is the work of the service thread. */
static void all_events_come_on_the_thread_that_renews(void **state)
{
    (void)state;
    hf_redlock_opts opts = redlock;
    hf_lock_set *set;
    servers = hf_set_fixture_open(&fixture, FEW, true);
    opts.lease_ms = 9000;
    opts.node_timeout_ms = 2000;
    opts.on_event = on_event;
    assert_int_equal(hf_redlock_acquire_wait(servers, &opts, &set, fixture.detail),
                     HF_OK);
    EVENTUALLY(30000, hf_lock_set_standing(set) == FEW);
    (void)hf_fixture_command(&fixture.redis[0], "SET hf:lock:{n}:cell:n another:1");
    EVENTUALLY(30000, hf_lock_set_standing(set) == FEW - 1);
    hf_proxy_refuse(&fixture.proxy[1], true);
    hf_proxy_close_all(&fixture.proxy[1]);
    EVENTUALLY(30000, atomic_load(&told[HF_LOCK_EVENT_SUSPECT]) == 1);
    (void)hf_fixture_command(&fixture.redis[0], "DEL hf:lock:{n}:cell:n");
    EVENTUALLY(30000, atomic_load(&told[HF_LOCK_EVENT_HELD]) == 1);
    assert_int_equal(hf_lock_set_get_state(set), HF_LOCK_HELD);
    assert_true(
        pthread_equal(threads[HF_LOCK_EVENT_SUSPECT], threads[HF_LOCK_EVENT_HELD]));
    assert_int_equal(atomic_load(&told[HF_LOCK_EVENT_LOST]), 0);
    (void)hf_lock_set_release_wait(set, NULL);
}

/* ---- one that stands still ---- */

/* With one of three gone the deadline of the set is the earlier one of the other two, so
 * it passes three leases only if both were renewed all the time. */
static void a_server_that_stands_still_delays_no_renewal_of_the_others(void **state)
{
    (void)state;
    for (size_t stopped = 0; stopped < FEW; stopped++) {
        hf_set_fixture_begin(&fixture);
        servers = hf_set_fixture_open(&fixture, FEW, false);
        hf_lock_set *set = take();
        EVENTUALLY(30000, hf_lock_set_standing(set) == FEW);
        hf_fixture_signal(&fixture.redis[stopped], SIGSTOP);
        EVENTUALLY(30000, hf_lock_set_standing(set) == FEW - 1);
        uint64_t until_ns = hf_boot_ns() + 3 * LEASE_MS * HF_MS_NS;
        EVENTUALLY(60000, hf_lock_set_deadline_ns(set) >= until_ns ||
                              hf_lock_set_standing(set) != FEW - 1);
        assert_int_equal(hf_lock_set_standing(set), FEW - 1);
        assert_true(hf_lock_set_held(set));
        assert_int_equal(fixture.lost, 0);
        hf_fixture_signal(&fixture.redis[stopped], SIGCONT);
        EVENTUALLY(60000, hf_lock_set_standing(set) == FEW);
        (void)hf_lock_set_release_wait(set, NULL);
        hf_lock_servers_close(servers, NULL, NULL);
        servers = NULL;
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_client_of_five_servers_has_two_threads),
        TEST(on_a_loop_of_ones_own_it_has_one),
        TEST(all_events_come_on_the_thread_that_renews),
        TEST(a_server_that_stands_still_delays_no_renewal_of_the_others),
    };
    hf_set_fixture_up(&fixture, N, false);
    int failures = cmocka_run_group_tests_name("lock_set_threads", tests, NULL, NULL);
    hf_set_fixture_down(&fixture);
    return failures;
}
