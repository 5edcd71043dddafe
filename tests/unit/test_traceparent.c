/* test_traceparent.c - what is a traceparent, and how it stands in an object. */
#include "base/traceparent.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN "00f067aa0ba902b7"
#define GOOD "00-" TRACE "-" SPAN "-01"

static void it_is_read_and_written(void **state)
{
    static const struct {
        const char *text, *again;
    } good[] = {
        {GOOD, GOOD},
        {"00-" TRACE "-" SPAN "-00", "00-" TRACE "-" SPAN "-00"},
        {"00-" TRACE "-" SPAN "-03", GOOD},      /* flags that this version knows */
        {"01-" TRACE "-" SPAN "-01-more", GOOD}, /* a later version */
        {"cc-" TRACE "-" SPAN "-01", GOOD},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(good); i++) {
        hf_traceparent found;
        char text[HF_TRACEPARENT_SIZE];
        assert_true(hf_traceparent_read(good[i].text, strlen(good[i].text), &found));
        hf_traceparent_write(&found, text);
        assert_string_equal(text, good[i].again);
    }
}

static void what_is_none_is_ignored(void **state)
{
    static const char *const bad[] = {
        "",
        "00",
        "00-" TRACE "-" SPAN "-0",
        "00-" TRACE "-" SPAN "-01-more",
        "00-" TRACE "-" SPAN "-011",
        "01-" TRACE "-" SPAN "-011",
        "ff-" TRACE "-" SPAN "-01",
        "0g-" TRACE "-" SPAN "-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-" SPAN "-01",
        "00-00000000000000000000000000000000-" SPAN "-01",
        "00-" TRACE "-0000000000000000-01",
        "00_" TRACE "-" SPAN "-01",
        "00-" TRACE "_" SPAN "-01",
        "00-" TRACE "-" SPAN "_01",
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(bad); i++) {
        hf_traceparent found;
        if (hf_traceparent_read(bad[i], strlen(bad[i]), &found))
            fail_msg("'%s' is none", bad[i]);
    }
}

static void it_is_found_in_an_object(void **state)
{
    static const char *const with[] = {
        "{\"traceparent\":\"" GOOD "\"}",
        " { \"a\" : \"traceparent\" , \"traceparent\" : \"" GOOD "\" } "};
    static const char *const without[] = {"",
                                          "{}",
                                          "{\"a\":\"b\"}",
                                          "{\"traceparent\":\"\"}",
                                          "{\"traceparent\":7}",
                                          "{\"a\":\"" GOOD "\"}"};
    hf_traceparent found;
    char text[HF_TRACEPARENT_SIZE];
    (void)state;
    for (size_t i = 0; i < HF_COUNT(with); i++) {
        assert_true(hf_traceparent_find(with[i], strlen(with[i]), &found));
        hf_traceparent_write(&found, text);
        assert_string_equal(text, GOOD);
    }
    for (size_t i = 0; i < HF_COUNT(without); i++)
        assert_false(hf_traceparent_find(without[i], strlen(without[i]), &found));
}

static void it_is_put_into_an_object(void **state)
{
    static const struct {
        const char *before, *after;
    } objects[] = {
        {"", "{\"traceparent\":\"" GOOD "\"}"},
        {"{}", "{\"traceparent\":\"" GOOD "\"}"},
        {"{ \"a\" : \"b, c\" }", "{\"traceparent\":\"" GOOD "\",\"a\":\"b, c\"}"},
        {"{\"a\":\"1\",\"traceparent\":\"x\",\"b\":\"2\"}",
         "{\"traceparent\":\"" GOOD "\",\"a\":\"1\",\"b\":\"2\"}"},
    };
    char out[256];
    (void)state;
    for (size_t i = 0; i < HF_COUNT(objects); i++) {
        const char *before = objects[i].before;
        size_t len = strlen(objects[i].after);
        assert_int_equal(
            hf_traceparent_put(before, strlen(before), GOOD, out, sizeof out), len);
        assert_string_equal(out, objects[i].after);
        assert_int_equal(hf_traceparent_put(before, strlen(before), GOOD, out, len + 1),
                         len);
        assert_int_equal(hf_traceparent_put(before, strlen(before), GOOD, out, len), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_read_and_written),
        cmocka_unit_test(what_is_none_is_ignored),
        cmocka_unit_test(it_is_found_in_an_object),
        cmocka_unit_test(it_is_put_into_an_object),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
