/* cli_try.c - see cli_try.h. */
#include "tests/support/cli_try.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/eventually.h"

enum { LINE_SIZE = 320, START_MS = 30000 };

hf_cli_fixture hf_try_fixture;
hf_proc hf_try_proc;
static const char *w_yaml;

void hf_try_up(const char *command, const char *config)
{
    hf_cli_fixture_start(&hf_try_fixture, command);
    w_yaml = config;
    (void)hf_try_clean(NULL);
}

void hf_try_down(void)
{
    hf_proc_kill(&hf_try_proc);
    hf_cli_fixture_stop(&hf_try_fixture);
}

int hf_try_clean(void **state)
{
    (void)state;
    hf_proc_kill(&hf_try_proc);
    hf_fixture_command(&hf_try_fixture.redis, "FLUSHALL");
    if (w_yaml != NULL)
        hf_cli_fixture_put(&hf_try_fixture, "w.yaml", w_yaml);
    return 0;
}

void hf_try_run(const char *line, int code)
{
    int got = hf_cli_fixture_run(&hf_try_fixture, line, NULL, NULL);
    if (got != code)
        fail_msg("`%s` ended with %d instead of %d: %s%s", line, got, code,
                 hf_try_fixture.out, hf_try_fixture.err);
}

void hf_try_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("'%s' is not in '%s'", part, text);
}

json_t *hf_try_object(const char *line, int code)
{
    hf_try_run(line, code);
    json_t *object =
        json_loads(code == 0 ? hf_try_fixture.out : hf_try_fixture.err, 0, NULL);
    if (object == NULL)
        fail_msg("`%s` printed no object: %s%s", line, hf_try_fixture.out,
                 hf_try_fixture.err);
    return object;
}

const char *hf_try_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    if (text == NULL)
        fail_msg("there is no text '%s'", key);
    return text;
}

long long hf_try_number(const json_t *object, const char *key)
{
    const json_t *number = json_object_get(object, key);
    if (!json_is_integer(number))
        fail_msg("there is no number '%s'", key);
    return json_integer_value(number);
}

long long hf_try_figure(const char *queue, const char *key)
{
    char line[LINE_SIZE];
    snprintf(line, sizeof line, "queue show %s @ --json", queue);
    if (hf_cli_fixture_run(&hf_try_fixture, line, NULL, NULL) == 1)
        return 0; /* nobody has used it yet */
    json_t *stats = hf_try_object(line, 0);
    long long n = hf_try_number(stats, key);
    json_decref(stats);
    return n;
}

bool hf_try_is_in(const char *id, const char *state)
{
    char line[LINE_SIZE];
    snprintf(line, sizeof line, "job show %s @ --json", id);
    if (hf_cli_fixture_run(&hf_try_fixture, line, NULL, NULL) != 0)
        return false;
    json_t *job = json_loads(hf_try_fixture.out, 0, NULL);
    bool is = strcmp(hf_try_text(job, "state"), state) == 0;
    json_decref(job);
    return is;
}

bool hf_try_logged(const char *part)
{
    return strstr(hf_cli_fixture_get(&hf_try_fixture, "log"), part) != NULL;
}

void hf_try_worker(const char *line)
{
    hf_cli_fixture_begin(&hf_try_fixture, &hf_try_proc, line, "log");
    EVENTUALLY(START_MS, hf_try_logged("serving"));
}
