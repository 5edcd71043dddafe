/* spawn.c - lock/minder/spawn.h.
 *
 * Before its exec the child calls only what is async-signal-safe: other threads of the
 * worker go on, and may hold any lock. It has the worker's memory, a stack of its own,
 * and its own descriptors, signal dispositions and directory; of that memory it writes
 * only its stack, the fault, and the errno of the thread that waits for it. All signals
 * are blocked until they have their defaults, so no handler of the host runs in the
 * child, and a signal that arrives meanwhile takes its default effect as soon as the mask
 * is lifted. */
/* For clone, pipe2 and syscall: marking a descriptor after it was made leaves a window in
 * which another thread's fork hands it on, and not every libc has functions for
 * close_range and pidfd_open. */
#define _GNU_SOURCE /* NOLINT(bugprone-reserved-identifier) */
#include "lock/minder/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fdlock.h"
#include "base/parent.h"
#include "lock/minder/cgroup.h"
#include "lock/minder/mark.h"
#include "lock/minder/record.h"

#ifndef P_PIDFD
#define P_PIDFD 3
#endif
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif
#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x1000
#endif
#ifndef PIDFD_SIGNAL_PROCESS_GROUP
#define PIDFD_SIGNAL_PROCESS_GROUP (1U << 2)
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

enum {
    FD_SCAN_MAX = 65536, /* where the kernel has no close_range */
    CHILD_STACK = 32 << 10,
    EXIT_NOT_EXECUTED = 127
};

bool hf_spawn_pipe(int fds[2], int ours)
{
    if (pipe2(fds, O_CLOEXEC) != 0)
        return false;
    if (fcntl(fds[ours], F_SETFL, O_NONBLOCK) == 0) /* a new one has no other flags */
        return true;
    int error = errno;
    close(fds[0]);
    close(fds[1]);
    errno = error;
    return false;
}

void hf_spawn_close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

int hf_spawn_pidfd(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0U);
}

hf_err hf_spawn_check(char detail[HF_DETAIL_SIZE])
{
    siginfo_t info;
    struct utsname name;
    int pidfd = hf_spawn_pidfd(getpid());
    /* No process is a child of itself; before Linux 5.4 the question itself is refused.
     */
    bool known = pidfd >= 0 &&
                 waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG) != 0 &&
                 errno != EINVAL && errno != ENOSYS;
    hf_spawn_close_fd(&pidfd);
    if (known)
        return HF_OK;
    (void)snprintf(detail, HF_DETAIL_SIZE, "expected Linux 5.4 or newer, found %.64s",
                   uname(&name) == 0 ? name.release : "an older one");
    return HF_SYSTEM;
}

bool hf_spawn_signal_group(int pidfd, int sig)
{
    if (syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, PIDFD_SIGNAL_PROCESS_GROUP) == 0)
        return true;
    if (errno == EINVAL || errno == ENOSYS)
        errno = ENOTSUP;
    return false;
}

bool hf_spawn_signal(int pidfd, int sig)
{
    return syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0U) == 0;
}

/* Has its number been given up? A host that ignores SIGCHLD, or waits for any child, has
 * reaped it then. */
static bool is_reaped(int pidfd)
{
    siginfo_t info;
    return waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOWAIT | WNOHANG) < 0 &&
           errno == ECHILD;
}

bool hf_spawn_signal_child(pid_t pid, int pidfd, int sig)
{
    if (hf_spawn_signal_group(pidfd, sig))
        return true;
    if (errno != ENOTSUP)
        return false;
    if (!is_reaped(pidfd))
        return kill(-pid, sig) == 0;
    errno = ESRCH; /* the rest of the group cannot be told from others */
    return false;
}

bool hf_spawn_has_ended(int pidfd, bool *by_signal, int *status)
{
    siginfo_t info = {0};
    int got;
    do
        got = waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOWAIT | WNOHANG);
    while (got < 0 && errno == EINTR);
    if (got == 0 && info.si_pid == 0)
        return false;
    *by_signal = got == 0 && info.si_code != CLD_EXITED;
    *status = got == 0 ? info.si_status : -1;
    return true;
}

bool hf_spawn_left_denied(pid_t pid, int pidfd)
{
    bool reached = hf_spawn_signal_group(pidfd, 0);
    if (!reached && errno == ENOTSUP)
        reached = kill(-pid, 0) == 0;
    return !reached && errno == EPERM;
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

/* Everything above the given descriptors is closed by exec, and not before: the minder is
 * still to be told. */
static void close_on_exec(int first, int scan_end)
{
    if (syscall(SYS_close_range, (unsigned)first, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
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
    int n = HF_SPAWN_FDS;
    while (n > 0 && given[n - 1] < 0)
        n--;
    for (int i = 0; i < n; i++) {
        fds[i] = out_of_the_way(given[i]);
        if (fds[i] < 0)
            return false;
    }
    for (int i = 0; i < n; i++)
        if (dup2(fds[i], i) < 0)
            return false;
    for (int i = n; i < HF_SPAWN_FDS; i++)
        close(i);
    return true;
}

typedef struct child {
    const hf_spawn *spawn;
    pid_t parent;
    int scan_end;
    hf_spawn_fault fault;
} child;

static hf_spawn_step run_child(const child *c)
{
    const hf_spawn *spawn = c->spawn;
    default_signals();
    if (spawn->ends_with_us && !hf_end_with_parent(c->parent, SIGKILL))
        return HF_SPAWN_SETUP;
    setsid();
    hf_mark_set(0, spawn->mark, spawn->job);
    if (spawn->cgroup_fd >= 0 && !hf_cgroup_enter(spawn->cgroup_fd))
        return HF_SPAWN_SETUP;
    int minder_fd = out_of_the_way(spawn->minder_fd);
    if (!place_fds(spawn->fds))
        return HF_SPAWN_SETUP;
    close_on_exec(HF_SPAWN_FDS, c->scan_end);
    /* The child itself tells the minder: a worker that is killed right after the fork
     * leaves no program without a minder. */
    hf_minder_record record = {HF_MIND_HOLD, (int32_t)getpid(), spawn->deadline_ns, 0};
    if (spawn->minder_fd >= 0 && !hf_minder_record_write(minder_fd, &record))
        return HF_SPAWN_MINDER;
    if (spawn->minder_fd >= 0 && hf_boot_ns() >= spawn->deadline_ns) {
        errno = ETIMEDOUT;
        return HF_SPAWN_LATE;
    }
    if (spawn->cwd != NULL && chdir(spawn->cwd) != 0)
        return HF_SPAWN_CWD;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(spawn->path, spawn->argv, spawn->envp);
    return HF_SPAWN_EXEC;
}

/* ---- the worker ---- */

static int scan_end(void)
{
    long max = sysconf(_SC_OPEN_MAX);
    return max > 0 && max < FD_SCAN_MAX ? (int)max : FD_SCAN_MAX;
}

void hf_spawn_undo(pid_t pid, int minder_fd)
{
    siginfo_t info;
    kill(-pid, SIGKILL);
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
        continue;
    /* It writes nothing more now, and its number is not free before it is reaped. */
    hf_minder_record record = {HF_MIND_GONE, (int32_t)pid, 0, 0};
    if (minder_fd >= 0) {
        hf_sigpipe state;
        hf_sigpipe_begin(&state);
        (void)!hf_minder_record_write(minder_fd,
                                      &record); /* a dead minder has forgotten it */
        hf_sigpipe_end(&state);
    }
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

#ifndef HF_SANITIZED

static int child_main(void *arg)
{
    child *c = arg;
    hf_spawn_step step = run_child(c);
    c->fault = (hf_spawn_fault){(int32_t)step, errno};
    _exit(EXIT_NOT_EXECUTED);
}

static pid_t start_child(child *c, int *pidfd)
{
    _Alignas(16) char stack[CHILD_STACK];
    return clone(child_main, stack + sizeof stack,
                 CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, c, pidfd);
}

#else

/* The child never returns, so it must not change the sanitizers' records of a thread's
 * memory and locks: it gets a copy of everything, and reports its fault by a pipe, which
 * ends when the program is executed. It waits until its pidfd is open: a host that
 * ignores SIGCHLD keeps no trace of a child that has ended. */
static void run_copy(child *c, const int held[2], const int faults[2])
{
    char go;
    close(held[1]);
    while (read(held[0], &go, 1) < 0 && errno == EINTR)
        continue;
    int to = fcntl(faults[1], F_DUPFD_CLOEXEC, HF_SPAWN_FDS);
    hf_spawn_step step = run_child(c);
    c->fault = (hf_spawn_fault){(int32_t)step, errno};
    (void)!write(to, &c->fault, sizeof c->fault);
    _exit(EXIT_NOT_EXECUTED);
}

static pid_t fork_child(child *c, int *pidfd, const int held[2], const int faults[2])
{
    pid_t pid = fork();
    if (pid == 0)
        run_copy(c, held, faults);
    if (pid < 0)
        return -1;
    *pidfd = hf_spawn_pidfd(pid);
    if (*pidfd >= 0 && write(held[1], "", 1) == 1)
        return pid;
    int error = errno;
    hf_spawn_close_fd(pidfd);
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    errno = error;
    return -1;
}

static pid_t start_child(child *c, int *pidfd)
{
    int held[2], faults[2];
    if (pipe2(held, O_CLOEXEC) != 0)
        return -1;
    if (pipe2(faults, O_CLOEXEC) != 0) {
        int error = errno;
        close(held[0]);
        close(held[1]);
        errno = error;
        return -1;
    }
    pid_t pid = fork_child(c, pidfd, held, faults);
    int error = errno;
    close(held[0]);
    close(held[1]);
    close(faults[1]);
    while (pid > 0 && read(faults[0], &c->fault, sizeof c->fault) < 0 && errno == EINTR)
        continue;
    close(faults[0]);
    errno = error;
    return pid;
}

#endif

hf_err hf_spawn_start(const hf_spawn *spawn, hf_spawned *out)
{
    child c = {.spawn = spawn, .parent = getpid(), .scan_end = scan_end()};
    int pidfd = -1;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = start_child(&c, &pidfd);
    int error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (pid < 0) {
        errno = error;
        return HF_SYSTEM;
    }
    *out = (hf_spawned){.pid = pid, .pidfd = pidfd, .fault = c.fault};
    return HF_OK;
}
