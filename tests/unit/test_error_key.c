/* test_error_key.c - errors that differ only in numbers and ids are of one kind. */
#include "base/error_key.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_and_ids_are_left_out),
        cmocka_unit_test(a_key_is_whole_characters_of_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
