/* spawn.c - worker/spawn.h.
 *
 * Between fork and exec the child calls only what is async-signal-safe: other threads of
 * the worker may have held any lock at the fork. All signals are blocked in that time, so
 * no handler of the host runs in the child, and one that is sent to it meanwhile ends it
 * by its default as soon as the mask is lifted. */
/* For pipe2, close_range and syscall: marking a descriptor after it was made leaves a
 * window in which another thread's fork hands it on, and libc has no function for
 * pidfd_open yet. */
#define _GNU_SOURCE /* NOLINT(bugprone-reserved-identifier) */
#include "worker/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fdlock.h"
#include "worker/minder.h"

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

enum {
    FD_SCAN_MAX = 65536, /* where the kernel has no close_range */
    EXIT_NOT_EXECUTED = 127
};

bool hf_spawn_pipe(int fds[2], int ours)
{
    if (pipe2(fds, O_CLOEXEC) != 0)
        return false;
    int flags = fcntl(fds[ours], F_GETFL);
    if (flags >= 0 && fcntl(fds[ours], F_SETFL, flags | O_NONBLOCK) == 0)
        return true;
    int error = errno;
    close(fds[0]);
    close(fds[1]);
    errno = error;
    return false;
}

void hf_close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

int hf_spawn_pidfd(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0U);
}

bool hf_spawn_find(const char *name, char out[PATH_MAX])
{
    if (strchr(name, '/') != NULL) {
        int n = snprintf(out, PATH_MAX, "%s", name);
        if (n >= 0 && n < PATH_MAX)
            return true;
        out[0] = '\0';
        return false;
    }
    const char *dir = getenv("PATH");
    if (dir == NULL)
        dir = "/usr/local/bin:/usr/bin:/bin";
    char refused[PATH_MAX] = "";
    for (const char *end; *name != '\0'; dir = end + 1) {
        end = strchrnul(dir, ':');
        int n = end == dir
                    ? snprintf(out, PATH_MAX, "./%s", name)
                    : snprintf(out, PATH_MAX, "%.*s/%s", (int)(end - dir), dir, name);
        struct stat st;
        if (n > 0 && n < PATH_MAX && stat(out, &st) == 0 && S_ISREG(st.st_mode)) {
            if (access(out, X_OK) == 0)
                return true;
            if (refused[0] == '\0')
                memcpy(refused, out, (size_t)n + 1);
        }
        if (*end == '\0')
            break;
    }
    memcpy(out, refused, strlen(refused) + 1);
    return refused[0] != '\0';
}

/* ---- the child ---- */

static void default_signals(void)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    for (int sig = 1; sig <= SIGRTMAX; sig++)
        sigaction(sig, &action, NULL); /* those that cannot be set have their default */
}

/* Everything above the given descriptors is closed by exec, and not before: the fault
 * pipe is needed until then. */
static void close_on_exec(int first, int scan_end)
{
    if (close_range((unsigned)first, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
        return;
    for (int fd = first; fd < scan_end; fd++)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* A descriptor among those that are about to be replaced is moved out of their way. */
static int out_of_the_way(int fd)
{
    return fd >= 0 && fd < HF_SPAWN_FDS ? fcntl(fd, F_DUPFD_CLOEXEC, HF_SPAWN_FDS) : fd;
}

static bool place_fds(const int given[HF_SPAWN_FDS])
{
    int fds[HF_SPAWN_FDS];
    int n = given[HF_SPAWN_FDS - 1] < 0 ? HF_SPAWN_FDS - 1 : HF_SPAWN_FDS;
    for (int i = 0; i < n; i++) {
        fds[i] = out_of_the_way(given[i]);
        if (fds[i] < 0)
            return false;
    }
    for (int i = 0; i < n; i++)
        if (dup2(fds[i], i) < 0)
            return false;
    if (n < HF_SPAWN_FDS)
        close(HF_SPAWN_FDS - 1);
    return true;
}

static hf_spawn_step run_child(const hf_spawn *spawn, int *fault_fd, int scan_end)
{
    default_signals();
    setsid();
    *fault_fd = out_of_the_way(*fault_fd);
    int minder_fd = out_of_the_way(spawn->minder_fd);
    if (*fault_fd < 0 || !place_fds(spawn->fds))
        return HF_SPAWN_SETUP;
    close_on_exec(HF_SPAWN_FDS, scan_end);
    /* The child tells the minder itself: a worker that is killed right after the fork
     * leaves no program that nobody minds. */
    hf_minder_record record = {HF_MIND_HOLD, (int32_t)getpid(), spawn->deadline_ns};
    if (spawn->minder_fd >= 0 && !hf_minder_write(minder_fd, &record))
        return HF_SPAWN_MINDER;
    if (spawn->cwd != NULL && chdir(spawn->cwd) != 0)
        return HF_SPAWN_CWD;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(spawn->path, spawn->argv, spawn->envp);
    return HF_SPAWN_EXEC;
}

static _Noreturn void child(const hf_spawn *spawn, int fault_fd, int scan_end)
{
    hf_spawn_step step = run_child(spawn, &fault_fd, scan_end);
    hf_spawn_fault fault = {(int32_t)step, errno};
    ssize_t written = write(fault_fd, &fault, sizeof fault);
    (void)written; /* There is nobody else to tell. */
    _exit(EXIT_NOT_EXECUTED);
}

/* ---- the worker ---- */

hf_spawn_fault hf_spawn_fault_read(int fault_fd)
{
    hf_spawn_fault fault = {HF_SPAWN_NONE, 0};
    ssize_t n;
    do
        n = read(fault_fd, &fault, sizeof fault);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof fault ? fault : (hf_spawn_fault){HF_SPAWN_NONE, 0};
}

static int scan_end(void)
{
    long max = sysconf(_SC_OPEN_MAX);
    return max > 0 && max < FD_SCAN_MAX ? (int)max : FD_SCAN_MAX;
}

void hf_spawn_undo(pid_t pid, int minder_fd)
{
    siginfo_t info;
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL); /* it may not lead its group yet */
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
        continue;
    /* It writes nothing more now, and its number is not free before it is reaped. */
    hf_minder_record record = {HF_MIND_GONE, (int32_t)pid, 0};
    if (minder_fd >= 0) {
        hf_sigpipe state;
        hf_sigpipe_begin(&state);
        (void)!hf_minder_write(minder_fd, &record); /* a dead minder has forgotten it */
        hf_sigpipe_end(&state);
    }
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

hf_err hf_spawn_start(const hf_spawn *spawn, hf_spawned *out)
{
    int fault[2];
    if (!hf_spawn_pipe(fault, 0))
        return HF_SYSTEM;
    int end = scan_end();
    sigset_t all, before;
    sigfillset(&all);
    hf_fd_lock();
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0)
        child(spawn, fault[1], end);
    int error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    hf_fd_unlock();
    close(fault[1]);
    if (pid > 0) {
        int pidfd = hf_spawn_pidfd(pid);
        if (pidfd >= 0) {
            *out = (hf_spawned){.pid = pid, .pidfd = pidfd, .fault_fd = fault[0]};
            return HF_OK;
        }
        error = errno;
        hf_spawn_undo(pid, spawn->minder_fd);
    }
    close(fault[0]);
    errno = error;
    return HF_SYSTEM;
}
