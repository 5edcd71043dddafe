/* programs.c - worker/programs.h: the programs of one worker together, and how one
 * starts. What happens to one from then on is in worker/process.c. */
#include "worker/programs.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "lock/spawn.h"
#include "worker/process.h"
#include "worker/program_text.h"

static void on_minder(bool ready, void *arg)
{
    hf_programs *programs = arg;
    if (programs->opts.on_ready != NULL && !programs->closing)
        programs->opts.on_ready(ready, programs->opts.arg);
}

hf_err hf_programs_new(hf_programs **out, struct uv_loop_s *loop,
                       const hf_programs_opts *opts, char detail[HF_DETAIL_SIZE])
{
    hf_programs *programs = calloc(1, sizeof *programs);
    if (programs == NULL)
        return HF_NOMEM;
    programs->loop = loop;
    programs->opts = *opts;
    programs->opts.minder_path = NULL; /* not ours to keep */
    hf_minder_opts minder = {.loop = loop,
                             .path = opts->minder_path,
                             .kill_grace_ms = opts->kill_grace_ms,
                             .on_ready = on_minder,
                             .arg = programs};
    hf_err err = hf_minder_start(&programs->minder, &minder, detail);
    if (err != HF_OK) {
        free(programs);
        return err;
    }
    *out = programs;
    return HF_OK;
}

bool hf_programs_ready(const hf_programs *programs)
{
    return hf_minder_ready(programs->minder);
}

/* ---- start ---- */

/* The child's ends of its pipes: they become its descriptors 0 to 3. */
typedef struct far_ends {
    int fds[HF_SPAWN_FDS];
} far_ends;

static void close_far_ends(far_ends *far)
{
    for (size_t i = 0; i < HF_COUNT(far->fds); i++)
        hf_close_fd(&far->fds[i]);
}

static bool open_pipes(hf_process *p, far_ends *far)
{
    *far = (far_ends){{-1, -1, -1, -1}};
    for (int i = 0; i < HF_PROCESS_PIPES; i++) {
        bool in = i == HF_PIPE_IN;
        int fds[2];
        if (!hf_spawn_pipe(fds, in))
            return false;
        p->pipes[i].fd = fds[in];
        far->fds[i] = fds[!in];
    }
    return true;
}

static hf_err spawn(hf_process *p, const far_ends *far, const hf_program_job *job)
{
    hf_program_env env;
    char path[PATH_MAX];
    hf_spawned spawned;
    int minder_fd = hf_minder_fd(p->owner->minder);
    if (minder_fd < 0)
        return HF_BUSY; /* it went this very moment */
    hf_err err = hf_program_env_init(&env, p->spec, job);
    if (err == HF_OK) {
        hf_spawn_find(p->spec->argv[0], path);
        hf_spawn how = {.path = path,
                        .argv = (char *const *)(uintptr_t)p->spec->argv, /* only read */
                        .envp = env.vars,
                        .cwd = p->spec->cwd,
                        .minder_fd = minder_fd,
                        .deadline_ns = job->deadline_ns,
                        .ends_with_us = true};
        for (size_t i = 0; i < HF_COUNT(how.fds); i++)
            how.fds[i] = far->fds[i];
        err = hf_spawn_start(&how, &spawned);
    }
    int error = errno;
    hf_program_env_done(&env);
    errno = error;
    if (err != HF_OK)
        return err;
    p->pid = spawned.pid;
    p->pidfd = spawned.pidfd;
    p->fault = spawned.fault;
    return HF_OK;
}

hf_err hf_programs_start(hf_programs *programs, const hf_program *spec,
                         const hf_program_job *job, hf_program_done_cb done_cb, void *arg,
                         hf_process **out)
{
    HF_ASSERT(done_cb != NULL && !programs->closing);
    if (!hf_programs_ready(programs))
        return HF_BUSY;
    hf_process *p = hf_process_new(programs, spec, job, done_cb, arg);
    if (p == NULL)
        return HF_NOMEM;
    far_ends far;
    hf_err err = open_pipes(p, &far) ? hf_process_prepare(p) : HF_SYSTEM;
    if (err == HF_OK)
        err = spawn(p, &far, job);
    if (err == HF_OK)
        err = hf_process_run(p, job);
    int error = errno;
    close_far_ends(&far);
    if (err != HF_OK)
        hf_process_abandon(p);
    else
        *out = p;
    errno = error;
    return err;
}

/* ---- end ---- */

static void on_minder_closed(void *arg)
{
    hf_programs *programs = arg;
    void (*cb)(void *) = programs->closed_cb;
    void *cb_arg = programs->closed_arg;
    programs->closed = true;
    hf_programs_settle(programs);
    if (cb != NULL)
        cb(cb_arg);
}

void hf_programs_settle(hf_programs *programs)
{
    if (programs->closed && programs->n_processes == 0) {
        hf_minder_free(programs->minder);
        free(programs);
    } else if (programs->closing && programs->running == NULL &&
               !programs->minder_closing) {
        programs->minder_closing = true;
        hf_minder_close(programs->minder, on_minder_closed, programs);
    }
}

void hf_programs_close(hf_programs *programs, void (*cb)(void *arg), void *arg)
{
    if (programs == NULL)
        return;
    HF_ASSERT(!programs->closing);
    programs->closing = true;
    programs->closed_cb = cb;
    programs->closed_arg = arg;
    for (hf_process *p = programs->running; p != NULL; p = p->next)
        hf_program_end(p, 0);
    hf_programs_settle(programs);
}
