/* limits.h - what a job may be given, by option or in a bulk file. */
#ifndef HF_CLI_LIMITS_H
#define HF_CLI_LIMITS_H

#include <stdint.h>

#include "holdfast/producer.h" /* HF_DELAY_MAX_MS */

enum { HF_ATTEMPTS_MAX = 1000000, HF_WAIT_REPLICAS_MAX_MS = 300000 };

#define HF_DAY_MS (INT64_C(24) * 3600 * 1000)
#define HF_TIMEOUT_MAX_MS (30 * HF_DAY_MS)

#endif
