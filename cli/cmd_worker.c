/* cmd_worker.c - `holdfast worker`: the configuration becomes a worker, and signals
 * become its calls. The library installs no signal handlers, and neither do we: a thread
 * waits for the signals, which all others have blocked, so that what it does may take
 * locks. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/log.h"

enum { EXE_SIZE = 4096 };

typedef struct service {
    const hf_cli *cli;
    hf_worker *worker;
    hf_log log;
    hf_worker_queue queues[HF_CONFIG_QUEUES_MAX];
    size_t n_queues;
    sigset_t signals;
    pthread_t thread; /* of the signals */
    atomic_bool over; /* hf_worker_run() has come back */
} service;

/* ---- which queues ---- */

static const hf_config_queue *find_queue(const hf_config *config, const char *name)
{
    for (size_t i = 0; i < config->n_queues; i++) {
        if (strcmp(config->queues[i].name, name) == 0)
            return &config->queues[i];
    }
    return NULL;
}

/* With -q those, with what the file says of them; else those of the file; else "default".
 */
static int take_queues(service *s)
{
    const hf_config *config = s->cli->config;
    size_t named = hf_argv_count(s->cli->args, "queue");
    if (named > HF_CONFIG_QUEUES_MAX)
        return hf_cli_say(s->cli, HF_EXIT_USAGE, "",
                          "-q: expected at most %d queues, found %zu",
                          HF_CONFIG_QUEUES_MAX, named);
    for (size_t i = 0; i < named; i++) {
        const char *name = hf_argv_nth(s->cli->args, "queue", i);
        const hf_config_queue *known = find_queue(config, name);
        int code = hf_cli_check_name(s->cli, "a queue's name", name);
        if (code != HF_EXIT_OK)
            return code;
        for (size_t k = 0; k < i; k++) {
            if (strcmp(s->queues[k].name, name) == 0)
                return hf_cli_say(s->cli, HF_EXIT_USAGE, "",
                                  "-q: expected each queue once, found '%s' again", name);
        }
        s->queues[i] = (hf_worker_queue){.name = name};
        if (known != NULL)
            hf_config_fill_queue(known, &s->queues[i]);
    }
    s->n_queues = named;
    for (size_t i = 0; named == 0 && i < config->n_queues; i++)
        hf_config_fill_queue(&config->queues[i], &s->queues[s->n_queues++]);
    if (s->n_queues == 0)
        s->queues[s->n_queues++] = (hf_worker_queue){.name = "default"};
    return HF_EXIT_OK;
}

/* ---- signals ---- */

/* A worker cannot take another configuration while it runs; the log can. */
static void reload(service *s)
{
    char detail[HF_CONFIG_DETAIL_SIZE];
    hf_config *config = NULL;
    const char *file = s->cli->config->file;
    hf_log_field field = {.key = "file", .text = file};
    if (file == NULL) {
        hf_log_write(HF_LOG_WARN, "there is no configuration file to read again", NULL, 0,
                     &s->log);
        return;
    }
    if (hf_config_load(&config, file, detail) != HF_OK) {
        field = (hf_log_field){.key = "error", .text = detail};
        hf_log_write(HF_LOG_ERROR, "the configuration is not valid, nothing was changed",
                     &field, 1, &s->log);
        return;
    }
    hf_log_reload(&s->log, config);
    hf_config_free(config);
    hf_log_write(HF_LOG_WARN,
                 "the configuration is valid: the log follows it at once, all else "
                 "at the next start",
                 &field, 1, &s->log);
}

static void *wait_for_signals(void *arg)
{
    service *s = arg;
    int number;
    bool quiet = false; /* CONT comes for other reasons, too */
    while (sigwait(&s->signals, &number) == 0 && !atomic_load(&s->over)) {
        if (number == SIGTERM || number == SIGINT)
            hf_worker_stop(s->worker);
        else if (number == SIGTSTP)
            hf_worker_quiet(s->worker);
        else if (number == SIGCONT && quiet)
            hf_worker_resume(s->worker);
        else if (number == SIGHUP)
            reload(s);
        if (number == SIGTSTP || number == SIGCONT)
            quiet = number == SIGTSTP;
    }
    return NULL;
}

/* Before any other thread is made: they inherit what is blocked. */
static void block_signals(service *s)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGTSTP, SIGCONT, SIGHUP};
    sigemptyset(&s->signals);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaddset(&s->signals, numbers[i]);
    (void)pthread_sigmask(SIG_BLOCK, &s->signals,
                          NULL); /* fails only for a bad first argument */
}

/* ---- the worker ---- */

static int refuse_without_handlers(const hf_cli *cli)
{
    const char *file = cli->config->file;
    if (file != NULL)
        return hf_cli_say(cli, HF_EXIT_CONFIG, "see docs/operating.md",
                          "%s:1:1: expected 'handlers', found none", file);
    return hf_cli_say(
        cli, HF_EXIT_CONFIG, "see docs/operating.md",
        "worker: expected a configuration file with 'handlers' (-c FILE), found "
        "none");
}

static hf_err make_worker(service *s, char detail[HF_DETAIL_SIZE])
{
    const hf_config *config = s->cli->config;
    hf_worker_opts opts = {0};
    hf_config_fill_worker(config, &opts);
    opts.url = s->cli->url;
    opts.password_file = s->cli->password_file;
    opts.ns = s->cli->ns;
    opts.queues = s->queues;
    opts.n_queues = s->n_queues;
    opts.concurrency =
        (uint32_t)hf_argv_number(s->cli->args, "concurrency", opts.concurrency);
    opts.burst = hf_argv_has(s->cli->args, "burst");
    /* The command is its own minder; so named, it is found even after an upgrade has
     * replaced the file. */
    opts.minder = "/proc/self/exe";
    opts.log = hf_log_write;
    opts.log_arg = &s->log;
    hf_err err = hf_worker_new(&s->worker, &opts, detail);
    for (size_t i = 0; err == HF_OK && i < config->n_handlers; i++) {
        hf_program program;
        hf_config_fill_program(&config->handlers[i], &program);
        err = hf_worker_handle_program(s->worker, &program);
        if (err == HF_INVALID)
            snprintf(detail, HF_DETAIL_SIZE, "handler '%.128s' is not acceptable",
                     program.type);
    }
    /* What the worker refuses came from the configuration, whatever it is. */
    return err == HF_INVALID ? HF_CONFIG : err;
}

static hf_err run(service *s, char detail[HF_DETAIL_SIZE])
{
    if (pthread_create(&s->thread, NULL, wait_for_signals, s) != 0)
        return HF_SYSTEM;
    hf_err err = hf_worker_run(s->worker, detail);
    atomic_store(&s->over, true);
    (void)pthread_kill(s->thread, SIGHUP); /* it has not ended: only we end it */
    (void)pthread_join(s->thread, NULL);
    return err;
}

int hf_cmd_worker(hf_cli *cli)
{
    char detail[HF_DETAIL_SIZE] = "";
    service s = {.cli = cli};
    if (cli->config->n_handlers == 0)
        return refuse_without_handlers(cli);
    int code = take_queues(&s);
    if (code != HF_EXIT_OK)
        return code;
    block_signals(&s);
    hf_log_init(&s.log, stderr, cli->config);
    hf_err err = make_worker(&s, detail);
    if (err == HF_OK)
        err = run(&s, detail);
    hf_worker_free(s.worker);
    hf_log_done(&s.log);
    return err == HF_OK ? HF_EXIT_OK : hf_cli_fail(cli, err, detail);
}
