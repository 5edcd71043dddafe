/* signals.c - cli/lock/signals.h. */
#include "cli/lock/signals.h"

#include <errno.h>
#include <sys/signalfd.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/base.h"

static const int taken[] = {SIGINT,  SIGTERM, SIGHUP,   SIGQUIT, SIGUSR1,
                            SIGUSR2, SIGCONT, SIGWINCH, SIGTSTP, SIGCHLD};

bool hf_signals_take(hf_signals *signals)
{
    struct sigaction is, standard = {.sa_handler = SIG_DFL};
    sigset_t read, blocked;
    sigemptyset(&standard.sa_mask);
    /* If it were ignored, the kernel would reap the program and its status would be lost.
     */
    if (sigaction(SIGCHLD, &standard, &signals->child) != 0)
        return false;
    sigemptyset(&read);
    for (size_t i = 0; i < HF_COUNT(taken); i++)
        if (sigaction(taken[i], NULL, &is) == 0 && is.sa_handler != SIG_IGN)
            sigaddset(&read, taken[i]);
    blocked = read;
    sigaddset(&blocked, SIGTTOU); /* giving the terminal away must not stop us */
    if (sigprocmask(SIG_BLOCK, &blocked, &signals->before) != 0)
        return false;
    signals->fd = signalfd(-1, &read, SFD_NONBLOCK | SFD_CLOEXEC);
    return signals->fd >= 0;
}

int hf_signals_next(const hf_signals *signals)
{
    struct signalfd_siginfo info;
    ssize_t n;
    do
        n = read(signals->fd, &info, sizeof info);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof info ? (int)info.ssi_signo : 0;
}

bool hf_signal_ends(int number)
{
    return number != 0 && number != SIGCONT && number != SIGWINCH && number != SIGTSTP &&
           number != SIGCHLD;
}

void hf_signals_give_back(const hf_signals *signals)
{
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigaction(SIGPIPE, &standard, NULL); /* this command ignores it */
    sigaction(SIGCHLD, &signals->child, NULL);
    sigprocmask(SIG_SETMASK, &signals->before, NULL);
}

void hf_signals_unblock(const hf_signals *signals)
{
    (void)sigprocmask(SIG_SETMASK, &signals->before, NULL);
}

/* A signal that stops takes away a CONT that is pending, and a blocked CONT is pending
 * afterwards even where it is ignored: so it is there only after a stop. */
bool hf_signals_stop(const hf_signals *signals, int number)
{
    sigset_t one, cont, before, pending;
    (void)signals;
    sigemptyset(&one);
    sigaddset(&one, number);
    sigemptyset(&cont);
    sigaddset(&cont, SIGCONT);
    (void)sigprocmask(SIG_BLOCK, &cont, &before);
    (void)kill(0, number);
    (void)sigprocmask(SIG_UNBLOCK, &one, NULL); /* stops here */
    bool stopped = sigpending(&pending) == 0 && sigismember(&pending, SIGCONT) == 1;
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return stopped;
}
