/* test_producer_shards.c - a producer learns that a queue is divided, and each job goes
 * to its shard: once, and all or none of a call without ids. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/random.h"
#include "tests/support/eventually.h"
#include "tests/support/producer.h"
#include "tests/support/proxy.h"
#include "tests/support/seed.h"
#include "tests/support/shards.h"

enum {
    N = 4,
    AT_ONCE = 20,
    MANY = 200,
    PARTS = 5, /* jobs of a call for several shards */
    THREADS = 8,
    CALLS = 50,
    CUTS = 60,
    CUT_BYTES = 4000,
    SOON_MS = 30000
};

static hf_fixture redis;
static hf_proxy proxy;
static hf_producer *producer;
static hf_shards shards;
static char detail[HF_DETAIL_SIZE];

static int up(void **state)
{
    (void)state;
    hf_fixture_start(&redis, NULL);
    hf_proxy_start(&proxy, redis.socket);
    hf_test_divide(&redis, "wide", N, &shards);
    producer = hf_test_producer(
        &redis,
        (hf_producer_opts){HF_PRODUCER_OPTS_INIT, .server = HF_SERVER(.url = proxy.url)});
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_producer_close(producer, NULL, NULL);
    hf_proxy_stop(&proxy);
    hf_fixture_stop(&redis);
    return 0;
}

static long long in_shard(unsigned i)
{
    char key[HF_TEST_SHARD_KEY];
    return hf_fixture_number(&redis, "ZCARD %s",
                             hf_test_shard_key(&shards, i, "schedule", key));
}

static long long in_all(void)
{
    assert_int_equal(hf_fixture_number(&redis, "EXISTS hf:{wide}:schedule"), 0);
    return hf_test_shards_count(&redis, &shards, "schedule");
}

static void expect_in_its_shard(const char *id)
{
    char key[HF_TEST_SHARD_KEY];
    unsigned i = hf_shard_of_id(id, N);
    if (hf_fixture_number(&redis, "ZRANK %s %s",
                          hf_test_shard_key(&shards, i, "schedule", key), id) < 0)
        fail_msg("%s is not in shard %u", id, i);
}

/* n jobs; with ids "PREFIX-0" and so on, or without. */
static hf_err enqueue(const char *prefix, size_t n, hf_enqueue_result *results)
{
    static hf_job jobs[MANY];
    static char ids[MANY][32];
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "%s-%zu", prefix == NULL ? "" : prefix, i);
        jobs[i] = (hf_job){HF_JOB_INIT, .queue = "wide", .type = "t",
                           .id = prefix == NULL ? NULL : ids[i]};
        if (results != NULL)
            results[i] = (hf_enqueue_result){HF_ENQUEUE_RESULT_INIT};
    }
    return hf_enqueue_wait(producer, jobs, n, results, 0, detail);
}

/* ---- ids ---- */

/* By the refusal of the first call, and directly. */
static void a_chosen_id_goes_to_its_shard(void **state)
{
    static hf_enqueue_result results[MANY];
    (void)state;
    for (size_t n = 1; n <= MANY; n *= n == 1 ? 20 : 10) { /* one, few, many */
        for (int again = 0; again < 2; again++) {
            char prefix[16];
            (void)snprintf(prefix, sizeof prefix, "%zu-%d", n, again);
            const long long before = in_all();
            assert_int_equal(enqueue(prefix, n, results), HF_OK);
            assert_int_equal(in_all(), before + (long long)n);
            for (size_t i = 0; i < n; i++) {
                assert_int_equal(results[i].err, HF_OK);
                assert_true(results[i].accepted_ms > 0);
                expect_in_its_shard(results[i].id);
            }
        }
    }
}

static void a_known_id_exists_in_the_whole_queue(void **state)
{
    static hf_enqueue_result results[20];
    (void)state;
    assert_int_equal(enqueue("a", 10, NULL), HF_OK);
    assert_int_equal(enqueue("a", 20, results), HF_OK);
    for (size_t i = 0; i < 20; i++)
        assert_int_equal(results[i].err, i < 10 ? HF_EXISTS : HF_OK);
    assert_int_equal(in_all(), 20);
}

/* ---- without ids ---- */

static void a_call_without_ids_stays_in_one_shard(void **state)
{
    long long last[N] = {0};
    (void)state;
    for (size_t call = 0; call < 3 * N; call++) {
        const size_t n = call % 2 == 0 ? 20 : MANY; /* joined to others, or alone */
        assert_int_equal(enqueue(NULL, n, NULL), HF_OK);
        int changed = 0;
        for (unsigned i = 0; i < N; i++) {
            const long long now = in_shard(i);
            if (now != last[i])
                assert_int_equal(now - last[i], n);
            changed += now != last[i];
            last[i] = now;
        }
        assert_int_equal(changed, 1);
    }
    for (unsigned i = 0; i < N; i++)
        assert_true(last[i] > 0);
}

/* All of its jobs are written by one request: a wrong key of one shard shows that. */
static void a_call_without_ids_is_accepted_all_or_none(void **state)
{
    char key[HF_TEST_SHARD_KEY];
    (void)state;
    assert_int_equal(enqueue(NULL, 1, NULL), HF_OK); /* it knows the shards */
    for (unsigned i = 0; i < N; i++)
        (void)hf_fixture_command(&redis, "DEL %s",
                                 hf_test_shard_key(&shards, i, "schedule", key));
    (void)hf_fixture_command(&redis, "SET %s x",
                             hf_test_shard_key(&shards, 1, "jobs", key));
    int failed = 0;
    for (int call = 0; call < N; call++) {
        const long long before = in_all();
        const bool done = enqueue(NULL, MANY, NULL) == HF_OK;
        assert_int_equal(in_all() - before, done ? MANY : 0);
        failed += !done;
    }
    assert_int_equal(failed, 1);
}

static void *enqueue_many(void *arg)
{
    char why[HF_DETAIL_SIZE];
    const hf_job job = {HF_JOB_INIT, .queue = "wide", .type = "t"};
    for (int i = 0; i < CALLS; i++)
        if (hf_enqueue_wait(producer, &job, 1, NULL, 0, why) != HF_OK)
            atomic_fetch_add((atomic_int *)arg, 1);
    return NULL;
}

/* Many begin before the shards are known. */
static void calls_of_many_threads_are_all_there_once(void **state)
{
    pthread_t threads[THREADS];
    atomic_int failed = 0;
    (void)state;
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, enqueue_many, &failed), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(failed, 0);
    assert_int_equal(in_all(), THREADS * CALLS);
}

static void on_enqueued(const hf_enqueue_result *result, const char *why, void *arg)
{
    if (result->err != HF_OK)
        fail_msg("%s", why);
    atomic_fetch_add((atomic_int *)arg, 1);
}

static void callbacks_of_a_divided_batch_are_called_once(void **state)
{
    atomic_int told = 0;
    (void)state;
    for (int i = 0; i < MANY; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "id-%d", i);
        const hf_job job = {HF_JOB_INIT, .queue = "wide", .type = "t",
                            .id = i % 2 == 0 ? id : NULL};
        assert_int_equal(hf_enqueue(producer, &job, on_enqueued, &told, detail), HF_OK);
    }
    hf_producer_close(producer, NULL, NULL);
    producer = NULL;
    assert_int_equal(told, MANY);
    assert_int_equal(in_all(), MANY);
    expect_in_its_shard("id-0");
}

/* ---- several queues ---- */

static void a_call_for_several_queues_finds_each(void **state)
{
    hf_job jobs[30];
    char ids[30][16];
    (void)state;
    for (int again = 0; again < 2; again++) {
        for (size_t i = 0; i < HF_COUNT(jobs); i++) {
            (void)snprintf(ids[i], sizeof ids[i], "%d-%zu", again, i);
            jobs[i] = (hf_job){HF_JOB_INIT, .queue = i % 2 == 0 ? "wide" : "plain",
                               .type = "t", .id = i % 3 == 0 ? ids[i] : NULL};
        }
        assert_int_equal(hf_enqueue_wait(producer, jobs, HF_COUNT(jobs), NULL, 0, detail),
                         HF_OK);
        expect_in_its_shard(ids[0]);
    }
    assert_int_equal(in_all(), HF_COUNT(jobs));
    assert_int_equal(hf_fixture_number(&redis, "ZCARD hf:{plain}:schedule"),
                     HF_COUNT(jobs));
}

/* ---- answers that are lost ---- */

static void a_request_without_an_answer_stays_with_its_shard(void **state)
{
    (void)state;
    assert_int_equal(enqueue(NULL, 1, NULL), HF_OK);
    for (int i = 0; i < 2 * N; i++) {
        hf_proxy_lose_answer(&proxy, "hf:{wide/");
        assert_int_equal(enqueue(NULL, 3, NULL), HF_OK);
        assert_int_equal(in_all(), 1 + 3 * (i + 1));
    }
}

/* The refusal is lost: the request is sent again, refused, and divided. */
static void a_refusal_without_an_answer_is_asked_for_again(void **state)
{
    (void)state;
    hf_proxy_lose_answer(&proxy, "hf:{wide}:");
    assert_int_equal(enqueue("id", 20, NULL), HF_OK);
    assert_int_equal(in_all(), 20);
}

typedef struct caller {
    pthread_t thread;
    unsigned index;
    atomic_bool *stop;
    atomic_uint calls;
    hf_err err;
} caller;

/* Jobs with ids and without, for several shards. */
static void *call_until_stopped(void *arg)
{
    caller *c = arg;
    char ids[PARTS][32], why[HF_DETAIL_SIZE];
    hf_job jobs[PARTS];
    while (!atomic_load(c->stop) && c->err == HF_OK) {
        for (size_t i = 0; i < PARTS; i++) {
            (void)snprintf(ids[i], sizeof ids[i], "%u-%u-%zu", c->index,
                           atomic_load(&c->calls), i);
            jobs[i] = (hf_job){HF_JOB_INIT, .queue = "wide", .type = "t",
                               .id = i % 2 == 0 ? ids[i] : NULL};
        }
        c->err = hf_enqueue_wait(producer, jobs, PARTS, NULL, SOON_MS, why);
        if (c->err == HF_OK)
            atomic_fetch_add(&c->calls, 1);
    }
    return NULL;
}

static void connections_that_break_lose_and_double_nothing(void **state)
{
    static caller callers[THREADS];
    atomic_bool stop = false;
    hf_rng rng = {hf_test_seed()};
    unsigned calls = 0;
    (void)state;
    for (unsigned i = 0; i < THREADS; i++) {
        callers[i] = (caller){.index = i, .stop = &stop};
        assert_int_equal(
            pthread_create(&callers[i].thread, NULL, call_until_stopped, &callers[i]), 0);
    }
    for (int cut = 0; cut < CUTS; cut++) {
        const unsigned before = atomic_load(&callers[cut % THREADS].calls);
        hf_proxy_cut_after(&proxy, cut % 2 == 0 ? PROXY_REQUESTS : PROXY_ANSWERS,
                           hf_rng_next(&rng) % CUT_BYTES);
        EVENTUALLY(SOON_MS, atomic_load(&callers[cut % THREADS].calls) > before + 1);
    }
    atomic_store(&stop, true);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(callers[i].thread, NULL);
        assert_int_equal(callers[i].err, HF_OK);
        calls += atomic_load(&callers[i].calls);
    }
    assert_int_equal(in_all(), calls * PARTS);
    expect_in_its_shard("0-0-0");
}

/* ---- numbers ---- */

static hf_producer *open_run(void)
{
    return hf_test_producer(&redis,
                            (hf_producer_opts){HF_PRODUCER_OPTS_INIT, .run = "run-7",
                                               .remember_ms = SOON_MS});
}

static void enqueue_numbered(hf_producer *run, uint64_t number)
{
    hf_job jobs[AT_ONCE];
    for (size_t i = 0; i < AT_ONCE; i++)
        jobs[i] = (hf_job){HF_JOB_INIT, .queue = "wide", .type = "t"};
    hf_err err =
        hf_enqueue_numbered(run, jobs, AT_ONCE, number, number * AT_ONCE, NULL, detail);
    if (err != HF_OK)
        fail_msg("%s: %s", hf_err_name(err), detail);
}

/* By other processes, whether they know the shards or not; its jobs have run meanwhile.
 */
static void a_numbered_call_is_executed_once_by_its_shard(void **state)
{
    char key[HF_TEST_SHARD_KEY];
    (void)state;
    hf_producer *run = open_run();
    for (uint64_t number = 1; number <= 2 * N; number++)
        enqueue_numbered(run, number);
    hf_producer_close(run, NULL, NULL);
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(in_shard(i), 2 * AT_ONCE);
    for (unsigned i = 0; i < N; i++)
        (void)hf_fixture_command(&redis, "DEL %s",
                                 hf_test_shard_key(&shards, i, "schedule", key));
    for (uint64_t from = 1; from <= 2 * N; from++) {
        run = open_run();
        for (uint64_t number = from; number <= 2 * N; number++)
            enqueue_numbered(run, number);
        hf_producer_close(run, NULL, NULL);
        assert_int_equal(in_all(), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)
        TEST(a_chosen_id_goes_to_its_shard),
        TEST(a_known_id_exists_in_the_whole_queue),
        TEST(a_call_without_ids_stays_in_one_shard),
        TEST(a_call_without_ids_is_accepted_all_or_none),
        TEST(calls_of_many_threads_are_all_there_once),
        TEST(callbacks_of_a_divided_batch_are_called_once),
        TEST(a_call_for_several_queues_finds_each),
        TEST(a_request_without_an_answer_stays_with_its_shard),
        TEST(a_refusal_without_an_answer_is_asked_for_again),
        TEST(connections_that_break_lose_and_double_nothing),
        TEST(a_numbered_call_is_executed_once_by_its_shard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
