/* main.c - `holdfast-dashboard`, which `holdfast dashboard` and `holdfast exporter`
 * start: one loop for HTTP, and one thread that asks Redis. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/base.h"
#include "cli/cli.h"
#include "dashboard/changelog.h"
#include "dashboard/dead_tasks.h"
#include "dashboard/options.h"
#include "dashboard/routes.h"

typedef struct server {
    hf_cli *cli;
    hf_dash_opts opts;
    uv_loop_t loop;
    uv_signal_t signals[3];
    hf_auth *auth;
    hf_changelog *changelog;
    hf_dead_tasks *tasks;
    hf_poller *poller;
    hf_routes *routes;
    hf_http *http;
} server;

static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};

static void on_signal(uv_signal_t *handle, int number)
{
    server *s = handle->data;
    char detail[HF_DETAIL_SIZE] = "";
    if (number != SIGHUP) {
        uv_stop(&s->loop);
        return;
    }
    hf_err err = hf_auth_reload(s->auth, detail);
    if (err != HF_OK)
        (void)hf_cli_fail(s->cli, err, detail);
}

static void start_signals(server *s)
{
    for (size_t i = 0; i < HF_COUNT(numbers); i++) {
        (void)uv_signal_init(&s->loop, &s->signals[i]);
        s->signals[i].data = s;
        (void)uv_signal_start(&s->signals[i], on_signal, numbers[i]);
    }
}

/* On the thread of the task. */
static void on_task_ended(const hf_task_view *v, void *arg)
{
    static const char *const words[] = {[HF_TASK_DONE] = "",
                                        [HF_TASK_STOPPED] = ", then stopped",
                                        [HF_TASK_FAILED] = ", then failed: "};
    server *s = arg;
    hf_changelog_entry change = {.status = 0};
    (void)snprintf(change.by, sizeof change.by, "%s", v->order.by);
    (void)snprintf(change.role, sizeof change.role, "%s", v->order.role);
    (void)snprintf(change.what, sizeof change.what, "%s_ended",
                   v->order.purge ? "purge" : "retry");
    (void)snprintf(change.of, sizeof change.of, "%s", v->order.queue);
    (void)snprintf(change.result, sizeof change.result, "%zu of %zu%s%.80s", v->done,
                   v->order.jobs, words[v->state], v->why);
    hf_changelog_add(s->changelog, &change);
}

static hf_err open_tasks(server *s)
{
    const hf_dead_tasks_opts opts = {
        .server = &s->cli->server, .ended = on_task_ended, .arg = s};
    s->changelog = hf_changelog_open();
    return s->changelog == NULL ? HF_NOMEM : hf_dead_tasks_open(&s->tasks, &opts);
}

static hf_err open_parts(server *s, char *detail)
{
    const hf_dash_opts *o = &s->opts;
    const hf_auth_opts auth = {.token_file = o->token_file,
                               .address = o->listen.host,
                               .hosts = o->hosts,
                               .n_hosts = o->n_hosts,
                               .allow_changes = o->allow_changes};
    hf_err err = open_tasks(s);
    const hf_poller_opts poller = {.server = &s->cli->server,
                                   .late_ms = o->late_ms,
                                   .poison = s->cli->config->worker.poison,
                                   .hide_payloads = o->hide_payloads,
                                   .tasks = s->tasks,
                                   .changelog = s->changelog};
    if (err == HF_OK)
        err = hf_auth_open(&s->auth, &auth, detail);
    if (err == HF_OK)
        err = hf_listen_open(&s->opts.listen, o->group, detail);
    if (err == HF_OK)
        err = hf_poller_open(&s->poller, &s->loop, &poller);
    const hf_routes_opts routes = {.auth = s->auth,
                                   .poller = s->poller,
                                   .base = o->base,
                                   .user_header = o->user_header,
                                   .changelog = s->changelog,
                                   .allow_changes = o->allow_changes,
                                   .metrics_only = o->metrics_only};
    if (err == HF_OK)
        err = hf_routes_open(&s->routes, &s->loop, &routes);
    if (err == HF_OK)
        err = hf_http_open(&s->http, &s->loop, s->opts.listen.fd, hf_routes_on_request,
                           s->routes);
    return err;
}

/* The poller first: its last answers need the connections. */
static void close_parts(server *s)
{
    hf_poller_close(s->poller);
    hf_http_close(s->http);
    hf_routes_close(s->routes);
    hf_dead_tasks_close(s->tasks);
    hf_changelog_close(s->changelog);
    hf_auth_close(s->auth);
    hf_listen_done(&s->opts.listen);
    for (size_t i = 0; i < HF_COUNT(numbers); i++)
        uv_close((uv_handle_t *)&s->signals[i], NULL);
    (void)uv_run(&s->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&s->loop);
}

static void say_ready(const server *s)
{
    char text[HF_LISTEN_TEXT];
    (void)fprintf(stderr, "holdfast-dashboard: listening on %s%s%s, %s\n",
                  hf_listen_text(&s->opts.listen, text),
                  s->opts.listen.path[0] == '\0' ? s->opts.base : "",
                  s->opts.listen.path[0] == '\0' ? "/" : "",
                  s->opts.metrics_only    ? "metrics only"
                  : s->opts.allow_changes ? "changes allowed"
                                          : "read only");
}

static int serve(hf_cli *cli)
{
    char detail[HF_DETAIL_SIZE] = "";
    server s = {.cli = cli};
    int code = hf_dash_opts_read(&s.opts, cli);
    if (code != HF_EXIT_OK)
        return code;
    if (uv_loop_init(&s.loop) != 0)
        return hf_cli_fail(cli, HF_SYSTEM, "");
    start_signals(&s);
    hf_err err = open_parts(&s, detail);
    if (err == HF_OK) {
        say_ready(&s);
        (void)uv_run(&s.loop, UV_RUN_DEFAULT);
    }
    close_parts(&s);
    hf_dash_opts_done(&s.opts);
    return err == HF_OK ? HF_EXIT_OK : hf_cli_fail(cli, err, detail);
}

static void ignore_sigpipe(void)
{
    struct sigaction action = {.sa_handler = SIG_IGN};
    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGPIPE, &action,
                    NULL); /* a client that has gone is no reason to end */
}

/* Its arguments are those of `holdfast dashboard` or `holdfast exporter`. */
int main(int argc, char **argv)
{
    char detail[HF_ARGV_DETAIL_SIZE] = "", why[HF_DETAIL_SIZE] = "";
    char **copies = NULL;
    hf_argv args = {0};
    hf_cli cli = {.args = &args, .detail = why};
    ignore_sigpipe();
    hf_err err = hf_argv_hide_passwords(argc, argv, &copies);
    if (err == HF_OK)
        err = hf_argv_parse(&args, hf_commands(), argc, argv, detail);
    int code;
    if (err != HF_OK) {
        code = err == HF_INVALID ? hf_cli_say(&cli, HF_EXIT_USAGE, "", "%s", detail)
                                 : hf_cli_fail(&cli, err, NULL);
    } else if (args.command == NULL || (args.command->run != hf_cmd_dashboard &&
                                        args.command->run != hf_cmd_exporter)) {
        code =
            hf_cli_say(&cli, HF_EXIT_USAGE, "",
                       "`holdfast dashboard` and `holdfast exporter` start this program");
    } else {
        hf_command command = *args.command;
        command.bare = false; /* here the configuration is read */
        args.command = &command;
        code = hf_cli_setup(&cli, &args);
        if (code == HF_EXIT_OK)
            code = serve(&cli);
        hf_cli_done(&cli);
    }
    hf_argv_done(&args);
    hf_argv_free_copies(copies);
    return code;
}
