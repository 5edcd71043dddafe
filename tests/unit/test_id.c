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

/* The 84 bits of an id, in halves. */
static void read_id(const char *id, uint64_t *ms, uint64_t *low)
{
    static const char digits[] =
        "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
    assert_int_equal(strlen(id), 14);
    *ms = *low = 0;
    for (size_t i = 0; i < 14; i++) {
        const char *at = strchr(digits, id[i]);
        uint64_t *half = i < 7 ? ms : low;
        assert_non_null(at);
        *half = *half * 64 + (uint64_t)(at - digits);
    }
}

static void the_alphabet_is_in_the_order_of_its_bytes(void **state)
{
    (void)state;
    char last[HF_NEW_ID_SIZE] = "", id[HF_NEW_ID_SIZE];
    for (uint64_t i = 0; i < 64; i++) {
        uint64_t ms, low;
        hf_id_text(i << 36, i << 36, id);
        assert_true(hf_name_ok(id));
        assert_true(strcmp(last, id) < 0);
        memcpy(last, id, sizeof id);
        read_id(id, &ms, &low);
        assert_true(ms == i << 36 && low == i << 36);
    }
}

static void an_id_begins_with_its_time(void **state)
{
    (void)state;
    hf_id_maker maker;
    char id[HF_NEW_ID_SIZE];
    uint64_t ms, low;
    assert_int_equal(hf_id_maker_init(&maker), HF_OK);
    uint64_t before = (uint64_t)hf_wall_ms();
    hf_id_next(&maker, id);
    read_id(id, &ms, &low);
    assert_true(ms >= before && ms <= (uint64_t)hf_wall_ms());
    assert_true(low < UINT64_C(1) << 41);
}

/* 42 bits: no id begins with the first of the alphabet from 2020 on, and all are in the
 * order of their times until 2109. */
static void times_fit_until_2109(void **state)
{
    (void)state;
    char first[HF_NEW_ID_SIZE], last[HF_NEW_ID_SIZE];
    uint64_t ms, low;
    hf_id_text(UINT64_C(1577836800000), 0, first); /* 2020-01-01 */
    hf_id_text(UINT64_C(4396982400000), 0, last);  /* 2109-05-03 */
    assert_int_not_equal(first[0], '-');
    assert_true(strcmp(first, last) < 0);
    read_id(last, &ms, &low);
    assert_true(ms == UINT64_C(4396982400000));
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
    assert_memory_equal(first, second, 7);
}

static void ids_rise_when_the_random_part_overflows(void **state)
{
    (void)state;
    uint64_t ms = (uint64_t)hf_wall_ms() + 3600000, low;
    hf_id_maker maker = {.ms = ms, .low = (UINT64_C(1) << 41) - 2};
    char a[HF_NEW_ID_SIZE], b[HF_NEW_ID_SIZE];
    hf_id_next(&maker, a);
    hf_id_next(&maker, b);
    assert_true(strcmp(a, b) < 0);
    read_id(b, &maker.ms, &low);
    assert_true(maker.ms == ms + 1);
    assert_true(low < UINT64_C(1) << 41);
}

/* Else two makers that met once would meet at every id from then on. */
static void each_ms_begins_anew(void **state)
{
    (void)state;
    hf_id_maker maker;
    char id[HF_NEW_ID_SIZE];
    assert_int_equal(hf_id_maker_init(&maker), HF_OK);
    uint64_t last = 0;
    for (int i = 0; i < 3; i++) {
        maker.ms = 1;
        hf_id_next(&maker, id);
        uint64_t apart = maker.low > last ? maker.low - last : last - maker.low;
        assert_true(apart > 1000);
        last = maker.low;
    }
}

static void two_makers_do_not_make_the_same_ids(void **state)
{
    (void)state;
    hf_id_maker one, two;
    char a[HF_NEW_ID_SIZE], b[HF_NEW_ID_SIZE];
    assert_int_equal(hf_id_maker_init(&one), HF_OK);
    assert_int_equal(hf_id_maker_init(&two), HF_OK);
    hf_id_next(&one, a);
    hf_id_next(&two, b);
    assert_string_not_equal(a + 7, b + 7);
}

static void an_id_tells_when_it_was_made(void **state)
{
    (void)state;
    hf_id_maker maker;
    char id[HF_RUN_ID_SIZE];
    static const char *const others[] = {
        "",
        "short",
        "01M7Y0GNDW8KZGSWPCGM0CSBQW",
        "-------AAAAAAA", /* 1970 */
        "CzzzzzzAAAAAAA", /* 1997 */
        "zzzzzzzAAAAAAA", /* 2109 */
        "P6w14_.MIybcKK", /* another alphabet */
        "P6w14_-MIybc:K",
    };
    assert_int_equal(hf_id_maker_init(&maker), HF_OK);
    int64_t before = hf_wall_ms();
    hf_id_next(&maker, id);
    assert_true(hf_id_made_ms(id) >= before && hf_id_made_ms(id) <= hf_wall_ms());
    assert_true(hf_id_maker_tells(&maker, before));
    assert_false(hf_id_maker_tells(&maker, before - 5000));
    assert_false(hf_id_maker_tells(&maker, before + 5000));
    hf_id_text((uint64_t)before, 99, id);
    assert_true(hf_id_made_ms(id) == before);
    hf_id_text((uint64_t)before + 2 * 86400000, 99, id);
    assert_true(hf_id_made_ms(id) == 0);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_true(hf_id_made_ms(others[i]) == 0);
}

/* ---- runs ---- */

static void ids_of_a_run_are_the_same_each_time_and_rise(void **state)
{
    char made[HF_RUN_NAME_SIZE];
    assert_int_equal(hf_run_name(made), HF_OK);
    const struct {
        const char *name;
        size_t len; /* of its ids */
    } runs[] = {{made, 14},
                {"01M7Y0GNDW8KZGSWPCGM0CSBQW", 14},
                {"nightly", 26},
                {"", 26},
                {"0000000000000000000000000A", 26},  /* of no time that can be */
                {"01M7Y0GNDW8KZGSWPCGM0CSBQU", 26}}; /* of another alphabet */
    (void)state;
    for (size_t r = 0; r < sizeof runs / sizeof runs[0]; r++) {
        char last[HF_RUN_ID_SIZE] = "", id[HF_RUN_ID_SIZE], again[HF_RUN_ID_SIZE];
        for (uint64_t n = 0; n < 3000000; n += 1 + n / 3) {
            hf_id_of_run(runs[r].name, n, id);
            hf_id_of_run(runs[r].name, n, again);
            assert_string_equal(id, again);
            assert_int_equal(strlen(id), runs[r].len);
            assert_true(hf_name_ok(id));
            assert_true(strcmp(last, id) < 0);
            memcpy(last, id, sizeof id);
        }
    }
}

static void ids_of_a_made_run_tell_when_it_began_and_are_no_makers(void **state)
{
    (void)state;
    char run[HF_RUN_NAME_SIZE], id[HF_RUN_ID_SIZE];
    uint64_t ms, low, next;
    int64_t before = hf_wall_ms();
    assert_int_equal(hf_run_name(run), HF_OK);
    hf_id_of_run(run, 0, id);
    read_id(id, &ms, &low);
    assert_true((int64_t)ms >= before && (int64_t)ms <= hf_wall_ms());
    assert_true(low >> 41 == 1);
    hf_id_of_run(run, 1000, id);
    read_id(id, &ms, &next);
    assert_true(next - low == 1000);
}

static void a_run_whose_count_overflows_continues_in_the_next_ms(void **state)
{
    (void)state;
    char a[HF_NEW_ID_SIZE], b[HF_NEW_ID_SIZE];
    hf_id_text(UINT64_C(1700000000000), (UINT64_C(1) << 42) - 1, a);
    hf_id_text(UINT64_C(1700000000000), UINT64_C(1) << 42, b);
    assert_true(strcmp(a, b) < 0);
    hf_id_text(UINT64_C(1700000000001), 0, a);
    assert_string_equal(a, b);
}

static void different_runs_have_different_ids(void **state)
{
    (void)state;
    char a[HF_RUN_ID_SIZE], b[HF_RUN_ID_SIZE];
    hf_id_of_run("nightly-1", 1, a);
    hf_id_of_run("nightly-2", 1, b);
    assert_string_not_equal(a, b);
    /* Both halves of the hash depend on the name. */
    assert_memory_not_equal(a, b, 9);
    assert_memory_not_equal(a + 9, b + 9, 9);
    /* Of a made one every random character counts, and neighbours lie far apart. */
    static const char *const made[] = {"01M7Y0GNDW8KZGSWPCGM0CSBQW",
                                       "01M7Y0GNDW8KZGSWPCGM0CSBQX",
                                       "01M7Y0GNDW9KZGSWPCGM0CSBQW"};
    uint64_t ms[3], low[3];
    for (size_t i = 0; i < 3; i++) {
        hf_id_of_run(made[i], 0, a);
        read_id(a, &ms[i], &low[i]);
        assert_true(ms[i] == ms[0]);
        for (size_t k = 0; k < i; k++)
            assert_true((low[i] > low[k] ? low[i] - low[k] : low[k] - low[i]) > 1000000);
    }
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
        cmocka_unit_test(the_alphabet_is_in_the_order_of_its_bytes),
        cmocka_unit_test(an_id_begins_with_its_time),
        cmocka_unit_test(times_fit_until_2109),
        cmocka_unit_test(ids_rise_when_the_clock_goes_back),
        cmocka_unit_test(ids_rise_when_the_random_part_overflows),
        cmocka_unit_test(each_ms_begins_anew),
        cmocka_unit_test(two_makers_do_not_make_the_same_ids),
        cmocka_unit_test(an_id_tells_when_it_was_made),
        cmocka_unit_test(ids_of_a_run_are_the_same_each_time_and_rise),
        cmocka_unit_test(ids_of_a_made_run_tell_when_it_began_and_are_no_makers),
        cmocka_unit_test(a_run_whose_count_overflows_continues_in_the_next_ms),
        cmocka_unit_test(different_runs_have_different_ids),
        cmocka_unit_test(names_are_short_and_plain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
