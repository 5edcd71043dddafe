/* cgroup.c - see cgroup.h. The kernel's Documentation/admin-guide/cgroup-v2.rst describes
 * the files. */
#include "lock/minder/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/detail.h"
#include "lock/minder/mark.h"

enum { LINE_SIZE = 8192, GROUP_SIZE = 64, FILE_SIZE = 32, DIGITS = 16 };

#define PREFIX "holdfast."

/* The directory of this process, where its programs' are; "": there is none. */
static char home[PATH_MAX];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- where ---- */

/* The line of /proc/PID/cgroup for v2 is "0::<path>". */
static bool read_path(const char *file, char out[PATH_MAX])
{
    char line[LINE_SIZE];
    FILE *in = fopen(file, "re");
    bool found = false;
    if (in == NULL)
        return false;
    while (!found && fgets(line, sizeof line, in) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        found = strncmp(line, "0::/", 4) == 0 && strlen(line + 3) < PATH_MAX;
        if (found)
            memcpy(out, line + 3, strlen(line + 3) + 1);
    }
    (void)fclose(in);
    return found;
}

/* "<id> <parent> <device> <root> <mount point> <options> ... - cgroup2 <source> ..." */
static bool read_mount(char out[PATH_MAX])
{
    char line[LINE_SIZE];
    FILE *in = fopen("/proc/self/mountinfo", "re");
    bool found = false;
    if (in == NULL)
        return false;
    while (!found && fgets(line, sizeof line, in) != NULL)
        found = strstr(line, " - cgroup2 ") != NULL &&
                sscanf(line, "%*s %*s %*s %*s %4095s", out) == 1;
    (void)fclose(in);
    return found;
}

static void find_home(void)
{
    char mount[PATH_MAX], path[PATH_MAX];
    if (!read_mount(mount) || !read_path("/proc/self/cgroup", path))
        return;
    int n = snprintf(home, sizeof home, "%s%s", mount, path[1] == '\0' ? "" : path);
    if (n < 0 || (size_t)n >= sizeof home - GROUP_SIZE - FILE_SIZE)
        home[0] = '\0';
}

/* A path in the group; `file` "" is its directory. False with errno. */
static bool path_of(const hf_cgroup *g, const char *file, char out[PATH_MAX])
{
    (void)pthread_once(&once, find_home);
    if (home[0] == '\0') {
        errno = ENOENT;
        return false;
    }
    int n = snprintf(out, PATH_MAX, "%s/" PREFIX "%0*" PRIx64 ".%0*" PRIx64 "%s%s", home,
                     DIGITS, g->mark, DIGITS, g->job, file[0] == '\0' ? "" : "/", file);
    if (n > 0 && n < PATH_MAX)
        return true;
    errno = ENAMETOOLONG;
    return false;
}

/* The group with this directory; mark 0: it is none of ours. */
static hf_cgroup named(const char *name)
{
    hf_cgroup g = {0}, none = {0};
    int end = 0;
    if (strlen(name) != strlen(PREFIX) + 2 * DIGITS + 1 ||
        sscanf(name, PREFIX "%16" SCNx64 ".%16" SCNx64 "%n", &g.mark, &g.job, &end) !=
            2 ||
        (size_t)end != strlen(name))
        return none;
    return g;
}

/* ---- one group ---- */

static int open_file(const hf_cgroup *g, const char *file, int flags)
{
    char path[PATH_MAX];
    return path_of(g, file, path) ? open(path, flags | O_CLOEXEC) : -1;
}

int hf_cgroup_make(const hf_cgroup *g)
{
    char path[PATH_MAX];
    if (!path_of(g, "", path) || mkdir(path, 0755) != 0)
        return -1;
    int fd = open_file(g, "cgroup.procs", O_WRONLY);
    int error = errno;
    if (fd < 0)
        (void)rmdir(path);
    errno = error;
    return fd;
}

bool hf_cgroup_enter(int fd)
{
    return write(fd, "0", 1) == 1;
}

bool hf_cgroup_remove(const hf_cgroup *g)
{
    char path[PATH_MAX];
    return !path_of(g, "", path) || rmdir(path) == 0 || errno == ENOENT;
}

void hf_cgroups_leave(hf_cgroups *groups, const hf_cgroup *group)
{
    size_t n = HF_COUNT(groups->left);
    for (size_t i = 0; i < n; i++)
        if (groups->left[i].mark != 0 && hf_cgroup_remove(&groups->left[i]))
            groups->left[i].mark = 0;
    if (group->mark != 0 && !hf_cgroup_remove(group))
        groups->left[groups->next++ % n] = *group;
}

/* "populated 1" in cgroup.events. What has ended counts no more, reaped or not. A group
 * that cannot be read is not taken for an empty one. */
static bool has_processes(const hf_cgroup *g)
{
    char text[256];
    int fd = open_file(g, "cgroup.events", O_RDONLY);
    if (fd < 0)
        return errno != ENOENT;
    ssize_t n = read(fd, text, sizeof text - 1);
    int error = n < 0 ? errno : 0;
    (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n < 0 ? error != ENODEV : strstr(text, "populated 1") != NULL;
}

bool hf_cgroup_kill(const hf_cgroup *g)
{
    if (!has_processes(g)) {
        (void)hf_cgroup_remove(g);
        return false;
    }
    int fd = open_file(g, "cgroup.kill", O_WRONLY);
    if (fd < 0)
        return true;
    (void)!write(fd, "1", 1); /* it is looked at again */
    (void)close(fd);
    return true;
}

hf_cgroup hf_cgroup_of(pid_t pid)
{
    char file[FILE_SIZE], path[PATH_MAX];
    (void)snprintf(file, sizeof file, "/proc/%ld/cgroup", (long)pid);
    if (!read_path(file, path))
        return (hf_cgroup){0};
    return named(strrchr(path, '/') + 1);
}

void hf_cgroup_each(hf_cgroup_cb cb, void *arg)
{
    (void)pthread_once(&once, find_home);
    DIR *dir = home[0] == '\0' ? NULL : opendir(home);
    if (dir == NULL)
        return;
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        const hf_cgroup g = named(e->d_name);
        if (g.mark != 0)
            cb(&g, arg);
    }
    (void)closedir(dir);
}

/* ---- at the start ---- */

hf_err hf_cgroup_check(char detail[HF_DETAIL_SIZE])
{
    const hf_cgroup probe = {hf_mark_common(hf_mark_new()), 0};
    int fd = hf_cgroup_make(&probe);
    int error = errno;
    int kill_fd = fd < 0 ? -1 : open_file(&probe, "cgroup.kill", O_WRONLY);
    if (fd >= 0) {
        (void)close(fd);
        error = errno;
        (void)hf_cgroup_remove(&probe);
    }
    if (kill_fd >= 0) {
        (void)close(kill_fd);
        return HF_OK;
    }
    if (home[0] == '\0')
        return hf_say(detail, HF_SYSTEM, "expected a cgroup v2, found none");
    return hf_say(detail, HF_SYSTEM,
                  fd < 0 ? "expected to make a cgroup in '%.128s', found: %s"
                         : "expected a cgroup.kill (Linux 5.14) in '%.128s', found: %s",
                  home, strerror(error));
}
