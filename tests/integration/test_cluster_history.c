/* test_cluster_history.c - the history of queues in a cluster: each is at the node of its
 * queue, and an administrator reads it there. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "holdfast/admin.h"
#include "tests/support/cluster.h"
#include "tests/support/eventually.h"
#include "tests/support/producer.h"
#include "tests/support/worker_fixture.h"

enum { PRIMARIES = 3, JOBS = 10, LONG_MS = 30000 };

static hf_cluster_fixture nodes;
static hf_worker_fixture worker;
static hf_admin *admin;
static char names[PRIMARIES][32], url[HF_CLUSTER_URL_SIZE], detail[HF_DETAIL_SIZE];

static int up(void **state)
{
    (void)state;
    hf_cluster_start(&nodes, PRIMARIES, false);
    hf_cluster_url(&nodes, url);
    for (unsigned i = 0; i < PRIMARIES; i++)
        hf_cluster_queue(&nodes, i, 0, names[i]);
    const hf_admin_opts opts = {HF_ADMIN_OPTS_INIT, .server = HF_SERVER(.url = url),
                                .deadline_ms = LONG_MS};
    if (hf_admin_open(&admin, &opts, detail) != HF_OK)
        fail_msg("%s", detail);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_worker_fixture_end(&worker);
    hf_admin_close(admin);
    hf_cluster_stop(&nodes);
    return 0;
}

static void put(const char *queue, unsigned n)
{
    hf_job jobs[JOBS];
    hf_producer *producer = hf_test_producer(
        NULL, (hf_producer_opts){HF_PRODUCER_OPTS_INIT, .server = HF_SERVER(.url = url)});
    for (unsigned i = 0; i < n; i++)
        jobs[i] = (hf_job){HF_JOB_INIT, .queue = queue, .type = "t", .payload = "ok",
                           .payload_len = 2};
    if (hf_enqueue_wait(producer, jobs, n, NULL, 0, detail) != HF_OK)
        fail_msg("%s", detail);
    hf_producer_close(producer, NULL, NULL);
}

static int64_t counted(const char *queue)
{
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    if (hf_admin_stats(admin, queue, &stats, detail) != HF_OK)
        fail_msg("%s: %s", queue, detail);
    return stats.done;
}

static void on_type(const hf_history_type *type, void *arg)
{
    *(int64_t *)arg += type->done;
}

static int64_t told(const char *queue)
{
    int64_t done = 0;
    const hf_history_opts opts = {HF_HISTORY_OPTS_INIT, .on_type = on_type, .arg = &done};
    if (hf_admin_history(admin, queue, &opts, NULL, detail) != HF_OK)
        fail_msg("%s: %s", queue, detail);
    return done;
}

static void each_queue_has_its_history_at_its_node(void **state)
{
    hf_worker_queue queues[PRIMARIES];
    (void)state;
    for (size_t i = 0; i < PRIMARIES; i++)
        queues[i] = (hf_worker_queue){HF_WORKER_QUEUE_INIT, .name = names[i]};
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .queues = queues,
                                 .n_queues = PRIMARIES};
    hf_worker_fixture_start(&worker, url, &opts, 0);
    for (unsigned i = 0; i < PRIMARIES; i++)
        put(names[i], 2 + 3 * i);
    for (unsigned i = 0; i < PRIMARIES; i++)
        EVENTUALLY(LONG_MS, told(names[i]) == 2 + 3 * i); /* while it serves */
    for (unsigned i = 0; i < PRIMARIES; i++)
        put(names[i], 1);
    for (unsigned i = 0; i < PRIMARIES; i++)
        EVENTUALLY(LONG_MS, counted(names[i]) == 3 + 3 * i);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    for (unsigned i = 0; i < PRIMARIES; i++) {
        assert_int_equal(told(names[i]), 3 + 3 * i); /* to each node, at its end */
        assert_int_equal(hf_fixture_number(&nodes.nodes[i], "EVAL %s 0",
                                           "return #redis.call('KEYS', '*:past:@*')"),
                         1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_queue_has_its_history_at_its_node, up, down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
