/* test_worker_cluster.c - a worker whose queues are on several nodes of a cluster: it
 * consumes all of them, follows a queue that moves, and goes on when a node is away. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <uv.h>

#include "base/base.h"
#include "queue/ops.h"
#include "redis/server.h"
#include "tests/support/cluster.h"
#include "tests/support/eventually.h"
#include "tests/support/worker_fixture.h"

enum {
    PRIMARIES = 3,
    LONG_MS = 30000,
    LEASE_MS = 4000,
    GIVE_UP_MS = 3000, /* as in worker/life.c */
    SLACK_MS = 3000,
    DELAY_MS = 2000,
    OTHERS = 20,
    OTHERS_MS = 5000, /* a busy machine; each would wait for a pause of the node */
    KEY_SIZE = 96
};

static hf_cluster_fixture nodes;
static hf_worker_fixture worker;
static char names[PRIMARIES][32]; /* of queues, one on each primary at the start */
static hf_worker_queue queues[PRIMARIES];
static uv_loop_t loop; /* of the requests of the test */

/* ---- jobs ---- */

static hf_fixture *owner_of(const char *queue)
{
    char key[KEY_SIZE];
    (void)snprintf(key, sizeof key, "hf:{%s}:meta", queue);
    return hf_cluster_owner(&nodes, key);
}

typedef struct request {
    hf_client *client;
    hf_queue queue;
    char id[64], record[128];
    int64_t due_ms; /* as in hf_enqueue_item */
    bool answered;
    hf_err err;
} request;

static void send_it(request *r);

static void on_answer(const hf_answer *answer, void *arg)
{
    request *r = arg;
    r->answered = answer->err != HF_NOSCRIPT;
    r->err = answer->err;
    if (!r->answered)
        send_it(r);
}

static void send_it(request *r)
{
    const hf_enqueue_args args = {.producer = ""};
    const hf_enqueue_item item = {r->id, r->due_ms, {r->record, strlen(r->record)}};
    r->err = hf_op_enqueue(r->client, &r->queue, &args, &item, 1, 0, on_answer, r);
    r->answered = r->err != HF_OK;
}

static void on_event(hf_client *client, hf_err err, const char *detail, void *arg)
{
    request *r = arg;
    (void)client, (void)detail;
    r->err = err;
    r->answered = err != HF_OK;
    if (err == HF_OK)
        send_it(r);
}

/* By the node that serves the queue; its slot may be on its way. */
static bool accepts(const char *queue, const char *id, const char *payload,
                    int64_t due_ms)
{
    const hf_fixture *owner = owner_of(queue);
    request r = {.err = HF_CONN, .due_ms = due_ms};
    hf_server *given, *node;
    if (owner == NULL)
        return false;
    const hf_server_opts opts = {HF_SERVER_OPTS_INIT, .url = hf_fixture_url(owner)};
    assert_int_equal(hf_server_open(&given, &opts, NULL), HF_OK);
    const hf_place place = {.host = "127.0.0.1", .port = owner->port};
    assert_int_equal(hf_server_open_node(&node, given, &place, LONG_MS, LONG_MS, NULL),
                     HF_OK);
    (void)snprintf(r.id, sizeof r.id, "%s", id);
    (void)snprintf(r.record, sizeof r.record,
                   "{\"v\":1,\"type\":\"t\",\"created\":1}\n%s", payload);
    assert_int_equal(hf_queue_init(&r.queue, "hf", queue), HF_OK);
    assert_int_equal(
        hf_client_open(&r.client,
                       &(hf_client_opts){
                           .loop = &loop, .redis = node, .on_event = on_event, .arg = &r},
                       NULL),
        HF_OK);
    while (!r.answered)
        (void)uv_run(&loop, UV_RUN_ONCE);
    hf_client_close(r.client, NULL, NULL);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    hf_server_close(node);
    hf_server_close(given);
    return r.err == HF_OK;
}

static void put(const char *queue, const char *id, const char *payload)
{
    EVENTUALLY(LONG_MS, accepts(queue, id, payload, 0));
}

static void put_many(const char *queue, const char *prefix, int n)
{
    for (int i = 0; i < n; i++) {
        char id[64];
        (void)snprintf(id, sizeof id, "%s-%s-%d", queue, prefix, i);
        put(queue, id, "ok");
    }
}

static size_t done(const char *queue)
{
    char text[64];
    size_t n = 0;
    (void)snprintf(text, sizeof text, "queue=%s type=t", queue);
    pthread_mutex_lock(&worker.lock);
    for (size_t i = 0; i < worker.n_lines; i++)
        if (strstr(worker.lines[i], text) != NULL &&
            strstr(worker.lines[i], "outcome=done") != NULL)
            n++;
    pthread_mutex_unlock(&worker.lock);
    return n;
}

/* How many jobs all nodes have of the queue, in all its sets. */
static long long left(const char *queue)
{
    static const char *const sets[] = {"schedule", "running", "dead"};
    hf_fixture *owner = owner_of(queue);
    long long n = 0;
    for (size_t i = 0; owner != NULL && i < HF_COUNT(sets); i++)
        n += hf_fixture_number(owner, "ZCARD hf:{%s}:%s", queue, sets[i]);
    return owner == NULL ? -1 : n;
}

/* ---- the worker ---- */

static void start_worker_of(uint32_t shutdown_ms)
{
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .queues = queues,
                                 .n_queues = PRIMARIES, .lease_ms = LEASE_MS,
                                 .shutdown_timeout_ms = shutdown_ms};
    char url[HF_CLUSTER_URL_SIZE];
    hf_cluster_url(&nodes, url);
    hf_worker_fixture_start(&worker, url, &opts, 0);
}

static void start_worker(void)
{
    start_worker_of(0);
}

static int end_worker(void **state)
{
    (void)state;
    hf_worker_fixture_end(&worker);
    return 0;
}

static unsigned slot_of(const char *queue)
{
    return hf_slot(queue, strlen(queue));
}

/* The epoch of `of` as this node knows it. */
static int epoch_of(hf_fixture *node, const hf_fixture *of)
{
    char place[32];
    int epoch = -1;
    (void)snprintf(place, sizeof place, ":%u@", (unsigned)of->port);
    const char *line = strstr(hf_fixture_command(node, "CLUSTER NODES"), place);
    if (line != NULL && sscanf(line, "%*s %*s %*s %*s %*s %d", &epoch) != 1)
        return -1;
    return epoch;
}

/* Until all nodes have heard of it: an older word of one of them would undo the next
 * move. */
static void move_end(const char *queue, hf_fixture *to)
{
    hf_cluster_move_end(&nodes, slot_of(queue), to);
    for (size_t i = 0; i < nodes.n; i++)
        EVENTUALLY(LONG_MS, epoch_of(&nodes.nodes[i], to) == epoch_of(to, to));
    EVENTUALLY(LONG_MS, owner_of(queue) == to);
}

static void move(const char *queue, hf_fixture *to)
{
    hf_cluster_move_begin(&nodes, slot_of(queue), to);
    move_end(queue, to);
}

/* ---- tests ---- */

static void queues_of_three_nodes_are_consumed(void **state)
{
    (void)state;
    start_worker();
    for (size_t i = 0; i < PRIMARIES; i++)
        put_many(names[i], "a", 5);
    for (size_t i = 0; i < PRIMARIES; i++) {
        EVENTUALLY(LONG_MS, done(names[i]) == 5);
        EVENTUALLY(LONG_MS, left(names[i]) == 0);
    }
    EVENTUALLY(LONG_MS, hf_fixture_number(hf_cluster_owner(&nodes, "hf:{/}:workers"),
                                          "ZCARD hf:{/}:workers") == 1);
    EVENTUALLY(LONG_MS, hf_fixture_number(hf_cluster_owner(&nodes, "hf:{/}:queues"),
                                          "SCARD hf:{/}:queues") == PRIMARIES);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(hf_fixture_number(hf_cluster_owner(&nodes, "hf:{/}:workers"),
                                       "ZCARD hf:{/}:workers"),
                     0);
}

/* This many connections of the worker wait on this node. */
static bool blocks(hf_fixture *node, int n)
{
    char text[32];
    (void)snprintf(text, sizeof text, "blocked_clients:%d\r", n);
    return strstr(hf_fixture_command(node, "INFO clients"), text) != NULL;
}

static void an_idle_worker_waits_on_each_node(void **state)
{
    (void)state;
    start_worker();
    for (size_t i = 0; i < PRIMARIES; i++) {
        EVENTUALLY(LONG_MS, blocks(&nodes.nodes[i], 1));
        size_t before = hf_worker_fixture_said(&worker, "woken");
        put_many(names[i], "b", 1);
        EVENTUALLY(LONG_MS, done(names[i]) == 1);
        assert_true(hf_worker_fixture_said(&worker, "woken") > before);
    }
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

static void a_queue_that_moves_while_a_job_runs_is_followed(void **state)
{
    (void)state;
    const char *queue = names[0];
    start_worker();
    put(queue, "held", "gate");
    EVENTUALLY(LONG_MS, atomic_load(&worker.started) == 1);
    hf_cluster_move_begin(&nodes, slot_of(queue), &nodes.nodes[1]);
    put_many(names[2], "c", 3); /* another node's queue goes on meanwhile */
    EVENTUALLY(LONG_MS, done(names[2]) == 3);
    move_end(queue, &nodes.nodes[1]);
    put_many(queue, "c", 3);
    EVENTUALLY(LONG_MS, done(queue) == 3);
    ALWAYS(LEASE_MS * 3 / 2, hf_worker_fixture_said(&worker, "outcome=lost") == 0);
    atomic_store(&worker.gate, true);
    EVENTUALLY(LONG_MS, done(queue) == 4);
    EVENTUALLY(LONG_MS, left(queue) == 0);
    assert_ptr_equal(owner_of(queue), &nodes.nodes[1]);
    assert_int_equal(atomic_load(&worker.started), 7);
    assert_int_equal(hf_worker_fixture_said(&worker, "another node serves a queue"), 1);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    move(queue, &nodes.nodes[0]);
}

static void a_burst_ends_when_all_nodes_are_empty(void **state)
{
    (void)state;
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .queues = queues,
                                 .n_queues = PRIMARIES, .burst = true};
    EVENTUALLY(LONG_MS, accepts(names[2], "later", "ok", -DELAY_MS));
    put_many(names[1], "burst", 2);
    hf_worker_fixture_start(&worker, nodes.url, &opts, 0);
    EVENTUALLY(LONG_MS, atomic_load(&worker.ended));
    for (size_t i = 0; i < PRIMARIES; i++)
        assert_int_equal(left(names[i]), 0);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

/* Each queue's schedule is on the queue's node, and goes where the queue goes. */
static void schedules_tick_on_each_node_and_move_with_their_queues(void **state)
{
    hf_schedule schedules[PRIMARIES];
    (void)state;
    for (size_t i = 0; i < PRIMARIES; i++) {
        schedules[i] =
            (hf_schedule){HF_SCHEDULE_INIT, .id = "s",   .queue = names[i],
                          .every_ms = 300,  .type = "t", .payload = "ok",
                          .payload_len = 2, .limit = 8,  .overlap = HF_OVERLAP_ALLOW};
    }
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT,    .queues = queues,
                                 .n_queues = PRIMARIES,  .lease_ms = LEASE_MS,
                                 .schedules = schedules, .n_schedules = PRIMARIES};
    hf_worker_fixture_start(&worker, nodes.url, &opts, 0);
    for (size_t i = 0; i < PRIMARIES; i++)
        EVENTUALLY(LONG_MS, done(names[i]) >= 2);
    hf_cluster_move_begin(&nodes, slot_of(names[0]), &nodes.nodes[1]);
    hf_cluster_move_end(&nodes, slot_of(names[0]), &nodes.nodes[1]);
    for (size_t i = 0; i < PRIMARIES; i++)
        EVENTUALLY(LONG_MS, done(names[i]) >= 8);
    for (size_t i = 0; i < PRIMARIES; i++) /* its limit */
        assert_int_equal(done(names[i]), 8);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    hf_cluster_move_begin(&nodes, slot_of(names[0]), &nodes.nodes[0]);
    hf_cluster_move_end(&nodes, slot_of(names[0]), &nodes.nodes[0]);
    for (size_t i = 0; i < PRIMARIES; i++)
        (void)hf_fixture_command(owner_of(names[i]),
                                 "DEL hf:{%s}:cron hf:{%s}:cron_state "
                                 "hf:{%s}:cron_next hf:{%s}:cron_named",
                                 names[i], names[i], names[i], names[i]);
}

static void reload(const hf_worker_queue *list, size_t n)
{
    hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .queues = list, .n_queues = n,
                           .lease_ms = LEASE_MS};
    char detail[HF_DETAIL_SIZE];
    uint64_t before = hf_worker_reloads(worker.worker);
    hf_worker_fixture_fill(&worker, nodes.url, &opts);
    assert_int_equal(hf_worker_reload(worker.worker, &opts, NULL, 0, NULL, 0, detail),
                     HF_OK);
    EVENTUALLY(LONG_MS, hf_worker_reloads(worker.worker) > before);
}

static void a_reload_changes_the_nodes(void **state)
{
    (void)state;
    start_worker();
    reload(queues, 1);
    EVENTUALLY(LONG_MS, blocks(&nodes.nodes[1], 0) && blocks(&nodes.nodes[2], 0));
    put_many(names[2], "r", 1);
    put_many(names[0], "r", 1);
    EVENTUALLY(LONG_MS, done(names[0]) == 1);
    assert_int_equal(left(names[2]), 1);
    reload(queues + 1, 2);
    EVENTUALLY(LONG_MS, done(names[2]) == 1);
    EVENTUALLY(LONG_MS, blocks(&nodes.nodes[0], 0) && blocks(&nodes.nodes[1], 1));
    put_many(names[1], "r", 1);
    EVENTUALLY(LONG_MS, done(names[1]) == 1);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

/* Two queues of one node; the slot of the first is on its way. */
static void a_slot_that_moves_stops_its_queue_alone(void **state)
{
    (void)state;
    char other[32];
    hf_cluster_queue(&nodes, 0, 1, other);
    const hf_worker_queue both[] = {queues[0], {HF_WORKER_QUEUE_INIT, .name = other}};
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .queues = both, .n_queues = 2,
                                 .lease_ms = LEASE_MS};
    hf_worker_fixture_start(&worker, nodes.url, &opts, 0);
    EVENTUALLY(LONG_MS, blocks(&nodes.nodes[0], 2));
    put(names[0], "held", "gate");
    EVENTUALLY(LONG_MS, atomic_load(&worker.started) == 1);
    hf_cluster_move_begin(&nodes, slot_of(names[0]), &nodes.nodes[1]);
    atomic_store(&worker.gate, true); /* its verdict is refused from now on */
    EVENTUALLY(LONG_MS, hf_worker_fixture_said(&worker, "no node serves a queue") == 1);
    uint64_t from = hf_test_fair_ms();
    put_many(other, "o", OTHERS);
    EVENTUALLY(LONG_MS, done(other) == OTHERS);
    assert_in_range(hf_test_fair_ms() - from, 0, OTHERS_MS);
    assert_int_equal(hf_worker_fixture_said(&worker, "no node serves a queue"), 1);
    assert_int_equal(hf_worker_fixture_said(&worker, "Redis refuses"), 0);
    move_end(names[0], &nodes.nodes[1]);
    EVENTUALLY(LONG_MS, left(names[0]) == 0);
    assert_int_equal(hf_worker_fixture_said(&worker, "outcome=lost"), 0);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    move(names[0], &nodes.nodes[0]);
}

static void a_redis_that_is_no_node_is_refused_at_the_start(void **state)
{
    (void)state;
    const hf_fixture_options options = {.tcp = true};
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .lease_ms = LEASE_MS};
    hf_fixture plain;
    char url[64];
    hf_fixture_start(&plain, &options);
    (void)snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%u", (unsigned)plain.port);
    hf_worker_fixture_start(&worker, url, &opts, 0);
    EVENTUALLY(LONG_MS, atomic_load(&worker.ended));
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_CONFIG);
    hf_fixture_stop(&plain);
}

static void no_job_is_lost_or_run_twice_while_a_slot_moves(void **state)
{
    (void)state;
    const int rounds = 6, jobs = 10;
    const char *queue = names[0];
    start_worker();
    for (int i = 0; i < rounds; i++) {
        char prefix[8];
        (void)snprintf(prefix, sizeof prefix, "m%d", i);
        put_many(queue, prefix, jobs);
        move(queue, &nodes.nodes[i % 2 == 0 ? 1 : 0]);
    }
    EVENTUALLY(LONG_MS, done(queue) == (size_t)(rounds * jobs) && left(queue) == 0);
    assert_int_equal(atomic_load(&worker.started), rounds * jobs);
    assert_int_equal(hf_worker_fixture_said(&worker, "outcome=lost"), 0);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

static void replicas_confirm_on_each_node(void **state)
{
    (void)state;
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .queues = queues,
                                 .n_queues = PRIMARIES, .lease_ms = LEASE_MS,
                                 .wait_replicas = 1};
    hf_worker_fixture_start(&worker, nodes.url, &opts, 0);
    for (size_t i = 0; i < PRIMARIES; i++)
        put_many(names[i], "w", 2);
    for (size_t i = 0; i < PRIMARIES; i++)
        EVENTUALLY(LONG_MS, done(names[i]) == 2 && left(names[i]) == 0);
    put(names[0], "held", "gate");
    EVENTUALLY(LONG_MS, atomic_load(&worker.started) == 2 * PRIMARIES + 1);
    move(names[0], &nodes.nodes[1]);
    ALWAYS(LEASE_MS * 3 / 2, hf_worker_fixture_said(&worker, "outcome=lost") == 0);
    atomic_store(&worker.gate, true);
    EVENTUALLY(LONG_MS, done(names[0]) == 3 && left(names[0]) == 0);
    assert_int_equal(hf_worker_fixture_said(&worker, "not confirmed"), 0);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    move(names[0], &nodes.nodes[0]);
}

/* Of the first queue. */
static hf_fixture *replica(void)
{
    hf_fixture *first = &nodes.nodes[0], *second = &nodes.nodes[PRIMARIES];
    return owner_of(names[0]) == first ? second : first;
}

static void a_planned_failover_loses_nothing(void **state)
{
    (void)state;
    start_worker();
    put(names[0], "held", "gate");
    EVENTUALLY(LONG_MS, atomic_load(&worker.started) == 1);
    hf_cluster_promote(replica());
    put_many(names[0], "d", 3);
    EVENTUALLY(LONG_MS, done(names[0]) == 3);
    atomic_store(&worker.gate, true);
    EVENTUALLY(LONG_MS, done(names[0]) == 4);
    EVENTUALLY(LONG_MS, left(names[0]) == 0);
    assert_int_equal(atomic_load(&worker.started), 4);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

/* Its replica takes over; what it had not sent on is lost, so a job may run again. */
static void a_killed_primary_stops_its_queues_alone(void **state)
{
    (void)state;
    hf_fixture *next = replica(), *last = owner_of(names[0]);
    start_worker();
    put_many(names[0], "e", 1);
    EVENTUALLY(LONG_MS, done(names[0]) == 1 && left(names[0]) == 0);
    hf_fixture_kill(last, SIGKILL);
    put_many(names[1], "e", 2);
    EVENTUALLY(LONG_MS, done(names[1]) == 2);
    hf_cluster_take_over(next);
    put_many(names[0], "f", 3);
    EVENTUALLY(LONG_MS, done(names[0]) >= 4 && left(names[0]) == 0);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    hf_fixture_restart(last);
    EVENTUALLY(LONG_MS, !hf_cluster_is_primary(last));
}

/* No replica is left of the first node; the verdict of a job cannot be told. */
static void a_worker_stops_in_time_while_a_node_is_away(void **state)
{
    (void)state;
    const uint32_t shutdown_ms = 1000;
    start_worker_of(shutdown_ms);
    put(names[0], "held", "heed");
    put_many(names[1], "g", 1);
    EVENTUALLY(LONG_MS, atomic_load(&worker.started) == 2 && done(names[1]) == 1);
    hf_fixture_kill(&nodes.nodes[PRIMARIES], SIGKILL);
    hf_fixture_kill(&nodes.nodes[0], SIGKILL);
    put_many(names[1], "h", 2);
    put_many(names[2], "h", 2);
    EVENTUALLY(LONG_MS, done(names[1]) == 3 && done(names[2]) == 2);
    uint64_t from = hf_test_fair_ms();
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_in_range(hf_test_fair_ms() - from, 0, shutdown_ms + GIVE_UP_MS + SLACK_MS);
}

/* It is as after the test before. */
static void a_worker_starts_while_a_node_is_away(void **state)
{
    (void)state;
    char url[HF_CLUSTER_URL_SIZE];
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .queues = queues,
                                 .n_queues = PRIMARIES, .lease_ms = LEASE_MS,
                                 .shutdown_timeout_ms = 1000};
    hf_cluster_url(&nodes, url);
    hf_worker_fixture_start(&worker, url, &opts, 0);
    put_many(names[1], "i", 1);
    EVENTUALLY(LONG_MS, done(names[1]) == 1 && hf_worker_pulse(worker.worker) > 0);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(queues_of_three_nodes_are_consumed, end_worker),
        cmocka_unit_test_teardown(an_idle_worker_waits_on_each_node, end_worker),
        cmocka_unit_test_teardown(a_burst_ends_when_all_nodes_are_empty, end_worker),
        cmocka_unit_test_teardown(schedules_tick_on_each_node_and_move_with_their_queues,
                                  end_worker),
        cmocka_unit_test_teardown(a_reload_changes_the_nodes, end_worker),
        cmocka_unit_test_teardown(a_queue_that_moves_while_a_job_runs_is_followed,
                                  end_worker),
        cmocka_unit_test_teardown(a_slot_that_moves_stops_its_queue_alone, end_worker),
        cmocka_unit_test_teardown(a_redis_that_is_no_node_is_refused_at_the_start,
                                  end_worker),
        cmocka_unit_test_teardown(no_job_is_lost_or_run_twice_while_a_slot_moves,
                                  end_worker),
        cmocka_unit_test_teardown(replicas_confirm_on_each_node, end_worker),
        cmocka_unit_test_teardown(a_planned_failover_loses_nothing, end_worker),
        cmocka_unit_test_teardown(a_killed_primary_stops_its_queues_alone, end_worker),
        cmocka_unit_test_teardown(a_worker_stops_in_time_while_a_node_is_away,
                                  end_worker),
        cmocka_unit_test_teardown(a_worker_starts_while_a_node_is_away, end_worker),
    };
    assert_int_equal(uv_loop_init(&loop), 0);
    hf_cluster_start(&nodes, PRIMARIES, true);
    for (size_t i = 0; i < PRIMARIES; i++) {
        hf_cluster_queue(&nodes, i, 0, names[i]);
        queues[i] = (hf_worker_queue){HF_WORKER_QUEUE_INIT, .name = names[i]};
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hf_cluster_stop(&nodes);
    assert_int_equal(uv_loop_close(&loop), 0);
    return failed;
}
