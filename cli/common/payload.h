/* payload.h - an operand of a command: the payload of jobs. */
#ifndef HF_CLI_COMMON_PAYLOAD_H
#define HF_CLI_COMMON_PAYLOAD_H

#include "base/buf.h"
#include "cli/cli.h"

/* The operand of this number itself, or with "-" all of standard input, which `input`
 * holds then; NULL: there is none. HF_EXIT_OK, or it has been said. */
int hf_take_payload(const hf_cli *cli, size_t operand, hf_buf *input,
                    const void **payload, size_t *len);

#endif
