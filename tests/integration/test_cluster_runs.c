/* test_cluster_runs.c - what workers tell about runs where the queues are on several
 * nodes: one key on the registry's node is for all of them, each stream is with its
 * queue. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "holdfast/producer.h"
#include "holdfast/runs.h"
#include "tests/support/cluster.h"
#include "tests/support/eventually.h"
#include "tests/support/worker_fixture.h"

enum { PRIMARIES = 3, SOON_MS = 30000 };

static hf_cluster_fixture nodes;
static hf_worker_fixture worker;
static char url[HF_CLUSTER_URL_SIZE], detail[HF_DETAIL_SIZE];
static char names[PRIMARIES][32];
static hf_runs_place places[PRIMARIES];
static size_t goes_on, ended;

static void on_entry(const hf_runs_entry *entry, void *arg)
{
    (void)arg;
    for (size_t i = 0; i < entry->n_runs; i++) {
        goes_on += entry->runs[i].end == HF_RUN_GOES_ON;
        ended += entry->runs[i].end == HF_RUN_DONE;
    }
}

static void look(hf_admin *admin)
{
    for (size_t i = 0; i < PRIMARIES; i++) {
        hf_err err = hf_admin_runs(admin, names[i], &places[i], on_entry, NULL, detail);
        if (err != HF_OK)
            fail_msg("%s: %s: %s", names[i], hf_err_name(err), detail);
    }
}

static void enqueue(hf_producer *producer, const char *queue)
{
    const hf_job job = {HF_JOB_INIT, .type = "t", .payload = "gate", .payload_len = 4,
                        .queue = queue};
    hf_err err = hf_enqueue_wait(producer, &job, 1, NULL, SOON_MS, detail);
    if (err != HF_OK)
        fail_msg("%s: %s: %s", queue, hf_err_name(err), detail);
}

static void the_runs_of_all_nodes_are_told(void **state)
{
    hf_admin *admin;
    hf_producer *producer;
    hf_worker_queue queues[PRIMARIES];
    const hf_server_opts server = {HF_SERVER_OPTS_INIT, .url = url};
    (void)state;
    hf_cluster_url(&nodes, url);
    for (size_t i = 0; i < PRIMARIES; i++) {
        hf_cluster_queue(&nodes, i, 0, names[i]);
        queues[i] = (hf_worker_queue){HF_WORKER_QUEUE_INIT, .name = names[i]};
        places[i] = (hf_runs_place){HF_RUNS_PLACE_INIT};
    }
    assert_int_equal(
        hf_admin_open(&admin, &(hf_admin_opts){HF_ADMIN_OPTS_INIT, .server = &server},
                      detail),
        HF_OK);
    assert_int_equal(
        hf_producer_open(&producer,
                         &(hf_producer_opts){HF_PRODUCER_OPTS_INIT, .server = &server},
                         detail),
        HF_OK);
    assert_int_equal(hf_admin_watch(admin, detail), HF_OK);
    hf_worker_fixture_start(&worker, url,
                            &(hf_worker_opts){HF_WORKER_OPTS_INIT, .queues = queues,
                                              .n_queues = PRIMARIES, .lease_ms = 5000},
                            0);
    for (size_t i = 0; i < PRIMARIES; i++)
        enqueue(producer, names[i]);
    EVENTUALLY(SOON_MS, (look(admin), goes_on == PRIMARIES));
    atomic_store(&worker.gate, true);
    EVENTUALLY(SOON_MS, (look(admin), ended == PRIMARIES));
    for (size_t i = 0; i < PRIMARIES; i++) {
        char key[64];
        (void)snprintf(key, sizeof key, "hf:{%s}:runs", names[i]);
        hf_fixture *owner = hf_cluster_owner(&nodes, key);
        assert_int_equal(hf_fixture_number(owner, "EXISTS %s", key), 1);
    }
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    hf_producer_close(producer, NULL, NULL);
    hf_admin_close(admin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_runs_of_all_nodes_are_told)};
    hf_cluster_start(&nodes, PRIMARIES, false);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hf_worker_fixture_end(&worker);
    hf_cluster_stop(&nodes);
    return failed;
}
