/* test_cluster.c - which server has a slot: learned from nodes, set right by MOVED, and
 * asked again for as long as it takes. */
#include <signal.h>
#include <string.h>

#include <uv.h>

#include "base/base.h"
#include "redis/cluster.h"
#include "redis/request.h"
#include "tests/support/cluster.h"
#include "tests/support/eventually.h"

enum { LONG_MS = 30000, TICK_MS = 2, ASKED_MS = 2500 };

static hf_cluster_fixture nodes;
static uv_loop_t loop;
static uv_timer_t tick;
static hf_cluster *cluster;
static unsigned changes;
static bool closed;
static char why[HF_DETAIL_SIZE];

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

static void on_change(void *arg)
{
    (void)arg;
    changes++;
}

static void on_closed(void *arg)
{
    (void)arg;
    closed = true;
}

#define RUN_UNTIL(ms, cond) EVENTUALLY(ms, (uv_run(&loop, UV_RUN_ONCE), (cond)))

static void open_cluster(const char *url)
{
    hf_server_opts opts = {HF_SERVER_OPTS_INIT, .url = url};
    changes = 0;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(uv_timer_init(&loop, &tick), 0);
    assert_int_equal(uv_timer_start(&tick, on_tick, TICK_MS, TICK_MS), 0);
    if (hf_cluster_open(&cluster, &opts, why) != HF_OK)
        fail_msg("%s", why);
    assert_int_equal(hf_cluster_watch(cluster, &loop, on_change, NULL), HF_OK);
}

static void open_nodes(void)
{
    open_cluster(nodes.url);
    RUN_UNTIL(LONG_MS, changes > 0);
    assert_int_equal(hf_cluster_status(cluster, why), HF_OK);
}

static void close_cluster(void)
{
    closed = false;
    hf_cluster_close(cluster, on_closed, NULL);
    RUN_UNTIL(LONG_MS, closed);
    uv_close((uv_handle_t *)&tick, NULL);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* The port of the slot's server; 0: there is none. */
static unsigned port_of(unsigned slot)
{
    hf_server *server = hf_cluster_server(cluster, slot);
    unsigned port = server == NULL ? 0 : server->url.port;
    hf_server_close(server);
    return port;
}

/* ---- one request to one server ---- */

typedef struct asked {
    bool ready, answered, closed;
    hf_err err;
    char words[HF_DETAIL_SIZE];
} asked;

static void on_event(hf_client *client, hf_err err, const char *detail, void *arg)
{
    asked *a = arg;
    (void)client;
    (void)detail;
    a->ready = err == HF_OK;
}

static void on_answer(const hf_answer *answer, void *arg)
{
    asked *a = arg;
    a->answered = true;
    a->err = answer->err;
    (void)snprintf(a->words, sizeof a->words, "%s", answer->detail);
}

static void on_client_closed(void *arg)
{
    ((asked *)arg)->closed = true;
}

static void ask(hf_server *server, const char *key, asked *a)
{
    hf_client *client;
    *a = (asked){.err = HF_OK};
    const hf_client_opts opts = {
        .loop = &loop, .redis = server, .on_event = on_event, .arg = a};
    assert_int_equal(hf_client_open(&client, &opts, why), HF_OK);
    RUN_UNTIL(LONG_MS, a->ready);
    const hf_bytes words[] = {{"GET", 3}, {key, strlen(key)}};
    const hf_call call = {.args = words, .n_args = 2, .cb = on_answer, .arg = a};
    assert_int_equal(hf_request_send(client, &call), HF_OK);
    RUN_UNTIL(LONG_MS, a->answered);
    hf_client_close(client, on_client_closed, a);
    RUN_UNTIL(LONG_MS, a->closed);
}

/* ---- tests ---- */

static void one_node_tells_the_servers_of_all_slots(void **state)
{
    (void)state;
    open_nodes();
    for (size_t i = 0; i < nodes.primaries; i++) {
        char queue[32];
        asked a;
        hf_cluster_queue(&nodes, i, 0, queue);
        unsigned slot = hf_slot(queue, strlen(queue));
        hf_server *server = hf_cluster_server(cluster, slot);
        assert_non_null(server);
        assert_int_equal(server->url.port, nodes.nodes[i].port);
        ask(server, queue, &a);
        assert_int_equal(a.err, HF_OK);
        hf_server *again = hf_cluster_server(cluster, slot);
        assert_ptr_equal(server, again);
        hf_server_close(server);
        hf_server_close(again);
    }
    hf_server *all[HF_CLUSTER_MAX];
    size_t n = hf_cluster_servers(cluster, all, HF_COUNT(all));
    assert_int_equal(n, nodes.primaries);
    while (n-- > 0)
        hf_server_close(all[n]);
    close_cluster();
}

static void a_plain_url_has_one_server_for_all_slots(void **state)
{
    (void)state;
    open_cluster(hf_fixture_url(&nodes.nodes[0]));
    hf_server *first = hf_cluster_server(cluster, 0);
    hf_server *last = hf_cluster_server(cluster, HF_SLOTS - 1);
    assert_non_null(first);
    assert_ptr_equal(first, last);
    hf_cluster_moved(cluster, first, "MOVED 0 127.0.0.1:1");
    hf_cluster_doubt(cluster);
    hf_server_close(first);
    hf_server_close(last);
    assert_int_equal(port_of(0), first->url.port);
    assert_int_equal(hf_cluster_changes(cluster), 0);
    assert_true(hf_cluster_is_plain(cluster));
    close_cluster();
}

static void moved_sets_one_slot_at_once_and_the_nodes_have_the_last_word(void **state)
{
    (void)state;
    open_nodes();
    hf_server *server = hf_cluster_server(cluster, 0);
    hf_cluster_moved(cluster, server, "MOVED 0 127.0.0.1:1");
    hf_server_close(server);
    assert_int_equal(port_of(0), 1);
    assert_int_equal(port_of(1), nodes.nodes[0].port);
    unsigned before = changes;
    RUN_UNTIL(LONG_MS, changes > before && port_of(0) == nodes.nodes[0].port);
    close_cluster();
}

static void a_moving_slot_is_unserved_and_then_moved(void **state)
{
    char queue[32];
    asked a;
    (void)state;
    open_nodes();
    hf_cluster_queue(&nodes, 0, 1, queue);
    unsigned slot = hf_slot(queue, strlen(queue));
    hf_server *old = hf_cluster_server(cluster, slot);
    hf_cluster_move_begin(&nodes, slot, &nodes.nodes[1]);
    ask(old, queue, &a);
    assert_int_equal(a.err, HF_UNSERVED);
    assert_memory_equal(a.words, "ASK ", 4);
    hf_cluster_move_end(&nodes, slot, &nodes.nodes[1]);
    ask(old, queue, &a);
    assert_int_equal(a.err, HF_MOVED);
    hf_cluster_moved(cluster, old, a.words);
    hf_server_close(old);
    hf_server *now = hf_cluster_server(cluster, slot);
    assert_int_equal(now->url.port, nodes.nodes[1].port);
    ask(now, queue, &a);
    assert_int_equal(a.err, HF_OK);
    hf_server_close(now);
    hf_cluster_move_begin(&nodes, slot, &nodes.nodes[0]);
    hf_cluster_move_end(&nodes, slot, &nodes.nodes[0]);
    close_cluster();
}

/* Redis 6.2 counts all CLUSTER commands together; the test sends no others meanwhile. */
static long long times_asked(void)
{
    long long n = 0, all = 0;
    for (size_t i = 0; i < nodes.n; i++) {
        n += hf_fixture_calls(&nodes.nodes[i], "cluster|slots");
        all += hf_fixture_calls(&nodes.nodes[i], "cluster");
    }
    return n > 0 ? n : all;
}

static void a_slot_without_a_server_is_asked_for_until_it_has_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < nodes.n; i++)
        (void)hf_fixture_command(&nodes.nodes[i], "CLUSTER DELSLOTS 16383");
    open_nodes();
    long long before = times_asked();
    assert_int_equal(port_of(16383), 0);
    assert_int_not_equal(port_of(0), 0);
    RUN_UNTIL(LONG_MS, times_asked() > before);
    assert_string_equal(
        hf_fixture_command(&nodes.nodes[nodes.primaries - 1], "CLUSTER ADDSLOTS 16383"),
        "OK");
    RUN_UNTIL(LONG_MS, port_of(16383) == nodes.nodes[nodes.primaries - 1].port);
    close_cluster();
}

static void doubts_are_answered_once_a_second(void **state)
{
    (void)state;
    open_nodes();
    long long before = times_asked();
    const uint64_t until_ms = hf_test_now_ms() + ASKED_MS;
    while (hf_test_now_ms() < until_ms) {
        hf_cluster_doubt(cluster);
        uv_run(&loop, UV_RUN_ONCE);
    }
    long long n = times_asked() - before;
    assert_in_range(n, 1, ASKED_MS / 1000);
    close_cluster();
}

static void a_server_that_is_no_node_is_a_fault_of_the_url(void **state)
{
    hf_fixture alone;
    char url[64];
    (void)state;
    hf_fixture_start(&alone, &(hf_fixture_options){.tcp = true});
    (void)snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%u", (unsigned)alone.port);
    open_cluster(url);
    RUN_UNTIL(LONG_MS, changes > 0);
    assert_int_equal(hf_cluster_status(cluster, why), HF_CONFIG);
    assert_non_null(strstr(why, "no node of a cluster"));
    assert_int_equal(port_of(0), 0);
    close_cluster();
    hf_fixture_stop(&alone);
}

static void any_node_of_the_url_may_be_away(void **state)
{
    char url[128];
    (void)state;
    (void)snprintf(url, sizeof url, "redis+cluster://127.0.0.1:1,127.0.0.1:%u",
                   (unsigned)nodes.nodes[1].port);
    open_cluster(url);
    RUN_UNTIL(LONG_MS, changes > 0 && port_of(0) == nodes.nodes[0].port);
    close_cluster();
}

/* The last test: the cluster is not mended. */
static void after_a_failover_the_slots_are_where_the_replica_is(void **state)
{
    hf_fixture *replica = &nodes.nodes[nodes.primaries];
    (void)state;
    open_nodes();
    assert_int_equal(port_of(0), nodes.nodes[0].port);
    hf_fixture_kill(&nodes.nodes[0], SIGKILL);
    hf_cluster_take_over(replica);
    /* A node may take another one for away while all of them learn of it. */
    RUN_UNTIL(LONG_MS,
              (hf_cluster_doubt(cluster),
               port_of(0) == replica->port &&
                   port_of(HF_SLOTS - 1) == nodes.nodes[nodes.primaries - 1].port));
    close_cluster();
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
        cmocka_unit_test(one_node_tells_the_servers_of_all_slots),
        cmocka_unit_test(a_plain_url_has_one_server_for_all_slots),
        cmocka_unit_test(moved_sets_one_slot_at_once_and_the_nodes_have_the_last_word),
        cmocka_unit_test(a_moving_slot_is_unserved_and_then_moved),
        cmocka_unit_test(a_slot_without_a_server_is_asked_for_until_it_has_one),
        cmocka_unit_test(doubts_are_answered_once_a_second),
        cmocka_unit_test(a_server_that_is_no_node_is_a_fault_of_the_url),
        cmocka_unit_test(any_node_of_the_url_may_be_away),
        cmocka_unit_test(after_a_failover_the_slots_are_where_the_replica_is),
    };
    return cmocka_run_group_tests(tests, up, down);
}
