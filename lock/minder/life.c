/* life.c - see life.h. */
#include "lock/minder/life.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "lock/minder/record.h"
#include "lock/minder/spawn.h"

enum { NUMBER_SIZE = 16, LIBRARIES_SIZE = 4096 };

static hf_err spawn_minder(const hf_spawn *fds, const char *path,
                           const char *library_path, uint32_t kill_grace_ms,
                           hf_spawned *spawned)
{
    char grace[NUMBER_SIZE], worker[NUMBER_SIZE], libraries[LIBRARIES_SIZE];
    snprintf(grace, sizeof grace, "%lu", (unsigned long)kill_grace_ms);
    snprintf(worker, sizeof worker, "%ld", (long)getpid());
    snprintf(libraries, sizeof libraries, "LD_LIBRARY_PATH=%s",
             library_path == NULL ? "" : library_path);
    char name[] = "holdfast", verb[] = "minder";
    char *argv[] = {name, verb, grace, worker, NULL};
    /* Nothing of the worker's environment, which may hold a password. */
    char *envp[] = {library_path == NULL ? NULL : libraries, NULL};
    hf_spawn spawn = *fds;
    spawn.path = path;
    spawn.argv = argv;
    spawn.envp = envp;
    return hf_spawn_start(&spawn, spawned);
}

hf_err hf_minder_life_start(hf_minder_life *life, const char *path,
                            const char *library_path, uint32_t kill_grace_ms)
{
    int control[2] = {-1, -1}, hello[2] = {-1, -1};
    hf_spawned spawned = {.pidfd = -1};
    hf_err err = HF_SYSTEM;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0 && hf_spawn_pipe(control, 1) && hf_spawn_pipe(hello, 0)) {
        hf_spawn fds = {.fds = {control[0], hello[1], null, -1, -1},
                        .minder_fd = -1,
                        .cgroup_fd = -1};
        err = spawn_minder(&fds, path, library_path, kill_grace_ms, &spawned);
    }
    int error = errno;
    hf_spawn_close_fd(&null);
    hf_spawn_close_fd(&control[0]);
    hf_spawn_close_fd(&hello[1]);
    if (err != HF_OK) {
        hf_spawn_close_fd(&control[1]);
        hf_spawn_close_fd(&hello[0]);
        errno = error;
        return err;
    }
    *life = (hf_minder_life){.pid = spawned.pid,
                             .pidfd = spawned.pidfd,
                             .words_fd = hello[0],
                             .pipe_fd = control[1],
                             .fault = spawned.fault,
                             .since_ns = hf_boot_ns()};
    return HF_OK;
}

bool hf_minder_life_read(hf_minder_life *life)
{
    char bytes[64];
    errno = 0;
    ssize_t n = read(life->words_fd, bytes, sizeof bytes);
    if (n <= 0)
        return false;
    if (!life->said_hello)
        life->answers = bytes[0] == HF_MINDER_ANSWERS;
    life->said_hello = true;
    return true;
}

static bool hello_came(hf_minder_life *life, uint32_t timeout_ms)
{
    uint64_t end_ns = hf_boot_ns() + timeout_ms * HF_MS_NS;
    for (uint64_t now = hf_boot_ns(); now < end_ns; now = hf_boot_ns()) {
        struct pollfd fd = {.fd = life->words_fd, .events = POLLIN};
        poll(&fd, 1, (int)((end_ns - now) / HF_MS_NS) + 1);
        if (hf_minder_life_read(life))
            return true;
        if (errno != EAGAIN && errno != EINTR)
            return false;
    }
    return false;
}

bool hf_minder_life_wait(hf_minder_life *life, const char *name, uint32_t timeout_ms,
                         char detail[HF_DETAIL_SIZE])
{
    if (hello_came(life, timeout_ms))
        return true;
    if (life->fault.step != HF_SPAWN_NONE)
        snprintf(detail, HF_DETAIL_SIZE, "cannot run the minder '%.150s': %s", name,
                 strerror(life->fault.error));
    else
        snprintf(detail, HF_DETAIL_SIZE, "'%.150s' does not answer as a minder", name);
    return false;
}

void hf_minder_life_kill(const hf_minder_life *life)
{
    kill(life->pid, SIGKILL);
}

void hf_minder_life_reap(const hf_minder_life *life)
{
    while (waitpid(life->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

void hf_minder_life_close(hf_minder_life *life)
{
    hf_spawn_close_fd(&life->pidfd);
    hf_spawn_close_fd(&life->words_fd);
    hf_spawn_close_fd(&life->pipe_fd);
}
