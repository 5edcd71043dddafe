/* notify.c - see notify.h. */
#include "cli/worker/notify.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { TEXT_MAX = 512, US_PER_MS = 1000 };

/* A path, or '@' and a name that is in no file system. */
static bool set_address(hf_notify *n, const char *name)
{
    size_t len = strlen(name);
    if ((name[0] != '/' && name[0] != '@') || len < 2 || len >= sizeof n->to.sun_path)
        return false;
    n->to.sun_family = AF_UNIX;
    memcpy(n->to.sun_path, name, len + 1);
    n->to_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + 1);
    if (name[0] == '@') {
        n->to.sun_path[0] = '\0';
        n->to_len--; /* every byte counts */
    }
    return true;
}

static uint64_t watchdog_ms(void)
{
    const char *us = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    if (us == NULL || (pid != NULL && strtol(pid, NULL, 10) != (long)getpid()))
        return 0;
    return strtoull(us, NULL, 10) / US_PER_MS;
}

bool hf_notify_open(hf_notify *n)
{
    const char *name = getenv("NOTIFY_SOCKET");
    const struct timeval second = {.tv_sec = 1};
    *n = (hf_notify){.fd = -1};
    bool wanted = name != NULL && name[0] != '\0';
    if (wanted && set_address(n, name)) {
        n->watchdog_ms = watchdog_ms();
        n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    }
    if (n->fd >= 0)
        (void)setsockopt(n->fd, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof second);
    (void)unsetenv("NOTIFY_SOCKET");
    (void)unsetenv("WATCHDOG_USEC");
    (void)unsetenv("WATCHDOG_PID");
    return !wanted || n->fd >= 0;
}

void hf_notify_close(hf_notify *n)
{
    if (n->fd >= 0)
        close(n->fd);
    n->fd = -1;
}

bool hf_notify_send(const hf_notify *n, const char *format, ...)
{
    char text[TEXT_MAX];
    va_list args;
    if (n->fd < 0)
        return true;
    va_start(args, format);
    int len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (len <= 0 || (size_t)len >= sizeof text)
        return true;
    if (sendto(n->fd, text, (size_t)len, MSG_NOSIGNAL, (const struct sockaddr *)&n->to,
               n->to_len) >= 0)
        return true;
    return errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR &&
           errno != ENOBUFS && errno != ENOMEM;
}
