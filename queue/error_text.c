/* error_text.c - see error_text.h. */
#include "queue/error_text.h"

#include "base/text.h"
#include "holdfast/admin.h"

bool hf_error_text_fits(hf_bytes text)
{
    const char *p = text.ptr;
    size_t len = 0;
    if (text.len > HF_ERROR_MAX)
        return false;
    for (size_t at = 0; at < text.len; at += len) {
        len = hf_utf8_len(p + at, text.len - at);
        if (len == 0)
            return false;
    }
    return true;
}

size_t hf_error_text_mend(char *out, hf_bytes text)
{
    size_t from = hf_text_end(text.ptr, text.len, HF_ERROR_MAX);
    const char *p = (const char *)text.ptr + from;
    size_t end = text.len - from;
    for (size_t at = 0; at < end;) {
        size_t len = hf_utf8_len(p + at, end - at);
        if (len == 0) {
            out[at++] = '?';
            continue;
        }
        for (; len != 0; len--, at++)
            out[at] = p[at];
    }
    return end;
}
