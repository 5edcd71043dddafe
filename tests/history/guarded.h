/* guarded.h - a file that the holder of a lock writes, and that guards itself by the
 * fence: a witness that trusts no clock and no log.
 *
 * Each write adds one to what it read before, with a pause in between that only the lock
 * protects. The file takes no lower fence than the highest that has read or written it,
 * under flock(2). So a lost update is two lines with one number. */
#ifndef HF_TESTS_HISTORY_GUARDED_H
#define HF_TESTS_HISTORY_GUARDED_H

#include <stdbool.h>
#include <stdint.h>

/* Reads, pauses, writes one more. False: it was refused, for its fence is too low. */
bool hf_guarded_write(const char *path, uint64_t fence, const char *owner,
                      unsigned pause_ms);

#endif
