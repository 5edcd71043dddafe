/* json_text.h - JSON as text (RFC 8259), for values that have to stay as they were
 * written. A parser makes numbers and objects of them, and what it writes again has other
 * digits, another order of keys, and no key twice. Nothing here reads past the end of a
 * text. */
#ifndef HF_BASE_JSON_TEXT_H
#define HF_BASE_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>

enum { HF_JSON_DEPTH_MAX = 2048 };

/* Where a text is no JSON. */
typedef struct hf_json_fault {
    size_t at;            /* bytes before it */
    const char *expected; /* static */
} hf_json_fault;

/* Whether it is one value, with or without white space around it. */
bool hf_json_check(const char *text, size_t len, hf_json_fault *fault);

/* Writes it without the white space outside of strings: at most `len` bytes, and `out`
 * may be `text`. Returns how many. The text is JSON, as all below. */
size_t hf_json_compact(const char *text, size_t len, char *out);

/* What the string, with its quotes, says: fewer than `len` bytes and a NUL. False: half a
 * pair of surrogates is no character. */
bool hf_json_decode(const char *string, size_t len, char *out, size_t *n);

/* ---- the members of an object, in their order ---- */

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

void hf_json_scan_start(hf_json_scan *scan, const char *object, size_t len);
/* The next member; false after the last. */
bool hf_json_scan_next(hf_json_scan *scan, hf_json_member *out);

#endif
