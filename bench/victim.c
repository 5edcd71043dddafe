/* victim.c - see victim.h. Where Redis is goes through a pipe, line by line: a password
 * in it is in no list of processes and in no environment. */
#include "bench/victim.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/text.h"
#include "bench/bench.h"
#include "holdfast/worker.h"

enum { URL, PASSWORD_FILE, NAMESPACE, QUEUE, LEASE, LINES };

/* One pipe takes it all at once. */
enum { TEXT_MAX = 16 << 10 };

/* ---- in the parent ---- */

static _Noreturn void become_victim(int from, pid_t parent)
{
    char *const argv[] = {(char *)"holdfast", (char *)"bench-victim", NULL};
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent && dup2(from, STDIN_FILENO) >= 0)
        (void)execv("/proc/self/exe", argv);
    _exit(1);
}

static bool write_all(int to, const hf_victim_opts *opts)
{
    char text[TEXT_MAX];
    int len = snprintf(text, sizeof text, "%s\n%s\n%s\n%s\n%u\n", opts->url,
                       opts->password_file != NULL ? opts->password_file : "", opts->ns,
                       opts->queue, (unsigned)opts->lease_ms);
    return len > 0 && (size_t)len < sizeof text && write(to, text, (size_t)len) == len;
}

hf_err hf_victim_start(pid_t *pid, const hf_victim_opts *opts,
                       char detail[HF_DETAIL_SIZE])
{
    int ends[2] = {-1, -1};
    *pid = 0;
    pid_t parent = getpid();
    bool good = pipe(ends) == 0 && fcntl(ends[0], F_SETFD, FD_CLOEXEC) == 0 &&
                fcntl(ends[1], F_SETFD, FD_CLOEXEC) == 0 && write_all(ends[1], opts);
    if (good) {
        pid_t child = fork();
        if (child == 0)
            become_victim(ends[0], parent);
        good = child > 0;
        *pid = good ? child : 0;
    }
    for (size_t i = 0; i < HF_COUNT(ends); i++) {
        if (ends[i] >= 0)
            (void)close(ends[i]);
    }
    if (!good)
        (void)snprintf(detail, HF_DETAIL_SIZE, "no process can be started: %.100s",
                       strerror(errno));
    return good ? HF_OK : HF_SYSTEM;
}

/* ---- in the victim ---- */

static hf_verdict keep(hf_run *run, void *arg)
{
    const struct timespec moment = {.tv_nsec = 50000000};
    (void)arg;
    while (!hf_run_stopping(run))
        (void)nanosleep(&moment, NULL);
    return HF_VERDICT_RETRY;
}

/* Cuts the text into its lines. */
static bool read_lines(char *text, size_t size, const char *lines[LINES])
{
    size_t len = fread(text, 1, size - 1, stdin);
    text[len] = '\0';
    for (size_t i = 0; i < LINES; i++) {
        char *end = strchr(text, '\n');
        if (end == NULL)
            return false;
        *end = '\0';
        lines[i] = text;
        text = end + 1;
    }
    return true;
}

hf_err hf_bench_victim(char detail[HF_DETAIL_SIZE])
{
    char text[TEXT_MAX];
    const char *lines[LINES];
    int64_t lease_ms;
    hf_worker *worker;
    if (!read_lines(text, sizeof text, lines) ||
        !hf_parse_int(lines[LEASE], 1, UINT32_MAX, &lease_ms)) {
        (void)snprintf(detail, HF_DETAIL_SIZE, "only `holdfast bench` starts this");
        return HF_INVALID;
    }
    const hf_worker_queue queue = {HF_WORKER_QUEUE_INIT, .name = lines[QUEUE]};
    const hf_worker_opts opts = {
        HF_WORKER_OPTS_INIT,
        .server =
            HF_SERVER(.url = lines[URL],
                      .password_file =
                          *lines[PASSWORD_FILE] != '\0' ? lines[PASSWORD_FILE] : NULL,
                      .ns = lines[NAMESPACE]),
        .queues = &queue,
        .n_queues = 1,
        .concurrency = 1,
        .lease_ms = (uint32_t)lease_ms};
    hf_err err = hf_worker_new(&worker, &opts, detail);
    if (err != HF_OK)
        return err;
    err = hf_worker_handle(worker, "bench", 0, keep, NULL, detail);
    if (err == HF_OK)
        err = hf_worker_run(worker, detail);
    hf_worker_free(worker);
    return err;
}
