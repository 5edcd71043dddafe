/* bulk_line.c - see bulk_line.h.
 *
 * No parser makes values of the line: a payload that is not a text is passed on byte for
 * byte, with all digits of its numbers and keys that come twice. */
#include "cli/enqueue/bulk_line.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/base64.h"
#include "base/id.h"
#include "base/json_text.h"
#include "base/mask.h"
#include "base/text.h"
#include "cli/common/priority.h"
#include "cli/common/unique.h"
#include "cli/limits.h"

enum { NUMBER_SIZE = 24 };

typedef struct reader {
    hf_bulk_line *out;
    size_t payload_max;
    char *detail;
    size_t texts_len; /* bytes of out->texts_ that are used */
    bool has_payload;
} reader;

typedef struct value {
    const char *name;
    const char *raw; /* its bytes in the line */
    size_t raw_len;
    const char *text; /* what a string says, and a NUL; NULL: it is none */
    size_t len;
} value;

static hf_err fail(reader *r, hf_err err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static hf_err fail(reader *r, hf_err err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(r->detail, HF_BULK_DETAIL_SIZE, format, args);
    hf_mask(r->detail);
    va_end(args);
    return err;
}

static hf_err needed(reader *r, const value *v, const char *what, const char *add)
{
    int shown = v->raw_len < 60 ? (int)v->raw_len : 60;
    return fail(r, HF_INVALID, "expected %s for '%s', found %.*s%s%s", what, v->name,
                shown, v->raw, v->raw_len > 60 ? "..." : "", add);
}

static hf_err expected(reader *r, const value *v, const char *what)
{
    return needed(r, v, what, "");
}

/* A text without NUL in it, or NULL. */
static const char *text_of(const value *v)
{
    return v->text != NULL && strlen(v->text) == v->len ? v->text : NULL;
}

static hf_err take_name(reader *r, const value *v, const char **out)
{
    const char *text = text_of(v);
    if (text == NULL || !hf_name_ok(text))
        return expected(r, v, "1 to 128 characters of A-Z a-z 0-9 . _ : -");
    *out = text;
    return HF_OK;
}

static hf_err take_type(reader *r, const value *v)
{
    return take_name(r, v, &r->out->job.type);
}

static hf_err take_queue(reader *r, const value *v)
{
    return take_name(r, v, &r->out->job.queue);
}

static hf_err take_id(reader *r, const value *v)
{
    return take_name(r, v, &r->out->job.id);
}

static hf_err set_payload(reader *r, const void *bytes, size_t len)
{
    if (r->has_payload)
        return fail(r, HF_INVALID, "expected 'payload' or 'payload_base64', found both");
    if (len > r->payload_max)
        return fail(r, HF_TOOBIG, "expected a payload of at most %zu bytes, found %zu",
                    r->payload_max, len);
    r->has_payload = true;
    r->out->job.payload = bytes;
    r->out->job.payload_len = len;
    return HF_OK;
}

static hf_err take_payload(reader *r, const value *v)
{
    return v->text != NULL ? set_payload(r, v->text, v->len)
                           : set_payload(r, v->raw, v->raw_len);
}

static hf_err take_base64(reader *r, const value *v)
{
    size_t n = 0;
    if (v->text == NULL)
        return expected(r, v, "base64");
    r->out->bytes_ = malloc(v->len / 4 * 3 + 1);
    if (r->out->bytes_ == NULL)
        return HF_NOMEM;
    if (!hf_base64_decode(v->text, v->len, r->out->bytes_, &n))
        return expected(r, v, "base64");
    return set_payload(r, r->out->bytes_, n);
}

static bool duration_of(const value *v, int64_t min, int64_t max, int64_t *out)
{
    const char *text = text_of(v);
    return text != NULL && hf_parse_duration_ms(text, out) && *out >= min && *out <= max;
}

static hf_err take_in(reader *r, const value *v)
{
    if (!duration_of(v, 0, HF_DELAY_MAX_MS, &r->out->job.delay_ms))
        return expected(r, v, "a duration with its unit (\"10s\") of at most 36525d");
    return HF_OK;
}

static hf_err take_at(reader *r, const value *v)
{
    const char *text = text_of(v);
    if (text == NULL || !hf_parse_time_ms(text, &r->out->job.at_ms) ||
        r->out->job.at_ms < 0)
        return needed(r, v,
                      "a time from 1970 to 9999 with its zone "
                      "(\"2030-01-31T08:00:00Z\") or \"@SECONDS\"",
                      text != NULL ? hf_time_needs(text) : "");
    return HF_OK;
}

static hf_err take_timeout(reader *r, const value *v)
{
    int64_t ms = 0;
    if (!duration_of(v, 1, HF_TIMEOUT_MAX_MS, &ms))
        return expected(r, v, "a duration from 1ms to 30d");
    r->out->job.timeout_ms = (uint32_t)ms;
    return HF_OK;
}

static hf_err take_keep(reader *r, const value *v)
{
    if (!duration_of(v, 1, HF_DELAY_MAX_MS, &r->out->job.keep_ms))
        return expected(r, v, "a duration with its unit (\"1h\") from 1ms to 36525d");
    return HF_OK;
}

static hf_err take_max_attempts(reader *r, const value *v)
{
    char digits[NUMBER_SIZE];
    int64_t n = 0;
    snprintf(digits, sizeof digits, "%.*s",
             v->raw_len < NUMBER_SIZE ? (int)v->raw_len : 0, v->raw);
    if (!hf_parse_int(digits, 1, HF_ATTEMPTS_MAX, &n))
        return expected(r, v, "an integer from 1 to 1000000");
    r->out->job.max_attempts = (uint32_t)n;
    return HF_OK;
}

/* A word, or a number of 0 to 9, the most urgent first, as other queues write it. */
static hf_err take_priority(reader *r, const value *v)
{
    const char *text = text_of(v);
    bool digit = v->raw_len == 1 && v->raw[0] >= '0' && v->raw[0] <= '9';
    if (digit)
        text = v->raw[0] < '4' ? "high" : v->raw[0] < '7' ? "normal" : "low";
    if (text == NULL || !hf_priority_read(text, &r->out->job.priority))
        return expected(r, v, "high, normal, low, or an integer from 0 to 9");
    return HF_OK;
}

static hf_err take_start_within(reader *r, const value *v)
{
    if (!duration_of(v, 1, HF_DELAY_MAX_MS, &r->out->job.start_within_ms))
        return expected(r, v, "a duration from 1ms to 36525d");
    return HF_OK;
}

static hf_err take_on_dead(reader *r, const value *v)
{
    return take_name(r, v, &r->out->job.on_dead);
}

static hf_err take_replace_dead(reader *r, const value *v)
{
    r->out->job.replace_dead = v->raw_len == 4 && memcmp(v->raw, "true", 4) == 0;
    if (!r->out->job.replace_dead &&
        !(v->raw_len == 5 && memcmp(v->raw, "false", 5) == 0))
        return expected(r, v, "true or false");
    return HF_OK;
}

static hf_err take_headers(reader *r, const value *v)
{
    if (*v->raw != '{')
        return expected(r, v, "an object whose values are texts");
    char *copy =
        r->out->texts_ + r->texts_len; /* the key's colon left room for the NUL */
    memcpy(copy, v->raw, v->raw_len);
    copy[v->raw_len] = '\0';
    r->texts_len += v->raw_len + 1;
    r->out->job.headers = copy;
    return HF_OK;
}

static hf_err take_expired(reader *r, const value *v)
{
    const char *text = text_of(v);
    if (text == NULL || (strcmp(text, "drop") != 0 && strcmp(text, "dead") != 0))
        return expected(r, v, "drop or dead");
    r->out->job.expired = strcmp(text, "dead") == 0 ? HF_EXPIRED_DEAD : HF_EXPIRED_DROP;
    return HF_OK;
}

static hf_err take_unique(reader *r, const value *v)
{
    const char *text = text_of(v);
    if (text == NULL || *text == '\0' || strlen(text) > HF_UNIQUE_MAX)
        return expected(r, v, "a text of 1 to 256 bytes");
    r->out->job.unique = text;
    return HF_OK;
}

static hf_err take_until(reader *r, const value *v)
{
    const char *text = text_of(v);
    if (text == NULL || !hf_unique_until_read(text, &r->out->job.unique_until))
        return expected(r, v, "start, done or end");
    return HF_OK;
}

static hf_err take_on_conflict(reader *r, const value *v)
{
    const char *text = text_of(v);
    if (text == NULL || !hf_on_conflict_read(text, &r->out->job.on_conflict))
        return expected(r, v, "skip, replace, next or cancel");
    return HF_OK;
}

static hf_err take_duration(reader *r, const value *v, int64_t *out)
{
    return duration_of(v, 1, HF_DELAY_MAX_MS, out)
               ? HF_OK
               : expected(r, v, "a duration from 1ms to 36525d");
}

static hf_err take_unique_for(reader *r, const value *v)
{
    return take_duration(r, v, &r->out->job.unique_for_ms);
}

static hf_err take_debounce(reader *r, const value *v)
{
    return take_duration(r, v, &r->out->job.debounce_ms);
}

static hf_err take_max_wait(reader *r, const value *v)
{
    return take_duration(r, v, &r->out->job.max_wait_ms);
}

static hf_err take_throttle(reader *r, const value *v)
{
    return take_duration(r, v, &r->out->job.throttle_ms);
}

/* ---- the whole line ---- */

static const struct {
    const char *name;
    hf_err (*take)(reader *r, const value *v);
} fields[] = {
    {"type", take_type},
    {"payload", take_payload},
    {"payload_base64", take_base64},
    {"queue", take_queue},
    {"in", take_in},
    {"at", take_at},
    {"id", take_id},
    {"max_attempts", take_max_attempts},
    {"timeout", take_timeout},
    {"priority", take_priority},
    {"keep", take_keep},
    {"start_within", take_start_within},
    {"expired", take_expired},
    {"on_dead", take_on_dead},
    {"unique", take_unique},
    {"unique_until", take_until},
    {"unique_for", take_unique_for},
    {"on_conflict", take_on_conflict},
    {"debounce", take_debounce},
    {"max_wait", take_max_wait},
    {"throttle", take_throttle},
    {"replace_dead", take_replace_dead},
    {"headers", take_headers},
};

static bool is_seen(uint32_t seen, const char *name)
{
    size_t i = 0;
    while (strcmp(fields[i].name, name) != 0)
        i++;
    return (seen >> i & 1) != 0;
}

/* Some keys need another key beside them, whatever its value is. */
static hf_err check_pairs(reader *r, uint32_t seen)
{
    static const char *const pairs[][2] = {
        {"expired", "start_within"}, {"unique_until", "unique"}, {"unique_for", "unique"},
        {"on_conflict", "unique"},   {"debounce", "unique"},     {"max_wait", "unique"},
        {"throttle", "unique"},
    };
    for (size_t i = 0; i < HF_COUNT(pairs); i++)
        if (is_seen(seen, pairs[i][0]) && !is_seen(seen, pairs[i][1]))
            return fail(r, HF_INVALID, "'%s' needs '%s'", pairs[i][0], pairs[i][1]);
    return HF_OK;
}

static hf_err fail_unknown(reader *r, const char *name)
{
    char keys[HF_BULK_DETAIL_SIZE] = "";
    size_t len = 0;
    for (size_t i = 0; i < HF_COUNT(fields); i++) {
        int n = snprintf(keys + len, sizeof keys - len, "%s%s", i == 0 ? "" : ", ",
                         fields[i].name);
        HF_ASSERT(n > 0 && (size_t)n < sizeof keys - len);
        len += (size_t)n;
    }
    return fail(r, HF_INVALID, "expected a key of a job (%s), found '%.60s'", keys, name);
}

static hf_err take_field(reader *r, const value *v, uint32_t *seen)
{
    for (size_t i = 0; i < HF_COUNT(fields); i++) {
        if (strcmp(fields[i].name, v->name) != 0)
            continue;
        if ((*seen >> i & 1) != 0)
            return fail(r, HF_INVALID, "expected each key once, found '%s' again",
                        HF_FOUND(v->name));
        *seen |= UINT32_C(1) << i;
        return fields[i].take(r, v);
    }
    return fail_unknown(r, v->name);
}

/* What a string says: it has room in `texts_`, which is as long as the line. */
static hf_err decode(reader *r, const char *raw, size_t raw_len, const char **text,
                     size_t *len)
{
    char *out = r->out->texts_ + r->texts_len;
    int shown = raw_len < 60 ? (int)raw_len : 60;
    if (!hf_json_decode(raw, raw_len, out, len))
        return fail(r, HF_INVALID,
                    "expected whole characters, found half a pair of \\u escapes in "
                    "%.*s%s",
                    shown, raw, raw_len > 60 ? "..." : "");
    *text = out;
    r->texts_len += *len + 1;
    return HF_OK;
}

static hf_err take_member(reader *r, const hf_json_member *member, uint32_t *seen)
{
    value v = {.name = "", .raw = member->value, .raw_len = member->value_len};
    size_t key_len = 0;
    hf_err err = decode(r, member->key, member->key_len, &v.name, &key_len);
    if (strlen(v.name) != key_len)
        v.name = ""; /* no key has a NUL */
    if (err == HF_OK && *v.raw == '"')
        err = decode(r, v.raw, v.raw_len, &v.text, &v.len);
    return err == HF_OK ? take_field(r, &v, seen) : err;
}

static hf_err take_members(reader *r, const char *line, size_t len)
{
    hf_json_scan scan;
    hf_json_member member;
    uint32_t seen = 0;
    hf_json_scan_start(&scan, line, len);
    while (hf_json_scan_next(&scan, &member)) {
        hf_err err = take_member(r, &member, &seen);
        if (err != HF_OK)
            return err;
    }
    if (r->out->job.type == NULL)
        return fail(r, HF_INVALID, "'type' is missing");
    if (is_seen(seen, "in") && is_seen(seen, "at"))
        return fail(r, HF_INVALID, "expected 'in' or 'at', found both");
    hf_err err = check_pairs(r, seen);
    char why[HF_DETAIL_SIZE] = "";
    if (err == HF_OK && hf_job_check(&r->out->job, why) != HF_OK)
        err = fail(r, HF_INVALID, "%s", why); /* what does not go together */
    return err;
}

/* Characters, from 1 on. */
static size_t column_of(const char *line, size_t at)
{
    size_t n = 1;
    for (size_t i = 0; i < at; i++)
        n += ((unsigned char)line[i] & 0xC0) != 0x80;
    return n;
}

static hf_err check_object(reader *r, const char *line, size_t len)
{
    hf_json_fault fault;
    size_t space = 0;
    if (!hf_json_check(line, len, &fault))
        return strcmp(fault.expected, "UTF-8") == 0
                   ? fail(r, HF_INVALID,
                          "expected a JSON object in UTF-8, found other bytes in column "
                          "%zu",
                          column_of(line, fault.at))
                   : fail(r, HF_INVALID,
                          "expected a JSON object, found broken JSON in column %zu "
                          "(expected %s)",
                          column_of(line, fault.at), fault.expected);
    while (strchr(" \t\r\n", line[space]) != NULL)
        space++;
    if (line[space] == '{')
        return HF_OK;
    return fail(r, HF_INVALID, "expected a JSON object, found %s",
                line[space] == '[' ? "a list" : "a single value");
}

hf_err hf_bulk_line_read(hf_bulk_line *out, const char *line, size_t len,
                         size_t payload_max, char detail[HF_BULK_DETAIL_SIZE])
{
    *out = (hf_bulk_line){.job = {HF_JOB_INIT}};
    reader r = {.out = out, .payload_max = payload_max, .detail = detail};
    hf_err err = check_object(&r, line, len);
    if (err != HF_OK)
        return err;
    out->texts_ = malloc(len);
    err = out->texts_ == NULL ? HF_NOMEM : take_members(&r, line, len);
    if (err != HF_OK)
        hf_bulk_line_done(out);
    return err;
}

void hf_bulk_line_done(hf_bulk_line *line)
{
    free(line->texts_);
    free(line->bytes_);
    *line = (hf_bulk_line){0};
}
