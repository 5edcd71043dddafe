/* traceparent.c - see traceparent.h. */
#include "base/traceparent.h"

#include <string.h>

#include "base/json_text.h"

static const char name[] = "\"traceparent\"";

enum { TRACE_AT = 3, SPAN_AT = 36, FLAGS_AT = 53, SAMPLED = 1 };

/* Only small letters are allowed. */
static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* n bytes of two digits each. */
static bool read_hex(const char *text, uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int high = digit_of(text[2 * i]), low = digit_of(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (uint8_t)(high * 16 + low);
    }
    return true;
}

static bool is_zero(const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

bool hf_traceparent_read(const char *text, size_t len, hf_traceparent *out)
{
    hf_traceparent found;
    uint8_t version, flags;
    if (len < HF_TRACEPARENT_LEN || !read_hex(text, &version, 1) || version == 0xff ||
        (len > HF_TRACEPARENT_LEN && (version == 0 || text[HF_TRACEPARENT_LEN] != '-')))
        return false;
    if (text[TRACE_AT - 1] != '-' || text[SPAN_AT - 1] != '-' ||
        text[FLAGS_AT - 1] != '-' || !read_hex(text + TRACE_AT, found.trace_id, 16) ||
        !read_hex(text + SPAN_AT, found.span_id, 8) ||
        !read_hex(text + FLAGS_AT, &flags, 1) || is_zero(found.trace_id, 16) ||
        is_zero(found.span_id, 8))
        return false;
    found.sampled = (flags & SAMPLED) != 0;
    *out = found;
    return true;
}

static char *put_hex(char *at, const uint8_t *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        *at++ = digits[bytes[i] >> 4];
        *at++ = digits[bytes[i] & 15];
    }
    *at++ = '-';
    return at;
}

void hf_traceparent_write(const hf_traceparent *traceparent,
                          char out[HF_TRACEPARENT_SIZE])
{
    const uint8_t version = 0, flags = traceparent->sampled ? SAMPLED : 0;
    char *at = put_hex(out, &version, 1);
    at = put_hex(at, traceparent->trace_id, 16);
    at = put_hex(at, traceparent->span_id, 8);
    at = put_hex(at, &flags, 1);
    at[-1] = '\0';
}

/* ---- in an object ---- */

static bool is_it(const hf_json_member *member)
{
    return member->key_len == sizeof name - 1 &&
           memcmp(member->key, name, sizeof name - 1) == 0;
}

bool hf_traceparent_find(const char *object, size_t len, hf_traceparent *out)
{
    hf_json_scan scan;
    hf_json_member member;
    if (len == 0)
        return false;
    hf_json_scan_start(&scan, object, len);
    while (hf_json_scan_next(&scan, &member))
        if (is_it(&member)) /* no character of a traceparent needs an escape */
            return member.value_len > 2 &&
                   hf_traceparent_read(member.value + 1, member.value_len - 2, out);
    return false;
}

typedef struct text {
    char *at;
    size_t len, size;
    bool full;
} text;

static void add(text *t, const char *words, size_t len)
{
    t->full = t->full || len >= t->size - t->len;
    if (t->full)
        return;
    memcpy(t->at + t->len, words, len);
    t->len += len;
    t->at[t->len] = '\0';
}

size_t hf_traceparent_put(const char *object, size_t len,
                          const char traceparent[HF_TRACEPARENT_SIZE], char *out,
                          size_t size)
{
    text t = {.at = out, .size = size, .full = size == 0};
    hf_json_scan scan;
    hf_json_member member;
    add(&t, "{", 1);
    add(&t, name, sizeof name - 1);
    add(&t, ":\"", 2);
    add(&t, traceparent, strlen(traceparent));
    add(&t, "\"", 1);
    if (len != 0)
        hf_json_scan_start(&scan, object, len);
    while (len != 0 && hf_json_scan_next(&scan, &member)) {
        if (is_it(&member))
            continue;
        add(&t, ",", 1);
        add(&t, member.key, member.key_len);
        add(&t, ":", 1);
        add(&t, member.value, member.value_len);
    }
    add(&t, "}", 1);
    return t.full ? 0 : t.len;
}
