/* test_cluster_shards.c - a divided queue in a cluster: its shards are on all nodes, and
 * one that is away stops what belongs to its own shards, and nothing else. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "holdfast/admin.h"
#include "tests/support/cluster.h"
#include "tests/support/eventually.h"
#include "tests/support/producer.h"
#include "tests/support/shards.h"

enum {
    NODES = 3,
    N = 6,
    CALLS = 60,
    CALL_MS = 30000,
    SHORT_MS = 3000,
    SILENT_MS = 300,
    GOING_MS = 500,            /* from 700 the silent connection is given up; */
    BUSY_MS = 10000,           /* of the fair clock, for a busy machine; those who */
    PATIENT_MS = 10 * CALL_MS, /* wait may do so for longer */
    ROUNDS = 4,
    CONNECT_MS = 15000, /* to a silent node in vain; a call ends before, */
    FRESH_MS = 12000,   /* and may ask that node first for a third of it */
    CALLERS = 32,
    PACE_MS = 40,
    AWAY_MS = 2500, /* a silent connection is given up before */
    NAME = 32
};

static hf_cluster_fixture nodes;
static hf_shards shards;
static char wide[NAME], detail[HF_DETAIL_SIZE];

static hf_producer *open_producer(uint32_t deadline_ms)
{
    char url[HF_CLUSTER_URL_SIZE];
    hf_cluster_url(&nodes, url);
    return hf_test_producer(
        NULL, (hf_producer_opts){
                  HF_PRODUCER_OPTS_INIT,
                  .server = HF_SERVER(.url = url, .connect_timeout_ms = CONNECT_MS),
                  .deadline_ms = deadline_ms});
}

/* The queue is at the first node: its own slot, and the first third of its shards. Each
 * test has another one. */
static void divide(unsigned number)
{
    hf_cluster_queue(&nodes, 0, number, wide);
    hf_test_divide(&nodes.nodes[0], wide, N, &shards);
}

static hf_fixture *owner(unsigned i)
{
    char key[HF_TEST_SHARD_KEY];
    return hf_cluster_owner(&nodes, hf_test_shard_key(&shards, i, "schedule", key));
}

static long long count(unsigned i)
{
    char key[HF_TEST_SHARD_KEY];
    return hf_fixture_number(owner(i), "ZCARD %s",
                             hf_test_shard_key(&shards, i, "schedule", key));
}

static long long count_all(void)
{
    long long n = 0;
    for (unsigned i = 0; i < N; i++)
        n += count(i);
    return n;
}

static hf_err enqueue(hf_producer *producer, const char *id)
{
    return hf_enqueue_wait(producer,
                           &(hf_job){HF_JOB_INIT, .queue = wide, .type = "t", .id = id},
                           1, NULL, 0, detail);
}

static void enqueue_calls(hf_producer *producer)
{
    for (int i = 0; i < CALLS; i++)
        if (enqueue(producer, NULL) != HF_OK)
            fail_msg("call %d: %s", i, detail);
}

/* An id of this shard. */
static const char *id_of(unsigned shard, char id[NAME])
{
    unsigned k = 0;
    do
        (void)snprintf(id, NAME, "id-%u", k++);
    while (hf_shard_of_id(id, N) != shard);
    return id;
}

static void shards_are_on_all_nodes_and_get_their_jobs(void **state)
{
    char id[NAME];
    (void)state;
    divide(0);
    hf_producer *producer = open_producer(CALL_MS);
    for (unsigned i = 0; i < N; i++)
        assert_ptr_equal(owner(i), &nodes.nodes[i * NODES / N]);
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(enqueue(producer, id_of(i, id)), HF_OK);
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(count(i), 1);
    enqueue_calls(producer);
    assert_int_equal(count_all(), N + CALLS);
    for (unsigned i = 0; i < N; i++)
        assert_in_range(count(i), CALLS / N / 2, CALLS / N * 2);
    hf_producer_close(producer, NULL, NULL);
}

static void on_enqueued(const hf_enqueue_result *result, const char *why, void *arg)
{
    if (result->err != HF_OK)
        fail_msg("%s", why);
    atomic_fetch_add((atomic_int *)arg, 1);
}

/* Requests that were sent to a silent node stay with their shard: each is executed once.
 */
static void what_a_silent_node_has_got_is_executed_once(void **state)
{
    atomic_int told = 0;
    (void)state;
    divide(1);
    hf_producer *producer = open_producer(CALL_MS);
    enqueue_calls(producer);
    hf_fixture_signal(&nodes.nodes[1], SIGSTOP);
    const uint64_t until_ms = hf_test_now_ms() + AWAY_MS;
    int sent = 0;
    while (hf_test_now_ms() < until_ms) {
        const hf_job job = {HF_JOB_INIT, .queue = wide, .type = "t"};
        assert_int_equal(hf_enqueue(producer, &job, on_enqueued, &told, detail), HF_OK);
        sent++;
        hf_test_pause_ms(10);
    }
    EVENTUALLY(CALL_MS, atomic_load(&told) > sent / 2); /* by the other nodes */
    hf_fixture_signal(&nodes.nodes[1], SIGCONT);
    EVENTUALLY(CALL_MS, atomic_load(&told) == sent);
    hf_producer_close(producer, NULL, NULL);
    assert_int_equal(count_all(), CALLS + sent);
}

/* A new one does not know that the node is away until it has tried to connect. */
static void a_new_producer_does_not_wait_for_a_silent_node(void **state)
{
    (void)state;
    divide(7);
    hf_fixture_signal(&nodes.nodes[1], SIGSTOP);
    for (unsigned i = 0; i < 2 * N; i++) {
        hf_producer *producer = open_producer(FRESH_MS);
        hf_err err = enqueue(producer, NULL);
        hf_producer_close(producer, NULL, NULL);
        if (err != HF_OK) {
            hf_fixture_signal(&nodes.nodes[1], SIGCONT);
            fail_msg("producer %u: %s", i, detail);
        }
    }
    hf_fixture_signal(&nodes.nodes[1], SIGCONT);
    EVENTUALLY(CALL_MS, count_all() == 2 * N);
}

typedef struct caller {
    hf_producer *producer;
    pthread_t thread;
    unsigned pace_ms;
    atomic_bool *stop;
    atomic_uint calls;
} caller;

static void *call(void *arg)
{
    caller *c = arg;
    char why[HF_DETAIL_SIZE];
    const hf_job job = {HF_JOB_INIT, .queue = wide, .type = "t"};
    while (!atomic_load(c->stop)) {
        if (hf_enqueue_wait(c->producer, &job, 1, NULL, 0, why) == HF_OK)
            atomic_fetch_add(&c->calls, 1);
        hf_test_pause_ms(c->pace_ms);
    }
    return NULL;
}

static void note_calls(caller *callers, unsigned calls[CALLERS])
{
    for (size_t i = 0; i < CALLERS; i++)
        calls[i] = atomic_load(&callers[i].calls);
}

static bool half_go_on(caller *callers, const unsigned before[CALLERS])
{
    unsigned going = 0;
    for (size_t i = 0; i < CALLERS; i++)
        going += atomic_load(&callers[i].calls) > before[i];
    return going >= CALLERS / 2;
}

static void wait_for_all(caller *callers)
{
    unsigned before[CALLERS];
    note_calls(callers, before);
    for (size_t i = 0; i < CALLERS; i++)
        EVENTUALLY(CALL_MS, atomic_load(&callers[i].calls) > before[i]);
}

/* After how long half of them go on, once those wait that a silent node stops. */
static uint64_t go_on_ms(caller *callers)
{
    unsigned before[CALLERS];
    hf_fixture_signal(&nodes.nodes[1], SIGSTOP);
    hf_test_pause_ms(SILENT_MS);
    note_calls(callers, before);
    const hf_test_span span = hf_test_span_begin();
    while (!half_go_on(callers, before) &&
           hf_test_fair_ms() < span.fair_from_ms + BUSY_MS)
        hf_test_pause_since(span.from_ms);
    const uint64_t took_ms =
        half_go_on(callers, before) ? hf_test_now_ms() - span.from_ms : UINT64_MAX;
    hf_fixture_signal(&nodes.nodes[1], SIGCONT);
    wait_for_all(callers);
    return took_ms;
}

/* Some calls were sent to it when it fell silent, and wait. The others do not queue up
 * behind them until its connection is given up. On a busy machine they may take that long
 * by themselves: it is enough that they do not once, and there they may. */
static void a_silent_node_stops_few_callers(void **state)
{
    static caller callers[CALLERS];
    static atomic_bool stop;
    uint64_t best_ms = UINT64_MAX;
    (void)state;
    divide(3);
    hf_producer *producer = open_producer(PATIENT_MS);
    enqueue_calls(producer);
    for (size_t i = 0; i < CALLERS; i++) {
        callers[i] = (caller){
            .producer = producer, .pace_ms = PACE_MS + (unsigned)i, .stop = &stop};
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
    }
    wait_for_all(callers);
    const hf_test_span span = hf_test_span_begin();
    for (int i = 0; i < ROUNDS && best_ms >= GOING_MS; i++) {
        const uint64_t ms = go_on_ms(callers);
        best_ms = ms < best_ms ? ms : best_ms;
    }
    const bool busy = hf_test_span_is_busy(span);
    atomic_store(&stop, true);
    unsigned calls = 0;
    for (size_t i = 0; i < CALLERS; i++) {
        pthread_join(callers[i].thread, NULL);
        calls += atomic_load(&callers[i].calls);
    }
    hf_producer_close(producer, NULL, NULL);
    assert_int_equal(count_all(), CALLS + calls);
    print_message("half of the callers go on after %llu ms\n",
                  (unsigned long long)best_ms);
    assert_true(best_ms < GOING_MS || (busy && best_ms < UINT64_MAX));
}

static void count_shown(const hf_shard_info *shard, void *arg)
{
    unsigned *n = arg;
    assert_string_equal(shard->tag, shards.tags[shard->number]);
    n[shard->stats != NULL]++;
}

/* A job of another node is found, by its id or by asking all shards. Of one that is not
 * found nobody knows whether it is at the node that is away. */
static void find_without_the_node(hf_producer *producer)
{
    char url[HF_CLUSTER_URL_SIZE], id[NAME];
    hf_admin *admin = NULL;
    hf_job_info info = {HF_JOB_INFO_INIT};
    hf_cluster_url(&nodes, url);
    const hf_admin_opts opts = {HF_ADMIN_OPTS_INIT, .server = HF_SERVER(.url = url),
                                .deadline_ms = SHORT_MS};
    assert_int_equal(hf_admin_open(&admin, &opts, detail), HF_OK);
    for (int i = 0; i < 2 * N; i++) {
        hf_enqueue_result result = {HF_ENQUEUE_RESULT_INIT};
        const hf_job job = {HF_JOB_INIT, .queue = wide, .type = "t"};
        assert_int_equal(hf_enqueue_wait(producer, &job, 1, &result, 0, detail), HF_OK);
        if (hf_admin_job(admin, wide, result.id, &info, NULL, detail) != HF_OK)
            fail_msg("%s", detail);
    }
    assert_int_equal(hf_admin_job(admin, wide, id_of(0, id), &info, NULL, detail), HF_OK);
    hf_err err = hf_admin_job(admin, wide, id_of(N - 1, id), &info, NULL, detail);
    assert_true(err == HF_CONN || err == HF_UNSERVED);
    assert_non_null(strstr(detail, shards.tags[N - 1]));
    unsigned shown[2] = {0, 0};
    err = hf_admin_shards(admin, wide, count_shown, shown, detail);
    assert_true(err == HF_CONN || err == HF_UNSERVED);
    assert_int_equal(shown[false], 2);
    assert_int_equal(shown[true], N - 2);
    hf_admin_close(admin);
}

/* The last test: the node stays away, and the cluster has no replicas. One call may have
 * been sent before the producer knew that. */
static void jobs_without_ids_go_to_the_nodes_that_are_there(void **state)
{
    char id[NAME];
    int unanswered = 0;
    (void)state;
    divide(2);
    hf_producer *producer = open_producer(SHORT_MS);
    for (int i = 0; i < CALLS; i++)
        assert_int_equal(enqueue(producer, NULL), HF_OK);
    const long long before = count_all() - count(N - 1) - count(N - 2);
    hf_fixture_kill(&nodes.nodes[NODES - 1], SIGKILL);
    for (int i = 0; i < CALLS; i++)
        unanswered += enqueue(producer, NULL) != HF_OK;
    assert_in_range(unanswered, 0, 1);
    long long after = 0;
    for (unsigned i = 0; i < N - 2; i++)
        after += count(i);
    assert_int_equal(after - before, CALLS - unanswered);
    for (unsigned i = 0; i < N - 2; i++)
        assert_int_equal(enqueue(producer, id_of(i, id)), HF_OK);
    assert_int_equal(enqueue(producer, id_of(N - 1, id)), HF_TIMEOUT);
    find_without_the_node(producer);
    hf_producer_close(producer, NULL, NULL);
}

static int up(void **state)
{
    (void)state;
    hf_cluster_start(&nodes, NODES, false);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_cluster_stop(&nodes);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_are_on_all_nodes_and_get_their_jobs),
        cmocka_unit_test(what_a_silent_node_has_got_is_executed_once),
        cmocka_unit_test(a_new_producer_does_not_wait_for_a_silent_node),
        cmocka_unit_test(a_silent_node_stops_few_callers),
        cmocka_unit_test(jobs_without_ids_go_to_the_nodes_that_are_there),
    };
    return cmocka_run_group_tests(tests, up, down);
}
