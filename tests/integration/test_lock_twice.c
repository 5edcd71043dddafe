/* test_lock_twice.c - every script of locks, sent twice with the same arguments, and once
 * after its time: see test_twice.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "lock_scripts.h"
#include "tests/support/twice.h"

#define PREFIX "hf:lock:{t}:"

/* See prepare(). */
static const hf_sending table[] = {
    {.what = "acquire a free lock",
     .script = &hf_lua_lock_acquire,
     .args = {"D", "hd", "c9", "x", "1", "0", "-", "30000", "$T", "m", "200000", "",
              "t/d"},
     .not_after = 9,
     .first = "0 T F"},
    {.what = "acquire several",
     .script = &hf_lua_lock_acquire,
     .args = {"D", "hd", "c9", "x", "1", "0", "wait", "30000", "$T", "m", "200000", "",
              "t/d", "t/e"},
     .not_after = 9,
     .first = "0 T F"},
    {.what = "acquire the line",
     .script = &hf_lua_lock_acquire,
     .args = {"D", "hd", "c9", "x", "1", "0", "wait", "30000", "$T", "m", "200000", "",
              "t/a"},
     .not_after = 9,
     .first = "-11 T 2 T F 60001"},
    {.what = "acquire what is proved to be over",
     .script = &hf_lua_lock_acquire,
     .args = {"D", "hd", "c9", "x", "1", "0", "wait", "30000", "$T", "m", "200000",
              "$clock", "t/a"},
     .not_after = 9,
     .first = "0 T F"},
    {.what = "acquire a moment before it is proved",
     .script = &hf_lua_lock_acquire,
     .args = {"D", "hd", "c9", "x", "1", "0", "-", "30000", "$T", "m", "200000", "$young",
              "t/a"},
     .not_after = 9,
     .first = "-9 T t/a T F 0 0"},
    {.what = "acquire with a reading that Redis's clock contradicts",
     .script = &hf_lua_lock_acquire,
     .args = {"D", "hd", "c9", "x", "1", "0", "-", "30000", "$T", "m", "200000", "$twin",
              "t/a"},
     .not_after = 9,
     .first = "-9 T t/a T F 0 0"},
    {.what = "acquire beside a reading that is new",
     .script = &hf_lua_lock_acquire,
     .args = {"D", "hd", "c9", "x", "1", "0", "-", "30000", "$T", "m", "200000", "$new",
              "t/a"},
     .not_after = 9,
     .first = "-9 T t/a 0 0 0 0"},
    {.what = "acquire with what was read of another line",
     .script = &hf_lua_lock_acquire,
     .args = {"D", "hd", "c9", "x", "1", "0", "-", "30000", "$T", "m", "200000",
              "$another", "t/a"},
     .not_after = 9,
     .first = "-9 T t/a T F 0 0",
     .reads = true},
    {.what = "acquire several locks when one is taken",
     .script = &hf_lua_lock_acquire,
     .args = {"D", "hd", "c9", "x", "1", "0", "-", "30000", "$T", "m", "200000", "",
              "t/a", "t/d"},
     .not_after = 9,
     .first = "-9 T t/a T F 0 0",
     .reads = true},
    {.what = "acquire again without reentrance",
     .script = &hf_lua_lock_acquire,
     .args = {"A", "hd", "c9", "x", "1", "0", "wait", "30000", "$T", "m", "200000", "",
              "t/a"},
     .not_after = 9,
     .first = "-10 T t/a",
     .reads = true},
    {.what = "acquire again with reentrance",
     .script = &hf_lua_lock_acquire,
     .args = {"A", "hd", "c9", "x", "1", "0", "reentrant", "30000", "$T", "m", "200000",
              "", "t/a"},
     .not_after = 9,
     .first = "0 T F"},
    {.what = "acquire with another limit",
     .script = &hf_lua_lock_acquire,
     .args = {"D", "hd", "c9", "p", "1", "4", "wait", "30000", "$T", "m", "200000", "",
              "t/p"},
     .not_after = 9,
     .first = "-12 T 3",
     .reads = true},
    {.what = "acquire a cell",
     .script = &hf_lua_lock_acquire,
     .args = {"D", "hd", "c9", "x", "1", "0", "cell", "30000", "$T", "m", "200000", "",
              "t/d"},
     .not_after = 9,
     .first = "0 T F"},
    {.what = "renew a holder, a waiter, a cell, and others that are none",
     .script = &hf_lua_lock_renew,
     .args = {"$T",  "m",   "200000", "1",     "line",  "90000", "A",
              "ha",  "t/a", "1",      "waits", "90000", "B",     "hb",
              "t/a", "",    "1",      "cell",  "90000", "C",     "hc",
              "t/c", "1",   "line",   "90000", "D",     "hd",    "t/a"},
     .keys = {PREFIX, PREFIX, PREFIX, PREFIX},
     .not_after = 1,
     .first = "0 T 4 1 -11 0 30001 T 3 -2 0 0 0"},
    {.what = "renew a hold that its owner has not",
     .script = &hf_lua_lock_renew,
     .args = {"$T", "m", "200000", "1", "line", "90000", "A", "h0", "t/a"},
     .not_after = 1,
     .first = "0 T 1 0 -2 0 0 0",
     .reads = true},
    {.what = "renew one of an owner's holds, and prove that the other one is over",
     .script = &hf_lua_lock_renew,
     .args = {"$T", "m", "200000", "1", "read", "60000", "O", "ho1", "t/o", "$oclock"},
     .not_after = 1,
     .first = "0 T 1"},
    {.what = "renew one of an owner's holds a moment before the other one is over",
     .script = &hf_lua_lock_renew,
     .args = {"$T", "m", "200000", "1", "read", "60000", "O", "ho1", "t/o", "$oyoung"},
     .not_after = 1,
     .first = "0 T 1 0 0 F 2 T"},
    {.what = "renew one of an owner's holds with what was read under another fence",
     .script = &hf_lua_lock_renew,
     .args = {"$T", "m", "200000", "1", "read", "60000", "O", "ho1", "t/o", "$oanother"},
     .not_after = 1,
     .first = "0 T 1 0 0 F 60001 T",
     .reads = true},
    {.what = "renew what is not there",
     .script = &hf_lua_lock_renew,
     .args = {"$T",  "m",   "200000", "1",     "line",  "90000", "D",
              "hd",  "t/d", "1",      "cell",  "90000", "D",     "hd",
              "t/d", "1",   "only",   "90000", "D",     "t/d"},
     .keys = {PREFIX, PREFIX, PREFIX},
     .not_after = 1,
     .first = "0 T 3 0 -2 0 0 0 1 -2 0 0 0 2 -2 0 0 0",
     .reads = true},
    {.what = "release as the holder",
     .script = &hf_lua_lock_release,
     .args = {"A", "ha", "-", "$T", "m", "", "t/a"},
     .not_after = 4,
     .first = "0 T 0 0",
     .second = "0 T 3 0"},
    {.what = "release a place in the line",
     .script = &hf_lua_lock_release,
     .args = {"B", "hb", "-", "$T", "m", "", "t/a"},
     .not_after = 4,
     .first = "0 T 0 0",
     .second = "0 T 3 0"},
    {.what = "release a cell",
     .script = &hf_lua_lock_release,
     .args = {"C", "hc", "cell", "$T", "m", "", "t/c"},
     .not_after = 4,
     .first = "0 T 0 0",
     .second = "0 T 2 0"},
    {.what = "release what another has",
     .script = &hf_lua_lock_release,
     .args = {"D", "hd", "-", "$T", "m", "", "t/a"},
     .not_after = 4,
     .first = "0 T 3 0",
     .reads = true},
    {.what = "release with a hold that its owner has not",
     .script = &hf_lua_lock_release,
     .args = {"A", "h0", "-", "$T", "m", "", "t/a"},
     .not_after = 4,
     .first = "0 T 3 0",
     .reads = true},
    {.what = "release another's cell",
     .script = &hf_lua_lock_release,
     .args = {"D", "hd", "cell", "$T", "m", "", "t/c"},
     .not_after = 4,
     .first = "0 T 3 0",
     .reads = true},
    {.what = "go from alone to shared",
     .script = &hf_lua_lock_release,
     .args = {"A", "ha", "downgrade", "$T", "m", "", "t/a"},
     .not_after = 4,
     .first = "0 T 1 1"},
    {.what = "force one owner",
     .script = &hf_lua_lock_force,
     .args = {"t/a", "A", "0", "$T", ""},
     .not_after = 4,
     .first = "0 T 1",
     .second = "0 T 0"},
    {.what = "ask for it back",
     .script = &hf_lua_lock_force,
     .args = {"t/a", "", "1", "$T", ""},
     .not_after = 4,
     .first = "0 T 1",
     .again = true}, /* one more message */
    {.what = "look",
     .script = &hf_lua_lock_look,
     .args = {"t/a", "2"},
     .first =
         "0 T  0 2 {A T x 1 1 F c1 t/a ha=x 60000 T B T x 0 1 0 c2 t/a hb=x 60000 T} "
         "1 0 0",
     .reads = true},
    {.what = "fence_check of a higher fence",
     .script = &hf_lua_lock_fence_check,
     .args = {"t/g", "8", "A", "0"},
     .first = "0 T 8"},
    {.what = "fence_check of a lower fence",
     .script = &hf_lua_lock_fence_check,
     .args = {"t/g", "6", "A", "0"},
     .first = "-2 T 7",
     .reads = true},
    {.what = "fence_check of another owner's fence",
     .script = &hf_lua_lock_fence_check,
     .args = {"t/g", "7", "A", "0"},
     .first = "-2 T 7",
     .reads = true},
};

/* ---- before each ---- */

static void prepare(void);
static const char *expand(const char *arg);
static hf_twice suite = {.prefix = PREFIX,
                         .table = table,
                         .n = HF_COUNT(table),
                         .all = hf_lua_lock_all,
                         .prepare = prepare,
                         .expand = expand};

static void enter(const char *owner, const char *hold, const char *client,
                  const char *mode, const char *limit, const char *flags,
                  const char *name)
{
    const char *const args[] = {owner,   hold, client, mode,     "1", limit, flags,
                                "60000", "0",  "m0",   "100000", "",  name,  NULL};
    freeReplyObject(hf_twice_send(&suite, &hf_lua_lock_acquire, NULL, args, false));
}

/* A holds t/a alone and B waits for it; C has the cell t/c, P one of three permits of
 * t/p; two clients of O have t/o, and its clock was read; Z has written to t/g with the
 * fence 7. */
static void prepare(void)
{
    static const char *const keep[] = {"0",     "m0", "100000", "1",   "line",
                                       "60000", "O",  "ho1",    "t/o", NULL};
    assert_string_equal(hf_fixture_command(&suite.redis, "FLUSHALL"), "OK");
    enter("A", "ha", "c1", "x", "0", "-", "t/a");
    enter("B", "hb", "c2", "x", "0", "wait", "t/a");
    enter("C", "hc", "c3", "x", "0", "cell", "t/c");
    enter("P", "hp", "c4", "p", "3", "-", "t/p");
    enter("O", "ho1", "c5", "x", "0", "reentrant", "t/o");
    enter("O", "ho2", "c6", "x", "0", "reentrant", "t/o");
    freeReplyObject(hf_twice_send(&suite, &hf_lua_lock_renew, NULL, keep, false));
    (void)hf_fixture_command(&suite.redis, "SET " PREFIX "guard:t/g %s", "7 Z");
}

/* What machine `m` shows at 200,000 ms of its boot clock: a reading of the line t/a that
 * is past all leases of it. $clock: older than these are long; $twin: the same, but
 * Redis's clock has not gone on meanwhile; $another: the same of an earlier line; $young:
 * not as old; $new: just read. With an `o` in front: of t/o.
 *
 * The line's clock may be a few ms ahead of Redis's, and a reading is no older than it is
 * by either of the two. AHEAD_MS is more than that, so the boot clock decides. */
static const char *expand(const char *arg)
{
    enum { AHEAD_MS = 1000 };
    static char texts[HF_COUNT(table[0].args)][96];
    static size_t n;
    unsigned long long birth, clock;
    if (arg[0] != '$' || strcmp(arg, "$T") == 0)
        return arg;
    char *text = texts[n++ % HF_COUNT(texts)];
    bool of_owner = arg[1] == 'o';
    const char *what = arg + 1 + of_owner;
    const char *of_line = hf_fixture_command(&suite.redis, "HGET " PREFIX "e:%s %s",
                                             of_owner ? "t/o" : "t/a", "#");
    if (sscanf(of_line, "%*u %*u %*u %*u %*u %llu %llu", &birth, &clock) != 2)
        fail_msg("what is '%s'?", of_line);
    unsigned age_ms = what[0] == 'y' ? 59999 : what[0] == 'n' ? 1 : 90000;
    (void)snprintf(text, sizeof texts[0], "%llu:%llu:%u:%llu",
                   what[0] == 'a' ? birth - 1 : birth, clock, 200000 - age_ms,
                   what[0] == 't' ? clock : clock - age_ms - AHEAD_MS);
    return text;
}

/* ---- the tests ---- */

/* Its first sending comes late, after the holder extended the lease. */
static void an_enter_that_comes_again_shortens_no_lease(void **state)
{
    static const char *const extend[] = {"0",     "m0", "100000", "1",   "line",
                                         "90000", "A",  "ha",     "t/a", NULL};
    (void)state;
    prepare();
    freeReplyObject(hf_twice_send(&suite, &hf_lua_lock_renew, NULL, extend, false));
    enter("A", "ha", "c1", "x", "0", "-", "t/a");
    const char *entry = hf_fixture_command(&suite.redis, "HGET " PREFIX "e:t/a %s", "A");
    assert_string_equal(strrchr(entry, ' '), " 90000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HF_TWICE_TESTS(&suite),
        cmocka_unit_test(an_enter_that_comes_again_shortens_no_lease),
    };
    hf_twice_up(&suite);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_twice_down(&suite);
    return failures;
}
