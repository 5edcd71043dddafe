/* completion.h - what the shells need to complete a command line, made from the table of
 * commands. Nothing in it asks Redis: a key press must not wait for a connection. */
#ifndef HF_CLI_COMPLETION_H
#define HF_CLI_COMPLETION_H

#include <stdint.h>
#include <stdio.h>

enum { HF_SHELL_BASH, HF_SHELL_ZSH, HF_SHELL_FISH };
#define HF_SHELLS "bash|zsh|fish" /* in this order */

void hf_completion(FILE *file, int64_t shell);

#endif
