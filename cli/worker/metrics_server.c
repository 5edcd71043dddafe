/* metrics_server.c - see metrics_server.h. */
#include "cli/worker/metrics_server.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/detail.h"
#include "base/listen.h"
#include "cli/helper_path.h"

enum {
    BIND_TRIES = 20, /* the process of a worker that was just killed ends in a moment */
    BIND_AGAIN_MS = 50,
    SEND_MS = 5000, /* a process that does not read for so long is started again */
    AGAIN_MS = 1000,
    AGAIN_MOST_MS = 60000
};

struct hf_metrics_server {
    hf_listen listen;
    char program[PATH_MAX];
    hf_log *log;
    const hf_worker *worker;
    int stop_fd; /* readable: it is closed */
    bool started;
    pthread_t thread;
    /* the thread's */
    pid_t pid; /* 0: none */
    int pair;  /* -1: none */
    uint32_t again_ms;
};

static void report(const hf_metrics_server *s, hf_log_level level, const char *message,
                   const char *key, const char *text)
{
    const hf_log_field field = {.key = key, .text = text};
    hf_log_write(level, message, &field, 1, s->log);
}

/* ---- answers ---- */

/* False: it is closed, or the process does not read. */
static bool has_room(const hf_metrics_server *s)
{
    struct pollfd fds[] = {{.fd = s->pair, .events = POLLOUT},
                           {.fd = s->stop_fd, .events = POLLIN}};
    const int n = poll(fds, HF_COUNT(fds), SEND_MS);
    return n < 0 ? errno == EINTR : n > 0 && fds[1].revents == 0;
}

static bool send_all(const hf_metrics_server *s, const void *bytes, size_t len)
{
    const char *at = bytes;
    while (len > 0) {
        ssize_t n = send(s->pair, at, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && (errno == EINTR || (errno == EAGAIN && has_room(s))))
            continue;
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

static bool answer(const hf_metrics_server *s, uint32_t status, const char *text,
                   size_t len)
{
    const hf_metrics_head head = {.status = status, .len = (uint32_t)len};
    return send_all(s, &head, sizeof head) && send_all(s, text, len);
}

static bool answer_health(const hf_metrics_server *s,
                          bool (*is_good)(const hf_worker *, char *))
{
    char detail[HF_DETAIL_SIZE] = "", text[HF_DETAIL_SIZE + 2];
    const bool good = is_good(s->worker, detail);
    const int len = snprintf(text, sizeof text, "%s\n", good ? "ok" : detail);
    return answer(s, good ? 200 : 503, text, (size_t)len);
}

static bool answer_metrics(const hf_metrics_server *s, hf_metrics_format format)
{
    char *text;
    size_t len;
    hf_err err = hf_worker_metrics(s->worker, format, &text, &len);
    if (err != HF_OK) {
        const char *words = hf_err_text(err);
        return answer(s, 503, words, strlen(words));
    }
    const bool sent = answer(s, 200, text, len);
    free(text);
    return sent;
}

static bool answer_one(const hf_metrics_server *s, char ask)
{
    switch ((hf_metrics_ask)ask) {
    case HF_METRICS_ASK_ALIVE:
        return answer_health(s, hf_worker_alive);
    case HF_METRICS_ASK_READY:
        return answer_health(s, hf_worker_ready);
    case HF_METRICS_ASK_TEXT:
        return answer_metrics(s, HF_METRICS_PROMETHEUS);
    case HF_METRICS_ASK_OPEN:
        return answer_metrics(s, HF_METRICS_OPENMETRICS);
    }
    return false;
}

/* ---- the process ---- */

/* Its environment is empty: it needs nothing, and the worker's may hold a password. */
static bool spawn(hf_metrics_server *s, int far)
{
    char *const words[] = {(char[]){HF_METRICS_PROGRAM}, NULL}, *const none[] = {NULL};
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions) != 0)
        return false;
    /* Above the places of both, so none is overwritten. */
    const int pair = fcntl(far, F_DUPFD_CLOEXEC, HF_METRICS_LISTEN_FD + 1),
              listens = fcntl(s->listen.fd, F_DUPFD_CLOEXEC, HF_METRICS_LISTEN_FD + 1);
    int error = pair < 0 || listens < 0 ? errno : 0;
    if (error == 0)
        error = posix_spawn_file_actions_adddup2(&actions, pair, HF_METRICS_PAIR_FD);
    if (error == 0)
        error = posix_spawn_file_actions_adddup2(&actions, listens, HF_METRICS_LISTEN_FD);
    if (error == 0)
        error = posix_spawn(&s->pid, s->program, &actions, NULL, words, none);
    posix_spawn_file_actions_destroy(&actions);
    if (pair >= 0)
        (void)close(pair);
    if (listens >= 0)
        (void)close(listens);
    errno = error;
    return error == 0;
}

static bool start_process(hf_metrics_server *s)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return false;
    const bool started = spawn(s, ends[1]);
    const int error = errno;
    (void)close(ends[1]);
    if (started)
        s->pair = ends[0];
    else
        (void)close(ends[0]);
    errno = error;
    return started;
}

static void end_process(hf_metrics_server *s)
{
    if (s->pair >= 0)
        (void)close(s->pair);
    s->pair = -1;
    if (s->pid <= 0)
        return;
    (void)kill(s->pid, SIGKILL); /* it holds nothing that could be lost */
    while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    s->pid = 0;
}

/* ---- the thread ---- */

/* False: it is closed, or the process has gone. */
static bool serve_next(hf_metrics_server *s)
{
    struct pollfd fds[] = {{.fd = s->pair, .events = POLLIN},
                           {.fd = s->stop_fd, .events = POLLIN}};
    char ask;
    if (poll(fds, HF_COUNT(fds), -1) < 0)
        return errno == EINTR;
    if (fds[1].revents != 0)
        return false;
    const ssize_t n = recv(s->pair, &ask, 1, 0);
    return (n < 0 && errno == EINTR) || (n == 1 && answer_one(s, ask));
}

/* True: it is closed. */
static bool is_closed_in(const hf_metrics_server *s, uint32_t ms)
{
    struct pollfd stop = {.fd = s->stop_fd, .events = POLLIN};
    return poll(&stop, 1, (int)ms) > 0;
}

static void *serve(void *arg)
{
    hf_metrics_server *s = arg;
    while (!is_closed_in(s, 0)) {
        if (!start_process(s)) {
            report(s, HF_LOG_WARN, "the metrics are not served", "error",
                   strerror(errno));
        } else {
            bool any = false;
            while (serve_next(s))
                any = true;
            s->again_ms = any ? AGAIN_MS : s->again_ms;
            if (!is_closed_in(s, 0))
                report(s, HF_LOG_WARN, "the process that serves the metrics has ended",
                       "program", s->program);
        }
        end_process(s);
        if (is_closed_in(s, s->again_ms))
            break;
        s->again_ms = 2 * s->again_ms < AGAIN_MOST_MS ? 2 * s->again_ms : AGAIN_MOST_MS;
    }
    return NULL;
}

/* ---- for life ---- */

static hf_err listen_at(hf_metrics_server *s, char detail[HF_DETAIL_SIZE])
{
    const struct timespec pause = {.tv_nsec = BIND_AGAIN_MS * 1000000L};
    hf_err err = hf_listen_open(&s->listen, NULL, detail);
    for (int i = 1; i < BIND_TRIES && err == HF_SYSTEM && errno == EADDRINUSE; i++) {
        (void)nanosleep(&pause, NULL);
        err = hf_listen_open(&s->listen, NULL, detail);
    }
    return err;
}

static hf_exit open_parts(hf_metrics_server *s, const char *listen, char *detail)
{
    if (!hf_helper_needed("metrics.listen", HF_METRICS_PROGRAM, s->program, detail))
        return HF_EXIT_UNAVAILABLE;
    hf_err err = hf_listen_read(&s->listen, listen, detail);
    if (err == HF_OK)
        err = listen_at(s, detail);
    s->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (err == HF_OK && s->stop_fd < 0)
        err = hf_say_err(detail, HF_SYSTEM);
    return hf_exit_code(err);
}

hf_exit hf_metrics_server_open(hf_metrics_server **out, const char *listen, hf_log *log,
                               char detail[HF_DETAIL_SIZE])
{
    *out = NULL;
    if (listen == NULL)
        return HF_EXIT_OK;
    hf_metrics_server *s = calloc(1, sizeof *s);
    if (s == NULL)
        return hf_exit_code(hf_say_err(detail, HF_NOMEM));
    *s = (hf_metrics_server){.log = log,
                             .listen = {.fd = -1},
                             .stop_fd = -1,
                             .pair = -1,
                             .again_ms = AGAIN_MS};
    hf_exit code = open_parts(s, listen, detail);
    if (code == HF_EXIT_OK)
        *out = s;
    else
        hf_metrics_server_close(s);
    return code;
}

hf_err hf_metrics_server_start(hf_metrics_server *s, const hf_worker *worker)
{
    char text[HF_LISTEN_TEXT];
    if (s == NULL)
        return HF_OK;
    s->worker = worker;
    s->started = pthread_create(&s->thread, NULL, serve, s) == 0;
    if (!s->started)
        return HF_SYSTEM;
    report(s, HF_LOG_INFO, "metrics are served", "listen",
           hf_listen_text(&s->listen, text));
    return HF_OK;
}

void hf_metrics_server_close(hf_metrics_server *s)
{
    const uint64_t one = 1;
    if (s == NULL)
        return;
    if (s->started) {
        const ssize_t n = write(s->stop_fd, &one, sizeof one);
        (void)n; /* a counter of 1 always has room */
        (void)pthread_join(s->thread, NULL);
    }
    if (s->listen.fd >= 0) {
        (void)close(s->listen.fd);
        hf_listen_done(&s->listen);
    }
    if (s->stop_fd >= 0)
        (void)close(s->stop_fd);
    free(s);
}
