/* parent.c - base/parent.h. */
#include "base/parent.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

bool hf_end_with_parent(pid_t parent, int signal)
{
    if (prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0) != 0)
        return false;
    if (getppid() == parent) /* asked second: it may have ended before the first */
        return true;
    errno = ESRCH;
    return false;
}

bool hf_children_are_ignored(void)
{
    struct sigaction action;
    return sigaction(SIGCHLD, NULL, &action) == 0 &&
           (action.sa_handler == SIG_IGN || (action.sa_flags & SA_NOCLDWAIT) != 0);
}

void hf_heed_children(void)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigemptyset(&action.sa_mask);
    if (hf_children_are_ignored())
        (void)sigaction(SIGCHLD, &action, NULL); /* cannot fail for SIGCHLD */
}
