/* test_leftovers.c - what a process that was killed leaves in Redis: nothing that
 * outlives its lease by more than docs/keys.md says. That is a line until the next one
 * asks for it. It holds, and waits for, locks of all kinds. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "holdfast/lock.h"
#include "tests/support/eventually.h"
#include "tests/support/proc.h"
#include "tests/support/redis_fixture.h"

/* FENCE_MS, INBOX_MS, LINE_MS: what docs/keys.md says. */
static const long long LINE_MS = 60 * 86400000LL;
enum {
    LONG_MS = 30000,
    LEASE_MS = 1500,
    LONG_LEASE_MS = 600000,
    FENCE_MS = 3600000,
    INBOX_MS = 60000
};

static hf_fixture redis;

/* ---- the process that is killed ---- */

typedef struct one {
    const char *names[2];
    hf_lock_opts opts;
} one;

#define MINE HF_LOCK_OPTS_INIT, .lease_ms = LEASE_MS

static const one holds[] = {
    {{"alone"}, {MINE}},
    {{"shared"}, {MINE, .mode = HF_LOCK_SHARED}},
    {{"permits"}, {MINE, .mode = HF_LOCK_PERMITS, .permits = 2, .limit = 3}},
    {{"again"}, {MINE, .reentrant = true, .owner = "dead"}},
    {{"again"}, {MINE, .reentrant = true, .owner = "dead"}},
    {{"t/a", "t/b"}, {MINE}},
    {{"cell"}, {MINE, .form = HF_LOCK_SPIN}},
    {{"fixed"}, {MINE, .fixed = true}},
    {{"hurried"}, {MINE, .max_hold_ms = LONG_LEASE_MS}},
};

/* The test has these, and takes the rest of the permits. */
static const one waits[] = {
    {{"wait-alone"}, {MINE}},
    {{"wait-shared"}, {MINE, .mode = HF_LOCK_SHARED}},
    {{"wait-permits"}, {MINE, .mode = HF_LOCK_PERMITS, .permits = 2, .limit = 3}},
    {{"w/a", "w/b"}, {MINE}},
    {{"wait-cell"}, {MINE, .form = HF_LOCK_SPIN}},
};

static hf_lock_opts opts_of(const one *o)
{
    hf_lock_opts opts = o->opts;
    opts.names = o->names;
    opts.n_names = o->names[1] == NULL ? 1 : 2;
    return opts;
}

static void ignore(hf_lock *lock, hf_err err, const char *detail, void *arg)
{
    (void)lock;
    (void)err;
    (void)detail;
    (void)arg;
}

static int live_until_killed(const char *url)
{
    hf_lock_client *locks;
    char detail[HF_DETAIL_SIZE];
    if (hf_lock_client_open(&locks,
                            &(hf_lock_client_opts){HF_LOCK_CLIENT_OPTS_INIT,
                                                   .server = HF_SERVER(.url = url)},
                            detail) != HF_OK)
        return 1;
    for (size_t i = 0; i < HF_COUNT(holds); i++) {
        hf_lock_opts opts = opts_of(&holds[i]);
        hf_lock *lock;
        if (hf_lock_acquire_wait(locks, &opts, &lock, detail) != HF_OK)
            return 2;
    }
    for (size_t i = HF_COUNT(waits); i > 0; i--) {
        hf_lock_opts opts = opts_of(&waits[i - 1]);
        opts.wait_ms = -1;
        if (hf_lock_acquire(locks, &opts, ignore, NULL, NULL, detail) != HF_OK)
            return 3;
    }
    for (;;)
        (void)pause();
}

/* ---- the test ---- */

static bool stands_in_all_lines(void)
{
    static const char *const names[] = {"{wait-alone}:q:wait-alone",
                                        "{wait-shared}:q:wait-shared",
                                        "{wait-permits}:q:wait-permits", "{w}:q:w/a"};
    for (size_t i = 0; i < HF_COUNT(names); i++)
        if (hf_fixture_number(&redis, "ZCARD hf:lock:%s", names[i]) != 1)
            return false;
    return true;
}

/* How long a key may still be there, by its kind. */
static long long bound_of(const char *key)
{
    const char *kind = strstr(key, "}:");
    assert_non_null(kind);
    if (strcmp(kind, "}:fence") == 0)
        return FENCE_MS;
    if (strncmp(kind, "}:in:", 5) == 0)
        return INBOX_MS;
    if (strncmp(kind, "}:cell:", 7) == 0)
        return LEASE_MS;
    return LINE_MS;
}

/* Calls each for every key; gives how many of them are no fence and no inbox. */
static unsigned for_each_key(void (*each)(const char *key))
{
    char *keys = strdup(hf_fixture_command(&redis, "KEYS *")), *rest = keys;
    unsigned n = 0;
    assert_non_null(keys);
    for (char *key; (key = strtok_r(rest, "\n", &rest)) != NULL;) {
        each(key);
        n += strstr(key, "}:fence") == NULL && strstr(key, "}:in:") == NULL;
    }
    free(keys);
    return n;
}

static void check_bound(const char *key)
{
    long long left = hf_fixture_number(&redis, "PTTL %s", key);
    if (left == -2)
        return; /* it has just ended */
    if (left < 0 || left > bound_of(key))
        fail_msg("%s ends in %lld ms", key, left);
}

static void nothing(const char *key)
{
    (void)key;
}

static void show(const char *key)
{
    print_message("  %s ends in %lld ms\n", key,
                  hf_fixture_number(&redis, "PTTL %s", key));
}

static void take_what_is_waited_for(hf_lock_client *locks, hf_lock *taken[])
{
    char detail[HF_DETAIL_SIZE];
    for (size_t i = 0; i < HF_COUNT(waits); i++) {
        hf_lock_opts opts = opts_of(&waits[i]);
        opts.lease_ms = LONG_LEASE_MS;
        opts.form = HF_LOCK_LINE;
        if (opts.mode == HF_LOCK_SHARED)
            opts.mode = HF_LOCK_EXCLUSIVE;
        if (hf_lock_acquire_wait(locks, &opts, &taken[i], detail) != HF_OK)
            fail_msg("%s: %s", opts.names[0], detail);
    }
}

/* Whatever it was, alone. */
static void ask_for_all(hf_lock_client *locks, const one *all, size_t n)
{
    char detail[HF_DETAIL_SIZE];
    for (size_t i = 0; i < n; i++) {
        hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .names = all[i].names,
                             .n_names = all[i].names[1] == NULL ? 1 : 2,
                             .wait_ms = LONG_MS};
        hf_lock *lock;
        if (hf_lock_acquire_wait(locks, &opts, &lock, detail) != HF_OK)
            fail_msg("%s: %s", opts.names[0], detail);
        assert_int_equal(hf_lock_release_wait(lock, NULL), HF_RELEASE_DONE);
    }
}

static void l6_nothing_outlives_a_killed_client(void **state)
{
    const char *const args[] = {hf_proc_self(), "live", hf_fixture_url(&redis), NULL};
    hf_lock_client *locks;
    hf_lock *taken[HF_COUNT(waits)];
    hf_proc p;
    (void)state;
    assert_int_equal(
        hf_lock_client_open(
            &locks,
            &(hf_lock_client_opts){HF_LOCK_CLIENT_OPTS_INIT,
                                   .server = HF_SERVER(.url = hf_fixture_url(&redis))},
            NULL),
        HF_OK);
    take_what_is_waited_for(locks, taken);
    hf_proc_start(&p, &(hf_proc_options){.args = args});
    EVENTUALLY(LONG_MS, hf_proc_wait(&p, 0) || stands_in_all_lines());
    hf_proc_kill(&p);
    const uint64_t killed_ms = hf_test_now_ms();
    assert_int_equal(p.status, 128 + SIGKILL);
    assert_true(for_each_key(check_bound) > 10);
    /* Who is alive passes over the dead, and leaves nothing either. */
    for (size_t i = 0; i < HF_COUNT(waits); i++)
        assert_int_equal(hf_lock_release_wait(taken[i], NULL), HF_RELEASE_DONE);
    assert_true(for_each_key(check_bound) > 10);
    ask_for_all(locks, holds, HF_COUNT(holds));
    ask_for_all(locks, waits, HF_COUNT(waits));
    EVENTUALLY(LONG_MS, for_each_key(nothing) == 0);
    print_message("all that a lease of %d ms had left was gone after %llu ms, but:\n",
                  LEASE_MS, (unsigned long long)(hf_test_now_ms() - killed_ms));
    (void)for_each_key(show);
    (void)for_each_key(check_bound);
    hf_lock_client_close(locks, NULL, NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        HF_REDIS_TEST(l6_nothing_outlives_a_killed_client, &redis),
    };
    if (argc == 3 && strcmp(argv[1], "live") == 0)
        return live_until_killed(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
