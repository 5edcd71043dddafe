/* test_cluster_guard.c - while a cluster moves a slot, no script runs where only some of
 * the keys are: the node that takes the slot over refuses each script of a client that
 * follows ASK, and the node that gives it away sends each script on. */
#include <string.h>

#include "base/base.h"
#include "lock_scripts.h"
#include "queue_scripts.h"
#include "tests/support/eventually.h"
#include "tests/support/redis_fixture.h"

enum { LONG_MS = 30000 };

static const char *const prefixes[] = {"hf:{q}:", "hf:lock:{t}:"};
static hf_fixture from, to;
static redisContext *connection; /* to the node that takes over */
static redisReply *reply;

static bool is_up(hf_fixture *node)
{
    return strstr(hf_fixture_command(node, "CLUSTER INFO"), "cluster_state:ok") != NULL;
}

static bool knows(hf_fixture *node, const char *id)
{
    return strstr(hf_fixture_command(node, "CLUSTER NODES"), id) != NULL;
}

static void move_slots(void)
{
    char source[64], target[64];
    (void)snprintf(source, sizeof source, "%s",
                   hf_fixture_command(&from, "CLUSTER MYID"));
    (void)snprintf(target, sizeof target, "%s", hf_fixture_command(&to, "CLUSTER MYID"));
    for (size_t i = 0; i < HF_COUNT(prefixes); i++)
        (void)hf_fixture_command(
            &from, "CLUSTER ADDSLOTS %lld",
            hf_fixture_number(&from, "CLUSTER KEYSLOT %s", prefixes[i]));
    (void)hf_fixture_command(&to, "CLUSTER MEET 127.0.0.1 %u", (unsigned)from.port);
    EVENTUALLY(LONG_MS, knows(&to, source) && knows(&from, target));
    EVENTUALLY(LONG_MS, is_up(&from) && is_up(&to));
    for (size_t i = 0; i < HF_COUNT(prefixes); i++) {
        long long slot = hf_fixture_number(&from, "CLUSTER KEYSLOT %s", prefixes[i]);
        assert_string_equal(
            hf_fixture_command(&to, "CLUSTER SETSLOT %lld IMPORTING %s", slot, source),
            "OK");
        assert_string_equal(
            hf_fixture_command(&from, "CLUSTER SETSLOT %lld MIGRATING %s", slot, target),
            "OK");
    }
}

static int up(void **state)
{
    const hf_fixture_options options = {
        .cluster = true, .args = {"--cluster-require-full-coverage", "no"}};
    (void)state;
    hf_fixture_start(&from, &options);
    hf_fixture_start(&to, &options);
    move_slots();
    connection = hf_fixture_connect(&to);
    return connection == NULL;
}

static int down(void **state)
{
    (void)state;
    freeReplyObject(reply);
    redisFree(connection);
    hf_fixture_stop(&to);
    hf_fixture_stop(&from);
    return 0;
}

/* These read arguments before their first command. */
static const char *const enqueue[] = {"", "0", "0", "0", "0", "id", "0", "{}", "N", NULL};
static const char *const complete[] = {"w", "0", "0", "1", "5", "1", "id", NULL};
static const char *const no_arguments[] = {NULL};

static const char *const *arguments(const hf_script *script)
{
    if (script == &hf_lua_queue_enqueue || script == &hf_lua_queue_enqueue_with)
        return enqueue;
    return script == &hf_lua_queue_complete ? complete : no_arguments;
}

static const char *run(redisContext *c, const hf_script *script, const char *prefix)
{
    const char *words[16] = {"EVAL", (const char *)script->text, "1", prefix};
    size_t lens[16], n = 4;
    for (const char *const *at = arguments(script); *at != NULL; at++)
        words[n++] = *at;
    for (size_t i = 0; i < n; i++)
        lens[i] = i == 1 ? script->len : strlen(words[i]);
    freeReplyObject(reply);
    reply = redisCommandArgv(c, (int)n, words, lens);
    assert_non_null(reply);
    return reply->type == REDIS_REPLY_ERROR ? reply->str : "no error";
}

/* Redis up to 7.2 and Valkey; Redis from 7.4 on. */
static bool is_refused(const char *said)
{
    return strstr(said, "non local key") != NULL ||
           strstr(said, "undeclared keys were accessed during rehashing") != NULL;
}

static void refuse_all(const hf_script *const *all, const char *prefix)
{
    for (; *all != NULL; all++) {
        freeReplyObject(redisCommand(connection, "ASKING"));
        const char *said = run(connection, *all, prefix);
        if (!is_refused(said))
            fail_msg("%s, on the node that takes over: %s", (*all)->name, said);
    }
}

static void no_script_runs_on_the_node_that_takes_over(void **state)
{
    (void)state;
    refuse_all(hf_lua_queue_all, prefixes[0]);
    refuse_all(hf_lua_lock_all, prefixes[1]);
    assert_int_equal(hf_fixture_number(&to, "DBSIZE"), 0);
}

static void the_other_node_sends_all_scripts_on(void **state)
{
    (void)state;
    redisContext *c = hf_fixture_connect(&from);
    for (const hf_script *const *at = hf_lua_queue_all; *at != NULL; at++)
        assert_memory_equal(run(c, *at, prefixes[0]), "ASK ", 4);
    for (const hf_script *const *at = hf_lua_lock_all; *at != NULL; at++)
        assert_memory_equal(run(c, *at, prefixes[1]), "ASK ", 4);
    redisFree(c);
    assert_int_equal(hf_fixture_number(&from, "DBSIZE"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_script_runs_on_the_node_that_takes_over),
        cmocka_unit_test(the_other_node_sends_all_scripts_on),
    };
    return cmocka_run_group_tests(tests, up, down);
}
