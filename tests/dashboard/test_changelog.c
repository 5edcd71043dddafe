/* test_changelog.c - the changes that were made: the last 100, the newest first. */
#include "dashboard/changelog.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"

static const char *text_of(const json_t *list, size_t i, const char *name)
{
    return json_string_value(json_object_get(json_array_get(list, i), name));
}

static void the_last_hundred_are_kept(void **state)
{
    (void)state;
    hf_changelog *log = hf_changelog_open();
    assert_non_null(log);
    for (unsigned i = 0; i < HF_CHANGELOG_KEPT + 7; i++) {
        hf_changelog_entry change = {.by = "ada",
                                     .role = "change",
                                     .what = "pause",
                                     .result = "done",
                                     .status = 200};
        (void)snprintf(change.of, sizeof change.of, "q%u", i);
        hf_changelog_add(log, &change);
    }
    json_t *list = hf_changelog_objects(log, 60000);
    assert_int_equal(json_array_size(list), HF_CHANGELOG_KEPT);
    assert_string_equal(text_of(list, 0, "of"), "q106");
    assert_string_equal(text_of(list, HF_CHANGELOG_KEPT - 1, "of"), "q7");
    assert_string_equal(text_of(list, 0, "by"), "ada");
    assert_string_equal(text_of(list, 0, "result"), "done");
    const int64_t at_ms =
        json_integer_value(json_object_get(json_array_get(list, 0), "at_ms"));
    assert_true(at_ms > hf_wall_ms() && at_ms <= hf_wall_ms() + 60000);
    json_decref(list);
    hf_changelog_close(log);
}

static void a_text_cannot_forge_a_line(void **state)
{
    (void)state;
    hf_changelog *log = hf_changelog_open();
    const hf_changelog_entry change = {.by = "a\nb",
                                       .role = "change",
                                       .what = "purge",
                                       .of = "q\x1b[2J",
                                       .result = "no\r\nline",
                                       .status = 409};
    hf_changelog_add(log, &change);
    json_t *list = hf_changelog_objects(log, 0);
    assert_string_equal(text_of(list, 0, "by"), "a b");
    assert_string_equal(text_of(list, 0, "of"), "q [2J");
    assert_string_equal(text_of(list, 0, "result"), "no  line");
    json_decref(list);
    hf_changelog_close(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_hundred_are_kept),
        cmocka_unit_test(a_text_cannot_forge_a_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
