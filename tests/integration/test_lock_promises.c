/* test_lock_promises.c - what every lock promises: rows P1 to P11 of the checklist in
 * docs/locks.md, each by a test of its name. */
#include <glob.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "lock_scripts.h"
#include "tests/support/lock_fixture.h"
#include "tests/support/proxy.h"

enum { LONG_MS = 30000, NOTES_MAX = 4096 };

static hf_lock_fixture fixture;

static hf_lock *must(hf_lock_client *locks, const char *name)
{
    return hf_lock_must(&fixture, locks, name,
                        (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LONG_MS});
}

/* Nothing of any lock is left, nor in line for it, but counters and inboxes. */
static bool nothing_is_left(void)
{
    return hf_fixture_number(
               &fixture.redis, "EVAL %s 0",
               "local n = 0 for _, k in ipairs(redis.call('KEYS', '*')) do "
               "if not k:find(':fence$') and not k:find(':in:') and not "
               "k:find(':forced:') and not k:find(':replicated$') then n = n + 1 end "
               "end return n") == 0;
}

static long long keys_without_end(void)
{
    return hf_fixture_number(&fixture.redis, "EVAL %s 0",
                             "local n = 0 for _, k in ipairs(redis.call('KEYS', '*')) do "
                             "if redis.call('PTTL', k) < 0 then n = n + 1 end end "
                             "return n");
}

/* ---- P1 ---- */

typedef struct belief {
    uint64_t from_ns, to_ns, fence;
} belief;

static int by_start(const void *a, const void *b)
{
    const belief *x = a, *y = b;
    return x->from_ns < y->from_ns ? -1 : x->from_ns > y->from_ns;
}

static size_t add_beliefs(const hf_locker *l, belief *all, size_t n)
{
    static hf_locker_note notes[NOTES_MAX];
    size_t n_notes = hf_locker_read(l, notes, NOTES_MAX);
    for (size_t i = 0; i < n_notes; i++) {
        if (strcmp(notes[i].kind, "held") == 0)
            all[n] = (belief){notes[i].ns, notes[i].ns, notes[i].value};
        if (strcmp(notes[i].kind, "believed") == 0) {
            if (notes[i].ns > all[n].from_ns)
                all[n].to_ns = notes[i].ns;
            n++;
        }
    }
    return n;
}

/* Processes take it in turn, some stay past their lease; they write down from when until
 * when they believed to have it, and count in a file that only the holder may touch. */
static void p1_two_clients_never_believe_in_the_same_lock(void **state)
{
    enum { PROCESSES = 4, ROUNDS = 30 };
    static belief all[PROCESSES * ROUNDS + 1];
    hf_locker lockers[PROCESSES];
    char words[160], text[32], counter[HF_TEMPDIR_SIZE + 32];
    long long counted = 0;
    size_t n = 0;
    (void)state;
    unsigned seed = (unsigned)hf_test_now_ms();
    (void)snprintf(counter, sizeof counter, "%s/counter", fixture.redis.dir);
    printf("seed %u\n", seed);
    for (unsigned i = 0; i < PROCESSES; i++) {
        (void)snprintf(words, sizeof words, "rounds=%d seed=%u counter=%s %s", ROUNDS,
                       seed + i, counter, i < 2 ? "overstay" : "");
        hf_locker_start(&lockers[i], fixture.redis.dir, fixture.redis.url, "n", words);
    }
    for (unsigned i = 0; i < PROCESSES; i++) {
        hf_locker_note note;
        assert_true(hf_proc_wait(&lockers[i].proc, 60000));
        assert_int_equal(lockers[i].proc.status, 0);
        assert_true(hf_locker_said(&lockers[i], "counted", &note));
        counted += (long long)note.value;
        n = add_beliefs(&lockers[i], all, n);
    }
    assert_int_equal(n, PROCESSES * ROUNDS);
    assert_int_equal(atoll(hf_read_file(counter, text, sizeof text)), counted);
    qsort(all, n, sizeof all[0], by_start);
    for (size_t i = 1; i < n; i++) {
        assert_true(all[i - 1].to_ns < all[i].from_ns);
        assert_true(all[i - 1].fence < all[i].fence);
    }
}

/* ---- P2 ---- */

static void p2_every_process_sees_the_same(void **state)
{
    hf_lock_look look = {HF_LOCK_LOOK_INIT};
    hf_locker other;
    hf_locker_note held;
    (void)state;
    hf_locker_start(&other, fixture.redis.dir, fixture.redis.url, "n", "owner=them");
    EVENTUALLY(LONG_MS, hf_locker_said(&other, "held", &held));
    hf_lock_client *const seen_by[] = {fixture.a, fixture.b};
    for (size_t i = 0; i < HF_COUNT(seen_by); i++) {
        hf_lock *lock;
        assert_int_equal(hf_lock_look_at(seen_by[i], "n", 10, &look, fixture.detail),
                         HF_OK);
        assert_int_equal(look.n, 1);
        assert_string_equal(look.entries[0].owner, "them");
        assert_true(look.entries[0].granted);
        assert_true(look.entries[0].fence == held.value);
        hf_lock_look_done(&look);
        assert_int_equal(hf_lock_take(&fixture, seen_by[i], "n",
                                      (hf_lock_opts){HF_LOCK_OPTS_INIT}, &lock),
                         HF_TAKEN);
    }
    hf_locker_kill(&other);
}

/* A replica is never asked: what it knows is old. */
static void p2_a_replica_decides_nothing(void **state)
{
    hf_fixture replica;
    hf_lock *lock;
    char detail[HF_DETAIL_SIZE];
    static const char *const name = "n";
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .names = &name, .n_names = 1};
    (void)state;
    hf_fixture_start(&replica,
                     &(hf_fixture_options){.args = {"--replicaof", "127.0.0.1", "1"}});
    hf_lock_client *locks;
    const hf_lock_client_opts client = {
        HF_LOCK_CLIENT_OPTS_INIT,
        .server = HF_SERVER(.url = replica.url, .connect_timeout_ms = 300)};
    assert_int_equal(hf_lock_client_open(&locks, &client, NULL), HF_OK);
    hf_err err = hf_lock_acquire_wait(locks, &opts, &lock, detail);
    assert_true(err != HF_OK && err != HF_TAKEN);
    printf("on a replica: %s, %s\n", hf_err_name(err), detail);
    assert_int_equal(hf_fixture_number(&replica, "DBSIZE"), 0);
    hf_lock_client_close(locks, NULL, NULL);
    hf_fixture_stop(&replica);
}

/* ---- P3 ---- */

/* Killed while it waits, while it holds, and when the grant is made and not heard of. */
static void p3_a_dead_client_leaves_with_its_lease(void **state)
{
    hf_locker waits, holds, unheard;
    hf_proxy proxy;
    (void)state;
    hf_proxy_start(&proxy, fixture.redis.socket);
    hf_lock *lock = must(fixture.a, "n");
    hf_locker_start(&waits, fixture.redis.dir, fixture.redis.url, "n", "lease=500");
    EVENTUALLY(LONG_MS, hf_lock_queue(&fixture, "n") == 1);
    hf_locker_start(&holds, fixture.redis.dir, fixture.redis.url, "held", "lease=500");
    EVENTUALLY(LONG_MS, hf_locker_said(&holds, "held", NULL));
    hf_proxy_keep_answer(&proxy, "hf:lock:{unheard}:");
    hf_locker_start(&unheard, fixture.redis.dir, proxy.url, "unheard", "lease=500");
    EVENTUALLY(LONG_MS, hf_fixture_number(&fixture.redis,
                                          "ZCARD hf:lock:{unheard}:x:unheard") == 1);
    assert_int_equal(keys_without_end(), 0);
    hf_locker_kill(&waits);
    hf_locker_kill(&holds);
    hf_locker_kill(&unheard);
    hf_lock *one = hf_lock_must(&fixture, fixture.b, "held",
                                (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = LONG_MS});
    hf_lock *two = hf_lock_must(&fixture, fixture.b, "unheard",
                                (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = LONG_MS});
    hf_lock_released(lock);
    hf_lock *three = hf_lock_must(&fixture, fixture.b, "n",
                                  (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = LONG_MS});
    assert_int_equal(keys_without_end(), 0);
    hf_lock_released(one);
    hf_lock_released(two);
    hf_lock_released(three);
    hf_proxy_stop(&proxy);
}

static void p3_no_step_leaves_a_key_without_an_end(void **state)
{
    hf_lock_waiter w;
    hf_lock *cell = hf_lock_must(&fixture, fixture.a, "c",
                                 (hf_lock_opts){HF_LOCK_OPTS_INIT, .form = HF_LOCK_SPIN});
    hf_lock *lock = hf_lock_must(&fixture, fixture.a, "n",
                                 (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = 9000});
    size_t n;
    (void)state;
    assert_int_equal(keys_without_end(), 0);
    hf_lock_wait_begin(&w, &fixture, fixture.b, "n", (hf_lock_opts){HF_LOCK_OPTS_INIT});
    assert_int_equal(keys_without_end(), 0);
    assert_int_equal(hf_lock_revoke(fixture.b, "n", NULL, &n, fixture.detail), HF_OK);
    EVENTUALLY(LONG_MS, fixture.revoked == 1); /* renewed meanwhile */
    assert_int_equal(keys_without_end(), 0);
    assert_int_equal(hf_fence_check(fixture.a, "n", hf_lock_fence(lock), "me", 60000,
                                    NULL, fixture.detail),
                     HF_OK);
    assert_int_equal(hf_lock_force(fixture.b, "n", NULL, &n, fixture.detail), HF_OK);
    assert_int_equal(keys_without_end(), 0);
    hf_lock_wait_end(&w);
    assert_int_equal(w.err, HF_OK);
    assert_int_equal(hf_lock_downgrade_wait(w.lock, NULL), HF_OK);
    assert_int_equal(keys_without_end(), 0);
    (void)hf_lock_release_wait(lock, NULL);
    hf_lock_released(w.lock);
    hf_lock_released(cell);
    assert_int_equal(keys_without_end(), 0);
}

/* ---- P4 ---- */

static void count_from_now(void)
{
    (void)hf_fixture_command(&fixture.redis, "CONFIG SET slowlog-max-len 10000");
    (void)hf_fixture_command(&fixture.redis, "CONFIG SET slowlog-log-slower-than 0");
    (void)hf_fixture_command(&fixture.redis, "SLOWLOG RESET");
}

/* The scripts that ran since then: renewals, or all others. Renewals come at their own
 * times, the first when the connection for them is there. */
static long long scripts_run(bool renewals)
{
    static const char count[] =
        "local n = 0 for _, call in ipairs(redis.call('SLOWLOG', 'GET', -1)) do "
        "if call[4][1]:upper() == 'EVALSHA' and "
        "(call[4][2] == ARGV[1]) == (ARGV[2] == '1') then n = n + 1 end end return n";
    (void)hf_fixture_command(&fixture.redis, "CONFIG SET slowlog-log-slower-than -1");
    return hf_fixture_number(&fixture.redis, "EVAL %s 0 %s %d", count,
                             hf_lua_lock_renew.sha1, renewals ? 1 : 0);
}

static long long asked(void)
{
    return scripts_run(false);
}

static void p4_a_try_is_one_request_and_its_evidence_another(void **state)
{
    hf_lock *other;
    (void)state;
    hf_lock_released(must(fixture.a, "n"));
    hf_lock_released(must(fixture.b, "n")); /* both know the scripts */
    count_from_now();
    hf_lock *lock = must(fixture.a, "n");
    assert_int_equal(asked(), 1);
    count_from_now();
    assert_int_equal(
        hf_lock_take(&fixture, fixture.b, "n", (hf_lock_opts){HF_LOCK_OPTS_INIT}, &other),
        HF_TAKEN);
    EVENTUALLY(LONG_MS, asked() == 2); /* the second one leaves the reading */
    assert_int_equal(hf_lock_queue(&fixture, "n"), 0);
    hf_lock_released(lock);
}

/* Processor time of all threads of a process, in ns. */
static uint64_t cpu_ns(pid_t pid)
{
    char path[64], text[128];
    uint64_t sum = 0;
    glob_t found;
    (void)snprintf(path, sizeof path, "/proc/%d/task/*/schedstat", (int)pid);
    if (glob(path, 0, NULL, &found) != 0)
        return 0;
    for (size_t i = 0; i < found.gl_pathc; i++)
        sum += strtoull(hf_read_file(found.gl_pathv[i], text, sizeof text), NULL, 10);
    globfree(&found);
    return sum;
}

/* With leases of 30 s nobody has anything to say for 9 s, but once when the connection
 * for renewals comes up; the one that blocks asks again every 5 s. Two block: the
 * waiter's and, a moment after its grant, the holder's. */
static void p4_a_waiter_neither_asks_nor_computes(void **state)
{
    hf_locker waits;
    (void)state;
    hf_lock *lock = must(fixture.a, "n");
    hf_locker_start(&waits, fixture.redis.dir, fixture.redis.url, "n", "");
    EVENTUALLY(LONG_MS, hf_lock_queue(&fixture, "n") == 1);
    EVENTUALLY(LONG_MS,
               hf_fixture_number(&fixture.redis, "EVAL %s 0",
                                 "local _, n = redis.call('INFO', 'clients')"
                                 ":find('blocked_clients:2') return n or 0") > 0);
    long long scripts = hf_fixture_calls(&fixture.redis, "evalsha"),
              blocks = hf_fixture_calls(&fixture.redis, "blpop");
    uint64_t cpu = cpu_ns(waits.proc.pid), start_ms = hf_test_now_ms();
    ALWAYS(1500, !hf_locker_said(&waits, "held", NULL));
    uint64_t cpu_after = cpu_ns(waits.proc.pid);
    scripts = hf_fixture_calls(&fixture.redis, "evalsha") - scripts;
    blocks = hf_fixture_calls(&fixture.redis, "blpop") - blocks;
    long long took_ms = (long long)(hf_test_now_ms() - start_ms);
    printf("%lld scripts, %lld blocks, %.2f ms of processor time in %lld ms\n", scripts,
           blocks, (double)(cpu_after - cpu) / 1e6, took_ms);
    assert_in_range(scripts, 0, 2 + 2 * (took_ms / 9000)); /* holder and waiter */
    assert_in_range(blocks, 0, 1 + took_ms / 5000);
    assert_true(cpu_after - cpu < (uint64_t)took_ms * 100000); /* a tenth: no polling */
    hf_lock_released(lock);
    EVENTUALLY(LONG_MS, hf_locker_said(&waits, "held", NULL));
    hf_locker_kill(&waits);
}

/* ---- P5 ---- */

/* Waits that end at about the moment at which the lock is released: whichever was first,
 * the lock is had or it is not, and nothing stays behind. */
static void p5_a_timed_try_that_races_a_release_leaves_nothing(void **state)
{
    enum { RACES = 1000 };
    unsigned seed = (unsigned)hf_test_now_ms(), had = 0;
    (void)state;
    printf("seed %u\n", seed);
    for (int i = 0; i < RACES; i++) {
        hf_lock *lock = must(fixture.a, "n");
        hf_lock_waiter w;
        uint64_t start_ms = hf_test_now_ms();
        hf_lock_wait_begin(
            &w, &fixture, fixture.b, "n",
            (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = 1 + rand_r(&seed) % 4});
        hf_test_pause_ms((unsigned)rand_r(&seed) % 4);
        hf_lock_released(lock);
        hf_lock_wait_end(&w);
        if (w.err == HF_OK) {
            had++;
            hf_lock_released(w.lock);
        } else {
            assert_int_equal(w.err, HF_TAKEN);
            assert_true(hf_test_now_ms() - start_ms + 1 >= (uint64_t)w.opts.wait_ms);
        }
        EVENTUALLY(LONG_MS, nothing_is_left());
    }
    printf("%u of %d were had\n", had, RACES);
}

static bool two_block(void)
{
    return strstr(hf_fixture_command(&fixture.redis, "INFO clients"),
                  "\nblocked_clients:2\r") != NULL;
}

/* The holder's connection blocks, and the waiter's: it knows that it stands in line.
 * False: its wait was over before that. */
static bool wait_in_line(hf_lock_waiter *w, hf_lock_client *locks)
{
    hf_lock_wait_begin(w, &fixture, locks, "n",
                       (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = 1000});
    EVENTUALLY(LONG_MS, w->done || two_block());
    if (!w->done)
        return true;
    hf_lock_wait_end(w);
    return false;
}

/* Also when nobody answers: of who stands in line already, and of who is to come. */
static void p5_a_timed_try_ends_although_redis_hangs(void **state)
{
    const hf_lock_client_opts client = {
        HF_LOCK_CLIENT_OPTS_INIT,
        .server = HF_SERVER(.url = hf_fixture_url(&fixture.redis),
                            .connect_timeout_ms = 400, .request_timeout_ms = 200)};
    hf_lock_client *locks;
    hf_lock_waiter w;
    hf_lock *none;
    (void)state;
    assert_int_equal(hf_lock_client_open(&locks, &client, NULL), HF_OK);
    hf_lock *lock = must(fixture.a, "n");
    EVENTUALLY(LONG_MS, wait_in_line(&w, locks));
    hf_fixture_signal(&fixture.redis, SIGSTOP);
    hf_lock_wait_end(&w);
    assert_int_equal(w.err, HF_TAKEN);
    hf_err err = hf_lock_take(
        &fixture, locks, "m",
        (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = 100, .lease_ms = LONG_MS}, &none);
    printf("of who came while it stood still: %s, %s\n", hf_err_name(err),
           fixture.detail);
    assert_true(err != HF_OK && err != HF_TAKEN);
    hf_fixture_signal(&fixture.redis, SIGCONT);
    EVENTUALLY(LONG_MS, hf_lock_queue(&fixture, "n") == 0);
    hf_lock_released(
        hf_lock_must(&fixture, fixture.b, "m", /* it is not granted for its lease */
                     (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = LONG_MS / 2}));
    hf_lock_released(lock);
    EVENTUALLY(LONG_MS, nothing_is_left());
    hf_lock_client_close(locks, NULL, NULL);
}

/* ---- P6 ---- */

static void p6_a_lock_outlives_its_connections(void **state)
{
    (void)state;
    hf_lock *lock = must(fixture.a, "n");
    uint64_t fence = hf_lock_fence(lock);
    for (int i = 0; i < 5; i++) {
        (void)hf_fixture_command(&fixture.redis, "CLIENT KILL TYPE normal SKIPME yes");
        assert_true(hf_lock_held(lock));
        hf_lock_released(must(fixture.b, "other"));
    }
    EVENTUALLY(LONG_MS, hf_lock_extend_wait(lock, LONG_MS + 1000, NULL) == HF_OK);
    assert_true(hf_lock_fence(lock) == fence);
    hf_lock_released(lock);
}

static void p6_a_lock_on_too_few_replicas_is_released(void **state)
{
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .wait_replicas = 1,
                               .lease_ms = LONG_MS};
    hf_lock *lock;
    hf_err err;
    (void)state;
    /* Again, if the machine was too busy for an answer in time. */
    EVENTUALLY(LONG_MS,
               (err = hf_lock_take(&fixture, fixture.a, "n", opts, &lock)) != HF_CONN);
    assert_int_equal(err, HF_MISCONF);
    assert_non_null(strstr(fixture.detail, "0 of 1 replicas"));
    EVENTUALLY(LONG_MS, nothing_is_left());
    hf_lock_released(must(fixture.b, "n"));
}

enum { REPLICAS_MS = 3000, N_WANT_REPLICAS = 3 };

/* Connections that wait for replicas. */
static size_t waits(void)
{
    size_t n = 0;
    const char *at = hf_fixture_command(&fixture.redis, "CLIENT LIST");
    while ((at = strstr(at, " flags=b")) != NULL) {
        const char *cmd = strstr(at, " cmd=");
        n += cmd != NULL && strncmp(cmd, " cmd=wait ", 10) == 0;
        at++;
    }
    return n;
}

static void on_no_replicas(hf_lock *lock, hf_err err, const char *detail, void *arg)
{
    atomic_uint *n = arg;
    (void)lock;
    if (err == HF_MISCONF && strstr(detail, "0 of 1 replicas") != NULL)
        atomic_fetch_add(n, 1);
}

/* They wait for replicas that are not there; the same client has other things to do. */
static void p6_a_wait_for_replicas_delays_no_other_client(void **state)
{
    static const char *const names[] = {"r1", "r2", "r3"};
    const hf_lock_client_opts opts = {HF_LOCK_CLIENT_OPTS_INIT,
                                      .server =
                                          HF_SERVER(.url = hf_fixture_url(&fixture.redis),
                                                    .request_timeout_ms = REPLICAS_MS)};
    atomic_uint refused = 0;
    hf_lock_client *locks = NULL;
    (void)state;
    assert_int_equal(hf_lock_client_open(&locks, &opts, fixture.detail), HF_OK);
    hf_lock *kept =
        hf_lock_must(&fixture, locks, "kept",
                     (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = 2 * REPLICAS_MS});
    for (size_t i = 0; i < N_WANT_REPLICAS; i++)
        assert_int_equal(
            hf_lock_acquire(locks,
                            &(hf_lock_opts){HF_LOCK_OPTS_INIT, .names = &names[i],
                                            .n_names = 1, .wait_replicas = 1,
                                            .lease_ms = LONG_MS},
                            on_no_replicas, &refused, NULL, fixture.detail),
            HF_OK);
    EVENTUALLY(LONG_MS, waits() > 0);
    uint64_t end_ms = hf_test_now_ms() + 2 * REPLICAS_MS;
    size_t taken = 0;
    for (; hf_test_now_ms() < end_ms; taken++)
        hf_lock_released(must(locks, "n"));
    assert_true(taken > 20); /* 3 at most, if each came after a wait */
    EVENTUALLY(LONG_MS, atomic_load(&refused) == N_WANT_REPLICAS);
    assert_true(hf_lock_held(kept));
    assert_int_equal(atomic_load(&fixture.suspect) + atomic_load(&fixture.lost), 0);
    hf_lock_released(kept);
    hf_lock_client_close(locks, NULL, NULL);
}

static void on_answer(hf_lock *lock, hf_err err, const char *detail, void *arg)
{
    atomic_int *answer = arg;
    (void)lock;
    (void)detail;
    atomic_store(answer, (int)err);
}

static void p6_a_wait_for_replicas_can_be_cancelled_and_closed(void **state)
{
    const char *const name = "n";
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .names = &name, .n_names = 1,
                               .wait_replicas = 1, .lease_ms = LONG_MS};
    hf_lock *lock;
    (void)state;
    hf_lock_client *locks =
        hf_lock_fixture_open(&fixture, hf_fixture_url(&fixture.redis));
    for (int closes = 0; closes < 2; closes++) {
        atomic_int answer = -1;
        assert_int_equal(
            hf_lock_acquire(locks, &opts, on_answer, &answer, &lock, fixture.detail),
            HF_OK);
        EVENTUALLY(LONG_MS, waits() > 0);
        if (closes == 0)
            hf_lock_cancel(lock);
        else
            hf_lock_client_close(locks, NULL, NULL);
        EVENTUALLY(LONG_MS,
                   atomic_load(&answer) == (closes == 0 ? HF_CANCEL : HF_CLOSED));
        EVENTUALLY(LONG_MS, nothing_is_left() && waits() == 0);
    }
}

/* ---- P7 ---- */

static long long scripts_of_handovers(hf_lock_waiter *w, size_t n)
{
    enum { FIRST = 4, LEAST_THIRD_MS = LONG_MS / 4 };
    uint64_t from_ms = hf_test_now_ms();
    hf_lock *lock = must(fixture.a, "n");
    for (size_t i = 0; i < n; i++)
        hf_lock_wait_begin(&w[i], &fixture, fixture.b, "n",
                           (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LONG_MS,
                                          .wait_ms = 4 * LONG_MS});
    count_from_now();
    for (size_t i = 0; i < n; i++) {
        hf_lock_released(lock);
        hf_lock_wait_end(&w[i]);
        assert_int_equal(w[i].err, HF_OK);
        lock = w[i].lock;
    }
    long long sent = asked(), renewed = scripts_run(true);
    uint64_t thirds = (hf_test_now_ms() - from_ms) / LEAST_THIRD_MS;
    printf("%lld renewals beside %zu handovers\n", renewed, n);
    assert_in_range(renewed, 0, FIRST + thirds * (n + 1)); /* none for its own sake */
    hf_lock_released(lock);
    return sent;
}

static void p7_a_handover_costs_the_same_for_any_number_of_waiters(void **state)
{
    static hf_lock_waiter w[40];
    (void)state;
    hf_lock_released(must(fixture.a, "n"));
    assert_int_equal(scripts_of_handovers(w, 1), 1);
    assert_int_equal(scripts_of_handovers(w, HF_COUNT(w)), HF_COUNT(w));
}

/* ---- P8 ---- */

static bool seems_over(void)
{
    hf_lock_look look = {HF_LOCK_LOOK_INIT};
    assert_int_equal(hf_lock_look_at(fixture.b, "n", 1, &look, fixture.detail), HF_OK);
    bool over = look.n == 1 && look.entries[0].ends_ms <= look.now_ms;
    hf_lock_look_done(&look);
    return over;
}

static void p8_only_its_owner_gives_it_back(void **state)
{
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .owner = "me", .lease_ms = 1000,
                               .fixed = true};
    size_t n = 9;
    (void)state;
    hf_lock *old = hf_lock_must(&fixture, fixture.a, "n", opts);
    EVENTUALLY(LONG_MS, seems_over());
    hf_lock *lock =
        hf_lock_must(&fixture, fixture.a, "n",
                     (hf_lock_opts){HF_LOCK_OPTS_INIT, .owner = "me", .lease_ms = LONG_MS,
                                    .wait_ms = LONG_MS, .reentrant = true});
    assert_true(hf_lock_fence(lock) > hf_lock_fence(old));
    /* The same owner, by an acquisition whose lease was over. */
    assert_int_equal(hf_lock_release_wait(old, NULL), HF_RELEASE_NOT_OWNER);
    assert_int_equal(hf_lock_force(fixture.b, "n", "another", &n, fixture.detail), HF_OK);
    assert_int_equal(n, 0);
    assert_int_equal(
        hf_lock_take(&fixture, fixture.b, "n", (hf_lock_opts){HF_LOCK_OPTS_INIT}, &old),
        HF_TAKEN);
    assert_true(hf_lock_held(lock));
    hf_lock_released(lock);
}

/* What was seen is taken away, and not what the same owner has acquired since. */
static void a_fence_takes_only_its_own_hold(void **state)
{
    static const hf_lock_form forms[] = {HF_LOCK_LINE, HF_LOCK_SPIN};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(forms); i++) {
        const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .owner = "me", .form = forms[i],
                                   .lease_ms = LONG_MS};
        size_t n = 9;
        hf_lock *old = hf_lock_must(&fixture, fixture.a, "n", opts);
        const uint64_t seen = hf_lock_fence(old);
        hf_lock_released(old);
        hf_lock *lock = hf_lock_must(&fixture, fixture.a, "n", opts);
        assert_int_equal(hf_lock_force_fence(fixture.b, "n", seen, &n, fixture.detail),
                         HF_OK);
        assert_int_equal(n, 0);
        assert_true(hf_lock_held(lock));
        assert_int_equal(
            hf_lock_force_fence(fixture.b, "n", hf_lock_fence(lock), &n, fixture.detail),
            HF_OK);
        assert_int_equal(n, 1);
        (void)hf_lock_release_wait(lock, NULL);
        assert_int_equal(hf_lock_force_fence(fixture.b, "n", 0, &n, fixture.detail),
                         HF_INVALID);
    }
}

/* ---- P9 ---- */

static void p9_a_lease_is_30_s_unless_it_is_said(void **state)
{
    static const char *const name = "n";
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .names = &name, .n_names = 1};
    hf_lock_look look = {HF_LOCK_LOOK_INIT};
    hf_lock *lock;
    (void)state;
    assert_int_equal(hf_lock_acquire_wait(fixture.a, &opts, &lock, fixture.detail),
                     HF_OK);
    assert_true(hf_lock_remaining_ms(lock) <= HF_LOCK_LEASE_MS);
    assert_int_equal(hf_lock_look_at(fixture.b, "n", 1, &look, fixture.detail), HF_OK);
    assert_true(look.entries[0].ends_ms > look.now_ms);
    assert_true(look.entries[0].ends_ms <= look.now_ms + HF_LOCK_LEASE_MS);
    hf_lock_look_done(&look);
    hf_lock_released(lock);
}

/* ---- P10 ---- */

static atomic_int told;
static hf_lock *granted;

static void on_acquired(hf_lock *lock, hf_err err, const char *detail, void *arg)
{
    (void)detail;
    (void)arg;
    granted = err == HF_OK ? lock : NULL;
    atomic_store(&told, err);
}

static hf_lock *ask_for(hf_lock_client *locks, uint32_t lease_ms)
{
    static const char *const name = "n";
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .names = &name, .n_names = 1,
                               .wait_ms = -1, .lease_ms = lease_ms};
    hf_lock *lock;
    atomic_store(&told, 1);
    assert_int_equal(
        hf_lock_acquire(locks, &opts, on_acquired, NULL, &lock, fixture.detail), HF_OK);
    return lock;
}

/* Cancelled before there is a connection, and after the request, before its answer. */
static void p10_it_can_be_cancelled_before_it_is_answered(void **state)
{
    hf_proxy proxy;
    (void)state;
    hf_proxy_start(&proxy, fixture.redis.socket);
    hf_proxy_refuse(&proxy, true);
    hf_lock_client *locks = hf_lock_fixture_open(&fixture, proxy.url);
    hf_lock_cancel(ask_for(locks, LONG_MS));
    EVENTUALLY(LONG_MS, told == HF_CANCEL);
    hf_proxy_refuse(&proxy, false);
    hf_lock_released(must(locks, "other"));
    hf_proxy_set(&proxy, PROXY_ANSWERS, PROXY_HOLD);
    hf_lock *lock = ask_for(locks, 20 * LONG_MS); /* it would not end by itself */
    EVENTUALLY(LONG_MS, hf_fixture_number(&fixture.redis, "EXISTS hf:lock:{n}:x:n") == 1);
    hf_lock_cancel(lock);
    EVENTUALLY(LONG_MS, told == HF_CANCEL);
    hf_proxy_set(&proxy, PROXY_ANSWERS, PROXY_PASS);
    EVENTUALLY(LONG_MS, nothing_is_left());
    hf_lock_client_close(locks, NULL, NULL);
    hf_proxy_stop(&proxy);
}

/* Cancelled when the lock is just released: it is had, and then given back, or not. */
static void p10_a_cancelled_wait_is_not_renewed(void **state)
{
    unsigned had = 0;
    (void)state;
    for (int i = 0; i < 50; i++) {
        hf_lock *lock = must(fixture.a, "n");
        hf_lock *waits = ask_for(fixture.b, 1000);
        EVENTUALLY(LONG_MS, hf_lock_queue(&fixture, "n") == 1);
        hf_lock_release(lock, NULL, NULL);
        hf_test_pause_ms((unsigned)i % 2);
        hf_lock_cancel(waits);
        EVENTUALLY(LONG_MS, told != 1);
        if (told == HF_OK) {
            had++;
            (void)hf_lock_release_wait(granted, NULL);
        } else {
            assert_int_equal(told, HF_CANCEL);
        }
        EVENTUALLY(LONG_MS, nothing_is_left());
    }
    printf("%u of 50 were had\n", had);
    ALWAYS(1200, nothing_is_left()); /* longer than a lease */
}

int main(void)
{
#define TEST(name) HF_LOCK_TEST(name, &fixture)
    const struct CMUnitTest tests[] = {
        TEST(p1_two_clients_never_believe_in_the_same_lock),
        TEST(p2_every_process_sees_the_same),
        TEST(p2_a_replica_decides_nothing),
        TEST(p3_a_dead_client_leaves_with_its_lease),
        TEST(p3_no_step_leaves_a_key_without_an_end),
        TEST(p4_a_try_is_one_request_and_its_evidence_another),
        TEST(p4_a_waiter_neither_asks_nor_computes),
        TEST(p5_a_timed_try_that_races_a_release_leaves_nothing),
        TEST(p5_a_timed_try_ends_although_redis_hangs),
        TEST(p6_a_lock_outlives_its_connections),
        TEST(p6_a_lock_on_too_few_replicas_is_released),
        TEST(p6_a_wait_for_replicas_delays_no_other_client),
        TEST(p6_a_wait_for_replicas_can_be_cancelled_and_closed),
        TEST(p7_a_handover_costs_the_same_for_any_number_of_waiters),
        TEST(p8_only_its_owner_gives_it_back),
        TEST(a_fence_takes_only_its_own_hold),
        TEST(p9_a_lease_is_30_s_unless_it_is_said),
        TEST(p10_it_can_be_cancelled_before_it_is_answered),
        TEST(p10_a_cancelled_wait_is_not_renewed),
    };
    hf_lock_fixture_up(&fixture, NULL);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_lock_fixture_down(&fixture);
    return failures;
}
