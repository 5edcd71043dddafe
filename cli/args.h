/* args.h - the parser of the command line. It knows the tables of table.h, and nothing of
 * any one command. */
#ifndef HF_CLI_ARGS_H
#define HF_CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/table.h"
#include "holdfast/error.h"

enum { HF_ARGV_DETAIL_SIZE = 512, HF_ARGV_MAX = 4096 };

typedef struct hf_given {
    const hf_opt *opt;
    const char *text; /* "" of a flag */
    int64_t number;
} hf_given;

/* All text is borrowed from argv and the tables. */
typedef struct hf_argv {
    const hf_command *command; /* NULL: none was named */
    const char *group; /* "queue", where only the first of two words was given; with a
                          command: that is the older name of one, as "lock" is */
    bool help;         /* --help was given: nothing else was checked */
    bool version;
    hf_given *given;
    size_t n_given;
    const char **operands;
    size_t n_operands;
} hf_argv;

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

/* Hides the passwords of URLs in argv: overwrites the password in each --redis value in
 * place, because a list of processes shows argv, and puts a pointer to a copy there.
 * *copies ends with NULL; hf_argv_free_copies() ends it. */
HF_MUSTCHECK hf_err hf_argv_hide_passwords(int argc, char **argv, char ***copies);
void hf_argv_free_copies(char **copies);

#endif
