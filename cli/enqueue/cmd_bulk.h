/* cmd_bulk.h - `holdfast enqueue --bulk`. */
#ifndef HF_CLI_ENQUEUE_CMD_BULK_H
#define HF_CLI_ENQUEUE_CMD_BULK_H

#include "cli/cli.h"

int hf_cmd_bulk(hf_cli *cli);

#endif
