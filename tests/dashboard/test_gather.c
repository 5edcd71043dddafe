/* test_gather.c - facts that are read again and again: what did not change is kept. */
#include "seen/gather.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/clock.h"
#include "seen/gather_past.h"
#include "seen/running.h"
#include "tests/support/redis_fixture.h"

static hf_fixture redis;
static hf_admin *admin;
static hf_facts facts;

static int set_up(void **state)
{
    static hf_server_opts server;
    const hf_admin_opts opts = {HF_ADMIN_OPTS_INIT, .server = &server};
    int result = hf_fixture_up(state);
    server = (hf_server_opts){HF_SERVER_OPTS_INIT, .url = hf_fixture_url(&redis)};
    facts = (hf_facts){.late_ms = HF_FACTS_LATE_MS};
    return result != 0 ? result : hf_admin_open(&admin, &opts, NULL) == HF_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    hf_facts_done(&facts);
    hf_admin_close(admin);
    return hf_fixture_down(state);
}

/* A queue with so many dead jobs; the i-th has the id `i`, and died i seconds ago. */
static void bury(const char *queue, unsigned from, unsigned to, const char *error)
{
    static const char script[] =
        "redis.call('SADD', 'hf:{/}:queues', ARGV[1]) local P = 'hf:{' .. ARGV[1] .. "
        "'}:' "
        "for i = ARGV[2], ARGV[3] do redis.call('HSET', P .. 'jobs', i, "
        "'{\"type\":\"t\",\"attempts\":1,\"error\":\"' .. ARGV[4] .. '\"}\\n') "
        "redis.call('ZADD', P .. 'dead', redis.call('TIME')[1] * 1000 - i * 1000, i) end "
        "return 1";
    (void)hf_fixture_command(&redis, "EVAL %s 0 %s %u %u %s", script, queue, from, to,
                             error);
}

static void gather_some(size_t deaths, size_t pasts)
{
    hf_facts now = {.late_ms = HF_FACTS_LATE_MS};
    const hf_gather_opts opts = {
        .admin = admin, .before = &facts, .deaths = deaths, .pasts = pasts};
    assert_int_equal(hf_facts_gather(&opts, &now), HF_OK);
    hf_facts_done(&facts);
    facts = now;
}

static void gather(size_t deaths)
{
    gather_some(deaths, 0);
}

static void deaths_are_read_again_when_one_more_died(void **state)
{
    (void)state;
    bury("q", 10, 19, "old");
    gather(100);
    assert_int_equal(facts.queues[0].deaths.alike, 10);
    (void)hf_fixture_command(&redis, "DEL hf:{q}:jobs"); /* nobody looks at the records */
    gather(100);
    assert_int_equal(facts.queues[0].deaths.looked, 10);
    assert_string_equal(facts.queues[0].deaths.error, "old");
    bury("q", 1, 9, "new");
    bury("q", 30, 40, "new");
    gather(100);
    assert_int_equal(facts.queues[0].deaths.looked, 30);
    assert_string_equal(facts.queues[0].deaths.error, "new");
}

static void deaths_of_all_queues_are_read_by_and_by(void **state)
{
    (void)state;
    for (char name[] = "a"; *name <= 'e'; ++*name)
        bury(name, 1, 10, "e");
    static const unsigned in_all[] = {25, 45, 50};
    for (size_t round = 0; round < HF_COUNT(in_all); round++) {
        unsigned looked = 0;
        gather(25);
        for (size_t i = 0; i < facts.n_queues; i++)
            looked += (unsigned)facts.queues[i].deaths.looked;
        assert_int_equal(looked, in_all[round]);
    }
}

static void histories_of_all_queues_are_read_by_and_by(void **state)
{
    (void)state;
    for (char name[] = "a"; *name <= 'e'; ++*name)
        bury(name, 1, 1, "e");
    static const unsigned in_all[] = {2, 4, 5};
    for (size_t round = 0; round < HF_COUNT(in_all); round++) {
        unsigned known = 0;
        gather_some(100, 2);
        for (size_t i = 0; i < facts.n_queues; i++)
            known += facts.queues[i].past.known;
        assert_int_equal(known, in_all[round]);
    }
}

static void reasons_are_read_again_when_a_queue_has_moved(void **state)
{
    (void)state;
    const long long due = hf_wall_ms() - 60000;
    (void)hf_fixture_command(&redis, "SADD hf:{/}:queues q");
    (void)hf_fixture_command(&redis, "HSET hf:{q}:jobs a %s", "{\"type\":\"t\"}\n");
    (void)hf_fixture_command(&redis, "ZADD hf:{q}:schedule %lld a", due);
    gather(100);
    assert_non_null(facts.queues[0].oldest);
    assert_string_equal(facts.queues[0].oldest->job.type, "t");
    (void)hf_fixture_command(&redis, "HSET hf:{q}:jobs a %s", "{\"type\":\"u\"}\n");
    gather(100);
    assert_string_equal(facts.queues[0].oldest->why.job->type, "t");
    assert_int_equal(facts.queues[0].oldest->why.now_ms, facts.queues[0].stats.now_ms);
    (void)hf_fixture_command(&redis, "HINCRBY hf:{q}:meta done 1");
    gather(100);
    assert_string_equal(facts.queues[0].oldest->why.job->type, "u");
}

static void the_past_of_a_queue_that_stands_still_is_judged_by_its_age(void **state)
{
    (void)state;
    const int64_t minute = hf_wall_ms() / 60000 - 1;
    bury("q", 1, 1, "e");
    (void)hf_fixture_command(&redis, "HSET hf:{q}:meta done 60 failed 40");
    (void)hf_fixture_command(&redis, "HSET hf:{q}:past:%lld !crashed 7",
                             (long long)minute);
    gather(100);
    assert_int_equal(facts.queues[0].past.crashed, 7);
    assert_true(facts.queues[0].past.known);
    /* Nobody reads them again; but they grow old. */
    (void)hf_fixture_command(&redis, "DEL hf:{q}:past:%lld", (long long)minute);
    gather(100);
    assert_int_equal(facts.queues[0].past.crashed, 7);
    hf_queue_stats later = facts.queues[0].stats;
    later.now_ms += 12 * (int64_t)60000;
    hf_gather_past_judge(&later, &facts.queues[0].past);
    assert_int_equal(facts.queues[0].past.crashed, 0);
    (void)hf_fixture_command(&redis, "HINCRBY hf:{q}:meta done 1");
    gather(100);
    assert_int_equal(facts.queues[0].past.crashed, 0);
}

static void a_queue_rests_until_a_job_has_run(void **state)
{
    (void)state;
    bury("q", 1, 1, "e");
    gather(100);
    assert_int_equal(facts.queues[0].ran_ms, 0);
    (void)hf_fixture_command(&redis, "HINCRBY hf:{q}:meta enqueued 1");
    gather(100);
    assert_int_equal(facts.queues[0].ran_ms, 0);
    assert_int_equal(facts.queues[0].moved_ms, facts.queues[0].stats.now_ms);
    (void)hf_fixture_command(&redis, "HINCRBY hf:{q}:meta done 1");
    gather(100);
    const int64_t ran_ms = facts.queues[0].ran_ms;
    assert_int_equal(ran_ms, facts.queues[0].stats.now_ms);
    gather(100);
    assert_int_equal(facts.queues[0].ran_ms, ran_ms);
}

static bool rests(const char *queue, void *arg)
{
    (void)queue;
    return *(const bool *)arg;
}

static void a_queue_that_rests_is_not_looked_at(void **state)
{
    (void)state;
    bool does = true;
    const hf_running_calls calls = {.rests = rests, .now_ms = 5, .arg = &does};
    hf_running *running = hf_running_new(NULL);
    bury("q", 1, 1, "e");
    assert_int_equal(hf_running_look(running, admin, &calls, NULL), HF_OK);
    assert_int_equal(hf_running_queues(running), 0);
    assert_int_equal(hf_running_now_ms(running), 5);
    assert_int_equal(hf_fixture_calls(&redis, "xrange"), 0);
    does = false;
    assert_int_equal(hf_running_look(running, admin, &calls, NULL), HF_OK);
    assert_int_equal(hf_running_queues(running), 1);
    assert_int_equal(hf_fixture_calls(&redis, "xrange"), 1);
    hf_running_free(running);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate_setup_teardown(deaths_are_read_again_when_one_more_died,
                                                 set_up, tear_down, &redis),
        cmocka_unit_test_prestate_setup_teardown(deaths_of_all_queues_are_read_by_and_by,
                                                 set_up, tear_down, &redis),
        cmocka_unit_test_prestate_setup_teardown(
            histories_of_all_queues_are_read_by_and_by, set_up, tear_down, &redis),
        cmocka_unit_test_prestate_setup_teardown(
            reasons_are_read_again_when_a_queue_has_moved, set_up, tear_down, &redis),
        cmocka_unit_test_prestate_setup_teardown(
            the_past_of_a_queue_that_stands_still_is_judged_by_its_age, set_up, tear_down,
            &redis),
        cmocka_unit_test_prestate_setup_teardown(a_queue_rests_until_a_job_has_run,
                                                 set_up, tear_down, &redis),
        cmocka_unit_test_prestate_setup_teardown(a_queue_that_rests_is_not_looked_at,
                                                 set_up, tear_down, &redis),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
