/* child.c - cli/lock/child.h. Other threads of ours go on while it is forked: up to
 * its exec the child calls only what is async-signal-safe, and execvpe(), which in glibc
 * and musl allocates only on its stack. */
/* For execvpe() and pipe2(). */
#define _GNU_SOURCE /* NOLINT(bugprone-reserved-identifier) */
#include "cli/lock/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOT_EXECUTED = 127 };

typedef struct pipes {
    int go[2], fault[2];
} pipes;

static void close_both(int fds[2])
{
    int error = errno;
    (void)close(fds[0]);
    (void)close(fds[1]);
    errno = error;
}

static bool open_pipes(pipes *p)
{
    if (pipe2(p->go, O_CLOEXEC) != 0)
        return false;
    if (pipe2(p->fault, O_CLOEXEC) == 0)
        return true;
    close_both(p->go);
    return false;
}

static _Noreturn void be_child(const pipes *p, const hf_lock_child_opts *opts)
{
    char word;
    ssize_t n;
    (void)setpgid(0, 0);
    /* Bound to the thread that forked, which is the last to end here. If it died before
     * this line, the pipe has ended. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)close(p->go[1]); /* or the pipe never ends */
    do
        n = read(p->go[0], &word, 1);
    while (n < 0 && errno == EINTR);
    if (n == 1) {
        if (opts->foreground)
            hf_terminal_give(opts->terminal, getpid());
        (void)fcntl(opts->loss_fd, F_SETFD, 0);
        hf_signals_give_back(opts->signals);
        execvpe(opts->argv[0], opts->argv, opts->envp);
        int error = errno;
        (void)!write(p->fault[1], &error, sizeof error);
    }
    _exit(NOT_EXECUTED);
}

bool hf_lock_child_fork(hf_lock_child *child, const hf_lock_child_opts *opts)
{
    pipes p;
    if (!open_pipes(&p))
        return false;
    pid_t pid = fork();
    if (pid == 0)
        be_child(&p, opts);
    if (pid < 0) {
        close_both(p.go);
        close_both(p.fault);
        return false;
    }
    (void)setpgid(pid, pid); /* parent and child both do it; one is first */
    (void)close(p.go[0]);
    (void)close(p.fault[1]);
    *child = (hf_lock_child){.pid = pid, .go_fd = p.go[1], .fault_fd = p.fault[0]};
    return true;
}

int hf_lock_child_go(hf_lock_child *child)
{
    int error = 0;
    ssize_t n;
    (void)!write(child->go_fd, "g", 1); /* SIGPIPE is ignored: it may be dead */
    (void)close(child->go_fd);
    do
        n = read(child->fault_fd, &error, sizeof error);
    while (n < 0 && errno == EINTR);
    (void)close(child->fault_fd);
    return n == (ssize_t)sizeof error ? error : 0;
}

void hf_lock_child_undo(hf_lock_child *child)
{
    (void)kill(child->pid, SIGKILL);
    (void)close(child->go_fd);
    (void)close(child->fault_fd);
    while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}
