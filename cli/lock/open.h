/* open.h - what the commands about locks share. */
#ifndef HF_CLI_LOCK_OPEN_H
#define HF_CLI_LOCK_OPEN_H

#include "cli/cli.h"
#include "holdfast/lock.h"

/* A client by the configuration and the options. HF_EXIT_OK, or it has been said. */
int hf_cli_locks(const hf_cli *cli, hf_lock_client **out);

/* HF_EXIT_OK if it is the name of a lock; else it is said. `what`: "a lock's name". */
int hf_cli_check_lock(const hf_cli *cli, const char *what, const char *name);

#endif
