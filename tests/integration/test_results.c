/* test_results.c - jobs that are done and kept: their results, for how long and how many,
 * and that nothing of them stays behind. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"
#include "tests/support/worker_fixture.h"

enum { HOUR = 3600000 };

static hf_queue_fixture fixture;
static hf_worker_fixture worker;
static char detail[HF_DETAIL_SIZE];

#define BYTES_LINE "{\"type\":\"t\",\"result\":\"bytes\"}\n"

static int down(void **state)
{
    hf_worker_fixture_end(&worker);
    return hf_queue_fixture_down(state);
}

static void must(hf_err err)
{
    if (err != HF_OK)
        fail_msg("%s: %s", hf_err_name(err), detail);
}

static void run(const char *id)
{
    must(hf_queue_fixture_enqueue(&fixture, id, 0));
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
}

/* What is kept of one job: for keep_ms, at most max of them and as many bytes. */
static hf_err keep(const char *id, int64_t keep_ms, int64_t max, int64_t bytes,
                   const char *words)
{
    const hf_verdict_args args = {.worker = "w", .keep_max = max, .keep_bytes = bytes};
    const hf_verdict_item item = {
        .id = id, .due_ms = keep_ms, .words = {words, strlen(words)}};
    return hf_queue_fixture_verdict(&fixture, HF_OP_KEEP, &args, &item);
}

static void keep_result(const char *id, int64_t keep_ms, const char *result)
{
    char words[256];
    run(id);
    (void)snprintf(words, sizeof words, BYTES_LINE "%s", result);
    must(keep(id, keep_ms, 100, 1 << 20, words));
}

/* "" if it has none; "<code>" if it is not done and kept. */
static const char *result_of(const char *id)
{
    static char text[256];
    void *bytes;
    size_t len;
    hf_result_kind kind;
    hf_err err = hf_admin_result(fixture.admin, "q", id, &bytes, &len, &kind, detail);
    if (err != HF_OK) {
        (void)snprintf(text, sizeof text, "<%s>", hf_err_name(err));
        return text;
    }
    (void)snprintf(text, sizeof text, "%.*s", (int)len, (const char *)bytes);
    free(bytes);
    return text;
}

static bool exists(const char *key)
{
    return hf_fixture_number(&fixture.redis, "EXISTS hf:{q}:%s", key) == 1;
}

static void nothing_is_kept(void)
{
    assert_false(exists("done"));
    assert_false(exists("kept"));
    assert_false(exists("results"));
}

static const char *uses(void)
{
    return hf_fixture_command(&fixture.redis, "HGET hf:{q}:meta uses");
}

/* ---- keeping ---- */

static void a_result_is_kept_and_shown(void **state)
{
    hf_job_info info = {HF_JOB_INFO_INIT};
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    (void)state;
    run("one");
    assert_string_equal(result_of("one"), "<HF_RUNNING>");
    must(keep("one", HOUR, 100, 1 << 20,
              "{\"type\":\"t\",\"created\":7,\"attempts\":2,\"ran\":12,\"worker\":\"w\","
              "\"result\":\"json\"}\n{\"a\":1}"));
    assert_string_equal(result_of("one"), "{\"a\":1}");
    assert_non_null(strstr(uses(), "k"));
    must(hf_admin_job(fixture.admin, "q", "one", &info, NULL, detail));
    assert_int_equal(info.state, HF_STATE_DONE);
    assert_string_equal(info.type, "t");
    assert_string_equal(info.done_by, "w");
    assert_int_equal(info.created_ms, 7);
    assert_int_equal(info.attempts, 2);
    assert_int_equal(info.ran_ms, 12);
    assert_int_equal(info.result_kind, HF_RESULT_JSON);
    assert_int_equal(info.payload_len, 7);
    assert_int_equal(info.kept_until_ms - info.due_ms, HOUR);
    must(hf_admin_stats(fixture.admin, "q", &stats, detail));
    assert_int_equal(stats.done, 1);
    assert_int_equal(stats.kept, 1);
    assert_true(stats.kept_bytes > 7);
    must(hf_admin_wait(fixture.admin, "q", "one", 0, 1000, detail));
}

static void without_keeping_there_is_no_key_more(void **state)
{
    (void)state;
    run("one");
    must(hf_queue_fixture_complete(&fixture, "w", "one", NULL));
    assert_string_equal(result_of("one"), "<HF_GONE>");
    nothing_is_kept();
    assert_false(exists("jobs"));
}

/* I3: its result is not that of the job that runs. */
static void a_stale_token_keeps_nothing(void **state)
{
    const hf_verdict_args args = {.worker = "w", .keep_max = 9, .keep_bytes = 1000};
    const hf_verdict_item item = {
        .id = "one", .fence = "1", .due_ms = HOUR, .words = {"{}\nx", 4}};
    (void)state;
    run("one");
    assert_int_equal(hf_queue_fixture_verdict(&fixture, HF_OP_KEEP, &args, &item),
                     HF_LOST);
    nothing_is_kept();
    assert_string_equal(result_of("one"), "<HF_RUNNING>");
}

static void an_id_that_is_accepted_again_has_no_result(void **state)
{
    (void)state;
    keep_result("one", HOUR, "old");
    keep_result("two", HOUR, "other");
    must(hf_queue_fixture_enqueue(&fixture, "one", 0));
    assert_string_equal(result_of("one"), "<HF_EXISTS>");
    assert_string_equal(result_of("two"), "other");
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    must(hf_queue_fixture_complete(&fixture, "w", "one", NULL));
    assert_string_equal(result_of("one"), "<HF_GONE>");
}

/* ---- bounds ---- */

static void the_oldest_go_when_there_are_too_many(void **state)
{
    char id[8];
    (void)state;
    for (int i = 0; i < 5; i++) {
        (void)snprintf(id, sizeof id, "j%d", i);
        run(id);
        /* The first ones would be kept longest. */
        must(keep(id, (10 - i) * (int64_t)HOUR, 3, 1 << 20, BYTES_LINE "x"));
    }
    assert_string_equal(result_of("j1"), "<HF_GONE>");
    assert_string_equal(result_of("j2"), "x");
    assert_string_equal(result_of("j4"), "x");
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:done"), 3);
}

static void the_oldest_go_when_they_have_too_many_bytes(void **state)
{
    char id[8];
    (void)state;
    for (int i = 0; i < 5; i++) {
        (void)snprintf(id, sizeof id, "j%d", i);
        run(id);
        must(keep(id, HOUR, 100, 2 * (sizeof BYTES_LINE + 3), BYTES_LINE "four"));
    }
    assert_string_equal(result_of("j2"), "<HF_GONE>");
    assert_string_equal(result_of("j3"), "four");
    assert_string_equal(result_of("j4"), "four");
    assert_int_equal(hf_fixture_number(&fixture.redis, "HLEN hf:{q}:results"), 3);
    assert_int_equal(hf_fixture_number(&fixture.redis, "HGET hf:{q}:results %s", ""),
                     2 * (sizeof BYTES_LINE + 3));
}

/* What is over is shown to nobody, also while it is still there. */
static void what_is_over_is_not_shown(void **state)
{
    (void)state;
    keep_result("brief", 1, "gone");
    keep_result("long", HOUR, "here");
    EVENTUALLY(5000, strcmp(result_of("brief"), "<HF_GONE>") == 0);
    assert_string_equal(result_of("long"), "here");
}

/* No job ends any more: a check of a worker tidies up. */
static void a_check_forgets_what_is_over(void **state)
{
    (void)state;
    keep_result("brief", 1, "gone");
    keep_result("long", HOUR, "here");
    EVENTUALLY(5000, strcmp(result_of("brief"), "<HF_GONE>") == 0);
    must(hf_queue_fixture_check(&fixture, "w", false));
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:done"), 1);
    assert_int_equal(hf_fixture_number(&fixture.redis, "HLEN hf:{q}:results"), 2);
}

/* So many that ended long ago; until: when their time is over, ms. */
static void fill_kept(int n, int64_t until)
{
    (void)hf_fixture_command(&fixture.redis, "EVAL %s 0 %d %lld",
                             "for i = 1, ARGV[1] do "
                             "redis.call('ZADD', 'hf:{q}:done', i, 'old-' .. i) "
                             "redis.call('ZADD', 'hf:{q}:kept', ARGV[2], 'old-' .. i) "
                             "redis.call('HSET', 'hf:{q}:results', 'old-' .. i, '{}') "
                             "redis.call('HINCRBY', 'hf:{q}:results', '', 2) end "
                             "redis.call('HSET', 'hf:{q}:meta', 'uses', 'k')",
                             n, (long long)until);
}

/* Each script forgets 500 beside as many as it keeps, for all reasons together. */
static void many_are_forgotten_by_several_scripts(void **state)
{
    (void)state;
    fill_kept(1200, 1);
    must(hf_queue_fixture_check(&fixture, "w", false));
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:done"), 700);
    keep_result("one", HOUR, "x"); /* at most 100 */
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:done"), 200);
    keep_result("two", HOUR, "y");
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:done"), 2);
    fill_kept(1200, INT64_C(9000000000000));
    keep_result("three", HOUR, "z");
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:done"), 702);
    keep_result("four", HOUR, "z");
    keep_result("five", HOUR, "z");
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:done"), 100);
    assert_int_equal(hf_fixture_number(&fixture.redis, "HLEN hf:{q}:results"), 101);
    assert_string_equal(result_of("one"), "x");
}

/* And no worker lives either: the keys have an end. */
static void the_keys_end_after_the_last_job(void **state)
{
    (void)state;
    keep_result("one", 200, "gone");
    assert_true(exists("done"));
    EVENTUALLY(5000, !exists("done") && !exists("kept") && !exists("results"));
    must(hf_queue_fixture_check(&fixture, "w", false));
    assert_null(strstr(uses(), "k"));
}

static void enqueue_record(const char *id, const char *record)
{
    const hf_enqueue_args args = {.producer = "", .options = true};
    const hf_enqueue_item item = {.id = id, .record = {record, strlen(record)}};
    must(hf_queue_fixture_enqueue_items(&fixture, &args, &item, 1));
}

static void one_that_is_accepted_again_and_parked_has_no_result(void **state)
{
    (void)state;
    keep_result("one", HOUR, "old");
    enqueue_record("two", "{\"type\":\"t\",\"unique\":\"k\"}\n");
    enqueue_record("one", "{\"type\":\"t\",\"unique\":\"k\",\"on_conflict\":\"next\"}\n");
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:parked"), 1);
    nothing_is_kept();
}

/* Redis deletes a large key in one step, and answers no request meanwhile. A worker's
 * check comes every 5 s and forgets 500 jobs. */
static void checks_have_time_to_forget_what_redis_would_delete_at_once(void **state)
{
    enum { JOBS = 60, CHECK_MS = 5000, FORGOTTEN = 500 };
    static const char *const keys[] = {"done", "kept", "results"};
    hf_job_info info = {HF_JOB_INFO_INIT};
    char id[16];
    (void)state;
    for (int i = 0; i < JOBS; i++) {
        (void)snprintf(id, sizeof id, "j%d", i);
        keep_result(id, HOUR + i, "kept");
    }
    must(hf_admin_job(fixture.admin, "q", id, &info, NULL, detail));
    for (size_t i = 0; i < HF_COUNT(keys); i++) {
        long long end = hf_fixture_expiry(&fixture.redis, "hf:{q}:%s", keys[i]);
        assert_true(end >= info.kept_until_ms + JOBS * CHECK_MS / FORGOTTEN);
    }
}

/* ---- taking them away ---- */

static void a_kept_job_can_be_deleted(void **state)
{
    (void)state;
    keep_result("one", HOUR, "x");
    keep_result("two", HOUR, "y");
    must(hf_admin_delete(fixture.admin, "q", "one", NULL, detail));
    assert_string_equal(result_of("one"), "<HF_GONE>");
    assert_string_equal(result_of("two"), "y");
    assert_int_equal(hf_admin_delete(fixture.admin, "q", "one", NULL, detail), HF_GONE);
    must(hf_admin_delete(fixture.admin, "q", "two", NULL, detail));
    nothing_is_kept();
    assert_null(strstr(uses(), "k"));
}

static void a_purge_removes_what_is_kept(void **state)
{
    size_t n;
    (void)state;
    keep_result("one", HOUR, "x");
    keep_result("two", HOUR, "y");
    must(hf_admin_purge(fixture.admin, "q", NULL, NULL, &n, detail));
    assert_int_equal(n, 2);
    nothing_is_kept();
}

typedef struct listed {
    char ids[64];
} listed;

static void on_job(const hf_job_info *info, void *arg)
{
    listed *l = arg;
    size_t at = strlen(l->ids);
    (void)snprintf(l->ids + at, sizeof l->ids - at, "%s ", info->id);
}

static void done_jobs_are_listed_in_their_order(void **state)
{
    listed l = {""};
    (void)state;
    keep_result("a", 3 * HOUR, "x");
    keep_result("b", HOUR, "x");
    keep_result("brief", 1, "x");
    keep_result("c", 2 * HOUR, "x");
    EVENTUALLY(5000, strcmp(result_of("brief"), "<HF_GONE>") == 0);
    must(hf_admin_list(fixture.admin, "q", HF_STATE_DONE, NULL, 2, on_job, &l, NULL,
                       detail));
    assert_string_equal(l.ids, "a b ");
    must(hf_admin_list(fixture.admin, "q", HF_STATE_DONE, "b", 9, on_job, &l, NULL,
                       detail));
    assert_string_equal(l.ids, "a b c ");
}

/* ---- a worker ---- */

static hf_verdict with_result(hf_run *run, void *arg)
{
    size_t len;
    const char *what = hf_run_payload(run, &len);
    char big[HF_RESULT_MAX + 1] = "";
    (void)arg;
    if (what[0] == 'j')
        assert_int_equal(
            hf_run_set_result_json(run, " { \"n\" : [0.10, 1e3], \"n\": 2 } "), HF_OK);
    else if (what[0] == 'b')
        assert_int_equal(hf_run_set_result(run, "a\nb", 3), HF_OK);
    if (what[0] == 'n')
        hf_run_set_keep(run, HF_KEEP_NONE);
    assert_int_equal(hf_run_set_result(run, big, sizeof big), HF_TOOBIG);
    assert_int_equal(hf_run_set_result_json(run, "{"), HF_INVALID);
    return what[0] == 'r' ? HF_VERDICT_RETRY : HF_VERDICT_DONE;
}

static void start(int64_t keep_ms)
{
    const hf_worker_queue queue = {HF_WORKER_QUEUE_INIT, .name = "q", .keep_ms = keep_ms};
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .queues = &queue, .n_queues = 1};
    hf_worker_fixture_start_own(&worker, hf_fixture_url(&fixture.redis), &opts, 0,
                                with_result, NULL);
}

static void a_handler_gives_a_result(void **state)
{
    (void)state;
    start(HOUR);
    hf_queue_fixture_put(&fixture, "json", "j", 0);
    hf_queue_fixture_put(&fixture, "bytes", "b", 0);
    hf_queue_fixture_put(&fixture, "plain", "p", 0);
    hf_queue_fixture_put(&fixture, "not", "n", 0);
    EVENTUALLY(15000, hf_queue_fixture_meta(&fixture, "done") == 4);
    assert_string_equal(result_of("json"), "{\"n\":[0.10,1e3],\"n\":2}");
    assert_string_equal(result_of("bytes"), "a\nb");
    assert_string_equal(result_of("plain"), "");
    assert_string_equal(result_of("not"), "<HF_GONE>");
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

static void a_reload_changes_what_is_kept(void **state)
{
    const hf_worker_queue queue = {HF_WORKER_QUEUE_INIT, .name = "q", .keep_ms = HOUR};
    hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .queues = &queue, .n_queues = 1};
    (void)state;
    start(0);
    hf_queue_fixture_put(&fixture, "before", "j", 0);
    EVENTUALLY(15000, hf_queue_fixture_meta(&fixture, "done") == 1);
    hf_worker_fixture_fill(&worker, hf_fixture_url(&fixture.redis), &opts);
    must(hf_worker_reload(worker.worker, &opts, NULL, 0, NULL, 0, detail));
    EVENTUALLY(15000, hf_worker_reloads(worker.worker) == 1);
    assert_true(hf_worker_reload_taken(worker.worker));
    assert_int_equal(hf_worker_fixture_said(&worker, "key=queues[].keep.done name=q"), 1);
    hf_queue_fixture_put(&fixture, "after", "j", 0);
    EVENTUALLY(15000, hf_queue_fixture_meta(&fixture, "done") == 2);
    assert_string_equal(result_of("before"), "<HF_GONE>");
    assert_string_equal(result_of("after"), "{\"n\":[0.10,1e3],\"n\":2}");
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

/* Its own word is the first. */
static void a_job_says_how_long_it_is_kept(void **state)
{
    static const char record[] = "{\"type\":\"t\",\"created\":1,\"keep\":60000}\nj";
    const hf_enqueue_args args = {.producer = ""};
    const hf_enqueue_item item = {.id = "one", .record = {record, sizeof record - 1}};
    hf_job_info info = {HF_JOB_INFO_INIT};
    (void)state;
    start(0);
    must(hf_queue_fixture_enqueue_items(&fixture, &args, &item, 1));
    EVENTUALLY(15000, hf_queue_fixture_meta(&fixture, "done") == 1);
    assert_string_equal(result_of("one"), "{\"n\":[0.10,1e3],\"n\":2}");
    must(hf_admin_job(fixture.admin, "q", "one", &info, NULL, detail));
    assert_int_equal(info.kept_until_ms - info.due_ms, 60000);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

static void a_result_of_a_queue_that_keeps_none_is_dropped(void **state)
{
    (void)state;
    start(0);
    hf_queue_fixture_put(&fixture, "json", "j", 0);
    EVENTUALLY(15000, hf_queue_fixture_meta(&fixture, "done") == 1);
    nothing_is_kept();
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

#define TEST(name)                                                                       \
    cmocka_unit_test_prestate_setup_teardown(name, hf_queue_fixture_up_admin, down,      \
                                             &fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_result_is_kept_and_shown),
        TEST(without_keeping_there_is_no_key_more),
        TEST(a_stale_token_keeps_nothing),
        TEST(an_id_that_is_accepted_again_has_no_result),
        TEST(one_that_is_accepted_again_and_parked_has_no_result),
        TEST(the_oldest_go_when_there_are_too_many),
        TEST(the_oldest_go_when_they_have_too_many_bytes),
        TEST(what_is_over_is_not_shown),
        TEST(a_check_forgets_what_is_over),
        TEST(many_are_forgotten_by_several_scripts),
        TEST(the_keys_end_after_the_last_job),
        TEST(checks_have_time_to_forget_what_redis_would_delete_at_once),
        TEST(a_kept_job_can_be_deleted),
        TEST(a_purge_removes_what_is_kept),
        TEST(done_jobs_are_listed_in_their_order),
        TEST(a_handler_gives_a_result),
        TEST(a_reload_changes_what_is_kept),
        TEST(a_job_says_how_long_it_is_kept),
        TEST(a_result_of_a_queue_that_keeps_none_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
