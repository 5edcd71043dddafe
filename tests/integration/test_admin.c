/* test_admin.c - what an administrator sees and does, and how long the calls wait. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pthread.h>

#include "admin/ask.h"
#include "base/base.h"
#include "base/clock.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"

enum { LISTED = 64, SHORT_PAUSES = 4000 };

static hf_queue_fixture fixture;
static char detail[HF_DETAIL_SIZE];
static hf_job_info listed[LISTED];
static size_t n_listed;

static void must(hf_err err)
{
    if (err != HF_OK)
        fail_msg("%s: %s", hf_err_name(err), detail);
}

static void enqueue(const char *id, int64_t due_ms)
{
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, id, due_ms), HF_OK);
}

static void verdict(hf_verdict_op op, const char *id, int64_t due_ms)
{
    const hf_verdict_args args = {
        .worker = "host:1:aa", .dead_max = 500, .dead_age_ms = 1000000};
    const hf_verdict_item item = {.id = id,
                                  .counts = true,
                                  .due_ms = due_ms,
                                  .error = {"it broke", 8},
                                  .reason = "attempts"};
    assert_int_equal(hf_queue_fixture_verdict(&fixture, op, &args, &item), HF_OK);
}

static void claim(const char *id)
{
    assert_int_equal(hf_queue_fixture_claim(&fixture, "host:1:aa", 1, 0), 1);
    assert_string_equal(fixture.jobs[0].id, id);
}

/* `dead`, `again` (after an attempt), `runs`, `ready`, `later`. */
static void fill(void)
{
    enqueue("dead", 0);
    claim("dead");
    verdict(HF_OP_BURY, "dead", 0);
    enqueue("again", 0);
    claim("again");
    verdict(HF_OP_RETRY, "again", 60000);
    enqueue("runs", 0);
    claim("runs");
    enqueue("ready", 0);
    enqueue("later", -90000);
}

/* ---- looking ---- */

static void an_empty_server_has_no_queues(void **state)
{
    char **names;
    size_t n = 1;
    (void)state;
    must(hf_admin_queues(fixture.admin, &names, &n, detail));
    assert_int_equal(n, 0);
    free(names);
}

static void queues_are_named_in_order(void **state)
{
    char **names;
    size_t n;
    (void)state;
    (void)hf_fixture_command(&fixture.redis,
                             "SADD hf:{/}:queues beta alpha gamma.1 no{name");
    must(hf_admin_queues(fixture.admin, &names, &n, detail));
    assert_int_equal(n, 3);
    assert_string_equal(names[0], "alpha");
    assert_string_equal(names[1], "beta");
    assert_string_equal(names[2], "gamma.1");
    free(names);
}

static void figures_count_every_state(void **state)
{
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    (void)state;
    fill();
    assert_int_equal(hf_queue_fixture_check(&fixture, "w", false), HF_OK);
    (void)hf_fixture_command(&fixture.redis, "ZADD hf:{q}:workers 1 gone");
    must(hf_admin_stats(fixture.admin, "q", &stats, detail));
    assert_string_equal(stats.queue, "q");
    assert_false(stats.paused);
    assert_int_equal(stats.ready, 1);
    assert_int_equal(stats.delayed, 2);
    assert_int_equal(stats.running, 1);
    assert_int_equal(stats.dead, 1);
    assert_int_equal(stats.enqueued, 5);
    assert_int_equal(stats.failed, 2); /* the attempts of `dead` and of `again` */
    assert_int_equal(stats.workers, 1);
    assert_true(stats.oldest_ready_ms > 0 && stats.oldest_ready_ms <= stats.now_ms);
    assert_true(stats.next_due_ms > stats.now_ms &&
                stats.next_due_ms <= stats.now_ms + 60000);
    assert_int_equal(hf_queue_fixture_complete(&fixture, "host:1:aa", "runs", NULL),
                     HF_OK);
    must(hf_admin_stats(fixture.admin, "q", &stats, detail));
    assert_int_equal(stats.running, 0);
    assert_int_equal(stats.done, 1);
}

static void a_queue_that_was_never_used_is_empty(void **state)
{
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    (void)state;
    must(hf_admin_stats(fixture.admin, "never", &stats, detail));
    assert_int_equal(stats.ready + stats.delayed + stats.running + stats.dead, 0);
    assert_int_equal(stats.oldest_ready_ms, 0);
    assert_true(stats.now_ms > 0);
}

static void a_job_is_shown_in_each_state(void **state)
{
    hf_job_info info = {HF_JOB_INFO_INIT};
    (void)state;
    fill();
    must(hf_admin_job(fixture.admin, "q", "ready", &info, NULL, detail));
    assert_int_equal(info.state, HF_STATE_READY);
    assert_string_equal(info.id, "ready");
    assert_string_equal(info.queue, "q");
    assert_string_equal(info.type, "t");
    assert_int_equal(info.payload_len, 7);
    assert_true(info.created_ms == 1700000000000);
    assert_string_equal(info.holder, "");
    must(hf_admin_job(fixture.admin, "q", "later", &info, NULL, detail));
    assert_int_equal(info.state, HF_STATE_DELAYED);
    must(hf_admin_job(fixture.admin, "q", "again", &info, NULL, detail));
    assert_int_equal(info.state, HF_STATE_RETRY);
    assert_int_equal(info.attempts, 1);
    assert_string_equal(info.error, "it broke");
    must(hf_admin_job(fixture.admin, "q", "dead", &info, NULL, detail));
    assert_int_equal(info.state, HF_STATE_DEAD);
    assert_int_equal(info.attempts, 1);
    must(hf_admin_job(fixture.admin, "q", "runs", &info, NULL, detail));
    assert_int_equal(info.state, HF_STATE_RUNNING);
    assert_string_equal(info.holder, "host:1:aa"); /* the colons are its own */
    assert_true(info.fence == strtoull(fixture.fence, NULL, 10));
    assert_true(info.lease_remaining_ms > 0 &&
                info.lease_remaining_ms <= HF_FIXTURE_LEASE_MS + 1 /* an even ms */);
    assert_int_equal(hf_admin_job(fixture.admin, "q", "none", &info, NULL, detail),
                     HF_GONE);
    assert_int_equal(hf_admin_job(fixture.admin, "q", "no id", &info, NULL, detail),
                     HF_INVALID);
    assert_non_null(strstr(detail, "no id"));
}

static void a_payload_is_given_when_it_is_wanted(void **state)
{
    hf_job_info info = {HF_JOB_INFO_INIT};
    void *payload;
    (void)state;
    enqueue("one", 0);
    must(hf_admin_job(fixture.admin, "q", "one", &info, &payload, detail));
    assert_int_equal(info.payload_len, 7);
    assert_memory_equal(payload, "payload", 7);
    free(payload);
}

static void a_job_is_found_in_any_queue(void **state)
{
    hf_job_info info = {HF_JOB_INFO_INIT};
    void *payload;
    (void)state;
    enqueue("one", 0);
    (void)hf_fixture_command(&fixture.redis, "SADD hf:{/}:queues a q z");
    must(hf_admin_job(fixture.admin, NULL, "one", &info, &payload, detail));
    assert_string_equal(info.queue, "q");
    free(payload);
    assert_int_equal(hf_admin_job(fixture.admin, NULL, "none", &info, NULL, detail),
                     HF_GONE);
}

static void a_record_that_cannot_be_read_is_shown_as_far_as_it_goes(void **state)
{
    hf_job_info info = {HF_JOB_INFO_INIT};
    void *payload;
    (void)state;
    enqueue("one", 0);
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:jobs one rubbish");
    must(hf_admin_job(fixture.admin, "q", "one", &info, &payload, detail));
    assert_string_equal(info.type, "");
    assert_int_equal(info.payload_len, 7);
    assert_memory_equal(payload, "rubbish", 7);
    free(payload);
    fixture.broken = true;
}

/* ---- lists ---- */

static void on_job(const hf_job_info *info, void *arg)
{
    assert_ptr_equal(arg, &fixture);
    assert_true(n_listed < LISTED);
    listed[n_listed++] = *info;
}

static char next[HF_CURSOR_SIZE];

static hf_err list(hf_job_state state, const char *after, size_t limit)
{
    n_listed = 0;
    return hf_admin_list(fixture.admin, "q", state, after, limit, on_job, &fixture, next,
                         detail);
}

static void each_state_has_its_list(void **state)
{
    static const char *const expected[] = {"ready", NULL, "again", "runs", "dead"};
    (void)state;
    fill();
    for (size_t i = 0; i < HF_COUNT(expected); i++) {
        must(list((hf_job_state)i, NULL, 10));
        if (expected[i] == NULL)
            continue;
        assert_int_equal(n_listed, 1);
        assert_string_equal(listed[0].id, expected[i]);
        assert_int_equal(listed[0].state, i);
        assert_string_equal(listed[0].type, "t");
        assert_int_equal(listed[0].payload_len, 7);
    }
    must(
        list(HF_STATE_DELAYED, NULL, 10)); /* what waits for a retry is delayed as well */
    assert_int_equal(n_listed, 2);
    assert_string_equal(listed[0].id, "again");
    assert_int_equal(listed[0].state, HF_STATE_RETRY);
    assert_string_equal(listed[1].id, "later");
    assert_int_equal(listed[1].state, HF_STATE_DELAYED);
    must(list(HF_STATE_RUNNING, NULL, 10));
    assert_string_equal(listed[0].holder, "host:1:aa");
}

static void a_list_is_read_page_by_page(void **state)
{
    char id[16];
    (void)state;
    for (int i = 0; i < 25; i++) {
        (void)snprintf(id, sizeof id, "id-%02d", i % 100);
        enqueue(id, 1700000000000 + i);
    }
    must(list(HF_STATE_READY, NULL, 10));
    assert_int_equal(n_listed, 10);
    assert_string_equal(listed[9].id, "id-09");
    must(list(HF_STATE_READY, "id-09", 10));
    assert_string_equal(listed[0].id, "id-10");
    must(list(HF_STATE_READY, "id-19", 10));
    assert_int_equal(n_listed, 5);
    assert_string_equal(listed[4].id, "id-24");
    must(list(HF_STATE_READY, "id-24", 10));
    assert_int_equal(n_listed, 0);
    assert_int_equal(list(HF_STATE_READY, "gone", 10), HF_GONE);
    assert_int_equal(list(HF_STATE_READY, NULL, 0), HF_INVALID);
    assert_int_equal(list(HF_STATE_READY, NULL, 1001), HF_INVALID);
}

/* Few that failed, and far behind many that only wait. */
static void a_sparse_list_is_searched_to_its_end(void **state)
{
    enum { MANY = 2500 };
    static char ids[MANY][16];
    static hf_enqueue_item items[MANY];
    static const char plain[] = "{\"v\":1,\"type\":\"t\",\"created\":1}\n";
    static const char failed[] =
        "{\"v\":1,\"type\":\"t\",\"created\":1,\"attempts\":3}\n";
    (void)state;
    for (size_t i = 0; i < MANY; i++) {
        bool hit = i % 800 == 799;
        (void)snprintf(ids[i], sizeof ids[i], "id-%04zu", i);
        items[i] = (hf_enqueue_item){
            ids[i],
            -60000 - (int64_t)i * 10,
            {hit ? failed : plain, (hit ? sizeof failed : sizeof plain) - 1}};
    }
    const hf_enqueue_args args = {.producer = ""};
    assert_int_equal(hf_queue_fixture_enqueue_items(&fixture, &args, items, MANY), HF_OK);
    must(list(HF_STATE_RETRY, NULL, 10));
    assert_int_equal(n_listed, 3);
    assert_string_equal(listed[0].id, "id-0799");
    assert_string_equal(listed[2].id, "id-2399");
    must(list(HF_STATE_RETRY, NULL, 2));
    assert_int_equal(n_listed, 2);
    must(list(HF_STATE_RETRY, "id-1599", 2));
    assert_int_equal(n_listed, 1);
}

static void enqueue_block(size_t block, size_t n, hf_bytes record)
{
    static char ids[10000][16];
    static hf_enqueue_item items[10000];
    const hf_enqueue_args args = {.producer = ""};
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "id-%zu-%04zu", block, i);
        items[i] = (hf_enqueue_item){ids[i], -60000 - (int64_t)block * 1000, record};
    }
    assert_int_equal(hf_queue_fixture_enqueue_items(&fixture, &args, items, n), HF_OK);
}

static void a_list_that_has_looked_at_many_says_where_to_continue(void **state)
{
    enum { BLOCKS = 6, BLOCK = 10000 };
    static const char plain[] = "{\"v\":1,\"type\":\"t\",\"created\":1}\n";
    (void)state;
    for (size_t i = 0; i < BLOCKS; i++)
        enqueue_block(i, BLOCK, (hf_bytes){plain, sizeof plain - 1});
    enqueue("again", 0);
    claim("again");
    verdict(HF_OP_RETRY, "again", 600000); /* behind all of them */
    must(list(HF_STATE_RETRY, NULL, 10));
    assert_int_equal(n_listed, 0);
    assert_non_null(strstr(next, "/id-4-9999"));
    char from[HF_CURSOR_SIZE];
    memcpy(from, next, sizeof from);
    must(list(HF_STATE_RETRY, from, 10));
    assert_int_equal(n_listed, 1);
    assert_string_equal(next, "");
    must(list(HF_STATE_DELAYED, NULL, 10));
    assert_int_equal(n_listed, 10);
    assert_non_null(strstr(next, "/id-0-0009"));
}

/* Each script looks at about 1 MiB of records, the list at as many as were asked for. */
static void a_list_of_large_records_is_whole(void **state)
{
    enum { LARGE = 600 << 10, MANY = 7 };
    static const char line[] = "{\"v\":1,\"type\":\"t\",\"created\":1}\n";
    static char record[LARGE];
    (void)state;
    memset(record, 'x', sizeof record);
    memcpy(record, line, sizeof line - 1);
    enqueue_block(0, MANY, (hf_bytes){record, sizeof record});
    must(list(HF_STATE_DELAYED, NULL, 50));
    assert_int_equal(n_listed, MANY);
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(listed[i].id[strlen("id-0-000")], '0' + (int)i);
        assert_int_equal(listed[i].payload_len, LARGE - (sizeof line - 1));
    }
    must(list(HF_STATE_DELAYED, "id-0-0001", 3));
    assert_int_equal(n_listed, 3);
    assert_string_equal(listed[2].id, "id-0-0004");
}

/* ---- doing ---- */

static void limits_are_set_left_and_lifted(void **state)
{
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    (void)state;
    must(hf_admin_limit(fixture.admin, "q", 5, 100, 1000, detail));
    must(hf_admin_limit(fixture.admin, "q", -1, 200, 2000, detail));
    must(hf_admin_stats(fixture.admin, "q", &stats, detail));
    assert_int_equal(stats.max_running, 5);
    assert_int_equal(stats.rate_limit, 200);
    assert_int_equal(stats.rate_per_ms, 2000);
    must(hf_admin_limit(fixture.admin, "q", 0, 0, 0, detail));
    must(hf_admin_pause(fixture.admin, "q", true, detail));
    must(hf_admin_stats(fixture.admin, "q", &stats, detail));
    assert_int_equal(stats.max_running + stats.rate_limit + stats.rate_per_ms, 0);
    assert_true(stats.paused);
    assert_int_equal(hf_admin_limit(fixture.admin, "q", -2, -1, -1, detail), HF_INVALID);
    assert_int_equal(hf_admin_limit(fixture.admin, "q", -1, 10, -1, detail), HF_INVALID);
    assert_int_equal(hf_admin_limit(fixture.admin, "q", -1, 10, 0, detail), HF_INVALID);
}

/* What is set before anybody uses the queue is found again; what sets nothing makes no
 * queue known. */
static void a_queue_that_is_paused_or_limited_is_registered(void **state)
{
    size_t n;
    char **names;
    (void)state;
    must(hf_admin_pause(fixture.admin, "p", false, detail));
    must(hf_admin_limit(fixture.admin, "l", 0, -1, -1, detail));
    must(hf_admin_queues(fixture.admin, &names, &n, detail));
    free(names);
    assert_int_equal(n, 0);
    must(hf_admin_pause(fixture.admin, "p", true, detail));
    must(hf_admin_limit(fixture.admin, "l", 1, -1, -1, detail));
    must(hf_admin_limit(fixture.admin, "r", -1, 1, 1000, detail));
    must(hf_admin_queues(fixture.admin, &names, &n, detail));
    assert_int_equal(n, 3);
    assert_string_equal(names[0], "l");
    assert_string_equal(names[1], "p");
    assert_string_equal(names[2], "r");
    free(names);
}

static void the_enqueue_script_is_the_one_that_is_sent(void **state)
{
    size_t len;
    const char *sha1;
    (void)state;
    const char *text = hf_enqueue_script(&len, &sha1);
    assert_int_equal(strlen(text), len);
    assert_string_equal(hf_fixture_command(&fixture.redis, "SCRIPT LOAD %s", text), sha1);
    text = hf_enqueue_with_script(&len, &sha1);
    assert_int_equal(strlen(text), len);
    assert_string_equal(hf_fixture_command(&fixture.redis, "SCRIPT LOAD %s", text), sha1);
    text = hf_register_script(&len, &sha1);
    assert_int_equal(strlen(text), len);
    assert_string_equal(hf_fixture_command(&fixture.redis, "SCRIPT LOAD %s", text), sha1);
}

/* ---- waiting ---- */

/* Does something to the job a little later, from another thread and connection. */
typedef struct later {
    pthread_t thread;
    const char *command;
    unsigned after_ms;
} later;

static void *do_later(void *arg)
{
    const later *l = arg;
    hf_test_pause_ms(l->after_ms);
    redisContext *c = hf_fixture_connect(&fixture.redis);
    if (c != NULL)
        freeReplyObject(redisCommand(c, l->command));
    redisFree(c);
    return NULL;
}

static hf_err wait_while(later *l, uint32_t deadline_ms)
{
    assert_int_equal(pthread_create(&l->thread, NULL, do_later, l), 0);
    hf_err err = hf_admin_wait(fixture.admin, "q", "one", 0, deadline_ms, detail);
    assert_int_equal(pthread_join(l->thread, NULL), 0);
    return err;
}

static void a_job_that_is_lost_is_not_told_as_done(void **state)
{
    later gone = {.command = "ZREM hf:{q}:schedule one", .after_ms = 60};
    (void)state;
    fixture.broken = true; /* the record stays */
    assert_int_equal(hf_admin_wait(fixture.admin, "q", "one", 0, 100, detail),
                     HF_GONE); /* no such job */
    enqueue("one", -60000);
    assert_int_equal(wait_while(&gone, 5000), HF_GONE); /* by no exit */
}

static void waiting_tells_that_the_job_is_dead(void **state)
{
    (void)state;
    enqueue("one", 0);
    claim("one");
    verdict(HF_OP_BURY, "one", 0);
    assert_int_equal(hf_admin_wait(fixture.admin, "q", "one", 0, 0, detail), HF_DEAD);
    assert_string_equal(detail, "it broke");
}

static void waiting_ends_at_its_deadline(void **state)
{
    (void)state;
    enqueue("one", -60000);
    uint64_t from = hf_test_now_ms();
    assert_int_equal(hf_admin_wait(fixture.admin, "q", "one", 0, 120, detail),
                     HF_TIMEOUT);
    assert_true(hf_test_now_ms() - from >= 120);
}

static void waiting_survives_a_lost_connection(void **state)
{
    char kill[64];
    later killed = {.command = kill, .after_ms = 50};
    (void)state;
    (void)snprintf(kill, sizeof kill, "CLIENT KILL ID %lld",
                   (long long)hf_admin_server(fixture.admin)->client_id);
    enqueue("one", -60000);
    assert_int_equal(wait_while(&killed, 700), HF_TIMEOUT); /* and not HF_CONN */
    assert_true(hf_admin_server(fixture.admin)->client_id !=
                strtoll(kill + 15, NULL, 10));
}

/* The loop's time goes on between two of its functions: in one of some hundred calls the
 * pause is over before it has begun. */
static void even_the_shortest_pause_ends(void **state)
{
    (void)state;
    for (int i = 0; i < SHORT_PAUSES; i++)
        hf_admin_idle(fixture.admin, hf_boot_ns() + HF_MS_NS);
}

#define TEST(name) HF_ADMIN_TEST(name, &fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_empty_server_has_no_queues),
        TEST(queues_are_named_in_order),
        TEST(figures_count_every_state),
        TEST(a_queue_that_was_never_used_is_empty),
        TEST(a_job_is_shown_in_each_state),
        TEST(a_payload_is_given_when_it_is_wanted),
        TEST(a_job_is_found_in_any_queue),
        TEST(a_record_that_cannot_be_read_is_shown_as_far_as_it_goes),
        TEST(each_state_has_its_list),
        TEST(a_list_is_read_page_by_page),
        TEST(a_sparse_list_is_searched_to_its_end),
        TEST(a_list_that_has_looked_at_many_says_where_to_continue),
        TEST(a_list_of_large_records_is_whole),
        TEST(limits_are_set_left_and_lifted),
        TEST(a_queue_that_is_paused_or_limited_is_registered),
        TEST(the_enqueue_script_is_the_one_that_is_sent),
        TEST(a_job_that_is_lost_is_not_told_as_done),
        TEST(waiting_tells_that_the_job_is_dead),
        TEST(waiting_ends_at_its_deadline),
        TEST(waiting_survives_a_lost_connection),
        TEST(even_the_shortest_pause_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
