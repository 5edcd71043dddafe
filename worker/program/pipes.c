/* pipes.c - see pipes.h. */
#include "worker/program/pipes.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/base.h"
#include "worker/program/env.h"

/* It fits into the pipe, so the write does not wait for a reader. */
static bool offer_checkpoint(int *far, const hf_program_job *job)
{
    int fds[2];
    if (job->checkpoint_len == 0)
        return (*far = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;
    if (!hf_spawn_pipe(fds, 1))
        return false;
    *far = fds[0];
    ssize_t n = write(fds[1], job->checkpoint, job->checkpoint_len);
    hf_spawn_close_fd(&fds[1]);
    return n == (ssize_t)job->checkpoint_len;
}

bool hf_program_pipes_open(hf_far_ends *far, int ours[HF_PIPES],
                           const hf_program_job *job)
{
    for (size_t i = 0; i < HF_COUNT(far->fds); i++)
        far->fds[i] = -1;
    for (int i = 0; i < HF_PIPES; i++)
        ours[i] = -1;
    for (int i = 0; i < HF_PIPES; i++) {
        bool in = i == HF_PIPE_IN;
        int fds[2];
        if (!hf_spawn_pipe(fds, in))
            return false;
        ours[i] = fds[in];
        far->fds[i] = fds[!in];
    }
    return offer_checkpoint(&far->fds[HF_PIPES], job);
}

void hf_program_pipes_close(hf_far_ends *far)
{
    for (size_t i = 0; i < HF_COUNT(far->fds); i++)
        hf_spawn_close_fd(&far->fds[i]);
}
