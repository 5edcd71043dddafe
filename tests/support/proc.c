/* proc.c - see proc.h. */
#include "tests/support/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/eventually.h"
#include "tests/support/tempdir.h"

static void redirect(const char *path, int flags, int fd)
{
    int file = open(path, flags, 0600);
    if (file < 0 || dup2(file, fd) < 0)
        _exit(127);
    (void)close(file);
}

void hf_env_add(const char *pair)
{
    char name[64];
    const size_t n = strcspn(pair, "=");
    if (n >= sizeof name || pair[n] == '\0')
        _exit(127);
    memcpy(name, pair, n);
    name[n] = '\0';
    (void)setenv(name, pair + n + 1, 1);
}

static _Noreturn void become(const hf_proc_options *o, pid_t parent)
{
    /* What is ignored stays so in a new program: here, in the background, with nohup. */
    static const int ignored[] = {SIGPIPE, SIGINT, SIGQUIT, SIGHUP};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        (void)signal(ignored[i], SIG_DFL);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    for (size_t i = 0; o->env != NULL && o->env[i] != NULL; i++)
        hf_env_add(o->env[i]);
    redirect(o->in != NULL ? o->in : "/dev/null", O_RDONLY, 0);
    if (o->out != NULL)
        redirect(o->out, O_WRONLY | O_CREAT | O_APPEND, 1);
    if (o->err != NULL)
        redirect(o->err, O_WRONLY | O_CREAT | O_APPEND, 2);
    if (o->dir != NULL && chdir(o->dir) != 0)
        _exit(127);
    (void)execvp(o->args[0], (char *const *)o->args);
    _exit(127);
}

void hf_proc_start(hf_proc *p, const hf_proc_options *options)
{
    const pid_t parent = getpid();
    *p = (hf_proc){.pid = fork()};
    if (p->pid == 0)
        become(options, parent);
    if (p->pid < 0) {
        perror("fork");
        exit(1);
    }
}

const char *hf_proc_self(void)
{
    static char path[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);
    if (len < 0) {
        perror("/proc/self/exe");
        exit(1);
    }
    path[len] = '\0';
    return path;
}

static bool reap(hf_proc *p, int flags)
{
    int status;
    pid_t got;
    do
        got = waitpid(p->pid, &status, flags);
    while (got < 0 && errno == EINTR);
    if (got != p->pid)
        return false;
    p->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    p->pid = 0;
    return true;
}

bool hf_proc_wait(hf_proc *p, unsigned ms)
{
    const uint64_t from = hf_test_now_ms(), until = hf_test_fair_ms() + ms;
    unsigned asks = hf_test_asks(ms);
    if (p->pid == 0)
        return true;
    while (!reap(p, WNOHANG)) {
        if (hf_test_fair_ms() >= until && asks == 0)
            return false;
        hf_test_pause_since(from);
        asks -= asks > 0;
    }
    return true;
}

void hf_signal_child(pid_t pid, int signal)
{
    siginfo_t info;
    (void)kill(pid, signal);
    while (signal == SIGSTOP &&
           waitid(P_PID, (id_t)pid, &info, WSTOPPED | WEXITED | WNOWAIT) != 0 &&
           errno == EINTR)
        continue;
}

void hf_proc_signal(const hf_proc *p, int signal)
{
    if (p->pid > 0)
        hf_signal_child(p->pid, signal);
}

void hf_proc_kill(hf_proc *p)
{
    if (p->pid > 0) {
        (void)kill(p->pid, SIGKILL);
        (void)reap(p, 0);
    }
}

int hf_proc_run(const hf_proc_options *options, unsigned ms)
{
    hf_proc p;
    hf_proc_start(&p, options);
    if (hf_proc_wait(&p, ms))
        return p.status;
    hf_proc_kill(&p);
    return -1;
}

bool hf_pid_alive(pid_t pid)
{
    char path[40];
    char text[512];
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    /* The state follows the name, which may itself hold a parenthesis. */
    const char *state = strrchr(hf_read_file(path, text, sizeof text), ')');
    return state != NULL && strlen(state) > 2 && state[2] != 'Z' && state[2] != 'X';
}

uint64_t hf_pid_waited_ns(pid_t pid)
{
    char path[40], text[128];
    unsigned long long waited_ns = 0;
    (void)snprintf(path, sizeof path, "/proc/%ld/schedstat", (long)pid);
    if (sscanf(hf_read_file(path, text, sizeof text), "%*u %llu", &waited_ns) != 1)
        return 0;
    return waited_ns;
}

pid_t hf_fork_as(pid_t number)
{
    for (int tries = 0; tries < 100; tries++) {
        FILE *file = fopen("/proc/sys/kernel/ns_last_pid", "w");
        if (file == NULL)
            return 0;
        bool written = fprintf(file, "%ld", (long)number - 1) > 0;
        if (fclose(file) != 0 || !written)
            return 0;
        pid_t pid = fork();
        if (pid == 0) {
            setpgid(0, 0);
            for (int i = 0; i < 600; i++)
                hf_test_pause_ms(50);
            _exit(0);
        }
        if (pid == number) {
            setpgid(pid, pid);
            return pid;
        }
        if (pid > 0)
            kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    return 0;
}

bool hf_pid_catches(pid_t pid, int signal)
{
    char path[64], status[4096];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    const char *at = strstr(hf_read_file(path, status, sizeof status), "SigCgt:");
    return at != NULL &&
           (strtoull(at + strlen("SigCgt:"), NULL, 16) & (1ULL << (signal - 1))) != 0;
}
