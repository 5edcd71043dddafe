/* test_worker_shards_cluster.c - a worker whose queue is divided among the nodes of a
 * cluster: it divides it and serves all of them; a node that is away stops its own shards
 * and no others, and they come back. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "tests/support/cluster.h"
#include "tests/support/eventually.h"
#include "tests/support/producer.h"
#include "tests/support/shards.h"
#include "tests/support/worker_fixture.h"

enum {
    NODES = 3,
    N = 6,
    CALLS = 60,
    LONG_MS = 30000,
    LEASE_MS = 4000,
    SOON_MS = 600,  /* a busy machine; a request to a silent node fails after a second */
    BACK_MS = 4000, /* after the promotion of a replica; the same */
    NAME = 32
};

static hf_cluster_fixture nodes;
static hf_worker_fixture worker;
static hf_producer *producer;
static hf_shards shards;
static char wide[NAME], detail[HF_DETAIL_SIZE];
static int put_all;

/* Each test has another queue, whose own keys are at the first node. */
static void start_worker(unsigned number)
{
    char url[HF_CLUSTER_URL_SIZE];
    hf_cluster_queue(&nodes, 0, number, wide);
    const hf_worker_queue queues[] = {{HF_WORKER_QUEUE_INIT, .name = wide, .shards = N}};
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .queues = queues, .n_queues = 1,
                                 .lease_ms = LEASE_MS, .concurrency = 16};
    hf_cluster_url(&nodes, url);
    assert_int_equal(hf_shards_make(&shards, wide, N), HF_OK);
    hf_worker_fixture_start(&worker, url, &opts, 0);
    EVENTUALLY(LONG_MS,
               hf_worker_fixture_said(&worker, "a queue is divided into shards") == 1);
    producer = hf_test_producer(NULL, (hf_producer_opts){HF_PRODUCER_OPTS_INIT,
                                                         .server = HF_SERVER(.url = url),
                                                         .deadline_ms = LONG_MS});
    put_all = 0;
}

static int down(void **state)
{
    (void)state;
    hf_worker_fixture_end(&worker);
    hf_producer_close(producer, NULL, NULL);
    producer = NULL;
    return 0;
}

static void put(const char *id, const char *payload)
{
    const hf_job job = {HF_JOB_INIT, .queue = wide,      .type = "t",
                        .id = id,    .payload = payload, .payload_len = strlen(payload)};
    if (hf_enqueue_wait(producer, &job, 1, NULL, 0, detail) != HF_OK)
        fail_msg("%s", detail);
    put_all++;
}

/* With an id of this shard, which it returns. */
static const char *put_on(unsigned shard, const char *payload)
{
    static char id[NAME];
    static unsigned k;
    do
        (void)snprintf(id, NAME, "id-%u", k++);
    while (hf_shard_of_id(id, N) != shard);
    put(id, payload);
    return id;
}

static bool all_ran(void)
{
    return atomic_load(&worker.returned) == put_all;
}

/* This many connections of the worker wait on this node. */
static bool blocks(hf_fixture *node, int n)
{
    char text[32];
    (void)snprintf(text, sizeof text, "blocked_clients:%d\r", n);
    return strstr(hf_fixture_command(node, "INFO clients"), text) != NULL;
}

static void jobs_of_all_nodes_are_done(void **state)
{
    (void)state;
    start_worker(0);
    for (int i = 0; i < CALLS; i++)
        put(NULL, "ok");
    for (unsigned i = 0; i < N; i++)
        (void)put_on(i, "ok");
    EVENTUALLY(LONG_MS, all_ran());
    for (unsigned i = 0; i < NODES; i++)
        EVENTUALLY(LONG_MS, blocks(&nodes.nodes[i], N / NODES));
    EVENTUALLY(LONG_MS,
               hf_worker_fixture_said(&worker, "outcome=done") == (size_t)put_all);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

static void a_burst_ends_when_the_shards_of_all_nodes_are_empty(void **state)
{
    (void)state;
    start_worker(0); /* which is divided now */
    for (int i = 0; i < CALLS; i++)
        put(NULL, "ok");
    const hf_worker_queue queues[] = {{HF_WORKER_QUEUE_INIT, .name = wide}};
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .queues = queues, .n_queues = 1,
                                 .burst = true};
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    hf_worker_fixture_start(&worker, nodes.url, &opts, 0);
    EVENTUALLY(LONG_MS, atomic_load(&worker.ended));
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

static bool has_run(const char *id)
{
    char text[2 * NAME];
    (void)snprintf(text, sizeof text, "job=%s queue=", id);
    return hf_worker_fixture_said(&worker, text) > 0;
}

/* It answers nothing, and accepts connections. Jobs are on the way there, so claims for
 * all slots are, too. */
static void a_silent_node_stops_its_shards_alone(void **state)
{
    hf_fixture *silent = &nodes.nodes[1];
    const unsigned first = N / NODES, end = 2 * N / NODES;
    (void)state;
    start_worker(1);
    for (int k = 0; k < CALLS; k++)
        for (unsigned i = first; i < end; i++)
            (void)put_on(i, "short");
    hf_fixture_signal(silent, SIGSTOP);
    for (unsigned i = 0; i < N; i++) {
        if (i >= first && i < end)
            continue;
        const char *id = put_on(i, "ok");
        EVENTUALLY(SOON_MS, has_run(id));
    }
    hf_fixture_signal(silent, SIGCONT);
    for (unsigned i = first; i < end; i++) { /* some others may have died with it */
        const char *id = put_on(i, "ok");
        EVENTUALLY(LONG_MS, has_run(id));
    }
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

static void the_shards_of_a_killed_node_come_back(void **state)
{
    hf_fixture *killed = &nodes.nodes[2], *next = &nodes.nodes[NODES + 2];
    (void)state;
    start_worker(2);
    for (unsigned i = 0; i < N; i++)
        (void)put_on(i, "ok");
    EVENTUALLY(LONG_MS, all_ran());
    hf_fixture_kill(killed, SIGKILL);
    for (unsigned i = 0; i < N - N / NODES; i++)
        (void)put_on(i, "ok");
    EVENTUALLY(SOON_MS, all_ran());
    hf_cluster_take_over(next);
    uint64_t from_ms = hf_test_fair_ms();
    for (unsigned i = N - N / NODES; i < N; i++)
        (void)put_on(i, "ok");
    EVENTUALLY(LONG_MS, atomic_load(&worker.returned) >= put_all);
    print_message("its shards are back %llu ms after the promotion\n",
                  (unsigned long long)(hf_test_fair_ms() - from_ms));
    assert_in_range(hf_test_fair_ms() - from_ms, 0, BACK_MS);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(jobs_of_all_nodes_are_done, down),
        cmocka_unit_test_teardown(a_burst_ends_when_the_shards_of_all_nodes_are_empty,
                                  down),
        cmocka_unit_test_teardown(a_silent_node_stops_its_shards_alone, down),
        cmocka_unit_test_teardown(the_shards_of_a_killed_node_come_back, down),
    };
    hf_cluster_start(&nodes, NODES, true);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hf_cluster_stop(&nodes);
    return failed;
}
