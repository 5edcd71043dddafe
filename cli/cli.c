/* cli.c - see cli.h. */
#include "cli/cli.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/detail.h"
#include "base/id.h"
#include "base/mask.h"
#include "base/text.h"
#include "cli/out.h"
#include "cli/waiting.h"
#include "config/nodes.h"

enum { MESSAGE_SIZE = 2048, LEAST_FILES = 32, HINT_SIZE = 64, PRINT_MS = 100 };

/* ---- saying what went wrong ---- */

/* Where the right words are told. */
static const char *usage_hint(const hf_argv *args, char *hint, size_t size)
{
    const char *of = args != NULL && args->command != NULL && !args->command->hidden
                         ? args->command->name
                     : args != NULL ? args->group
                                    : NULL;
    if (of == NULL)
        return "holdfast help lists all commands";
    (void)snprintf(hint, size, "see holdfast %s --help", of);
    return hint;
}

void hf_cli_print(const hf_cli *cli, const char *lines)
{
    if (cli->writer == NULL) {
        fputs(lines, stderr);
        return;
    }
    hf_writer_put(cli->writer, lines, strlen(lines));
    (void)hf_writer_flush(cli->writer, PRINT_MS);
}

void hf_cli_print_json(const hf_cli *cli, json_t *object)
{
    hf_buf text;
    char *line = hf_out_line(object);
    hf_buf_init(&text, HF_WRITER_MAX);
    hf_buf_printf(&text, "%s\n", line == NULL ? "{\"error\":\"out of memory\"}" : line);
    if (hf_buf_err(&text) == HF_OK)
        hf_cli_print(cli, text.data);
    hf_buf_done(&text);
    free(line);
    json_decref(object);
}

static void report(const hf_cli *cli, hf_exit code, hf_err err, const char *hint,
                   char *message)
{
    char usage[HINT_SIZE];
    hf_mask(message);
    if (*hint == '\0' && code == HF_EXIT_USAGE)
        hint = usage_hint(cli->args, usage, sizeof usage);
    hf_text_plain(message); /* one line, even if Redis or a file sent several */
    if (!cli->json && code == 128 + SIGINT && isatty(STDERR_FILENO) == 1) {
        fprintf(stderr, "holdfast: %s", message); /* the shell ends the line after ^C */
        return;
    }
    if (!cli->json) {
        char lines[2 * MESSAGE_SIZE];
        /* the hint for a user at a terminal, not for a log */
        bool hinted = *hint != '\0' && isatty(STDERR_FILENO) == 1;
        snprintf(lines, sizeof lines, hinted ? "holdfast: %s\n  %s\n" : "holdfast: %s\n",
                 message, hint);
        hf_cli_print(cli, lines);
        return;
    }
    json_t *object =
        json_pack("{s:o, s:i}", "error", hf_out_text(message), "code", (int)code);
    if (object != NULL && err != HF_OK)
        (void)json_object_set_new(object, "name", json_string(hf_err_name(err)));
    if (object != NULL)
        (void)json_object_set_new(object, "hint", hf_out_text(hint));
    hf_cli_print_json(cli, object);
}

int hf_cli_fail(const hf_cli *cli, hf_err err, const char *detail)
{
    char message[MESSAGE_SIZE];
    (void)hf_say_whole(err, detail, message, sizeof message);
    hf_exit code = hf_exit_code(err);
    report(cli, code, err, hf_exit_hint(err), message);
    return (int)code;
}

int hf_cli_say(const hf_cli *cli, hf_exit code, const char *hint, const char *format, ...)
{
    char message[MESSAGE_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    report(cli, code, HF_OK, hint, message);
    return (int)code;
}

int hf_cli_check_name(const hf_cli *cli, const char *what, const char *name)
{
    if (name == NULL || hf_name_ok(name))
        return HF_EXIT_OK;
    return hf_cli_say(
        cli, HF_EXIT_DATA, "",
        "expected %s (1 to 128 characters of A-Z a-z 0-9 . _ : -), found '%s'", what,
        HF_FOUND(name));
}

const char *hf_cli_queue(const hf_cli *cli)
{
    const char *queue = hf_argv_text(cli->args, "queue");
    if (queue == NULL)
        return "default";
    return hf_cli_check_name(cli, "a queue's name", queue) == HF_EXIT_OK ? queue : NULL;
}

/* ---- which source takes precedence ---- */

static bool has_password(const char *url)
{
    const char *start = strstr(url, "://");
    const char *at = strrchr(url, '@');
    if (start == NULL || at == NULL || at < start + 3)
        return false;
    return memchr(start + 3, ':', (size_t)(at - start - 3)) != NULL;
}

/* A URL that is not the file's. */
static int take_url(hf_cli *cli, const char *url, const char *where)
{
    char detail[HF_DETAIL_SIZE] = "";
    if (hf_url_check(url, detail) != HF_OK)
        return hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "%s: expected the URL of a Redis, found one "
                          "that cannot be used (%s)",
                          where, detail);
    cli->server.url = url;
    /* They belong to the file's URL. */
    if (strncasecmp(url, "rediss", 6) != 0)
        cli->server.tls = NULL;
    if (!hf_url_has_sentinels(url))
        cli->server.sentinel = NULL;
    if (has_password(url))
        cli->server.password_file = NULL;
    return HF_EXIT_OK;
}

static int put_options_over(hf_cli *cli)
{
    const char *flag = hf_argv_text(cli->args, "redis");
    const char *environment = getenv("REDIS_URL");
    const char *ns = hf_argv_text(cli->args, "namespace");
    int code = HF_EXIT_OK;
    if (flag != NULL)
        code = take_url(cli, flag, "--redis");
    else if (environment != NULL && *environment != '\0')
        code = take_url(cli, environment, "REDIS_URL");
    if (code != HF_EXIT_OK || ns == NULL)
        return code;
    if (!hf_name_ok(ns))
        return hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "--namespace: expected 1 to 128 characters of "
                          "A-Z a-z 0-9 . _ : -, found '%s'",
                          HF_FOUND(ns));
    cli->server.ns = ns;
    return HF_EXIT_OK;
}

int hf_cli_put_over(hf_cli *cli)
{
    cli->server = (hf_server_opts){HF_SERVER_OPTS_INIT};
    hf_config_fill_server(cli->config, &cli->server);
    return put_options_over(cli);
}

void hf_cli_warn(const hf_cli *cli, const char *text)
{
    if (cli->json)
        hf_out_json(stderr, json_pack("{s:s}", "warning", text));
    else
        fprintf(stderr, "holdfast: warning: %s\n", text);
}

static void warn_if_readable(const hf_cli *cli, const char *what, const char *file)
{
    char text[HF_DETAIL_SIZE];
    struct stat s;
    if (file == NULL || stat(file, &s) != 0 || (s.st_mode & S_IROTH) == 0)
        return;
    (void)snprintf(text, sizeof text, "every user can read %s '%.120s': chmod o-r it",
                   what, file);
    hf_cli_warn(cli, text);
}

/* The files with secrets that this command uses. */
static void warn_of_files(const hf_cli *cli)
{
    const hf_server_opts *server = &cli->server;
    warn_if_readable(cli, "the password file", server->password_file);
    if (server->sentinel != NULL)
        warn_if_readable(cli, "the Sentinels' password file",
                         server->sentinel->password_file);
    if (server->tls != NULL)
        warn_if_readable(cli, "the key", server->tls->key);
}

int hf_cli_setup(hf_cli *cli, const hf_argv *args)
{
    char detail[HF_CONFIG_DETAIL_SIZE];
    *cli =
        (hf_cli){.args = args, .json = hf_argv_has(args, "json"), .detail = cli->detail};
    if (args->command->bare)
        return HF_EXIT_OK;
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < LEAST_FILES)
        return hf_cli_say(cli, HF_EXIT_SYSTEM, hf_exit_hint(HF_SYSTEM),
                          "expected a limit of open files of at least %d, found %llu",
                          LEAST_FILES, (unsigned long long)files.rlim_cur);
    hf_err err = hf_config_load(&cli->config, hf_argv_text(args, "config"), detail);
    if (err != HF_OK)
        return hf_cli_fail(cli, err, detail);
    int code = hf_cli_put_over(cli);
    if (code == HF_EXIT_OK && cli->server.tls != NULL && cli->server.tls->skip_verify &&
        !args->command->logs)
        hf_cli_warn(cli, "the certificate of Redis is not verified (redis.tls.verify)");
    if (code == HF_EXIT_OK)
        warn_of_files(cli);
    return code;
}

void hf_cli_done(hf_cli *cli)
{
    hf_config_free(cli->config);
    cli->config = NULL;
}

void hf_cli_fill_producer(const hf_cli *cli, hf_producer_opts *out)
{
    out->server = &cli->server;
    out->payload_max = (uint32_t)cli->config->payload_max;
    /* A command that cannot connect ends when the time for that is over. */
    int64_t connect_ms = cli->config->connect_timeout_ms;
    int64_t request_ms = cli->config->request_timeout_ms;
    out->deadline_ms = (uint32_t)(connect_ms > request_ms ? connect_ms : request_ms);
}

int hf_cli_admin(const hf_cli *cli, hf_admin **out)
{
    const hf_admin_opts opts = {HF_ADMIN_OPTS_INIT, .server = &cli->server};
    hf_waiting *waiting = hf_waiting_begin(cli->server.url, cli->json);
    hf_err err = hf_admin_open(out, &opts, cli->detail);
    if (err == HF_OK && waiting != NULL) {
        hf_round_trip trip = {HF_ROUND_TRIP_INIT};
        err = hf_admin_round_trip(*out, &trip, cli->detail);
        /* After another fault the command may still work, or explain it better. */
        err = err == HF_CONN || err == HF_TIMEOUT ? err : HF_OK;
        if (err != HF_OK) {
            hf_admin_close(*out);
            *out = NULL;
        }
    }
    hf_waiting_end(waiting);
    return err == HF_OK ? HF_EXIT_OK : hf_cli_fail(cli, err, cli->detail);
}
