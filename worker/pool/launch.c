/* launch.c - worker/pool/launch.h. */
#include "worker/pool/launch.h"

#include <errno.h>
#include <fcntl.h>

#include "lock/minder/spawn.h"
#include "worker/program/env.h"

/* Ours do not block; those of the program are its descriptors 0 to 3. */
static bool open_ends(const hf_launch *l, int far[HF_SPAWN_FDS], int *handles)
{
    far[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (far[0] < 0 || !hf_wire_open(l->wire, l->loop, &far[3]))
        return false;
    int n = hf_outputs_open(l->outputs, l->loop, &far[1]);
    *handles += 1 + n;
    return n == 2;
}

static hf_err start_group(const hf_launch *l, const int far[HF_SPAWN_FDS],
                          uint64_t deadline_ns)
{
    const hf_pool *pool = l->pool;
    hf_program_env env;
    hf_program_env_begin(&env);
    hf_program_env_add(&env, "HOLDFAST_FD", "3");
    hf_program_env_add(&env, "HOLDFAST_PIPE", "1");
    hf_program_env_pass(&env, pool->env, pool->env_all);
    hf_err err = hf_program_env_end(&env);
    if (err == HF_OK) {
        hf_group_start_opts how = {.argv = pool->argv,
                                   .envp = env.vars,
                                   .cwd = pool->cwd,
                                   .deadline_ns = deadline_ns};
        for (int i = 0; i < HF_SPAWN_FDS; i++)
            how.fds[i] = far[i];
        err = hf_group_start(l->group, &how);
    }
    int error = errno;
    hf_program_env_done(&env);
    errno = error;
    return err;
}

hf_err hf_launch_start(const hf_launch *l, uint64_t deadline_ns, int *handles)
{
    int far[HF_SPAWN_FDS] = {-1, -1, -1, -1, -1};
    hf_err err =
        open_ends(l, far, handles) ? start_group(l, far, deadline_ns) : HF_SYSTEM;
    int error = errno;
    for (int i = 0; i < HF_SPAWN_FDS; i++)
        hf_spawn_close_fd(&far[i]);
    if (err == HF_OK) {
        hf_wire_watch(l->wire);
        hf_outputs_watch(l->outputs);
    }
    errno = error;
    return err;
}

hf_err hf_launch_join(const hf_launch *l, const hf_joined *joined, int *handles)
{
    int pidfd = joined->pidfd;
    if (!hf_wire_take(l->wire, l->loop, joined->fd)) {
        int error = errno;
        hf_spawn_close_fd(&pidfd);
        errno = error;
        return HF_SYSTEM;
    }
    *handles += 1;
    hf_err err = hf_group_join(l->group, joined->pid, pidfd);
    if (err == HF_OK)
        hf_wire_watch(l->wire);
    return err;
}

void hf_launch_refuse(const hf_joined *joined)
{
    int fd = joined == NULL ? -1 : joined->fd,
        pidfd = joined == NULL ? -1 : joined->pidfd;
    hf_spawn_close_fd(&fd);
    hf_spawn_close_fd(&pidfd);
}
