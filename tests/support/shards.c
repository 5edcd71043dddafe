/* shards.c - see shards.h. */
#include "tests/support/shards.h"

#include <stdio.h>
#include <string.h>

#include "queue_scripts.h"
#include "tests/support/eventually.h"

void hf_test_divide(hf_fixture *redis, const char *queue, unsigned n, hf_shards *out)
{
    char text[HF_SHARDS_TEXT_SIZE];
    assert_int_equal(hf_shards_make(out, queue, n), HF_OK);
    hf_shards_write(out, text);
    const char *answer =
        hf_fixture_command(redis, "EVAL %b 1 hf:{%s}: 0 %s", hf_lua_queue_shards.text,
                           hf_lua_queue_shards.len, queue, text);
    if (strncmp(answer, "0\n", 2) != 0 || strstr(answer, text) == NULL)
        fail_msg("%s was not divided into %u: %s", queue, n, answer);
}

const char *hf_test_shard_key(const hf_shards *shards, unsigned i, const char *key,
                              char out[HF_TEST_SHARD_KEY])
{
    (void)snprintf(out, HF_TEST_SHARD_KEY, "hf:{%s}:%s", shards->tags[i], key);
    return out;
}

long long hf_test_shards_count(hf_fixture *redis, const hf_shards *shards,
                               const char *key)
{
    char name[HF_TEST_SHARD_KEY];
    long long n = 0;
    for (unsigned i = 0; i < shards->n; i++)
        n +=
            hf_fixture_number(redis, "ZCARD %s", hf_test_shard_key(shards, i, key, name));
    return n;
}
