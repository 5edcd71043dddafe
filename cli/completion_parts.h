/* completion_parts.h - what the scripts for the three shells have in common.
 *
 * Each script walks over the words before the cursor, leaves out options and their
 * values, and so finds the command. Which options take a value depends on the command. */
#ifndef HF_CLI_COMPLETION_PARTS_H
#define HF_CLI_COMPLETION_PARTS_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/args.h"

/* Calls fn for each word that may follow `before` ("", "job"), once. `help` is NULL for a
 * word that another one follows. */
typedef void (*hf_on_word)(FILE *file, const char *word, int len, const char *help);
void hf_each_word(FILE *file, const char *before, hf_on_word fn);

/* Calls fn with each first word that another one follows. */
void hf_each_group(FILE *file, void (*fn)(FILE *file, const char *group));

/* The next command from `command` on that is listed and whose options are to be offered,
 * or NULL. `help` is not one: its operands are commands. */
const hf_command *hf_with_options(const hf_command *command);

/* The next option from `opt` on that is listed, or NULL. */
const hf_opt *hf_listed(const hf_opt *opt);

bool hf_takes_file(const hf_opt *opt);

/* " --queue -q": all names, or only of those that take a value. */
void hf_put_names(FILE *file, const hf_opt *opts, bool valued);

/* Words with '|' between, as words with spaces between. */
void hf_put_choices(FILE *file, const char *choices);

/* The first part of a help text (NULL: the words that may follow this one), for inside of
 * single quotes: a quote becomes `quote`, and each of `escaped` gets a backslash. */
void hf_put_help(FILE *file, const char *word, int len, const char *help,
                 const char *quote, const char *escaped);

void hf_put_bash(FILE *file);
void hf_put_zsh(FILE *file);
void hf_put_fish(FILE *file);

#endif
