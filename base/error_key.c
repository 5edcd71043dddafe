/* error_key.c - see error_key.h. */
#include "base/error_key.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "base/text.h"

enum { HEX_LEAST = 8 };

/* Copies this many bytes, as far as there is room; of a byte that is no UTF-8, a mark. */
static const char *copy(const char *at, size_t len, char *out, size_t *n)
{
    for (size_t i = 0; i < len && *n + 1 < HF_ERROR_KEY_SIZE; i++)
        out[(*n)++] = at[i];
    return at + len;
}

void hf_error_key(const char *error, char out[HF_ERROR_KEY_SIZE])
{
    size_t n = 0;
    for (const char *at = hf_text_gist(error);
         *at != '\0' && n + 1 < HF_ERROR_KEY_SIZE;) {
        size_t hex = 0, digits = 0;
        while (isxdigit((unsigned char)at[hex]))
            hex++;
        while (isdigit((unsigned char)at[digits]))
            digits++;
        const size_t wide = hf_utf8_len(at, strlen(at));
        if (hex >= HEX_LEAST) {
            (void)copy("*", 1, out, &n);
            at += hex;
        } else if (digits > 0) {
            (void)copy("#", 1, out, &n);
            at += digits;
        } else if (hex > 0) {
            at = copy(at, hex, out, &n);
        } else if (wide > 0) {
            at = copy(at, wide, out, &n);
        } else {
            (void)copy("?", 1, out, &n);
            at++;
        }
    }
    out[n] = '\0';
    out[n - hf_utf8_unfinished(out, n)] = '\0';
}
