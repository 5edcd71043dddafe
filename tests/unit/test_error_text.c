/* test_error_text.c - every error text becomes one that JSON can hold. */
#include "queue/error_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "holdfast/admin.h"

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
        cmocka_unit_test(what_is_utf_8_stays),
        cmocka_unit_test(what_is_none_becomes_question_marks),
        cmocka_unit_test(a_long_text_is_cut),
        cmocka_unit_test(the_json_parser_agrees_on_every_pair_of_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
