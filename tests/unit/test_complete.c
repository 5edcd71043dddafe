/* What `holdfast __complete` offers is what the table of commands says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args.h"
#include "cli/complete.h"
#include "tests/support/eventually.h"
#include "tests/support/tempdir.h"

enum { TEXT_SIZE = 1 << 14, WORDS_MAX = 16 };

/* What is offered at the end of the line, whose last word is empty after a space. Each
 * candidate has '\n' before it and '\t' behind it. The caller frees it. */
static char *offered(const char *line, bool expect)
{
    char copy[256], *text = NULL;
    const char *words[WORDS_MAX];
    size_t n = 0, size = 0;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *at = copy; at != NULL;) {
        words[n++] = at;
        at = strchr(at, ' ');
        if (at != NULL)
            *at++ = '\0';
    }
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    bool ours = hf_complete(file, words, n);
    assert_int_equal(fclose(file), 0);
    if (ours != expect)
        fail_msg("'%s': expected %s", line, expect ? "candidates" : "the shell's own");
    return text;
}

/* The candidates, without their help, as "one two". */
static void offers(const char *line, const char *expect)
{
    char list[TEXT_SIZE] = "";
    char *text = offered(line, true);
    for (char *at = strchr(text, '\n'); at != NULL && at[1] != '\0';
         at = strchr(at + 1, '\n')) {
        size_t len = strlen(list);
        snprintf(list + len, sizeof list - len, "%s%.*s", len > 0 ? " " : "",
                 (int)strcspn(at + 1, "\t"), at + 1);
    }
    if (strcmp(list, expect) != 0)
        fail_msg("'%s' offers '%s', expected '%s'", line, list, expect);
    free(text);
}

static void has(const char *line, const char *word, bool expect)
{
    char row[128];
    char *text = offered(line, true);
    snprintf(row, sizeof row, "\n%s\t", word);
    if ((strstr(text, row) != NULL) != expect)
        fail_msg("'%s': %s is %s", line, word, expect ? "missing" : "offered");
    free(text);
}

static void starts_with(const char *line, bool ours, const char *start)
{
    char *text = offered(line, ours);
    if (strncmp(text, start, strlen(start)) != 0)
        fail_msg("'%s' gives '%s', expected '%s' first", line, text, start);
    free(text);
}

static void the_words_of_a_command_follow_one_another(void **state)
{
    (void)state;
    offers("",
           "enqueue job dead queue stats runs cron lock worker check conform wrong top "
           "dashboard exporter doctor script demo bench version help");
    offers("dead ", "list retry purge");
    offers("job li",
           "show list result logs why retry edit cancel delete"); /* the shell matches */
    offers("--redis job dead ", "list retry purge");
    offers("--redis=job --json dead ", "list retry purge");
    offers("-c job dead ", "list retry purge");
    offers("-cjob dead ", "list retry purge");
    offers("help dead ", "list retry purge");
    offers("help help ", "");
    offers("dead list ", "");
    offers("dead lost ", "");
    offers("nothing ", "");
}

static void older_names_are_known(void **state)
{
    (void)state;
    offers("worker ", "run list");
    offers("worker run ", "");
    offers("locks ", "list show release revoke fence-check");
    has("locks", "locks", true);
    has("lock", "locks", false);
    has("", "locks", false);
    offers("",
           "enqueue job dead queue stats runs cron lock worker check conform wrong top "
           "dashboard exporter doctor script demo bench version help");
    has("workers", "workers", true);
    offers("workers ", "");
    has("workers --", "--all", true);
    has("worker --", "--burst", true);
    has("worker list --", "--burst", false);
    has("locks release --", "--force", true);
    has("lock release --", "--force", true);
    has("lock run a --w", "--wait", true);
    starts_with("lock run a ", false, "\n");
    starts_with("lock list -- ", false, "\n");
    offers("help lock ", "run list show release revoke fence-check");
}

static void a_word_comes_with_its_help(void **state)
{
    (void)state;
    starts_with("dead ", true,
                "\nlist\tlist dead jobs and why they died, page by page\n");
    starts_with("script", true, "\nenqueue\tput a job into a queue\njob\tshow, list, ");
    starts_with("queue purge --y", true, "\n--config\tthe configuration file\n-c\tthe ");
}

static void every_option_is_offered_and_nothing_that_is_hidden(void **state)
{
    (void)state;
    char line[64], name[64];
    for (const hf_command *c = hf_commands(); c->name != NULL; c++) {
        if (c->hidden) {
            has("", c->name, false);
            continue;
        }
        snprintf(line, sizeof line, "%s -", c->name);
        has(line, "--config", true);
        for (const hf_opt *o = c->opts; o != NULL && o->name != NULL; o++) {
            snprintf(name, sizeof name, "--%s", o->name);
            has(line, name, !o->hidden);
            snprintf(name, sizeof name, "-%c", o->letter);
            if (o->letter != 0)
                has(line, name, !o->hidden);
        }
    }
    offers("-", "--config -c --redis --namespace --json --help -h");
    offers("job -", "--config -c --redis --namespace --json --help -h");
    offers("help job -", "--config -c --redis --namespace --json --help -h");
    has("check --", "--reference", false);
    has("check --", "--man", false);
}

static void an_option_is_offered_until_it_is_given(void **state)
{
    (void)state;
    has("job list --queue a --", "--queue", false);
    has("job list --queue a --", "-q", false);
    has("job list -qa --", "--queue", false);
    has("--json job list --", "--json", false);
    has("lock -xw 5 --", "--wait", false);
    has("lock --timeout 5 --", "--wait", false); /* its other name */
    has("worker --queue a --", "--queue", true); /* many */
    has("job list --type --queue --", "--queue", false);
}

static void values_are_offered_where_they_are_fixed(void **state)
{
    (void)state;
    const char *states = "ready delayed retry running dead done parked";
    offers("job list --state ", states);
    offers("job list --state -", states);
    offers("job list --queue list --state de", states);
    offers("job list --state=re", states);
    starts_with("job list --state=re", true, "--state=\nready\t");
    offers("job list --queue ", "");
    offers("job list --queue=", "");
    offers("bench --payload --q", "");
    offers("bench -n ", "");
    offers("job list --none=", "");
    offers("job list --json=", "");
}

static void names_of_files_are_left_to_the_shell(void **state)
{
    (void)state;
    starts_with("worker --config ", false, "\n");
    starts_with("worker -c ", false, "\n");
    starts_with("worker --config=w", false, "--config=\n");
    starts_with("worker -cw", false, "-c\n");
    starts_with("enqueue --bulk ", false, "\n");
    starts_with("demo --svg ", false, "\n");
}

static void what_belongs_to_another_program_is_left_to_the_shell(void **state)
{
    (void)state;
    starts_with("enqueue -- --q", false, "\n");
    starts_with("lock a ", false, "\n");
    starts_with("lock a make --w", false, "\n");
    has("lock a --w", "--wait", true);
    offers("lock a --wait ", "");
    offers("lock ", "run list show release revoke fence-check");
}

static void any_words_are_borne(void **state)
{
    (void)state;
    char line[200] = "job ";
    memset(line + 4, 'x', sizeof line - 6);
    line[sizeof line - 2] = ' ';
    line[sizeof line - 1] = '\0';
    offers(line, "");
    offers("",
           "enqueue job dead queue stats runs cron lock worker check conform wrong top "
           "dashboard exporter doctor script demo bench version help");
    offers("----", "--config -c --redis --namespace --json --help -h");
}

static void the_command_prints_the_scripts_of_the_shells(void **state)
{
    (void)state;
    static const char *const names[] = {"holdfast.bash", "_holdfast", "holdfast.fish"};
    for (size_t i = 0; i < 3; i++) {
        char path[256], committed[TEXT_SIZE] = "";
        char *text = NULL;
        size_t size = 0;
        snprintf(path, sizeof path, HF_TEST_SOURCE "/completions/%s", names[i]);
        hf_read_file(path, committed, sizeof committed);
        FILE *file = open_memstream(&text, &size);
        assert_non_null(file);
        hf_complete_script(file, (int64_t)i);
        assert_int_equal(fclose(file), 0);
        assert_string_equal(text, committed);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_words_of_a_command_follow_one_another),
        cmocka_unit_test(older_names_are_known),
        cmocka_unit_test(a_word_comes_with_its_help),
        cmocka_unit_test(every_option_is_offered_and_nothing_that_is_hidden),
        cmocka_unit_test(an_option_is_offered_until_it_is_given),
        cmocka_unit_test(values_are_offered_where_they_are_fixed),
        cmocka_unit_test(names_of_files_are_left_to_the_shell),
        cmocka_unit_test(what_belongs_to_another_program_is_left_to_the_shell),
        cmocka_unit_test(any_words_are_borne),
        cmocka_unit_test(the_command_prints_the_scripts_of_the_shells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
