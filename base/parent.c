/* parent.c - base/parent.h. */
#include "base/parent.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

bool hf_end_with_parent(pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0)
        return false;
    if (getppid() == parent) /* asked second: it may have ended before the first */
        return true;
    errno = ESRCH;
    return false;
}
