/* pipes.h - the pipes between a worker and a program, before the program starts.
 */
#ifndef HF_WORKER_PROGRAM_PIPES_H
#define HF_WORKER_PROGRAM_PIPES_H

#include <stdbool.h>

#include "lock/minder/spawn.h"
#include "worker/program/env.h"

/* By the descriptor that the program sees. */
typedef enum hf_pipe {
    HF_PIPE_IN,
    HF_PIPE_OUT,
    HF_PIPE_ERR,
    HF_PIPE_VERDICT,
    HF_PIPES
} hf_pipe;

/* The child's ends: they become its descriptors 0 to 4. The checkpoint is at 4. */
typedef struct hf_far_ends {
    int fds[HF_SPAWN_FDS];
} hf_far_ends;

/* Opens all of them; `ours` do not block. False with errno: what could not be opened is
 * -1. The caller closes both sides in any case. */
bool hf_program_pipes_open(hf_far_ends *far, int ours[HF_PIPES],
                           const hf_program_job *job);
void hf_program_pipes_close(hf_far_ends *far);

#endif
