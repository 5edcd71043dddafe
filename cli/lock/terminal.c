/* terminal.c - cli/lock/terminal.h. SIGTTOU is blocked whenever this runs. */
#include "cli/lock/terminal.h"

#include <fcntl.h>
#include <unistd.h>

void hf_terminal_find(hf_terminal_of *t)
{
    *t = (hf_terminal_of){.fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY),
                          .own = getpgrp()};
}

void hf_terminal_done(hf_terminal_of *t)
{
    if (t->fd >= 0)
        (void)close(t->fd);
    t->fd = -1;
}

bool hf_terminal_is_of(const hf_terminal_of *t, pid_t group)
{
    return t->fd >= 0 && tcgetpgrp(t->fd) == group;
}

bool hf_terminal_is_ours(const hf_terminal_of *t)
{
    return hf_terminal_is_of(t, t->own);
}

bool hf_terminal_at_once(const hf_terminal_of *t)
{
    return hf_terminal_is_ours(t) && isatty(STDIN_FILENO) == 1 &&
           isatty(STDOUT_FILENO) == 1;
}

void hf_terminal_give(hf_terminal_of *t, pid_t group)
{
    t->given = tcsetpgrp(t->fd, group) == 0 || t->given;
}

void hf_terminal_take_back(hf_terminal_of *t, pid_t group)
{
    if (t->given && hf_terminal_is_of(t, group))
        (void)tcsetpgrp(t->fd, t->own);
}
