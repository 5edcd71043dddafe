/* test_cluster_producer.c - a producer in a cluster: each request goes to the node of its
 * queue, also while that changes, and no job is lost or there twice. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "base/base.h"
#include "tests/support/cluster.h"
#include "tests/support/eventually.h"
#include "tests/support/producer.h"

enum {
    LONG_MS = 60000,
    SOON_MS = 5000,
    CALL_MS = 30000,
    CONFIRM_MS = 10000,
    WAKE_MS = 200,
    REST_MS = 3000,
    TABLES = 5,   /* at most so often a node tells the table in that time */
    AT_ONCE = 10, /* jobs of a call */
    BEFORE = 20,  /* calls before something happens, and after it */
    NAME = 32
};

static hf_cluster_fixture nodes;

static hf_producer *open_producer(uint32_t replicas)
{
    char url[HF_CLUSTER_URL_SIZE];
    hf_cluster_url(&nodes, url);
    const hf_producer_opts opts = {HF_PRODUCER_OPTS_INIT, .server = HF_SERVER(.url = url),
                                   .deadline_ms = CALL_MS, .wait_replicas = replicas,
                                   .wait_replicas_ms = replicas > 0 ? CONFIRM_MS : 0};
    return hf_test_producer(NULL, opts);
}

static hf_err enqueue(hf_producer *producer, const char *queue, size_t n, char *detail)
{
    hf_job jobs[AT_ONCE];
    for (size_t i = 0; i < n; i++)
        jobs[i] = (hf_job){HF_JOB_INIT, .queue = queue, .type = "t"};
    return hf_enqueue_wait(producer, jobs, n, NULL, 0, detail);
}

static void enqueue_one(hf_producer *producer, const char *queue)
{
    char detail[HF_DETAIL_SIZE] = "";
    hf_err err = enqueue(producer, queue, 1, detail);
    if (err != HF_OK)
        fail_msg("%s: %s: %s", queue, hf_err_name(err), detail);
}

/* How many jobs a queue has; -1: no node serves it. */
static long long count(const char *queue)
{
    char key[2 * NAME];
    (void)snprintf(key, sizeof key, "hf:{%s}:schedule", queue);
    hf_fixture *owner = hf_cluster_owner(&nodes, key);
    return owner == NULL ? -1 : hf_fixture_number(owner, "ZCARD %s", key);
}

static bool is_registered(const char *queue)
{
    hf_fixture *owner = hf_cluster_owner(&nodes, "hf:{/}:queues");
    return owner != NULL &&
           hf_fixture_number(owner, "SISMEMBER hf:{/}:queues %s", queue) == 1;
}

/* ---- a thread that enqueues all the time ---- */

typedef struct load {
    hf_producer *producer;
    char queue[NAME];
    pthread_t thread;
    atomic_bool stop;
    atomic_uint calls;
    unsigned accepted, maybe; /* jobs */
    hf_err err;               /* of the last call that was not HF_OK */
    char detail[HF_DETAIL_SIZE];
} load;

static void *run(void *arg)
{
    load *l = arg;
    char detail[HF_DETAIL_SIZE];
    while (!atomic_load(&l->stop)) {
        hf_err err = enqueue(l->producer, l->queue, AT_ONCE, detail);
        if (err == HF_OK) {
            l->accepted += AT_ONCE;
        } else {
            if (err == HF_UNSURE || err == HF_UNCONFIRMED)
                l->maybe += AT_ONCE;
            l->err = err;
            (void)snprintf(l->detail, sizeof l->detail, "%s", detail);
        }
        atomic_fetch_add(&l->calls, 1);
    }
    return NULL;
}

static void begin(load *l, hf_producer *producer, const char *queue)
{
    *l = (load){.producer = producer, .err = HF_OK};
    (void)snprintf(l->queue, sizeof l->queue, "%s", queue);
    assert_int_equal(pthread_create(&l->thread, NULL, run, l), 0);
}

static void let_run(load *l)
{
    unsigned until = atomic_load(&l->calls) + BEFORE;
    EVENTUALLY(LONG_MS, atomic_load(&l->calls) >= until);
}

/* All that was accepted is there once, and nothing that was not sent. */
static void end(load *l)
{
    atomic_store(&l->stop, true);
    pthread_join(l->thread, NULL);
    EVENTUALLY(LONG_MS, count(l->queue) >= 0);
    long long n = count(l->queue);
    if (n < l->accepted || n > l->accepted + l->maybe)
        fail_msg("%s: %u accepted, %u perhaps, %lld there (%s: %s)", l->queue,
                 l->accepted, l->maybe, n, hf_err_name(l->err), l->detail);
}

static void expect_no_fault(const load *l)
{
    if (l->err != HF_OK)
        fail_msg("%s: %s: %s", l->queue, hf_err_name(l->err), l->detail);
}

/* ---- tests ---- */

static void jobs_go_to_the_nodes_of_their_queues(void **state)
{
    char queues[3][NAME];
    hf_job jobs[3];
    char detail[HF_DETAIL_SIZE] = "";
    (void)state;
    hf_producer *producer = open_producer(0);
    for (size_t i = 0; i < 3; i++) {
        hf_cluster_queue(&nodes, i, 0, queues[i]);
        jobs[i] = (hf_job){HF_JOB_INIT, .queue = queues[i], .type = "t"};
    }
    if (hf_enqueue_wait(producer, jobs, 3, NULL, 0, detail) != HF_OK)
        fail_msg("%s", detail);
    hf_producer_close(producer, NULL, NULL);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(count(queues[i]), 1);
        assert_true(is_registered(queues[i]));
    }
}

static void *wake_later(void *node)
{
    hf_test_pause_ms(WAKE_MS);
    hf_fixture_signal(node, SIGCONT);
    return NULL;
}

/* The registry's node is silent while the only job is accepted. */
static void a_producer_that_ends_soon_has_registered_its_queue(void **state)
{
    char queue[NAME];
    pthread_t thread;
    (void)state;
    hf_fixture *registry = hf_cluster_owner(&nodes, "hf:{/}:queues");
    hf_cluster_queue(&nodes, registry == &nodes.nodes[0] ? 1 : 0, 1, queue);
    hf_producer *producer = open_producer(0);
    hf_fixture_signal(registry, SIGSTOP);
    assert_int_equal(pthread_create(&thread, NULL, wake_later, registry), 0);
    enqueue_one(producer, queue);
    hf_producer_close(producer, NULL, NULL);
    pthread_join(thread, NULL);
    assert_true(is_registered(queue));
}

static void on_enqueued(const hf_enqueue_result *result, const char *why, void *arg)
{
    bool *done = arg;
    if (result->err != HF_OK)
        fail_msg("%s", why);
    *done = true;
}

static void set(void *arg)
{
    *(bool *)arg = true;
}

/* It leaves nothing on the loop, also of nodes that it has asked for the table alone. */
static void a_producer_on_a_loop_of_the_caller_works_and_ends(void **state)
{
    uv_loop_t loop;
    char queue[NAME], url[HF_CLUSTER_URL_SIZE], detail[HF_DETAIL_SIZE];
    bool done = false, closed = false;
    (void)state;
    hf_cluster_queue(&nodes, 2, 1, queue);
    hf_cluster_url(&nodes, url);
    assert_int_equal(uv_loop_init(&loop), 0);
    hf_producer *producer = hf_test_producer(
        NULL, (hf_producer_opts){HF_PRODUCER_OPTS_INIT, .server = HF_SERVER(.url = url),
                                 .loop = &loop, .deadline_ms = CALL_MS});
    const hf_job job = {HF_JOB_INIT, .queue = queue, .type = "t"};
    assert_int_equal(hf_enqueue(producer, &job, on_enqueued, &done, detail), HF_OK);
    EVENTUALLY(LONG_MS, (uv_run(&loop, UV_RUN_NOWAIT), done));
    hf_producer_close(producer, set, &closed);
    EVENTUALLY(LONG_MS, (uv_run(&loop, UV_RUN_NOWAIT), closed));
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_int_equal(count(queue), 1);
    assert_true(is_registered(queue));
}

static void a_queue_whose_slot_moves_backs_off_and_goes_on(void **state)
{
    char queue[NAME], other[NAME];
    load moving, staying;
    (void)state;
    hf_cluster_queue(&nodes, 0, 2, queue);
    hf_cluster_queue(&nodes, 0, 3, other);
    const unsigned slot = hf_slot(queue, strlen(queue));
    hf_producer *producer = open_producer(1);
    begin(&moving, producer, queue);
    begin(&staying, producer, other);
    let_run(&moving);
    for (size_t i = 1; i <= 3; i++) {
        hf_fixture *to = &nodes.nodes[i % 3];
        hf_cluster_move_begin(&nodes, slot, to);
        let_run(&staying); /* a rest of one queue is none of the other's */
        hf_cluster_move_end(&nodes, slot, to);
        let_run(&moving);
    }
    end(&moving);
    end(&staying);
    expect_no_fault(&moving);
    expect_no_fault(&staying);
    hf_producer_close(producer, NULL, NULL);
}

static long long connections(hf_fixture *node)
{
    static const char field[] = "total_connections_received:";
    const char *found = strstr(hf_fixture_command(node, "INFO stats"), field);
    assert_non_null(found);
    return strtoll(found + strlen(field), NULL, 10);
}

/* No other queue is there that would keep it. */
static void a_rest_keeps_the_connection(void **state)
{
    char queue[NAME], url[HF_CLUSTER_URL_SIZE], detail[HF_DETAIL_SIZE];
    (void)state;
    const size_t from = hf_cluster_owner(&nodes, "hf:{/}:queues") == &nodes.nodes[1];
    hf_cluster_queue(&nodes, 1 + from, 7, queue);
    hf_fixture *node = &nodes.nodes[1 + from];
    const unsigned slot = hf_slot(queue, strlen(queue));
    hf_cluster_url(&nodes, url);
    hf_producer *producer = hf_test_producer(
        NULL, (hf_producer_opts){HF_PRODUCER_OPTS_INIT, .server = HF_SERVER(.url = url),
                                 .deadline_ms = REST_MS});
    enqueue_one(producer, queue);
    hf_cluster_move_begin(&nodes, slot, &nodes.nodes[0]);
    const long long before = connections(node);
    hf_err err = enqueue(producer, queue, 1, detail);
    assert_true(err == HF_UNSERVED || err == HF_UNSURE); /* the last one, at its end */
    const long long made = connections(node) - before;
    hf_cluster_move_end(&nodes, slot, &nodes.nodes[0]);
    hf_producer_close(producer, NULL, NULL);
    if (made > TABLES)
        fail_msg("%lld connections in one rest", made);
}

static void a_node_that_is_silent_delays_no_other(void **state)
{
    char silent[NAME], other[NAME];
    load held, going;
    (void)state;
    hf_cluster_queue(&nodes, 1, 4, silent);
    hf_cluster_queue(&nodes, 2, 4, other);
    hf_producer *producer = open_producer(1);
    begin(&held, producer, silent);
    begin(&going, producer, other);
    let_run(&held);
    hf_fixture_signal(&nodes.nodes[1], SIGSTOP);
    const uint64_t start_ms = hf_test_fair_ms();
    for (int i = 0; i < 5; i++)
        let_run(&going);
    uint64_t took_ms = hf_test_fair_ms() - start_ms;
    hf_fixture_signal(&nodes.nodes[1], SIGCONT);
    if (took_ms > SOON_MS)
        fail_msg("%u calls took %u ms", 5 * BEFORE, (unsigned)took_ms);
    let_run(&held);
    end(&going);
    expect_no_fault(&going);
    end(&held);
    expect_no_fault(&held);
    hf_producer_close(producer, NULL, NULL);
}

static void a_planned_failover_loses_nothing(void **state)
{
    char queue[NAME];
    load l;
    (void)state;
    EVENTUALLY(LONG_MS, hf_cluster_is_primary(&nodes.nodes[2]));
    hf_cluster_queue(&nodes, 2, 5, queue);
    hf_producer *producer = open_producer(1);
    begin(&l, producer, queue);
    let_run(&l);
    hf_cluster_promote(&nodes.nodes[5]);
    let_run(&l);
    EVENTUALLY(LONG_MS, !hf_cluster_is_primary(&nodes.nodes[2]));
    hf_cluster_promote(&nodes.nodes[2]);
    let_run(&l);
    end(&l);
    expect_no_fault(&l);
    hf_producer_close(producer, NULL, NULL);
}

/* The last test: the cluster is not mended. What a replica has confirmed is not lost.
 * Afterwards there is none. */
static void a_killed_primary_loses_nothing_that_replicas_have(void **state)
{
    char queue[NAME];
    load l;
    (void)state;
    EVENTUALLY(LONG_MS, hf_cluster_is_primary(&nodes.nodes[0]));
    hf_cluster_queue(&nodes, 0, 6, queue);
    hf_producer *producer = open_producer(1);
    begin(&l, producer, queue);
    let_run(&l);
    expect_no_fault(&l);
    hf_fixture_kill(&nodes.nodes[0], SIGKILL);
    hf_cluster_take_over(&nodes.nodes[3]);
    hf_producer *unconfirmed = open_producer(0);
    enqueue_one(unconfirmed, queue);
    hf_producer_close(unconfirmed, NULL, NULL);
    l.maybe++;
    atomic_store(&l.stop, true);
    hf_producer_close(producer, NULL, NULL);
    end(&l);
}

static int up(void **state)
{
    (void)state;
    hf_cluster_start(&nodes, 3, true);
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
        cmocka_unit_test(jobs_go_to_the_nodes_of_their_queues),
        cmocka_unit_test(a_producer_that_ends_soon_has_registered_its_queue),
        cmocka_unit_test(a_producer_on_a_loop_of_the_caller_works_and_ends),
        cmocka_unit_test(a_queue_whose_slot_moves_backs_off_and_goes_on),
        cmocka_unit_test(a_rest_keeps_the_connection),
        cmocka_unit_test(a_planned_failover_loses_nothing),
        cmocka_unit_test(a_node_that_is_silent_delays_no_other),
        cmocka_unit_test(a_killed_primary_loses_nothing_that_replicas_have),
    };
    return cmocka_run_group_tests(tests, up, down);
}
