/* launch.c - `holdfast dashboard` and `holdfast exporter`: become the program that does
 * it. It is a package of its own, so the command needs none of its libraries. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"

#define PROGRAM "holdfast-dashboard"

/* Beside the command in a build, in libexec of its prefix where it is installed. */
static const char *const places[] = {PROGRAM, "../libexec/" PROGRAM};

/* "" if it is nowhere. */
static void find(char out[PATH_MAX])
{
    char self[PATH_MAX - 64];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    out[0] = '\0';
    if (n <= 0)
        return;
    self[n] = '\0';
    char *slash = strrchr(self, '/');
    if (slash == NULL)
        return;
    slash[1] = '\0';
    for (size_t i = 0; i < HF_COUNT(places); i++) {
        (void)snprintf(out, PATH_MAX, "%s%s", self, places[i]);
        if (access(out, X_OK) == 0)
            return;
    }
    out[0] = '\0';
}

/* The words of the command line, as the parser has understood them. NULL: no memory. */
static char **words_of(const hf_cli *cli)
{
    enum { FIXED = 3, SIZE = 128 };
    const hf_argv *args = cli->args;
    char **words = calloc(FIXED + 2 * args->n_given, sizeof *words), *names;
    names = calloc(args->n_given + 1, SIZE);
    if (words == NULL || names == NULL) {
        free(words);
        free(names);
        return NULL;
    }
    size_t n = 0;
    words[n++] = strdup(PROGRAM);
    words[n++] = strdup(args->command->name);
    for (size_t i = 0; i < args->n_given; i++) {
        const hf_given *g = &args->given[i];
        (void)snprintf(names + i * SIZE, SIZE, "--%s", g->opt->name);
        words[n++] = names + i * SIZE;
        if (g->opt->kind != HF_OPT_FLAG)
            words[n++] = strdup(g->text);
    }
    return words; /* all of it ends with this program */
}

static int launch(hf_cli *cli)
{
    char path[PATH_MAX];
    find(path);
    if (path[0] == '\0')
        return hf_cli_say(cli, HF_EXIT_UNAVAILABLE, "",
                          "install the package holdfast-dashboard");
    char **words = words_of(cli);
    if (words == NULL)
        return hf_cli_fail(cli, HF_NOMEM, "");
    (void)execv(path, words);
    return hf_cli_say(cli, HF_EXIT_SYSTEM, "", "%s cannot be started", path);
}

int hf_cmd_dashboard(hf_cli *cli)
{
    return launch(cli);
}

int hf_cmd_exporter(hf_cli *cli)
{
    return launch(cli);
}
