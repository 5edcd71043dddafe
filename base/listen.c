/* listen.c - see listen.h. */
#include "base/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <grp.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/text.h"

enum { BACKLOG = 512, PORT_MAX = 65535 };

typedef union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un un;
} address;

/* ---- reading ---- */

static hf_err bad_words(char *detail, const char *text)
{
    (void)snprintf(detail, HF_DETAIL_SIZE,
                   "expected ADDRESS:PORT with a numeric address (127.0.0.1:8880, "
                   "[::1]:8880) or unix:PATH, found '%.60s'",
                   text);
    return HF_INVALID;
}

/* The length of the address; 0: it is none. */
static socklen_t address_of(const hf_listen *l, address *out)
{
    char host[HF_LISTEN_HOST];
    *out = (address){.any = {.sa_family = AF_UNSPEC}};
    if (l->path[0] != '\0') {
        out->un.sun_family = AF_UNIX;
        memcpy(out->un.sun_path, l->path, sizeof l->path);
        return sizeof out->un;
    }
    if (l->host[0] != '[') {
        out->v4.sin_family = AF_INET;
        out->v4.sin_port = htons((uint16_t)l->port);
        return inet_pton(AF_INET, l->host, &out->v4.sin_addr) == 1 ? sizeof out->v4 : 0;
    }
    (void)snprintf(host, sizeof host, "%.*s", (int)strcspn(l->host + 1, "]"),
                   l->host + 1);
    out->v6.sin6_family = AF_INET6;
    out->v6.sin6_port = htons((uint16_t)l->port);
    return inet_pton(AF_INET6, host, &out->v6.sin6_addr) == 1 ? sizeof out->v6 : 0;
}

static bool is_loopback(const address *a)
{
    if (a->any.sa_family == AF_INET)
        return ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
    return a->any.sa_family == AF_UNIX || IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
}

hf_err hf_listen_read(hf_listen *out, const char *text, char detail[HF_DETAIL_SIZE])
{
    address a;
    int64_t port;
    const char *colon = strrchr(text, ':');
    *out = (hf_listen){.fd = -1};
    if (strncmp(text, "unix:", 5) == 0) {
        if (text[5] == '\0' || strlen(text + 5) >= sizeof out->path)
            return bad_words(detail, text);
        (void)snprintf(out->path, sizeof out->path, "%s", text + 5);
        out->loopback = true;
        return HF_OK;
    }
    if (colon == NULL || (size_t)(colon - text) >= sizeof out->host ||
        !hf_parse_int(colon + 1, 0, PORT_MAX, &port))
        return bad_words(detail, text);
    (void)snprintf(out->host, sizeof out->host, "%.*s", (int)(colon - text), text);
    out->port = (unsigned)port;
    if (address_of(out, &a) == 0 || (out->host[0] == '[' && colon[-1] != ']'))
        return bad_words(detail, text);
    out->loopback = is_loopback(&a);
    return HF_OK;
}

/* ---- opening ---- */

static hf_err failed(hf_listen *l, char *detail, const char *what)
{
    char text[HF_LISTEN_TEXT];
    (void)snprintf(detail, HF_DETAIL_SIZE, "%s: %s: %s", hf_listen_text(l, text), what,
                   strerror(errno));
    if (l->fd >= 0)
        (void)close(l->fd);
    l->fd = -1;
    return HF_SYSTEM;
}

/* A socket that an ended process has left refuses connections. */
static void remove_left(const hf_listen *l, const address *a, socklen_t len)
{
    struct stat s;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    if (lstat(l->path, &s) == 0 && S_ISSOCK(s.st_mode) &&
        connect(fd, &a->any, len) != 0 && errno == ECONNREFUSED)
        (void)unlink(l->path);
    (void)close(fd);
}

static hf_err set_rights(hf_listen *l, const char *group, char *detail)
{
    const struct group *g = group == NULL ? NULL : getgrnam(group);
    if (group != NULL && g == NULL) {
        (void)snprintf(detail, HF_DETAIL_SIZE, "no group '%.60s'", group);
        (void)close(l->fd);
        (void)unlink(l->path);
        l->fd = -1;
        return HF_INVALID;
    }
    if ((g != NULL && chown(l->path, (uid_t)-1, g->gr_gid) != 0) ||
        chmod(l->path, S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP) != 0)
        return failed(l, detail, "its rights cannot be set");
    return HF_OK;
}

static void read_port(hf_listen *l)
{
    address a = {.any = {.sa_family = AF_UNSPEC}};
    socklen_t len = sizeof a;
    if (getsockname(l->fd, &a.any, &len) == 0)
        l->port = ntohs(a.any.sa_family == AF_INET6 ? a.v6.sin6_port : a.v4.sin_port);
}

hf_err hf_listen_open(hf_listen *l, const char *group, char detail[HF_DETAIL_SIZE])
{
    address a;
    const int yes = 1;
    const socklen_t len = address_of(l, &a);
    const bool is_unix = l->path[0] != '\0';
    if (is_unix)
        remove_left(l, &a, len);
    l->fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l->fd < 0)
        return failed(l, detail, "no socket");
    if (!is_unix)
        (void)setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    const mode_t mask = umask(S_IXUSR | S_IRWXG | S_IRWXO); /* until its rights are set */
    const int bound = bind(l->fd, &a.any, len);
    (void)umask(mask);
    if (bound != 0)
        return failed(l, detail, "it cannot be bound");
    hf_err err = is_unix ? set_rights(l, group, detail) : HF_OK;
    if (err != HF_OK)
        return err;
    if (listen(l->fd, BACKLOG) != 0)
        return failed(l, detail, "it does not listen");
    if (!is_unix)
        read_port(l);
    return HF_OK;
}

void hf_listen_done(hf_listen *l)
{
    if (l->path[0] != '\0')
        (void)unlink(l->path);
}

const char *hf_listen_text(const hf_listen *l, char out[HF_LISTEN_TEXT])
{
    if (l->path[0] != '\0')
        (void)snprintf(out, HF_LISTEN_TEXT, "unix:%s", l->path);
    else
        (void)snprintf(out, HF_LISTEN_TEXT, "http://%s:%u", l->host, l->port);
    return out;
}
