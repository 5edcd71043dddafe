/* args.c - see args.h.
 *
 * The command is the first word that is not an option, or the first two. Only common
 * options may stand before it, because the command determines the others.
 *
 * "lock" and "worker" are older names of "lock run" and "worker run", so a second word
 * may follow or not. It does if it makes a command with the first one, as in "lock list",
 * unless "--" and a program follow it: "lock list -- make" runs make under a lock named
 * "list". But "lock show -- -x" shows the lock "-x". */
#include "cli/args.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/mask.h"
#include "base/text.h"
#include "cli/suggest.h"

typedef struct parser {
    hf_argv *out;
    const hf_command *commands;
    int argc, at;
    char **argv;
    bool plain; /* after "--": no options any more */
    char *detail;
} parser;

static hf_err fail(parser *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static hf_err fail(parser *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(p->detail, HF_ARGV_DETAIL_SIZE, format, args);
    hf_mask(p->detail);
    va_end(args);
    return HF_INVALID;
}

/* ---- options ---- */

/* The place of a word in "a|b|c", or -1. */
static int64_t choice_of(const char *choices, const char *word)
{
    size_t len = strlen(word);
    for (int64_t place = 0;; place++) {
        size_t here = strcspn(choices, "|");
        if (here == len && memcmp(choices, word, len) == 0)
            return place;
        if (choices[here] == '\0')
            return -1;
        choices += here + 1;
    }
}

static hf_err read_number(parser *p, const hf_opt *opt, const char *text, int64_t *out)
{
    char low[HF_DURATION_SIZE], high[HF_DURATION_SIZE];
    switch (opt->kind) {
    case HF_OPT_INT:
        if (hf_parse_int(text, opt->min, opt->max, out))
            return HF_OK;
        return fail(p, "--%s: expected an integer from %lld to %lld, found '%s'",
                    opt->name, (long long)opt->min, (long long)opt->max, HF_FOUND(text));
    case HF_OPT_DURATION:
        if (hf_parse_duration_ms(text, out) && *out >= opt->min && *out <= opt->max)
            return HF_OK;
        hf_format_duration(opt->min, low);
        hf_format_duration(opt->max, high);
        return fail(p,
                    "--%s: expected a duration with its unit (ms s m h d) from %s to %s, "
                    "found '%s'",
                    opt->name, low, high, HF_FOUND(text));
    case HF_OPT_TIME:
        if (hf_parse_time_ms(text, out) && *out >= 0)
            return HF_OK;
        return fail(p,
                    "--%s: expected a time from 1970 to 9999 with its zone "
                    "(2030-01-31T08:00:00Z) or @SECONDS, found '%s'%s",
                    opt->name, HF_FOUND(text), hf_time_needs(text));
    case HF_OPT_CHOICE:
        *out = choice_of(opt->choices, text);
        if (*out >= 0)
            return HF_OK;
        return fail(p, "--%s: expected one of %s, found '%s'", opt->name, opt->choices,
                    HF_FOUND(text));
    default:
        *out = 0;
        return HF_OK;
    }
}

static hf_err add_given(parser *p, const hf_opt *opt, const char *value)
{
    hf_given given = {.opt = opt, .text = value};
    if (!opt->many && hf_argv_has(p->out, opt->name))
        return fail(p, "--%s: expected it once, found it again", opt->name);
    hf_err err = read_number(p, opt, value, &given.number);
    if (err == HF_OK)
        p->out->given[p->out->n_given++] = given;
    return err;
}

/* A value is not shown: it may be the password of another program's option. */
static hf_err unknown_option(parser *p, const char *word)
{
    char name[HF_FOUND_SIZE], near[HF_SUGGEST_SIZE];
    bool is_long = word[1] == '-';
    const hf_command *command = p->out->command;
    (void)snprintf(name, sizeof name, "%.*s", is_long ? (int)strcspn(word, "=") : 2,
                   word);
    if (command == NULL)
        return fail(p, "expected a command before its options, found '%s'",
                    HF_FOUND(name));
    hf_suggest_option(command->opts, hf_common_opts(), word, near);
    if (*near != '\0' && !is_long)
        (void)snprintf(name, sizeof name, "%.40s", word);
    return fail(p, "expected an option of '%s', found '%s'%s", command->name,
                HF_FOUND(name), near);
}

/* `value`: the rest of the same word, or NULL. Takes the next word if one is needed.
 */
static hf_err take_option(parser *p, const hf_opt *opt, const char *value)
{
    if (opt->kind == HF_OPT_FLAG) {
        if (value != NULL)
            return fail(p, "--%s: expected no value, found '%s'", opt->name,
                        HF_FOUND(value));
        p->out->help = p->out->help || strcmp(opt->name, "help") == 0;
        p->out->version = p->out->version || strcmp(opt->name, "version") == 0;
        return add_given(p, opt, "");
    }
    if (value == NULL) {
        if (p->at >= p->argc)
            return fail(p, "--%s: missing %s (usage: --%s %s)", opt->name, opt->value,
                        opt->name, opt->value);
        value = p->argv[p->at++];
    }
    return add_given(p, opt, value);
}

static hf_err take_long(parser *p, const char *word)
{
    const char *name = word + 2;
    size_t len = strcspn(name, "=");
    const hf_opt *opt = hf_opt_find(p->out->command, name, len, 0);
    if (opt == NULL)
        return unknown_option(p, word);
    return take_option(p, opt, name[len] == '=' ? name + len + 1 : NULL);
}

/* "-q", "-q Q", "-qQ", and letters without a value joined to others, as in "-xn". */
static hf_err take_short(parser *p, const char *word)
{
    for (const char *at = word + 1; *at != '\0'; at++) {
        const hf_opt *opt = hf_opt_find(p->out->command, NULL, 0, *at);
        if (opt == NULL) {
            const char one[] = {'-', *at, '\0'};
            return unknown_option(p, at == word + 1 ? word : one);
        }
        if (opt->kind != HF_OPT_FLAG)
            return take_option(p, opt, at[1] != '\0' ? at + 1 : NULL);
        hf_err err = take_option(p, opt, NULL);
        if (err != HF_OK)
            return err;
    }
    return HF_OK;
}

/* ---- the command and its operands ---- */

/* One word names a command or a group of them ("queue"); then a second one follows. */
static hf_err take_command(parser *p, const char *word)
{
    char both[64], near[HF_SUGGEST_SIZE];
    const char *first = p->out->group;
    if (first != NULL) {
        snprintf(both, sizeof both, "%.20s %.40s", first, word);
        word = both;
    }
    p->out->command = hf_command_find(p->commands, word);
    if (first == NULL && *word != '\0' && hf_command_group(p->commands, word)) {
        p->out->group = word;
        return HF_OK;
    }
    if (p->out->command != NULL) {
        p->out->group = NULL;
        return HF_OK;
    }
    bool more = first == NULL && p->at < p->argc && p->argv[p->at][0] != '-';
    hf_suggest_command(p->commands, word, more ? p->argv[p->at] : "", near);
    return fail(p, "expected a command, found '%s'%s", HF_FOUND(word), near);
}

/* How many words an option of the command takes: with its value 2; 0: it is none. */
static int words_of(const hf_command *command, const char *word)
{
    if (word[1] == '-') {
        size_t len = strcspn(word + 2, "=");
        const hf_opt *opt = hf_opt_find(command, word + 2, len, 0);
        return opt == NULL ? 0 : opt->kind == HF_OPT_FLAG || word[2 + len] == '=' ? 1 : 2;
    }
    for (const char *at = word + 1; *at != '\0'; at++) {
        const hf_opt *opt = hf_opt_find(command, NULL, 0, *at);
        if (opt == NULL)
            return 0;
        if (opt->kind != HF_OPT_FLAG)
            return at[1] != '\0' ? 1 : 2;
    }
    return 1;
}

/* Whether "--" and a program come next, perhaps after options of this command. A word
 * that begins with "-" is no program but a name. */
static bool program_follows(const parser *p, const hf_command *command)
{
    for (int at = p->at; at < p->argc && p->argv[at][0] == '-';) {
        int n = words_of(command, p->argv[at]);
        if (strcmp(p->argv[at], "--") == 0)
            return at + 1 == p->argc || p->argv[at + 1][0] != '-';
        if (n == 0 || p->argv[at][1] == '\0')
            return false;
        at += n;
    }
    return false;
}

/* The second word of a command whose first one is a command itself. *taken: it is. */
static hf_err take_second(parser *p, const char *word, bool *taken)
{
    char both[64];
    const hf_command *first = p->out->command;
    snprintf(both, sizeof both, "%.20s %.40s", p->out->group, word);
    const hf_command *command = hf_command_find(p->commands, both);
    *taken = command != NULL && !(first->program && program_follows(p, first));
    if (command == NULL && (first->max_operands == 0 || first->dashes))
        return take_command(p, word); /* which says what was meant */
    p->out->group = NULL;
    if (!*taken)
        return HF_OK;
    p->out->command = command;
    for (size_t i = 0; i < p->out->n_given; i++) { /* they stood before the word */
        const hf_opt *opt = p->out->given[i].opt;
        if (opt != NULL && /* it never is; an analyzer cannot know this */
            hf_opt_find(command, opt->name, strlen(opt->name), 0) != opt)
            return fail(p, "expected an option of '%s', found '--%s'", command->name,
                        opt->name);
    }
    return HF_OK;
}

static hf_err take_word(parser *p, const char *word)
{
    bool taken = false;
    hf_err err = HF_OK;
    if (!p->plain && strcmp(word, "--") == 0) {
        p->plain = true;
        return HF_OK;
    }
    if (!p->plain && word[0] == '-' && word[1] == '-')
        return take_long(p, word);
    if (!p->plain && word[0] == '-' && word[1] != '\0')
        return take_short(p, word);
    if (p->out->command == NULL)
        return take_command(p, word);
    if (p->out->group != NULL && !p->plain)
        err = take_second(p, word, &taken);
    if (err != HF_OK || taken)
        return err;
    if (p->out->command->dashes && !p->plain)
        return fail(p, "expected nothing after '%s' but '-- COMMAND', found '%s'",
                    p->out->command->name, HF_FOUND(word));
    p->out->operands[p->out->n_operands++] = word;
    p->plain = p->plain || (p->out->command->program && p->out->n_operands > 1);
    return HF_OK;
}

/* The name of the operand of this place in the help, for example COMMAND of
 * "NAME[,NAME...] [--] COMMAND". Returns its length. */
static size_t operand_name(const char *operands, size_t place, const char **name)
{
    for (const char *at = operands; *at != '\0'; at += strspn(at, " ")) {
        size_t len = strcspn(at, " ");
        *name = at;
        at += len;
        if (strncmp(*name, "[--]", len) != 0 && place-- == 0)
            return strcspn(*name, "[ ") > 0 ? strcspn(*name, "[ ") : len;
    }
    *name = "";
    return 0;
}

static hf_err check_operands(parser *p)
{
    const hf_command *command = p->out->command;
    if (command == NULL || p->out->help)
        return HF_OK;
    if (p->out->n_operands > command->max_operands)
        return fail(p, "expected nothing more after '%s%s%s', found '%s'", command->name,
                    *command->operands != '\0' ? " " : "", command->operands,
                    HF_FOUND(p->out->operands[command->max_operands]));
    if (p->out->n_operands < command->min_operands) {
        const char *name;
        size_t len = operand_name(command->operands, p->out->n_operands, &name);
        return fail(p, "missing %.*s (usage: holdfast %s %s)", (int)len, name,
                    command->name, command->operands);
    }
    return HF_OK;
}

/* Options there can be at most: one for each word, and for each letter. */
static size_t given_max(int argc, char **argv)
{
    size_t n = (size_t)argc + 1;
    for (int i = 1; i < argc; i++)
        n += argv[i][0] == '-' ? strlen(argv[i]) : 0;
    return n;
}

hf_err hf_argv_parse(hf_argv *out, const hf_command *commands, int argc, char **argv,
                     char detail[HF_ARGV_DETAIL_SIZE])
{
    *out = (hf_argv){0};
    parser p = {.out = out,
                .commands = commands,
                .argc = argc,
                .at = 1,
                .argv = argv,
                .detail = detail};
    if (argc > HF_ARGV_MAX)
        return fail(&p, "expected at most %d words, found %d", HF_ARGV_MAX, argc);
    out->given = calloc(given_max(argc, argv), sizeof *out->given);
    out->operands = calloc((size_t)argc + 1, sizeof *out->operands);
    if (out->given == NULL || out->operands == NULL)
        return HF_NOMEM;
    hf_err err = HF_OK;
    while (err == HF_OK && p.at < argc) {
        const char *word = argv[p.at++];
        err = take_word(&p, word);
    }
    /* A call for help may have faults in its other words. */
    if (err == HF_OK)
        err = check_operands(&p);
    return err;
}

void hf_argv_done(hf_argv *args)
{
    free(args->given);
    free(args->operands);
    *args = (hf_argv){0};
}

/* ---- asking ---- */

static const hf_given *nth(const hf_argv *args, const char *name, size_t i)
{
    for (size_t k = 0; k < args->n_given; k++) {
        if (strcmp(args->given[k].opt->name, name) == 0 && i-- == 0)
            return &args->given[k];
    }
    return NULL;
}

size_t hf_argv_count(const hf_argv *args, const char *name)
{
    size_t n = 0;
    while (nth(args, name, n) != NULL)
        n++;
    return n;
}

const char *hf_argv_nth(const hf_argv *args, const char *name, size_t i)
{
    const hf_given *given = nth(args, name, i);
    return given == NULL ? NULL : given->text;
}

const char *hf_argv_text(const hf_argv *args, const char *name)
{
    return hf_argv_nth(args, name, 0);
}

int64_t hf_argv_number(const hf_argv *args, const char *name, int64_t otherwise)
{
    const hf_given *given = nth(args, name, 0);
    return given == NULL ? otherwise : given->number;
}

bool hf_argv_has(const hf_argv *args, const char *name)
{
    return nth(args, name, 0) != NULL;
}

const char *hf_argv_operand(const hf_argv *args, size_t i)
{
    return i < args->n_operands ? args->operands[i] : NULL;
}

/* ---- passwords ---- */

/* Overwrites what stands between the user's name and the last '@' of a URL. */
static void overwrite_password(char *url)
{
    char *start = strstr(url, "://");
    char *at = strrchr(url, '@');
    if (start == NULL || at == NULL || at < start)
        return;
    start += 3;
    char *colon = memchr(start, ':', (size_t)(at - start));
    if (colon != NULL)
        start = colon + 1;
    for (; start < at; start++)
        *start = '*';
}

/* The place of the URL in the word i, or NULL: the word is not one. */
static char *url_in(int i, char **argv)
{
    static const char joined[] = "--redis=";
    if (strncmp(argv[i], joined, sizeof joined - 1) == 0)
        return argv[i] + sizeof joined - 1;
    return i > 1 && strcmp(argv[i - 1], "--redis") == 0 ? argv[i] : NULL;
}

hf_err hf_argv_hide_passwords(int argc, char **argv, char ***copies)
{
    size_t n = 0;
    char **own = calloc((size_t)(argc > 0 ? argc : 0) + 1, sizeof *own);
    if (own == NULL)
        return HF_NOMEM;
    *copies = own;
    for (int i = 1; i < argc; i++) {
        char *url = url_in(i, argv);
        if (url == NULL)
            continue;
        char *copy = strdup(argv[i]);
        if (copy == NULL)
            return HF_NOMEM;
        own[n++] = copy;
        overwrite_password(url);
        argv[i] = copy;
    }
    return HF_OK;
}

void hf_argv_free_copies(char **copies)
{
    for (size_t i = 0; copies != NULL && copies[i] != NULL; i++)
        free(copies[i]);
    free(copies);
}
