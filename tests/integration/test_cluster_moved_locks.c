/* test_cluster_moved_locks.c - locks whose slot moves to another node, stays on the way,
 * or is sent from node to node: they are held, waited for and lost as elsewhere. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "tests/support/cluster_locks_test.h"

/* How many commands it has refused because of a slot. */
static long long refusals(hf_fixture *node)
{
    static const char *const codes[] = {"ASK", "TRYAGAIN"};
    long long n = 0;
    for (size_t i = 0; i < HF_COUNT(codes); i++) {
        char field[64];
        (void)snprintf(field, sizeof field, "errorstat_%s:count=", codes[i]);
        const char *at = strstr(hf_fixture_command(node, "INFO errorstats"), field);
        n += at == NULL ? 0 : strtoll(at + strlen(field), NULL, 10);
    }
    return n;
}

/* Renewals fail while the keys are on the way, and go on at the new node. */
static void a_held_lock_follows_its_slot(void **state)
{
    char name[NAME];
    (void)state;
    name_at(0, 5, name);
    hf_lock *lock = take(a, name, LEASE_MS);
    const uint64_t fence = hf_lock_fence(lock);
    hf_cluster_move_begin(&nodes, slot_of(name), &nodes.nodes[1]);
    hf_cluster_move_end(&nodes, slot_of(name), &nodes.nodes[1]);
    expect_renewal(lock);
    expect_renewal(lock);
    assert_int_equal(
        hf_fixture_number(&nodes.nodes[1], "ZCARD hf:lock:{%s}:x:%s", name, name), 1);
    hf_lock_released(lock);
    lock = take(b, name, LEASE_MS);
    assert_true(hf_lock_fence(lock) > fence);
    hf_lock_released(lock);
}

static void a_waiting_lock_follows_its_slot(void **state)
{
    char name[NAME];
    hf_lock_waiter w;
    (void)state;
    name_at(1, 6, name);
    hf_lock *lock = take(a, name, LASTING_MS);
    wait_for(&w, b, name, LASTING_MS);
    hf_cluster_move_begin(&nodes, slot_of(name), &nodes.nodes[2]);
    hf_cluster_move_end(&nodes, slot_of(name), &nodes.nodes[2]);
    EVENTUALLY(LONG_MS, strstr(hf_fixture_command(&nodes.nodes[2], "CLIENT LIST"),
                               "cmd=blpop") != NULL);
    hf_lock_released(lock);
    EVENTUALLY(SOON_MS, atomic_load(&w.done));
    hf_lock_wait_released(&w);
}

/* The scripts are refused as long as both nodes have a part. That the node was reached
 * counts, so the time to connect is no limit. */
static void a_lock_backs_off_while_its_slot_moves(void **state)
{
    enum { CONNECT_MS = 5000 };
    char name[NAME];
    hf_lock_client *locks;
    hf_lock_waiter w;
    (void)state;
    name_at(2, 7, name);
    const hf_lock_client_opts opts = {
        HF_LOCK_CLIENT_OPTS_INIT,
        .server = HF_SERVER(.url = url, .connect_timeout_ms = CONNECT_MS)};
    assert_int_equal(hf_lock_client_open(&locks, &opts, fixture.detail), HF_OK);
    hf_lock_released(take(a, name, LEASE_MS)); /* its counter of fences is there */
    const long long before = refusals(&nodes.nodes[2]);
    hf_cluster_move_begin(&nodes, slot_of(name), &nodes.nodes[0]);
    const uint64_t until_ns = hf_boot_ns() + 2 * CONNECT_MS * HF_MS_NS;
    hf_lock_begin(&w, &fixture, locks, name,
                  (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = WAIT_MS});
    EVENTUALLY(LONG_MS,
               (refusals(&nodes.nodes[2]) >= before + 3 && hf_boot_ns() >= until_ns) ||
                   atomic_load(&w.done));
    assert_false(atomic_load(&w.done));
    hf_cluster_move_end(&nodes, slot_of(name), &nodes.nodes[0]);
    EVENTUALLY(LONG_MS, atomic_load(&w.done));
    hf_lock_wait_released(&w);
    hf_lock_client_close(locks, NULL, NULL);
}

/* Nobody renews it: its holder gives up by its own clock, before another can have it. */
static void a_lock_whose_slot_stays_on_the_way_is_lost(void **state)
{
    char name[NAME];
    hf_lock_waiter w;
    (void)state;
    name_at(0, 8, name);
    hf_lock *lock = take(a, name, SHORT_MS);
    const uint64_t fence = hf_lock_fence(lock);
    hf_cluster_move_begin(&nodes, slot_of(name), &nodes.nodes[2]);
    hf_lock_begin(&w, &fixture, b, name,
                  (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = WAIT_MS});
    EVENTUALLY(LONG_MS, !hf_lock_held(lock));
    assert_int_equal(hf_lock_why(lock), HF_LOCK_DEADLINE);
    assert_false(atomic_load(&w.done));
    hf_cluster_move_end(&nodes, slot_of(name), &nodes.nodes[2]);
    hf_lock_wait_end(&w);
    assert_int_equal(w.err, HF_OK);
    assert_true(hf_lock_fence(w.lock) > fence);
    hf_lock_released(w.lock);
    hf_lock_release(lock, NULL, NULL);
}

/* The connection is in order: the last refusal is the reason. */
static void a_question_says_that_the_slot_is_on_the_way(void **state)
{
    enum { CONNECT_MS = 3000 };
    char name[NAME];
    hf_lock_client *locks;
    hf_lock_look look = {HF_LOCK_LOOK_INIT};
    (void)state;
    name_at(0, 9, name);
    const hf_lock_client_opts opts = {
        HF_LOCK_CLIENT_OPTS_INIT,
        .server = HF_SERVER(.url = url, .connect_timeout_ms = CONNECT_MS)};
    assert_int_equal(hf_lock_client_open(&locks, &opts, fixture.detail), HF_OK);
    hf_lock_released(take(locks, name, LEASE_MS));
    hf_cluster_move_begin(&nodes, slot_of(name), &nodes.nodes[2]);
    hf_err err; /* the answer of its last request may be too late */
    EVENTUALLY(LONG_MS, (err = hf_lock_look_at(locks, name, 1, &look, fixture.detail)) !=
                            HF_UNSURE);
    hf_cluster_move_end(&nodes, slot_of(name), &nodes.nodes[2]);
    assert_int_equal(err, HF_UNSERVED);
    assert_int_equal(strncmp(fixture.detail, "ASK ", 4), 0);
    hf_lock_client_close(locks, NULL, NULL);
}

/* Two nodes that take each other for the owner; no slot of a live cluster stays so. */
static void a_lock_that_nodes_send_to_each_other_is_unserved(void **state)
{
    enum { TRY_MS = 800 };
    char name[NAME], ids[2][64];
    hf_lock *lock;
    (void)state;
    name_at(0, 60, name);
    const unsigned slot = slot_of(name);
    for (size_t i = 0; i < HF_COUNT(ids); i++)
        (void)snprintf(ids[i], sizeof ids[i], "%s",
                       hf_fixture_command(&nodes.nodes[i], "CLUSTER MYID"));
    assert_string_equal(
        hf_fixture_command(&nodes.nodes[0], "CLUSTER SETSLOT %u NODE %s", slot, ids[1]),
        "OK");
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .wait_ms = TRY_MS};
    hf_err err; /* as above */
    EVENTUALLY(LONG_MS,
               (err = hf_lock_take(&fixture, a, name, opts, &lock)) != HF_UNSURE);
    assert_string_equal(
        hf_fixture_command(&nodes.nodes[0], "CLUSTER SETSLOT %u NODE %s", slot, ids[0]),
        "OK");
    assert_int_equal(err, HF_UNSERVED);
    assert_int_equal(strncmp(fixture.detail, "MOVED ", 6), 0);
    hf_lock_released(take(a, name, LEASE_MS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_held_lock_follows_its_slot),
        TEST(a_waiting_lock_follows_its_slot),
        TEST(a_lock_backs_off_while_its_slot_moves),
        TEST(a_lock_whose_slot_stays_on_the_way_is_lost),
        TEST(a_question_says_that_the_slot_is_on_the_way),
        TEST(a_lock_that_nodes_send_to_each_other_is_unserved),
    };
    return cmocka_run_group_tests(tests, up, down);
}
