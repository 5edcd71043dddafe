/* pools.h - the pools of the live workers of each queue, for the commands that show
 * queues. */
#ifndef HF_CLI_ADMIN_POOLS_H
#define HF_CLI_ADMIN_POOLS_H

#include <jansson.h>

#include "cli/cli.h"

/* Reads them: the name of a queue -> an array with an object for each name of a pool,
 * with the sums of all workers. The caller owns *out. Returns an exit code, and says what
 * failed. */
int hf_pools_read(const hf_cli *cli, hf_admin *admin, json_t **out);

/* Those of a queue, borrowed; NULL: it has none. */
json_t *hf_pools_of(const json_t *all, const char *queue);

/* A line for each. NULL is fine. */
void hf_pools_print(const json_t *pools);

#endif
