/* load.c - the life of an hf_config, and what the rest of the program gets out of it. */
#include "config/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/buf.h"
#include "config/fault.h"
#include "config/read.h"
#include "config/value.h"

/* ---- life ---- */

/* Reads the whole file. HF_TOOBIG past the maximum, HF_SYSTEM with errno. */
static hf_err read_file(const char *path, hf_buf *out)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return HF_SYSTEM;
    char chunk[8192];
    size_t n;
    while (hf_buf_err(out) == HF_OK && (n = fread(chunk, 1, sizeof chunk, file)) > 0)
        hf_buf_add(out, chunk, n);
    int error = ferror(file) ? errno : 0;
    (void)fclose(file); /* it was only read */
    errno = error;
    return error != 0 ? HF_SYSTEM : hf_buf_err(out);
}

static hf_err load(hf_config *config, const char *path,
                   char detail[HF_CONFIG_DETAIL_SIZE])
{
    const hf_fault fault = {path, detail};
    const yaml_mark_t start = {0, 0, 0};
    hf_buf text;
    hf_buf_init(&text, HF_CONFIG_FILE_MAX);
    hf_err err = read_file(path, &text);
    if (err == HF_SYSTEM)
        err = hf_fault_at(&fault, start, "a file that can be read", "none (%s)",
                          strerror(errno));
    else if (err == HF_TOOBIG)
        err = hf_fault_at(&fault, start, "a file of at most 1MiB", "a larger one");
    else if (err == HF_OK)
        err =
            hf_config_read(config, path, text.len > 0 ? text.data : "", text.len, detail);
    hf_buf_done(&text);
    return err;
}

static void take_tls(hf_config *config)
{
    config->tls = (hf_tls_opts){HF_TLS_OPTS_INIT,
                                .ca = config->tls_ca,
                                .cert = config->tls_cert,
                                .key = config->tls_key,
                                .server_name = config->tls_server_name,
                                .skip_verify = config->tls_verify == 0};
}

hf_err hf_config_load(hf_config **out, const char *path,
                      char detail[HF_CONFIG_DETAIL_SIZE])
{
    hf_config *config = calloc(1, sizeof *config);
    hf_err err = config == NULL ? HF_NOMEM : hf_value_preset_all(HF_IN_CONFIG, config);
    if (err == HF_OK && path != NULL) {
        config->file = strdup(path);
        err = config->file == NULL ? HF_NOMEM : load(config, path, detail);
    }
    if (err == HF_OK) {
        take_tls(config);
        config->sentinel =
            (hf_sentinel_opts){HF_SENTINEL_OPTS_INIT, .user = config->sentinel_user,
                               .password_file = config->sentinel_password_file};
        *out = config;
        return HF_OK;
    }
    if (err == HF_NOMEM)
        snprintf(detail, HF_CONFIG_DETAIL_SIZE, "%s", hf_err_text(err));
    hf_config_free(config);
    return err;
}

static void free_handler(hf_config_handler *handler)
{
    for (size_t i = 0; i < handler->n_types; i++)
        hf_value_free_all(HF_IN_POOL_TYPE, &handler->types[i]);
    free(handler->types);
    hf_value_free_all(HF_IN_HANDLER, handler);
}

void hf_config_free(hf_config *config)
{
    if (config == NULL)
        return;
    for (size_t i = 0; i < config->n_queues; i++)
        hf_value_free_all(HF_IN_QUEUE, &config->queues[i]);
    for (size_t i = 0; i < config->n_handlers; i++)
        free_handler(&config->handlers[i]);
    for (size_t i = 0; i < config->n_schedules; i++)
        hf_value_free_all(HF_IN_SCHEDULE, &config->schedules[i]);
    free(config->schedules);
    free(config->queues);
    free(config->handlers);
    hf_value_free_all(HF_IN_CONFIG, config);
    free(config->file);
    free(config);
}

/* ---- the options of the worker; the ranges of the table make every cast below exact
 * ---- */

void hf_config_fill_server(const hf_config *config, hf_server_opts *out)
{
    out->url = config->redis_url;
    out->password_file = config->password_file;
    out->ns = config->ns;
    out->connect_timeout_ms = (uint32_t)config->connect_timeout_ms;
    out->request_timeout_ms = (uint32_t)config->request_timeout_ms;
    const hf_tls_opts *tls = &config->tls;
    bool said = tls->ca != NULL || tls->cert != NULL || tls->key != NULL ||
                tls->server_name != NULL || tls->skip_verify;
    out->tls = said ? tls : NULL;
    bool logs_in =
        config->sentinel_user != NULL || config->sentinel_password_file != NULL;
    out->sentinel = logs_in ? &config->sentinel : NULL;
}

void hf_config_fill_worker(const hf_config *config, hf_worker_opts *out)
{
    const hf_worker_opts own = *out; /* a file says nothing of these */
    *out = config->worker;
    out->size = own.size;
    out->server = own.server;
    out->queues = own.queues;
    out->n_queues = own.n_queues;
    out->schedules = own.schedules;
    out->n_schedules = own.n_schedules;
    out->burst = own.burst;
    out->minder = own.minder;
    out->log = own.log;
    out->log_arg = own.log_arg;
    /* Zero would mean the default there. */
    if (out->shutdown_timeout_ms == 0)
        out->shutdown_timeout_ms = HF_SHUTDOWN_AT_ONCE;
    if (out->history_ms == 0)
        out->history_ms = HF_HISTORY_NONE;
    if (out->backoff_jitter <= 0)
        out->backoff_jitter = HF_JITTER_NONE;
}

void hf_config_fill_queue(const hf_config_queue *queue, hf_worker_queue *out)
{
    *out = (hf_worker_queue){
        HF_WORKER_QUEUE_INIT,
        .name = queue->name,
        .weight = (uint32_t)queue->weight,
        .has_limits = queue->has_limits,
        .max_running = (uint32_t)queue->max_running,
        .rate_limit = (uint32_t)queue->rate_limit,
        .rate_per_ms = (uint32_t)queue->rate_per_ms,
        .shards = (uint32_t)queue->shards,
        .keep_ms = queue->keep_ms,
        .keep_max = queue->keep_max,
        .keep_bytes = queue->keep_bytes,
        .on_dead = queue->on_dead,
    };
}

/* Zero would mean the default there. */
static int64_t keep_of(const hf_config_handler *handler)
{
    if (!handler->has_keep)
        return 0;
    return handler->keep_ms == 0 ? HF_KEEP_NONE : handler->keep_ms;
}

void hf_config_fill_program(const hf_config_handler *handler, hf_program *out)
{
    *out = (hf_program){
        HF_PROGRAM_INIT,
        .type = handler->type,
        .argv = (const char *const *)handler->exec,
        .env = (const char *const *)handler->env,
        .cwd = handler->cwd,
        .timeout_ms = (uint32_t)handler->timeout_ms,
        .grace_ms = (uint32_t)handler->grace_ms,
        .max_attempts = (uint32_t)handler->max_attempts,
        .keep_ms = keep_of(handler),
        .logs = handler->logs != 0,
        .result_stdout = handler->result_stdout != 0,
        .env_all = handler->env_all,
        .on_dead = handler->on_dead,
    };
}

void hf_config_fill_pool(const hf_config_handler *handler, hf_pool *out)
{
    *out = (hf_pool){
        HF_POOL_INIT,
        .argv = (const char *const *)handler->pool,
        .env = (const char *const *)handler->env,
        .cwd = handler->cwd,
        .processes = (uint32_t)handler->processes,
        .parallel = (uint32_t)handler->parallel,
        .start_timeout_ms = (uint32_t)handler->start_timeout_ms,
        .grace_ms = (uint32_t)handler->grace_ms,
        .max_jobs = (uint64_t)handler->max_jobs,
        .max_age_ms = handler->max_age_ms,
        .max_rss = handler->max_rss,
        .idle_ms = handler->idle_ms == 0 ? HF_IDLE_NEVER : handler->idle_ms,
        .types = handler->types,
        .n_types = handler->n_types,
        .timeout_ms = (uint32_t)handler->timeout_ms,
        .max_attempts = (uint32_t)handler->max_attempts,
        .keep_ms = keep_of(handler),
        .on_dead = handler->on_dead,
        .env_all = handler->env_all,
        .logs = handler->logs != 0,
    };
}
