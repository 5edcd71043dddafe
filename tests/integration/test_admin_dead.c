/* test_admin_dead.c - many jobs at once: the dead that pass a filter, and whole queues.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "queue_scripts.h"
#include "tests/support/admin.h"
#include "tests/support/eventually.h"
#include "tests/support/proxy.h"
#include "tests/support/queue_fixture.h"

static hf_queue_fixture fixture;
static char detail[HF_DETAIL_SIZE];

static void must(hf_err err)
{
    if (err != HF_OK)
        fail_msg("%s: %s", hf_err_name(err), detail);
}

static void name(char out[16], unsigned i)
{
    (void)snprintf(out, 16, "id-%05u", i % 100000);
}

/* `n` jobs from `from` on, in one request; each `every`th is of the type "odd". */
static void enqueue_many(unsigned from, unsigned n, int64_t due_ms, unsigned every)
{
    enum { MOST = 10000 };
    static char ids[MOST][16];
    static hf_enqueue_item items[MOST];
    static const char plain[] = "{\"v\":1,\"type\":\"t\",\"created\":1}\npayload";
    static const char odd[] = "{\"v\":1,\"type\":\"odd\",\"created\":1}\npayload";
    const hf_enqueue_args args = {.producer = ""};
    assert_true(n <= MOST);
    for (unsigned i = 0; i < n; i++) {
        bool hit = every != 0 && i % every == 0;
        name(ids[i], from + i);
        items[i] = (hf_enqueue_item){
            ids[i], due_ms, {hit ? odd : plain, (hit ? sizeof odd : sizeof plain) - 1}};
    }
    assert_int_equal(hf_queue_fixture_enqueue_items(&fixture, &args, items, n), HF_OK);
}

/* All that is due is claimed, and dies at one instant. */
static void bury_due(void)
{
    static hf_verdict_item items[HF_FIXTURE_JOBS];
    static hf_queue_fixture_job jobs[HF_FIXTURE_JOBS];
    static char fence[sizeof fixture.fence];
    const hf_verdict_args args = {
        .worker = "w", .dead_max = 100000, .dead_age_ms = 1000000};
    size_t n;
    while ((n = hf_queue_fixture_claim(&fixture, "w", HF_FIXTURE_JOBS, 0)) > 0) {
        memcpy(jobs, fixture.jobs, n * sizeof jobs[0]);
        memcpy(fence, fixture.fence, sizeof fence);
        for (size_t i = 0; i < n; i++)
            items[i] = (hf_verdict_item){.id = jobs[i].id,
                                         .fence = fence,
                                         .counts = true,
                                         .error = {"no", 2},
                                         .reason = "handler"};
        assert_int_equal(hf_queue_fixture_verdicts(&fixture, HF_OP_BURY, &args, items, n),
                         HF_OK);
    }
}

static void fill_dead(unsigned n, unsigned every)
{
    enqueue_many(0, n, 0, every);
    bury_due();
}

static hf_queue_stats stats(void)
{
    hf_queue_stats out = {HF_QUEUE_STATS_INIT};
    must(hf_admin_stats(fixture.admin, "q", &out, detail));
    return out;
}

typedef struct seen {
    size_t calls, done, total, stop_after;
    void (*between)(void);
} seen;

static bool on_progress(size_t done, size_t total, void *arg)
{
    seen *s = arg;
    assert_true(done >= s->done && done <= total);
    s->done = done;
    s->total = total;
    if (s->between != NULL)
        s->between();
    return ++s->calls != s->stop_after;
}

/* ---- back from the dead ---- */

static void all_the_dead_come_back_as_new(void **state)
{
    hf_job_info info = {HF_JOB_INFO_INIT};
    seen s = {.calls = 0};
    size_t n;
    (void)state;
    fill_dead(450, 0);
    must(hf_admin_dead_retry(fixture.admin, "q", NULL, 0, on_progress, &s, &n, detail));
    assert_int_equal(n, 450);
    assert_int_equal(s.done, 450);
    assert_int_equal(s.total, 450);
    assert_true(s.calls >= 3); /* slices of 200 at most */
    assert_int_equal(stats().ready, 450);
    must(hf_admin_job(fixture.admin, "q", "id-00000", &info, NULL, detail));
    assert_int_equal(info.attempts, 0);
    must(hf_admin_dead_retry(fixture.admin, "q", NULL, 0, NULL, NULL, &n, detail));
    assert_int_equal(n, 0);
}

static void one_is_taken_by_its_id(void **state)
{
    hf_dead_filter filter = {HF_DEAD_FILTER_INIT, .id = "id-00001"};
    hf_job_info info = {HF_JOB_INFO_INIT};
    size_t n;
    (void)state;
    fill_dead(3, 0);
    must(hf_admin_dead_retry(fixture.admin, "q", &filter, 0, NULL, NULL, &n, detail));
    assert_int_equal(n, 1);
    must(hf_admin_job(fixture.admin, "q", "id-00001", &info, NULL, detail));
    assert_int_equal(info.state, HF_STATE_READY);
    assert_int_equal(info.attempts, 0);
    assert_int_equal(info.payload_len, 7);
    must(hf_admin_dead_retry(fixture.admin, "q", &filter, 0, NULL, NULL, &n, detail));
    assert_int_equal(n, 0); /* it is not dead any more */
    must(hf_admin_dead_purge(fixture.admin, "q", &filter, NULL, NULL, &n, detail));
    assert_int_equal(n, 0);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 10, 0), 1);
    filter.id = "id-00002";
    must(hf_admin_dead_purge(fixture.admin, "q", &filter, NULL, NULL, &n, detail));
    assert_int_equal(n, 1);
    filter.limit = 1;
    assert_int_equal(
        hf_admin_dead_purge(fixture.admin, "q", &filter, NULL, NULL, &n, detail),
        HF_INVALID);
    filter = (hf_dead_filter){HF_DEAD_FILTER_INIT, .id = "no id"};
    assert_int_equal(
        hf_admin_dead_retry(fixture.admin, "q", &filter, 0, NULL, NULL, &n, detail),
        HF_INVALID);
}

/* Those that do not pass have all died in the same millisecond as those that do, so a
 * page cannot begin at a time. */
static void a_type_is_picked_from_among_others(void **state)
{
    const hf_dead_filter filter = {HF_DEAD_FILTER_INIT, .type = "odd"};
    size_t n;
    (void)state;
    fill_dead(900, 3);
    must(hf_admin_dead_retry(fixture.admin, "q", &filter, 0, NULL, NULL, &n, detail));
    assert_int_equal(n, 300);
    assert_int_equal(stats().ready, 300);
    assert_int_equal(stats().dead, 600);
    bury_due();
    must(hf_admin_dead_purge(fixture.admin, "q", &filter, NULL, NULL, &n, detail));
    assert_int_equal(n, 300);
    assert_int_equal(stats().dead, 600);
    must(hf_admin_dead_purge(fixture.admin, "q", &filter, NULL, NULL, &n, detail));
    assert_int_equal(n, 0);
    const hf_dead_filter bad = {HF_DEAD_FILTER_INIT, .type = "no type"};
    assert_int_equal(
        hf_admin_dead_purge(fixture.admin, "q", &bad, NULL, NULL, &n, detail),
        HF_INVALID);
}

static void a_time_and_a_number_bound_what_is_taken(void **state)
{
    hf_dead_filter filter = {HF_DEAD_FILTER_INIT, .limit = 3};
    hf_job_info info = {HF_JOB_INFO_INIT};
    size_t n;
    (void)state;
    fill_dead(10, 0);
    int64_t between = hf_queue_fixture_now(&fixture) + 1;
    EVENTUALLY(15000, hf_queue_fixture_now(&fixture) > between);
    enqueue_many(10, 10, 0, 0);
    bury_due();
    must(hf_admin_dead_purge(fixture.admin, "q", &filter, NULL, NULL, &n, detail));
    assert_int_equal(n, 3); /* the longest dead first */
    assert_int_equal(hf_admin_job(fixture.admin, "q", "id-00002", &info, NULL, detail),
                     HF_GONE);
    must(hf_admin_job(fixture.admin, "q", "id-00003", &info, NULL, detail));
    filter = (hf_dead_filter){HF_DEAD_FILTER_INIT, .since_ms = between};
    must(hf_admin_dead_retry(fixture.admin, "q", &filter, 0, NULL, NULL, &n, detail));
    assert_int_equal(n, 10);
    assert_int_equal(stats().dead, 7);
    filter = (hf_dead_filter){HF_DEAD_FILTER_INIT, .since_ms = between + 3600000};
    must(hf_admin_dead_retry(fixture.admin, "q", &filter, 0, NULL, NULL, &n, detail));
    assert_int_equal(n, 0);
}

/* Gives a job a record of the type "t" with one more field. */
static void write_record(unsigned i, const char *more)
{
    char id[16], record[128];
    name(id, i);
    (void)snprintf(record, sizeof record, "{\"v\":1,\"type\":\"t\",\"created\":1,%s}\n",
                   more);
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:jobs %s %s", id, record);
}

static void an_error_is_picked_with_other_numbers(void **state)
{
    hf_dead_filter filter = {HF_DEAD_FILTER_INIT, .error = "port 5432 of 0aa1b2c3d4"};
    size_t n = 0;
    (void)state;
    fill_dead(450, 0); /* with the error "no" */
    for (unsigned i = 0; i < 450; i += 3) {
        char error[64];
        (void)snprintf(error, sizeof error, "\"error\":\"port %u of %08x\"", i, i);
        write_record(i, error);
    }
    must(hf_admin_dead_count(fixture.admin, "q", &filter, &n, detail));
    assert_int_equal(n, 150);
    filter.limit = 7;
    must(hf_admin_dead_count(fixture.admin, "q", &filter, &n, detail));
    assert_int_equal(n, 7);
    filter.limit = 0;
    filter.error = "port # of *"; /* the key of the kind */
    must(hf_admin_dead_retry(fixture.admin, "q", &filter, 0, NULL, NULL, &n, detail));
    assert_int_equal(n, 150);
    filter.error = "";
    must(hf_admin_dead_count(fixture.admin, "q", &filter, &n, detail));
    assert_int_equal(n, 0);
    filter.error = NULL;
    must(hf_admin_dead_count(fixture.admin, "q", &filter, &n, detail));
    assert_int_equal(n, 300);
    must(hf_admin_dead_count(fixture.admin, "q", NULL, &n, detail));
    assert_int_equal(n, 300);
}

static void what_dies_after_the_time_is_not_taken(void **state)
{
    size_t n = 0;
    (void)state;
    fill_dead(10, 0);
    int64_t between = hf_queue_fixture_now(&fixture) + 1;
    EVENTUALLY(15000, hf_queue_fixture_now(&fixture) > between);
    enqueue_many(10, 10, 0, 0);
    bury_due();
    const hf_dead_filter filter = {HF_DEAD_FILTER_INIT, .until_ms = between};
    must(hf_admin_dead_count(fixture.admin, "q", &filter, &n, detail));
    assert_int_equal(n, 10);
    must(hf_admin_dead_retry(fixture.admin, "q", &filter, 0, NULL, NULL, &n, detail));
    assert_int_equal(n, 10);
    must(hf_admin_dead_purge(fixture.admin, "q", &filter, NULL, NULL, &n, detail));
    assert_int_equal(n, 0);
}

static void a_slice_can_be_smaller(void **state)
{
    const hf_dead_filter filter = {HF_DEAD_FILTER_INIT, .slice = 7, .limit = 20};
    seen s = {.calls = 0};
    size_t n;
    (void)state;
    fill_dead(30, 0);
    must(
        hf_admin_dead_retry(fixture.admin, "q", &filter, 0, on_progress, &s, &n, detail));
    assert_int_equal(n, 20);
    assert_int_equal(s.calls, 3);
}

/* All jobs died in one millisecond, and the first 800 have a unique key that a waiting
 * job holds. */
static void those_whose_key_is_taken_are_passed_over(void **state)
{
    const hf_dead_filter filter = {HF_DEAD_FILTER_INIT, .limit = 100};
    seen s = {.stop_after = 9};
    size_t n;
    (void)state;
    fill_dead(900, 0);
    for (unsigned i = 0; i < 800; i++)
        write_record(i, "\"unique\":\"k\"");
    enqueue_many(90000, 1, -3600000, 0);
    write_record(90000, "\"unique\":\"k\"");
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:unique k id-90000");
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:meta uses u");
    must(
        hf_admin_dead_retry(fixture.admin, "q", &filter, 0, on_progress, &s, &n, detail));
    assert_int_equal(n, 100);
    assert_int_equal(stats().dead, 800);
}

/* What comes back runs at once and dies again, while more is brought back: nothing is
 * taken twice. */
static void what_dies_again_meanwhile_is_not_taken_again(void **state)
{
    seen s = {.between = bury_due};
    size_t n;
    (void)state;
    fill_dead(500, 0);
    must(hf_admin_dead_retry(fixture.admin, "q", NULL, 0, on_progress, &s, &n, detail));
    assert_int_equal(n, 500);
    assert_int_equal(stats().dead, 500);
    assert_int_equal(stats().failed, 1000);
}

static void with_a_rate_they_become_due_one_after_the_other(void **state)
{
    char id[16];
    size_t n;
    long long first, last = 0;
    (void)state;
    fill_dead(450, 0);
    int64_t from = hf_queue_fixture_now(&fixture);
    must(hf_admin_dead_retry(fixture.admin, "q", NULL, 30, NULL, NULL, &n, detail));
    int64_t to = hf_queue_fixture_now(&fixture);
    assert_int_equal(n, 450);
    name(id, 0);
    first = hf_fixture_number(&fixture.redis, "ZSCORE hf:{q}:schedule %s", id);
    for (unsigned i = 0; i < 450; i++) {
        name(id, i);
        long long due =
            hf_fixture_number(&fixture.redis, "ZSCORE hf:{q}:schedule %s", id);
        assert_true(due >= from + (long long)i * 1000 / 30 - 1);
        assert_true(due <= to + (long long)i * 1000 / 30);
        assert_true(due >= last);
        last = due;
    }
    assert_true(last - first >= 449 * 1000 / 30 - (to - from) - 1);
}

static void it_stops_when_it_is_told(void **state)
{
    seen s = {.stop_after = 2};
    size_t n;
    (void)state;
    fill_dead(700, 0);
    must(hf_admin_dead_retry(fixture.admin, "q", NULL, 0, on_progress, &s, &n, detail));
    assert_int_equal(s.calls, 2);
    assert_int_equal(n, 400);
    assert_int_equal(stats().dead, 300);
}

/* Nothing is done twice, and all is done and counted. */
static void a_slice_whose_answer_was_lost_is_sent_again(void **state)
{
    hf_proxy proxy;
    size_t n;
    (void)state;
    fill_dead(450, 0);
    hf_proxy_start(&proxy, fixture.redis.socket);
    hf_admin_close(fixture.admin);
    fixture.admin = hf_test_admin(proxy.url);
    (void)hf_fixture_command(&fixture.redis, "SCRIPT LOAD %s", hf_lua_queue_requeue.text);
    hf_proxy_lose_answer(&proxy, hf_lua_queue_requeue.sha1);
    must(hf_admin_dead_retry(fixture.admin, "q", NULL, 0, NULL, NULL, &n, detail));
    assert_int_equal(hf_proxy_cuts(&proxy), 1);
    assert_int_equal(n, 450);
    assert_int_equal(stats().ready, 450);
    assert_int_equal(stats().dead, 0);
    hf_admin_close(fixture.admin);
    fixture.admin = NULL;
    hf_proxy_stop(&proxy);
}

static void large_records_make_smaller_pages(void **state)
{
    enum { JOBS = 12, BYTES = 300000 };
    static char record[BYTES];
    const hf_dead_filter filter = {HF_DEAD_FILTER_INIT, .type = "big"};
    const hf_enqueue_args args = {.producer = ""};
    seen s = {.calls = 0};
    size_t n;
    (void)state;
    memset(record, 'x', sizeof record);
    static const char head[] = "{\"v\":1,\"type\":\"big\",\"created\":1}\n";
    memcpy(record, head, sizeof head - 1);
    for (unsigned i = 0; i < JOBS; i++) {
        char id[16];
        name(id, i);
        const hf_enqueue_item item = {id, 0, {record, sizeof record}};
        assert_int_equal(hf_queue_fixture_enqueue_items(&fixture, &args, &item, 1),
                         HF_OK);
    }
    bury_due();
    must(hf_admin_dead_retry(fixture.admin, "q", NULL, 0, on_progress, &s, &n, detail));
    assert_int_equal(n, JOBS);
    assert_true(s.calls >= 3);
    bury_due();
    s = (seen){.calls = 0};
    must(hf_admin_dead_purge(fixture.admin, "q", &filter, on_progress, &s, &n, detail));
    assert_int_equal(n, JOBS);
    assert_true(s.calls >= 3);
}

/* ---- whole queues ---- */

static void a_purge_takes_all_but_what_runs(void **state)
{
    seen s = {.calls = 0};
    size_t n;
    (void)state;
    fill_dead(1200, 0);
    enqueue_many(2000, 5, 1, 0);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 5, 0), 5);
    enqueue_many(3000, 2500, 0, 0);
    enqueue_many(6000, 2500, -3600000, 0);
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:crashes id-03000 1");
    must(hf_admin_purge(fixture.admin, "q", on_progress, &s, &n, detail));
    assert_int_equal(n, 1200 + 5000);
    assert_int_equal(s.done, n);
    assert_int_equal(s.total, n);
    assert_true(s.calls >= 13); /* slices of 500 at most */
    assert_int_equal(stats().running, 5);
    assert_int_equal(stats().deleted, 6200);
    assert_int_equal(stats().ready + stats().delayed + stats().dead, 0);
    assert_int_equal(hf_fixture_number(&fixture.redis, "HLEN hf:{q}:jobs"), 5);
    assert_int_equal(hf_queue_fixture_renew(&fixture, "w", "id-02000", NULL, 60000),
                     HF_OK);
    assert_int_equal(hf_queue_fixture_complete(&fixture, "w", "id-02000", NULL), HF_OK);
}

static unsigned fed;

static void feed(void)
{
    enqueue_many(50000 + fed, 1000, 0, 0);
    fed += 1000;
    bury_due();
    enqueue_many(50000 + fed, 500, 0, 0);
    fed += 500;
}

static void a_queue_that_is_fed_meanwhile_keeps_its_new_jobs(void **state)
{
    seen s = {.between = feed};
    size_t n;
    (void)state;
    fed = 0;
    enqueue_many(0, 3000, -3600000, 0);
    int64_t at = hf_queue_fixture_now(&fixture);
    EVENTUALLY(15000, hf_queue_fixture_now(&fixture) > at);
    must(hf_admin_purge(fixture.admin, "q", on_progress, &s, &n, detail));
    assert_int_equal(n, 3000);
    assert_int_equal(stats().delayed, 0);
    assert_int_equal(stats().dead + stats().ready, fed);
}

static void feed_later_ones(void)
{
    if (fed < 10000)
        enqueue_many(fed, 1000, -7200000, 0);
    fed += 1000;
}

static void a_queue_that_is_fed_for_later_does_not_keep_it_busy(void **state)
{
    seen s = {.between = feed_later_ones};
    size_t n;
    (void)state;
    fed = 0;
    enqueue_many(50000, 3000, -3600000, 0);
    must(hf_admin_purge(fixture.admin, "q", on_progress, &s, &n, detail));
    assert_int_equal(n, 3000);
    assert_int_equal(stats().delayed, fed);
}

/* What others take of those that were due makes no room for new ones. */
static void claim_some_and_feed(void)
{
    if (hf_queue_fixture_claim(&fixture, "w", 500, 0) == 500)
        enqueue_many(50000 + fed, 1000, 0, 0);
    fed += 1000;
}

static void what_becomes_due_meanwhile_is_not_taken(void **state)
{
    seen s = {.between = claim_some_and_feed};
    size_t n;
    (void)state;
    fed = 0;
    enqueue_many(0, 2500, 0, 0);
    int64_t at = hf_queue_fixture_now(&fixture);
    EVENTUALLY(15000, hf_queue_fixture_now(&fixture) > at);
    must(hf_admin_purge(fixture.admin, "q", on_progress, &s, &n, detail));
    assert_int_equal(n, 1500); /* 500 were taken after each of the first two slices */
    assert_int_equal(stats().ready + stats().running, fed + 1000);
}

static void a_purge_stops_when_it_is_told(void **state)
{
    seen s = {.stop_after = 1};
    size_t n;
    (void)state;
    enqueue_many(0, 3000, 0, 0);
    must(hf_admin_purge(fixture.admin, "q", on_progress, &s, &n, detail));
    assert_int_equal(n, 500);
    assert_int_equal(stats().ready, 2500);
    assert_int_equal(hf_admin_purge(fixture.admin, "no queue", NULL, NULL, &n, detail),
                     HF_INVALID);
}

/* Workers take jobs from the same head: each job is either theirs or purged. */
static void *purge_it(void *arg)
{
    hf_admin *other;
    const hf_admin_opts opts = {
        HF_ADMIN_OPTS_INIT, .server = HF_SERVER(.url = hf_fixture_url(&fixture.redis))};
    if (hf_admin_open(&other, &opts, NULL) != HF_OK)
        return NULL;
    if (hf_admin_purge(other, "q", NULL, NULL, arg, NULL) != HF_OK)
        *(size_t *)arg = 0;
    hf_admin_close(other);
    return NULL;
}

static void a_purge_and_claims_share_no_job(void **state)
{
    pthread_t thread;
    size_t purged = 0, got, ran = 0;
    (void)state;
    enqueue_many(0, 10000, 0, 0);
    assert_int_equal(pthread_create(&thread, NULL, purge_it, &purged), 0);
    while ((got = hf_queue_fixture_claim(&fixture, "w", 20, 0)) > 0) {
        static hf_queue_fixture_job jobs[20];
        memcpy(jobs, fixture.jobs, got * sizeof jobs[0]);
        char fence[32];
        memcpy(fence, fixture.fence, sizeof fence);
        for (size_t i = 0; i < got; i++)
            assert_int_equal(hf_queue_fixture_complete(&fixture, "w", jobs[i].id, fence),
                             HF_OK);
        ran += got;
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(purged > 0);
    assert_int_equal(ran + purged, 10000);
    assert_int_equal(stats().lost, 0);
    hf_queue_fixture_audit(&fixture, true);
}

#define TEST(name) HF_ADMIN_TEST(name, &fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_the_dead_come_back_as_new),
        TEST(one_is_taken_by_its_id),
        TEST(a_type_is_picked_from_among_others),
        TEST(a_time_and_a_number_bound_what_is_taken),
        TEST(an_error_is_picked_with_other_numbers),
        TEST(what_dies_after_the_time_is_not_taken),
        TEST(a_slice_can_be_smaller),
        TEST(those_whose_key_is_taken_are_passed_over),
        TEST(what_dies_again_meanwhile_is_not_taken_again),
        TEST(with_a_rate_they_become_due_one_after_the_other),
        TEST(it_stops_when_it_is_told),
        TEST(a_slice_whose_answer_was_lost_is_sent_again),
        TEST(large_records_make_smaller_pages),
        TEST(a_purge_takes_all_but_what_runs),
        TEST(a_queue_that_is_fed_meanwhile_keeps_its_new_jobs),
        TEST(a_queue_that_is_fed_for_later_does_not_keep_it_busy),
        TEST(what_becomes_due_meanwhile_is_not_taken),
        TEST(a_purge_stops_when_it_is_told),
        TEST(a_purge_and_claims_share_no_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
