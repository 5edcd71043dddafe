/* queue.h - the figures of a queue as --json has them. */
#ifndef HF_CLI_ADMIN_QUEUE_H
#define HF_CLI_ADMIN_QUEUE_H

#include <jansson.h>

#include "holdfast/admin.h"

json_t *hf_queue_json(const hf_queue_stats *stats); /* NULL: out of memory */

#endif
