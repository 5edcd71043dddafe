/* `holdfast cron` as people and scripts meet it. */
#include <stdio.h>
#include <string.h>

#include "tests/support/cli_try.h"
#include "tests/support/eventually.h"

static hf_cli_fixture *const fixture = &hf_try_fixture;

static int run_with(const char *line, const char *input)
{
    return hf_cli_fixture_run(fixture, line, input, NULL);
}

/* ---- add ---- */

static void a_payload_comes_from_standard_input(void **state)
{
    (void)state;
    assert_int_equal(run_with("cron add s t - --every 1h @", "two\nlines\n"), 0);
    hf_try_run("cron show s --payload @", 0);
    assert_string_equal(fixture->out, "two\nlines\n");
    assert_int_equal(run_with("cron add s t - --every 1h @", ""), 0);
    hf_try_run("cron show s --payload @", 0);
    assert_string_equal(fixture->out, "");
    hf_try_run("cron add s t text --every 1h @", 0);
    hf_try_run("cron show s --payload @", 0);
    assert_string_equal(fixture->out, "text");
}

static void a_payload_has_the_bound_of_the_configuration(void **state)
{
    (void)state;
    static const char *const lines[] = {"cron add s t - --every 1h @ -c small.yaml",
                                        "cron add s t 12345 --every 1h @ -c small.yaml"};
    hf_cli_fixture_put(fixture, "small.yaml", "limits: {payload: 4}\n");
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(run_with(lines[i], "12345"), 65);
        hf_try_has(fixture->err, "expected a payload of at most 4 bytes, found more");
    }
    assert_string_equal(hf_fixture_command(&fixture->redis, "KEYS *"), "");
    assert_int_equal(run_with(lines[0], "1234"), 0);
}

#define TEST(name) cmocka_unit_test_setup(name, hf_try_clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_payload_comes_from_standard_input),
        TEST(a_payload_has_the_bound_of_the_configuration),
    };
    hf_try_up(HF_TEST_COMMAND, NULL);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_try_down();
    return failures;
}
