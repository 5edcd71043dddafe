/* test_nodes.c - a node of a cluster is used by two threads, whose loops are turned here
 * one after the other: it is freed when both have left it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "redis/nodes.h"
#include "tests/support/cluster.h"
#include "tests/support/eventually.h"

enum { LONG_MS = 20000, WHILE_MS = 200 };

static hf_cluster_fixture cluster;
static uv_loop_t loop, second;
static hf_nodes nodes;
static hf_node *node;
static bool needed, ready, second_ready, called, woken, closed, second_closed;

/* ---- what the nodes tell ---- */

static hf_err on_open(hf_node *opened)
{
    (void)opened;
    return HF_OK;
}

static void on_event(hf_node *of, hf_err err, const char *detail)
{
    (void)of, (void)detail;
    ready = err == HF_OK;
}

static void on_second(hf_node *of, hf_err err, const char *detail)
{
    (void)of, (void)detail;
    second_ready = err == HF_OK;
}

static void on_change(void *owner)
{
    (void)owner;
}

static bool needs(void *owner, const hf_node *of)
{
    (void)owner, (void)of;
    return needed;
}

static void call_second(void *owner, uint64_t when_ns)
{
    (void)owner, (void)when_ns;
    called = true;
}

static void wake(void *owner)
{
    (void)owner;
    woken = true;
}

static const hf_nodes_hooks hooks = {.on_open = on_open,
                                     .on_event = on_event,
                                     .on_change = on_change,
                                     .needs = needs,
                                     .call_second = call_second,
                                     .wake = wake,
                                     .on_second = on_second};

static void set_flag(void *flag)
{
    *(bool *)flag = true;
}

/* ---- turns ---- */

static void turn(void)
{
    (void)uv_run(&loop, UV_RUN_NOWAIT);
}

static void turn_second(void)
{
    if (called)
        hf_nodes_second_turn(&nodes, &second);
    called = false;
    (void)uv_run(&second, UV_RUN_NOWAIT);
}

static bool is_found(void)
{
    turn();
    node = hf_nodes_find(&nodes, 0);
    return node != nodes.away && ready;
}

static bool both_turn(bool *flag)
{
    turn();
    turn_second();
    return *flag;
}

static bool is_left_behind(void (*turns)(void))
{
    turns();
    hf_nodes_tidy(&nodes);
    return nodes.leaving == node;
}

static bool is_freed(void (*turns)(void))
{
    return !is_left_behind(turns);
}

/* ---- tests ---- */

static int start_cluster(void **state)
{
    (void)state;
    hf_cluster_start(&cluster, 2, false);
    return 0;
}

static int stop_cluster(void **state)
{
    (void)state;
    hf_cluster_stop(&cluster);
    return 0;
}

static int up(void **state)
{
    char detail[HF_DETAIL_SIZE];
    const hf_server_opts server = {HF_SERVER_OPTS_INIT, .url = cluster.url};
    const hf_nodes_opts opts = {
        .node_size = sizeof(hf_node), .ns = "hf", .hooks = &hooks};
    (void)state;
    needed = true;
    ready = second_ready = called = woken = closed = second_closed = false;
    nodes = (hf_nodes){.loop = NULL};
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(uv_loop_init(&second), 0);
    assert_int_equal(hf_nodes_open(&nodes, &server, &opts, detail), HF_OK);
    assert_int_equal(hf_nodes_start(&nodes, &loop, detail), HF_OK);
    EVENTUALLY(LONG_MS, is_found());
    EVENTUALLY(LONG_MS, both_turn(&second_ready));
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_nodes_second_close(&nodes, set_flag, &second_closed);
    EVENTUALLY(LONG_MS, both_turn(&second_closed));
    hf_nodes_close(&nodes, set_flag, &closed);
    EVENTUALLY(LONG_MS, both_turn(&closed));
    hf_nodes_free(&nodes);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    return uv_loop_close(&loop) == 0 && uv_loop_close(&second) == 0 ? 0 : -1;
}

static void a_node_stays_until_the_second_thread_has_left_it(void **state)
{
    (void)state;
    needed = false;
    ALWAYS(WHILE_MS, is_left_behind(turn));
    EVENTUALLY(LONG_MS, is_freed(turn_second));
    assert_true(woken);
    assert_null(nodes.leaving);
}

static void a_node_stays_until_the_loop_has_left_it(void **state)
{
    (void)state;
    needed = false;
    hf_nodes_tidy(&nodes);
    ALWAYS(WHILE_MS, is_left_behind(turn_second));
    assert_true(woken);
    EVENTUALLY(LONG_MS, is_freed(turn));
    assert_null(nodes.leaving);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_node_stays_until_the_second_thread_has_left_it,
                                        up, down),
        cmocka_unit_test_setup_teardown(a_node_stays_until_the_loop_has_left_it, up,
                                        down),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
