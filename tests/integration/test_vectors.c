/* test_vectors.c - the scripts answer the requests of tests/vectors/scripts.json as it
 * says. Clients of other languages are tested with the same file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "base/base.h"
#include "queue_scripts.h"
#include "tests/support/redis_fixture.h"
#include "tests/support/vectors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { WORDS = 24, YEAR_2001_MS = 1000000000 };

static hf_fixture fixture;
static redisContext *connection;

static const hf_script *script_of(const char *name)
{
    for (size_t i = 0; hf_lua_queue_all[i] != NULL; i++)
        if (strcmp(hf_lua_queue_all[i]->name + strlen("queue/"), name) == 0)
            return hf_lua_queue_all[i];
    fail_msg("no script %s", name);
    return NULL;
}

static size_t add_words(const char **words, size_t n, const json_t *list)
{
    size_t i;
    json_t *word;
    json_array_foreach(list, i, word)
    {
        assert_true(n < WORDS);
        words[n++] = json_string_value(word);
    }
    return n;
}

static bool is_ms(const json_t *expected)
{
    return json_is_string(expected) && strcmp(json_string_value(expected), "$ms") == 0;
}

static void compare(const redisReply *reply, const json_t *expected, const char *says)
{
    json_t *error = json_object_get(expected, "error");
    if (error != NULL) {
        if (reply->type != REDIS_REPLY_ERROR ||
            strstr(reply->str, json_string_value(error)) == NULL)
            fail_msg("%s: expected %s, found %s", says, json_string_value(error),
                     reply->str == NULL ? "no error" : reply->str);
        return;
    }
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", says, reply->str);
    if (json_is_array(expected)) {
        assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
        if (reply->elements != json_array_size(expected))
            fail_msg("%s: expected %zu elements, found %zu", says,
                     json_array_size(expected), (size_t)reply->elements);
        for (size_t i = 0; i < reply->elements; i++)
            compare(reply->element[i], json_array_get(expected, i), says);
    } else if (is_ms(expected)) {
        long long ms = reply->type == REDIS_REPLY_INTEGER ? reply->integer
                                                          : strtoll(reply->str, NULL, 10);
        assert_true(ms / 1000 > YEAR_2001_MS);
    } else if (json_is_integer(expected)) {
        assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
        if (reply->integer != json_integer_value(expected))
            fail_msg("%s: expected %lld, found %lld", says,
                     (long long)json_integer_value(expected), reply->integer);
    } else {
        assert_int_equal(reply->type, REDIS_REPLY_STRING);
        assert_string_equal(reply->str, json_string_value(expected));
    }
}

static void run_step(const json_t *step, const char *text, void *arg)
{
    const char *words[WORDS];
    size_t n = 0;
    const json_t *command = json_object_get(step, "command");
    (void)text;
    (void)arg;
    if (command != NULL) {
        n = add_words(words, 0, command);
    } else {
        const char *name = json_string_value(json_object_get(step, "script"));
        words[n++] = "EVAL";
        words[n++] = (const char *)script_of(name)->text;
        words[n++] = "1";
        words[n++] = json_string_value(json_object_get(step, "key"));
        n = add_words(words, n, json_object_get(step, "args"));
    }
    redisReply *reply = redisCommandArgv(connection, (int)n, words, NULL);
    assert_non_null(reply);
    if (command == NULL)
        compare(reply, json_object_get(step, "answer"),
                json_string_value(json_object_get(step, "says")));
    freeReplyObject(reply);
}

static void the_scripts_answer_as_the_vectors_say(void **state)
{
    (void)state;
    connection = hf_fixture_connect(&fixture);
    hf_vectors_read(HF_TEST_SOURCE "/tests/vectors/scripts.json", "steps", 40, run_step,
                    NULL);
    redisFree(connection);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HF_REDIS_TEST(the_scripts_answer_as_the_vectors_say, &fixture)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
