/* check.c - `holdfast check`: hf_cli_setup() has already read the file and reported its
 * faults. This part checks the files of redis.tls, and reports that all is well. */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mask.h"
#include "cli/cli.h"
#include "cli/common/tracing.h"
#include "cli/helper_path.h"
#include "cli/out.h"
#include "cli/worker/metrics_server.h"

enum { WARNING_SIZE = 512 };

static int print_reference(const hf_cli *cli)
{
    char *text = NULL;
    hf_err err = hf_config_reference(&text);
    if (err != HF_OK)
        return hf_cli_fail(cli, err, NULL);
    fputs(text, stdout);
    free(text);
    return HF_EXIT_OK;
}

/* For the URL that would be used; if that is no URL for TLS, for the file's own. Only its
 * scheme matters: its password may be in a file that only the worker can read. */
static hf_err check_tls(const hf_cli *cli, char detail[HF_DETAIL_SIZE])
{
    hf_server_opts used = cli->server;
    if (used.tls == NULL)
        hf_config_fill_server(cli->config, &used);
    bool by_tls = strncasecmp(used.url, "rediss", strlen("rediss")) == 0;
    const hf_server_opts opts = {
        HF_SERVER_OPTS_INIT, .url = by_tls ? "rediss://localhost" : "redis://localhost",
        .tls = used.tls};
    return used.tls == NULL ? HF_OK : hf_server_opts_check(&opts, detail);
}

/* ---- what a worker would take, and then fail with: warnings ---- */

static void warn(const hf_cli *cli, size_t *n, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void warn(const hf_cli *cli, size_t *n, const char *format, ...)
{
    char text[WARNING_SIZE];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    ++*n;
    hf_mask(text);
    hf_cli_warn(cli, text);
}

static bool is_program(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISREG(s.st_mode) && access(path, X_OK) == 0;
}

static const char *search_path(void)
{
    const char *path = getenv("PATH");
    return path != NULL ? path : "/bin:/usr/bin";
}

/* A name without a slash is looked for in PATH; a path is taken from `cwd`. */
static bool is_found(const hf_config_handler *handler, const char *name)
{
    char file[PATH_MAX];
    if (strchr(name, '/') != NULL) {
        bool from_cwd = name[0] != '/' && handler->cwd != NULL;
        int len = snprintf(file, sizeof file, "%s%s%s", from_cwd ? handler->cwd : "",
                           from_cwd ? "/" : "", name);
        return len > 0 && (size_t)len < sizeof file && is_program(file);
    }
    for (const char *at = search_path();; at++) {
        size_t dir = strcspn(at, ":");
        int len = snprintf(file, sizeof file, "%.*s/%s", dir == 0 ? 1 : (int)dir,
                           dir == 0 ? "." : at, name);
        if (len > 0 && (size_t)len < sizeof file && is_program(file))
            return true;
        at += dir;
        if (*at == '\0')
            return false;
    }
}

static void check_program(const hf_cli *cli, const hf_config_handler *handler, size_t *n)
{
    struct stat s;
    bool pool = handler->pool != NULL;
    const char *program = pool ? handler->pool[0] : handler->exec[0];
    const char *what = pool ? "pool" : "handler";
    const char *name = pool ? HF_FOUND(program) : handler->type;
    if (handler->cwd != NULL && (stat(handler->cwd, &s) != 0 || !S_ISDIR(s.st_mode)))
        warn(cli, n, "%s '%s': there is no directory '%s' (cwd)", what, name,
             HF_FOUND(handler->cwd));
    else if (!is_found(handler, program))
        warn(cli, n, "%s '%s': there is no program '%s' that can be run%s", what, name,
             HF_FOUND(program), strchr(program, '/') == NULL ? " in PATH" : "");
    for (size_t i = 0; handler->env != NULL && handler->env[i] != NULL; i++)
        if (getenv(handler->env[i]) == NULL)
            warn(cli, n, "%s '%s': the environment of this command has no '%s' (env)",
                 what, name, HF_FOUND(handler->env[i]));
}

/* Only its program knows the types of a pool: one may have any. */
static bool has_handler(const hf_config *config, const char *type)
{
    for (size_t i = 0; i < config->n_handlers; i++)
        if (config->handlers[i].pool != NULL ||
            strcmp(config->handlers[i].type, type) == 0 ||
            strcmp(config->handlers[i].type, "*") == 0)
            return true;
    return false;
}

static void check_type(const hf_cli *cli, const char *what, const char *name,
                       const char *type, size_t *n)
{
    if (type != NULL && !has_handler(cli->config, type))
        warn(cli, n, "%s '%s': no handler of this file has the type '%s'", what, name,
             type);
}

/* What the file asks for, and another package has. */
static void check_helpers(const hf_cli *cli, size_t *n)
{
    const hf_config *config = cli->config;
    char path[PATH_MAX], detail[HF_DETAIL_SIZE];
    if (config->metrics_listen != NULL &&
        !hf_helper_needed("metrics.listen", HF_METRICS_PROGRAM, path, detail))
        warn(cli, n, "%s", detail);
    if (config->tracing_endpoint != NULL && !hf_tracing_is_there(detail))
        warn(cli, n, "%s", detail);
}

/* How many warnings there were. Without handlers the file is not a worker's. */
static size_t check_use(const hf_cli *cli)
{
    const hf_config *config = cli->config;
    size_t n = 0;
    check_helpers(cli, &n);
    for (size_t i = 0; i < config->n_handlers; i++) {
        const hf_config_handler *handler = &config->handlers[i];
        check_program(cli, handler, &n);
        if (handler->pool == NULL)
            check_type(cli, "on_dead of handler", handler->type, handler->on_dead, &n);
    }
    for (size_t i = 0; i < config->n_queues && config->n_handlers > 0; i++)
        check_type(cli, "on_dead of queue", config->queues[i].name,
                   config->queues[i].on_dead, &n);
    for (size_t i = 0; i < config->n_schedules && config->n_handlers > 0; i++) {
        check_type(cli, "schedule", config->schedules[i].id, config->schedules[i].type,
                   &n);
        check_type(cli, "on_dead of schedule", config->schedules[i].id,
                   config->schedules[i].on_dead, &n);
    }
    return n;
}

int hf_cmd_check(hf_cli *cli)
{
    char detail[HF_DETAIL_SIZE] = "";
    if (hf_argv_has(cli->args, "reference"))
        return print_reference(cli);
    if (hf_argv_has(cli->args, "man")) {
        hf_config_manual(stdout);
        return HF_EXIT_OK;
    }
    const char *file = cli->config->file;
    if (file == NULL)
        return hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "missing -c FILE (usage: holdfast check -c FILE)");
    hf_err err = check_tls(cli, detail);
    if (err != HF_OK)
        return hf_cli_fail(cli, err, detail);
    size_t warnings = check_use(cli);
    size_t handlers = cli->config->n_handlers;
    size_t queues =
        cli->config->n_queues == 0 ? 1 : cli->config->n_queues; /* `default` */
    size_t schedules = cli->config->n_schedules;
    size_t pools = 0;
    for (size_t i = 0; i < handlers; i++)
        pools += cli->config->handlers[i].pool != NULL ? 1 : 0;
    char more[96] = "", of_them[48] = "";
    if (pools > 0)
        snprintf(of_them, sizeof of_them, ", pools among them: %zu", pools);
    if (schedules > 0)
        snprintf(more, sizeof more, ", schedules: %zu", schedules);
    if (cli->json)
        hf_out_json(stdout,
                    json_pack("{s:o, s:b, s:I, s:I, s:I, s:I, s:I}", "file",
                              hf_out_text(file), "ok", 1, "queues", (json_int_t)queues,
                              "handlers", (json_int_t)handlers, "pools",
                              (json_int_t)pools, "schedules", (json_int_t)schedules,
                              "warnings", (json_int_t)warnings));
    else
        printf("%s: good (queues: %zu, handlers: %zu%s%s%s)\n", file, queues, handlers,
               handlers == 0 ? ", which a worker needs" : "", of_them, more);
    return HF_EXIT_OK;
}
