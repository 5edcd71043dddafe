/* private_redis.c - see private_redis.h. */
#include "bench/private_redis.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"

enum { START_MS = 10000, ANSWER_MS = 1000, LOOK_AGAIN_MS = 2, NOT_FOUND = 127 };

static const char socket_name[] = "redis.sock", log_name[] = "redis.log";

/* ---- its directory ---- */

static bool make_dir(hf_private_redis *redis)
{
    static const char form[] = "/holdfast-XXXXXX";
    const char *base = getenv("TMPDIR");
    /* A path that is too long here is too long for a socket as well. */
    if (base == NULL || base[0] != '/' || strlen(base) + sizeof form > sizeof redis->dir)
        base = "/tmp";
    (void)snprintf(redis->dir, sizeof redis->dir, "%s%s", base, form);
    if (mkdtemp(redis->dir) != NULL)
        return true;
    redis->dir[0] = '\0';
    return false;
}

/* The directory has one level below it, where the append-only files are. */
static void remove_dir(const char *path, int levels)
{
    struct dirent *entry;
    DIR *dir = opendir(path);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        char inner[2 * HF_PRIVATE_DIR_SIZE + sizeof entry->d_name];
        struct stat info;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        (void)snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        if (levels > 0 && lstat(inner, &info) == 0 && S_ISDIR(info.st_mode))
            remove_dir(inner, levels - 1);
        else
            (void)unlink(inner);
    }
    if (dir != NULL)
        (void)closedir(dir);
    (void)rmdir(path);
}

/* ---- its process ---- */

/* In the child. Debian's redis-tools has the server's program as redis-check-rdb, and it
 * looks at the name that it was called by. */
static _Noreturn void become_server(const char *log, char *const argv[], pid_t parent)
{
    sigset_t none;
    int null_fd = open("/dev/null", O_RDONLY);
    int log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (null_fd < 0 || log_fd < 0 || dup2(null_fd, 0) < 0 || dup2(log_fd, 1) < 0 ||
        dup2(log_fd, 2) < 0)
        _exit(1);
    (void)setsid();
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it died before the line above */
        _exit(1);
    (void)execvp("redis-server", argv);
    (void)execvp("redis-check-rdb", argv);
    _exit(NOT_FOUND);
}

static bool spawn(hf_private_redis *redis, bool aof)
{
    char path[HF_PRIVATE_URL_SIZE], log[HF_PRIVATE_URL_SIZE];
    (void)snprintf(path, sizeof path, "%s/%s", redis->dir, socket_name);
    (void)snprintf(log, sizeof log, "%s/%s", redis->dir, log_name);
    const char *const argv[] = {"redis-server",
                                "--port",
                                "0",
                                "--unixsocket",
                                path,
                                "--unixsocketperm",
                                "700",
                                "--dir",
                                redis->dir,
                                "--save",
                                "",
                                "--appendonly",
                                aof ? "yes" : "no",
                                "--daemonize",
                                "no",
                                NULL};
    pid_t parent = getpid();
    redis->pid = fork();
    if (redis->pid == 0)
        become_server(log, (char *const *)argv, parent);
    if (redis->pid < 0)
        redis->pid = 0;
    return redis->pid > 0;
}

/* One PING on a connection of its own. */
static bool answers(const hf_private_redis *redis)
{
    static const char ping[] = "PING\r\n", pong[] = "+PONG";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char answer[sizeof pong];
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", redis->dir,
                   socket_name);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    bool good =
        fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        send(fd, ping, sizeof ping - 1, MSG_NOSIGNAL) == (ssize_t)sizeof ping - 1 &&
        poll(&wait, 1, ANSWER_MS) == 1 &&
        recv(fd, answer, sizeof pong - 1, 0) == (ssize_t)sizeof pong - 1 &&
        memcmp(answer, pong, sizeof pong - 1) == 0;
    if (fd >= 0)
        (void)close(fd);
    return good;
}

/* The last line that it wrote says best why it does not come up. */
static void explain(const hf_private_redis *redis, char detail[HF_DETAIL_SIZE])
{
    char path[HF_PRIVATE_URL_SIZE], line[HF_DETAIL_SIZE] = "it wrote no log", next[512];
    (void)snprintf(path, sizeof path, "%s/%s", redis->dir, log_name);
    FILE *log = fopen(path, "r");
    while (log != NULL && fgets(next, sizeof next, log) != NULL) {
        next[strcspn(next, "\n")] = '\0';
        if (next[0] != '\0')
            (void)snprintf(line, sizeof line, "%.200s", next);
    }
    if (log != NULL)
        (void)fclose(log);
    (void)snprintf(detail, HF_DETAIL_SIZE, "redis-server did not start: %.200s", line);
}

static hf_err wait_until_up(hf_private_redis *redis, char detail[HF_DETAIL_SIZE])
{
    const struct timespec pause = {.tv_nsec = LOOK_AGAIN_MS * (long)HF_MS_NS};
    const uint64_t until_ns = hf_boot_ns() + START_MS * HF_MS_NS;
    while (!answers(redis)) {
        int status;
        if (waitpid(redis->pid, &status, WNOHANG) == redis->pid) {
            redis->pid = 0;
            if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_FOUND)
                (void)snprintf(detail, HF_DETAIL_SIZE,
                               "there is no redis-server in PATH");
            else
                explain(redis, detail);
            return HF_SYSTEM;
        }
        if (hf_boot_ns() >= until_ns) {
            explain(redis, detail);
            return HF_SYSTEM;
        }
        (void)nanosleep(&pause, NULL);
    }
    return HF_OK;
}

/* ---- the two calls ---- */

hf_err hf_private_redis_start(hf_private_redis *redis, bool aof,
                              char detail[HF_DETAIL_SIZE])
{
    *redis = (hf_private_redis){.pid = 0};
    hf_err err = HF_SYSTEM;
    if (!make_dir(redis))
        (void)snprintf(detail, HF_DETAIL_SIZE, "no temporary directory can be made");
    else if (!spawn(redis, aof))
        (void)snprintf(detail, HF_DETAIL_SIZE, "no process can be started");
    else
        err = wait_until_up(redis, detail);
    if (err != HF_OK) {
        hf_private_redis_stop(redis);
        return err;
    }
    (void)snprintf(redis->url, sizeof redis->url, "unix://%s/%s", redis->dir,
                   socket_name);
    return HF_OK;
}

void hf_private_redis_stop(hf_private_redis *redis)
{
    if (redis->pid > 0) {
        (void)kill(redis->pid, SIGKILL);
        while (waitpid(redis->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    if (redis->dir[0] != '\0')
        remove_dir(redis->dir, 1);
    *redis = (hf_private_redis){.pid = 0};
}
