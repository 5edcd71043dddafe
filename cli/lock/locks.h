/* locks.h - a holder or a waiter of a lock, as --json has it. */
#ifndef HF_CLI_LOCK_LOCKS_H
#define HF_CLI_LOCK_LOCKS_H

#include <jansson.h>

#include "holdfast/lock.h"

json_t *hf_locks_json(const hf_lock_entry *entry); /* NULL: out of memory */

#endif
