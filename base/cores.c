/* cores.c - base/cores.h. The kernel's Documentation/admin-guide/cgroup-v2.rst and
 * Documentation/scheduler/sched-bwc.rst describe the files. */
#define _GNU_SOURCE /* sched_getaffinity() */
#include "base/cores.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINE_SIZE = 8192, FILE_SIZE = 32, CPUS_MAX = 1 << 16 };

/* ---- control groups ---- */

/* Rounded up. 0: these are not the numbers of a limit. */
static uint32_t cores_of(long long quota_us, long long period_us)
{
    if (quota_us <= 0 || period_us <= 0)
        return 0;
    long long cores = quota_us / period_us + (quota_us % period_us != 0);
    return cores > CPUS_MAX ? CPUS_MAX : (uint32_t)cores;
}

static bool read_line(const char *dir, const char *file, char *out, size_t size)
{
    char path[PATH_MAX + FILE_SIZE];
    (void)snprintf(path, sizeof path, "%s/%s", dir, file);
    FILE *in = fopen(path, "re");
    if (in == NULL)
        return false;
    bool found = fgets(out, (int)size, in) != NULL;
    (void)fclose(in);
    return found;
}

static long long read_number(const char *dir, const char *file)
{
    char line[64];
    long long number = 0;
    return read_line(dir, file, line, sizeof line) && sscanf(line, "%lld", &number) == 1
               ? number
               : 0;
}

/* "150000 100000", or "max 100000" */
static uint32_t limit_v2(const char *dir)
{
    char line[64];
    long long quota = 0, period = 0;
    if (!read_line(dir, "cpu.max", line, sizeof line) ||
        sscanf(line, "%lld %lld", &quota, &period) != 2)
        return 0;
    return cores_of(quota, period);
}

/* The quota is -1 where there is none. */
static uint32_t limit_v1(const char *dir)
{
    return cores_of(read_number(dir, "cpu.cfs_quota_us"),
                    read_number(dir, "cpu.cfs_period_us"));
}

static uint32_t lower(uint32_t a, uint32_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* Of the group at `path` below `mount`, and of all above it. In a container the path may
 * be the host's, which is not visible there: then only the mount itself has the files. */
static uint32_t lowest(const char *mount, const char *path,
                       uint32_t (*limit)(const char *dir))
{
    char dir[PATH_MAX];
    int n = snprintf(dir, sizeof dir, "%s%s", mount, path);
    uint32_t cores = 0;
    if (n < 0 || (size_t)n >= sizeof dir)
        return 0;
    for (size_t end = strlen(mount);;) {
        cores = lower(cores, limit(dir));
        char *slash = strrchr(dir + end, '/');
        if (slash == NULL)
            return cores;
        *slash = '\0';
    }
}

static bool names_cpu(char *controllers)
{
    char *rest = NULL;
    for (char *at = strtok_r(controllers, ",", &rest); at != NULL;
         at = strtok_r(NULL, ",", &rest))
        if (strcmp(at, "cpu") == 0)
            return true;
    return false;
}

/* "0::/path" of v2, or "N:cpu,cpuacct:/path" of v1. */
static uint32_t of_line(const char *root, char *line)
{
    char mount[PATH_MAX];
    char *controllers = strchr(line, ':');
    char *path = controllers == NULL ? NULL : strchr(controllers + 1, ':');
    if (path == NULL || path[1] != '/')
        return 0;
    *path++ = '\0';
    path[strcspn(path, "\n")] = '\0';
    bool v2 = controllers[1] == '\0';
    if (!v2 && !names_cpu(controllers + 1))
        return 0;
    (void)snprintf(mount, sizeof mount, "%s/sys/fs/cgroup%s", root, v2 ? "" : "/cpu");
    return lowest(mount, path, v2 ? limit_v2 : limit_v1);
}

uint32_t hf_cores_of_cgroup(const char *root)
{
    char path[PATH_MAX], line[LINE_SIZE];
    uint32_t cores = 0;
    (void)snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *in = fopen(path, "re");
    if (in == NULL)
        return 0;
    while (fgets(line, sizeof line, in) != NULL)
        cores = lower(cores, of_line(root, line));
    (void)fclose(in);
    return cores;
}

/* ---- affinity ---- */

/* The kernel refuses a set that is smaller than its own. */
static uint32_t of_affinity(void)
{
    for (int n = CPU_SETSIZE; n <= CPUS_MAX; n *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)n);
        size_t size = CPU_ALLOC_SIZE((size_t)n);
        if (set == NULL)
            break;
        int rc = sched_getaffinity(0, size, set);
        int count = rc == 0 ? CPU_COUNT_S(size, set) : 0;
        int error = errno;
        CPU_FREE(set);
        if (count > 0)
            return (uint32_t)count;
        if (rc != 0 && error != EINVAL)
            break;
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (uint32_t)online : 1;
}

uint32_t hf_cores(void)
{
    return lower(of_affinity(), hf_cores_of_cgroup(""));
}
