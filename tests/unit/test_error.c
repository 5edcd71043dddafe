/* test_error.c - the answers of holdfast/error.h have their names, and the clocks run;
 * what each answer means to the sender of the request; errors that differ only in numbers
 * and ids are of one kind; and every error text becomes one that JSON can hold. */
#include "holdfast/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/detail.h"
#include "base/error_key.h"
#include "holdfast/admin.h"
#include "queue/error_text.h"
#include "redis/err.h"

/* ---- the answers ---- */

#define NUMBER(name, number, text) number,

static void every_answer_has_its_name_and_sentence(void **state)
{
    (void)state;
    assert_string_equal(hf_err_name(HF_OK), "HF_OK");
    assert_string_equal(hf_err_name(HF_UNSURE), "HF_UNSURE");
    assert_string_equal(hf_err_name((hf_err)-37), "HF_LOADING");
    assert_string_equal(hf_err_text(HF_NOMEM), "out of memory");
    assert_string_equal(hf_err_name((hf_err)12345), "HF_UNKNOWN");
    assert_string_equal(hf_err_text((hf_err)12345), "unknown answer");
}

static void an_error_and_its_detail_are_one_sentence(void **state)
{
    char out[64];
    (void)state;
    assert_string_equal(hf_say_whole(HF_NOMEM, NULL, out, sizeof out), "out of memory");
    assert_string_equal(hf_say_whole(HF_NOMEM, "", out, sizeof out), "out of memory");
    assert_string_equal(hf_say_whole(HF_NOMEM, "out of memory", out, sizeof out),
                        "out of memory");
    assert_string_equal(hf_say_whole(HF_NOMEM, "a list", out, sizeof out),
                        "out of memory: a list");
    assert_string_equal(hf_say_whole(HF_INVALID, "expected a name", out, sizeof out),
                        "expected a name");
    assert_string_equal(hf_say_whole(HF_NOMEM, "a list", out, 8), "out of ");
}

static void no_number_is_used_twice_and_each_is_in_its_family(void **state)
{
    static const int numbers[] = {HF_ERR_MAP(NUMBER)};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(numbers); i++) {
        assert_in_range(-numbers[i], 0, 61);
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(numbers[i], numbers[k]);
    }
}

static void the_clock_of_deadlines_never_goes_back(void **state)
{
    (void)state;
    uint64_t last = hf_boot_ns();
    for (int i = 0; i < 1000; i++) {
        uint64_t now = hf_boot_ns();
        assert_true(now >= last);
        last = now;
    }
    assert_true(hf_wall_ms() > INT64_C(1700000000000));
}

/* ---- what each means to the sender ---- */

#define NAME(name, number, text) name,

static const hf_err all[] = {HF_ERR_MAP(NAME)};

/* The letter of each trait, in the order of the bits. */
static const char letters[] = "NAPWCQL";

/* One row for each fault: N not done, A at once, P passes, W no writes, C of the cluster,
 * Q of the queue, L lasts. */
static const struct {
    hf_err err;
    const char *traits;
} rows[] = {
    {HF_DEADLINE, "NA"}, {HF_INVALID, "N"},    {HF_TOOBIG, "N"},
    {HF_NOMEM, "N"},     {HF_BUSY, "N"},       {HF_CLOSED, "N"},
    {HF_TIMEOUT, "N"},   {HF_FORKED, "N"},     {HF_SYSTEM, "N"},
    {HF_CONN, "NP"},     {HF_AUTH, "NQL"},     {HF_UNSUPPORTED, "NL"},
    {HF_POLICY, "N"},    {HF_NOSCRIPT, "NA"},  {HF_OOM, "NW"},
    {HF_READONLY, "NW"}, {HF_LOADING, "NP"},   {HF_BUSY_SCRIPT, "NP"},
    {HF_MISCONF, "NW"},  {HF_REDIS, "Q"},      {HF_PROTO, "Q"},
    {HF_MOVED, "NPC"},   {HF_UNSERVED, "NPC"}, {HF_SHARDED, "N"},
    {HF_CONFIG, "NL"},   {HF_UNSURE, ""},      {HF_UNCONFIRMED, ""},
};

static const char *traits_of(hf_err err)
{
    for (size_t i = 0; i < HF_COUNT(rows); i++)
        if (rows[i].err == err)
            return rows[i].traits;
    return NULL;
}

static void each_fault_has_the_traits_of_its_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT(rows); i++)
        for (size_t k = 0; k < sizeof letters - 1; k++) {
            bool expected = strchr(rows[i].traits, letters[k]) != NULL;
            if (hf_err_is(rows[i].err, 1U << k) != expected)
                fail_msg("%s: %c is %d", hf_err_name(rows[i].err), letters[k], !expected);
        }
}

static void every_fault_has_a_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT(all); i++)
        if (all[i] <= HF_INVALID && traits_of(all[i]) == NULL)
            fail_msg("%s has no row", hf_err_name(all[i]));
}

static void other_answers_have_no_traits(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT(all); i++)
        if (traits_of(all[i]) == NULL)
            assert_false(hf_err_is(all[i], ~0U));
    assert_false(hf_err_is(HF_ERR_LAST_, ~0U));
    assert_false(hf_err_is((hf_err)12345, ~0U));
    assert_false(hf_err_is((hf_err)-12345, ~0U));
}

static void one_of_several_traits_is_enough(void **state)
{
    (void)state;
    assert_true(hf_err_is(HF_OOM, HF_ERR_PASSES | HF_ERR_NO_WRITES));
    assert_false(hf_err_is(HF_OOM, HF_ERR_PASSES | HF_ERR_AT_ONCE));
    assert_false(hf_err_is(HF_OOM, 0));
}

/* ---- errors of one kind ---- */

static void is_key_of(const char *error, const char *expected)
{
    char key[HF_ERROR_KEY_SIZE], again[HF_ERROR_KEY_SIZE];
    hf_error_key(error, key);
    assert_string_equal(key, expected);
    hf_error_key(key, again);
    assert_string_equal(again, key);
}

static void numbers_and_ids_are_left_out(void **state)
{
    (void)state;
    is_key_of("", "");
    is_key_of("no host 17", "no host #");
    is_key_of("connect 10.0.4.17:5432: refused", "connect #.#.#.#:#: refused");
    is_key_of("item 4711 of a1b2c3d4e5", "item # of *");
    is_key_of("0123456", "#");
    is_key_of("01234567", "*");
    is_key_of("face b00c", "face b00c");
    is_key_of("1abcdefg", "#abcdefg");
    is_key_of("Traceback (most recent call last):\n  File \"x\", line 3\nValueError: 9\n",
              "ValueError: #\n");
}

static void a_key_is_whole_characters_of_utf8(void **state)
{
    char text[HF_ERROR_KEY_SIZE + 8], key[HF_ERROR_KEY_SIZE];
    (void)state;
    is_key_of("caf\xc3\xa9 \xff 1", "caf\xc3\xa9 ? #");
    memset(text, 'x', sizeof text);
    memcpy(text + HF_ERROR_KEY_SIZE - 2, "\xc3\xa9", 3);
    hf_error_key(text, key);
    assert_int_equal(strlen(key), HF_ERROR_KEY_SIZE - 2);
}

/* ---- texts for JSON ---- */

static void assert_mended(const char *text, const char *expected)
{
    char out[64];
    const hf_bytes bytes = {text, strlen(text)};
    size_t len = hf_error_text_mend(out, bytes);
    assert_int_equal(len, strlen(expected));
    assert_memory_equal(out, expected, len);
    assert_int_equal(hf_error_text_fits(bytes), strcmp(text, expected) == 0);
}

static void what_is_utf_8_stays(void **state)
{
    (void)state;
    assert_mended("", "");
    assert_mended("plain\ttext\n", "plain\ttext\n");
    assert_mended("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
                  "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
}

static void what_is_none_becomes_question_marks(void **state)
{
    (void)state;
    assert_mended("a\xff"
                  "b",
                  "a?b");
    assert_mended("\xa9 half", "? half"); /* cut out of a character */
    assert_mended("half \xe2\x82", "half ??");
    assert_mended("\xc0\xaf", "??");           /* longer than needed */
    assert_mended("\xed\xa0\x80", "???");      /* half of a surrogate pair */
    assert_mended("\xf4\x90\x80\x80", "????"); /* past the last character */
    assert_mended("\xf8\x88\x80\x80\x80", "?????");
}

static void a_long_text_is_cut(void **state)
{
    enum { LONG = HF_ERROR_MAX + 10 };
    char text[LONG], out[LONG];
    const size_t from = LONG - HF_ERROR_MAX;
    (void)state;
    memset(text, 'x', LONG);
    text[from - 1] = '\xc3'; /* the cut goes through this character */
    text[from] = '\xa9';
    text[LONG - 1] = '!'; /* the end says most */
    const hf_bytes bytes = {text, LONG};
    assert_false(hf_error_text_fits(bytes));
    assert_int_equal(hf_error_text_mend(out, bytes), HF_ERROR_MAX - 1);
    assert_int_equal(out[0], 'x');
    assert_int_equal(out[HF_ERROR_MAX - 2], '!');
    assert_true(hf_error_text_fits((hf_bytes){out, HF_ERROR_MAX - 1}));
}

/* A JSON parser is the judge: it takes exactly what fits. */
static void the_json_parser_agrees_on_every_pair_of_bytes(void **state)
{
    (void)state;
    for (unsigned i = 0x80; i < 0x10000; i++) {
        char json[] = {'[', '"', (char)(i >> 8), (char)i, 'x', '"', ']'};
        hf_bytes text = {json + 2, 3};
        if ((unsigned char)json[2] < 0x80 || json[3] == '"' || json[3] == '\\' ||
            (unsigned char)json[3] < 0x20)
            continue;
        json_t *root = json_loadb(json, sizeof json, 0, NULL);
        assert_int_equal(root != NULL, hf_error_text_fits(text));
        json_decref(root);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_answer_has_its_name_and_sentence),
        cmocka_unit_test(an_error_and_its_detail_are_one_sentence),
        cmocka_unit_test(no_number_is_used_twice_and_each_is_in_its_family),
        cmocka_unit_test(the_clock_of_deadlines_never_goes_back),
        cmocka_unit_test(each_fault_has_the_traits_of_its_row),
        cmocka_unit_test(every_fault_has_a_row),
        cmocka_unit_test(other_answers_have_no_traits),
        cmocka_unit_test(one_of_several_traits_is_enough),
        cmocka_unit_test(numbers_and_ids_are_left_out),
        cmocka_unit_test(a_key_is_whole_characters_of_utf8),
        cmocka_unit_test(what_is_utf_8_stays),
        cmocka_unit_test(what_is_none_becomes_question_marks),
        cmocka_unit_test(a_long_text_is_cut),
        cmocka_unit_test(the_json_parser_agrees_on_every_pair_of_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
