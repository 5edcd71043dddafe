/* json_text.h - JSON as text (RFC 8259), for values that have to stay as they were
 * written. A parser makes numbers and objects of them, and what it writes again has other
 * digits, another order of keys, and no key twice. Nothing here reads past the end of a
 * text. */
#ifndef HF_BASE_JSON_TEXT_H
#define HF_BASE_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { HF_JSON_DEPTH_MAX = 2048 };

/* Where a text is no JSON. */
typedef struct hf_json_fault {
    size_t at;            /* bytes before it */
    const char *expected; /* static */
} hf_json_fault;

/* Whether it is one value, with or without white space around it. */
bool hf_json_check(const char *text, size_t len, hf_json_fault *fault);
/* The same, but bytes in a string need not be UTF-8. hf_json_text() reads such strings.
 */
bool hf_json_check_bytes(const char *text, size_t len, hf_json_fault *fault);

/* Writes it without the white space outside of strings: at most `len` bytes, and `out`
 * may be `text`. Returns how many. The text is JSON, as all below. */
size_t hf_json_compact(const char *text, size_t len, char *out);

/* What the string, with its quotes, says: fewer than `len` bytes and a NUL. False: half a
 * pair of surrogates is no character. */
bool hf_json_decode(const char *string, size_t len, char *out, size_t *n);
/* The same of any string: U+FFFD stands for half a pair of surrogates, and for each byte
 * that is a part of no character. Writes at most `size` bytes, only whole characters, and
 * no NUL behind them. Returns how many. */
size_t hf_json_text(const char *string, size_t len, char *out, size_t size);

/* Appends a text of UTF-8 as it stands between the quotes of a string. */
void hf_json_escape(hf_buf *out, const char *text, size_t len);

/* The value of a number of -2^53 to 2^53 without a fraction, however it is written: 7,
 * 7.0, 70e-1. False: it is another one, or no number. */
#define HF_JSON_INTEGER_MAX (INT64_C(1) << 53)
bool hf_json_integer(const char *number, size_t len, int64_t *out);

/* ---- the members of an object, or the items of an array, in their order ---- */

/* Both point into the text; the key includes its quotes. */
typedef struct hf_json_member {
    const char *key;
    size_t key_len;
    const char *value;
    size_t value_len;
} hf_json_member;

typedef struct hf_json_scan {
    const char *at, *end;
} hf_json_scan;

void hf_json_scan_start(hf_json_scan *scan, const char *value, size_t len);
/* The next member of the object; false after the last. */
bool hf_json_scan_next(hf_json_scan *scan, hf_json_member *out);
/* The same of an array. Its items have no keys. */
bool hf_json_scan_item(hf_json_scan *scan, hf_json_member *out);

#endif
