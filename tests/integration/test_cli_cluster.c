/* test_cli_cluster.c - the command in a cluster of which a part is away: one line that
 * names the queue, and the doctor looks at the rest. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "tests/support/cli_try.h"
#include "tests/support/cluster.h"
#include "tests/support/eventually.h"

enum { PRIMARIES = 3, NAME = 32, LINE = 320 };

static hf_cluster_fixture nodes;
static char queues[PRIMARIES][NAME]; /* one for each primary */

/* With --redis and the cluster's URL. */
static void run(const char *command, const char *queue, int code)
{
    char line[LINE], url[HF_CLUSTER_URL_SIZE];
    hf_cluster_url(&nodes, url);
    (void)snprintf(line, sizeof line, "%s %s --redis %s", command, queue, url);
    hf_try_run(line, code);
}

static int up(void **state)
{
    (void)state;
    hf_try_up(HF_TEST_COMMAND, "handlers: [{type: t, exec: [sh]}]\n");
    hf_cluster_start(&nodes, PRIMARIES, false);
    for (unsigned i = 0; i < PRIMARIES; i++) {
        hf_cluster_queue(&nodes, i, 0, queues[i]);
        run("enqueue t --in 1h -q", queues[i], 0);
    }
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_cluster_stop(&nodes);
    hf_try_down();
    return 0;
}

static void expect(const char *before, const char *name, const char *after)
{
    char text[LINE];
    (void)snprintf(text, sizeof text, "%s%s%s", before, name, after);
    hf_try_has(hf_try_fixture.out, text);
}

static void expect_all_looked_at(void)
{
    hf_try_has(hf_try_fixture.out, "3 queues looked at, ");
    for (size_t i = 1; i < PRIMARIES; i++)
        expect("note: no live worker serves ", queues[i], ",");
}

static void the_bench_refuses_a_cluster_as_a_configuration(void **state)
{
    (void)state;
    run("bench", "", 78);
    hf_try_has(hf_try_fixture.err, "measures one Redis");
}

static void the_url_of_one_node_is_refused(void **state)
{
    char line[LINE];
    (void)state;
    const char *const commands[] = {"queue list", "enqueue t", "lock -w 9 a",
                                    "worker --burst -c w.yaml"};
    for (size_t i = 0; i < HF_COUNT(commands); i++) {
        (void)snprintf(line, sizeof line, "%s --redis redis://127.0.0.1:%u%s",
                       commands[i], (unsigned)nodes.nodes[0].port,
                       i == 2 ? " -- true" : "");
        hf_try_run(line, 78);
        hf_try_has(hf_try_fixture.err, "expected redis+cluster:// or rediss+cluster://");
    }
}

static void a_queue_that_moves_is_named_and_the_others_are_looked_at(void **state)
{
    char text[LINE];
    const unsigned slot = hf_slot(queues[0], strlen(queues[0]));
    (void)state;
    run("doctor", "", 0);
    hf_cluster_move_begin(&nodes, slot, &nodes.nodes[1]);
    run("queue show", queues[0], 75);
    (void)snprintf(text, sizeof text,
                   "no node of the cluster serves it at the moment: queue %s: ASK ",
                   queues[0]);
    hf_try_has(hf_try_fixture.err, text);
    run("doctor", "", 1);
    (void)snprintf(text, sizeof text,
                   "\n%s: no node of the cluster serves it at the moment\n", queues[0]);
    hf_try_has(hf_try_fixture.out, text);
    expect_all_looked_at();
    hf_cluster_move_end(&nodes, slot, &nodes.nodes[1]);
    run("doctor", "", 0);
    hf_cluster_move_begin(&nodes, slot, &nodes.nodes[0]);
    hf_cluster_move_end(&nodes, slot, &nodes.nodes[0]);
}

/* The last test: the node stays away. */
static void a_node_that_is_away_is_told_and_the_others_are_looked_at(void **state)
{
    char place[NAME];
    (void)state;
    (void)snprintf(place, sizeof place, "127.0.0.1:%u", (unsigned)nodes.nodes[0].port);
    hf_fixture_kill(&nodes.nodes[0], SIGKILL);
    run("doctor", "", 1);
    expect("", place, ": node: ");
    expect("\n", queues[0], ": ");
    expect_all_looked_at();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bench_refuses_a_cluster_as_a_configuration),
        cmocka_unit_test(the_url_of_one_node_is_refused),
        cmocka_unit_test(a_queue_that_moves_is_named_and_the_others_are_looked_at),
        cmocka_unit_test(a_node_that_is_away_is_told_and_the_others_are_looked_at),
    };
    return cmocka_run_group_tests(tests, up, down);
}
