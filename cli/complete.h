/* complete.h - `holdfast __complete`: the words that a shell offers at the cursor. They
 * come from the table of commands. Nothing here asks Redis or reads a file: a key press
 * must not wait. The shells' side is in completions/. */
#ifndef HF_CLI_COMPLETE_H
#define HF_CLI_COMPLETE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define HF_SHELLS "bash|zsh|fish"

/* `words` are those after "holdfast"; the last one is at the cursor, perhaps empty.
 *
 * The first line of the output is the part of that word which stays before each
 * candidate: "--state=", or nothing. Then comes a line for each candidate: the word, a
 * tab, its help. The shell keeps those that match.
 *
 * False: the word is the name of a file, or belongs to another program. There are no
 * candidates then, and the shell does what it does by default. */
bool hf_complete(FILE *file, const char *const *words, size_t n);

/* Prints the script of a shell, by its place in HF_SHELLS. */
void hf_complete_script(FILE *file, int64_t shell);

#endif
