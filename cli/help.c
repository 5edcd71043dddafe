/* help.c - see help.h; `holdfast help` and `holdfast version`. */
#include "cli/help.h"

#include <string.h>

#include "base/mask.h"
#include "base/roff.h"
#include "cli/cli.h"
#include "cli/complete.h"
#include "cli/out.h"
#include "cli/suggest.h"
#include "holdfast/tls.h"

enum { WIDTH = 80, NAME_COLUMN = 28, OPTION_COLUMN = 28, HELP_SIZE = 512 };

/* Words of a paragraph, wrapped; the first line is already at `column`. */
static void print_wrapped(FILE *file, const char *text, int indent, int column)
{
    bool first = true;
    while (*text != '\0') {
        int len = (int)strcspn(text, " \n");
        if (!first && column + 1 + len > WIDTH) {
            fprintf(file, "\n%*s", indent, "");
            column = indent;
            first = true;
        }
        column += fprintf(file, "%s%.*s", first ? "" : " ", len, text);
        first = false;
        text += len;
        if (*text == '\n') {
            fprintf(file, "\n%*s", indent, "");
            column = indent;
            first = true;
        }
        text += *text != '\0' ? 1 : 0;
    }
    fputc('\n', file);
}

/* "name" padded to a column, then its help; on a line of its own when the name is long.
 */
static void print_entry(FILE *file, const char *name, int column, const char *help)
{
    int used = fprintf(file, "  %s", name);
    if (used + 2 > column)
        fprintf(file, "\n%*s", column, "");
    else
        fprintf(file, "%*s", column - used, "");
    print_wrapped(file, help, column, column);
}

static void print_title(FILE *file, const char *title)
{
    bool bright = hf_out_is_bright(file);
    fprintf(file, "\n%s%s%s\n", bright ? "\033[1m" : "", title, bright ? "\033[0m" : "");
}

/* The first `max` lines of the examples; lines are not wrapped, so that they can be
 * copied. */
static void print_examples(FILE *file, const char *text, size_t max)
{
    for (; *text != '\0' && max > 0; max--) {
        size_t len = strcspn(text, "\n");
        fprintf(file, "  %.*s\n", (int)len, text);
        text += len + (text[len] == '\n' ? 1 : 0);
    }
}

static void print_command_line(FILE *file, const hf_command *command)
{
    char name[128];
    snprintf(name, sizeof name, "%s%s%s", command->name,
             *command->operands != '\0' ? " " : "", command->operands);
    print_entry(file, name, NAME_COLUMN, command->help);
}

/* Its summary, and its other names. */
static const char *help_of(const hf_opt *opt, char *text, size_t size)
{
    if (opt->also == NULL)
        return opt->help;
    int len = snprintf(text, size, "%s; also --", opt->help);
    for (const char *c = opt->also; *c != '\0' && len > 0 && (size_t)len < size; c++)
        len += snprintf(text + len, size - (size_t)len, "%.*s", *c == '|' ? 4 : 1,
                        *c == '|' ? ", --" : c);
    return text;
}

static void print_options(FILE *file, const hf_opt *opts)
{
    for (; opts != NULL && opts->name != NULL; opts++) {
        char name[64], help[HELP_SIZE], letter[8] = "    ";
        if (opts->letter != 0)
            snprintf(letter, sizeof letter, "-%c, ", opts->letter);
        snprintf(name, sizeof name, "%s--%s%s%s", letter, opts->name,
                 opts->value != NULL ? " " : "", opts->value != NULL ? opts->value : "");
        if (!opts->hidden)
            print_entry(file, name, OPTION_COLUMN, help_of(opts, help, sizeof help));
    }
}

static const char title[] =
    "holdfast - a work queue on Redis whose jobs are held by locks\n";

static const hf_command *core_command(int place)
{
    const hf_command *c = hf_commands();
    while (c->name != NULL && c->core != place)
        c++;
    return c->name != NULL ? c : NULL;
}

void hf_help_core(FILE *file)
{
    const hf_command *c;
    fprintf(file, "%s\n", title);
    for (int place = 1; (c = core_command(place)) != NULL; place++)
        print_command_line(file, c);
    fputs("\nholdfast help lists all commands; holdfast COMMAND --help explains one.\n",
          file);
}

void hf_help_all(FILE *file)
{
    const char *section = "";
    fprintf(file, "%s\nusage: holdfast COMMAND [OPTIONS]\n", title);
    for (const hf_command *c = hf_commands(); c->name != NULL; c++) {
        if (c->hidden)
            continue;
        if (strcmp(section, c->section) != 0)
            print_title(file, c->section);
        section = c->section;
        print_command_line(file, c);
    }
    print_title(file, "options of every command");
    print_options(file, hf_common_opts());
    print_title(file, "examples");
    const hf_command *core;
    for (int place = 1; (core = core_command(place)) != NULL; place++)
        print_examples(file, core->examples, 1);
    fputs("\nholdfast COMMAND --help explains a command.\n", file);
}

static void print_group(FILE *file, const char *group)
{
    for (const hf_command *c = hf_commands(); c->name != NULL; c++) {
        if (!c->hidden && hf_command_after(c, group) != NULL)
            print_command_line(file, c);
    }
}

void hf_help_group(FILE *file, const char *group)
{
    fprintf(file, "usage: holdfast %s COMMAND [OPTIONS]\n\n", group);
    print_group(file, group);
    print_title(file, "examples");
    for (const hf_command *c = hf_commands(); c->name != NULL; c++) {
        if (!c->hidden && hf_command_after(c, group) != NULL)
            print_examples(file, c->examples, 1);
    }
}

void hf_help_command(FILE *file, const hf_command *command, const char *group)
{
    bool options_first = command->program || command->dashes;
    fprintf(file, "usage: holdfast %s%s%s%s%s\n\n", command->name,
            options_first ? " [OPTIONS]" : "", *command->operands != '\0' ? " " : "",
            command->operands, options_first ? "" : " [OPTIONS]");
    print_wrapped(file, command->help, 0, 0);
    if (command->more != NULL) {
        fputc('\n', file);
        print_wrapped(file, command->more, 0, 0);
    }
    if (command->also != NULL)
        fprintf(file, "\nAlso: holdfast %s\n", command->also);
    if (group != NULL) {
        print_title(file, "commands");
        print_group(file, group);
    }
    if (command->opts != NULL && command->opts->name != NULL && !command->opts->hidden) {
        print_title(file, "options");
        print_options(file, command->opts);
    }
    print_title(file, "options of every command");
    print_options(file, hf_common_opts());
    print_title(file, "examples");
    print_examples(file, command->examples, SIZE_MAX);
}

/* ---- the manual page ---- */

static void put_roff_options(FILE *file, const hf_opt *opts)
{
    char help[HELP_SIZE];
    for (; opts != NULL && opts->name != NULL; opts++) {
        if (opts->hidden)
            continue;
        fputs(".TP\n", file);
        if (opts->letter != 0)
            fprintf(file, "\\fB\\-%c\\fR, ", opts->letter);
        fputs("\\fB\\-\\-", file);
        hf_roff_put(file, opts->name);
        fputs("\\fR", file);
        if (opts->value != NULL) {
            fputs(" \\fI", file);
            hf_roff_put(file, opts->value);
            fputs("\\fR", file);
        }
        fputc('\n', file);
        hf_roff_put(file, help_of(opts, help, sizeof help));
        fputc('\n', file);
    }
}

static void put_roff_command(FILE *file, const hf_command *command)
{
    fprintf(file, ".SS %s %s\n", command->name, command->operands);
    hf_roff_put(file, command->help);
    fputs(".\n", file);
    if (command->more != NULL) {
        fputs(".PP\n", file);
        hf_roff_put(file, command->more);
        fputc('\n', file);
    }
    if (command->also != NULL) {
        fputs(".PP\nAlso: holdfast ", file);
        hf_roff_put(file, command->also);
        fputc('\n', file);
    }
    put_roff_options(file, command->opts);
}

/* The sections that no table holds. */
static void put_roff_sections(FILE *file)
{
    fputs(
        ".SH ENVIRONMENT\n.TP\n.B REDIS_URL\nthe URL of Redis, unless \\-\\-redis is "
        "given\n"
        ".TP\n.B NO_COLOR\nno colours on a terminal; nor with TERM=dumb\n"
        ".TP\n.B COLUMNS\nhow wide a terminal is, instead of what it says itself\n"
        ".SH EXIT STATUS\n"
        ".TP\n0\ndone; also if a job that is not dead has the id already\n"
        ".TP\n1\nnot found; dead or running, if the command does not allow that; a "
        "question was answered with no; or doctor found something\n"
        ".TP\n64\nwrong usage\n"
        ".TP\n65\nbad data: an id, a name, a payload, a line of a bulk file, "
        "a file that cannot be opened\n"
        ".TP\n69\nRedis cannot be reached, or is too old\n"
        ".TP\n70\na bug\n"
        ".TP\n71\nthe system refuses memory, a process or an open file\n"
        ".TP\n73\na file or the standard output cannot be written; or a job was not "
        "accepted, because a dead job has its id or unique key\n"
        ".TP\n74\naccepted, but too few replicas of Redis have it\n"
        ".TP\n75\ntry again later\n"
        ".TP\n76\nthe end of a job is unknown: it is gone, and nothing tells how\n"
        ".TP\n77\nwrong password, or no permission\n"
        ".TP\n78\nthe configuration, or the eviction policy of Redis, is wrong\n"
        ".SH SIGNALS\n"
        ".TP\nTERM, INT\n"
        "a worker claims nothing more, waits for its running jobs for at most "
        "worker.shutdown_timeout, and exits; a second signal ends the wait. Commands "
        "that "
        "work in many steps (enqueue \\-\\-bulk, dead retry, purge) stop, and say how "
        "far they "
        "came\n"
        ".TP\nHUP\na worker reads its configuration file again\n"
        ".TP\nTSTP, CONT\na worker claims nothing more; it claims again. lock run passes "
        "on "
        "these and most others to its command\n"
        ".SH FILES\n"
        ".TP\n.I /etc/holdfast/NAME.yaml\n"
        "the configuration of the service holdfast\\-worker@NAME; see holdfast.yaml(5)\n"
        ".TP\n.I /usr/share/holdfast/lua\n"
        "the scripts that Redis runs, for other languages; see script enqueue\n"
        ".TP\n.I /usr/share/holdfast/acl\n"
        "users for Redis with the permissions that each role needs\n"
        ".SH EXAMPLES\n",
        file);
}

void hf_help_manual(FILE *file)
{
    fputs(".TH HOLDFAST 1 \"\" \"holdfast " HOLDFAST_VERSION "\"\n"
          ".SH NAME\nholdfast \\- a work queue on Redis whose jobs are held by locks\n"
          ".SH SYNOPSIS\n.B holdfast\n.I COMMAND\n[OPTIONS]\n"
          ".SH DESCRIPTION\n"
          "Puts jobs into queues, runs them with programs, and inspects the queues. An "
          "accepted job runs at least once, on one worker at a time. A worker that lost "
          "its lock cannot finish the job.\n"
          ".SH COMMANDS\n",
          file);
    for (const hf_command *c = hf_commands(); c->name != NULL; c++) {
        if (!c->hidden)
            put_roff_command(file, c);
    }
    fputs(".SH OPTIONS OF EVERY COMMAND\n", file);
    put_roff_options(file, hf_common_opts());
    put_roff_sections(file);
    for (const hf_command *c = hf_commands(); c->name != NULL; c++) {
        if (!c->hidden)
            hf_roff_example(file, c->examples);
    }
    fputs(
        ".SH SEE ALSO\n.BR holdfast.yaml (5),\n.BR flock (1),\n.BR redis\\-server (1)\n",
        file);
}

/* ---- the commands ---- */

int hf_cmd_version(hf_cli *cli)
{
    if (cli->json)
        hf_out_json(stdout, json_pack("{s:s, s:s}", "version", HOLDFAST_VERSION,
                                      "openssl", hf_tls_version()));
    else
        (void)printf("holdfast " HOLDFAST_VERSION " (OpenSSL %s)\n", hf_tls_version());
    return HF_EXIT_OK;
}

static int unknown(hf_cli *cli, const char *first, const char *second)
{
    char near[HF_SUGGEST_SIZE], name[96];
    hf_suggest_command(hf_commands(), first, second != NULL ? second : "", near);
    (void)snprintf(name, sizeof name, "%.40s%s%.40s", first, second != NULL ? " " : "",
                   second != NULL ? second : "");
    return hf_cli_say(cli, HF_EXIT_USAGE, "holdfast help lists all commands",
                      "expected a command, found '%s'%s", HF_FOUND(name), near);
}

int hf_cmd_help(hf_cli *cli)
{
    const char *first = hf_argv_operand(cli->args, 0);
    const char *second = hf_argv_operand(cli->args, 1);
    char name[64];
    if (hf_argv_has(cli->args, "man")) {
        hf_help_manual(stdout);
        return HF_EXIT_OK;
    }
    if (hf_argv_has(cli->args, "completion")) {
        hf_complete_script(stdout, hf_argv_number(cli->args, "completion", 0));
        return HF_EXIT_OK;
    }
    if (first == NULL) {
        hf_help_all(stdout);
        return HF_EXIT_OK;
    }
    snprintf(name, sizeof name, "%.30s%s%.30s", first, second != NULL ? " " : "",
             second != NULL ? second : "");
    const hf_command *command = hf_command_find(hf_commands(), name);
    if (command != NULL && !command->hidden)
        hf_help_command(stdout, command,
                        hf_command_group(hf_commands(), name) ? name : NULL);
    else if (*name != '\0' && hf_command_group(hf_commands(), name))
        hf_help_group(stdout, name);
    else
        return unknown(cli, first, second);
    return HF_EXIT_OK;
}
