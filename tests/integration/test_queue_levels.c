/* test_queue_levels.c - priorities: which waiting job comes first, that none waits for
 * ever, and that a job keeps its level on each way back. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "queue_scripts.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"

static hf_queue_fixture fixture;
static char detail[HF_DETAIL_SIZE];

/* Of this priority, NULL: it names none; due as in hf_enqueue_item. */
static hf_err put(const char *id, const char *priority, int64_t due_ms)
{
    char record[128];
    int len = snprintf(record, sizeof record, "{\"type\":\"t\"%s%s%s}\n",
                       priority != NULL ? ",\"priority\":\"" : "",
                       priority != NULL ? priority : "", priority != NULL ? "\"" : "");
    const hf_enqueue_args args = {.producer = "", .options = priority != NULL};
    const hf_enqueue_item item = {id, due_ms, {record, (size_t)len}};
    hf_err err = hf_queue_fixture_enqueue_items(&fixture, &args, &item, 1);
    return err == HF_OK && fixture.n_codes == 1 ? fixture.codes[0] : err;
}

static void must_put(const char *id, const char *priority, int64_t due_ms)
{
    assert_int_equal(put(id, priority, due_ms), HF_OK);
}

/* Jobs `<letter>0`, `<letter>1` and so on, each due behind the one before it. */
static void put_many(const char *letter, const char *priority, int n, int64_t due_ms)
{
    for (int i = 0; i < n; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "%s%d", letter, i);
        must_put(id, priority, due_ms + i);
    }
}

static size_t claim(uint32_t max)
{
    return hf_queue_fixture_claim(&fixture, "w", max, 0);
}

/* How many of the claimed jobs have an id that begins with it. */
static int count(char letter)
{
    int n = 0;
    for (size_t i = 0; i < fixture.n_jobs; i++)
        n += fixture.jobs[i].id[0] == letter;
    return n;
}

static bool in_set(const char *set, const char *id)
{
    const char *score =
        hf_fixture_command(&fixture.redis, "ZSCORE hf:{q}:%s %s", set, id);
    return strcmp(score, "(nil)") != 0;
}

/* Whether `uses` names levels. */
static bool is_levelled(void)
{
    const char *uses = hf_fixture_command(&fixture.redis, "HGET hf:{q}:meta uses");
    return strcmp(uses, "(nil)") != 0 && strchr(uses, 'l') != NULL;
}

/* ---- the order ---- */

static void a_higher_level_comes_first(void **state)
{
    static const char *const order[] = {"h0", "h1", "n0", "n1", "l0", "l1"};
    (void)state;
    put_many("l", "low", 2, 1);
    put_many("n", NULL, 2, 10);
    put_many("h", "high", 2, 20);
    assert_int_equal(claim(6), 6);
    for (size_t i = 0; i < HF_COUNT(order); i++)
        assert_string_equal(fixture.jobs[i].id, order[i]);
    assert_int_equal(fixture.jobs[0].due_ms, 20);
    assert_int_equal(fixture.jobs[5].due_ms, 2);
}

static void of_every_eight_one_is_the_oldest(void **state)
{
    (void)state;
    put_many("l", "low", 4, 1);
    put_many("n", NULL, 4, 10);
    put_many("h", "high", 40, 20);
    int low = 0;
    for (int i = 0; i < 16; i++) { /* one at a time */
        assert_int_equal(claim(1), 1);
        low += count('l');
        assert_int_equal(low, (i + 1) / 8);
    }
    assert_int_equal(claim(32), 32); /* and many at a time */
    assert_int_equal(count('l'), 2);
    assert_int_equal(count('n'), 4);
    assert_int_equal(count('h'), 26);
}

static void a_low_job_starts_within_eight_times_its_place(void **state)
{
    char id[16];
    int i = 0;
    (void)state;
    must_put("low", "low", 1);
    for (; i < 9; i++) {
        (void)snprintf(id, sizeof id, "h%d", i);
        must_put(id, "high", 0);
        assert_int_equal(claim(1), 1);
        if (count('l') == 1)
            break;
    }
    assert_in_range(i, 0, 7);
}

static void what_is_not_due_waits_at_any_level(void **state)
{
    int64_t now;
    (void)state;
    must_put("later", "high", -60000);
    now = fixture.now_ms;
    must_put("now", "low", 0);
    assert_int_equal(claim(2), 1);
    assert_string_equal(fixture.jobs[0].id, "now");
    assert_true(fixture.next_ms >= now + 60000); /* the wake-up is for the other one */
    assert_false(fixture.more);
}

static void limits_count_jobs_of_all_levels(void **state)
{
    (void)state;
    put_many("l", "low", 2, 1);
    put_many("h", "high", 2, 10);
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:meta max_running 3 uses ln");
    assert_int_equal(claim(10), 3);
    assert_int_equal(count('h'), 2);
    assert_int_equal(claim(10), 0);
}

static void large_records_are_weighed_at_each_level(void **state)
{
    enum { BIG = 5 << 20 };
    static char record[BIG] = "{\"type\":\"t\",\"priority\":\"high\"}\n";
    const hf_enqueue_args args = {.producer = "", .options = true};
    const hf_enqueue_item items[] = {{"h0", 0, {record, BIG}}, {"h1", 0, {record, BIG}}};
    (void)state;
    assert_int_equal(hf_queue_fixture_enqueue_items(&fixture, &args, items, 2), HF_OK);
    must_put("l0", "low", 0);
    assert_int_equal(claim(3), 1);
    assert_true(fixture.more);
    assert_int_equal(claim(3), 2);
    assert_int_equal(count('l'), 1);
}

static void a_lock_held_elsewhere_blocks_no_level(void **state)
{
    (void)state;
    must_put("locked", "high", 1);
    must_put("free", "low", 2);
    (void)hf_fixture_command(&fixture.redis, "SET hf:{q}:lock:locked other:1 PX 2000");
    assert_int_equal(claim(1), 1);
    assert_string_equal(fixture.jobs[0].id, "free");
    assert_true(in_set("schedule:h", "locked"));
    EVENTUALLY(15000, claim(1) == 1);
    assert_string_equal(fixture.jobs[0].id, "locked");
}

/* ---- every way back ---- */

static void verdict(hf_verdict_op op, const char *id, const char *error, bool started)
{
    const hf_verdict_args args = {.worker = "w", .dead_max = 10, .dead_age_ms = 1000000};
    const hf_verdict_item item = {.id = id,
                                  .error = {error, strlen(error)},
                                  .reason = "handler",
                                  .started = started};
    assert_int_equal(hf_queue_fixture_verdict(&fixture, op, &args, &item), HF_OK);
}

static void each_way_back_keeps_the_level(void **state)
{
    static const char *const levels[][2] = {{"high", "schedule:h"},
                                            {"low", "schedule:l"}};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(levels); i++) {
        const char *set = levels[i][1];
        must_put("one", levels[i][0], 0);
        assert_int_equal(claim(1), 1);
        verdict(HF_OP_RELEASE, "one", "", false);
        assert_true(in_set(set, "one"));
        assert_int_equal(claim(1), 1);
        verdict(HF_OP_RELEASE, "one", "no handler", false);
        assert_true(in_set(set, "one"));
        assert_int_equal(claim(1), 1);
        verdict(HF_OP_RETRY, "one", "it broke", true);
        assert_true(in_set(set, "one"));
        assert_int_equal(claim(1), 1);
        assert_int_equal(hf_queue_fixture_unclaim(&fixture, "w", fixture.number), HF_OK);
        assert_true(in_set(set, "one"));
        assert_int_equal(claim(1), 1);
        verdict(HF_OP_BURY, "one", "no good", true);
        assert_int_equal(hf_queue_fixture_check(&fixture, "w", false), HF_OK);
        assert_false(is_levelled()); /* nothing needs the letter now */
        assert_int_equal(hf_admin_retry(fixture.admin, "q", "one", detail), HF_OK);
        assert_true(in_set(set, "one"));
        assert_int_equal(claim(1), 1);
        assert_int_equal(hf_queue_fixture_complete(&fixture, "w", "one", NULL), HF_OK);
    }
}

/* The last waiting job of its level runs, and comes back. */
static void the_letter_stays_while_a_job_runs(void **state)
{
    (void)state;
    must_put("one", "high", 0);
    assert_true(is_levelled());
    assert_int_equal(claim(1), 1);
    assert_int_equal(hf_queue_fixture_check(&fixture, "w", false), HF_OK);
    assert_true(is_levelled());
    verdict(HF_OP_RELEASE, "one", "", false);
    assert_int_equal(claim(1), 1);
    assert_int_equal(hf_queue_fixture_complete(&fixture, "w", "one", NULL), HF_OK);
    assert_int_equal(hf_queue_fixture_check(&fixture, "w", false), HF_OK);
    assert_false(is_levelled());
}

static void a_job_that_ends_wakes_a_worker_for_another_level(void **state)
{
    (void)state;
    must_put("one", "high", 0);
    must_put("two", "high", 0);
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:meta max_running 1 uses ln");
    assert_int_equal(claim(1), 1);
    (void)hf_fixture_command(&fixture.redis, "DEL hf:{q}:wake");
    assert_int_equal(hf_queue_fixture_complete(&fixture, "w", fixture.jobs[0].id, NULL),
                     HF_OK);
    assert_int_equal(hf_fixture_number(&fixture.redis, "EXISTS hf:{q}:wake"), 1);
}

/* ---- ids, and the tools ---- */

static void an_id_is_known_at_every_level(void **state)
{
    (void)state;
    must_put("h", "high", 0);
    must_put("l", "low", -60000);
    must_put("n", NULL, 0);
    assert_int_equal(put("h", NULL, 0), HF_EXISTS);
    assert_int_equal(put("l", NULL, 0), HF_EXISTS);
    assert_int_equal(put("l", "high", 0), HF_EXISTS);
    assert_int_equal(put("n", "high", 0), HF_EXISTS);
    assert_int_equal(hf_fixture_number(&fixture.redis, "HLEN hf:{q}:jobs"), 3);
}

static char listed[256];

static void on_job(const hf_job_info *info, void *arg)
{
    (void)arg;
    (void)snprintf(listed + strlen(listed), sizeof listed - strlen(listed), "%s ",
                   info->id);
}

static const char *list(hf_job_state which, size_t page)
{
    char next[HF_CURSOR_SIZE] = "";
    listed[0] = '\0';
    do {
        assert_int_equal(hf_admin_list(fixture.admin, "q", which,
                                       next[0] != '\0' ? next : NULL, page, on_job, NULL,
                                       next, detail),
                         HF_OK);
    } while (next[0] != '\0');
    return listed;
}

static void lists_are_in_one_order(void **state)
{
    (void)state;
    must_put("a", "low", 1);
    must_put("b", NULL, 2);
    must_put("c", "high", 2);
    must_put("d", "low", 2);
    must_put("e", NULL, 3);
    must_put("y", "low", -60000);
    must_put("z", "high", -120000);
    for (size_t page = 1; page <= 8; page++)
        assert_string_equal(list(HF_STATE_READY, page), "a b c d e ");
    assert_string_equal(list(HF_STATE_DELAYED, 1), "y z ");
}

static void figures_count_all_levels(void **state)
{
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    (void)state;
    must_put("a", "low", 7);
    must_put("b", NULL, 8);
    must_put("c", "high", -60000);
    assert_int_equal(hf_admin_stats(fixture.admin, "q", &stats, detail), HF_OK);
    assert_int_equal(stats.ready, 2);
    assert_int_equal(stats.delayed, 1);
    assert_int_equal(stats.oldest_ready_ms, 7);
    assert_true(stats.next_due_ms > stats.now_ms);
}

static void why_counts_what_comes_before(void **state)
{
    hf_job_info info = {HF_JOB_INFO_INIT};
    hf_job_why why = {HF_JOB_WHY_INIT, .job = &info};
    (void)state;
    must_put("a", "low", 1);
    must_put("b", "low", 2);
    put_many("n", NULL, 3, 10);
    put_many("h", "high", 4, 20);
    assert_int_equal(hf_admin_why(fixture.admin, "q", "b", &why, detail), HF_OK);
    assert_int_equal(why.before, 8);
    assert_int_equal(info.priority, HF_PRIORITY_LOW);
    assert_int_equal(hf_admin_why(fixture.admin, "q", "n1", &why, detail), HF_OK);
    assert_int_equal(why.before, 5);
    assert_int_equal(hf_admin_why(fixture.admin, "q", "h2", &why, detail), HF_OK);
    assert_int_equal(why.before, 2);
}

static void each_level_can_be_cleared(void **state)
{
    size_t n = 0;
    (void)state;
    put_many("h", "high", 4, 1);
    put_many("l", "low", 4, 1);
    must_put("later", "low", -60000);
    must_put("n", NULL, 1);
    assert_int_equal(hf_admin_cancel(fixture.admin, "q", "h0", NULL, detail), HF_OK);
    assert_int_equal(hf_admin_delete(fixture.admin, "q", "l0", NULL, detail), HF_OK);
    assert_int_equal(hf_admin_retry(fixture.admin, "q", "later", detail), HF_OK);
    assert_true(in_set("schedule:l", "later"));
    assert_int_equal(hf_admin_purge(fixture.admin, "q", NULL, NULL, &n, detail), HF_OK);
    assert_int_equal(n, 8);
    assert_int_equal(hf_fixture_number(&fixture.redis, "EXISTS hf:{q}:jobs"), 0);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "deleted"), 9);
}

static void what_was_ready_stays_ready_when_the_clock_is_set_back(void **state)
{
    (void)state;
    must_put("h", "high", 0);
    must_put("l", "low", 0);
    /* As if the clock had been an hour ahead when they were put. */
    (void)hf_fixture_command(
        &fixture.redis, "EVAL %s 0",
        "local t = redis.call('TIME') local ahead = t[1] * 1000 + 3600000 "
        "redis.call('ZADD', 'hf:{q}:schedule:h', ahead, 'h') "
        "redis.call('ZADD', 'hf:{q}:schedule:l', ahead, 'l') "
        "redis.call('HSET', 'hf:{q}:meta', 'high', string.format('%.0f', ahead))");
    assert_int_equal(claim(2), 2);
}

/* ---- other callers ---- */

static const char *foreign(const hf_script *script, const char *record)
{
    static char said[256];
    redisContext *c = hf_fixture_connect(&fixture.redis);
    redisReply *reply = redisCommand(c, "EVAL %s 1 hf:{q}: %s 0 0 0 0 one 0 %s",
                                     (const char *)script->text, "", record);
    assert_non_null(reply);
    (void)snprintf(said, sizeof said, "%s",
                   reply->type == REDIS_REPLY_ERROR ? reply->str : "accepted");
    freeReplyObject(reply);
    redisFree(c);
    return said;
}

static void a_script_refuses_what_it_does_not_act_on(void **state)
{
    const char *said =
        foreign(&hf_lua_queue_enqueue, "{\"type\":\"t\",\"priority\":\"high\"}\n");
    (void)state;
    assert_non_null(strstr(said, "job 1: expected no priority"));
    assert_non_null(strstr(said, "enqueue_with"));
    said =
        foreign(&hf_lua_queue_enqueue_with, "{\"type\":\"t\",\"priority\":\"soon\"}\n");
    assert_non_null(strstr(said, "job 1: expected as its priority high or low"));
    said = foreign(&hf_lua_queue_enqueue_with, "{\"type\":\"t\",\"priority\":7}\n");
    assert_non_null(strstr(said, "job 1: expected as its priority high or low"));
    assert_int_equal(hf_fixture_number(&fixture.redis, "EXISTS hf:{q}:jobs"), 0);
    said = foreign(&hf_lua_queue_enqueue_with, "{\"type\":\"t\",\"priority\":\"low\"}\n");
    assert_string_equal(said, "accepted");
    assert_true(in_set("schedule:l", "one"));
}

#define TEST(name) HF_ADMIN_TEST(name, &fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_higher_level_comes_first),
        TEST(of_every_eight_one_is_the_oldest),
        TEST(a_low_job_starts_within_eight_times_its_place),
        TEST(what_is_not_due_waits_at_any_level),
        TEST(limits_count_jobs_of_all_levels),
        TEST(large_records_are_weighed_at_each_level),
        TEST(a_lock_held_elsewhere_blocks_no_level),
        TEST(each_way_back_keeps_the_level),
        TEST(the_letter_stays_while_a_job_runs),
        TEST(a_job_that_ends_wakes_a_worker_for_another_level),
        TEST(an_id_is_known_at_every_level),
        TEST(lists_are_in_one_order),
        TEST(figures_count_all_levels),
        TEST(why_counts_what_comes_before),
        TEST(each_level_can_be_cleared),
        TEST(what_was_ready_stays_ready_when_the_clock_is_set_back),
        TEST(a_script_refuses_what_it_does_not_act_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
