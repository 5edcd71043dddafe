/* test_buf.c - bytes that grow up to a maximum. */
#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void what_is_appended_stays_in_its_order(void **state)
{
    (void)state;
    hf_buf buf;
    hf_buf_init(&buf, 1000);
    assert_null(buf.data);
    hf_buf_text(&buf, "one ");
    hf_buf_add(&buf, "t\0o", 3);
    hf_buf_printf(&buf, " %d", 3);
    assert_int_equal(hf_buf_err(&buf), HF_OK);
    assert_int_equal(buf.len, 9);
    assert_memory_equal(buf.data, "one t\0o 3", 10); /* with the NUL behind it */
    hf_buf_done(&buf);
    assert_null(buf.data);
}

static void it_grows_to_its_maximum_and_not_beyond(void **state)
{
    (void)state;
    hf_buf buf;
    hf_buf_init(&buf, 300);
    for (int i = 0; i < 300; i++)
        hf_buf_add(&buf, "x", 1);
    assert_int_equal(hf_buf_err(&buf), HF_OK);
    assert_int_equal(buf.len, 300);
    hf_buf_add(&buf, "y", 1);
    assert_int_equal(hf_buf_err(&buf), HF_TOOBIG);
    assert_int_equal(buf.len, 300);
    assert_int_equal(buf.data[299], 'x');
    assert_int_equal(buf.data[300], '\0');
    hf_buf_done(&buf);
}

static void a_failure_is_remembered_and_later_appends_do_nothing(void **state)
{
    (void)state;
    hf_buf buf;
    hf_buf_init(&buf, 4);
    hf_buf_text(&buf, "ab");
    hf_buf_printf(&buf, "%s", "too long");
    hf_buf_text(&buf, "c");
    assert_int_equal(hf_buf_err(&buf), HF_TOOBIG);
    assert_string_equal(buf.data, "ab");
    hf_buf_clear(&buf);
    assert_int_equal(hf_buf_err(&buf), HF_OK);
    assert_string_equal(buf.data, "");
    hf_buf_text(&buf, "abcd");
    assert_int_equal(hf_buf_err(&buf), HF_OK);
    hf_buf_done(&buf);
}

static void a_length_that_overflows_is_too_big(void **state)
{
    (void)state;
    hf_buf buf;
    hf_buf_init(&buf, 100);
    hf_buf_text(&buf, "abc");
    hf_buf_add(&buf, "", SIZE_MAX);
    assert_int_equal(hf_buf_err(&buf), HF_TOOBIG);
    assert_string_equal(buf.data, "abc");
    hf_buf_done(&buf);
}

static void nothing_can_be_appended(void **state)
{
    (void)state;
    hf_buf buf;
    hf_buf_init(&buf, 10);
    hf_buf_add(&buf, NULL, 0);
    assert_int_equal(hf_buf_err(&buf), HF_OK);
    assert_string_equal(buf.data, "");
    hf_buf_done(&buf);
}

static void the_first_bytes_can_be_cut_off(void **state)
{
    (void)state;
    hf_buf buf;
    hf_buf_init(&buf, 100);
    hf_buf_cut(&buf, 0);
    hf_buf_text(&buf, "abcdef");
    hf_buf_cut(&buf, 2);
    assert_string_equal(buf.data, "cdef");
    assert_int_equal(buf.len, 4);
    hf_buf_cut(&buf, 4);
    assert_string_equal(buf.data, "");
    hf_buf_text(&buf, "g");
    assert_string_equal(buf.data, "g");
    hf_buf_done(&buf);
}

static void room_is_taken_as_far_as_it_was_used(void **state)
{
    (void)state;
    hf_buf buf;
    hf_buf_init(&buf, 100);
    char *room = hf_buf_room(&buf, 50);
    assert_non_null(room);
    memset(room, 'a', 3);
    hf_buf_took(&buf, 3);
    assert_string_equal(buf.data, "aaa");
    assert_null(hf_buf_room(&buf, 98));
    assert_int_equal(hf_buf_err(&buf), HF_TOOBIG);
    hf_buf_done(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_appended_stays_in_its_order),
        cmocka_unit_test(it_grows_to_its_maximum_and_not_beyond),
        cmocka_unit_test(a_failure_is_remembered_and_later_appends_do_nothing),
        cmocka_unit_test(a_length_that_overflows_is_too_big),
        cmocka_unit_test(nothing_can_be_appended),
        cmocka_unit_test(the_first_bytes_can_be_cut_off),
        cmocka_unit_test(room_is_taken_as_far_as_it_was_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
