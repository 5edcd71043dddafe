/* leftovers.h - the processes of a group whose leader has ended. */
#ifndef HF_CLI_LOCK_LEFTOVERS_H
#define HF_CLI_LOCK_LEFTOVERS_H

#include <stdbool.h>
#include <sys/types.h>

/* Orphans of the program become our children: we get a signal when they end. */
bool hf_leftovers_adopt(void);

/* Is a process alive in the leader's group? The leader itself has ended and is not
 * reaped. Reaps our orphans that have ended. */
bool hf_leftovers_is_there(pid_t leader);

#endif
