/* cron.h - a schedule as --json has it. */
#ifndef HF_CLI_CRON_CRON_H
#define HF_CLI_CRON_CRON_H

#include <jansson.h>

#include "holdfast/admin.h"

json_t *hf_cron_json(const hf_schedule_info *schedule); /* NULL: out of memory */

#endif
