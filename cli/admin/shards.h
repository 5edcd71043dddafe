/* shards.h - the shards of a queue, for the commands that show them. */
#ifndef HF_CLI_ADMIN_SHARDS_H
#define HF_CLI_ADMIN_SHARDS_H

#include <jansson.h>

#include "cli/cli.h"

/* What a command shows of them. */
typedef struct hf_shards_shown {
    size_t n;      /* 0: the queue is not divided */
    json_t *array; /* with --json: an object for each; the caller's */
} hf_shards_shown;

/* Reads them, and prints how many there are and a table, unless it is for --json. One
 * that cannot be asked is shown as "unknown". Returns an exit code, and says what failed.
 */
int hf_shards_show(const hf_cli *cli, hf_admin *admin, const char *queue,
                   hf_shards_shown *out);

#endif
