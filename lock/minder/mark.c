/* mark.c - see mark.h. The system call is used itself, because a mark has 64 bits on
 * every machine. */
/* For syscall(). */
#define _GNU_SOURCE /* NOLINT(bugprone-reserved-identifier) */
#include "lock/minder/mark.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/random.h"

enum { LIMITS_SIZE = 2048, PATH_SIZE = 64 };

#define HF_START (UINT64_C(1) << 62)
#define HF_INNER (UINT64_C(1) << 61)

static uint64_t cut(uint64_t bits, uint64_t kind)
{
    return kind | (bits & (kind - 1));
}

static bool is_start(uint64_t hard)
{
    return hard >> 62 == 1;
}

static bool is_inner(uint64_t soft)
{
    return soft >> 61 == 1;
}

uint64_t hf_mark_new(void)
{
    uint64_t bits;
    return hf_random_bytes(&bits, sizeof bits) == HF_OK ? cut(bits, HF_START) : 0;
}

uint64_t hf_mark_of_job(uint64_t hash)
{
    return (hash & (HF_INNER - 1)) | 1; /* 0 is no job */
}

uint64_t hf_mark_common(uint64_t mark)
{
    return mark & (HF_INNER - 1);
}

static bool limits(pid_t pid, const hf_mark_pair *set, hf_mark_pair *get)
{
    return syscall(SYS_prlimit64, pid, RLIMIT_LOCKS, set, get) == 0;
}

void hf_mark_set(pid_t pid, uint64_t mark, uint64_t job)
{
    hf_mark_pair now, marks = {.soft = job, .hard = mark};
    if (mark == 0 || !limits(pid, NULL, &now) || is_inner(now.soft))
        return;
    if (is_start(now.hard))
        marks = (hf_mark_pair){.soft = cut(mark, HF_INNER), .hard = now.hard};
    (void)limits(pid, &marks, NULL);
}

/* "Max file locks   <soft>   <hard>   locks". A word counts as 0: not limited. */
static bool read_file(pid_t pid, hf_mark_pair *out)
{
    char path[PATH_SIZE], text[LIMITS_SIZE], soft[24], hard[24];
    (void)snprintf(path, sizeof path, "/proc/%ld/limits", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *at = strstr(text, "Max file locks");
    if (at == NULL || sscanf(at, "Max file locks %23s %23s", soft, hard) != 2)
        return false;
    *out = (hf_mark_pair){.soft = strtoumax(soft, NULL, 10),
                          .hard = strtoumax(hard, NULL, 10)};
    return true;
}

/* The call needs the same user and group, the file nothing. It is much slower, and read
 * only of a process that may be signalled. */
bool hf_mark_read(pid_t pid, hf_mark_pair *out)
{
    if (limits(pid, NULL, out))
        return true;
    return errno == EPERM && kill(pid, 0) == 0 && read_file(pid, out);
}

uint64_t hf_mark_last(const hf_mark_pair *marks)
{
    if (is_start(marks->hard) && is_inner(marks->soft))
        return marks->soft;
    return is_start(marks->hard) ? marks->hard : 0;
}
