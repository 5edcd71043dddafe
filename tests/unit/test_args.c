/* The command line: valid and refused arguments, the messages, and that a password does
 * not stay where others can read it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args.h"
#include "cli/limits.h"
#include "tests/support/eventually.h"

enum { WORDS = 16 };

static const hf_opt one_opts[] = {
    {.name = "queue", .letter = 'q', .kind = HF_OPT_TEXT, .value = "Q", .many = true},
    {.name = "count",
     .letter = 'n',
     .kind = HF_OPT_INT,
     .value = "N",
     .min = 1,
     .max = 9},
    {.name = "in", .kind = HF_OPT_DURATION, .value = "D", .max = HF_DAY_MS},
    {.name = "at", .kind = HF_OPT_TIME, .value = "T"},
    {.name = "state", .kind = HF_OPT_CHOICE, .value = "S", .choices = "ready|dead"},
    {.name = "fast", .also = "quick|quickly", .letter = 'f'},
    {.name = "exact", .letter = 'e'},
    {.name = NULL},
};
static const hf_command commands[] = {
    {.name = "one",
     .operands = "A [B]",
     .min_operands = 1,
     .max_operands = 2,
     .opts = one_opts},
    {.name = "two list", .operands = ""},
    {.name = "two show", .operands = "[X]", .max_operands = 1},
    {.name = "hold run",
     .also = "hold",
     .operands = "NAME [--] COMMAND...",
     .min_operands = 2,
     .max_operands = 9,
     .opts = one_opts,
     .program = true},
    {.name = "hold list", .also = "holds", .operands = ""},
    {.name = "hold show",
     .also = "holds show",
     .operands = "NAME",
     .min_operands = 1,
     .max_operands = 1},
    {.name = "serve run", .also = "serve", .operands = "", .opts = one_opts},
    {.name = "serve list", .also = "serves", .operands = ""},
    {.name = NULL},
};

/* Splits a line at its spaces and reads it; "holdfast" is put in front. */
typedef struct line {
    char text[256];
    char *argv[WORDS + 1];
    hf_argv args;
    hf_err err;
    char detail[HF_ARGV_DETAIL_SIZE];
} line;

static void read_line(line *l, const char *text)
{
    int argc = 1;
    memset(l, 0, sizeof *l);
    strncpy(l->text, text, sizeof l->text - 1);
    l->argv[0] = l->text + sizeof l->text - 1; /* an empty word */
    char *rest = l->text;
    for (char *word; (word = strtok_r(rest, " ", &rest)) != NULL && argc < WORDS;)
        l->argv[argc++] = word;
    l->err = hf_argv_parse(&l->args, commands, argc, l->argv, l->detail);
}

static void assert_refused(const char *text, const char *wanted)
{
    line l;
    read_line(&l, text);
    assert_int_equal(l.err, HF_INVALID);
    assert_string_equal(l.detail, wanted);
    hf_argv_done(&l.args);
}

static void options_and_operands_may_stand_in_any_order(void **state)
{
    (void)state;
    line l;
    read_line(&l, "--json one a -n 3 b --queue x -qy --fast");
    assert_int_equal(l.err, HF_OK);
    assert_string_equal(l.args.command->name, "one");
    assert_string_equal(hf_argv_operand(&l.args, 0), "a");
    assert_string_equal(hf_argv_operand(&l.args, 1), "b");
    assert_null(hf_argv_operand(&l.args, 2));
    assert_int_equal(hf_argv_number(&l.args, "count", -1), 3);
    assert_int_equal(hf_argv_count(&l.args, "queue"), 2);
    assert_string_equal(hf_argv_nth(&l.args, "queue", 0), "x");
    assert_string_equal(hf_argv_nth(&l.args, "queue", 1), "y");
    assert_true(hf_argv_has(&l.args, "fast"));
    assert_true(hf_argv_has(&l.args, "json"));
    assert_false(hf_argv_has(&l.args, "in"));
    assert_int_equal(hf_argv_number(&l.args, "in", -1), -1);
    hf_argv_done(&l.args);
}

static void letters_without_a_value_may_be_joined(void **state)
{
    (void)state;
    line l;
    read_line(&l, "one -fen3 a");
    assert_int_equal(l.err, HF_OK);
    assert_true(hf_argv_has(&l.args, "fast"));
    assert_true(hf_argv_has(&l.args, "exact"));
    assert_int_equal(hf_argv_number(&l.args, "count", -1), 3);
    assert_string_equal(hf_argv_operand(&l.args, 0), "a");
    hf_argv_done(&l.args);
    read_line(&l, "one -en 3 a");
    assert_int_equal(l.err, HF_OK);
    assert_int_equal(hf_argv_number(&l.args, "count", -1), 3);
    hf_argv_done(&l.args);
    assert_refused("one -fx a", "expected an option of 'one', found '-x'");
    assert_refused("one -ff a", "--fast: expected it once, found it again");
    assert_refused("one a -fn", "--count: missing N (usage: --count N)");
}

static void an_option_may_have_other_names(void **state)
{
    static const char *const lines[] = {"one --fast a", "one --quick a",
                                        "one --quickly a"};
    (void)state;
    line l;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        read_line(&l, lines[i]);
        assert_int_equal(l.err, HF_OK);
        assert_true(hf_argv_has(&l.args, "fast"));
        hf_argv_done(&l.args);
    }
    assert_refused("one --quic a", "expected an option of 'one', found '--quic'");
    assert_refused("one --quick| a", "expected an option of 'one', found '--quick|'");
    assert_refused("one --quick -f a", "--fast: expected it once, found it again");
}

static void values_are_read_by_their_kind(void **state)
{
    (void)state;
    line l;
    read_line(&l, "one a --in=90s --at @12.5 --state dead --redis=redis://h");
    assert_int_equal(l.err, HF_OK);
    assert_int_equal(hf_argv_number(&l.args, "in", 0), 90000);
    assert_int_equal(hf_argv_number(&l.args, "at", 0), 12500);
    assert_int_equal(hf_argv_number(&l.args, "state", -1), 1);
    assert_string_equal(hf_argv_text(&l.args, "redis"), "redis://h");
    hf_argv_done(&l.args);
}

static void a_dash_alone_and_all_after_two_dashes_are_operands(void **state)
{
    (void)state;
    line l;
    read_line(&l, "one -");
    assert_int_equal(l.err, HF_OK);
    assert_string_equal(hf_argv_operand(&l.args, 0), "-");
    hf_argv_done(&l.args);
    read_line(&l, "one -- --fast -x");
    assert_int_equal(l.err, HF_OK);
    assert_string_equal(hf_argv_operand(&l.args, 0), "--fast");
    assert_string_equal(hf_argv_operand(&l.args, 1), "-x");
    assert_false(hf_argv_has(&l.args, "fast"));
    hf_argv_done(&l.args);
}

static void
a_command_of_two_words_is_found_and_its_first_word_alone_is_a_group(void **state)
{
    (void)state;
    line l;
    read_line(&l, "two --json show x");
    assert_int_equal(l.err, HF_OK);
    assert_string_equal(l.args.command->name, "two show");
    hf_argv_done(&l.args);
    read_line(&l, "two");
    assert_int_equal(l.err, HF_OK);
    assert_null(l.args.command);
    assert_string_equal(l.args.group, "two");
    hf_argv_done(&l.args);
    read_line(&l, "");
    assert_int_equal(l.err, HF_OK);
    assert_null(l.args.command);
    assert_null(l.args.group);
    hf_argv_done(&l.args);
}

/* "COMMAND: OPERANDS", or what is refused. */
static void assert_read(const char *text, const char *wanted)
{
    line l;
    char got[HF_ARGV_DETAIL_SIZE] = "";
    read_line(&l, text);
    if (l.err == HF_OK && l.args.command != NULL) {
        (void)snprintf(got, sizeof got, "%s:", l.args.command->name);
        for (size_t i = 0; i < l.args.n_operands; i++)
            (void)snprintf(got + strlen(got), sizeof got - strlen(got), " %s",
                           l.args.operands[i]);
    }
    if (strcmp(l.err == HF_OK ? got : l.detail, wanted) != 0)
        fail_msg("`%s` is read as '%s', not as '%s'", text,
                 l.err == HF_OK ? got : l.detail, wanted);
    hf_argv_done(&l.args);
}

static void a_first_word_may_be_a_command_and_begin_others(void **state)
{
    (void)state;
    assert_read("hold a make x", "hold run: a make x");
    assert_read("hold a -- make -x", "hold run: a make -x");
    assert_read("hold run a make x", "hold run: a make x");
    assert_read("hold run a -- make", "hold run: a make");
    assert_read("hold -f run -q x a make", "hold run: a make");
    assert_read("hold list", "hold list:");
    assert_read("hold list --json", "hold list:");
    assert_read("hold show list", "hold show: list");
    assert_read("holds", "hold list:");
    assert_read("holds show a", "hold show: a");
    assert_read("serve", "serve run:");
    assert_read("serve -q x -n 3", "serve run:");
    assert_read("serve run -q x", "serve run:");
    assert_read("serve -q x run", "serve run:");
    assert_read("serve list", "serve list:");
    assert_read("serves", "serve list:");
    assert_refused("serve lst",
                   "expected a command, found 'serve lst' (did you mean 'serve list'?)");
    assert_refused("serve run x", "expected nothing more after 'serve run', found 'x'");
    assert_refused("serve -q x list",
                   "expected an option of 'serve list', found '--queue'");
    assert_refused("hold run",
                   "missing NAME (usage: holdfast hold run NAME [--] COMMAND...)");
    assert_refused("hold run a",
                   "missing COMMAND... (usage: holdfast hold run NAME [--] COMMAND...)");
}

static void a_command_takes_a_name_behind_two_dashes(void **state)
{
    (void)state;
    assert_read("hold show -- -x", "hold show: -x");
    assert_read("hold show --json -- -x", "hold show: -x");
    assert_read("hold show -- make", "hold run: show make");
    assert_read("hold run -- -x make", "hold run: -x make");
    assert_read("hold run -f -- -x make", "hold run: -x make");
    assert_read("hold -- -x make", "hold run: -x make");
    assert_read("hold run show -- -x", "hold run: show -x");
    assert_refused("hold list -- -x",
                   "expected nothing more after 'hold list', found '-x'");
}

static void a_word_before_two_dashes_is_a_name(void **state)
{
    (void)state;
    assert_read("hold list -- make", "hold run: list make");
    assert_read("hold list --json -n 3 -- make", "hold run: list make");
    assert_read("hold list --count=3 -fe -- make", "hold run: list make");
    assert_read("hold list -fen3 -- make", "hold run: list make");
    assert_read("hold show -q x -- make", "hold run: show make");
    assert_read("hold run show -q x -- make", "hold run: show make");
    assert_read("hold run -- make", "hold run: run make");
    assert_read("hold -n 3 list -- make", "hold run: list make");
    assert_read("hold run list -- make", "hold run: list make");
    assert_read("hold run run make", "hold run: run make");
    assert_read("hold -- list make", "hold run: list make");
    assert_read("hold show a --", "hold show: a");
    assert_refused("hold list make",
                   "expected nothing more after 'hold list', found 'make'");
    assert_refused("hold list a -- make",
                   "expected nothing more after 'hold list', found 'a'");
}

static void help_is_given_even_if_operands_are_missing(void **state)
{
    (void)state;
    line l;
    read_line(&l, "one --help");
    assert_int_equal(l.err, HF_OK);
    assert_true(l.args.help);
    hf_argv_done(&l.args);
}

static void what_is_wrong_is_said(void **state)
{
    (void)state;
    assert_refused("on x", "expected a command, found 'on' (did you mean 'one'?)");
    assert_refused("nothing", "expected a command, found 'nothing'");
    assert_refused("two lst",
                   "expected a command, found 'two lst' (did you mean 'two list'?)");
    assert_refused("one", "missing A (usage: holdfast one A [B])");
    assert_refused("one a b c", "expected nothing more after 'one A [B]', found 'c'");
    assert_refused("one a --fasst",
                   "expected an option of 'one', found '--fasst' (did you mean "
                   "'--fast'?)");
    assert_refused("one a --other=1", "expected an option of 'one', found '--other'");
    assert_refused("one a -x", "expected an option of 'one', found '-x'");
    assert_refused("--fast one a",
                   "expected a command before its options, found '--fast'");
    assert_refused("one a --fast=1", "--fast: expected no value, found '1'");
    assert_refused("one a --in", "--in: missing D (usage: --in D)");
    assert_refused("one a -n", "--count: missing N (usage: --count N)");
    assert_refused("one a -n 10", "--count: expected an integer from 1 to 9, found '10'");
    assert_refused("one a -n 1 -n 2", "--count: expected it once, found it again");
    assert_refused("one a --in 10",
                   "--in: expected a duration with its unit (ms s m h d) from "
                   "0ms to 1d, found '10'");
    assert_refused("one a --in 2d",
                   "--in: expected a duration with its unit (ms s m h d) from "
                   "0ms to 1d, found '2d'");
    assert_refused("one a --at 2030-01-31T08:00:00",
                   "--at: expected a time from 1970 to 9999 with its zone "
                   "(2030-01-31T08:00:00Z) or @SECONDS, "
                   "found '2030-01-31T08:00:00' (add Z for UTC, or an offset such as "
                   "+01:00)");
    assert_refused("one a --state done",
                   "--state: expected one of ready|dead, found 'done'");
}

static void hide(const char *text, int argc, char words[][64], char *argv[],
                 char ***copies)
{
    char whole[256];
    int n = 0;
    strncpy(whole, text, sizeof whole - 1);
    whole[sizeof whole - 1] = '\0';
    char *rest = whole;
    for (char *word; (word = strtok_r(rest, " ", &rest)) != NULL && n < argc; n++) {
        strncpy(words[n], word, 63);
        argv[n] = words[n];
    }
    assert_int_equal(hf_argv_hide_passwords(argc, argv, copies), HF_OK);
}

static void the_password_of_a_url_is_wiped_from_argv_and_kept_in_a_copy(void **state)
{
    (void)state;
    char words[6][64] = {{0}};
    char *argv[7] = {NULL}, **copies = NULL;
    hide("holdfast one --redis redis://u:se@cret@h/0 --redis=unix://:p@/s a:b@c", 5,
         words, argv, &copies);
    assert_string_equal(words[3], "redis://u:*******@h/0");
    assert_string_equal(words[4], "--redis=unix://:*@/s");
    assert_string_equal(argv[3], "redis://u:se@cret@h/0");
    assert_string_equal(argv[4], "--redis=unix://:p@/s");
    hf_argv_free_copies(copies);
    copies = NULL;
    hide("holdfast one redis://u:p@h --redis redis://h", 5, words, argv, &copies);
    assert_string_equal(words[2], "redis://u:p@h"); /* a payload, say */
    assert_string_equal(words[4], "redis://h");
    hf_argv_free_copies(copies);
}

/* ---- the real table ---- */

static void every_command_has_its_help_and_its_function(void **state)
{
    (void)state;
    for (const hf_command *c = hf_commands(); c->name != NULL; c++) {
        assert_non_null(c->run);
        assert_non_null(c->operands);
        assert_non_null(c->section);
        assert_true(c->help != NULL && c->help[0] != '\0');
        assert_true(c->min_operands <= c->max_operands);
        for (const hf_opt *o = c->opts; o != NULL && o->name != NULL; o++) {
            assert_true(o->help != NULL && o->help[0] != '\0');
            assert_int_equal(o->kind == HF_OPT_FLAG, o->value == NULL);
            assert_int_equal(o->kind == HF_OPT_CHOICE, o->choices != NULL);
            for (const hf_opt *of = hf_common_opts(); of->name != NULL; of++) {
                assert_string_not_equal(o->name, of->name);
                assert_true(o->letter == 0 || o->letter != of->letter);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_and_operands_may_stand_in_any_order),
        cmocka_unit_test(letters_without_a_value_may_be_joined),
        cmocka_unit_test(an_option_may_have_other_names),
        cmocka_unit_test(values_are_read_by_their_kind),
        cmocka_unit_test(a_dash_alone_and_all_after_two_dashes_are_operands),
        cmocka_unit_test(
            a_command_of_two_words_is_found_and_its_first_word_alone_is_a_group),
        cmocka_unit_test(a_first_word_may_be_a_command_and_begin_others),
        cmocka_unit_test(a_command_takes_a_name_behind_two_dashes),
        cmocka_unit_test(a_word_before_two_dashes_is_a_name),
        cmocka_unit_test(help_is_given_even_if_operands_are_missing),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(the_password_of_a_url_is_wiped_from_argv_and_kept_in_a_copy),
        cmocka_unit_test(every_command_has_its_help_and_its_function),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
