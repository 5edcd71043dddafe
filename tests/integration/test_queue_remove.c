/* test_queue_remove.c - `holdfast queue remove`: what holds something stays, and what is
 * removed leaves nothing that lists it. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "queue_scripts.h"
#include "tests/support/cli_try.h"
#include "tests/support/eventually.h"
#include "tests/support/proxy.h"

#define RECORD "{\"type\":\"t\"}\n"
#define ADDED(set) "ZADD hf:{q}:" set " 1 j", "HSET hf:{q}:jobs j " RECORD
#define LATER "32503680000000" /* the year 3000 */

enum { LONG_MS = 15000 };

static hf_cli_fixture *const fixture = &hf_try_fixture;

#define RUN(...) hf_fixture_command(&fixture->redis, __VA_ARGS__)

static void no_queue_is_listed(void)
{
    hf_try_run("queue list @", 0);
    assert_string_equal(fixture->out, "there are no queues yet\n");
}

static void a_queue_that_is_empty_is_removed(void **state)
{
    (void)state;
    hf_try_run("enqueue t @ -q defualt", 0);
    hf_try_run("queue remove defualt --yes @", 1);
    assert_string_equal(fixture->err,
                        "holdfast: queue 'defualt' is not empty: 1 waiting job\n");
    hf_try_run("queue pause defualt @", 0);
    hf_try_run("queue limit defualt --max-running 2 @", 0);
    hf_try_run("queue purge defualt --yes @", 0);
    (void)RUN("SET hf:{defualt}:seen:p 1:1 PX 60000");
    hf_try_run("queue remove defualt @", 64);
    hf_try_run("queue remove defualt --yes @", 0);
    assert_string_equal(fixture->out, "defualt: removed\n");
    no_queue_is_listed();
    assert_int_equal(hf_fixture_number(&fixture->redis, "EXISTS hf:{defualt}:meta"), 0);
    /* A producer's request that is sent again is still known. */
    assert_int_equal(hf_fixture_number(&fixture->redis, "EXISTS hf:{defualt}:seen:p"), 1);
    hf_try_run("doctor --fix --idle @", 0);
    no_queue_is_listed();
    hf_try_run("queue remove defualt --yes @", 1);
    assert_string_equal(fixture->err, "holdfast: no queue 'defualt'\n");
    hf_try_run("enqueue t @ -q defualt", 0);
    assert_int_equal(hf_try_figure("defualt", "enqueued"), 1);
    hf_try_run("queue remove a/b --yes @", 65);
    hf_try_run("queue remove --yes @", 64);
}

/* Redis's clock may be set back before the queue is used again. */
static void its_fences_go_on_where_they_were(void **state)
{
    (void)state;
    hf_try_run("queue pause q @", 0);
    (void)RUN("HSET hf:{q}:meta fence 9007199254740000");
    hf_try_run("queue remove q --yes @", 0);
    assert_int_equal(hf_fixture_number(&fixture->redis, "HLEN hf:{q}:meta"), 1);
    assert_string_equal(RUN("HGET hf:{q}:meta fence"), "9007199254740000");
    hf_try_run("doctor --fix --idle @", 0);
    no_queue_is_listed();
}

static void json_says_it(void **state)
{
    (void)state;
    hf_try_run("queue pause q @", 0);
    hf_try_run("queue remove q --yes --json @", 0);
    assert_string_equal(fixture->out, "{\"queue\":\"q\",\"removed\":true}\n");
    hf_try_run("queue remove q --yes --json @", 1);
    hf_try_has(fixture->err, "no queue 'q'");
}

static void what_holds_something_stays_and_says_what(void **state)
{
    static const struct {
        const char *commands[4], *said;
    } cases[] = {
        {{ADDED("schedule")}, "1 waiting job"},
        {{ADDED("schedule:h")}, "1 waiting job"},
        {{"ZADD hf:{q}:schedule " LATER " j", "HSET hf:{q}:jobs j " RECORD},
         "1 waiting job"},
        {{ADDED("parked")}, "1 waiting job"},
        {{ADDED("running")}, "1 running job"},
        {{ADDED("dead"), "ZADD hf:{q}:dead 1 k"}, "2 dead jobs"},
        {{"ZADD hf:{q}:done 1 j", "ZADD hf:{q}:kept " LATER " j"}, "1 kept job"},
        {{"HSET hf:{q}:jobs j " RECORD}, "1 stray record"},
        {{"HSET hf:{q}:cron s {\"every\":1000,\"job\":{\"type\":\"t\"}}\n"},
         "1 schedule"},
        {{"ZADD hf:{q}:workers " LATER " w"}, "1 live worker"},
        {{"HSET hf:{q}:unique k j", "ZADD hf:{q}:windows " LATER " k"}, "1 unique key"},
        {{ADDED("dead"), "ZADD hf:{q}:workers " LATER " w"}, "1 dead job, 1 live worker"},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        char said[160];
        (void)RUN("FLUSHALL");
        (void)RUN("SADD hf:{/}:queues q");
        (void)RUN("HSET hf:{q}:meta enqueued 1");
        for (size_t k = 0; k < 4 && cases[i].commands[k] != NULL; k++)
            (void)RUN(cases[i].commands[k]);
        (void)snprintf(said, sizeof said, "holdfast: queue 'q' is not empty: %s\n",
                       cases[i].said);
        const long long keys = hf_fixture_number(&fixture->redis, "DBSIZE");
        hf_try_run("queue remove q --yes @", 1);
        hf_try_has(fixture->err, said);
        assert_int_equal(hf_fixture_number(&fixture->redis, "DBSIZE"), keys);
        assert_int_equal(hf_fixture_number(&fixture->redis, "SCARD hf:{/}:queues"), 1);
    }
}

/* Of what is over nothing stays. */
static void what_was_left_behind_goes(void **state)
{
    static const char *const left[] = {
        "ZADD hf:{q}:workers 1 w",    "HSET hf:{q}:handles w t",
        "ZADD hf:{q}:leases 1 1000",  "ZADD hf:{q}:done 1 j",
        "ZADD hf:{q}:kept 1 j",       "HSET hf:{q}:results j {}",
        "HSET hf:{q}:unique k j",     "ZADD hf:{q}:windows 1 k",
        "ZADD hf:{q}:wake 0 baton",   "HSET hf:{q}:cron_state s {\"removed\":1}",
        "ZADD hf:{q}:cron_named 1 s", "HSET hf:{q}:meta on_dead {} file 1",
        "HSET hf:{q}:checkpoint j 1", "HSET hf:{q}:progress j 1",
        "HSET hf:{q}:crashes j 1",    "HSET hf:{q}:cancel j 1",
        "HSET hf:{q}:waits j 1",      "HSET hf:{q}:logs j 1",
        "ZADD hf:{q}:cron_next 1 s",  "ZADD hf:{q}:expires 1 j",
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(left); i++)
        (void)RUN(left[i]);
    hf_try_run("queue remove q --yes @", 0);
    /* But the answer to this request, for as long as it may come again. */
    assert_int_equal(
        hf_fixture_number(&fixture->redis, "EVAL %s 0",
                          "local n = 0 for _, k in ipairs(redis.call('KEYS', "
                          "'*')) do n = n + (string.find(k, ':answer:') and "
                          "0 or 1) end return n"),
        0);
}

static void a_queue_with_a_worker_stays_until_it_has_gone(void **state)
{
    (void)state;
    hf_try_worker("worker @ -c w.yaml -q mail");
    hf_try_run("queue remove mail --yes @", 1);
    hf_try_has(fixture->err, "queue 'mail' is not empty: 1 live worker");
    hf_proc_signal(&hf_try_proc, SIGTERM);
    assert_true(hf_proc_wait(&hf_try_proc, LONG_MS));
    hf_try_run("queue remove mail --yes @", 0);
    no_queue_is_listed();
}

static void a_setting_that_ends_leaves_no_queue(void **state)
{
    static const char *const lines[][2] = {
        {"queue pause q @", "queue resume q @"},
        {"queue limit q --max-running 2 @", "queue limit q --max-running 0 @"},
        {"queue limit q --rate 5/1s @", "queue limit q --rate 0 @"},
        {"cron add s t -q q --every 1h @", "cron remove s -q q @"},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(lines); i++) {
        hf_try_run(lines[i][0], 0);
        hf_try_run(lines[i][1], 0);
        no_queue_is_listed();
        hf_try_run("doctor --fix --idle @", 0);
        no_queue_is_listed();
    }
    hf_try_run("queue pause q @", 0); /* one of two ends */
    hf_try_run("queue limit q --rate 5/1s @", 0);
    hf_try_run("queue resume q @", 0);
    hf_try_run("queue show q @", 0);
    hf_try_run("enqueue t @ -q used", 0); /* its counters are worth something */
    hf_try_run("queue purge used --yes @", 0);
    hf_try_run("queue pause used @", 0);
    hf_try_run("queue resume used @", 0);
    hf_try_run("queue show used @", 0);
    hf_try_run("queue shards wide 4 @", 0); /* its division is a setting */
    hf_try_run("queue pause wide @", 0);
    hf_try_run("queue resume wide @", 0);
    hf_try_run("queue show wide @", 0);
}

static void a_divided_queue_is_removed_when_all_shards_are_empty(void **state)
{
    (void)state;
    hf_try_run("queue shards wide 4 @", 0);
    hf_try_run("enqueue t @ -q wide --id one", 0);
    hf_try_run("enqueue t @ -q wide --id two --in 1h", 0);
    hf_try_run("queue remove wide --yes @", 1);
    hf_try_has(fixture->err, "queue 'wide' is not empty: 2 waiting jobs");
    hf_try_run("queue show wide @", 0);
    hf_try_run("queue pause wide @", 0);
    hf_try_run("queue purge wide --yes @", 0);
    hf_try_run("queue remove wide --yes @", 0);
    no_queue_is_listed();
    hf_try_run("doctor --fix --idle @", 0);
    no_queue_is_listed();
    hf_try_run("queue remove wide --yes @", 1);
    hf_try_run("enqueue t @ -q wide --id one", 0);
    hf_try_run("queue shards wide @", 0);
    hf_try_has(fixture->out, "wide: 4 shards\n");
    assert_int_equal(hf_try_figure("wide", "ready"), 1);
    hf_try_run("queue list @", 0);
    hf_try_has(fixture->out, "wide   on ");
}

/* Its keys and its name are in two slots of a cluster, so no script removes both. */
static void one_that_is_used_meanwhile_stays_on_the_list(void **state)
{
    char line[HF_CLI_PATH];
    hf_proxy proxy;
    hf_proc proc;
    (void)state;
    hf_proxy_start(&proxy, fixture->redis.socket);
    hf_try_run("enqueue t @ -q q", 0);
    hf_try_run("queue purge q --yes @", 0);
    (void)RUN("SCRIPT LOAD %s", hf_lua_queue_unregister.text);
    hf_proxy_keep_request(&proxy, hf_lua_queue_unregister.sha1);
    (void)snprintf(line, sizeof line, "queue remove q --yes --redis %s", proxy.url);
    hf_cli_fixture_begin(fixture, &proc, line, "said");
    EVENTUALLY(LONG_MS, hf_proxy_keeps_request(&proxy));
    hf_try_run("enqueue t @ -q q", 0);
    hf_proxy_let_go(&proxy);
    assert_true(hf_proc_wait(&proc, LONG_MS));
    assert_int_equal(proc.status, 1);
    hf_try_has(hf_cli_fixture_get(fixture, "said"), "queue 'q' was used just now");
    hf_try_run("queue list @", 0);
    hf_try_has(fixture->out, "\nq ");
    hf_proxy_stop(&proxy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup(name, hf_try_clean)
        TEST(a_queue_that_is_empty_is_removed),
        TEST(its_fences_go_on_where_they_were),
        TEST(json_says_it),
        TEST(what_holds_something_stays_and_says_what),
        TEST(what_was_left_behind_goes),
        TEST(a_queue_with_a_worker_stays_until_it_has_gone),
        TEST(a_setting_that_ends_leaves_no_queue),
        TEST(a_divided_queue_is_removed_when_all_shards_are_empty),
        TEST(one_that_is_used_meanwhile_stays_on_the_list),
    };
    hf_try_up(HF_TEST_COMMAND,
              HF_CLI_PATIENT "handlers:\n  - {type: t, exec: ['true']}\n");
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hf_try_down();
    return failed;
}
