/* said.c - worker/program/said.h. */
#include "worker/program/said.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/base.h"
#include "base/base64.h"
#include "base/json_text.h"
#include "base/text.h"

/* ---- the members of a line ---- */

typedef enum key {
    VERDICT,
    IN,
    ERROR,
    PROGRESS,
    NOTE,
    CHECKPOINT,
    RESULT,
    RESULT_BASE64,
    KEYS
} key;

enum { KEY_SIZE = 64, FAULT_SIZE = 96 };

/* A value as it is written. */
typedef struct raw {
    const char *ptr; /* NULL: not named */
    size_t len;
} raw;

/* If a name comes twice its last value counts. */
typedef struct members {
    raw of[KEYS];
    char fault[FAULT_SIZE];
} members;

static int key_of(const hf_json_member *member)
{
    static const char *const names[KEYS] = {"verdict",  "in",           "error",
                                            "progress", "note",         "checkpoint",
                                            "result",   "result_base64"};
    char name[KEY_SIZE];
    size_t n;
    if (member->key_len > sizeof name ||
        !hf_json_decode(member->key, member->key_len, name, &n))
        return KEYS;
    int i = 0;
    while (i < KEYS && (strlen(names[i]) != n || memcmp(names[i], name, n) != 0))
        i++;
    return i;
}

/* The fault of the line, or NULL. */
static const char *split(members *m, const char *text, size_t len)
{
    hf_json_fault fault;
    hf_json_scan scan;
    hf_json_member member;
    *m = (members){.fault = ""};
    if (!hf_json_check(text, len, &fault)) {
        (void)snprintf(m->fault, sizeof m->fault, "expected %s behind %zu bytes",
                       fault.expected, fault.at);
        return m->fault;
    }
    if (text[strspn(text, " \t\r")] != '{')
        return "expected an object";
    hf_json_scan_start(&scan, text, len);
    while (hf_json_scan_next(&scan, &member)) {
        int i = key_of(&member);
        if (i == KEYS)
            continue;
        m->of[i] = (raw){member.value, member.value_len};
    }
    return NULL;
}

static bool is_word(raw value, const char *word)
{
    return value.len == strlen(word) && memcmp(value.ptr, word, value.len) == 0;
}

/* The text of a string, owned by the caller; NULL: the value is no string, or there is no
 * memory. */
static char *text_of(raw value, size_t *len)
{
    char *text = *value.ptr == '"' ? malloc(value.len) : NULL;
    if (text != NULL && hf_json_decode(value.ptr, value.len, text, len))
        return text;
    free(text);
    return NULL;
}

/* The same. A text with a NUL in it counts as none. */
static char *plain_text_of(raw value)
{
    size_t len = 0;
    char *text = text_of(value, &len);
    if (text == NULL || strlen(text) == len)
        return text;
    free(text);
    return NULL;
}

/* ---- its verdict ---- */

static const char *read_word(hf_verdict_line *out, const char *text)
{
    static const struct {
        const char *word;
        hf_verdict verdict;
    } words[] = {{"done", HF_VERDICT_DONE},
                 {"retry", HF_VERDICT_RETRY},
                 {"dead", HF_VERDICT_DEAD},
                 {"release", HF_VERDICT_RELEASE},
                 {"cancel", HF_VERDICT_CANCEL}};
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

static const char *read_in(hf_verdict_line *out, const char *text)
{
    out->has_retry_in = text != NULL && hf_parse_duration_ms(text, &out->retry_in_ms);
    return out->has_retry_in
               ? NULL
               : "expected a duration such as \"30s\", at most 36525d, as `in`";
}

static const char *read_error(hf_verdict_line *out, const char *text)
{
    if (text == NULL)
        return "expected a text as `error`";
    (void)snprintf(out->error, sizeof out->error, "%s",
                   text + hf_text_end(text, strlen(text), sizeof out->error - 1));
    return NULL;
}

/* Puts the members of a verdict over *out. The fault of them, or NULL. */
static const char *read_verdict(hf_verdict_line *out, const members *m)
{
    static const struct {
        key key;
        const char *(*read)(hf_verdict_line *out, const char *text);
    } parts[] = {{VERDICT, read_word}, {IN, read_in}, {ERROR, read_error}};
    const char *bad = NULL;
    for (size_t i = 0; i < HF_COUNT(parts) && bad == NULL; i++) {
        if (m->of[parts[i].key].ptr == NULL)
            continue;
        char *text = plain_text_of(m->of[parts[i].key]);
        bad = parts[i].read(out, text);
        free(text);
    }
    return bad;
}

/* ---- one line ---- */

/* Mistakes of a program. Each is reported once. */
typedef enum fault_kind {
    TOO_LONG,
    NOT_VALID,
    NO_NEWLINE,
    LARGE_RESULT,
    LARGE_CHECKPOINT
} fault_kind;

static void report_fault(hf_program_said *said, fault_kind kind, const char *why)
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

/* What a line says; the texts are owned, NULL: not named. */
typedef struct said_line {
    hf_verdict_line verdict; /* put over the one so far */
    double progress;
    char *note, *result, *checkpoint;
    size_t result_len, checkpoint_len;
    bool result_is_json;
} said_line;

static char *compact(raw value, size_t *len)
{
    char *text = malloc(value.len);
    *len = text == NULL ? 0 : hf_json_compact(value.ptr, value.len, text);
    return text;
}

/* A text is taken as it is, null is none, any other value as JSON. */
static const char *read_checkpoint(said_line *l, raw value)
{
    if (is_word(value, "null"))
        l->checkpoint = strdup("");
    else if (*value.ptr == '"')
        l->checkpoint = text_of(value, &l->checkpoint_len);
    else
        l->checkpoint = compact(value, &l->checkpoint_len);
    return l->checkpoint != NULL ? NULL
                                 : "expected a text or another value as `checkpoint`";
}

static const char *read_result(said_line *l, const members *m)
{
    size_t len = 0;
    if (m->of[RESULT].ptr != NULL && m->of[RESULT_BASE64].ptr != NULL)
        return "expected `result` or `result_base64`, not both";
    if (m->of[RESULT].ptr != NULL) {
        l->result = compact(m->of[RESULT], &l->result_len);
        l->result_is_json = true;
    }
    if (m->of[RESULT_BASE64].ptr == NULL)
        return NULL;
    char *text = text_of(m->of[RESULT_BASE64], &len);
    l->result = text == NULL ? NULL : malloc(len / 4 * 3 + 1);
    bool good = l->result != NULL &&
                hf_base64_decode(text, len, (unsigned char *)l->result, &l->result_len);
    free(text);
    return good ? NULL : "expected base64 as `result_base64`";
}

static bool read_percent(double *out, raw value)
{
    json_t *number = json_loadb(value.ptr, value.len, JSON_DECODE_ANY, NULL);
    bool good = json_is_number(number);
    *out = json_number_value(number);
    json_decref(number);
    return good && *out >= 0 && *out <= 100;
}

/* The fault of the members, or NULL. Only a line without a fault is taken. */
static const char *read_members(said_line *l, const members *m)
{
    const char *bad = read_verdict(&l->verdict, m);
    if (bad != NULL)
        return bad;
    if (m->of[PROGRESS].ptr != NULL && !read_percent(&l->progress, m->of[PROGRESS]))
        return "expected 0 to 100 as `progress`";
    if (m->of[NOTE].ptr != NULL)
        l->note = plain_text_of(m->of[NOTE]);
    if (m->of[NOTE].ptr != NULL && l->note == NULL)
        return "expected a text as `note`";
    if (m->of[CHECKPOINT].ptr != NULL)
        bad = read_checkpoint(l, m->of[CHECKPOINT]);
    return bad == NULL ? read_result(l, m) : bad;
}

static void take_result(hf_program_said *said, said_line *l)
{
    if (l->result_len > HF_PROGRAM_RESULT_MAX) {
        report_fault(said, LARGE_RESULT, "");
        return;
    }
    free(said->result);
    said->result = l->result;
    said->result_len = l->result_len;
    said->result_is_json = l->result_is_json;
    l->result = NULL;
}

static void take_members(hf_program_said *said, said_line *l, bool has_progress)
{
    said->verdict = l->verdict;
    if (l->result != NULL)
        take_result(said, l);
    if (l->checkpoint != NULL && l->checkpoint_len > HF_CHECKPOINT_MAX) {
        report_fault(said, LARGE_CHECKPOINT, "");
        free(l->checkpoint);
        l->checkpoint = NULL;
    }
    const hf_program_update update = {
        .has_progress = has_progress,
        .progress = (uint32_t)l->progress,
        .note = l->note,
        .checkpoint = l->checkpoint,
        .checkpoint_len = l->checkpoint_len,
    };
    if (update.has_progress || update.note != NULL || update.checkpoint != NULL)
        said->on_update(&update, said->arg);
}

static bool is_blank(const char *text, size_t len)
{
    while (len > 0 &&
           (text[len - 1] == ' ' || text[len - 1] == '\t' || text[len - 1] == '\r'))
        len--;
    return len == 0;
}

/* whole: it has its newline, else it is only taken if it has a verdict. */
static void take_line(hf_program_said *said, const char *text, size_t len, bool whole)
{
    members m;
    said_line l = {.verdict = said->verdict};
    if (is_blank(text, len))
        return;
    const char *bad = split(&m, text, len);
    if (!whole && (bad != NULL || m.of[VERDICT].ptr == NULL)) {
        report_fault(said, NO_NEWLINE, "");
        return;
    }
    if (bad == NULL)
        bad = read_members(&l, &m);
    if (bad != NULL)
        report_fault(said, NOT_VALID, bad);
    else
        take_members(said, &l, m.of[PROGRESS].ptr != NULL);
    free(l.note);
    free(l.result);
    free(l.checkpoint);
}

/* ---- lines in pieces ---- */

static void take_piece(hf_program_said *said, const char *bytes, size_t len, bool ends)
{
    if (said->skips)
        return;
    if (said->line.len + len > HF_PROGRAM_SAID_MAX) {
        said->skips = true;
        report_fault(said, TOO_LONG, "");
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

void hf_program_said_feed(hf_program_said *said, const char *bytes, size_t len)
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

/* ---- its life ---- */

void hf_program_said_init(hf_program_said *said,
                          void (*on_update)(const hf_program_update *update, void *arg),
                          void (*on_fault)(const char *text, void *arg), void *arg)
{
    *said = (hf_program_said){.on_update = on_update, .on_fault = on_fault, .arg = arg};
    hf_buf_init(&said->output, HF_PROGRAM_RESULT_MAX);
    hf_buf_init(&said->line, HF_PROGRAM_SAID_MAX);
}

void hf_program_said_done(hf_program_said *said)
{
    hf_buf_done(&said->line);
    hf_buf_done(&said->output);
    free(said->result);
}

void hf_program_said_output(hf_program_said *said, const char *bytes, size_t len)
{
    hf_buf_add(&said->output, bytes, len);
    if (hf_buf_err(&said->output) == HF_TOOBIG)
        report_fault(said, LARGE_RESULT, "");
}

/* Not a part of it: all or nothing. */
static void take_output(hf_program_said *said)
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

void hf_program_said_end(hf_program_said *said)
{
    if (!said->skips && said->line.len > 0)
        take_line(said, said->line.data, said->line.len, false);
    take_output(said);
}
