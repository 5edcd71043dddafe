/* test_cluster_locks.c - locks in a cluster: each is at the node that has the slot of its
 * tag, and never has two holders. */
#include <signal.h>
#include <string.h>

#include <uv.h>

#include "base/base.h"
#include "holdfast/lock_set.h"
#include "tests/support/cli_fixture.h"
#include "tests/support/cluster_locks_test.h"

/* More tags than a client has connections to listen for. */
enum { MANY = 40 };

/* ---- where they are ---- */

/* Of each of them. They are renewed side by side. */
static void expect_renewals(hf_lock *const held[2 * PRIMARIES])
{
    uint64_t deadline_ns[2 * PRIMARIES];
    for (size_t i = 0; i < HF_COUNT(deadline_ns); i++)
        deadline_ns[i] = hf_lock_deadline_ns(held[i]);
    for (size_t i = 0; i < HF_COUNT(deadline_ns); i++) {
        EVENTUALLY(LONG_MS, hf_lock_deadline_ns(held[i]) > deadline_ns[i] ||
                                !hf_lock_held(held[i]));
        assert_true(hf_lock_held(held[i]));
    }
}

/* Two at each node, held at once: no request names two of their slots. */
static void locks_are_at_the_nodes_of_their_tags(void **state)
{
    char names[2 * PRIMARIES][NAME];
    hf_lock *held[2 * PRIMARIES];
    (void)state;
    for (unsigned i = 0; i < HF_COUNT(held); i++) {
        name_at(i % PRIMARIES, i / PRIMARIES, names[i]);
        held[i] = take(a, names[i], SHORT_MS);
        assert_int_equal(hf_fixture_number(&nodes.nodes[i % PRIMARIES],
                                           "ZCARD hf:lock:{%s}:x:%s", names[i], names[i]),
                         1);
        hf_lock_refused(&fixture, b, names[i], (hf_lock_opts){HF_LOCK_OPTS_INIT},
                        HF_TAKEN);
    }
    for (unsigned round = 0; round < 3; round++)
        expect_renewals(held);
    for (size_t i = 0; i < HF_COUNT(held); i++) {
        hf_lock_released(held[i]);
        assert_int_equal(count(names[i], "x"), 0);
    }
    assert_int_equal(atomic_load(&fixture.lost), 0);
}

static void each_form_of_a_lock_works(void **state)
{
    char name[NAME];
    (void)state;
    name_at(1, 1, name);
    hf_lock *lock = hf_lock_must(&fixture, a, name,
                                 (hf_lock_opts){HF_LOCK_OPTS_INIT, .form = HF_LOCK_SPIN});
    assert_int_equal(hf_lock_extend_wait(lock, 2 * LEASE_MS, fixture.detail), HF_OK);
    hf_lock_released(lock);
    lock = take(a, name, LEASE_MS);
    assert_int_equal(hf_lock_downgrade_wait(lock, fixture.detail), HF_OK);
    hf_lock *shared = hf_lock_must(
        &fixture, b, name, (hf_lock_opts){HF_LOCK_OPTS_INIT, .mode = HF_LOCK_SHARED});
    hf_lock_released(shared);
    uint64_t highest = 0;
    const uint64_t fence = hf_lock_fence(lock);
    assert_int_equal(hf_fence_check(b, name, fence, "o", 1000, &highest, fixture.detail),
                     HF_OK);
    assert_int_equal(highest, fence);
    hf_lock_released(lock);
}

/* A lease of two minutes is not renewed within the test: only a message can tell. */
static void a_release_is_heard_at_each_node(void **state)
{
    char names[PRIMARIES][NAME];
    hf_lock *held[PRIMARIES];
    hf_lock_waiter waiters[PRIMARIES];
    (void)state;
    for (size_t i = 0; i < PRIMARIES; i++) {
        name_at(i, 2, names[i]);
        held[i] = take(a, names[i], LASTING_MS);
        wait_for(&waiters[i], b, names[i], LASTING_MS);
    }
    for (size_t i = 0; i < PRIMARIES; i++) {
        const uint64_t fence = hf_lock_fence(held[i]);
        hf_lock_released(held[i]);
        EVENTUALLY(SOON_MS, atomic_load(&waiters[i].done));
        hf_lock_wait_end(&waiters[i]);
        assert_int_equal(waiters[i].err, HF_OK);
        assert_true(hf_lock_fence(waiters[i].lock) > fence);
        hf_lock_released(waiters[i].lock);
    }
}

static void what_is_taken_away_is_heard_at_each_node(void **state)
{
    (void)state;
    for (size_t i = 0; i < PRIMARIES; i++) {
        char name[NAME];
        size_t n = 0;
        name_at(i, 3, name);
        hf_lock *lock = take(a, name, LASTING_MS);
        hf_fixture *node = &nodes.nodes[i];
        EVENTUALLY(LONG_MS,
                   strstr(hf_fixture_command(node, "CLIENT LIST"), "cmd=blpop") != NULL);
        assert_int_equal(hf_lock_force(b, name, NULL, &n, fixture.detail), HF_OK);
        assert_int_equal(n, 1);
        EVENTUALLY(SOON_MS, !hf_lock_held(lock));
        assert_int_equal(hf_lock_why(lock), HF_LOCK_FORCED);
        hf_lock_release(lock, NULL, NULL);
    }
}

/* The newest have no connection of their own, and ask. */
static void a_client_waits_for_more_locks_than_it_listens_for(void **state)
{
    hf_lock *held[MANY];
    hf_lock_waiter waiters[MANY];
    char names[MANY][NAME];
    (void)state;
    for (unsigned i = 0; i < MANY; i++) {
        name_at(i % PRIMARIES, 10 + i, names[i]);
        held[i] = take(a, names[i], LASTING_MS);
        wait_for(&waiters[i], b, names[i], LASTING_MS);
    }
    for (unsigned i = MANY; i-- > 0;) {
        hf_lock_released(held[i]);
        EVENTUALLY(SOON_MS, atomic_load(&waiters[i].done));
        hf_lock_wait_released(&waiters[i]);
    }
}

typedef struct found {
    char (*names)[NAME];
    bool seen[PRIMARIES];
} found;

static bool on_name(const char *name, void *arg)
{
    found *f = arg;
    for (size_t i = 0; i < PRIMARIES; i++)
        if (strcmp(name, f->names[i]) == 0)
            f->seen[i] = true;
    return true;
}

static void the_locks_of_all_nodes_are_listed(void **state)
{
    char names[PRIMARIES][NAME];
    hf_lock *held[PRIMARIES];
    found f = {.names = names};
    (void)state;
    for (size_t i = 0; i < PRIMARIES; i++) {
        name_at(i, 4, names[i]);
        held[i] = take(a, names[i], LEASE_MS);
    }
    hf_lock_client *fresh = hf_lock_fixture_open(&fixture, url);
    if (hf_lock_list(fresh, on_name, &f, fixture.detail) != HF_OK)
        fail_msg("%s", fixture.detail);
    hf_lock_client_close(fresh, NULL, NULL);
    for (size_t i = 0; i < PRIMARIES; i++) {
        assert_true(f.seen[i]);
        hf_lock_released(held[i]);
    }
}

/* ---- nodes fail ---- */

static void a_planned_failover_keeps_a_lock_that_replicas_have(void **state)
{
    char name[NAME];
    (void)state;
    name_at(0, 20, name);
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .lease_ms = LEASE_MS,
                               .wait_ms = WAIT_MS, .wait_replicas = 1};
    hf_lock *lock = hf_lock_must(&fixture, a, name, opts);
    hf_cluster_promote(&nodes.nodes[PRIMARIES]);
    hf_lock_refused(&fixture, b, name, (hf_lock_opts){HF_LOCK_OPTS_INIT}, HF_TAKEN);
    assert_true(hf_lock_held(lock));
    expect_renewal(lock);
    hf_lock_released(lock);
    hf_cluster_promote(&nodes.nodes[0]);
}

/* The one that waits has it only when the other one has given up. */
static void a_failover_never_gives_two_holders(void **state)
{
    char name[NAME];
    hf_lock_waiter w;
    (void)state;
    name_at(2, 21, name);
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .lease_ms = SHORT_MS,
                               .wait_ms = WAIT_MS, .wait_replicas = 1};
    hf_lock *lock = hf_lock_must(&fixture, a, name, opts);
    const uint64_t fence = hf_lock_fence(lock);
    wait_for(&w, b, name, SHORT_MS);
    hf_fixture_kill(&nodes.nodes[2], SIGKILL);
    hf_cluster_take_over(&nodes.nodes[PRIMARIES + 2]);
    while (!atomic_load(&w.done) && hf_lock_held(lock))
        hf_test_pause_ms(1);
    assert_false(atomic_load(&w.done) && hf_lock_held(lock));
    hf_lock_release(lock, NULL, NULL);
    hf_lock_wait_end(&w);
    assert_int_equal(w.err, HF_OK);
    assert_true(hf_lock_fence(w.lock) > fence);
    expect_renewal(w.lock);
    hf_lock_released(w.lock);
}

/* ---- a loop of the caller's own ---- */

typedef struct borrowed {
    hf_lock_client *locks;
    unsigned held, given_back;
    bool closed;
} borrowed;

static void on_end(void *arg)
{
    borrowed *c = arg;
    c->closed = true;
}

static void on_back(hf_lock *lock, hf_lock_release_result result, size_t left, void *arg)
{
    borrowed *c = arg;
    (void)lock, (void)left;
    assert_int_equal(result, HF_RELEASE_DONE);
    if (++c->given_back == PRIMARIES)
        hf_lock_client_close(c->locks, on_end, c);
}

static void on_had(hf_lock *lock, hf_err err, const char *detail, void *arg)
{
    borrowed *c = arg;
    if (err != HF_OK)
        fail_msg("%s: %s", hf_err_name(err), detail);
    c->held++;
    hf_lock_release(lock, on_back, c);
}

static void a_client_runs_on_a_borrowed_loop(void **state)
{
    uv_loop_t loop;
    borrowed c = {.held = 0};
    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    const hf_lock_client_opts opts = {HF_LOCK_CLIENT_OPTS_INIT,
                                      .server = HF_SERVER(.url = url), .loop = &loop};
    assert_int_equal(hf_lock_client_open(&c.locks, &opts, fixture.detail), HF_OK);
    for (size_t i = 0; i < PRIMARIES; i++) {
        char text[NAME];
        const char *name = text;
        name_at(i, 33, text);
        const hf_lock_opts one = {HF_LOCK_OPTS_INIT, .names = &name, .n_names = 1};
        assert_int_equal(hf_lock_acquire(c.locks, &one, on_had, &c, NULL, fixture.detail),
                         HF_OK);
    }
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(c.held, PRIMARIES);
    assert_true(c.closed);
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* ---- several locks ---- */

/* One request names one tag; a tag is in one slot. */
static void one_acquisition_has_one_tag(void **state)
{
    char one[NAME + 2], two[NAME + 2], other[NAME];
    hf_lock *lock;
    (void)state;
    name_at(0, 30, other);
    (void)snprintf(one, sizeof one, "%s/a", other);
    (void)snprintf(two, sizeof two, "%s/b", other);
    name_at(1, 30, other);
    const char *apart[] = {one, other}, *together[] = {one, two};
    hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .names = apart, .n_names = 2};
    assert_int_equal(hf_lock_take(&fixture, a, NULL, opts, &lock), HF_INVALID);
    assert_non_null(strstr(fixture.detail, "expected locks of one tag, as in"));
    opts.names = together;
    assert_int_equal(hf_lock_take(&fixture, a, NULL, opts, &lock), HF_OK);
    hf_lock_released(lock);
}

/* Its members may have any slots: they are taken one after the other. */
static void a_multilock_has_members_at_several_nodes(void **state)
{
    char one[NAME], two[NAME];
    const char *const urls[] = {url}, *names[] = {one, two};
    hf_lock_servers *servers;
    hf_lock_set *set;
    (void)state;
    name_at(0, 31, one);
    name_at(1, 31, two);
    const hf_lock_opts locks[] = {{HF_LOCK_OPTS_INIT, .names = &names[0], .n_names = 1},
                                  {HF_LOCK_OPTS_INIT, .names = &names[1], .n_names = 1}};
    const hf_multilock_member members[] = {{HF_MULTILOCK_MEMBER_INIT, .lock = &locks[0]},
                                           {HF_MULTILOCK_MEMBER_INIT, .lock = &locks[1]}};
    const hf_lock_client_opts opts = {HF_LOCK_CLIENT_OPTS_INIT};
    assert_int_equal(hf_lock_servers_open(&servers, urls, 1, &opts, fixture.detail),
                     HF_OK);
    const hf_multilock_opts multi = {HF_MULTILOCK_OPTS_INIT, .members = members,
                                     .n_members = 2, .wait_ms = WAIT_MS};
    hf_err err = hf_multilock_acquire_wait(servers, &multi, &set, fixture.detail);
    if (err != HF_OK)
        fail_msg("%s: %s", hf_err_name(err), fixture.detail);
    hf_lock_refused(&fixture, b, one, (hf_lock_opts){HF_LOCK_OPTS_INIT}, HF_TAKEN);
    hf_lock_refused(&fixture, b, two, (hf_lock_opts){HF_LOCK_OPTS_INIT}, HF_TAKEN);
    hf_lock_set_release(set, NULL, NULL);
    hf_lock_servers_close(servers, NULL, NULL);
    EVENTUALLY(SOON_MS, count(one, "x") == 0 && count(two, "x") == 0);
}

/* Its servers have to fail independently of each other. */
static void a_redlock_refuses_a_cluster(void **state)
{
    const char *const urls[] = {nodes.url, "redis://127.0.0.1:1", "redis://127.0.0.1:2"};
    hf_lock_servers *servers;
    hf_lock_set *set = NULL;
    (void)state;
    const hf_lock_client_opts opts = {HF_LOCK_CLIENT_OPTS_INIT};
    assert_int_equal(hf_lock_servers_open(&servers, urls, 3, &opts, fixture.detail),
                     HF_OK);
    const hf_redlock_opts red = {HF_REDLOCK_OPTS_INIT, .name = "n"};
    assert_int_equal(hf_redlock_acquire_wait(servers, &red, &set, fixture.detail),
                     HF_INVALID);
    assert_non_null(strstr(fixture.detail, "found the cluster"));
    hf_lock_servers_close(servers, NULL, NULL);
}

/* ---- the command ---- */

static hf_cli_fixture cli;

static void run(const char *line, int code, const char *part)
{
    char env[HF_CLUSTER_URL_SIZE + 16];
    (void)snprintf(env, sizeof env, "REDIS_URL=%s", url);
    int got = hf_cli_fixture_run(&cli, line, NULL, (const char *const[]){env, NULL});
    if (got != code || (strstr(cli.out, part) == NULL && strstr(cli.err, part) == NULL))
        fail_msg("%s: expected %d and '%s', found %d\n%s%s", line, code, part, got,
                 cli.out, cli.err);
}

static void the_command_works(void **state)
{
    char names[PRIMARIES][NAME], line[4 * NAME];
    hf_lock *held[PRIMARIES];
    (void)state;
    hf_cli_fixture_start(&cli, HF_TEST_COMMAND);
    for (size_t i = 0; i < PRIMARIES; i++) {
        name_at(i, 32, names[i]);
        (void)snprintf(line, sizeof line, "lock %s -- echo held", names[i]);
        run(line, 0, "held");
        held[i] = take(a, names[i], LASTING_MS);
        (void)snprintf(line, sizeof line, "lock -n %s -- true", names[i]);
        run(line, 1, "");
    }
    for (size_t i = 0; i < PRIMARIES; i++) {
        run("locks list", 0, names[i]);
        (void)snprintf(line, sizeof line, "locks show %s", names[i]);
        run(line, 0, "exclusive");
        (void)snprintf(line, sizeof line, "locks revoke %s", names[i]);
        run(line, 0, "1");
        (void)snprintf(line, sizeof line, "locks release %s --force --yes", names[i]);
        run(line, 0, "1");
        EVENTUALLY(SOON_MS, !hf_lock_held(held[i]));
        hf_lock_release(held[i], NULL, NULL);
    }
    (void)snprintf(line, sizeof line, "lock %s,%s -- true", names[0], names[1]);
    run(line, 64, "names of one tag");
    hf_cli_fixture_stop(&cli);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(locks_are_at_the_nodes_of_their_tags),
        TEST(each_form_of_a_lock_works),
        TEST(a_release_is_heard_at_each_node),
        TEST(what_is_taken_away_is_heard_at_each_node),
        TEST(a_client_waits_for_more_locks_than_it_listens_for),
        TEST(the_locks_of_all_nodes_are_listed),
        TEST(a_client_runs_on_a_borrowed_loop),
        TEST(one_acquisition_has_one_tag),
        TEST(a_multilock_has_members_at_several_nodes),
        TEST(a_redlock_refuses_a_cluster),
        TEST(the_command_works),
        TEST(a_planned_failover_keeps_a_lock_that_replicas_have),
        TEST(a_failover_never_gives_two_holders),
    };
    return cmocka_run_group_tests(tests, up, down);
}
