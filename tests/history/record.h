/* record.h - takes locks through the public interface and records requests, answers and
 * beliefs: the history of a player (history.h). Thread-safe. */
#ifndef HF_TESTS_HISTORY_RECORD_H
#define HF_TESTS_HISTORY_RECORD_H

#include "holdfast/lock.h"

typedef struct hf_recorder hf_recorder;
typedef struct hf_taken hf_taken; /* one acquisition; the recorder's */

/* Appends to the file. `player`: unique among all that write to files of one history. */
hf_recorder *hf_recorder_open(const char *path, unsigned player);
/* Notes that a timer of the player ran late: 0 is the recorder's own, 1 the player's. */
void hf_record_late(hf_recorder *r, unsigned timer, uint64_t from_ns, uint64_t to_ns);
void hf_recorder_rest(hf_recorder *r); /* looks at no lock any more */
void hf_recorder_close(
    hf_recorder *r); /* after the locks' clients, which may still tell */

/* Takes a lock; NULL if it was not had, and *err (may be NULL) says why. `cancel_ms`:
 * gives up waiting then; < 0: does not. */
hf_taken *hf_record_acquire(hf_recorder *r, hf_lock_client *locks, hf_lock_opts opts,
                            int cancel_ms, hf_err *err);
hf_lock_release_result hf_record_release(hf_taken *t);
hf_err hf_record_downgrade(hf_taken *t);
hf_lock *hf_taken_lock(const hf_taken *t);

#endif
