/* leftovers.c - cli/lock/leftovers.h.
 *
 * We are the subreaper of the program: when its leader has ended, every living descendant
 * has one of our children above it. If we have no other child, none is left. That
 * is the usual case and costs one small file; otherwise we look at all processes. */
#include "cli/lock/leftovers.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STAT_SIZE = 512, LIST_SIZE = 4096, PATH_SIZE = 64, LOOKS_MAX = 8 };

bool hf_leftovers_adopt(void)
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
 * A process that ended after the list was read has left its children to us, and the list
 * lacks them: it is read again. */
static int more_children(pid_t leader)
{
    char path[PATH_SIZE], list[LIST_SIZE], *at, *end;
    bool reaped = true, more = false;
    (void)snprintf(path, sizeof path, "/proc/self/task/%ld/children", (long)getpid());
    while (reaped && !more) {
        reaped = false;
        if (read_start(path, list, sizeof list) < 0)
            return -1;
        at = list;
        for (long pid; (pid = strtol(at, &end, 10)), end != at; at = end) {
            if (pid == leader)
                continue;
            if (waitpid((pid_t)pid, NULL, WNOHANG) == (pid_t)pid)
                reaped = true;
            else
                more = true;
        }
    }
    return more;
}

typedef struct survey {
    bool found;
    unsigned long
        ended; /* changes when others of the group have ended; 1: unknown ones */
} survey;

/* "pid (name) state ppid pgrp ..."; the name may have spaces and brackets in it. */
static void look_at(survey *s, const char *pid, pid_t group)
{
    char path[PATH_SIZE], stat[STAT_SIZE], state;
    long parent, pgrp;
    (void)snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    const char *end = read_start(path, stat, sizeof stat) > 0 ? strrchr(stat, ')') : NULL;
    if (end == NULL || sscanf(end + 1, " %c %ld %ld", &state, &parent, &pgrp) != 3)
        return; /* its parent reaped it, and is looked at as well */
    if (pgrp == group && (state == 'Z' || state == 'X'))
        s->ended += strtoul(pid, NULL, 10);
    else if (pgrp == group)
        s->found = true;
}

static survey look_at_all(pid_t group)
{
    survey s = {.found = false};
    DIR *all = opendir("/proc");
    if (all == NULL)
        return s;
    for (const struct dirent *e; !s.found && (e = readdir(all)) != NULL;)
        if (isdigit((unsigned char)e->d_name[0]))
            look_at(&s, e->d_name, group);
    (void)closedir(all);
    return s;
}

/* Names are read many at a time. A process that forks and ends after that is seen as
 * ended, and its child is not seen. The group is empty only if no process of it ended
 * meanwhile. */
static bool is_anybody_in(pid_t group)
{
    survey before = look_at_all(group), now = before;
    for (int i = 0; i < LOOKS_MAX && !now.found; i++) {
        now = look_at_all(group);
        if (now.ended == before.ended)
            break;
        before = now;
        if (i == LOOKS_MAX - 1)
            return true;
    }
    return now.found;
}

bool hf_leftovers_is_there(pid_t leader)
{
    return more_children(leader) != 0 && is_anybody_in(leader);
}
