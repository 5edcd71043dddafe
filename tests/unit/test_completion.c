/* What shells complete is what the table of commands says: the files in completions/ are
 * made from it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args.h"
#include "cli/completion.h"
#include "tests/support/eventually.h"
#include "tests/support/tempdir.h"

enum { TEXT_SIZE = 1 << 17 };

/* The caller frees it. */
static char *made(int64_t shell)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    hf_completion(file, shell);
    assert_int_equal(fclose(file), 0);
    assert_true(size < TEXT_SIZE - 1);
    return text;
}

static void assert_made(int64_t shell, const char *name)
{
    char path[256];
    char *committed = calloc(1, TEXT_SIZE);
    assert_non_null(committed);
    snprintf(path, sizeof path, HF_TEST_SOURCE "/completions/%s", name);
    hf_read_file(path, committed, TEXT_SIZE);
    char *text = made(shell);
    if (strcmp(committed, text) != 0)
        fail_msg("completions/%s is not that of the table: run ./dev generate", name);
    free(text);
    free(committed);
}

static void the_completions_are_those_of_the_table(void **state)
{
    (void)state;
    assert_made(HF_SHELL_BASH, "holdfast.bash");
    assert_made(HF_SHELL_ZSH, "_holdfast");
    assert_made(HF_SHELL_FISH, "holdfast.fish");
}

static void every_option_is_completed_and_nothing_that_is_hidden(void **state)
{
    (void)state;
    char name[64];
    char *bash = made(HF_SHELL_BASH), *zsh = made(HF_SHELL_ZSH);
    char *fish = made(HF_SHELL_FISH);
    for (const hf_command *c = hf_commands(); c->name != NULL; c++) {
        snprintf(name, sizeof name, "'%s'", c->name);
        assert_true(!c->hidden || strstr(bash, name) == NULL);
        for (const hf_opt *o = c->opts; o != NULL && o->name != NULL; o++) {
            if (c->hidden || o->hidden)
                continue;
            snprintf(name, sizeof name, " --%s", o->name);
            assert_non_null(strstr(bash, name));
            snprintf(name, sizeof name, "--%s%s[", o->name,
                     o->kind != HF_OPT_FLAG ? "=" : "");
            assert_non_null(strstr(zsh, name));
            snprintf(name, sizeof name, "__holdfast_in %s' -l %s ", c->name, o->name);
            assert_non_null(strstr(fish, name));
        }
    }
    assert_null(strstr(bash, "--reference"));
    assert_null(strstr(zsh, "--reference"));
    assert_null(strstr(fish, "-l reference"));
    free(bash);
    free(zsh);
    free(fish);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_completions_are_those_of_the_table),
        cmocka_unit_test(every_option_is_completed_and_nothing_that_is_hidden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
