/* table.h - the shape of the table of all commands and options (commands.c, options.c),
 * and how to find something in it. The parser (args.c), the help and the manual page
 * (help.c) and the completions (complete.c) know nothing else. */
#ifndef HF_CLI_TABLE_H
#define HF_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hf_cli;

typedef enum hf_opt_kind {
    HF_OPT_FLAG,
    HF_OPT_TEXT,
    HF_OPT_INT,      /* min..max */
    HF_OPT_DURATION, /* ms, min..max */
    HF_OPT_TIME,     /* Unix ms */
    HF_OPT_CHOICE    /* a word of `choices`; the number is its place */
} hf_opt_kind;

/* The last of a list has no name. */
typedef struct hf_opt {
    const char *name; /* without "--" */
    const char *also; /* other names for it, with '|' between; NULL: none */
    char letter;      /* 0: none */
    hf_opt_kind kind;
    const char *value; /* what the help calls its value */
    int64_t min, max;
    const char *choices; /* words with '|' between */
    bool many;           /* may be given again */
    bool hidden;
    const char *alike; /* what others call it, with '|' between: it is suggested then */
    const char *help;
} hf_opt;

typedef struct hf_command {
    const char *name; /* one word, or two: "queue list" */
    const char *also; /* an older name of the same form, or NULL */
    const char *operands;
    size_t min_operands, max_operands;
    const hf_opt *opts; /* NULL: only the common ones */
    int (*run)(struct hf_cli *cli);
    bool program; /* from the second operand on they are a program and its arguments:
                     none of them is an option */
    bool dashes;  /* its operands are a program and its arguments, after "--" only */
    bool bare;    /* needs no configuration: it is not read */
    bool logs;    /* has a log of its own, and warns there of its configuration */
    bool hidden;
    int core;            /* its place in the list that `holdfast` alone prints; 0: none */
    const char *alike;   /* what others call it, with '|' between: it is suggested then */
    const char *section; /* where --help lists it */
    const char *help;    /* one line */
    const char *more;    /* paragraphs for its own --help; may be NULL */
    const char *examples; /* lines for a shell; a test runs each. NULL if it is hidden */
} hf_command;

/* The tables of commands.c. Commands end with one that has no name. */
const hf_command *hf_commands(void);
const hf_opt *hf_common_opts(void);

/* Whether the `len` characters at `word` are one of the words in "a|b|c"; NULL: none. */
bool hf_words_have(const char *words, const char *word, size_t len);

/* The command of this whole name, or older name; or NULL. */
const hf_command *hf_command_find(const hf_command *commands, const char *name);

/* The rest of the command's name after the words `path` ("list" of "job list" after
 * "job"; all of it after ""), or of its older name. NULL: neither begins with them, or it
 * ends there. */
const char *hf_command_after(const hf_command *command, const char *path);

/* Whether the name of a command continues after these words. */
bool hf_command_group(const hf_command *commands, const char *path);

/* The option of the command (NULL: none is named yet) or of every command, by its letter,
 * or by the first `len` characters of `name` where the letter is 0. NULL: there is none.
 */
const hf_opt *hf_opt_find(const hf_command *command, const char *name, size_t len,
                          char letter);

#endif
