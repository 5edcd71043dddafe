/* confirm.c - see confirm.h. */
#include "cli/common/confirm.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ANSWER_SIZE = 8 };

bool hf_confirm_wanted(const hf_cli *cli)
{
    return !hf_argv_has(cli->args, "yes");
}

/* Where the question goes: the user sees it even when the outputs are redirected. NULL:
 * there is no terminal. */
static FILE *open_terminal(void)
{
    if (isatty(STDIN_FILENO) != 1)
        return NULL;
    const char *name = ttyname(STDIN_FILENO);
    int fd = isatty(STDERR_FILENO) == 1 ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)
             : name == NULL             ? -1
                                        : open(name, O_WRONLY | O_NOCTTY | O_CLOEXEC);
    FILE *terminal = fd < 0 ? NULL : fdopen(fd, "w");
    if (fd >= 0 && terminal == NULL)
        (void)close(fd);
    return terminal;
}

static int want_yes(const hf_cli *cli)
{
    return hf_cli_say(cli, HF_EXIT_USAGE, "",
                      "%s: needs --yes (there is no terminal to ask)",
                      cli->args->command->name);
}

int hf_confirm_possible(const hf_cli *cli)
{
    if (!hf_confirm_wanted(cli))
        return HF_EXIT_OK;
    FILE *terminal = open_terminal();
    if (terminal == NULL)
        return want_yes(cli);
    (void)fclose(terminal);
    return HF_EXIT_OK;
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
    FILE *terminal = open_terminal();
    if (terminal == NULL) /* it has gone since */
        return want_yes(cli);
    (void)fflush(stdout);
    va_start(args, format);
    (void)vfprintf(terminal, format, args);
    va_end(args);
    (void)fputs(" [y/N] ", terminal);
    (void)fflush(terminal);
    bool ended = !read_answer(answer);
    bool yes = !ended && (strcmp(answer, "y") == 0 || strcmp(answer, "yes") == 0);
    if (ended)
        (void)fputc('\n', terminal); /* the question's line is still open */
    (void)fclose(terminal);
    return yes ? HF_EXIT_OK
               : hf_cli_say(cli, HF_EXIT_NO, "", "%s: nothing was done",
                            cli->args->command->name);
}
