/* main.c - the command `holdfast`: finds out what is asked for, does it, and says how it
 * went by its exit code. Everything it can do is in the table of commands.c. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/help.h"
#include "cli/stop.h"
#include "holdfast/minder.h"

/* Nothing is done, unless all of it could be written. */
static int flush_output(const hf_cli *cli, int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    /* errno may be of a later call than the one that failed; the pipe itself is asked. */
    struct pollfd out = {.fd = STDOUT_FILENO};
    bool broken = poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
    hf_exit unwritten = hf_exit_of_output(broken ? EPIPE : errno);
    if (unwritten != HF_EXIT_OUTPUT || code == HF_EXIT_OUTPUT) /* the command has told */
        return (int)unwritten;
    return hf_cli_say(cli, unwritten, "", "standard output cannot be written: %s",
                      strerror(errno));
}

static int without_command(hf_cli *cli, const hf_argv *args)
{
    if (args->version)
        return hf_cmd_version(cli);
    if (args->group != NULL)
        hf_help_group(args->help ? stdout : stderr, args->group);
    else if (args->help)
        hf_help_all(stdout);
    else if (args->n_given == 0)
        hf_help_core(stdout);
    else
        return hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "missing COMMAND (usage: holdfast COMMAND [OPTIONS])");
    return args->group != NULL && !args->help ? HF_EXIT_USAGE : HF_EXIT_OK;
}

static int run(hf_cli *cli, const hf_argv *args)
{
    if (args->command == NULL)
        return without_command(cli, args);
    if (args->help) {
        hf_help_command(stdout, args->command, args->group);
        return HF_EXIT_OK;
    }
    int code = hf_cli_setup(cli, args);
    if (code == HF_EXIT_OK)
        code = args->command->run(cli);
    hf_cli_done(cli);
    return code;
}

/* The command line may not be understood, so words are looked for by hand. */
static bool has_word(int argc, char **argv, const char *word)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], word) == 0)
            return true;
    }
    return false;
}

/* A plugin of Nagios has four codes, and says on standard output what the last one is
 * for. */
static int as_plugin(const hf_argv *args, int argc, char **argv, int code)
{
    enum { UNKNOWN = 3 };
    const bool is_wrong = args->command != NULL ? args->command->run == hf_cmd_wrong
                                                : has_word(argc, argv, "wrong");
    if (code <= UNKNOWN || !is_wrong || !has_word(argc, argv, "--nagios"))
        return code;
    (void)puts("HOLDFAST UNKNOWN - it cannot be judged: standard error says why");
    (void)fflush(stdout);
    return UNKNOWN;
}

/* A command that a signal stopped ends by that signal, or a shell would go on with its
 * loop. */
static void end_by_signal(int code)
{
    int number = code - 128;
    if (number != SIGINT && number != SIGTERM && number != hf_stop_asked())
        return;
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigemptyset(&action.sa_mask);
    (void)sigaction(number, &action, NULL);
    (void)raise(number);
}

static void ignore_sigpipe(void)
{
    struct sigaction action = {.sa_handler = SIG_IGN};
    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGPIPE, &action, NULL); /* cannot fail for a signal that exists */
}

/* A standard stream that came closed would be the next file or socket that is opened, and
 * what is printed would go to Redis. Opened the wrong way round it fails as before. */
static bool hold_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "minder") == 0)
        return hf_minder_main(argc, argv);
    char detail[HF_ARGV_DETAIL_SIZE] = "", why[HF_DETAIL_SIZE] = "";
    char **copies = NULL;
    hf_argv args = {0};
    hf_cli cli = {.args = &args, .json = has_word(argc, argv, "--json"), .detail = why};
    ignore_sigpipe();
    if (!hold_streams())
        return HF_EXIT_SYSTEM; /* and no stream for a message */
    hf_err err = hf_argv_hide_passwords(argc, argv, &copies);
    if (err == HF_OK)
        err = hf_argv_parse(&args, hf_commands(), argc, argv, detail);
    int code;
    if (err == HF_INVALID)
        code = hf_cli_say(&cli, HF_EXIT_USAGE, "", "%s", detail);
    else if (err != HF_OK)
        code = hf_cli_fail(&cli, err, NULL);
    else
        code = run(&cli, &args);
    code = as_plugin(&args, argc, argv, flush_output(&cli, code));
    hf_argv_done(&args);
    hf_argv_free_copies(copies);
    end_by_signal(code);
    return code;
}
