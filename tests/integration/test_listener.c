/* test_listener.c - a listener in a cluster that has room for one slot: it leaves a slot
 * that no list needs any more for another one, and loses no message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "redis/listener.h"
#include "tests/support/cluster.h"
#include "tests/support/eventually.h"

enum { LONG_MS = 20000, WAIT_MS = 10000, PLACES = 2, NAME = 32 };

static hf_cluster_fixture cluster;
static uv_loop_t loop;
static hf_nodes nodes;
static hf_listener listener;
static char prefixes[PLACES][2 * NAME]; /* in slots of two nodes */
static int chosen;
static char heard[2 * NAME];
static bool closed;

/* ---- what the nodes and the listener ask ---- */

static hf_err on_open(hf_node *node)
{
    (void)node;
    return HF_OK;
}

static void on_event(hf_node *node, hf_err err, const char *detail)
{
    (void)node, (void)err, (void)detail;
}

static void on_change(void *owner)
{
    (void)owner;
}

static bool needs(void *owner, const hf_node *node)
{
    (void)owner, (void)node;
    return true;
}

static const hf_nodes_hooks hooks = {
    .on_open = on_open, .on_event = on_event, .on_change = on_change, .needs = needs};

static hf_listener_tag tag(int place)
{
    const char *prefix = prefixes[place];
    const unsigned slot = hf_nodes_slot(&nodes, prefix, strlen(prefix));
    return (hf_listener_tag){.prefix = prefix,
                             .prefix_len = strlen(prefix),
                             .slot = slot,
                             .redis = hf_nodes_find(&nodes, slot)->redis};
}

static void choose(hf_listener *of)
{
    const hf_listener_tag one = tag(chosen);
    (void)hf_listener_add(of, &one);
}

static bool is_deaf(hf_listener *of)
{
    const hf_listener_tag one = tag(chosen);
    return !hf_listener_hears(of, &one);
}

static void on_message(hf_listener *of, const char *key, const char *text)
{
    (void)of, (void)key;
    (void)snprintf(heard, sizeof heard, "%s", text);
}

static void on_doubt(hf_listener *of)
{
    (void)of;
}

static void set_flag(void *flag)
{
    *(bool *)flag = true;
}

/* ---- turns ---- */

static bool is_closed(void)
{
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    return closed;
}

static bool has_heard(void)
{
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    hf_listener_listen(&listener);
    return heard[0] != '\0';
}

static hf_fixture *node_of(int place)
{
    hf_fixture *owner = hf_cluster_owner(&cluster, prefixes[place]);
    assert_non_null(owner);
    return owner;
}

static bool is_blocked_at(int place)
{
    (void)has_heard();
    return strstr(hf_fixture_command(node_of(place), "INFO clients"),
                  "blocked_clients:1") != NULL;
}

/* ---- tests ---- */

static int up(void **state)
{
    char detail[HF_DETAIL_SIZE], name[NAME];
    (void)state;
    hf_cluster_start(&cluster, PLACES, false);
    const hf_server_opts server = {HF_SERVER_OPTS_INIT, .url = cluster.url};
    const hf_nodes_opts opts = {
        .node_size = sizeof(hf_node), .ns = "hf", .hooks = &hooks};
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(hf_nodes_open(&nodes, &server, &opts, detail), HF_OK);
    assert_int_equal(hf_nodes_start(&nodes, &loop, detail), HF_OK);
    for (unsigned i = 0; i < PLACES; i++) {
        hf_cluster_queue(&cluster, i, 0, name);
        (void)snprintf(prefixes[i], sizeof prefixes[i], "hf:{%s}:", name);
    }
    listener = (hf_listener){.nodes = &nodes,
                             .loop = &loop,
                             .suffix = "in",
                             .wait_ms = WAIT_MS,
                             .waits_max = 1,
                             .choose = choose,
                             .is_deaf = is_deaf,
                             .on_message = on_message,
                             .on_doubt = on_doubt,
                             .on_turn = hf_listener_listen};
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_listener_close(&listener, set_flag, &closed);
    EVENTUALLY(LONG_MS, is_closed());
    closed = false;
    hf_nodes_close(&nodes, set_flag, &closed);
    EVENTUALLY(LONG_MS, is_closed());
    hf_nodes_free(&nodes);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    hf_cluster_stop(&cluster);
    return uv_loop_close(&loop) == 0 ? 0 : -1;
}

static void a_message_on_its_way_is_heard_though_another_slot_needs_the_room(void **state)
{
    (void)state;
    EVENTUALLY(LONG_MS, is_blocked_at(0));
    (void)hf_fixture_command(node_of(0), "RPUSH %sin word", prefixes[0]);
    chosen = 1;
    hf_listener_listen(&listener);
    EVENTUALLY(LONG_MS, has_heard());
    assert_string_equal(heard, "word");
    EVENTUALLY(LONG_MS, is_blocked_at(1)); /* it has the room now */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_message_on_its_way_is_heard_though_another_slot_needs_the_room),
    };
    return cmocka_run_group_tests(tests, up, down);
}
