/* fdlock.h - one lock of the whole process around "make a descriptor, mark it
 * close-on-exec" and around fork. No program that is started inherits a descriptor of
 * ours. */
#ifndef HF_BASE_FDLOCK_H
#define HF_BASE_FDLOCK_H

#include <stdbool.h>
#include <stddef.h>

void hf_fd_lock(void);
void hf_fd_unlock(void);
bool hf_fd_cloexec(int fd); /* marks it; false with errno */

/* Blocks SIGPIPE in the calling thread and discards one that was raised in between. A
 * write to a closed socket or pipe is then only an error. `begin` fills the state, `end`
 * uses it. */
typedef struct hf_sigpipe {
    bool was_blocked, was_pending;
} hf_sigpipe;
void hf_sigpipe_begin(hf_sigpipe *state);
void hf_sigpipe_end(const hf_sigpipe *state);

/* Writes what a descriptor that does not block has room for, without a signal, and moves
 * both on. False: the rest waits for room. One without a reader takes everything. */
bool hf_write_some(int fd, const char **bytes, size_t *left);

#endif
