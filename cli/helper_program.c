/* helper_program.c - see helper_program.h. */
#include "cli/helper_program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/helper_path.h"

/* ---- its arguments ---- */

typedef struct words {
    char **at; /* ends with NULL; each is owned */
    size_t n;
    bool failed;
} words;

static void add(words *w, const char *text, const char *value)
{
    const size_t size = strlen(text) + (value != NULL ? strlen(value) + 1 : 0) + 1;
    char *word = malloc(size);
    w->failed = w->failed || word == NULL;
    if (word == NULL)
        return;
    (void)snprintf(word, size, "%s%s%s", text, value != NULL ? "=" : "",
                   value != NULL ? value : "");
    w->at[w->n++] = word;
}

static void add_given(words *w, const hf_given *given)
{
    char name[64];
    if (strcmp(given->opt->name, "redis") == 0)
        return;
    (void)snprintf(name, sizeof name, "--%s", given->opt->name);
    add(w, name, given->opt->kind == HF_OPT_FLAG ? NULL : given->text);
}

static bool make_words(const hf_argv *args, words *w)
{
    *w = (words){.at = calloc(args->n_given + args->n_operands + 3, sizeof *w->at)};
    if (w->at == NULL)
        return false;
    add(w, "holdfast", NULL);
    add(w, args->command->name, NULL);
    for (size_t i = 0; i < args->n_given; i++)
        add_given(w, &args->given[i]);
    for (size_t i = 0; i < args->n_operands; i++)
        add(w, args->operands[i], NULL);
    return !w->failed;
}

static void free_words(words *w)
{
    for (size_t i = 0; i < w->n; i++)
        free(w->at[i]);
    free(w->at);
}

/* ---- the call ---- */

int hf_helper_program(const hf_cli *cli, const char *program)
{
    char path[PATH_MAX];
    words w;
    const char *name = cli->args->command->name;
    const char *url = hf_argv_text(cli->args, "redis");
    if (!hf_helper_path(program, path))
        return hf_cli_say(cli, HF_EXIT_UNAVAILABLE, "", "%s needs the program %s: %s",
                          name, program, hf_helper_advice());
    bool ready = make_words(cli->args, &w);
    if (ready && url != NULL)
        ready = setenv("REDIS_URL", url, 1) == 0;
    if (ready)
        (void)execv(path, w.at);
    const int error = ready ? errno : ENOMEM;
    free_words(&w);
    return hf_cli_say(cli, HF_EXIT_SYSTEM, "", "%s: cannot run %s: %s", name, path,
                      strerror(error));
}
