/* json_text.c - see json_text.h. */
#include "base/json_text.h"

#include <stdint.h>
#include <string.h>

#include "base/base.h"
#include "base/text.h"

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* -1: none. */
static int hex_of(char c)
{
    const char *digits = "0123456789abcdef";
    const char *at = c == '\0' ? NULL : strchr(digits, c >= 'A' && c <= 'F' ? c | 32 : c);
    return at == NULL ? -1 : (int)(at - digits);
}

/* ---- is it JSON? ---- */

/* Where it is in the text, and what it is in: bit n of `objects` is set when the n-th
 * bracket is that of an object. */
typedef struct checker {
    const char *at, *end;
    const char *expected; /* of the first fault */
    bool any_bytes;       /* in strings */
    size_t depth;
    uint8_t objects[HF_JSON_DEPTH_MAX / 8];
} checker;

static bool fails(checker *c, const char *expected)
{
    c->expected = expected;
    return false;
}

static void skip_space(checker *c)
{
    while (c->at < c->end && is_space(*c->at))
        c->at++;
}

static bool take(checker *c, char wanted)
{
    bool is = c->at < c->end && *c->at == wanted;
    c->at += is;
    return is;
}

static bool check_escape(checker *c)
{
    if (c->at == c->end || *c->at == '\0' || strchr("\"\\/bfnrtu", *c->at) == NULL)
        return fails(c, "an escape (\\n, \\u00e9)");
    if (*c->at++ != 'u')
        return true;
    for (int i = 0; i < 4; i++, c->at++)
        if (c->at == c->end || hex_of(*c->at) < 0)
            return fails(c, "four hexadecimal digits");
    return true;
}

/* Behind its first quote. */
static bool check_string(checker *c)
{
    while (c->at < c->end && *c->at != '"') {
        size_t len = hf_utf8_len(c->at, (size_t)(c->end - c->at));
        if (len == 0 && !c->any_bytes)
            return fails(c, "UTF-8");
        if ((unsigned char)*c->at < 0x20)
            return fails(c, "no control character");
        bool escape = *c->at == '\\';
        c->at += len == 0 ? 1 : len;
        if (escape && !check_escape(c))
            return false;
    }
    return take(c, '"') || fails(c, "the end of a string");
}

static bool check_digits(checker *c)
{
    const char *first = c->at;
    while (c->at < c->end && is_digit(*c->at))
        c->at++;
    return c->at > first || fails(c, "a digit");
}

static bool check_number(checker *c)
{
    (void)take(c, '-');
    if (!take(c, '0') && !check_digits(c))
        return false;
    if (take(c, '.') && !check_digits(c))
        return false;
    if (!take(c, 'e') && !take(c, 'E'))
        return true;
    if (!take(c, '+'))
        (void)take(c, '-');
    return check_digits(c);
}

static bool check_word(checker *c)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < HF_COUNT(words); i++) {
        size_t len = strlen(words[i]);
        if ((size_t)(c->end - c->at) >= len && memcmp(c->at, words[i], len) == 0) {
            c->at += len;
            return true;
        }
    }
    return fails(c, "a value");
}

static bool check_plain(checker *c)
{
    if (take(c, '"'))
        return check_string(c);
    if (c->at < c->end && (*c->at == '-' || is_digit(*c->at)))
        return check_number(c);
    return check_word(c);
}

static bool check_key(checker *c)
{
    skip_space(c);
    if (!take(c, '"'))
        return fails(c, "a key");
    if (!check_string(c))
        return false;
    skip_space(c);
    return take(c, ':') || fails(c, "':'");
}

static bool in_object(const checker *c)
{
    size_t i = c->depth - 1;
    return (c->objects[i / 8] >> i % 8 & 1) != 0;
}

/* Takes brackets that open, and the keys behind them, until a value has begun that is not
 * nested, or one is empty: *empty. */
static bool check_opening(checker *c, bool *empty)
{
    *empty = false;
    for (;;) {
        skip_space(c);
        bool object = take(c, '{');
        if (!object && !take(c, '['))
            return true;
        if (c->depth == HF_JSON_DEPTH_MAX)
            return fails(c, "at most 2048 brackets in each other");
        uint8_t bit = (uint8_t)(1U << c->depth % 8);
        uint8_t *bits = &c->objects[c->depth++ / 8];
        *bits = (uint8_t)(object ? *bits | bit : *bits & ~bit);
        skip_space(c);
        *empty = c->at < c->end && *c->at == (object ? '}' : ']');
        if (*empty)
            return true;
        if (object && !check_key(c))
            return false;
    }
}

/* Behind a value: the brackets that close, until another value follows (*more) or the
 * text is at its end. */
static bool check_closing(checker *c, bool *more)
{
    *more = false;
    for (;;) {
        skip_space(c);
        if (c->depth == 0)
            return c->at == c->end || fails(c, "the end");
        bool object = in_object(c);
        if (take(c, object ? '}' : ']')) {
            c->depth--;
            continue;
        }
        if (!take(c, ','))
            return fails(c, object ? "',' or '}'" : "',' or ']'");
        *more = true;
        return !object || check_key(c);
    }
}

static bool check(checker *c, const char *text, hf_json_fault *fault)
{
    bool ok = true, empty, more = true;
    while (ok && more) {
        ok = check_opening(c, &empty) && (empty || check_plain(c)) &&
             check_closing(c, &more);
    }
    *fault = (hf_json_fault){(size_t)(c->at - text), c->expected};
    return ok;
}

bool hf_json_check(const char *text, size_t len, hf_json_fault *fault)
{
    checker c = {.at = text, .end = text + len};
    return check(&c, text, fault);
}

bool hf_json_check_bytes(const char *text, size_t len, hf_json_fault *fault)
{
    checker c = {.at = text, .end = text + len, .any_bytes = true};
    return check(&c, text, fault);
}

/* ---- texts that are JSON ---- */

/* Behind a string, from its first quote on. */
static const char *behind_string(const char *at, const char *end)
{
    for (at++; at < end; at++) {
        if (*at == '\\' && at + 1 < end)
            at++;
        else if (*at == '"')
            return at + 1;
    }
    return end;
}

size_t hf_json_compact(const char *text, size_t len, char *out)
{
    const char *at = text, *end = text + len;
    size_t n = 0;
    while (at < end) {
        if (is_space(*at)) {
            at++;
            continue;
        }
        const char *from = at;
        at = *at == '"' ? behind_string(at, end) : at + 1;
        memmove(out + n, from, (size_t)(at - from));
        n += (size_t)(at - from);
    }
    return n;
}

static uint32_t hex4(const char *at)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++)
        value = value << 4 | (uint32_t)hex_of(at[i]);
    return value;
}

static size_t put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t len = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = len - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)((0xf00U >> len & 0xf0) | c);
    return len;
}

/* A "\u" escape, from its digits on; a second one may belong to it. 0: it is half a pair;
 * else how many bytes of the text it has. */
static size_t take_unicode(const char *at, const char *end, char *out, size_t *n)
{
    uint32_t c = hex4(at);
    size_t taken = 4;
    if (c >= 0xd800 && c <= 0xdbff && end - at >= 10 && at[4] == '\\' && at[5] == 'u') {
        uint32_t low = hex4(at + 6);
        if (low >= 0xdc00 && low <= 0xdfff) {
            c = 0x10000 + ((c - 0xd800) << 10 | (low - 0xdc00));
            taken = 10;
        }
    }
    if (c >= 0xd800 && c <= 0xdfff)
        return 0;
    *n += put_utf8(out + *n, c);
    return taken;
}

/* What the letter of a short escape stands for. */
static char short_escape(char letter)
{
    static const char *const letters = "\"\\/bfnrt", *const bytes = "\"\\/\b\f\n\r\t";
    return bytes[strchr(letters, letter) - letters];
}

bool hf_json_decode(const char *string, size_t len, char *out, size_t *n)
{
    const char *at = string + 1, *end = string + len - 1;
    *n = 0;
    while (at < end) {
        if (*at != '\\') {
            out[(*n)++] = *at++;
            continue;
        }
        if (at[1] == 'u') {
            size_t taken = take_unicode(at + 2, end, out, n);
            if (taken == 0)
                return false;
            at += 2 + taken;
            continue;
        }
        out[(*n)++] = short_escape(at[1]);
        at += 2;
    }
    out[*n] = '\0';
    return true;
}

/* The next character of a string. Returns the bytes of the text that it takes. */
static size_t take_char(const char *at, const char *end, char out[4], size_t *n)
{
    enum { REPLACEMENT = 0xfffd };
    size_t taken;
    *n = 0;
    if (*at != '\\') {
        taken = hf_utf8_len(at, (size_t)(end - at));
        memcpy(out, at, taken);
        *n = taken == 0 ? put_utf8(out, REPLACEMENT) : taken;
        return taken == 0 ? 1 : taken;
    }
    if (at[1] != 'u') {
        out[(*n)++] = short_escape(at[1]);
        return 2;
    }
    taken = take_unicode(at + 2, end, out, n);
    if (taken > 0)
        return 2 + taken;
    *n = put_utf8(out, REPLACEMENT);
    return 6;
}

size_t hf_json_text(const char *string, size_t len, char *out, size_t size)
{
    const char *at = string + 1, *end = string + len - 1;
    size_t n = 0;
    while (at < end) {
        char c[4];
        size_t c_len;
        at += take_char(at, end, c, &c_len);
        if (c_len > size - n)
            break;
        memcpy(out + n, c, c_len);
        n += c_len;
    }
    return n;
}

void hf_json_escape(hf_buf *out, const char *text, size_t len)
{
    for (const char *from = text, *end = text + len; from < end;) {
        size_t plain = 0;
        while (from + plain < end && (unsigned char)from[plain] >= 0x20 &&
               from[plain] != '"' && from[plain] != '\\')
            plain++;
        hf_buf_add(out, from, plain);
        from += plain;
        if (from < end)
            hf_buf_printf(out, "\\u%04x", (unsigned char)*from++);
    }
}

/* ---- numbers ---- */

/* value * 10^n; more than HF_JSON_INTEGER_MAX stays more. */
static int64_t raise10(int64_t value, int64_t n)
{
    for (; n > 0 && value > 0 && value <= HF_JSON_INTEGER_MAX; n--)
        value *= 10;
    return value;
}

/* Behind the digits: the exponent, at most a thousand millions. */
static int64_t exponent_of(const char *at, const char *end)
{
    enum { FAR = 100000000 };
    int64_t exponent = 0;
    if (at == end)
        return 0;
    bool negative = ++at < end && *at == '-';
    for (; at < end; at++)
        if (is_digit(*at) && exponent < FAR)
            exponent = exponent * 10 + (*at - '0');
    return negative ? -exponent : exponent;
}

bool hf_json_integer(const char *number, size_t len, int64_t *out)
{
    const char *at = number, *end = number + len;
    bool negative = at < end && *at == '-', fraction = false;
    int64_t value = 0, zeros = 0, scale = 0; /* value * 10^(zeros + scale) */
    at += negative;
    if (at == end || !is_digit(*at))
        return false;
    for (; at < end && (is_digit(*at) || *at == '.'); at++) {
        if (*at == '.') {
            fraction = true;
            continue;
        }
        scale -= fraction;
        zeros++;
        if (*at == '0')
            continue;
        value = raise10(value, zeros);
        value += value <= HF_JSON_INTEGER_MAX ? *at - '0' : 0;
        zeros = 0;
    }
    scale += zeros + exponent_of(at, end);
    if (value != 0 && scale < 0)
        return false;
    value = raise10(value, scale);
    *out = negative ? -value : value;
    return value <= HF_JSON_INTEGER_MAX;
}

/* ---- members ---- */

/* Behind a value. Brackets in strings do not count, and all others match. */
static const char *behind_value(const char *at, const char *end)
{
    size_t depth = 0;
    while (at < end) {
        char c = *at;
        if (depth == 0 && (c == ',' || c == '}' || c == ']' || is_space(c)))
            return at;
        at = c == '"' ? behind_string(at, end) : at + 1;
        if (c == '{' || c == '[')
            depth++;
        else if (depth > 0 && (c == '}' || c == ']'))
            depth--;
        if (depth == 0 && (c == '"' || c == '}' || c == ']'))
            return at;
    }
    return at;
}

void hf_json_scan_start(hf_json_scan *scan, const char *value, size_t len)
{
    *scan = (hf_json_scan){value, value + len};
    while (scan->at < scan->end && is_space(*scan->at))
        scan->at++;
    if (scan->at < scan->end && (*scan->at == '{' || *scan->at == '['))
        scan->at++;
}

static void scan_value(hf_json_scan *scan, hf_json_member *out)
{
    out->value = scan->at;
    scan->at = behind_value(scan->at, scan->end);
    out->value_len = (size_t)(scan->at - out->value);
}

bool hf_json_scan_next(hf_json_scan *scan, hf_json_member *out)
{
    while (scan->at < scan->end && (is_space(*scan->at) || *scan->at == ','))
        scan->at++;
    if (scan->at >= scan->end || *scan->at != '"')
        return false;
    out->key = scan->at;
    scan->at = behind_string(scan->at, scan->end);
    out->key_len = (size_t)(scan->at - out->key);
    while (scan->at < scan->end && (is_space(*scan->at) || *scan->at == ':'))
        scan->at++;
    scan_value(scan, out);
    return true;
}

bool hf_json_scan_item(hf_json_scan *scan, hf_json_member *out)
{
    while (scan->at < scan->end && (is_space(*scan->at) || *scan->at == ','))
        scan->at++;
    if (scan->at >= scan->end || *scan->at == ']')
        return false;
    *out = (hf_json_member){.key = NULL};
    scan_value(scan, out);
    return out->value_len > 0;
}
