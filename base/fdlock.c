/* fdlock.c - base/fdlock.h. */
#include "base/fdlock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"

/* Of the whole process, as descriptors are: fork() copies those of every thread. */
static pthread_mutex_t fd_mutex = PTHREAD_MUTEX_INITIALIZER;

void hf_fd_lock(void)
{
    HF_ASSERT(pthread_mutex_lock(&fd_mutex) == 0);
}

void hf_fd_unlock(void)
{
    HF_ASSERT(pthread_mutex_unlock(&fd_mutex) == 0);
}

bool hf_fd_cloexec(int fd)
{
    int flags = fcntl(fd, F_GETFD);
    return flags >= 0 && fcntl(fd, F_SETFD, flags | FD_CLOEXEC) == 0;
}

static bool sigpipe_pending(void)
{
    sigset_t pending;
    sigemptyset(&pending);
    return sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
}

void hf_sigpipe_begin(hf_sigpipe *state)
{
    sigset_t pipe_only, before;
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    sigemptyset(&before);
    HF_ASSERT(pthread_sigmask(SIG_BLOCK, &pipe_only, &before) == 0);
    state->was_blocked = sigismember(&before, SIGPIPE) == 1;
    /* A signal that was waiting already is not ours to take back. */
    state->was_pending = sigpipe_pending();
}

void hf_sigpipe_end(const hf_sigpipe *state)
{
    sigset_t pipe_only;
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    int saved = errno; /* the caller's write has just set it */
    if (!state->was_pending && sigpipe_pending()) {
        static const struct timespec no_wait = {0, 0};
        while (sigtimedwait(&pipe_only, NULL, &no_wait) < 0 && errno == EINTR)
            continue;
    }
    if (!state->was_blocked)
        HF_ASSERT(pthread_sigmask(SIG_UNBLOCK, &pipe_only, NULL) == 0);
    errno = saved;
}

bool hf_write_some(int fd, const char **bytes, size_t *left)
{
    hf_sigpipe state;
    hf_sigpipe_begin(&state);
    bool full = false;
    while (*left > 0 && !full) {
        ssize_t n = write(fd, *bytes, *left);
        if (n >= 0) {
            *bytes += n;
            *left -= (size_t)n;
        } else if (errno == EAGAIN) {
            full = true;
        } else if (errno != EINTR) {
            *left = 0;
        }
    }
    hf_sigpipe_end(&state);
    return !full;
}
