/* program_said.c - worker/program_said.h. */
#include "worker/program_said.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/base64.h"
#include "base/text.h"

/* ---- its verdict ---- */

static const char *bad_verdict(hf_verdict_line *out, const json_t *value)
{
    static const struct {
        const char *word;
        hf_verdict verdict;
    } words[] = {{"done", HF_VERDICT_DONE},
                 {"retry", HF_VERDICT_RETRY},
                 {"dead", HF_VERDICT_DEAD},
                 {"release", HF_VERDICT_RELEASE},
                 {"cancel", HF_VERDICT_CANCEL}};
    const char *text = json_string_value(value);
    for (size_t i = 0; text != NULL && i < HF_COUNT(words); i++) {
        if (strcmp(text, words[i].word) == 0) {
            out->has_verdict = true;
            out->verdict = words[i].verdict;
            return NULL;
        }
    }
    return "expected \"done\", \"retry\", \"dead\", \"release\" or \"cancel\" as "
           "`verdict`";
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

/* The fault of the members of a verdict, or NULL. */
static const char *read_verdict(hf_verdict_line *out, const json_t *object)
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
    const char *bad = object == NULL ? error.text : read_verdict(out, object);
    if (bad != NULL)
        set_bad(out, bad);
    json_decref(object);
    return bad == NULL;
}

/* ---- contract 2: one line ---- */

/* Mistakes of a program, each told once. */
typedef enum fault_kind {
    TOO_LONG,
    NOT_VALID,
    NO_NEWLINE,
    LARGE_RESULT,
    LARGE_CHECKPOINT
} fault_kind;

static void tell_fault(hf_said *said, fault_kind kind, const char *why)
{
    static const char *const texts[] = {
        [TOO_LONG] = "a line on the descriptor is longer than 128 KiB and is ignored",
        [NOT_VALID] = "a line on the descriptor is not valid and is ignored: ",
        [NO_NEWLINE] = "the last line on the descriptor has no newline and is ignored",
        [LARGE_RESULT] = "a result is larger than 64 KiB and is left out",
        [LARGE_CHECKPOINT] = "a checkpoint is larger than 4 KiB and is left out",
    };
    char text[256];
    if ((said->faults & 1U << kind) == 0) {
        (void)snprintf(text, sizeof text, "%s%s", texts[kind], why);
        said->on_fault(text, said->arg);
    }
    said->faults |= 1U << kind;
}

/* Its members; what they point to is owned. */
typedef struct members {
    const json_t *verdict, *in, *error, *progress, *note;
    char *result, *checkpoint; /* NULL: not named */
    size_t result_len, checkpoint_len;
    bool result_is_json;
} members;

static char *compact(const json_t *value, size_t *len)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);
    *len = text == NULL ? 0 : strlen(text);
    return text;
}

/* A text is taken as it is, null is none, any other value as JSON. */
static char *checkpoint_of(const json_t *value, size_t *len)
{
    *len = 0;
    if (json_is_null(value))
        return strdup("");
    if (!json_is_string(value))
        return compact(value, len);
    *len = json_string_length(value);
    return strdup(json_string_value(value));
}

static const char *read_result(members *m, const json_t *object)
{
    const json_t *result = json_object_get(object, "result");
    const json_t *encoded = json_object_get(object, "result_base64");
    if (result != NULL && encoded != NULL)
        return "expected `result` or `result_base64`, not both";
    if (result != NULL)
        m->result = compact(result, &m->result_len);
    m->result_is_json = result != NULL;
    if (encoded == NULL)
        return NULL;
    size_t len = json_string_length(encoded);
    m->result = malloc(len / 4 * 3 + 1);
    bool good = m->result != NULL && json_is_string(encoded) &&
                hf_base64_decode(json_string_value(encoded), len,
                                 (unsigned char *)m->result, &m->result_len);
    return good ? NULL : "expected base64 as `result_base64`";
}

/* The fault of the members, or NULL. Only a line without a fault is taken. */
static const char *read_members(members *m, const json_t *object)
{
    hf_verdict_line verdict; /* only to look for a fault */
    const char *bad = read_verdict(&verdict, object);
    if (bad != NULL)
        return bad;
    m->verdict = json_object_get(object, "verdict");
    m->in = json_object_get(object, "in");
    m->error = json_object_get(object, "error");
    m->progress = json_object_get(object, "progress");
    m->note = json_object_get(object, "note");
    double percent = json_number_value(m->progress);
    if (m->progress != NULL &&
        (!json_is_number(m->progress) || !(percent >= 0 && percent <= 100)))
        return "expected 0 to 100 as `progress`";
    if (m->note != NULL && !json_is_string(m->note))
        return "expected a text as `note`";
    const json_t *checkpoint = json_object_get(object, "checkpoint");
    if (checkpoint != NULL)
        m->checkpoint = checkpoint_of(checkpoint, &m->checkpoint_len);
    return read_result(m, object);
}

static void take_result(hf_said *said, members *m)
{
    if (m->result_len > HF_PROGRAM_RESULT_MAX) {
        tell_fault(said, LARGE_RESULT, "");
        return;
    }
    free(said->result);
    said->result = m->result;
    said->result_len = m->result_len;
    said->result_is_json = m->result_is_json;
    m->result = NULL;
}

static void take_members(hf_said *said, members *m)
{
    hf_verdict_line *v = &said->verdict;
    if (m->verdict != NULL)
        (void)bad_verdict(v, m->verdict);
    if (m->in != NULL)
        (void)bad_in(v, m->in);
    if (m->error != NULL)
        (void)bad_error(v, m->error);
    if (m->result != NULL)
        take_result(said, m);
    if (m->checkpoint != NULL && m->checkpoint_len > HF_CHECKPOINT_MAX) {
        tell_fault(said, LARGE_CHECKPOINT, "");
        free(m->checkpoint);
        m->checkpoint = NULL;
    }
    const hf_said_news news = {
        .has_progress = m->progress != NULL,
        .progress = (uint32_t)json_number_value(m->progress),
        .note = json_string_value(m->note),
        .checkpoint = m->checkpoint,
        .checkpoint_len = m->checkpoint_len,
    };
    if (news.has_progress || news.note != NULL || news.checkpoint != NULL)
        said->on_news(&news, said->arg);
}

static bool is_blank(const char *text, size_t len)
{
    while (len > 0 &&
           (text[len - 1] == ' ' || text[len - 1] == '\t' || text[len - 1] == '\r'))
        len--;
    return len == 0;
}

/* whole: it has its newline, else it is only taken if it has a verdict. */
static void take_line(hf_said *said, const char *text, size_t len, bool whole)
{
    json_error_t error;
    members m = {.result = NULL};
    if (is_blank(text, len))
        return;
    json_t *object = json_loadb(text, len, 0, &error);
    if (!whole && json_object_get(object, "verdict") == NULL) {
        tell_fault(said, NO_NEWLINE, "");
    } else {
        const char *bad = object == NULL ? error.text : read_members(&m, object);
        if (bad != NULL)
            tell_fault(said, NOT_VALID, bad);
        else
            take_members(said, &m);
    }
    free(m.result);
    free(m.checkpoint);
    json_decref(object);
}

/* ---- contract 2: lines in pieces ---- */

static void take_piece(hf_said *said, const char *bytes, size_t len, bool ends)
{
    if (said->skips)
        return;
    if (said->line.len + len > HF_PROGRAM_SAID_MAX) {
        said->skips = true;
        tell_fault(said, TOO_LONG, "");
        return;
    }
    if (ends && said->line.len == 0) {
        take_line(said, bytes, len, true);
        return;
    }
    hf_buf_add(&said->line, bytes, len);
    if (hf_buf_err(&said->line) != HF_OK)
        said->skips = true;
    else if (ends)
        take_line(said, said->line.data, said->line.len, true);
}

static void feed_lines(hf_said *said, const char *bytes, size_t len)
{
    while (len > 0) {
        const char *newline = memchr(bytes, '\n', len);
        size_t n = newline == NULL ? len : (size_t)(newline - bytes);
        take_piece(said, bytes, n, newline != NULL);
        if (newline != NULL) {
            said->skips = false;
            hf_buf_clear(&said->line);
            n++;
        }
        bytes += n;
        len -= n;
    }
}

/* ---- for both ---- */

void hf_said_init(hf_said *said, unsigned contract,
                  void (*on_news)(const hf_said_news *news, void *arg),
                  void (*on_fault)(const char *text, void *arg), void *arg)
{
    bool one = contract < 2;
    *said = (hf_said){
        .contract = contract, .on_news = on_news, .on_fault = on_fault, .arg = arg};
    hf_buf_init(&said->output, HF_PROGRAM_RESULT_MAX);
    hf_buf_init(&said->line, one ? HF_VERDICT_LINE_MAX + 1 : HF_PROGRAM_SAID_MAX);
}

void hf_said_done(hf_said *said)
{
    hf_buf_done(&said->line);
    hf_buf_done(&said->output);
    free(said->result);
}

void hf_said_feed(hf_said *said, const char *bytes, size_t len)
{
    if (said->contract >= 2) {
        feed_lines(said, bytes, len);
        return;
    }
    size_t room = said->line.max - said->line.len;
    hf_buf_add(&said->line, bytes, len < room ? len : room);
}

void hf_said_output(hf_said *said, const char *bytes, size_t len)
{
    hf_buf_add(&said->output, bytes, len);
    if (hf_buf_err(&said->output) == HF_TOOBIG)
        tell_fault(said, LARGE_RESULT, "");
}

/* Not a part of it: all or nothing. */
static void take_output(hf_said *said)
{
    if (said->result != NULL || said->output.len == 0 ||
        hf_buf_err(&said->output) != HF_OK)
        return;
    said->result = malloc(said->output.len);
    if (said->result == NULL)
        return;
    memcpy(said->result, said->output.data, said->output.len);
    said->result_len = said->output.len;
    said->result_is_json = false;
}

static void end_lines(hf_said *said)
{
    if (said->contract >= 2) {
        if (!said->skips && said->line.len > 0)
            take_line(said, said->line.data, said->line.len, false);
        return;
    }
    /* Of a line that is not valid the text names the mistake. */
    (void)hf_verdict_line_read(&said->verdict, said->line.data, said->line.len);
}

void hf_said_end(hf_said *said)
{
    end_lines(said);
    take_output(said);
}
