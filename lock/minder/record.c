/* record.c - see record.h. */
#include "lock/minder/record.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

enum { PIPE_FULL_MS = 50 /* how long a record waits for room */ };

bool hf_minder_record_write_now(int fd, const hf_minder_record *record)
{
    ssize_t n;
    do
        n = write(fd, record, sizeof *record);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof *record;
}

bool hf_minder_record_write(int fd, const hf_minder_record *record)
{
    if (hf_minder_record_write_now(fd, record))
        return true;
    if (errno != EAGAIN)
        return false;
    struct pollfd room = {.fd = fd, .events = POLLOUT};
    poll(&room, 1, PIPE_FULL_MS);
    return hf_minder_record_write_now(fd, record);
}
