/* test_target.c - the address of a request: what is one, and what it says. */
#include "dashboard/target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

static void segments_and_parameters_are_decoded(void **state)
{
    hf_http_target t;
    (void)state;
    assert_true(hf_target_read(&t, "/api/v1/find?q=a%2Fb+c&after=%e2%82%ac", ""));
    assert_int_equal(t.n_segments, 3);
    assert_string_equal(t.segments[2], "find");
    assert_string_equal(hf_target_param(&t, "q"), "a/b c");
    assert_string_equal(hf_target_param(&t, "after"), "\xe2\x82\xac");
    assert_null(hf_target_param(&t, "Q"));
    hf_target_done(&t);
    assert_true(hf_target_read(&t, "/lock%2fname/a+b/", "")); /* a path keeps its plus */
    assert_int_equal(t.n_segments, 2);
    assert_string_equal(t.segments[0], "lock/name");
    assert_string_equal(t.segments[1], "a+b");
    hf_target_done(&t);
    assert_true(hf_target_read(&t, "/", ""));
    assert_int_equal(t.n_segments, 0);
    hf_target_done(&t);
}

static void a_prefix_is_left_out_as_a_whole(void **state)
{
    static const char *const addresses[] = {"/a/b/jobs", "/jobs"};
    hf_http_target t;
    (void)state;
    for (size_t i = 0; i < HF_COUNT(addresses); i++) {
        assert_true(hf_target_read(&t, addresses[i], "/a/b"));
        assert_int_equal(t.n_segments, 1);
        assert_string_equal(t.segments[0], "jobs");
        hf_target_done(&t);
    }
    assert_true(hf_target_read(&t, "/a/by", "/a/b"));
    assert_int_equal(t.n_segments, 2);
    hf_target_done(&t);
}

static void what_is_no_address_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "api",
        "http://x/",
        "/a//b",
        "/%00",
        "/a/%00x",
        "/%0a",
        "/%7f",
        "/..",
        "/a/../b",
        "/%2e%2e/a",
        "/.",
        "/%",
        "/%4",
        "/%zz",
        "/%ff",
        "/%e2%80%ae",
        "/?a",
        "/?a=%00",
        "/?%00=a",
        "/?a=%0d",
        "/a?b=c&d",
        "/%c0%ae%c0%ae",
        "/a?b=%ed%a0%80",
        "/1/2/3/4/5/6/7/8/9",
        "/?a=1&b=2&c=3&d=4&e=5&f=6&g=7&h=8&i=9&j=10&k=11&l=12&m=13"};
    hf_http_target t;
    (void)state;
    for (size_t i = 0; i < HF_COUNT(bad); i++) {
        if (hf_target_read(&t, bad[i], ""))
            fail_msg("'%s' was read", bad[i]);
        hf_target_done(&t);
    }
}

static void numbers_and_durations_have_bounds(void **state)
{
    hf_http_target t;
    int64_t n;
    (void)state;
    assert_true(hf_target_read(&t, "/?low=0&high=201&odd=1x&since=1h&no=0s&bad=1y", ""));
    assert_false(hf_target_number(&t, "low", 1, 200, 50, &n));
    assert_false(hf_target_number(&t, "high", 1, 200, 50, &n));
    assert_false(hf_target_number(&t, "odd", 1, 200, 50, &n));
    assert_true(hf_target_number(&t, "high", 1, 201, 50, &n));
    assert_int_equal(n, 201);
    assert_true(hf_target_number(&t, "none", 1, 200, 50, &n));
    assert_int_equal(n, 50);
    assert_true(hf_target_duration(&t, "since", 0, &n));
    assert_int_equal(n, 3600000);
    assert_false(hf_target_duration(&t, "no", 0, &n));
    assert_false(hf_target_duration(&t, "bad", 0, &n));
    hf_target_done(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_and_parameters_are_decoded),
        cmocka_unit_test(a_prefix_is_left_out_as_a_whole),
        cmocka_unit_test(what_is_no_address_is_refused),
        cmocka_unit_test(numbers_and_durations_have_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
