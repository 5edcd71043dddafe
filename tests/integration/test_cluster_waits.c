/* test_cluster_waits.c - waiting for the ends of jobs in a cluster: of queues on several
 * nodes, of a queue that moves, and of a queue with shards on all of them. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "holdfast/job_wait.h"
#include "tests/support/cluster.h"
#include "tests/support/eventually.h"
#include "tests/support/producer.h"

enum { NODES = 3, SHARDS = 4, JOBS = 20, LONG_MS = 30000, NAME = 32 };

static hf_cluster_fixture nodes;
static char queues[NODES][NAME], url[HF_CLUSTER_URL_SIZE], detail[HF_DETAIL_SIZE];
static hf_admin *admin;
static hf_producer *producer;
static hf_waits *waits;

static void must(hf_err err)
{
    if (err != HF_OK)
        fail_msg("%s: %s", hf_err_name(err), detail);
}

static int up(void **state)
{
    (void)state;
    hf_cluster_start(&nodes, NODES, false);
    hf_cluster_url(&nodes, url);
    const hf_admin_opts opts = {HF_ADMIN_OPTS_INIT, .server = HF_SERVER(.url = url),
                                .deadline_ms = LONG_MS};
    const hf_waits_opts for_waits = {HF_WAITS_OPTS_INIT, .server = HF_SERVER(.url = url)};
    producer = hf_test_producer(
        NULL, (hf_producer_opts){HF_PRODUCER_OPTS_INIT, .server = HF_SERVER(.url = url)});
    for (unsigned i = 0; i < NODES; i++)
        hf_cluster_queue(&nodes, i, 0, queues[i]);
    must(hf_admin_open(&admin, &opts, detail));
    must(hf_waits_open(&waits, &for_waits, detail));
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_waits_close(waits);
    hf_admin_close(admin);
    hf_producer_close(producer, NULL, NULL);
    hf_cluster_stop(&nodes);
    return 0;
}

typedef struct told {
    atomic_int n;
    hf_err err;
} told;

static void on_end(const hf_job_end *end, void *arg)
{
    told *t = arg;
    t->err = end->err;
    atomic_fetch_add(&t->n, 1);
}

static void put(const char *queue, const char *id, hf_enqueue_result *out)
{
    const hf_job job = {HF_JOB_INIT, .queue = queue, .id = id, .type = "t",
                        .delay_ms = 3600000};
    *out = (hf_enqueue_result){HF_ENQUEUE_RESULT_INIT};
    must(hf_enqueue_wait(producer, &job, 1, out, 0, detail));
}

static void wait_for(told *t, const char *queue, const hf_enqueue_result *job)
{
    *t = (told){.err = HF_OK};
    must(hf_job_wait(waits, queue, job->id, job->accepted_ms, 0, on_end, t, detail));
}

/* How many waits Redis knows of, at all nodes. */
static long long known(const char *tag)
{
    char key[2 * NAME];
    (void)snprintf(key, sizeof key, "hf:{%.*s}:waits", NAME - 1, tag);
    hf_fixture *owner = hf_cluster_owner(&nodes, key);
    return owner == NULL ? -1 : hf_fixture_number(owner, "HLEN %s", key);
}

static void each_queue_tells_at_its_node(void **state)
{
    static told t[NODES];
    hf_enqueue_result job;
    (void)state;
    for (int i = 0; i < NODES; i++) {
        put(queues[i], "one", &job);
        wait_for(&t[i], queues[i], &job);
    }
    for (int i = 0; i < NODES; i++) {
        EVENTUALLY(LONG_MS, known(queues[i]) == 1);
        must(hf_admin_cancel(admin, queues[i], "one", NULL, detail));
        EVENTUALLY(LONG_MS, atomic_load(&t[i].n) == 1);
        assert_int_equal(t[i].err, HF_CANCEL);
        assert_int_equal(known(queues[i]), 0);
    }
}

static void a_queue_that_moves_tells_as_well(void **state)
{
    static told t;
    hf_enqueue_result job;
    char prefix[2 * NAME];
    (void)state;
    put(queues[0], "moves", &job);
    wait_for(&t, queues[0], &job);
    EVENTUALLY(LONG_MS, known(queues[0]) == 1);
    (void)snprintf(prefix, sizeof prefix, "hf:{%s}:", queues[0]);
    unsigned slot = hf_slot(prefix, strlen(prefix));
    hf_cluster_move_begin(&nodes, slot, &nodes.nodes[1]);
    hf_cluster_move_end(&nodes, slot, &nodes.nodes[1]);
    must(hf_admin_cancel(admin, queues[0], "moves", NULL, detail));
    EVENTUALLY(LONG_MS, atomic_load(&t.n) == 1);
    assert_int_equal(t.err, HF_CANCEL);
}

/* An id that was made does not tell its shard. */
static void shards_on_all_nodes_tell(void **state)
{
    static told t[JOBS];
    static hf_enqueue_result jobs[JOBS];
    (void)state;
    must(hf_admin_divide(admin, "wide", SHARDS, detail));
    for (int i = 0; i < JOBS; i++) {
        put("wide", NULL, &jobs[i]);
        wait_for(&t[i], "wide", &jobs[i]);
    }
    for (int i = 0; i < JOBS; i++) {
        must(hf_admin_delete(admin, "wide", jobs[i].id, NULL, detail));
        EVENTUALLY(LONG_MS, atomic_load(&t[i].n) == 1);
        assert_int_equal(t[i].err, HF_DELETED);
    }
}

static long long blocked(void)
{
    static const char field[] = "blocked_clients:";
    long long n = 0;
    for (size_t i = 0; i < nodes.n; i++) {
        const char *at =
            strstr(hf_fixture_command(&nodes.nodes[i], "INFO clients"), field);
        n += at == NULL ? 0 : atoll(at + sizeof field - 1);
    }
    return n;
}

/* Each slot needs a connection of its own. The jobs of the others are asked for. */
static void a_client_listens_in_so_many_slots_at_most(void **state)
{
    enum { QUEUES = 40, HEARD = 32, CALM_MS = 1000 };
    static told t[QUEUES];
    static char names[QUEUES][NAME];
    hf_enqueue_result job;
    (void)state;
    for (int i = 0; i < QUEUES; i++) {
        hf_cluster_queue(&nodes, (size_t)i % NODES, 100 + (unsigned)i, names[i]);
        put(names[i], "one", &job);
        wait_for(&t[i], names[i], &job);
        EVENTUALLY(LONG_MS, known(names[i]) == 1);
    }
    EVENTUALLY(LONG_MS, blocked() == HEARD);
    ALWAYS(CALM_MS, blocked() <= HEARD);
    for (int i = 0; i < QUEUES; i++)
        must(hf_admin_cancel(admin, names[i], "one", NULL, detail));
    for (int i = 0; i < QUEUES; i++) {
        EVENTUALLY(LONG_MS, atomic_load(&t[i].n) == 1);
        assert_int_equal(t[i].err, HF_CANCEL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_queue_tells_at_its_node),
        cmocka_unit_test(a_queue_that_moves_tells_as_well),
        cmocka_unit_test(shards_on_all_nodes_tell),
        cmocka_unit_test(a_client_listens_in_so_many_slots_at_most),
    };
    return cmocka_run_group_tests(tests, up, down);
}
