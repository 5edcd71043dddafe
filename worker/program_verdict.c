/* program_verdict.c - worker/program_verdict.h. */
#include "worker/program_verdict.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/text.h"

static const char *bad_verdict(hf_verdict_line *out, const json_t *value)
{
    static const struct {
        const char *word;
        hf_verdict verdict;
    } words[] = {{"done", HF_VERDICT_DONE},
                 {"retry", HF_VERDICT_RETRY},
                 {"dead", HF_VERDICT_DEAD}};
    const char *text = json_string_value(value);
    for (size_t i = 0; text != NULL && i < HF_COUNT(words); i++) {
        if (strcmp(text, words[i].word) == 0) {
            out->has_verdict = true;
            out->verdict = words[i].verdict;
            return NULL;
        }
    }
    return "expected \"done\", \"retry\" or \"dead\" as `verdict`";
}

static const char *bad_in(hf_verdict_line *out, const json_t *value)
{
    const char *text = json_string_value(value);
    out->has_retry_in = text != NULL && hf_parse_duration_ms(text, &out->retry_in_ms);
    return out->has_retry_in
               ? NULL
               : "expected a duration such as \"30s\", at most 36525d, as `in`";
}

static const char *bad_error(hf_verdict_line *out, const json_t *value)
{
    const char *text = json_string_value(value);
    if (text == NULL)
        return "expected a text as `error`";
    snprintf(out->error, sizeof out->error, "%s", text);
    return NULL;
}

/* What is wrong with the members, or NULL. */
static const char *read_members(hf_verdict_line *out, const json_t *object)
{
    if (!json_is_object(object))
        return "expected an object";
    const json_t *verdict = json_object_get(object, "verdict");
    const json_t *in = json_object_get(object, "in");
    const json_t *error = json_object_get(object, "error");
    const char *bad = verdict == NULL ? NULL : bad_verdict(out, verdict);
    if (bad == NULL && in != NULL)
        bad = bad_in(out, in);
    if (bad == NULL && error != NULL)
        bad = bad_error(out, error);
    return bad;
}

static void set_bad(hf_verdict_line *out, const char *why)
{
    *out = (hf_verdict_line){.has_verdict = false};
    snprintf(out->error, sizeof out->error, "the verdict line is not valid: %s", why);
}

bool hf_verdict_line_read(hf_verdict_line *out, const char *text, size_t len)
{
    *out = (hf_verdict_line){.has_verdict = false};
    const char *newline = len == 0 ? NULL : memchr(text, '\n', len);
    if (newline != NULL)
        len = (size_t)(newline - text);
    if (len == 0)
        return true;
    if (len > HF_VERDICT_LINE_MAX) {
        set_bad(out, "it is too long");
        return false;
    }
    json_error_t error;
    json_t *object = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
    const char *bad = object == NULL ? error.text : read_members(out, object);
    if (bad != NULL)
        set_bad(out, bad);
    json_decref(object);
    return bad == NULL;
}

/* "what: why", cut where there is no more room. */
static void say(char *error, const char *what, const char *why)
{
    size_t room = HF_PROGRAM_ERROR_MAX;
    const char *const parts[] = {what, what[0] == '\0' || why[0] == '\0' ? "" : ": ",
                                 why};
    for (size_t i = 0; i < HF_COUNT(parts); i++) {
        size_t len = strnlen(parts[i], room);
        memcpy(error, parts[i], len);
        error += len;
        room -= len;
    }
    *error = '\0';
}

void hf_program_judge(hf_program_result *result, const hf_program_end_state *end,
                      const hf_verdict_line *line, char error[HF_PROGRAM_ERROR_MAX + 1])
{
    char what[64], duration[HF_DURATION_SIZE];
    const char *said = line->error[0] != '\0' ? line->error : end->stderr_end;
    result->error = error;
    result->verdict = HF_VERDICT_RETRY;
    result->has_retry_in = line->has_retry_in;
    result->retry_in_ms = line->retry_in_ms;
    error[0] = '\0';
    if (end->timed_out) {
        hf_format_duration((int64_t)end->timeout_ms, duration);
        snprintf(what, sizeof what, "time-out after %s", duration);
        say(error, what, said);
    } else if (end->by_signal) {
        snprintf(what, sizeof what, "killed by signal %d", end->status);
        say(error, what, said);
    } else {
        if (line->has_verdict)
            result->verdict = line->verdict;
        else if (end->status == 0)
            result->verdict = HF_VERDICT_DONE;
        else if (end->status == HF_EXIT_DEAD)
            result->verdict = HF_VERDICT_DEAD;
        if (result->verdict == HF_VERDICT_DONE)
            said = line->error; /* what it printed is for the log only */
        snprintf(what, sizeof what, "exit status %d", end->status);
        bool none = said[0] == '\0' && result->verdict != HF_VERDICT_DONE;
        say(error, none ? what : "", said);
    }
    if (result->verdict != HF_VERDICT_RETRY)
        result->has_retry_in = false;
}
