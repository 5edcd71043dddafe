/* test_mask.c - no login of anything that may be a URL is printed. */
#include "base/mask.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

static char *masked(const char *text)
{
    char *copy = strdup(text);
    assert_non_null(copy);
    hf_mask(copy);
    return copy;
}

static void the_login_of_a_url_is_hidden(void **state)
{
    static const char *const cases[][2] = {
        {"found 'redis://:S3cret@h'", "found 'redis://***@h'"},
        {"found 'redis://me:S3cret@h:1/2' (no)", "found 'redis://***@h:1/2' (no)"},
        {"at rediss+sentinel://me:S3cret@h,i:2/m: no",
         "at rediss+sentinel://***@h,i:2/m: no"},
        {"http://me:S3cret@h", "http://***@h"},
        {"redis://S3cret@h", "redis://***@h"},
        {"redis://:S3@cr:e/t%@h", "redis://***@h"},
        {"unix://:S3cret@/run/r.sock?db=1", "unix://***@/run/r.sock?db=1"},
        {"redis://:S3 cret'S3cret@h", "redis://***@h"},
        {"redis://h?password=S3cret", "redis://***"},
        {"found 'redis://h#S3cret' again", "found 'redis://***' again"},
        {"redis://:x@h", "redis://**@h"},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        char *text = masked(cases[i][0]);
        assert_string_equal(text, cases[i][1]);
        free(text);
    }
}

static void what_was_to_be_a_url_is_hidden_too(void **state)
{
    static const char *const cases[] = {
        "rediss:/me:S3cret@h",
        "redis//me:S3cret@h",
        "redis:/:S3cret@h",
        "redis:me:S3cret@h",
        "me:S3cret@h:6379",
        ":S3cret@h",
        "found 'me:S3cret@h'",
        "redis://:S3cret",
        "redis://me:S3cret",
        "found 'redis://me:S3cre'",
        "rediss:/:S3cret",
        "redis::S3cret",
        "redis://me:S3cret%40h",
        "me:S3cret%40h",
        "redis://:12345S3cret",
        "redis:///S3cret:S3cret@h",
        "a redis:me:S3cret b",
        "redis://[bad:S3cret",
        "rediss+sentinel:/me:S3cret@h",
        "redis://h:1,:S3cret@i:2",
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        char *text = masked(cases[i]);
        assert_null(strstr(text, "S3cr"));
        free(text);
    }
}

static void what_has_no_login_stays(void **state)
{
    static const char *const cases[] = {
        "a.yaml:3:4: expected a mapping, found 'x'",
        "redis://localhost:6379/0, rediss://[::1]:6379 and unix:///run/r.sock?db=2",
        "redis+sentinel://a:1,b:2/master/1",
        "redis+cluster://a,b:7000",
        "expected redis://, rediss://, unix://, redis+sentinel:// or redis+cluster://",
        "2030-01-31T08:00:00Z or @SECONDS",
        "redis: expected a mapping",
        "redis:6379 redis.url redis: unix:",
        "mail to me@example.com",
        "a:b c@d",
        "ERR script: f_1a2b, on @user_script:12.",
        "",
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        char *text = masked(cases[i]);
        assert_string_equal(text, cases[i]);
        free(text);
    }
}

static void a_value_is_masked_before_it_is_cut(void **state)
{
    char text[400], cut[HF_FOUND_SIZE];
    (void)state;
    snprintf(text, sizeof text, "me:%0200d@h", 7);
    assert_string_equal(HF_FOUND(text), "***@h");
    assert_string_equal(HF_FOUND("me:my S3cret's end@h"), "***@h");
    assert_string_equal(HF_FOUND("emails:send"), "emails:send");
    memset(text, 'a', 200);
    memcpy(text + 79, "\xc3\xa4", 3);
    memset(text + 81, 'b', 20);
    text[101] = '\0';
    assert_string_equal(hf_found(cut, text) + 79, "...");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_login_of_a_url_is_hidden),
        cmocka_unit_test(what_was_to_be_a_url_is_hidden_too),
        cmocka_unit_test(what_has_no_login_stays),
        cmocka_unit_test(a_value_is_masked_before_it_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
