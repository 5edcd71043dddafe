/* cli_rig.c - see cli_rig.h. */
#include "tests/support/cli_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RUN_MS = 60000, LINE_SIZE = 1024 };

typedef struct words {
    char text[LINE_SIZE];
    const char *argv[HF_CLI_WORDS + 1];
} words;

void hf_cli_rig_start(hf_cli_rig *rig, const char *command)
{
    unsetenv("REDIS_URL"); /* the test's own environment must not decide */
    rig->command = command;
    hf_fixture_start(&rig->redis, NULL);
    hf_tempdir_make(rig->dir);
}

void hf_cli_rig_stop(hf_cli_rig *rig)
{
    hf_fixture_stop(&rig->redis);
    hf_tempdir_remove(rig->dir);
}

void hf_cli_rig_path(const hf_cli_rig *rig, const char *name, char out[HF_CLI_PATH])
{
    snprintf(out, HF_CLI_PATH, "%s/%s", rig->dir, name);
}

void hf_cli_rig_put(const hf_cli_rig *rig, const char *name, const char *text)
{
    char path[HF_CLI_PATH];
    hf_cli_rig_path(rig, name, path);
    hf_write_file(path, text);
}

const char *hf_cli_rig_get(hf_cli_rig *rig, const char *name)
{
    char path[HF_CLI_PATH];
    hf_cli_rig_path(rig, name, path);
    return hf_read_file(path, rig->out, sizeof rig->out);
}

static void split(const hf_cli_rig *rig, words *w, const char *line)
{
    size_t n = 0;
    snprintf(w->text, sizeof w->text, "%s", line);
    w->argv[n++] = rig->command;
    char *rest = w->text;
    for (char *word; (word = strtok_r(rest, " ", &rest)) != NULL;) {
        assert_true(n + 2 < HF_CLI_WORDS);
        if (strcmp(word, "@") == 0)
            w->argv[n++] = "--redis";
        w->argv[n++] = strcmp(word, "@") == 0 ? rig->redis.url : word;
    }
    w->argv[n] = NULL;
}

int hf_cli_rig_run(hf_cli_rig *rig, const char *line, const char *input,
                   const char *const *env)
{
    words w;
    char in[HF_CLI_PATH], out[HF_CLI_PATH], err[HF_CLI_PATH];
    split(rig, &w, line);
    hf_cli_rig_path(rig, "in", in);
    hf_cli_rig_path(rig, "out", out);
    hf_cli_rig_path(rig, "err", err);
    hf_write_file(out, ""); /* what runs appends to them */
    hf_write_file(err, "");
    if (input != NULL)
        hf_write_file(in, input);
    const hf_proc_options options = {.args = w.argv,
                                     .env = env,
                                     .in = input != NULL ? in : NULL,
                                     .out = out,
                                     .err = err,
                                     .dir = rig->dir};
    int code = hf_proc_run(&options, RUN_MS);
    hf_read_file(out, rig->out, sizeof rig->out);
    hf_read_file(err, rig->err, sizeof rig->err);
    return code;
}

void hf_cli_rig_begin(hf_cli_rig *rig, hf_proc *proc, const char *line, const char *log)
{
    words w;
    char err[HF_CLI_PATH];
    split(rig, &w, line);
    hf_cli_rig_path(rig, log, err);
    hf_write_file(err, "");
    const hf_proc_options options = {.args = w.argv, .err = err, .dir = rig->dir};
    hf_proc_start(proc, &options);
}

void hf_cli_rig_at_terminal(hf_cli_rig *rig, hf_terminal *t, const char *line,
                            const char *const *env)
{
    words w;
    split(rig, &w, line);
    hf_terminal_start(t, w.argv, env, rig->dir);
}
