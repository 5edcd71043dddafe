/* test_keys.c - how queues and keys are called, and how numbers become arguments. */
#include "queue/keys.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "redis/args.h"

static void a_queue_has_one_tag_in_all_its_keys(void **state)
{
    (void)state;
    hf_queue queue;
    assert_int_equal(hf_queue_init(&queue, "hf", "email.out"), HF_OK);
    assert_string_equal(queue.name, "email.out");
    assert_string_equal(queue.ns, "hf");
    assert_string_equal(queue.prefix, "hf:{email.out}:");
    assert_int_equal(queue.prefix_len, strlen(queue.prefix));
}

static void names_of_the_greatest_length_fit(void **state)
{
    char name[HF_NAME_MAX + 2];
    (void)state;
    memset(name, 'n', sizeof name);
    name[HF_NAME_MAX] = '\0';
    hf_queue queue;
    assert_int_equal(hf_queue_init(&queue, name, name), HF_OK);
    assert_int_equal(queue.prefix_len, 2 * HF_NAME_MAX + 4);
    assert_string_equal(queue.name, name);
    name[HF_NAME_MAX] = 'n';
    name[HF_NAME_MAX + 1] = '\0';
    assert_int_equal(hf_queue_init(&queue, "hf", name), HF_INVALID);
    assert_int_equal(hf_queue_init(&queue, name, "q"), HF_INVALID);
}

static void what_is_no_name_is_refused(void **state)
{
    static const char *const bad[] = {"",   "a b",         "a/b", "{a}",
                                      "a*", "caf\xc3\xa9", "a\n"};
    (void)state;
    hf_queue queue;
    for (size_t i = 0; i < HF_COUNT(bad); i++) {
        assert_int_equal(hf_queue_init(&queue, "hf", bad[i]), HF_INVALID);
        assert_int_equal(hf_queue_init(&queue, bad[i], "q"), HF_INVALID);
    }
}

static void no_queue_has_the_tag_of_the_registry(void **state)
{
    char key[HF_KEY_SIZE];
    (void)state;
    hf_key_queues(key, "hf");
    assert_string_equal(key, "hf:{/}:queues");
    hf_key_workers(key, "my.ns");
    assert_string_equal(key, "my.ns:{/}:workers");
    hf_key_worker(key, "hf", "host-1-00ff");
    assert_string_equal(key, "hf:{/}:worker:host-1-00ff");
}

static void the_longest_key_fits(void **state)
{
    char name[HF_ID_SIZE], key[HF_KEY_SIZE];
    (void)state;
    memset(name, 'n', HF_NAME_MAX);
    name[HF_NAME_MAX] = '\0';
    hf_queue queue;
    assert_int_equal(hf_queue_init(&queue, name, name), HF_OK);
    hf_key_seen(key, &queue, name);
    assert_int_equal(strlen(key), 3 * HF_NAME_MAX + 9);
    assert_int_equal(hf_queue_init(&queue, "hf", "q"), HF_OK);
    hf_key_seen(key, &queue, "P1");
    assert_string_equal(key, "hf:{q}:seen:P1");
    hf_key_wake(key, &queue);
    assert_string_equal(key, "hf:{q}:wake");
}

static void every_number_is_written_as_its_digits(void **state)
{
    static const int64_t numbers[] = {
        0,         1,         -1,        9, 10, -10, 1700000000000, 1700000000000123,
        INT64_MAX, INT64_MIN, UINT32_MAX};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(numbers); i++) {
        char expected[32], found[HF_DECIMAL_MAX];
        int len = snprintf(expected, sizeof expected, "%" PRId64, numbers[i]);
        assert_int_equal(hf_args_digits(found, numbers[i]), len);
        assert_memory_equal(found, expected, (size_t)len);
    }
}

static void an_empty_list_has_room_for_a_few(void **state)
{
    (void)state;
    hf_args args = {.n = 0};
    for (int64_t i = 0; i < HF_ARGS_FEW; i++)
        hf_args_int(&args, i);
    assert_int_equal(args.n, HF_ARGS_FEW);
    assert_memory_equal(args.at[HF_ARGS_FEW - 1].ptr, "39", 2);
    hf_args_done(&args);
}

static void without_memory_nothing_is_gathered(void **state)
{
    (void)state;
    hf_args args = {.failed = true};
    hf_args_int(&args, 1);
    hf_args_text(&args, "a");
    assert_int_equal(args.n, 0);
    hf_args_done(&args);
}

static void many_arguments_keep_their_numbers(void **state)
{
    enum { MANY = 1000 };
    (void)state;
    hf_args args;
    hf_args_init(&args, MANY + 2, MANY);
    assert_false(args.failed);
    for (int64_t i = 0; i < MANY; i++)
        hf_args_int(&args, INT64_MIN + i);
    hf_args_flag(&args, true);
    hf_args_bytes(&args, (hf_bytes){NULL, 0});
    assert_int_equal(args.n, MANY + 2);
    assert_memory_equal(args.at[0].ptr, "-9223372036854775808", 20);
    assert_memory_equal(args.at[MANY - 1].ptr, "-9223372036854774809", 20);
    assert_int_equal(args.at[MANY].len, 1);
    assert_non_null(args.at[MANY + 1].ptr);
    hf_args_done(&args);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_queue_has_one_tag_in_all_its_keys),
        cmocka_unit_test(names_of_the_greatest_length_fit),
        cmocka_unit_test(what_is_no_name_is_refused),
        cmocka_unit_test(no_queue_has_the_tag_of_the_registry),
        cmocka_unit_test(the_longest_key_fits),
        cmocka_unit_test(every_number_is_written_as_its_digits),
        cmocka_unit_test(an_empty_list_has_room_for_a_few),
        cmocka_unit_test(without_memory_nothing_is_gathered),
        cmocka_unit_test(many_arguments_keep_their_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
