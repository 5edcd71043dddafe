/* test_lock_set_tls.c - locks over several servers by TLS: each server is reached by its
 * own connections, which trust it by the options of the client. */
#include <string.h>

#include "base/base.h"
#include "tests/support/set_fixture.h"
#include "tests/support/tls_front.h"

enum { N = 3, LEASE_MS = 4000, WAIT_MS = 60000 };

static hf_set_fixture fixture;
static hf_tls_front fronts[N];
static bool open_fronts[N];

static void open_front(size_t i)
{
    hf_tls_front_start(&fronts[i], fixture.redis[i].socket);
    open_fronts[i] = true;
}

static void close_front(size_t i)
{
    if (open_fronts[i])
        hf_tls_front_stop(&fronts[i]);
    open_fronts[i] = false;
}

static int begin(void **state)
{
    (void)state;
    hf_set_fixture_begin(&fixture);
    for (size_t i = 0; i < N; i++)
        open_front(i);
    return 0;
}

static int end(void **state)
{
    (void)state;
    for (size_t i = 0; i < N; i++)
        close_front(i);
    return 0;
}

static hf_lock_servers *open_servers(const hf_tls_opts *tls)
{
    const char *urls[N];
    hf_lock_servers *servers = NULL;
    for (size_t i = 0; i < N; i++)
        urls[i] = fronts[i].url;
    const hf_lock_client_opts opts = {HF_LOCK_CLIENT_OPTS_INIT,
                                      .server = HF_SERVER(.tls = tls)};
    if (hf_lock_servers_open(&servers, urls, N, &opts, fixture.detail) != HF_OK)
        fail_msg("no client: %s", fixture.detail);
    return servers;
}

static hf_lock_set *must(hf_lock_servers *servers)
{
    hf_lock_set *set;
    const hf_redlock_opts opts = {HF_REDLOCK_OPTS_INIT,
                                  .name = "n",
                                  .wait_ms = WAIT_MS,
                                  .lease_ms = LEASE_MS,
                                  .node_timeout_ms = LEASE_MS / 4,
                                  .on_event = hf_set_fixture_on_event,
                                  .event_arg = &fixture};
    if (hf_redlock_acquire_wait(servers, &opts, &set, fixture.detail) != HF_OK)
        fail_msg("not held: %s", fixture.detail);
    return set;
}

static void it_is_held_and_renewed(void **state)
{
    (void)state;
    hf_lock_servers *servers = open_servers(NULL);
    hf_lock_set *set = must(servers);
    EVENTUALLY(WAIT_MS, hf_lock_set_standing(set) == N);
    const uint64_t first_ns = hf_lock_set_deadline_ns(set);
    EVENTUALLY(WAIT_MS, hf_lock_set_deadline_ns(set) > first_ns + LEASE_MS * 1000000ULL);
    assert_int_equal(hf_set_fixture_count(&fixture, N, "n"), N);
    assert_int_equal(hf_lock_set_release_wait(set, NULL), HF_RELEASE_DONE);
    assert_int_equal(hf_set_fixture_count(&fixture, N, "n"), 0);
    hf_lock_servers_close(servers, NULL, NULL);
}

static void it_outlives_a_server_that_cannot_be_reached(void **state)
{
    (void)state;
    hf_lock_servers *servers = open_servers(NULL);
    hf_lock_set *set = must(servers);
    EVENTUALLY(WAIT_MS, hf_lock_set_standing(set) == N);
    close_front(1);
    EVENTUALLY(WAIT_MS, hf_lock_set_standing(set) == N - 1);
    assert_true(hf_lock_set_held(set));
    assert_int_equal(hf_lock_set_release_wait(set, NULL), HF_RELEASE_DONE);
    assert_int_equal(atomic_load(&fixture.lost), 0);
    hf_lock_servers_close(servers, NULL, NULL);
}

static void servers_that_are_not_trusted_give_none(void **state)
{
    static const char *const name = "n";
    const hf_lock_opts lock = {HF_LOCK_OPTS_INIT, .names = &name, .n_names = 1};
    const hf_multilock_member members[] = {
        {HF_MULTILOCK_MEMBER_INIT, .server = 0, .lock = &lock},
        {HF_MULTILOCK_MEMBER_INIT, .server = 2, .lock = &lock}};
    const hf_multilock_opts opts = {HF_MULTILOCK_OPTS_INIT, .members = members,
                                    .n_members = HF_COUNT(members)};
    hf_lock_set *set;
    (void)state;
    hf_lock_servers *servers =
        open_servers(&(hf_tls_opts){HF_TLS_OPTS_INIT, .server_name = "other.example"});
    assert_int_equal(hf_multilock_acquire_wait(servers, &opts, &set, fixture.detail),
                     HF_AUTH);
    assert_non_null(strstr(fixture.detail, "the server's certificate is refused"));
    assert_int_equal(hf_set_fixture_count(&fixture, N, "n"), 0);
    hf_lock_servers_close(servers, NULL, NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(it_is_held_and_renewed),
        TEST(it_outlives_a_server_that_cannot_be_reached),
        TEST(servers_that_are_not_trusted_give_none),
    };
    hf_set_fixture_up(&fixture, N, false);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_set_fixture_down(&fixture);
    return failures;
}
