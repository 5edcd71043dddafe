/* test_admin_shards.c - a divided queue is one queue for an administrator. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "seen/figures.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"
#include "tests/support/shards.h"

enum { N = 4, EACH = 5, SHORT_MS = 300 };

static hf_queue_fixture fixture;
static hf_queue whole;
static hf_shards shards;
static char detail[HF_DETAIL_SIZE];

static void must(hf_err err)
{
    if (err != HF_OK)
        fail_msg("%s: %s", hf_err_name(err), detail);
}

static int up(void **state)
{
    int code = hf_queue_fixture_up_admin(state);
    whole = fixture.queue;
    hf_test_divide(&fixture.redis, "q", N, &shards);
    return code;
}

static void use(unsigned i)
{
    hf_shards_queue(&shards, &whole, i, &fixture.queue);
}

static int down(void **state)
{
    fixture.queue = whole; /* the audit at the end is of all shards */
    return hf_queue_fixture_down(state);
}

/* An id for a shard: "I-k" for the k-th in the right one, "made-I-k" in another. */
static const char *id_of(unsigned i, unsigned k, bool right)
{
    static char id[48];
    unsigned n = 0;
    do
        (void)snprintf(id, sizeof id, "%s%u-%u-%u", right ? "" : "made-", i, k, n++);
    while ((hf_shard_of_id(id, N) == i) != right);
    return id;
}

static void enqueue(unsigned i, const char *id, int64_t due_ms)
{
    use(i);
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, id, due_ms), HF_OK);
}

static void bury(unsigned i, const char *id)
{
    const hf_verdict_args args = {.worker = "w", .dead_max = 99, .dead_age_ms = 1000000};
    const hf_verdict_item item = {.id = id, .error = {"no", 2}, .reason = "handler"};
    enqueue(i, id, 0);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    assert_int_equal(hf_queue_fixture_verdict(&fixture, HF_OP_BURY, &args, &item), HF_OK);
}

static hf_queue_stats stats(void)
{
    hf_queue_stats s = {HF_QUEUE_STATS_INIT};
    must(hf_admin_stats(fixture.admin, "q", &s, detail));
    assert_string_equal(s.queue, "q");
    return s;
}

/* ---- figures ---- */

static void its_figures_are_sums(void **state)
{
    (void)state;
    const int64_t now = hf_queue_fixture_now(&fixture);
    assert_int_equal(stats().ready, 0);
    bury(1, "dead");
    enqueue(2, "runs", 0);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    for (unsigned i = 0; i < N; i++) {
        enqueue(i, id_of(i, 0, true), now - 1000 * i);
        enqueue(i, id_of(i, 1, true), now + 60000 + i);
    }
    const hf_queue_stats s = stats();
    assert_int_equal(s.ready, N);
    assert_int_equal(s.delayed, N);
    assert_int_equal(s.running, 1);
    assert_int_equal(s.dead, 1);
    assert_int_equal(s.enqueued, 2 * N + 2);
    assert_int_equal(s.oldest_ready_ms, now - 1000 * (N - 1));
    assert_int_equal(s.next_due_ms, now + 60000);
}

static void each_counter_is_a_sum(void **state)
{
    char key[HF_TEST_SHARD_KEY];
    (void)state;
    for (unsigned i = 0; i < N; i++)
        for (int k = 0; hf_figures[k].name != NULL; k++)
            (void)hf_fixture_command(&fixture.redis, "HSET %s %s %d",
                                     hf_test_shard_key(&shards, i, "meta", key),
                                     hf_figures[k].name, k + 1);
    const hf_queue_stats s = stats();
    for (int k = 0; hf_figures[k].name != NULL; k++)
        assert_int_equal(hf_figures_of(&hf_figures[k], &s), (int)N * (k + 1));
}

static void it_is_paused_as_a_whole(void **state)
{
    char key[HF_TEST_SHARD_KEY];
    (void)state;
    must(hf_admin_pause(fixture.admin, "q", true, detail));
    assert_true(stats().paused);
    for (unsigned i = 0; i < N; i++) {
        enqueue(i, id_of(i, 0, true), 0);
        assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 0);
    }
    (void)hf_fixture_command(&fixture.redis, "HDEL %s paused",
                             hf_test_shard_key(&shards, 0, "meta", key));
    assert_false(stats().paused);
    must(hf_admin_pause(fixture.admin, "q", false, detail));
    for (unsigned i = 0; i < N; i++) {
        use(i);
        assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    }
}

/* One shard fails: the others are changed, and the call can be made again. */
static void a_shard_that_fails_is_named_and_stops_no_other(void **state)
{
    char key[HF_TEST_SHARD_KEY];
    (void)state;
    (void)hf_fixture_command(&fixture.redis, "SET %s x",
                             hf_test_shard_key(&shards, 1, "meta", key));
    assert_int_equal(hf_admin_pause(fixture.admin, "q", true, detail), HF_REDIS);
    assert_non_null(strstr(detail, shards.tags[1]));
    assert_null(strstr(detail, shards.tags[0]));
    assert_int_equal(hf_admin_stats(fixture.admin, "q",
                                    &(hf_queue_stats){HF_QUEUE_STATS_INIT}, detail),
                     HF_REDIS);
    assert_non_null(strstr(detail, shards.tags[1]));
    (void)hf_fixture_command(&fixture.redis, "DEL %s", key);
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(hf_fixture_number(&fixture.redis, "HEXISTS %s paused",
                                           hf_test_shard_key(&shards, i, "meta", key)),
                         i != 1);
    must(hf_admin_pause(fixture.admin, "q", true, detail));
    assert_true(stats().paused);
}

static void its_limits_are_divided(void **state)
{
    char key[HF_TEST_SHARD_KEY];
    (void)state;
    must(hf_admin_limit(fixture.admin, "q", N + 2, 100, 1000, detail));
    for (unsigned i = 0; i < N; i++) {
        hf_test_shard_key(&shards, i, "meta", key);
        assert_int_equal(hf_fixture_number(&fixture.redis, "HGET %s max_running", key),
                         i < 2 ? 2 : 1);
        assert_int_equal(hf_fixture_number(&fixture.redis, "HGET %s rate_limit", key),
                         100);
        assert_int_equal(hf_fixture_number(&fixture.redis, "HGET %s rate_per", key),
                         1000 * N);
    }
    hf_queue_stats s = stats();
    assert_int_equal(s.max_running, N + 2);
    assert_int_equal(s.rate_limit, 100);
    assert_int_equal(s.rate_per_ms, 1000);
    assert_int_equal(hf_admin_limit(fixture.admin, "q", N - 1, -1, -1, detail),
                     HF_INVALID);
    assert_string_equal(
        detail, "expected max_running of at least 4, one for each shard, found 3");
    must(hf_admin_limit(fixture.admin, "q", -1, 1, UINT32_MAX, detail));
    assert_int_equal(stats().rate_per_ms, UINT32_MAX);
    assert_int_equal(stats().max_running, N + 2);
    must(hf_admin_limit(fixture.admin, "q", 0, 0, 0, detail));
    s = stats();
    assert_int_equal(s.max_running + s.rate_limit + s.rate_per_ms, 0);
}

/* ---- jobs ---- */

static hf_job_state state_of(const char *queue, const char *id)
{
    hf_job_info info = {HF_JOB_INFO_INIT};
    must(hf_admin_job(fixture.admin, queue, id, &info, NULL, detail));
    assert_string_equal(info.queue, "q");
    return info.state;
}

/* Whether its id tells its shard or not, and whether its queue is named or not. */
static void a_job_is_found_in_any_shard(void **state)
{
    hf_job_info info = {HF_JOB_INFO_INIT};
    (void)state;
    assert_int_equal(hf_queue_fixture_register(&fixture), HF_OK);
    for (unsigned i = 0; i < N; i++) {
        for (int right = 0; right < 2; right++) {
            const char *id = id_of(i, 0, right != 0);
            enqueue(i, id, 0);
            assert_int_equal(state_of("q", id), HF_STATE_READY);
            assert_int_equal(state_of(NULL, id), HF_STATE_READY);
            hf_job_why why = {HF_JOB_WHY_INIT, .job = &info};
            must(hf_admin_why(fixture.admin, "q", id, &why, detail));
            must(hf_admin_retry(fixture.admin, "q", id, detail));
            must(hf_admin_cancel(fixture.admin, "q", id, &info, detail));
            assert_int_equal(hf_admin_job(fixture.admin, "q", id, &info, NULL, detail),
                             HF_GONE);
            enqueue(i, id, 0);
            must(hf_admin_delete(fixture.admin, NULL, id, NULL, detail));
        }
    }
    assert_int_equal(hf_admin_cancel(fixture.admin, "q", "none", NULL, detail), HF_GONE);
    assert_int_equal(stats().ready, 0);
}

static void its_end_is_waited_for_in_its_shard(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N; i++) {
        const char *id = id_of(i, 0, false);
        enqueue(i, id, 0);
        assert_int_equal(hf_admin_wait(fixture.admin, "q", id, 0, SHORT_MS, detail),
                         HF_TIMEOUT);
        assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
        assert_int_equal(hf_queue_fixture_complete(&fixture, "w", id, NULL), HF_OK);
        assert_int_equal(hf_admin_wait(fixture.admin, "q", id, 0, SHORT_MS, detail),
                         HF_GONE); /* nothing tells that it is done */
        enqueue(i, id, 0);
        const int64_t accepted_ms = fixture.now_ms;
        must(hf_admin_cancel(fixture.admin, "q", id, NULL, detail));
        assert_int_equal(
            hf_admin_wait(fixture.admin, "q", id, accepted_ms, SHORT_MS, detail),
            HF_CANCEL);
        bury(i, id);
        assert_int_equal(hf_admin_wait(fixture.admin, "q", id, 0, SHORT_MS, detail),
                         HF_DEAD);
    }
}

/* ---- lists ---- */

typedef struct seen {
    size_t n;
    char ids[2 * N * EACH][HF_ID_SIZE];
} seen;

static void on_job(const hf_job_info *job, void *arg)
{
    seen *s = arg;
    assert_string_equal(job->queue, "q");
    for (size_t i = 0; i < s->n; i++)
        assert_string_not_equal(s->ids[i], job->id);
    memcpy(s->ids[s->n++], job->id, HF_ID_SIZE);
}

/* By one administrator, or by a new one for each page; pages end anywhere in a shard. */
static void pages_go_over_all_shards(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N; i++)
        for (unsigned k = 0; k < 2 * EACH && i != 1; k++) /* one is empty */
            enqueue(i, id_of(i, k, k % 2 == 0), 0);
    const size_t all = (N - 1) * 2 * EACH;
    for (size_t page = 1; page <= 2 * EACH + 1; page++) {
        for (int anew = 0; anew < 2; anew++) {
            static seen s;
            char next[HF_CURSOR_SIZE] = "";
            s.n = 0;
            for (size_t before = 1; before != s.n;) {
                hf_admin *admin = anew ? hf_queue_fixture_admin(&fixture) : fixture.admin;
                before = s.n;
                must(
                    hf_admin_list(admin, "q", HF_STATE_READY,
                                  s.n > 0 ? (s.n % 2 == 0 ? s.ids[s.n - 1] : next) : NULL,
                                  page, on_job, &s, next, detail));
                if (next[0] == '\0')
                    assert_int_equal(s.n, all);
                if (anew)
                    hf_admin_close(admin);
            }
            assert_int_equal(s.n, all);
        }
    }
    static seen s;
    assert_int_equal(hf_admin_list(fixture.admin, "q", HF_STATE_READY, "none", 5, on_job,
                                   &s, NULL, detail),
                     HF_GONE);
}

/* ---- many jobs ---- */

static bool count_progress(size_t done, size_t total, void *arg)
{
    assert_true(done <= total);
    ++*(int *)arg;
    return true;
}

static void dead_jobs_of_all_shards_are_swept(void **state)
{
    size_t n = 0;
    int calls = 0;
    char one[64];
    (void)state;
    for (unsigned i = 0; i < N; i++)
        for (unsigned k = 0; k < EACH; k++)
            bury(i, id_of(i, k, k % 2 == 0));
    (void)snprintf(one, sizeof one, "%s", id_of(2, 1, false));
    must(hf_admin_dead_retry(fixture.admin, "q",
                             &(hf_dead_filter){HF_DEAD_FILTER_INIT, .id = one}, 0, NULL,
                             NULL, &n, detail));
    assert_int_equal(n, 1);
    assert_int_equal(state_of("q", one), HF_STATE_READY);
    must(hf_admin_dead_purge(fixture.admin, "q",
                             &(hf_dead_filter){HF_DEAD_FILTER_INIT, .limit = EACH + 1},
                             count_progress, &calls, &n, detail));
    assert_int_equal(n, EACH + 1);
    assert_int_equal(calls, 2); /* of two shards */
    must(hf_admin_dead_retry(fixture.admin, "q", NULL, 0, NULL, NULL, &n, detail));
    assert_int_equal(n, (N - 1) * EACH - 2);
    assert_int_equal(stats().dead, 0);
    assert_int_equal(stats().ready, (N - 1) * EACH - 1);
}

static void it_is_purged_as_a_whole(void **state)
{
    size_t n = 0;
    int calls = 0;
    (void)state;
    bury(1, "dead");
    for (unsigned i = 0; i < N; i++) {
        enqueue(i, id_of(i, 0, true), 0);
        enqueue(i, id_of(i, 1, true), -60000);
    }
    must(hf_admin_purge(fixture.admin, "q", count_progress, &calls, &n, detail));
    assert_int_equal(n, 2 * N + 1);
    const hf_queue_stats s = stats();
    assert_int_equal(s.ready + s.delayed + s.dead, 0);
}

/* ---- the audit ---- */

static void on_finding(const hf_finding *finding, void *arg)
{
    assert_string_equal(finding->check, "record");
    assert_string_equal(finding->id, "broken");
    ++*(int *)arg;
}

static void each_shard_is_audited(void **state)
{
    char key[HF_TEST_SHARD_KEY];
    int found = 0;
    size_t n;
    const hf_audit_opts opts = {HF_AUDIT_OPTS_INIT, .cb = on_finding, .arg = &found};
    (void)state;
    enqueue(3, "broken", 0);
    must(hf_admin_audit(fixture.admin, "q", &opts, &n, detail));
    assert_int_equal(n, 0);
    (void)hf_fixture_command(&fixture.redis, "HDEL %s broken",
                             hf_test_shard_key(&shards, 3, "jobs", key));
    must(hf_admin_audit(fixture.admin, "q", &opts, &n, detail));
    assert_int_equal(n, 1);
    assert_int_equal(found, 1);
    fixture.broken = true;
}

/* Keys of shards are those of their queue, which the registry may lack. */
static void its_name_is_found_again(void **state)
{
    char **names;
    size_t n;
    (void)state;
    enqueue(3, "one", 0);
    must(hf_admin_unregistered(fixture.admin, true, &names, &n, detail));
    assert_int_equal(n, 1);
    assert_string_equal(names[0], "q");
    free(names);
    must(hf_admin_queues(fixture.admin, &names, &n, detail));
    assert_int_equal(n, 1);
    assert_string_equal(names[0], "q");
    free(names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_prestate_setup_teardown(name, up, down, &fixture)
        TEST(its_figures_are_sums),
        TEST(each_counter_is_a_sum),
        TEST(it_is_paused_as_a_whole),
        TEST(a_shard_that_fails_is_named_and_stops_no_other),
        TEST(its_limits_are_divided),
        TEST(a_job_is_found_in_any_shard),
        TEST(its_end_is_waited_for_in_its_shard),
        TEST(pages_go_over_all_shards),
        TEST(dead_jobs_of_all_shards_are_swept),
        TEST(it_is_purged_as_a_whole),
        TEST(each_shard_is_audited),
        TEST(its_name_is_found_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
