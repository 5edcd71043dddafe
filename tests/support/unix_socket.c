/* unix_socket.c - see unix_socket.h. */
#include "tests/support/unix_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 64 };

static int open_at(const char *path, bool listening)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0 || strlen(path) >= sizeof address.sun_path)
        return -1;
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    memcpy(address.sun_path, path, strlen(path) + 1);
    const struct sockaddr *a = (const struct sockaddr *)&address;
    bool good = listening ? bind(fd, a, sizeof address) == 0 && listen(fd, BACKLOG) == 0
                          : connect(fd, a, sizeof address) == 0;
    if (good)
        return fd;
    (void)close(fd);
    return -1;
}

int hf_socket_listen(const char *path)
{
    return open_at(path, true);
}

int hf_socket_listen_tcp(uint16_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0)
        return -1;
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        listen(fd, BACKLOG) == 0 &&
        getsockname(fd, (struct sockaddr *)&address, &size) == 0) {
        *port = ntohs(address.sin_port);
        return fd;
    }
    (void)close(fd);
    return -1;
}

int hf_socket_connect(const char *path)
{
    return open_at(path, false);
}

int hf_socket_accept(int listener)
{
    int fd = accept(listener, NULL, NULL);
    if (fd >= 0)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    return fd;
}

bool hf_socket_send(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}
