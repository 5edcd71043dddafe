/* test_admin_seen.c - what an administrator is told for judging what is wrong: since when
 * a queue is paused, when it was last served, what died lately and why, which ticks
 * passed, and for how long a lock is waited for. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "queue/schedule.h"
#include "tests/support/eventually.h"
#include "tests/support/lock_fixture.h"
#include "tests/support/queue_fixture.h"

enum { HOUR_MS = 3600000, MINUTE_MS = 60000, LEASE_MS = 8000 };

static hf_queue_fixture q;
static hf_lock_fixture locks;

static hf_queue_stats stats(void)
{
    hf_queue_stats s = {HF_QUEUE_STATS_INIT};
    assert_int_equal(hf_admin_stats(q.admin, "q", &s, NULL), HF_OK);
    return s;
}

static void a_pause_is_dated_once(void **state)
{
    (void)state;
    assert_true(stats().paused_ms == 0);
    assert_int_equal(hf_admin_pause(q.admin, "q", true, NULL), HF_OK);
    int64_t since = stats().paused_ms;
    assert_true(since > 0 && since <= stats().now_ms);
    (void)hf_fixture_command(&q.redis, "HSET hf:{q}:meta paused_at 77");
    assert_int_equal(hf_admin_pause(q.admin, "q", true, NULL), HF_OK);
    assert_true(stats().paused_ms == 77); /* it is the same pause */
    assert_int_equal(hf_admin_pause(q.admin, "q", false, NULL), HF_OK);
    assert_true(stats().paused_ms == 0);
    assert_int_equal(hf_fixture_number(&q.redis, "HEXISTS hf:{q}:meta paused_at"), 0);
    /* What an older version has left, or another hand has written. */
    (void)hf_fixture_command(&q.redis, "HSET hf:{q}:meta paused_at 77");
    assert_true(stats().paused_ms == 0);
    (void)hf_fixture_command(&q.redis, "HDEL hf:{q}:meta paused_at");
}

static void the_last_claim_is_dated(void **state)
{
    (void)state;
    assert_true(stats().claimed_ms == 0);
    assert_int_equal(hf_queue_fixture_enqueue(&q, "a", 0), HF_OK);
    assert_true(stats().claimed_ms == 0);
    assert_int_equal(hf_queue_fixture_claim(&q, "w", 1, 0), 1);
    int64_t at = stats().claimed_ms;
    assert_true(at <= stats().now_ms && at >= stats().now_ms - 5000);
    /* A clock that went back leaves a fence that is ahead. */
    (void)hf_fixture_command(&q.redis, "HSET hf:{q}:meta fence 4000000000000000");
    assert_true(stats().claimed_ms <= stats().now_ms);
    assert_int_equal(hf_queue_fixture_complete(&q, "w", "a", NULL), HF_OK);
}

/* ---- Redis itself ---- */

static void note_server(const char *place, hf_err err, const char *detail, void *arg)
{
    (void)detail;
    assert_null(place);
    assert_int_equal(err, HF_OK);
    *(hf_server_info *)arg = *hf_admin_server(q.admin);
}

/* The connection is as old as the test. */
static void a_server_tells_what_is_now(void **state)
{
    enum { MIB = 1 << 20 };
    hf_server_info before, after;
    (void)state;
    assert_int_equal(hf_admin_servers(q.admin, note_server, &before, NULL), HF_OK);
    (void)hf_fixture_command(&q.redis, "SETRANGE ballast %d x", 8 * MIB);
    assert_int_equal(hf_admin_servers(q.admin, note_server, &after, NULL), HF_OK);
    assert_true(after.used_memory > before.used_memory + 7 * MIB);
    assert_true(after.commands > before.commands);
    assert_true(after.clients >= 1 && after.cpu_ms >= before.cpu_ms);
    assert_true(hf_admin_server(q.admin)->used_memory == after.used_memory);
    (void)hf_fixture_command(&q.redis, "DEL ballast");
}

static void the_memory_of_a_queue_is_about_that_of_its_jobs(void **state)
{
    enum { JOBS = 500 };
    int64_t empty = 0, full = 0;
    char id[16];
    (void)state;
    assert_int_equal(hf_admin_memory(q.admin, "q", &empty, NULL), HF_OK);
    for (unsigned i = 0; i < JOBS; i++) {
        (void)snprintf(id, sizeof id, "job-%u", i);
        assert_int_equal(hf_queue_fixture_enqueue(&q, id, 0), HF_OK);
    }
    assert_int_equal(hf_admin_memory(q.admin, "q", &full, NULL), HF_OK);
    assert_true(full - empty > JOBS * 100 && full - empty < JOBS * 600);
    assert_int_equal(hf_admin_memory(q.admin, "no name", &full, NULL), HF_INVALID);
}

/* ---- deaths ---- */

static char told[256];

static void on_dead(const hf_job_info *info, void *arg)
{
    assert_ptr_equal(arg, told);
    assert_int_equal(info->state, HF_STATE_DEAD);
    size_t len = strlen(told);
    snprintf(told + len, sizeof told - len, "%s %s;", info->id, info->reason);
}

static const char *deaths(int64_t since_ms, size_t limit)
{
    told[0] = '\0';
    assert_int_equal(hf_admin_deaths(q.admin, "q", since_ms, limit, on_dead, told, NULL),
                     HF_OK);
    return told;
}

static void die(const char *id, const char *reason)
{
    const hf_verdict_args args = {.worker = "w", .dead_max = 100, .dead_age_ms = HOUR_MS};
    const hf_verdict_item item = {
        .id = id, .fence = q.fence, .error = {"broken", 6}, .reason = reason};
    assert_int_equal(hf_queue_fixture_enqueue(&q, id, 0), HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&q, "w", 1, 0), 1);
    assert_int_equal(hf_queue_fixture_verdict(&q, HF_OP_BURY, &args, &item), HF_OK);
}

static void deaths_are_told_from_a_time_on_with_their_reasons(void **state)
{
    (void)state;
    assert_string_equal(deaths(1, 10), "");
    die("old", "attempts");
    die("mid", "handler");
    die("new", "attempts");
    int64_t now = stats().now_ms;
    (void)hf_fixture_command(&q.redis, "ZADD hf:{q}:dead %lld old %lld mid %lld new",
                             (long long)(now - HOUR_MS - 5000), (long long)(now - 10),
                             (long long)now);
    assert_string_equal(deaths(1, 10), "old attempts;mid handler;new attempts;");
    assert_string_equal(deaths(now - 10, 10), "mid handler;new attempts;");
    assert_string_equal(deaths(now - 9, 10), "new attempts;");
    assert_string_equal(deaths(1, 2), "old attempts;mid handler;");
    assert_int_equal(stats().died_hour, 2);
    assert_int_equal(hf_admin_deaths(q.admin, "q", 0, 10, on_dead, told, NULL),
                     HF_INVALID);
    assert_int_equal(hf_admin_deaths(q.admin, "q", 1, 1001, on_dead, told, NULL),
                     HF_INVALID);
}

static void put_dead(const hf_shard_info *shard, void *arg)
{
    char key[HF_ID_SIZE];
    (void)arg;
    (void)snprintf(key, sizeof key, "hf:{%s}:", shard->tag);
    (void)hf_fixture_command(&q.redis, "ZADD %sdead 500 early-%u 2000 d-%u", key,
                             shard->number, shard->number);
    (void)hf_fixture_command(&q.redis,
                             "HSET %sjobs early-%u {\"type\":\"t\"}\n d-%u "
                             "{\"type\":\"t\",\"reason\":\"type\"}\n",
                             key, shard->number, shard->number);
}

static void deaths_of_all_shards_are_told(void **state)
{
    (void)state;
    assert_int_equal(hf_admin_divide(q.admin, "s", 2, NULL), HF_OK);
    assert_int_equal(hf_admin_shards(q.admin, "s", put_dead, NULL, NULL), HF_OK);
    told[0] = '\0';
    assert_int_equal(hf_admin_deaths(q.admin, "s", 1000, 10, on_dead, told, NULL), HF_OK);
    assert_string_equal(told, "d-0 type;d-1 type;");
    told[0] = '\0';
    assert_int_equal(hf_admin_deaths(q.admin, "s", 1000, 1, on_dead, told, NULL), HF_OK);
    assert_string_equal(told, "d-0 type;");
}

/* ---- schedules ---- */

static void tick(const char *gen, int64_t next, int64_t tick_ms)
{
    hf_err err;
    const char *const ids[] = {"j-new"};
    const hf_cron_tick one = {.id = {"s", 1},
                              .next = {"3000", 4},
                              .gen = gen,
                              .new_next_ms = next,
                              .from_ms = tick_ms,
                              .n = 1,
                              .ids = ids,
                              .ticks_ms = &tick_ms,
                              .dues_ms = &tick_ms};
    (void)hf_fixture_command(&q.redis, "ZADD hf:{q}:cron_next 3000 s");
    HF_QUEUE_FIXTURE_ASK(err, &q,
                         hf_op_cron_tick(q.client, &q.queue,
                                         &(hf_cron_tick_args){.ticks = &one, .n = 1},
                                         hf_queue_fixture_on_answer, &q));
    assert_int_equal(err, HF_OK);
}

static hf_schedule_info info_of(const char *id)
{
    hf_schedule_info info = {HF_SCHEDULE_INFO_INIT};
    assert_int_equal(hf_admin_schedule(q.admin, "q", id, &info, NULL, NULL), HF_OK);
    return info;
}

static void put_state(const char *more)
{
    (void)hf_fixture_command(&q.redis,
                             "HSET hf:{q}:cron_state s {\"gen\":\"1000\",\"job\":\"j\","
                             "\"tick\":60000,\"accepted\":1,%s}",
                             more);
}

static void ticks_that_made_no_job_are_counted_since_the_last_that_did(void **state)
{
    (void)state;
    const hf_schedule s = {HF_SCHEDULE_INIT, .id = "s", .queue = "q", .type = "t",
                           .every_ms = MINUTE_MS};
    assert_int_equal(hf_admin_schedule_put(q.admin, &s, NULL), HF_OK);
    put_state("\"from\":60000");
    assert_int_equal(info_of("s").passed, 0);
    put_state("\"from\":180000,\"skipped\":2");
    assert_int_equal(info_of("s").passed, 2);
    put_state("\"from\":180000,\"dropped\":2");
    assert_int_equal(info_of("s").passed, 2);
    put_state("\"from\":180000,\"skipped\":2,\"paused\":1");
    assert_int_equal(info_of("s").passed, 0);
    put_state("\"from\":180000,\"skipped\":2");
    tick("1000", 240000, 180000);
    assert_int_equal(info_of("s").accepted, 2);
    assert_int_equal(info_of("s").passed, 0);
    /* A change begins anew. */
    (void)hf_fixture_command(&q.redis, "HSET hf:{q}:cron_state s {\"gen\":\"120000000\","
                                       "\"tick\":60000,\"from\":180000,\"skipped\":9}");
    assert_int_equal(info_of("s").passed, 1);
    assert_int_equal(hf_admin_schedule_remove(q.admin, "q", "s", NULL), HF_OK);
}

/* ---- locks ---- */

static void a_lock_tells_since_when_it_is_held_and_waited_for(void **state)
{
    (void)state;
    hf_lock_look look = {HF_LOCK_LOOK_INIT};
    hf_lock *held = hf_lock_must(&locks, locks.a, "n",
                                 (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LEASE_MS});
    hf_lock_waiter waiter;
    hf_lock_wait_begin(&waiter, &locks, locks.b, "n", (hf_lock_opts){HF_LOCK_OPTS_INIT});
    assert_int_equal(hf_lock_look_at(locks.a, "n", 9, &look, NULL), HF_OK);
    assert_int_equal(look.n, 2);
    for (size_t i = 0; i < 2; i++) {
        const hf_lock_entry *e = hf_lock_look_entry(&look, i);
        assert_int_equal(e->granted, i == 0);
        assert_true(e->since_ms > look.now_ms - 15000 && e->since_ms <= look.now_ms);
        assert_int_equal(e->lease_ms, i == 0 ? LEASE_MS : 5000);
    }
    assert_true(look.entries[0].since_ms <= look.entries[1].since_ms);
    hf_lock_look_done(&look);
    hf_lock_released(held);
    hf_lock_wait_released(&waiter);
}

static bool count_name(const char *name, void *arg)
{
    assert_string_equal(name, "n");
    ++*(size_t *)arg;
    return true;
}

static void locks_are_looked_for_as_long_as_was_said(void **state)
{
    (void)state;
    size_t n = 0;
    hf_lock *held = hf_lock_must(&locks, locks.a, "n", (hf_lock_opts){HF_LOCK_OPTS_INIT});
    assert_int_equal(hf_lock_list_for(locks.a, NULL, 0, count_name, &n, locks.detail),
                     HF_TIMEOUT);
    assert_int_equal(n, 0);
    assert_string_equal(locks.detail, "not all keys were looked at in this time");
    assert_int_equal(hf_lock_list_for(locks.a, NULL, 20000, count_name, &n, NULL), HF_OK);
    assert_int_equal(n, 1);
    hf_lock_released(held);
}

/* No piece can be as short as a slice, so the place behind the first one is made up. */
static void a_search_for_locks_goes_on_where_it_ended(void **state)
{
    (void)state;
    size_t n = 0;
    char place[HF_LOCK_PLACE_SIZE] = "";
    hf_lock *held = hf_lock_must(&locks, locks.a, "n", (hf_lock_opts){HF_LOCK_OPTS_INIT});
    assert_int_equal(hf_lock_list_for(locks.a, place, 0, count_name, &n, NULL),
                     HF_TIMEOUT);
    assert_string_equal(place, "0/0");
    assert_int_equal(hf_lock_list_for(locks.a, place, 20000, count_name, &n, NULL),
                     HF_OK);
    assert_string_equal(place, "");
    assert_int_equal(n, 1);
    (void)snprintf(place, sizeof place, "1/0"); /* there is one node, 0 */
    assert_int_equal(hf_lock_list_for(locks.a, place, 20000, count_name, &n, NULL),
                     HF_OK);
    assert_string_equal(place, "");
    assert_int_equal(n, 1);
    hf_lock_released(held);
}

int main(void)
{
    hf_lock_fixture_up(&locks, NULL);
    const struct CMUnitTest tests[] = {
        HF_ADMIN_TEST(a_pause_is_dated_once, &q),
        HF_ADMIN_TEST(the_last_claim_is_dated, &q),
        HF_ADMIN_TEST(a_server_tells_what_is_now, &q),
        HF_ADMIN_TEST(the_memory_of_a_queue_is_about_that_of_its_jobs, &q),
        HF_ADMIN_TEST(deaths_are_told_from_a_time_on_with_their_reasons, &q),
        HF_ADMIN_TEST(deaths_of_all_shards_are_told, &q),
        HF_ADMIN_TEST(ticks_that_made_no_job_are_counted_since_the_last_that_did, &q),
        HF_LOCK_TEST(a_lock_tells_since_when_it_is_held_and_waited_for, &locks),
        HF_LOCK_TEST(locks_are_looked_for_as_long_as_was_said, &locks),
        HF_LOCK_TEST(a_search_for_locks_goes_on_where_it_ended, &locks),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hf_lock_fixture_down(&locks);
    return failed;
}
