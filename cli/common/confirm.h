/* confirm.h - asking before something is destroyed.
 *
 * The user sits at the terminal that is standard input. The answer is read there. The
 * question goes there too, unless standard error is a terminal as well. Without a
 * terminal the answer is --yes. */
#ifndef HF_CLI_COMMON_CONFIRM_H
#define HF_CLI_COMMON_CONFIRM_H

#include <stdbool.h>

#include "cli/cli.h"

/* For the start of a command, before anything is asked of Redis: HF_EXIT_OK if there is
 * --yes or a terminal; else it has been said. */
int hf_confirm_possible(const hf_cli *cli);

/* Whether there is a question to put: no --yes was given. */
bool hf_confirm_wanted(const hf_cli *cli);

/* Puts the question, "... [y/N] ". HF_EXIT_OK: "y", "yes" or --yes; anything else, the
 * end of input too, is no, and that nothing was done has been said. */
int hf_confirm(const hf_cli *cli, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
