/* env.h - the environment of a program that runs under a lock: ours, and HOLDFAST_LOCK_*
 * about the lock. */
#ifndef HF_CLI_LOCK_ENV_H
#define HF_CLI_LOCK_ENV_H

#include "holdfast/lock.h"

typedef struct hf_lock_env hf_lock_env;

/* NULL: no memory. The caller ends it. */
hf_lock_env *hf_lock_env_make(const hf_lock *lock, const char *names, int loss_fd);
char *const *hf_lock_env_vars(const hf_lock_env *env);
void hf_lock_env_free(hf_lock_env *env);

#endif
