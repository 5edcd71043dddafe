/* conform.c - `holdfast conform`: plays the worker with a program that speaks `pipe 1`
 * (docs/pipe.md), and says in words what the program does wrong. Without Redis. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mask.h"
#include "cli/cli.h"
#include "cli/conform/play.h"
#include "cli/out.h"
#include "cli/stop.h"

enum { TIMEOUT_MS = 5000, NOT_FOUND = 127, NOT_EXECUTABLE = 126 };

typedef struct conform {
    hf_cli *cli;
    char **argv;
    hf_conform_case *cases; /* owned */
    size_t n;
    hf_ready *ready;
    size_t passed, failed, skipped;
} conform;

static void print_lines(const char *text)
{
    while (*text != '\0') {
        size_t len = strcspn(text, "\n");
        char line[256];
        (void)snprintf(line, sizeof line, "%.*s", (int)len, text);
        (void)fputs("    ", stdout);
        hf_out_plain(stdout, line);
        putchar('\n');
        text += len + (text[len] == '\n');
    }
}

static void print_case(const conform *c, const char *name, size_t len,
                       const hf_play *play)
{
    static const char *const words[] = {"passed", "failed", "skipped"};
    if (c->cli->json) {
        json_t *line =
            json_pack("{s:s%, s:s}", "case", name, len, "result", words[play->end]);
        if (play->end != HF_PLAY_PASSED)
            (void)json_object_set_new(line, "why", hf_out_text(play->why));
        if (play->end == HF_PLAY_FAILED)
            (void)json_object_set_new(line, "stderr", hf_out_text(play->stderr_end));
        hf_out_json(stdout, line);
    } else if (play->end != HF_PLAY_PASSED) {
        printf("%s: case '%.*s': ", words[play->end], (int)len, name);
        hf_out_plain(stdout, play->why);
        putchar('\n');
        if (play->end == HF_PLAY_FAILED)
            print_lines(play->stderr_end);
    }
    (void)fflush(stdout);
}

static int list_cases(const conform *c)
{
    for (size_t i = 0; i < c->n; i++) {
        const hf_conform_case *one = &c->cases[i];
        if (c->cli->json)
            hf_out_json(stdout, json_pack("{s:s%}", "case", one->name, one->name_len));
        else
            printf("%.*s\n", (int)one->name_len, one->name);
    }
    return HF_EXIT_OK;
}

static bool has_name(const hf_conform_case *one, const char *name)
{
    return one->name_len == strlen(name) && memcmp(one->name, name, one->name_len) == 0;
}

/* Whether the command line chooses it. */
static bool is_chosen(const conform *c, const hf_conform_case *one)
{
    size_t n = hf_argv_count(c->cli->args, "case");
    for (size_t i = 0; i < n; i++)
        if (has_name(one, hf_argv_nth(c->cli->args, "case", i)))
            return true;
    return n == 0;
}

static int check_names(const conform *c)
{
    for (size_t i = 0; i < hf_argv_count(c->cli->args, "case"); i++) {
        const char *name = hf_argv_nth(c->cli->args, "case", i);
        size_t k = 0;
        while (k < c->n && !has_name(&c->cases[k], name))
            k++;
        if (k == c->n)
            return hf_cli_say(
                c->cli, HF_EXIT_USAGE, "",
                "--case: expected a name of `holdfast conform --list`, found '%s'",
                HF_FOUND(name));
    }
    return HF_EXIT_OK;
}

/* A program that cannot be started, or a system without room, ends the command. */
static int check_start(const conform *c, const hf_play *play)
{
    if (play->error != 0)
        return hf_cli_say(c->cli, HF_EXIT_SYSTEM, "", "%s", play->why);
    if (play->exec_error == 0)
        return HF_EXIT_OK;
    int code = play->exec_error == ENOENT ? NOT_FOUND : NOT_EXECUTABLE;
    return hf_cli_say(c->cli, (hf_exit)code, "", "'%s': %s", HF_FOUND(c->argv[0]),
                      strerror(play->exec_error));
}

static int play_all(conform *c)
{
    hf_play play = {.argv = c->argv,
                    .timeout_ms = hf_argv_number(c->cli->args, "timeout", TIMEOUT_MS)};
    static const char first[] = "the program starts";
    c->ready = hf_play_ready(&play);
    int code = check_start(c, &play);
    if (c->ready == NULL && code == HF_EXIT_OK && hf_stop_asked() == 0) {
        print_case(c, first, strlen(first), &play);
        return HF_EXIT_NO;
    }
    for (size_t i = 0; i < c->n && code == HF_EXIT_OK && hf_stop_asked() == 0; i++) {
        hf_play one = {.argv = play.argv, .timeout_ms = play.timeout_ms};
        if (!is_chosen(c, &c->cases[i]))
            continue;
        hf_play_case(&one, &c->cases[i], c->ready);
        code = check_start(c, &one);
        if (code != HF_EXIT_OK || hf_stop_asked() != 0)
            break;
        print_case(c, c->cases[i].name, c->cases[i].name_len, &one);
        c->passed += one.end == HF_PLAY_PASSED;
        c->failed += one.end == HF_PLAY_FAILED;
        c->skipped += one.end == HF_PLAY_SKIPPED;
    }
    if (code == HF_EXIT_OK && !c->cli->json)
        printf("%zu %s: %zu passed, %zu failed, %zu skipped%s\n",
               c->passed + c->failed + c->skipped,
               c->passed + c->failed + c->skipped == 1 ? "case" : "cases", c->passed,
               c->failed, c->skipped,
               hf_stop_asked() != 0 ? ", then it was stopped" : "");
    return code == HF_EXIT_OK && c->failed > 0 ? HF_EXIT_NO : code;
}

static char **argv_of(const hf_argv *args)
{
    char **argv = calloc(args->n_operands + 1, sizeof *argv);
    for (size_t i = 0; argv != NULL && i < args->n_operands; i++)
        argv[i] = (char *)(uintptr_t)args->operands[i]; /* execvp() takes no const */
    return argv;
}

static int run(conform *c)
{
    if (hf_argv_has(c->cli->args, "list"))
        return list_cases(c);
    if (c->argv[0] == NULL)
        return hf_cli_say(c->cli, HF_EXIT_USAGE, "",
                          "expected a program and its arguments, found none");
    int code = check_names(c);
    if (code != HF_EXIT_OK)
        return code;
    hf_stop_start();
    code = play_all(c);
    hf_stop_end();
    return hf_stop_code(code);
}

int hf_cmd_conform(hf_cli *cli)
{
    conform c = {.cli = cli, .argv = argv_of(cli->args)};
    c.cases = hf_conform_cases(&c.n);
    int code =
        c.argv == NULL || c.cases == NULL ? hf_cli_fail(cli, HF_NOMEM, "") : run(&c);
    hf_ready_free(c.ready);
    free(c.cases);
    free(c.argv);
    return code;
}
