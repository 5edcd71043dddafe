/* family.c - see family.h. Nothing but system calls tells who belongs to a family:
 * reading a file of each process takes five times as long. */
/* For syscall(). */
#define _GNU_SOURCE /* NOLINT(bugprone-reserved-identifier) */
#include "lock/minder/family.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "lock/minder/cgroup.h"
#include "lock/minder/mark.h"
#include "lock/minder/spawn.h"

enum { LIST_SIZE = 8192, PATH_SIZE = 64, PAUSE_LEAST_MS = 1, PAUSE_MOST_MS = 16 };

typedef enum pass_act { ACT_KILL, ACT_ASK, ACT_MEASURE } pass_act;

typedef struct pass {
    hf_family *list;
    size_t n;
    pass_act act;
    pid_t self;
} pass;

/* An entry of a directory, as the kernel writes it. */
typedef struct entry {
    uint64_t inode;
    int64_t offset;
    unsigned short len;
    unsigned char type;
    char name[];
} entry;

hf_family hf_family_of(pid_t leader)
{
    hf_mark_pair marks, own;
    hf_family family = {.group = leader};
    if (hf_mark_read(leader, &marks) && hf_mark_read(0, &own) &&
        hf_mark_last(&marks) != hf_mark_last(&own))
        family.mark = hf_mark_last(&marks);
    if (family.mark == 0 && getsid(leader) == leader)
        family.session = leader;
    if (family.mark == 0)
        family.mark = hf_cgroup_of(leader).mark;
    return family;
}

bool hf_family_is_empty(const hf_family *family)
{
    return family->mark == 0 && family->job == 0 && family->session == 0;
}

bool hf_family_is_gone(const hf_family *family)
{
    return family->none >= HF_FAMILY_NONE_PASSES;
}

/* ---- one process ---- */

/* A holder inside a program has changed the soft limit of what it started: the hard one
 * is learnt from those that still have the job's. */
static bool has_job(hf_family *f, const hf_mark_pair *marks)
{
    if (f->job == 0 || f->job != marks->soft)
        return false;
    if (f->mark == 0)
        f->mark = marks->hard;
    return true;
}

static hf_family *family_with(const pass *p, pid_t pid)
{
    hf_mark_pair marks;
    bool read = hf_mark_read(pid, &marks);
    bool marked = read && hf_mark_last(&marks) != 0;
    for (size_t i = 0; i < p->n; i++) {
        hf_family *f = &p->list[i];
        if (marked && (has_job(f, &marks) || (f->mark != 0 && (f->mark == marks.hard ||
                                                               f->mark == marks.soft))))
            return f;
        if (f->session != 0 && getsid(pid) == f->session)
            return f;
    }
    return NULL;
}

static uint64_t resident_of(pid_t pid)
{
    char path[PATH_SIZE], text[128], *end;
    (void)snprintf(path, sizeof path, "/proc/%ld/statm", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    (void)strtoull(text, &end, 10);
    return strtoull(end, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static bool has_ended(int pidfd)
{
    struct pollfd ended = {.fd = pidfd, .events = POLLIN};
    return poll(&ended, 1, 0) != 0;
}

/* Its number may have passed to another one since it was read: what is signalled is
 * looked at again, by a descriptor that stays with it. */
static void look_at(const pass *p, pid_t pid)
{
    hf_family *f = pid == p->self ? NULL : family_with(p, pid);
    if (f == NULL)
        return;
    int fd = hf_spawn_pidfd(pid);
    if (fd < 0) {
        f->alive += errno == ESRCH ? 0 : 1;
        return;
    }
    if (family_with(p, pid) == f && !has_ended(fd)) {
        if (p->act == ACT_MEASURE)
            f->resident += resident_of(pid);
        else if (p->act == ACT_ASK && getpgid(pid) != f->group)
            (void)syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0U);
        else if (p->act == ACT_KILL &&
                 syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0U) == 0)
            f->alive++;
        else if (p->act == ACT_KILL)
            f->denied |= errno == EPERM;
    }
    (void)close(fd);
}

/* ---- all of them ---- */

static void look_at_cgroup(const hf_cgroup *g, void *arg)
{
    const pass *p = arg;
    for (size_t i = 0; i < p->n; i++) {
        hf_family *f = &p->list[i];
        if (((f->mark != 0 && hf_mark_common(f->mark) == g->mark) ||
             (f->job != 0 && f->job == g->job)) &&
            hf_cgroup_kill(g))
            f->alive++;
    }
}

static void look_at_all(const pass *p)
{
    _Alignas(entry) char list[LIST_SIZE];
    int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    for (long n; (n = syscall(SYS_getdents64, fd, list, sizeof list)) > 0;) {
        for (long at = 0; at < n;) {
            const entry *e = (const entry *)(const void *)(list + at);
            at += e->len;
            if (e->name[0] >= '1' && e->name[0] <= '9')
                look_at(p, (pid_t)strtol(e->name, NULL, 10));
        }
    }
    (void)close(fd);
}

static void make_pass(hf_family *list, size_t n, pass_act act)
{
    size_t known = 0;
    for (size_t i = 0; i < n; i++) {
        list[i].alive = 0;
        list[i].denied = false;
        list[i].resident = 0;
        known += hf_family_is_empty(&list[i]) ? 0 : 1;
    }
    pass p = {.list = list, .n = n, .act = act, .self = getpid()};
    if (known > 0)
        look_at_all(&p);
    if (known > 0 && act == ACT_KILL)
        hf_cgroup_each(look_at_cgroup, &p);
}

void hf_family_kill(hf_family *list, size_t n)
{
    make_pass(list, n, ACT_KILL);
    for (size_t i = 0; i < n; i++)
        list[i].none = list[i].alive == 0 ? list[i].none + 1 : 0;
}

void hf_family_ask(hf_family *list, size_t n)
{
    make_pass(list, n, ACT_ASK);
}

void hf_family_measure(hf_family *list, size_t n)
{
    make_pass(list, n, ACT_MEASURE);
}

static bool are_gone(const hf_family *list, size_t n)
{
    while (n > 0 && hf_family_is_gone(&list[n - 1]))
        n--;
    return n == 0;
}

bool hf_family_end(hf_family *list, size_t n, uint64_t until_ns)
{
    long pause_ms = PAUSE_LEAST_MS;
    for (;;) {
        hf_family_kill(list, n);
        if (are_gone(list, n))
            return true;
        if (hf_boot_ns() >= until_ns)
            return false;
        bool alive = false;
        for (size_t i = 0; i < n; i++)
            alive |= list[i].alive > 0;
        if (!alive)
            continue; /* the second look comes at once */
        const struct timespec pause = {.tv_nsec = pause_ms * (long)HF_MS_NS};
        (void)nanosleep(&pause, NULL);
        pause_ms = pause_ms < PAUSE_MOST_MS ? 2 * pause_ms : pause_ms;
    }
}
