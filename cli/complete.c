/* complete.c - see complete.h. */
#include "cli/complete.h"

#include <string.h>

#include "cli/cli.h"
#include "cli_scripts.h" /* the scripts of the shells */

enum { PATH_SIZE = 64, GIVEN_MAX = 64 };

/* The meaning of the words before the cursor. */
typedef struct before {
    char path[PATH_SIZE]; /* the words of the command so far: "", "job", "job list" */
    const hf_command *command; /* NULL: not named yet */
    bool helping;              /* after `help`, whose operands name a command */
    bool foreign;              /* what follows belongs to another program */
    size_t n_operands;
    const hf_opt *valued; /* the word at the cursor is its value */
    const hf_opt *given[GIVEN_MAX];
    size_t n_given;
} before;

/* ---- the table ---- */

/* Whether no command before this one begins with the same word. */
static bool is_first(const hf_command *command, size_t len)
{
    for (const hf_command *c = hf_commands(); c != command; c++) {
        if (!c->hidden && strncmp(c->name, command->name, len) == 0 &&
            c->name[len] == ' ')
            return false;
    }
    return true;
}

static bool takes_file(const hf_opt *opt)
{
    return opt->value != NULL && strncmp(opt->value, "FILE", 4) == 0;
}

/* ---- the words before the cursor ---- */

static void add_given(before *b, const hf_opt *opt)
{
    if (b->n_given < GIVEN_MAX)
        b->given[b->n_given++] = opt;
}

/* True: the option's value is the next word. */
static bool take_long(before *b, const char *word)
{
    size_t len = strcspn(word + 2, "=");
    const hf_opt *opt = hf_opt_find(b->command, word + 2, len, 0);
    b->valued = NULL;
    if (opt == NULL)
        return false;
    add_given(b, opt);
    if (opt->kind != HF_OPT_FLAG && word[2 + len] == '\0')
        b->valued = opt;
    return b->valued != NULL;
}

static bool take_short(before *b, const char *word)
{
    for (const char *at = word + 1; *at != '\0'; at++) {
        const hf_opt *opt = hf_opt_find(b->command, NULL, 0, *at);
        if (opt == NULL)
            return false;
        add_given(b, opt);
        if (opt->kind == HF_OPT_FLAG)
            continue;
        b->valued = at[1] == '\0' ? opt : NULL;
        return b->valued != NULL;
    }
    return false;
}

static void take_word(before *b, const char *word)
{
    char path[2 * PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s%s%.60s", b->path, *b->path != '\0' ? " " : "",
                   word);
    const hf_command *command = hf_command_find(hf_commands(), path);
    /* The words of a command have ended: "lock" is one by itself, too. */
    if (b->n_operands > 0 || strlen(path) >= sizeof b->path ||
        !hf_command_group(hf_commands(), b->path) ||
        (b->command != NULL && command == NULL)) {
        b->n_operands++;
        b->foreign = b->command != NULL && b->command->program && b->n_operands > 1;
        return;
    }
    memcpy(b->path, path, strlen(path) + 1);
    if (b->helping)
        return;
    b->command = command;
    b->helping = strcmp(b->path, "help") == 0;
    if (b->helping) {
        b->path[0] = '\0';
        b->command = NULL;
    }
}

static void read_before(before *b, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n && !b->foreign; i++) {
        bool skips = false;
        if (strcmp(words[i], "--") == 0)
            b->foreign = true;
        else if (strncmp(words[i], "--", 2) == 0)
            skips = take_long(b, words[i]);
        else if (words[i][0] == '-')
            skips = take_short(b, words[i]);
        else
            take_word(b, words[i]);
        if (skips && ++i < n)
            b->valued = NULL;
    }
}

/* ---- the possible words at the cursor ---- */

/* Of the help only its first part. */
static void put(FILE *file, const char *word, size_t len, const char *help)
{
    fprintf(file, "%.*s\t%.*s\n", (int)len, word, (int)strcspn(help, ";\n"), help);
}

/* "list, show": the words that may follow this one. */
static void put_group(FILE *file, const char *word, size_t len)
{
    const char *comma = "\t";
    fprintf(file, "%.*s", (int)len, word);
    for (const hf_command *c = hf_commands(); c->name != NULL; c++) {
        if (c->hidden || strncmp(c->name, word, len) != 0 || c->name[len] != ' ')
            continue;
        fprintf(file, "%s%s", comma, c->name + len + 1);
        comma = ", ";
    }
    fputc('\n', file);
}

static void put_words(FILE *file, const char *path)
{
    for (const hf_command *c = hf_commands(); c->name != NULL; c++) {
        const char *word = c->hidden ? NULL : hf_command_after(c, path);
        if (word == NULL)
            continue;
        size_t len = strcspn(word, " ");
        if (word[len] == '\0')
            put(file, word, len, c->help);
        else if (is_first(c, len))
            put_group(file, word, len);
    }
}

/* "locks": the first words of older names, where no other one is meant. */
static void put_old_words(FILE *file, const char *typed)
{
    const char *last = "";
    size_t typed_len = strlen(typed);
    for (const hf_command *c = hf_commands(); c->name != NULL; c++) {
        if (!c->hidden && strncmp(c->name, typed, typed_len) == 0)
            return;
    }
    for (const hf_command *c = hf_commands(); c->name != NULL; c++) {
        size_t len = c->also != NULL ? strcspn(c->also, " ") : 0;
        if (len == 0 || strncmp(c->also, typed, typed_len) != 0 ||
            (strlen(last) >= len && strncmp(last, c->also, len) == 0))
            continue;
        put(file, c->also, len, c->help);
        last = c->also;
    }
}

static bool is_given(const before *b, const hf_opt *opt)
{
    for (size_t i = 0; i < b->n_given; i++) {
        if (b->given[i] == opt)
            return true;
    }
    return false;
}

static void put_options(FILE *file, const before *b, const hf_opt *opts)
{
    char name[PATH_SIZE];
    for (; opts != NULL && opts->name != NULL; opts++) {
        if (opts->hidden || (is_given(b, opts) && !opts->many))
            continue;
        (void)snprintf(name, sizeof name, "--%s", opts->name);
        put(file, name, strlen(name), opts->help);
        (void)snprintf(name, sizeof name, "-%c", opts->letter);
        if (opts->letter != 0)
            put(file, name, 2, opts->help);
    }
}

static bool put_value(FILE *file, const hf_opt *opt)
{
    if (takes_file(opt))
        return false;
    for (const char *at = opt->choices; at != NULL && *at != '\0';) {
        size_t len = strcspn(at, "|");
        put(file, at, len, opt->help);
        at += len + (at[len] == '|' ? 1 : 0);
    }
    return true;
}

/* The option whose value is in the same word: "--state=", "-c". `len`: how long that is.
 */
static const hf_opt *joined(const before *b, const char *word, size_t *len)
{
    const hf_opt *opt = NULL;
    *len = strcspn(word, "=") + 1;
    if (strncmp(word, "--", 2) == 0 && strchr(word, '=') != NULL)
        return hf_opt_find(b->command, word + 2, *len - 3, 0);
    *len = 2;
    if (word[0] == '-' && word[1] != '-' && strlen(word) > 2)
        opt = hf_opt_find(b->command, NULL, 0, word[1]);
    return opt != NULL && opt->kind != HF_OPT_FLAG ? opt : NULL;
}

/* Whether the word at the cursor is the program of a command that runs one. */
static bool is_program(const before *b, const char *word)
{
    return b->command != NULL && b->command->program && b->n_operands == 1 &&
           word[0] != '-';
}

bool hf_complete(FILE *file, const char *const *words, size_t n)
{
    const char *word = n > 0 ? words[n - 1] : "";
    before b = {.n_given = 0};
    size_t len;
    read_before(&b, words, n > 0 ? n - 1 : 0);
    bool ours = !b.foreign && (b.valued != NULL || !is_program(&b, word));
    const hf_opt *opt = ours && b.valued == NULL ? joined(&b, word, &len) : NULL;
    fprintf(file, "%.*s\n", opt != NULL ? (int)len : 0, word);
    if (!ours)
        return false;
    if (b.valued != NULL || opt != NULL)
        return put_value(file, b.valued != NULL ? b.valued : opt);
    if (word[0] != '-') {
        if (b.n_operands == 0)
            put_words(file, b.path);
        if (*b.path == '\0')
            put_old_words(file, word);
    } else if (strchr(word, '=') == NULL) { /* else it is an option that we do not know */
        put_options(file, &b, hf_common_opts());
        put_options(file, &b, b.command != NULL ? b.command->opts : NULL);
    }
    return true;
}

void hf_complete_script(FILE *file, int64_t shell)
{
    static const char *const scripts[] = {hf_script_bash, hf_script_zsh, hf_script_fish};
    fputs(scripts[shell], file);
}

int hf_cmd_complete(hf_cli *cli)
{
    bool ours = hf_complete(stdout, cli->args->operands, cli->args->n_operands);
    return ours ? HF_EXIT_OK : HF_EXIT_NO;
}
