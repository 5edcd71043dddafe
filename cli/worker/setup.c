/* setup.c - see setup.h. */
#include "cli/worker/setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/id.h"
#include "base/mask.h"

enum { START_TRIES = 3 }; /* of a command that is the only handler */

/* ---- which queues ---- */

static const hf_config_queue *find_queue(const hf_config *config, const char *name)
{
    for (size_t i = 0; i < config->n_queues; i++) {
        if (strcmp(config->queues[i].name, name) == 0)
            return &config->queues[i];
    }
    return NULL;
}

/* One that -q names, with what the file says of it. */
static int add_named(hf_worker_setup *s, const hf_config *config, const char *name,
                     char detail[HF_SETUP_DETAIL_SIZE])
{
    const hf_config_queue *known = find_queue(config, name);
    if (!hf_name_ok(name)) {
        snprintf(detail, HF_SETUP_DETAIL_SIZE,
                 "expected a queue's name (1 to 128 characters of A-Z a-z 0-9 . _ : -), "
                 "found '%s'",
                 HF_FOUND(name));
        return HF_EXIT_DATA;
    }
    for (size_t i = 0; i < s->n_queues; i++) {
        if (strcmp(s->queues[i].name, name) == 0) {
            snprintf(detail, HF_SETUP_DETAIL_SIZE,
                     "-q: expected each queue once, found '%s' again", HF_FOUND(name));
            return HF_EXIT_USAGE;
        }
    }
    hf_worker_queue *queue = &s->queues[s->n_queues++];
    *queue = (hf_worker_queue){HF_WORKER_QUEUE_INIT, .name = name};
    if (known != NULL)
        hf_config_fill_queue(known, queue);
    return HF_EXIT_OK;
}

/* With -q those; else those of the file; else "default", and those that programs of
 * pools name. */
static int add_queues(hf_worker_setup *s, const hf_cli *cli,
                      char detail[HF_SETUP_DETAIL_SIZE])
{
    const hf_config *config = cli->config;
    size_t named = hf_argv_count(cli->args, "queue");
    int code = HF_EXIT_OK;
    if (named > HF_CONFIG_QUEUES_MAX) {
        snprintf(detail, HF_SETUP_DETAIL_SIZE,
                 "-q: expected at most %d queues, found %zu", HF_CONFIG_QUEUES_MAX,
                 named);
        return HF_EXIT_USAGE;
    }
    for (size_t i = 0; code == HF_EXIT_OK && i < named; i++)
        code = add_named(s, config, hf_argv_nth(cli->args, "queue", i), detail);
    for (size_t i = 0; named == 0 && i < config->n_queues; i++)
        hf_config_fill_queue(&config->queues[i], &s->queues[s->n_queues++]);
    if (s->n_queues == 0)
        s->queues[s->n_queues++] =
            (hf_worker_queue){HF_WORKER_QUEUE_INIT, .name = "default"};
    return code;
}

/* ---- the rest ---- */

static int no_memory(char detail[HF_SETUP_DETAIL_SIZE])
{
    snprintf(detail, HF_SETUP_DETAIL_SIZE, "%s", hf_err_text(HF_NOMEM));
    return (int)hf_exit_code(HF_NOMEM);
}

/* The command line's own, in place of the file's. */
static int add_command(hf_worker_setup *s, const hf_argv *args,
                       char detail[HF_SETUP_DETAIL_SIZE])
{
    size_t n = args->n_operands;
    s->pools = calloc(1, sizeof *s->pools);
    s->command = calloc(n + 1, sizeof *s->command);
    if (s->pools == NULL || s->command == NULL)
        return no_memory(detail);
    for (size_t i = 0; i < n; i++)
        s->command[i] = args->operands[i];
    s->pools[s->n_pools++] =
        (hf_pool){HF_POOL_INIT,
                  .argv = s->command,
                  .env_all = true,
                  .start_tries = START_TRIES,
                  .processes = (uint32_t)hf_argv_number(args, "processes", 0),
                  .logs = hf_argv_has(args, "logs")};
    return HF_EXIT_OK;
}

static int add_handlers(hf_worker_setup *s, const hf_cli *cli,
                        char detail[HF_SETUP_DETAIL_SIZE])
{
    static const char *const of_commands[] = {"processes", "logs"}; /* keys in the file */
    const hf_config *config = cli->config;
    if (cli->args->n_operands > 0)
        return add_command(s, cli->args, detail);
    for (size_t i = 0; i < HF_COUNT(of_commands); i++)
        if (hf_argv_has(cli->args, of_commands[i])) {
            snprintf(detail, HF_SETUP_DETAIL_SIZE,
                     "--%s: expected a command after '--', found none", of_commands[i]);
            return HF_EXIT_USAGE;
        }
    if (config->n_handlers == 0 && !hf_argv_has(cli->args, "listen")) {
        if (config->file != NULL)
            snprintf(detail, HF_SETUP_DETAIL_SIZE, "%s:1:1: 'handlers' is missing",
                     config->file);
        else
            snprintf(detail, HF_SETUP_DETAIL_SIZE,
                     "worker: a configuration file with 'handlers' (-c FILE), or a "
                     "command after '--', is missing");
        return HF_EXIT_CONFIG;
    }
    s->programs = calloc(config->n_handlers + 1, sizeof *s->programs);
    s->pools = calloc(config->n_handlers + 1, sizeof *s->pools);
    if (s->programs == NULL || s->pools == NULL)
        return no_memory(detail);
    for (size_t i = 0; i < config->n_handlers; i++) {
        const hf_config_handler *handler = &config->handlers[i];
        if (handler->pool != NULL)
            hf_config_fill_pool(handler, &s->pools[s->n_pools++]);
        else
            hf_config_fill_program(handler, &s->programs[s->n_programs++]);
    }
    return HF_EXIT_OK;
}

/* A program that joins says its types itself. Without a pool it is the only one of its
 * own. */
static int add_listen(hf_worker_setup *s, const hf_argv *args,
                      char detail[HF_SETUP_DETAIL_SIZE])
{
    const char *path = hf_argv_text(args, "listen");
    if (path == NULL)
        return HF_EXIT_OK;
    if (!hf_argv_has(args, "dev")) {
        snprintf(detail, HF_SETUP_DETAIL_SIZE, "--listen: expected --dev, found none");
        return HF_EXIT_USAGE;
    }
    if (s->n_pools > 1) {
        snprintf(detail, HF_SETUP_DETAIL_SIZE,
                 "--listen: expected one pool, found %zu: write the command of one after "
                 "'--'",
                 s->n_pools);
        return HF_EXIT_USAGE;
    }
    if (s->n_pools == 0)
        s->pools[s->n_pools++] = (hf_pool){HF_POOL_INIT, .argv = NULL};
    s->pools[0].listen = path;
    return HF_EXIT_OK;
}

/* A debugger needs one process that stays. */
static void be_dev(hf_worker_setup *s, const hf_argv *args)
{
    if (!hf_argv_has(args, "dev"))
        return;
    s->opts.no_timeouts = true;
    for (size_t i = 0; i < s->n_pools; i++)
        if (!hf_argv_has(args, "processes"))
            s->pools[i].processes = 1;
}

/* With -q those of the queues that it names. */
static int add_schedules(hf_worker_setup *s, const hf_config *config,
                         char detail[HF_SETUP_DETAIL_SIZE])
{
    s->schedules = calloc(config->n_schedules + 1, sizeof *s->schedules);
    if (s->schedules == NULL)
        return no_memory(detail);
    for (size_t i = 0; i < config->n_schedules; i++) {
        const char *queue = config->schedules[i].queue;
        bool served = false;
        for (size_t k = 0; k < s->n_queues; k++)
            served = served ||
                     strcmp(s->queues[k].name, queue == NULL ? "default" : queue) == 0;
        if (served)
            s->schedules[s->n_schedules++] = config->schedules[i];
    }
    return HF_EXIT_OK;
}

static void add_opts(hf_worker_setup *s, const hf_cli *cli)
{
    hf_config_fill_worker(cli->config, &s->opts);
    s->opts.server = &cli->server;
    s->opts.queues = s->queues;
    s->opts.n_queues = s->n_queues;
    s->opts.offered_queues =
        !hf_argv_has(cli->args, "queue") && cli->config->n_queues == 0;
    s->opts.schedules = s->schedules;
    s->opts.n_schedules = s->n_schedules;
    s->opts.concurrency =
        (uint32_t)hf_argv_number(cli->args, "concurrency", s->opts.concurrency);
    s->opts.burst = hf_argv_has(cli->args, "burst");
    /* The command is its own minder; so named, it is found even after an upgrade has
     * replaced the file. */
    s->opts.minder = "/proc/self/exe";
}

int hf_worker_setup_make(hf_worker_setup *out, const hf_cli *cli,
                         char detail[HF_SETUP_DETAIL_SIZE])
{
    *out = (hf_worker_setup){.opts = {HF_WORKER_OPTS_INIT}};
    int code = add_handlers(out, cli, detail);
    if (code == HF_EXIT_OK)
        code = add_listen(out, cli->args, detail);
    if (code == HF_EXIT_OK)
        code = add_queues(out, cli, detail);
    if (code == HF_EXIT_OK)
        code = add_schedules(out, cli->config, detail);
    if (code == HF_EXIT_OK) {
        add_opts(out, cli);
        be_dev(out, cli->args);
    } else {
        hf_worker_setup_done(out);
    }
    return code;
}

void hf_worker_setup_done(hf_worker_setup *setup)
{
    free(setup->programs);
    free(setup->pools);
    free(setup->schedules);
    free(setup->command);
    setup->command = NULL;
    setup->programs = NULL;
    setup->pools = NULL;
    setup->schedules = NULL;
}
