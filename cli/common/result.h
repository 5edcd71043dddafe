/* result.h - prints the result of a job. */
#ifndef HF_CLI_COMMON_RESULT_H
#define HF_CLI_COMMON_RESULT_H

#include "cli/cli.h"

/* Only the bytes, which may change meanwhile, or with --json an object. */
void hf_result_put(const hf_cli *cli, const char *queue, const char *id, void *bytes,
                   size_t len, hf_result_kind kind);

/* Only the bytes, or with --json an object. HF_EXIT_OK, or it has been said. */
int hf_result_print(const hf_cli *cli, hf_admin *admin, const char *queue,
                    const char *id);

#endif
