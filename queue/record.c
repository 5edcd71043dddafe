/* record.c - writes and reads the line of JSON in front of a payload.
 *
 * Reading is on the path of every job, so the line that we ourselves write (flat, whole
 * numbers, strings of plain ASCII without escapes) is scanned by hand. The scanner either
 * understands the whole line exactly as a JSON parser would, or changes nothing and
 * reports that: then jansson reads it. */
#include "queue/record.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/id.h"
#include "base/json_text.h"
#include "queue/headers.h"
#include "redis/args.h"

enum { VERSION = 1, HEADER_SIZE = 2 * HF_ID_SIZE + 500, DIGITS_MAX = 18, ALONE = 3 };

/* The fields of a header, before they are checked. Strings are borrowed. */
typedef struct header {
    int64_t version, created, refused, attempts, max_attempts, timeout, keep;
    int64_t start_by, scheduled, debounce, alone;
    hf_bytes type, error, priority, unique, unique_until, on_dead, failed_fence, headers;
    const char *fault; /* what was expected where it is wrong first */
} header;

typedef struct field {
    const char *name;
    size_t len;
    size_t offset; /* in struct header */
    bool text;
    bool option; /* a value of another kind counts as absent: earlier records may have had
                    a field of this name */
    const char *expected;
} field;

#define COUNT_OF(name) "expected as its " name " a whole number from 0 to 4294967295"
#define TIME_OF(name) "expected as its " name " a time in ms"
#define A_TYPE "expected a record with a type, 1 to 128 of A-Z a-z 0-9 . _ : -"
#define A_VERSION "expected as its v 1"
#define A_LINE "expected a record: a line of JSON with a type, a newline, the payload"

static const field fields[] = {
    {"v", 1, offsetof(header, version), false, false, A_VERSION},
    {"type", 4, offsetof(header, type), true, false, A_TYPE},
    {"created", 7, offsetof(header, created), false, false, TIME_OF("created")},
    {"refused", 7, offsetof(header, refused), false, false, TIME_OF("refused")},
    {"attempts", 8, offsetof(header, attempts), false, false, COUNT_OF("attempts")},
    {"max_attempts", 12, offsetof(header, max_attempts), false, false,
     COUNT_OF("max_attempts")},
    {"timeout", 7, offsetof(header, timeout), false, false, COUNT_OF("timeout")},
    {"error", 5, offsetof(header, error), true, false, "expected as its error a text"},
    {"priority", 8, offsetof(header, priority), true, true, NULL},
    {"keep", 4, offsetof(header, keep), false, true, NULL},
    {"start_by", 8, offsetof(header, start_by), false, true, NULL},
    {"scheduled", 9, offsetof(header, scheduled), false, true, NULL},
    {"unique", 6, offsetof(header, unique), true, true, NULL},
    {"failed_fence", 12, offsetof(header, failed_fence), true, true, NULL},
    {"unique_until", 12, offsetof(header, unique_until), true, true, NULL},
    {"debounce", 8, offsetof(header, debounce), false, true, NULL},
    {"on_dead", 7, offsetof(header, on_dead), true, true, NULL},
    {"alone", 5, offsetof(header, alone), false, true, NULL},
};

static bool is_word(hf_bytes text, const char *word)
{
    return text.len == strlen(word) && memcmp(text.ptr, word, text.len) == 0;
}

static const field *field_find(const char *name, size_t len)
{
    for (size_t i = 0; i < HF_COUNT(fields); i++) {
        if (fields[i].len == len && memcmp(fields[i].name, name, len) == 0)
            return &fields[i];
    }
    return NULL;
}

static void *field_of(header *head, const field *f)
{
    return (char *)head + f->offset;
}

/* ---- writing ---- */

static size_t put(char *out, size_t at, const char *text, size_t len)
{
    memcpy(out + at, text, len);
    return at + len;
}

static size_t put_number(char *out, size_t at, const char *name, int64_t value)
{
    at = put(out, at, name, strlen(name));
    return at + hf_args_digits(out + at, value);
}

bool hf_record_has_options(const hf_job *job)
{
    return job->priority != HF_PRIORITY_NORMAL || job->start_within_ms != 0 ||
           job->unique != NULL || job->on_dead != NULL || job->awaited ||
           job->replace_dead;
}

static size_t put_word(char *out, size_t at, const char *name, const char *word)
{
    at = put(out, at, name, strlen(name));
    at = put(out, at, "\"", 1);
    at = put(out, at, word, strlen(word));
    return put(out, at, "\"", 1);
}

/* All but the key. */
static size_t put_unique(char *out, size_t at, const hf_job *job)
{
    static const char *const untils[] = {
        [HF_UNIQUE_UNTIL_START] = "start", [HF_UNIQUE_UNTIL_DONE] = "done"};
    static const char *const conflicts[] = {[HF_ON_CONFLICT_REPLACE] = "replace",
                                            [HF_ON_CONFLICT_NEXT] = "next",
                                            [HF_ON_CONFLICT_CANCEL] = "cancel"};
    const struct {
        const char *name;
        int64_t ms;
    } times[] = {{",\"unique_for\":", job->unique_for_ms},
                 {",\"debounce\":", job->debounce_ms},
                 {",\"max_wait\":", job->max_wait_ms},
                 {",\"throttle\":", job->throttle_ms}};
    if (untils[job->unique_until] != NULL)
        at = put_word(out, at, ",\"unique_until\":", untils[job->unique_until]);
    if (conflicts[job->on_conflict] != NULL)
        at = put_word(out, at, ",\"on_conflict\":", conflicts[job->on_conflict]);
    for (size_t i = 0; i < HF_COUNT(times); i++) {
        if (times[i].ms != 0)
            at = put_number(out, at, times[i].name, times[i].ms);
    }
    return at;
}

static size_t put_options(char *out, size_t at, const hf_job *job)
{
    if (job->priority == HF_PRIORITY_HIGH)
        at = put(out, at, ",\"priority\":\"high\"", 18);
    if (job->priority == HF_PRIORITY_LOW)
        at = put(out, at, ",\"priority\":\"low\"", 17);
    if (job->start_within_ms != 0)
        at = put_number(out, at, ",\"start_within\":", job->start_within_ms);
    if (job->expired == HF_EXPIRED_DEAD)
        at = put(out, at, ",\"expired\":\"dead\"", 17);
    if (job->on_dead != NULL) {
        at = put(out, at, ",\"on_dead\":\"", 12);
        at = put(out, at, job->on_dead, strlen(job->on_dead));
        at = put(out, at, "\"", 1);
    }
    if (job->awaited)
        at = put(out, at, ",\"awaited\":1", 12);
    if (job->replace_dead)
        at = put(out, at, ",\"replace_dead\":1", 17);
    return job->unique != NULL ? put_unique(out, at, job) : at;
}

/* Without white space, which might have the newline that ends the line. */
static void add_headers(hf_buf *out, const char *headers)
{
    char text[HF_HEADERS_MAX];
    size_t len = strlen(headers);
    HF_ASSERT(len <= sizeof text);
    hf_buf_add(out, ",\"headers\":", 11);
    hf_buf_add(out, text, hf_json_compact(headers, len, text));
}

void hf_record_write(hf_buf *out, const hf_job *job, int64_t created_ms)
{
    char head[HEADER_SIZE];
    size_t type_len = strlen(job->type), at = 0;
    HF_ASSERT(type_len <= HF_NAME_MAX);
    hf_buf_add(out, "{", 1);
    if (job->unique !=
        NULL) { /* first: enqueue_with finds it there without reading the line */
        hf_buf_add(out, "\"unique\":\"", 10);
        hf_json_escape(out, job->unique, strlen(job->unique));
        hf_buf_add(out, "\",", 2);
    }
    at = put(head, at, "\"type\":\"", 8);
    at = put(head, at, job->type, type_len);
    at = put(head, at, "\"", 1);
    if (created_ms != 0)
        at = put_number(head, at, ",\"created\":", created_ms);
    if (job->max_attempts != 0)
        at = put_number(head, at, ",\"max_attempts\":", job->max_attempts);
    if (job->timeout_ms != 0)
        at = put_number(head, at, ",\"timeout\":", job->timeout_ms);
    if (job->keep_ms != 0)
        at = put_number(head, at, ",\"keep\":", job->keep_ms);
    if (hf_record_has_options(job))
        at = put_options(head, at, job);
    if (job->headers == NULL) {
        at = put(head, at, "}\n", 2);
        hf_buf_add(out, head, at);
    } else {
        hf_buf_add(out, head, at);
        add_headers(out, job->headers);
        hf_buf_add(out, "}\n", 2);
    }
    if (job->payload_len != 0)
        hf_buf_add(out, job->payload, job->payload_len);
}

/* ---- reading what we wrote ---- */

/* The characters up to the closing quote; false on an escape, a control character, or a
 * byte that would have to be checked as UTF-8. */
static bool scan_string(const char **at, const char *end, hf_bytes *out)
{
    const char *p = *at;
    if (p == end || *p++ != '"')
        return false;
    const char *start = p;
    while (p != end && *p != '"') {
        if (*p == '\\' || *p < 0x20 || *p > 0x7e)
            return false;
        p++;
    }
    if (p == end)
        return false;
    *out = (hf_bytes){start, (size_t)(p - start)};
    *at = p + 1;
    return true;
}

/* A whole number as JSON writes it: no sign, no leading zero, few digits. */
static bool scan_number(const char **at, const char *end, int64_t *out)
{
    const char *p = *at;
    int64_t value = 0;
    while (p != end && *p >= '0' && *p <= '9' && p - *at < DIGITS_MAX)
        value = value * 10 + (*p++ - '0');
    if (p == *at || (**at == '0' && p - *at > 1))
        return false;
    *out = value;
    *at = p;
    return true;
}

/* An object of texts. */
static bool scan_headers(const char **at, const char *end, hf_bytes *out)
{
    const char *start = *at;
    hf_bytes name, text;
    do {
        ++*at; /* the brace, or a comma */
        if (!scan_string(at, end, &name) || *at == end || *(*at)++ != ':' ||
            !scan_string(at, end, &text) || *at == end)
            return false;
    } while (**at == ',');
    if (*(*at)++ != '}')
        return false;
    *out = (hf_bytes){start, (size_t)(*at - start)};
    return true;
}

static bool scan_field(const char **at, const char *end, header *head)
{
    hf_bytes name, text;
    int64_t number = 0;
    if (!scan_string(at, end, &name) || *at == end || *(*at)++ != ':')
        return false;
    if (*at != end && **at == '{')
        return is_word(name, "headers") && scan_headers(at, end, &head->headers);
    bool is_text = *at != end && **at == '"';
    if (is_text ? !scan_string(at, end, &text) : !scan_number(at, end, &number))
        return false;
    const field *f = field_find(name.ptr, name.len);
    if (f == NULL || (f->option && f->text != is_text))
        return true;
    if (f->text != is_text)
        return false;
    if (is_text)
        *(hf_bytes *)field_of(head, f) = text;
    else
        *(int64_t *)field_of(head, f) = number;
    return true;
}

static bool scan(const char *at, const char *end, header *head)
{
    if (at == end || *at++ != '{')
        return false;
    for (;;) {
        if (!scan_field(&at, end, head) || at == end)
            return false;
        char c = *at++;
        if (c == '}')
            return at == end;
        if (c != ',')
            return false;
    }
}

/* ---- reading anything else ---- */

static void must(header *head, bool good, const char *expected)
{
    if (!good && head->fault == NULL)
        head->fault = expected;
}

static void take_field(json_t *root, const field *f, header *head)
{
    json_t *value = json_object_get(root, f->name);
    bool good = f->text ? json_is_string(value) : json_is_integer(value);
    if (value == NULL || (f->option && f->text != json_is_string(value)))
        return;
    must(head, good || f->option, f->expected);
    if (f->text && good)
        *(hf_bytes *)field_of(head, f) =
            (hf_bytes){json_string_value(value), json_string_length(value)};
    else if (!f->text)
        *(int64_t *)field_of(head, f) = json_integer_value(value);
}

/* *root and *headers must outlive the strings in *head. */
static void parse(json_t **root, char **headers, const char *text, size_t len,
                  header *head)
{
    enum { AS_WRITTEN = JSON_COMPACT | JSON_ENCODE_ANY };
    *root = json_loadb(text, len, JSON_ALLOW_NUL, NULL);
    must(head, json_is_object(*root), A_LINE);
    for (size_t i = 0; i < HF_COUNT(fields); i++) /* also behind a fault */
        take_field(*root, &fields[i], head);
    *headers = json_dumps(json_object_get(*root, "headers"), AS_WRITTEN);
    if (*headers != NULL)
        head->headers = (hf_bytes){*headers, strlen(*headers)};
}

/* ---- */

static bool fits(int64_t value)
{
    return value >= 0 && value <= UINT32_MAX;
}

static hf_priority priority_of(hf_bytes text)
{
    if (is_word(text, "high"))
        return HF_PRIORITY_HIGH;
    return is_word(text, "low") ? HF_PRIORITY_LOW : HF_PRIORITY_NORMAL;
}

/* A debounced job frees its key when it starts, as lib/unique.lua says. */
static hf_unique_until unique_until_of(const header *head)
{
    if (head->debounce != 0 || is_word(head->unique_until, "start"))
        return HF_UNIQUE_UNTIL_START;
    return is_word(head->unique_until, "done") ? HF_UNIQUE_UNTIL_DONE
                                               : HF_UNIQUE_UNTIL_END;
}

/* False: out of memory. */
static bool copy_text(hf_bytes *out, hf_bytes text)
{
    if (text.len == 0)
        return true;
    char *copy = malloc(text.len + 1);
    if (copy == NULL)
        return false;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    *out = (hf_bytes){copy, text.len};
    return true;
}

static void free_text(hf_bytes *text)
{
    if (text->len != 0)
        free((void *)(uintptr_t)text->ptr);
    *text = (hf_bytes){"", 0};
}

static uint32_t count_of(header *head, int64_t value, const char *expected)
{
    must(head, fits(value), expected);
    return fits(value) ? (uint32_t)value : 0;
}

static hf_err take_header(hf_record *out, header *head)
{
    bool named = hf_name_ok_n(head->type.ptr, head->type.len);
    must(head, head->version == VERSION, A_VERSION);
    must(head, named, A_TYPE);
    must(head, head->created >= 0, TIME_OF("created"));
    if (named) {
        memcpy(out->type, head->type.ptr, head->type.len);
        out->type[head->type.len] = '\0';
    }
    out->attempts = count_of(head, head->attempts, COUNT_OF("attempts"));
    out->max_attempts = count_of(head, head->max_attempts, COUNT_OF("max_attempts"));
    out->timeout_ms = count_of(head, head->timeout, COUNT_OF("timeout"));
    out->fault = head->fault;
    if (head->fault != NULL)
        return HF_PROTO;
    if (head->headers.len != 0 && !hf_headers_ok(head->headers.ptr, head->headers.len))
        head->headers.len = 0; /* the name may have been in use */
    if (!copy_text(&out->error, head->error) || !copy_text(&out->unique, head->unique) ||
        !copy_text(&out->on_dead, head->on_dead) ||
        !copy_text(&out->headers, head->headers))
        return HF_NOMEM;
    out->created_ms = head->created;
    out->refused_ms = head->refused;
    out->priority = priority_of(head->priority);
    out->keep_ms = head->keep;
    out->unique_until = unique_until_of(head);
    out->start_by_ms = head->start_by;
    out->scheduled_ms = head->scheduled;
    out->alone = head->alone >= ALONE; /* lib/record.lua */
    if (head->failed_fence.len < sizeof out->failed_fence)
        memcpy(out->failed_fence, head->failed_fence.ptr, head->failed_fence.len);
    return HF_OK;
}

hf_err hf_record_read(hf_record *out, hf_bytes text)
{
    const char *start = text.ptr;
    const char *end = text.len == 0 ? NULL : memchr(start, '\n', text.len);
    *out = (hf_record){
        .error = {"", 0}, .unique = {"", 0}, .on_dead = {"", 0}, .headers = {"", 0}};
    if (end == NULL) {
        out->fault = A_LINE;
        return HF_PROTO;
    }
    out->payload = (hf_bytes){end + 1, text.len - (size_t)(end + 1 - start)};
    const header nothing = {.version = VERSION,
                            .type = {"", 0},
                            .error = {"", 0},
                            .priority = {"", 0},
                            .unique = {"", 0},
                            .unique_until = {"", 0},
                            .on_dead = {"", 0},
                            .failed_fence = {"", 0},
                            .headers = {"", 0}};
    header head = nothing;
    if (scan(start, end, &head))
        return take_header(out, &head);
    head = nothing;
    json_t *root = NULL;
    char *headers = NULL;
    parse(&root, &headers, start, (size_t)(end - start), &head);
    hf_err err = take_header(out, &head);
    json_decref(root);
    free(headers);
    return err;
}

void hf_record_done(hf_record *record)
{
    free_text(&record->error);
    free_text(&record->unique);
    free_text(&record->on_dead);
    free_text(&record->headers);
}

hf_bytes hf_record_leaving(const hf_record *record)
{
    return record->unique;
}
