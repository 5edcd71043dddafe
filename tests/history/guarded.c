/* guarded.c - see guarded.h. */
#include "tests/history/guarded.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "holdfast/lock.h"
#include "tests/history/line.h"
#include "tests/support/eventually.h"

typedef struct last {
    uint64_t value, fence;
    char owner[HF_LOCK_OWNER_SIZE];
} last;

/* The last line, which is a whole one: a process that is killed has written all or none
 * of it. */
static last read_last(int fd)
{
    char text[512] = "";
    last found = {.value = 0};
    struct stat about;
    if (fstat(fd, &about) != 0 || about.st_size == 0)
        return found;
    off_t from = about.st_size > (off_t)sizeof text - 1
                     ? about.st_size - ((off_t)sizeof text - 1)
                     : 0;
    ssize_t n = pread(fd, text, sizeof text - 1, from);
    text[n > 0 ? n - 1 : 0] = '\0'; /* without the end of the last line */
    const char *line = strrchr(text, '\n');
    line = line == NULL ? text : line + 1;
    found.value = hf_line_number(line, "value");
    found.fence = hf_line_number(line, "fence");
    (void)hf_line_text(line, "owner", found.owner, sizeof found.owner);
    return found;
}

static int open_locked(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0 || flock(fd, LOCK_EX) != 0) {
        perror(path);
        exit(1);
    }
    return fd;
}

/* True: the fence is good, and noted with the value, which is the new one or the last.
 * False: refused; the line repeats what stands. */
static bool put(const char *path, uint64_t fence, const char *owner, uint64_t *value)
{
    int fd = open_locked(path);
    last l = read_last(fd);
    bool good = fence > l.fence || (fence == l.fence && strcmp(owner, l.owner) == 0);
    bool writes = *value != 0;
    if (!writes)
        *value = l.value;
    const char *ev = !good ? "refused" : writes ? "write" : "seen";
    hf_line_write(
        fd,
        "{\"ev\":\"%s\",\"value\":%" PRIu64 ",\"fence\":%" PRIu64 ",\"owner\":\"%s\"}",
        ev, good ? *value : l.value, good ? fence : l.fence, good ? owner : l.owner);
    (void)close(fd);
    return good;
}

bool hf_guarded_write(const char *path, uint64_t fence, const char *owner,
                      unsigned pause_ms)
{
    uint64_t value = 0;
    if (!put(path, fence, owner, &value))
        return false;
    hf_test_pause_ms(pause_ms);
    value++;
    return put(path, fence, owner, &value);
}
