/* test_program_said.c - what is made of the lines that a program writes to its
 * descriptor, in whatever pieces they come. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/eventually.h"

#include "base/base.h"
#include "worker/program/said.h"

typedef struct heard {
    char text[1024]; /* of all updates, one after the other */
    char faults[512];
    int updates, n_faults;
} heard;

static void on_update(const hf_program_update *update, void *arg)
{
    heard *h = arg;
    size_t len = strlen(h->text);
    h->updates++;
    if (update->has_progress)
        len += (size_t)snprintf(h->text + len, sizeof h->text - len, "p%u ",
                                update->progress);
    if (update->note != NULL && len < sizeof h->text)
        len +=
            (size_t)snprintf(h->text + len, sizeof h->text - len, "n%s ", update->note);
    if (update->checkpoint != NULL && len < sizeof h->text)
        (void)snprintf(h->text + len, sizeof h->text - len, "c%.*s ",
                       (int)update->checkpoint_len, (const char *)update->checkpoint);
}

static void on_fault(const char *text, void *arg)
{
    heard *h = arg;
    h->n_faults++;
    snprintf(h->faults, sizeof h->faults, "%s", text);
}

static hf_program_said said;
static heard h;

static void begin(void)
{
    h = (heard){.updates = 0};
    hf_program_said_init(&said, on_update, on_fault, &h);
}

static void feed(const char *text)
{
    hf_program_said_feed(&said, text, strlen(text));
}

static void lines_are_taken_when_they_are_whole(void **state)
{
    (void)state;
    static const char text[] =
        "{\"progress\":40}\n\n{\"progress\":60.5,\"note\":\"row 7\"}\r\n"
        "{\"checkpoint\":{\"row\":7}}\n{\"checkpoint\":\"as it is\"}\n"
        "{\"checkpoint\":null,\"other\":[1]}\n";
    for (size_t step = 1; step <= sizeof text; step++) {
        begin();
        for (size_t at = 0; at < sizeof text - 1; at += step) {
            size_t left = sizeof text - 1 - at;
            hf_program_said_feed(&said, text + at, left < step ? left : step);
        }
        assert_string_equal(h.text, "p40 p60 nrow 7 c{\"row\":7} cas it is c ");
        hf_program_said_end(&said);
        assert_int_equal(h.n_faults, 0);
        assert_false(said.verdict.has_verdict);
        hf_program_said_done(&said);
    }
}

static void of_each_key_the_last_one_counts(void **state)
{
    (void)state;
    begin();
    feed("{\"verdict\":\"done\",\"error\":\"one\",\"result\":[1,2]}\n");
    feed("{\"progress\":40}\n{\"verdict\":\"retry\",\"in\":\"30s\"}\n");
    feed("{\"verdict\":\"dead\"}\n{\"result_base64\":\"AP8=\"}\n");
    hf_program_said_end(&said);
    assert_true(said.verdict.has_verdict);
    assert_int_equal(said.verdict.verdict, HF_VERDICT_DEAD);
    assert_int_equal(said.verdict.retry_in_ms, 30000);
    assert_string_equal(said.verdict.error, "one");
    assert_int_equal(said.result_len, 2);
    assert_memory_equal(said.result, "\0\xff", 2);
    assert_false(said.result_is_json);
    hf_program_said_done(&said);
}

static void a_result_is_compact_json(void **state)
{
    (void)state;
    begin();
    feed("{\"verdict\":\"done\",\"result\": { \"b\" : [ 1 , null ] }}\n");
    hf_program_said_end(&said);
    assert_true(said.result_is_json);
    assert_int_equal(said.result_len, strlen("{\"b\":[1,null]}"));
    assert_memory_equal(said.result, "{\"b\":[1,null]}", said.result_len);
    hf_program_said_done(&said);
}

static void a_result_stays_as_it_was_written(void **state)
{
    static const char *const results[] = {
        "0.1",
        "1e3",
        "-0",
        "1.10",
        "1e999",
        "123456789012345678901234567890",
        "-0.000000000000000000000000000001",
        "{\"z\":1,\"a\":[2.50,1E+2],\"z\":3}",
        "[[[[]]],{\"a\":{\"b\":{\"c\":null}}}]",
        "\"\\u0041\\/\\u0000\\ud800 \xC3\xA9 \"",
        "\"]},\\\"\"",
        "true",
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(results); i++) {
        char line[256];
        begin();
        (void)snprintf(
            line, sizeof line,
            " { \"progress\" : 1e1 ,\"re\\u0073ult\" : %s , \"verdict\":\"done\" } \n",
            results[i]);
        feed(line);
        hf_program_said_end(&said);
        assert_string_equal(h.faults, "");
        assert_string_equal(h.text, "p10 ");
        assert_true(said.verdict.has_verdict);
        assert_true(said.result_is_json);
        assert_int_equal(said.result_len, strlen(results[i]));
        assert_memory_equal(said.result, results[i], said.result_len);
        hf_program_said_done(&said);
    }
}

static void a_checkpoint_stays_as_it_was_written(void **state)
{
    (void)state;
    begin();
    feed("{\"checkpoint\":{ \"z\" : 0.10, \"a\" : 123456789012345678901234567890 }}\n");
    feed("{\"checkpoint\":\"a \\u00e9\",\"other\":1e999}\n{\"checkpoint\":1e3}\n");
    assert_string_equal(h.text, "c{\"z\":0.10,\"a\":123456789012345678901234567890} "
                                "ca \xC3\xA9 c1e3 ");
    assert_int_equal(h.n_faults, 0);
    hf_program_said_done(&said);
}

static void a_fault_says_what_was_expected(void **state)
{
    (void)state;
    begin();
    feed("{\"result\":01}\n");
    assert_string_equal(h.faults, "a line on the descriptor is not valid and is ignored: "
                                  "expected ',' or '}' behind 11 bytes");
    hf_program_said_done(&said);
    begin();
    feed("{\"result\":\"\xC3\"}\n");
    assert_string_equal(h.faults, "a line on the descriptor is not valid and is ignored: "
                                  "expected UTF-8 behind 11 bytes");
    hf_program_said_done(&said);
}

/* What follows is taken, and each kind of mistake is told once. */
static void a_line_with_a_mistake_is_ignored_as_a_whole(void **state)
{
    (void)state;
    static const char *const bad[] = {"rubbish",
                                      "[]",
                                      "{\"progress\":101}",
                                      "{\"progress\":-1}",
                                      "{\"progress\":\"40\"}",
                                      "{\"progress\":50,\"verdict\":\"perhaps\"}",
                                      "{\"progress\":50,\"in\":30}",
                                      "{\"progress\":50,\"note\":7}",
                                      "{\"progress\":50,\"note\":\"a\\u0000\"}",
                                      "{\"progress\":50,\"note\":\"\\ud800\"}",
                                      "{\"progress\":50,\"error\":\"\\u0000\"}",
                                      "{\"progress\":50,\"checkpoint\":\"\\ud800\"}",
                                      "{\"progress\":1e999}",
                                      "{\"progress\":123456789012345678901234567890}",
                                      "{\"progress\":50,\"error\":null}",
                                      "{\"progress\":50,\"result_base64\":\"A\"}",
                                      "{\"progress\":50,\"result_base64\":7}",
                                      "{\"result\":1,\"result_base64\":\"AP8=\"}",
                                      "{\"progress\":50",
                                      "\xff{\"progress\":50}"};
    for (size_t i = 0; i < HF_COUNT(bad); i++) {
        begin();
        feed(bad[i]);
        feed("\n");
        feed(bad[i]);
        feed("\n{\"progress\":60}\n");
        assert_string_equal(h.text, "p60 ");
        assert_int_equal(h.n_faults, 1);
        hf_program_said_end(&said);
        assert_false(said.verdict.has_verdict);
        assert_null(said.result);
        hf_program_said_done(&said);
    }
}

/* Up to 128 KiB it is read. */
static void a_line_that_is_too_long_is_ignored_and_told_once(void **state)
{
    (void)state;
    static char line[HF_PROGRAM_SAID_MAX + 3];
    for (size_t more = 0; more <= 1; more++) {
        size_t len = HF_PROGRAM_SAID_MAX + more;
        (void)snprintf(line, sizeof line, "%-*s\n", (int)len, "{\"progress\":50}");
        begin();
        for (int i = 0; i < 3; i++)
            hf_program_said_feed(&said, line, len + 1);
        for (size_t at = 0; at < len + 1; at += 1000)
            hf_program_said_feed(&said, line + at,
                                 len + 1 - at < 1000 ? len + 1 - at : 1000);
        feed("{\"progress\":60}\n");
        assert_int_equal(h.updates, more == 0 ? 5 : 1);
        assert_int_equal(h.n_faults, more == 0 ? 0 : 1);
        hf_program_said_end(&said);
        hf_program_said_done(&said);
    }
}

static void at_the_end_only_a_verdict_may_lack_its_newline(void **state)
{
    (void)state;
    begin();
    feed("{\"progress\":40}\n{\"verdict\":\"done\",\"result\":7}");
    assert_false(said.verdict.has_verdict);
    hf_program_said_end(&said);
    assert_true(said.verdict.has_verdict);
    assert_int_equal(said.result_len, 1);
    assert_int_equal(h.n_faults, 0);
    hf_program_said_done(&said);
    static const char *const torn[] = {"{\"progress\":50}", "{\"checkpoint\":\"7\"}",
                                       "{\"verdict\":\"dea", "{\"error\":\"x\"}"};
    for (size_t i = 0; i < HF_COUNT(torn); i++) {
        begin();
        feed(torn[i]);
        hf_program_said_end(&said);
        assert_string_equal(h.text, "");
        assert_false(said.verdict.has_verdict);
        assert_string_equal(said.verdict.error, "");
        assert_int_equal(h.n_faults, 1);
        hf_program_said_done(&said);
    }
}

static void what_is_too_large_is_left_out_and_the_rest_counts(void **state)
{
    (void)state;
    static char line[HF_PROGRAM_SAID_MAX], fill[HF_PROGRAM_RESULT_MAX + 1];
    memset(fill, 'x', sizeof fill - 1);
    begin();
    (void)snprintf(line, sizeof line,
                   "{\"verdict\":\"done\",\"progress\":90,\"result\":\"%s\"}\n", fill);
    feed("{\"result\":1}\n");
    feed(line);
    (void)snprintf(line, sizeof line, "{\"note\":\"n\",\"checkpoint\":\"%.4097s\"}\n",
                   fill);
    feed(line);
    (void)snprintf(line, sizeof line, "{\"checkpoint\":\"%.4096s\"}\n", fill);
    feed(line);
    hf_program_said_end(&said);
    assert_true(said.verdict.has_verdict);
    assert_int_equal(said.result_len, 1); /* the earlier one */
    assert_memory_equal(h.text, "p90 nn cxxx", 11);
    assert_int_equal(h.n_faults, 2);
    hf_program_said_done(&said);
}

static void standard_output_is_the_result_if_the_lines_name_none(void **state)
{
    (void)state;
    static char much[HF_PROGRAM_RESULT_MAX + 1];
    begin();
    hf_program_said_output(&said, "a\0", 2);
    hf_program_said_output(&said, "b\n", 2);
    hf_program_said_end(&said);
    assert_int_equal(said.result_len, 4);
    assert_memory_equal(said.result, "a\0b\n", 4);
    assert_false(said.result_is_json);
    hf_program_said_done(&said);
    begin();
    hf_program_said_output(&said, much, sizeof much - 1);
    hf_program_said_output(&said, "x", 1);
    hf_program_said_end(&said);
    assert_null(said.result); /* not a part of it */
    assert_int_equal(h.n_faults, 1);
    hf_program_said_done(&said);
    begin();
    hf_program_said_output(&said, "noise", 5);
    feed("{\"result\":7}\n");
    hf_program_said_end(&said);
    assert_int_equal(said.result_len, 1);
    hf_program_said_done(&said);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_taken_when_they_are_whole),
        cmocka_unit_test(of_each_key_the_last_one_counts),
        cmocka_unit_test(a_result_is_compact_json),
        cmocka_unit_test(a_result_stays_as_it_was_written),
        cmocka_unit_test(a_checkpoint_stays_as_it_was_written),
        cmocka_unit_test(a_fault_says_what_was_expected),
        cmocka_unit_test(a_line_with_a_mistake_is_ignored_as_a_whole),
        cmocka_unit_test(a_line_that_is_too_long_is_ignored_and_told_once),
        cmocka_unit_test(at_the_end_only_a_verdict_may_lack_its_newline),
        cmocka_unit_test(what_is_too_large_is_left_out_and_the_rest_counts),
        cmocka_unit_test(standard_output_is_the_result_if_the_lines_name_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
