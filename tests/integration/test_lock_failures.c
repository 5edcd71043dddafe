/* test_lock_failures.c - what must not happen when processes stop, die, or come late:
 * rows F1 to F10 of the checklist in docs/locks.md, each by a test of its name. */
#include <ctype.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "lock_scripts.h"
#include "tests/support/lock_fixture.h"
#include "tests/support/replicas.h"

enum { LONG_MS = 30000, PATIENT_MS = 600000, RENEWED_MS = 2000, FILE_SIZE = 256 << 10 };

static hf_lock_fixture fixture;

/* ---- F1 ---- */

static bool has_word(const char *path, const char *word)
{
    static char text[FILE_SIZE];
    (void)hf_read_file(path, text, sizeof text);
    for (char *c = text; *c != '\0'; c++)
        *c = (char)toupper((unsigned char)*c);
    return strstr(text, word) != NULL;
}

/* A lock that is set first and given its end by a second command outlives who dies in
 * between. No source sends that, and nothing here did. */
static void f1_a_lock_and_its_end_are_one_command(void **state)
{
    static const char *const places[] = {"/lock/lua/*.lua",  "/lock/*.c",
                                         "/queue/lua/*.lua", "/queue/*.c",
                                         "/admin/*.c",       "/redis/*.c"};
    char pattern[512];
    size_t looked = 0;
    (void)state;
    for (size_t p = 0; p < HF_COUNT(places); p++) {
        glob_t found;
        (void)snprintf(pattern, sizeof pattern, "%s%s", HF_TEST_SOURCE, places[p]);
        assert_int_equal(glob(pattern, 0, NULL, &found), 0);
        for (size_t i = 0; i < found.gl_pathc; i++, looked++)
            if (has_word(found.gl_pathv[i], "SETNX"))
                fail_msg("%s sets a lock without its end", found.gl_pathv[i]);
        globfree(&found);
    }
    assert_true(looked > 20);
    (void)hf_fixture_command(&fixture.redis, "CONFIG RESETSTAT");
    hf_lock *lock = hf_lock_must(
        &fixture, fixture.a, "n",
        (hf_lock_opts){HF_LOCK_OPTS_INIT, .form = HF_LOCK_SPIN, .lease_ms = PATIENT_MS});
    assert_int_equal(hf_fixture_calls(&fixture.redis, "set"),
                     2); /* the fence, and the lock */
    assert_int_equal(hf_fixture_calls(&fixture.redis, "expire") +
                         hf_fixture_calls(&fixture.redis, "pexpire") +
                         hf_fixture_calls(&fixture.redis, "pexpireat"),
                     0);
    assert_true(hf_fixture_number(&fixture.redis, "PTTL hf:lock:{n}:cell:n") > 0);
    hf_lock_released(lock);
}

/* ---- F2 ---- */

static void f2_ex_and_px_together_are_an_error(void **state)
{
    (void)state;
    assert_string_equal(hf_fixture_command(&fixture.redis, "SET k v EX 10 PX 5000"),
                        "(error) ERR syntax error");
    assert_string_equal(hf_fixture_command(&fixture.redis, "SET k v PX 5000 EX 10"),
                        "(error) ERR syntax error");
    assert_int_equal(hf_fixture_number(&fixture.redis, "EXISTS k"), 0);
}

/* ---- F3 ---- */

/* Its process stands still past the lease, and wakes up when another has the lock. */
static void f3_a_stopped_holder_neither_believes_nor_releases(void **state)
{
    hf_locker stopped;
    hf_locker_note note;
    (void)state;
    hf_locker_start(&stopped, fixture.redis.dir, fixture.redis.url, "n", "lease=1000");
    EVENTUALLY(LONG_MS, hf_locker_said(&stopped, "held", &note));
    uint64_t fence = note.value;
    hf_proc_signal(&stopped.proc, SIGSTOP);
    uint64_t asked_ns = hf_boot_ns();
    hf_lock *lock = hf_lock_must(
        &fixture, fixture.a, "n",
        (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LONG_MS, .wait_ms = LONG_MS});
    assert_true(hf_lock_fence(lock) > fence);
    hf_proc_signal(&stopped.proc, SIGCONT);
    assert_true(hf_proc_wait(&stopped.proc, LONG_MS));
    assert_int_equal(stopped.proc.status, 0);
    assert_true(hf_locker_said(&stopped, "believed", &note));
    /* One look may have begun before it was stopped; none after the other's grant. */
    assert_true(note.ns < asked_ns + 1000 * HF_MS_NS);
    assert_true(hf_locker_said(&stopped, "lost", &note));
    assert_true(hf_locker_said(&stopped, "released", &note));
    assert_int_equal(note.value, HF_RELEASE_NOT_OWNER);
    assert_true(hf_lock_held(lock));
    hf_lock_released(lock);
}

/* ---- F4 ---- */

/* Whoever compares, and deletes by a second command, deletes what another took meanwhile;
 * so this sees it if it happens. Here both are one script. */
static void f4_nothing_comes_between_comparing_and_deleting(void **state)
{
    const hf_lock_opts brief = {HF_LOCK_OPTS_INIT, .form = HF_LOCK_SPIN, .lease_ms = 1000,
                                .fixed = true};
    const hf_lock_opts next = {HF_LOCK_OPTS_INIT, .form = HF_LOCK_SPIN,
                               .lease_ms = LONG_MS, .wait_ms = LONG_MS};
    char mine[128];
    (void)state;
    for (int by_script = 0; by_script < 2; by_script++) {
        hf_lock *old = hf_lock_must(&fixture, fixture.a, "n", brief);
        (void)snprintf(mine, sizeof mine, "%s",
                       hf_fixture_command(&fixture.redis, "GET hf:lock:{n}:cell:n"));
        assert_memory_equal(mine, hf_lock_owner_of(old), 32); /* it is mine, so ... */
        hf_lock *lock = hf_lock_must(&fixture, fixture.b, "n", next);
        if (by_script) {
            assert_int_equal(hf_lock_release_wait(old, NULL), HF_RELEASE_NOT_OWNER);
            assert_int_equal(
                hf_fixture_number(&fixture.redis, "EXISTS hf:lock:{n}:cell:n"), 1);
            hf_lock_released(lock);
        } else {
            assert_int_equal(hf_fixture_number(&fixture.redis, "DEL hf:lock:{n}:cell:n"),
                             1);
            (void)hf_lock_release_wait(old, NULL);
            assert_int_equal(hf_lock_release_wait(lock, NULL), HF_RELEASE_EXPIRED);
        }
    }
}

/* ---- F5 ---- */

/* False: the machine itself stood still for so long that it proves nothing. */
static bool holds_for(hf_lock *lock, uint32_t lease_ms)
{
    uint64_t start_ms = hf_test_now_ms(), last_ms = start_ms, gap_ms = 0;
    while (last_ms - start_ms < 5 * lease_ms) {
        hf_test_pause_ms(5);
        uint64_t now_ms = hf_test_now_ms();
        gap_ms = now_ms - last_ms > gap_ms ? now_ms - last_ms : gap_ms;
        last_ms = now_ms;
        if (!hf_lock_held(lock)) {
            if (gap_ms < lease_ms / 8)
                fail_msg("lost after %d ms", (int)(now_ms - start_ms));
            return false;
        }
    }
    return true;
}

static void f5_work_may_outlast_the_lease(void **state)
{
    enum { LEASE = 2000, ROUNDS = 10 };
    bool held = false;
    (void)state;
    for (int i = 0; i < ROUNDS && !held; i++) {
        hf_lock *line =
            hf_lock_must(&fixture, fixture.a, "n",
                         (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LEASE});
        hf_lock *cell = hf_lock_must(
            &fixture, fixture.a, "c",
            (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LEASE, .form = HF_LOCK_SPIN});
        held = holds_for(line, LEASE) && hf_lock_held(cell);
        if (held) {
            hf_lock_released(line);
            hf_lock_released(cell);
        } else {
            (void)hf_lock_release_wait(line, NULL);
            (void)hf_lock_release_wait(cell, NULL);
        }
    }
    assert_true(held);
}

/* ... and is renewed by nobody when its process has died. */
static void f5_no_client_renews_for_a_dead_one(void **state)
{
    hf_locker dead;
    (void)state;
    hf_locker_start(&dead, fixture.redis.dir, fixture.redis.url, "n", "lease=400");
    EVENTUALLY(LONG_MS, hf_locker_said(&dead, "held", NULL));
    hf_locker_kill(&dead);
    hf_lock_released(hf_lock_must(&fixture, fixture.a, "n",
                                  (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = LONG_MS}));
}

/* Nobody says so, since nobody can be asked: it is lost by the holder's own clock, and a
 * Redis that comes back does not bring it back. */
static void f5_while_redis_hangs_the_clock_tells_the_loss(void **state)
{
    (void)state;
    hf_lock *lock = hf_lock_must(&fixture, fixture.a, "n",
                                 (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = 1500});
    hf_fixture_signal(&fixture.redis, SIGSTOP);
    EVENTUALLY(LONG_MS, fixture.lost == 1);
    assert_int_equal(hf_lock_why(lock), HF_LOCK_DEADLINE);
    assert_false(hf_lock_held(lock));
    hf_fixture_signal(&fixture.redis, SIGCONT);
    hf_lock *next = hf_lock_must(
        &fixture, fixture.b, "n",
        (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LONG_MS, .wait_ms = LONG_MS});
    assert_true(hf_lock_fence(next) > hf_lock_fence(lock));
    assert_false(hf_lock_held(lock));
    assert_int_equal(hf_lock_release_wait(lock, NULL), HF_RELEASE_NOT_OWNER);
    hf_lock_released(next);
}

/* What was lost is no reason not to renew what is taken afterwards. */
static void f5_after_a_loss_the_next_one_is_renewed(void **state)
{
    enum { LEASE = 800 };
    bool held = false;
    (void)state;
    for (int i = 0; i < 10 && !held; i++) {
        hf_lock *lock =
            hf_lock_must(&fixture, fixture.a, "n",
                         (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LEASE});
        (void)hf_fixture_command(&fixture.redis, "DEL hf:lock:{n}:x:n hf:lock:{n}:e:n");
        EVENTUALLY(LONG_MS, !hf_lock_held(lock));
        hf_lock *next =
            hf_lock_must(&fixture, fixture.a, "n",
                         (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LEASE});
        held = holds_for(next, LEASE);
        (void)hf_lock_release_wait(lock, NULL);
        if (held)
            hf_lock_released(next);
        else
            (void)hf_lock_release_wait(next, NULL);
    }
    assert_true(held);
}

/* A Redis without memory refuses new work, not the renewal of what is held. */
static void f5_a_full_redis_renews_and_releases(void **state)
{
    (void)state;
    hf_lock *line = hf_lock_must(&fixture, fixture.a, "n",
                                 (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LONG_MS});
    hf_lock *cell = hf_lock_must(
        &fixture, fixture.a, "c",
        (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LONG_MS, .form = HF_LOCK_SPIN});
    (void)hf_fixture_command(&fixture.redis, "CONFIG SET maxmemory 1");
    assert_int_equal(hf_lock_extend_wait(line, LONG_MS + 5000, NULL), HF_OK);
    assert_int_equal(hf_lock_extend_wait(cell, LONG_MS + 5000, NULL), HF_OK);
    assert_true(hf_lock_remaining_ms(line) > 0);
    hf_lock_released(line);
    hf_lock_released(cell);
    hf_lock_released(
        hf_lock_must(&fixture, fixture.b, "n",
                     (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LONG_MS}));
    (void)hf_fixture_command(&fixture.redis, "CONFIG SET maxmemory 0");
}

/* A lock that Redis may evict is none: it is refused, not given. */
static void f5_a_redis_that_evicts_keys_gives_no_lock(void **state)
{
    hf_lock *lock;
    (void)state;
    (void)hf_fixture_command(&fixture.redis, "CONFIG SET maxmemory-policy volatile-lru");
    hf_lock_client *locks =
        hf_lock_fixture_open(&fixture, hf_fixture_url(&fixture.redis));
    assert_int_equal(hf_lock_take(&fixture, locks, "n",
                                  (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = -1},
                                  &lock),
                     HF_POLICY);
    assert_non_null(strstr(fixture.detail, "found volatile-lru"));
    (void)hf_fixture_command(&fixture.redis, "CONFIG SET maxmemory-policy noeviction");
    EVENTUALLY(LONG_MS, hf_lock_take(&fixture, locks, "n",
                                     (hf_lock_opts){HF_LOCK_OPTS_INIT}, &lock) == HF_OK);
    hf_lock_released(lock);
    hf_lock_client_close(locks, NULL, NULL);
}

/* ---- F6 ---- */

/* A primary, and its replica when that has all of it. */
static void start_pair(hf_fixture *primary, hf_fixture *replica)
{
    static char port[8]; /* borrowed by the replica */
    hf_fixture_start(primary, &(hf_fixture_options){.tcp = true});
    (void)snprintf(port, sizeof port, "%u", (unsigned)primary->port);
    const hf_fixture_options options = {.args = {"--replicaof", "127.0.0.1", port}};
    hf_fixture_start(replica, &options);
    EVENTUALLY(LONG_MS, strstr(hf_fixture_command(replica, "INFO replication"),
                               "master_link_status:up") != NULL);
}

/* Two hold it after a failover that lost a write: no lock on replicas that lag can
 * prevent that. The link is cut first, so that the write is really lost. The older is
 * told by its own deadline, its fence is lower, and what asks for fences refuses it. */
static void f6_after_a_failover_the_older_is_told_and_refused(void **state)
{
    hf_fixture primary, replica;
    uint64_t highest;
    (void)state;
    start_pair(&primary, &replica);
    assert_string_equal(hf_fixture_command(&replica, "REPLICAOF NO ONE"), "OK");
    hf_lock_client *before = hf_lock_fixture_open(&fixture, primary.url);
    hf_lock_client *after = hf_lock_fixture_open(&fixture, replica.url);
    hf_lock *old = hf_lock_must(&fixture, before, "n",
                                (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = 2000});
    hf_lock *lock = hf_lock_must(&fixture, after, "n",
                                 (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LONG_MS});
    printf("%s hold it\n", hf_lock_held(old) ? "two" : "not two");
    assert_true(hf_lock_fence(lock) > hf_lock_fence(old));
    assert_int_equal(hf_fence_check(after, "n", hf_lock_fence(lock), "new", 0, &highest,
                                    fixture.detail),
                     HF_OK);
    assert_int_equal(hf_fence_check(after, "n", hf_lock_fence(old), "old", 0, &highest,
                                    fixture.detail),
                     HF_LOST);
    hf_fixture_kill(&primary, SIGKILL);
    uint64_t deadline_ns = hf_lock_deadline_ns(old);
    EVENTUALLY(LONG_MS, fixture.lost == 1);
    assert_true(hf_boot_ns() >= deadline_ns);
    assert_int_equal(hf_lock_why(old), HF_LOCK_DEADLINE);
    assert_true(hf_lock_held(lock));
    hf_lock_released(lock);
    hf_lock_client_close(before, NULL, NULL);
    hf_lock_client_close(after, NULL, NULL);
    hf_fixture_stop(&replica);
    hf_fixture_stop(&primary);
}

/* Who asks for replicas does not get what none of them has. */
static void f6_with_the_link_cut_no_replica_confirms(void **state)
{
    hf_fixture primary, replica;
    hf_lock *lock;
    (void)state;
    start_pair(&primary, &replica);
    hf_lock_client *locks = hf_lock_fixture_open(&fixture, primary.url);
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .wait_replicas = 1,
                               .lease_ms = LONG_MS};
    /* Again, if the machine was too busy for the replica to answer in time. */
    EVENTUALLY(LONG_MS, hf_lock_take(&fixture, locks, "n", opts, &lock) == HF_OK);
    assert_int_equal(hf_fixture_number(&replica, "ZCARD hf:lock:{n}:x:n"), 1);
    hf_lock_released(lock);
    hf_fixture_signal(&replica,
                      SIGSTOP); /* it is connected, and has all but what follows */
    assert_int_equal(hf_lock_take(&fixture, locks, "n", opts, &lock), HF_MISCONF);
    hf_fixture_signal(&replica, SIGCONT);
    assert_string_equal(hf_fixture_command(&replica, "REPLICAOF NO ONE"), "OK");
    assert_int_equal(hf_lock_take(&fixture, locks, "n", opts, &lock), HF_MISCONF);
    hf_lock_client_close(locks, NULL, NULL);
    hf_fixture_stop(&replica);
    hf_fixture_stop(&primary);
}

/* Redis has renewed it; but another primary would not know. */
static void f6_a_renewal_that_no_replica_has_does_not_count(void **state)
{
    hf_fixture primary, replica;
    hf_lock *lock;
    (void)state;
    hf_fixture_start(&primary, &(hf_fixture_options){HF_PRIMARY});
    hf_replicas_start(&replica, 1, &primary);
    hf_lock_client *locks = hf_lock_fixture_open(&fixture, primary.url);
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .wait_replicas = 1,
                               .lease_ms = RENEWED_MS};
    EVENTUALLY(LONG_MS, hf_lock_take(&fixture, locks, "n", opts, &lock) == HF_OK);
    long long waits = hf_fixture_calls(&primary, "wait");
    EVENTUALLY(LONG_MS, hf_fixture_calls(&primary, "wait") >= waits + 2);
    assert_true(hf_lock_held(lock));
    hf_fixture_signal(&replica, SIGSTOP);
    EVENTUALLY(LONG_MS, !hf_lock_held(lock));
    assert_int_equal(hf_lock_why(lock), HF_LOCK_DEADLINE);
    assert_int_equal(hf_fixture_number(&primary, "ZCARD hf:lock:{n}:x:n"), 1);
    hf_fixture_signal(&replica, SIGCONT);
    hf_lock_release(lock, NULL, NULL);
    hf_lock_client_close(locks, NULL, NULL);
    hf_fixture_stop(&replica);
    hf_fixture_stop(&primary);
}

/* The same: its local deadline stays where it was. */
static void f6_an_extension_that_no_replica_has_does_not_count(void **state)
{
    enum { TWICE_MS = 2 * LONG_MS, MORE_MS = 4 * LONG_MS };
    hf_fixture primary, replica;
    hf_lock *lock;
    (void)state;
    hf_fixture_start(&primary, &(hf_fixture_options){HF_PRIMARY});
    hf_replicas_start(&replica, 1, &primary);
    hf_lock_client *locks = hf_lock_fixture_open(&fixture, primary.url);
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .wait_replicas = 1,
                               .lease_ms = LONG_MS};
    EVENTUALLY(LONG_MS, hf_lock_take(&fixture, locks, "n", opts, &lock) == HF_OK);
    EVENTUALLY(LONG_MS, hf_lock_extend_wait(lock, TWICE_MS, fixture.detail) == HF_OK);
    assert_true(hf_lock_remaining_ms(lock) > LONG_MS);
    hf_fixture_signal(&replica, SIGSTOP);
    assert_int_equal(hf_lock_extend_wait(lock, MORE_MS, fixture.detail), HF_UNCONFIRMED);
    assert_true(hf_lock_held(lock));
    assert_true(hf_lock_remaining_ms(lock) <= TWICE_MS);
    hf_fixture_signal(&replica, SIGCONT);
    EVENTUALLY(LONG_MS, hf_lock_extend_wait(lock, MORE_MS, fixture.detail) == HF_OK);
    assert_true(hf_lock_remaining_ms(lock) > TWICE_MS);
    hf_lock_release(lock, NULL, NULL);
    hf_lock_client_close(locks, NULL, NULL);
    hf_fixture_stop(&replica);
    hf_fixture_stop(&primary);
}

/* It is renewed before its replicas are asked. A Redis that does not take that now has
 * the lock all the same. */
static void f6_a_refusal_before_replicas_are_asked_is_waited_out(void **state)
{
    hf_fixture primary, replica;
    hf_proxy proxy;
    hf_lock_waiter w;
    hf_lock *lock;
    (void)state;
    hf_fixture_start(&primary, &(hf_fixture_options){HF_PRIMARY});
    hf_replicas_start(&replica, 1, &primary);
    hf_proxy_start(&proxy, primary.socket);
    hf_lock_client *locks;
    const hf_lock_client_opts patient = {
        HF_LOCK_CLIENT_OPTS_INIT,
        .server = HF_SERVER(.url = proxy.url, .request_timeout_ms = LONG_MS)};
    assert_int_equal(hf_lock_client_open(&locks, &patient, fixture.detail), HF_OK);
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .wait_replicas = 1,
                               .lease_ms = LONG_MS};
    assert_int_equal(hf_lock_take(&fixture, locks, "n", opts, &lock), HF_OK);
    hf_lock_released(lock);
    hf_proxy_keep_request(&proxy, hf_lua_lock_renew.sha1);
    hf_lock_begin(&w, &fixture, locks, "n", opts);
    EVENTUALLY(LONG_MS, hf_proxy_keeps_request(&proxy));
    (void)hf_fixture_command(&primary, "CONFIG SET min-replicas-to-write 2");
    long long before = hf_fixture_calls(&primary, "evalsha");
    hf_proxy_let_go(&proxy);
    EVENTUALLY(LONG_MS, hf_fixture_calls(&primary, "evalsha") > before);
    (void)hf_fixture_command(&primary, "CONFIG SET min-replicas-to-write 0");
    hf_lock_wait_end(&w);
    assert_int_equal(w.err, HF_OK);
    hf_lock_released(w.lock);
    hf_lock_client_close(locks, NULL, NULL);
    hf_proxy_stop(&proxy);
    hf_fixture_stop(&replica);
    hf_fixture_stop(&primary);
}

/* ---- F7 ---- */

/* A write of who lost the lock is refused when it comes; there is nothing to roll back,
 * and the release says that the lock was lost. */
static void f7_a_late_write_is_refused_by_its_fence(void **state)
{
    uint64_t highest;
    (void)state;
    hf_lock *old =
        hf_lock_must(&fixture, fixture.a, "n",
                     (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = 1000, .fixed = true});
    uint64_t stale = hf_lock_fence(old);
    assert_int_equal(hf_fence_check(fixture.a, "n", stale, hf_lock_owner_of(old), 0,
                                    &highest, fixture.detail),
                     HF_OK);
    hf_lock *lock = hf_lock_must(
        &fixture, fixture.b, "n",
        (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LONG_MS, .wait_ms = LONG_MS});
    assert_int_equal(hf_fence_check(fixture.b, "n", hf_lock_fence(lock),
                                    hf_lock_owner_of(lock), 0, &highest, fixture.detail),
                     HF_OK);
    assert_int_equal(hf_fence_check(fixture.a, "n", stale, hf_lock_owner_of(old), 0,
                                    &highest, fixture.detail),
                     HF_LOST);
    assert_true(highest == hf_lock_fence(lock));
    assert_int_equal(hf_lock_release_wait(old, NULL), HF_RELEASE_NOT_OWNER);
    hf_lock_released(lock);
}

/* A highest fence that Redis may evict is none to compare with. */
static void f7_a_redis_that_evicts_keys_checks_no_fence(void **state)
{
    uint64_t highest = 0;
    (void)state;
    (void)hf_fixture_command(&fixture.redis, "CONFIG SET maxmemory-policy volatile-lru");
    hf_lock_client *locks =
        hf_lock_fixture_open(&fixture, hf_fixture_url(&fixture.redis));
    assert_int_equal(hf_fence_check(locks, "n", 7, "me", 0, &highest, fixture.detail),
                     HF_POLICY);
    assert_non_null(strstr(fixture.detail, "found volatile-lru"));
    assert_int_equal(hf_fixture_number(&fixture.redis, "DBSIZE"), 0);
    (void)hf_fixture_command(&fixture.redis, "CONFIG SET maxmemory-policy noeviction");
    EVENTUALLY(LONG_MS,
               hf_fence_check(locks, "n", 7, "me", 0, &highest, fixture.detail) == HF_OK);
    assert_true(highest == 7);
    hf_lock_client_close(locks, NULL, NULL);
}

/* ---- F9 ---- */

static void f9_a_release_wakes_one_and_only_one(void **state)
{
    enum { WAITERS = 20 };
    static hf_lock_waiter w[WAITERS];
    (void)state;
    hf_lock *lock = hf_lock_must(&fixture, fixture.a, "n",
                                 (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LONG_MS});
    for (size_t i = 0; i < WAITERS; i++)
        hf_lock_wait_begin(&w[i], &fixture, i % 2 ? fixture.a : fixture.b, "n",
                           (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LONG_MS,
                                          .wait_ms = 4 * LONG_MS});
    for (size_t i = 0; i < WAITERS; i++) {
        long long pushed = hf_fixture_calls(&fixture.redis, "rpush");
        hf_lock_released(lock);
        hf_lock_wait_end(&w[i]);
        assert_int_equal(w[i].err, HF_OK);
        assert_int_equal(hf_fixture_calls(&fixture.redis, "rpush"), pushed + 1);
        for (size_t k = i + 1; k < WAITERS; k++)
            assert_false(w[k].done);
        lock = w[i].lock;
    }
    hf_lock_released(lock);
}

/* ---- F10 ---- */

static void f10_a_waiter_that_dies_in_the_middle_is_passed(void **state)
{
    hf_locker w[3];
    hf_locker_note first, last;
    (void)state;
    hf_lock *lock = hf_lock_must(&fixture, fixture.a, "n",
                                 (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LONG_MS});
    for (size_t i = 0; i < HF_COUNT(w); i++) {
        hf_locker_start(&w[i], fixture.redis.dir, fixture.redis.url, "n", "lease=2000");
        EVENTUALLY(LONG_MS, hf_lock_queue(&fixture, "n") == (long long)i + 1);
    }
    hf_locker_kill(&w[1]);
    hf_lock_released(lock);
    EVENTUALLY(LONG_MS, hf_locker_said(&w[0], "held", &first));
    ALWAYS(900, !hf_locker_said(&w[2], "held", NULL)); /* not by the death before it */
    hf_proc_signal(&w[0].proc, SIGTERM);
    EVENTUALLY(LONG_MS, hf_locker_said(&w[2], "held", &last));
    assert_true(first.value < last.value);
    hf_locker_kill(&w[0]);
    hf_locker_kill(&w[2]);
}

/* The next in line, whose own third is minutes away, has the lock when the lease of the
 * dead one before it is over. */
static void has_it_soon(hf_lock_waiter *patient)
{
    hf_lock_wait_end(patient);
    assert_int_equal(patient->err, HF_OK);
    hf_lock_released(patient->lock);
}

static void wait_patiently(hf_lock_waiter *patient)
{
    hf_lock_wait_begin(patient, &fixture, fixture.b, "n",
                       (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = PATIENT_MS,
                                      .wait_ms = 2 * LONG_MS});
}

/* It is granted to the dead one first. */
static void f10_a_head_that_dies_is_passed_when_its_lease_ends(void **state)
{
    hf_locker dies;
    hf_lock_waiter patient;
    (void)state;
    hf_lock *lock = hf_lock_must(&fixture, fixture.a, "n",
                                 (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LONG_MS});
    hf_locker_start(&dies, fixture.redis.dir, fixture.redis.url, "n", "lease=2000");
    EVENTUALLY(LONG_MS, hf_lock_queue(&fixture, "n") == 1);
    wait_patiently(&patient);
    hf_locker_kill(&dies);
    hf_lock_released(lock);
    has_it_soon(&patient);
}

/* The second becomes the head, and looks after the holder. */
static void f10_a_waiter_behind_two_dead_ones_passes_both(void **state)
{
    hf_locker holds, dies;
    hf_lock_waiter patient;
    (void)state;
    hf_locker_start(&holds, fixture.redis.dir, fixture.redis.url, "n", "lease=3000");
    EVENTUALLY(LONG_MS, hf_locker_said(&holds, "held", NULL));
    hf_locker_start(&dies, fixture.redis.dir, fixture.redis.url, "n", "lease=2000");
    EVENTUALLY(LONG_MS, hf_lock_queue(&fixture, "n") == 1);
    wait_patiently(&patient);
    hf_locker_kill(&dies);
    hf_locker_kill(&holds);
    has_it_soon(&patient);
}

/* One is given back soon, and the other one's holder is dead: the lease that ends first
 * counts, although it is not the only one that is waited for. */
static void f10_a_waiter_in_two_lines_watches_both(void **state)
{
    static const char *const both[] = {"t/a", "t/b"};
    hf_locker dies;
    hf_lock_waiter patient;
    (void)state;
    hf_locker_start(&dies, fixture.redis.dir, fixture.redis.url, "t/a", "lease=2000");
    EVENTUALLY(LONG_MS, hf_locker_said(&dies, "held", NULL));
    hf_lock *lock =
        hf_lock_must(&fixture, fixture.a, "t/b",
                     (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = PATIENT_MS});
    hf_lock_wait_begin(&patient, &fixture, fixture.b, "t/a",
                       (hf_lock_opts){HF_LOCK_OPTS_INIT, .names = both,
                                      .n_names = HF_COUNT(both), .lease_ms = PATIENT_MS,
                                      .wait_ms = 2 * LONG_MS});
    hf_locker_kill(&dies);
    hf_lock_released(lock);
    has_it_soon(&patient);
}

int main(void)
{
#define TEST(name) HF_LOCK_TEST(name, &fixture)
    const struct CMUnitTest tests[] = {
        TEST(f1_a_lock_and_its_end_are_one_command),
        TEST(f2_ex_and_px_together_are_an_error),
        TEST(f3_a_stopped_holder_neither_believes_nor_releases),
        TEST(f4_nothing_comes_between_comparing_and_deleting),
        TEST(f5_work_may_outlast_the_lease),
        TEST(f5_no_client_renews_for_a_dead_one),
        TEST(f5_while_redis_hangs_the_clock_tells_the_loss),
        TEST(f5_after_a_loss_the_next_one_is_renewed),
        TEST(f5_a_full_redis_renews_and_releases),
        TEST(f5_a_redis_that_evicts_keys_gives_no_lock),
        TEST(f6_after_a_failover_the_older_is_told_and_refused),
        TEST(f6_with_the_link_cut_no_replica_confirms),
        TEST(f6_a_renewal_that_no_replica_has_does_not_count),
        TEST(f6_an_extension_that_no_replica_has_does_not_count),
        TEST(f6_a_refusal_before_replicas_are_asked_is_waited_out),
        TEST(f7_a_late_write_is_refused_by_its_fence),
        TEST(f7_a_redis_that_evicts_keys_checks_no_fence),
        TEST(f9_a_release_wakes_one_and_only_one),
        TEST(f10_a_waiter_that_dies_in_the_middle_is_passed),
        TEST(f10_a_head_that_dies_is_passed_when_its_lease_ends),
        TEST(f10_a_waiter_behind_two_dead_ones_passes_both),
        TEST(f10_a_waiter_in_two_lines_watches_both),
    };
    hf_lock_fixture_up(&fixture, NULL);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_lock_fixture_down(&fixture);
    return failures;
}
