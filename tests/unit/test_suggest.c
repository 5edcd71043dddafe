/* test_suggest.c - what is suggested for a command or an option that does not exist, and
 * what `holdfast` alone prints. */
#include <stdlib.h>
#include <string.h>

#include "cli/help.h"
#include "cli/suggest.h"
#include "tests/support/eventually.h"

/* `names`: "job list|queue list", or "" for no suggestion. */
static void check(const char *asked, const char *got, const char *names)
{
    char wanted[HF_SUGGEST_SIZE] = "", rest[HF_SUGGEST_SIZE];
    size_t at = 0;
    (void)snprintf(rest, sizeof rest, "%s", names);
    char *more = rest;
    for (char *name; (name = strtok_r(more, "|", &more)) != NULL;)
        at += (size_t)snprintf(wanted + at, sizeof wanted - at, "%s'%s'",
                               at == 0                         ? " (did you mean "
                               : more == NULL || *more == '\0' ? " or "
                                                               : ", ",
                               name);
    if (at > 0)
        (void)snprintf(wanted + at, sizeof wanted - at, "?)");
    if (strcmp(got, wanted) != 0)
        fail_msg("'%s' suggests '%s' instead of '%s'", asked, got, wanted);
}

static void command(const char *word, const char *next, const char *names)
{
    char out[HF_SUGGEST_SIZE];
    hf_suggest_command(hf_commands(), word, next, out);
    check(word, out, names);
}

static void option(const char *of, const char *word, const char *names)
{
    char out[HF_SUGGEST_SIZE];
    const hf_command *c = hf_command_find(hf_commands(), of);
    assert_non_null(c);
    hf_suggest_option(c->opts, hf_common_opts(), word, out);
    check(word, out, names);
}

static void a_mistyped_command_is_suggested(void **state)
{
    (void)state;
    command("enqeue", "t", "enqueue");
    command("enq", "t", "enqueue");
    command("quue", "list", "queue list");
    command("quue", "", "queue");
    command("que", "", "queue");
    command("queue lst", "", "queue list");
    command("job cancle", "", "job cancel");
    command("dctor", "", "doctor");
    command("x", "", "");
    command("", "", "");
    command("elephant", "grass", "");
}

static void another_word_for_a_command_is_known(void **state)
{
    (void)state;
    command("jobs", "", "job list");
    command("queues", "", "queue list");
    command("list", "jobs", "job list");
    command("jobs", "list", "job list");
    command("push", "email", "enqueue");
    command("job ls", "", "job list");
    command("queue clear", "", "queue purge");
    command("status", "", "queue list|worker list");
    command("retry", "", "job retry|dead retry");
}

static void a_mistyped_option_is_suggested(void **state)
{
    (void)state;
    option("enqueue", "--prio", "--priority");
    option("enqueue", "--prio=high", "--priority");
    option("enqueue", "--pirority", "--priority");
    option("enqueue", "--max", "--max-attempts|--max-wait");
    option("enqueue", "--max_attempts", "--max-attempts");
    option("enqueue", "--retries", "--max-attempts");
    option("enqueue", "--delay", "--in");
    option("job list", "--jsn", "--json");
    option("job list", "--name", "--namespace");
    option("job list", "--elephant", "");
    option("job list", "-z", "");
}

/* What is suggested must exist, and no word may be called by its own name. */
static void other_words_are_no_commands(void **state)
{
    (void)state;
    for (const hf_command *c = hf_commands(); c->name != NULL; c++) {
        char word[64];
        for (const char *at = c->alike; at != NULL && *at != '\0';) {
            size_t len = strcspn(at, "|");
            (void)snprintf(word, sizeof word, "%.*s", (int)len, at);
            if (hf_command_find(hf_commands(), word) != NULL)
                fail_msg("'%s' is a command", word);
            at += len + (at[len] == '|' ? 1 : 0);
        }
    }
}

static void holdfast_alone_shows_twelve_lines(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0, lines = 0, at = 0;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    hf_help_core(file);
    assert_int_equal(fclose(file), 0);
    for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1, lines++)
        assert_true(strcspn(line, "\n") <= 80);
    assert_int_equal(lines, 12);
    static const char *const order[] = {"enqueue ",  "worker",    "queue list", "job why",
                                        "dead list", "cron list", "doctor",     "demo"};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        const char *found = strstr(text + at, order[i]);
        if (found == NULL)
            fail_msg("'%s' is missing, or comes too early", order[i]);
        at = (size_t)(found - text);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mistyped_command_is_suggested),
        cmocka_unit_test(another_word_for_a_command_is_known),
        cmocka_unit_test(a_mistyped_option_is_suggested),
        cmocka_unit_test(other_words_are_no_commands),
        cmocka_unit_test(holdfast_alone_shows_twelve_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
