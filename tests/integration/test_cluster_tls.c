/* test_cluster_tls.c - all nodes of a cluster are reached by TLS, with one authority. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "holdfast/admin.h"
#include "tests/support/cluster.h"
#include "tests/support/eventually.h"
#include "tests/support/producer.h"

enum { QUEUES = 2, NAME = 32 };

static hf_cluster_fixture nodes;
static char detail[HF_DETAIL_SIZE];

static int up(void **state)
{
    (void)state;
    hf_cluster_start_tls(&nodes, QUEUES);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_cluster_stop(&nodes);
    return 0;
}

static void jobs_and_lists_go_to_all_nodes_by_tls(void **state)
{
    char queues[QUEUES][NAME], **names;
    hf_job jobs[QUEUES];
    size_t n;
    (void)state;
    const hf_tls_opts tls = {HF_TLS_OPTS_INIT, .ca = nodes.nodes[0].ca};
    const hf_server_opts *server = HF_SERVER(.url = nodes.url, .tls = &tls);
    hf_producer *producer = hf_test_producer(
        NULL, (hf_producer_opts){HF_PRODUCER_OPTS_INIT, .server = server});
    for (unsigned i = 0; i < QUEUES; i++) {
        hf_cluster_queue(&nodes, i, 0, queues[i]);
        jobs[i] = (hf_job){HF_JOB_INIT, .queue = queues[i], .type = "t"};
    }
    if (hf_enqueue_wait(producer, jobs, QUEUES, NULL, 0, detail) != HF_OK)
        fail_msg("%s", detail);
    hf_producer_close(producer, NULL, NULL);
    for (size_t i = 0; i < QUEUES; i++)
        assert_int_equal(
            hf_fixture_number(&nodes.nodes[i], "ZCARD hf:{%s}:schedule", queues[i]), 1);
    hf_admin *admin;
    const hf_admin_opts opts = {HF_ADMIN_OPTS_INIT, .server = server};
    if (hf_admin_open(&admin, &opts, detail) != HF_OK)
        fail_msg("%s", detail);
    assert_int_equal(hf_admin_queues(admin, &names, &n, detail), HF_OK);
    assert_int_equal(n, QUEUES);
    free(names);
    hf_admin_close(admin);
}

/* The authority is not known. */
static void a_certificate_that_is_refused_is_told(void **state)
{
    hf_admin *admin;
    (void)state;
    const hf_admin_opts opts = {
        HF_ADMIN_OPTS_INIT,
        .server = HF_SERVER(.url = nodes.url, .connect_timeout_ms = 30000)};
    assert_int_equal(hf_admin_open(&admin, &opts, detail), HF_AUTH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_and_lists_go_to_all_nodes_by_tls),
        cmocka_unit_test(a_certificate_that_is_refused_is_told),
    };
    return cmocka_run_group_tests(tests, up, down);
}
