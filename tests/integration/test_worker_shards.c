/* test_worker_shards.c - a worker whose queue is divided into shards: it divides it or
 * learns of it, serves all of them as one queue, and divides the limits. */
#include <stdio.h>
#include <string.h>

#include "queue/shards.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"
#include "tests/support/worker_fixture.h"

enum {
    N = 4,
    SOON_MS = 30000,
    CHECK_MS = 15000, /* two checks or questions, on a busy machine */
    FEW = 5,
    MANY = 300
};

static hf_queue_fixture queue;
static hf_worker_fixture worker;
static hf_shards shards;
static const hf_worker_queue plain[] = {{HF_WORKER_QUEUE_INIT, .name = "q"}};
static const hf_worker_queue divided[] = {
    {HF_WORKER_QUEUE_INIT, .name = "q", .shards = N}};

static int up(void **state)
{
    int failed = hf_queue_fixture_up(state);
    queue.broken = true; /* the audit is not of the queue's own keys */
    assert_int_equal(hf_shards_make(&shards, "q", N), HF_OK);
    return failed;
}

static int down(void **state)
{
    hf_worker_fixture_end(&worker);
    return hf_queue_fixture_down(state);
}

static hf_err divide(unsigned n)
{
    hf_err err;
    hf_shards wanted;
    assert_int_equal(hf_queue_init(&queue.queue, "hf", "q"), HF_OK);
    assert_int_equal(hf_shards_make(&wanted, "q", n), HF_OK);
    HF_QUEUE_FIXTURE_ASK(err, &queue,
                         hf_op_shards(queue.client, &queue.queue, 0, &wanted,
                                      hf_queue_fixture_on_answer, &queue));
    return err;
}

static void on_shard(unsigned i)
{
    hf_queue whole;
    assert_int_equal(hf_queue_init(&whole, "hf", "q"), HF_OK);
    hf_shards_queue(&shards, &whole, i, &queue.queue);
}

static void put_on(unsigned shard, int first, int n, const char *payload)
{
    on_shard(shard);
    for (int i = first; i < first + n; i++) {
        char id[32];
        (void)snprintf(id, sizeof id, "s%u-%d", shard, i);
        hf_queue_fixture_put(&queue, id, payload, 0);
    }
}

static long long meta(unsigned shard, const char *field)
{
    return hf_fixture_number(&queue.redis, "HGET hf:{%s}:meta %s", shards.tags[shard],
                             field);
}

static void start(const hf_worker_queue *queues, size_t n)
{
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .queues = queues, .n_queues = n};
    hf_worker_fixture_start(&worker, queue.redis.url, &opts, 0);
}

static size_t said(const char *text)
{
    return hf_worker_fixture_said(&worker, text);
}

static bool ran(int n)
{
    return atomic_load(&worker.returned) == n;
}

static void reload(const hf_worker_queue *queues, size_t n)
{
    hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .queues = queues, .n_queues = n};
    char detail[HF_DETAIL_SIZE] = "";
    uint64_t before = hf_worker_reloads(worker.worker);
    hf_worker_fixture_fill(&worker, queue.redis.url, &opts);
    assert_int_equal(hf_worker_reload(worker.worker, &opts, NULL, 0, NULL, 0, detail),
                     HF_OK);
    EVENTUALLY(SOON_MS, hf_worker_reloads(worker.worker) > before);
}

/* ---- to divide, and to learn ---- */

static void the_worker_divides_its_queue_and_runs_the_jobs_of_all_shards(void **state)
{
    (void)state;
    start(divided, 1);
    EVENTUALLY(SOON_MS, said("a queue is divided into shards queue=q shards=4") == 1);
    for (unsigned i = 0; i < N; i++)
        put_on(i, 0, FEW, "ok");
    EVENTUALLY(SOON_MS, ran(N * FEW));
    for (unsigned i = 0; i < N; i++)
        EVENTUALLY(SOON_MS, meta(i, "done") == FEW);
    assert_int_equal(said("outcome=done"), N * FEW);
    assert_int_equal(said("queue=q type=t"), N * FEW);
    assert_string_equal(hf_fixture_command(&queue.redis, "SMEMBERS hf:{/}:queues"),
                        "q\n");
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(said("refuses"), 0);
}

static void a_worker_whose_file_says_nothing_learns_it_by_refusal(void **state)
{
    (void)state;
    assert_int_equal(divide(N), HF_OK);
    put_on(2, 0, FEW, "ok");
    start(plain, 1);
    EVENTUALLY(SOON_MS, ran(FEW));
    assert_int_equal(said("a queue is divided into shards queue=q shards=4"), 1);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

/* Its next check tells. */
static void an_idle_worker_learns_of_a_command(void **state)
{
    (void)state;
    start(plain, 1);
    EVENTUALLY(SOON_MS, hf_worker_pulse(worker.worker) > 0);
    assert_int_equal(divide(N), HF_OK);
    put_on(1, 0, FEW, "ok");
    EVENTUALLY(CHECK_MS, ran(FEW));
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

static void the_number_in_redis_counts(void **state)
{
    const hf_worker_queue eight[] = {{HF_WORKER_QUEUE_INIT, .name = "q", .shards = 8}};
    (void)state;
    assert_int_equal(divide(N), HF_OK);
    put_on(3, 0, FEW, "ok");
    start(eight, 1);
    EVENTUALLY(SOON_MS, ran(FEW));
    EVENTUALLY(SOON_MS, said("warn the number of shards is not that of the file queue=q "
                             "wanted=8 error=it has 4 shards") == 1);
    assert_int_equal(said("shards=4"), 1);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

static void a_queue_with_jobs_stays_undivided_and_is_served(void **state)
{
    (void)state;
    hf_queue_fixture_put(&queue, "early", "ok", 0);
    start(divided, 1);
    EVENTUALLY(SOON_MS, ran(1));
    assert_int_equal(said("warn the number of shards is not that of the file"), 1);
    hf_queue_fixture_put(&queue, "late", "ok", 0);
    EVENTUALLY(SOON_MS, ran(2));
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

/* Redis has lost its data, and a producer that has just started finds no shards. */
static void a_queue_that_is_not_divided_any_more_is_served(void **state)
{
    (void)state;
    assert_int_equal(divide(N), HF_OK);
    start(plain, 1);
    EVENTUALLY(SOON_MS, said("divided into shards") == 1);
    (void)hf_fixture_command(&queue.redis, "FLUSHALL");
    hf_queue_fixture_put(&queue, "whole", "ok", 0);
    put_on(0, 0, 1, "ok"); /* one that knows the shards */
    EVENTUALLY(CHECK_MS, ran(2));
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

/* They are of the queue's own keys, where no job is any more. */
static void verdicts_from_before_the_division_are_answered(void **state)
{
    (void)state;
    start(plain, 1);
    hf_queue_fixture_put(&queue, "whole", "gate", 0);
    EVENTUALLY(SOON_MS, atomic_load(&worker.started) == 1);
    (void)hf_fixture_command(&queue.redis, "FLUSHALL");
    assert_int_equal(divide(N), HF_OK);
    atomic_store(&worker.gate, true);
    EVENTUALLY(SOON_MS, said("job=whole") > 0);
    put_on(1, 0, FEW, "ok");
    EVENTUALLY(CHECK_MS, ran(1 + FEW));
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(said("refuses the requests"), 0);
    assert_int_equal(said("not answered"), 0);
}

static void shards_of_other_data_replace_the_old_ones(void **state)
{
    (void)state;
    assert_int_equal(divide(N), HF_OK);
    start(plain, 1);
    EVENTUALLY(SOON_MS, said("queue=q shards=4") == 1);
    (void)hf_fixture_command(&queue.redis, "FLUSHALL");
    assert_int_equal(divide(2), HF_OK);
    EVENTUALLY(CHECK_MS, said("queue=q shards=2") == 1);
    put_on(3, 0, 1, "ok");
    ALWAYS(500, ran(0));
    assert_int_equal(hf_shards_make(&shards, "q", 2), HF_OK);
    for (unsigned i = 0; i < 2; i++)
        put_on(i, 0, FEW, "ok");
    EVENTUALLY(SOON_MS, ran(2 * FEW));
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

static void shards_that_cannot_be_read_stop_their_queue_alone(void **state)
{
    const hf_worker_queue both[] = {{HF_WORKER_QUEUE_INIT, .name = "q"},
                                    {HF_WORKER_QUEUE_INIT, .name = "other"}};
    (void)state;
    assert_int_equal(divide(N), HF_OK);
    (void)hf_fixture_command(&queue.redis, "HSET hf:{q}:meta shards nonsense");
    start(both, 2);
    EVENTUALLY(SOON_MS, said("Redis refuses the requests of a queue queue=q") == 1);
    assert_int_equal(hf_queue_init(&queue.queue, "hf", "other"), HF_OK);
    for (int i = 0; i < FEW; i++) {
        char id[32];
        (void)snprintf(id, sizeof id, "o-%d", i);
        hf_queue_fixture_put(&queue, id, "ok", 0);
        EVENTUALLY(SOON_MS, ran(i + 1));
    }
    assert_int_equal(said("Redis refuses to give jobs"), 0);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

/* ---- one queue ---- */

static void shards_under_load_get_even_shares(void **state)
{
    (void)state;
    assert_int_equal(divide(N), HF_OK);
    for (unsigned i = 0; i < N; i++)
        put_on(i, 0, MANY, "short");
    start(plain, 1);
    EVENTUALLY(SOON_MS, atomic_load(&worker.returned) >= N * MANY / 2);
    hf_worker_quiet(worker.worker);
    EVENTUALLY(SOON_MS, atomic_load(&worker.inside) == 0 && said("quiet") == 1);
    for (unsigned i = 0; i < N; i++)
        assert_in_range(meta(i, "done"), atomic_load(&worker.returned) * 9 / (N * 10),
                        atomic_load(&worker.returned) * 11 / (N * 10));
    hf_worker_resume(worker.worker);
    EVENTUALLY(SOON_MS, ran(N * MANY));
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

/* The queue with shards is one of two, not four of five. */
static void a_weight_is_that_of_the_whole_queue(void **state)
{
    const hf_worker_queue both[] = {{HF_WORKER_QUEUE_INIT, .name = "q"},
                                    {HF_WORKER_QUEUE_INIT, .name = "other"}};
    (void)state;
    assert_int_equal(divide(N), HF_OK);
    for (unsigned i = 0; i < N; i++)
        put_on(i, 0, MANY / N, "short");
    assert_int_equal(hf_queue_init(&queue.queue, "hf", "other"), HF_OK);
    for (int i = 0; i < MANY; i++) {
        char id[32];
        (void)snprintf(id, sizeof id, "o-%d", i);
        hf_queue_fixture_put(&queue, id, "short", 0);
    }
    start(both, 2);
    EVENTUALLY(SOON_MS, atomic_load(&worker.returned) >= MANY);
    hf_worker_quiet(worker.worker);
    EVENTUALLY(SOON_MS, atomic_load(&worker.inside) == 0 && said("quiet") == 1);
    assert_in_range(said("queue=other type=t") * 100 / said("outcome=done"), 40, 60);
    hf_worker_resume(worker.worker);
    EVENTUALLY(SOON_MS, ran(2 * MANY));
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

static void a_burst_ends_when_all_shards_are_empty(void **state)
{
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .burst = true};
    (void)state;
    assert_int_equal(divide(N), HF_OK);
    for (unsigned i = 0; i < N; i++)
        put_on(i, 0, FEW, "ok");
    hf_worker_fixture_start(&worker, queue.redis.url, &opts, 0);
    EVENTUALLY(SOON_MS, atomic_load(&worker.ended));
    assert_true(ran(N * FEW));
}

/* ---- limits ---- */

static void limits_are_divided(void **state)
{
    const hf_worker_queue limited[] = {{HF_WORKER_QUEUE_INIT, .name = "q", .shards = N,
                                        .has_limits = true, .max_running = 6,
                                        .rate_limit = 1000, .rate_per_ms = 86400000}};
    (void)state;
    start(limited, 1);
    for (unsigned i = 0; i < N; i++) {
        EVENTUALLY(SOON_MS, meta(i, "max_running") == (i < 2 ? 2 : 1));
        EVENTUALLY(SOON_MS, meta(i, "rate_limit") == 1000);
        EVENTUALLY(SOON_MS, meta(i, "rate_per") == INT64_C(86400000) * N);
    }
    EVENTUALLY(SOON_MS, said("Redis knows the limits of the file queue=q max_running=6 "
                             "rate=1000/1d") == 1);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

static void a_queue_whose_limit_cannot_be_divided_is_not_served(void **state)
{
    const hf_worker_queue three[] = {
        {HF_WORKER_QUEUE_INIT, .name = "q", .has_limits = true, .max_running = 3}};
    const hf_worker_queue four[] = {
        {HF_WORKER_QUEUE_INIT, .name = "q", .has_limits = true, .max_running = 4}};
    (void)state;
    assert_int_equal(divide(N), HF_OK);
    put_on(0, 0, 1, "ok");
    start(three, 1);
    EVENTUALLY(SOON_MS, said("error the shards of a queue cannot be served queue=q "
                             "error=expected a max_running of at least 4, one for each "
                             "shard, found 3") == 1);
    EVENTUALLY(SOON_MS, hf_worker_pulse(worker.worker) > 0);
    assert_true(ran(0));
    reload(four, 1);
    EVENTUALLY(SOON_MS, ran(1));
    reload(three, 1);
    assert_int_equal(said("error the reload is refused, nothing was changed queue=q"), 1);
    put_on(1, 0, 1, "ok");
    EVENTUALLY(SOON_MS, ran(2));
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

/* ---- a reload ---- */

static void a_queue_with_shards_comes_and_goes(void **state)
{
    const hf_worker_queue both[] = {{HF_WORKER_QUEUE_INIT, .name = "other"},
                                    {HF_WORKER_QUEUE_INIT, .name = "q", .shards = N}};
    (void)state;
    start(both, 1);
    reload(both, 2);
    EVENTUALLY(SOON_MS, said("divided into shards queue=q shards=4") == 1);
    put_on(0, 0, 1, "gate");
    put_on(1, 0, 1, "ok");
    EVENTUALLY(SOON_MS, ran(1) && atomic_load(&worker.started) == 2);
    reload(both, 1);
    put_on(2, 0, FEW, "ok");
    put_on(0, 1, FEW, "ok");
    ALWAYS(500, atomic_load(&worker.started) == 2);
    reload(both, 2);
    EVENTUALLY(SOON_MS, ran(1 + 2 * FEW));
    reload(both, 1);
    atomic_store(&worker.gate, true);
    EVENTUALLY(SOON_MS, meta(0, "done") == 1 + FEW);
    reload(both, 2);
    put_on(3, 0, FEW, "ok");
    EVENTUALLY(SOON_MS, ran(2 + 3 * FEW));
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

static void the_number_of_shards_and_queues_has_a_bound(void **state)
{
    hf_worker_queue three[3] = {plain[0], plain[0], plain[0]};
    static const char *const names[] = {"a", "b", "c"};
    hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .queues = three, .n_queues = 3};
    hf_worker *none;
    char detail[HF_DETAIL_SIZE];
    (void)state;
    for (int i = 0; i < 3; i++) {
        three[i].name = names[i];
        three[i].shards = i == 2 ? 0 : 63;
    }
    assert_int_equal(hf_worker_new(&none, &opts, detail), HF_INVALID);
    assert_string_equal(detail,
                        "expected at most 128 queues and shards in all, found 129");
    three[1].shards = 65;
    assert_int_equal(hf_worker_new(&none, &opts, detail), HF_INVALID);
    assert_string_equal(detail, "expected 2 to 64 shards, found 65");
    three[1].shards = 1;
    assert_int_equal(hf_worker_new(&none, &opts, detail), HF_INVALID);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_prestate_setup_teardown(name, up, down, &queue)
    const struct CMUnitTest tests[] = {
        CASE(the_worker_divides_its_queue_and_runs_the_jobs_of_all_shards),
        CASE(a_worker_whose_file_says_nothing_learns_it_by_refusal),
        CASE(an_idle_worker_learns_of_a_command),
        CASE(the_number_in_redis_counts),
        CASE(a_queue_with_jobs_stays_undivided_and_is_served),
        CASE(a_queue_that_is_not_divided_any_more_is_served),
        CASE(verdicts_from_before_the_division_are_answered),
        CASE(shards_of_other_data_replace_the_old_ones),
        CASE(shards_that_cannot_be_read_stop_their_queue_alone),
        CASE(shards_under_load_get_even_shares),
        CASE(a_weight_is_that_of_the_whole_queue),
        CASE(a_burst_ends_when_all_shards_are_empty),
        CASE(limits_are_divided),
        CASE(a_queue_whose_limit_cannot_be_divided_is_not_served),
        CASE(a_queue_with_shards_comes_and_goes),
        CASE(the_number_of_shards_and_queues_has_a_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
