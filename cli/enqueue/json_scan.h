/* json_scan.h - where the members of a JSON object begin and end, in text that a parser
 * has found to be valid. So a value can be passed on byte for byte, which no parser that
 * reads numbers and writes them again can do. */
#ifndef HF_CLI_ENQUEUE_JSON_SCAN_H
#define HF_CLI_ENQUEUE_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>

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
