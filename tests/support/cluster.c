/* cluster.c - see cluster.h. */
#include "tests/support/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tests/support/eventually.h"

enum { LONG_MS = 60000, ID_SIZE = 64, QUEUES_MAX = 100000, KEYS_AT_ONCE = 100 };
enum { PROMOTE_MS = 6000, PROMOTE_TRIES = 10 };

/* How long a node may be silent. The shorter it is the sooner the nodes of a new cluster
 * know each other; later one that is only slow must not count as failed. */
#define BRIEF_MS "1000"
#define PATIENT_MS "60000"

static void id_of(hf_fixture *node, char id[ID_SIZE])
{
    (void)snprintf(id, ID_SIZE, "%s", hf_fixture_command(node, "CLUSTER MYID"));
}

static void expect_ok(hf_fixture *node, const char *command)
{
    const char *answer = hf_fixture_command(node, command);
    if (strcmp(answer, "OK") != 0)
        fail_msg("%s: %s", command, answer);
}

static unsigned first_slot(const hf_cluster_fixture *c, size_t primary)
{
    return (unsigned)(primary * HF_SLOTS / c->primaries);
}

/* CLUSTER ADDSLOTSRANGE came with Redis 7.0. */
static void add_slots(hf_fixture *node, unsigned first, unsigned end)
{
    static char digits[HF_SLOTS][12];
    static const char *words[HF_SLOTS + 2] = {"CLUSTER", "ADDSLOTS"};
    int n = 2;
    for (unsigned slot = first; slot < end; slot++, n++) {
        (void)snprintf(digits[slot], sizeof digits[slot], "%u", slot);
        words[n] = digits[slot];
    }
    redisContext *connection = hf_fixture_connect(node);
    assert_non_null(connection);
    redisReply *reply = redisCommandArgv(connection, n, words, NULL);
    assert_non_null(reply);
    assert_string_equal(reply->str, "OK");
    freeReplyObject(reply);
    redisFree(connection);
}

static bool is_up(hf_fixture *node, size_t n)
{
    char known[32];
    (void)snprintf(known, sizeof known, "cluster_known_nodes:%zu\r", n);
    const char *info = hf_fixture_command(node, "CLUSTER INFO");
    return strstr(info, "cluster_state:ok") != NULL && strstr(info, known) != NULL &&
           strstr(info, "cluster_slots_ok:16384") != NULL;
}

static bool knows(hf_fixture *node, const char *id)
{
    return strstr(hf_fixture_command(node, "CLUSTER NODES"), id) != NULL;
}

bool hf_cluster_is_primary(hf_fixture *node)
{
    return strncmp(hf_fixture_command(node, "ROLE"), "master", 6) == 0;
}

/* Every node counts its replicas as connected. */
static bool is_linked(hf_fixture *replica)
{
    const char *info = hf_fixture_command(replica, "INFO replication");
    return strstr(info, "master_link_status:up") != NULL;
}

static void add_replicas(hf_cluster_fixture *c)
{
    for (size_t i = c->primaries; i < c->n; i++) {
        char id[ID_SIZE], command[ID_SIZE + 32];
        id_of(&c->nodes[i - c->primaries], id);
        EVENTUALLY(LONG_MS, knows(&c->nodes[i], id));
        (void)snprintf(command, sizeof command, "CLUSTER REPLICATE %s", id);
        EVENTUALLY(LONG_MS, strcmp(hf_fixture_command(&c->nodes[i], command), "OK") == 0);
    }
    for (size_t i = c->primaries; i < c->n; i++)
        EVENTUALLY(LONG_MS, is_linked(&c->nodes[i]));
}

static unsigned port_of(const hf_cluster_fixture *c, size_t i)
{
    return c->tls ? c->nodes[i].tls_port : c->nodes[i].port;
}

/* All nodes have the certificate of the first one. */
static void share_certs(hf_cluster_fixture *c, const char **args)
{
    static const char *const words[] = {"--tls-cert-file",    "server.pem",
                                        "--tls-key-file",     "server.key",
                                        "--tls-ca-cert-file", "ca.pem"};
    for (size_t i = 0; i < HF_COUNT(words); i += 2) {
        (void)snprintf(c->certs[i], sizeof c->certs[i], "%s", words[i]);
        (void)snprintf(c->certs[i + 1], sizeof c->certs[i + 1], "%s/%s", c->nodes[0].dir,
                       words[i + 1]);
        args[i] = c->certs[i];
        args[i + 1] = c->certs[i + 1];
    }
}

static void start_nodes(hf_cluster_fixture *c)
{
    enum { TLS_AT = 8, CERTS_AT = 10 };
    hf_fixture_options options = {
        .cluster = true,
        .tls = c->tls,
        .args = {"--cluster-require-full-coverage", "no", "--cluster-node-timeout",
                 PATIENT_MS, "--cluster-replica-no-failover", "yes",
                 "--repl-diskless-sync-delay", "0", "--tls-cluster", "yes"}};
    if (!c->tls)
        options.args[TLS_AT] = NULL;
    for (size_t i = 0; i < c->n; i++) {
        char command[64];
        if (c->tls && i == 1)
            share_certs(c, options.args + CERTS_AT);
        hf_fixture_start(&c->nodes[i], &options);
        (void)snprintf(command, sizeof command, "CLUSTER SET-CONFIG-EPOCH %zu", i + 1);
        expect_ok(&c->nodes[i], command);
    }
}

static bool are_up(hf_cluster_fixture *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (!is_up(&c->nodes[i], c->n))
            return false;
    return true;
}

static void set_all(hf_cluster_fixture *c, const char *command)
{
    for (size_t i = 0; i < c->n; i++)
        expect_ok(&c->nodes[i], command);
}

/* One that counts as failed would do so for long, so then they begin anew. */
static void wait_until_up(hf_cluster_fixture *c)
{
    do {
        set_all(c, "CONFIG SET cluster-node-timeout " BRIEF_MS);
        EVENTUALLY(LONG_MS, are_up(c));
        set_all(c, "CONFIG SET cluster-node-timeout " PATIENT_MS);
    } while (!are_up(c));
}

static void start(hf_cluster_fixture *c)
{
    assert_true(c->n <= HF_CLUSTER_MAX);
    start_nodes(c);
    set_all(c, "CONFIG SET cluster-node-timeout " BRIEF_MS);
    for (size_t i = 0; i < c->primaries; i++)
        add_slots(&c->nodes[i], first_slot(c, i), first_slot(c, i + 1));
    for (size_t i = 1; i < c->n; i++) {
        char command[64];
        (void)snprintf(command, sizeof command, "CLUSTER MEET 127.0.0.1 %u",
                       port_of(c, 0));
        expect_ok(&c->nodes[i], command);
    }
    if (c->n > c->primaries)
        add_replicas(c);
    wait_until_up(c);
    (void)snprintf(c->url, sizeof c->url, "%s://127.0.0.1:%u",
                   c->tls ? "rediss+cluster" : "redis+cluster", port_of(c, 0));
}

void hf_cluster_start(hf_cluster_fixture *c, size_t primaries, bool replicas)
{
    *c = (hf_cluster_fixture){.primaries = primaries,
                              .n = replicas ? 2 * primaries : primaries};
    start(c);
}

void hf_cluster_start_tls(hf_cluster_fixture *c, size_t primaries)
{
    *c = (hf_cluster_fixture){.primaries = primaries, .n = primaries, .tls = true};
    start(c);
}

void hf_cluster_stop(hf_cluster_fixture *c)
{
    for (size_t i = 0; i < c->n; i++)
        hf_fixture_stop(&c->nodes[i]);
}

void hf_cluster_url(const hf_cluster_fixture *c, char out[HF_CLUSTER_URL_SIZE])
{
    size_t len = (size_t)snprintf(out, HF_CLUSTER_URL_SIZE, "redis+cluster://");
    for (size_t i = 0; i < c->n; i++)
        len += (size_t)snprintf(out + len, HF_CLUSTER_URL_SIZE - len, "%s127.0.0.1:%u",
                                i == 0 ? "" : ",", (unsigned)c->nodes[i].port);
}

hf_fixture *hf_cluster_owner(hf_cluster_fixture *c, const char *key)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->nodes[i].pid > 0 && hf_cluster_is_primary(&c->nodes[i]) &&
            hf_fixture_number(&c->nodes[i], "EXISTS %s", key) >= 0)
            return &c->nodes[i];
    return NULL;
}

void hf_cluster_queue(const hf_cluster_fixture *c, size_t primary, unsigned number,
                      char out[32])
{
    for (unsigned i = 0; i < QUEUES_MAX; i++) {
        int len = snprintf(out, 32, "q%u", i);
        unsigned slot = hf_slot(out, (size_t)len);
        if (slot >= first_slot(c, primary) && slot < first_slot(c, primary + 1) &&
            number-- == 0)
            return;
    }
    fail_msg("no name found");
}

static hf_fixture *giver_of(hf_cluster_fixture *c, unsigned slot)
{
    for (size_t i = 0; i < c->n; i++) {
        if (c->nodes[i].pid <= 0 || !hf_cluster_is_primary(&c->nodes[i]))
            continue;
        /* Without a node of that id nothing happens. */
        const char *answer = hf_fixture_command(
            &c->nodes[i], "CLUSTER SETSLOT %u MIGRATING 0000000000", slot);
        if (strstr(answer, "I'm not the owner") == NULL)
            return &c->nodes[i];
    }
    fail_msg("no node serves slot %u", slot);
    return NULL;
}

/* All keys of the slot that are there now. */
static void migrate(hf_fixture *from, const hf_fixture *to, unsigned slot)
{
    char keys[KEYS_AT_ONCE][512];
    for (;;) {
        size_t n = 0;
        char *answer = strdup(hf_fixture_command(from, "CLUSTER GETKEYSINSLOT %u %d",
                                                 slot, (int)KEYS_AT_ONCE));
        char *rest = NULL;
        for (char *at = strtok_r(answer, "\n", &rest); at != NULL && n < KEYS_AT_ONCE;
             at = strtok_r(NULL, "\n", &rest))
            (void)snprintf(keys[n++], sizeof keys[0], "%s", at);
        free(answer);
        if (n == 0)
            return;
        for (size_t i = 0; i < n; i++) {
            const char *moved = hf_fixture_command(
                from, "MIGRATE 127.0.0.1 %u %s 0 30000", (unsigned)to->port, keys[i]);
            if (strcmp(moved, "OK") != 0 && strcmp(moved, "NOKEY") != 0)
                fail_msg("MIGRATE %s: %s", keys[i], moved);
        }
    }
}

void hf_cluster_move_begin(hf_cluster_fixture *c, unsigned slot, hf_fixture *to)
{
    char source[ID_SIZE], target[ID_SIZE];
    hf_fixture *from = giver_of(c, slot);
    id_of(from, source);
    id_of(to, target);
    assert_string_equal(
        hf_fixture_command(to, "CLUSTER SETSLOT %u IMPORTING %s", slot, source), "OK");
    assert_string_equal(
        hf_fixture_command(from, "CLUSTER SETSLOT %u MIGRATING %s", slot, target), "OK");
    migrate(from, to, slot);
}

void hf_cluster_move_end(hf_cluster_fixture *c, unsigned slot, hf_fixture *to)
{
    char target[ID_SIZE];
    hf_fixture *from = giver_of(c, slot);
    id_of(to, target);
    migrate(from, to, slot);
    assert_string_equal(
        hf_fixture_command(to, "CLUSTER SETSLOT %u NODE %s", slot, target), "OK");
    for (size_t i = 0; i < c->n; i++)
        if (c->nodes[i].pid > 0 && hf_cluster_is_primary(&c->nodes[i]))
            assert_string_equal(hf_fixture_command(&c->nodes[i],
                                                   "CLUSTER SETSLOT %u NODE %s", slot,
                                                   target),
                                "OK");
}

/* A primary that is busy may not come to it within the time that Redis allows, and an
 * election that failed bars others for minutes. */
void hf_cluster_promote(hf_fixture *replica)
{
    for (int i = 0; i < PROMOTE_TRIES && !hf_cluster_is_primary(replica); i++) {
        const uint64_t until_ms = hf_test_now_ms() + PROMOTE_MS;
        (void)hf_fixture_command(replica, "CLUSTER FAILOVER");
        while (!hf_cluster_is_primary(replica) && hf_test_now_ms() < until_ms)
            hf_test_pause_ms(2);
    }
    if (!hf_cluster_is_primary(replica))
        hf_cluster_take_over(replica);
}

/* It asks no other node, so it is the primary at once. */
void hf_cluster_take_over(hf_fixture *replica)
{
    expect_ok(replica, "CLUSTER FAILOVER TAKEOVER");
    EVENTUALLY(LONG_MS, hf_cluster_is_primary(replica));
}
