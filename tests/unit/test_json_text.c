/* test_json_text.c - JSON that stays text: what is JSON, and what of it is kept. */
#include "base/json_text.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/random.h"
#include "tests/support/eventually.h"
#include "tests/support/seed.h"

static void what_is_json_is_known(void **state)
{
    static const char *const good[] = {
        "0",
        "-0",
        " 1.5e+07 ",
        "1E-5",
        "1e999",
        "123456789012345678901234567890",
        "\"\"",
        "\"\\u0000\\uD800\\/\\\"\"",
        "\"\xF0\x9F\x98\x80\x7F\"",
        "true",
        "\t\r\n null",
        "[]",
        "[ [ ] , { } ]",
        "{\"a\":[{\"b\":false}],\"a\":\"]}\"}",
        "{\"\":0}",
    };
    hf_json_fault fault;
    (void)state;
    for (size_t i = 0; i < HF_COUNT(good); i++)
        if (!hf_json_check(good[i], strlen(good[i]), &fault))
            fail_msg("%s: expected %s at %zu", good[i], fault.expected, fault.at);
}

static void what_is_none_is_refused_with_its_place(void **state)
{
    static const struct {
        const char *text;
        size_t at;
        const char *expected;
    } bad[] = {
        {"", 0, "a value"},
        {"nul", 0, "a value"},
        {"NaN", 0, "a value"},
        {"+1", 0, "a value"},
        {".5", 0, "a value"},
        {"01", 1, "the end"},
        {"1.", 2, "a digit"},
        {"-", 1, "a digit"},
        {"1e+", 3, "a digit"},
        {"1 2", 2, "the end"},
        {"\"a", 2, "the end of a string"},
        {"\"a\\", 3, "an escape (\\n, \\u00e9)"},
        {"\"\\x\"", 2, "an escape (\\n, \\u00e9)"},
        {"\"\\u12g4\"", 5, "four hexadecimal digits"},
        {"\"a\nb\"", 2, "no control character"},
        {"\"\xC3\"", 1, "UTF-8"},
        {"\"\xED\xA0\x80\"", 1, "UTF-8"},
        {"'a'", 0, "a value"},
        {"[1,]", 3, "a value"},
        {"[1", 2, "',' or ']'"},
        {"[1}", 2, "',' or ']'"},
        {"{\"a\":1]", 6, "',' or '}'"},
        {"{\"a\":1,}", 7, "a key"},
        {"{\"a\"}", 4, "':'"},
        {"{a:1}", 1, "a key"},
        {"{\"a\":}", 5, "a value"},
        {"{,}", 1, "a key"},
        {"]", 0, "a value"},
        {"[] // no", 3, "the end"},
    };
    hf_json_fault fault;
    (void)state;
    for (size_t i = 0; i < HF_COUNT(bad); i++) {
        if (hf_json_check(bad[i].text, strlen(bad[i].text), &fault))
            fail_msg("%s is no JSON", bad[i].text);
        if (fault.at != bad[i].at || strcmp(fault.expected, bad[i].expected) != 0)
            fail_msg("%s: expected %s at %zu", bad[i].text, fault.expected, fault.at);
    }
    assert_false(hf_json_check("\"a\0b\"", 5, &fault));
}

static void brackets_have_a_bound(void **state)
{
    static char text[2 * HF_JSON_DEPTH_MAX + 2];
    hf_json_fault fault;
    (void)state;
    memset(text, '[', HF_JSON_DEPTH_MAX);
    memset(text + HF_JSON_DEPTH_MAX, ']', HF_JSON_DEPTH_MAX);
    assert_true(hf_json_check(text, 2 * HF_JSON_DEPTH_MAX, &fault));
    memset(text, '[', HF_JSON_DEPTH_MAX + 1);
    memset(text + HF_JSON_DEPTH_MAX + 1, ']', HF_JSON_DEPTH_MAX + 1);
    assert_false(hf_json_check(text, 2 * HF_JSON_DEPTH_MAX + 2, &fault));
    assert_int_equal(fault.at, HF_JSON_DEPTH_MAX + 1);
}

/* Random texts, of pieces that make JSON now and then. A parser says the same of them,
 * but for numbers that it cannot hold: these have no positive exponent. */
static void a_parser_agrees(void **state)
{
    static const char *const pieces[] = {
        "{",           "}",        "[",    "]",    ",",   ":",     "\"a\"", "\"\"",
        "\"\\u00e9\"", "1",        "0",    "-",    "2.5", "e-1",   " ",     "\n",
        "true",        "null",     "\"",   "\\",   "x",   "\"k",   "\":1",  "{}",
        "}",           "\xC3\xA9", "\xC3", "\x80", "\t",  "\"b\":"};
    hf_rng rng = {hf_test_seed()};
    size_t n_good = 0;
    (void)state;
    for (int round = 0; round < 200000; round++) {
        char text[128] = "";
        size_t n = 1 + hf_rng_next(&rng) % 9, len = 0;
        for (size_t i = 0; i < n; i++)
            len += (size_t)snprintf(text + len, sizeof text - len, "%s",
                                    pieces[hf_rng_next(&rng) % HF_COUNT(pieces)]);
        hf_json_fault fault;
        json_t *value = json_loadb(text, len, JSON_DECODE_ANY, NULL);
        bool good = hf_json_check(text, len, &fault);
        if (good != (value != NULL))
            fail_msg("'%s' is %sJSON", text, good ? "" : "no ");
        if (good) {
            char other[128];
            json_t *same = json_loadb(other, hf_json_compact(text, len, other),
                                      JSON_DECODE_ANY, NULL);
            assert_true(json_equal(value, same));
            json_decref(same);
        }
        n_good += good;
        json_decref(value);
    }
    assert_true(n_good > 100);
}

static void only_white_space_outside_of_strings_is_removed(void **state)
{
    static const char *const pairs[][2] = {
        {" 0.1 ", "0.1"},
        {"1e3", "1e3"},
        {"[ 0.10 ,\t-0,\r\n 123456789012345678901234567890 ]",
         "[0.10,-0,123456789012345678901234567890]"},
        {"{ \"b\" : 1, \"a\" : 2, \"b\" : 3 }", "{\"b\":1,\"a\":2,\"b\":3}"},
        {"\" \\\" \\\\\"", "\" \\\" \\\\\""},
        {"[\"\\\\\" , \"a b\"]", "[\"\\\\\",\"a b\"]"},
        {"\"\\u0041\\/\xC3\xA9\"", "\"\\u0041\\/\xC3\xA9\""},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(pairs); i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "%s", pairs[i][0]);
        size_t len = hf_json_compact(text, strlen(text), text);
        assert_int_equal(len, strlen(pairs[i][1]));
        assert_memory_equal(text, pairs[i][1], len);
    }
}

static void a_string_says_its_characters(void **state)
{
    static const char *const pairs[][2] = {
        {"\"\"", ""},
        {"\"a\\n\\t\\r\\b\\f\\/\\\\\\\"\"", "a\n\t\r\b\f/\\\""},
        {"\"\\u0041\\u00e9\\u20AC\\ud83D\\ude00\"",
         "A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"},
    };
    char out[64];
    size_t n;
    (void)state;
    for (size_t i = 0; i < HF_COUNT(pairs); i++) {
        assert_true(hf_json_decode(pairs[i][0], strlen(pairs[i][0]), out, &n));
        assert_string_equal(out, pairs[i][1]);
        assert_int_equal(n, strlen(pairs[i][1]));
    }
    assert_true(hf_json_decode("\"a\\u0000b\"", 10, out, &n));
    assert_int_equal(n, 3);
    assert_memory_equal(out, "a\0b", 4);
    static const char *const half[] = {"\"\\ud800\"", "\"\\udc00x\"", "\"\\ud800\\n\"",
                                       "\"\\ud800\\u0041\"", "\"\\ud83d\\ud83d\""};
    for (size_t i = 0; i < HF_COUNT(half); i++)
        assert_false(hf_json_decode(half[i], strlen(half[i]), out, &n));
}

static void any_bytes_may_be_in_strings(void **state)
{
    static const char *const good[] = {"\"\xff\"", "{\"\xC3\":\"\xED\xA0\x80\"}",
                                       "[\"\xC3\xA9\"]"};
    static const char *const bad[] = {"\xff", "\"a\nb\"", "\"\xC3", "\"\\\xff\"",
                                      "{\xff:1}"};
    hf_json_fault fault;
    (void)state;
    for (size_t i = 0; i < HF_COUNT(good); i++)
        assert_true(hf_json_check_bytes(good[i], strlen(good[i]), &fault));
    for (size_t i = 0; i < HF_COUNT(bad); i++)
        assert_false(hf_json_check_bytes(bad[i], strlen(bad[i]), &fault));
}

static void a_text_is_mended_and_cut_between_characters(void **state)
{
#define U_FFFD "\xEF\xBF\xBD"
    static const struct {
        const char *string, *text;
        size_t size;
    } cases[] = {
        {"\"\"", "", 9},
        {"\"a\\n\\\"\\u00e9\"", "a\n\"\xC3\xA9", 9},
        {"\"\\ud83d\\ude00\"", "\xF0\x9F\x98\x80", 9},
        {"\"\\ud800x\"", U_FFFD "x", 9},
        {"\"\\ud800\\ud800\"", U_FFFD U_FFFD, 9},
        {"\"\\udc00\\u0041\"", U_FFFD "A", 9},
        {"\"a\xff\xC3\"", "a" U_FFFD U_FFFD, 9},
        {"\"\xC3\xA9\xC3\xA9\"", "\xC3\xA9", 3},
        {"\"ab\xff\"", "ab", 4},
        {"\"abc\"", "", 0},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        char out[16];
        size_t n =
            hf_json_text(cases[i].string, strlen(cases[i].string), out, cases[i].size);
        assert_int_equal(n, strlen(cases[i].text));
        assert_memory_equal(out, cases[i].text, n);
    }
}

static void an_escaped_text_says_the_same(void **state)
{
    static const char text[] = "a\"\\\n\x1f\0\xC3\xA9";
    hf_buf out;
    char back[64];
    size_t n;
    (void)state;
    hf_buf_init(&out, 100);
    hf_buf_text(&out, "\"");
    hf_json_escape(&out, text, sizeof text - 1);
    hf_buf_text(&out, "\"");
    assert_string_equal(out.data, "\"a\\u0022\\u005c\\u000a\\u001f\\u0000\xC3\xA9\"");
    assert_true(hf_json_decode(out.data, out.len, back, &n));
    assert_int_equal(n, sizeof text - 1);
    assert_memory_equal(back, text, n);
    hf_buf_done(&out);
}

static void whole_numbers_are_read_exactly(void **state)
{
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {
        {"0", 0},
        {"-0", 0},
        {"0.000", 0},
        {"0e999999999999", 0},
        {"7", 7},
        {"-7", -7},
        {"7.0", 7},
        {"70e-1", 7},
        {"0.07E+2", 7},
        {"1.25e2", 125},
        {"100e-2", 1},
        {"10000000000000000000000000e-25", 1},
        {"9007199254740992", INT64_C(1) << 53},
        {"-9007199254740992", -(INT64_C(1) << 53)},
        {"9007199254740992.0", INT64_C(1) << 53},
        {"90071992547409.92e2", INT64_C(1) << 53},
        {"1e15", INT64_C(1000000000000000)},
    };
    static const char *const bad[] = {
        "9007199254740993",
        "-9007199254740993",
        "1e16",
        "1e999",
        "1e99999999999999999999",
        "7.5",
        "75e-1",
        "1e-999",
        "9007199254740991.5",
        "123456789012345678901234567890",
        "1.00000000000000000000000000001",
        "\"7\"",
        "true",
        "[7]",
        "{}",
    };
    int64_t value;
    (void)state;
    for (size_t i = 0; i < HF_COUNT(good); i++) {
        if (!hf_json_integer(good[i].text, strlen(good[i].text), &value))
            fail_msg("%s is a whole number", good[i].text);
        assert_int_equal(value, good[i].value);
    }
    for (size_t i = 0; i < HF_COUNT(bad); i++)
        if (hf_json_integer(bad[i], strlen(bad[i]), &value))
            fail_msg("%s is no whole number, found %lld", bad[i], (long long)value);
}

static void the_items_of_an_array_are_found(void **state)
{
    static const char text[] = " [ 1 ,{\"a\":[2]}, \"]\",[],null ] ";
    static const char *const wanted[] = {"1", "{\"a\":[2]}", "\"]\"", "[]", "null"};
    hf_json_scan scan;
    hf_json_member m;
    (void)state;
    hf_json_scan_start(&scan, text, sizeof text - 1);
    for (size_t i = 0; i < HF_COUNT(wanted); i++) {
        assert_true(hf_json_scan_item(&scan, &m));
        assert_int_equal(m.value_len, strlen(wanted[i]));
        assert_memory_equal(m.value, wanted[i], m.value_len);
    }
    assert_false(hf_json_scan_item(&scan, &m));
}

static void the_members_of_an_object_are_found(void **state)
{
    static const char text[] =
        " {\"a\":1 , \"b\" : "
        "[1,{\"x\":\"}\"}],\"\\u0063\":\"]\\\"\",\"d\":{},\"e\":-1e5}";
    static const char *const wanted[][2] = {{"\"a\"", "1"},
                                            {"\"b\"", "[1,{\"x\":\"}\"}]"},
                                            {"\"\\u0063\"", "\"]\\\"\""},
                                            {"\"d\"", "{}"},
                                            {"\"e\"", "-1e5"}};
    hf_json_scan scan;
    hf_json_member m;
    (void)state;
    hf_json_scan_start(&scan, text, sizeof text - 1);
    for (size_t i = 0; i < HF_COUNT(wanted); i++) {
        assert_true(hf_json_scan_next(&scan, &m));
        assert_int_equal(m.key_len, strlen(wanted[i][0]));
        assert_memory_equal(m.key, wanted[i][0], m.key_len);
        assert_int_equal(m.value_len, strlen(wanted[i][1]));
        assert_memory_equal(m.value, wanted[i][1], m.value_len);
    }
    assert_false(hf_json_scan_next(&scan, &m));
}

static void the_scanner_stays_inside_any_text(void **state)
{
    (void)state;
    static const char text[] = " { \"a\" : [\"]\", {}] , \"b\\\"\":\"x\\\\\" } ";
    for (size_t len = 0; len < sizeof text; len++) {
        hf_json_scan scan;
        hf_json_member m;
        char *copy = malloc(len + 1); /* of exactly this size, for the sanitizers */
        assert_non_null(copy);
        memcpy(copy, text, len);
        char *exact = realloc(copy, len == 0 ? 1 : len);
        assert_non_null(exact);
        hf_json_scan_start(&scan, exact, len);
        while (hf_json_scan_next(&scan, &m))
            assert_true(m.value + m.value_len <= exact + len);
        free(exact);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_json_is_known),
        cmocka_unit_test(what_is_none_is_refused_with_its_place),
        cmocka_unit_test(brackets_have_a_bound),
        cmocka_unit_test(a_parser_agrees),
        cmocka_unit_test(only_white_space_outside_of_strings_is_removed),
        cmocka_unit_test(a_string_says_its_characters),
        cmocka_unit_test(any_bytes_may_be_in_strings),
        cmocka_unit_test(a_text_is_mended_and_cut_between_characters),
        cmocka_unit_test(an_escaped_text_says_the_same),
        cmocka_unit_test(whole_numbers_are_read_exactly),
        cmocka_unit_test(the_items_of_an_array_are_found),
        cmocka_unit_test(the_members_of_an_object_are_found),
        cmocka_unit_test(the_scanner_stays_inside_any_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
