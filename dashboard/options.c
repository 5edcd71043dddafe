/* options.c - see options.h. */
#include "dashboard/options.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mask.h"
#include "seen/facts.h"

/* "/a/b" without an end, of characters that a page may have unescaped. */
static int read_base(hf_dash_opts *out, const hf_cli *cli)
{
    const char *text = hf_argv_text(cli->args, "base");
    size_t len = text == NULL ? 0 : strlen(text);
    while (len > 0 && text[len - 1] == '/')
        len--;
    bool good = len < sizeof out->base && (text == NULL || *text == '/');
    for (size_t i = 0; i < len && good; i++)
        good = isalnum((unsigned char)text[i]) || strchr("/-_~", text[i]) != NULL ||
               (text[i] == '.' && text[i + 1] != '.');
    if (!good || (text != NULL && strstr(text, "//") != NULL))
        return hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "--base: expected a path as /holdfast, of A-Z a-z 0-9 . _ ~ - "
                          "/, found '%s'",
                          HF_FOUND(text));
    if (len > 0)
        memcpy(out->base, text, len);
    out->base[len] = '\0';
    return HF_EXIT_OK;
}

static int read_hosts(hf_dash_opts *out, const hf_cli *cli)
{
    const size_t n = hf_argv_count(cli->args, "host");
    out->hosts = calloc(n + 1, sizeof *out->hosts);
    if (out->hosts == NULL)
        return hf_cli_fail(cli, HF_NOMEM, "");
    for (size_t i = 0; i < n; i++) {
        const char *name = hf_argv_nth(cli->args, "host", i);
        if (*name == '\0' || strpbrk(name, "/@ \t") != NULL)
            return hf_cli_say(cli, HF_EXIT_USAGE, "",
                              "--host: expected a name as jobs.example.org, found '%s'",
                              HF_FOUND(name));
        out->hosts[out->n_hosts++] = name;
    }
    return HF_EXIT_OK;
}

int hf_dash_opts_read(hf_dash_opts *out, const hf_cli *cli)
{
    char detail[HF_DETAIL_SIZE] = "";
    const hf_argv *args = cli->args;
    const bool exporter = strcmp(args->command->name, "exporter") == 0;
    const char *listen = hf_argv_text(args, "listen");
    *out = (hf_dash_opts){.token_file = hf_argv_text(args, "token-file"),
                          .group = hf_argv_text(args, "group"),
                          .user_header = hf_argv_text(args, "user-header"),
                          .late_ms = hf_argv_number(args, "late", HF_FACTS_LATE_MS),
                          .allow_changes = hf_argv_has(args, "allow-changes"),
                          .hide_payloads = hf_argv_has(args, "hide-payloads"),
                          .metrics_only = exporter};
    if (listen == NULL)
        listen = exporter ? "127.0.0.1:9465" : "127.0.0.1:8880";
    if (hf_listen_read(&out->listen, listen, detail) != HF_OK)
        return hf_cli_say(cli, HF_EXIT_USAGE, "", "--listen: %s", detail);
    if (!out->listen.loopback && out->token_file == NULL)
        return hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "--listen: others can reach %s, so --token-file is needed",
                          out->listen.host);
    if (out->group != NULL && out->listen.path[0] == '\0')
        return hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "--group: only a unix socket (--listen unix:PATH) has a group");
    int code = read_base(out, cli);
    return code == HF_EXIT_OK ? read_hosts(out, cli) : code;
}

void hf_dash_opts_done(hf_dash_opts *opts)
{
    free(opts->hosts);
}
