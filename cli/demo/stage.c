/* stage.c - the stage of `holdfast demo`: a Redis of its own, handlers that are
 * shell scripts, workers that are processes, and the end of all of it.
 *
 * Nothing survives this process, however it ends: the kernel kills workers and server
 * with it, and a worker's minder kills its programs. Orphans become our children (a
 * subreaper) and are counted. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/fdlock.h"
#include "cli/demo/demo.h"

enum { EXIT_NOT_STARTED = 127, ORPHANS_MS = 3000 };

/* ---- the files ---- */

static const char config_text[] =
    "# What the workers of `holdfast demo` run with. Where Redis is comes with --redis.\n"
    "worker: {lease: %dms, kill_grace: 500ms, shutdown_timeout: 10s}\n"
    "queues:\n"
    "  - name: default\n"
    "  - name: long\n"
    "retry: {max_attempts: 5, backoff: constant, base: %dms, jitter: 0}\n"
    "handlers: # run in the directory of their worker, which is that of this file\n"
    "  - {type: quick, exec: [/bin/sh, quick.sh]}\n"
    "  - {type: later, exec: [/bin/sh, later.sh]}\n"
    "  - {type: flaky, exec: [/bin/sh, flaky.sh]}\n"
    "  - {type: broken, exec: [/bin/sh, broken.sh], max_attempts: %d}\n"
    "  - {type: long, exec: [/bin/sh, long.sh]}\n";

/* One write for each note: lines of programs that run at the same time stay whole. */
static const char note_text[] =
    "# Read by every handler: notes when it starts and when it ends, in seconds since "
    "boot.\n"
    "note() {\n"
    "    read -r now idle </proc/uptime\n"
    "    echo \"$1 $HOLDFAST_JOB_ID $HOLDFAST_ATTEMPT $$ $PPID $now $2\" >>facts\n"
    "}\n"
    "finish() {\n"
    "    note end \"$1\"\n"
    "    exit \"$1\"\n"
    "}\n"
    "note start 0\n";

typedef struct file {
    const char *name, *text;
} file;

static const file handlers[] = {
    {"note.sh", note_text},
    {"facts", ""},
    {"quick.sh", ". ./note.sh\nsleep 0.05\nfinish 0\n"},
    {"later.sh", ". ./note.sh\nfinish 0\n"},
    {"flaky.sh", ". ./note.sh\nsleep 0.05\n"
                 "[ \"$HOLDFAST_ATTEMPT\" -ge 3 ] && finish 0\n"
                 "echo \"not yet: attempt $HOLDFAST_ATTEMPT\" >&2\nfinish 1\n"},
    {"broken.sh", ". ./note.sh\nsleep 0.05\n"
                  "echo \"no such customer: $HOLDFAST_JOB_ID\" >&2\nfinish 1\n"},
};

static void path_of(const hf_demo *d, const char *name, char out[HF_DEMO_FILE_SIZE])
{
    (void)snprintf(out, HF_DEMO_FILE_SIZE, "%s/%.32s", d->dir, name);
}

static bool write_file(const hf_demo *d, const char *name, const char *text)
{
    char path[HF_DEMO_FILE_SIZE];
    path_of(d, name, path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    size_t len = strlen(text);
    bool good = fd >= 0 && write(fd, text, len) == (ssize_t)len;
    return (fd < 0 || close(fd) == 0) && good;
}

static bool write_files(hf_demo *d)
{
    char config[sizeof config_text + 64], handler[64], path[HF_DEMO_FILE_SIZE];
    (void)snprintf(config, sizeof config, config_text, HF_DEMO_LEASE_MS,
                   HF_DEMO_BACKOFF_MS, HF_DEMO_ATTEMPTS);
    (void)snprintf(handler, sizeof handler, ". ./note.sh\nsleep %d\nfinish 0\n",
                   HF_DEMO_LONG_MS / 1000);
    bool good = mkdir(d->dir, 0700) == 0 && write_file(d, "holdfast.yaml", config) &&
                write_file(d, "long.sh", handler);
    for (size_t i = 0; good && i < HF_COUNT(handlers); i++)
        good = write_file(d, handlers[i].name, handlers[i].text);
    path_of(d, "facts", path);
    d->facts_fd = good ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    return d->facts_fd >= 0;
}

/* ---- opening ---- */

/* Signals are taken where the demo waits, by hf_demo_pause(), and nowhere else; threads
 * that are made later inherit that. */
static void block_signals(hf_demo *d)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};
    sigemptyset(&d->signals);
    for (size_t i = 0; i < HF_COUNT(numbers); i++)
        sigaddset(&d->signals, numbers[i]);
    d->blocked = pthread_sigmask(SIG_BLOCK, &d->signals, &d->before) == 0;
}

static int connect_to(hf_demo *d)
{
    char detail[HF_DETAIL_SIZE] = "";
    hf_err err =
        hf_producer_open(&d->producer,
                         &(hf_producer_opts){HF_PRODUCER_OPTS_INIT,
                                             .server = HF_SERVER(.url = d->redis.url)},
                         detail);
    if (err == HF_OK)
        err = hf_admin_open(&d->admin,
                            &(hf_admin_opts){HF_ADMIN_OPTS_INIT,
                                             .server = HF_SERVER(.url = d->redis.url)},
                            detail);
    return err == HF_OK ? HF_EXIT_OK : hf_cli_fail(d->cli, err, detail);
}

int hf_demo_open(hf_demo *d, const hf_cli *cli)
{
    char detail[HF_DETAIL_SIZE] = "";
    *d = (hf_demo){.cli = cli, .start_ms = hf_demo_now_ms(), .facts_fd = -1};
    hf_buf_init(&d->facts, 1 << 20);
    block_signals(d);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1); /* without it orphans are only not counted */
    if (hf_private_redis_start(&d->redis, false, detail) != HF_OK)
        return hf_cli_say(cli, HF_EXIT_UNAVAILABLE,
                          "Debian has it in the packages redis-server and redis-tools",
                          "the demo needs a Redis of its own: %s", detail);
    (void)snprintf(d->dir, sizeof d->dir, "%s/demo", d->redis.dir);
    if (!write_files(d))
        return hf_cli_say(cli, HF_EXIT_OUTPUT, "", "%s cannot be written: %s", d->dir,
                          strerror(errno));
    return connect_to(d);
}

/* ---- the processes ---- */

/* In the child, after the fork: only what is async-signal-safe. */
static _Noreturn void become_child(const hf_demo *d, const char *log, char *const argv[],
                                   pid_t parent)
{
    int null_fd = open("/dev/null", O_RDONLY);
    int log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    /* In a group of its own, what is typed at the terminal reaches only the demo. */
    if (null_fd < 0 || log_fd < 0 || dup2(null_fd, 0) < 0 || dup2(log_fd, 1) < 0 ||
        dup2(log_fd, 2) < 0 || setpgid(0, 0) != 0 || chdir(d->dir) != 0)
        _exit(EXIT_NOT_STARTED);
    (void)sigprocmask(SIG_SETMASK, &d->before, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it died before the line above */
        _exit(EXIT_NOT_STARTED);
    (void)execv("/proc/self/exe", argv);
    _exit(EXIT_NOT_STARTED);
}

int hf_demo_spawn(hf_demo *d, const char *name, const char *const argv[],
                  char log[HF_DEMO_FILE_SIZE], hf_demo_worker *out)
{
    pid_t parent = getpid();
    path_of(d, name, log);
    hf_fd_lock();
    pid_t pid = fork();
    if (pid == 0)
        become_child(d, log, (char *const *)argv, parent);
    hf_fd_unlock();
    if (pid < 0)
        return hf_demo_wrong(d, HF_EXIT_SYSTEM, "no process can be started: %s",
                             strerror(errno));
    *out = (hf_demo_worker){.pid = pid, .started_ms = hf_demo_now_ms()};
    return HF_EXIT_OK;
}

int hf_demo_start_worker(hf_demo *d, size_t i, const char *queue)
{
    char name[32], slots[24], log[HF_DEMO_FILE_SIZE];
    const char *argv[] = {"holdfast",
                          "worker",
                          "-c",
                          "holdfast.yaml",
                          "--redis",
                          d->redis.url,
                          "-n",
                          slots,
                          queue != NULL ? "-q" : NULL,
                          queue,
                          NULL};
    (void)snprintf(slots, sizeof slots, "%zu", hf_demo_slots_of(i));
    (void)snprintf(name, sizeof name, "worker-%zu.log", i + 1);
    return hf_demo_spawn(d, name, argv, log, &d->workers[i]);
}

bool hf_demo_worker_ended(hf_demo_worker *worker)
{
    if (worker->pid <= 0 || worker->ended ||
        waitpid(worker->pid, &worker->status, WNOHANG) != worker->pid)
        return worker->ended;
    worker->ended_ms = hf_demo_now_ms();
    worker->ended = true;
    return true;
}

int hf_demo_pause(hf_demo *d, int64_t ms)
{
    const struct timespec time = {.tv_sec = (time_t)(ms / 1000),
                                  .tv_nsec = (long)(ms % 1000) * (long)HF_MS_NS};
    int number = sigtimedwait(&d->signals, NULL, &time);
    if (number == SIGTSTP)
        hf_demo_view_stop(d);
    else if (number > 0)
        d->signal = number;
    else if (ferror(stdout))
        d->signal = SIGPIPE; /* the output has no reader; end as if it were not ignored */
    return d->signal == 0 ? HF_EXIT_OK : 128 + d->signal;
}

/* ---- the end ---- */

/* The minder of a killed worker ends its programs at once; we reap them.
 */
static void reap_orphans(void)
{
    const struct timespec pause = {.tv_nsec = 5 * (long)HF_MS_NS};
    const int64_t until_ms = hf_demo_now_ms() + ORPHANS_MS;
    pid_t pid;
    do {
        pid = waitpid(-1, NULL, WNOHANG);
        if (pid == 0)
            (void)nanosleep(&pause, NULL);
    } while (pid >= 0 && hf_demo_now_ms() < until_ms);
}

static void kill_child(hf_demo_worker *child)
{
    if (child->pid <= 0 || hf_demo_worker_ended(child))
        return;
    (void)kill(child->pid, SIGKILL); /* what it does goes with the server */
    while (waitpid(child->pid, &child->status, 0) < 0 && errno == EINTR)
        continue;
    child->ended = true;
}

void hf_demo_close(hf_demo *d, bool keep)
{
    for (size_t i = 0; i < HF_DEMO_WORKERS; i++)
        kill_child(&d->workers[i]);
    kill_child(&d->dashboard);
    hf_producer_close(d->producer, NULL, NULL);
    hf_admin_close(d->admin);
    if (d->facts_fd >= 0)
        (void)close(d->facts_fd);
    hf_buf_done(&d->facts);
    if (keep)
        d->redis.dir[0] = '\0'; /* then only the server is ended */
    hf_private_redis_stop(&d->redis);
    reap_orphans();
    if (d->blocked)
        (void)pthread_sigmask(SIG_SETMASK, &d->before, NULL);
}
