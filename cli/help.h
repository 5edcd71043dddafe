/* help.h - the texts that are made from the table of commands. */
#ifndef HF_CLI_HELP_H
#define HF_CLI_HELP_H

#include <stdio.h>

#include "cli/table.h"

void hf_help_core(FILE *file); /* twelve lines: the commands to begin with */
void hf_help_all(FILE *file);
void hf_help_group(FILE *file, const char *group); /* "queue" */
/* `group`: "lock", if that is a name of this command and the first word of others; or
 * NULL. */
void hf_help_command(FILE *file, const hf_command *command, const char *group);
void hf_help_manual(FILE *file); /* for man(1) */

#endif
