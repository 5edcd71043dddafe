/* cli_fixture.c - see cli_fixture.h. */
#include "tests/support/cli_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { RUN_MS = 60000, LINE_SIZE = 1024 };

typedef struct words {
    char text[LINE_SIZE];
    const char *argv[HF_CLI_WORDS + 1];
} words;

void hf_cli_fixture_start(hf_cli_fixture *fixture, const char *command)
{
    unsetenv("REDIS_URL"); /* the test's own environment must not decide */
    fixture->command = command;
    hf_fixture_start(&fixture->redis, NULL);
    hf_tempdir_make(fixture->dir);
}

void hf_cli_fixture_stop(hf_cli_fixture *fixture)
{
    hf_fixture_stop(&fixture->redis);
    hf_tempdir_remove(fixture->dir);
}

void hf_cli_fixture_path(const hf_cli_fixture *fixture, const char *name,
                         char out[HF_CLI_PATH])
{
    snprintf(out, HF_CLI_PATH, "%s/%s", fixture->dir, name);
}

void hf_cli_fixture_put(const hf_cli_fixture *fixture, const char *name, const char *text)
{
    char path[HF_CLI_PATH];
    hf_cli_fixture_path(fixture, name, path);
    hf_write_file(path, text);
}

const char *hf_cli_fixture_get(hf_cli_fixture *fixture, const char *name)
{
    char path[HF_CLI_PATH];
    hf_cli_fixture_path(fixture, name, path);
    return hf_read_file(path, fixture->out, sizeof fixture->out);
}

bool hf_cli_fixture_has(const hf_cli_fixture *fixture, const char *name)
{
    char path[HF_CLI_PATH];
    hf_cli_fixture_path(fixture, name, path);
    return access(path, F_OK) == 0;
}

void hf_cli_fixture_remove(const hf_cli_fixture *fixture, const char *name)
{
    char path[HF_CLI_PATH];
    hf_cli_fixture_path(fixture, name, path);
    (void)unlink(path);
}

static void split(const hf_cli_fixture *fixture, words *w, const char *line)
{
    size_t n = 0;
    snprintf(w->text, sizeof w->text, "%s", line);
    w->argv[n++] = fixture->command;
    char *rest = w->text;
    for (char *word; (word = strtok_r(rest, " ", &rest)) != NULL;) {
        assert_true(n + 2 < HF_CLI_WORDS);
        if (strcmp(word, "@") == 0)
            w->argv[n++] = "--redis";
        w->argv[n++] = strcmp(word, "@") == 0 ? fixture->redis.url : word;
    }
    w->argv[n] = NULL;
}

int hf_cli_fixture_run(hf_cli_fixture *fixture, const char *line, const char *input,
                       const char *const *env)
{
    words w;
    char in[HF_CLI_PATH], out[HF_CLI_PATH], err[HF_CLI_PATH];
    split(fixture, &w, line);
    hf_cli_fixture_path(fixture, "in", in);
    hf_cli_fixture_path(fixture, "out", out);
    hf_cli_fixture_path(fixture, "err", err);
    hf_write_file(out, ""); /* what runs appends to them */
    hf_write_file(err, "");
    if (input != NULL)
        hf_write_file(in, input);
    const hf_proc_options options = {.args = w.argv,
                                     .env = env,
                                     .in = input != NULL ? in : NULL,
                                     .out = out,
                                     .err = err,
                                     .dir = fixture->dir};
    int code = hf_proc_run(&options, RUN_MS);
    hf_read_file(out, fixture->out, sizeof fixture->out);
    hf_read_file(err, fixture->err, sizeof fixture->err);
    return code;
}

void hf_cli_fixture_begin(hf_cli_fixture *fixture, hf_proc *proc, const char *line,
                          const char *log)
{
    words w;
    char err[HF_CLI_PATH];
    split(fixture, &w, line);
    hf_cli_fixture_path(fixture, log, err);
    hf_write_file(err, "");
    const hf_proc_options options = {.args = w.argv, .err = err, .dir = fixture->dir};
    hf_proc_start(proc, &options);
}

void hf_cli_fixture_at_terminal(hf_cli_fixture *fixture, hf_terminal *t, const char *line,
                                const char *const *env)
{
    words w;
    split(fixture, &w, line);
    hf_terminal_start(t, w.argv, env, fixture->dir);
}
