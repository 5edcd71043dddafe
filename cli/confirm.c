/* confirm.c - see confirm.h. */
#include "cli/confirm.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ANSWER_SIZE = 8 };

bool hf_confirm_wanted(const hf_cli *cli)
{
    return !hf_argv_has(cli->args, "yes");
}

int hf_confirm_possible(const hf_cli *cli)
{
    if (!hf_confirm_wanted(cli) ||
        (isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1))
        return HF_EXIT_OK;
    return hf_cli_say(cli, HF_EXIT_USAGE, "",
                      "%s: expected --yes where no terminal can be asked, found none",
                      cli->args->command->name);
}

/* One line, without its end; a longer one than any yes is no answer. */
static bool read_answer(char out[ANSWER_SIZE])
{
    size_t n = 0;
    for (int c; (c = getc(stdin)) != EOF && c != '\n'; n++) {
        if (n + 1 < ANSWER_SIZE)
            out[n] = (char)c;
    }
    out[n < ANSWER_SIZE ? n : 0] = '\0';
    return !ferror(stdin) && !feof(stdin);
}

int hf_confirm(const hf_cli *cli, const char *format, ...)
{
    char answer[ANSWER_SIZE];
    va_list args;
    if (!hf_confirm_wanted(cli))
        return HF_EXIT_OK;
    (void)fflush(stdout);
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fputs(" [y/N] ", stderr);
    (void)fflush(stderr);
    bool ended = !read_answer(answer);
    if (!ended && (strcmp(answer, "y") == 0 || strcmp(answer, "yes") == 0))
        return HF_EXIT_OK;
    if (ended)
        (void)fputc('\n', stderr); /* the question's line is still open */
    return hf_cli_say(cli, HF_EXIT_NO, "", "%s: nothing was done",
                      cli->args->command->name);
}
