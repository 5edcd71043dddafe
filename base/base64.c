/* base64.c - see base64.h. */
#include "base/base64.h"

#include <stdint.h>
#include <stdlib.h>

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool hf_base64_decode(const char *text, size_t len, unsigned char *out, size_t *n)
{
    *n = 0;
    if (len % 4 != 0)
        return false;
    size_t pad = 0;
    while (pad < 2 && pad < len && text[len - 1 - pad] == '=')
        pad++;
    uint32_t bits = 0;
    for (size_t i = 0; i < len; i++) {
        int value = i < len - pad ? value_of(text[i]) : 0;
        if (value < 0)
            return false;
        bits = bits << 6 | (uint32_t)value;
        if (i % 4 != 3)
            continue;
        size_t bytes = i + 1 == len ? 3 - pad : 3;
        /* The bits that padding leaves over must be zero, or two texts would mean the
         * same bytes.
         */
        if (bytes < 3 && (bits & ((1U << 8 * (3 - bytes)) - 1)) != 0)
            return false;
        for (size_t k = 0; k < bytes; k++)
            out[(*n)++] = (unsigned char)(bits >> (16 - 8 * k));
        bits = 0;
    }
    return true;
}

char *hf_base64_encode(const void *bytes, size_t len)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *in = bytes;
    char *text = malloc((len + 2) / 3 * 4 + 1), *at = text;
    if (text == NULL)
        return NULL;
    for (size_t i = 0; i < len; i += 3) {
        size_t left = len - i < 3 ? len - i : 3;
        unsigned three = (unsigned)in[i] << 16;
        three |= left > 1 ? (unsigned)in[i + 1] << 8 : 0;
        three |= left > 2 ? in[i + 2] : 0;
        for (unsigned k = 0; k < 4; k++)
            *at++ = k <= left ? digits[three >> (18 - 6 * k) & 63] : '=';
    }
    *at = '\0';
    return text;
}
