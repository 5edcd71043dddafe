/* terminal.c - see terminal.h. */
#include "tests/support/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/eventually.h"
#include "tests/support/proc.h"

enum { READ_MS = 2 };

static _Noreturn void become(const char *const *args, const char *const *env,
                             const char *dir, pid_t parent)
{
    /* What is ignored stays so in a new program: here, in the background, with nohup. */
    static const int ignored[] = {SIGPIPE, SIGINT, SIGQUIT, SIGHUP};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        (void)signal(ignored[i], SIG_DFL);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || chdir(dir) != 0)
        _exit(127);
    for (; env != NULL && *env != NULL; env++)
        hf_env_add(*env);
    (void)execv(args[0], (char *const *)args);
    _exit(127);
}

void hf_terminal_start(hf_terminal *t, const char *const *args, const char *const *env,
                       const char *dir)
{
    const pid_t parent = getpid();
    t->len = 0;
    t->text[0] = '\0';
    t->status = -1;
    t->pid = forkpty(&t->fd, NULL, NULL, NULL);
    if (t->pid == 0)
        become(args, env, dir, parent);
    if (t->pid < 0 || fcntl(t->fd, F_SETFD, FD_CLOEXEC) != 0) {
        perror("forkpty");
        exit(1);
    }
}

/* Whatever is there, after waiting a little for it. False: the other side is closed. */
static bool take(hf_terminal *t)
{
    struct pollfd p = {.fd = t->fd, .events = POLLIN};
    while (poll(&p, 1, READ_MS) == 1) {
        size_t room = sizeof t->text - 1 - t->len;
        ssize_t n = room == 0 ? 0 : read(t->fd, t->text + t->len, room);
        if (n <= 0)
            return false; /* EIO: the last one has closed it */
        t->len += (size_t)n;
        t->text[t->len] = '\0';
    }
    return true;
}

bool hf_terminal_shows(hf_terminal *t, const char *text)
{
    (void)take(t);
    return strstr(t->text, text) != NULL;
}

void hf_terminal_type(hf_terminal *t, const char *text)
{
    size_t len = strlen(text);
    assert_int_equal(write(t->fd, text, len), len);
}

static bool reap(hf_terminal *t, int flags)
{
    int status;
    if (waitpid(t->pid, &status, flags) != t->pid)
        return false;
    t->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    t->pid = 0;
    return true;
}

int hf_terminal_end(hf_terminal *t, unsigned ms)
{
    const uint64_t until = hf_test_fair_ms() + ms;
    while (t->pid != 0 && !reap(t, WNOHANG) && hf_test_fair_ms() < until)
        if (!take(t))
            hf_test_pause_ms(READ_MS);
    bool late = t->pid != 0;
    if (late) {
        (void)kill(t->pid, SIGKILL);
        (void)reap(t, 0);
    }
    (void)take(t);
    (void)close(t->fd);
    t->fd = -1;
    return late ? -1 : t->status;
}
