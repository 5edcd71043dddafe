/* test_admin_why.c - the list of workers, and the reasons why a job does not run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"

enum { TOLD = 16, TOKEN_MS = 2000 };

static hf_queue_fixture fixture;
static char detail[HF_DETAIL_SIZE];
static hf_job_info the_job = {HF_JOB_INFO_INIT};
static hf_job_why why = {HF_JOB_WHY_INIT, .job = &the_job};

typedef struct told {
    hf_worker_info info; /* its lists are not kept */
    char queues[64], types[64];
} told;
static told workers[TOLD];
static size_t n_workers;

static void must(hf_err err)
{
    if (err != HF_OK)
        fail_msg("%s: %s", hf_err_name(err), detail);
}

static void enqueue(const char *id, int64_t due_ms)
{
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, id, due_ms), HF_OK);
}

/* ---- workers ---- */

static void join(char out[64], const char *const *names, size_t n)
{
    out[0] = '\0';
    for (size_t i = 0; i < n && strlen(out) + strlen(names[i]) + 2 < 64; i++)
        (void)snprintf(out + strlen(out), 64 - strlen(out), "%s%s", i == 0 ? "" : " ",
                       names[i]);
}

static void on_worker(const hf_worker_info *info, void *arg)
{
    assert_ptr_equal(arg, &fixture);
    if (n_workers++ >= TOLD)
        return;
    told *t = &workers[n_workers - 1];
    t->info = *info;
    join(t->queues, info->queues, info->n_queues);
    join(t->types, info->types, info->n_types);
}

static void look(void)
{
    n_workers = 0;
    must(hf_admin_workers(fixture.admin, on_worker, &fixture, detail));
}

static void beat(const char *id, const char *json)
{
    hf_err err;
    HF_QUEUE_FIXTURE_ASK(err, &fixture,
                         hf_op_heartbeat(fixture.client, "hf", id, json, 30000,
                                         hf_queue_fixture_on_answer, &fixture));
    assert_int_equal(err, HF_OK);
}

static void a_worker_is_told_as_its_heartbeat_says(void **state)
{
    (void)state;
    look();
    assert_int_equal(n_workers, 0);
    beat("web-1-4711-00c0ffee00c0ffee",
         "{\"v\":1,\"id\":\"web-1-4711-00c0ffee00c0ffee\",\"host\":\"web-1.example\","
         "\"pid\":4712,\"version\":\"0.9.1\",\"state\":\"quiet\",\"concurrency\":16,"
         "\"running\":3,\"started_ms\":1700000000000,\"now_ms\":1700000001000,"
         "\"queues\":[\"a\",\"b\"],\"types\":[\"t\",\"*\"]}");
    look();
    assert_int_equal(n_workers, 1);
    const hf_worker_info *info = &workers[0].info;
    assert_string_equal(info->id, "web-1-4711-00c0ffee00c0ffee");
    assert_string_equal(info->host, "web-1.example");
    assert_int_equal(info->pid, 4712);
    assert_string_equal(info->version, "0.9.1");
    assert_string_equal(info->state, "quiet");
    assert_int_equal(info->concurrency, 16);
    assert_int_equal(info->running, 3);
    assert_true(info->started_ms == 1700000000000);
    assert_true(info->heard_ms == 1700000001000);
    assert_string_equal(workers[0].queues, "a b");
    assert_string_equal(workers[0].types, "t *");
    assert_true(info->all_types);
    assert_false(info->silent);
}

/* Of another build, of another language, or broken: the list goes on, and an id tells its
 * part. */
static void what_a_heartbeat_does_not_tell_is_left_empty(void **state)
{
    static const char *const rubbish[] = {
        "{\"v\":1,\"state\":\"serving\",\"queues\":[\"q\"]}",
        "no JSON",
        "",
        "[1]",
        ("{\"host\":7,\"pid\":\"x\",\"queues\":{},\"types\":[1,\"t\"],\"types_cut\":true,"
         "\"concurrency\":-5,\"running\":99999999999}"),
    };
    char id[64];
    (void)state;
    for (size_t i = 0; i < HF_COUNT(rubbish); i++) {
        (void)snprintf(id, sizeof id, "my-host-%zu-00c0ffee00c0ffee", 10 + i);
        beat(id, rubbish[i]);
    }
    beat("odd", "{}");
    look();
    assert_int_equal(n_workers, HF_COUNT(rubbish) + 1);
    int64_t now = hf_queue_fixture_now(&fixture);
    for (size_t i = 0; i < HF_COUNT(rubbish); i++) {
        assert_string_equal(workers[i].info.host, "my-host");
        assert_int_equal(workers[i].info.pid, 10 + i);
        assert_false(workers[i].info.silent);
        assert_false(workers[i].info.all_types);
        assert_true(workers[i].info.heard_ms <= now &&
                    workers[i].info.heard_ms > now - 10000);
    }
    assert_string_equal(workers[0].info.state, "serving");
    assert_string_equal(workers[0].queues, "q");
    assert_string_equal(workers[4].types, "t");
    assert_int_equal(workers[4].info.concurrency, 0);
    assert_string_equal(workers[5].info.id, "odd");
    assert_string_equal(workers[5].info.host, "");
}

static void silent_workers_come_last_and_those_that_left_not_at_all(void **state)
{
    (void)state;
    beat("b-1-0", "{\"state\":\"serving\"}");
    beat("a-2-0", "{}");
    beat("c-3-0", "{\"state\":\"serving\"}");
    beat("d-4-0", "{\"state\":\"serving\"}");
    beat("d-4-0", NULL);
    (void)hf_fixture_command(&fixture.redis, "DEL hf:{/}:worker:a-2-0");
    (void)hf_fixture_command(&fixture.redis, "ZADD hf:{/}:workers 1700000030000 a-2-0");
    (void)hf_fixture_command(&fixture.redis, "ZADD hf:{/}:workers 1700000030000 a{2");
    hf_queue_stats before = {HF_QUEUE_STATS_INIT}, after = {HF_QUEUE_STATS_INIT};
    must(hf_admin_stats(fixture.admin, "q", &before, detail));
    look();
    must(hf_admin_stats(fixture.admin, "q", &after, detail));
    assert_int_equal(n_workers, 3);
    for (size_t i = 0; i < n_workers; i++) /* Redis's time, silent or not */
        assert_in_range(workers[i].info.now_ms, before.now_ms, after.now_ms);
    assert_string_equal(workers[0].info.id, "b-1-0");
    assert_string_equal(workers[1].info.id, "c-3-0");
    assert_string_equal(workers[2].info.id, "a-2-0");
    assert_true(workers[2].info.silent);
    assert_string_equal(workers[2].info.host, "a");
    assert_int_equal(workers[2].info.pid, 2);
    assert_string_equal(workers[2].info.state, "");
    assert_true(workers[2].info.heard_ms == 1700000000000);
    assert_int_equal(workers[2].info.n_queues, 0);
}

static void many_workers_are_read_in_pages(void **state)
{
    (void)state;
    beat("live-1-0", "{\"state\":\"serving\"}");
    (void)hf_fixture_command(&fixture.redis, "EVAL %s 0",
                             "for i = 1, 2500 do redis.call('ZADD', 'hf:{/}:workers', "
                             "1700000030000, 'w-' .. i .. '-0') end");
    look();
    assert_int_equal(n_workers, 2501);
    assert_string_equal(workers[0].info.id, "live-1-0");
    assert_true(workers[1].info.silent);
}

/* ---- why ---- */

static void ask(const char *id)
{
    must(hf_admin_why(fixture.admin, "q", id, &why, detail));
    assert_string_equal(why.job->id, id);
    assert_string_equal(why.job->queue, "q");
    assert_true(why.now_ms > 0);
}

static void a_job_that_nothing_keeps_is_told_so(void **state)
{
    (void)state;
    enqueue("one", 0);
    ask("one");
    assert_int_equal(why.job->state, HF_STATE_READY);
    assert_string_equal(why.job->type, "t");
    assert_int_equal(why.job->payload_len, 7);
    assert_false(why.paused);
    assert_false(why.cancelling);
    assert_int_equal(why.before + why.max_running + why.running + why.rate_limit, 0);
    assert_int_equal(why.next_token_ms + why.locked_until_ms, 0);
    assert_int_equal(why.workers + why.workers_for_type + why.slots, 0);
    assert_int_equal(why.n_holders, 0);
    assert_int_equal(hf_admin_why(fixture.admin, "q", "none", &why, detail), HF_GONE);
    assert_int_equal(hf_admin_why(fixture.admin, NULL, "none", &why, detail), HF_GONE);
    assert_int_equal(hf_admin_why(fixture.admin, "q", "no id", &why, detail), HF_INVALID);
}

/* As if its holder had died long ago. */
static void end_lease(const char *id)
{
    (void)hf_fixture_command(&fixture.redis, "DEL hf:{q}:lock:%s", id);
    (void)hf_fixture_command(&fixture.redis, "ZADD hf:{q}:running XX 0 %s", id);
}

static void jobs_that_come_first_are_counted(void **state)
{
    (void)state;
    enqueue("left", 0);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 60000), 1);
    enqueue("a", 1700000000000);
    enqueue("b", 1700000000001);
    enqueue("c", 1700000000001);
    enqueue("later", -60000);
    enqueue("last", -90000);
    ask("c");
    assert_int_equal(why.before, 2);
    ask("last"); /* `later` is not due, so it is not before it yet */
    assert_int_equal(why.before, 3);
    assert_int_equal(why.job->state, HF_STATE_DELAYED);
    end_lease("left");
    ask("a"); /* what a dead holder left comes first */
    assert_int_equal(why.before, 1);
    ask("left");
    assert_int_equal(why.before, 0);
    assert_int_equal(why.job->state, HF_STATE_RUNNING);
}

static void a_pause_and_limits_are_told_with_the_workers_that_reach_them(void **state)
{
    char id[8];
    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        (void)snprintf(id, sizeof id, "r%u", i % 10);
        enqueue(id, 0);
        assert_int_equal(
            hf_queue_fixture_claim(&fixture, i < 4 ? "host:1:aa" : "b", 1, 0), 1);
    }
    enqueue("one", 0);
    must(hf_admin_pause(fixture.admin, "q", true, detail));
    must(hf_admin_limit(fixture.admin, "q", 6, 100, 1000, detail));
    ask("one");
    assert_true(why.paused);
    assert_int_equal(why.max_running, 6);
    assert_int_equal(why.running, 6);
    assert_int_equal(why.rate_limit, 100);
    assert_int_equal(why.rate_per_ms, 1000);
    assert_int_equal(why.n_holders, 2);
    assert_string_equal(why.holders[0], "host:1:aa");
    assert_int_equal(why.held[0], 4);
    assert_string_equal(why.holders[1], "b");
    assert_int_equal(why.held[1], 2);
}

static void at_most_eight_holders_are_told(void **state)
{
    char id[8];
    (void)state;
    for (unsigned i = 0; i < 24; i++) {
        char worker[8];
        (void)snprintf(id, sizeof id, "r%u", i % 100);
        (void)snprintf(worker, sizeof worker, "w%02u", i % 12);
        enqueue(id, 0);
        assert_int_equal(hf_queue_fixture_claim(&fixture, i < 22 ? worker : "w11", 1, 0),
                         1);
    }
    ask("r0");
    assert_int_equal(why.running, 24);
    assert_int_equal(why.n_holders, 8);
    assert_string_equal(why.holders[0], "w11");
    assert_int_equal(why.held[0], 3);
    assert_string_equal(why.holders[1], "w00");
    assert_int_equal(why.held[1], 2);
}

/* What is told is when a claim gets one, and not before. */
static void the_next_token_is_when_a_claim_succeeds(void **state)
{
    (void)state;
    must(hf_admin_limit(fixture.admin, "q", -1, 1, TOKEN_MS, detail));
    enqueue("first", 0);
    enqueue("one", 0);
    ask("one");
    assert_int_equal(why.next_token_ms, 0); /* there is one */
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 5, 0), 1);
    ask("one");
    assert_true(why.next_token_ms > why.now_ms &&
                why.next_token_ms <= why.now_ms + TOKEN_MS);
    size_t got = 0;
    EVENTUALLY(15000, (got = hf_queue_fixture_claim(&fixture, "w", 5, 0)) == 1);
    assert_true(fixture.now_ms >= why.next_token_ms);
}

static void a_lock_held_elsewhere_and_a_mark_are_told(void **state)
{
    (void)state;
    enqueue("one", 0);
    enqueue("runs", -60000);
    (void)hf_fixture_command(&fixture.redis, "SET hf:{q}:lock:one w:7 PX 30000");
    ask("one");
    assert_true(why.locked_until_ms > why.now_ms + 20000);
    assert_string_equal(why.job->holder, ""); /* it does not run */
    (void)hf_fixture_command(&fixture.redis, "DEL hf:{q}:lock:one");
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:crashes one %s", "2; somebody");
    ask("one");
    assert_int_equal(why.locked_until_ms, 0);
    assert_string_equal(why.job->holder, "w");
    assert_int_equal(why.job->crashes, 2);
    assert_false(why.cancelling);
    assert_int_equal(hf_admin_cancel(fixture.admin, "q", "one", NULL, detail),
                     HF_RUNNING);
    ask("one");
    assert_true(why.cancelling);
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:cancel one 1");
    ask("one");
    assert_false(why.cancelling); /* it was for another run */
    (void)hf_fixture_command(&fixture.redis, "DEL hf:{q}:cancel hf:{q}:crashes");
}

static void workers_that_serve_the_queue_and_take_the_type_are_counted(void **state)
{
    (void)state;
    enqueue("one", 0);
    beat("a-1-0", "{\"state\":\"serving\",\"concurrency\":4,\"running\":1,"
                  "\"queues\":[\"q\"],\"types\":[\"t\"]}");
    beat("b-1-0", "{\"state\":\"serving\",\"concurrency\":8,\"running\":8,"
                  "\"queues\":[\"x\",\"q\"],\"types\":[\"*\"]}");
    beat("c-1-0", "{\"state\":\"serving\",\"concurrency\":16,\"running\":0,"
                  "\"queues\":[\"q\"],\"types\":[\"other\"]}");
    beat("d-1-0", "{\"state\":\"serving\",\"concurrency\":32,\"running\":0,"
                  "\"queues\":[\"q\"],\"types\":[\"other\"],\"types_cut\":true}");
    beat("e-1-0", "{\"state\":\"serving\",\"concurrency\":64,\"running\":0,"
                  "\"queues\":[\"x\"],\"types\":[\"t\"]}");
    beat("f-1-0", "{\"state\":\"quiet\",\"concurrency\":128,\"running\":0,"
                  "\"queues\":[\"q\"],\"types\":[\"t\"]}");
    (void)hf_fixture_command(&fixture.redis, "ZADD hf:{/}:workers 1700000030000 g-1-0");
    ask("one");
    assert_int_equal(why.workers, 4);
    assert_int_equal(why.workers_for_type, 3); /* `d` does not tell all its types */
    assert_int_equal(why.slots, 4 + 8 + 32);
    assert_int_equal(why.busy, 9);
}

#define TEST(name) HF_ADMIN_TEST(name, &fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_worker_is_told_as_its_heartbeat_says),
        TEST(what_a_heartbeat_does_not_tell_is_left_empty),
        TEST(silent_workers_come_last_and_those_that_left_not_at_all),
        TEST(many_workers_are_read_in_pages),
        TEST(a_job_that_nothing_keeps_is_told_so),
        TEST(jobs_that_come_first_are_counted),
        TEST(a_pause_and_limits_are_told_with_the_workers_that_reach_them),
        TEST(at_most_eight_holders_are_told),
        TEST(the_next_token_is_when_a_claim_succeeds),
        TEST(a_lock_held_elsewhere_and_a_mark_are_told),
        TEST(workers_that_serve_the_queue_and_take_the_type_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
