/* worker.c - `holdfast worker`: the configuration becomes a worker, and signals
 * become its calls. The library installs no signal handlers, and neither do we: all other
 * threads block the signals and one thread waits for them, so it may take locks. The same
 * thread tells systemd how the worker is (cli/worker/service.c). */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/parent.h"
#include "cli/cli.h"
#include "cli/common/tracing.h"
#include "cli/worker/file_watch.h"
#include "cli/worker/log.h"
#include "cli/worker/metrics_server.h"
#include "cli/worker/service.h"
#include "cli/worker/setup.h"

enum { SETTLE_MS = 20 };

typedef struct runner {
    const hf_cli *cli;
    hf_worker *worker;
    hf_log log;
    hf_service service;
    hf_tracing tracing;
    hf_file_watch *watch;       /* owned; NULL: nothing is watched */
    hf_metrics_server *metrics; /* owned; NULL: none are served */
    sigset_t signals;
    pthread_t thread; /* of the signals */
    hf_config *given; /* to the worker, which has not said what it does with it; owned */
    bool stopping;
    atomic_bool over; /* hf_worker_run() has come back */
} runner;

/* ---- HUP ---- */

static void say_error(runner *r, const char *text)
{
    hf_log_field field = {.key = "error", .text = text};
    hf_log_write(HF_LOG_ERROR, "the configuration is not valid, nothing was changed",
                 &field, 1, &r->log);
}

/* With what the command line and the environment say over it, as at the start. */
static bool take_config(runner *r, hf_config *config)
{
    char detail[HF_SETUP_DETAIL_SIZE] = "", text[HF_SETUP_DETAIL_SIZE + 256];
    hf_worker_setup setup;
    hf_cli cli = *r->cli;
    cli.config = config;
    if (hf_cli_put_over(&cli) != HF_EXIT_OK) /* it has been said, and was not so before */
        return false;
    if (hf_worker_setup_make(&setup, &cli, detail) != HF_EXIT_OK) {
        say_error(r, detail);
        return false;
    }
    hf_err err = hf_worker_reload(r->worker, &setup.opts, setup.programs,
                                  setup.n_programs, setup.pools, setup.n_pools, detail);
    hf_worker_setup_done(&setup);
    if (err != HF_OK) {
        snprintf(text, sizeof text, "%.200s: %s",
                 config->file == NULL ? "worker" : config->file,
                 detail[0] == '\0' ? hf_err_text(err) : detail);
        say_error(r, text);
    }
    return err == HF_OK;
}

static void tell_change(runner *r, const char *key, const char *was, const char *now)
{
    const hf_log_field fields[] = {{.key = "key", .text = key},
                                   {.key = "was", .text = was},
                                   {.key = "now", .text = now}};
    if (strcmp(was, now) != 0)
        hf_log_write(HF_LOG_INFO, "changed", fields, 3, &r->log);
}

/* It listens since its start. */
static void tell_metrics(runner *r, const hf_config *config)
{
    const char *now = r->cli->config->metrics_listen, *file = config->metrics_listen;
    const hf_log_field fields[] = {{.key = "key", .text = "metrics.listen"},
                                   {.key = "now", .text = now == NULL ? "none" : now},
                                   {.key = "file", .text = file == NULL ? "none" : file}};
    if (strcmp(fields[1].text, fields[2].text) != 0)
        hf_log_write(HF_LOG_WARN, "needs a restart", fields, 3, &r->log);
}

static void take_log(runner *r, const hf_config *config)
{
    static const char *const levels[] = {"debug", "info", "warn", "error"};
    static const char *const formats[] = {"logfmt", "json"};
    tell_change(r, "log.level", levels[atomic_load(&r->log.level)],
                levels[config->log_level]);
    tell_change(r, "log.format", formats[atomic_load(&r->log.format)],
                formats[config->log_format]);
    hf_log_reload(&r->log, config);
}

static bool same_text(const char *a, const char *b)
{
    return strcmp(a == NULL ? "" : a, b == NULL ? "" : b) == 0;
}

/* Spans go where they went when the worker was started. */
static void check_tracing(runner *r, const hf_config *now)
{
    const hf_config *was = r->cli->config;
    const hf_log_field field = {.key = "key", .text = "tracing"};
    if (!same_text(was->tracing_endpoint, now->tracing_endpoint) ||
        !same_text(was->tracing_headers_file, now->tracing_headers_file) ||
        was->tracing_sample != now->tracing_sample ||
        was->tracing_link != now->tracing_link ||
        was->tracing_compression != now->tracing_compression)
        hf_log_write(HF_LOG_WARN, "needs a restart", &field, 1, &r->log);
}

/* The log changes only after the worker has accepted the rest. */
static void settle(runner *r)
{
    if (r->given == NULL || hf_worker_reloads(r->worker) < r->service.reloads)
        return;
    if (hf_worker_reload_taken(r->worker)) {
        check_tracing(r, r->given);
        take_log(r, r->given);
        tell_metrics(r, r->given);
    }
    hf_config_free(r->given);
    r->given = NULL;
}

/* Reading something other than a file may block, and then no signal would be handled. */
static bool is_file(const char *path)
{
    struct stat found;
    return stat(path, &found) != 0 || S_ISREG(found.st_mode);
}

/* False: nothing will change. */
static bool reload(runner *r)
{
    char detail[HF_CONFIG_DETAIL_SIZE];
    hf_config *config = NULL;
    const char *file = r->cli->config->file;
    if (file == NULL && r->cli->args->n_operands == 0) {
        hf_log_write(HF_LOG_WARN, "there is no configuration file to read again", NULL, 0,
                     &r->log);
        return false;
    }
    if (file != NULL && !is_file(file)) {
        snprintf(detail, sizeof detail, "%.200s: expected a file, found something else",
                 file);
        say_error(r, detail);
        return false;
    }
    if (hf_config_load(&config, file, detail) != HF_OK) {
        say_error(r, detail);
        return false;
    }
    settle(r);
    if (!take_config(r, config)) {
        hf_config_free(config);
        return false;
    }
    hf_config_free(r->given);
    r->given = config;
    return true;
}

/* ---- signals ---- */

/* The signal that the kernel sends when the parent ends. It comes once for each thread of
 * the parent that the child then passes to. So it cannot be TERM, because a second TERM
 * means to hurry. */
static int parent_has_ended(void)
{
    return SIGRTMIN;
}

/* 0: none came in time. */
static int next_signal(runner *r)
{
    int64_t ms = hf_service_wait_ms(&r->service);
    if (r->given != NULL && (ms < 0 || ms > SETTLE_MS))
        ms = SETTLE_MS;
    const struct timespec wait = {.tv_sec = ms / 1000,
                                  .tv_nsec = (long)(ms % 1000) * 1000000};
    int number;
    do
        number = ms < 0 ? sigwaitinfo(&r->signals, NULL)
                        : sigtimedwait(&r->signals, NULL, &wait);
    while (number < 0 && errno == EINTR);
    return number < 0 ? 0 : number;
}

static void on_signal(runner *r, int number)
{
    if (number == SIGTERM || number == SIGINT ||
        (number == parent_has_ended() && !r->stopping)) {
        r->stopping = true;
        hf_worker_stop(r->worker);
        hf_service_stopping(&r->service);
    } else if (number == SIGTSTP) {
        r->service.quiet = true;
        hf_worker_quiet(r->worker);
    } else if (number == SIGCONT &&
               r->service.quiet) { /* it comes for other reasons, too */
        r->service.quiet = false;
        hf_worker_resume(r->worker);
    } else if (number == SIGHUP) {
        hf_service_reloading(&r->service);
        if (reload(r))
            hf_service_reload_asked(&r->service);
    }
}

static void *wait_for_signals(void *arg)
{
    runner *r = arg;
    while (!atomic_load(&r->over)) {
        int number = next_signal(r);
        if (number != 0 && !atomic_load(&r->over))
            on_signal(r, number);
        settle(r);
        hf_service_tick(&r->service);
    }
    return NULL;
}

/* Before any other thread is made: they inherit what is blocked. */
static void block_signals(runner *r)
{
    const int numbers[] = {SIGTERM, SIGINT, SIGTSTP, SIGCONT, SIGHUP, parent_has_ended()};
    sigemptyset(&r->signals);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaddset(&r->signals, numbers[i]);
    (void)pthread_sigmask(SIG_BLOCK, &r->signals,
                          NULL); /* fails only for a bad first argument */
}

/* ---- the worker ---- */

enum { LARGE_BYTES = 128 << 10 };

/* Both are for the whole process, so a library must not do it.
 *
 * Any thread of a worker may be the one that talks to Redis. glibc gives each thread a
 * heap. Memory that one thread allocates and another frees is then spread over all heaps,
 * and a worker under load grows slowly for minutes. With one heap it does not grow, and
 * is no slower.
 *
 * glibc returns a large block to the system when it is freed, but each such block raises
 * the threshold for this: after some payloads of 1 MiB it would keep 30 MiB for ever. A
 * threshold that was set stays. */
static void set_up_memory(void)
{
#ifdef M_ARENA_MAX
    (void)mallopt(M_ARENA_MAX, 1);
#endif
#ifdef M_MMAP_THRESHOLD
    (void)mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
#endif
}

static void tell_loss(uint64_t dropped, const char *why, void *arg)
{
    runner *r = arg;
    const hf_log_field fields[] = {{.key = "dropped", .number = (int64_t)dropped},
                                   {.key = "error", .text = why}};
    hf_log_write(HF_LOG_WARN, "spans were lost", fields, 2, &r->log);
}

static int open_tracing(runner *r)
{
    char detail[HF_DETAIL_SIZE] = "";
    int code = hf_tracing_open(&r->tracing, r->cli->config, tell_loss, r, detail);
    return code == HF_EXIT_OK ? code
                              : hf_cli_say(r->cli, (hf_exit)code, "", "%s", detail);
}

static hf_err make_worker(runner *r, hf_worker_setup *setup, char detail[HF_DETAIL_SIZE])
{
    setup->opts.log = hf_log_write;
    setup->opts.log_arg = &r->log;
    setup->opts.tracer = hf_tracing_tracer(&r->tracing);
    hf_err err = hf_worker_new(&r->worker, &setup->opts, detail);
    for (size_t i = 0; err == HF_OK && i < setup->n_programs; i++)
        err = hf_worker_handle_program(r->worker, &setup->programs[i], detail);
    for (size_t i = 0; err == HF_OK && i < setup->n_pools; i++)
        err = hf_worker_pool(r->worker, &setup->pools[i], detail);
    /* All that the worker refuses came from the configuration. */
    return err == HF_INVALID ? HF_CONFIG : err;
}

/* The signal that an operator sends for the same. */
static void send_hup(void *arg)
{
    (void)arg;
    (void)kill(getpid(), SIGHUP);
}

static void say_unwatched(const char *why, void *arg)
{
    runner *r = arg;
    hf_log_field field = {.key = "error", .text = why};
    hf_log_write(HF_LOG_WARN, "changes in a new folder are not seen", &field, 1, &r->log);
}

static int open_watch(runner *r, char detail[HF_DETAIL_SIZE])
{
    const hf_file_watch_calls calls = {send_hup, say_unwatched, r};
    const hf_argv *args = r->cli->args;
    const char *paths[HF_FILE_WATCH_PATHS_MAX];
    size_t n = hf_argv_count(args, "watch");
    if (n > HF_FILE_WATCH_PATHS_MAX)
        return hf_cli_say(r->cli, HF_EXIT_USAGE, "",
                          "--watch: expected at most %d paths, found %zu",
                          HF_FILE_WATCH_PATHS_MAX, n);
    for (size_t i = 0; i < n; i++)
        paths[i] = hf_argv_nth(args, "watch", i);
    hf_err err = n == 0 ? HF_OK : hf_file_watch_open(&r->watch, paths, n, &calls, detail);
    if (err == HF_OK)
        return HF_EXIT_OK;
    return hf_cli_say(r->cli, err == HF_INVALID ? HF_EXIT_USAGE : hf_exit_code(err), "",
                      "--watch: %s", detail);
}

static int open_metrics(runner *r, char detail[HF_DETAIL_SIZE])
{
    hf_exit code = hf_metrics_server_open(&r->metrics, r->cli->config->metrics_listen,
                                          &r->log, detail);
    return code == HF_EXIT_OK ? HF_EXIT_OK : hf_cli_say(r->cli, code, "", "%s", detail);
}

static hf_err run(runner *r, char detail[HF_DETAIL_SIZE])
{
    if (pthread_create(&r->thread, NULL, wait_for_signals, r) != 0)
        return HF_SYSTEM;
    hf_err err = hf_worker_run(r->worker, detail);
    atomic_store(&r->over, true);
    (void)pthread_kill(r->thread, SIGHUP); /* it has not ended: only we end it */
    (void)pthread_join(r->thread, NULL);
    return err;
}

/* A program that has started this worker as a child may be killed, and cannot say TERM
 * then. */
static int tie_to_parent(const hf_cli *cli)
{
    const int64_t parent = hf_argv_number(cli->args, "parent", 0);
    if (parent == 0 || hf_end_with_parent((pid_t)parent, parent_has_ended()))
        return HF_EXIT_OK;
    return hf_cli_say(cli, HF_EXIT_USAGE, "",
                      "--parent: expected the parent of this process, %d, found %lld",
                      (int)getppid(), (long long)parent);
}

int hf_cmd_worker(hf_cli *cli)
{
    char detail[HF_SETUP_DETAIL_SIZE] = "";
    runner r = {.cli = cli};
    hf_worker_setup setup;
    int code = hf_worker_setup_make(&setup, cli, detail);
    if (code != HF_EXIT_OK)
        return hf_cli_say(cli, (hf_exit)code,
                          code == HF_EXIT_CONFIG ? "see docs/configure.md" : "", "%s",
                          detail);
    set_up_memory();
    hf_heed_children();
    block_signals(&r);
    code = tie_to_parent(cli);
    if (code != HF_EXIT_OK) {
        hf_worker_setup_done(&setup);
        return code;
    }
    if (!hf_log_open(&r.log, STDERR_FILENO, cli->config)) {
        hf_worker_setup_done(&setup);
        return hf_cli_fail(cli, HF_SYSTEM, "the thread of the log cannot be started");
    }
    code = open_tracing(&r);
    if (code == HF_EXIT_OK)
        code = open_watch(&r, detail);
    if (code == HF_EXIT_OK)
        code = open_metrics(&r, detail);
    if (code != HF_EXIT_OK) {
        hf_tracing_close(&r.tracing);
        hf_file_watch_close(r.watch);
        hf_worker_setup_done(&setup);
        hf_log_close(&r.log);
        return code;
    }
    cli->writer = r.log.writer;
    hf_err err = make_worker(&r, &setup, detail);
    hf_service_open(&r.service, r.worker, &r.log);
    hf_worker_setup_done(&setup);
    if (err == HF_OK)
        err = hf_metrics_server_start(r.metrics, r.worker);
    if (err == HF_OK)
        err = run(&r, detail);
    hf_metrics_server_close(r.metrics);
    hf_file_watch_close(r.watch);
    hf_service_close(&r.service);
    hf_config_free(r.given);
    hf_worker_free(r.worker);
    hf_tracing_close(&r.tracing);
    code = err == HF_OK ? HF_EXIT_OK : hf_cli_fail(cli, err, detail);
    cli->writer = NULL;
    hf_log_close(&r.log);
    return code;
}
