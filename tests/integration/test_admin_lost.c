/* test_admin_lost.c - answers to slices of a purge, or of a sweep over the dead, that get
 * lost: never more is taken than was asked for, and nothing that came in later; and
 * answers that never come. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "queue_scripts.h"
#include "tests/support/admin.h"
#include "tests/support/eventually.h"
#include "tests/support/proxy.h"
#include "tests/support/queue_fixture.h"

static hf_queue_fixture fixture;
static hf_proxy proxy;
static hf_admin *admin; /* through the proxy */
static char detail[HF_DETAIL_SIZE];

static void must(hf_err err)
{
    if (err != HF_OK)
        fail_msg("%s: %s", hf_err_name(err), detail);
}

static void enqueue(const char *word, unsigned n, int64_t due_ms)
{
    for (unsigned i = 0; i < n; i++) {
        char id[32];
        (void)snprintf(id, sizeof id, "%s-%05u", word, i % 100000);
        assert_int_equal(hf_queue_fixture_enqueue(&fixture, id, due_ms), HF_OK);
    }
}

static void bury_all(const char *word, unsigned n)
{
    enum { BURY_MS = 600000 }; /* one request for each job */
    const hf_verdict_args args = {
        .worker = "w", .dead_max = 100000, .dead_age_ms = 1000000};
    enqueue(word, n, 0);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", n, BURY_MS), n);
    for (unsigned i = 0; i < n; i++) {
        char id[32];
        (void)snprintf(id, sizeof id, "%s-%05u", word, i % 100000);
        const hf_verdict_item item = {.id = id, .reason = "handler"};
        assert_int_equal(hf_queue_fixture_verdict(&fixture, HF_OP_BURY, &args, &item),
                         HF_OK);
    }
}

/* Of the next request of this script. */
static void lose_answer_of(const hf_script *script)
{
    (void)hf_fixture_command(&fixture.redis, "SCRIPT LOAD %s", script->text);
    hf_proxy_lose_answer(&proxy, script->sha1);
}

static hf_queue_stats stats(void)
{
    hf_queue_stats out = {HF_QUEUE_STATS_INIT};
    must(hf_admin_stats(admin, "q", &out, detail));
    return out;
}

/* ---- purge ---- */

static bool feed_once(size_t done, size_t total, void *arg)
{
    const int64_t *due_ms = arg;
    (void)total;
    if (done == 500)
        enqueue("new", 600, *due_ms);
    return true;
}

static void purge_and_lose(int64_t old_due_ms, int64_t new_due_ms)
{
    size_t n;
    enqueue("old", 1200, old_due_ms);
    int64_t at = hf_queue_fixture_now(&fixture);
    EVENTUALLY(15000, hf_queue_fixture_now(&fixture) > at);
    lose_answer_of(&hf_lua_queue_purge);
    must(hf_admin_purge(admin, "q", feed_once, &new_due_ms, &n, detail));
    assert_int_equal(hf_proxy_cuts(&proxy), 1);
    assert_int_equal(n, 1200);
    assert_int_equal(stats().deleted, 1200);
    assert_int_equal(stats().ready + stats().delayed, 600);
    assert_int_equal(hf_fixture_number(&fixture.redis, "HEXISTS hf:{q}:jobs new-00000"),
                     1);
}

static void a_purge_of_what_is_for_later_takes_nothing_new(void **state)
{
    (void)state;
    purge_and_lose(-3600000, -7200000);
}

static void nor_what_is_due_at_once(void **state)
{
    (void)state;
    purge_and_lose(-3600000, 0);
}

static void nor_does_one_of_what_is_due(void **state)
{
    (void)state;
    purge_and_lose(0, -3600000);
}

/* One that was there is deleted by somebody else, and one comes in while the dead are
 * purged: it is not taken in the other's place. */
static bool swap(size_t done, size_t total, void *arg)
{
    size_t *calls = arg;
    (void)done;
    (void)total;
    if (++*calls == 1)
        must(hf_admin_delete(admin, "q", "old-00599", NULL, detail));
    if (*calls == 2) { /* all of those for later are gone */
        int64_t at = hf_queue_fixture_now(&fixture);
        EVENTUALLY(15000, hf_queue_fixture_now(&fixture) > at);
        enqueue("new", 1, 0);
    }
    return true;
}

static void a_place_that_became_free_is_not_filled(void **state)
{
    size_t n, calls = 0;
    (void)state;
    bury_all("dead", 10);
    enqueue("old", 600, -3600000);
    int64_t at = hf_queue_fixture_now(&fixture);
    EVENTUALLY(15000, hf_queue_fixture_now(&fixture) > at);
    must(hf_admin_purge(admin, "q", swap, &calls, &n, detail));
    assert_int_equal(n, 599 + 10);
    assert_true(calls > 2);
    assert_int_equal(hf_fixture_number(&fixture.redis, "HEXISTS hf:{q}:jobs new-00000"),
                     1);
}

/* ---- the dead ---- */

static void no_more_dead_are_purged_than_the_limit_says(void **state)
{
    const hf_dead_filter filter = {HF_DEAD_FILTER_INIT, .limit = 10};
    size_t n;
    (void)state;
    bury_all("dead", 600);
    lose_answer_of(&hf_lua_queue_delete);
    must(hf_admin_dead_purge(admin, "q", &filter, NULL, NULL, &n, detail));
    assert_int_equal(hf_proxy_cuts(&proxy), 1);
    assert_int_equal(stats().dead, 590);
}

static void no_more_come_back_than_the_limit_says(void **state)
{
    const hf_dead_filter filter = {HF_DEAD_FILTER_INIT, .limit = 10};
    size_t n;
    (void)state;
    bury_all("dead", 600);
    lose_answer_of(&hf_lua_queue_requeue);
    must(hf_admin_dead_retry(admin, "q", &filter, 0, NULL, NULL, &n, detail));
    assert_int_equal(hf_proxy_cuts(&proxy), 1);
    assert_int_equal(stats().dead, 590);
    assert_int_equal(stats().ready, 10);
}

static void one_that_went_with_a_lost_answer_is_counted(void **state)
{
    hf_dead_filter filter = {HF_DEAD_FILTER_INIT, .id = "dead-00001"};
    size_t n;
    (void)state;
    bury_all("dead", 3);
    lose_answer_of(&hf_lua_queue_delete);
    must(hf_admin_dead_purge(admin, "q", &filter, NULL, NULL, &n, detail));
    assert_int_equal(n, 1);
    filter.id = "dead-00002";
    lose_answer_of(&hf_lua_queue_requeue);
    must(hf_admin_dead_retry(admin, "q", &filter, 0, NULL, NULL, &n, detail));
    assert_int_equal(n, 1);
    assert_int_equal(hf_proxy_cuts(&proxy), 2);
    must(hf_admin_dead_retry(admin, "q", &filter, 0, NULL, NULL, &n, detail));
    assert_int_equal(n, 0);
    filter.id = "none";
    must(hf_admin_dead_purge(admin, "q", &filter, NULL, NULL, &n, detail));
    assert_int_equal(n, 0);
}

/* ---- an answer that never comes ---- */

static hf_err purge_it(void)
{
    size_t n;
    return hf_admin_purge(admin, "q", NULL, NULL, &n, detail);
}

static hf_err purge_the_dead(void)
{
    size_t n;
    return hf_admin_dead_purge(admin, "q", NULL, NULL, NULL, &n, detail);
}

static hf_err cancel_one(void)
{
    return hf_admin_cancel(admin, "q", "one-00000", NULL, detail);
}

static hf_err delete_one(void)
{
    return hf_admin_delete(admin, "q", "one-00000", NULL, detail);
}

static hf_err retry_one(void)
{
    return hf_admin_retry(admin, "q", "one-00000", detail);
}

static hf_err pause_it(void)
{
    return hf_admin_pause(admin, "q", true, detail);
}

static hf_err look(void)
{
    hf_queue_stats out = {HF_QUEUE_STATS_INIT};
    return hf_admin_stats(admin, "q", &out, detail);
}

/* Redis goes away with the answer: whoever asked for a change hears that it may have
 * been made. */
static void a_change_in_doubt_is_not_told_as_not_done(void **state)
{
    static const struct {
        const hf_script *script;
        hf_err (*call)(void);
        bool unsure;
    } cases[] = {
        {&hf_lua_queue_cancel, cancel_one, true},
        {&hf_lua_queue_delete, delete_one, true},
        {&hf_lua_queue_requeue, retry_one, true},
        {&hf_lua_queue_pause, pause_it, true},
        {&hf_lua_queue_delete, purge_the_dead, true},
        {&hf_lua_queue_purge, purge_it, true},
        {&hf_lua_queue_stats, look, false},
    };
    (void)state;
    bury_all("dead", 1);
    hf_admin_close(admin);
    const hf_admin_opts opts = {HF_ADMIN_OPTS_INIT, .server = HF_SERVER(.url = proxy.url),
                                .deadline_ms = 5000};
    assert_int_equal(hf_admin_open(&admin, &opts, detail), HF_OK);
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        unsigned cuts = hf_proxy_cuts(&proxy);
        (void)hf_queue_fixture_enqueue(&fixture, "one-00000",
                                       -60000); /* or it is there still */
        EVENTUALLY(15000, look() == HF_OK);
        lose_answer_of(cases[i].script);
        hf_proxy_refuse(&proxy, true);
        hf_err err = cases[i].call();
        assert_true(err != HF_OK && (err == HF_UNSURE) == cases[i].unsure);
        assert_int_equal(hf_proxy_cuts(&proxy), cuts + 1);
        hf_proxy_refuse(&proxy, false);
    }
}

static int up(void **state)
{
    (void)state;
    hf_queue_fixture_start(&fixture, NULL);
    hf_proxy_start(&proxy, fixture.redis.socket);
    admin = hf_test_admin(proxy.url);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_admin_close(admin);
    hf_proxy_stop(&proxy);
    hf_queue_fixture_stop(&fixture);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_purge_of_what_is_for_later_takes_nothing_new),
        TEST(nor_what_is_due_at_once),
        TEST(nor_does_one_of_what_is_due),
        TEST(a_place_that_became_free_is_not_filled),
        TEST(no_more_dead_are_purged_than_the_limit_says),
        TEST(no_more_come_back_than_the_limit_says),
        TEST(one_that_went_with_a_lost_answer_is_counted),
        TEST(a_change_in_doubt_is_not_told_as_not_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
