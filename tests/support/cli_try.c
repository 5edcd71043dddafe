/* cli_try.c - see cli_try.h. */
#include "tests/support/cli_try.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/eventually.h"

enum { LINE_SIZE = 320, START_MS = 10000 };

void hf_try_run(hf_cli_rig *rig, const char *line, int code)
{
    int got = hf_cli_rig_run(rig, line, NULL, NULL);
    if (got != code)
        fail_msg("`%s` ended with %d instead of %d: %s%s", line, got, code, rig->out,
                 rig->err);
}

void hf_try_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("'%s' is not in '%s'", part, text);
}

json_t *hf_try_object(hf_cli_rig *rig, const char *line, int code)
{
    hf_try_run(rig, line, code);
    json_t *object = json_loads(code == 0 ? rig->out : rig->err, 0, NULL);
    if (object == NULL)
        fail_msg("`%s` printed no object: %s%s", line, rig->out, rig->err);
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

long long hf_try_figure(hf_cli_rig *rig, const char *queue, const char *key)
{
    char line[LINE_SIZE];
    snprintf(line, sizeof line, "queue show %s @ --json", queue);
    json_t *stats = hf_try_object(rig, line, 0);
    long long n = hf_try_number(stats, key);
    json_decref(stats);
    return n;
}

bool hf_try_is_in(hf_cli_rig *rig, const char *id, const char *state)
{
    char line[LINE_SIZE];
    snprintf(line, sizeof line, "job show %s @ --json", id);
    if (hf_cli_rig_run(rig, line, NULL, NULL) != 0)
        return false;
    json_t *job = json_loads(rig->out, 0, NULL);
    bool is = strcmp(hf_try_text(job, "state"), state) == 0;
    json_decref(job);
    return is;
}

void hf_try_worker(hf_cli_rig *rig, hf_proc *worker, const char *config)
{
    char line[LINE_SIZE];
    snprintf(line, sizeof line, "worker @ -c %s", config);
    hf_cli_rig_begin(rig, worker, line, "log");
    EVENTUALLY(START_MS, strstr(hf_cli_rig_get(rig, "log"), "serving") != NULL);
}
