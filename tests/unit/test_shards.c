/* test_shards.c - the shards of a queue: their tags spread over the slots, and what Redis
 * tells about them is checked before it is used. */
#include "queue/shards.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "redis/slots.h"

enum { IDS = 64000 };

static hf_shards shards;

static void each_tag_lies_in_its_range_of_the_slots(void **state)
{
    static const char *const names[] = {"wide", "a", "default", "billing.eu:2"};
    (void)state;
    for (size_t k = 0; k < HF_COUNT(names); k++) {
        for (unsigned n = HF_SHARDS_MIN; n <= HF_SHARDS_MAX; n++) {
            assert_int_equal(hf_shards_make(&shards, names[k], n), HF_OK);
            assert_int_equal(shards.n, n);
            for (unsigned i = 0; i < n; i++) {
                hf_queue whole, shard;
                assert_int_equal(hf_queue_init(&whole, "hf", names[k]), HF_OK);
                hf_shards_queue(&shards, &whole, i, &shard);
                unsigned slot = hf_slot(shard.prefix, shard.prefix_len);
                if (slot < i * HF_SLOTS / n || slot >= (i + 1) * HF_SLOTS / n)
                    fail_msg("%s has slot %u", shard.prefix, slot);
                assert_string_equal(shard.name, names[k]);
            }
        }
    }
}

/* Clients of other languages build the same ones, and those in Redis stay as they are. */
static void the_tags_of_a_queue_are_always_the_same(void **state)
{
    char text[HF_SHARDS_TEXT_SIZE];
    (void)state;
    assert_int_equal(hf_shards_make(&shards, "wide", 4), HF_OK);
    hf_shards_write(&shards, text);
    assert_string_equal(text, "4 wide/0-2 wide/1-0 wide/2-2 wide/3-0");
}

static void only_some_numbers_and_names_are_accepted(void **state)
{
    char longest[HF_SHARDED_NAME_MAX + 2];
    char text[HF_SHARDS_TEXT_SIZE];
    (void)state;
    assert_int_equal(hf_shards_make(&shards, "wide", 1), HF_INVALID);
    assert_int_equal(hf_shards_make(&shards, "wide", HF_SHARDS_MAX + 1), HF_INVALID);
    assert_int_equal(hf_shards_make(&shards, "", 2), HF_INVALID);
    memset(longest, 'x', sizeof longest);
    longest[HF_SHARDED_NAME_MAX + 1] = '\0';
    assert_int_equal(hf_shards_make(&shards, longest, 2), HF_INVALID);
    longest[HF_SHARDED_NAME_MAX] = '\0';
    assert_int_equal(hf_shards_make(&shards, longest, HF_SHARDS_MAX), HF_OK);
    hf_shards_write(&shards, text);
    hf_shards read;
    assert_int_equal(hf_shards_read(&read, text), HF_OK);
    assert_int_equal(read.n, HF_SHARDS_MAX);
    assert_string_equal(read.tags[HF_SHARDS_MAX - 1], shards.tags[HF_SHARDS_MAX - 1]);
}

static void a_text_that_is_no_list_of_tags_is_refused(void **state)
{
    static const char *const texts[] = {
        "x",         "1 a/0-0",        "2",           "2 a/0-0",
        "2 a/0-0 ",  "2 a/0-0 a",      "2 a/0-0 a/",  "2 a/0-0 a/1} b",
        "2 a/0 a/}", "2 a/0-0 a/1/1",  "2 /0-0 /1-1", "2 a/0-0 a/1-1 a/2-2",
        " ",         "2  a/0-0 a/1-1", "65 a/0-0",    "-2 a/0-0 a/1-1",
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(texts); i++) {
        if (hf_shards_read(&shards, texts[i]) != HF_PROTO || shards.n != 0)
            fail_msg("'%s' was read", texts[i]);
    }
    assert_int_equal(hf_shards_read(&shards, ""), HF_OK);
    assert_int_equal(shards.n, 0);
    assert_int_equal(hf_shards_read(&shards, "2 a/0-0 a/1-1"), HF_OK);
    assert_int_equal(shards.n, 2);
    assert_string_equal(shards.tags[1], "a/1-1");
}

static void a_refusal_tells_the_shards(void **state)
{
    (void)state;
    assert_int_equal(hf_shards_refused(&shards, "SHARDED holdfast: 2 a/0-0 a/1-1"),
                     HF_OK);
    assert_string_equal(shards.tags[0], "a/0-0");
    assert_int_equal(hf_shards_refused(&shards, "SHARDED holdfast: "), HF_PROTO);
    assert_int_equal(hf_shards_refused(&shards, "SHARDED"), HF_PROTO);
}

/* The first is what other languages compute: CRC-16/XMODEM of the id, 0x31C3. */
static void ids_spread_evenly_over_the_shards(void **state)
{
    size_t n[8] = {0};
    (void)state;
    assert_int_equal(hf_shard_of_id("123456789", 8), 0x31c3 % 8);
    for (int i = 0; i < IDS; i++) {
        char id[32];
        (void)snprintf(id, sizeof id, "order-%d", i);
        n[hf_shard_of_id(id, HF_COUNT(n))]++;
    }
    for (size_t i = 0; i < HF_COUNT(n); i++)
        assert_in_range(n[i], IDS / 8 * 9 / 10, IDS / 8 * 11 / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_tag_lies_in_its_range_of_the_slots),
        cmocka_unit_test(the_tags_of_a_queue_are_always_the_same),
        cmocka_unit_test(only_some_numbers_and_names_are_accepted),
        cmocka_unit_test(a_text_that_is_no_list_of_tags_is_refused),
        cmocka_unit_test(a_refusal_tells_the_shards),
        cmocka_unit_test(ids_spread_evenly_over_the_shards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
