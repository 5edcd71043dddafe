/* machine.c - base/machine.h, from /proc. */
#include "base/machine.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ID_LEN = 36, FILE_MAX = 256 };

/* The file's first bytes as text; false: there is none. */
static bool read_text(const char *path, char out[FILE_MAX])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, out, FILE_MAX - 1);
    (void)close(fd);
    if (n <= 0)
        return false;
    out[n] = '\0';
    return true;
}

void hf_machine_id(char out[HF_MACHINE_SIZE])
{
    char id[FILE_MAX], offsets[FILE_MAX];
    long long s = 0, ns = 0;
    out[0] = '\0';
    if (!read_text("/proc/sys/kernel/random/boot_id", id) || strlen(id) < ID_LEN)
        return;
    if (read_text("/proc/self/timens_offsets", offsets)) {
        const char *line = strstr(offsets, "boottime");
        if (line != NULL && sscanf(line, "boottime %lld %lld", &s, &ns) != 2)
            return;
    }
    if (s == 0 && ns == 0)
        (void)snprintf(out, HF_MACHINE_SIZE, "%.*s", ID_LEN, id);
    else
        (void)snprintf(out, HF_MACHINE_SIZE, "%.*s:%lld:%lld", ID_LEN, id, s, ns);
}
