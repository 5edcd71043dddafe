/* test_slots.c - the slot of a key, and what nodes tell about slots: each number and each
 * host is checked before it is believed. */
#include "redis/slots.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <hiredis/hiredis.h>

#include "base/base.h"

static const hf_place asked = {"seed", 7000};
static hf_slot_map map;
static char why[HF_DETAIL_SIZE];

/* The first is the check value of CRC-16/XMODEM (0x31C3); the others are Redis's own. */
static void the_slot_of_a_key_is_that_of_its_hash_tag(void **state)
{
    static const struct {
        const char *key;
        unsigned slot;
    } cases[] = {
        {"123456789", 0x31c3 % HF_SLOTS},
        {"", 0},
        {"foo", 12182},
        {"bar", 5061},
        {"user1000", 3443},
        {"{user1000}.following", 3443},
        {"foo{user1000}bar{zap}", 3443},
        {"foo{}{user1000}", 4418},
        {"foo{{user1000}}bar", 8723},
        {"{foo", 13308},
        {"foo{", 7673},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(cases); i++)
        if (hf_slot(cases[i].key, strlen(cases[i].key)) != cases[i].slot)
            fail_msg("%s: expected %u, found %u", cases[i].key, cases[i].slot,
                     hf_slot(cases[i].key, strlen(cases[i].key)));
    assert_int_equal(hf_slot("hf:{/}:queues", 13), hf_slot("/", 1));
}

/* An answer, in Redis's protocol, with "|" for CR LF. */
static hf_err read_map(const char *text)
{
    char wire[4096];
    size_t n = 0;
    void *reply = NULL;
    for (; *text != '\0'; text++) {
        if (*text == '|')
            wire[n++] = '\r';
        wire[n++] = *text == '|' ? '\n' : *text;
    }
    redisReader *reader = redisReaderCreate();
    assert_int_equal(redisReaderFeed(reader, wire, n), REDIS_OK);
    assert_int_equal(redisReaderGetReply(reader, &reply), REDIS_OK);
    assert_non_null(reply);
    hf_err err = hf_slot_map_read(&map, reply, &asked, why);
    freeReplyObject(reply);
    redisReaderFree(reader);
    return err;
}

static void expect_node(unsigned slot, const char *host, uint16_t port)
{
    assert_int_not_equal(map.at[slot], 0);
    const hf_place *node = &map.nodes[map.at[slot] - 1];
    assert_string_equal(node->host, host);
    assert_int_equal(node->port, port);
}

#define NODE(host, port) "*3|$" host "|:" port "|$2|id|"
#define A NODE("1|a", "1")
#define B NODE("1|b", "2")

static void each_range_has_its_node(void **state)
{
    (void)state;
    assert_int_equal(read_map("*3|*4|:0|:99|" A B "*3|:200|:16383|" B "*3|:100|:100|" A),
                     HF_OK);
    assert_int_equal(map.n_nodes, 2);
    expect_node(0, "a", 1);
    expect_node(99, "a", 1);
    expect_node(100, "a", 1);
    assert_int_equal(map.at[101], 0);
    assert_int_equal(map.at[199], 0);
    expect_node(200, "b", 2);
    expect_node(16383, "b", 2);
}

static void a_node_without_a_host_is_where_it_was_asked(void **state)
{
    (void)state;
    assert_int_equal(read_map("*2|*3|:0|:1|*2|$0||:5|*3|:2|:3|*2|$-1|:6|"), HF_OK);
    expect_node(0, "seed", 5);
    expect_node(3, "seed", 6);
}

static void a_node_without_a_known_name_may_have_an_address(void **state)
{
    (void)state;
    assert_int_equal(read_map("*3|*3|:0|:1|*4|$1|?|:5|$2|id|*2|$2|ip|$7|1.2.3.4|"
                              "*3|:2|:3|" NODE("1|?", "6") "*3|:4|:4|" NODE("1|c", "0")),
                     HF_OK);
    expect_node(1, "1.2.3.4", 5);
    assert_int_equal(map.at[2], 0);
    assert_int_equal(map.at[4], 0);
}

static void an_answer_with_a_fault_is_refused_as_a_whole(void **state)
{
    static const struct {
        const char *text;
        hf_err err;
        const char *why;
    } cases[] = {
        {"+OK|", HF_PROTO, "list"},
        {"*0|", HF_UNSERVED, "no node"},
        {"*1|*3|:0|:1|" NODE("1|?", "6"), HF_UNSERVED, "no node"},
        {"*1|:7|", HF_PROTO, "ranges"},
        {"*1|*2|:0|:1|", HF_PROTO, "host"},
        {"*1|*3|:-1|:1|" A, HF_PROTO, "ranges"},
        {"*1|*3|:0|:16384|" A, HF_PROTO, "ranges"},
        {"*1|*3|:5|:4|" A, HF_PROTO, "ranges"},
        {"*1|*3|$1|0|:4|" A, HF_PROTO, "ranges"},
        {"*1|*3|:0|:4|" NODE("1|a", "65536"), HF_PROTO, "host"},
        {"*1|*3|:0|:4|" NODE("1|a", "-1"), HF_PROTO, "host"},
        {"*1|*3|:0|:4|*1|$1|a|", HF_PROTO, "host"},
        {"*2|*3|:0|:4|" A "*3|:4|:5|" B, HF_PROTO, "two nodes"},
        {"*2|*3|:0|:4|" A "*3|:4|:5|" A, HF_PROTO, "two nodes"},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        hf_err err = read_map(cases[i].text);
        if (err != cases[i].err || strstr(why, cases[i].why) == NULL)
            fail_msg("%s: %s '%s'", cases[i].text, hf_err_name(err), why);
    }
}

static void moved_names_a_slot_and_a_node(void **state)
{
    static const struct {
        const char *words;
        unsigned slot;
        const char *host;
        uint16_t port;
    } good[] = {
        {"MOVED 3999 127.0.0.1:6381", 3999, "127.0.0.1", 6381},
        {"MOVED 0 :7002", 0, "seed", 7002},
        {"MOVED 16383 ::1:6379", 16383, "::1", 6379},
        {"MOVED 7 redis-2.example:65535", 7, "redis-2.example", 65535},
    };
    static const char *const bad[] = {
        "MOVED",
        "MOVED 3999",
        "MOVED x h:1",
        "MOVED 16384 h:1",
        "MOVED -1 h:1",
        "MOVED 1 h",
        "MOVED 1 h:",
        "MOVED 1 h:0",
        "MOVED 1 h:65536",
        "MOVED 1 ?:1",
        "ASK 1 h:1",
        "MOVED 1 h:x",
        "",
        "MOVED 99999999 h:1",
        "MOVED 1 h: 1",
    };
    unsigned slot;
    hf_place to;
    (void)state;
    for (size_t i = 0; i < HF_COUNT(good); i++) {
        assert_true(hf_slot_moved_read(good[i].words, &asked, &slot, &to));
        assert_int_equal(slot, good[i].slot);
        assert_string_equal(to.host, good[i].host);
        assert_int_equal(to.port, good[i].port);
    }
    for (size_t i = 0; i < HF_COUNT(bad); i++)
        if (hf_slot_moved_read(bad[i], &asked, &slot, &to))
            fail_msg("taken: %s", bad[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_slot_of_a_key_is_that_of_its_hash_tag),
        cmocka_unit_test(each_range_has_its_node),
        cmocka_unit_test(a_node_without_a_host_is_where_it_was_asked),
        cmocka_unit_test(a_node_without_a_known_name_may_have_an_address),
        cmocka_unit_test(an_answer_with_a_fault_is_refused_as_a_whole),
        cmocka_unit_test(moved_names_a_slot_and_a_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
