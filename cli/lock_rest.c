/* lock_rest.c - cli/lock_rest.h.
 *
 * We are the subreaper of the program: when its leader has ended, every living descendant
 * has one of our children above it. So where we have no other child there is nobody,
 * which is the usual case and costs one small file; else all processes are looked at. */
#include "cli/lock_rest.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STAT_SIZE = 512, LIST_SIZE = 4096, PATH_SIZE = 64 };

bool hf_rest_adopt(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
}

/* The beginning of a file. -1: there is none. */
static ssize_t read_start(const char *path, char *buf, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, buf, size - 1);
    (void)close(fd);
    buf[n > 0 ? n : 0] = '\0';
    return n;
}

/* The children of our main thread, which forked the leader and gets the orphans; the
 * minder is another thread's. 0: only the leader; 1: more; -1: the kernel does not say.
 */
static int more_children(pid_t leader)
{
    char path[PATH_SIZE], list[LIST_SIZE], *at = list;
    int more = 0;
    (void)snprintf(path, sizeof path, "/proc/self/task/%ld/children", (long)getpid());
    if (read_start(path, list, sizeof list) < 0)
        return -1;
    for (char *end;; at = end) {
        long pid = strtol(at, &end, 10);
        if (end == at)
            return more;
        if (pid != leader && waitpid((pid_t)pid, NULL, WNOHANG) != (pid_t)pid)
            more = 1;
    }
}

/* "pid (name) state ppid pgrp ..."; the name may have spaces and brackets in it. */
static bool is_alive_in(const char *pid, pid_t group)
{
    char path[PATH_SIZE], stat[STAT_SIZE], state;
    long parent, pgrp;
    (void)snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    if (read_start(path, stat, sizeof stat) <= 0)
        return false; /* it has just ended */
    const char *end = strrchr(stat, ')');
    if (end == NULL || sscanf(end + 1, " %c %ld %ld", &state, &parent, &pgrp) != 3)
        return false;
    return pgrp == group && state != 'Z' && state != 'X';
}

static bool is_anybody_in(pid_t group)
{
    DIR *all = opendir("/proc");
    bool found = false;
    if (all == NULL)
        return false;
    for (const struct dirent *e; !found && (e = readdir(all)) != NULL;)
        found = isdigit((unsigned char)e->d_name[0]) && is_alive_in(e->d_name, group);
    (void)closedir(all);
    return found;
}

bool hf_rest_is_there(pid_t leader)
{
    return more_children(leader) != 0 && is_anybody_in(leader);
}
