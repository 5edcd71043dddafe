/* test_cluster_admin.c - administration of a cluster: each queue is asked where it is,
 * also while that changes; the registry is on one node, and all nodes are looked at. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "holdfast/admin.h"
#include "tests/support/cluster.h"
#include "tests/support/eventually.h"
#include "tests/support/proc.h"
#include "tests/support/producer.h"

enum {
    BACKOFF_MS = 2000,
    REFUSALS = 12 /* after 20, 40 ... 500 ms, give or take a quarter */
};
enum { LONG_MS = 30000, SHORT_MS = 300, AT_ONCE_MS = 800, QUEUES = 3, NAME = 32 };

static hf_cluster_fixture nodes;
static char queues[QUEUES][NAME]; /* one for each primary */
static char url[HF_CLUSTER_URL_SIZE];
static char detail[HF_DETAIL_SIZE];
static hf_admin *admin;

static void open_admin(uint32_t deadline_ms)
{
    const hf_admin_opts opts = {HF_ADMIN_OPTS_INIT, .server = HF_SERVER(.url = url),
                                .deadline_ms = deadline_ms};
    if (hf_admin_open(&admin, &opts, detail) != HF_OK)
        fail_msg("%s", detail);
}

static int up(void **state)
{
    hf_job jobs[QUEUES];
    (void)state;
    hf_cluster_start(&nodes, QUEUES, true);
    hf_cluster_url(&nodes, url);
    hf_producer *producer = hf_test_producer(
        NULL, (hf_producer_opts){HF_PRODUCER_OPTS_INIT, .server = HF_SERVER(.url = url)});
    for (unsigned i = 0; i < QUEUES; i++) {
        hf_cluster_queue(&nodes, i, 0, queues[i]);
        jobs[i] = (hf_job){HF_JOB_INIT, .queue = queues[i], .id = "j", .type = "t"};
    }
    assert_int_equal(hf_enqueue_wait(producer, jobs, QUEUES, NULL, 0, detail), HF_OK);
    hf_producer_close(producer, NULL, NULL);
    open_admin(LONG_MS);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_admin_close(admin);
    hf_cluster_stop(&nodes);
    return 0;
}

static int64_t ready(const char *queue)
{
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    if (hf_admin_stats(admin, queue, &stats, detail) != HF_OK)
        fail_msg("%s: %s", queue, detail);
    return stats.ready;
}

static void each_queue_is_asked_at_its_node(void **state)
{
    char **names;
    size_t n;
    (void)state;
    assert_int_equal(hf_admin_queues(admin, &names, &n, detail), HF_OK);
    assert_int_equal(n, QUEUES);
    free(names);
    for (size_t i = 0; i < QUEUES; i++) {
        assert_int_equal(ready(queues[i]), 1);
        assert_int_equal(hf_admin_pause(admin, queues[i], true, detail), HF_OK);
        assert_int_equal(
            hf_fixture_number(&nodes.nodes[i], "HEXISTS hf:{%s}:meta paused", queues[i]),
            1);
        assert_int_equal(hf_admin_pause(admin, queues[i], false, detail), HF_OK);
    }
}

/* A call makes the connection itself. Without that nothing ends the wait for a second. */
static void a_node_is_connected_when_it_is_needed(void **state)
{
    (void)state;
    hf_admin_close(admin);
    open_admin(AT_ONCE_MS);
    for (size_t i = 0; i < QUEUES; i++)
        assert_int_equal(ready(queues[i]), 1);
    hf_admin_close(admin);
    open_admin(LONG_MS);
}

static void expect_unregistered(bool fix, size_t wanted, const char *name)
{
    char **names;
    size_t n;
    if (hf_admin_unregistered(admin, fix, &names, &n, detail) != HF_OK)
        fail_msg("%s", detail);
    assert_int_equal(n, wanted);
    if (n > 0)
        assert_string_equal(names[0], name);
    free(names);
}

static void a_name_that_the_registry_lacks_is_found_on_any_node(void **state)
{
    (void)state;
    expect_unregistered(false, 0, NULL);
    for (size_t i = 0; i < QUEUES; i++) {
        hf_fixture *registry = hf_cluster_owner(&nodes, "hf:{/}:queues");
        assert_int_equal(hf_fixture_number(registry, "SREM hf:{/}:queues %s", queues[i]),
                         1);
        expect_unregistered(false, 1, queues[i]);
        expect_unregistered(true, 1, queues[i]);
        expect_unregistered(false, 0, NULL);
    }
}

static void note_server(const char *place, hf_err err, const char *why, void *arg)
{
    size_t *n = arg;
    if (err != HF_OK)
        fail_msg("%s: %s", place, why);
    assert_non_null(place);
    assert_string_equal(hf_admin_server(admin)->role, "master");
    hf_round_trip trip = {HF_ROUND_TRIP_INIT};
    assert_int_equal(hf_admin_round_trip(admin, &trip, detail), HF_OK);
    ++*n;
}

static void all_nodes_are_visited(void **state)
{
    size_t n = 0;
    (void)state;
    assert_int_equal(hf_admin_servers(admin, note_server, &n, detail), HF_OK);
    assert_int_equal(n, QUEUES);
}

/* How many requests a node has answered with ASK. */
static long long refused(hf_fixture *node)
{
    const char *info = hf_fixture_command(node, "INFO errorstats");
    const char *at = strstr(info, "errorstat_ASK:count=");
    return at == NULL ? 0 : strtoll(at + strlen("errorstat_ASK:count="), NULL, 10);
}

static void a_queue_that_moves_is_asked_less_and_less_often(void **state)
{
    const unsigned slot = hf_slot(queues[0], strlen(queues[0]));
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    (void)state;
    hf_cluster_move_begin(&nodes, slot, &nodes.nodes[1]);
    const long long before = refused(&nodes.nodes[0]);
    hf_admin *patient = admin;
    open_admin(BACKOFF_MS);
    hf_err err = hf_admin_stats(admin, queues[0], &stats, detail);
    hf_admin_close(admin);
    admin = patient;
    assert_true(err == HF_UNSERVED || err == HF_UNSURE); /* the last one, at its end */
    assert_in_range(refused(&nodes.nodes[0]) - before, 2, REFUSALS);
    hf_cluster_move_end(&nodes, slot, &nodes.nodes[1]);
    hf_cluster_move_begin(&nodes, slot, &nodes.nodes[0]);
    hf_cluster_move_end(&nodes, slot, &nodes.nodes[0]);
}

/* It was stopped past the end of its time, so it sends nothing more. */
static void one_that_is_too_late_to_ask_again_tells_the_answer(void **state)
{
    const unsigned slot = hf_slot(queues[0], strlen(queues[0]));
    (void)state;
    hf_cluster_move_begin(&nodes, slot, &nodes.nodes[1]);
    const long long before = refused(&nodes.nodes[0]);
    pid_t asker = fork();
    if (asker == 0) {
        hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
        open_admin(BACKOFF_MS);
        hf_err err = hf_admin_stats(admin, queues[0], &stats, detail);
        _exit(err == HF_UNSERVED && strstr(detail, queues[0]) != NULL ? 0 : 1);
    }
    EVENTUALLY(LONG_MS, refused(&nodes.nodes[0]) > before + 1);
    hf_signal_child(asker, SIGSTOP);
    hf_test_pause_ms(BACKOFF_MS);
    hf_signal_child(asker, SIGCONT);
    int status = -1;
    assert_int_equal(waitpid(asker, &status, 0), asker);
    hf_cluster_move_end(&nodes, slot, &nodes.nodes[1]);
    hf_cluster_move_begin(&nodes, slot, &nodes.nodes[0]);
    hf_cluster_move_end(&nodes, slot, &nodes.nodes[0]);
    assert_int_equal(status, 0);
}

static void a_queue_that_moves_is_unserved_and_then_found(void **state)
{
    const unsigned slot = hf_slot(queues[0], strlen(queues[0]));
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    (void)state;
    hf_cluster_move_begin(&nodes, slot, &nodes.nodes[1]);
    hf_admin *patient = admin;
    open_admin(SHORT_MS); /* its last request may have no answer within that time */
    EVENTUALLY(LONG_MS, hf_admin_stats(admin, queues[0], &stats, detail) == HF_UNSERVED);
    EVENTUALLY(LONG_MS, hf_admin_stats(admin, queues[2], &stats, detail) == HF_OK);
    assert_int_equal(stats.ready, 1);
    hf_admin_close(admin);
    admin = patient;
    hf_cluster_move_end(&nodes, slot, &nodes.nodes[1]);
    assert_int_equal(ready(queues[0]), 1);
    hf_cluster_move_begin(&nodes, slot, &nodes.nodes[0]);
    hf_cluster_move_end(&nodes, slot, &nodes.nodes[0]);
    assert_int_equal(ready(queues[0]), 1);
}

/* The last test: the cluster is not mended. */
static void after_a_failover_the_new_primary_is_asked(void **state)
{
    (void)state;
    hf_cluster_promote(&nodes.nodes[QUEUES]);
    assert_int_equal(ready(queues[0]), 1);
    hf_fixture_kill(&nodes.nodes[1], SIGKILL);
    assert_int_equal(ready(queues[2]), 1);
    hf_cluster_take_over(&nodes.nodes[QUEUES + 1]);
    assert_int_equal(ready(queues[1]), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_queue_is_asked_at_its_node),
        cmocka_unit_test(a_node_is_connected_when_it_is_needed),
        cmocka_unit_test(a_name_that_the_registry_lacks_is_found_on_any_node),
        cmocka_unit_test(all_nodes_are_visited),
        cmocka_unit_test(a_queue_that_moves_is_asked_less_and_less_often),
        cmocka_unit_test(one_that_is_too_late_to_ask_again_tells_the_answer),
        cmocka_unit_test(a_queue_that_moves_is_unserved_and_then_found),
        cmocka_unit_test(after_a_failover_the_new_primary_is_asked),
    };
    return cmocka_run_group_tests(tests, up, down);
}
