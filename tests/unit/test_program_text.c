/* test_program_text.c - what is made of a program's output, of its verdict line and of
 * the way it ended. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/eventually.h"

#include "base/base.h"
#include "base/random.h"
#include "worker/program/env.h"
#include "worker/program/output.h"
#include "worker/program/verdict.h"

typedef struct told {
    char text[2][HF_PROGRAM_OUTPUT_MAX +
                 1]; /* the lines of stdout and stderr, joined by \n */
    size_t len[2], longest;
    char left_out[64];
} told;

static void on_line(int stream, const char *text, size_t len, void *arg)
{
    told *t = arg;
    assert_int_equal(strlen(text), len);
    if (stream == 0) {
        snprintf(t->left_out, sizeof t->left_out, "%s", text);
        return;
    }
    t->longest = len > t->longest ? len : t->longest;
    char *at = t->text[stream - 1] + t->len[stream - 1];
    assert_true(t->len[stream - 1] + len + 1 <= HF_PROGRAM_OUTPUT_MAX);
    snprintf(at, len + 2, "%s\n", text);
    t->len[stream - 1] += len + 1;
}

static void lines_are_the_same_in_any_pieces(void **state)
{
    (void)state;
    static const char text[] = "one\n\ntwo three\nfour\nfive\n";
    for (size_t step = 1; step <= sizeof text; step++) {
        static told t;
        hf_program_output output;
        t = (told){.longest = 0};
        hf_program_output_init(&output, on_line, &t);
        for (size_t at = 0; at < sizeof text - 1; at += step) {
            size_t left = sizeof text - 1 - at;
            hf_program_output_feed(&output, 1, text + at, left < step ? left : step);
            hf_program_output_feed(&output, 2, text + at, left < step ? left : step);
        }
        hf_program_output_end(&output);
        assert_string_equal(t.text[0], text);
        assert_string_equal(t.text[1], text);
        assert_string_equal(t.left_out, "");
    }
}

static void a_line_of_the_greatest_length_is_one_line(void **state)
{
    (void)state;
    static const struct {
        size_t len, lines;
    } cases[] = {{HF_PROGRAM_LINE_MAX - 1, 1},
                 {HF_PROGRAM_LINE_MAX, 1},
                 {HF_PROGRAM_LINE_MAX + 1, 2},
                 {2 * HF_PROGRAM_LINE_MAX, 2}};
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        static char text[2 * HF_PROGRAM_LINE_MAX + 2];
        static told t;
        hf_program_output output;
        t = (told){.longest = 0};
        memset(text, 'x', cases[i].len);
        text[cases[i].len] = '\n';
        hf_program_output_init(&output, on_line, &t);
        hf_program_output_feed(&output, 1, text, cases[i].len + 1);
        hf_program_output_end(&output);
        assert_int_equal(t.len[0], cases[i].len + cases[i].lines);
        assert_true(t.longest <= HF_PROGRAM_LINE_MAX);
    }
}

static void a_line_is_not_split_inside_a_character(void **state)
{
    (void)state;
    for (size_t shift = 0; shift < 3; shift++) {
        static told t;
        hf_program_output output;
        t = (told){.longest = 0};
        hf_program_output_init(&output, on_line, &t);
        hf_program_output_feed(&output, 1, "ab", shift);
        for (size_t n = 0; n < 3000; n++)
            hf_program_output_feed(&output, 1, "\xe2\x82\xac", 3); /* a euro sign */
        hf_program_output_end(&output);
        assert_int_equal(t.len[0], shift + 3 * 3000 + 3);
        for (size_t at = shift; at < t.len[0]; at += t.text[0][at] == '\n' ? 1 : 3)
            if (t.text[0][at] != '\n')
                assert_memory_equal(t.text[0] + at, "\xe2\x82\xac", 3);
    }
}

static void what_is_past_the_limit_is_counted_to_the_byte(void **state)
{
    (void)state;
    static told t;
    hf_program_output output;
    hf_rng rng = {.state = 3};
    uint64_t fed = 0;
    t = (told){.longest = 0};
    hf_program_output_init(&output, on_line, &t);
    for (int i = 0; i < 2000; i++) {
        char piece[300];
        size_t len = hf_rng_next(&rng) % sizeof piece;
        memset(piece, 'y', sizeof piece);
        if (len > 0)
            piece[len - 1] = '\n';
        hf_program_output_feed(&output, 1 + i % 2, piece, len);
        fed += len;
    }
    hf_program_output_end(&output);
    uint64_t left_out = strtoull(t.left_out, NULL, 10);
    assert_int_equal(t.len[0] + t.len[1] + left_out, fed);
    assert_true(t.len[0] + t.len[1] > HF_PROGRAM_OUTPUT_MAX - 2 * HF_PROGRAM_LINE_MAX);
}

static void the_error_is_the_end_of_stderr(void **state)
{
    (void)state;
    static const struct {
        size_t before; /* bytes in front */
        const char *text, *error;
    } cases[] = {{0, "", ""},
                 {0, " \n\n", ""},
                 {0, "why\n", "why"},
                 {9999, "\nwhy\n", "\nwhy"},
                 {HF_PROGRAM_ERROR_MAX - 4, "why\n", "why"}};
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        char error[HF_PROGRAM_ERROR_MAX + 1];
        hf_program_output output;
        hf_program_output_init(&output, NULL, NULL);
        hf_program_output_feed(&output, 1, "noise\n", 6);
        for (size_t n = 0; n < cases[i].before; n++)
            hf_program_output_feed(&output, 2, "z", 1);
        hf_program_output_feed(&output, 2, cases[i].text, strlen(cases[i].text));
        size_t len = hf_program_output_error(&output, error);
        assert_int_equal(len, strlen(error));
        size_t end = strlen(cases[i].error);
        assert_true(len >= end);
        assert_string_equal(error + len - end, cases[i].error);
    }
}

static void the_error_does_not_begin_inside_a_character(void **state)
{
    (void)state;
    for (size_t shift = 0; shift < 3; shift++) {
        char error[HF_PROGRAM_ERROR_MAX + 1];
        hf_program_output output;
        hf_program_output_init(&output, NULL, NULL);
        for (size_t n = 0; n < 2000; n++)
            hf_program_output_feed(&output, 2, "\xe2\x82\xac", 3); /* a euro sign */
        hf_program_output_feed(&output, 2, "abc", shift);
        hf_program_output_feed(&output, 2, "\0", 1);
        hf_program_output_feed(&output, 2, "x", 1);
        size_t len = hf_program_output_error(&output, error);
        assert_int_equal(strlen(error), len); /* the NUL became a blank */
        assert_memory_equal(error, "\xe2\x82\xac", 3);
    }
}

static void a_long_error_is_cut(void **state)
{
    (void)state;
    char out[HF_PROGRAM_ERROR_MAX + 1];
    hf_verdict_line line = {.has_verdict = false};
    memset(line.error, 'e', sizeof line.error - 1);
    hf_program_result result = {.error = NULL};
    hf_program_end_state end = {.by_signal = true, .status = 9, .stderr_end = ""};
    hf_program_verdict_decide(&result, &end, &line, out);
    assert_int_equal(strlen(result.error), HF_PROGRAM_ERROR_MAX);
    assert_memory_equal(result.error, "killed by signal 9: eee", 23);
}

static void a_time_out_is_retry_after_any_verdict(void **state)
{
    (void)state;
    char out[HF_PROGRAM_ERROR_MAX + 1];
    const hf_verdict_line line = {.has_verdict = true, .verdict = HF_VERDICT_DONE};
    hf_program_result result = {.error = NULL};
    hf_program_end_state end = {
        .timed_out = true, .status = 0, .timeout_ms = 30000, .stderr_end = "busy"};
    hf_program_verdict_decide(&result, &end, &line, out);
    assert_int_equal(result.verdict, HF_VERDICT_RETRY);
    assert_string_equal(result.error, "time-out after 30s: busy");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_the_same_in_any_pieces),
        cmocka_unit_test(a_line_of_the_greatest_length_is_one_line),
        cmocka_unit_test(a_line_is_not_split_inside_a_character),
        cmocka_unit_test(what_is_past_the_limit_is_counted_to_the_byte),
        cmocka_unit_test(the_error_is_the_end_of_stderr),
        cmocka_unit_test(the_error_does_not_begin_inside_a_character),
        cmocka_unit_test(a_long_error_is_cut),
        cmocka_unit_test(a_time_out_is_retry_after_any_verdict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
