/* script.c - `holdfast script`: prints the scripts that enqueue, for other languages.
 * A script's header is its manual, so this only cuts the header up for --json. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/out.h"

/* "KEYS[1]  prefix      hf:{queue}:" of the line `--  KEYS[1] ...`, or false. */
static bool is_argument(const char *line, size_t len, const char *kind)
{
    size_t n = strlen(kind);
    return len > 4 + n && strncmp(line, "--  ", 4) == 0 &&
           strncmp(line + 4, kind, n) == 0;
}

/* The lines of the header that begin with `kind`, as a list of text. */
static json_t *arguments(const char *text, size_t len, const char *kind)
{
    json_t *list = json_array();
    const char *end = text + len;
    while (list != NULL && text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t n = (size_t)((stop != NULL ? stop : end) - text);
        if (is_argument(text, n, kind))
            (void)json_array_append_new(list, json_stringn(text + 4, n - 4));
        text += n + 1;
    }
    return list;
}

static int print(const hf_cli *cli, const char *name, const char *text, size_t len,
                 const char *sha1)
{
    if (hf_argv_has(cli->args, "sha1"))
        printf("%s\n", sha1);
    else if (cli->json)
        hf_out_json(stdout, json_pack("{s:s, s:s, s:o, s:o, s:o}", "name", name, "sha1",
                                      sha1, "keys", arguments(text, len, "KEYS["), "args",
                                      arguments(text, len, "ARGV["), "script",
                                      json_stringn(text, len)));
    else {
        /* Only the script on standard output, to be piped to SCRIPT LOAD. */
        fprintf(stderr, "sha1 %s\n", sha1);
        fwrite(text, 1, len, stdout);
    }
    return HF_EXIT_OK;
}

int hf_cmd_script_register(hf_cli *cli)
{
    size_t len;
    const char *sha1;
    const char *text = hf_register_script(&len, &sha1);
    return print(cli, "register", text, len, sha1);
}

int hf_cmd_script_enqueue(hf_cli *cli)
{
    size_t len;
    const char *sha1;
    const char *text = hf_enqueue_script(&len, &sha1);
    return print(cli, "enqueue", text, len, sha1);
}

int hf_cmd_script_enqueue_with(hf_cli *cli)
{
    size_t len;
    const char *sha1;
    const char *text = hf_enqueue_with_script(&len, &sha1);
    return print(cli, "enqueue_with", text, len, sha1);
}
