/* error_text.c - see error_text.h. */
#include "queue/error_text.h"

#include <stdint.h>

#include "holdfast/admin.h"

/* The bytes of the UTF-8 character at p, or 0: there is none (a stray or missing
 * continuation, a longer form than needed, half a surrogate pair, past the last
 * character). */
static size_t char_len(const unsigned char *p, size_t left)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (p[0] < 0x80)
        return 1;
    size_t len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc0 || p[0] > 0xf7 || len > left)
        return 0;
    uint32_t c = p[0] & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3fu);
    }
    bool surrogate = c >= 0xd800 && c <= 0xdfff;
    return c < least[len] || c > 0x10ffff || surrogate ? 0 : len;
}

bool hf_error_text_fits(hf_bytes text)
{
    const unsigned char *p = text.ptr;
    size_t len = 0;
    if (text.len > HF_ERROR_MAX)
        return false;
    for (size_t at = 0; at < text.len; at += len) {
        len = char_len(p + at, text.len - at);
        if (len == 0)
            return false;
    }
    return true;
}

size_t hf_error_text_mend(char *out, hf_bytes text)
{
    const unsigned char *p = text.ptr;
    size_t end = text.len < HF_ERROR_MAX ? text.len : HF_ERROR_MAX;
    for (size_t at = 0; at < end;) {
        size_t len = char_len(p + at, end - at);
        if (len == 0) {
            out[at++] = '?';
            continue;
        }
        for (; len != 0; len--, at++)
            out[at] = (char)p[at];
    }
    return end;
}
