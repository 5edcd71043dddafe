/* test_ran.c - an entry of the stream `runs`, as text. */
#include "queue/ran.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

#define HEAD "web1-4711-00c0ffee00c0ffee 1700000000123 40 2 1\n"

static hf_buf buf;

static int up(void **state)
{
    (void)state;
    hf_buf_init(&buf, HF_RAN_TEXT_MAX);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_buf_done(&buf);
    return 0;
}

static hf_reported_run run_of(hf_run_end end)
{
    return (hf_reported_run){.id = "P7aM-_.:1",
                             .type = "report.render",
                             .run = 4,
                             .slot = 12,
                             .start_ms = 1700000000000,
                             .ran_ms = 2345,
                             .end = end};
}

static void an_entry_is_written_as_the_document_says(void **state)
{
    const hf_ran_head head = {.worker = "web1-4711-00c0ffee00c0ffee",
                              .at_ms = 1700000000123,
                              .ok = 40,
                              .failed = 2,
                              .cut = 1};
    const hf_reported_run ended = run_of(HF_RUN_DONE), goes_on = run_of(HF_RUN_GOES_ON);
    (void)state;
    hf_ran_write_head(&buf, &head);
    hf_ran_write(&buf, &ended);
    hf_ran_write(&buf, &goes_on);
    assert_string_equal(buf.data,
                        HEAD "P7aM-_.:1 report.render 4 12 1700000000000 2345 d\n"
                             "P7aM-_.:1 report.render 4 12 1700000000000 - -\n");
}

static void each_end_has_its_letter_and_its_word(void **state)
{
    static const struct {
        hf_run_end end;
        char letter;
        const char *word;
    } ends[] = {{HF_RUN_DONE, 'd', "done"},
                {HF_RUN_FAILED, 'f', "failed"},
                {HF_RUN_DEAD, 'x', "dead"},
                {HF_RUN_CRASHED, 'k', "crashed"},
                {HF_RUN_CANCELLED, 'c', "cancelled"},
                {HF_RUN_RELEASED, 'b', "released"},
                {HF_RUN_LOST, 'l', "lost"}};
    (void)state;
    assert_string_equal(hf_run_end_word(HF_RUN_GOES_ON), "runs");
    assert_string_equal(hf_run_end_word((hf_run_end)99), "unknown");
    for (size_t i = 0; i < HF_COUNT(ends); i++) {
        const hf_reported_run run = run_of(ends[i].end);
        hf_reported_run read;
        hf_buf_clear(&buf);
        hf_ran_write(&buf, &run);
        assert_int_equal(buf.data[buf.len - 2], ends[i].letter);
        assert_string_equal(hf_run_end_word(ends[i].end), ends[i].word);
        const char *at = buf.data;
        assert_true(hf_ran_read(&at, &read));
        assert_int_equal(read.end, ends[i].end);
        assert_int_equal(*at, '\0');
    }
}

static void what_was_written_is_read(void **state)
{
    const char *at = HEAD "P7aM-_.:1 report.render 4 12 1700000000000 2345 x\n"
                          "other t 1 0 1 - -\n";
    hf_ran_head head;
    hf_reported_run run;
    (void)state;
    assert_true(hf_ran_read_head(&at, &head));
    assert_string_equal(head.worker, "web1-4711-00c0ffee00c0ffee");
    assert_int_equal(head.at_ms, 1700000000123);
    assert_int_equal(head.ok, 40);
    assert_int_equal(head.failed, 2);
    assert_int_equal(head.cut, 1);
    assert_true(hf_ran_read(&at, &run));
    assert_string_equal(run.id, "P7aM-_.:1");
    assert_string_equal(run.type, "report.render");
    assert_int_equal(run.run, 4);
    assert_int_equal(run.slot, 12);
    assert_int_equal(run.start_ms, 1700000000000);
    assert_int_equal(run.ran_ms, 2345);
    assert_int_equal(run.end, HF_RUN_DEAD);
    assert_true(hf_ran_read(&at, &run));
    assert_int_equal(run.end, HF_RUN_GOES_ON);
    assert_int_equal(run.ran_ms, 0);
    assert_int_equal(*at, '\0');
}

/* The reader goes on behind the line. */
static void a_line_that_is_none_is_skipped(void **state)
{
    static const char *const lines[] = {
        "",
        "id",
        "id t 1 0 1 -",
        "id t 1 0 1 - d",
        "id t 1 0 1 5 -",
        "id t 1 0 1 5 q",
        "id t 1 0 1 5 dd",
        "id t 1 0 1 5 d more",
        "id t 1 0 1 5 d ",
        "id t 4294967296 0 1 5 d",
        "id t 1 -1 1 5 d",
        "id t 1 0 253402300800000 5 d",
        "id t 1 0 1 99999999999999999999 d",
        "id t 1 0 1 0x5 d",
        "id t\t 1 0 1 5 d",
        "i/d t 1 0 1 5 d",
        " t 1 0 1 5 d",
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(lines); i++) {
        char text[128];
        const char *at = text;
        hf_reported_run run;
        (void)snprintf(text, sizeof text, "%s\nnext t 1 0 1 5 d\n", lines[i]);
        if (hf_ran_read(&at, &run))
            fail_msg("it was read: '%s'", lines[i]);
        assert_true(hf_ran_read(&at, &run));
        assert_string_equal(run.id, "next");
    }
}

static void a_head_that_is_none_is_skipped(void **state)
{
    static const char *const lines[] = {
        "", "w", "w 1 2 3", "w 1 2 3 4 5", "w 1 2 3 -4", "w/x 1 2 3 4", "w 1 2 3 4 "};
    char name[2 * HF_HOLDER_SIZE];
    (void)state;
    for (size_t i = 0; i < HF_COUNT(lines); i++) {
        const char *at = lines[i];
        hf_ran_head head;
        if (hf_ran_read_head(&at, &head))
            fail_msg("it was read: '%s'", lines[i]);
        assert_int_equal(*at, '\0');
    }
    memset(name, 'w', sizeof name);
    (void)snprintf(name + HF_HOLDER_SIZE, 16, " 1 2 3 4\n");
    const char *at = name;
    hf_ran_head head;
    assert_false(hf_ran_read_head(&at, &head));
}

/* 200 runs with the longest names. */
static void the_largest_entry_has_room(void **state)
{
    hf_reported_run run = run_of(HF_RUN_DONE);
    hf_ran_head head = {.at_ms = HF_TIME_MAX_MS,
                        .ok = INT64_MAX / 2,
                        .failed = INT64_MAX / 2,
                        .cut = INT64_MAX / 2};
    (void)state;
    memset(head.worker, 'w', sizeof head.worker - 1);
    memset(run.id, 'i', sizeof run.id - 1);
    memset(run.type, 't', sizeof run.type - 1);
    run.run = run.slot = UINT32_MAX;
    run.start_ms = run.ran_ms = HF_TIME_MAX_MS;
    hf_ran_write_head(&buf, &head);
    for (size_t i = 0; i < HF_RAN_MAX; i++)
        hf_ran_write(&buf, &run);
    assert_int_equal(hf_buf_err(&buf), HF_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_entry_is_written_as_the_document_says, up,
                                        down),
        cmocka_unit_test_setup_teardown(each_end_has_its_letter_and_its_word, up, down),
        cmocka_unit_test(what_was_written_is_read),
        cmocka_unit_test(a_line_that_is_none_is_skipped),
        cmocka_unit_test(a_head_that_is_none_is_skipped),
        cmocka_unit_test_setup_teardown(the_largest_entry_has_room, up, down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
