/* cluster_locks_test.h - a cluster, two clients of its locks, and short words for them.
 * Included by one test program each. */
#ifndef HF_TESTS_CLUSTER_LOCKS_TEST_H
#define HF_TESTS_CLUSTER_LOCKS_TEST_H

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "redis/slots.h"
#include "tests/support/cluster.h"
#include "tests/support/lock_fixture.h"

enum {
    LONG_MS = 60000,
    SOON_MS = 10000,
    WAIT_MS = 60000,
    LEASE_MS = 12000,
    SHORT_MS = 6000,
    LASTING_MS = 120000, /* its third is longer than any test */
    PRIMARIES = 3,
    NAME = 32
};

static hf_cluster_fixture nodes;
static hf_lock_fixture fixture;
static char url[HF_CLUSTER_URL_SIZE];
static hf_lock_client *a, *b;

static inline int up(void **state)
{
    (void)state;
    hf_cluster_start(&nodes, PRIMARIES, true);
    hf_cluster_url(&nodes, url);
    return 0;
}

static inline int down(void **state)
{
    (void)state;
    hf_cluster_stop(&nodes);
    return 0;
}

static inline int begin(void **state)
{
    (void)state;
    a = hf_lock_fixture_open(&fixture, url);
    b = hf_lock_fixture_open(&fixture, url);
    return 0;
}

static inline int end(void **state)
{
    (void)state;
    hf_lock_client_close(a, NULL, NULL);
    hf_lock_client_close(b, NULL, NULL);
    return 0;
}

/* A name whose slot this primary has had at the start; each number is another one. */
static inline void name_at(size_t primary, unsigned number, char out[NAME])
{
    hf_cluster_queue(&nodes, primary, number, out);
}

static inline unsigned slot_of(const char *name)
{
    return hf_slot(name, strlen(name));
}

/* How many stand in line for it, or hold it; -1: no node serves it. */
static inline long long count(const char *name, const char *what)
{
    char key[16 * NAME];
    (void)snprintf(key, sizeof key, "hf:lock:{%s}:%s:%s", name, what, name);
    hf_fixture *owner = hf_cluster_owner(&nodes, key);
    return owner == NULL ? -1 : hf_fixture_number(owner, "ZCARD %s", key);
}

static inline hf_lock *take(hf_lock_client *locks, const char *name, uint32_t lease_ms)
{
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .lease_ms = lease_ms,
                               .wait_ms = WAIT_MS};
    return hf_lock_must(&fixture, locks, name, opts);
}

/* Begins to wait, and returns when it stands in line. */
static inline void wait_for(hf_lock_waiter *w, hf_lock_client *locks, const char *name,
                            uint32_t lease_ms)
{
    const long long before = count(name, "q");
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .lease_ms = lease_ms,
                               .wait_ms = WAIT_MS};
    hf_lock_begin(w, &fixture, locks, name, opts);
    EVENTUALLY(LONG_MS, count(name, "q") == before + 1 || w->done);
}

static inline void expect_renewal(const hf_lock *lock)
{
    const uint64_t deadline_ns = hf_lock_deadline_ns(lock);
    EVENTUALLY(LONG_MS, hf_lock_deadline_ns(lock) > deadline_ns || !hf_lock_held(lock));
    assert_true(hf_lock_held(lock));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

#endif
