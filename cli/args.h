/* args.h - the command line: one table of commands and options (commands.c), from which
 * come the parser here, and --help and the manual page (help.c). */
#ifndef HF_CLI_ARGS_H
#define HF_CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/error.h"

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
    const char *help;
} hf_opt;

typedef struct hf_command {
    const char *name; /* one word, or two: "queue list" */
    const char *operands;
    size_t min_operands, max_operands;
    const hf_opt *opts; /* NULL: only the common ones */
    int (*run)(struct hf_cli *cli);
    bool program; /* from the second operand on they are a program and its arguments:
                     none of them is an option */
    bool bare;    /* needs no configuration: it is not read */
    bool hidden;
    const char *section; /* where --help lists it */
    const char *help;    /* one line */
    const char *more;    /* paragraphs for its own --help; may be NULL */
} hf_command;

enum { HF_ARGV_DETAIL_SIZE = 512, HF_ARGV_MAX = 4096 };

typedef struct hf_given {
    const hf_opt *opt;
    const char *text; /* "" of a flag */
    int64_t number;
} hf_given;

/* All text is borrowed from argv and the tables. */
typedef struct hf_argv {
    const hf_command *command; /* NULL: none was named */
    const char *group;         /* "queue", where only the first of two words was given */
    bool help;                 /* --help was given: nothing else was checked */
    bool version;
    hf_given *given;
    size_t n_given;
    const char **operands;
    size_t n_operands;
} hf_argv;

/* The tables of commands.c. Commands end with one that has no name. */
const hf_command *hf_commands(void);
const hf_opt *hf_common_opts(void);

/* The command of this whole name, or NULL. */
const hf_command *hf_command_find(const hf_command *commands, const char *name);

/* What comes in the command's name after the words `path` ("list" of "job list" after
 * "job"; all of it after ""), or NULL: it does not begin with them, or ends there. */
const char *hf_command_after(const hf_command *command, const char *path);

/* Is there a command whose name goes on after these words? */
bool hf_command_group(const hf_command *commands, const char *path);

/* The option of the command (NULL: none is named yet) or of every command, by its letter,
 * or by the first `len` characters of `name` where the letter is 0. NULL: there is none.
 */
const hf_opt *hf_opt_find(const hf_command *command, const char *name, size_t len,
                          char letter);

/* Reads argv[1..]. HF_OK; HF_INVALID, and `detail` says what is wrong; HF_NOMEM. In any
 * case end it with hf_argv_done(). */
HF_MUSTCHECK hf_err hf_argv_parse(hf_argv *out, const hf_command *commands, int argc,
                                  char **argv, char detail[HF_ARGV_DETAIL_SIZE]);
void hf_argv_done(hf_argv *args);

/* How often an option was given; its i-th value (NULL past the last); its last number. */
size_t hf_argv_count(const hf_argv *args, const char *name);
const char *hf_argv_nth(const hf_argv *args, const char *name, size_t i);
const char *hf_argv_text(const hf_argv *args, const char *name); /* NULL: not given */
int64_t hf_argv_number(const hf_argv *args, const char *name, int64_t otherwise);
bool hf_argv_has(const hf_argv *args, const char *name);
const char *hf_argv_operand(const hf_argv *args, size_t i); /* NULL: not given */

/* Takes copies of the URLs in argv out of sight: overwrites the password in each --redis
 * value in place, so that no list of processes shows it, and puts a pointer to an own
 * copy there. *copies ends with NULL; hf_argv_free_copies() ends it. */
HF_MUSTCHECK hf_err hf_argv_hide_passwords(int argc, char **argv, char ***copies);
void hf_argv_free_copies(char **copies);

#endif
