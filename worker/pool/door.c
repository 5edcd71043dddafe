/* door.c - worker/pool/door.h. */
#define _GNU_SOURCE /* NOLINT(bugprone-reserved-identifier): struct ucred, accept4() */
#include "worker/pool/door.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/detail.h"
#include "base/mask.h"
#include "lock/minder/spawn.h"

enum {
    WAITING_MAX = 8,
    FILE_MODE = 0600,
    NUMBER_SIZE = sizeof ".4194304", /* behind the path while it is made; PID_MAX_LIMIT */
    LEN_MAX = sizeof(((struct sockaddr_un *)NULL)->sun_path) - NUMBER_SIZE
};

struct hf_door {
    const hf_door_calls *calls;
    void *arg;
    uv_poll_t poll;
    int fd;
    struct sockaddr_un at;
    struct stat file; /* as it was made */
};

/* ---- its file ---- */

static hf_err fail(char *detail, const char *path, const char *why)
{
    return hf_say(detail, HF_SYSTEM, "listen '%s': %s", HF_FOUND(path), why);
}

static bool is_deserted(const struct sockaddr_un *at)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool deserted = fd >= 0 &&
                    connect(fd, (const struct sockaddr *)at, sizeof *at) != 0 &&
                    errno == ECONNREFUSED;
    hf_spawn_close_fd(&fd);
    return deserted;
}

/* A worker that was killed could not remove it. */
static hf_err remove_left(const struct sockaddr_un *at, char *detail)
{
    struct stat found;
    if (lstat(at->sun_path, &found) != 0)
        return HF_OK;
    if (!S_ISSOCK(found.st_mode))
        return fail(detail, at->sun_path, "expected no file, or a socket; found another");
    if (!is_deserted(at))
        return fail(detail, at->sun_path, "another process listens there");
    return unlink(at->sun_path) == 0 || errno == ENOENT
               ? HF_OK
               : fail(detail, at->sun_path, strerror(errno));
}

/* The kernel makes the file with the mode of the socket: it never has another one. */
static bool is_bound(hf_door *l, const struct sockaddr_un *at)
{
    l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return l->fd >= 0 && fchmod(l->fd, FILE_MODE) == 0 &&
           bind(l->fd, (const struct sockaddr *)at, sizeof *at) == 0;
}

/* It is made beside its path: a file that is there can be connected to, and is not taken
 * for a deserted one. */
static hf_err bind_it(hf_door *l, char *detail)
{
    struct sockaddr_un made = l->at;
    const size_t len = strlen(made.sun_path);
    (void)snprintf(made.sun_path + len, NUMBER_SIZE, ".%d", (int)getpid());
    if (!is_bound(l, &made))
        return fail(detail, l->at.sun_path, strerror(errno));
    hf_err err = HF_OK;
    if (listen(l->fd, WAITING_MAX) != 0 || lstat(made.sun_path, &l->file) != 0 ||
        link(made.sun_path, l->at.sun_path) != 0)
        err = fail(detail, l->at.sun_path, strerror(errno));
    (void)unlink(made.sun_path);
    return err;
}

/* Not if another file is there by now. */
static void remove_own(const hf_door *l)
{
    struct stat found;
    if (lstat(l->at.sun_path, &found) == 0 && found.st_ino == l->file.st_ino &&
        found.st_dev == l->file.st_dev)
        (void)unlink(l->at.sun_path);
}

/* ---- those that connect ---- */

/* A process that has gone has closed its end, so an open end says that the number is
 * still that of the process that has connected. */
static bool is_gone(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* NULL: it may come in. */
static const char *check(hf_joined *joined)
{
    struct ucred who;
    socklen_t len = sizeof who;
    if (getsockopt(joined->fd, SOL_SOCKET, SO_PEERCRED, &who, &len) != 0)
        return strerror(errno);
    if (who.uid != geteuid())
        return "it belongs to another user";
    joined->pid = who.pid;
    joined->pidfd = who.pid > 0 ? hf_spawn_pidfd(who.pid) : -1;
    if (joined->pidfd < 0 || is_gone(joined->fd))
        return "its process cannot be seen from here, or has ended";
    return NULL;
}

static void on_connected(uv_poll_t *poll, int status, int events)
{
    const hf_door *l = poll->data;
    (void)status, (void)events;
    hf_joined joined = {.fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK),
                        .pidfd = -1};
    if (joined.fd < 0)
        return;
    const char *why = check(&joined);
    if (why == NULL) {
        l->calls->joined(&joined, l->arg);
        return;
    }
    hf_spawn_close_fd(&joined.pidfd);
    hf_spawn_close_fd(&joined.fd);
    l->calls->refused(why, l->arg);
}

/* ---- its life ---- */

static hf_err open_it(hf_door *l, uv_loop_t *loop, const char *path, char *detail)
{
    char why[64];
    if (strlen(path) > LEN_MAX) {
        (void)snprintf(why, sizeof why, "expected a path of at most %d bytes", LEN_MAX);
        return fail(detail, path, why);
    }
    l->at.sun_family = AF_UNIX;
    memcpy(l->at.sun_path, path, strlen(path) + 1);
    hf_err err = remove_left(&l->at, detail);
    if (err == HF_OK)
        err = bind_it(l, detail);
    if (err != HF_OK)
        return err;
    int failed = uv_poll_init(loop, &l->poll, l->fd);
    if (failed != 0) {
        remove_own(l);
        return fail(detail, path, strerror(-failed));
    }
    return HF_OK;
}

hf_err hf_door_open(hf_door **out, uv_loop_t *loop, const char *path,
                    const hf_door_calls *calls, void *arg, char detail[HF_DETAIL_SIZE])
{
    hf_door *l = calloc(1, sizeof *l);
    if (l == NULL)
        return hf_say_err(detail, HF_NOMEM);
    l->fd = -1;
    l->calls = calls;
    l->arg = arg;
    hf_err err = open_it(l, loop, path, detail);
    if (err != HF_OK) {
        hf_spawn_close_fd(&l->fd);
        free(l);
        return err;
    }
    l->poll.data = l;
    uv_poll_start(&l->poll, UV_READABLE, on_connected);
    *out = l;
    return HF_OK;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void hf_door_close(hf_door *l)
{
    if (l == NULL)
        return;
    remove_own(l);
    uv_close((uv_handle_t *)&l->poll, on_closed);
    hf_spawn_close_fd(&l->fd);
}
