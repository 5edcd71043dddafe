/* `holdfast job logs`: bytes of any kind, in pieces of any size. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cli_try.h"
#include "tests/support/eventually.h"

#define EURO "\xE2\x82\xAC"

static hf_cli_fixture *const fixture = &hf_try_fixture;

/* As a worker has told it: the log of the only run, behind `from` bytes that are not
 * kept. */
static void put_log(unsigned from, const void *bytes, size_t len)
{
    char value[256];
    int head = snprintf(value, sizeof value, "1 %zu ", from + len);
    assert_true((size_t)head + len < sizeof value);
    memcpy(value + head, bytes, len);
    (void)hf_fixture_command(&fixture->redis, "HSET hf:{default}:logs a 7");
    (void)hf_fixture_command(&fixture->redis, "HSET hf:{default}:log:a 7 %b", value,
                             (size_t)head + len);
}

static void put_text(unsigned from, const char *text)
{
    put_log(from, text, strlen(text));
}

static int with_job(void **state)
{
    (void)hf_try_clean(state);
    hf_try_run("enqueue t @ --id a --in 1h", 0);
    return 0;
}

#define LINE(from, text)                                                                 \
    "{\"job\":\"a\",\"queue\":\"default\",\"attempt\":1,\"fence\":7,\"from\":" from      \
    ",\"text\":\"" text "}\n"

static void a_log_that_is_text_is_printed_as_text(void **state)
{
    (void)state;
    put_text(0, "one\ntwo " EURO "\n");
    hf_try_run("job logs a --json @", 0);
    assert_string_equal(fixture->out, LINE("0", "one\\ntwo " EURO "\\n\""));
    put_log(0, "a\0b", 3);
    hf_try_run("job logs a --json @", 0);
    assert_string_equal(fixture->out, LINE("0", "a\\u0000b\""));
}

static void other_bytes_are_printed_in_base64_as_well(void **state)
{
    (void)state;
    put_text(0, "caf\xE9 " EURO "\n");
    hf_try_run("job logs a --json @", 0);
    assert_string_equal(fixture->out,
                        LINE("0", "caf? " EURO "\\n\",\"text_base64\":\"Y2Fm6SDigqwK\""));
    put_text(0, "a\xE2\x82"); /* it ends inside a character */
    hf_try_run("job logs a --json @", 0);
    assert_string_equal(fixture->out, LINE("0", "a??\",\"text_base64\":\"YeKC\""));
    hf_try_run("job logs a @", 0);
    assert_string_equal(fixture->out, "==> attempt 1 <==\na\xE2\x82");
}

/* The first bytes of a character went with what is not kept. */
static void a_log_that_was_cut_begins_with_a_whole_character(void **state)
{
    (void)state;
    put_text(100, "\x82\xAC" EURO "\n");
    hf_try_run("job logs a --json @", 0);
    assert_string_equal(fixture->out, LINE("102", EURO "\\n\""));
    hf_try_run("job logs a @", 0);
    assert_string_equal(fixture->out, "==> attempt 1 <==\n==> 100 bytes are not kept "
                                      "<==\n\x82\xAC" EURO "\n");
}

static bool printed(const char *text)
{
    return strcmp(hf_cli_fixture_get(fixture, "followed"), text) == 0;
}

static void follow(const char *json)
{
    char out[HF_CLI_PATH];
    hf_cli_fixture_path(fixture, "followed", out);
    hf_cli_fixture_put(fixture, "followed", "");
    const char *const args[] = {fixture->command,   "job", "logs", "a", "-f", "--redis",
                                fixture->redis.url, json,  NULL};
    hf_proc_start(&hf_try_proc, &(hf_proc_options){.args = args, .out = out});
}

static void a_character_that_comes_in_two_parts_is_printed_whole(void **state)
{
    (void)state;
    put_text(0, "a\xE2");
    follow("--json");
    EVENTUALLY(10000, printed(LINE("0", "a\"")));
    put_text(0, "a\xE2\x82");
    put_text(0, "a" EURO "b\xC3");
    EVENTUALLY(10000, printed(LINE("0", "a\"") LINE("1", EURO "b\"")));
    hf_try_run("job delete a --yes @", 0); /* no rest comes */
    assert_true(hf_proc_wait(&hf_try_proc, 10000));
    assert_int_equal(hf_try_proc.status, 0);
    assert_true(printed(LINE("0", "a\"") LINE("1", EURO "b\"")
                            LINE("5", "?\",\"text_base64\":\"ww==\"")));
}

static void what_is_held_back_is_printed_before_a_gap(void **state)
{
    (void)state;
    put_text(0, "a\xE2");
    follow("--json");
    EVENTUALLY(10000, printed(LINE("0", "a\"")));
    put_text(50, "\x82\xAC"
                 "b");
    EVENTUALLY(10000, printed(LINE("0", "a\"") LINE("1", "?\",\"text_base64\":\"4g==\"")
                                  LINE("52", "b\"")));
}

static void a_text_is_followed_byte_for_byte(void **state)
{
    (void)state;
    put_text(0, "a\xE2");
    follow(NULL);
    EVENTUALLY(10000, printed("==> attempt 1 <==\na"));
    put_text(0, "a\xE2\x82\xAC\xFF");
    EVENTUALLY(10000, printed("==> attempt 1 <==\na" EURO "\xFF"));
    put_text(0, "a\xE2\x82\xAC\xFF\xC2");
    hf_try_run("job delete a --yes @", 0);
    assert_true(hf_proc_wait(&hf_try_proc, 10000));
}

/* They come later than the follower looks again. */
static void the_last_lines_of_a_job_that_ends_are_printed(void **state)
{
    (void)state;
    (void)hf_fixture_command(&fixture->redis, "HSET hf:{default}:meta uses m");
    put_text(0, "one\n");
    follow(NULL);
    EVENTUALLY(10000, printed("==> attempt 1 <==\none\n"));
    put_text(0, "one\ntwo\n");
    hf_try_run("job cancel a @", 0);
    assert_true(hf_proc_wait(&hf_try_proc, 10000));
    assert_int_equal(hf_try_proc.status, 0);
    assert_true(printed("==> attempt 1 <==\none\ntwo\n"));
    hf_try_run("doctor @", 0);
    EVENTUALLY(15000,
               hf_fixture_number(&fixture->redis, "EXISTS hf:{default}:log:a") == 0);
}

#define TEST(name) cmocka_unit_test_setup(name, with_job)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_log_that_is_text_is_printed_as_text),
        TEST(other_bytes_are_printed_in_base64_as_well),
        TEST(a_log_that_was_cut_begins_with_a_whole_character),
        TEST(a_character_that_comes_in_two_parts_is_printed_whole),
        TEST(what_is_held_back_is_printed_before_a_gap),
        TEST(a_text_is_followed_byte_for_byte),
        TEST(the_last_lines_of_a_job_that_ends_are_printed),
    };
    hf_try_up(HF_TEST_COMMAND, NULL);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_try_down();
    return failures;
}
