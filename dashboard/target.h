/* target.h - the address of a request: its path by segments, and its parameters. */
#ifndef HF_DASHBOARD_TARGET_H
#define HF_DASHBOARD_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HF_TARGET_SEGMENTS = 8, HF_TARGET_PARAMS = 12 };

typedef struct hf_param {
    const char *name, *value;
} hf_param;

/* Decoded UTF-8 without control characters. */
typedef struct hf_http_target {
    char *text; /* owned; the rest points into it */
    size_t n_segments, n_params;
    const char *segments[HF_TARGET_SEGMENTS];
    hf_param params[HF_TARGET_PARAMS];
} hf_http_target;

/* Reads an address as it was sent. `base` ("" or "/a/b") is left out where the path
 * begins with it: a proxy may have done so already. False: it is none, it has "%00",
 * another control character, "..", or too many parts. In any case end it with
 * hf_target_done().
 */
bool hf_target_read(hf_http_target *out, const char *sent, const char *base);
void hf_target_done(hf_http_target *target);

/* NULL: not given. */
const char *hf_target_param(const hf_http_target *target, const char *name);
/* False: it was given and is no number of min..max. */
bool hf_target_number(const hf_http_target *target, const char *name, int64_t min,
                      int64_t max, int64_t otherwise, int64_t *out);
/* The same of a duration, in ms: "1h". */
bool hf_target_duration(const hf_http_target *target, const char *name, int64_t otherwise,
                        int64_t *out);

/* Decodes "%41" and, with `form`, "+" in place. False: it is no such text. */
bool hf_target_decode(char *text, bool form);

#endif
