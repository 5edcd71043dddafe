/* result.h - prints the result of a job. */
#ifndef HF_CLI_COMMON_RESULT_H
#define HF_CLI_COMMON_RESULT_H

#include "cli/cli.h"

/* Only the bytes, or with --json an object. HF_EXIT_OK, or it has been said. */
int hf_result_print(const hf_cli *cli, hf_admin *admin, const char *queue,
                    const char *id);

#endif
