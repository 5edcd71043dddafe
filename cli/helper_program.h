/* helper_program.h - commands that are programs of their own, because they need libraries
 * that `holdfast` itself does not link. They are in the folder of programs that people do
 * not call (libexec), and read the same options. */
#ifndef HF_CLI_HELPER_PROGRAM_H
#define HF_CLI_HELPER_PROGRAM_H

#include "cli/cli.h"

/* Replaces this process by the program, with the same arguments; a URL goes into its
 * environment, because a list of processes shows arguments. The command of the caller is
 * `bare`: the program reads the configuration. Returns only when that fails, which has
 * been said: HF_EXIT_UNAVAILABLE, and what has the program, if there is no such
 * program. */
int hf_helper_program(const hf_cli *cli, const char *program);

#endif
