/* test_id.c - names, and the ids that we make. */
#include "base/id.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"

static void ids_of_one_maker_rise_and_are_names(void **state)
{
    (void)state;
    hf_id_maker maker;
    assert_int_equal(hf_id_maker_init(&maker), HF_OK);
    char last[HF_NEW_ID_SIZE] = "", id[HF_NEW_ID_SIZE];
    for (int i = 0; i < 20000; i++) {
        hf_id_next(&maker, id);
        assert_int_equal(strlen(id), HF_NEW_ID_LEN);
        assert_true(hf_name_ok(id));
        assert_true(strcmp(last, id) < 0);
        memcpy(last, id, sizeof id);
    }
}

static void an_id_begins_with_its_time(void **state)
{
    (void)state;
    static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    hf_id_maker maker;
    char id[HF_NEW_ID_SIZE];
    assert_int_equal(hf_id_maker_init(&maker), HF_OK);
    int64_t before = hf_wall_ms();
    hf_id_next(&maker, id);
    int64_t ms = 0;
    for (size_t i = 0; i < 10; i++)
        ms = ms * 32 + (strchr(digits, id[i]) - digits);
    assert_true(ms >= before && ms <= hf_wall_ms());
}

static void ids_rise_when_the_clock_goes_back(void **state)
{
    (void)state;
    hf_id_maker maker;
    char first[HF_NEW_ID_SIZE], second[HF_NEW_ID_SIZE];
    assert_int_equal(hf_id_maker_init(&maker), HF_OK);
    maker.ms = (uint64_t)hf_wall_ms() + 3600000;
    hf_id_next(&maker, first);
    hf_id_next(&maker, second);
    assert_true(strcmp(first, second) < 0);
    assert_memory_equal(first, second, 10);
}

static void ids_rise_when_the_random_part_overflows(void **state)
{
    (void)state;
    hf_id_maker maker = {
        .ms = (uint64_t)hf_wall_ms() + 3600000, .hi = 7, .lo = UINT64_MAX - 1};
    char a[HF_NEW_ID_SIZE], b[HF_NEW_ID_SIZE];
    hf_id_next(&maker, a);
    hf_id_next(&maker, b);
    assert_true(strcmp(a, b) < 0);
    maker.hi = 0xffff;
    maker.lo = UINT64_MAX - 1;
    hf_id_next(&maker, a);
    hf_id_next(&maker, b);
    assert_true(strcmp(a, b) < 0);
    assert_int_equal(maker.hi, 0);
}

static void two_makers_do_not_make_the_same_ids(void **state)
{
    (void)state;
    hf_id_maker one, two;
    assert_int_equal(hf_id_maker_init(&one), HF_OK);
    assert_int_equal(hf_id_maker_init(&two), HF_OK);
    assert_false(one.hi == two.hi && one.lo == two.lo);
}

static void ids_of_a_run_are_the_same_each_time_and_rise(void **state)
{
    static const char *const runs[] = {"01JD0000000000000000000000", "nightly", ""};
    (void)state;
    for (size_t r = 0; r < 3; r++) {
        char last[HF_NEW_ID_SIZE] = "", id[HF_NEW_ID_SIZE], again[HF_NEW_ID_SIZE];
        for (uint64_t n = 0; n < 3000000; n += 1 + n / 3) {
            hf_id_of_run(runs[r], n, id);
            hf_id_of_run(runs[r], n, again);
            assert_string_equal(id, again);
            assert_int_equal(strlen(id), HF_NEW_ID_LEN);
            assert_true(hf_name_ok(id));
            assert_true(strcmp(last, id) < 0);
            memcpy(last, id, sizeof id);
        }
    }
}

static void a_run_of_26_characters_lends_its_first_18(void **state)
{
    (void)state;
    char id[HF_NEW_ID_SIZE];
    hf_id_of_run("01JDABCDEFGHJKMNPQRSTVWXYZ", 33, id);
    assert_string_equal(id, "01JDABCDEFGHJKMNPQ00000011");
}

static void different_runs_have_different_ids(void **state)
{
    (void)state;
    char a[HF_NEW_ID_SIZE], b[HF_NEW_ID_SIZE];
    hf_id_of_run("nightly-1", 1, a);
    hf_id_of_run("nightly-2", 1, b);
    assert_string_not_equal(a, b);
    /* Both halves of the hash depend on the name. */
    assert_memory_not_equal(a, b, 9);
    assert_memory_not_equal(a + 9, b + 9, 9);
}

static void names_are_short_and_plain(void **state)
{
    (void)state;
    char longest[130];
    memset(longest, 'a', sizeof longest);
    longest[128] = '\0';
    assert_true(hf_name_ok(longest));
    longest[128] = 'a';
    longest[129] = '\0';
    assert_false(hf_name_ok(longest));
    assert_true(hf_name_ok("email.send_v2:eu-1"));
    assert_false(hf_name_ok(NULL));
    assert_false(hf_name_ok(""));
    assert_false(hf_name_ok("a b"));
    assert_false(hf_name_ok("a/b"));
    assert_false(hf_name_ok("{a}"));
    assert_false(hf_name_ok("gr\xc3\xbc\xc3\x9f"));
    assert_true(hf_name_ok_n("abc d", 3));
    assert_false(hf_name_ok_n("ab\0c", 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_of_one_maker_rise_and_are_names),
        cmocka_unit_test(an_id_begins_with_its_time),
        cmocka_unit_test(ids_rise_when_the_clock_goes_back),
        cmocka_unit_test(ids_rise_when_the_random_part_overflows),
        cmocka_unit_test(two_makers_do_not_make_the_same_ids),
        cmocka_unit_test(ids_of_a_run_are_the_same_each_time_and_rise),
        cmocka_unit_test(a_run_of_26_characters_lends_its_first_18),
        cmocka_unit_test(different_runs_have_different_ids),
        cmocka_unit_test(names_are_short_and_plain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
