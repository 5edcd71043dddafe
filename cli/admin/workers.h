/* workers.h - a worker as --json has it. */
#ifndef HF_CLI_ADMIN_WORKERS_H
#define HF_CLI_ADMIN_WORKERS_H

#include <jansson.h>

#include "holdfast/admin.h"

json_t *hf_workers_json(const hf_worker_info *worker); /* NULL: out of memory */

#endif
