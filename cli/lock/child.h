/* child.h - the program that runs under a lock, from its fork to its exec.
 *
 * It leads a process group of its own, and waits between the two until its group is
 * guarded and it is told to continue. If we die before, it ends. If we die later, the
 * minder kills its group; the kernel kills the program as well, even when the minder is
 * killed with us. Two cases escape the kernel's signal: the program's own children, and a
 * program that gains privileges (setuid). */
#ifndef HF_CLI_LOCK_CHILD_H
#define HF_CLI_LOCK_CHILD_H

#include "cli/lock/signals.h"
#include "cli/lock/terminal.h"

typedef struct hf_lock_child_opts {
    char *const *argv; /* argv[0] is looked for in PATH */
    char *const *envp;
    int loss_fd; /* the one descriptor of ours that it inherits */
    const hf_signals *signals;
    hf_terminal_of *terminal;
    bool foreground; /* it gets the terminal */
} hf_lock_child_opts;

typedef struct hf_lock_child {
    pid_t pid; /* and its group */
    int go_fd, fault_fd;
} hf_lock_child;

/* False with errno. */
bool hf_lock_child_fork(hf_lock_child *child, const hf_lock_child_opts *opts);
/* Lets it run. 0, or the errno of its exec: then it ends. */
int hf_lock_child_go(hf_lock_child *child);
/* Never lets it run: kills it, and reaps it. */
void hf_lock_child_undo(hf_lock_child *child);

#endif
